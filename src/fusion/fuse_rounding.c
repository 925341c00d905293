/* Makes one operation of a number's rounding to an integer of few bits and its limits.
 * Before: fptosi(minimumf(maximumf(addf(roundeven(x), zero), low), high))
 * After:  trunci(addi(minsi(maxsi(round_saturate(x), low - zero), high - zero), zero))
 * Rounding, limits and conversion of a float are four operations of many gates, two of them with
 * DSPs; round_saturate only shifts, and limits of 16 bits are small.
 * Needs: fused kernels, so that the operations are in one body.
 * Guarantees: no body converts a limited and rounded number that nothing else reads.
 * Exact: the same integer of every number; NaN had none.
 * Ends: one walk over each body. */
#include "ir/kernel_edit.h"
#include "fusion/fusion_passes.h"
#include <math.h>

#define ROUNDED_BITS 16
/* The largest number that round_saturate gives; its negative is the least. */
#define ROUNDED_MOST 32767

struct rounding_step { /* of node `number` */
	int number;
	double zero; /* is added */
	double low, high;
};

static bool is_op(const struct node *node, enum op_code code)
{
	return node->kind == NODE_OP && node->code == code;
}

/* Argument of a commutative operation beside an integral constant; -1: it has none. */
static int beside_constant(const struct body *body, const struct node *node, double *constant)
{
	for (int a = 0; a < 2; a++) {
		const struct node *by = &body->node[node->argument[a]];
		if (by->kind == NODE_CONSTANT && by->real == floor(by->real)) {
			*constant = by->real;
			return node->argument[1 - a];
		}
	}
	return -1;
}

/* The limit that the node is, if none has been found on this side; NULL: it is none. */
static double *limit_of(const struct node *node, struct rounding_step *rounding)
{
	if (is_op(node, OP_MAXIMUMF) || is_op(node, OP_MAXNUMF))
		return rounding->low == -INFINITY ? &rounding->low : NULL;
	if (is_op(node, OP_MINIMUMF) || is_op(node, OP_MINNUMF))
		return rounding->high == INFINITY ? &rounding->high : NULL;
	return NULL;
}

/* Walks from what is converted to what is rounded; false: it is no such chain that nothing else
 * reads. */
static bool find_rounding(
        const struct body *body, const int *uses, int at, struct rounding_step *rounding)
{
	*rounding = (struct rounding_step){ .low = -INFINITY, .high = INFINITY };
	for (double *limit; uses[at] == 1 && (limit = limit_of(&body->node[at], rounding));) {
		at = beside_constant(body, &body->node[at], limit);
		if (at < 0)
			return false;
	}
	if (uses[at] == 1 && is_op(&body->node[at], OP_ADDF)) {
		at = beside_constant(body, &body->node[at], &rounding->zero);
		if (at < 0)
			return false;
	}
	const struct node *node = &body->node[at];
	rounding->number = node->argument[0];
	return uses[at] == 1 && is_op(node, OP_ROUNDEVEN) && node->type->width == 32;
}

/* Are the limits within what a result of so many bits can have, and what round_saturate gives? */
static bool fits(const struct rounding_step *rounding, const struct node *conversion)
{
	bool is_signed = conversion->code == OP_FPTOSI;
	double numbers = ldexp(1, conversion->type->width - is_signed);
	return conversion->type->width < ROUNDED_BITS && rounding->low <= rounding->high &&
	        rounding->low >= (is_signed ? -numbers : 0) && rounding->high < numbers &&
	        rounding->low - rounding->zero > -ROUNDED_MOST &&
	        rounding->high - rounding->zero < ROUNDED_MOST &&
	        fabs(rounding->zero) < ROUNDED_MOST;
}

static int add_rounding(struct module *module, struct body *to, int number,
        const struct rounding_step *rounding, const struct type *type)
{
	const struct type *wide = type_integer(module, ROUNDED_BITS);
	int low = body_integer(module, to, wide, (int64_t)(rounding->low - rounding->zero));
	int high = body_integer(module, to, wide, (int64_t)(rounding->high - rounding->zero));
	int made = body_op(module, to, OP_ROUND_SATURATE, wide, number, 0, 0);
	made = body_op(module, to, OP_MAXSI, wide, made, low, 0);
	made = body_op(module, to, OP_MINSI, wide, made, high, 0);
	if (rounding->zero) {
		int zero = body_integer(module, to, wide, (int64_t)rounding->zero);
		made = body_op(module, to, OP_ADDI, wide, made, zero, 0);
	}
	return body_op(module, to, OP_TRUNCI, type, made, 0, 0);
}

static void fuse_in_body(struct module *module, struct body *body)
{
	struct body to = { 0 };
	int *uses = ARENA_ARRAY(module->arena, int, body->count + 1);
	int *place = ARENA_ARRAY(module->arena, int, body->count + 1);
	for (int n = 0; n < body->count; n++)
		for (int a = 0; a < body_arguments(&body->node[n]); a++)
			uses[body->node[n].argument[a]]++;
	for (int n = 0; n < body->count; n++) {
		struct node node = body->node[n];
		struct rounding_step found;
		if ((is_op(&node, OP_FPTOSI) || is_op(&node, OP_FPTOUI)) &&
		        find_rounding(body, uses, node.argument[0], &found) &&
		        fits(&found, &node)) {
			place[n] =
			        add_rounding(module, &to, place[found.number], &found, node.type);
			continue;
		}
		for (int a = 0; a < body_arguments(&node); a++)
			node.argument[a] = place[node.argument[a]];
		place[n] = body_add(module, &to, node);
	}
	to.result = place[body->result];
	body_remove_dead(module, &to);
	*body = to;
}

static void fuse_in_block(struct module *module, const struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			fuse_in_block(module, op->region[0]);
		if (op->code != OP_KERNEL)
			continue;
		struct body *body[] = { &op->kernel->update, &op->kernel->post };
		for (int i = 0; i < 2; i++)
			if (body_has(body[i], OP_ROUNDEVEN))
				fuse_in_body(module, body[i]);
	}
}

bool fuse_rounding(struct pass_context *context, struct module *module)
{
	(void)context;
	fuse_in_block(module, module_main(module)->region[0]);
	return true;
}
