/* Builds the search space for parallelism: what each kernel reads and from which kernel, the rolled
 * loops, and the run-time extents at which a launch is priced. */
#include "ir/workload.h"
#include "engine/engine_cost.h"
#include "ir/contract.h"
#include "ir/sliding_window.h"
#include "ir/launch_tokens.h"
#include "ir/kernel_edit.h"
#include "schedule/parallelism.h"

/* a kernel outside the layers keeps pace with token tiles if it takes at most this part of the
 * engine's cycles for a layer, which are those of a tile of four */
#define KEEPS_PACE 0.25
/* margin of decode of one token for casts, forks and FIFOs that the model leaves out, since the
 * engine waits for them */
#define SLACK 0.04

static struct parallelism_part part_read(const struct op *op, int operand)
{
	const struct access *access = &op->kernel->operand[operand];
	int64_t low = access->offset;
	int64_t high = access->offset;
	int64_t elements = type_elements(op->operand[operand]->type);
	for (int l = 0; l < op->kernel->loops; l++) {
		const struct guard_range *guard = access_guard(access, l);
		int64_t first = guard ? guard->low : 0;
		int64_t last = guard ? guard->high - 1 : op->kernel->loop[l].extent - 1;
		int64_t stride = access->stride[l];
		low += stride * (stride < 0 ? last : first);
		high += stride * (stride < 0 ? first : last);
	}
	bool inside = access->index_operand < 0 && low >= 0 && high < elements;
	return inside ? (struct parallelism_part){ (double)low / (double)elements,
		(double)(high + 1) / (double)elements }
	              : (struct parallelism_part){ 0, 1 };
}

/* Kernels on parts of one state (KV partitions) run in parallel, so making one of them faster gains
 * nothing: all follow the first. Returns the first one's number, or k. */
static int first_part(const struct parallelism_table *w, int k)
{
	const struct attr *whole = attr_get(w->kernel[k], KEY_KV_PARTITION_OF);
	int first = k;
	for (int i = k - 1; whole && i >= 0; i--)
		if (text_same(attr_text_or(w->kernel[i], KEY_KV_PARTITION_OF, ""), whole->text))
			first = i;
	return first;
}

/* The two kernels of a quantizer read the same input. With equal parallelism they share one reorder
 * buffer. Returns the number of the kernel that computes the scale; -1: op is not the second kernel
 * of such a pair. */
static int scale_of(const struct parallelism_table *w, const struct op *op)
{
	const struct op *scale =
	        w->tokens_per_cycle > 1 && op->operands == 2 ? op->operand[1]->def : NULL;
	bool pair = scale && scale->code == OP_KERNEL && scale->kernel->ordered &&
	        scale->operands == 1 && scale->operand[0] == op->operand[0] &&
	        !kernel_has_reduction(op->kernel);
	return pair ? scale->result[0]->id : -1;
}

static bool reads(const struct op *op, const struct value *value)
{
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j] == value)
			return true;
	return false;
}

/* A variance that only scales use (defer_norm_factors.c) is computed while others read the same
 * input. It gets the parallelism of their mean, so that it does not delay them. Returns the mean's
 * number; -1: op is no such variance. */
static int mean_of(const struct parallelism_table *w, const struct op *op)
{
	const struct op *mean = w->tokens_per_cycle > 1 ? kernel_mean_of(op) : NULL;
	bool pair = mean;
	for (const struct op *reader = op->next; pair && reader; reader = reader->next)
		pair = !reads(reader, op->result[0]) || !reads(reader, op->operand[0]);
	return pair ? mean->result[0]->id : -1;
}

/* Number of the kernel that produces a carried value for the first layer; -1: no kernel does. */
static int entry_of(const struct value *carried)
{
	const struct op *loop = carried->block->parent;
	const struct op *maker = loop->operand[2 + carried->index]->def;
	return maker && maker->code == OP_KERNEL ? maker->result[0]->id : -1;
}

static bool same_order(const struct candidate *left, const struct candidate *right)
{
	const struct kernel *a = left->op->kernel;
	const struct kernel *b = right->op->kernel;
	bool same = left->op->operand[left->operand] == right->op->operand[right->operand] &&
	        a->loops == b->loops &&
	        access_same(&a->operand[left->operand], &b->operand[right->operand], a->loops);
	for (int l = 0; same && l < a->loops; l++)
		same = a->loop[l].extent == b->loop[l].extent;
	return same;
}

/* Does kernel k wait for a reduction of more bytes by the earlier kernel than may wait on chip? The
 * tensor is loaded again (share_buffers.c). */
