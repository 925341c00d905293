// stc compile -o %o
void f(float y[64])
{
	for (int i = 0; i < 64; i++)
		for (int j = 1; j < i; j <<= 1)
			y[i] += j;
}
