/* Finds f32 products with a factor of few significant bits by walking to its definition. */
#include "ir/narrow_product.h"
#include <math.h>
#include <stdlib.h>

/* Sums in (-2^k, 2^k] have k significant bits. */
bool narrow_dot(const struct dot *dot)
{
	return dot_tree_bits(dot->x_bits + dot->w_bits - 2, dot->lanes, dot->lanes) <= NARROW_BITS;
}

static bool is_narrow_dot(const struct op *op)
{
	struct dot dot;
	return op && op->code == OP_DOT && dot_of(op, &dot) && narrow_dot(&dot);
}

static bool is_narrow_integer(const struct value *value)
{
	const struct op *op = value->def;
	const struct type *scalar = type_scalar(value->type);
	bool narrow = op && op->code == OP_JOIN_LANES;
	for (int i = 0; narrow && i < op->operands; i++)
		narrow = is_narrow_dot(op->operand[i]->def);
	return narrow || is_narrow_dot(op) ||
	        (scalar->kind == TYPE_INTEGER && scalar->width <= NARROW_BITS);
}

static bool is_narrow(const struct value *value)
{
	const struct op *op = value->def;
	if (op && op->code == OP_BROADCAST)
		return is_narrow(op->operand[0]);
	if (op && op->code == OP_SITOFP)
		return is_narrow_integer(op->operand[0]);
	if (op && op->code == OP_UITOFP)
		return type_scalar(op->operand[0]->type)->width <= NARROW_BITS;
	return op && op->code == OP_EXTF && type_scalar(op->operand[0]->type)->width == 16;
}

int narrow_factor(const struct op *op)
{
	const struct type *scalar = op->code == OP_MULF ? type_scalar(op->result[0]->type) : NULL;
	for (int i = 0; scalar && scalar->kind == TYPE_FLOAT && scalar->width == 32 && i < 2; i++)
		if (is_narrow(op->operand[i]))
			return i;
	return -1;
}

bool narrow_integer(const struct op *op)
{
	const struct type *scalar = op->code == OP_SITOFP ? type_scalar(op->result[0]->type) : NULL;
	return scalar && scalar->kind == TYPE_FLOAT && scalar->width == 32 &&
	        is_narrow_integer(op->operand[0]);
}

bool power_of_two_of(double number, int *power)
{
	bool found = frexp(number, power) == 0.5;
	*power -= 1;
	return found && abs(*power) <= POWER_MOST;
}

int power_of_two_factor(const struct op *op, int *power)
{
	const struct type *scalar = op->code == OP_MULF ? type_scalar(op->result[0]->type) : NULL;
	for (int i = 0; scalar && scalar->kind == TYPE_FLOAT && scalar->width == 32 && i < 2; i++) {
		const struct op *by = op->operand[i]->def;
		if (by && by->code == OP_BROADCAST)
			by = by->operand[0]->def;
		const struct attr *number = by ? attr_get(by, KEY_VALUE) : NULL;
		if (by && by->code == OP_CONSTANT && number && number->kind == ATTR_FLOAT &&
		        power_of_two_of(number->real, power))
			return i;
	}
	return -1;
}

int constant_bits(int64_t number)
{
	uint64_t size = (uint64_t)(number < 0 ? -(number + 1) : number);
	int bits = 1;
	for (; size; size /= 2)
		bits++;
	return bits;
}
