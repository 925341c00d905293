// stc compile --define n=4 --define n=5 -o %o
void f(int n, float y[n], const float x[8])
{
	for (int i = 0; i < n; i++)
		y[i] = x[i];
}
