/*
 * Elementary functions with the same bits on every machine.
 *
 * Used by the evaluator (C17), by the emitted designs (C++14 and later) and as the model of the
 * RTL operators.  Only IEEE binary32 + - * / and square root, integer operations and bit casts are
 * used: nothing else of libm, no fused multiply-add, no run-time tables.  Build with
 * -ffp-contract=off and without -ffast-math.
 *
 * Except where a comment says otherwise, subnormal arguments and results of the elementary
 * functions are flushed to zero of the same sign, as hardware operators do; the rounding
 * functions, min/max and division keep them.  NaN in gives NaN out.  Bounds are in units in the
 * last place of the float result; tests/unit/test_math.c checks each of them against libm.
 *
 * The bodies select instead of branching, so that each is one pipeline in hardware and loops over
 * most of them vectorise (GCC needs -O3 -fno-trapping-math for it, which changes no value).
 */
#ifndef ST_MATH_H
#define ST_MATH_H

#ifdef __cplusplus
#include <cstdint>
#else
#include <stdbool.h>
#include <stdint.h>
#endif
#include <math.h>

#ifdef __FAST_MATH__
#error "st_math.h needs IEEE semantics: do not compile with -ffast-math"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define ST_INF_BITS 0x7f800000u
#define ST_NAN_BITS 0x7fc00000u
#define ST_SIGN_BIT 0x80000000u
#define ST_LEAST_NORMAL 1.17549435e-38f

static inline uint32_t st_bits(float x)
{
	union {
		float f;
		uint32_t u;
	} cast;

	cast.f = x;
	return cast.u;
}

static inline float st_float(uint32_t bits)
{
	union {
		float f;
		uint32_t u;
	} cast;

	cast.u = bits;
	return cast.f;
}

static inline double st_double(uint64_t bits)
{
	union {
		double f;
		uint64_t u;
	} cast;

	cast.u = bits;
	return cast.f;
}

static inline uint64_t st_bits64(double x)
{
	union {
		double f;
		uint64_t u;
	} cast;

	cast.f = x;
	return cast.u;
}

static inline float st_abs(float x)
{
	return st_float(st_bits(x) & ~ST_SIGN_BIT);
}

static inline float st_copysign(float magnitude, float sign)
{
	return st_float((st_bits(magnitude) & ~ST_SIGN_BIT) | (st_bits(sign) & ST_SIGN_BIT));
}

static inline float st_flush(float x)
{
	return st_abs(x) < ST_LEAST_NORMAL ? st_copysign(0.0f, x) : x;
}

/* --- rounding, selection: exact ------------------------------------------------------------ */

/* Nearest integer, ties to even; the sign of zero is kept. */
static inline float st_round_even(float x)
{
	float a = st_abs(x);
	float r = (a + 8388608.0f) - 8388608.0f;

	return a < 8388608.0f ? st_copysign(r, x) : x;
}

