/* Joins dimensions of values that a kernel walks as one, such as groups and the channels of each
 * behind a grouped convolution: only a dimension's own elements can be lanes.
 *
 * Before: tensor<6x8x16x16xi32>, read by a loop of 48 trips over elements 256 apart
 * After:  tensor<48x16x16xi32> */
#include "folding/join_dimensions.h"
#include "schedule/kernel_schedule.h"

/* The dimensions as one whose elements are this far apart; NULL: the walk does not need it, or is
 * none of neighbouring dimensions. */
static const struct type *joined_type(
        struct module *module, const struct type *type, int64_t stride, int64_t extent)
{
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, type->rank);
	int64_t pitch = 1;
	int last = type->rank - 1;
	for (; last > 0 && pitch * type->shape[last] <= stride; last--)
		pitch *= type->shape[last];
	int first = last;
	int64_t span = pitch * type->shape[last];
	while (first > 0 && stride * (extent - 1) >= span)
		span *= type->shape[--first];
	if (first == last || stride % pitch || stride * (extent - 1) >= span)
		return NULL;
	int rank = 0;
	for (int d = 0; d < type->rank; d++) {
		if (d > first && d <= last)
			shape[rank - 1] *= type->shape[d];
		else
			shape[rank++] = type->shape[d];
	}
	return type_shaped(module, TYPE_TENSOR, rank, shape, type_scalar(type));
}

/* A value between two kernels, whose addresses are linear. */
static bool is_between(const struct block *block, const struct value *value)
{
	if (!value->def || value->def->code != OP_KERNEL)
		return false;
	for (const struct op *op = block->first; op; op = op->next)
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == value && op->code != OP_KERNEL)
				return false;
	return true;
}

void join_walked_dimensions(struct module *module, const struct block *block, struct value *value,
        int64_t stride, int64_t extent)
{
	int64_t step;
	if (stride <= 0 || !is_between(block, value) ||
	        schedule_data_dim(value->type, stride, extent, &step) >= 0)
		return;
	const struct type *type = joined_type(module, value->type, stride, extent);
	value->type = type ? type : value->type;
}
