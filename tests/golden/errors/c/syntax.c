// stc compile --top f -o %o
void f(float y[4], const float x[4])
{
	for (int i = 0; i < 4; i++)
		y[i] = x[i] + ;
	y[0] = z;
}
