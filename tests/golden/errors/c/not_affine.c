// stc compile -o %o
void f(float y[64], const float x[64])
{
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 8; j++)
			y[i * j] = x[i + 8 * j];
}
