/* Merges small items with the neighbour that they share most bits with. */
#include "floorplan/floorplan.h"
#include <string.h>

#define SMALL_SHARE 50 /* an item is small if it takes at most 1/SMALL_SHARE of every die */

static int root_of(const int *parent, int item)
{
	while (parent[item] != item)
		item = parent[item];
	return item;
}

static bool fits_in(struct resources need, struct resources die)
{
	int64_t have;
	int64_t wanted;
	return !resources_exceeded(need, die, &have, &wanted);
}

static bool is_small(const struct floorplan_problem *problem, struct resources need)
{
	for (int d = 0; d < problem->dies; d++) {
		struct resources c = problem->capacity[d];
		if (!fits_in(need,
		            (struct resources){ c.lut / SMALL_SHARE, c.ff / SMALL_SHARE,
		                    c.dsp / SMALL_SHARE, c.bram18 / SMALL_SHARE,
		                    c.uram / SMALL_SHARE }))
			return false;
	}
	return true;
}

/* The group with at least half of the bits of this group's edges; -1: there is none. */
static int strongest_neighbour(
        const struct floorplan_problem *problem, const int *parent, int group, int64_t *bits)
{
	int64_t all = 0;
	int best = -1;
	memset(bits, 0, sizeof *bits * (size_t)problem->items);
	for (int e = 0; e < problem->edges; e++) {
		int from = root_of(parent, problem->edge[e].from);
		int to = root_of(parent, problem->edge[e].to);
		if (from == to || (from != group && to != group))
			continue;
		int other = from == group ? to : from;
		bits[other] += problem->edge[e].bits;
		all += problem->edge[e].bits;
		if (best < 0 || bits[other] > bits[best])
			best = other;
	}
	return best >= 0 && bits[best] * 2 >= all ? best : -1;
}

static struct floorplan_problem merged_problem(
        const struct floorplan_problem *problem, const int *parent, int *group)
{
	struct floorplan_problem smaller = *problem;
	smaller.items = smaller.edges = 0;
	smaller.item = ARENA_ARRAY(problem->arena, struct floorplan_item, problem->items + 1);
	smaller.edge = ARENA_ARRAY(problem->arena, struct floorplan_edge, problem->edges + 1);
	for (int i = 0; i < problem->items; i++)
		if (parent[i] == i)
			group[i] = smaller.items++;
	for (int i = 0; i < problem->items; i++) {
		group[i] = group[root_of(parent, i)];
		struct floorplan_item *item = &smaller.item[group[i]];
		item->need = resources_add(item->need, problem->item[i].need);
		item->memory_die |= problem->item[i].memory_die;
	}
	for (int e = 0; e < problem->edges; e++) {
		int from = group[problem->edge[e].from];
		int to = group[problem->edge[e].to];
		int k = 0;
		struct floorplan_edge edge = { from, to, problem->edge[e].bits };
		if (to < from)
			edge = (struct floorplan_edge){ to, from, problem->edge[e].bits };
		while (k < smaller.edges &&
		        (smaller.edge[k].from != edge.from || smaller.edge[k].to != edge.to))
			k++;
		if (from == to)
			continue;
		if (k < smaller.edges)
			smaller.edge[k].bits += edge.bits;
		else
			smaller.edge[smaller.edges++] = edge;
	}
	floorplan_index(&smaller);
	return smaller;
}

/* Items with memory ports are on one die in any placement. */
static void join_memory_die(
        const struct floorplan_problem *problem, int *parent, struct floorplan_item *sum)
{
	int memory_die = -1;
	for (int i = 0; i < problem->items; i++) {
		memory_die = memory_die < 0 && problem->item[i].memory_die ? i : memory_die;
		parent[i] = problem->item[i].memory_die ? memory_die : i;
		if (parent[i] != i)
			sum[memory_die].need = resources_add(sum[memory_die].need, sum[i].need);
	}
}

struct floorplan_problem floorplan_merge(const struct floorplan_problem *problem, int *group)
{
	int *parent = ARENA_ARRAY(problem->arena, int, problem->items + 1);
	int64_t *bits = ARENA_ARRAY(problem->arena, int64_t, problem->items + 1);
	struct floorplan_item *sum = arena_copy(
	        problem->arena, problem->item, sizeof *sum * (size_t)(problem->items + 1));
	join_memory_die(problem, parent, sum);
	bool merged = true;
	while (merged) {
		merged = false;
		for (int i = 0; i < problem->items; i++) {
			bool movable = parent[i] == i && !sum[i].memory_die &&
			        is_small(problem, sum[i].need);
			int into = movable ? strongest_neighbour(problem, parent, i, bits) : -1;
			if (into < 0)
				continue;
			parent[i] = into;
			sum[into].need = resources_add(sum[into].need, sum[i].need);
			merged = true;
		}
	}
	return merged_problem(problem, parent, group);
}

void floorplan_index(struct floorplan_problem *problem)
{
	problem->touching = ARENA_ARRAY(problem->arena, int, 2 * problem->edges + 1);
	int filled = 0;
	for (int i = 0; i < problem->items; i++) {
		problem->item[i].first = filled;
		for (int e = 0; e < problem->edges; e++)
			if (problem->edge[e].from == i || problem->edge[e].to == i)
				problem->touching[filled++] = e;
		problem->item[i].count = filled - problem->item[i].first;
	}
}
