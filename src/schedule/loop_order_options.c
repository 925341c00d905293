/* Lists the possible schedules of a kernel for the search for loop orders.
 *
 * Loops are split where a neighbour's loops over the same tensor begin or end, so that both can
 * have one order; the lane loop also where enough independent accumulators are inside. Every
 * permutation of these split loops (digits) is an option if it takes no more cycles and no more
 * words from memory than the heuristic's schedule. The digits of one loop keep their order, except
 * for one pair of a reduction. Options that no neighbour can tell apart are merged. */
#include "ir/workload.h"
#include "schedule/loop_orders.h"
#include "options/pass_context.h"
#include <string.h>

struct digits {
	struct loop_order_graph *graph;
	struct loop_order_kernel *kernel;
	const struct schedule *first; /* the heuristic's schedule */
	int latency, interval;
	int64_t *words; /* [operands]: words read from memory under `first` */
	int count;
	struct schedule_part digit[ORDER_LOOPS]; /* outermost first; permuted in place */
	/* number of digit pairs of one reduction in swapped order: at most one */
	int reordered;
	VEC(struct loop_order_option) options;
};

int loop_order_row(struct arena *arena, struct loop_order_list *list, const struct order *order)
{
	for (size_t i = 0; i < list->order.count; i++)
		if (order_same(&list->order.data[i], order))
			return (int)i;
	VEC_PUSH(arena, &list->order, *order);
	return (int)list->order.count - 1;
}

static bool reduces(const struct kernel *kernel, const struct schedule *schedule, int part)
{
	return kernel->loop[schedule->part[part].source].reduction &&
	        schedule->part[part].trip > 1 && !schedule_is_lane(schedule, part) &&
	        !schedule_is_row(schedule, part);
}

static int outermost_reduction(const struct kernel *kernel, const struct schedule *schedule)
{
	for (int i = 0; i < schedule->parts; i++)
		if (reduces(kernel, schedule, i))
			return i;
	return schedule->parts;
}

static int64_t accumulator_bytes(
        const struct kernel *kernel, const struct schedule *schedule, int latency)
{
	int outermost = outermost_reduction(kernel, schedule);
	int64_t sums =
	        outermost < schedule->parts ? schedule_partial_sums(kernel, schedule, latency) : 0;
	for (int i = outermost + 1; i < schedule->parts; i++)
		sums *= kernel->loop[schedule->part[i].source].reduction ? 1
		                                                         : schedule->part[i].trip;
	return sums * ((type_bits(kernel->type) + 7) / 8);
}

static int64_t lag_of(const struct kernel *kernel, const struct schedule *schedule, int operand)
{
	int64_t blocks = 1;
	int outermost = kernel->scan ? schedule->parts : outermost_reduction(kernel, schedule);
	for (int i = 0; i < outermost; i++)
		blocks *= kernel->operand[operand].stride[schedule->part[i].source]
		        ? schedule->part[i].trip
		        : 1;
	return outermost < schedule->parts ? LOOP_ORDER_WHOLE / blocks : 0;
}

static bool holds_result(const struct kernel *kernel, const struct schedule *schedule, int latency)
{
	bool holds_sums = outermost_reduction(kernel, schedule) == 0 && !kernel->scan &&
	        schedule->row_unroll == 1 && schedule_partial_sums(kernel, schedule, latency) == 1;
	for (int l = 0; l < kernel->loops; l++)
		holds_sums = holds_sums && !kernel->loop[l].run_time;
	return holds_sums &&
	        (schedule->lanes == 1 ||
	                !kernel->loop[schedule->part[schedule->parts - 1].source].reduction);
}

/* A tensor in memory is read once per token tile (state_order.c), so its order is that of one
 * tile. */
static struct order order_of_tile(const struct kernel *kernel, struct order order)
{
	if (!kernel->tile_outermost || !order.loops || order.loop[0].stride ||
	        order.loop[0].trip != kernel->loop[0].extent)
		return order;
	for (int i = 1; i < order.loops; i++)
		order.loop[i - 1] = order.loop[i];
	order.loops--;
	return order;
}

