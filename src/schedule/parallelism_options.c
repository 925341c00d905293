/* The widths that a kernel may have, each with its time and its operators in closed form.
 *
 * Asked for 1, 2, 4 … lanes, the scheduler gives a kernel some; each different answer is an
 * option, with as many memory ports as the words of its bulk operand fill, or fewer. A kernel
 * whose words from memory arrive slower than it takes them is as slow as they are. */
#include "ir/kernel_edit.h"
#include "ports/memory_image.h"
#include "platform/dot_cost.h"
#include "predict/timing.h"
#include "schedule/dot_products.h"
#include "schedule/parallelism.h"
#include <string.h>

struct option_builder {
	struct streams *streams;
	struct parallelism_space *space;
	struct parallelism_kernel *kernel;
	const struct candidate *candidate;
	const struct fixed_parallelism *fixed; /* NULL: free */
	int64_t most_lanes;
	int most_ports;
	VEC(struct parallelism_option) options;
	int64_t below, above; /* widths next to a fixed one that there is not; 0: none */
};

/* --- operators of a body */

static bool is_half(const struct body *body, const struct node *node)
{
	return node->kind == NODE_OP && node->code == OP_EXTF &&
	        body->node[node->argument[0]].type->width == 16;
}

struct operator_cost parallelism_node_cost(const struct platform *platform, const struct body *body,
        const struct node *node, bool narrow)
{
	const struct node *left = &body->node[node->argument[0]];
	const struct node *right = &body->node[node->argument[1]];
	if (narrow && node->code == OP_MULF && node->type->width == 32 &&
	        (is_half(body, left) || is_half(body, right)))
		return platform_narrow(platform);
	if (node->code != OP_MULI || left->code != OP_EXTSI || right->code != OP_EXTSI)
		return platform_operator(platform, node->code, node->type);
	int bits = body->node[left->argument[0]].type->width;
	int other = body->node[right->argument[0]].type->width;
	return platform_product(platform, bits > other ? bits : other);
}

/* Numbers in a word of what is walked in these strides. */
static int64_t lanes_along(const int64_t *stride, const struct schedule *schedule)
{
	int64_t lanes = 1;
	for (int i = schedule_loops(schedule); i < schedule->parts; i++)
		lanes *= stride[schedule->part[i].source] ? schedule->part[i].trip : 1;
	return lanes;
}

static int64_t lanes_of(const struct kernel *kernel, const struct schedule *schedule, int operand)
{
	return lanes_along(kernel->operand[operand].stride, schedule);
}

/* Which nodes differ from lane to lane?  The others are computed once for a word. */
static const bool *wide_nodes(
        struct option_builder *m, const struct body *body, const struct schedule *schedule)
{
	bool *wide = ARENA_ARRAY(m->space->arena, bool, body->count + 1);
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		wide[n] = node->kind == NODE_ACCUMULATOR ||
		        (node->kind == NODE_OP && node->code == OP_INDEX) ||
		        (node->kind == NODE_OPERAND &&
		                lanes_of(m->kernel->op->kernel, schedule, (int)node->integer) > 1);
		for (int a = 0; node->kind == NODE_OP && a < op_info[node->code].operands; a++)
			wide[n] = wide[n] || wide[node->argument[a]];
	}
	return wide;
}

/* Are products formed in pairs?  Adds what that takes. */
static bool add_products(struct option_builder *m, const struct schedule *schedule,
        struct parallelism_option *option)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	struct dot_products dot_products;
	if (schedule->row_unroll < 2 ||
	        !match_dot_products(kernel, schedule->part[schedule->parts - 2].source,
	                schedule->part[schedule->parts - 1].source, schedule->row_unroll,
	                schedule->lanes, schedule_is_tree(kernel, schedule), &dot_products))
		return false;
	struct operator_cost cost = dot_cost(m->space->platform, &dot_products.dot);
	struct operator_cost add = platform_operator(m->space->platform, OP_ADDI, kernel->type);
	option->dsp += dot_products.dot_count * cost.dsp;
	option->lut += dot_products.dot_count * cost.lut +
	        (dot_products.dot.columns ? schedule->lanes : schedule->row_unroll) * add.lut;
	return true;
}

