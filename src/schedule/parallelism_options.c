/* Lists the parallelism options of each kernel with their cycles and operators in closed form.
 *
 * The scheduler is asked for at most 1, 2, 4, ... lanes; each different schedule is an option,
 * with as many memory ports as the words of its bulk operand fill, or fewer. A kernel that reads
 * memory takes no less than its words need to arrive. */
#include "base/number.h"
#include "ir/kernel_edit.h"
#include "ports/memory_image.h"
#include "platform/dot_cost.h"
#include "predict/timing.h"
#include "schedule/dot_products.h"
#include "schedule/node_cost.h"
#include "schedule/parallelism.h"
#include <string.h>

/* Builds the options of one kernel. */
struct option_builder {
	struct module *module;
	const struct choices *choices;
	struct parallelism_space *space;
	struct parallelism_kernel *kernel;
	const struct candidate *candidate;
	const struct fixed_parallelism *fixed; /* --fix-kernel or the other phase; NULL: free */
	int64_t most_lanes;
	int most_ports;
	VEC(struct parallelism_option) options;
	int64_t below, above; /* lanes next to fixed ones that are not possible; 0: none */
};

/* Elements in a word of a port with these strides. */
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

/* Has the operand memory ports of its own? */
static bool has_ports(const struct option_builder *m, int operand)
{
	return operand == m->candidate->operand || m->candidate->peers >> operand & 1;
}

/* Memory ports that the words of an operand fill; 1 for none. */
static int ports_of(const struct option_builder *m, const struct schedule *schedule, int operand)
{
	if (operand < 0)
		return 1;
	int64_t own = lanes_of(m->kernel->op->kernel, schedule, operand) *
	        type_bits(type_scalar(m->kernel->op->operand[operand]->type)) / PORT_BITS;
	if (own < 1)
		return 1;
	return own < m->most_ports ? (int)own : m->most_ports;
}

/* Which nodes differ from lane to lane? The others are computed once per word. */
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

/* Are products packed in pairs into DSPs (dot_products.h)? Adds what they take. */
static bool add_products(struct option_builder *m, const struct schedule *schedule,
        struct parallelism_option *option)
{
	const struct schedule_part *inner = &schedule->part[schedule->parts - 1];
	const struct kernel *kernel = m->kernel->op->kernel;
	struct dot_products dot_products;
	if (schedule->row_unroll < 2)
		return false;
	const struct schedule_part *row = &schedule->part[schedule_first_lane(schedule) - 1];
	struct unrolled_loops unrolled = { row->source, inner->source, schedule->row_unroll,
		schedule->lanes, schedule_is_tree(kernel, schedule) };
	if (!match_dot_products(kernel, &unrolled, &dot_products))
		return false;
	struct operator_cost cost = dot_cost(m->space->platform, &dot_products.dot);
	struct operator_cost add = platform_operator(m->space->platform, OP_ADDI, kernel->type);
	option->dsp += dot_products.dot_count * cost.dsp;
	option->lut += dot_products.dot_count * cost.lut +
	        (dot_products.dot.columns ? schedule->lanes : schedule->row_unroll) * add.lut;
	return true;
}

