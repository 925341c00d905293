/* Emits scalar operations by a table from operation to C++.  In it $0 $1 $2 are operands, $T the
 * result's type, $W its bits, $U the unsigned type of operand 0. */
#include "emit/hls.h"
#include "ir/double_forms.h"
#include "ir/narrow_product.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct form {
	/* by the kind of the last operand */
	const char *real, *integer, *index;
};

static const struct form forms[OP_COUNT] = {
	[OP_ADDF] = { .real = "$0 + $1" },
	[OP_SUBF] = { .real = "$0 - $1" },
	[OP_MULF] = { .real = "$0 * $1" },
	[OP_DIVF] = { .real = "st_div($0, $1)" },
	[OP_REMF] = { .real = "st_fmod($0, $1)" },
	[OP_NEGF] = { .real = "-$0" },
	[OP_MAXIMUMF] = { .real = "st_maximum($0, $1)" },
	[OP_MINIMUMF] = { .real = "st_minimum($0, $1)" },
	[OP_MAXNUMF] = { .real = "st_maxnum($0, $1)" },
	[OP_MINNUMF] = { .real = "st_minnum($0, $1)" },
	[OP_ADDI] = { .integer = "st_add<$T>($0, $1)", .index = "$0 + $1" },
	[OP_SUBI] = { .integer = "st_sub<$T>($0, $1)", .index = "$0 - $1" },
	[OP_MULI] = { .integer = "st_mul<$T>($0, $1)", .index = "$0 * $1" },
	[OP_DIVSI] = { .integer = "st_quotient<$T>($0, $1)", .index = "st_quotient<$T>($0, $1)" },
	[OP_REMSI] = { .integer = "st_remainder<$T>($0, $1)", .index = "st_remainder<$T>($0, $1)" },
	[OP_FLOORDIVSI] = { .integer = "st_quotient_floor<$T>($0, $1)",
	        .index = "st_quotient_floor<$T>($0, $1)" },
	[OP_ANDI] = { .integer = "($T)($0 & $1)", .index = "$0 & $1" },
	[OP_ORI] = { .integer = "($T)($0 | $1)", .index = "$0 | $1" },
	[OP_XORI] = { .integer = "($T)($0 ^ $1)", .index = "$0 ^ $1" },
	[OP_MAXSI] = { .integer = "st_max<$T>($0, $1)", .index = "st_max<$T>($0, $1)" },
	[OP_MINSI] = { .integer = "st_min<$T>($0, $1)", .index = "st_min<$T>($0, $1)" },
	[OP_DIVUI] = { .integer = "($T)st_quotient_unsigned<$U>(($U)$0, ($U)$1)" },
	[OP_REMUI] = { .integer = "($T)st_remainder_unsigned<$U>(($U)$0, ($U)$1)" },
	[OP_MAXUI] = { .integer = "($T)st_max<$U>(($U)$0, ($U)$1)" },
	[OP_MINUI] = { .integer = "($T)st_min<$U>(($U)$0, ($U)$1)" },
	[OP_SHLI] = { .integer = "st_shift_up<$T, $W>($0, $1)" },
	[OP_SHRSI] = { .integer = "st_shift_down<$T, $W>($0, $1)" },
	[OP_SHRUI] = { .integer = "($T)st_shift_zeros<$U, $W>(($U)$0, ($U)$1)" },
	[OP_ABSI] = { .integer = "st_absolute<$T>($0)" },
	[OP_SITOFP] = { .integer = "(float)$0" },
	[OP_UITOFP] = { .integer = "(float)($U)$0" },
	[OP_FPTOSI] = { .real = "st_saturate<$T, $W>($0)" },
	[OP_FPTOUI] = { .real = "($T)st_saturate_unsigned<$W>($0)" },
	[OP_EXTSI] = { .integer = "($T)$0" },
	[OP_EXTUI] = { .integer = "($T)($U)$0" },
	[OP_TRUNCI] = { .integer = "($T)$0" },
	[OP_INDEX_CAST] = { .integer = "($T)$0", .index = "($T)$0" },
	[OP_BITCAST] = { .real = "(int32_t)st_bits($0)", .integer = "st_float((uint32_t)$0)" },
	[OP_EXTF] = { .real = "(float)$0" },
	[OP_TRUNCF] = { .real = "$0" },
	[OP_ABSF] = { .real = "st_abs($0)" },
	[OP_EXP] = { .real = "st_exp($0)" },
	[OP_LOG] = { .real = "st_log($0)" },
	[OP_SQRT] = { .real = "st_sqrt($0)" },
	[OP_RSQRT] = { .real = "st_rsqrt($0)" },
	[OP_TANH] = { .real = "st_tanh($0)" },
	[OP_ERF] = { .real = "st_erf($0)" },
	[OP_SIN] = { .real = "st_sin($0)" },
	[OP_COS] = { .real = "st_cos($0)" },
	[OP_LOG1P] = { .real = "st_log1p($0)" },
	[OP_LOG2] = { .real = "st_log2($0)" },
	[OP_LOG10] = { .real = "st_log10($0)" },
	[OP_EXPM1] = { .real = "st_expm1($0)" },
	[OP_TAN] = { .real = "st_tan($0)" },
	[OP_SINH] = { .real = "st_sinh($0)" },
	[OP_COSH] = { .real = "st_cosh($0)" },
	[OP_ASIN] = { .real = "st_asin($0)" },
	[OP_ACOS] = { .real = "st_acos($0)" },
	[OP_ATAN] = { .real = "st_atan($0)" },
	[OP_ASINH] = { .real = "st_asinh($0)" },
	[OP_ACOSH] = { .real = "st_acosh($0)" },
	[OP_ATANH] = { .real = "st_atanh($0)" },
	[OP_ATAN2] = { .real = "st_atan2($0, $1)" },
	[OP_POWF] = { .real = "st_pow($0, $1)" },
	[OP_FPOWI] = { .integer = "st_powi($0, (int32_t)$1)" },
	[OP_FLOOR] = { .real = "st_floor($0)" },
	[OP_CEIL] = { .real = "st_ceil($0)" },
	[OP_ROUNDEVEN] = { .real = "st_round_even($0)" },
	[OP_ROUND_SATURATE] = { .real = "($T)st_nearest($0, $W)" },
	[OP_ABSMAX] = { .real = "st_peak($0, $1)" },
};

