/* More elementary functions, by those of st_math.h, under its rules: tangent, inverse trigonometric
 * and hyperbolic functions, logarithms, remainder.  st_math.h includes this file. */
#ifndef ST_FUNCTIONS_H
#define ST_FUNCTIONS_H

#include "st_math.h"

/* At most 3 ulp. */
static inline float st_tan(float x)
{
	return st_div(st_sin(x), st_cos(x));
}

/* --- inverse trigonometric functions ---------------------------------------------------------- */

/* t + t * z * p(z), z = t * t, of |t| <= tan(pi / 8): the arc tangent, as in Cephes. */
static inline float st_atan_near(float t)
{
	float z = t * t;
	float p = 8.05374449538e-2f;

	p = p * z + -1.38776856032e-1f;
	p = p * z + 1.99777106478e-1f;
	p = p * z + -3.33329491539e-1f;
	return t + t * (z * p);
}

/* At most 3 ulp.  Arguments above tan(pi / 8) are taken from pi / 4, above tan(3 pi / 8) from
 * pi / 2. */
static inline float st_atan(float x)
{
	float a = st_abs(x);
	bool turned = a > 0.41421356f, far = a > 2.41421356f;
	float above = far ? -1.0f : a - 1.0f;
	float below = far ? a : a + 1.0f;
	float rest = st_atan_near(turned ? above / below : a);
	float y = (far ? 1.57079633f : 0.785398163f) + rest;

	y = st_copysign(st_flush(turned ? y : rest), x);
	return x != x ? x : y;
}

/* At most 4 ulp.  The angle is that of the smaller size by the larger, 0 for two zeros and pi / 4
 * for two infinities. */
static inline float st_atan2(float y, float x)
{
	float across = st_abs(y), along = st_abs(x);
	float small = across > along ? along : across;
	float large = across > along ? across : along;
	float equal = large == 0.0f ? 0.0f : 1.0f;
	float angle = st_atan(small == large ? equal : small / large);

	angle = across > along ? 1.57079633f - angle : angle;
	angle = (st_bits(x) & ST_SIGN_BIT) != 0u ? 3.14159265f - angle : angle;
	angle = st_copysign(angle, y);
	return x != x || y != y ? st_float(ST_NAN_BITS) : angle;
}

/* The arc sine of |x| <= 1/2, by the polynomial of Cephes. */
static inline float st_asin_near(float t)
{
	float z = t * t;
	float p = 4.2163199048e-2f;

	p = p * z + 2.4181311049e-2f;
	p = p * z + 4.5470025998e-2f;
	p = p * z + 7.4953002686e-2f;
	p = p * z + 1.6666752422e-1f;
	return t + t * (z * p);
}

/* At most 3 ulp; NaN beyond 1.  Near 1 the arc sine of sqrt((1 - |x|) / 2) is half the angle that
 * is left of pi / 2. */
static inline float st_asin(float x)
{
	float a = st_abs(x);
	bool large = a > 0.5f;
	float angle = st_asin_near(large ? st_sqrt(0.5f * (1.0f - a)) : a);
	float y = st_copysign(st_flush(large ? 1.57079633f - 2.0f * angle : angle), x);

	y = a > 1.0f ? st_float(ST_NAN_BITS) : y;
	return x != x ? x : y;
}

/* At most 3 ulp; NaN beyond 1. */
static inline float st_acos(float x)
{
	float a = st_abs(x);
	bool large = a > 0.5f;
	float angle = st_asin_near(large ? st_sqrt(0.5f * (1.0f - a)) : x);
	float y = 1.57079633f - angle;

	y = large ? 2.0f * angle : y;
	y = large && x < 0.0f ? 3.14159265f - 2.0f * angle : y;
	y = a > 1.0f ? st_float(ST_NAN_BITS) : y;
	return x != x ? x : y;
}

/* --- logarithms and hyperbolic functions, by way of double precision as st_pow ---------------- */

/* The result of a logarithm of x at and beyond the ends of its range. */
static inline float st_log_ends(float y, float x)
{
	y = st_bits(x) == ST_INF_BITS ? x : y;
	y = x < 0.0f ? st_float(ST_NAN_BITS) : y;
	y = st_abs(x) < ST_LEAST_NORMAL ? st_float(ST_INF_BITS | ST_SIGN_BIT) : y;
	return x != x ? x : y;
}

/* At most 1 ulp; exact for powers of two. */
static inline float st_log2(float x)
{
	return st_log_ends((float)st_log2_wide((double)x), x);
}

/* At most 1 ulp. */
static inline float st_log10(float x)
{
	return st_log_ends((float)(st_log2_wide((double)x) * 0.301029995663981195214), x);
}

/* The natural logarithm of a normal positive double. */
static inline double st_log_wide(double x)
{
	return st_log2_wide(x) * 0.693147180559945309417;
}

/* The square root of a number in the range of normal floats: one step of Newton's. */
static inline double st_sqrt_wide(double x)
{
	double y = (double)st_sqrt((float)x);

	return 0.5 * (y + x / y);
}