/* Adds the operators of a body; wide_instances: of those that differ from lane to lane. */
static void add_body(struct option_builder *m, const struct body *body,
        const struct schedule *schedule, int64_t wide_instances, struct parallelism_option *option)
{
	const bool *wide = wide_nodes(m, body, schedule);
	bool paired = body == &m->kernel->op->kernel->update && add_products(m, schedule, option);
	for (int n = 0; n < body->count; n++) {
		bool in_pairs =
		        paired && (body->node[n].code == OP_MULI || body->node[n].code == OP_ADDI);
		if (body->node[n].kind != NODE_OP || body->node[n].type->kind == TYPE_INDEX ||
		        in_pairs)
			continue;
		/* beside an engine what shifts would save is left free (parallelism.h) */
		if (!m->space->jobs && node_only_shifts(body, &body->node[n]))
			continue;
		struct operator_cost cost =
		        node_cost(m->space->platform, body, &body->node[n], m->space->stages);
		int64_t instances = wide[n] ? wide_instances : 1;
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

/* --- cycles of a schedule */

static double iterations(const struct schedule *schedule)
{
	double product = 1;
	for (int i = 0; i < schedule_loops(schedule); i++)
		product *= (double)schedule->part[i].trip;
	return product;
}

static bool is_between(int64_t number, int64_t low, int64_t high)
{
	return number > low && number < high;
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
		/* a prompt has all tokens of a launch */
		return rows || !is_between(run_time_count(run_time, 0), 0, most)
		        ? most
		        : run_time_count(run_time, 0);
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

/* The part of all iterations after which the loops of `counts` have completed for the first
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

/* The schedule at an extent of the token count. With few tokens the engine produces each element
 * for all tokens before the next one, and the kernels between its jobs follow that: token loops are
 * innermost. */
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

/* The schedule that the search for loop orders will choose: blocks of keys outermost. */
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

/* Elements of the tensor that it reads at least once. */
static double elements_once(const struct op *op, int operand)
{
	double elements = 1;
	for (int l = 0; l < op->kernel->loops; l++)
		elements *= op->kernel->operand[operand].stride[l]
		        ? (double)op->kernel->loop[l].extent
		        : 1;
	return elements;
}

/* The part of the operand's elements that is sent when a launch has fewer tokens. In an order of
 * groups nothing is repeated per token (emit_streams.c). */
static double part_sent(const struct option_builder *m, const struct schedule *schedule,
        int operand, enum parallelism_extent extent)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	bool moved = false;
	double part = 1;
	for (int i = 0; m->space->token_symbol && i < schedule_loops(schedule); i++) {
		int loop = schedule->part[i].source;
		bool still = !kernel->operand[operand].stride[loop];
		int64_t sent = schedule->part[i].trip;
		if (walks_tokens(m, kernel, schedule, i))
			sent = still && moved
			        ? 1
			        : parallelism_iterations(m->space, kernel->loop[loop].run_time,
			                  schedule->part[i].trip, extent);
		part *= (double)sent / (double)schedule->part[i].trip;
		moved = moved || !still;
	}
	return part;
}

/* Cycles of the shared loader for an operand without ports of its own: it delivers full words. */
static double shared_cycles(struct option_builder *m, const enum operand_location *operand_location,
        const struct schedule *schedule, int operand, enum parallelism_extent extent)
{
	const struct op *op = m->kernel->op;
	if (operand_location[operand] != LOCATION_PACKED || has_ports(m, operand))
		return 0;
	double elements =
	        elements_taken(op, schedule, operand) * part_sent(m, schedule, operand, extent);
	double once = elements_once(op, operand);
	double lanes = (double)shared_load_lanes(
	        type_scalar(op->operand[operand]->type), m->space->full_words);
	elements = is_cached_on_chip(elements, once) ? once : elements;
	return elements > lanes ? elements / lanes : 1;
}

/* Memory ports that together deliver the words of a state (state_order.c). */
static int state_ports(const struct option_builder *m, const struct schedule *schedule, int operand)
{
	const struct op *op = m->kernel->op;
	const struct choices *choices = m->choices;
	int64_t bits = lanes_of(op->kernel, schedule, operand) *
	        type_bits(type_scalar(op->operand[operand]->type));
	int64_t most = choice_count(choices, CHOICE_KV_PORTS);
	int64_t ports = 1;
	while (m->space->wide_states && 2 * ports <= most && 2 * ports * PORT_BITS <= bits)
		ports *= 2;
	return (int)ports;
}

/* Cycles that memory takes for the words of an operand: a packed one is read as often as it is
 * needed, a state once. */
static double memory_cycles(struct option_builder *m, const enum operand_location *operand_location,
        const struct schedule *schedule, int operand, int ports)
{
	const struct platform *platform = m->space->platform;
	const struct op *op = m->kernel->op;
	if (operand_location[operand] == LOCATION_ON_CHIP ||
	        (operand_location[operand] == LOCATION_PACKED && !has_ports(m, operand)))
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
	int64_t most = space->single_token || !space->jobs ? WORD_BITS : WORD_BITS / 2;
	most = kernel_has_reduction(op->kernel) && space->read_bits > WORD_BITS ? space->read_bits
	                                                                        : most;
	bool fit = true;
	for (int j = 0; j < op->operands; j++)
		fit = fit &&
		        lanes_of(op->kernel, schedule, j) *
		                        type_bits(type_scalar(op->operand[j]->type)) <=
		                most;
	/* a tree's result is no word */
	if (space->read_bits > WORD_BITS && schedule_is_tree(op->kernel, schedule))
		return fit;
	return fit &&
	        schedule->lanes * type_bits(op->kernel->type) <=
	        most * (schedule->row_unroll > 1 ? 8 : 1);
}

/* LUTs of the FIFOs of its words: a FIFO of depth 16 or 32 takes a LUT per bit, and often a data
 * width converter with a second FIFO follows. */
static int64_t words_lut(const struct op *op, const struct schedule *schedule)
{
	bool tree = schedule_is_tree(op->kernel, schedule);
	int64_t elements = tree ? schedule->row_unroll : schedule->lanes;
	int64_t bits = elements * type_bits(op->kernel->type);
	for (int j = 0; j < op->operands; j++)
		bits += lanes_of(op->kernel, schedule, j) *
		        type_bits(type_scalar(op->operand[j]->type));
	return bits * 3 / 2;
}

/* A process must fit on one die. */
static bool fits_die(const struct platform *platform, const struct parallelism_option *option)
{
	for (int d = 0; d < platform->dies; d++)
		if (option->dsp <= platform->die[d].dsp && option->lut <= platform->die[d].lut)
			return true;
	return false;
}

/* Cycles between iterations. With several tokens interleaved sums would hold a tile of elements, so
 * they are not assumed. */
static int64_t interval_of(struct option_builder *m, const struct schedule *schedule)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	if (!kernel_has_reduction(kernel))
		return 1;
	int latency = schedule_chain_latency(m->space->platform, m->space->arena, kernel);
	int interval = schedule_interval(kernel, schedule, latency);
	struct schedule reordered;
	/* without an engine, a kernel of few results keeps its loop order */
	bool counted = schedule_is_tree(kernel, schedule) || m->space->single_token ||
	        schedule_needs_interleaving(m->kernel->op);
	if (m->space->stages || interval == 1 || !counted ||
	        !schedule_interleaved(m->space->arena, kernel, schedule, &reordered))
		return interval;
	int best = schedule_interval(kernel, &reordered, latency);
	return best < interval ? best : interval;
}

/* Cycles for combining partial sums; none with several tokens, whose rows are interleaved. */
static double drain_cycles_of(struct option_builder *m, const struct schedule *schedule)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	if (!kernel_has_reduction(kernel) || m->space->stages || m->space->token_symbol)
		return 0;
	return (double)schedule_drain_cycles(kernel, schedule,
	        schedule_chain_latency(m->space->platform, m->space->arena, kernel),
	        m->space->single_token);
}

