/* Folds convolutions of integers, and the kernels between them, into a pipeline that passes images
 * on pixel by pixel, all channels of a pixel before the next one (channels last):
 *
 *     rows │ columns │ channels out / PE │ window │ channels in / SIMD │ SIMD terms │ PE sums
 *
 * Before: stream.kernel {loops = [64, 56, 56, 64, 3, 3]}, a convolution of 64 by 64 channels
 * After:  the same with folding = {loops = [[1, 56, 1], [2, 56, 1], [0, 8, 8], [4, 3, 1],
 *         [5, 3, 1], [3, 4, 16], [3, 16, 1], [0, 8, 1]], row_unroll = 16, lanes = 8, held = …}
 * So a layer holds the rows under its window (a line buffer) and its weights, and all layers of a
 * network run at once.  PE and SIMD of all kernels are chosen together (fold_rates.c).
 * Needs: kernels on root tensors. Guarantees: none has a parallelism or a schedule. Sums of integers
 * are reordered, which is exact. Ends: each value gets the distance of its channels once. */
#include "fusion/fuse.h"
#include "ir/kernel_edit.h"
#include "ir/workload.h"
#include "schedule/fold_rates.h"
#include "schedule/recorded_choices.h"
#include "schedule/register_tile.h"
#include "schedule/schedule_passes.h"
#include "schedule/tensor_sources.h"

struct folding {
	struct pass_context *context;
	struct module *module;
	bool changed; /* a value got its channels in this round */
};

/* A kernel of the pipeline. */
struct stage {
	struct op *op;
	int channel; /* the parallel loop over channels of its result */
	int term;    /* the reduction over channels of its operand; -1: none */
};

/* Elements between neighbouring channels of a value; 0: not known. */
static int64_t channel_pitch(const struct value *value)
{
	return value->data ? *(const int64_t *)value->data : 0;
}

static void set_channel_pitch(struct folding *f, struct value *value, int64_t pitch)
{
	if (pitch <= 0 || value->data)
		return;
	int64_t *kept = ARENA_NEW(f->module->arena, int64_t);
	*kept = pitch;
	value->data = kept;
	f->changed = true;
}

static bool is_weight(const struct module *module, const struct value *value)
{
	if (value->def)
		return is_tensor_constant(value->def);
	const struct attr *role =
	        function_argument_attr(module_main(module), value->index, KEY_STREAM_ROLE);
	return role && text_same(role->text, "weight");
}

/* The operand of a contraction that is an image, the other one being its weights; -1: it is no
 * contraction of this form. */
static int image_operand(const struct module *module, const struct op *op)
{
	if (op->operands != 2 || op->kernel->post.count || !is_contraction(op))
		return -1;
	bool first = is_weight(module, op->operand[0]);
	return first == is_weight(module, op->operand[1]) ? -1 : first;
}

/* The only reader of a kernel's result, and with which operand; NULL: several, or none. */
static struct op *only_reader(const struct op *op, int *operand)
{
	struct op *found = NULL;
	for (struct op *reader = op->next; reader; reader = reader->next)
		for (int j = 0; j < reader->operands; j++) {
			if (reader->operand[j] != op->result[0])
				continue;
			if (found)
				return NULL;
			found = reader;
			*operand = j;
		}
	return found;
}

/* What follows the sums of a convolution, as a bias, moves to their reader: it needs fewer lanes
 * than the sums. */
static void move_epilogues(struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		int operand;
		if (op->code != OP_KERNEL || kernel_is_gather(op) || type_is_real(op->kernel->type) ||
		        !op->kernel->post.count || !is_contraction(op) ||
		        body_uses_counters(&op->kernel->post))
			continue;
		kernel_split_epilogue(module, op);
		struct op *post = op->next;
		struct op *reader = only_reader(post, &operand);
		if (reader && reader->code == OP_KERNEL &&
		        fuse_inline(module, post, reader, operand))
			op_remove(post);
	}
}

/* Does a parallel loop move the dimension of the image that reduction `loop` moves, as a window
 * does? Or is that no single dimension? */
static bool slides(const struct op *op, int image, int loop)
{
	const struct access *access = &op->kernel->operand[image];
	const struct type *type = op->operand[image]->type;
	int64_t step;
	int dim = schedule_data_dim(type, access->stride[loop], op->kernel->loop[loop].extent, &step);
	bool found = dim < 0;
	for (int l = 0; l < op->kernel->loops; l++)
		found = found ||
		        (!op->kernel->loop[l].reduction && access->stride[l] &&
		                schedule_data_dim(type, access->stride[l],
		                        op->kernel->loop[l].extent, &step) == dim);
	return found;
}

/* The only loop of a contraction that moves its weights and is (or is no) reduction, and does not
 * slide; -1: none or several. */
