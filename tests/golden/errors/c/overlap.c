// stc compile --top f -o %o
void f(float y[8], const float x[8])
{
	for (int i = 1; i < 8; i++)
		y[i] = x[i - 1];
}
int main(void)
{
	float a[16];
	f(a, a);
	return 0;
}