/* Latency of the adder trees over the words of a sum and over its partial sums. It is counted in
 * decode of one token, which waits for it. */
static double tree_depth(const struct option_builder *m, const struct schedule *schedule)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	int latency = schedule_chain_latency(m->space->platform, m->space->arena, kernel);
	int64_t lanes = schedule_is_tree(kernel, schedule) ? schedule->lanes : 1;
	int64_t terms = kernel_has_reduction(kernel)
	        ? schedule_partial_sums(kernel, schedule, latency) * lanes
	        : 1;
	return m->space->single_token ? (double)(schedule_tree_levels(terms) * latency) : 0;
}

/* Interleaved sums need their terms in that order, so a converter holds them: in attention a block
 * of keys, else all. */
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

/* Cycles at the pace of a converter that delivers the elements inside the reduction. */
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

/* Cycles if these elements come in wider words, row by row. */
static void split_rows(const struct option_builder *m, const struct kernel *kernel,
        const struct schedule *schedule, struct parallelism_option *option)
{
	int latency = schedule_chain_latency(m->space->platform, m->space->arena, kernel);
	int64_t blocks = 1;
	int64_t sums = 1;
	int64_t parts = 1;
	for (int i = 0; i < schedule_loops(schedule); i++) {
		const struct loop *loop = &kernel->loop[schedule->part[i].source];
		if (loop->reduction)
			continue;
		*(parallelism_walks_keys(loop) ? &blocks : &sums) *= schedule->part[i].trip;
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

/* Sets the cycles of an option, from its iterations and from memory. */
static void set_cycles(struct option_builder *m, const enum operand_location *operand_location,
        const struct schedule *schedule, int64_t interval, struct parallelism_option *option)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	double cycles = iterations(schedule) * (double)interval + drain_cycles_of(m, schedule);
	double prefetch = 0;
	for (int j = 0; j < m->kernel->operands; j++) {
		int filled = has_ports(m, j) ? ports_of(m, schedule, j) : 1;
		int ports = filled < option->parallelism.ports ? filled : option->parallelism.ports;
		double memory = memory_cycles(m, operand_location, schedule, j, ports);
		bool is_prefetched =
		        operand_location[j] == LOCATION_ROW_MAJOR && m->space->prefetches_states;
		double *limit = is_prefetched ? &prefetch : &cycles;
		*limit = memory > *limit ? memory : *limit;
		for (int e = 0; e < PARALLELISM_PRICED; e++)
			option->shared[e] += shared_cycles(
			        m, operand_location, schedule, j, m->space->extent[e]);
	}
	for (int e = 0; e < PARALLELISM_PRICED; e++) {
		double part = part_at(m->space, kernel, schedule, m->space->extent[e]);
		option->cycles[e] = cycles * part;
		/* with prefetch, the shared loader only has to keep up on average */
		if (option->shared[e] > option->cycles[e] && !m->space->prefetches_states)
			option->cycles[e] = option->shared[e];
		option->prefetch[e] = prefetch * part;
	}
}

/* Sets the cycles at which an option of decode of one token reads and writes in other orders.
 * listed: its interval in the listed loop order. */
static void set_reordering(struct option_builder *m, const struct schedule *schedule,
        int64_t interval, int64_t listed, struct parallelism_option *option)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	bool tree = schedule_is_tree(kernel, schedule);
	if (!m->space->single_token)
		return;
	if (interval < listed)
		hold_reordered(m, kernel, schedule, option);
	if (interval < listed && tree)
		split_rows(m, kernel, schedule, option);
	if (kernel_has_reduction(kernel) && !tree)
		hand_over_rows(kernel, schedule, option);
}

