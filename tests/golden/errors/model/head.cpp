// stc model
void f(float a[64])
{
	for (int i = 1; i < 64; i *= 2)
		a[i] = 0;
}