static struct loop_order_option option_of(struct digits *d, const struct schedule *schedule)
{
	struct loop_order_graph *graph = d->graph;
	const struct kernel *kernel = d->kernel->op->kernel;
	struct loop_order_option option = { .schedule = *schedule,
		.accumulators = accumulator_bytes(kernel, schedule, d->latency),
		.holds_sums = holds_result(kernel, schedule, d->latency) };
	option.operand = ARENA_ARRAY(graph->arena, int, d->kernel->operands + 1);
	option.lag = ARENA_ARRAY(graph->arena, int64_t, d->kernel->operands + 1);
	for (int j = 0; j < d->kernel->operands; j++) {
		option.operand[j] = -1;
		if (d->kernel->source[j] < 0)
			continue;
		struct order order = order_of_port(kernel, schedule, j);
		if (!graph->value[d->kernel->source[j]].streams)
			order = order_of_tile(kernel, order);
		option.operand[j] = loop_order_row(
		        graph->arena, &graph->value[d->kernel->source[j]].wanted, &order);
		option.lag[j] = lag_of(kernel, schedule, j);
	}
	struct order order = order_of_port(kernel, schedule, -1);
	option.result =
	        loop_order_row(graph->arena, &graph->value[d->kernel->value].written, &order);
	return option;
}

static bool same_option(const struct digits *d, const struct loop_order_option *left,
        const struct loop_order_option *right)
{
	size_t ports = (size_t)d->kernel->operands;
	return left->result == right->result && left->accumulators == right->accumulators &&
	        left->holds_sums == right->holds_sums &&
	        !memcmp(left->operand, right->operand, ports * sizeof *left->operand) &&
	        !memcmp(left->lag, right->lag, ports * sizeof *left->lag);
}

static void add_option(struct digits *d, const struct schedule *schedule)
{
	struct loop_order_option option = option_of(d, schedule);
	for (size_t i = 0; i < d->options.count; i++)
		if (same_option(d, &d->options.data[i], &option))
			return;
	option.schedule.part = arena_copy(
	        d->graph->arena, schedule->part, sizeof *schedule->part * (size_t)schedule->parts);
	VEC_PUSH(d->graph->arena, &d->options, option);
}

static bool is_allowed(const struct digits *d, const struct schedule *schedule)
{
	const struct kernel *kernel = d->kernel->op->kernel;
	if (kernel_has_reduction(kernel) &&
	        schedule_interval(kernel, schedule, d->latency) > d->interval)
		return false;
	for (int j = 0; j < d->kernel->operands; j++)
		if (d->kernel->source[j] < 0 && schedule_words(kernel, schedule, j) > d->words[j])
			return false;
	return true;
}

/* Merges adjacent digits of one loop that are in their own order into one loop. */
static struct schedule merge_digits(const struct digits *d, struct schedule_part *part)
{
	struct schedule schedule = { .part = part,
		.lanes = d->first->lanes,
		.row_unroll = d->first->row_unroll,
		.padded = d->first->padded };
	for (int i = 0; i < d->count; i++) {
		struct schedule_part *last = schedule.parts ? &part[schedule.parts - 1] : NULL;
		if (last && last->source == d->digit[i].source &&
		        last->step == d->digit[i].trip * d->digit[i].step)
			*last = (struct schedule_part){ last->source, last->trip * d->digit[i].trip,
				d->digit[i].step };
		else
			part[schedule.parts++] = d->digit[i];
	}
	if (schedule.lanes > 1)
		part[schedule.parts++] = d->first->part[d->first->parts - 1];
	return schedule;
}

/* Counts outer digits of the same loop that digit i would move outside of; for a sequential
 * reduction those of any reduction loop. */
static int overtakes(const struct digits *d, int placed, int i)
{
	const struct kernel *kernel = d->kernel->op->kernel;
	int count = 0;
	bool sequential = kernel_is_sequential(kernel);
	bool may_swap = kernel->loop[d->digit[i].source].reduction && !sequential;
	for (int e = placed; e < i; e++) {
		bool bound = sequential && kernel->loop[d->digit[e].source].reduction &&
		        kernel->loop[d->digit[i].source].reduction;
		if (d->digit[e].source == d->digit[i].source || bound)
			count += may_swap ? 1 : 2;
	}
	return count;
}

static void permute(struct digits *d, int placed)
{
	if (placed == d->count) {
		struct schedule_part part[ORDER_LOOPS];
		struct schedule schedule = merge_digits(d, part);
		if (is_allowed(d, &schedule))
			add_option(d, &schedule);
		return;
	}
	/* moving by rotation keeps the digits that are not yet placed in their order */
	for (int i = placed; i < d->count; i++) {
		struct schedule_part next = d->digit[i];
		int reordered = overtakes(d, placed, i);
		if (reordered > 1 - d->reordered)
			continue;
		d->reordered += reordered;
		memmove(&d->digit[placed + 1], &d->digit[placed],
		        sizeof next * (size_t)(i - placed));
		d->digit[placed] = next;
		permute(d, placed + 1);
		memmove(&d->digit[placed], &d->digit[placed + 1],
		        sizeof next * (size_t)(i - placed));
		d->digit[i] = next;
		d->reordered -= reordered;
	}
}