/* On i1: true is 1 in C++ and -1 in the IR. */
static const char *const bit_forms[OP_COUNT] = {
	[OP_ADDI] = "$0 != $1",
	[OP_SUBI] = "$0 != $1",
	[OP_MULI] = "$0 && $1",
	[OP_ANDI] = "$0 && $1",
	[OP_ORI] = "$0 || $1",
	[OP_XORI] = "$0 != $1",
	[OP_MAXSI] = "$0 && $1",
	[OP_MINSI] = "$0 || $1",
	[OP_DIVUI] = "$0 && $1",
	[OP_REMUI] = "false",
	[OP_MAXUI] = "$0 || $1",
	[OP_MINUI] = "$0 && $1",
	[OP_SHLI] = "$0 && !$1",
	[OP_SHRSI] = "$0",
	[OP_SHRUI] = "$0 && !$1",
	[OP_ABSI] = "$0",
	[OP_EXTSI] = "($T)($0 ? -1 : 0)",
	[OP_EXTUI] = "($T)($0 ? 1 : 0)",
	[OP_INDEX_CAST] = "$0 ? -1 : 0",
	[OP_SITOFP] = "$0 ? -1.0f : 0.0f",
	[OP_UITOFP] = "$0 ? 1.0f : 0.0f",
};

static const char *const real_comparisons[FLOAT_PREDICATES] = {
	[CMPF_FALSE] = "false",
	[CMPF_OEQ] = "$0 == $1",
	[CMPF_OGT] = "$0 > $1",
	[CMPF_OGE] = "$0 >= $1",
	[CMPF_OLT] = "$0 < $1",
	[CMPF_OLE] = "$0 <= $1",
	[CMPF_ONE] = "$0 < $1 || $0 > $1",
	[CMPF_ORD] = "$0 == $0 && $1 == $1",
	[CMPF_UEQ] = "!($0 < $1 || $0 > $1)",
	[CMPF_UGT] = "!($0 <= $1)",
	[CMPF_UGE] = "!($0 < $1)",
	[CMPF_ULT] = "!($0 >= $1)",
	[CMPF_ULE] = "!($0 > $1)",
	[CMPF_UNE] = "$0 != $1",
	[CMPF_UNO] = "$0 != $0 || $1 != $1",
	[CMPF_TRUE] = "true",
};
static const char *const integer_comparisons[INTEGER_PREDICATES] = {
	[CMPI_EQ] = "$0 == $1",
	[CMPI_NE] = "$0 != $1",
	[CMPI_SLT] = "$0 < $1",
	[CMPI_SLE] = "$0 <= $1",
	[CMPI_SGT] = "$0 > $1",
	[CMPI_SGE] = "$0 >= $1",
	[CMPI_ULT] = "(uint64_t)$0 < (uint64_t)$1",
	[CMPI_ULE] = "(uint64_t)$0 <= (uint64_t)$1",
	[CMPI_UGT] = "(uint64_t)$0 > (uint64_t)$1",
	[CMPI_UGE] = "(uint64_t)$0 >= (uint64_t)$1",
};

