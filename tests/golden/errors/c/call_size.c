// stc compile --top f -o %o
static void clear(int count, float x[8])
{
	for (int i = 0; i < count; i++)
		x[i] = 0;
}
void f(int n, float y[8])
{
	clear(n, y);
}
