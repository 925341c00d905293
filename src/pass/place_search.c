/* Placement by moves: from a few starts, passes in which every item moves once to where it is best and the best moment of the pass is kept (Fiduccia-Mattheyses).
 * A pass ends after as many moves as there are items, and passes end when one gains nothing, so it terminates; O(items² · dies · edges of an item) each.
 * Ties go to the lower item and die. */
#include "base/random.h"
#include "pass/place.h"
#include <string.h>

#define RESOURCES 5
#define PASSES_MOST 40
#define THROWS 32             /* further starts, where nothing fits */
#define THROWN 8              /* items of each */

struct search {
	const struct place_problem *problem;
	int *die, *best;
	bool *moved;
	struct place_load load;
	int64_t crossing;
};

static void as_array(struct resources resources, int64_t out[RESOURCES])
{
	memcpy(out, (int64_t[RESOURCES]){resources.lut, resources.ff, resources.dsp, resources.bram18, resources.uram}, sizeof(int64_t[RESOURCES]));
}

static double excess(int64_t used, int64_t available)
{
	return used <= available ? 0 : (double)(used - available) / (double)(available > 0 ? available : 1);
}

static double overflow_of(const struct place_problem *problem, const struct place_load *load)
{
	double sum = 0;
	int64_t used[RESOURCES], available[RESOURCES];
	for (int d = 0; d < problem->dies; d++) {
		as_array(load->used[d], used);
		as_array(problem->capacity[d], available);
		for (int r = 0; r < RESOURCES; r++)
			sum += excess(used[r], available[r]);
		if (d + 1 < problem->dies)
			sum += excess(load->wires[d], problem->wires);
	}
	return sum;
}

static struct resources negative(struct resources r)
{
	return (struct resources){-r.lut, -r.ff, -r.dsp, -r.bram18, -r.uram};
}

static void add_wires(struct place_load *load, int from, int to, int64_t bits)
{
	for (int d = from < to ? from : to; d < (from < to ? to : from); d++)
		load->wires[d] += bits;
}

struct place_load place_load(const struct place_problem *problem, const int *die)
{
	struct place_load load = {0};
	for (int i = 0; i < problem->items; i++)
		load.used[die[i]] = resources_add(load.used[die[i]], problem->item[i].need);
	for (int e = 0; e < problem->edges; e++)
		add_wires(&load, die[problem->edge[e].from], die[problem->edge[e].to], problem->edge[e].bits);
	return load;
}

static int64_t crossings(const struct place_load *load)
{
	int64_t sum = 0;
	for (int d = 0; d < PLATFORM_DIES; d++)
		sum += load->wires[d];
	return sum;
}

struct place_cost place_cost(const struct place_problem *problem, const int *die)
{
	struct place_load load = place_load(problem, die);
	return (struct place_cost){overflow_of(problem, &load), crossings(&load)};
}

bool place_better(struct place_cost left, struct place_cost right)
{
	const double same = 1e-9;
	if (left.overflow < right.overflow - same || left.overflow > right.overflow + same)
		return left.overflow < right.overflow;
	return left.crossing < right.crossing;
}

static struct place_load load_after(const struct search *s, int item, int to)
{
	const struct place_problem *problem = s->problem;
	const struct place_item *moving = &problem->item[item];
	struct place_load load = s->load;
	int from = s->die[item];
	load.used[from] = resources_add(load.used[from], negative(moving->need));
	load.used[to] = resources_add(load.used[to], moving->need);
	for (int t = 0; t < moving->count; t++) {
		const struct place_edge *edge = &problem->edge[problem->touching[moving->first + t]];
		int other = s->die[edge->from == item ? edge->to : edge->from];
		add_wires(&load, from, other, -edge->bits);
		add_wires(&load, to, other, edge->bits);
	}
	return load;
}

static struct place_cost cost_of(const struct search *s, const struct place_load *load)
{
	return (struct place_cost){overflow_of(s->problem, load), crossings(load)};
}

