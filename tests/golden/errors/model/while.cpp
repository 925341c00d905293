// stc model
void f(float a[4])
{
	while (a[0] > 0)
		a[0] -= 1;
}
