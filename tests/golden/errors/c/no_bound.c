// stc compile -o %o
void f(int n, float y[8], const float x[8])
{
	for (int i = 0; i < 2 * n; i++)
		y[i] = x[i];
}