static int only_loop(const struct op *op, int image, bool reduction)
{
	int found = -1;
	for (int l = 0; l < op->kernel->loops; l++) {
		if (op->kernel->loop[l].reduction != reduction ||
		        op->kernel->loop[l].extent == 1 ||
		        !op->kernel->operand[1 - image].stride[l] ||
		        (reduction && slides(op, image, l)))
			continue;
		if (found >= 0)
			return -1;
		found = l;
	}
	return found;
}

/* A contraction says which dimensions of its operand and result are channels. */
static void learn_from_contraction(struct folding *f, struct op *op, int image)
{
	const struct access *access = &op->kernel->operand[image];
	int channel = only_loop(op, image, false);
	int term = only_loop(op, image, true);
	if (channel < 0)
		return;
	if (access->stride[channel])
		set_channel_pitch(f, op->operand[image], access->stride[channel]);
	else if (term >= 0)
		set_channel_pitch(f, op->operand[image], access->stride[term]);
	set_channel_pitch(f, op->result[0], op->kernel->result.stride[channel]);
}

/* Other kernels leave channels apart: what is known of one side holds for the other. */
static void learn_from_neighbours(struct folding *f, struct op *op)
{
	const struct kernel *kernel = op->kernel;
	for (int j = 0; j < op->operands; j++)
		for (int l = 0; l < kernel->loops; l++) {
			int64_t from = kernel->operand[j].stride[l];
			int64_t to = kernel->result.stride[l];
			if (kernel->loop[l].extent == 1 || kernel->loop[l].reduction || !from || !to)
				continue;
			if (from == channel_pitch(op->operand[j]))
				set_channel_pitch(f, op->result[0], to);
			else if (to == channel_pitch(op->result[0]))
				set_channel_pitch(f, op->operand[j], from);
		}
}

static void find_channels(struct folding *f, struct block *block)
{
	do {
		f->changed = false;
		for (struct op *op = block->first; op; op = op->next) {
			if (op->code != OP_KERNEL || kernel_is_gather(op))
				continue;
			int image = image_operand(f->module, op);
			if (image >= 0)
				learn_from_contraction(f, op, image);
			else
				learn_from_neighbours(f, op);
		}
	} while (f->changed);
}

/* Can the kernel be a stage, and which are its channels?  Sums of reals are left alone: their order
 * is the source's. */
static bool is_stage(const struct folding *f, struct op *op, struct stage *stage)
{
	const struct kernel *kernel = op->kernel;
	int64_t pitch = op->code == OP_KERNEL ? channel_pitch(op->result[0]) : 0;
	if (!pitch || kernel_is_gather(op) || kernel->scan || kernel->ordered ||
	        kernel->tile_outermost || (kernel_has_reduction(kernel) && type_is_real(kernel->type)))
		return false;
	*stage = (struct stage){ .op = op, .channel = -1, .term = -1 };
	for (int l = 0; l < kernel->loops; l++) {
		if (kernel->loop[l].run_time)
			return false;
		if (!kernel->loop[l].reduction && kernel->result.stride[l] == pitch &&
		        kernel->loop[l].extent > 1 && !kernel_is_guarded(op, l))
			stage->channel = l;
	}
	int image = image_operand(f->module, op);
	if (image >= 0)
		stage->term = only_loop(op, image, true);
	return stage->channel >= 0;
}

static bool has_products(const struct stage *stage)
{
	int term;
	const struct kernel *kernel = stage->op->kernel;
	return kernel_has_reduction(kernel) && kernel_combine(kernel, &term) == OP_ADDI &&
	        body_has(&kernel->update, OP_MULI);
}

static int64_t body_dsp(const struct platform *platform, const struct body *body)
{
	int64_t dsp = 0;
	for (int n = 0; n < body->count; n++)
		if (body->node[n].kind == NODE_OP)
			dsp += platform_operator(platform, body->node[n].code, body->node[n].type)
			               .dsp;
	return dsp;
}

static struct fold_stage rates_of(const struct folding *f, const struct stage *stage)
{
	const struct kernel *kernel = stage->op->kernel;
	struct fold_stage rates = { .points = 1,
		.channels = kernel->loop[stage->channel].extent,
		.terms = stage->term < 0 ? 1 : kernel->loop[stage->term].extent,
		.products = has_products(stage),
		.bits = type_bits(kernel->type) };
	for (int l = 0; l < kernel->loops; l++)
		rates.points *= (double)kernel->loop[l].extent;
	for (int j = 0; j < stage->op->operands && rates.products; j++)
		rates.bits = type_bits(type_scalar(stage->op->operand[j]->type));
	if (!rates.products)
		rates.dsp = body_dsp(f->context->platform, &kernel->update) +
		        body_dsp(f->context->platform, &kernel->post);
	return rates;
}

