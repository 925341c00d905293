/* Scalar operations of the evaluator: a table of one loop per operation and register class. */
#include "evaluate/scalar.h"
#include "st_math.h"
#include <math.h>
#include <string.h>

enum register_class { F32, F64, INT, CLASSES };

/* Elementary functions of f64 exist only before demote_f64, so they may be libm's; the others
 * (double_forms.h) are exact or correctly rounded there. */
#define UNARY(name, type, function)                                                                \
	static void name(                                                                          \
	        const struct scalar_op *op, void *out, const void *const *in, int64_t count)       \
	{                                                                                          \
		(void)op;                                                                          \
		type *restrict y = out;                                                            \
		const type *a = in[0];                                                             \
		for (int64_t i = 0; i < count; i++)                                                \
			y[i] = function(a[i]);                                                     \
	}
#define BINARY(name, type, expression)                                                             \
	static void name(                                                                          \
	        const struct scalar_op *op, void *out, const void *const *in, int64_t count)       \
	{                                                                                          \
		(void)op;                                                                          \
		type *restrict y = out;                                                            \
		const type *left = in[0], *right = in[1];                                          \
		for (int64_t i = 0; i < count; i++) {                                              \
			type a = left[i], b = right[i];                                            \
			y[i] = (type)(expression);                                                 \
		}                                                                                  \
	}
#define CONVERT(name, from, to, expression)                                                        \
	static void name(                                                                          \
	        const struct scalar_op *op, void *out, const void *const *in, int64_t count)       \
	{                                                                                          \
		(void)op;                                                                          \
		to *restrict y = out;                                                              \
		const from *x = in[0];                                                             \
		for (int64_t i = 0; i < count; i++) {                                              \
			from a = x[i];                                                             \
			y[i] = (to)(expression);                                                   \
		}                                                                                  \
	}
#define SELECT(name, type)                                                                         \
	static void name(                                                                          \
	        const struct scalar_op *op, void *out, const void *const *in, int64_t count)       \
	{                                                                                          \
		(void)op;                                                                          \
		type *restrict y = out;                                                            \
		const int64_t *when = in[0];                                                       \
		const type *a = in[1], *b = in[2];                                                 \
		for (int64_t i = 0; i < count; i++)                                                \
			y[i] = when[i] ? a[i] : b[i];                                              \
	}
/* A relation is 1 equal, 2 greater, 4 less, 8 unordered; a predicate is the mask of relations for
 * which it holds. */
/* Relations of two numbers as bits; a comparison holds in a set of them. */
enum { EQUAL = 1, GREATER = 2, LESS = 4, UNORDERED = 8 };

#define COMPARE(name, type)                                                                        \
	static void name(                                                                          \
	        const struct scalar_op *op, void *out, const void *const *in, int64_t count)       \
	{                                                                                          \
		int64_t *restrict y = out;                                                         \
		const type *a = in[0], *b = in[1];                                                 \
		for (int64_t i = 0; i < count; i++) {                                              \
			int relation = a[i] < b[i] ? LESS : UNORDERED;                             \
			if (a[i] > b[i])                                                           \
				relation = GREATER;                                                \
			if (a[i] == b[i])                                                          \
				relation = EQUAL;                                                  \
			y[i] = -(int64_t)((op->predicate & relation) != 0);                        \
		}                                                                                  \
	}

static int64_t wrap(uint64_t value, int width)
{
	return width >= 64 ? (int64_t)value : (int64_t)(value << (64 - width)) >> (64 - width);
}

static uint64_t unsigned_of(int64_t value, int width)
{
	return width >= 64 ? (uint64_t)value : (uint64_t)value & ((UINT64_C(1) << width) - 1);
}

