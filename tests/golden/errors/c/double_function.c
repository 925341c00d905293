// stc compile -o %o
#include <math.h>
void f(double y[8], const double x[8])
{
	for (int i = 0; i < 8; i++)
		y[i] = 2.0 * exp(x[i]);
}
