/* Folds convolutions of integers, and the kernels between them, into a pipeline that passes images
 * on pixel by pixel, all channels of a pixel before the next one (channels last):
 *
 *     rows │ columns │ channels out / PE │ window │ channels in / SIMD │ PE sums │ SIMD terms
 *
 * Before: stream.kernel {loops = [64, 56, 56, 64, 3, 3]}, a convolution of 64 by 64 channels
 * After:  the same with folding = {loops = [[1, 56, 1], [2, 56, 1], [0, 8, 8], [4, 3, 1],
 *         [5, 3, 1], [3, 4, 16], [0, 8, 1], [3, 16, 1]], row_unroll = 8, lanes = 16, held = …}
 * So a layer holds the rows under its window (a line buffer) and its weights, and all layers of a
 * network run at once.  PE and SIMD of all kernels are chosen together (fold_rates.c).
 * Needs: kernels on root tensors. Guarantees: none has a parallelism or a schedule. Sums of
 * integers are reordered, which is exact. Ends: one walk over the kernels. */
#include "folding/fold_channels.h"
#include "folding/fold_rates.h"
#include "folding/folding_passes.h"
#include "fusion/fuse.h"
#include "ir/workload.h"
#include "schedule/recorded_choices.h"
#include "schedule/register_tile.h"

/* What follows the sums of a convolution, as a bias, moves to their reader: it needs fewer lanes
 * than the sums. */
static void move_epilogues(struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		int operand;
		if (op->code != OP_KERNEL || kernel_is_gather(op) ||
		        type_is_real(op->kernel->type) || !op->kernel->post.count ||
		        !is_contraction(op) || body_uses_counters(&op->kernel->post))
			continue;
		kernel_split_epilogue(module, op);
		struct op *post = op->next;
		ir_count_uses(block);
		struct op *reader = only_reader(block, post->result[0], &operand);
		if (reader && fuse_inline(module, post, reader, operand))
			op_remove(post);
	}
}

static struct fold_stage stage_of(
        const struct platform *platform, const struct folded_kernel *folded)
{
	const struct kernel *kernel = folded->op->kernel;
	struct fold_stage stage = { .points = 1,
		.channels = kernel->loop[folded->channel].extent,
		.terms = folded->term < 0 ? 1 : kernel->loop[folded->term].extent,
		.products = folded->products,
		.packed = !body_has(&kernel->update, OP_EXTUI),
		.bits = type_bits(kernel->type) };
	for (int l = 0; l < kernel->loops; l++)
		stage.points *= (double)kernel->loop[l].extent;
	for (int j = 0; j < folded->op->operands && stage.products; j++)
		stage.bits = type_bits(type_scalar(folded->op->operand[j]->type));
	if (!stage.products)
		stage.dsp = schedule_body_dsp(platform, &kernel->update) +
		        schedule_body_dsp(platform, &kernel->post);
	return stage;
}

static void add_part(struct schedule *schedule, int source, int64_t trip, int64_t step)
{
	schedule->part[schedule->parts++] = (struct schedule_part){ source, trip, step };
}

/* Adds the parallel loops other than channels, those of far elements first. */
static void add_pixels(struct schedule *schedule, const struct folded_kernel *folded)
{
	const struct kernel *kernel = folded->op->kernel;
	int first = schedule->parts;
	for (int l = 0; l < kernel->loops; l++) {
		if (kernel->loop[l].reduction || l == folded->channel)
			continue;
		int at = schedule->parts;
		add_part(schedule, l, kernel->loop[l].extent, 1);
		for (; at > first &&
		        kernel->result.stride[schedule->part[at - 1].source] <
		                kernel->result.stride[l];
		        at--) {
			schedule->part[at] = schedule->part[at - 1];
			schedule->part[at - 1] =
			        (struct schedule_part){ l, kernel->loop[l].extent, 1 };
		}
	}
}

/* Adds the reductions: a window's, or those that take a whole image. */
static void add_reductions(
        struct schedule *schedule, const struct folded_kernel *folded, bool windows)
{
	const struct op *op = folded->op;
	for (int l = 0; l < op->kernel->loops; l++)
		if (op->kernel->loop[l].reduction && l != folded->term &&
		        is_window_loop(op, folded->image, l) == windows)
			add_part(schedule, l, op->kernel->loop[l].extent, 1);
}

/* Do the weights of a channel follow one another, rather than those of a term? */
static bool terms_are_together(const struct folded_kernel *folded)
{
	int64_t by_channel = 0;
	int64_t by_term = 0;
	for (int j = 0; j < folded->op->operands; j++) {
		const int64_t *stride = folded->op->kernel->operand[j].stride;
		if (stride[folded->channel] && stride[folded->term]) {
			by_channel = stride[folded->channel];
			by_term = stride[folded->term];
		}
	}
	return by_term < by_channel;
}

/* Adds rows and lanes: a word has the elements of one row after those of the other, as the weights
 * have them. */
static void add_unrolled(struct schedule *schedule, const struct folded_kernel *folded,
        const struct fold_stage *stage)
{
	int rows = folded->term;
	int lanes = folded->channel;
	int64_t row_unroll = stage->simd;
	schedule->lanes = stage->pe;
	if (stage->pe == 1 || (stage->simd > 1 && terms_are_together(folded))) {
		rows = folded->channel;
		lanes = folded->term;
		row_unroll = stage->pe;
		schedule->lanes = stage->simd;
	}
	if (row_unroll > 1 && schedule->lanes > 1) {
		schedule->row_unroll = row_unroll;
		add_part(schedule, rows, row_unroll, 1);
	}
	if (schedule->lanes > 1)
		add_part(schedule, lanes, schedule->lanes, 1);
}

static void record(
        struct module *module, const struct folded_kernel *folded, const struct fold_stage *stage)
{
	struct op *op = folded->op;
	struct schedule schedule = { .row_unroll = 1 };
	schedule.part = ARENA_ARRAY(module->arena, struct schedule_part, 2 * op->kernel->loops + 4);
	int64_t *held = ARENA_ARRAY(module->arena, int64_t, op->operands + 1);
	add_pixels(&schedule, folded);
	add_reductions(&schedule, folded, false);
	add_part(&schedule, folded->channel, stage->channels / stage->pe, stage->pe);
	add_reductions(&schedule, folded, true);
	if (folded->term >= 0)
		add_part(&schedule, folded->term, stage->terms / stage->simd, stage->simd);
	add_unrolled(&schedule, folded, stage);
	schedule.held = held;
	if (schedule_fits(module, op, &schedule))
		record_folding(module, op, &schedule);
}

bool fold_convolutions(struct pass_context *context, struct module *module)
{
	struct block *body = module_main(module)->region[0];
	bool convolves = false;
	forget_recorded_choices(module);
	if (workload_of(module_main(module)) != WORKLOAD_NONE)
		return true;
	move_epilogues(module, body);
	struct folded_kernels folded = find_folded_kernels(module, body);
	struct fold_stage *stage =
	        ARENA_ARRAY(module->arena, struct fold_stage, (size_t)folded.count + 1);
	for (int i = 0; i < folded.count; i++) {
		stage[i] = stage_of(context->platform, &folded.kernel[i]);
		convolves = convolves || folded.kernel[i].slides;
	}
	if (!convolves)
		return true;
	int64_t dsp = choice_resolve(&context->choices, context->platform, CHOICE_DSP);
	choose_fold_rates(module->arena, stage, folded.count, dsp);
	for (int i = 0; i < folded.count; i++)
		record(module, &folded.kernel[i], &stage[i]);
	return true;
}
