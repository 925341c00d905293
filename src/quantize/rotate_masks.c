/* Rotates the masks of a launch of one row: a mask has the fresh row first, a cache whose newest
 * row is last needs it behind the past ones.
 *     mask[0] is of the fresh row, mask[n + 1] of past row n
 *     rotated[n] = mask[n + 1] for past rows, rotated[past] = mask[0]
 * A mask that is a function of counters and single numbers is recomputed at the other counter, so
 * no kernel shifts its elements one by one and the mask can have any number of lanes. */
#include "quantize/quantize_kv_cache.h"

/* nodes of a mask at most; a larger one is shifted */
#define MASK_NODES_MOST 64

/* the mask as a body over the keys in the order of the cache */
struct rotation {
	struct quantizer *q;
	const struct keys *keys;
	struct body body;
	VEC(struct value *) operand; /* single numbers; the first one counts the past rows */
	int fresh;                   /* node: is it the fresh row? */
	int place;                   /* node: the key's index in the mask */
};

static int mask_node(struct rotation *r, struct value *value);

/* An element of a constant of i1 or i8.  false: it is no such constant. */
static bool constant_integer(const struct op *op, int64_t index, int64_t *result)
{
	const struct attr *dense = attr_get(op, KEY_VALUE);
	const struct type *scalar = type_scalar(op->result[0]->type);
	if (!dense || dense->kind != ATTR_DENSE || scalar->kind != TYPE_INTEGER ||
	        (scalar->width != 1 && scalar->width != 8))
		return false;
	*result = ((const signed char *)dense->data)[dense->splat ? 0 : index];
	return true;
}

/* Node: a constant of i1 or i8 whose past rows are alike.  -1: it is none. */
static int constant_node(struct rotation *r, const struct op *op)
{
	struct module *module = r->q->module;
	const struct type *scalar = type_scalar(op->result[0]->type);
	int64_t at_fresh, at_past, other;
	if (!constant_integer(op, 0, &at_fresh) || !constant_integer(op, 1, &at_past))
		return -1;
	for (int64_t n = 2; n < r->keys->extent; n++)
		if (!constant_integer(op, n, &other) || other != at_past)
			return -1;
	int first = body_integer(module, &r->body, scalar, at_fresh);
	int rest = body_integer(module, &r->body, scalar, at_past);
	return body_op(module, &r->body, OP_SELECT, scalar, r->fresh, first, rest);
}

/* Does the kernel compute one element a key, of the same key's elements and of single numbers? */
static bool is_elementwise(const struct rotation *r, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	bool good = kernel->loops == 1 && kernel->loop[0].extent == r->keys->extent &&
	        !kernel_has_reduction(kernel) && !kernel->post.count &&
	        kernel->result.stride[0] == 1 && !kernel->result.offset &&
	        !body_has(&kernel->update, OP_ACTIVE);
	for (int j = 0; good && j < op->operands; j++) {
		const struct access *access = &kernel->operand[j];
		bool one = type_elements(op->operand[j]->type) == 1 && !access->stride[0];
		good = !access->guards && access->index_operand < 0 && !access->offset &&
		        (one || access->stride[0] == 1);
	}
	return good;
}

/* Node: what an elementwise kernel computes.  -1: it reads what cannot be rotated. */
static int kernel_node(struct rotation *r, const struct op *op)
{
	const struct body *from = &op->kernel->update;
	int *map = ARENA_ARRAY(r->q->module->arena, int, from->count + 1);
	for (int i = 0; i < from->count; i++) {
		struct node node = from->node[i];
		if (r->body.count >= MASK_NODES_MOST)
			return -1;
		for (int k = 0; k < body_arguments(&node); k++)
			node.argument[k] = map[node.argument[k]];
		if (node.kind == NODE_OPERAND)
			map[i] = mask_node(r, op->operand[node.integer]);
		else if (node.kind == NODE_OP && node.code == OP_INDEX)
			map[i] = r->place;
		else
			map[i] = body_add(r->q->module, &r->body, node);
		if (map[i] < 0)
			return -1;
	}
	return map[from->result];
}

static int single_node(struct rotation *r, struct value *value)
{
	size_t j = 0;
	while (j < r->operand.count && r->operand.data[j] != value)
		j++;
	if (j == r->operand.count)
		VEC_PUSH(r->q->module->arena, &r->operand, value);
	return body_operand(r->q->module, &r->body, type_scalar(value->type), (int)j);
}

