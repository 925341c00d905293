/* Merges kernels that compute the same from the same operands, and removes copies of a whole tensor
 * to the same addresses.
 * Before: a = f(x); b = f(x)      After: a = f(x), all readers of b read a
 * Needs: kernels.
 * Guarantees: two results of main are never merged, each has a kernel of its own.
 * Exact.
 * Ends: one walk in program order, so operands are merged when a kernel is looked up. */
#include "ir/kernel_signature.h"
#include "tensor/merge.h"
#include "tensor/tensor_passes.h"

struct merge {
	struct module *module;
	struct map seen; /* kernels by signature and operands */
	int values;      /* values that have a number */
};

/* In value->uses: is the value a result of main, or of a loop's body?  Does a loop read it, or an
 * operation that reads its rows?  Its type then matters; to kernels only its addresses do. */
enum { FREE = 0, RETURNED = 1, TYPED = 2 };

static int value_number(struct merge *merge, struct value *value)
{
	if (!value->id)
		value->id = ++merge->values;
	return value->id;
}

/* Reads replacing values; such a value is the `data` of the replaced one. */
static void replace_operands(struct op *op)
{
	for (int i = 0; i < op->operands; i++)
		if (op->operand[i]->data)
			op->operand[i] = op->operand[i]->data;
}

/* Removes op, whose result is the value `by`.  false: both are results of main. */
static bool replace(struct op *op, struct value *by)
{
	struct value *result = op->result[0];
	bool typed = result->uses == TYPED || by->uses == TYPED;
	if (typed && result->type != by->type)
		return false;
	if (result->uses == TYPED && by->uses == FREE)
		by->uses = TYPED;
	if (result->uses == RETURNED) {
		bool kernel = by->def && by->def->code == OP_KERNEL;
		if (!kernel || by->uses == RETURNED)
			return false;
		by->type = result->type;
		by->uses = RETURNED;
	}
	result->data = by;
	op_remove(op);
	return true;
}

static void merge_kernel(struct merge *merge, struct op *op)
{
	if (kernel_is_identity(op) && replace(op, op->operand[0]))
		return;
	struct text key = text_new(merge->module->arena);
	kernel_signature(op, NULL, &key);
	for (int i = 0; i < op->operands; i++)
		text_add(&key, " %d", value_number(merge, op->operand[i]));
	struct op *same = map_get(&merge->seen, key.data);
	if (!same)
		map_set(&merge->seen, key.data, op);
	else
		replace(op, same->result[0]);
}

static void clear_arguments(struct block *block)
{
	for (int i = 0; i < block->arguments; i++) {
		block->argument[i]->data = NULL;
		block->argument[i]->id = 0;
		block->argument[i]->uses = FREE;
	}
}

static void clear(struct op *op, void *context)
{
	(void)context;
	for (int i = 0; i < op->results; i++) {
		op->result[i]->data = NULL;
		op->result[i]->id = 0;
		op->result[i]->uses = FREE;
	}
	if (op->code == OP_FOR)
		clear_arguments(op->region[0]);
}

/* Kernels of a loop's body are merged with one another. */
static void merge_ops(struct merge *merge, struct block *block)
{
	struct op *next;
	for (int i = 0; i < block->last->operands; i++)
		block->last->operand[i]->uses = RETURNED;
	merge->seen = map_new(merge->module->arena);
	for (struct op *op = block->first; op; op = next) {
		next = op->next;
		replace_operands(op);
		if (op->code == OP_KERNEL)
			merge_kernel(merge, op);
		if (op->code == OP_FOR) {
			struct merge inner = { .module = merge->module, .values = merge->values };
			merge_ops(&inner, op->region[0]);
			merge->values = inner.values;
		}
	}
}

static void mark_typed(struct op *op, void *context)
{
	(void)context;
	if (op->code == OP_FOR || op->code == OP_LAYER_ROW || op->code == OP_INSERT_LAYER)
		for (int i = 0; i < op->operands; i++)
			op->operand[i]->uses = TYPED;
}

void merge_block(struct module *module, struct block *block)
{
	struct merge merge = { .module = module };
	clear_arguments(block);
	ir_walk(block, clear, NULL);
	ir_walk(block, mark_typed, NULL);
	merge_ops(&merge, block);
}

bool merge_common(struct pass_context *context, struct module *module)
{
	(void)context;
	merge_block(module, module_main(module)->region[0]);
	return true;
}
