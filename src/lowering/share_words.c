/* Takes a word from the iteration that has read or written it, instead of from the array.
 * Before: store f, y[a]; …; x = load y[a]; z = load y[a]      After: store f, y[a]; x = z = f
 * So an array needs fewer ports, and what is read need not wait until it is written. */
#include "lowering/lower_nest.h"

static bool same_element(const struct op *a, const struct op *b)
{
	int from = op_access(a);
	int to = op_access(b);
	if (a->operands - from != b->operands - to)
		return false;
	for (int i = 0; from + i < a->operands; i++)
		if (a->operand[from + i] != b->operand[to + i])
			return false;
	return true;
}

static bool may_write(const struct op *op, const struct value *array)
{
	if (op_writes(op, array))
		return true;
	const struct op *inner = op->region[0] ? op->region[0]->first : NULL;
	for (; inner; inner = inner->next)
		if (may_write(inner, array))
			return true;
	return false;
}

/* The word as an earlier operation of the block has it; NULL: none has, or it may have changed. */
static struct value *known_word(const struct op *load)
{
	const struct value *array = load->operand[0];
	for (const struct op *op = load->previous; op; op = op->previous) {
		if (op->code == OP_MEMREF_LOAD && same_element(op, load))
			return op->result[0];
		if (op->code == OP_MEMREF_STORE && same_element(op, load))
			return op->operand[0];
		if (may_write(op, array))
			return NULL;
	}
	return NULL;
}

/* The nearest iteration that may have written what either of them reads. */
static void set_nearest(struct module *module, const struct value *word, const struct op *load)
{
	struct op *first = word->def;
	if (!first || first->code != OP_MEMREF_LOAD || !attr_get(first, KEY_STREAM_DISTANCE))
		return;
	int64_t own = attr_integer_or(load, KEY_STREAM_DISTANCE, 1);
	if (own < attr_integer_or(first, KEY_STREAM_DISTANCE, 1))
		attr_set(module, first, KEY_STREAM_DISTANCE, attr_integer(module, own));
}

void nest_share_words(struct module *module, struct block *block)
{
	for (struct op *op = block->first, *next; op; op = next) {
		next = op->next;
		if (op->region[0])
			nest_share_words(module, op->region[0]);
		struct value *word = op->code == OP_MEMREF_LOAD ? known_word(op) : NULL;
		if (!word)
			continue;
		set_nearest(module, word, op);
		ir_replace(block, op->result[0], word);
		op_remove(op);
	}
}
