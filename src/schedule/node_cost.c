/* Prices the operators of a body by what their factors are extended from, as the operations of
 * processes are (predict/resource.c). */
#include "schedule/node_cost.h"
#include "ir/narrow_product.h"

/* Does the node extend a number of at most so many bits to another type? */
static bool extends(const struct body *body, const struct node *node, enum op_code code, int bits)
{
	return node->kind == NODE_OP && node->code == code &&
	        body->node[node->argument[0]].type->width <= bits;
}

/* A float of few significant bits. */
static bool is_narrow(const struct body *body, const struct node *node)
{
	return extends(body, node, OP_EXTF, 16) || extends(body, node, OP_SITOFP, NARROW_BITS) ||
	        extends(body, node, OP_UITOFP, NARROW_BITS);
}

static bool is_scale(const struct node *node)
{
	int power;
	return node->kind == NODE_CONSTANT && power_of_two_of(node->real, &power);
}

static bool is_power(const struct node *node)
{
	return node->kind == NODE_CONSTANT && node->integer > 0 &&
	        !(node->integer & (node->integer - 1));
}

bool node_only_shifts(const struct body *body, const struct node *node)
{
	return node->code == OP_MULI && node->type->kind == TYPE_INTEGER &&
	        (is_power(&body->node[node->argument[0]]) ||
	                is_power(&body->node[node->argument[1]]));
}

/* Bits of a factor without its extension. */
static int factor_bits(const struct body *body, const struct node *node)
{
	if (node->kind == NODE_CONSTANT)
		return constant_bits(node->integer);
	if (extends(body, node, OP_EXTSI, 64))
		return body->node[node->argument[0]].type->width;
	if (extends(body, node, OP_EXTUI, 64))
		return body->node[node->argument[0]].type->width + 1;
	return node->type->width;
}

struct operator_cost node_cost(const struct platform *platform, const struct body *body,
        const struct node *node, bool narrow)
{
	const struct node *left = &body->node[node->argument[0]];
	const struct node *right = &body->node[node->argument[1]];
	bool product = narrow && node->code == OP_MULF && node->type->width == 32;
	bool integers = node->code == OP_MULI && node->type->kind == TYPE_INTEGER;
	if (product && (is_scale(left) || is_scale(right)))
		return platform_scale(platform);
	if (product && (is_narrow(body, left) || is_narrow(body, right)))
		return platform_narrow(platform);
	if (integers && (narrow || (left->code == OP_EXTSI && right->code == OP_EXTSI)))
		return platform_product(
		        platform, factor_bits(body, left), factor_bits(body, right));
	return platform_operator(platform, node->code, node->type);
}
