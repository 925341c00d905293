/* Type rules of scalar operations, which may also work lane by lane on vectors. */
#include "ir/verify.h"

enum rule {
	RULE_NONE,
	RULE_REAL,    /* operands and result of one float type */
	RULE_INTEGER, /* operands and result of one integer type, or index */
	RULE_COMPARE_REAL,
	RULE_COMPARE_INTEGER,
	RULE_SELECT,
	RULE_WIDER_REAL,
	RULE_NARROWER_REAL,
	RULE_INTEGER_TO_REAL,
	RULE_REAL_TO_INTEGER,
	RULE_WIDER_INTEGER,
	RULE_NARROWER_INTEGER,
	RULE_INDEX_CAST,
	RULE_BITS, /* the bits of an f32 as an i32, or the reverse */
	/* a float of at most 32 bits to an integer of fewer bits than its fraction */
	RULE_NEAREST,
	RULE_POWER,   /* a float and an integer */
	RULE_COUNTER, /* index without operands */
	RULE_FLAG,    /* i1 without operands */
};

static const enum rule rule_of[OP_COUNT] = {
	[OP_ADDF] = RULE_REAL,
	[OP_SUBF] = RULE_REAL,
	[OP_MULF] = RULE_REAL,
	[OP_DIVF] = RULE_REAL,
	[OP_REMF] = RULE_REAL,
	[OP_NEGF] = RULE_REAL,
	[OP_MAXIMUMF] = RULE_REAL,
	[OP_MINIMUMF] = RULE_REAL,
	[OP_MAXNUMF] = RULE_REAL,
	[OP_MINNUMF] = RULE_REAL,
	[OP_ABSF] = RULE_REAL,
	[OP_EXP] = RULE_REAL,
	[OP_LOG] = RULE_REAL,
	[OP_SQRT] = RULE_REAL,
	[OP_RSQRT] = RULE_REAL,
	[OP_TANH] = RULE_REAL,
	[OP_ERF] = RULE_REAL,
	[OP_SIN] = RULE_REAL,
	[OP_COS] = RULE_REAL,
	[OP_LOG1P] = RULE_REAL,
	[OP_LOG2] = RULE_REAL,
	[OP_LOG10] = RULE_REAL,
	[OP_EXPM1] = RULE_REAL,
	[OP_TAN] = RULE_REAL,
	[OP_SINH] = RULE_REAL,
	[OP_COSH] = RULE_REAL,
	[OP_ASIN] = RULE_REAL,
	[OP_ACOS] = RULE_REAL,
	[OP_ATAN] = RULE_REAL,
	[OP_ASINH] = RULE_REAL,
	[OP_ACOSH] = RULE_REAL,
	[OP_ATANH] = RULE_REAL,
	[OP_ATAN2] = RULE_REAL,
	[OP_POWF] = RULE_REAL,
	[OP_FLOOR] = RULE_REAL,
	[OP_CEIL] = RULE_REAL,
	[OP_ROUNDEVEN] = RULE_REAL,
	[OP_ABSMAX] = RULE_REAL,
	[OP_ADDI] = RULE_INTEGER,
	[OP_SUBI] = RULE_INTEGER,
	[OP_MULI] = RULE_INTEGER,
	[OP_DIVSI] = RULE_INTEGER,
	[OP_REMSI] = RULE_INTEGER,
	[OP_FLOORDIVSI] = RULE_INTEGER,
	[OP_ANDI] = RULE_INTEGER,
	[OP_ORI] = RULE_INTEGER,
	[OP_XORI] = RULE_INTEGER,
	[OP_MAXSI] = RULE_INTEGER,
	[OP_MINSI] = RULE_INTEGER,
	[OP_DIVUI] = RULE_INTEGER,
	[OP_REMUI] = RULE_INTEGER,
	[OP_MAXUI] = RULE_INTEGER,
	[OP_MINUI] = RULE_INTEGER,
	[OP_SHLI] = RULE_INTEGER,
	[OP_SHRSI] = RULE_INTEGER,
	[OP_SHRUI] = RULE_INTEGER,
	[OP_ABSI] = RULE_INTEGER,
	[OP_CMPF] = RULE_COMPARE_REAL,
	[OP_CMPI] = RULE_COMPARE_INTEGER,
	[OP_SELECT] = RULE_SELECT,
	[OP_EXTF] = RULE_WIDER_REAL,
	[OP_TRUNCF] = RULE_NARROWER_REAL,
	[OP_SITOFP] = RULE_INTEGER_TO_REAL,
	[OP_UITOFP] = RULE_INTEGER_TO_REAL,
	[OP_FPTOSI] = RULE_REAL_TO_INTEGER,
	[OP_FPTOUI] = RULE_REAL_TO_INTEGER,
	[OP_EXTSI] = RULE_WIDER_INTEGER,
	[OP_EXTUI] = RULE_WIDER_INTEGER,
	[OP_TRUNCI] = RULE_NARROWER_INTEGER,
	[OP_INDEX_CAST] = RULE_INDEX_CAST,
	[OP_BITCAST] = RULE_BITS,
	[OP_ROUND_SATURATE] = RULE_NEAREST,
	[OP_FPOWI] = RULE_POWER,
	[OP_INDEX] = RULE_COUNTER,
	[OP_ACTIVE] = RULE_FLAG,
};

