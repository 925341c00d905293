/*
 * Checks every bound that st_math.h states, against libm in double precision, on an even sample
 * of all 2^32 bit patterns, and the special values of each function.
 */
#include "st_math.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bound {
	const char *name;
	float (*function)(float);
	double (*reference)(double);
	double ulp;   /* stated bound */
	float domain; /* largest |x| sampled; 0: all */
	bool flushed; /* subnormal arguments and results count as zero */
};

static double rsqrt_double(double x)
{
	return 1.0 / sqrt(x);
}

static const struct bound bounds[] = {
	{ "exp", st_exp, exp, 1.0, 0, true },
	{ "log", st_log, log, 1.0, 0, true },
	{ "tanh", st_tanh, tanh, 2.0, 0, true },
	{ "erf", st_erf, erf, 2.0, 0, true },
	{ "rsqrt", st_rsqrt, rsqrt_double, 1.0, 0, true },
	{ "sqrt", st_sqrt, sqrt, 0.5, 0, true },
	{ "sin", st_sin, sin, 1.0, 0, true },
	{ "cos", st_cos, cos, 1.0, 0, true },
	{ "sin near", st_sin, sin, 1.0, 131072.0f, true },
	{ "cos near", st_cos, cos, 1.0, 131072.0f, true },
	{ "log1p", st_log1p, log1p, 3.0, 0, true },
	{ "expm1", st_expm1, expm1, 3.0, 0, true },
	{ "log2", st_log2, log2, 1.0, 0, true },
	{ "log10", st_log10, log10, 1.0, 0, true },
	{ "tan", st_tan, tan, 3.0, 0, true },
	{ "sinh", st_sinh, sinh, 2.0, 0, true },
	{ "cosh", st_cosh, cosh, 1.0, 0, true },
	{ "asin", st_asin, asin, 3.0, 0, true },
	{ "acos", st_acos, acos, 3.0, 0, true },
	{ "atan", st_atan, atan, 3.0, 0, true },
	{ "asinh", st_asinh, asinh, 2.0, 0, true },
	{ "acosh", st_acosh, acosh, 2.0, 0, true },
	{ "atanh", st_atanh, atanh, 2.0, 0, true },
	{ "floor", st_floor, floor, 0.0, 0, false },
	{ "ceil", st_ceil, ceil, 0.0, 0, false },
	{ "round_even", st_round_even, rint, 0.0, 0, false },
};

static double flush(double x)
{
	return fabs(x) < FLT_MIN ? copysign(0.0, x) : x;
}

/* Distance of got from the true value, in units in the last place of a float of that size. */
static double distance(float got, double want)
{
	int exponent;
	double unit;

	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0.0 : INFINITY;
	if ((double)got == want)
		return !signbit(got) == !signbit(want) ? 0.0 : INFINITY;
	if (isinf(got) && fabs(want) > (double)FLT_MAX && (got > 0) == (want > 0))
		return 0.0;
	if (isinf(got) || isinf(want))
		return INFINITY;
	if (got == 0.0f && fabs(want) < (double)FLT_MIN)
		return 0.0;
	(void)frexp(want, &exponent);
	unit = ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
	return fabs((double)got - want) / unit;
}

/* Every float where STC_TEST_MODE is long. */
static uint32_t stride_of(size_t bound)
{
	const char *mode = getenv("STC_TEST_MODE");

	return mode && !strcmp(mode, "long") ? 1 : 4093 + 2 * (uint32_t)bound;
}

static double worst(const struct bound *bound, uint32_t stride)
{
	double most = 0.0;
	uint64_t pattern;

	for (pattern = 0; pattern <= UINT32_MAX; pattern += stride) {
		float x = st_float((uint32_t)pattern);
		double argument = bound->flushed ? flush((double)x) : (double)x;
		double error;

		if (bound->domain > 0 && !(fabsf(x) <= bound->domain))
			continue;
		error = distance(bound->function(x), bound->reference(argument));
		if (error > most) {
			most = error;
			if (error > bound->ulp) {
				print_message("%s(%a) = %a is %g ulp off\n", bound->name, (double)x,
				        (double)bound->function(x), error);
				return most;
			}
		}
	}
	return most;
}

static void test_bounds(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; ++i) {
		double most = worst(&bounds[i], stride_of(i));

		print_message("%-10s %.3f ulp\n", bounds[i].name, most);
		assert_true(most <= bounds[i].ulp);
	}
}

/* Every float in the ranges where reductions and branches meet. */
static void check_range(const struct bound *bound, float low, float high, uint32_t stride)
{
	for (uint32_t bits = st_bits(low); bits <= st_bits(high); bits += stride) {
		float x = st_float(bits);

		assert_true(
		        distance(bound->function(x), bound->reference((double)x)) <= bound->ulp);
		assert_true(
		        distance(bound->function(-x), bound->reference((double)-x)) <= bound->ulp);
	}
}