static void add_body(struct option_builder *m, const struct body *body,
        const struct schedule *schedule, int64_t lanes, int64_t interval,
        struct parallelism_option *option)
{
	const bool *wide = wide_nodes(m, body, schedule);
	bool paired = body == &m->kernel->op->kernel->update && add_products(m, schedule, option);
	for (int n = 0; n < body->count; n++) {
		bool in_pairs =
		        paired && (body->node[n].code == OP_MULI || body->node[n].code == OP_ADDI);
		if (body->node[n].kind != NODE_OP || body->node[n].type->kind == TYPE_INDEX ||
		        in_pairs)
			continue;
		struct operator_cost cost = parallelism_node_cost(
		        m->space->platform, body, &body->node[n], m->space->stages);
		int64_t instances = wide[n] ? (lanes + interval - 1) / interval : 1;
		option->dsp += instances * cost.dsp;
		option->lut += instances * cost.lut;
	}
}

static double body_depth(struct option_builder *m, const struct body *body)
{
	int *ready = ARENA_ARRAY(m->space->arena, int, body->count + 1);
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		for (int a = 0; node->kind == NODE_OP && a < op_info[node->code].operands; a++)
			ready[n] = ready[node->argument[a]] > ready[n] ? ready[node->argument[a]]
			                                               : ready[n];
		if (node->kind == NODE_OP && node->type->kind != TYPE_INDEX)
			ready[n] += platform_operator(m->space->platform, node->code, node->type)
			                    .latency;
	}
	return body->count ? ready[body->result] : 0;
}

/* --- times of a plan */

static double iterations(const struct schedule *schedule)
{
	double product = 1;
	for (int i = 0; i < schedule_loops(schedule); i++)
		product *= (double)schedule->part[i].trip;
	return product;
}

int64_t parallelism_iterations(const struct parallelism_space *space,
        const struct run_time_trip *run_time, int64_t most, enum parallelism_extent extent)
{
	bool rows = text_same(run_time->symbol, space->token_symbol);
	switch (extent) {
	case EXTENT_MOST: return most;
	case EXTENT_WINDOW:
		return run_time_count(run_time, space->window_rows) < most
		        ? run_time_count(run_time, space->window_rows)
		        : most;
	case EXTENT_EIGHTH: return (most + 7) / 8;
	case EXTENT_ONE: return rows ? run_time_count(run_time, 1) : (most + 1) / 2;
	case EXTENT_NONE:
		/* a prompt has all rows of a launch */
		return rows ? most
		        : run_time_count(run_time, 0) > 0 && run_time_count(run_time, 0) < most
		        ? run_time_count(run_time, 0)
		        : most;
	}
	return most;
}

/* The part of its iterations that a kernel does at an extent. */
static double part_at(const struct parallelism_space *space, const struct kernel *kernel,
        const struct schedule *schedule, enum parallelism_extent extent)
{
	double part = 1;
	for (int i = 0; i < schedule_loops(schedule); i++) {
		const struct run_time_trip *run_time =
		        kernel->loop[schedule->part[i].source].run_time;
		part *= run_time ? (double)parallelism_iterations(
		                           space, run_time, schedule->part[i].trip, extent) /
		                (double)schedule->part[i].trip
		                 : 1;
	}
	return part;
}

/* The part of all iterations after which the loops that `counts` have run through for the first
 * time. */
static double part_after(const struct schedule *schedule, const bool *counts)
{
	double all = iterations(schedule);
	double inner = all;
	double last = 0;
	for (int i = 0; i < schedule_loops(schedule); i++) {
		inner /= (double)schedule->part[i].trip;
		last += counts[i] ? (double)(schedule->part[i].trip - 1) * inner : 0;
	}
	return (last + 1) / all;
}

static bool reduces(const struct kernel *kernel, const struct schedule *schedule, int part)
{
	return !kernel->scan && kernel->loop[schedule->part[part].source].reduction &&
	        schedule->part[part].trip > 1;
}

