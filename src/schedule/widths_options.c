/* The widths that a kernel may have, each with its time and its operators in closed form.
 *
 * Asked for 1, 2, 4 … lanes, the scheduler gives a kernel some; each different answer is an option, with as many memory ports as the words of its bulk operand fill, or fewer.
 * A kernel whose words from memory arrive slower than it takes them is as slow as they are. */
#include "ir/kernel_edit.h"
#include "ports/memory.h"
#include "platform/dot_cost.h"
#include "predict/timing.h"
#include "schedule/products.h"
#include "schedule/widths.h"
#include <string.h>


struct maker {
	struct streams *streams;
	struct width_space *space;
	struct width_kernel *kernel;
	const struct candidate *candidate;
	const struct fixed_width *fixed;  /* NULL: free */
	int64_t most_lanes;
	int most_ports;
	VEC(struct width_option) options;
	int64_t below, above;     /* widths next to a fixed one that there is not; 0: none */
};

/* --- operators of a body */

static bool is_half(const struct body *body, const struct node *node)
{
	return node->kind == NODE_OP && node->code == OP_EXTF && body->node[node->argument[0]].type->width == 16;
}

struct operator_cost widths_node_cost(const struct platform *platform, const struct body *body, const struct node *node, bool narrow)
{
	const struct node *left = &body->node[node->argument[0]], *right = &body->node[node->argument[1]];
	if (narrow && node->code == OP_MULF && node->type->width == 32 && (is_half(body, left) || is_half(body, right)))
		return platform_narrow(platform);
	if (node->code != OP_MULI || left->code != OP_EXTSI || right->code != OP_EXTSI)
		return platform_operator(platform, node->code, node->type);
	int bits = body->node[left->argument[0]].type->width, other = body->node[right->argument[0]].type->width;
	return platform_product(platform, bits > other ? bits : other);
}

/* Numbers in a word of what is walked in these strides. */
static int64_t lanes_along(const int64_t *stride, const struct plan *plan)
{
	int64_t lanes = 1;
	for (int i = plan_loops(plan); i < plan->parts; i++)
		lanes *= stride[plan->part[i].source] ? plan->part[i].trip : 1;
	return lanes;
}

static int64_t lanes_of(const struct kernel *kernel, const struct plan *plan, int operand)
{
	return lanes_along(kernel->operand[operand].stride, plan);
}

/* Which nodes differ from lane to lane?  The others are computed once for a word. */
static const bool *wide_nodes(struct maker *m, const struct body *body, const struct plan *plan)
{
	bool *wide = ARENA_ARRAY(m->space->arena, bool, body->count + 1);
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		wide[n] = node->kind == NODE_ACCUMULATOR || (node->kind == NODE_OP && node->code == OP_INDEX) ||
			  (node->kind == NODE_OPERAND && lanes_of(m->kernel->op->kernel, plan, (int)node->integer) > 1);
		for (int a = 0; node->kind == NODE_OP && a < op_info[node->code].operands; a++)
			wide[n] = wide[n] || wide[node->argument[a]];
	}
	return wide;
}

/* Are products formed in pairs?  Adds what that takes. */
static bool add_products(struct maker *m, const struct plan *plan, struct width_option *option)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	struct products products;
	if (plan->rows < 2 || !find_products(kernel, plan->part[plan->parts - 2].source, plan->part[plan->parts - 1].source, plan->rows, plan->lanes, plan_is_tree(kernel, plan), &products))
		return false;
	struct operator_cost cost = dot_cost(m->space->platform, &products.dot), add = platform_operator(m->space->platform, OP_ADDI, kernel->type);
	option->dsp += products.dots * cost.dsp;
	option->lut += products.dots * cost.lut + (products.dot.across ? plan->lanes : plan->rows) * add.lut;
	return true;
}

