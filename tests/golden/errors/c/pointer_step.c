// stc compile -o %o
void f(float y[8], float x[8])
{
	x++;
	for (int i = 0; i < 7; i++)
		y[i] = x[i];
}
