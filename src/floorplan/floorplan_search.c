/* Finds a placement by moves (Fiduccia-Mattheyses): from a few starts, passes in which every item
 * moves once, to its best die, and the best state of the pass is kept. A pass has at most as many
 * moves as items, and passes stop when one gains nothing, so it terminates; each move looks at all
 * items. Ties go to the lower item and die. */
#include "base/guard.h"
#include "base/random.h"
#include "floorplan/floorplan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RESOURCES 5
#define PASSES_MOST 40
/* A pass ends after so many moves without a better state: of fewer items it is whole. */
#define PLATEAU 512
#define SAME 1e-9              /* overflows that differ by less are equal */
#define ROUNDED 1e-12          /* more than sums of overflows in different order differ by */
#define PERTURBATIONS 32       /* restarts, while nothing fits, */
#define PERTURBATIONS_NEAR 256 /* or so many, if the overflow is small, */
/* but so few of many items that their first passes look at no more items than this */
#define PERTURBATION_STEPS ((int64_t)1 << 25)
#define NEARLY 0.1        /* it is small up to this */
#define PERTURBED_ITEMS 8 /* items that a restart moves */

/* Resources of a die. */
struct die_filling {
	int64_t used[RESOURCES], room[RESOURCES];
	int exceeded, resource[RESOURCES]; /* the resources that are exceeded, in order, */
	double excess[RESOURCES];          /* and by how much */
};

struct search {
	const struct floorplan_problem *problem;
	int *die;
	/* items that may move and have not in this pass, in order */
	int *open, opened;
	int64_t crossing;
	/* [items][die][boundary] change of the bits over the boundary if the item moves to the
	 * die */
	int64_t (*change)[PLATFORM_DIES][PLATFORM_DIES];
	int64_t (*crossed)[PLATFORM_DIES]; /* [items][die] the same over all boundaries */
	int64_t *fewest;                   /* [items] the least of them, its own die aside */
	int64_t (*need)[RESOURCES];        /* [items] */
	int64_t capacity[PLATFORM_DIES][RESOURCES], wires[PLATFORM_DIES];
	struct die_filling filling[PLATFORM_DIES];
};

static void as_array(struct resources resources, int64_t out[RESOURCES])
{
	memcpy(out,
	        (int64_t[RESOURCES]){ resources.lut, resources.ff, resources.dsp, resources.bram18,
	                resources.uram },
	        sizeof(int64_t[RESOURCES]));
}

static double excess(int64_t used, int64_t available)
{
	if (used <= available)
		return 0;
	return (double)(used - available) / (double)(available > 0 ? available : 1);
}

