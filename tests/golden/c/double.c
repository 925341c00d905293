// stc compile --stop-after demote_f64 -o %o
#define OFFSET (1.0)
void f(float y[8], const float x[8], const double z[8])
{
	for (int i = 0; i < 8; i++)
		y[i] = 0.5 * x[i];
	for (int i = 0; i < 8; i++)
		y[i] = x[i] * y[i] + OFFSET;
	for (int i = 0; i < 8; i++)
		y[i] = x[i] * (2.0f + y[i]) + 0.1;
	for (int i = 0; i < 8; i++)
		y[i] += 0.3 * z[i];
}
