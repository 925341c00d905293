/* Rewrites 1 + tanh u and products with its like, so that GELU (tanh form) and SiLU have one
 * exponential, one addition and one division.
 * Before: 1 + tanh u                       After: 2 / (1 + exp(-2u))
 * Before: x (c / (1 + exp v))              After: (x c) / (1 + exp v)
 * A tanh alone has an exponential, a division and a polynomial for small arguments.  1 + tanh u
 * does not need the polynomial: near tanh u = -1 the sum cancels, the quotient keeps those digits.
 * Needs: fused kernels, so that the operations are in one body.
 * Guarantees: no body adds 1 to a tanh that is used once, or multiplies by such a quotient.
 * Approximating: the same real number by other operations, within 2^-22 of the 1.
 * Ends: one walk over each body. */
#include "ir/kernel_edit.h"
#include "fusion/fusion_passes.h"
#include <math.h>

struct rewriting {
	struct module *module;
	const struct body *from;
	struct body *to;
	int *uses;  /* of a node of `from` */
	int *place; /* of a node of `from` in `to` */
};

static bool is_number(const struct node *node, double number)
{
	return node->kind == NODE_CONSTANT && type_is_real(node->type) && node->real == number;
}

static bool is_op(const struct node *node, enum op_code code)
{
	return node->kind == NODE_OP && node->code == code;
}

static int constant(struct rewriting *f, const struct type *type, double real)
{
	return body_add(f->module, f->to,
	        (struct node){ .kind = NODE_CONSTANT, .type = type, .real = real });
}

static bool is_power_of_two(double number)
{
	int exponent;
	return fabs(frexp(number, &exponent)) == 0.5;
}

/* value * factor, for a power of two, which may as well scale the constant of a product. */
static int times(struct rewriting *f, int value, double factor)
{
	const struct node *node = &f->to->node[value];
	const struct type *type = node->type;
	for (int a = 0; is_power_of_two(factor) && is_op(node, OP_MULF) && a < 2; a++) {
		const struct node *by = &f->to->node[node->argument[a]];
		if (by->kind == NODE_CONSTANT)
			return times(f, node->argument[1 - a], by->real * factor);
	}
	return factor == 1.0
	        ? value
	        : body_op(f->module, f->to, OP_MULF, type, value, constant(f, type, factor), 0);
}

/* 1 + tanh u; argument a of the addition is the tanh. */
static int sum_with_tanh(struct rewriting *f, const struct node *sum, int a)
{
	const struct node *tanh = &f->from->node[sum->argument[a]];
	const struct node *one = &f->from->node[sum->argument[1 - a]];
	if (!is_op(tanh, OP_TANH) || !is_number(one, 1.0) || f->uses[sum->argument[a]] > 1)
		return -1;
	int power = body_op(f->module, f->to, OP_EXP, sum->type,
	        times(f, f->place[tanh->argument[0]], -2.0), 0, 0);
	int below = body_op(
	        f->module, f->to, OP_ADDF, sum->type, power, constant(f, sum->type, 1.0), 0);
	return body_op(f->module, f->to, OP_DIVF, sum->type, constant(f, sum->type, 2.0), below, 0);
}

/* Is the node a number over 1 + an exponential? */
static bool is_sigmoid(const struct body *body, const struct node *node)
{
	if (!is_op(node, OP_DIVF) || body->node[node->argument[0]].kind != NODE_CONSTANT ||
	        !is_op(&body->node[node->argument[1]], OP_ADDF))
		return false;
	const struct node *below = &body->node[node->argument[1]];
	const struct node *left = &body->node[below->argument[0]];
	const struct node *right = &body->node[below->argument[1]];
	return (is_op(left, OP_EXP) && is_number(right, 1.0)) ||
	        (is_op(right, OP_EXP) && is_number(left, 1.0));
}

/* x * (c / (1 + exp v)); argument a of the product is the quotient. */
static int product_with_sigmoid(struct rewriting *f, const struct node *product, int a)
{
	const struct node quotient = f->to->node[f->place[product->argument[a]]];
	if (!is_sigmoid(f->to, &quotient) || f->uses[product->argument[a]] > 1)
		return -1;
	int above = times(
	        f, f->place[product->argument[1 - a]], f->to->node[quotient.argument[0]].real);
	return body_op(f->module, f->to, OP_DIVF, product->type, above, quotient.argument[1], 0);
}

static int rewritten_node(struct rewriting *f, const struct node *node)
{
	int made = -1;
	for (int a = 0; node->kind == NODE_OP && node->type->kind == TYPE_FLOAT &&
	        node->type->width == 32 && made < 0 && a < 2;
	        a++) {
		if (node->code == OP_ADDF)
			made = sum_with_tanh(f, node, a);
		else if (node->code == OP_MULF)
			made = product_with_sigmoid(f, node, a);
	}
	return made;
}

static void rewrite_body(struct module *module, struct body *body)
{
	struct body to = { 0 };
	struct rewriting f = { module, body, &to, ARENA_ARRAY(module->arena, int, body->count + 1),
		ARENA_ARRAY(module->arena, int, body->count + 1) };
	for (int n = 0; n < body->count; n++)
		for (int a = 0; a < body_arguments(&body->node[n]); a++)
			f.uses[body->node[n].argument[a]]++;
	f.uses[body->result]++;
	for (int n = 0; n < body->count; n++) {
		struct node node = body->node[n];
		f.place[n] = rewritten_node(&f, &node);
		for (int a = 0; f.place[n] < 0 && a < body_arguments(&node); a++)
			node.argument[a] = f.place[node.argument[a]];
		f.place[n] = f.place[n] < 0 ? body_add(module, &to, node) : f.place[n];
	}
	to.result = f.place[body->result];
	body_remove_dead(module, &to);
	*body = to;
}

static void rewrite_block(struct module *module, const struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			rewrite_block(module, op->region[0]);
		if (op->code != OP_KERNEL)
			continue;
		struct body *body[] = { &op->kernel->update, &op->kernel->post };
		for (int i = 0; i < 2; i++)
			if (body_has(body[i], OP_TANH) || body_has(body[i], OP_EXP))
				rewrite_body(module, body[i]);
	}
}

bool rewrite_gelu_silu(struct pass_context *context, struct module *module)
{
	(void)context;
	rewrite_block(module, module_main(module)->region[0]);
	return true;
}
