// stc compile --top f -o %o
void other(float x[8]);
void f(float x[8])
{
	other(x);
}
