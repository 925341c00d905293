/* Placement where moves leave little too much: by threshold accepting (Dueck and Scheuer 1990), which is annealing without an exponential, so that all machines go the same way.
 * An item goes to another die, or changes places with one there, if that adds no more overflow than the threshold; that falls to nothing with the cube of the moves that are left. */
#include "base/random.h"
#include "pass/place.h"
#include <string.h>

#define NEAR 0.05             /* overflow of a placement that another is looked for: of those with more none was found */
#define RUNS 4                /* of six, with any seed, three or more found one where there was one */
#define MOVES 400000
#define WARM 0.4              /* the threshold in the beginning */

struct anneal {
	const struct place_problem *problem;
	int *die, *open, opened;  /* items that may move */
	struct place_load load;
	uint64_t random;
};

static void put(struct anneal *a, int item, int to)
{
	const struct place_problem *problem = a->problem;
	const struct place_item *moving = &problem->item[item];
	int from = a->die[item];
	a->load.used[from] = resources_less(a->load.used[from], moving->need);
	a->load.used[to] = resources_add(a->load.used[to], moving->need);
	for (int t = 0; t < moving->count; t++) {
		const struct place_edge *edge = &problem->edge[problem->touching[moving->first + t]];
		int other = a->die[edge->from == item ? edge->to : edge->from];
		place_cross(a->load.wires, from, other, -edge->bits);
		place_cross(a->load.wires, to, other, edge->bits);
	}
	a->die[item] = to;
}

static int draw(struct anneal *a, int count)
{
	return (int)(random_next(&a->random) % (uint64_t)count);
}

/* An item and a die; every second time one of that die comes in return, else -1. */
static int draw_return(struct anneal *a, int item, int to)
{
	int other = a->open[draw(a, a->opened)];
	return draw(a, 2) && other != item && a->die[other] == to ? other : -1;
}

/* From what a->die has; the best on the way is left in `best`. */
static void run(struct anneal *a, int *best)
{
	const struct place_problem *problem = a->problem;
	a->load = place_load(problem, a->die);
	double now = place_overflow(problem, &a->load), least = now;
	for (int left = MOVES; left > 0 && least > 0; left--) {
		double part = (double)left / MOVES, threshold = WARM * part * part * part * ((double)draw(a, 1024) / 1024);
		int item = a->open[draw(a, a->opened)], from = a->die[item], to = (from + 1 + draw(a, problem->dies - 1)) % problem->dies, other = draw_return(a, item, to);
		put(a, item, to);
		if (other >= 0)
			put(a, other, from);
		double then = place_overflow(problem, &a->load);
		if (then - now > 0 && then - now >= threshold) {
			put(a, item, from);
			if (other >= 0)
				put(a, other, to);
			continue;
		}
		now = then;
		if (now >= least)
			continue;
		least = now;
		memcpy(best, a->die, sizeof *best * (size_t)problem->items);
	}
}

struct place_cost place_anneal(const struct place_problem *problem, int *die)
{
	struct place_cost before = place_cost(problem, die);
	struct anneal a = {.problem = problem, .die = ARENA_ARRAY(problem->arena, int, problem->items + 1), .open = ARENA_ARRAY(problem->arena, int, problem->items + 1), .random = RANDOM_SEED};
	int *best = ARENA_ARRAY(problem->arena, int, problem->items + 1);
	for (int i = 0; i < problem->items; i++)
		if (!problem->item[i].home)
			a.open[a.opened++] = i;
	if (problem->dies < 2 || !a.opened || before.overflow >= NEAR)
		return before;
	for (int i = 0; i < RUNS && before.overflow > 0; i++) {
		memcpy(a.die, die, sizeof *die * (size_t)problem->items);
		memcpy(best, die, sizeof *die * (size_t)problem->items);
		run(&a, best);
		struct place_cost after = place_refine(problem, best);
		if (!place_better(after, before))
			continue;
		before = after;
		memcpy(die, best, sizeof *die * (size_t)problem->items);
	}
	return before;
}