/* The upper half of a float, to nearest even. */
static inline uint16_t st_bf16_bits(float x)
{
	uint32_t bits = st_bits(x);

	if (x != x)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* IEEE half, to nearest even; subnormals are multiples of 2^-24. */
static inline uint16_t st_f16_bits(float x)
{
	uint32_t bits = st_bits(x), sign = bits >> 16 & 0x8000u;
	float size = st_float(bits & ~ST_SIGN_BIT);

	if (x != x)
		return (uint16_t)(sign | 0x7e00u);
	if (size >= 65520.0f)
		return (uint16_t)(sign | 0x7c00u);
	if (size < 6.103515625e-05f)
		return (uint16_t)(sign | (uint32_t)st_round_even(size * 16777216.0f));
	return (uint16_t)(sign |
	        (((bits & ~ST_SIGN_BIT) + 0xfffu + (bits >> 13 & 1u) - (112u << 23)) >> 13));
}

static inline float st_f16_value(uint16_t bits)
{
	uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u,
	         fraction = bits & 0x3ffu;

	if (exponent == 31)
		return st_float(sign | ST_INF_BITS | fraction << 13);
	if (exponent == 0)
		return st_float(sign | st_bits((float)fraction / 16777216.0f));
	return st_float(sign | (exponent + 112u) << 23 | fraction << 13);
}

static inline float st_floor(float x)
{
	float r = st_round_even(x);

	return r > x ? st_copysign(r - 1.0f, x) : r;
}

static inline float st_ceil(float x)
{
	float r = st_round_even(x);

	return r < x ? st_copysign(r + 1.0f, x) : r;
}

static inline float st_larger(float a, float b)
{
	float equal = st_float(st_bits(a) & st_bits(b)); /* +0 wins over -0 */
	float larger = a > b ? a : equal;

	return a < b ? b : larger;
}

static inline float st_smaller(float a, float b)
{
	float equal = st_float(st_bits(a) | st_bits(b)); /* -0 wins over +0 */
	float smaller = a < b ? a : equal;

	return a > b ? b : smaller;
}

/* IEEE 754-2019 maximum and minimum: a NaN operand gives NaN. */
static inline float st_maximum(float a, float b)
{
	float number = b != b ? b : st_larger(a, b);

	return a != a ? a : number;
}

static inline float st_minimum(float a, float b)
{
	float number = b != b ? b : st_smaller(a, b);

	return a != a ? a : number;
}

/* IEEE 754-2019 maximumNumber and minimumNumber: a NaN operand is ignored. */
static inline float st_maxnum(float a, float b)
{
	float number = b != b ? a : st_larger(a, b);

	return a != a ? b : number;
}

static inline float st_minnum(float a, float b)
{
	float number = b != b ? a : st_smaller(a, b);

	return a != a ? b : number;
}

/* The larger of two magnitudes, as their bits are ordered; NaN if either is. */
static inline float st_peak(float a, float b)
{
	uint32_t left = st_bits(a) & ~ST_SIGN_BIT, right = st_bits(b) & ~ST_SIGN_BIT;

	return st_float(left > right ? left : right);
}

/*
 * Nearest integer, ties to even, held to +-(2^(width - 1) - 1); NaN gives 0.  width: 2 to 23.
 * Of the significand the first `width` bits are kept, an integer and its half, and shifted down;
 * of the rest counts only whether there is any.  No floating-point operation. */
static inline int32_t st_nearest(float x, int32_t width)
{
	uint32_t size = st_bits(x) & ~ST_SIGN_BIT, most = (1u << (width - 1)) - 1u;
	uint32_t significand = (size & 0x7fffffu) | 0x800000u;
	uint32_t head = significand >> (24 - width),
	         tail = significand & ((1u << (24 - width)) - 1u);
	int32_t down = width + 125 - (int32_t)(size >> 23);
	int32_t limited = down > width ? width : down;
	uint32_t shift = down < 0 ? 0u : (uint32_t)limited;
	uint32_t twice = head >> shift, near = twice >> 1;
	bool rest = tail != 0u || (head & ((1u << shift) - 1u)) != 0u;

	near += (twice & 1u) != 0u && (rest || (near & 1u) != 0u) ? 1u : 0u;
	near = down < 0 || near > most ? most : near;
	near = size > ST_INF_BITS ? 0u : near;
	return (st_bits(x) & ST_SIGN_BIT) != 0u ? -(int32_t)near : (int32_t)near;
}

/* a * 2^power, for at most 60 of either sign.  Subnormal arguments and results are flushed to
 * zero. */
static inline float st_scale(float a, int32_t power)
{
	uint32_t bits = st_bits(a), sign = bits & ST_SIGN_BIT, size = bits & ~ST_SIGN_BIT;
	int32_t exponent = (int32_t)(size >> 23) + power;

	if (size >= ST_INF_BITS)
		return a;
	if (size >> 23 == 0u || exponent <= 0)
		return st_float(sign);
	return st_float(sign |
	        (exponent >= 255 ? ST_INF_BITS : (uint32_t)exponent << 23 | (size & 0x7fffffu)));
}

/* A number of at most 17 bits and a sign, and 2^17: exact. */
static inline float st_float_narrow(int32_t a)
{
	uint32_t size = a < 0 ? 0u - (uint32_t)a : (uint32_t)a, exponent = 127u + 17u,
	         none = size == 0u;

	for (uint32_t shift = 16u; shift > 0u; shift /= 2u) {
		bool small = size >> (18u - shift) == 0u;

		size <<= small ? shift : 0u;
		exponent -= small ? shift : 0u;
	}
	return st_float((a < 0 ? ST_SIGN_BIT : 0u) |
	        (none ? 0u : (exponent << 23) + ((size - 0x20000u) << 6)));
}

/*
 * a * b, where b has at most 17 significant bits: one product of 24 by 17 bits, normalised and
 * rounded to nearest even.  Subnormal arguments and results are flushed to zero. */
static inline float st_mul_narrow_bits(float a, float b)
{
	uint32_t x = st_bits(a), y = st_bits(b), sign = (x ^ y) & ST_SIGN_BIT,
	         left = (x >> 23) & 0xffu, right = (y >> 23) & 0xffu;
	uint64_t product =
	        (uint64_t)((x & 0x7fffffu) | 0x800000u) * (((y & 0x7fffffu) | 0x800000u) >> 7);
	bool above = (product >> 40) != 0u;
	uint32_t kept = (uint32_t)(product >> (above ? 17 : 16));
	uint32_t half = above ? 0x10000u : 0x8000u;
	uint32_t rest = (uint32_t)product & (2u * half - 1u);
	int32_t exponent = (int32_t)left + (int32_t)right - 127 + (above ? 1 : 0);
	bool none = left == 0u || right == 0u || exponent < 1,
	     special = left == 255u || right == 255u;
	bool invalid = (x & ~ST_SIGN_BIT) > ST_INF_BITS || (y & ~ST_SIGN_BIT) > ST_INF_BITS ||
	        left == 0u || right == 0u;
	bool infinite;
	uint32_t size;

	kept += rest > half || (rest == half && (kept & 1u) != 0u) ? 1u : 0u;
	size = ((uint32_t)(none ? 0 : exponent) << 23) + (kept - 0x800000u);
	infinite = special || (!none && (exponent > 254 || size > ST_INF_BITS));
	size = none ? 0u : size;
	size = infinite ? ST_INF_BITS : size;
	return st_float(special && invalid ? ST_NAN_BITS : sign | size);
}

/* The same number.  A processor has a quicker way: the product is exact in double. */
static inline float st_mul_narrow(float a, float b)
{
#ifdef __SYNTHESIS__
	return st_mul_narrow_bits(a, b);
#else
	double product = (double)st_flush(a) * (double)st_flush(b);
	float rounded = (float)product, size = st_abs(rounded);

	rounded = product < ST_LEAST_NORMAL && product > -ST_LEAST_NORMAL
	        ? st_copysign(0.0f, rounded)
	        : rounded;
	return size != size ? st_float(ST_NAN_BITS) : rounded;
#endif
}

/* --- division and roots --------------------------------------------------------------------- */

/* Correctly rounded (0.5 ulp). */
static inline float st_div(float a, float b)
{
	return a / b;
}

/*
 * At most 1 ulp.  Zero gives infinity of its sign, a negative number NaN.  In integers, as
 * st_exp below: of m = c * (1 + d) in [1, 4), |d| <= 1/256, 1 / sqrt(m) is 1 / sqrt(c) * (1 - d
 * * (a - b * d)) to 2^-27. */
static inline float st_rsqrt(float x)
{
	/* 1 / sqrt(c), 30 places, in the middle of 128 parts of [2, 4), then of [1, 2) */
	static const uint32_t roots[256] = {
		0x2d2aad19u,
		0x2cfdf234u,
		0x2cd1bb2fu,
		0x2ca60585u,
		0x2c7acec7u,
		0x2c501491u,
		0x2c25d492u,
		0x2bfc0c88u,
		0x2bd2ba40u,
		0x2ba9db93u,
		0x2b816e6cu,
		0x2b5970c0u,
		0x2b31e093u,
		0x2b0abbf4u,
		0x2ae400ffu,
		0x2abdadddu,
		0x2a97c0c1u,
		0x2a7237e9u,
		0x2a4d119fu,
		0x2a284c35u,
		0x2a03e60bu,
		0x29dfdd87u,
		0x29bc311bu,
		0x2998df40u,
		0x2975e67bu,
		0x29534557u,
		0x2930fa68u,
		0x290f044cu,
		0x28ed61a6u,
		0x28cc1124u,
		0x28ab1178u,
		0x288a615eu,
		0x2869ff99u,
		0x2849eaf0u,
		0x282a2235u,
		0x280aa43eu,
		0x27eb6fe6u,
		0x27cc8412u,
		0x27addfa9u,
		0x278f819bu,
		0x277168dcu,
		0x27539465u,
		0x27360337u,
		0x2718b455u,
		0x26fba6cau,
		0x26ded9a4u,
		0x26c24bf7u,
		0x26a5fcdau,
		0x2689eb6au,
		0x266e16c9u,
		0x26527e1du,
		0x26372090u,
		0x261bfd4eu,
		0x2601138cu,
		0x25e6627eu,
		0x25cbe95fu,
		0x25b1a76cu,
		0x25979be7u,
		0x257dc615u,
		0x2564253eu,
		0x254ab8aeu,
		0x25317fb4u,
		0x251879a4u,
		0x24ffa5d1u,
		0x24e70396u,
		0x24ce924eu,
		0x24b65157u,
		0x249e4014u,
		0x24865de8u,
		0x246eaa3bu,
		0x24572477u,
		0x243fcc09u,
		0x2428a05fu,
		0x2411a0eau,
		0x23facd21u,
		0x23e42477u,
		0x23cda668u,
		0x23b7526du,
		0x23a12804u,
		0x238b26adu,
		0x23754de9u,
		0x235f9d3du,
		0x234a142fu,
		0x2334b245u,
		0x231f770cu,
		0x230a620du,
		0x22f572d7u,
		0x22e0a8fbu,
		0x22cc0408u,
		0x22b78393u,
		0x22a32730u,
		0x228eee76u,
		0x227ad8feu,
		0x2266e661u,
		0x2253163bu,
		0x223f682au,
		0x222bdbccu,
		0x221870c1u,
		0x220526abu,
		0x21f1fd2eu,
		0x21def3edu,
		0x21cc0a8fu,
		0x21b940bcu,
		0x21a6961bu,
		0x21940a57u,
		0x21819d1cu,
		0x216f4e15u,
		0x215d1cf1u,
		0x214b095fu,
		0x2139130fu,
		0x212739b2u,
		0x21157cfbu,
		0x2103dc9du,
		0x20f2584eu,
		0x20e0efc4u,
		0x20cfa2b4u,
		0x20be70d8u,
		0x20ad59e8u,
		0x209c5d9eu,
		0x208b7bb5u,
		0x207ab3eau,
		0x206a05f9u,
		0x205971a0u,
		0x2048f69du,
		0x203894b2u,
		0x20284b9eu,
		0x20181b22u,
		0x20080301u,
		0x3fe017ecu,
		0x3fa0d5e9u,
		0x3f624e66u,
		0x3f247dd4u,
		0x3ee760bfu,
		0x3eaaf3c8u,
		0x3e6f33a7u,
		0x3e341d2bu,
		0x3df9ad38u,
		0x3dbfe0c3u,
		0x3d86b4dau,
		0x3d4e2699u,
		0x3d163331u,
		0x3cded7e4u,
		0x3ca81207u,
		0x3c71defeu,
		0x3c3c3c3cu,
		0x3c072747u,
		0x3bd29db2u,
		0x3b9e9d1fu,
		0x3b6b233fu,
		0x3b382dd0u,
		0x3b05ba9eu,
		0x3ad3c781u,
		0x3aa25260u,
		0x3a71592cu,
		0x3a40d9e3u,
		0x3a10d28fu,
		0x39e14144u,
		0x39b22421u,
		0x39837952u,
		0x39553f0au,
		0x39277388u,
		0x38fa1514u,
		0x38cd2201u,
		0x38a098a9u,
		0x38747770u,
		0x3848bcc3u,
		0x381d6718u,
		0x37f274ebu,
		0x37c7e4c3u,
		0x379db52cu,
		0x3773e4bcu,
		0x374a720fu,
		0x37215bc9u,
		0x36f8a094u,
		0x36d03f22u,
		0x36a8362au,
		0x3680846du,
		0x365928aeu,
		0x363221bau,
		0x360b6e60u,
		0x35e50d79u,
		0x35befde2u,
		0x35993e7cu,
		0x3573ce30u,
		0x354eabeau,
		0x3529d69fu,
		0x35054d44u,
		0x34e10ed6u,
		0x34bd1a57u,
		0x34996eccu,
		0x34760b41u,
		0x3452eec3u,
		0x34301868u,
		0x340d8746u,
		0x33eb3a79u,
		0x33c93121u,
		0x33a76a63u,
		0x3385e566u,
		0x3364a156u,
		0x33439d62u,
		0x3322d8beu,
		0x330252a1u,
		0x32e20a43u,
		0x32c1fee4u,
		0x32a22fc3u,
		0x32829c25u,
		0x32634351u,
		0x32442492u,
		0x32253f36u,
		0x3206928cu,
		0x31e81de8u,
		0x31c9e0a0u,
		0x31abda0eu,
		0x318e098du,
		0x31706e7cu,
		0x3153083cu,
		0x3135d631u,
		0x3118d7c0u,
		0x30fc0c52u,
		0x30df7354u,
		0x30c30c31u,
		0x30a6d65au,
		0x308ad140u,
		0x306efc59u,
		0x3053571bu,
		0x3037e0fdu,
		0x301c997bu,
		0x30018012u,
		0x2fe69440u,
		0x2fcbd586u,
		0x2fb14367u,
		0x2f96dd67u,
		0x2f7ca30cu,
		0x2f6293e0u,
		0x2f48af6bu,
		0x2f2ef53au,
		0x2f1564dbu,
		0x2efbfddbu,
		0x2ee2bfcdu,
		0x2ec9aa43u,
		0x2eb0bcd0u,
		0x2e97f70bu,
		0x2e7f588bu,
		0x2e66e0e7u,
		0x2e4e8fbbu,
		0x2e3664a3u,
		0x2e1e5f3au,
		0x2e067f20u,
		0x2deec3f4u,
		0x2dd72d58u,
		0x2dbfbaeeu,
		0x2da86c5au,
		0x2d914141u,
		0x2d7a3949u,
		0x2d63541au,
		0x2d4c915cu,
	};
	uint32_t bits = st_bits(x);
	uint32_t root = roots[(bits >> 16) & 0xffu];
	/* 20 places */
	uint32_t square =
	        (uint32_t)(((uint64_t)(root >> 9) * (root >> 9)) >> (21u + ((bits >> 23) & 1u)));
	/* 31 places */
	int32_t d =
	        (int32_t)(((int64_t)((int32_t)(bits & 0xffffu) - 0x8000) * (int32_t)square) >> 12);
	int32_t slope = 8388688 - ((3 * d) >> 10); /* 24 places */
	int32_t fall = (int32_t)(((int64_t)d * slope) >> 24);
	uint32_t mantissa = root - (uint32_t)(((int64_t)(root >> 3) * fall) >> 28);
	float y = st_float(
	        (((380u - (bits >> 23)) >> 1) << 23) + ((mantissa + 32u) >> 6) - 0x800000u);

	y = bits == ST_INF_BITS ? 0.0f : y;
	y = bits > ST_SIGN_BIT ? st_float(ST_NAN_BITS) : y;
	y = (bits & ~ST_SIGN_BIT) < 0x800000u ? st_float((bits & ST_SIGN_BIT) | ST_INF_BITS) : y;
	return (bits & ~ST_SIGN_BIT) > ST_INF_BITS ? x : y;
}

/* Correctly rounded (0.5 ulp). */
static inline float st_sqrt(float x)
{
	float y = sqrtf(x);

	y = x < 0.0f ? st_float(ST_NAN_BITS) : y;
	y = st_abs(x) < ST_LEAST_NORMAL ? st_copysign(0.0f, x) : y;
	return x != x ? x : y;
}

/* --- exponential and logarithm --------------------------------------------------------------- */

/*
 * At most 1 ulp; results below 2^-126 are 0.  In integers, which takes a sixth of what float
 * operations do: x / ln 2 as a number of 30 binary places is n + (i + 1/2) / 64 + g, and 2^g - 1
 * = g * (a + b * g) to 2^-27 for |g| <= 1/128. */
static inline float st_exp(float x)
{
	/* 2^((i + 1/2) / 64), 28 places */
	static const uint32_t powers[64] = {
		0x10163daau,
		0x104315e8u,
		0x10706b2au,
		0x109e3ecbu,
		0x10cc922bu,
		0x10fb66b0u,
		0x112abdc0u,
		0x115a98c9u,
		0x118af939u,
		0x11bbe084u,
		0x11ed5023u,
		0x121f4991u,
		0x1251ce50u,
		0x1284dfe2u,
		0x12b87fd1u,
		0x12ecafa9u,
		0x132170fcu,
		0x1356c560u,
		0x138cae6du,
		0x13c32dc3u,
		0x13fa4505u,
		0x1431f5d9u,
		0x146a41edu,
		0x14a32af1u,
		0x14dcb29au,
		0x1516daa3u,
		0x1551a4cau,
		0x158d12d5u,
		0x15c9268au,
		0x1605e1b9u,
		0x16434635u,
		0x168155d4u,
		0x16c01275u,
		0x16ff7df9u,
		0x173f9a49u,
		0x17806950u,
		0x17c1ed01u,
		0x18042754u,
		0x18471a46u,
		0x188ac7dau,
		0x18cf3217u,
		0x19145b0cu,
		0x195a44ccu,
		0x19a0f171u,
		0x19e8631au,
		0x1a309becu,
		0x1a799e13u,
		0x1ac36bc0u,
		0x1b0e072au,
		0x1b59728eu,
		0x1ba5b031u,
		0x1bf2c25cu,
		0x1c40ab60u,
		0x1c8f6d94u,
		0x1cdf0b55u,
		0x1d2f8708u,
		0x1d80e317u,
		0x1dd321f3u,
		0x1e264615u,
		0x1e7a51fcu,
		0x1ecf482eu,
		0x1f252b37u,
		0x1f7bfdaeu,
		0x1fd3c22cu,
	};
	uint32_t size = st_bits(x) & ~ST_SIGN_BIT;
	bool negative = (st_bits(x) & ST_SIGN_BIT) != 0u;
	/* below 21 from 128 on, where the result is infinite or 0 */
	int32_t down = 154 - (int32_t)(size >> 23);
	/* 34 places of 1 / ln 2 */
	uint64_t product = (uint64_t)((size & 0x7fffffu) | 0x800000u) * 0x5c551d94bu;
	int32_t shift = down > 63 ? 63 : down;
	int64_t places = (int64_t)(product >> (down < 21 ? 21 : shift));
	int64_t turned = negative ? -places : places;
	int32_t n = (int32_t)(turned >> 30);
	uint32_t fraction = (uint32_t)turned & 0x3fffffffu;
	int32_t g = (int32_t)(fraction & 0xffffffu) - 0x800000;
	int32_t slope = 11629123 + ((62974 * (g >> 8)) >> 16); /* 24 places */
	int32_t rise = (int32_t)(((int64_t)g * slope) >> 24);
	uint32_t power = powers[fraction >> 24];
	uint32_t mantissa = power + (uint32_t)(((int64_t)(power >> 3) * rise) >> 27);
	uint32_t y = ((uint32_t)(n + 126) << 23) + ((mantissa + 16u) >> 5);
	uint32_t limit;

	y = n < -126 ? 0u : y;
	y = n > 127 ? ST_INF_BITS : y;
	limit = negative ? 0u : ST_INF_BITS;
	y = down < 21 ? limit : y;
	return size > ST_INF_BITS ? x : st_float(y);
}

/* At most 1 ulp.  Zero gives -infinity, a negative number NaN. */
static inline float st_log(float x)
{
	uint32_t bits = st_bits(x);
	int32_t exponent = (int32_t)(bits - 0x3f3504f3u) >> 23;
	float m = st_float(bits - ((uint32_t)exponent << 23)); /* in [sqrt(1/2), sqrt(2)) */
	float n = (float)exponent;
	float f = m - 1.0f;
	float z = f * f;
	float p = 6.915304e-02f;
	float y;

	p = p * f + -1.1789776e-01f;
	p = p * f + 1.1872988e-01f;
	p = p * f + -1.2384355e-01f;
	p = p * f + 1.4218657e-01f;
	p = p * f + -1.6669251e-01f;
	p = p * f + 2.0002227e-01f;
	p = p * f + -2.4999987e-01f;
	p = p * f + 3.333331e-01f;
	y = z * f * p + n * -2.12194440e-4f;
	y = f + (y - 0.5f * z);
	y = n * 0.693359375f + y;
	y = bits == ST_INF_BITS ? x : y;
	y = x < 0.0f ? st_float(ST_NAN_BITS) : y;
	y = st_abs(x) < ST_LEAST_NORMAL ? st_float(ST_INF_BITS | ST_SIGN_BIT) : y;
	return x != x ? x : y;
}

/* At most 3 ulp, without the flush of subnormal arguments: u = 1 + x is rounded, and log1p(x) / x
 * is log(u) / (u - 1).  -1 gives -infinity, less NaN. */
static inline float st_log1p(float x)
{
	float u = 1.0f + x;
	float y = st_log(u) * (x / (u - 1.0f));

	y = u == 1.0f ? x : y;
	return st_bits(x) == ST_INF_BITS ? x : y;
}

/* At most 3 ulp, without the flush of subnormal arguments. */
static inline float st_expm1(float x)
{
	float p = 2.4801587e-05f;
	float small;

	p = p * x + 1.9841270e-04f;
	p = p * x + 1.3888889e-03f;
	p = p * x + 8.3333333e-03f;
	p = p * x + 4.1666667e-02f;
	p = p * x + 1.6666667e-01f;
	p = p * x + 0.5f;
	small = st_copysign(x + (x * x) * p, x);
	return st_abs(x) < 0.5f ? small : st_exp(x) - 1.0f;
}

/* --- tanh, erf
 * --------------------------------------------------------------------------------- */

/* At most 2 ulp. */
static inline float st_tanh(float x)
{
	float a = st_abs(x);
	float u = x * x;
	float p = 2.0977217e-03f;
	float small, large;

	p = p * u + -8.129002e-03f;
	p = p * u + 2.1681644e-02f;
	p = p * u + -5.39434e-02f;
	p = p * u + 1.333318e-01f;
	p = p * u + -3.333333e-01f;
	small = st_flush(x + x * (u * p));
	large = 1.0f - 2.0f / (st_exp(2.0f * (a > 10.0f ? 10.0f : a)) + 1.0f);
	return st_copysign(a >= 0.64f ? large : small, x);
}

/* At most 2 ulp. */
static inline float st_erf(float x)
{
	float a = st_abs(x);
	float c = a > 3.95f ? 3.95f : a;
	float u = x * x;
	float p = 8.2154205e-05f;
	float q = -2.1095144e-05f; /* q becomes log(1 - erf(c)) */
	float small, large;

	p = p * u + -8.1059645e-04f;
	p = p * u + 5.197797e-03f;
	p = p * u + -2.6858104e-02f;
	p = p * u + 1.12836726e-01f;
	p = p * u + -3.7612632e-01f;
	p = p * u + 1.2837917e-01f;
	small = st_flush(x + x * p);
	q = q * c + 4.3446364e-04f;
	q = q * c + -4.171068e-03f;
	q = q * c + 2.5119439e-02f;
	q = q * c + -1.0828011e-01f;
	q = q * c + -6.333469e-01f;
	q = q * c + -1.1295149e+00f;
	q = q * c + 1.7468576e-04f;
	large = 1.0f - st_exp(q);
	return st_copysign(a >= 0.92f ? large : small, x);
}

/* --- sine, cosine
 * -------------------------------------------------------------------------------- */

/*
 * |x| in right angles, 62 binary places of it; where x is below 1/2, as many more as `down`
 * says.  The product of the 24-bit significand with a 96-bit window of 2/pi is exact to 2^-62 of
 * a right angle, so the reduction holds for every finite float. */
static inline uint64_t st_right_angles(uint32_t size, uint32_t *down)
{
	/* 26 zero bits, then the binary digits of 2/pi. */
	static const uint32_t two_over_pi[9] = { 0x00000028u, 0xbe60db93u, 0x91054a7fu, 0x09d5f47du,
		0x4d377036u, 0xd8a5664fu, 0x10e4107fu, 0x9458eaf7u, 0xaef1586du };
	uint32_t exponent = size >> 23;
	uint32_t significand = (size & 0x7fffffu) | 0x800000u;
	uint32_t start = exponent < 126u ? 0u : exponent - 126u;
	uint32_t word = start >> 5;
	uint32_t shift = start & 31u;
	uint64_t w0 = two_over_pi[word > 5u ? 5u : word];
	uint64_t w1 = two_over_pi[word > 5u ? 6u : word + 1u];
	uint64_t w2 = two_over_pi[word > 5u ? 7u : word + 2u];
	uint64_t w3 = two_over_pi[word > 5u ? 8u : word + 3u];
	uint64_t high = ((((w0 << 32) | w1) << shift) | ((w2 << shift) >> 32));
	uint64_t low = (((w2 << 32) | w3) << shift) >> 32;

	*down = exponent < 126u ? 126u - exponent : 0u;
	return significand * high + ((significand * low) >> 32); /* modulo 4 */
}

/* Of r right angles, |r| at most 1/2 with 28 places: cos, or sin / r; 30 places. */
static inline uint32_t st_sine_sum(uint32_t near, bool cosine)
{
	/* for powers of r^2: 30 places, then 25 */
	static const int32_t factors[2][5] = { { 1686629713, -21674958, 2674039, -157077, 5309 },
		{ 1073741824, -41396121, 8511726, -699948, 30321 } };
	const int32_t *factor = factors[cosine ? 1 : 0];
	int32_t square = (int32_t)(((uint64_t)near * near + 0x20000000u) >> 30); /* 26 places */
	int32_t sum = factor[4];
	int step;

	for (step = 3; step > 0; --step)
		sum = factor[step] + (int32_t)(((int64_t)sum * square) >> 26);
	return (uint32_t)(factor[0] + (int32_t)(((int64_t)sum * square) >> 21));
}

/* distance * 2^-62 * sum * 2^-30 * 2^-down, as the bits of a float. */
static inline uint32_t st_sine_bits(uint64_t distance, uint32_t down, uint32_t sum)
{
	uint32_t zeros = 0u;
	uint32_t significand, carry;
	uint64_t product;
	int step;

	for (step = 5; step >= 0; --step) {
		bool empty = (distance >> (64 - (1 << step))) == 0u;

		distance = empty ? distance << (1 << step) : distance;
		zeros += empty ? 1u << step : 0u;
	}
	significand = (uint32_t)((distance >> 37) + ((distance >> 36) & 1u)); /* 27 places */
	product = (uint64_t)significand * ((sum + 8u) >> 4);                  /* 53 */
	carry = (uint32_t)(product >> 53);
	return ((127u + carry - zeros - down) << 23) +
	        (uint32_t)((product + ((uint64_t)0x10000000u << carry)) >> (29u + carry));
}

/* The sine of x + turn right angles.  In integers, as st_exp above: r in [-1/2, 1/2] from the
 * nearest right angle, whose sine or cosine it is then. */
static inline float st_sine(float x, uint32_t turn)
{
	uint32_t size = st_bits(x) & ~ST_SIGN_BIT;
	uint32_t down;
	uint64_t angles = st_right_angles(size, &down);
	uint64_t nearest = down != 0u ? 0u : (angles + ((uint64_t)1 << 61)) >> 62;
	uint64_t rest = angles - (nearest << 62);
	bool below = (rest >> 63) != 0u;
	uint64_t distance = below ? 0u - rest : rest;
	uint32_t quadrant = ((uint32_t)nearest + turn) & 3u;
	bool cosine = (quadrant & 1u) != 0u;
	bool negative = ((quadrant & 2u) != 0u) != (!cosine && below);
	uint32_t sum = st_sine_sum(down < 16u ? (uint32_t)(distance >> (34u + down)) : 0u, cosine);
	uint32_t y = st_sine_bits(distance, down, sum);

	y = size < 0x39800000u ? size : y; /* 2^-12, from where on it is x */
	y = size < 0x800000u ? 0u : y;
	y = cosine ? 0x3e800000u + ((sum + 32u) >> 6) : y;
	negative = negative != (turn == 0u && st_bits(x) != size);
	y |= negative ? ST_SIGN_BIT : 0u;
	return st_float(size < ST_INF_BITS ? y : ST_NAN_BITS);
}

/* At most 1 ulp for every finite x; infinity gives NaN. */
static inline float st_sin(float x)
{
	return st_sine(x, 0u);
}

static inline float st_cos(float x)
{
	return st_sine(x, 1u);
}

/* --- powers
 * ---------------------------------------------------------------------------------------- */

/* Relative error at most |n| * 2^-23 where no intermediate power leaves the normal range. */
static inline float st_powi(float x, int32_t n)
{
	uint32_t rest = n < 0 ? 0u - (uint32_t)n : (uint32_t)n;
	float y = 1.0f;
	int bit;

	for (bit = 0; bit < 32; ++bit) {
		y = (rest & 1u) != 0u ? y * x : y;
		rest >>= 1;
		x = rest != 0u ? x * x : x;
	}
	return n < 0 ? 1.0f / y : y;
}

/*
 * log2 of a normal positive number, relative error below 2^-38.  Double precision because the
 * error of the logarithm is multiplied by up to 150 in st_pow: in single precision that would
 * leave 100 ulp.  Powers by constants are st_powi, so this is on no hot path.
 */
static inline double st_log2_wide(double x)
{
	uint64_t bits = st_bits64(x);
	uint64_t above = bits - 0x3fe6a09e60000000u;
	int32_t exponent = (int32_t)(above >> 52) - ((above >> 63) != 0u ? 4096 : 0);
	double m = st_double(bits - ((uint64_t)(int64_t)exponent << 52));
	double s = (m - 1.0) / (m + 1.0);
	double u = s * s;
	double p = 1.0 / 15.0;

	p = p * u + 1.0 / 13.0;
	p = p * u + 1.0 / 11.0;
	p = p * u + 1.0 / 9.0;
	p = p * u + 1.0 / 7.0;
	p = p * u + 1.0 / 5.0;
	p = p * u + 1.0 / 3.0;
	return (double)exponent + (s + s * u * p) * 2.88539008177792681472;
}

/* 2^x for |x| <= 200, relative error below 2^-34. */
static inline double st_exp2_wide(double x)
{
	double t = x + 6755399441055744.0; /* 1.5 * 2^52 */
	double r = (x - (t - 6755399441055744.0)) * 0.693147180559945309417;
	uint64_t n = st_bits64(t) - 0x4338000000000000u;
	double p = 1.0 / 362880.0;

	p = p * r + 1.0 / 40320.0;
	p = p * r + 1.0 / 5040.0;
	p = p * r + 1.0 / 720.0;
	p = p * r + 1.0 / 120.0;
	p = p * r + 1.0 / 24.0;
	p = p * r + 1.0 / 6.0;
	p = p * r + 0.5;
	p = 1.0 + (r + r * r * p);
	return p * st_double((n + 1023u) << 52);
}

/* At most 1 ulp; the special cases are those of IEEE 754-2019 pow. */
static inline float st_pow(float x, float y)
{
	float a = st_flush(st_abs(x));
	float inf = st_float(ST_INF_BITS);
	float half = st_floor(y * 0.5f);
	bool whole = st_floor(y) == y;
	bool odd = whole && half + half != y && st_abs(y) < 16777216.0f;
	double e = (double)y * st_log2_wide((double)a);
	float at_zero, at_infinity;
	float r;

	e = e > 200.0 ? 200.0 : e;
	e = e < -200.0 ? -200.0 : e;
	r = st_flush((float)st_exp2_wide(e));
	at_zero = y < 0.0f ? inf : 0.0f;
	at_infinity = y < 0.0f ? 0.0f : inf;
	r = a == 0.0f ? at_zero : r;
	r = a == inf ? at_infinity : r;
	r = a == 1.0f ? 1.0f : r;
	r = odd ? st_copysign(r, x) : r;
	r = x < 0.0f && a != 0.0f && a != inf && !whole ? st_float(ST_NAN_BITS) : r;
	r = x != x || y != y ? st_float(ST_NAN_BITS) : r;
	return y == 0.0f || x == 1.0f ? 1.0f : r;
}

#include "st_functions.h"

#endif