static void test_dense(void **state)
{
	(void)state;
	check_range(&bounds[0], 80.0f, 90.0f, 101);
	check_range(&bounds[2], 0.5f, 2.0f, 67);
	check_range(&bounds[3], 0.5f, 10.0f, 97);
	check_range(&bounds[4], 0.5f, 4.0f, 97);
	check_range(&bounds[5], 1.0f, 4.0f, 67);
	check_range(&bounds[6], 1.0f, 4.0f, 67);
	check_range(&bounds[7], 1.0f, 10.0f, 97);
	check_range(&bounds[8], 1.0f, 10.0f, 97);
}

/* The floats nearest to multiples of pi/2: the hardest arguments for the reduction. */
static void test_reduction(void **state)
{
	(void)state;
	for (int k = 1; k < 83444; ++k) {
		float x = (float)(k * 1.57079632679489661923);

		assert_true(distance(st_sin(x), sin((double)x)) <= 1.0);
		assert_true(distance(st_cos(x), cos((double)x)) <= 1.0);
	}
}

static void test_pow(void **state)
{
	double most = 0.0;

	(void)state;
	for (uint32_t a = 0x00800000u; a < ST_INF_BITS; a += 1299709u) {
		for (uint32_t b = 0; b < 600; ++b) {
			float x = st_float(a);
			float y = ((float)b - 300.0f) * 0.37f;
			double error = distance(st_pow(x, y), pow((double)x, (double)y));

			most = error > most ? error : most;
		}
	}
	print_message("%-10s %.3f ulp\n", "pow", most);
	assert_true(most <= 1.0);
}

static void test_powi(void **state)
{
	(void)state;
	for (int n = -12; n <= 12; ++n) {
		for (uint32_t a = st_bits(0.01f); a < st_bits(100.0f); a += 99991u) {
			double want = pow((double)st_float(a), (double)n);
			double relative = fabs((double)st_powi(st_float(a), n) - want) / want;

			assert_true(relative <= fabs((double)n) * 0x1p-23);
		}
	}
	assert_true(st_powi(-2.0f, 3) == -8.0f);
	assert_true(st_powi(2.0f, -2) == 0.25f);
	assert_true(st_powi(0.0f, 0) == 1.0f);
	assert_true(st_powi(-1.0f, INT32_MIN) == 1.0f);
}

struct pair {
	float (*function)(float, float);
	float a, b, want;
};

