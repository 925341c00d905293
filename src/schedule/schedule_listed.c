/* Schedules an ordered kernel: its loops keep the listed order (kernel.h, `ordered`), and only
 * lanes and row unroll are chosen.
 *
 * If the last loop is a reduction it is the lane loop, and the loop along which the result is
 * contiguous is unrolled by rows, but for scans: several sums at once, of words that are
 * contiguous. Otherwise the contiguous loop gives the lanes; where a word holds several terms of an
 * innermost integer reduction, that one is unrolled: terms that are added at once. So a kernel with
 * the same loops as the producer of its operand, and lanes in place of its rows, reads the
 * producer's words as they
 * come. */
#include "ir/workload.h"
#include "base/number.h"
#include "ir/kernel_edit.h"
#include "options/pass_context.h"
#include "schedule/kernel_schedule.h"

/* Does the loop have stride 0 or 1 in the result and in all operands? */
static bool contiguous(const struct op *op, int loop)
{
	bool fits = op->kernel->result.stride[loop] <= 1;
	for (int j = 0; j < op->operands; j++)
		fits = fits && op->kernel->operand[j].stride[loop] <= 1;
	return fits && !op->kernel->loop[loop].run_time && !kernel_is_guarded(op, loop);
}

/* Bits of the widest element that varies along the lanes. */
static int64_t widest_bits(const struct op *op, int lane)
{
	int64_t bits = op->kernel->result.stride[lane] ? type_bits(op->kernel->type) : 1;
	for (int j = 0; j < op->operands; j++)
		if (op->kernel->operand[j].stride[lane] &&
		        type_bits(type_scalar(op->operand[j]->type)) > bits)
			bits = type_bits(type_scalar(op->operand[j]->type));
	return bits;
}

/* Can the rows be unrolled? They are contiguous in the result, and an operand that also varies
 * along the lanes has its rows one after the other. */
static bool rows_fit(const struct op *op, int row, int lane)
{
	const struct kernel *kernel = op->kernel;
	if (row < 0 || kernel->loop[row].reduction || kernel->loop[row].run_time ||
	        kernel->result.stride[row] != 1 || kernel_is_guarded(op, row))
		return false;
	if (body_has(&kernel->post, OP_INDEX))
		return false;
	for (int j = 0; j < op->operands; j++) {
		const int64_t *stride = kernel->operand[j].stride;
		if (stride[row] &&
		        stride[row] < (stride[lane] ? kernel->loop[lane].extent : INT64_MAX))
			return false;
	}
	return true;
}

/* Can terms of a reduction be unrolled outside whole parallel lanes? An operand that varies along
 * both has the lanes of one term after those of the other. */
static bool terms_fit(const struct op *op, int row, int lane)
{
	const struct kernel *kernel = op->kernel;
	if (row < 0 || kernel->loop[row].run_time || kernel_is_guarded(op, row) ||
	        kernel->combine == OP_NONE || type_is_real(kernel->type))
		return false;
	for (int j = 0; j < op->operands; j++) {
		const int64_t *stride = kernel->operand[j].stride;
		if (stride[row] &&
		        (stride[lane] ? stride[row] < kernel->loop[lane].extent : stride[row] != 1))
			return false;
	}
	return true;
}

/* The parallel loop along which the result is contiguous; -1: none. */
static int contiguous_loop(const struct kernel *kernel)
{
	int loop = kernel->loops - 1;
	while (loop >= 0 && (kernel->loop[loop].reduction || kernel->result.stride[loop] != 1))
		loop--;
	return loop;
}

static struct schedule schedule_rows(
        struct module *module, const struct op *op, int64_t most_lanes, bool row_unroll)
{
	const struct kernel *kernel = op->kernel;
	int row = contiguous_loop(kernel);
	int lane = kernel->loops && kernel->loop[kernel->loops - 1].reduction ? kernel->loops - 1
	                                                                      : row;
	struct schedule schedule = { .part = ARENA_ARRAY(module->arena, struct schedule_part,
		                             kernel->loops + 3),
		.lanes = 1,
		.row_unroll = 1 };
	int term;
	bool tree = lane >= 0 && kernel->loop[lane].reduction;
	row = tree ? row : kernel_inner_reduction(kernel);
	/* the block of a scan is a word already */
	bool widest = kernel->scan || workload_of(op) == WORKLOAD_DECODE;
	int64_t word_bits = widest ? WORD_BITS : WORD_BITS / 2;
	int64_t word = lane < 0 ? 1 : word_bits / widest_bits(op, lane);
	int64_t most = most_lanes < word ? most_lanes : word;
	if (lane >= 0 && contiguous(op, lane) &&
	        (!tree || kernel_update_combine(kernel, &term) != OP_NONE))
		schedule.lanes = power_of_two_in(kernel->loop[lane].extent, most);
	if (row_unroll && !kernel->scan && schedule.lanes > 1 &&
	        schedule.lanes == kernel->loop[lane].extent &&
	        (tree ? rows_fit(op, row, lane) : terms_fit(op, row, lane)))
		schedule.row_unroll =
		        power_of_two_in(kernel->loop[row].extent, most_lanes / schedule.lanes);
	for (int l = 0; l < kernel->loops; l++) {
		int64_t step = l == row ? schedule.row_unroll : 1;
		step = l == lane ? schedule.lanes : step;
		if (kernel->loop[l].extent > step || step == 1)
			schedule.part[schedule.parts++] = (struct schedule_part){
				.source = l, .trip = kernel->loop[l].extent / step, .step = step
			};
	}
	if (schedule.row_unroll > 1)
		schedule.part[schedule.parts++] = (struct schedule_part){
			.source = row, .trip = schedule.row_unroll, .step = 1
		};
	if (schedule.lanes > 1)
		schedule.part[schedule.parts++] =
		        (struct schedule_part){ .source = lane, .trip = schedule.lanes, .step = 1 };
	return schedule;
}

struct schedule schedule_listed(struct module *module, const struct op *op, int64_t most_lanes)
{
	struct schedule schedule = schedule_rows(module, op, most_lanes, true);
	return schedule.row_unroll == 1 || schedule_fits(module, op, &schedule)
	        ? schedule
	        : schedule_rows(module, op, most_lanes, false);
}