static void add_option(struct option_builder *m, const enum operand_location *operand_location,
        const struct schedule *schedule, int64_t most, int ports)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	struct arena *arena = m->space->arena;
	struct parallelism_option option = { .parallelism = { .lanes = most,
		                                     .bulk = m->candidate->operand,
		                                     .ports = ports,
		                                     .peers = m->candidate->peers },
		.lanes = schedule->lanes,
		.row_unroll = schedule->row_unroll };
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
	int64_t updates = ceil_div(schedule->lanes * schedule->row_unroll, interval);
	int64_t posts = tree ? schedule->row_unroll : ceil_div(schedule->lanes, interval);
	set_cycles(m, operand_location, schedule, interval, &option);
	add_body(m, &kernel->update, schedule, updates, &option);
	add_body(m, &kernel->post, schedule, posts, &option);
	option.lut += words_lut(m->kernel->op, schedule);
	if (m->options.count && !fits_die(m->space->platform, &option))
		return;
	option.depth = body_depth(m, &kernel->update) + body_depth(m, &kernel->post) +
	        tree_depth(m, schedule) + LOOP_CYCLES + PROCESS_CYCLES;
	add_times(m, kernel, schedule, &option);
	set_reordering(m, schedule, interval, listed, &option);
	VEC_PUSH(arena, &m->options, option);
}