static void add_part(struct schedule *schedule, int source, int64_t trip, int64_t step)
{
	schedule->part[schedule->parts++] = (struct schedule_part){ source, trip, step };
}

/* Adds the parallel loops other than channels, those of far elements first. */
static void add_pixels(struct schedule *schedule, const struct stage *stage)
{
	const struct kernel *kernel = stage->op->kernel;
	int first = schedule->parts;
	for (int l = 0; l < kernel->loops; l++) {
		if (kernel->loop[l].reduction || l == stage->channel)
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
static void add_reductions(struct schedule *schedule, const struct stage *stage, bool windows)
{
	const struct op *op = stage->op;
	for (int l = 0; l < op->kernel->loops; l++)
		if (op->kernel->loop[l].reduction && l != stage->term && slides(op, 0, l) == windows)
			add_part(schedule, l, op->kernel->loop[l].extent, 1);
}

/* Do the weights of a channel follow one another, rather than those of a term? */
static bool terms_are_together(const struct stage *stage)
{
	int64_t by_channel = 0;
	int64_t by_term = 0;
	for (int j = 0; j < stage->op->operands; j++) {
		const int64_t *stride = stage->op->kernel->operand[j].stride;
		if (stride[stage->channel] && stride[stage->term]) {
			by_channel = stride[stage->channel];
			by_term = stride[stage->term];
		}
	}
	return by_term < by_channel;
}

/* Adds rows and lanes: a word has the elements of one row after those of the other, as the weights
 * have them. */
static void add_unrolled(
        struct schedule *schedule, const struct stage *stage, const struct fold_stage *rates)
{
	int rows = stage->term;
	int lanes = stage->channel;
	int64_t row_unroll = rates->simd;
	schedule->lanes = rates->pe;
	if (rates->pe == 1 || (rates->simd > 1 && terms_are_together(stage))) {
		rows = stage->channel;
		lanes = stage->term;
		row_unroll = rates->pe;
		schedule->lanes = rates->simd;
	}
	if (row_unroll > 1 && schedule->lanes > 1) {
		schedule->row_unroll = row_unroll;
		add_part(schedule, rows, row_unroll, 1);
	}
	if (schedule->lanes > 1)
		add_part(schedule, lanes, schedule->lanes, 1);
}

static void record(struct folding *f, const struct stage *stage, const struct fold_stage *rates)
{
	struct op *op = stage->op;
	struct schedule schedule = { .row_unroll = 1 };
	schedule.part = ARENA_ARRAY(
	        f->module->arena, struct schedule_part, 2 * op->kernel->loops + 4);
	int64_t *held = ARENA_ARRAY(f->module->arena, int64_t, op->operands + 1);
	add_pixels(&schedule, stage);
	add_reductions(&schedule, stage, false);
	add_part(&schedule, stage->channel, rates->channels / rates->pe, rates->pe);
	add_reductions(&schedule, stage, true);
	if (stage->term >= 0)
		add_part(&schedule, stage->term, rates->terms / rates->simd, rates->simd);
	add_unrolled(&schedule, stage, rates);
	schedule.held = held;
	if (schedule_fits(f->module, op, &schedule))
		record_folding(f->module, op, &schedule);
}

static bool is_convolution(const struct folding *f, const struct stage *stage)
{
	const struct access *access;
	int image = image_operand(f->module, stage->op);
	bool found = false;
	for (int l = 0; image >= 0 && l < stage->op->kernel->loops; l++) {
		access = &stage->op->kernel->operand[image];
		found = found || (!stage->op->kernel->loop[l].reduction && l != stage->channel &&
		                         access->stride[l]);
	}
	return found && has_products(stage);
}

bool fold_convolutions(struct pass_context *context, struct module *module)
{
	struct block *body = module_main(module)->region[0];
	struct folding f = { .context = context, .module = module };
	VEC(struct stage) stages = { 0 };
	VEC(struct fold_stage) rates = { 0 };
	struct stage stage;
	bool convolves = false;
	forget_recorded_choices(module);
	if (workload_of(module_main(module)) != WORKLOAD_NONE)
		return true;
	move_epilogues(module, body);
	ir_clear_data(body);
	find_channels(&f, body);
	for (struct op *op = body->first; op; op = op->next)
		if (is_stage(&f, op, &stage)) {
			VEC_PUSH(module->arena, &stages, stage);
			VEC_PUSH(module->arena, &rates, rates_of(&f, &stage));
			convolves = convolves || is_convolution(&f, &stage);
		}
	ir_clear_data(body);
	if (!convolves)
		return true;
	int64_t dsp = choice_resolve(&context->choices, context->platform, CHOICE_DSP);
	choose_fold_rates(module->arena, rates.data, (int)rates.count, dsp);
	for (size_t i = 0; i < stages.count; i++)
		record(&f, &stages.data[i], &rates.data[i]);
	return true;
}