static bool reads_again(const struct parallelism_table *w, int earlier, int k)
{
	const struct candidate *first = &w->candidate[earlier];
	const struct type *results = first->op->result[0]->type;
	int64_t bits =
	        first->elements * type_bits(type_scalar(first->op->operand[first->operand]->type));
	return kernel_has_reduction(first->op->kernel) &&
	        reads(w->candidate[k].op, first->op->result[0]) &&
	        bits / 8 / type_elements(results) > passing_bytes_most(w->context);
}

/* The first kernel that reads the bulk operand of kernel k as k does; -1: none. */
static int load_of(const struct parallelism_table *w, int k)
{
	if (w->pes || w->candidate[k].operand < 0)
		return -1;
	for (int i = 0; i < k; i++)
		if (w->candidate[i].operand >= 0 && same_order(&w->candidate[i], &w->candidate[k]))
			return reads_again(w, i, k) ? -1 : i;
	return -1;
}

static void add_kernel(
        const struct parallelism_table *w, struct parallelism_space *space, int k, int loop)
{
	const struct op *op = w->kernel[k];
	const struct op *sums = parallelism_sums_of(op);
	struct parallelism_kernel *kernel = &space->kernel[k];
	int part = first_part(w, k);
	int twin = part < k ? part : scale_of(w, op);
	twin = twin < 0 ? mean_of(w, op) : twin;
	*kernel = (struct parallelism_kernel){ .op = op,
		.operands = op->operands,
		.loop = loop,
		.follows = twin,
		.load_of = load_of(w, k),
		.same_parallelism = twin >= 0 };
	if (twin < 0 && sums)
		kernel->follows = sums->result[0]->id;
	kernel->source = ARENA_ARRAY(space->arena, int, op->operands + 1);
	kernel->job = ARENA_ARRAY(space->arena, struct parallelism_job, op->operands + 1);
	kernel->single = ARENA_ARRAY(space->arena, struct parallelism_job, op->operands + 1);
	kernel->part = ARENA_ARRAY(space->arena, struct parallelism_part, op->operands + 1);
	kernel->post_operand = ARENA_ARRAY(space->arena, bool, op->operands + 1);
	kernel->buffered = ARENA_ARRAY(space->arena, struct parallelism_buffered, op->operands + 1);
	kernel->carried = ARENA_ARRAY(space->arena, bool, op->operands + 1);
	kernel->entry = ARENA_ARRAY(space->arena, int, op->operands + 1);
	for (int j = 0; j < op->operands; j++) {
		const struct value *value = op->operand[j];
		const struct value *made = parallelism_through_engine(
		        value, w->pes, w->tokens_per_cycle, false, &kernel->job[j]);
		parallelism_through_engine(
		        value, w->pes, w->tokens_per_cycle, true, &kernel->single[j]);
		bool known = made->def && made->def->code == OP_KERNEL;
		if (kernel->job[j].cycles > 0) {
			kernel->job[j].number = kernel->single[j].number =
			        loop_yield_of(value)->def->result[0]->id + 1;
			kernel->job[j].run = kernel->single[j].run =
			        parallelism_same_input_job(loop_yield_of(value)->def)
			                ->result[0]
			                ->id +
			        1;
		}
		kernel->source[j] = known ? made->def->result[0]->id : -1;
		kernel->part[j] = part_read(op, j);
		kernel->post_operand[j] = kernel_is_post_operand(op->kernel, j);
		kernel->carried[j] = known && !value->def;
		kernel->entry[j] = kernel->carried[j] ? entry_of(value) : -1;
	}
}

static void add_block(const struct parallelism_table *w, struct parallelism_space *space,
        const struct block *block, int loop)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_KERNEL)
			add_kernel(w, space, space->kernels++, loop);
		if (op->code != OP_FOR)
			continue;
		int row = space->loops++;
		space->loop[row] = (struct parallelism_loop){ .first = space->kernels,
			.layers = attr_get(op->operand[1]->def, KEY_VALUE)->integer };
		add_block(w, space, op->region[0], row);
		space->loop[row].end = space->kernels;
	}
}

static int count_loops(const struct block *block)
{
	int count = 0;
	for (const struct op *op = block->first; op; op = op->next)
		count += op->code == OP_FOR ? 1 + count_loops(op->region[0]) : 0;
	return count;
}

/* Numbers the engine's jobs in program order. */
static int number_jobs(const struct block *block, int count)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			count = number_jobs(op->region[0], count);
		if (op->code == OP_CONTRACT)
			op->result[0]->id = count++;
	}
	return count;
}

