// stc compile -o %o
void f(float y[8], float x[8])
{
	for (int i = 0; i < 8; i++) {
		if (x[i] > 3)
			return;
		y[i] = x[i];
	}
}