static bool is_fixed_to(const struct option_builder *m, const struct schedule *schedule)
{
	const struct fixed_parallelism *fixed = m->fixed;
	return !fixed ||
	        ((!fixed->lanes || fixed->lanes == schedule->lanes) &&
	                (!fixed->row_unroll || fixed->row_unroll == schedule->row_unroll));
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
		struct schedule schedule =
		        schedule_kernel(m->module, op, operand_location, is_only_stored(op), most);
		if ((schedule.lanes == lanes && schedule.row_unroll == rows) ||
		        (m->options.count && !words_fit(m->space, op, &schedule)))
			continue;
		lanes = schedule.lanes;
		rows = schedule.row_unroll;
		note_near(m, &schedule);
		int own = ports_of(m, &schedule, m->candidate->operand);
		for (int ports = 1; ports <= own && is_fixed_to(m, &schedule); ports *= 2)
			if (!m->fixed || !m->fixed->ports || m->fixed->ports == ports)
				add_option(m, operand_location, &schedule, most, ports);
	}
	m->kernel->options = (int)m->options.count;
	m->kernel->option = m->options.data;
}

/* --prologue paced: the engine waits for the kernels before the layers at every tile, and for those
 * after them at the last one. Drops options that do not keep pace, unless none does. */
static void drop_slow(const struct parallelism_space *space, int number)
{
	struct parallelism_kernel *kernel = &space->kernel[number];
	int first = space->pace > 0 && kernel->loop < 0
	        ? parallelism_of_pace(space, number, PARALLELISM_PRICED - 1, space->pace, 1)
	        : 0;
	kernel->option += first;
	kernel->options -= first;
}

/* A gather moves rows and has no operators, so it has one option. */
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
	struct diag *diag = m->module->diag;
	const char *name = m->kernel->op->kernel->name;
	diag_error(diag, m->kernel->op->location,
	        "kernel %s cannot have this parallelism: lanes %lld, row-unroll %lld, ports %lld "
	        "(0: not fixed)",
	        name, (long long)m->fixed->lanes, (long long)m->fixed->row_unroll,
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

/* For each option of the leader, the widest own option that does not exceed it: of a kernel that
 * reads the leader's sums, or shares its parallelism. */
static void set_follower_options(struct parallelism_space *space, struct parallelism_kernel *kernel)
{
	const struct parallelism_kernel *leader = &space->kernel[kernel->follows];
	int *own = ARENA_ARRAY(space->arena, int, leader->options + 1);
	for (int i = 0; i < leader->options; i++)
		for (int o = 0; o < kernel->options; o++)
			own[i] = is_within(kernel, &kernel->option[o], &leader->option[i]) ? o
			                                                                   : own[i];
	kernel->follow = own;
}

bool parallelism_options(const struct parallelism_table *w, struct parallelism_space *space)
{
	const struct choices *choices = &w->context->choices;
	for (int k = 0; k < space->kernels; k++) {
		struct option_builder m = { .module = w->module,
			.choices = choices,
			.space = space,
			.kernel = &space->kernel[k],
			.candidate = &w->candidate[k] };
		const struct fixed_parallelism *other_phase =
		        parallelism_of_phase(w->context, &w->candidate[k]);
		const struct fixed_parallelism *by_user =
		        fixed_parallelism_of(choices, m.kernel->op->kernel->name);
		struct fixed_parallelism wish;
		bool wished = unroll_of_kernel(w->module, m.kernel->op->kernel->name, &wish);
		m.fixed = by_user ? by_user : other_phase;
		if (!m.fixed && wished)
			m.fixed = &wish;
		m.most_lanes = choice_count(choices, CHOICE_LANES);
		m.most_ports = (int)choice_count(choices, CHOICE_PORTS);
		if (kernel_is_gather(m.kernel->op))
			add_gather(&m);
		else
			add_options(&m);
		/* the other phase's choice is not possible here: the weight gets a packed copy of
		 * its own; or a pragma asks for what cannot be */
		if (!m.kernel->options && !by_user && m.fixed) {
			m.fixed = NULL;
			add_options(&m);
		}
		if (!m.kernel->options)
			return cannot_be(&m);
		if (!by_user)
			drop_slow(space, k);
	}
	for (int k = 0; k < space->kernels; k++)
		if (space->kernel[k].follows >= 0)
			set_follower_options(space, &space->kernel[k]);
	parallelism_buffering(w->module, space);
	parallelism_interleave_rows(space);
	return true;
}
