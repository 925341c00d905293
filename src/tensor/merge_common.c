/* Kernels that compute the same from the same operands become one; copies of a whole tensor to
 * the same addresses vanish. Exact.  One pass in program order, so that operands are already
 * merged when a kernel is looked up; linear in the number of kernels. Two results of main are
 * never merged: each keeps a kernel of its own. */
#include "ir/kernel_signature.h"
#include "tensor/merge.h"
#include "tensor/tensor_passes.h"

struct merge {
	struct module *module;
	struct map seen;
	int values; /* numbered so far */
};

enum { FREE = 0, RETURNED = 1 };

static int number(struct merge *merge, struct value *value)
{
	if (!value->id)
		value->id = ++merge->values;
	return value->id;
}

/* value->data: what the value was replaced by. */
static void follow(struct op *op)
{
	for (int i = 0; i < op->operands; i++)
		if (op->operand[i]->data)
			op->operand[i] = op->operand[i]->data;
}

static bool replace(struct op *op, struct value *by)
{
	struct value *result = op->result[0];
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
		text_add(&key, " %d", number(merge, op->operand[i]));
	struct op *same = map_get(&merge->seen, key.data);
	if (!same)
		map_set(&merge->seen, key.data, op);
	else
		replace(op, same->result[0]);
}

static void clear(struct op *op, void *context)
{
	(void)context;
	for (int i = 0; i < op->results; i++) {
		op->result[i]->data = NULL;
		op->result[i]->id = 0;
		op->result[i]->uses = FREE;
	}
}

void merge_block(struct module *module, struct block *block)
{
	struct merge merge = { .module = module, .seen = map_new(module->arena) };
	ir_walk(block, clear, NULL);
	for (int i = 0; i < block->arguments; i++) {
		block->argument[i]->data = NULL;
		block->argument[i]->id = 0;
	}
	for (int i = 0; i < block->last->operands; i++)
		block->last->operand[i]->uses = RETURNED;
	struct op *next;
	for (struct op *op = block->first; op; op = next) {
		next = op->next;
		follow(op);
		if (op->code == OP_KERNEL)
			merge_kernel(&merge, op);
	}
}

bool merge_common(struct pass_context *context, struct module *module)
{
	(void)context;
	merge_block(module, module_main(module)->region[0]);
	return true;
}