static struct parallelism_timing timing_of_schedule(
        struct option_builder *m, const struct kernel *kernel, const struct schedule *schedule)
{
	struct arena *arena = m->space->arena;
	bool *counts = ARENA_ARRAY(arena, bool, schedule->parts + 1);
	for (int i = 0; i < schedule_loops(schedule); i++)
		counts[i] = reduces(kernel, schedule, i);
	struct parallelism_timing timing = { .first = part_after(schedule, counts),
		.need = ARENA_ARRAY(arena, double, m->kernel->operands + 1),
		.taken = ARENA_ARRAY(arena, double, m->kernel->operands + 1) };
	for (int j = 0; j < m->kernel->operands; j++) {
		double outside = 1;
		bool reduced = false;
		for (int i = 0; i < schedule_loops(schedule); i++) {
			reduced = reduced || reduces(kernel, schedule, i);
			counts[i] = kernel->operand[j].stride[schedule->part[i].source] != 0;
			outside *= counts[i] && !reduced ? (double)schedule->part[i].trip : 1;
		}
		timing.taken[j] = part_after(schedule, counts);
		timing.need[j] = reduced ? 1 / outside : 0;
	}
	return timing;
}

bool parallelism_walks_keys(const struct loop *loop)
{
	return loop->run_time && loop->run_time->tile > 1;
}

static bool walks_tokens(const struct option_builder *m, const struct kernel *kernel,
        const struct schedule *schedule, int part)
{
	const struct run_time_trip *run_time = kernel->loop[schedule->part[part].source].run_time;
	return run_time && text_same(run_time->symbol, m->space->token_symbol);
}

/* The plan with as many rows as a launch has.  A unit of few gives each number of all rows
 * before the next, and what is between its phases follows that: rows come innermost. */
static struct schedule schedule_of_tokens(struct option_builder *m, const struct kernel *kernel,
        const struct schedule *schedule, enum parallelism_extent extent)
{
	struct schedule reordered = *schedule;
	int loops = schedule_loops(schedule);
	int others = 0;
	reordered.part = arena_copy(
	        m->space->arena, schedule->part, sizeof *schedule->part * (size_t)schedule->parts);
	for (int i = 0; i < loops; i++)
		if (!m->space->few_tokens || !walks_tokens(m, kernel, schedule, i))
			reordered.part[others++] = schedule->part[i];
	for (int i = 0; i < loops; i++)
		if (m->space->few_tokens && walks_tokens(m, kernel, schedule, i))
			reordered.part[others++] = schedule->part[i];
	for (int i = 0; i < loops; i++)
		if (walks_tokens(m, kernel, &reordered, i))
			reordered.part[i].trip = parallelism_iterations(m->space,
			        kernel->loop[reordered.part[i].source].run_time,
			        reordered.part[i].trip, extent);
	return reordered;
}

/* The plan as the search for orders leaves it: blocks of keys come one after the other. */
static struct schedule schedule_of_blocks(
        struct option_builder *m, const struct kernel *kernel, const struct schedule *schedule)
{
	struct schedule reordered = *schedule;
	int loops = schedule_loops(schedule);
	int blocks = 0;
	while (blocks < loops &&
	        !parallelism_walks_keys(&kernel->loop[schedule->part[blocks].source]))
		blocks++;
	if (!m->space->blocks_first || blocks == loops)
		return reordered;
	reordered.part = arena_copy(
	        m->space->arena, schedule->part, sizeof *schedule->part * (size_t)schedule->parts);
	for (int i = blocks; i > 0; i--)
		reordered.part[i] = reordered.part[i - 1];
	reordered.part[0] = schedule->part[blocks];
	return reordered;
}

static void add_times(struct option_builder *m, const struct kernel *kernel,
        const struct schedule *schedule, struct parallelism_option *option)
{
	struct schedule of_blocks = schedule_of_blocks(m, kernel, schedule);
	if (!m->space->token_symbol)
		option->timing[0] = timing_of_schedule(m, kernel, &of_blocks);
	for (int e = 0; e < PARALLELISM_PRICED; e++) {
		struct schedule of_rows;
		if (m->space->token_symbol)
			of_rows = schedule_of_tokens(m, kernel, schedule, m->space->extent[e]);
		option->timing[e] = m->space->token_symbol ? timing_of_schedule(m, kernel, &of_rows)
		                                           : option->timing[0];
	}
}

