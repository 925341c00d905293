// stc model
void f(float a[4])
{
	a[0] = ;
}