static double overflow_of(
        const struct floorplan_problem *problem, const struct floorplan_load *load)
{
	double sum = 0;
	int64_t used[RESOURCES];
	int64_t available[RESOURCES];
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

static void add_wires(int64_t *wires, int from, int to, int64_t bits)
{
	for (int d = from; d < to; d++)
		wires[d] += bits;
	for (int d = to; d < from; d++)
		wires[d] += bits;
}

struct floorplan_load floorplan_load(const struct floorplan_problem *problem, const int *die)
{
	struct floorplan_load load = { 0 };
	for (int i = 0; i < problem->items; i++)
		load.used[die[i]] = resources_add(load.used[die[i]], problem->item[i].need);
	for (int e = 0; e < problem->edges; e++)
		add_wires(load.wires, die[problem->edge[e].from], die[problem->edge[e].to],
		        problem->edge[e].bits);
	return load;
}

static int64_t crossings(const struct floorplan_load *load)
{
	int64_t sum = 0;
	for (int d = 0; d < PLATFORM_DIES; d++)
		sum += load->wires[d];
	return sum;
}

struct floorplan_cost floorplan_cost(const struct floorplan_problem *problem, const int *die)
{
	struct floorplan_load load = floorplan_load(problem, die);
	return (struct floorplan_cost){ overflow_of(problem, &load), crossings(&load) };
}

bool floorplan_better(struct floorplan_cost left, struct floorplan_cost right)
{
	if (left.overflow < right.overflow - SAME || left.overflow > right.overflow + SAME)
		return left.overflow < right.overflow;
	return left.crossing < right.crossing;
}

/* --- moves */

static void note_fewest(struct search *s, int item)
{
	int64_t fewest = INT64_MAX;
	for (int d = 0; d < s->problem->dies; d++)
		if (d != s->die[item] && s->crossed[item][d] < fewest)
			fewest = s->crossed[item][d];
	s->fewest[item] = fewest;
}

/* Adds what an edge from the item to one on die `other` changes if the item moves. */
static void add_change(struct search *s, int item, int other, int64_t bits)
{
	for (int d = 0; d < s->problem->dies; d++) {
		add_wires(s->change[item][d], s->die[item], other, -bits);
		add_wires(s->change[item][d], d, other, bits);
		s->crossed[item][d] += bits * (abs(d - other) - abs(s->die[item] - other));
	}
}

static void note_excess(struct search *s, int die)
{
	struct die_filling *filling = &s->filling[die];
	filling->exceeded = 0;
	for (int r = 0; r < RESOURCES; r++) {
		filling->room[r] = s->capacity[die][r] - filling->used[r];
		if (filling->room[r] >= 0)
			continue;
		filling->excess[filling->exceeded] = excess(filling->used[r], s->capacity[die][r]);
		filling->resource[filling->exceeded++] = r;
	}
}

static void begin_pass(struct search *s, const int *die)
{
	const struct floorplan_problem *problem = s->problem;
	memcpy(s->die, die, sizeof *die * (size_t)problem->items);
	memset(s->change, 0, sizeof *s->change * (size_t)problem->items);
	memset(s->crossed, 0, sizeof *s->crossed * (size_t)problem->items);
	s->opened = 0;
	for (int i = 0; i < problem->items; i++)
		if (!problem->item[i].memory_die)
			s->open[s->opened++] = i;
	struct floorplan_load load = floorplan_load(problem, die);
	memcpy(s->wires, load.wires, sizeof s->wires);
	s->crossing = crossings(&load);
	for (int d = 0; d < problem->dies; d++) {
		as_array(load.used[d], s->filling[d].used);
		note_excess(s, d);
	}
	for (int e = 0; e < problem->edges; e++) {
		const struct floorplan_edge *edge = &problem->edge[e];
		add_change(s, edge->from, die[edge->to], edge->bits);
		add_change(s, edge->to, die[edge->from], edge->bits);
	}
	for (int i = 0; i < problem->items; i++)
		note_fewest(s, i);
}

/* What the item's old die exceeds without it, which is no more than before. */
static double excess_without(const struct search *s, int die, const int64_t *need, double sum)
{
	const struct die_filling *filling = &s->filling[die];
	for (int i = 0; i < filling->exceeded; i++) {
		int r = filling->resource[i];
		sum += excess(filling->used[r] - need[r], s->capacity[die][r]);
	}
	return sum;
}

static double excess_with(const struct search *s, int die, const int64_t *need, double sum)
{
	const struct die_filling *filling = &s->filling[die];
	for (int r = 0; r < RESOURCES; r++)
		if (need[r] > filling->room[r])
			sum += excess(filling->used[r] + need[r], s->capacity[die][r]);
	return sum;
}

static double excess_now(const struct die_filling *filling, double sum)
{
	for (int i = 0; i < filling->exceeded; i++)
		sum += filling->excess[i];
	return sum;
}

/* The same sum as overflow_of, in the same order, without its zeros; stops as soon as it exceeds
 * the bound. */
static double overflow_after(const struct search *s, int item, int to, double bound)
{
	const int64_t *change = s->change[item][to];
	const int64_t *need = s->need[item];
	int from = s->die[item];
	int dies = s->problem->dies;
	double sum = 0;
	for (int d = 0; d < dies && sum <= bound; d++) {
		if (d == to)
			sum = excess_with(s, d, need, sum);
		else if (d == from)
			sum = excess_without(s, d, need, sum);
		else
			sum = excess_now(&s->filling[d], sum);

		if (d + 1 < dies)
			sum += excess(s->wires[d] + change[d], s->problem->wires);
	}
	return sum;
}

static void move(struct search *s, int place, int to)
{
	int item = s->open[place];
	const struct floorplan_problem *problem = s->problem;
	const struct floorplan_item *moving = &problem->item[item];
	int from = s->die[item];
	s->crossing += s->crossed[item][to];
	for (int b = 0; b < PLATFORM_DIES; b++)
		s->wires[b] += s->change[item][to][b];
	for (int r = 0; r < RESOURCES; r++) {
		s->filling[from].used[r] -= s->need[item][r];
		s->filling[to].used[r] += s->need[item][r];
	}
	note_excess(s, from);
	note_excess(s, to);
	for (int t = 0; t < moving->count; t++) {
		const struct floorplan_edge *edge =
		        &problem->edge[problem->touching[moving->first + t]];
		int other = edge->from == item ? edge->to : edge->from;
		add_change(s, other, from, -edge->bits);
		add_change(s, other, to, edge->bits);
		note_fewest(s, other);
	}
	s->opened--;
	memmove(&s->open[place], &s->open[place + 1],
	        sizeof *s->open * (size_t)(s->opened - place));
	s->die[item] = to;
}

/* [die] lower bound of the overflow after a move of one of its items: the other dies exceed at
 * least what they do now. */
static void find_least(const struct search *s, double least[PLATFORM_DIES])
{
	for (int die = 0; die < s->problem->dies; die++) {
		least[die] = -ROUNDED;
		for (int d = 0; d < s->problem->dies; d++)
			least[die] = d == die ? least[die] : excess_now(&s->filling[d], least[die]);
	}
}

/* Is no move of the item better than the cost, whatever its die? */
static bool is_outdone(
        const struct search *s, int item, double least, const struct floorplan_cost *cost)
{
	return least >= cost->overflow - SAME &&
	        (least > cost->overflow + SAME || s->fewest[item] >= cost->crossing - s->crossing);
}

/* Makes the best move of an item that has not moved in this pass; false: all have moved. */
static bool move_one(struct search *s, struct floorplan_cost *cost)
{
	int place = -1;
	int to = 0;
	double least[PLATFORM_DIES];
	find_least(s, least);
	guard_count(arena_guard(s->problem->arena), s->opened);
	for (int p = 0; p < s->opened; p++) {
		int i = s->open[p];
		if (place >= 0 && is_outdone(s, i, least[s->die[i]], cost))
			continue;
		for (int d = 0; d < s->problem->dies; d++) {
			struct floorplan_cost now = { least[s->die[i]],
				s->crossing + s->crossed[i][d] };
			if (d == s->die[i] || (place >= 0 && !floorplan_better(now, *cost)))
				continue;
			now.overflow = overflow_after(
			        s, i, d, place < 0 ? INFINITY : cost->overflow + SAME);
			if (place >= 0 && !floorplan_better(now, *cost))
				continue;
			place = p;
			to = d;
			*cost = now;
		}
	}
	if (place >= 0)
		move(s, place, to);
	return place >= 0;
}

static bool is_enough(const struct floorplan_problem *problem, struct floorplan_cost cost)
{
	return problem->first_fit && cost.overflow <= 0;
}

struct floorplan_cost floorplan_refine(const struct floorplan_problem *problem, int *die)
{
	struct search s = { .problem = problem,
		.die = ARENA_ARRAY(problem->arena, int, problem->items + 1),
		.open = ARENA_ARRAY(problem->arena, int, problem->items + 1) };
	s.need = arena_alloc(problem->arena, sizeof *s.need * (size_t)(problem->items + 1));
	for (int i = 0; i < problem->items; i++)
		as_array(problem->item[i].need, s.need[i]);
	for (int d = 0; d < problem->dies; d++)
		as_array(problem->capacity[d], s.capacity[d]);
	struct floorplan_cost best = floorplan_cost(problem, die);
	struct floorplan_cost cost = best;
	bool gained = true;
	s.change = arena_alloc(problem->arena, sizeof *s.change * (size_t)(problem->items + 1));
	s.fewest = ARENA_ARRAY(problem->arena, int64_t, problem->items + 1);
	s.crossed = arena_alloc(problem->arena, sizeof *s.crossed * (size_t)(problem->items + 1));
	for (int pass = 0; gained && pass < PASSES_MOST; pass++) {
		gained = false;
		int since = 0;
		begin_pass(&s, die);
		while (!is_enough(problem, best) && since++ < PLATEAU && move_one(&s, &cost))
			if (floorplan_better(cost, best)) {
				best = cost;
				memcpy(die, s.die, sizeof *die * (size_t)problem->items);
				gained = true;
				since = 0;
			}
	}
	return best;
}

/* --- starts */

static void start_memory_die(const struct floorplan_problem *problem, int *die)
{
	for (int i = 0; i < problem->items; i++)
		die[i] = problem->memory_die;
}

/* Fills the dies in order, each up to its share of the whole, so that neighbours in the chain are
 * together; the first pass measures the whole. */
static void start_in_order(const struct floorplan_problem *problem, int *die, bool reverse)
{
	double whole = 0;
	double filled = 0;
	int64_t need[RESOURCES];
	int64_t total[RESOURCES];
	struct resources all = { 0 };
	for (int d = 0; d < problem->dies; d++)
		all = resources_add(all, problem->capacity[d]);
	as_array(all, total);
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < problem->items; i++) {
			int at = pass && whole > 0 ? (int)(filled / whole * problem->dies) : 0;
			at = at >= problem->dies ? problem->dies - 1 : at;
			die[i] = reverse ? problem->dies - 1 - at : at;
			if (problem->item[i].memory_die)
				die[i] = problem->memory_die;

			as_array(problem->item[i].need, need);
			double *sum = pass ? &filled : &whole;
			for (int r = 0; r < RESOURCES; r++)
				*sum += total[r] > 0 ? (double)need[r] / (double)total[r] : 0;
		}
}

