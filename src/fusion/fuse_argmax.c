/* Fuses an argmax, exported as two reductions, into one.
 * Before: m = max x[i];  y = min of (x[i] == m ? i : beyond)
 * After:  k = max of key(x[i]) * 2^32 + (n - 1 - i);  y = n - 1 - (k mod 2^32)
 * key: the bits of x as an integer with the order of the numbers, NaN the largest.  Of equal
 * numbers the first one wins.  The second reduction could only begin after the first, with all
 * numbers (of logits a vocabulary) buffered.
 * Needs: fused kernels.
 * Guarantees: no such pair is left.
 * The comparison may be (x[i] == m or x[i] != x[i]), which holds for NaN too.
 * Exact, but for NaN without the latter: the first one is found, where nothing equalled the
 * maximum.
 * Ends: each success removes a reader of a maximum. */
#include "ir/kernel_edit.h"
#include "fusion/fusion_passes.h"
#include <math.h>
#include <string.h>

#define INDEX_MOST ((int64_t)INT32_MAX)

struct argmax_search {
	struct module *module;
	struct op *op;               /* the second reduction */
	const struct op *max_kernel; /* the first */
	int read;                    /* operand of op: what it found */
	int term;                    /* node of op's update: x[i] */
	int loop;                    /* the reduction */
};

static const struct node *argument(const struct body *body, const struct node *node, int number)
{
	return &body->node[node->argument[number]];
}

static bool is_op(const struct node *node, enum op_code code)
{
	return node->kind == NODE_OP && node->code == code;
}

/* One reduction loop of several points, an index in which fits a half. */
static int only_reduction(const struct kernel *kernel)
{
	int found = -1;
	for (int l = 0; l < kernel->loops; l++) {
		if (kernel->loop[l].reduction &&
		        (found >= 0 || kernel->loop[l].run_time ||
		                kernel->loop[l].extent > INDEX_MOST))
			return -1;
		found = kernel->loop[l].reduction ? l : found;
	}
	return found;
}

/* Integers that widen or narrow the counter, whose value they keep. */
static bool is_counter(const struct body *body, const struct node *node, int loop)
{
	while (is_op(node, OP_INDEX_CAST) || is_op(node, OP_TRUNCI) || is_op(node, OP_EXTSI)) {
		if (node->type->kind == TYPE_INTEGER && node->type->width < 32)
			return false;
		node = argument(body, node, 0);
	}
	return is_op(node, OP_INDEX) && node->integer == loop;
}

/* The operand of the first reduction that is operand j of the second: the same numbers in the
 * same order.  -1: none. */
static int counterpart(const struct argmax_search *s, int j)
{
	for (int i = 0; i < s->max_kernel->operands; i++)
		if (s->max_kernel->operand[i] == s->op->operand[j] &&
		        access_same(&s->max_kernel->kernel->operand[i], &s->op->kernel->operand[j],
		                s->op->kernel->loops))
			return i;
	return -1;
}

static bool same_node(const struct argmax_search *s, int first, int second)
{
	const struct node *left = &s->max_kernel->kernel->update.node[first];
	const struct node *right = &s->op->kernel->update.node[second];
	if (left->kind != right->kind || left->type != right->type)
		return false;
	if (right->kind == NODE_OPERAND)
		return right->integer != s->read &&
		        left->integer == counterpart(s, (int)right->integer);
	if (right->kind == NODE_CONSTANT)
		return left->integer == right->integer && left->real == right->real;
	if (right->kind != NODE_OP || left->code != right->code ||
	        left->integer != right->integer || right->code == OP_ACTIVE)
		return false;
	for (int a = 0; a < body_arguments(right); a++)
		if (!same_node(s, left->argument[a], right->argument[a]))
			return false;
	return true;
}

/* max(acc, x) over the same loops, read where it belongs. */
static bool is_max_reduction(const struct argmax_search *s)
{
	const struct kernel *first = s->max_kernel->kernel;
	const struct kernel *second = s->op->kernel;
	const struct access *read = &second->operand[s->read];
	int term;
	if (first->post.count || first->type->kind != TYPE_FLOAT || first->type->width != 32 ||
	        first->loops != second->loops || kernel_combine(first, &term) != OP_MAXIMUMF)
		return false;
	if (first->init != -INFINITY || !access_is_plain(read) || read->offset ||
	        first->result.offset)
		return false;
	for (int l = 0; l < first->loops; l++)
		if (first->loop[l].extent != second->loop[l].extent ||
		        first->loop[l].reduction != second->loop[l].reduction ||
		        read->stride[l] != first->result.stride[l])
			return false;
	return same_node(s, term, s->term);
}