/* e^|x|, from 100 on as of 100, which is infinite as a float. */
static inline double st_exp_size(float x)
{
	float a = st_abs(x);

	return st_exp2_wide((double)(a < 100.0f ? a : 100.0f) * 1.44269504088896340736);
}

/* At most 2 ulp. */
static inline float st_sinh(float x)
{
	float z = x * x;
	float p = 2.7557319e-06f;
	double e = st_exp_size(x);
	float large = (float)(0.5 * (e - 1.0 / e));

	p = p * z + 1.9841270e-04f;
	p = p * z + 8.3333333e-03f;
	p = p * z + 1.6666667e-01f;
	large = st_abs(x) < 0.5f ? st_abs(x + x * (z * p)) : large;
	return x != x ? x : st_copysign(st_flush(large), x);
}

/* At most 1 ulp. */
static inline float st_cosh(float x)
{
	double e = st_exp_size(x);

	return x != x ? x : (float)(0.5 * (e + 1.0 / e));
}

/* At most 2 ulp: log(a + sqrt(a^2 + 1)), where that is large log(2 * a + 1 / (2 * a)). */
static inline float st_asinh(float x)
{
	float a = st_abs(x);
	double d = (double)a;
	bool near = a < 4096.0f;
	double root = st_sqrt_wide(near ? d * d + 1.0 : 2.0);
	float y = (float)st_log_wide(near ? d + root : 2.0 * d + 0.5 / d);

	y = a < 0.000244140625f ? a - a * (a * a * 1.6666667e-01f) : y;
	y = st_copysign(st_flush(y), x);
	return a < st_float(ST_INF_BITS) ? y : x;
}

/* At most 2 ulp; NaN below 1. */
static inline float st_acosh(float x)
{
	double d = (double)x - 1.0;
	bool near = x < 4096.0f;
	double square = near && d > 0.0 ? d * (d + 2.0) : 1.0;
	double large = 2.0 * (double)x;
	float y = (float)st_log_wide(near ? 1.0 + (d + st_sqrt_wide(square)) : large - 1.0 / large);

	y = x == 1.0f ? 0.0f : y;
	y = st_bits(x) == ST_INF_BITS ? x : y;
	y = x < 1.0f ? st_float(ST_NAN_BITS) : y;
	return x != x ? x : y;
}

/* At most 2 ulp; infinity at 1, NaN beyond. */
static inline float st_atanh(float x)
{
	float a = st_abs(x);
	double d = a < 1.0f ? (double)a : 0.0;
	float y = (float)(0.5 * st_log_wide((1.0 + d) / (1.0 - d)));

	y = a < 0.000244140625f ? a + a * (a * a * 3.3333333e-01f) : y;
	y = a == 1.0f ? st_float(ST_INF_BITS) : y;
	y = st_copysign(st_flush(y), x);
	y = a > 1.0f ? st_float(ST_NAN_BITS) : y;
	return x != x ? x : y;
}

/* --- remainder
 * ------------------------------------------------------------------------------------- */

/* The significand of a size with its first bit at place 23, and the exponent that goes with it. */
static inline uint32_t st_significand(uint32_t size, int32_t *exponent)
{
	bool normal = size >= 0x800000u;
	uint32_t found = (size & 0x7fffffu) | (normal ? 0x800000u : 0u);
	int32_t down = 0;
	int step;

	for (step = 16; step > 0; step /= 2) {
		bool small = found >> (24 - step) == 0u;

		found = small ? found << step : found;
		down += small ? step : 0;
	}
	*exponent = (normal ? (int32_t)(size >> 23) : 1) - down;
	return found;
}

/* a - n * b, n the whole part of a / b: exact, with the sign of a, subnormals kept.  A long
 * division, bit by bit: 277 places separate the largest float from the least. */
static inline float st_fmod(float a, float b)
{
	uint32_t x = st_bits(a) & ~ST_SIGN_BIT, y = st_bits(b) & ~ST_SIGN_BIT;
	int32_t exponent, last, up;
	uint32_t rest = st_significand(x, &exponent);
	uint32_t divisor = st_significand(y, &last);
	uint32_t size;
	int step;

	for (step = 0; step < 278; ++step) {
		bool active = step <= exponent - last;

		rest = active && rest >= divisor ? rest - divisor : rest;
		rest = active && step < exponent - last ? 2u * rest : rest;
	}
	rest = last < 1 ? rest >> (1 - last) : rest;
	last = last < 1 ? 1 : last;
	size = st_significand(rest, &up);
	up += last - 1;
	int32_t subnormal_shift = up < 1 ? last - 1 : 0;
	uint32_t normal = ((uint32_t)up << 23) + (size - 0x800000u);
	size = up < 1 ? rest << subnormal_shift : normal;
	size = rest == 0u ? 0u : size;
	size = x < y ? x : size;
	size = x >= ST_INF_BITS || y == 0u || y > ST_INF_BITS ? ST_NAN_BITS : size;
	return st_float((st_bits(a) & ST_SIGN_BIT) | size);
}

#endif
