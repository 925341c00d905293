// stc compile -o %o
void f(float y[8], const float x[8])
{
	const float *p = x;
	for (int i = 0; i < 8; i++)
		y[i] = *p++;
}
