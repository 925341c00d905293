/* Functions of st_math.h and st_integer.h on double, as the evaluator computes them: exact or
 * correctly rounded.  A design that computes in double includes this file. */
#ifndef ST_DOUBLE_H
#define ST_DOUBLE_H

#include <cmath>
#include "st_integer.h"
#include "st_math.h"

inline double st_abs(double x)
{
	return st_double(st_bits64(x) & 0x7fffffffffffffffu);
}

inline double st_copysign(double magnitude, double sign)
{
	return st_double((st_bits64(magnitude) & 0x7fffffffffffffffu) |
	        (st_bits64(sign) & 0x8000000000000000u));
}

/* Nearest integer, ties to even; the sign of zero is kept. */
inline double st_round_even(double x)
{
	const double a = st_abs(x);
	const double r = (a + 4503599627370496.0) - 4503599627370496.0;

	return a < 4503599627370496.0 ? st_copysign(r, x) : x;
}

inline double st_floor(double x)
{
	const double r = st_round_even(x);

	return r > x ? st_copysign(r - 1.0, x) : r;
}

inline double st_ceil(double x)
{
	const double r = st_round_even(x);

	return r < x ? st_copysign(r + 1.0, x) : r;
}

inline double st_larger(double a, double b)
{
	const double equal = st_double(st_bits64(a) & st_bits64(b)); /* +0 wins over -0 */
	const double larger = a > b ? a : equal;

	return a < b ? b : larger;
}

inline double st_smaller(double a, double b)
{
	const double equal = st_double(st_bits64(a) | st_bits64(b)); /* -0 wins over +0 */
	const double smaller = a < b ? a : equal;

	return a > b ? b : smaller;
}

inline double st_maximum(double a, double b)
{
	const double number = b != b ? b : st_larger(a, b);

	return a != a ? a : number;
}

inline double st_minimum(double a, double b)
{
	const double number = b != b ? b : st_smaller(a, b);

	return a != a ? a : number;
}

inline double st_maxnum(double a, double b)
{
	const double number = b != b ? a : st_larger(a, b);

	return a != a ? b : number;
}

inline double st_minnum(double a, double b)
{
	const double number = b != b ? a : st_smaller(a, b);

	return a != a ? b : number;
}

inline double st_div(double a, double b)
{
	return a / b;
}

/* The operator of the vendor's library: correctly rounded, as that of every machine is. */
inline double st_sqrt(double x)
{
	return std::sqrt(x);
}

/* To a float whose rounding to a narrower type is that of x: an inexact one has an odd last bit. */
inline float st_round_odd(double x)
{
	const float near = static_cast<float>(x);
	const bool exact = static_cast<double>(near) == x || x != x || (st_bits(near) & 1u) != 0u;
	const bool above = st_abs(static_cast<double>(near)) > st_abs(x);

	const std::uint32_t odd = above ? st_bits(near) - 1u : st_bits(near) + 1u;

	return exact ? near : st_float(odd);
}

template <class T, int W> inline T st_saturate(double a)
{
	return st_saturate_real<T, W>(a);
}

template <int W> inline std::uint64_t st_saturate_unsigned(double a)
{
	return st_saturate_unsigned_real<W>(a);
}

#endif
