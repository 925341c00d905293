// stc compile -o %o
void f(float y[64])
{
	for (int i = 0; i < 64; i *= 2)
		y[i] = 1;
}
