/* The functions of integer ops on columns, and the evaluation of a condition in one iteration. */
#include "predict/condition.h"
#include <limits.h>

#define OPERATION(name, expression)                                                                \
	static void name(int64_t *restrict out, const int64_t *a, const int64_t *b,                \
	        const int64_t *c, int count)                                                       \
	{                                                                                          \
		(void)b;                                                                           \
		(void)c;                                                                           \
		for (int i = 0; i < count; i++)                                                    \
			out[i] = expression;                                                       \
	}

OPERATION(add, a[i] + b[i])
OPERATION(subtract, a[i] - b[i])
OPERATION(multiply, a[i] * b[i])
OPERATION(quotient, b[i] ? a[i] / b[i] : 0)
OPERATION(remainder_of, b[i] ? a[i] % b[i] : 0)
OPERATION(floor_quotient, b[i] ? a[i] / b[i] - (a[i] % b[i] != 0 && (a[i] < 0) != (b[i] < 0)) : 0)
OPERATION(both, a[i] & b[i])
OPERATION(either, a[i] | b[i])
OPERATION(one_of, a[i] ^ b[i])
OPERATION(larger, a[i] > b[i] ? a[i] : b[i])
OPERATION(smaller, a[i] < b[i] ? a[i] : b[i])
OPERATION(chosen, a[i] ? b[i] : c[i])
OPERATION(equal, a[i] == b[i])
OPERATION(unequal, a[i] != b[i])
OPERATION(less, a[i] < b[i])
OPERATION(at_most, a[i] <= b[i])
OPERATION(greater, a[i] > b[i])
OPERATION(at_least, a[i] >= b[i])

static column_function *const functions[OP_COUNT] = {
	[OP_ADDI] = add,
	[OP_SUBI] = subtract,
	[OP_MULI] = multiply,
	[OP_DIVSI] = quotient,
	[OP_REMSI] = remainder_of,
	[OP_FLOORDIVSI] = floor_quotient,
	[OP_ANDI] = both,
	[OP_ORI] = either,
	[OP_XORI] = one_of,
	[OP_MAXSI] = larger,
	[OP_MINSI] = smaller,
	[OP_SELECT] = chosen,
};

/* signed ones only: counters and counts are never negative */
static column_function *const comparisons[INTEGER_PREDICATES] = {
	[CMPI_EQ] = equal,
	[CMPI_NE] = unequal,
	[CMPI_SLT] = less,
	[CMPI_SLE] = at_most,
	[CMPI_SGT] = greater,
	[CMPI_SGE] = at_least,
};

column_function *column_function_of(const struct op *op)
{
	bool whole = op->results == 1 && op->operands <= COLUMN_OPERANDS &&
	        type_is_whole(op->result[0]->type);
	for (int i = 0; whole && i < op->operands; i++)
		whole = type_is_whole(op->operand[i]->type);
	if (!whole || op->code != OP_CMPI)
		return whole ? functions[op->code] : NULL;
	int64_t predicate = attr_integer_or(op, KEY_PREDICATE, -1);
	return predicate >= 0 && predicate < INTEGER_PREDICATES ? comparisons[predicate] : NULL;
}

const struct affine_map *column_map_of(const struct op *op)
{
	const struct attr *attr = op->code == OP_APPLY ? attr_get(op, KEY_MAP) : NULL;
	return attr && attr->kind == ATTR_MAP && attr->map.dims == op->operands &&
	                attr->map.results == 1
	        ? &attr->map
	        : NULL;
}

void column_compute(column_function *function, const struct affine_map *map, int64_t *out,
        const int64_t *const *operand, int count)
{
	if (function) {
		function(out, operand[0], operand[1], operand[2], count);
		return;
	}
	for (int i = 0; i < count; i++)
		out[i] = affine_constant(*map, 0);
	for (int o = 0; o < map->dims; o++) {
		int64_t factor = affine_at(*map, 0, o);
		for (int i = 0; i < count; i++)
			out[i] += factor * operand[o][i];
	}
}

/* --- one iteration */

bool condition_constant(
        const struct value *value, const struct token_loop *loop, int low, int64_t *number)
{
	const struct op *op = value->def;
	if (!op && (value->type->kind != TYPE_INDEX || value->id >= low))
		return false;
	if (!op ||
	        (op->code != OP_CMPI && op->code != OP_CONSTANT &&
	                attr_get(op, KEY_STREAM_RUN_TIME))) {
		*number = op ? value->id : token_counter_of(&loop[value->id]);
		return true;
	}
	const struct attr *attr = op->code == OP_CONSTANT ? attr_get(op, KEY_VALUE) : NULL;
	if (!attr || (attr->kind != ATTR_INTEGER && attr->kind != ATTR_BOOL))
		return false;
	*number = attr->kind == ATTR_BOOL ? attr->integer != 0 : attr->integer;
	return true;
}

static bool map_number(const struct op *op, const struct affine_map *map,
        const struct token_loop *loop, int64_t *number)
{
	*number = affine_constant(*map, 0);
	for (int i = 0; i < op->operands; i++) {
		int64_t in;
		if (!condition_number(op->operand[i], loop, &in))
			return false;
		*number += affine_at(*map, 0, i) * in;
	}
	return true;
}

bool condition_number(const struct value *value, const struct token_loop *loop, int64_t *number)
{
	const struct op *op = value->def;
	int64_t in[COLUMN_OPERANDS] = { 0 };
	if (condition_constant(value, loop, INT_MAX, number))
		return true;
	if (!op)
		return false;
	const struct affine_map *map = column_map_of(op);
	column_function *function = column_function_of(op);
	if (map)
		return map_number(op, map, loop, number);
	for (int i = 0; function && i < op->operands; i++)
		if (!condition_number(op->operand[i], loop, &in[i]))
			return false;
	if (function)
		function(number, &in[0], &in[1], &in[2], 1);
	return function;
}