static void add_body(struct maker *m, const struct body *body, const struct plan *plan, int64_t lanes, int64_t interval, struct width_option *option)
{
	const bool *wide = wide_nodes(m, body, plan);
	bool paired = body == &m->kernel->op->kernel->update && add_products(m, plan, option);
	for (int n = 0; n < body->count; n++) {
		bool in_pairs = paired && (body->node[n].code == OP_MULI || body->node[n].code == OP_ADDI);
		if (body->node[n].kind != NODE_OP || body->node[n].type->kind == TYPE_INDEX || in_pairs)
			continue;
		struct operator_cost cost = widths_node_cost(m->space->platform, body, &body->node[n], m->space->stages);
		int64_t instances = wide[n] ? (lanes + interval - 1) / interval : 1;
		option->dsp += instances * cost.dsp;
		option->lut += instances * cost.lut;
	}
}

static double body_depth(struct maker *m, const struct body *body)
{
	int *ready = ARENA_ARRAY(m->space->arena, int, body->count + 1);
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		for (int a = 0; node->kind == NODE_OP && a < op_info[node->code].operands; a++)
			ready[n] = ready[node->argument[a]] > ready[n] ? ready[node->argument[a]] : ready[n];
		if (node->kind == NODE_OP && node->type->kind != TYPE_INDEX)
			ready[n] += platform_operator(m->space->platform, node->code, node->type).latency;
	}
	return body->count ? ready[body->result] : 0;
}

/* --- times of a plan */

static double iterations(const struct plan *plan)
{
	double product = 1;
	for (int i = 0; i < plan_loops(plan); i++)
		product *= (double)plan->part[i].trip;
	return product;
}

int64_t widths_turns(const struct width_space *space, const struct run_time_trip *run_time, int64_t most, enum width_extent extent)
{
	bool rows = text_same(run_time->symbol, space->rows);
	switch (extent) {
	case EXTENT_MOST:
		return most;
	case EXTENT_NEAR:
		return run_time_count(run_time, space->near) < most ? run_time_count(run_time, space->near) : most;
	case EXTENT_EIGHTH:
		return (most + 7) / 8;
	case EXTENT_ONE:
		return rows ? run_time_count(run_time, 1) : (most + 1) / 2;
	case EXTENT_NONE:
		return rows ? most : run_time_count(run_time, 0) > 0 && run_time_count(run_time, 0) < most ? run_time_count(run_time, 0) : most;     /* a prompt has all rows of a launch */
	}
	return most;
}

/* The part of its iterations that a kernel does at an extent. */
static double part_at(const struct width_space *space, const struct kernel *kernel, const struct plan *plan, enum width_extent extent)
{
	double part = 1;
	for (int i = 0; i < plan_loops(plan); i++) {
		const struct run_time_trip *run_time = kernel->loop[plan->part[i].source].run_time;
		part *= run_time ? (double)widths_turns(space, run_time, plan->part[i].trip, extent) / (double)plan->part[i].trip : 1;
	}
	return part;
}

/* The part of all iterations after which the loops that `counts` have run through for the first time. */
static double part_after(const struct plan *plan, const bool *counts)
{
	double all = iterations(plan), inner = all, last = 0;
	for (int i = 0; i < plan_loops(plan); i++) {
		inner /= (double)plan->part[i].trip;
		last += counts[i] ? (double)(plan->part[i].trip - 1) * inner : 0;
	}
	return (last + 1) / all;
}

static bool reduces(const struct kernel *kernel, const struct plan *plan, int part)
{
	return !kernel->scan && kernel->loop[plan->part[part].source].reduction && plan->part[part].trip > 1;
}

static struct width_flow flow_of_plan(struct maker *m, const struct kernel *kernel, const struct plan *plan)
{
	struct arena *arena = m->space->arena;
	bool *counts = ARENA_ARRAY(arena, bool, plan->parts + 1);
	for (int i = 0; i < plan_loops(plan); i++)
		counts[i] = reduces(kernel, plan, i);
	struct width_flow flow = {.first = part_after(plan, counts), .need = ARENA_ARRAY(arena, double, m->kernel->operands + 1), .taken = ARENA_ARRAY(arena, double, m->kernel->operands + 1)};
	for (int j = 0; j < m->kernel->operands; j++) {
		double outside = 1;
		bool reduced = false;
		for (int i = 0; i < plan_loops(plan); i++) {
			reduced = reduced || reduces(kernel, plan, i);
			counts[i] = kernel->operand[j].stride[plan->part[i].source] != 0;
			outside *= counts[i] && !reduced ? (double)plan->part[i].trip : 1;
		}
		flow.taken[j] = part_after(plan, counts);
		flow.need[j] = reduced ? 1 / outside : 0;
	}
	return flow;
}