/* Node: the value's element for the key of the iteration.  -1: it is no function of counters and
 * single numbers. */
static int mask_node(struct rotation *r, struct value *value)
{
	if (type_elements(value->type) == 1)
		return single_node(r, value);
	if (type_elements(value->type) != r->keys->extent || !value->def)
		return -1;
	if (value->def->code == OP_CONSTANT)
		return constant_node(r, value->def);
	if (value->def->code != OP_KERNEL || !is_elementwise(r, value->def))
		return -1;
	return kernel_node(r, value->def);
}

/* Adds the nodes `fresh` and `place` of row n of the cache: is it the fresh one, and its index in
 * the mask. */
static void add_place(struct rotation *r)
{
	struct module *module = r->q->module;
	const struct type *index = type_index(module);
	VEC_PUSH(module->arena, &r->operand, r->keys->count);
	int number = body_index(module, &r->body, 0);
	int past = keys_past(r->q, r->keys, &r->body, 0);
	const struct node same = { .kind = NODE_OP,
		.code = OP_CMPI,
		.type = type_integer(module, 1),
		.argument = { number, past },
		.integer = CMPI_EQ };
	r->fresh = body_add(module, &r->body, same);
	int one = body_integer(module, &r->body, index, 1);
	int next = body_op(module, &r->body, OP_ADDI, index, number, one, 0);
	int first = body_integer(module, &r->body, index, 0);
	r->place = body_op(module, &r->body, OP_SELECT, index, r->fresh, first, next);
}

static struct op *rotated_kernel(struct rotation *r, const struct value *mask)
{
	const struct kernel_spec spec = { .at = mask->def->next,
		.name = mask->def->kernel->name,
		.suffix = "rotated",
		.loops = 1,
		.operands = (int)r->operand.count,
		.operand = r->operand.data,
		.result = mask->type };
	struct op *op = quantize_kernel(r->q, &spec);
	op->kernel->loop[0].extent = r->keys->extent;
	op->kernel->result.stride[0] = 1;
	return op;
}

/* The mask recomputed.  NULL: it is no function of counters and single numbers. */
static struct op *compute_rotated(struct quantizer *q, const struct keys *keys, struct value *mask)
{
	struct rotation r = { .q = q, .keys = keys };
	add_place(&r);
	int result = mask_node(&r, mask);
	if (result < 0)
		return NULL;
	r.body.result = result;
	body_remove_dead(q->module, &r.body);
	struct op *op = rotated_kernel(&r, mask);
	op->kernel->update = r.body;
	return op;
}

/* The mask's elements shifted by one. */
static struct op *shift_numbers(struct quantizer *q, const struct keys *keys, struct value *mask)
{
	struct module *module = q->module;
	const struct type *scalar = type_scalar(mask->type);
	struct rotation r = { .q = q, .keys = keys };
	add_place(&r);
	VEC_PUSH(module->arena, &r.operand, mask);
	VEC_PUSH(module->arena, &r.operand, mask);
	int row = body_operand(module, &r.body, scalar, 1);
	int other = body_operand(module, &r.body, scalar, 2);
	r.body.result = body_op(module, &r.body, OP_SELECT, scalar, r.fresh, row, other);
	body_remove_dead(module, &r.body);
	struct op *op = rotated_kernel(&r, mask);
	struct access *shifted = &op->kernel->operand[2];
	shifted->stride[0] = shifted->offset = 1;
	access_add_guard(module, shifted,
	        (struct guard_range){ .loop = 0, .low = 0, .high = keys->extent - 1 });
	op->kernel->update = r.body;
	return op;
}

static struct value *rotate_mask(struct quantizer *q, const struct keys *keys, struct value *mask)
{
	for (size_t i = 0; i < q->rotated_masks.count; i++)
		if (q->rotated_masks.data[i].from == mask)
			return q->rotated_masks.data[i].to;
	struct op *op = compute_rotated(q, keys, mask);
	if (!op)
		op = shift_numbers(q, keys, mask);
	const struct rotated_mask rotated = { mask, op->result[0] };
	VEC_PUSH(q->module->arena, &q->rotated_masks, rotated);
	return op->result[0];
}

void keys_rotate_masks(struct quantizer *q, struct attention *a)
{
	struct op *op = a->scores.op;
	for (int j = 0; j < op->operands; j++)
		if (j != a->scores.past && j != a->scores.fresh &&
		        op->kernel->operand[j].stride[a->scores.key])
			op->operand[j] = rotate_mask(q, &a->keys, op->operand[j]);
}
