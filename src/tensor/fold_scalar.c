/* Simplifies scalar operations while bodies are imported.
 * Exact: conversions of constants; x to the power 1 or 2; x / 2^n as x * 2^-n.
 * Approximating: powers 3, 4 and -1 as products and quotients, 0.5 and -0.5 as roots (these differ
 * from pow only at -0 and -infinity). */
#include "tensor/fold.h"
#include <math.h>
#include <stdlib.h>

static double number_of(const struct node *node)
{
	return type_is_real(node->type) ? node->real : (double)node->integer;
}

static bool is_constant(const struct node *node)
{
	return node->kind == NODE_CONSTANT;
}

/* The value as a signed integer of that width. */
static int64_t wrap(int64_t value, int width)
{
	if (width >= 64)
		return value;
	uint64_t low = (uint64_t)value << (64 - width);
	return width == 1 ? (value & 1) : (int64_t)low >> (64 - width);
}

/* A conversion of a constant; -1: not computed here. */
static int convert(
        struct module *module, struct body *body, const struct node *node, const struct node *from)
{
	struct node constant = { .kind = NODE_CONSTANT, .type = node->type };
	switch (node->code) {
	case OP_EXTF:
	case OP_TRUNCF:
		if (node->type->kind != TYPE_FLOAT || node->type->width < 32)
			return -1;
		constant.real = node->type->width == 32 ? (double)(float)from->real : from->real;
		break;
	case OP_SITOFP:
		if (node->type->kind != TYPE_FLOAT || node->type->width < 32)
			return -1;
		constant.real = node->type->width == 32 ? (double)(float)from->integer
		                                        : (double)from->integer;
		break;
	case OP_EXTSI:
	case OP_INDEX_CAST:
	case OP_TRUNCI:
		if (from->type->width == 1)
			return -1;
		constant.integer = wrap(
		        from->integer, node->type->kind == TYPE_INDEX ? 64 : node->type->width);
		break;
	default: return -1;
	}
	return body_add(module, body, constant);
}

static int real_constant(
        struct module *module, struct body *body, const struct type *type, double value)
{
	return body_add(
	        module, body, (struct node){ .kind = NODE_CONSTANT, .type = type, .real = value });
}

/* A power with a constant exponent; -1: not simplified. */
static int power(struct module *module, struct body *body, const struct type *type, int base,
        double exponent)
{
	int square = -1;
	if (exponent == 1)
		return base;
	if (exponent == 0.5)
		return body_op(module, body, OP_SQRT, type, base, 0, 0);
	if (exponent == -0.5)
		return body_op(module, body, OP_RSQRT, type, base, 0, 0);
	if (exponent == -1)
		return body_op(
		        module, body, OP_DIVF, type, real_constant(module, body, type, 1), base, 0);
	if (exponent == 2 || exponent == 3 || exponent == 4)
		square = body_op(module, body, OP_MULF, type, base, base, 0);
	if (exponent == 3)
		return body_op(module, body, OP_MULF, type, square, base, 0);
	if (exponent == 4)
		return body_op(module, body, OP_MULF, type, square, square, 0);
	return square;
}

/* x / 2^n as x * 2^-n, which rounds alike where neither constant is subnormal in the type (an f64
 * becomes an f32 by demote_f64); -1: another divisor. */
static int quotient(struct module *module, struct body *body, const struct type *type, int dividend,
        double divisor)
{
	int exponent;
	int most = type->kind == TYPE_FLOAT && type->width == 16 ? 14 : 126;
	if (fabs(frexp(divisor, &exponent)) != 0.5 || abs(exponent - 1) > most)
		return -1;
	return body_op(module, body, OP_MULF, type, dividend,
	        real_constant(module, body, type, 1 / divisor), 0);
}

int fold_scalar(struct module *module, struct body *body, const struct node *node)
{
	if (node->kind != NODE_OP)
		return -1;
	const struct node *argument = body_arguments(node) ? &body->node[node->argument[0]] : NULL;
	if (body_arguments(node) == 1 && is_constant(argument))
		return convert(module, body, node, argument);
	if (node->code != OP_POWF && node->code != OP_FPOWI && node->code != OP_DIVF)
		return -1;
	const struct node *right = &body->node[node->argument[1]];
	if (!is_constant(right))
		return -1;
	if (node->code == OP_DIVF)
		return quotient(module, body, node->type, node->argument[0], right->real);
	return power(module, body, node->type, node->argument[0], number_of(right));
}