bool widths_walks_keys(const struct loop *loop)
{
	return loop->run_time && loop->run_time->tile > 1;
}

static bool walks_rows(const struct maker *m, const struct kernel *kernel, const struct plan *plan, int part)
{
	const struct run_time_trip *run_time = kernel->loop[plan->part[part].source].run_time;
	return run_time && text_same(run_time->symbol, m->space->rows);
}

/* The plan with as many rows as a launch has.  A unit of few gives each number of all rows before the next, and what is between its phases follows that: rows come innermost. */
static struct plan plan_of_rows(struct maker *m, const struct kernel *kernel, const struct plan *plan, enum width_extent extent)
{
	struct plan turned = *plan;
	int loops = plan_loops(plan), others = 0;
	turned.part = arena_copy(m->space->arena, plan->part, sizeof *plan->part * (size_t)plan->parts);
	for (int i = 0; i < loops; i++)
		if (!m->space->few_rows || !walks_rows(m, kernel, plan, i))
			turned.part[others++] = plan->part[i];
	for (int i = 0; i < loops; i++)
		if (m->space->few_rows && walks_rows(m, kernel, plan, i))
			turned.part[others++] = plan->part[i];
	for (int i = 0; i < loops; i++)
		if (walks_rows(m, kernel, &turned, i))
			turned.part[i].trip = widths_turns(m->space, kernel->loop[turned.part[i].source].run_time, turned.part[i].trip, extent);
	return turned;
}

/* The plan as the search for orders leaves it: blocks of keys come one after the other. */
static struct plan plan_of_blocks(struct maker *m, const struct kernel *kernel, const struct plan *plan)
{
	struct plan turned = *plan;
	int loops = plan_loops(plan), blocks = 0;
	while (blocks < loops && !widths_walks_keys(&kernel->loop[plan->part[blocks].source]))
		blocks++;
	if (!m->space->blocks_first || blocks == loops)
		return turned;
	turned.part = arena_copy(m->space->arena, plan->part, sizeof *plan->part * (size_t)plan->parts);
	for (int i = blocks; i > 0; i--)
		turned.part[i] = turned.part[i - 1];
	turned.part[0] = plan->part[blocks];
	return turned;
}

static void add_times(struct maker *m, const struct kernel *kernel, const struct plan *plan, struct width_option *option)
{
	struct plan of_blocks = plan_of_blocks(m, kernel, plan);
	if (!m->space->rows)
		option->flow[0] = flow_of_plan(m, kernel, &of_blocks);
	for (int e = 0; e < WIDTH_PRICED; e++) {
		struct plan of_rows;
		if (m->space->rows)
			of_rows = plan_of_rows(m, kernel, plan, m->space->extent[e]);
		option->flow[e] = m->space->rows ? flow_of_plan(m, kernel, &of_rows) : option->flow[0];
	}
}

static double elements_taken(const struct op *op, const struct plan *plan, int operand)
{
	return (double)plan_words(op->kernel, plan, operand) * (double)lanes_of(op->kernel, plan, operand);
}

/* Of the tensor, that it takes at all. */
static double elements_once(const struct op *op, int operand)
{
	double elements = 1;
	for (int l = 0; l < op->kernel->loops; l++)
		elements *= op->kernel->operand[operand].stride[l] ? (double)op->kernel->loop[l].extent : 1;
	return elements;
}

/* The part of what is taken that is sent where a launch has fewer rows; for every row of a group of numbers nothing is sent again (emit_streams.c). */
static double part_sent(const struct maker *m, const struct plan *plan, int operand, enum width_extent extent)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	bool moved = false;
	double part = 1;
	for (int i = 0; m->space->rows && i < plan_loops(plan); i++) {
		int loop = plan->part[i].source;
		bool still = !kernel->operand[operand].stride[loop], rows = walks_rows(m, kernel, plan, i);
		int64_t turns = !rows ? plan->part[i].trip : still && moved ? 1 : widths_turns(m->space, kernel->loop[loop].run_time, plan->part[i].trip, extent);
		part *= (double)turns / (double)plan->part[i].trip;
		moved = moved || !still;
	}
	return part;
}

