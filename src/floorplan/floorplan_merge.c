/* Merges small items with the neighbour that they share most bits with. */
#include "floorplan/floorplan.h"
#include <stdlib.h>

#define SMALL_SHARE 50 /* an item is small if it takes at most 1/SMALL_SHARE of every die */

/* Groups of items: each item has a parent, a group's root is its own; the members of a group are a
 * list that begins with its root. */
struct groups {
	const struct floorplan_problem *problem;
	int *parent, *next,
	        *last; /* [items] next: -1: none; last: of a root, the end of its list */
	int64_t *bits; /* [items] 0; of a neighbour while neighbours are compared */
	int *edge;     /* [edges] scratch */
};

static int root_of(const int *parent, int item)
{
	while (parent[item] != item)
		item = parent[item];
	return item;
}

static void join(struct groups *g, int item, int into)
{
	g->parent[item] = into;
	g->next[g->last[into]] = item;
	g->last[into] = g->last[item];
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

static int in_order(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

/* Lists the edges between the group and others, in order. */
static int list_edges(struct groups *g, int group)
{
	const struct floorplan_problem *problem = g->problem;
	int count = 0;
	for (int i = group; i >= 0; i = g->next[i])
		for (int t = 0; t < problem->item[i].count; t++) {
			int e = problem->touching[problem->item[i].first + t];
			const struct floorplan_edge *edge = &problem->edge[e];
			if (root_of(g->parent, edge->from) != root_of(g->parent, edge->to))
				g->edge[count++] = e;
		}
	qsort(g->edge, (size_t)count, sizeof *g->edge, in_order);
	return count;
}

static int other_end(const struct groups *g, int group, int edge)
{
	int from = root_of(g->parent, g->problem->edge[edge].from);
	return from == group ? root_of(g->parent, g->problem->edge[edge].to) : from;
}

/* The group with at least half of the bits of this group's edges; -1: there is none. */
static int strongest_neighbour(struct groups *g, int group)
{
	int64_t all = 0;
	int best = -1;
	int edges = list_edges(g, group);
	for (int i = 0; i < edges; i++) {
		int64_t bits = g->problem->edge[g->edge[i]].bits;
		int other = other_end(g, group, g->edge[i]);
		g->bits[other] += bits;
		all += bits;
		if (best < 0 || g->bits[other] > g->bits[best])
			best = other;
	}
	bool strong = best >= 0 && g->bits[best] * 2 >= all;
	for (int i = 0; i < edges; i++)
		g->bits[other_end(g, group, g->edge[i])] = 0;
	return strong ? best : -1;
}

/* Edges of the merged items, found by their ends. */
struct edge_table {
	int *first, *next; /* [size] by a hash of the ends, [edges]; -1: none */
	int size;
};

static struct edge_table edge_table_new(struct arena *arena, int edges)
{
	struct edge_table table = { .first = ARENA_ARRAY(arena, int, edges + 1),
		.next = ARENA_ARRAY(arena, int, edges + 1),
		.size = edges + 1 };
	for (int i = 0; i < table.size; i++)
		table.first[i] = -1;
	return table;
}

/* Adds the bits to the edge between these items, or a new one. */
static void add_edge(
        struct edge_table *table, struct floorplan_problem *problem, struct floorplan_edge edge)
{
	uint64_t ends = (uint64_t)edge.from * (uint64_t)problem->items + (uint64_t)edge.to;
	int *first = &table->first[ends % (uint64_t)table->size];
	int k = *first;
	while (k >= 0 && (problem->edge[k].from != edge.from || problem->edge[k].to != edge.to))
		k = table->next[k];
	if (k >= 0) {
		problem->edge[k].bits += edge.bits;
		return;
	}
	table->next[problem->edges] = *first;
	*first = problem->edges;
	problem->edge[problem->edges++] = edge;
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
	struct edge_table table = edge_table_new(problem->arena, problem->edges);
	for (int e = 0; e < problem->edges; e++) {
		int from = group[problem->edge[e].from];
		int to = group[problem->edge[e].to];
		int64_t bits = problem->edge[e].bits;
		if (from < to)
			add_edge(&table, &smaller, (struct floorplan_edge){ from, to, bits });
		else if (to < from)
			add_edge(&table, &smaller, (struct floorplan_edge){ to, from, bits });
	}
	floorplan_index(&smaller);
	return smaller;
}

static struct groups groups_of(const struct floorplan_problem *problem)
{
	struct groups g = { .problem = problem,
		.parent = ARENA_ARRAY(problem->arena, int, problem->items + 1),
		.next = ARENA_ARRAY(problem->arena, int, problem->items + 1),
		.last = ARENA_ARRAY(problem->arena, int, problem->items + 1),
		.bits = ARENA_ARRAY(problem->arena, int64_t, problem->items + 1),
		.edge = ARENA_ARRAY(problem->arena, int, 2 * problem->edges + 1) };
	for (int i = 0; i < problem->items; i++) {
		g.parent[i] = g.last[i] = i;
		g.next[i] = -1;
	}
	return g;
}

static void merge(struct groups *g, struct floorplan_item *sum, int item, int into)
{
	join(g, item, into);
	sum[into].need = resources_add(sum[into].need, sum[item].need);
}

/* Items with memory ports are on one die in any placement. */
static void join_memory_die(struct groups *g, struct floorplan_item *sum)
{
	int memory_die = -1;
	for (int i = 0; i < g->problem->items; i++) {
		if (!g->problem->item[i].memory_die)
			continue;
		if (memory_die < 0)
			memory_die = i;
		else
			merge(g, sum, i, memory_die);
	}
}

struct floorplan_problem floorplan_merge(const struct floorplan_problem *problem, int *group)
{
	struct groups g = groups_of(problem);
	struct floorplan_item *sum = arena_copy(
	        problem->arena, problem->item, sizeof *sum * (size_t)(problem->items + 1));
	join_memory_die(&g, sum);
	bool merged = true;
	while (merged) {
		merged = false;
		for (int i = 0; i < problem->items; i++) {
			bool movable = g.parent[i] == i && !sum[i].memory_die &&
			        is_small(problem, sum[i].need);
			int into = movable ? strongest_neighbour(&g, i) : -1;
			if (into >= 0)
				merge(&g, sum, i, into);
			merged |= into >= 0;
		}
	}
	return merged_problem(problem, g.parent, group);
}

void floorplan_index(struct floorplan_problem *problem)
{
	problem->touching = ARENA_ARRAY(problem->arena, int, 2 * problem->edges + 1);
	for (int i = 0; i < problem->items; i++)
		problem->item[i].count = 0;
	for (int e = 0; e < problem->edges; e++) {
		const struct floorplan_edge *edge = &problem->edge[e];
		problem->item[edge->from].count++;
		problem->item[edge->to].count += edge->to != edge->from;
	}
	int filled = 0;
	for (int i = 0; i < problem->items; i++) {
		problem->item[i].first = filled;
		filled += problem->item[i].count;
		problem->item[i].count = 0;
	}
	for (int e = 0; e < problem->edges; e++) {
		struct floorplan_item *from = &problem->item[problem->edge[e].from];
		struct floorplan_item *to = &problem->item[problem->edge[e].to];
		problem->touching[from->first + from->count++] = e;
		if (from != to)
			problem->touching[to->first + to->count++] = e;
	}
}
