/* Searches the options of all kernels for the choice with the least bytes on chip: descent from the
 * heuristic's orders and from random ones, kernel by kernel, then all readers of a value at once,
 * then a kernel with its neighbours. Deterministic, and bounded by the number of costs that are
 * computed. A kernel's move is priced by the values that it touches; FIFOs are always priced
 * completely. */
#include "base/random.h"
#include "schedule/loop_orders.h"
#include <string.h>

#define RESTARTS 24

struct order_descent {
	const struct loop_order_graph *graph;
	int64_t points; /* left */
	uint64_t random;
	int *choice;        /* [kernels] */
	int64_t now, fifos; /* cost of `choice`, and the part of it that is FIFOs */
};

/* All costs except FIFOs that depend on the option of kernel k; with spills, all costs except
 * FIFOs. */
static int64_t neighbourhood(const struct order_descent *descent, int k)
{
	const struct loop_order_graph *graph = descent->graph;
	if (graph->spills) {
		struct loop_order_cost cost = loop_order_cost(graph, descent->choice);
		return cost.converters + cost.accumulators;
	}
	const struct loop_order_kernel *kernel = &graph->kernel[k];
	int64_t bytes = kernel->option[descent->choice[k]].accumulators +
	        loop_order_converters(graph, descent->choice, &graph->value[kernel->value]);
	bytes += kernel->carried < 0
	        ? 0
	        : loop_order_converters(graph, descent->choice, &graph->value[kernel->carried]);
	for (int j = 0; j < kernel->operands; j++) {
		bool known = kernel->source[j] < 0 || kernel->source[j] == kernel->carried;
		for (int e = 0; e < j && !known; e++)
			known = kernel->source[e] == kernel->source[j];
		bytes += known ? 0
		               : loop_order_converters(
		                         graph, descent->choice, &graph->value[kernel->source[j]]);
	}
	return bytes;
}

static bool improve_kernel(struct order_descent *descent, int k)
{
	const struct loop_order_kernel *kernel = &descent->graph->kernel[k];
	int best = descent->choice[k];
	int old = best;
	int64_t rest = descent->now - neighbourhood(descent, k) - descent->fifos;
	int64_t least = descent->now;
	int64_t fifos = descent->fifos;
	for (int o = 0; o < kernel->options && descent->points > 0; o++) {
		if (o == old)
			continue;
		descent->choice[k] = o;
		int64_t cost = rest + neighbourhood(descent, k);
		int64_t buffered = cost < least
		        ? loop_order_fifos(descent->graph, descent->choice, least - cost)
		        : 0;
		cost += buffered;
		descent->points--;
		if (cost < least) {
			least = cost;
			fifos = buffered;
			best = o;
		}
	}
	descent->choice[k] = best;
	bool better = least < descent->now;
	descent->now = least;
	descent->fifos = fifos;
	return better;
}

static void price(struct order_descent *descent)
{
	struct loop_order_cost cost = loop_order_cost(descent->graph, descent->choice);
	descent->now = cost.all;
	descent->fifos = cost.fifos;
}

static bool improve_all(struct order_descent *descent)
{
	bool better = false;
	for (int k = 0; k < descent->graph->kernels; k++)
		better = improve_kernel(descent, k) || better;
	return better;
}

/* Moves kernel k to its best option among those that want this order of operand j; false: there is
 * none. */
static bool take_order(struct order_descent *descent, int k, int j, int row)
{
	const struct loop_order_kernel *kernel = &descent->graph->kernel[k];
	int best = -1;
	int old = descent->choice[k];
	struct loop_order_cost least = { .all = descent->now, .fifos = descent->fifos };
	for (int o = 0; o < kernel->options && descent->points > 0; o++) {
		if (kernel->option[o].operand[j] != row)
			continue;
		descent->choice[k] = o;
		struct loop_order_cost cost = loop_order_cost(descent->graph, descent->choice);
		descent->points--;
		if (best < 0 || cost.all < least.all) {
			least = cost;
			best = o;
		}
	}
	descent->choice[k] = best < 0 ? old : best;
	descent->now = least.all;
	descent->fifos = least.fifos;
	return best >= 0;
}

/* Moves all readers of a value to one order and lets the readers of their results adapt; kept if
 * the cost falls. */
