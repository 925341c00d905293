/* Orders the loops of pooling, so that a word of a row has several windows.
 * Before: y[c, i, j] = max over k, l of x[c, 2 i + k, 2 j + l], loops in any order
 * After:  loops c, i, k, j, l in this order: a word has the l of several j, a small tree for each
 * Windows follow one another along the row without a gap, and do not overlap there; the sums of
 * the words of a row wait for its other rows.
 * Needs: fused kernels. Guarantees: such a kernel of real numbers is ordered.
 * Reassociating: the terms of a row are added up first. Ends: each kernel is visited once. */
#include "base/number.h"
#include "ir/kernel_edit.h"
#include "ir/workload.h"
#include "tensor/tensor_passes.h"

#define WINDOW_MOST 16   /* numbers of a row in a window */
#define ROW_LEAST 16     /* windows of a row */
#define WORD_RESULTS 128 /* of a row, about so many in a word */
/* words that take turns, each a sum or a product, or an extreme value, which takes less time */
#define SUMS 8
#define EXTREMES 2

/* The parallel loop along the result's rows, or the reduction along the operand's; -1: none. */
static int contiguous_loop(const struct op *op, bool reduction)
{
	const struct kernel *kernel = op->kernel;
	const int64_t *stride = reduction ? kernel->operand[0].stride : kernel->result.stride;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].reduction == reduction && stride[l] == 1 &&
		        kernel->loop[l].extent > 1)
			return l;
	return -1;
}

static bool is_pooling(const struct op *op, int *row, int *window)
{
	const struct kernel *kernel = op->code == OP_KERNEL ? op->kernel : NULL;
	int term;
	if (!kernel || op->operands != 1 || kernel->scan || kernel->ordered ||
	        kernel->tile_outermost || !kernel_has_reduction(kernel) ||
	        workload_of(op) != WORKLOAD_NONE || !type_is_real(kernel->type) ||
	        !access_is_plain(&kernel->operand[0]) || kernel_combine(kernel, &term) == OP_NONE ||
	        body_uses_counters(&kernel->update) || body_uses_counters(&kernel->post))
		return false;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].run_time)
			return false;
	*row = contiguous_loop(op, false);
	*window = contiguous_loop(op, true);
	if (*row < 0 || *window < 0)
		return false;
	int64_t extent = kernel->loop[*window].extent;
	return kernel->loop[*row].extent >= ROW_LEAST && extent <= WINDOW_MOST &&
	        extent == power_of_two_in(extent, WINDOW_MOST) &&
	        kernel->operand[0].stride[*row] == extent;
}

/* The parallel loops in the result's order without the row; returns their number. */
static int outer_loops(const struct kernel *kernel, int row, int *order)
{
	const int64_t *result = kernel->result.stride;
	int count = 0;
	for (int l = 0; l < kernel->loops; l++) {
		if (l == row || kernel->loop[l].reduction)
			continue;
		int at = count++;
		for (; at > 0 && result[order[at - 1]] < result[l]; at--)
			order[at] = order[at - 1];
		order[at] = l;
	}
	return count;
}

/* Rows that take turns, so that no sum is waited for. */
static int64_t rows_together(const struct kernel *kernel, int row, int loop)
{
	int term;
	enum op_code combine = kernel_combine(kernel, &term);
	bool is_slow = combine == OP_ADDF || combine == OP_MULF;
	int64_t words = ceil_div(kernel->loop[row].extent, WORD_RESULTS);
	int64_t wanted = is_slow ? SUMS : EXTREMES;
	int64_t rows = 1;
	while (rows * words < wanted && rows < kernel->loop[loop].extent)
		for (rows++; kernel->loop[loop].extent % rows;)
			rows++;
	return rows;
}

/* Parallel loops in the result's order, the other reductions, rows that take turns, the row, the
 * window. */
static void order_loops(struct module *module, struct op *op, int row, int window)
{
	struct kernel *kernel = op->kernel;
	int *order = ARENA_ARRAY(module->arena, int, kernel->loops + 1);
	int placed = outer_loops(kernel, row, order);
	int last = placed ? order[placed - 1] : -1;
	bool splits =
	        last >= 0 && kernel_split_loop(module, op, last, rows_together(kernel, row, last));
	if (splits) {
		row += row > last;
		window += window > last;
		for (int i = 0; i < placed; i++)
			order[i] += order[i] > last;
	}
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].reduction && l != window)
			order[placed++] = l;
	if (splits)
		order[placed++] = last + 1;
	order[placed++] = row;
	order[placed++] = window;
	for (int i = 0; i < placed; i++) {
		kernel_move_loop(module, op, order[i], i);
		for (int e = i + 1; e < placed; e++)
			order[e] += order[e] < order[i];
	}
	kernel->ordered = true;
}

static void order_block(struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		int row;
		int window;
		if (op->code == OP_FOR)
			order_block(module, op->region[0]);
		if (is_pooling(op, &row, &window))
			order_loops(module, op, row, window);
	}
}

bool order_windows(struct pass_context *context, struct module *module)
{
	(void)context;
	order_block(module, module_main(module)->region[0]);
	return true;
}
