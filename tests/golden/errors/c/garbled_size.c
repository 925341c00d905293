// stc compile --define n=many -o %o
void f(int n, float y[8], const float x[8])
{
	for (int i = 0; i < n; i++)
		y[i] = x[i];
}
