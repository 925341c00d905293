/* Folds convolutions of integers, and the kernels between them, into a pipeline that passes images
 * on pixel by pixel, all channels of a pixel before the next one (channels last):
 *
 *     rows │ columns │ channels out / PE │ window │ channels in / SIMD │ PE sums │ SIMD terms
 *
 * A window's rows, or all of it, become terms as well where the channels alone are too few: taps.
 *
 * Before: stream.kernel {loops = [64, 56, 56, 64, 3, 3]}, a convolution of 64 by 64 channels
 * After:  the same with folding = {loops = [[1, 56, 1], [2, 56, 1], [0, 8, 8], [4, 3, 1],
 *         [5, 3, 1], [3, 4, 16], [0, 8, 1], [3, 16, 1]], row_unroll = 8, lanes = 16, held = …}
 * So a layer holds the rows under its window (a line buffer) and its weights, and all layers of a
 * network run at once.  PE and SIMD of all kernels are chosen together (fold_rates.c).
 * Needs: kernels on root tensors. Guarantees: none has a parallelism or a schedule. Sums of
 * integers are reordered, which is exact. Ends: one walk over the kernels. */
#include "folding/fold_channels.h"
#include "folding/fold_memory.h"
#include "folding/flatten_images.h"
#include "folding/fold_rates.h"
#include "folding/folding_passes.h"
#include "folding/split_stage.h"
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

/* Elements of a tap's dimension that a window moves by. */
static int64_t stride_of_window(const struct folded_kernel *folded, int tap)
{
	const struct kernel *kernel = folded->op->kernel;
	const struct type *type = folded->op->operand[folded->image]->type;
	const int64_t *stride = kernel->operand[folded->image].stride;
	int64_t step = 1;
	int64_t moved = 1;
	int dim = schedule_data_dim(type, stride[tap], kernel->loop[tap].extent, &step);
	for (int l = 0; l < kernel->loops; l++)
		if (!kernel->loop[l].reduction && stride[l] &&
		        schedule_data_dim(type, stride[l], kernel->loop[l].extent, &step) == dim)
			moved = step;
	return moved;
}

/* Sets what a window takes: rows that it skips come while none is read, and of columns in registers
 * those that it moves by come before the next position is read. */
static void set_window(const struct folded_kernel *folded, struct fold_stage *stage)
{
	const struct kernel *kernel = folded->op->kernel;
	const int64_t *image = kernel->operand[folded->image].stride;
	stage->taps = folded->taps;
	stage->windows = folded->taps;
	stage->image = (double)type_elements(folded->op->operand[folded->image]->type);
	stage->apart = image[folded->channel];
	for (int i = 0; i < folded->taps; i++)
		stage->tap[i] = kernel->loop[folded->tap[i]].extent;
	if (folded->taps < 2)
		return;
	double rows = (double)stride_of_window(folded, folded->tap[0]);
	double columns = (double)stride_of_window(folded, folded->tap[1]);
	stage->between = 1 - 1 / rows;
	stage->late = columns - 1;
	for (int l = 0; l < kernel->loops; l++)
		stage->late *= kernel->loop[l].reduction || l == folded->channel
		        ? 1
		        : (double)kernel->loop[l].extent;
}