/* Conversions whose text depends on f64. */
static const char *double_conversion(const struct op *op)
{
	const struct type *from = type_scalar(op->operand[0]->type);
	const struct type *to = type_scalar(op->result[0]->type);
	bool narrow = type_is_double(from) && !type_is_double(to);
	if (op->code == OP_TRUNCF && narrow)
		return to->width == 32 ? "(float)$0" : "st_round_odd($0)";
	if (!type_is_double(to))
		return NULL;
	if (op->code == OP_UITOFP)
		return "(double)($U)$0";
	return op->code == OP_SITOFP || op->code == OP_EXTF ? "(double)$0" : NULL;
}

const char *hls_bracket(struct arena *arena, const struct spelling *spelling)
{
	return spelling->atomic ? spelling->text : text_format(arena, "(%s)", spelling->text);
}

static bool is_bit(const struct type *type)
{
	return type->kind == TYPE_INTEGER && type->width == 1;
}

static const char *comparison(const struct op *op)
{
	int64_t predicate = attr_integer_or(op, KEY_PREDICATE, -1);
	bool real = op->code == OP_CMPF;
	int64_t predicates = real ? FLOAT_PREDICATES : INTEGER_PREDICATES;
	if (predicate < 0 || predicate >= predicates)
		return NULL;
	if (!real && predicate > CMPI_NE && is_bit(type_scalar(op->operand[0]->type)))
		return NULL;
	return real ? real_comparisons[predicate] : integer_comparisons[predicate];
}

/* The plain operator of C++ for a counter, which is never negative, and a positive constant; else
 * NULL. */
static const char *division(const struct op *op)
{
	if (op->code != OP_DIVSI && op->code != OP_REMSI)
		return NULL;
	const struct op *divisor = op->operand[1]->def;
	const struct attr *value =
	        divisor && divisor->code == OP_CONSTANT ? attr_get(divisor, KEY_VALUE) : NULL;
	if (op->result[0]->type->kind != TYPE_INDEX || !value || value->integer <= 0)
		return NULL;
	return op->code == OP_DIVSI ? "$0 / $1" : "$0 % $1";
}

/* Are all numbers of f64 such that C++ has the operation on them? */
static bool has_type(const struct op *op)
{
	bool wide = type_is_double(type_scalar(op->result[0]->type));
	for (int i = 0; i < op->operands; i++)
		wide = wide || type_is_double(type_scalar(op->operand[i]->type));
	return !wide || has_double_form(op->code);
}

static const char *form_of(const struct op *op)
{
	int power;
	const struct type *last = type_scalar(op->operand[op->operands - 1]->type);
	if (!has_type(op))
		return NULL;
	if (op->code == OP_CMPF || op->code == OP_CMPI)
		return comparison(op);
	if (op->code == OP_SELECT)
		return "$0 ? $1 : $2";
	if (op->code == OP_INDEX_CAST && op->result[0]->type->kind == TYPE_INDEX &&
	        type_scalar(op->operand[0]->type)->width > 32)
		return "st_saturate_index($0)";
	if (op->code == OP_TRUNCI && is_bit(type_scalar(op->result[0]->type)))
		return "($0 & 1) != 0";
	if (is_bit(last))
		return bit_forms[op->code];
	const char *plain = division(op);
	if (!plain)
		plain = double_conversion(op);
	if (plain)
		return plain;
	if (power_of_two_factor(op, &power) >= 0)
		return power_of_two_factor(op, &power) ? "st_scale($0, $P)" : "st_scale($1, $P)";
	if (narrow_factor(op) >= 0)
		return narrow_factor(op) ? "st_mul_narrow($0, $1)" : "st_mul_narrow($1, $0)";
	if (narrow_integer(op))
		return "st_float_narrow($0)";
	const struct form *form = &forms[op->code];
	if (last->kind == TYPE_INDEX)
		return form->index;
	return last->kind == TYPE_INTEGER ? form->integer : form->real;
}