/* The loader of operands without ports of their own gives full words, where their order has such. */
static double shared_cycles(struct maker *m, const enum reach *reach, const struct plan *plan, int operand, enum width_extent extent)
{
	const struct op *op = m->kernel->op;
	if (reach[operand] != REACH_PACKED || operand == m->candidate->operand)
		return 0;
	double elements = elements_taken(op, plan, operand) * part_sent(m, plan, operand, extent), once = elements_once(op, operand), lanes = (double)shared_load_lanes(type_scalar(op->operand[operand]->type), m->space->full_words);
	elements = is_kept(elements, once) ? once : elements;
	return elements > lanes ? elements / lanes : 1;
}

/* Ports side by side that bring the words of a state (state_order.c). */
static int state_ports(const struct maker *m, const struct plan *plan, int operand)
{
	const struct op *op = m->kernel->op;
	const struct choices *choices = &m->streams->context->choices;
	int64_t bits = lanes_of(op->kernel, plan, operand) * type_bits(type_scalar(op->operand[operand]->type)), most = choice_count(choices, CHOICE_STATE_PORTS), ports = 1;
	while (m->space->wide_states && 2 * ports <= most && 2 * ports * PORT_BITS <= bits)
		ports *= 2;
	return (int)ports;
}

/* Cycles that the words of a port take; what is laid out offline is read as often as it is taken, a state once. */
static double memory_cycles(struct maker *m, const enum reach *reach, const struct plan *plan, int operand, int ports)
{
	const struct platform *platform = m->space->platform;
	const struct op *op = m->kernel->op;
	if (reach[operand] == REACH_CHIP || (reach[operand] == REACH_PACKED && operand != m->candidate->operand))
		return 0;
	double elements = elements_taken(op, plan, operand);
	if (reach[operand] == REACH_ORDERED) {
		const struct width_part *part = &m->kernel->part[operand];
		elements = (double)type_elements(op->operand[operand]->type) * (part->high - part->low);
		ports = state_ports(m, plan, operand);
	}
	if (reach[operand] == REACH_ORDERED && m->space->riding > 0)
		return m->space->riding / platform_channel_rate(platform);
	double rate = platform_channel_rate(platform);
	double word = platform->port_bits / 8.0;
	return elements * (double)type_bits(type_scalar(op->operand[operand]->type)) / 8 / ports / (rate < word ? rate : word);
}

/* --- options */

static bool words_fit(const struct width_space *space, const struct op *op, const struct plan *plan)
{
	int64_t most = space->alone ? WORD_BITS : WORD_BITS / 2;
	bool fit = true;
	for (int j = 0; j < op->operands; j++)
		fit = fit && lanes_of(op->kernel, plan, j) * type_bits(type_scalar(op->operand[j]->type)) <= most;
	return fit && plan->lanes * type_bits(op->kernel->type) <= most * (plan->rows > 1 ? 8 : 1);
}

/* What brings its words and takes them away: a FIFO of 16 or 32 has a LUT a bit, and often there is another behind a process that changes the width. */
static int64_t words_lut(const struct op *op, const struct plan *plan)
{
	int64_t bits = (plan->rows > 1 && !plan_is_tree(op->kernel, plan) ? 1 : plan->rows) * (plan_is_tree(op->kernel, plan) ? 1 : plan->lanes) * type_bits(op->kernel->type);
	for (int j = 0; j < op->operands; j++)
		bits += lanes_of(op->kernel, plan, j) * type_bits(type_scalar(op->operand[j]->type));
	return bits * 3 / 2;
}

/* A process stands on one die. */
static bool fits_die(const struct platform *platform, const struct width_option *option)
{
	for (int d = 0; d < platform->dies; d++)
		if (option->dsp <= platform->die[d].dsp && option->lut <= platform->die[d].lut)
			return true;
	return false;
}