/* Bytes of states that kernels read in a layer, or outside the layers, at an extent. */
static double bytes_at(const struct parallelism_table *w, const struct parallelism_space *space,
        enum parallelism_extent extent)
{
	double bits = 0;
	for (int i = 0; i < w->count; i++) {
		const struct op *op = w->kernel[i];
		const enum operand_location *operand_location =
		        operand_locations(w->module->arena, op);
		double part = 1;
		for (int l = 0; l < op->kernel->loops; l++)
			part *= op->kernel->loop[l].run_time
			        ? (double)parallelism_iterations(space,
			                  op->kernel->loop[l].run_time, op->kernel->loop[l].extent,
			                  extent) /
			                (double)op->kernel->loop[l].extent
			        : 1;
		for (int j = 0; j < op->operands; j++)
			bits += operand_location[j] == LOCATION_ROW_MAJOR ? part *
			                (double)(parallelism_points(op, j, true) *
			                        type_bits(type_scalar(op->operand[j]->type)))
			                                                  : 0;
	}
	return bits / 8;
}

static bool reads_state(const struct parallelism_table *w, const struct op *op)
{
	const enum operand_location *operand_location = operand_locations(w->module->arena, op);
	for (int j = 0; j < op->operands; j++)
		if (operand_location[j] == LOCATION_ROW_MAJOR)
			return true;
	return false;
}

/* The outermost of its loops with several iterations. */
static const struct loop *outermost(const struct kernel *kernel)
{
	int l = 0;
	while (l + 1 < kernel->loops && !kernel->loop[l].run_time && kernel->loop[l].extent == 1)
		l++;
	return &kernel->loop[l];
}

/* Are blocks of keys the outermost loop of all ordered kernels that read a state? */
static bool blocks_come_first(const struct parallelism_table *w)
{
	bool found = false;
	for (int i = 0; i < w->count; i++) {
		const struct kernel *kernel = w->kernel[i]->kernel;
		if (!kernel->ordered || !kernel->loops || !reads_state(w, w->kernel[i]))
			continue;
		if (!parallelism_walks_keys(outermost(kernel)))
			return false;
		found = true;
	}
	return found;
}

/* Finds the first loop over a sliding window: rows of which some layers see only the last ones.
 * false: there is none. */
static bool find_lookback(const struct parallelism_table *w, struct sliding_window *sliding_window)
{
	for (int k = 0; k < w->count; k++)
		for (int l = 0; l < w->kernel[k]->kernel->loops; l++) {
			const struct run_time_trip *run_time =
			        w->kernel[k]->kernel->loop[l].run_time;
			if (run_time &&
			        sliding_window_named(w->module, run_time->symbol, sliding_window))
				return true;
		}
	return false;
}

/* Prices a launch at the smallest sliding window and at the full past, weighted by the number of
 * layers of each kind. */
static void extents_of_layers(const struct parallelism_table *w, struct parallelism_space *space)
{
	struct sliding_window sliding_window;
	int layers;
	if (!find_lookback(w, &sliding_window))
		return;
	space->window_rows = sliding_window_rows_least(&sliding_window, &layers);
	space->extent[1] = EXTENT_WINDOW;
	space->weight[0] *= 1 - (double)layers / sliding_window.layers;
	space->weight[1] = 1 - space->weight[0];
}

static double piggybacked_bytes(
        const struct parallelism_table *w, const struct parallelism_space *space)
{
	struct sliding_window sliding_window;
	double bytes = bytes_at(w, space, EXTENT_MOST) *
	        (find_lookback(w, &sliding_window) ? sliding_window_fraction(&sliding_window) : 1);
	return states_share_weight_port(w->context->platform, w->module, module_main(w->module),
	               (int64_t)(8 * bytes))
	        ? bytes
	        : 0;
}

/* Decode of one token is bound by memory: sets the cycles in which weights and states arrive. */
static void wait_for_memory(const struct parallelism_table *w, struct parallelism_space *space)
{
	double rate = platform_channel_rate(space->platform);
	extents_of_layers(w, space);
	space->prefetched_words = (double)weight_prefetch_words(space->platform);
	space->weight_load_cycles = PORT_BITS / 8 / rate;
	space->piggyback_bytes = piggybacked_bytes(w, space);
	for (int e = 0; space->piggyback_bytes <= 0 && e < space->extents; e++)
		space->states[e] =
		        bytes_at(w, space, space->extent[e]) / space->platform->ports / rate;
}

/* Sets the extents and their weights. Generated tokens come after others: of one token, and of each
 * sequence of a batch, the past counts. A generated token counts as much as a token of a prompt, of
 * which a launch reads many. */
