// stc compile --top f -o %o
static void half(float x[8])
{
	x[0] *= 0.5f;
	half(x);
}
void f(float y[8])
{
	half(y);
}
