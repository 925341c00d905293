/* Searches the product of all kernels' options: descent from the heuristic's orders and from random ones, kernel by kernel, then by pairs that share a value;
 * deterministic, and bounded by the number of points whose cost is computed.  A kernel's change is priced by the values that it touches; FIFOs are priced whole. */
#include "base/random.h"
#include "pass/orders.h"
#include <string.h>

#define RESTARTS 24
#define SWEEPS 16

struct search {
	const struct orders_graph *graph;
	int64_t points;           /* left */
	uint64_t random;
	int *choice;              /* [kernels] */
	int64_t now;              /* its cost */
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
	for (int j = 0; j < kernel->operands; j++) {
		bool known = kernel->source[j] < 0;
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
	int64_t rest = search->now - around(search, k) - orders_fifos(search->graph, search->choice), least = search->now;
	for (int o = 0; o < kernel->options && search->points > 0; o++) {
		if (o == old)
			continue;
		search->choice[k] = o;
		int64_t cost = rest + around(search, k);
		if (cost < least)
			cost += orders_fifos(search->graph, search->choice);
		search->points--;
		if (cost < least) {
			least = cost;
			best = o;
		}
	}
	search->choice[k] = best;
	bool better = least < search->now;
	search->now = least;
	return better;
}

static bool improve_all(struct search *search)
{
	bool better = false;
	for (int k = 0; k < search->graph->kernels; k++)
		better = improve_kernel(search, k) || better;
	return better;
}

/* Another option for one kernel, and what its neighbours make of it: kept if all of it together is better. */
static bool improve_around(struct search *search, int k, int *saved)
{
	const struct orders_graph *graph = search->graph;
	int64_t before = search->now;
	size_t size = sizeof *saved * (size_t)graph->kernels;
	for (int o = 0; o < graph->kernel[k].options && search->points > 0; o++) {
		memcpy(saved, search->choice, size);
		if (o == saved[k])
			continue;
		search->choice[k] = o;
		search->now = orders_cost(graph, search->choice).all;
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
	}
	return false;
}

static void descend(struct search *search, int *saved)
{
	bool better = true;
	search->now = orders_cost(search->graph, search->choice).all;
	while (better && search->points > 0) {
		better = improve_all(search);
		for (int k = 0; k < search->graph->kernels && !better; k++)
			better = improve_around(search, k, saved);
	}
}

/* So many restarts that each can try all options of all kernels some times. */
static int restarts(const struct orders_graph *graph, int64_t points)
{
	int64_t options = 1;
	for (int k = 0; k < graph->kernels; k++)
		options += graph->kernel[k].options;
	int64_t most = points / (SWEEPS * options);
	return most < 2 ? 2 : most > RESTARTS ? RESTARTS : (int)most;
}

void orders_search(const struct orders_graph *graph, int64_t points, int *choice)
{
	struct search search = {.graph = graph, .random = RANDOM_SEED};
	int *saved = ARENA_ARRAY(graph->arena, int, graph->kernels + 1), starts = restarts(graph, points);
	int64_t least = orders_cost(graph, choice).all;
	search.choice = ARENA_ARRAY(graph->arena, int, graph->kernels + 1);
	for (int start = 0; start < starts && points > 0; start++) {
		int64_t share = points / (starts - start);
		search.points = share;
		for (int k = 0; k < graph->kernels; k++)
			search.choice[k] = start ? (int)(random_next(&search.random) % (uint64_t)graph->kernel[k].options) : 0;
		descend(&search, saved);
		points -= share - search.points;
		if (search.now >= least)
			continue;
		least = search.now;
		memcpy(choice, search.choice, sizeof *choice * (size_t)graph->kernels);
	}
}
