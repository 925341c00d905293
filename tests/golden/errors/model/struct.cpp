// stc model
struct pair { float x, y; };
void f(float a[4])
{
	pair p;
	p.x = a[0];
	a[1] = p.x;
}