static bool improve_readers(
        struct order_descent *descent, const struct loop_order_value *value, int row, int *saved)
{
	const struct loop_order_graph *graph = descent->graph;
	int64_t before = descent->now;
	int64_t fifos = descent->fifos;
	memcpy(saved, descent->choice, sizeof *saved * (size_t)graph->kernels);
	bool all = true;
	for (size_t i = 0; i < value->reader.count && all; i++)
		all = value->reader.data[i].kernel < 0 ||
		        take_order(descent, value->reader.data[i].kernel,
		                value->reader.data[i].operand, row);
	for (size_t i = 0; i < value->reader.count && all; i++) {
		const struct loop_order_value *made = value->reader.data[i].kernel < 0
		        ? NULL
		        : &graph->value[graph->kernel[value->reader.data[i].kernel].value];
		for (size_t e = 0; made && e < made->reader.count; e++)
			if (made->reader.data[e].kernel >= 0)
				improve_kernel(descent, made->reader.data[e].kernel);
	}
	if (all && descent->now < before)
		return true;
	memcpy(descent->choice, saved, sizeof *saved * (size_t)graph->kernels);
	descent->now = before;
	descent->fifos = fifos;
	return false;
}

static bool improve_values(struct order_descent *descent, int *saved)
{
	bool better = false;
	for (int v = 0; v < descent->graph->values; v++) {
		const struct loop_order_value *value = &descent->graph->value[v];
		for (int row = 0; value->reader.count > 1 && row < (int)value->wanted.order.count &&
		        descent->points > 0;
		        row++)
			better = improve_readers(descent, value, row, saved) || better;
	}
	return better;
}

/* Moves one kernel to another option and lets its neighbours adapt; kept if the cost falls. */
static bool improve_neighbourhood(struct order_descent *descent, int k, int *saved)
{
	const struct loop_order_graph *graph = descent->graph;
	int64_t before = descent->now;
	int64_t fifos = descent->fifos;
	size_t size = sizeof *saved * (size_t)graph->kernels;
	for (int o = 0; o < graph->kernel[k].options && descent->points > 0; o++) {
		memcpy(saved, descent->choice, size);
		if (o == saved[k])
			continue;
		descent->choice[k] = o;
		price(descent);
		for (int step = 1; step < graph->kernels && step <= 4; step++) {
			if (k + step < graph->kernels)
				improve_kernel(descent, k + step);
			if (k - step >= 0)
				improve_kernel(descent, k - step);
		}
		if (descent->now < before)
			return true;
		memcpy(descent->choice, saved, size);
		descent->now = before;
		descent->fifos = fifos;
	}
	return false;
}

/* neighbourhood: also tries kernels with their neighbours, which takes many points. */
static void descend(struct order_descent *descent, bool neighbourhood, int *saved)
{
	bool better = true;
	price(descent);
	while (better && descent->points > 0) {
		better = improve_all(descent) || improve_values(descent, saved);
		for (int k = 0; neighbourhood && k < descent->graph->kernels && !better; k++)
			better = improve_neighbourhood(descent, k, saved);
	}
}

/* Half of the points go to the starts, the rest to the best of them. */
void loop_order_search(const struct loop_order_graph *graph, int64_t points, int *choice)
{
	struct order_descent descent = {
		.graph = graph, .random = RANDOM_SEED, .points = points / 2
	};
	int *saved = ARENA_ARRAY(graph->arena, int, graph->kernels + 1);
	size_t size = sizeof *choice * (size_t)graph->kernels;
	int64_t least = loop_order_cost(graph, choice).all;
	descent.choice = ARENA_ARRAY(graph->arena, int, graph->kernels + 1);
	for (int start = 0; start < RESTARTS && descent.points > 0; start++) {
		for (int k = 0; k < graph->kernels; k++)
			descent.choice[k] = start ? (int)(random_next(&descent.random) %
			                                    (uint64_t)graph->kernel[k].options)
			                          : 0;
		descend(&descent, false, saved);
		if (descent.now >= least)
			continue;
		least = descent.now;
		memcpy(choice, descent.choice, size);
	}
	descent.points += points - points / 2;
	memcpy(descent.choice, choice, size);
	descend(&descent, true, saved);
	memcpy(choice, descent.choice, size);
}