static double elements_taken(const struct op *op, const struct schedule *schedule, int operand)
{
	return (double)schedule_words(op->kernel, schedule, operand) *
	        (double)lanes_of(op->kernel, schedule, operand);
}

/* Of the tensor, that it takes at all. */
static double elements_once(const struct op *op, int operand)
{
	double elements = 1;
	for (int l = 0; l < op->kernel->loops; l++)
		elements *= op->kernel->operand[operand].stride[l]
		        ? (double)op->kernel->loop[l].extent
		        : 1;
	return elements;
}

/* The part of what is taken that is sent where a launch has fewer rows; for every row of a group
 * of numbers nothing is sent again (emit_streams.c). */
static double part_sent(const struct option_builder *m, const struct schedule *schedule,
        int operand, enum parallelism_extent extent)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	bool moved = false;
	double part = 1;
	for (int i = 0; m->space->token_symbol && i < schedule_loops(schedule); i++) {
		int loop = schedule->part[i].source;
		bool still = !kernel->operand[operand].stride[loop],
		     rows = walks_tokens(m, kernel, schedule, i);
		int64_t turns = !rows ? schedule->part[i].trip
		        : still && moved
		        ? 1
		        : parallelism_iterations(m->space, kernel->loop[loop].run_time,
		                  schedule->part[i].trip, extent);
		part *= (double)turns / (double)schedule->part[i].trip;
		moved = moved || !still;
	}
	return part;
}

/* The loader of operands without ports of their own gives full words, where their order has
 * such. */
static double shared_cycles(struct option_builder *m, const enum operand_location *operand_location,
        const struct schedule *schedule, int operand, enum parallelism_extent extent)
{
	const struct op *op = m->kernel->op;
	if (operand_location[operand] != LOCATION_PACKED || operand == m->candidate->operand)
		return 0;
	double elements =
	        elements_taken(op, schedule, operand) * part_sent(m, schedule, operand, extent);
	double once = elements_once(op, operand);
	double lanes = (double)shared_load_lanes(
	        type_scalar(op->operand[operand]->type), m->space->full_words);
	elements = is_cached_on_chip(elements, once) ? once : elements;
	return elements > lanes ? elements / lanes : 1;
}

/* Ports side by side that bring the words of a state (state_order.c). */
static int state_ports(const struct option_builder *m, const struct schedule *schedule, int operand)
{
	const struct op *op = m->kernel->op;
	const struct choices *choices = &m->streams->context->choices;
	int64_t bits = lanes_of(op->kernel, schedule, operand) *
	        type_bits(type_scalar(op->operand[operand]->type));
	int64_t most = choice_count(choices, CHOICE_KV_PORTS);
	int64_t ports = 1;
	while (m->space->wide_states && 2 * ports <= most && 2 * ports * PORT_BITS <= bits)
		ports *= 2;
	return (int)ports;
}

/* Cycles that the words of a port take; what is laid out offline is read as often as it is
 * taken, a state once. */
static double memory_cycles(struct option_builder *m, const enum operand_location *operand_location,
        const struct schedule *schedule, int operand, int ports)
{
	const struct platform *platform = m->space->platform;
	const struct op *op = m->kernel->op;
	if (operand_location[operand] == LOCATION_ON_CHIP ||
	        (operand_location[operand] == LOCATION_PACKED && operand != m->candidate->operand))
		return 0;
	double elements = elements_taken(op, schedule, operand);
	if (operand_location[operand] == LOCATION_ROW_MAJOR) {
		const struct parallelism_part *part = &m->kernel->part[operand];
		elements = (double)type_elements(op->operand[operand]->type) *
		        (part->high - part->low);
		ports = state_ports(m, schedule, operand);
	}
	if (operand_location[operand] == LOCATION_ROW_MAJOR && m->space->piggyback_bytes > 0)
		return m->space->piggyback_bytes / platform_channel_rate(platform);
	double rate = platform_channel_rate(platform);
	double word = platform->port_bits / 8.0;
	return elements * (double)type_bits(type_scalar(op->operand[operand]->type)) / 8 / ports /
	        (rate < word ? rate : word);
}

