// stc compile -o %o
void f(double y[8], const double x[8])
{
	for (int i = 0; i < 8; i++)
		y[i] = x[i];
}
