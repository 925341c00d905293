// stc compile -o %o
void f(float y[8][9], const float x[8][9])
{
	for (int i = 0; i < 8; i++)
		for (int j = 1; j < 9; j++)
			y[i][j] = x[i][j - 1] + x[i + 1][j];
}