/* --- options */

static bool words_fit(
        const struct parallelism_space *space, const struct op *op, const struct schedule *schedule)
{
	int64_t most = space->single_token ? WORD_BITS : WORD_BITS / 2;
	bool fit = true;
	for (int j = 0; j < op->operands; j++)
		fit = fit &&
		        lanes_of(op->kernel, schedule, j) *
		                        type_bits(type_scalar(op->operand[j]->type)) <=
		                most;
	return fit &&
	        schedule->lanes * type_bits(op->kernel->type) <=
	        most * (schedule->row_unroll > 1 ? 8 : 1);
}

/* What brings its words and takes them away: a FIFO of 16 or 32 has a LUT a bit, and often there
 * is another behind a process that changes the width. */
static int64_t words_lut(const struct op *op, const struct schedule *schedule)
{
	int64_t bits = (schedule->row_unroll > 1 && !schedule_is_tree(op->kernel, schedule)
	                               ? 1
	                               : schedule->row_unroll) *
	        (schedule_is_tree(op->kernel, schedule) ? 1 : schedule->lanes) *
	        type_bits(op->kernel->type);
	for (int j = 0; j < op->operands; j++)
		bits += lanes_of(op->kernel, schedule, j) *
		        type_bits(type_scalar(op->operand[j]->type));
	return bits * 3 / 2;
}

/* A process stands on one die. */
static bool fits_die(const struct platform *platform, const struct parallelism_option *option)
{
	for (int d = 0; d < platform->dies; d++)
		if (option->dsp <= platform->die[d].dsp && option->lut <= platform->die[d].lut)
			return true;
	return false;
}

/* Cycles between iterations.  Of many tokens an order in turns would hold a tile of numbers, so
 * it is not counted on. */
static int64_t interval_of(struct option_builder *m, const struct schedule *schedule)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	if (!kernel_has_reduction(kernel))
		return 1;
	int latency = schedule_chain_latency(m->space->platform, m->space->arena, kernel);
	int interval = schedule_interval(kernel, schedule, latency);
	struct schedule reordered;
	/* beside no unit a kernel of few points is not turned */
	bool counted = schedule_is_tree(kernel, schedule) || m->space->single_token;
	if (m->space->stages || interval == 1 || !counted ||
	        !schedule_interleaved(m->space->arena, kernel, schedule, &reordered))
		return interval;
	int best = schedule_interval(kernel, &reordered, latency);
	return best < interval ? best : interval;
}

/* Beside a unit of several tokens rows come in turns. */
static double drain_cycles_of(struct option_builder *m, const struct schedule *schedule)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	if (!kernel_has_reduction(kernel) || m->space->stages || m->space->token_symbol)
		return 0;
	return (double)schedule_drain_cycles(kernel, schedule,
	        schedule_chain_latency(m->space->platform, m->space->arena, kernel),
	        m->space->single_token);
}

/* Of the words of a sum, and of its parts, which are put together by trees; beside a unit of one
 * token, that waits for them. */
static double tree_depth(const struct option_builder *m, const struct schedule *schedule)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	int latency = schedule_chain_latency(m->space->platform, m->space->arena, kernel);
	int64_t numbers = kernel_has_reduction(kernel)
	        ? schedule_partial_sums(kernel, schedule, latency) *
	                (schedule_is_tree(kernel, schedule) ? schedule->lanes : 1)
	        : 1;
	return m->space->single_token ? (double)(schedule_tree_levels(numbers) * latency) : 0;
}

/* Where sums are formed in turns what they are of comes in that order: in attention of each
 * block of keys, else of all. */
