// stc compile -o %o
void f(float y[8], const float x[8])
{
	float t[8];
	for (int i = 1; i < 8; i++)
		t[i] = x[i];
	for (int i = 0; i < 8; i++)
		y[i] = t[i];
}