/* Division by zero gives 0, as nothing else is promised. */
static int64_t quotient(int64_t a, int64_t b)
{
	if (b == 0)
		return 0;
	return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t remainder_of(int64_t a, int64_t b)
{
	return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t quotient_floor(int64_t a, int64_t b)
{
	int64_t rest = remainder_of(a, b);
	return quotient(a, b) - (rest != 0 && (rest < 0) != (b < 0));
}

static int64_t absolute(int64_t a)
{
	return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
}

static double maximum64(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? a : b;
	return a > b || (a == b && !signbit(a)) ? a : b;
}

static double minimum64(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? a : b;
	return a < b || (a == b && signbit(a)) ? a : b;
}

static double maxnum64(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	return maximum64(a, b);
}

static double minnum64(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	return minimum64(a, b);
}

static double absmax64(double a, double b)
{
	return maximum64(fabs(a), fabs(b));
}

static double rsqrt64(double a)
{
	return 1.0 / sqrt(a);
}

static int64_t saturate(double a, int width)
{
	double limit = ldexp(1.0, width - 1);
	if (isnan(a))
		return 0;
	if (a >= limit)
		return wrap((UINT64_C(1) << (width - 1)) - 1, 64);
	return a < -limit ? wrap(UINT64_C(1) << (width - 1), width) : (int64_t)a;
}

static uint64_t saturate_unsigned(double a, int width)
{
	double limit = ldexp(1.0, width);
	if (!(a > 0))
		return 0;
	return a >= limit ? UINT64_MAX : (uint64_t)a;
}

/* Round to odd: an inexact result gets an odd last bit, so that rounding it to a narrower type is
 * correct. */
static float round_odd(double a)
{
	float near = (float)a;
	if ((double)near == a || isnan(a) || (st_bits(near) & 1u))
		return near;
	return st_float(fabs((double)near) > fabs(a) ? st_bits(near) - 1u : st_bits(near) + 1u);
}

static float round_bf16(float a)
{
	return isnan(a) ? a : st_float((uint32_t)st_bf16_bits(a) << 16);
}

static float round_f16(float a)
{
	return isnan(a) ? a : st_f16_value(st_f16_bits(a));
}

BINARY(add32, float, a + b)
BINARY(sub32, float, a - b)
BINARY(mul32, float, a *b)
BINARY(div32, float, st_div(a, b))
BINARY(maximum32, float, st_maximum(a, b))
BINARY(minimum32, float, st_minimum(a, b))
BINARY(maxnum32, float, st_maxnum(a, b))
BINARY(minnum32, float, st_minnum(a, b))
BINARY(pow32, float, st_pow(a, b))
BINARY(peak32, float, st_peak(a, b))
BINARY(rem32, float, st_fmod(a, b))
BINARY(angle32, float, st_atan2(a, b))
BINARY(add64, double, a + b)
BINARY(sub64, double, a - b)
BINARY(mul64, double, a *b)
BINARY(div64, double, a / b)
BINARY(max64, double, maximum64(a, b))
BINARY(min64, double, minimum64(a, b))
BINARY(maxn64, double, maxnum64(a, b))
BINARY(minn64, double, minnum64(a, b))
BINARY(pow64, double, pow(a, b))
BINARY(peak_64, double, absmax64(a, b))
BINARY(rem64, double, fmod(a, b))
BINARY(angle64, double, atan2(a, b))
BINARY(add_int, int64_t, (uint64_t)a + (uint64_t)b)
BINARY(sub_int, int64_t, (uint64_t)a - (uint64_t)b)
BINARY(mul_int, int64_t, (uint64_t)a *(uint64_t)b)
BINARY(div_int, int64_t, quotient(a, b))
BINARY(rem_int, int64_t, remainder_of(a, b))
BINARY(floor_int, int64_t, quotient_floor(a, b))
BINARY(and_int, int64_t, a &b)
BINARY(or_int, int64_t, a | b)
BINARY(xor_int, int64_t, a ^ b)
BINARY(max_int, int64_t, a > b ? a : b)
BINARY(min_int, int64_t, a < b ? a : b)
#define UNSIGNED(name, expression)                                                                 \
	static void name(                                                                          \
	        const struct scalar_op *op, void *out, const void *const *in, int64_t count)       \
	{                                                                                          \
		int64_t *restrict y = out;                                                         \
		const int64_t *left = in[0], *right = in[1];                                       \
		for (int64_t i = 0; i < count; i++) {                                              \
			uint64_t a = unsigned_of(left[i], op->width);                              \
			uint64_t b = unsigned_of(right[i], op->width);                             \
			y[i] = (int64_t)(expression);                                              \
		}                                                                                  \
	}
UNSIGNED(div_unsigned, b == 0 ? 0 : a / b)
UNSIGNED(rem_unsigned, b == 0 ? 0 : a % b)
UNSIGNED(max_unsigned, a > b ? a : b)
UNSIGNED(min_unsigned, a < b ? a : b)
UNSIGNED(shift_up, b > 63 ? 0 : a << b)
UNSIGNED(shift_zeros, b > 63 ? 0 : a >> b)
BINARY(shift_down, int64_t, a >> (b < 0 || b > 63 ? 63 : b))
UNARY(abs_int, int64_t, absolute)
UNARY(neg32, float, -)
UNARY(abs32, float, st_abs)
UNARY(exp32, float, st_exp)
UNARY(log32, float, st_log)
UNARY(sqrt32, float, st_sqrt)
UNARY(rsqrt32, float, st_rsqrt)
UNARY(tanh32, float, st_tanh)
UNARY(erf32, float, st_erf)
UNARY(sin32, float, st_sin)
UNARY(cos32, float, st_cos)
UNARY(floor32, float, st_floor)
UNARY(ceil32, float, st_ceil)
UNARY(even32, float, st_round_even)
UNARY(log1p_32, float, st_log1p)
UNARY(log2_32, float, st_log2)
UNARY(log10_32, float, st_log10)
UNARY(expm1_32, float, st_expm1)
UNARY(tan_32, float, st_tan)
UNARY(sinh_32, float, st_sinh)
UNARY(cosh_32, float, st_cosh)
UNARY(asin_32, float, st_asin)
UNARY(acos_32, float, st_acos)
UNARY(atan_32, float, st_atan)
UNARY(asinh_32, float, st_asinh)
UNARY(acosh_32, float, st_acosh)
UNARY(atanh_32, float, st_atanh)
UNARY(neg64, double, -)
UNARY(abs64, double, fabs)
UNARY(exp64, double, exp)
UNARY(log64, double, log)
UNARY(sqrt64, double, sqrt)
UNARY(rsq64, double, rsqrt64)
UNARY(tanh64, double, tanh)
UNARY(erf64, double, erf)
UNARY(sin64, double, sin)
UNARY(cos64, double, cos)
UNARY(floor64, double, floor)
UNARY(ceil64, double, ceil)
UNARY(even64, double, nearbyint)
UNARY(log1p_64, double, log1p)
UNARY(log2_64, double, log2)
UNARY(log10_64, double, log10)
UNARY(expm1_64, double, expm1)
UNARY(tan_64, double, tan)
UNARY(sinh_64, double, sinh)
UNARY(cosh_64, double, cosh)
UNARY(asin_64, double, asin)
UNARY(acos_64, double, acos)
UNARY(atan_64, double, atan)
UNARY(asinh_64, double, asinh)
UNARY(acosh_64, double, acosh)
UNARY(atanh_64, double, atanh)
SELECT(select32, float)
SELECT(select64, double)
SELECT(select_int, int64_t)
COMPARE(compare32, float)
COMPARE(compare64, double)
COMPARE(compare_int, int64_t)
COMPARE(compare_unsigned, uint64_t)
CONVERT(copy32, float, float, a)
CONVERT(widen, float, double, a)
CONVERT(narrow, double, float, a)
CONVERT(narrow_odd, double, float, round_odd(a))
CONVERT(copy64, double, double, a)
CONVERT(copy_int, int64_t, int64_t, a)
CONVERT(signed32, int64_t, float, a)
CONVERT(signed64, int64_t, double, a)
CONVERT(unsigned32, int64_t, float, unsigned_of(a, op->from_width))
CONVERT(unsigned64, int64_t, double, unsigned_of(a, op->from_width))
CONVERT(bits32, float, int64_t, (int32_t)st_bits(a))
CONVERT(of_bits, int64_t, float, st_float((uint32_t)a))
CONVERT(integer32, float, int64_t, saturate((double)a, op->width))
CONVERT(integer64, double, int64_t, saturate(a, op->width))
CONVERT(natural32, float, int64_t, saturate_unsigned((double)a, op->width))
CONVERT(natural64, double, int64_t, saturate_unsigned(a, op->width))
CONVERT(nearest32, float, int64_t, st_nearest(a, op->width))
CONVERT(zero_extend, int64_t, int64_t, unsigned_of(a, op->from_width))

static void powi32(const struct scalar_op *op, void *out, const void *const *in, int64_t count)
{
	(void)op;
	const float *base = in[0];
	const int64_t *power = in[1];
	for (int64_t i = 0; i < count; i++)
		((float *)out)[i] = st_powi(base[i], (int32_t)power[i]);
}

static void powi64(const struct scalar_op *op, void *out, const void *const *in, int64_t count)
{
	(void)op;
	const double *base = in[0];
	const int64_t *power = in[1];
	for (int64_t i = 0; i < count; i++)
		((double *)out)[i] = pow(base[i], (double)power[i]);
}

/* Indexed by the class of operand 0 (of a select: of the result). */
static scalar_function *const functions[OP_COUNT][CLASSES] = {
	[OP_ADDF] = { add32, add64 },
	[OP_SUBF] = { sub32, sub64 },
	[OP_MULF] = { mul32, mul64 },
	[OP_DIVF] = { div32, div64 },
	[OP_REMF] = { rem32, rem64 },
	[OP_NEGF] = { neg32, neg64 },
	[OP_MAXIMUMF] = { maximum32, max64 },
	[OP_MINIMUMF] = { minimum32, min64 },
	[OP_MAXNUMF] = { maxnum32, maxn64 },
	[OP_MINNUMF] = { minnum32, minn64 },
	[OP_CMPF] = { compare32, compare64 },
	[OP_ADDI] = { [INT] = add_int },
	[OP_SUBI] = { [INT] = sub_int },
	[OP_MULI] = { [INT] = mul_int },
	[OP_DIVSI] = { [INT] = div_int },
	[OP_REMSI] = { [INT] = rem_int },
	[OP_FLOORDIVSI] = { [INT] = floor_int },
	[OP_ANDI] = { [INT] = and_int },
	[OP_ORI] = { [INT] = or_int },
	[OP_XORI] = { [INT] = xor_int },
	[OP_MAXSI] = { [INT] = max_int },
	[OP_MINSI] = { [INT] = min_int },
	[OP_DIVUI] = { [INT] = div_unsigned },
	[OP_REMUI] = { [INT] = rem_unsigned },
	[OP_MAXUI] = { [INT] = max_unsigned },
	[OP_MINUI] = { [INT] = min_unsigned },
	[OP_SHLI] = { [INT] = shift_up },
	[OP_SHRSI] = { [INT] = shift_down },
	[OP_SHRUI] = { [INT] = shift_zeros },
	[OP_ABSI] = { [INT] = abs_int },
	[OP_CMPI] = { [INT] = compare_int },
	[OP_SELECT] = { select32, select64, select_int },
	[OP_EXTF] = { widen, copy64 },
	[OP_TRUNCF] = { copy32, narrow },
	[OP_SITOFP] = { [INT] = signed32 },
	[OP_UITOFP] = { [INT] = unsigned32 },
	[OP_FPTOSI] = { integer32, integer64 },
	[OP_FPTOUI] = { natural32, natural64 },
	[OP_EXTSI] = { [INT] = copy_int },
	[OP_EXTUI] = { [INT] = zero_extend },
	[OP_TRUNCI] = { [INT] = copy_int },
	[OP_INDEX_CAST] = { [INT] = copy_int },
	[OP_BITCAST] = { bits32, [INT] = of_bits },
	[OP_ABSF] = { abs32, abs64 },
	[OP_EXP] = { exp32, exp64 },
	[OP_LOG] = { log32, log64 },
	[OP_SQRT] = { sqrt32, sqrt64 },
	[OP_RSQRT] = { rsqrt32, rsq64 },
	[OP_TANH] = { tanh32, tanh64 },
	[OP_ERF] = { erf32, erf64 },
	[OP_SIN] = { sin32, sin64 },
	[OP_COS] = { cos32, cos64 },
	[OP_LOG1P] = { log1p_32, log1p_64 },
	[OP_LOG2] = { log2_32, log2_64 },
	[OP_LOG10] = { log10_32, log10_64 },
	[OP_EXPM1] = { expm1_32, expm1_64 },
	[OP_TAN] = { tan_32, tan_64 },
	[OP_SINH] = { sinh_32, sinh_64 },
	[OP_COSH] = { cosh_32, cosh_64 },
	[OP_ASIN] = { asin_32, asin_64 },
	[OP_ACOS] = { acos_32, acos_64 },
	[OP_ATAN] = { atan_32, atan_64 },
	[OP_ASINH] = { asinh_32, asinh_64 },
	[OP_ACOSH] = { acosh_32, acosh_64 },
	[OP_ATANH] = { atanh_32, atanh_64 },
	[OP_ATAN2] = { angle32, angle64 },
	[OP_POWF] = { pow32, pow64 },
	[OP_FPOWI] = { powi32, powi64 },
	[OP_FLOOR] = { floor32, floor64 },
	[OP_CEIL] = { ceil32, ceil64 },
	[OP_ROUNDEVEN] = { even32, even64 },
	[OP_ROUND_SATURATE] = { nearest32 },
	[OP_ABSMAX] = { peak32, peak_64 },
};

static enum register_class class_of(const struct type *type)
{
	if (type->kind == TYPE_BFLOAT || (type->kind == TYPE_FLOAT && type->width < 64))
		return F32;
	return type->kind == TYPE_FLOAT ? F64 : INT;
}

static int width_of(const struct type *type)
{
	return type->kind == TYPE_INTEGER ? type->width : 64;
}

static void finish_integer(const struct scalar_op *op, void *out, int64_t count)
{
	int64_t *y = out;
	for (int64_t i = 0; i < count; i++)
		y[i] = wrap((uint64_t)y[i], op->width);
}

static void finish_f16(const struct scalar_op *op, void *out, int64_t count)
{
	(void)op;
	float *y = out;
	for (int64_t i = 0; i < count; i++)
		y[i] = round_f16(y[i]);
}

static void finish_bf16(const struct scalar_op *op, void *out, int64_t count)
{
	(void)op;
	float *y = out;
	for (int64_t i = 0; i < count; i++)
		y[i] = round_bf16(y[i]);
}

/* Conversions whose function depends on the result's class too. */
static scalar_function *by_result(
        enum op_code code, const struct type *result, const struct type *operand)
{
	bool wide = class_of(result) == F64;
	if (code == OP_EXTF && !wide)
		return copy32;
	if (code == OP_TRUNCF && class_of(operand) == F64 && result->width < 32)
		return narrow_odd;
	if (code == OP_SITOFP)
		return wide ? signed64 : signed32;
	if (code == OP_UITOFP)
		return wide ? unsigned64 : unsigned32;
	return NULL;
}

static const int64_t integer_relations[INTEGER_PREDICATES] = {
	[CMPI_EQ] = EQUAL,
	[CMPI_NE] = GREATER | LESS,
	[CMPI_SLT] = LESS,
	[CMPI_SLE] = LESS | EQUAL,
	[CMPI_SGT] = GREATER,
	[CMPI_SGE] = GREATER | EQUAL,
	[CMPI_ULT] = LESS,
	[CMPI_ULE] = LESS | EQUAL,
	[CMPI_UGT] = GREATER,
	[CMPI_UGE] = GREATER | EQUAL,
};

static const int64_t float_relations[FLOAT_PREDICATES] = {
	[CMPF_FALSE] = 0,
	[CMPF_OEQ] = EQUAL,
	[CMPF_OGT] = GREATER,
	[CMPF_OGE] = GREATER | EQUAL,
	[CMPF_OLT] = LESS,
	[CMPF_OLE] = LESS | EQUAL,
	[CMPF_ONE] = LESS | GREATER,
	[CMPF_ORD] = LESS | GREATER | EQUAL,
	[CMPF_UEQ] = UNORDERED | EQUAL,
	[CMPF_UGT] = UNORDERED | GREATER,
	[CMPF_UGE] = UNORDERED | GREATER | EQUAL,
	[CMPF_ULT] = UNORDERED | LESS,
	[CMPF_ULE] = UNORDERED | LESS | EQUAL,
	[CMPF_UNE] = UNORDERED | LESS | GREATER,
	[CMPF_UNO] = UNORDERED,
	[CMPF_TRUE] = UNORDERED | LESS | GREATER | EQUAL,
};

bool scalar_op_make(struct scalar_op *op, enum op_code code, int64_t predicate,
        const struct type *result, const struct type *operand)
{
	enum register_class class = class_of(code == OP_SELECT ? result : operand);
	*op = (struct scalar_op){ .predicate = predicate,
		.width = width_of(result),
		.from_width = width_of(operand),
		.size = scalar_register_bytes(result) };
	scalar_function *special = by_result(code, result, operand);
	op->run = special ? special : functions[code][class];
	if ((code == OP_CMPI && (predicate < 0 || predicate >= INTEGER_PREDICATES)) ||
	        (code == OP_CMPF && (predicate < 0 || predicate >= FLOAT_PREDICATES)))
		return false;
	if (code == OP_CMPF)
		op->predicate = float_relations[predicate];
	if (code == OP_CMPI) {
		op->predicate = integer_relations[predicate];
		op->run = predicate >= CMPI_ULT ? compare_unsigned : compare_int;
	}
	if (code == OP_CMPI || code == OP_CMPF)
		return op->run;
	if (result->kind == TYPE_BFLOAT)
		op->finish = finish_bf16;
	else if (result->kind == TYPE_FLOAT && result->width == 16)
		op->finish = finish_f16;
	else if (result->kind == TYPE_INTEGER && result->width < 64)
		op->finish = finish_integer;
	return op->run;
}

union scalar scalar_eval(const struct scalar_op *op, const union scalar *value)
{
	union scalar out = { .integer = 0 };
	const void *in[3] = { &value[0], &value[1], &value[2] };
	scalar_run(op, &out, in, 1);
	return out;
}

int64_t scalar_predicate(const struct op *op)
{
	return op->code == OP_CMPF || op->code == OP_CMPI ? attr_integer_or(op, KEY_PREDICATE, -1)
	                                                  : 0;
}

int scalar_register_bytes(const struct type *type)
{
	return class_of(type) == F32 ? 4 : 8;
}

int scalar_storage_bytes(const struct type *type)
{
	if (type->kind == TYPE_INDEX)
		return 8;
	if (type->width <= 8)
		return 1;
	if (type->width <= 16)
		return 2;
	return type->width <= 32 ? 4 : 8;
}

union scalar scalar_constant(const struct type *type, double real, int64_t integer)
{
	union scalar value = { .integer = 0 };
	enum register_class class = class_of(type);
	if (class == INT)
		value.integer = wrap((uint64_t)integer, width_of(type));
	else if (class == F64)
		value.f64 = real;
	else if (type->width == 32)
		value.f32 = (float)real;
	else
		value.f32 = type->kind == TYPE_BFLOAT ? round_bf16(round_odd(real))
		                                      : round_f16(round_odd(real));
	return value;
}

bool scalar_of_attr(const struct type *type, const struct attr *attr, union scalar *value)
{
	if (!attr ||
	        (attr->kind != ATTR_FLOAT && attr->kind != ATTR_INTEGER && attr->kind != ATTR_BOOL))
		return false;
	*value = scalar_constant(type, attr->real, attr->integer);
	return true;
}

void scalar_fill(const struct type *type, void *registers, union scalar value, int64_t count)
{
	float *narrow_register = registers;
	int64_t *wide_register = registers;
	if (class_of(type) == F32)
		for (int64_t i = 0; i < count; i++)
			narrow_register[i] = value.f32;
	else
		for (int64_t i = 0; i < count; i++)
			wide_register[i] = value.integer;
}

union scalar scalar_get(const struct type *type, const void *registers, int64_t at)
{
	union scalar value = { .integer = 0 };
	int size = scalar_register_bytes(type);
	memcpy(&value, (const char *)registers + at * size, (size_t)size);
	return value;
}

#define READ(to, from, expression)                                                                 \
	for (int64_t i = 0; i < count; i++) {                                                      \
		from x = ((const from *)storage)[first + i * stride];                              \
		((to *)registers)[i] = (expression);                                               \
	}
#define WRITE(from, to, expression)                                                                \
	for (int64_t i = 0; i < count; i++) {                                                      \
		from x = ((const from *)registers)[i];                                             \
		((to *)storage)[first + i * stride] = (to)(expression);                            \
	}

static void read_half(const struct type *type, void *registers, const void *storage, int64_t first,
        int64_t stride, int64_t count)
{
	if (type->kind == TYPE_BFLOAT)
		READ(float, uint16_t, st_float((uint32_t)x << 16))
	else
		READ(float, uint16_t, st_f16_value(x))
}

static void write_half(const struct type *type, const void *registers, void *storage, int64_t first,
        int64_t stride, int64_t count)
{
	if (type->kind == TYPE_BFLOAT)
		WRITE(float, uint16_t, st_bf16_bits(x))
	else
		WRITE(float, uint16_t, st_f16_bits(x))
}

static void read_integer(const struct type *type, void *registers, const void *storage,
        int64_t first, int64_t stride, int64_t count)
{
	int width = width_of(type);
	int bytes = scalar_storage_bytes(type);
	if (bytes == 1)
		READ(int64_t, uint8_t, wrap(x, width))
	else if (bytes == 2)
		READ(int64_t, uint16_t, wrap(x, width))
	else if (bytes == 4)
		READ(int64_t, uint32_t, wrap(x, width))
	else
		READ(int64_t, int64_t, x)
}

static void write_integer(const struct type *type, const void *registers, void *storage,
        int64_t first, int64_t stride, int64_t count)
{
	int width = width_of(type);
	int bytes = scalar_storage_bytes(type);
	if (bytes == 1)
		WRITE(int64_t, uint8_t, width == 1 ? x & 1 : x)
	else if (bytes == 2)
		WRITE(int64_t, uint16_t, x)
	else if (bytes == 4)
		WRITE(int64_t, uint32_t, x)
	else
		WRITE(int64_t, int64_t, x)
}

void scalar_read(const struct type *type, void *registers, const void *storage, int64_t first,
        int64_t stride, int64_t count)
{
	enum register_class class = class_of(type);
	if (class == F32 && type->width == 32 && stride == 1)
		memcpy(registers, (const float *)storage + first, (size_t)count * sizeof(float));
	else if (class == F32 && type->width == 32)
		READ(float, float, x)
	else if (class == F32)
		read_half(type, registers, storage, first, stride, count);
	else if (class == F64)
		READ(double, double, x)
	else
		read_integer(type, registers, storage, first, stride, count);
}

void scalar_write(const struct type *type, const void *registers, void *storage, int64_t first,
        int64_t stride, int64_t count)
{
	enum register_class class = class_of(type);
	if (class == F32 && type->width == 32 && stride == 1)
		memcpy((float *)storage + first, registers, (size_t)count * sizeof(float));
	else if (class == F32 && type->width == 32)
		WRITE(float, float, x)
	else if (class == F32)
		write_half(type, registers, storage, first, stride, count);
	else if (class == F64)
		WRITE(double, double, x)
	else
		write_integer(type, registers, storage, first, stride, count);
}

void scalar_tree(const struct scalar_op *op, void *work, int64_t count)
{
	char *lane = work;
	for (; count > 1; count = (count + 1) / 2) {
		for (int64_t i = 0; i + 1 < count; i += 2) {
			union scalar pair = { .integer = 0 };
			const void *in[3] = { lane + i * op->size, lane + (i + 1) * op->size,
				NULL };
			scalar_run(op, &pair, in, 1);
			memcpy(lane + i / 2 * op->size, &pair, (size_t)op->size);
		}
		if (count & 1)
			memmove(lane + count / 2 * op->size, lane + (count - 1) * op->size,
			        (size_t)op->size);
	}
}

void scalar_fold(
        const struct scalar_op *op, bool acc_first, void *acc, const void *terms, int64_t count)
{
	if (op->run == add32 && !op->finish) {
		float sum = *(float *)acc;
		for (int64_t i = 0; i < count; i++)
			sum += ((const float *)terms)[i];
		*(float *)acc = sum;
		return;
	}
	for (int64_t i = 0; i < count; i++) {
		const char *term = (const char *)terms + i * op->size;
		union scalar out = { .integer = 0 };
		const void *in[3] = { acc, term, NULL };
		if (!acc_first) {
			in[0] = term;
			in[1] = acc;
		}
		scalar_run(op, &out, in, 1);
		memcpy(acc, &out, (size_t)op->size);
	}
}
