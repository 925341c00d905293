// stc compile -o %o
void f(float y[8], const float x[8])
{
again:
	for (int i = 0; i < 8; i++)
		y[i] = x[i];
	if (y[0] < 1)
		goto again;
}
