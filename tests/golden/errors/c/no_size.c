// stc compile -o %o
void f(int n, float y[n], const float x[n])
{
	for (int i = 0; i < n; i++)
		y[i] = x[i];
}
