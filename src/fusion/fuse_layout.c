/* A copy of a whole result into another order takes over the result's readers.
 * Seen from them, the copy's inverse stands between: a copy kernel too, which is inlined like
 * any other. */
#include "fusion/fuse.h"
#include "ir/kernel_signature.h"

static bool reads_whole(struct module *module, const struct op *copy)
{
	const struct kernel *kernel = copy->kernel;
	int digits;
	int *order = ARENA_ARRAY(module->arena, int, kernel->loops);
	return kernel_is_copy(copy) && kernel->operand[0].index_operand < 0 &&
	        fuse_digits(module, copy, order, &digits) &&
	        type_elements(copy->operand[0]->type) == type_elements(copy->result[0]->type) &&
	        !kernel->operand[0].offset;
}

static struct op *inverse_of(struct module *module, const struct op *copy)
{
	const struct kernel *kernel = copy->kernel;
	struct op *inverse = op_new(
	        module, OP_KERNEL, copy->location, 1, &copy->result[0], 1, &copy->operand[0]->type);
	inverse->kernel = kernel_clone(module, kernel, 1);
	inverse->kernel->operand[0] = access_copy(module, &kernel->result, kernel->loops);
	inverse->kernel->result = access_copy(module, &kernel->operand[0], kernel->loops);
	return inverse;
}

/* Reads the inverse in the place of every operand that is the copied value. */
static bool read_inverse(
        struct module *module, struct op *inverse, struct op *reader, const struct value *copied)
{
	for (int j = 0; j < reader->operands;) {
		if (reader->operand[j] != copied) {
			j++;
			continue;
		}
		for (int i = 0; i < reader->operands; i++)
			if (reader->kernel->operand[i].index_operand == j)
				return false;
		if (!fuse_inline(module, inverse, reader, j))
			return false;
		j = 0;
	}
	return true;
}

static bool can_read_inverse(struct module *module, struct op *inverse, const struct op *reader,
        const struct value *copied)
{
	if (reader->code != OP_KERNEL)
		return false;
	struct op trial = *reader;
	trial.kernel = kernel_clone(module, reader->kernel, reader->operands);
	return read_inverse(module, inverse, &trial, copied);
}

bool fuse_layout(struct module *module, struct op *copy, int readers, struct op *const *reader)
{
	struct op *maker = copy->operand[0]->def;
	if (!maker || maker->code != OP_KERNEL || !reads_whole(module, copy))
		return false;
	struct op *inverse = inverse_of(module, copy);
	int digits;
	int *order = ARENA_ARRAY(module->arena, int, copy->kernel->loops);
	if (!fuse_digits(module, inverse, order, &digits))
		return false;
	for (int r = 0; r < readers; r++)
		if (reader[r] != copy &&
		        !can_read_inverse(module, inverse, reader[r], copy->operand[0]))
			return false;
	op_remove(copy);
	op_insert_before(maker->next, copy);
	for (int r = 0; r < readers; r++)
		if (reader[r] != copy)
			read_inverse(module, inverse, reader[r], copy->operand[0]);
	return true;
}
