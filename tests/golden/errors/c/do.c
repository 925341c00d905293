// stc compile -o %o
void f(float y[8], float x[8])
{
	int i = 0;
	do
		y[i] = x[i];
	while (++i < 8);
}
