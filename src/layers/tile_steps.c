/* Lets a loop over rows start before its inputs are complete: the kernel that makes them works step
 * by step, in tiles of some steps, for which it reads its weights once.
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

static void tile_maker(struct module *module, struct op *op, int64_t row)
{
	struct kernel *kernel = op->kernel;
	int64_t steps = type_elements(op->result[0]->type) / row;
	int64_t tile = steps_of_tile(steps);
	if (steps == tile || kernel->ordered || kernel->tile_outermost || kernel->scan)
		return;
	kernel_cut_loops(module, op, -1, tile * row, steps / tile);
	int loop = loop_over(op->kernel, tile * row, steps / tile);
	if (loop < 0)
		return;
	kernel_move_loop(module, op, loop, 0);
	op->kernel->tile_outermost = true;
}

bool tile_steps(struct pass_context *context, struct module *module)
{
	(void)context;
	for (struct op *op = module_main(module)->region[0]->first; op; op = op->next)
		for (struct op *row = op->code == OP_FOR ? op->region[0]->first : NULL; row;
		        row = row->next) {
			struct op *maker = row->code == OP_LAYER_ROW ? row->operand[1]->def : NULL;
			if (maker && maker->code == OP_KERNEL)
				tile_maker(module, maker, type_elements(row->result[0]->type));
		}
	return true;
}