/* Cycles between iterations.  Of many tokens an order in turns would hold a tile of numbers, so it is not counted on. */
static int64_t interval_of(struct maker *m, const struct plan *plan)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	if (!kernel_has_reduction(kernel))
		return 1;
	int latency = plan_chain_latency(m->space->platform, m->space->arena, kernel), interval = plan_interval(kernel, plan, latency);
	struct plan turned;
	bool counted = plan_is_tree(kernel, plan) || m->space->alone;        /* beside no unit a kernel of few points is not turned */
	if (m->space->stages || interval == 1 || !counted || !plan_turned(m->space->arena, kernel, plan, &turned))
		return interval;
	int best = plan_interval(kernel, &turned, latency);
	return best < interval ? best : interval;
}

/* Beside a unit of several tokens rows come in turns. */
static double drained_of(struct maker *m, const struct plan *plan)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	if (!kernel_has_reduction(kernel) || m->space->stages || m->space->rows)
		return 0;
	return (double)plan_drained(kernel, plan, plan_chain_latency(m->space->platform, m->space->arena, kernel), m->space->alone);
}

/* Of the words of a sum, and of its parts, which are put together by trees; beside a unit of one token, that waits for them. */
static double tree_depth(const struct maker *m, const struct plan *plan)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	int latency = plan_chain_latency(m->space->platform, m->space->arena, kernel);
	int64_t numbers = kernel_has_reduction(kernel) ? plan_partial(kernel, plan, latency) * (plan_is_tree(kernel, plan) ? plan->lanes : 1) : 1;
	return m->space->alone ? (double)(plan_tree_levels(numbers) * latency) : 0;
}

/* Where sums are formed in turns what they are of comes in that order: in attention of each block of keys, else of all. */
static void hold_turned(const struct maker *m, const struct kernel *kernel, const struct plan *plan, struct width_option *option)
{
	for (int e = 0; e < WIDTH_PRICED; e++) {
		option->flow[e].held = 1;
		for (int i = 0; i < plan_loops(plan); i++) {
			const struct loop *loop = &kernel->loop[plan->part[i].source];
			if (widths_walks_keys(loop))
				option->flow[e].held /= (double)widths_turns(m->space, loop->run_time, plan->part[i].trip, m->space->extent[e]);
		}
	}
}

/* Cycles at the pace of a converter that hands on what is inside the reduction. */
static void hand_turned(const struct kernel *kernel, const struct plan *plan, struct width_option *option)
{
	double words = 1;
	bool inside = false;
	for (int i = 0; i < plan_loops(plan); i++) {
		const struct loop *loop = &kernel->loop[plan->part[i].source];
		inside = inside || loop->reduction;
		words *= inside ? (double)plan->part[i].trip : 1;
	}
	for (int e = 0; e < WIDTH_PRICED; e++)
		option->flow[e].handed = option->cycles[e] * (1 + HANDED / words);
}

/* The same where they come in wider words. */
static void split_turned(const struct maker *m, const struct kernel *kernel, const struct plan *plan, struct width_option *option)
{
	int latency = plan_chain_latency(m->space->platform, m->space->arena, kernel);
	int64_t blocks = 1, sums = 1, parts = 1;
	for (int i = 0; i < plan_loops(plan); i++) {
		const struct loop *loop = &kernel->loop[plan->part[i].source];
		*(widths_walks_keys(loop) ? &blocks : &sums) *= loop->reduction ? 1 : plan->part[i].trip;
	}
	while (parts < latency)
		parts *= 2;
	for (int e = 0; e < WIDTH_PRICED; e++)
		option->flow[e].split = (iterations(plan) + (double)(blocks * plan_put_together(plan->lanes, parts, sums, latency))) * part_at(m->space, kernel, plan, m->space->extent[e]);
}

