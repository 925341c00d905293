// stc compile -o %o
void f(float x, const float y[8])
{
	float t;
	t = x * y[0];
}
