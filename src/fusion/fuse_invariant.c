/* Computes once what a loop of an elementwise kernel computes in every iteration.
 *     concat(t, t) read as two operands          ->  t read as one
 *     c[j, i] = f(a[i]) for all j, i             ->  b[i] = f(a[i]); c[j, i] = b[i]
 * The readers of c then read b.  So the two equal halves of a rotary embedding's tables become half
 * a table. */
#include "fusion/fuse.h"
#include "ir/kernel_signature.h"
#include <string.h>

/* Do both operands read the same elements? */
static bool same_place(const struct op *op, int a, int b)
{
	const struct access *left = &op->kernel->operand[a];
	const struct access *right = &op->kernel->operand[b];
	return op->operand[a] == op->operand[b] && left->offset == right->offset &&
	        left->index_operand < 0 && right->index_operand < 0 &&
	        !memcmp(left->stride, right->stride,
	                sizeof *left->stride * (size_t)op->kernel->loops);
}

/* Is exactly one of them active at every point, a before b? */
static bool are_complementary(const struct kernel *kernel, int a, int b)
{
	const struct access *first = &kernel->operand[a];
	const struct access *second = &kernel->operand[b];
	return first->guards == 1 && second->guards == 1 &&
	        first->guard->loop == second->guard->loop && first->guard->low == 0 &&
	        first->guard->high == second->guard->low &&
	        second->guard->high == kernel->loop[first->guard->loop].extent;
}

static bool is_node(const struct node *node, enum node_kind kind, enum op_code code, int operand)
{
	return node->kind == kind && (kind != NODE_OP || node->code == code) &&
	        node->integer == operand;
}

/* Is the node select(active(a), a, b) or select(active(b), b, a)? */
static bool is_part_select(const struct body *body, const struct node *node, int a, int b)
{
	if (node->kind != NODE_OP || node->code != OP_SELECT)
		return false;
	const struct node *test = &body->node[node->argument[0]];
	const struct node *yes = &body->node[node->argument[1]];
	const struct node *no = &body->node[node->argument[2]];
	int first = is_node(test, NODE_OP, OP_ACTIVE, a) ? a : b;
	int second = first == a ? b : a;
	return is_node(test, NODE_OP, OP_ACTIVE, first) &&
	        is_node(yes, NODE_OPERAND, OP_NONE, first) &&
	        is_node(no, NODE_OPERAND, OP_NONE, second);
}

static bool is_part(const struct node *node, int a, int b)
{
	bool leaf =
	        node->kind == NODE_OPERAND || (node->kind == NODE_OP && node->code == OP_ACTIVE);
	return leaf && (node->integer == a || node->integer == b);
}

static bool only_read_selected(const struct body *body, int a, int b)
{
	for (int n = 0; n < body->count; n++)
		for (int k = 0; !is_part_select(body, &body->node[n], a, b) &&
		        k < body_arguments(&body->node[n]);
		        k++)
			if (is_part(&body->node[body->node[n].argument[k]], a, b))
				return false;
	return !is_part(&body->node[body->result], a, b);
}

/* Replaces every select between the parts by the first of them, read everywhere. */
static void join_parts(struct module *module, struct op *op, int a, int b)
{
	const struct body *from = &op->kernel->update;
	struct body to = { 0 };
	int *made = ARENA_ARRAY(module->arena, int, from->count + 1);
	for (int n = 0; n < from->count; n++) {
		struct node node = from->node[n];
		for (int k = 0; k < body_arguments(&node); k++)
			node.argument[k] = made[node.argument[k]];
		made[n] = is_part_select(from, &from->node[n], a, b)
		        ? body_operand(module, &to, node.type, a)
		        : body_add(module, &to, node);
	}
	to.result = made[from->result];
	op->kernel->operand[a].guards = 0;
	op->kernel->update = to;
	kernel_tidy(module, op);
}

bool fuse_parts(struct module *module, struct op *op)
{
	if (kernel_has_reduction(op->kernel))
		return false;
	for (int a = 0; a < op->operands; a++)
		for (int b = 0; b < op->operands; b++)
			if (a != b && same_place(op, a, b) && are_complementary(op->kernel, a, b) &&
			        only_read_selected(&op->kernel->update, a, b)) {
				join_parts(module, op, a, b);
				return true;
			}
	return false;
}

static bool is_loop_invariant(const struct op *op, int loop)
{
	const struct kernel *kernel = op->kernel;
	for (int j = 0; j < op->operands; j++)
		if (kernel->operand[j].stride[loop] || kernel->operand[j].index_operand >= 0 ||
		        access_guard(&kernel->operand[j], loop))
			return false;
	for (int n = 0; n < kernel->update.count; n++)
		if (is_node(&kernel->update.node[n], NODE_OP, OP_INDEX, loop))
			return false;
	return true;
}

int fuse_invariant_loop(struct module *module, const struct op *op)
{
	int digits;
	int *order = ARENA_ARRAY(module->arena, int, op->kernel->loops + 1);
	if (kernel_has_reduction(op->kernel) || kernel_is_copy(op) || !op->operands ||
	        !fuse_digits(module, op, order, &digits))
		return -1;
	for (int l = 0; l < op->kernel->loops; l++)
		if (is_loop_invariant(op, l))
			return l;
	return -1;
}

/* Removes the loop from the result; strides outside it shrink. */
static void drop_result_loop(struct module *module, struct op *op, int loop)
{
	struct kernel *kernel = op->kernel;
	int64_t below = kernel->result.stride[loop];
	int64_t trips = kernel->loop[loop].extent;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->result.stride[l] > below)
			kernel->result.stride[l] /= trips;
	kernel->loop[loop].extent = 1;
	kernel_tidy(module, op);
}

struct op *fuse_drop_loop(struct module *module, struct op *op, int loop)
{
	struct kernel *kernel = op->kernel;
	int64_t elements = type_elements(op->result[0]->type) / kernel->loop[loop].extent;
	struct op *once = kernel_new(module, op->location, kernel->name, 0, op->operands,
	        op->operand, type_shaped(module, TYPE_TENSOR, 1, &elements, kernel->type));
	once->kernel = kernel_clone(module, kernel, op->operands);
	op_insert_before(op, once);
	struct access access = access_empty(module, kernel->loops);
	for (int l = 0; l < kernel->loops; l++) {
		int64_t stride = kernel->result.stride[l];
		int64_t below = kernel->result.stride[loop];
		if (stride > below)
			stride /= kernel->loop[loop].extent;
		access.stride[l] = l == loop ? 0 : stride;
	}
	drop_result_loop(module, once, loop);
	op_set_operands(module, op, 1, once->result);
	kernel->name = text_format(module->arena, "%s_permuted", kernel->name);
	kernel->operand = arena_copy(module->arena, &access, sizeof access);
	kernel->update = (struct body){ 0 };
	kernel->update.result = body_operand(module, &kernel->update, kernel->type, 0);
	return once;
}
