/* Splits a convolution by channels of its result (split_stage.h), so that no word has the weights
 * of all its products.
 *
 * Before: sums[64 channels] = image * weights                      one word: 64 by 147 weights
 * After:  sums_0 … sums_3[16 channels] = image * a quarter of the weights
 *         joined = sums_0 … sums_3, each within a guard on the quarter; a reader without sums takes
 *         them itself
 * Exact. */
#include "folding/split_stage.h"
#include "fusion/fuse.h"
#include "schedule/kernel_schedule.h"

/* The dimension of the result that has the channels; -1: they share one. */
static int channel_dimension(const struct folded_kernel *folded)
{
	const struct kernel *kernel = folded->op->kernel;
	const struct type *type = folded->op->result[0]->type;
	int64_t extent = kernel->loop[folded->channel].extent;
	int64_t step = 0;
	int dim = schedule_data_dim(type, kernel->result.stride[folded->channel], extent, &step);
	return dim >= 0 && step == 1 && type->shape[dim] == extent ? dim : -1;
}

bool stage_splits(const struct folded_kernel *folded)
{
	const struct kernel *kernel = folded->op->kernel;
	if (!folded->slides || folded->dense || folded->narrow || folded->groups ||
	        kernel->result.offset || kernel->result.guards || kernel->post.count ||
	        body_uses_counters(&kernel->update) || channel_dimension(folded) < 0)
		return false;
	const struct block *block = folded->op->parent;
	for (const struct op *op = block->first; op; op = op->next)
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == folded->op->result[0] && op->code != OP_KERNEL)
				return false;
	return true;
}

static const struct type *part_type(
        struct module *module, const struct folded_kernel *folded, int parts)
{
	const struct type *type = folded->op->result[0]->type;
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, type->rank);
	for (int d = 0; d < type->rank; d++)
		shape[d] = type->shape[d];
	shape[channel_dimension(folded)] /= parts;
	return type_shaped(module, TYPE_TENSOR, type->rank, shape, type_scalar(type));
}

static struct op *make_part(
        struct module *module, const struct folded_kernel *folded, int parts, int number)
{
	const struct op *whole = folded->op;
	int channel = folded->channel;
	struct kernel *kernel = kernel_clone(module, whole->kernel, whole->operands);
	int64_t all = kernel->loop[channel].extent;
	int64_t span = all * kernel->result.stride[channel];
	kernel->name = text_format(module->arena, "%s_%d", kernel->name, number);
	kernel->loop[channel].extent = all / parts;
	for (int j = 0; j < whole->operands; j++)
		kernel->operand[j].offset +=
		        kernel->operand[j].stride[channel] * (all / parts) * number;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->result.stride[l] >= span)
			kernel->result.stride[l] /= parts;
	const struct type *type = part_type(module, folded, parts);
	struct op *part = op_new(
	        module, OP_KERNEL, whole->location, whole->operands, whole->operand, 1, &type);
	part->kernel = kernel;
	return part;
}

/* Sets loops, strides and guards of the kernel that joins parts; its first loop walks them. */
static void set_join(struct module *module, struct op *join, int dim, int parts)
{
	struct kernel *kernel = join->kernel;
	const struct type *type = join->result[0]->type;
	int64_t below = 1;
	kernel->loop[0] = (struct loop){ .extent = parts };
	for (int d = type->rank - 1; d >= 0; d--) {
		int64_t extent = type->shape[d] / (d == dim ? parts : 1);
		kernel->loop[d + 1] = (struct loop){ .extent = extent };
		kernel->result.stride[d + 1] = below;
		for (int j = 0; j < parts; j++)
			kernel->operand[j].stride[d + 1] = d < dim ? below / parts : below;
		if (d == dim)
			kernel->result.stride[0] = below * extent;
		below *= type->shape[d];
	}
	for (int j = 0; j < parts; j++)
		access_add_guard(module, &kernel->operand[j],
		        (struct guard_range){ .loop = 0, .low = j, .high = j + 1 });
}

/* Takes the part in whose guard the counters are. */
static void set_choice(struct module *module, struct kernel *kernel, int parts)
{
	struct body *body = &kernel->update;
	int taken = body_operand(module, body, kernel->type, parts - 1);
	for (int j = parts - 2; j >= 0; j--) {
		int active = body_active(module, body, j);
		int part = body_operand(module, body, kernel->type, j);
		taken = body_op(module, body, OP_SELECT, kernel->type, active, part, taken);
	}
	body->result = taken;
}

/* Lets the only reader take the parts itself: a window, which reads an element several times, and
 * a sum have the joined ones. */
static void join_in_reader(struct module *module, struct op *join)
{
	int operand;
	ir_count_uses(join->parent);
	struct op *reader = only_reader(join->parent, join->result[0], &operand);
	if (reader && !kernel_has_reduction(reader->kernel) &&
	        fuse_inline(module, join, reader, operand))
		op_remove(join);
}

void split_stage(struct module *module, const struct folded_kernel *folded, int parts)
{
	struct op *whole = folded->op;
	int dim = channel_dimension(folded);
	struct value **part = ARENA_ARRAY(module->arena, struct value *, parts);
	for (int i = 0; i < parts; i++) {
		struct op *made = make_part(module, folded, parts, i);
		op_insert_before(whole, made);
		part[i] = made->result[0];
	}
	const struct type *type = whole->result[0]->type;
	struct op *join = kernel_new(module, whole->location,
	        text_format(module->arena, "%s_joined", whole->kernel->name), type->rank + 1, parts,
	        part, type);
	join->kernel->type = whole->kernel->type;
	set_join(module, join, dim, parts);
	set_choice(module, join->kernel, parts);
	op_insert_before(whole, join);
	ir_replace(whole->parent, whole->result[0], join->result[0]);
	op_remove(whole);
	join_in_reader(module, join);
}
