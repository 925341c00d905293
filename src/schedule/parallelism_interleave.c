/* Finds results whose rows are interleaved. A kernel that reads a state reads each word once, in
 * memory order, and uses it for all rows that need it in turn: the query heads that share a key
 * head. Its results are interleaved in the same way, and so are those of elementwise kernels that
 * read them. */
#include "ir/kernel_edit.h"
#include "schedule/parallelism.h"

static bool is_inside(const struct kernel *kernel, const struct access *state, int loop)
{
	return !state->stride[loop] && kernel->result.stride[loop] && !kernel->loop[loop].reduction;
}

/* The loop along which the result is contiguous; -1: none. */
static int row_loop(const struct kernel *kernel)
{
	int found = -1;
	for (int l = 0; l < kernel->loops; l++)
		found = kernel->result.stride[l] == 1 && kernel->loop[l].extent > 1 ? l : found;
	return found;
}

static void by_state(struct parallelism_kernel *kernel, const struct access *state)
{
	const struct kernel *own = kernel->op->kernel;
	int row = row_loop(own);
	int64_t interleave = 1;
	if (row < 0 || !state->stride[row])
		return;
	for (int l = 0; l < own->loops; l++)
		interleave *= is_inside(own, state, l) ? own->loop[l].extent : 1;
	kernel->interleave = interleave > 1 ? interleave : 0;
	kernel->row = own->loop[row].extent;
}

static void as_source(
        struct parallelism_kernel *kernel, const struct parallelism_kernel *source, int operand)
{
	const struct op *op = kernel->op;
	if (kernel->job[operand].number || kernel_has_reduction(op->kernel) ||
	        type_elements(op->operand[operand]->type) != type_elements(op->result[0]->type) ||
	        kernel->interleave >= source->interleave)
		return;
	kernel->interleave = source->interleave;
	kernel->row = source->row;
}

static bool reads_interleaved(
        const struct parallelism_space *space, const struct parallelism_kernel *kernel)
{
	bool found = false;
	for (int j = 0; j < kernel->operands; j++)
		found = found ||
		        (kernel->source[j] >= 0 && space->kernel[kernel->source[j]].interleave &&
		                !kernel->job[j].number);
	return found;
}

void parallelism_interleave_rows(const struct parallelism_space *space)
{
	if (space->stages || space->token_symbol)
		return;
	for (int k = 0; k < space->kernels; k++) {
		struct parallelism_kernel *kernel = &space->kernel[k];
		const enum operand_location *operand_location =
		        operand_locations(space->arena, kernel->op);
		for (int j = 0; j < kernel->operands && !kernel_is_gather(kernel->op); j++) {
			if (kernel->source[j] < 0 && operand_location[j] == LOCATION_ROW_MAJOR)
				by_state(kernel, &kernel->op->kernel->operand[j]);
			if (kernel->source[j] >= 0 && kernel->source[j] < k)
				as_source(kernel, &space->kernel[kernel->source[j]], j);
		}
	}
	for (int k = 0; k < space->kernels; k++) {
		space->kernel[k].interleaved = reads_interleaved(space, &space->kernel[k]);
		space->kernel[k].sums = kernel_has_reduction(space->kernel[k].op->kernel);
	}
}