static void add_digit(struct digits *d, int source, int64_t trip, int64_t step)
{
	if (trip > 1)
		d->digit[d->count++] = (struct schedule_part){ source, trip, step };
}

/* Digits of the token tile loop, which stay outermost. */
static int outer_digits(const struct digits *d)
{
	int count = 0;
	while (d->kernel->op->kernel->tile_outermost && count < d->count && !d->digit[count].source)
		count++;
	return count;
}

static int trips_of_splits(const struct loop_order_splits *splits, int loops)
{
	int digits = 0;
	for (int l = 0; l < loops; l++)
		digits += splits[l].count + 1;
	return digits;
}

/* false: there are more loops than an order can have. */
static bool find_digits(struct digits *d, const struct loop_order_splits *splits)
{
	const struct kernel *kernel = d->kernel->op->kernel;
	int lane = d->first->lanes > 1 ? d->first->part[d->first->parts - 1].source : -1;
	if (trips_of_splits(splits, kernel->loops) + 1 >= ORDER_LOOPS)
		return false;
	for (int l = 0; l < kernel->loops; l++) {
		int64_t extent = kernel->loop[l].extent;
		int64_t least = l == lane ? d->first->lanes : 1;
		int64_t above = extent;
		for (int s = splits[l].count - 1; s >= 0; s--) {
			add_digit(d, l, above / splits[l].at[s], splits[l].at[s]);
			above = splits[l].at[s];
		}
		add_digit(d, l, above / least, least);
	}
	return true;
}

/* Without an engine: are whole words added up, of an input that no other kernel reads?  Its words
 * may come in any order. */
static bool sums_words_alone(const struct op *op, const struct schedule *first)
{
	return workload_of(op) == WORKLOAD_NONE && schedule_is_tree(op->kernel, first) &&
	        op->operands == 1 && !op->operand[0]->def && op->operand[0]->uses == 1;
}

/* Cycles between two iterations, as the search for parallelism assumes them
 * (parallelism_options.c). */
static int interval_counted(const struct digits *d, const struct schedule *first)
{
	const struct kernel *kernel = d->kernel->op->kernel;
	struct schedule reordered;
	if (!kernel_has_reduction(kernel))
		return 1;
	int interval = schedule_interval(kernel, first, d->latency);
	if (interval == 1 ||
	        (workload_of(d->kernel->op) != WORKLOAD_DECODE &&
	                !schedule_needs_interleaving(d->kernel->op) &&
	                !sums_words_alone(d->kernel->op, first)) ||
	        !schedule_interleaved(d->graph->arena, kernel, first, &reordered))
		return interval;
	int best = schedule_interval(kernel, &reordered, d->latency);
	return best < interval ? best : interval;
}

void loop_order_options(struct loop_order_graph *graph, int number, const struct platform *platform,
        const struct schedule *first, const struct loop_order_splits *splits)
{
	struct digits d = { .graph = graph, .kernel = &graph->kernel[number], .first = first };
	const struct kernel *kernel = d.kernel->op->kernel;
	d.latency = kernel_has_reduction(kernel)
	        ? schedule_chain_latency(platform, graph->arena, kernel)
	        : 1;
	d.interval = interval_counted(&d, first);
	d.words = ARENA_ARRAY(graph->arena, int64_t, d.kernel->operands + 1);
	for (int j = 0; j < d.kernel->operands; j++)
		d.words[j] = schedule_words(kernel, first, j);
	add_option(&d, first);
	bool reordered = kernel_has_reduction(kernel) &&
	        d.interval < schedule_interval(kernel, first, d.latency);
	if (!first->padded && first->row_unroll == 1 && !first->held && !kernel->ordered &&
	        find_digits(&d, splits) && d.count <= LOOP_ORDER_DIGITS)
		permute(&d, outer_digits(&d));
	bool other = reordered && d.options.count > 1;
	d.kernel->options = (int)d.options.count - other;
	d.kernel->option = d.options.data + other;
}
