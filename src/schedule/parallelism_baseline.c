/* A published search to compare with: nearest neighbours of a Pareto front, as ScaleHLS uses for
 * the loops of a kernel (arXiv 2107.11673). */
#include "base/random.h"
#include "schedule/parallelism.h"
#include <string.h>

#define SAMPLES 32 /* random points to start with */

struct point {
	int *choice;
	double cycles;
	int64_t dsp;
	bool fits, expanded;
};

struct neighbours {
	const struct parallelism_space *space;
	int64_t points; /* left */
	uint64_t random;
	/* Pareto front: no point is better than another in both cycles and DSPs */
	VEC(struct point) front;
};

static bool is_better(const struct point *left, const struct point *right)
{
	if (left->fits != right->fits)
		return left->fits;
	return left->cycles <= right->cycles && left->dsp <= right->dsp;
}

static bool is_beaten(const struct neighbours *n, const struct point *point)
{
	for (size_t i = 0; i < n->front.count; i++)
		if (is_better(&n->front.data[i], point))
			return true;
	return false;
}

/* Adds a choice to the front unless it is dominated. Most choices are dominated before all of their
 * extents are priced. */
static void add_to_front(struct neighbours *n, int *choice)
{
	parallelism_follow(n->space, choice);
	struct parallelism_cost cost = parallelism_resources(n->space, choice);
	const struct parallelism_budget *budget = &n->space->budget;
	struct point point = { .dsp = cost.dsp,
		.fits = cost.dsp <= budget->dsp && cost.lut <= budget->lut &&
		        cost.ports <= budget->ports };
	bool beaten = is_beaten(n, &point);
	size_t remaining = 0;
	n->points--;
	for (int e = 0; e < n->space->extents && !beaten; e++) {
		point.cycles += parallelism_cycles_cached(n->space, choice, e);
		beaten = is_beaten(n, &point);
	}
	if (beaten)
		return;
	for (size_t i = 0; i < n->front.count; i++)
		if (!is_better(&point, &n->front.data[i]))
			n->front.data[remaining++] = n->front.data[i];
	n->front.count = remaining;
	point.choice =
	        arena_copy(n->space->arena, choice, sizeof *choice * (size_t)n->space->kernels);
	VEC_PUSH(n->space->arena, &n->front, point);
}

/* Considers all choices one option away in one kernel. */
static void add_neighbours(struct neighbours *n, const int *from, int *choice)
{
	size_t size = sizeof *choice * (size_t)n->space->kernels;
	for (int k = 0; k < n->space->kernels; k++)
		for (int step = -1; step <= 1 && n->points > 0; step += 2) {
			int o = from[k] + step;
			if (o < 0 || o >= n->space->kernel[k].options ||
			        n->space->kernel[k].follows >= 0)
				continue;
			memcpy(choice, from, size);
			choice[k] = o;
			add_to_front(n, choice);
		}
}

static bool expand_next(struct neighbours *n, int *choice)
{
	for (size_t i = 0; i < n->front.count; i++) {
		if (n->front.data[i].expanded)
			continue;
		n->front.data[i].expanded = true;
		add_neighbours(n, n->front.data[i].choice, choice);
		return true;
	}
	return false;
}

void parallelism_neighbour(const struct parallelism_space *space, int64_t points, int *choice)
{
	struct neighbours n = { .space = space, .points = points, .random = RANDOM_SEED };
	int *next = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	add_to_front(&n, next);
	for (int sample = 0; sample < SAMPLES && n.points > 0; sample++) {
		for (int k = 0; k < space->kernels; k++)
			next[k] =
			        (int)(random_next(&n.random) % (uint64_t)space->kernel[k].options);
		add_to_front(&n, next);
	}
	while (n.points > 0 && expand_next(&n, next)) {
	}
	const struct point *best = &n.front.data[0];
	for (size_t i = 1; i < n.front.count; i++)
		best = n.front.data[i].cycles < best->cycles ? &n.front.data[i] : best;
	memcpy(choice, best->choice, sizeof *choice * (size_t)space->kernels);
}