static bool same_shape(const struct type *left, const struct type *right)
{
	if (!left->element && !right->element)
		return true;
	if (left->kind != right->kind || left->rank != right->rank)
		return false;
	for (int i = 0; i < left->rank; i++)
		if (left->shape[i] != right->shape[i])
			return false;
	return true;
}

static bool is_number(const struct type *type)
{
	return type_scalar(type)->kind == TYPE_INTEGER;
}

static bool is_real(const struct type *type)
{
	return type_is_real(type_scalar(type));
}

static bool is_integer(const struct type *type)
{
	return is_number(type) || type_scalar(type)->kind == TYPE_INDEX;
}

static bool is_flag(const struct type *type)
{
	return is_number(type) && type_scalar(type)->width == 1;
}

static int width(const struct type *type)
{
	return type_scalar(type)->width;
}

static bool all_are(enum op_code code, const struct type *const *operand, const struct type *type)
{
	for (int i = 0; i < op_info[code].operands; i++)
		if (operand[i] != type)
			return false;
	return true;
}

static const char *same_error(
        enum op_code code, const struct type *const *operand, const struct type *result, bool real)
{
	if (real ? !is_real(result) : !is_integer(result))
		return real ? "the result is no float" : "the result is no integer";
	return all_are(code, operand, result) ? NULL
	                                      : "the operands and the result have different types";
}

static const char *compare_error(
        const struct type *const *operand, const struct type *result, bool real)
{
	if (real ? !is_real(operand[0]) : !is_integer(operand[0]))
		return real ? "the operands are no floats" : "the operands are no integers";
	if (operand[0] != operand[1])
		return "the operands have different types";
	return is_flag(result) && same_shape(operand[0], result)
	        ? NULL
	        : "the result is not i1 for each operand element";
}

static const char *select_error(const struct type *const *operand, const struct type *result)
{
	if (!is_flag(operand[0]) || (operand[0]->element && !same_shape(operand[0], result)))
		return "the condition is not i1";
	return operand[1] == result && operand[2] == result
	        ? NULL
	        : "the choices and the result have different types";
}

static bool converts(enum rule rule, const struct type *from, const struct type *to)
{
	bool reals = is_real(from) && is_real(to);
	bool numbers = is_number(from) && is_number(to);
	bool real_to_number = is_real(from) && is_number(to);
	switch (rule) {
	case RULE_WIDER_REAL: return reals && width(from) < width(to);
	case RULE_NARROWER_REAL: return reals && width(from) > width(to);
	case RULE_BITS: return is_real(from) != is_real(to) && width(from) == 32 && width(to) == 32;
	case RULE_NEAREST:
		return real_to_number && width(from) <= 32 && width(to) >= 2 && width(to) < 24;
	case RULE_INTEGER_TO_REAL: return is_number(from) && is_real(to);
	case RULE_REAL_TO_INTEGER: return real_to_number;
	case RULE_WIDER_INTEGER: return numbers && width(from) < width(to);
	case RULE_NARROWER_INTEGER: return numbers && width(from) > width(to);
	default: return is_integer(from) && is_integer(to) && is_number(from) != is_number(to);
	}
}

static const char *conversion_error(enum rule rule, const struct type *from, const struct type *to)
{
	return converts(rule, from, to) && same_shape(from, to)
	        ? NULL
	        : "it does not convert between these types";
}

const char *scalar_type_error(
        enum op_code code, const struct type *const *operand, const struct type *result)
{
	enum rule rule = rule_of[code];
	if (rule == RULE_NONE)
		return NULL;
	if (rule == RULE_REAL || rule == RULE_INTEGER)
		return same_error(code, operand, result, rule == RULE_REAL);
	if (rule == RULE_COMPARE_REAL || rule == RULE_COMPARE_INTEGER)
		return compare_error(operand, result, rule == RULE_COMPARE_REAL);
	if (rule == RULE_SELECT)
		return select_error(operand, result);
	if (rule == RULE_POWER)
		return operand[0] == result && is_real(result) && is_number(operand[1])
		        ? NULL
		        : "it wants a float and an integer";
	if (rule == RULE_COUNTER)
		return result->kind == TYPE_INDEX ? NULL : "the result is not of type index";
	if (rule == RULE_FLAG)
		return is_flag(result) ? NULL : "the result is not i1";
	return conversion_error(rule, operand[0], result);
}