static void hold_reordered(const struct option_builder *m, const struct kernel *kernel,
        const struct schedule *schedule, struct parallelism_option *option)
{
	for (int e = 0; e < PARALLELISM_PRICED; e++) {
		option->timing[e].buffered = 1;
		for (int i = 0; i < schedule_loops(schedule); i++) {
			const struct loop *loop = &kernel->loop[schedule->part[i].source];
			if (parallelism_walks_keys(loop))
				option->timing[e].buffered /=
				        (double)parallelism_iterations(m->space, loop->run_time,
				                schedule->part[i].trip, m->space->extent[e]);
		}
	}
}

/* Cycles at the pace of a converter that hands on what is inside the reduction. */
static void hand_over_rows(const struct kernel *kernel, const struct schedule *schedule,
        struct parallelism_option *option)
{
	double words = 1;
	bool inside = false;
	for (int i = 0; i < schedule_loops(schedule); i++) {
		const struct loop *loop = &kernel->loop[schedule->part[i].source];
		inside = inside || loop->reduction;
		words *= inside ? (double)schedule->part[i].trip : 1;
	}
	for (int e = 0; e < PARALLELISM_PRICED; e++)
		option->timing[e].handover = option->cycles[e] * (1 + BLOCK_HANDOVER / words);
}

/* The same where they come in wider words. */
static void split_rows(const struct option_builder *m, const struct kernel *kernel,
        const struct schedule *schedule, struct parallelism_option *option)
{
	int latency = schedule_chain_latency(m->space->platform, m->space->arena, kernel);
	int64_t blocks = 1;
	int64_t sums = 1;
	int64_t parts = 1;
	for (int i = 0; i < schedule_loops(schedule); i++) {
		const struct loop *loop = &kernel->loop[schedule->part[i].source];
		*(parallelism_walks_keys(loop) ? &blocks : &sums) *=
		        loop->reduction ? 1 : schedule->part[i].trip;
	}
	while (parts < latency)
		parts *= 2;
	for (int e = 0; e < PARALLELISM_PRICED; e++)
		option->timing[e].split = (iterations(schedule) +
		                                  (double)(blocks *
		                                          schedule_combine_cycles(schedule->lanes,
		                                                  parts, sums, latency))) *
		        part_at(m->space, kernel, schedule, m->space->extent[e]);
}

static void add_option(struct option_builder *m, const enum operand_location *operand_location,
        const struct schedule *schedule, int64_t most, int ports)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	struct arena *arena = m->space->arena;
	struct parallelism_option option = {
		.parallelism = { .lanes = most, .bulk = m->candidate->operand, .ports = ports },
		.lanes = schedule->lanes,
		.row_unroll = schedule->row_unroll
	};
	bool tree = schedule_is_tree(kernel, schedule);
	option.out = lanes_along(kernel->result.stride, schedule);
	option.in = ARENA_ARRAY(arena, int64_t, m->kernel->operands + 1);
	for (int j = 0; j < m->kernel->operands; j++)
		option.in[j] = lanes_of(kernel, schedule, j);
	int64_t interval = interval_of(m, schedule);
	int64_t listed = kernel_has_reduction(kernel)
	        ? schedule_interval(kernel, schedule,
	                  schedule_chain_latency(m->space->platform, arena, kernel))
	        : 1;
	double cycles = iterations(schedule) * (double)interval + drain_cycles_of(m, schedule);
	double prefetch = 0;
	for (int j = 0; j < m->kernel->operands; j++) {
		double memory = memory_cycles(
		        m, operand_location, schedule, j, j == m->candidate->operand ? ports : 1);
		double *takes =
		        operand_location[j] == LOCATION_ROW_MAJOR && m->space->prefetches_states
		        ? &prefetch
		        : &cycles;
		*takes = memory > *takes ? memory : *takes;
		for (int e = 0; e < PARALLELISM_PRICED; e++)
			option.shared[e] += shared_cycles(
			        m, operand_location, schedule, j, m->space->extent[e]);
	}
	for (int e = 0; e < PARALLELISM_PRICED; e++) {
		double part = part_at(m->space, kernel, schedule, m->space->extent[e]);
		double own = cycles * part;
		/* ahead, it takes the loader's time only */
		option.cycles[e] = option.shared[e] > own && !m->space->prefetches_states
		        ? option.shared[e]
		        : own;
		option.prefetch[e] = prefetch * part;
	}
	add_body(m, &kernel->update, schedule, schedule->lanes * schedule->row_unroll, interval,
	        &option);
	add_body(m, &kernel->post, schedule, tree ? schedule->row_unroll : schedule->lanes,
	        tree ? 1 : interval, &option);
	option.lut += words_lut(m->kernel->op, schedule);
	if (m->options.count && !fits_die(m->space->platform, &option))
		return;
	option.depth = body_depth(m, &kernel->update) + body_depth(m, &kernel->post) +
	        tree_depth(m, schedule) + LOOP_CYCLES + PROCESS_CYCLES;
	add_times(m, kernel, schedule, &option);
	if (m->space->single_token && interval < listed)
		hold_reordered(m, kernel, schedule, &option);
	if (m->space->single_token && interval < listed && tree)
		split_rows(m, kernel, schedule, &option);
	if (m->space->single_token && kernel_has_reduction(kernel) && !tree)
		hand_over_rows(kernel, schedule, &option);
	VEC_PUSH(arena, &m->options, option);
}

