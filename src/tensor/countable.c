/* Refuses kernels and tensors that are larger than later passes can count. */
#include "tensor/countable.h"
#include "ir/kernel.h"
#include "itensor/itensor.h"

static bool too_large(struct module *module, const struct op *op, const struct type *type)
{
	diag_error(module->diag, op->location, "type %s is too large", type->text);
	return diag_note(module->diag, "accepted are up to 2^48 elements");
}

static bool has_countable_iterations(struct module *module, const struct op *op, int bits)
{
	int64_t iterations = 1;
	for (int l = 0; l < op->kernel->loops; l++) {
		if (op->kernel->loop[l].extent > (INT64_C(1) << bits) / iterations) {
			diag_error(module->diag, op->location,
			        "the operation has more than 2^%d iterations", bits);
			return diag_note(module->diag, "smaller tensors, or several calls");
		}
		iterations *= op->kernel->loop[l].extent;
	}
	return true;
}

bool is_countable(struct module *module, const struct block *block, int bits)
{
	int64_t most = bits > COUNTABLE_BITS ? INT64_MAX : ITENSOR_EXTENT_MOST;
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR && !is_countable(module, op->region[0], bits))
			return false;
		if (op->code != OP_KERNEL)
			continue;
		if (!has_countable_iterations(module, op, bits))
			return false;
		for (int j = 0; j < op->operands; j++)
			if (type_elements(op->operand[j]->type) > most)
				return too_large(module, op, op->operand[j]->type);
		if (type_elements(op->result[0]->type) > most)
			return too_large(module, op, op->result[0]->type);
	}
	return true;
}
