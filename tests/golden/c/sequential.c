// stc compile --platform xc7z020 --to tensor
void f(float y[40], const float x[40])
{
	for (int i = 1; i < 40; i++)
		y[i] = y[i - 1] * x[i];
}