/* Ports that the words of the bulk operand fill. */
static int ports_of(struct option_builder *m, const struct schedule *schedule)
{
	int bulk = m->candidate->operand;
	if (bulk < 0)
		return 1;
	int64_t own = lanes_of(m->kernel->op->kernel, schedule, bulk) *
	        type_bits(type_scalar(m->kernel->op->operand[bulk]->type)) / PORT_BITS;
	return own < 1 ? 1 : own < m->most_ports ? (int)own : m->most_ports;
}

static bool is_fixed_to(const struct option_builder *m, const struct schedule *schedule)
{
	const struct fixed_parallelism *fixed = m->fixed;
	return !fixed ||
	        ((!fixed->lanes || fixed->lanes == schedule->lanes) &&
	                (!fixed->rows || fixed->rows == schedule->row_unroll));
}

static void note_near(struct option_builder *m, const struct schedule *schedule)
{
	int64_t lanes = schedule->lanes;
	int64_t wanted = m->fixed ? m->fixed->lanes : 0;
	if (lanes < wanted)
		m->below = lanes > m->below ? lanes : m->below;
	else if (lanes > wanted)
		m->above = !m->above || lanes < m->above ? lanes : m->above;
}

static void add_options(struct option_builder *m)
{
	const struct op *op = m->kernel->op;
	const enum operand_location *operand_location = operand_locations(m->space->arena, op);
	int64_t lanes = 0;
	int64_t rows = 0;
	for (int64_t most = 1; most <= m->most_lanes; most *= 2) {
		struct schedule schedule = schedule_kernel(
		        m->streams->module, op, operand_location, is_only_stored(op), most);
		if ((schedule.lanes == lanes && schedule.row_unroll == rows) ||
		        (m->options.count && !words_fit(m->space, op, &schedule)))
			continue;
		lanes = schedule.lanes;
		rows = schedule.row_unroll;
		note_near(m, &schedule);
		int own = ports_of(m, &schedule);
		for (int ports = 1; ports <= own && is_fixed_to(m, &schedule); ports *= 2)
			if (!m->fixed || !m->fixed->ports || m->fixed->ports == ports)
				add_option(m, operand_location, &schedule, most, ports);
	}
	m->kernel->options = (int)m->options.count;
	m->kernel->option = m->options.data;
}

/* The unit waits for what stands in front of layers, tile by tile, and behind them for the last
 * tile's part: options that do not keep pace, where others do. */
static void drop_slow(const struct parallelism_space *space, int number)
{
	struct parallelism_kernel *kernel = &space->kernel[number];
	int first = space->pace > 0 && kernel->loop < 0
	        ? parallelism_of_pace(space, number, PARALLELISM_PRICED - 1, space->pace, 1)
	        : 0;
	kernel->option += first;
	kernel->options -= first;
}

