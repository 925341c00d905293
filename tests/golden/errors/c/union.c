// stc compile -o %o
union number {
	float real;
	int whole;
};
void f(float y[8], const float x[8])
{
	union number n;
	for (int i = 0; i < 8; i++) {
		n.real = x[i];
		y[i] = n.whole;
	}
}
