/* Lets a copy of a whole result into another order take over the result's readers.
 *     r = f(...); c = copy(r); g(r)  ->  r = f(...); c = copy(r); g(inverse copy of c)
 * The inverse is a copy kernel too and is inlined in the readers; f then has c as its only reader,
 * and the two can be fused. */
#include "fusion/fuse.h"
#include "ir/kernel_signature.h"

/* Does the copy read all of its operand? */
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

/* Inlines the inverse for every operand that is the copied value. */
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
	struct op *producer = copy->operand[0]->def;
	if (!producer || producer->code != OP_KERNEL || !reads_whole(module, copy))
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
	op_insert_before(producer->next, copy);
	for (int r = 0; r < readers; r++)
		if (reader[r] != copy)
			read_inverse(module, inverse, reader[r], copy->operand[0]);
	return true;
}
