// stc model
void f(float a[64], int n)
{
	for (int i = 0; i < n; i++)
		a[i] = 0;
}