static struct fold_stage stage_of(
        const struct platform *platform, const struct folded_kernel *folded)
{
	const struct kernel *kernel = folded->op->kernel;
	struct fold_stage stage = { .points = 1,
		.channels = kernel->loop[folded->channel].extent,
		.narrow = folded->narrow,
		.terms = folded->term < 0 ? 1 : kernel->loop[folded->term].extent,
		.products = folded->products,
		.packed = !body_has(&kernel->update, OP_EXTUI),
		.bits = type_bits(kernel->type),
		.dense = folded->dense };
	for (int l = 0; l < kernel->loops; l++)
		stage.points *= (double)kernel->loop[l].extent;
	stage.places = (double)type_elements(folded->op->result[0]->type) / (double)stage.channels;
	set_window(folded, &stage);
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

static bool is_unrolled_tap(
        const struct folded_kernel *folded, const struct fold_stage *stage, int loop)
{
	bool found = false;
	for (int i = 0; i < stage->unrolled; i++)
		found = found || folded->tap[i] == loop;
	return found;
}

/* Adds the reductions that stay loops: a window's, or those that take a whole image. */
static void add_reductions(struct schedule *schedule, const struct folded_kernel *folded,
        const struct fold_stage *stage, bool windows)
{
	const struct op *op = folded->op;
	for (int l = 0; l < op->kernel->loops; l++)
		if (op->kernel->loop[l].reduction && l != folded->term &&
		        is_window_loop(op, folded->image, l) == windows &&
		        !is_unrolled_tap(folded, stage, l))
			add_part(schedule, l, op->kernel->loop[l].extent, 1);
}

/* Adds the parallel loops: channels inside pixels, or blocks of channels inside some of them.
 * Reductions over whole images run outside channels as well, if all pixels do. Returns the item
 * from which on weights that are sent again are held. */
static int add_parallel(struct module *module, struct schedule *schedule,
        const struct folded_kernel *folded, const struct fold_stage *stage)
{
	const struct kernel *kernel = folded->op->kernel;
	int *loop = ARENA_ARRAY(module->arena, int, 2 * kernel->loops);
	int loops = list_pixel_loops(folded, loop);
	int64_t block = folded->block ? folded->block : stage->channels;
	for (int i = 0; i <= loops; i++) {
		if (i == folded->pixels_outside && folded->block)
			add_part(schedule, folded->channel, stage->channels / block, block);
		if (i < loops)
			add_part(schedule, loop[i], kernel->loop[loop[i]].extent, 1);
	}
	add_reductions(schedule, folded, stage, false);
	add_part(schedule, folded->channel, block / stage->pe, stage->pe);
	return folded->block ? folded->pixels_outside : 0;
}

/* Do the weights of a channel follow one another, rather than those of the term? */
static bool terms_are_together(const struct folded_kernel *folded, int term)
{
	int64_t by_channel = 0;
	int64_t by_term = 0;
	for (int j = 0; j < folded->op->operands; j++) {
		const int64_t *stride = folded->op->kernel->operand[j].stride;
		if (stride[folded->channel] && stride[term]) {
			by_channel = stride[folded->channel];
			by_term = stride[term];
		}
	}
	return by_term < by_channel;
}

/* Adds the terms of a sum that are unrolled, in the order of the weights, or of the image where
 * there are none. */
static void add_terms(struct schedule *schedule, const struct folded_kernel *folded,
        const struct fold_stage *stage)
{
	const struct kernel *kernel = folded->op->kernel;
	int ordered = folded->op->operands > 1 ? 1 - folded->image : folded->image;
	const int64_t *stride = kernel->operand[ordered].stride;
	int first = schedule->parts;
	int64_t terms = stage->simd / unrolled_taps(stage);
	for (int i = 0; i < stage->unrolled; i++)
		add_part(schedule, folded->tap[i], stage->tap[i], 1);
	if (terms > 1)
		add_part(schedule, folded->term, terms, 1);
	for (int at = first + 1; at < schedule->parts; at++)
		for (int k = at; k > first &&
		        stride[schedule->part[k - 1].source] < stride[schedule->part[k].source];
		        k--) {
			struct schedule_part moved = schedule->part[k];
			schedule->part[k] = schedule->part[k - 1];
			schedule->part[k - 1] = moved;
		}
	schedule->lanes = stage->simd;
}

/* Adds rows and lanes: a word has the elements of one row after those of the other, as the weights
 * have them. */
static void add_unrolled(struct schedule *schedule, const struct folded_kernel *folded,
        const struct fold_stage *stage)
{
	int last = stage->unrolled ? folded->tap[stage->unrolled - 1] : folded->term;
	bool together = stage->simd > 1 && terms_are_together(folded, last);
	if (stage->simd > 1 && !together)
		add_terms(schedule, folded, stage);
	if (stage->pe > 1) {
		schedule->row_unroll = schedule->lanes;
		schedule->lanes = stage->pe;
		add_part(schedule, folded->channel, stage->pe, 1);
	}
	if (together) {
		schedule->row_unroll = schedule->lanes;
		add_terms(schedule, folded, stage);
	}
}

/* The schedule of a kernel with these words. */
static struct schedule folded_schedule(
        struct module *module, const struct folded_kernel *folded, const struct fold_stage *stage)
{
	struct op *op = folded->op;
	struct schedule schedule = { .lanes = 1, .row_unroll = 1 };
	schedule.part = ARENA_ARRAY(module->arena, struct schedule_part, 2 * op->kernel->loops + 4);
	int64_t *held = ARENA_ARRAY(module->arena, int64_t, op->operands + 1);
	int held_from = add_parallel(module, &schedule, folded, stage);
	add_reductions(&schedule, folded, stage, true);
	int64_t terms = stage->simd / unrolled_taps(stage);
	if (folded->term >= 0)
		add_part(&schedule, folded->term, stage->terms / terms, terms);
	add_unrolled(&schedule, folded, stage);
	if (folded->slides) /* blocks of weights are read again for each of the pixels outside */
		held[1 - folded->image] = held_from;
	schedule.held = held;
	return schedule;
}

/* Drops taps with which a kernel would have no streams, as where weights have another order than
 * the image. */
static void drop_taps(
        struct module *module, const struct folded_kernel *folded, struct fold_stage *stage)
{
	for (; stage->taps > 0; stage->taps--) {
		struct fold_stage wide = *stage;
		wide.unrolled = stage->taps;
		wide.pe = stage->channels;
		wide.simd = stage->terms;
		for (int i = 0; i < stage->taps; i++)
			wide.simd *= stage->tap[i];
		struct schedule schedule = folded_schedule(module, folded, &wide);
		if (schedule_fits(module, folded->op, &schedule))
			return;
	}
}

/* Memory ports beside those of other weights; a channel of memory fills one. */
static int ports_of_dense(
        const struct pass_context *context, const struct fold_stage *stage, int stages)
{
	const struct platform *platform = context->platform;
	int64_t ports = platform->ports - choice_count(&context->choices, CHOICE_RESERVED_PORTS);
	for (int i = 0; i < stages; i++)
		ports -= stage[i].products && !stage[i].dense;
	return (int)(ports < platform->channels ? ports : platform->channels);
}

/* Kernels of the pipeline, and how each is to run. */
struct fold_pipeline {
	struct folded_kernels folded;
	struct fold_stage *stage;
};

/* false: none of them is a convolution. */
static bool find_pipeline(const struct pass_context *context, struct module *module, bool splits,
        struct fold_pipeline *pipeline)
{
	bool convolves = false;
	struct folded_kernels folded = find_folded_kernels(module, module_main(module)->region[0]);
	struct fold_stage *stage =
	        ARENA_ARRAY(module->arena, struct fold_stage, (size_t)folded.count + 1);
	for (int i = 0; i < folded.count; i++) {
		stage[i] = stage_of(context->platform, &folded.kernel[i]);
		drop_taps(module, &folded.kernel[i], &stage[i]);
		stage[i].splits = splits && stage_splits(&folded.kernel[i]);
		convolves = convolves || folded.kernel[i].slides;
	}
	*pipeline = (struct fold_pipeline){ folded, stage };
	return convolves;
}

/* Without a user's wish products have more DSPs than kernels beside an engine. */
static int64_t products_dsp(const struct pass_context *context)
{
	int64_t wish = context->choices.value[CHOICE_DSP];
	return wish ? wish : platform_total(context->platform).dsp * 2 / 3;
}

static void choose_rates(const struct pass_context *context, struct module *module,
        const struct fold_pipeline *pipeline)
{
	int stages = pipeline->folded.count;
	struct fold_budget budget = { .dsp = products_dsp(context),
		.port_bits = context->platform->port_bits,
		.ports = ports_of_dense(context, pipeline->stage, stages) };
	choose_fold_rates(module->arena, pipeline->stage, stages, budget);
}

static bool split_stages(struct module *module, const struct fold_pipeline *pipeline)
{
	bool changed = false;
	for (int i = 0; i < pipeline->folded.count; i++) {
		if (pipeline->stage[i].parts > 1)
			split_stage(module, &pipeline->folded.kernel[i], pipeline->stage[i].parts);
		changed = changed || pipeline->stage[i].parts > 1;
	}
	return changed;
}

static void choose_memory(const struct pass_context *context, struct module *module,
        const struct fold_pipeline *pipeline)
{
	int64_t budget = choice_resolve(&context->choices, context->platform, CHOICE_ON_CHIP);
	for (int large; (large = choose_fold_memory(module->arena, context->platform,
	                         pipeline->folded, pipeline->stage, budget)) >= 0;) {
		pipeline->stage[large].taps = 0;
		choose_rates(context, module, pipeline);
	}
}

bool fold_convolutions(struct pass_context *context, struct module *module)
{
	struct fold_pipeline pipeline;
	forget_recorded_choices(module);
	if (workload_of(module_main(module)) != WORKLOAD_NONE)
		return true;
	move_epilogues(module, module_main(module)->region[0]);
	flatten_images(module, module_main(module)->region[0]);
	if (!find_pipeline(context, module, true, &pipeline))
		return true;
	choose_rates(context, module, &pipeline);
	if (split_stages(module, &pipeline)) {
		find_pipeline(context, module, false, &pipeline);
		choose_rates(context, module, &pipeline);
	}
	choose_memory(context, module, &pipeline);
	for (int i = 0; i < pipeline.folded.count; i++) {
		const struct folded_kernel *folded = &pipeline.folded.kernel[i];
		struct schedule schedule = folded_schedule(module, folded, &pipeline.stage[i]);
		if (schedule_fits(module, folded->op, &schedule))
			record_folding(module, folded->op, &schedule);
	}
	return true;
}
