/* Lets a loop over rows start before its inputs are complete: the kernels that make them work in
 * tiles of some steps, for which they read their weights once.
 * Before: gates = Σ x * w for all steps; loop { row of gates }
 * After:  the kernel's first loop walks tiles of steps and runs outermost
 * So the layers of a recurrent network overlap. There are 32 tiles or more, of one step if need be.
 * Needs: loops over rows. Guarantees: such kernels have `tile_outermost`. Exact: no sum is added up
 * in another order.
 * Ends: one walk over the loops. */
#include "ir/kernel_edit.h"
#include "layers/layers_passes.h"

#define TILES_LEAST 32

static int64_t steps_of_tile(int64_t steps)
{
	int64_t tile = steps / TILES_LEAST;
	while (tile > 1 && steps % tile)
		tile--;
	return tile > 1 ? tile : 1;
}

/* The parallel loop over these rows of the result; -1: there is none. */
static int loop_over(const struct kernel *kernel, int64_t stride, int64_t extent)
{
	for (int l = 0; l < kernel->loops; l++)
		if (!kernel->loop[l].reduction && kernel->loop[l].extent == extent &&
		        kernel->result.stride[l] == stride)
			return l;
	return -1;
}

/* Tiles the kernel that makes the value, which has `steps` rows of `row` elements, and those that
 * make rows of its operands. */
static void tile_maker(struct module *module, const struct value *value, int64_t row, int64_t steps)
{
	struct op *op = value->def;
	int64_t tile = steps_of_tile(steps);
	if (!op || op->code != OP_KERNEL || steps == tile ||
	        row * steps != type_elements(value->type) || op->kernel->ordered ||
	        op->kernel->tile_outermost || op->kernel->scan)
		return;
	kernel_cut_loops(module, op, -1, tile * row, steps / tile);
	int loop = loop_over(op->kernel, tile * row, steps / tile);
	if (loop < 0)
		return;
	kernel_move_loop(module, op, loop, 0);
	op->kernel->tile_outermost = true;
	for (int j = 0; j < op->operands; j++) {
		int64_t stride = op->kernel->operand[j].stride[0];
		if (stride > 0 && stride % tile == 0)
			tile_maker(module, op->operand[j], stride / tile, steps);
	}
}

bool tile_steps(struct pass_context *context, struct module *module)
{
	(void)context;
	for (struct op *op = module_main(module)->region[0]->first; op; op = op->next)
		for (struct op *row = op->code == OP_FOR ? op->region[0]->first : NULL; row;
		        row = row->next) {
			if (row->code != OP_LAYER_ROW)
				continue;
			int64_t each = type_elements(row->result[0]->type);
			const struct value *stack = row->operand[1];
			tile_maker(module, stack, each, type_elements(stack->type) / each);
		}
	return true;
}