static void test_pairs(void **state)
{
	const float nan = NAN;
	const float inf = INFINITY;
	const struct pair pairs[] = {
		{ st_maximum, 1, 2, 2 },
		{ st_maximum, nan, 2, nan },
		{ st_maximum, 2, nan, nan },
		{ st_maximum, -0.0f, 0.0f, 0.0f },
		{ st_maximum, 0.0f, -0.0f, 0.0f },
		{ st_maximum, -inf, -3, -3 },
		{ st_minimum, 1, 2, 1 },
		{ st_minimum, nan, 2, nan },
		{ st_minimum, 2, nan, nan },
		{ st_minimum, -0.0f, 0.0f, -0.0f },
		{ st_minimum, 0.0f, -0.0f, -0.0f },
		{ st_minimum, inf, 3, 3 },
		{ st_maxnum, nan, 2, 2 },
		{ st_maxnum, 2, nan, 2 },
		{ st_maxnum, nan, nan, nan },
		{ st_maxnum, -0.0f, 0.0f, 0.0f },
		{ st_minnum, nan, 2, 2 },
		{ st_minnum, 2, nan, 2 },
		{ st_minnum, -5, -4, -5 },
		{ st_div, 1, 3, 1.0f / 3.0f },
		{ st_div, 1, 0, inf },
		{ st_pow, nan, 0, 1 },
		{ st_pow, 1, nan, 1 },
		{ st_pow, -1, inf, 1 },
		{ st_pow, -2, 3, -8 },
		{ st_pow, -2, 2, 4 },
		{ st_pow, -2, 0.5f, nan },
		{ st_pow, 0, -1, inf },
		{ st_pow, -0.0f, -1, -inf },
		{ st_pow, -0.0f, 3, -0.0f },
		{ st_pow, 0.5f, inf, 0 },
		{ st_pow, 0.5f, -inf, inf },
		{ st_pow, -inf, 3, -inf },
		{ st_pow, inf, -1, 0 },
		{ st_pow, 10, 39, inf },
		{ st_pow, 10, -39, 0 },
		{ st_pow, -inf, -0.5f, 0 },
		{ st_peak, -3, 2, 3 },
		{ st_peak, 1, -inf, inf },
		{ st_peak, nan, inf, nan },
		{ st_peak, 2, -nan, nan },
		{ st_peak, -0.0f, -0.0f, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
		float got = pairs[i].function(pairs[i].a, pairs[i].b);

		if (distance(got, (double)pairs[i].want) > 0)
			fail_msg("pair %zu: f(%g, %g) = %g", i, (double)pairs[i].a,
			        (double)pairs[i].b, (double)got);
	}
}

struct special {
	float (*function)(float);
	float x, want;
};

static void test_specials(void **state)
{
	const float nan = NAN;
	const float inf = INFINITY;
	const float tiny = 1e-40f;
	const struct special specials[] = {
		{ st_exp, 0, 1 },
		{ st_exp, -0.0f, 1 },
		{ st_exp, inf, inf },
		{ st_exp, -inf, 0 },
		{ st_exp, 100, inf },
		{ st_exp, -100, 0 },
		{ st_exp, nan, nan },
		{ st_exp, tiny, 1 },
		{ st_exp, 1e30f, inf },
		{ st_exp, -1e30f, 0 },
		{ st_exp, 1, 2.71828183f },
		{ st_log, 1, 0 },
		{ st_log, 0, -inf },
		{ st_log, -0.0f, -inf },
		{ st_log, tiny, -inf },
		{ st_log, -1, nan },
		{ st_log, inf, inf },
		{ st_tanh, -0.0f, -0.0f },
		{ st_tanh, inf, 1 },
		{ st_tanh, -inf, -1 },
		{ st_tanh, tiny, 0 },
		{ st_erf, -0.0f, -0.0f },
		{ st_erf, inf, 1 },
		{ st_erf, -inf, -1 },
		{ st_rsqrt, 0, inf },
		{ st_rsqrt, -0.0f, -inf },
		{ st_rsqrt, inf, 0 },
		{ st_rsqrt, -1, nan },
		{ st_rsqrt, 4, 0.5f },
		{ st_sqrt, -0.0f, -0.0f },
		{ st_sqrt, inf, inf },
		{ st_sqrt, -1, nan },
		{ st_sqrt, tiny, 0 },
		{ st_sin, -0.0f, -0.0f },
		{ st_sin, inf, nan },
		{ st_cos, -inf, nan },
		{ st_cos, 0, 1 },
		{ st_sin, -tiny, -0.0f },
		{ st_sin, nan, nan },
		{ st_floor, -0.5f, -1 },
		{ st_ceil, -0.5f, -0.0f },
		{ st_floor, -0.0f, -0.0f },
		{ st_round_even, 2.5f, 2 },
		{ st_round_even, -0.5f, -0.0f },
		{ st_round_even, inf, inf },
	};

	(void)state;
	for (size_t i = 0; i < sizeof specials / sizeof *specials; ++i) {
		float got = specials[i].function(specials[i].x);

		if (distance(got, (double)specials[i].want) > 0 ||
		        !signbit(got) != !signbit(specials[i].want))
			if (!isnan(got) || !isnan(specials[i].want))
				fail_msg("special %zu: f(%g) = %g", i, (double)specials[i].x,
				        (double)got);
	}
}

static void check_nearest(float x, int32_t width)
{
	const double most = ldexp(1.0, width - 1) - 1.0;
	const double near = rint((double)x);
	const int32_t want = isnan(x) ? 0 : (int32_t)fmin(fmax(near, -most), most);
	const int32_t got = st_nearest(x, width);

	if (got != want)
		fail_msg("nearest of %d bits: f(%.9g) = %d, not %d", width, (double)x, got, want);
}

/* An even sample of all patterns, and everything about each half of an integer. */
static void test_nearest(void **state)
{
	(void)state;
	for (int32_t width = 2; width < 24; ++width) {
		for (uint64_t pattern = 0; pattern <= UINT32_MAX; pattern += 65521)
			check_nearest(st_float((uint32_t)pattern), width);
		for (int32_t half = -1030; half <= 1030; ++half)
			for (uint32_t near = 0; near < 3; ++near)
				check_nearest(
				        st_float(st_bits(0.5f * (float)half) + near - 1u), width);
		check_nearest(INFINITY, width);
		check_nearest(-INFINITY, width);
	}
}

static float flushed(float x)
{
	return isnan(x) ? st_float(ST_NAN_BITS) : st_flush(x);
}

static void test_float_narrow(void **state)
{
	(void)state;
	for (int32_t whole = -131072; whole <= 131072; ++whole)
		if (st_bits(st_float_narrow(whole)) != st_bits((float)whole))
			fail_msg("%d is not %.9g", whole, (double)st_float_narrow(whole));
}

/* A sample of all floats by powers of two. */
static void test_scale(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (uint64_t pattern = 0; pattern <= UINT32_MAX; pattern += 99991) {
		random = random * 1664525u + 1013904223u;
		const float x = st_float((uint32_t)pattern);
		const int32_t power = (int32_t)(random >> 16) % 121 - 60;
		const float want = flushed(st_flush(x) * ldexpf(1, power));
		const float got = st_scale(x, power);

		if (st_bits(got) != st_bits(want) && !(isnan(got) && isnan(want)))
			fail_msg("%.9g * 2^%d = %.9g, not %.9g", (double)x, power, (double)got,
			        (double)want);
	}
}

static void check_narrow(float x, float narrow)
{
	const float a = st_flush(x);
	const float b = st_flush(narrow);
	const float want = flushed(a * b);
	const float got = st_mul_narrow(x, narrow);

	if (st_bits(got) != st_bits(st_mul_narrow_bits(x, narrow)))
		fail_msg("%.9g * %.9g is another number in hardware", (double)x, (double)narrow);
	if (st_bits(got) != st_bits(want) && !(isnan(got) && isnan(want)))
		fail_msg("%.9g * %.9g = %.9g, not %.9g", (double)x, (double)narrow, (double)got,
		        (double)want);
}

/* A sample of all floats by a sample of all halves, of integers of 17 bits, and of powers of two
 * that overflow and underflow. */
static void test_narrow(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (uint64_t pattern = 0; pattern <= UINT32_MAX; pattern += 99991) {
		random = random * 1664525u + 1013904223u;
		const float x = st_float((uint32_t)pattern);
		const int32_t whole = (int32_t)(random >> 14) - 131072;

		check_narrow(x, st_f16_value((uint16_t)(random >> 16)));
		check_narrow(x, (float)whole);
		check_narrow(x, st_float((random & 0xff800000u) | (random << 3 & 0x7fff80u)));
		check_narrow(st_float(0x3f800000u | (random >> 9)), (float)whole);
	}
	check_narrow(INFINITY, 0.0f);
	check_narrow(-INFINITY, 3.0f);
	check_narrow(NAN, 3.0f);
	check_narrow(3.0f, -INFINITY);
}

static bool same_float(float a, float b)
{
	return st_bits(a) == st_bits(b) || (isnan(a) && isnan(b));
}

/* A remainder is exact, of subnormals too; an angle is as near as stated. */
static void test_two_arguments(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (int step = 0; step < 400000; ++step) {
		random = random * 1664525u + 1013904223u;
		const uint32_t first = random;
		random = random * 1664525u + 1013904223u;
		const float x = st_float(step % 11 ? first : first & 0x80ffffffu);
		const float y = st_float(step % 7 ? random : random & 0x80ffffffu);
		const float near = st_float((first & 0x7f800000u) + (random & 0x01ffffffu));

		assert_true(same_float(st_fmod(x, y), fmodf(x, y)));
		assert_true(same_float(st_fmod(x, near), fmodf(x, near)));
		if (fabsf(x) >= FLT_MIN && fabsf(y) >= FLT_MIN)
			assert_true(distance(st_atan2(y, x), atan2((double)y, (double)x)) <= 4.0);
	}
	for (int exponent = -126; exponent < 128; ++exponent)
		assert_true(st_log2(ldexpf(1.0f, exponent)) == (float)exponent);
}

static void test_ends(void **state)
{
	static const float ends[] = { 0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 89.0f,
		-89.0f, 1e20f, 3e38f, -3e38f };

	(void)state;
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; ++i)
		for (size_t k = 0; k < sizeof ends / sizeof *ends; ++k)
			if (distance(bounds[i].function(ends[k]),
			            bounds[i].reference((double)ends[k])) > bounds[i].ulp)
				fail_msg("%s(%g) is %g", bounds[i].name, (double)ends[k],
				        (double)bounds[i].function(ends[k]));
	assert_true(st_atan2(0.0f, -0.0f) == 3.14159265f && st_atan2(INFINITY, INFINITY) > 0.78f);
	assert_true(same_float(st_atan2(-0.0f, 1.0f), -0.0f) && isnan(st_atan2(NAN, 1.0f)));
}

/* The same bits everywhere: a checksum (FNV-1a) over results, whatever compiler, flags and
 * machine. */
static void test_checksum(void **state)
{
	uint32_t sum = 2166136261u;

	(void)state;
	for (uint64_t pattern = 0; pattern <= UINT32_MAX; pattern += 100003) {
		float x = st_float((uint32_t)pattern);

		for (size_t i = 0; i < sizeof bounds / sizeof *bounds; ++i) {
			float y = bounds[i].function(x);

			sum = (sum ^ (y != y ? ST_NAN_BITS : st_bits(y))) * 16777619u;
		}
	}
	assert_int_equal(sum, 0xdd46b2e2u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_dense),
		cmocka_unit_test(test_reduction),
		cmocka_unit_test(test_pow),
		cmocka_unit_test(test_powi),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_specials),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_float_narrow),
		cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_two_arguments),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_checksum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