/* Both nodes of one body compute the same. */
static bool same_value(const struct body *body, int left, int right)
{
	const struct node *a = &body->node[left];
	const struct node *b = &body->node[right];
	if (left == right)
		return true;
	if (a->kind != b->kind || a->type != b->type || a->code != b->code ||
	        a->integer != b->integer || a->real != b->real)
		return false;
	for (int i = 0; i < body_arguments(a); i++)
		if (!same_value(body, a->argument[i], b->argument[i]))
			return false;
	return true;
}

/* `same` without a comparison of a number with itself that is joined to it by or; that number or
 * -1 in `itself`. */
static const struct node *without_nan(const struct body *body, const struct node *same, int *itself)
{
	*itself = -1;
	for (int a = 0; a < 2 && is_op(same, OP_ORI); a++) {
		const struct node *apart = argument(body, same, a);
		if (is_op(apart, OP_CMPF) &&
		        (apart->integer == CMPF_UNE || apart->integer == CMPF_UNO) &&
		        same_value(body, apart->argument[0], apart->argument[1])) {
			*itself = apart->argument[0];
			return argument(body, same, 1 - a);
		}
	}
	return same;
}

/* min(acc, x == m ? i : beyond), of the largest m.  false: it is something else. */
static bool is_index_reduction(struct argmax_search *s)
{
	const struct kernel *kernel = s->op->kernel;
	const struct body *body = &kernel->update;
	int term, itself;
	s->loop = only_reduction(kernel);
	if (s->loop < 0 || kernel->post.count || kernel->type->width < 32 ||
	        kernel_combine(kernel, &term) != OP_MINSI || !is_op(&body->node[term], OP_SELECT))
		return false;
	const struct node *select = &body->node[term];
	const struct node *same = without_nan(body, argument(body, select, 0), &itself);
	const struct node *beyond = argument(body, select, 2);
	if (!is_op(same, OP_CMPF) || same->integer != CMPF_OEQ ||
	        !is_counter(body, argument(body, select, 1), s->loop) ||
	        beyond->kind != NODE_CONSTANT || beyond->integer < kernel->loop[s->loop].extent ||
	        kernel->init < (double)kernel->loop[s->loop].extent)
		return false;
	for (int a = 0; a < 2; a++) {
		const struct node *read = argument(body, same, a);
		if (read->kind != NODE_OPERAND || !s->op->operand[read->integer]->def ||
		        s->op->operand[read->integer]->def->code != OP_KERNEL)
			continue;
		s->read = (int)read->integer;
		s->term = same->argument[1 - a];
		s->max_kernel = s->op->operand[s->read]->def;
		if (itself >= 0 && !same_value(body, itself, s->term))
			continue;
		if (is_max_reduction(s))
			return true;
	}
	return false;
}

/* Whether the number with these bits is NaN, whatever its sign. */
static int is_nan(struct module *module, struct body *body, int bits)
{
	const struct type *half = type_integer(module, 32);
	int magnitude = body_integer(module, body, half, INT32_MAX);
	int infinity = body_integer(module, body, half, 0x7f800000);
	int size = body_op(module, body, OP_ANDI, half, bits, magnitude, 0);
	return body_add(module, body,
	        (struct node){ .kind = NODE_OP,
	                .code = OP_CMPI,
	                .type = type_integer(module, 1),
	                .argument = { size, infinity },
	                .integer = CMPI_SGT });
}

/* The bits of a negative number fall as it rises; those of -0 become those of 0. */
static int key_of(struct module *module, struct body *body, int number)
{
	const struct type *half = type_integer(module, 32);
	const struct type *whole = type_integer(module, 64);
	int bits = body_op(module, body, OP_BITCAST, half, number, 0, 0);
	int zero = body_integer(module, body, half, 0);
	int turned = body_op(
	        module, body, OP_SUBI, half, body_integer(module, body, half, INT32_MIN), bits, 0);
	int negative = body_add(module, body,
	        (struct node){ .kind = NODE_OP,
	                .code = OP_CMPI,
	                .type = type_integer(module, 1),
	                .argument = { bits, zero },
	                .integer = CMPI_SLT });
	int number_key = body_op(module, body, OP_SELECT, half, negative, turned, bits);
	int nan = is_nan(module, body, bits);
	int largest = body_integer(module, body, half, INT32_MAX);
	int half_key = body_op(module, body, OP_SELECT, half, nan, largest, number_key);
	int ordered = body_op(module, body, OP_EXTSI, whole, half_key, 0, 0);
	return body_op(module, body, OP_MULI, whole, ordered,
	        body_integer(module, body, whole, (int64_t)1 << 32), 0);
}

