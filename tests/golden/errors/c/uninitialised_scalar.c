// stc compile -o %o
void f(float y[8], const float x[8])
{
	float s;
	for (int i = 0; i < 8; i++)
		s += x[i];
	y[0] = s;
}