static const char *unsigned_name(struct emitter *e, const struct type *scalar)
{
	if (scalar->kind == TYPE_INTEGER && scalar->width < 8)
		return "st_nibble";
	return text_format(e->arena, "uint%d_t", scalar->kind == TYPE_INDEX ? 64 : scalar->width);
}

static bool is_call(const char *form)
{
	size_t size = strlen(form);
	return !strncmp(form, "st_", 3) && form[size - 1] == ')';
}

/* Operations on half floats are computed in float, and rounded each. */
static bool rounds(const struct op *op)
{
	return op->results == 1 && hls_is_half(type_scalar(op->result[0]->type)) &&
	        op->code != OP_SELECT;
}

struct spelling hls_scalar(
        struct emitter *e, const struct op *op, const char *const *operand, const bool *atomic)
{
	const char *form = form_of(op);
	if (!form) {
		hls_fail(e, op, "has no spelling in C++ on this type");
		return (struct spelling){ .text = "0", .atomic = true };
	}
	bool call = is_call(form);
	struct text text = text_new(e->arena);
	for (const char *at = form; *at; at++) {
		if (*at != '$') {
			text_add_bytes(&text, at, 1);
			continue;
		}
		at++;
		int index = *at - '0';
		int power = 0;
		if (*at == 'P' && power_of_two_factor(op, &power) >= 0)
			text_add(&text, "%d", power);
		else if (*at == 'W')
			text_add(&text, "%d", type_scalar(op->result[0]->type)->width);
		else if (*at == 'T')
			text_add(&text, "%s", hls_type(e, type_scalar(op->result[0]->type)));
		else if (*at == 'U')
			text_add(&text, "%s", unsigned_name(e, type_scalar(op->operand[0]->type)));
		else
			text_add(&text, call || atomic[index] ? "%s" : "(%s)", operand[index]);
	}
	if (rounds(op))
		return (struct spelling){ .text = text_format(e->arena, "%s(%s)",
			                          hls_type(e, type_scalar(op->result[0]->type)),
			                          text.data),
			.atomic = true };
	return (struct spelling){ .text = text.data, .atomic = call };
}

static const char *real_constant(struct emitter *e, double real)
{
	float value = (float)real;
	if (isnan(value))
		return "st_float(ST_NAN_BITS)";
	if (isinf(value))
		return value > 0 ? "st_float(ST_INF_BITS)" : "-st_float(ST_INF_BITS)";
	char *text = text_format(e->arena, "%.9g", (double)value);
	if (strtof(text_format(e->arena, "%.6g", (double)value), NULL) == value)
		text = text_format(e->arena, "%.6g", (double)value);
	return text_format(e->arena, strpbrk(text, ".e") ? "%sf" : "%s.0f", text);
}

static const char *double_constant(struct emitter *e, double real)
{
	if (isnan(real))
		return "st_double(0x7ff8000000000000u)";
	if (isinf(real))
		return real > 0 ? "st_double(0x7ff0000000000000u)"
		                : "-st_double(0x7ff0000000000000u)";
	char *text = text_format(e->arena, "%.15g", real);
	for (int digits = 16; strtod(text, NULL) != real; digits++)
		text = text_format(e->arena, "%.*g", digits, real);
	return strpbrk(text, ".e") ? text : text_format(e->arena, "%s.0", text);
}

const char *hls_constant(
        struct emitter *e, const struct op *op, const struct attr *attr, const struct type *scalar)
{
	if (hls_is_half(scalar) && attr->kind == ATTR_FLOAT)
		return text_format(
		        e->arena, "%s(%s)", hls_type(e, scalar), real_constant(e, attr->real));
	if (type_is_double(scalar) && attr->kind == ATTR_FLOAT)
		return double_constant(e, attr->real);
	if (type_is_real(scalar) && attr->kind == ATTR_FLOAT)
		return real_constant(e, attr->real);
	if (attr->kind != ATTR_INTEGER && attr->kind != ATTR_BOOL) {
		hls_fail(e, op, "is not a number");
		return "0";
	}
	if (is_bit(scalar))
		return attr->integer ? "true" : "false";
	if (attr->integer == INT64_MIN) /* no literal has its digits */
		return "INT64_MIN";
	if (scalar->kind == TYPE_INTEGER && scalar->width != 32)
		return text_format(
		        e->arena, "(%s)%lld", hls_type(e, scalar), (long long)attr->integer);
	if (attr->integer == INT32_MIN)
		return "(-2147483647 - 1)";
	return text_format(e->arena, "%lld", (long long)attr->integer);
}
