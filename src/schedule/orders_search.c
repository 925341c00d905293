/* Searches the product of all kernels' options: descent from the heuristic's orders and from random ones, kernel by kernel, then by all readers of a value at once, then by pairs that share one;
 * deterministic, and bounded by the number of points whose cost is computed.  A kernel's change is priced by the values that it touches; FIFOs are priced whole. */
#include "base/random.h"
#include "schedule/orders.h"
#include <string.h>

#define RESTARTS 24

struct search {
	const struct orders_graph *graph;
	int64_t points;           /* left */
	uint64_t random;
	int *choice;              /* [kernels] */
	int64_t now, fifos;       /* its cost, and the part of it that is FIFOs' */
};

/* Everything but FIFOs that kernel k's option is part of; where edges are cut, everything but FIFOs. */
static int64_t around(const struct search *search, int k)
{
	const struct orders_graph *graph = search->graph;
	if (graph->cuts) {
		struct orders_cost cost = orders_cost(graph, search->choice);
		return cost.converters + cost.accumulators;
	}
	const struct orders_kernel *kernel = &graph->kernel[k];
	int64_t bytes = kernel->option[search->choice[k]].accumulators + orders_converters(graph, search->choice, &graph->value[kernel->value]);
	bytes += kernel->carried < 0 ? 0 : orders_converters(graph, search->choice, &graph->value[kernel->carried]);
	for (int j = 0; j < kernel->operands; j++) {
		bool known = kernel->source[j] < 0 || kernel->source[j] == kernel->carried;
		for (int e = 0; e < j && !known; e++)
			known = kernel->source[e] == kernel->source[j];
		bytes += known ? 0 : orders_converters(graph, search->choice, &graph->value[kernel->source[j]]);
	}
	return bytes;
}

static bool improve_kernel(struct search *search, int k)
{
	const struct orders_kernel *kernel = &search->graph->kernel[k];
	int best = search->choice[k], old = best;
	int64_t rest = search->now - around(search, k) - search->fifos, least = search->now, fifos = search->fifos;
	for (int o = 0; o < kernel->options && search->points > 0; o++) {
		if (o == old)
			continue;
		search->choice[k] = o;
		int64_t cost = rest + around(search, k), held = cost < least ? orders_fifos(search->graph, search->choice, least - cost) : 0;
		cost += held;
		search->points--;
		if (cost < least) {
			least = cost;
			fifos = held;
			best = o;
		}
	}
	search->choice[k] = best;
	bool better = least < search->now;
	search->now = least;
	search->fifos = fifos;
	return better;
}

static void price(struct search *search)
{
	struct orders_cost cost = orders_cost(search->graph, search->choice);
	search->now = cost.all;
	search->fifos = cost.fifos;
}

static bool improve_all(struct search *search)
{
	bool better = false;
	for (int k = 0; k < search->graph->kernels; k++)
		better = improve_kernel(search, k) || better;
	return better;
}

/* Kernel k's best option of those that want this order of operand j. */
static bool take_order(struct search *search, int k, int j, int row)
{
	const struct orders_kernel *kernel = &search->graph->kernel[k];
	int best = -1, old = search->choice[k];
	struct orders_cost least = {.all = search->now, .fifos = search->fifos};
	for (int o = 0; o < kernel->options && search->points > 0; o++) {
		if (kernel->option[o].operand[j] != row)
			continue;
		search->choice[k] = o;
		struct orders_cost cost = orders_cost(search->graph, search->choice);
		search->points--;
		if (best < 0 || cost.all < least.all) {
			least = cost;
			best = o;
		}
	}
	search->choice[k] = best < 0 ? old : best;
	search->now = least.all;
	search->fifos = least.fifos;
	return best >= 0;
}

/* All kernels that read a value want it in one order, and those that read what they make follow: kept if all of it together is better. */
static bool improve_readers(struct search *search, const struct orders_value *value, int row, int *saved)
{
	const struct orders_graph *graph = search->graph;
	int64_t before = search->now, fifos = search->fifos;
	memcpy(saved, search->choice, sizeof *saved * (size_t)graph->kernels);
	bool all = true;
	for (size_t i = 0; i < value->reader.count && all; i++)
		all = value->reader.data[i].kernel < 0 || take_order(search, value->reader.data[i].kernel, value->reader.data[i].operand, row);
	for (size_t i = 0; i < value->reader.count && all; i++) {
		const struct orders_value *made = value->reader.data[i].kernel < 0 ? NULL : &graph->value[graph->kernel[value->reader.data[i].kernel].value];
		for (size_t e = 0; made && e < made->reader.count; e++)
			if (made->reader.data[e].kernel >= 0)
				improve_kernel(search, made->reader.data[e].kernel);
	}
	if (all && search->now < before)
		return true;
	memcpy(search->choice, saved, sizeof *saved * (size_t)graph->kernels);
	search->now = before;
	search->fifos = fifos;
	return false;
}

static bool improve_values(struct search *search, int *saved)
{
	bool better = false;
	for (int v = 0; v < search->graph->values; v++) {
		const struct orders_value *value = &search->graph->value[v];
		for (int row = 0; value->reader.count > 1 && row < (int)value->wanted.order.count && search->points > 0; row++)
			better = improve_readers(search, value, row, saved) || better;
	}
	return better;
}

/* Another option for one kernel, and what its neighbours make of it: kept if all of it together is better. */
static bool improve_around(struct search *search, int k, int *saved)
{
	const struct orders_graph *graph = search->graph;
	int64_t before = search->now, fifos = search->fifos;
	size_t size = sizeof *saved * (size_t)graph->kernels;
	for (int o = 0; o < graph->kernel[k].options && search->points > 0; o++) {
		memcpy(saved, search->choice, size);
		if (o == saved[k])
			continue;
		search->choice[k] = o;
		price(search);
		for (int step = 1; step < graph->kernels && step <= 4; step++) {
			if (k + step < graph->kernels)
				improve_kernel(search, k + step);
			if (k - step >= 0)
				improve_kernel(search, k - step);
		}
		if (search->now < before)
			return true;
		memcpy(search->choice, saved, size);
		search->now = before;
		search->fifos = fifos;
	}
	return false;
}

/* around: by pairs as well, which takes many points. */
static void descend(struct search *search, bool around, int *saved)
{
	bool better = true;
	price(search);
	while (better && search->points > 0) {
		better = improve_all(search) || improve_values(search, saved);
		for (int k = 0; around && k < search->graph->kernels && !better; k++)
			better = improve_around(search, k, saved);
	}
}

/* Half of the points for starts, from the heuristic's orders and from random ones; the rest for the best of them. */
void orders_search(const struct orders_graph *graph, int64_t points, int *choice)
{
	struct search search = {.graph = graph, .random = RANDOM_SEED, .points = points / 2};
	int *saved = ARENA_ARRAY(graph->arena, int, graph->kernels + 1);
	size_t size = sizeof *choice * (size_t)graph->kernels;
	int64_t least = orders_cost(graph, choice).all;
	search.choice = ARENA_ARRAY(graph->arena, int, graph->kernels + 1);
	for (int start = 0; start < RESTARTS && search.points > 0; start++) {
		for (int k = 0; k < graph->kernels; k++)
			search.choice[k] = start ? (int)(random_next(&search.random) % (uint64_t)graph->kernel[k].options) : 0;
		descend(&search, false, saved);
		if (search.now >= least)
			continue;
		least = search.now;
		memcpy(choice, search.choice, size);
	}
	search.points += points - points / 2;
	memcpy(search.choice, choice, size);
	descend(&search, true, saved);
	memcpy(choice, search.choice, size);
}