/* Restarts that are worth their time. */
static int restarts(const struct floorplan_problem *problem, double overflow)
{
	int64_t items = problem->items ? problem->items : 1;
	int64_t most = PERTURBATION_STEPS / (items * (items < PLATEAU ? items : PLATEAU));
	int64_t wanted = overflow > NEARLY ? PERTURBATIONS : PERTURBATIONS_NEAR;
	return (int)(wanted < most ? wanted : most);
}

/* Restarts from the best placement with a few items moved at random, which can exchange items that
 * fill a die for items that use its wires; no single move does that. */
struct floorplan_cost floorplan_perturb(const struct floorplan_problem *problem, int *die)
{
	struct floorplan_cost best = floorplan_cost(problem, die);
	int *trial = ARENA_ARRAY(problem->arena, int, problem->items + 1);
	uint64_t random = RANDOM_SEED;
	for (int i = 0; problem->items && best.overflow > 0 && i < restarts(problem, best.overflow);
	        i++) {
		memcpy(trial, die, sizeof *die * (size_t)problem->items);
		for (int t = 0; t < PERTURBED_ITEMS; t++) {
			int item = (int)(random_next(&random) % (uint64_t)problem->items);
			int to = (int)(random_next(&random) % (uint64_t)problem->dies);
			trial[item] = problem->item[item].memory_die ? problem->memory_die : to;
		}
		struct floorplan_cost cost = floorplan_refine(problem, trial);
		if (!floorplan_better(cost, best))
			continue;
		best = cost;
		memcpy(die, trial, sizeof *die * (size_t)problem->items);
	}
	return best;
}

struct floorplan_cost floorplan_start(const struct floorplan_problem *problem, int *die)
{
	int *trial = ARENA_ARRAY(problem->arena, int, problem->items + 1);
	struct floorplan_cost best = { 0 };
	for (int start = 0; start < 3 && !(start && is_enough(problem, best)); start++) {
		if (start == 0)
			start_memory_die(problem, trial);
		else
			start_in_order(problem, trial, start == 2);
		struct floorplan_cost cost = floorplan_refine(problem, trial);
		if (start && !floorplan_better(cost, best))
			continue;
		best = cost;
		memcpy(die, trial, sizeof *die * (size_t)problem->items);
	}
	return best;
}

struct floorplan_cost floorplan_search(const struct floorplan_problem *problem, int *die)
{
	floorplan_start(problem, die);
	return floorplan_perturb(problem, die);
}
