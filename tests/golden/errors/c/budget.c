// stc compile --platform xc7z020 --max-dsp 4 -o %o
void f(float y[8], const float x[8])
{
	for (int i = 1; i < 8; i++)
		y[i] = y[i - 1] * x[i] + x[i];
}
