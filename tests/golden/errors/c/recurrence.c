// stc compile -o %o
void f(float y[1000], const float x[1000])
{
	for (int i = 1; i < 1000; i++)
		y[i] = y[i - 1] * x[i];
}