static void choose_extents(const struct parallelism_table *w, struct parallelism_space *space,
        const struct block *block)
{
	int64_t tokens = engine_tokens(block, &space->token_symbol);
	bool generates = sequences_take_one_token(block->parent);
	bool few = generates && tokens <= FEW_TOKENS;
	bool bound = false;
	for (int k = 0; k < w->count; k++)
		for (int l = 0; l < w->kernel[k]->kernel->loops; l++)
			bound = bound || w->kernel[k]->kernel->loop[l].run_time;
	space->extents = space->token_symbol || (bound && few) ? PARALLELISM_PRICED : 1;
	if (space->token_symbol) {
		space->extent[0] = EXTENT_ONE;
		space->extent[1] = EXTENT_NONE;
	} else if (few) {
		space->extent[0] = EXTENT_MOST;
		space->extent[1] = EXTENT_EIGHTH;
	} else {
		space->extent[0] = generates ? EXTENT_EIGHTH : EXTENT_NONE;
		space->extent[1] = EXTENT_MOST;
	}
	const struct choices *choices = &w->context->choices;
	space->single_token = w->pes && !space->stages && !space->token_symbol && tokens <= 1;
	/* this may crowd a die, but then fit_crowded_die.c finds a smaller choice */
	space->prices_by_best =
	        space->single_token && !choices->value[CHOICE_DSP] && !choices->value[CHOICE_LUT];
	/* FIFOs in front of faster kernels need more memory */
	space->speeds_up_ends = !choices->value[CHOICE_ON_CHIP];
	/* with more tiles it would use the area that reordering tokens needs */
	space->improves_long_extent = bound && !space->token_symbol && space->stages &&
	        layers_drain_between(engine_tokens(block, NULL));
	for (int e = 0; e < space->extents; e++) {
		int64_t launch_tokens = e ? tokens : 1;
		space->weight[e] = 1.0 /
		        (space->token_symbol ? (double)launch_tokens : (double)space->extents);
	}
}

/* Are there few enough token tiles that the engine starts the next layer while one ends
 * (engine_job_order.c)? */
static bool layers_overlap(const struct parallelism_table *w, const struct block *block)
{
	const char *rows = NULL;
	int64_t tokens = engine_tokens(block, &rows);
	int64_t tile = w->tokens_per_cycle > 1 ? token_tile(tokens, false) : tokens;
	return !rows && tokens > tile && tokens / tile <= WAVEFRONT_TILES_MOST &&
	        !layers_drain_between(tokens);
}

static double engine_layer_cycles(
        const struct parallelism_space *space, const struct parallelism_loop *loop)
{
	bool *counted = ARENA_ARRAY(space->arena, bool, space->jobs + 1);
	double cycles = 0;
	for (int k = loop->first; k < loop->end; k++)
		for (int j = 0; j < space->kernel[k].operands; j++) {
			const struct parallelism_job *job = &space->kernel[k].job[j];
			cycles += counted[job->number] ? 0 : job->sums;
			counted[job->number] = true;
		}
	return cycles;
}

struct parallelism_space *build_parallelism_space(
        const struct parallelism_table *w, const struct block *block)
{
	struct arena *arena = w->module->arena;
	const struct choices *choices = &w->context->choices;
	struct parallelism_space *space = ARENA_NEW(arena, struct parallelism_space);
	enum workload workload = workload_of(block->parent);
	space->arena = arena;
	space->guard = w->module->guard;
	space->platform = w->context->platform;
	space->kernel = ARENA_ARRAY(arena, struct parallelism_kernel, w->count + 1);
	space->loop = ARENA_ARRAY(arena, struct parallelism_loop, count_loops(block) + 1);
	space->jobs = number_jobs(block, 0);
	space->prefetches_states = w->pes &&
	        bytes_at(w, space, EXTENT_MOST) <=
	                (double)(resources_bytes(platform_total(space->platform)) /
	                        choice_count(choices, CHOICE_PREFETCH));
	space->wide_states = cache_rows_serve_few_tokens(block->parent);
	space->stages = w->tokens_per_cycle > 1;
	space->read_bits = w->read_bits;
	space->full_words = operands_use_full_words(module_main(w->module));
	space->slack = w->pes && w->tokens_per_cycle == 1 && !workload_has_many_tokens(workload)
	        ? SLACK
	        : 0;
	add_block(w, space, block, -1);
	parallelism_scratch(space, arena, w->count);
	for (int i = 0; layers_overlap(w, block) && i < space->loops; i++)
		space->loop[i].engine_cycles = engine_layer_cycles(space, &space->loop[i]);
	choose_extents(w, space, block);
	if (choice_word(choices, CHOICE_PROLOGUE) == PROLOGUE_PACED && space->loops &&
	        workload == WORKLOAD_TILED_COUNTED_TOKENS)
		space->pace = engine_layer_cycles(space, &space->loop[0]) * KEEPS_PACE;
	space->blocks_first = space->single_token && blocks_come_first(w);
	if (space->blocks_first)
		wait_for_memory(w, space);
	space->few_tokens = space->token_symbol && workload_has_few_tokens(workload);
	space->budget =
	        (struct parallelism_budget){ .dsp = w->dsp, .lut = w->lut, .ports = w->ports };
	for (int i = 0; i < w->count; i++)
		space->budget.ports += candidate_operands(&w->candidate[i]);
	return space;
}
