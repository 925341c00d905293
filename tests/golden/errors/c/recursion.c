// stc compile --top f -o %o
static float half(float x)
{
	return x < 1.0f ? x : half(0.5f * x);
}

void f(float y[8], const float x[8])
{
	for (int i = 0; i < 8; i++)
		y[i] = half(x[i]);
}
