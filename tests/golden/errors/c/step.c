// stc compile -o %o
void f(float y[8], const float x[8])
{
	for (int i = 0; i < 8; i--)
		y[i] = x[i];
}