static struct body both_body(const struct argmax_search *s)
{
	struct module *module = s->module;
	const struct type *whole = type_integer(module, 64);
	struct body body = { 0 };
	struct body from = s->op->kernel->update;
	from.result = s->term;
	int key = key_of(module, &body,
	        body_rewrite(module, &body, &from, (struct body_map){ .accumulator = -1 }));
	int index = body_op(
	        module, &body, OP_INDEX_CAST, whole, body_index(module, &body, s->loop), 0, 0);
	int behind = body_op(module, &body, OP_SUBI, whole,
	        body_integer(module, &body, whole, s->op->kernel->loop[s->loop].extent - 1), index,
	        0);
	int term = body_op(module, &body, OP_ADDI, whole, key, behind, 0);
	int acc = body_add(module, &body, (struct node){ .kind = NODE_ACCUMULATOR, .type = whole });
	body.result = body_op(module, &body, OP_MAXSI, whole, acc, term, 0);
	body_remove_dead(module, &body);
	return body;
}

/* An elementwise kernel: n - 1 - the low half. */
static void take_index(const struct argmax_search *s, struct op *both)
{
	struct module *module = s->module;
	const struct kernel *searched = s->op->kernel;
	const struct type *half = type_integer(module, 32);
	const struct type *whole = type_integer(module, 64);
	const struct type *type = searched->type;
	struct op *op = kernel_new(module, s->op->location,
	        text_format(module->arena, "%s_index", searched->name), searched->loops, 1,
	        both->result, s->op->result[0]->type);
	struct kernel *kernel = op->kernel;
	memcpy(kernel->loop, searched->loop, sizeof *kernel->loop * (size_t)kernel->loops);
	kernel->loop[s->loop] = (struct loop){ .extent = 1 };
	kernel->operand[0] = access_copy(module, &searched->result, searched->loops);
	kernel->result = access_copy(module, &searched->result, searched->loops);
	int key = body_operand(module, &kernel->update, whole, 0);
	int low = body_op(module, &kernel->update, OP_TRUNCI, half, key, 0, 0);
	int index = body_op(module, &kernel->update, OP_SUBI, half,
	        body_integer(module, &kernel->update, half, searched->loop[s->loop].extent - 1),
	        low, 0);
	kernel->update.result = type->width > 32
	        ? body_op(module, &kernel->update, OP_EXTSI, type, index, 0, 0)
	        : index;
	op_insert_before(s->op, op);
	kernel_tidy(module, op);
	ir_replace(s->op->parent, s->op->result[0], op->result[0]);
	op_remove(s->op);
}

static void fuse(const struct argmax_search *s)
{
	struct module *module = s->module;
	const struct type *old = s->op->result[0]->type;
	const struct type *type =
	        type_shaped(module, TYPE_TENSOR, old->rank, old->shape, type_integer(module, 64));
	struct op *both = kernel_new(module, s->op->location,
	        text_format(module->arena, "%s_argmax", s->op->kernel->name), s->op->kernel->loops,
	        s->op->operands, s->op->operand, type);
	struct kernel *kernel = both->kernel;
	memcpy(kernel->loop, s->op->kernel->loop, sizeof *kernel->loop * (size_t)kernel->loops);
	for (int j = 0; j < s->op->operands; j++)
		kernel->operand[j] = access_copy(module, &s->op->kernel->operand[j], kernel->loops);
	kernel->result = access_copy(module, &s->op->kernel->result, kernel->loops);
	kernel->update = both_body(s);
	kernel->init = (double)INT64_MIN;
	op_insert_before(s->op, both);
	kernel_tidy(module, both);
	take_index(s, both);
}

bool fuse_argmax(struct pass_context *context, struct module *module)
{
	struct block *body = module_main(module)->region[0];
	(void)context;
	for (struct op *op = body->first, *next; op; op = next) {
		struct argmax_search s = { .module = module, .op = op };
		next = op->next;
		if (op->code == OP_KERNEL && is_index_reduction(&s))
			fuse(&s);
	}
	ir_count_uses(body);
	for (struct op *op = body->first, *next; op; op = next) {
		next = op->next;
		if (op->code == OP_KERNEL && !op->result[0]->uses)
			op_remove(op);
	}
	return true;
}
