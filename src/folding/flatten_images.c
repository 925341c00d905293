/* Contractions of whole images, channels and places alike, have one loop over them, whose terms can
 * be unrolled; and what makes the image keeps its dimensions, so that its channels can be lanes.
 *
 * Before: k8: tensor<4x400> of 16 channels, 5 rows, 5 columns; k10: loops over 16, 5 and 5 terms
 * After:  k8: tensor<4x16x5x5>; k8_flat: a copy as tensor<4x400>; k10: a loop over 400 terms
 * Exact. */
#include "folding/flatten_images.h"
#include "fusion/fuse.h"
#include "schedule/register_tile.h"

/* Do all reductions move both operands, and each parallel loop one of them, so that every number of
 * an image has a weight for each channel? */
static bool is_product_of_rows(const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	if (op->operands != 2)
		return false;
	for (int l = 0; l < kernel->loops; l++) {
		int moved =
		        (kernel->operand[0].stride[l] != 0) + (kernel->operand[1].stride[l] != 0);
		if (kernel->loop[l].extent > 1 && moved != (kernel->loop[l].reduction ? 2 : 1))
			return false;
	}
	return true;
}

/* Joins reductions that walk neighbouring elements of both operands. */
static bool join_reductions(struct module *module, struct op *op)
{
	bool joined = false;
	for (int l = 0; l + 1 < op->kernel->loops; l++)
		joined = (op->kernel->loop[l].reduction && kernel_join_loops(module, op, l)) ||
		        joined;
	if (joined)
		kernel_tidy(module, op);
	return joined;
}

/* The loops of the kernel that made the value as its dimensions; NULL: it has them already, or they
 * are not known. */
static const struct type *unflattened(struct module *module, const struct value *value)
{
	int digits;
	const struct op *made = value->def;
	if (!made || made->code != OP_KERNEL || kernel_is_gather(made))
		return NULL;
	int *order = ARENA_ARRAY(module->arena, int, made->kernel->loops);
	if (!fuse_digits(module, made, order, &digits) || digits <= value->type->rank)
		return NULL;
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, digits);
	for (int d = 0; d < digits; d++)
		shape[d] = made->kernel->loop[order[d]].extent;
	return type_shaped(module, TYPE_TENSOR, digits, shape, type_scalar(value->type));
}

/* Gives the value dimensions, which a copy takes away again for its readers. */
static void unflatten(struct module *module, struct value *value, const struct type *type)
{
	struct op *made = value->def;
	struct op *copy = kernel_new(module, made->location,
	        text_format(module->arena, "%s_flat", made->kernel->name), type->rank, 1, &value,
	        value->type);
	struct kernel *kernel = copy->kernel;
	int64_t below = 1;
	for (int d = type->rank - 1; d >= 0; d--) {
		kernel->loop[d].extent = type->shape[d];
		kernel->operand[0].stride[d] = kernel->result.stride[d] = below;
		below *= type->shape[d];
	}
	kernel->update.result = body_operand(module, &kernel->update, kernel->type, 0);
	ir_replace(made->parent, value, copy->result[0]);
	copy->operand[0] = value;
	value->type = type;
	op_insert_before(made->next, copy);
}

void flatten_images(struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code != OP_KERNEL || kernel_is_gather(op) ||
		        type_is_real(op->kernel->type) || op->kernel->post.count ||
		        !is_contraction(op) || !is_product_of_rows(op) ||
		        !join_reductions(module, op))
			continue;
		for (int j = 0; j < op->operands; j++) {
			const struct type *type = unflattened(module, op->operand[j]);
			if (type)
				unflatten(module, op->operand[j], type);
		}
	}
}