static void add_option(struct maker *m, const enum reach *reach, const struct plan *plan, int64_t most, int ports)
{
	const struct kernel *kernel = m->kernel->op->kernel;
	struct arena *arena = m->space->arena;
	struct width_option option = {.width = {.lanes = most, .bulk = m->candidate->operand, .ports = ports}, .lanes = plan->lanes, .rows = plan->rows};
	bool tree = plan_is_tree(kernel, plan);
	option.out = lanes_along(kernel->result.stride, plan);
	option.in = ARENA_ARRAY(arena, int64_t, m->kernel->operands + 1);
	for (int j = 0; j < m->kernel->operands; j++)
		option.in[j] = lanes_of(kernel, plan, j);
	int64_t interval = interval_of(m, plan), listed = kernel_has_reduction(kernel) ? plan_interval(kernel, plan, plan_chain_latency(m->space->platform, arena, kernel)) : 1;
	double cycles = iterations(plan) * (double)interval + drained_of(m, plan), ahead = 0;
	for (int j = 0; j < m->kernel->operands; j++) {
		double memory = memory_cycles(m, reach, plan, j, j == m->candidate->operand ? ports : 1);
		double *takes = reach[j] == REACH_ORDERED && m->space->reads_ahead ? &ahead : &cycles;
		*takes = memory > *takes ? memory : *takes;
		for (int e = 0; e < WIDTH_PRICED; e++)
			option.shared[e] += shared_cycles(m, reach, plan, j, m->space->extent[e]);
	}
	for (int e = 0; e < WIDTH_PRICED; e++) {
		double part = part_at(m->space, kernel, plan, m->space->extent[e]), own = cycles * part;
		option.cycles[e] = option.shared[e] > own && !m->space->reads_ahead ? option.shared[e] : own;      /* ahead, it takes the loader's time only */
		option.ahead[e] = ahead * part;
	}
	add_body(m, &kernel->update, plan, plan->lanes * plan->rows, interval, &option);
	add_body(m, &kernel->post, plan, tree ? plan->rows : plan->lanes, tree ? 1 : interval, &option);
	option.lut += words_lut(m->kernel->op, plan);
	if (m->options.count && !fits_die(m->space->platform, &option))
		return;
	option.depth = body_depth(m, &kernel->update) + body_depth(m, &kernel->post) + tree_depth(m, plan) + LOOP_CYCLES + PROCESS_CYCLES;
	add_times(m, kernel, plan, &option);
	if (m->space->alone && interval < listed)
		hold_turned(m, kernel, plan, &option);
	if (m->space->alone && interval < listed && tree)
		split_turned(m, kernel, plan, &option);
	if (m->space->alone && kernel_has_reduction(kernel) && !tree)
		hand_turned(kernel, plan, &option);
	VEC_PUSH(arena, &m->options, option);
}

/* Ports that the words of the bulk operand fill. */
static int ports_of(struct maker *m, const struct plan *plan)
{
	int bulk = m->candidate->operand;
	if (bulk < 0)
		return 1;
	int64_t own = lanes_of(m->kernel->op->kernel, plan, bulk) * type_bits(type_scalar(m->kernel->op->operand[bulk]->type)) / PORT_BITS;
	return own < 1 ? 1 : own < m->most_ports ? (int)own : m->most_ports;
}

static bool is_fixed_to(const struct maker *m, const struct plan *plan)
{
	const struct fixed_width *fixed = m->fixed;
	return !fixed || ((!fixed->lanes || fixed->lanes == plan->lanes) && (!fixed->rows || fixed->rows == plan->rows));
}

static void note_near(struct maker *m, const struct plan *plan)
{
	int64_t lanes = plan->lanes, wanted = m->fixed ? m->fixed->lanes : 0;
	if (lanes < wanted)
		m->below = lanes > m->below ? lanes : m->below;
	else if (lanes > wanted)
		m->above = !m->above || lanes < m->above ? lanes : m->above;
}

static void add_options(struct maker *m)
{
	const struct op *op = m->kernel->op;
	const enum reach *reach = reach_of(m->space->arena, op);
	int64_t lanes = 0, rows = 0;
	for (int64_t most = 1; most <= m->most_lanes; most *= 2) {
		struct plan plan = plan_kernel(m->streams->module, op, reach, only_stored(op), most);
		if ((plan.lanes == lanes && plan.rows == rows) || (m->options.count && !words_fit(m->space, op, &plan)))
			continue;
		lanes = plan.lanes;
		rows = plan.rows;
		note_near(m, &plan);
		int own = ports_of(m, &plan);
		for (int ports = 1; ports <= own && is_fixed_to(m, &plan); ports *= 2)
			if (!m->fixed || !m->fixed->ports || m->fixed->ports == ports)
				add_option(m, reach, &plan, most, ports);
	}
	m->kernel->options = (int)m->options.count;
	m->kernel->option = m->options.data;
}

