// stc compile --top f -o %o
static void zero(float x[4][8])
{
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 8; j++)
			x[i][j] = 0;
}
void f(float y[8][4])
{
	zero(y);
}
