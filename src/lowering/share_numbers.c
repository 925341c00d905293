/* Computes what is the same once: of numbers that are alike, one stands in the outermost block in
 * which its operands are known, and what is the same in all lanes stands in front of them.
 * Before: for l in lanes: x[l][i * 40 + k] …, y[l][i * 40 + k] …, f * z[k % 8] * x[l][i] …
 * After:  a = i * 40 + k; b = f * z[k % 8]; for l in lanes: x[l][a] …, y[l][a] …, b * x[l][i] … */
#include "lowering/lower_nest.h"

/* Is there a block of lanes between the op and this block? */
static bool is_inside(const struct block *block, const struct op *loop)
{
	for (; block; block = block->parent->parent)
		if (block->parent == loop)
			return true;
		else if (block->parent->code == OP_FUNC)
			return false;
	return false;
}

static bool depends_on(const struct op *op, const struct op *loop)
{
	for (int i = 0; i < op->operands; i++) {
		const struct value *operand = op->operand[i];
		if (is_inside(operand->def ? operand->def->parent : operand->block, loop))
			return true;
	}
	return false;
}

/* Does the op compute from its operands alone? */
static bool is_computed(const struct op *op)
{
	return op->results == 1 && !op_accessed(op) && !op->region[0] && op->code != OP_CONSTANT &&
	        op->code != OP_POP;
}

static bool is_number(const struct op *op)
{
	if (!is_computed(op))
		return false;
	const struct type *type = op->result[0]->type;
	return type->kind == TYPE_INDEX || (type->kind == TYPE_INTEGER && type->width == 1);
}

/* A word that all lanes read, before one of them writes the array. */
static bool is_first_read(const struct op *op)
{
	if (op->code != OP_MEMREF_LOAD)
		return false;
	for (const struct op *before = op->previous; before; before = before->previous)
		if (before->code == OP_FOR || op_writes(before, op->operand[0]))
			return false;
	return true;
}

static bool same_attr(const struct attr *a, const struct attr *b)
{
	if (a == b)
		return true;
	if (a->kind != b->kind)
		return false;
	if (a->kind == ATTR_INTEGER)
		return a->integer == b->integer;
	if (a->kind != ATTR_MAP || a->map.dims != b->map.dims || a->map.results != 1)
		return false;
	for (int d = 0; d < a->map.dims; d++)
		if (affine_at(a->map, 0, d) != affine_at(b->map, 0, d))
			return false;
	return affine_constant(a->map, 0) == affine_constant(b->map, 0);
}

static bool is_alike(const struct op *a, const struct op *b)
{
	if (a->code != b->code || a->operands != b->operands || a->attributes != b->attributes ||
	        a->result[0]->type != b->result[0]->type)
		return false;
	for (int i = 0; i < a->operands; i++)
		if (a->operand[i] != b->operand[i])
			return false;
	for (int i = 0; i < a->attributes; i++)
		if (a->attribute[i].name != b->attribute[i].name ||
		        !same_attr(a->attribute[i].value, b->attribute[i].value))
			return false;
	return true;
}

/* The same number earlier in the block, else NULL. */
static struct op *earlier(const struct op *op)
{
	for (struct op *before = op->previous; before; before = before->previous)
		if (before->results == 1 && is_number(before) && is_alike(before, op))
			return before;
	return NULL;
}

static void share_in_block(struct block *block)
{
	for (struct op *op = block->first, *next; op; op = next) {
		next = op->next;
		struct op *known = is_number(op) ? earlier(op) : NULL;
		if (!known)
			continue;
		ir_replace(block, op->result[0], known->result[0]);
		op_remove(op);
	}
}

static void hoist(struct op *loop)
{
	for (struct op *op = loop->region[0]->first, *next; op; op = next) {
		next = op->next;
		if (!(is_computed(op) || is_first_read(op)) || depends_on(op, loop))
			continue;
		op_remove(op);
		op_insert_before(loop, op);
	}
}

static bool uses(const struct op *op, const struct value *value)
{
	for (int i = 0; i < op->operands; i++)
		if (op->operand[i] == value)
			return true;
	return false;
}

/* Does another op of the block use the number, or the loop as a bound? */
static bool is_used_outside(const struct op *number, const struct op *loop)
{
	for (const struct op *op = number->next; op; op = op->next)
		if (uses(op, number->result[0]) || op == loop)
			return uses(op, number->result[0]) || op != loop;
	return true;
}

/* The only loop of a parallel one, parallel too. */
static struct op *parallel_inside(const struct op *loop)
{
	struct op *inner = NULL;
	for (struct op *op = loop->region[0]->first; op; op = op->next) {
		if (op->code == OP_FOR && inner)
			return NULL;
		inner = op->code == OP_FOR ? op : inner;
	}
	bool both = inner && attr_get(loop, KEY_STREAM_PARALLEL) &&
	        attr_get(inner, KEY_STREAM_PARALLEL);
	return both ? inner : NULL;
}

/* Numbers between two parallel loops move into the inner one, so that both are one pipeline. */
static void sink(const struct op *loop)
{
	struct op *inner = parallel_inside(loop);
	for (struct op *op = inner ? inner->previous : NULL, *before; op; op = before) {
		before = op->previous;
		if (!is_number(op) || is_used_outside(op, inner))
			continue;
		op_remove(op);
		op_insert_before(inner->region[0]->first, op);
	}
}

void nest_share_numbers(struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code != OP_FOR)
			continue;
		sink(op);
		nest_share_numbers(op->region[0]);
		if (attr_get(op, KEY_STREAM_LANES))
			hoist(op);
	}
	share_in_block(block);
}