/* The unit waits for what stands in front of layers, tile by tile, and behind them for the last tile's part: options that do not keep pace, where others do. */
static void drop_slow(const struct width_space *space, int number)
{
	struct width_kernel *kernel = &space->kernel[number];
	int first = space->pace > 0 && kernel->loop < 0 ? widths_of_pace(space, number, WIDTH_PRICED - 1, space->pace, 1) : 0;
	kernel->option += first;
	kernel->options -= first;
}

/* A gather moves rows: it has no operators to choose. */
static void add_gather(struct maker *m)
{
	struct width_option *option = ARENA_NEW(m->space->arena, struct width_option);
	*option = (struct width_option){.width = {.lanes = m->candidate->port_lanes, .bulk = -1, .ports = 1}, .lanes = 1, .rows = 1};
	option->in = ARENA_ARRAY(m->space->arena, int64_t, m->kernel->operands + 1);
	for (int e = 0; e < WIDTH_PRICED; e++)
		option->cycles[e] = (double)type_elements(m->kernel->op->result[0]->type) / (double)m->candidate->port_lanes;
	option->depth = m->space->platform->memory_latency;
	for (int e = 0; e < WIDTH_PRICED; e++)
		option->flow[e] = (struct width_flow){.need = ARENA_ARRAY(m->space->arena, double, m->kernel->operands + 1), .taken = ARENA_ARRAY(m->space->arena, double, m->kernel->operands + 1)};
	m->kernel->options = 1;
	m->kernel->option = option;
}

static bool cannot_be(struct maker *m)
{
	struct diag *diag = m->streams->module->diag;
	const char *name = m->kernel->op->kernel->name;
	diag_error(diag, m->kernel->op->location, "kernel %s cannot be fixed to these widths: lanes %lld, rows %lld, ports %lld (0: free)", name, (long long)m->fixed->lanes,
		   (long long)m->fixed->rows, (long long)m->fixed->ports);
	if (m->fixed->lanes && m->below && m->above)
		return diag_note(diag, "the nearest that it can have are %lld and %lld lanes", (long long)m->below, (long long)m->above);
	return diag_note(diag, "the nearest that it can have is %lld lanes; rows and ports are powers of two that these lanes leave room for", (long long)(m->below ? m->below : m->above));
}

static bool is_within(const struct width_kernel *kernel, const struct width_option *own, const struct width_option *leader)
{
	return kernel->alike ? own->lanes * own->rows <= leader->lanes * leader->rows && own->width.ports <= leader->width.ports : own->lanes <= leader->rows;
}

/* A kernel that takes the sums of another as they come, or is as wide as another: its option for each of the other's. */
static void follow(struct width_space *space, struct width_kernel *kernel)
{
	const struct width_kernel *leader = &space->kernel[kernel->follows];
	int *own = ARENA_ARRAY(space->arena, int, leader->options + 1);
	for (int i = 0; i < leader->options; i++)
		for (int o = 0; o < kernel->options; o++)
			own[i] = is_within(kernel, &kernel->option[o], &leader->option[i]) ? o : own[i];
	kernel->follow = own;
}

bool widths_options(struct streams *streams, struct width_space *space, const struct candidate *candidate)
{
	const struct choices *choices = &streams->context->choices;
	for (int k = 0; k < space->kernels; k++) {
		struct maker m = {.streams = streams, .space = space, .kernel = &space->kernel[k], .candidate = &candidate[k]};
		const struct fixed_width *phase = widths_of_phase(streams, &candidate[k]), *given = fixed_width_of(choices, m.kernel->op->kernel->name);
		m.fixed = given ? given : phase;
		m.most_lanes = choice_count(choices, CHOICE_LANES);
		m.most_ports = (int)choice_count(choices, CHOICE_PORTS);
		if (kernel_is_gather(m.kernel->op))
			add_gather(&m);
		else
			add_options(&m);
		if (!m.kernel->options && !given && phase) {          /* it cannot: the weight is packed once more */
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
	widths_orders(streams, space);
	widths_row_turns(space);
	return true;
}
