// stc compile -o %o
void f(float y[8], const float x[8])
{
	int i = 0;
	while (x[i] > 0)
		y[i] = x[i++];
}