/* Makes the best move of an item that has not moved in this pass; false: all have. */
static bool move_one(struct search *s, struct place_cost *cost)
{
	int item = -1, to = 0;
	struct place_load load = s->load;
	for (int i = 0; i < s->problem->items; i++)
		for (int d = 0; d < s->problem->dies; d++) {
			if (s->moved[i] || s->problem->item[i].home || d == s->die[i])
				continue;
			struct place_load after = load_after(s, i, d);
			struct place_cost now = cost_of(s, &after);
			if (item >= 0 && !place_better(now, *cost))
				continue;
			item = i;
			to = d;
			load = after;
			*cost = now;
		}
	if (item < 0)
		return false;
	s->moved[item] = true;
	s->die[item] = to;
	s->load = load;
	return true;
}

struct place_cost place_refine(const struct place_problem *problem, int *die)
{
	size_t bytes = sizeof(int) * (size_t)problem->items;
	struct search s = {.problem = problem, .die = ARENA_ARRAY(problem->arena, int, problem->items + 1), .moved = ARENA_ARRAY(problem->arena, bool, problem->items + 1)};
	struct place_cost best = place_cost(problem, die), cost = best;
	bool gained = true;
	for (int pass = 0; gained && pass < PASSES_MOST; pass++) {
		gained = false;
		memcpy(s.die, die, bytes);
		memset(s.moved, 0, sizeof *s.moved * (size_t)problem->items);
		s.load = place_load(problem, die);
		while (move_one(&s, &cost))
			if (place_better(cost, best)) {
				best = cost;
				memcpy(die, s.die, bytes);
				gained = true;
			}
	}
	return best;
}

static void start_home(const struct place_problem *problem, int *die)
{
	for (int i = 0; i < problem->items; i++)
		die[i] = problem->home;
}

/* In order, the next die when one is full to its share of the whole: neighbours in the chain stand together. */
static void start_in_order(const struct place_problem *problem, int *die, bool reverse)
{
	double whole = 0, filled = 0;
	int64_t need[RESOURCES], total[RESOURCES];
	struct resources all = {0};
	for (int d = 0; d < problem->dies; d++)
		all = resources_add(all, problem->capacity[d]);
	as_array(all, total);
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < problem->items; i++) {
			int at = pass && whole > 0 ? (int)(filled / whole * problem->dies) : 0;
			at = at >= problem->dies ? problem->dies - 1 : at;
			die[i] = problem->item[i].home ? problem->home : reverse ? problem->dies - 1 - at : at;
			as_array(problem->item[i].need, need);
			for (int r = 0; r < RESOURCES; r++)
				*(pass ? &filled : &whole) += total[r] > 0 ? (double)need[r] / (double)total[r] : 0;
		}
}

/* Where a few items of the best placement are thrown elsewhere, passes may end in one that fits: what fills a die and what its wires are for are exchanged so, which no move of one alone does. */
static struct place_cost throw_some(const struct place_problem *problem, struct place_cost best, int *die)
{
	int *trial = ARENA_ARRAY(problem->arena, int, problem->items + 1);
	uint64_t random = RANDOM_SEED;
	for (int i = 0; i < THROWS && best.overflow > 0; i++) {
		memcpy(trial, die, sizeof *die * (size_t)problem->items);
		for (int t = 0; t < THROWN; t++) {
			int item = (int)(random_next(&random) % (uint64_t)problem->items), to = (int)(random_next(&random) % (uint64_t)problem->dies);
			trial[item] = problem->item[item].home ? problem->home : to;
		}
		struct place_cost cost = place_refine(problem, trial);
		if (!place_better(cost, best))
			continue;
		best = cost;
		memcpy(die, trial, sizeof *die * (size_t)problem->items);
	}
	return best;
}

struct place_cost place_search(const struct place_problem *problem, int *die)
{
	int *trial = ARENA_ARRAY(problem->arena, int, problem->items + 1);
	struct place_cost best = {0};
	for (int start = 0; start < 3; start++) {
		if (start == 0)
			start_home(problem, trial);
		else
			start_in_order(problem, trial, start == 2);
		struct place_cost cost = place_refine(problem, trial);
		if (start && !place_better(cost, best))
			continue;
		best = cost;
		memcpy(die, trial, sizeof *die * (size_t)problem->items);
	}
	return problem->items ? throw_some(problem, best, die) : best;
}
