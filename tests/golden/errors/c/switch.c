// stc compile -o %o
void f(int y[8], int x[8])
{
	for (int i = 0; i < 8; i++)
		switch (x[i]) {
		case 0: y[i] = 1; break;
		default: y[i] = 2;
		}
}
