/* Which die each process stands on, as a problem of its own: items with needs, edges with
 * widths, dies in a row. */
#ifndef STC_FLOORPLAN_H
#define STC_FLOORPLAN_H
#include "predict/resource.h"

struct floorplan_item {
	struct resources need;
	bool memory_die;  /* has a memory port: stands on the memory die */
	int first, count; /* its part of `touching` */
};

struct floorplan_edge {
	int from, to; /* items */
	int64_t bits;
};

struct floorplan_memory { /* an array or a channel */
	struct op *op;
	int item;
};

struct floorplan_problem {
	struct arena *arena;
	int items, edges, dies, memory_die;
	struct floorplan_item *item;
	struct floorplan_edge *edge;
	int *touching; /* edges of each item, in order */
	int memories;
	struct floorplan_memory *memory;
	struct resources capacity[PLATFORM_DIES];
	int64_t wires;  /* across one boundary between dies */
	bool first_fit; /* the first placement that fits is as good as any other */
};

struct floorplan_cost {
	/* sum of what each resource and boundary is exceeded by, relative to what there is; 0:
	 * it fits */
	double overflow;
	/* bits over boundaries; an edge over two boundaries counts twice */
	int64_t crossing;
};

struct floorplan_load {
	struct resources used[PLATFORM_DIES];
	int64_t wires[PLATFORM_DIES]; /* over the boundary above die d */
};

void floorplan_index(struct floorplan_problem *problem); /* fills touching */
struct floorplan_load floorplan_load(const struct floorplan_problem *problem, const int *die);
struct floorplan_cost floorplan_cost(const struct floorplan_problem *problem, const int *die);
bool floorplan_better(struct floorplan_cost left, struct floorplan_cost right);
/* Moves an item to the side of the one it shares most bits with where that never costs a
 * crossing: smaller problems with the same best crossings, capacity aside. group: [items], the
 * item of the smaller problem that each became. */
struct floorplan_problem floorplan_merge(const struct floorplan_problem *problem, int *group);
/* greedy starts, then passes of moves */
struct floorplan_cost floorplan_start(const struct floorplan_problem *problem, int *die);
/* from what `die` has, where that does not fit: a few items elsewhere, then passes of moves */
struct floorplan_cost floorplan_perturb(const struct floorplan_problem *problem, int *die);
/* both */
struct floorplan_cost floorplan_search(const struct floorplan_problem *problem, int *die);
/* passes of moves from what `die` has */
struct floorplan_cost floorplan_refine(const struct floorplan_problem *problem, int *die);
/* by ILP, from what `die` has; unchanged where that finds nothing better */
struct floorplan_cost floorplan_ilp(const struct floorplan_problem *problem, int *die);
/* Where more block RAMs are placed on die `where` than it has, memories there become URAMs, as
 * far as it has these, or the other way round: their stream.storage, and what their items need.
 * true: some did. */
bool swap_bram_uram(struct module *module, const struct platform *platform,
        struct floorplan_problem *problem, const int *die, int where);
/* FIFOs that words are dealt out to in turn have one depth; their readers' and writers'
 * arguments are as they were where it is set. */
#define FLOORPLAN_FIFO_DEEPEST 4096                                  /* of a URAM */
int64_t floorplan_fifo_depth(struct module *module);                 /* 0: there are none */
void floorplan_set_fifo_depth(struct module *module, int64_t depth); /* whatever dies have */
/* They become as deep as what is left on every die makes all of them. */
void floorplan_deepen_fifos(struct module *module, const struct platform *platform,
        struct floorplan_problem *problem, const int *die);
/* Is a placement found that leaves every die of the platform uncrowded?  Where moves find one,
 * it need not be a good one. */
bool floorplan_fits(const struct platform *platform, struct module *module);
#endif
