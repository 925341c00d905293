// stc compile -o %o
void f(float y[8], float x[8])
{
	for (int i = 0; i < 8; i++) {
		if (i == 3)
			continue;
		y[i] = x[i];
	}
}