/* A gather moves rows: it has no operators to choose. */
static void add_gather(struct option_builder *m)
{
	struct parallelism_option *option = ARENA_NEW(m->space->arena, struct parallelism_option);
	*option = (struct parallelism_option){
		.parallelism = { .lanes = m->candidate->port_lanes, .bulk = -1, .ports = 1 },
		.lanes = 1,
		.row_unroll = 1
	};
	option->in = ARENA_ARRAY(m->space->arena, int64_t, m->kernel->operands + 1);
	for (int e = 0; e < PARALLELISM_PRICED; e++)
		option->cycles[e] = (double)type_elements(m->kernel->op->result[0]->type) /
		        (double)m->candidate->port_lanes;
	option->depth = m->space->platform->memory_latency;
	for (int e = 0; e < PARALLELISM_PRICED; e++)
		option->timing[e] = (struct parallelism_timing){
			.need = ARENA_ARRAY(m->space->arena, double, m->kernel->operands + 1),
			.taken = ARENA_ARRAY(m->space->arena, double, m->kernel->operands + 1)
		};
	m->kernel->options = 1;
	m->kernel->option = option;
}

static bool cannot_be(struct option_builder *m)
{
	struct diag *diag = m->streams->module->diag;
	const char *name = m->kernel->op->kernel->name;
	diag_error(diag, m->kernel->op->location,
	        "kernel %s cannot have this parallelism: lanes %lld, row-unroll %lld, ports %lld "
	        "(0: not fixed)",
	        name, (long long)m->fixed->lanes, (long long)m->fixed->rows,
	        (long long)m->fixed->ports);
	if (m->fixed->lanes && m->below && m->above)
		return diag_note(diag, "the nearest that it can have are %lld and %lld lanes",
		        (long long)m->below, (long long)m->above);
	return diag_note(diag,
	        "the nearest possible is %lld lanes; row-unroll and ports are powers of two that "
	        "fit with these lanes",
	        (long long)(m->below ? m->below : m->above));
}

static bool is_within(const struct parallelism_kernel *kernel, const struct parallelism_option *own,
        const struct parallelism_option *leader)
{
	return kernel->same_parallelism
	        ? own->lanes * own->row_unroll <= leader->lanes * leader->row_unroll &&
	                own->parallelism.ports <= leader->parallelism.ports
	        : own->lanes <= leader->row_unroll;
}

/* A kernel that takes the sums of another as they come, or is as wide as another: its option for
 * each of the other's. */
static void follow(struct parallelism_space *space, struct parallelism_kernel *kernel)
{
	const struct parallelism_kernel *leader = &space->kernel[kernel->follows];
	int *own = ARENA_ARRAY(space->arena, int, leader->options + 1);
	for (int i = 0; i < leader->options; i++)
		for (int o = 0; o < kernel->options; o++)
			own[i] = is_within(kernel, &kernel->option[o], &leader->option[i]) ? o
			                                                                   : own[i];
	kernel->follow = own;
}

bool parallelism_options(
        struct streams *streams, struct parallelism_space *space, const struct candidate *candidate)
{
	const struct choices *choices = &streams->context->choices;
	for (int k = 0; k < space->kernels; k++) {
		struct option_builder m = { .streams = streams,
			.space = space,
			.kernel = &space->kernel[k],
			.candidate = &candidate[k] };
		const struct fixed_parallelism *phase =
		        parallelism_of_phase(streams, &candidate[k]);
		const struct fixed_parallelism *given =
		        fixed_parallelism_of(choices, m.kernel->op->kernel->name);
		m.fixed = given ? given : phase;
		m.most_lanes = choice_count(choices, CHOICE_LANES);
		m.most_ports = (int)choice_count(choices, CHOICE_PORTS);
		if (kernel_is_gather(m.kernel->op))
			add_gather(&m);
		else
			add_options(&m);
		/* it cannot: the weight is packed once more */
		if (!m.kernel->options && !given && phase) {
			m.fixed = NULL;
			add_options(&m);
		}
		if (!m.kernel->options)
			return cannot_be(&m);
		if (!given)
			drop_slow(space, k);
	}
	for (int k = 0; k < space->kernels; k++)
		if (space->kernel[k].follows >= 0)
			follow(space, &space->kernel[k]);
	parallelism_buffering(streams, space);
	parallelism_interleave_rows(space);
	return true;
}
