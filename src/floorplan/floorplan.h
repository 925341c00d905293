/* The floorplanning problem: items (processes) that need resources, edges (channels) of so many
 * bits between them, and dies in a row; and the algorithms that assign a die to each item. */
#ifndef STC_FLOORPLAN_H
#define STC_FLOORPLAN_H
#include "predict/resource.h"

struct floorplan_item {
	struct resources need;
	/* it has a memory port, or the kernel starts or waits for it itself */
	bool memory_die;
	int first, count; /* its range of `touching` */
};

struct floorplan_edge {
	int from, to; /* items */
	int64_t bits;
};

/* An array or a channel. */
struct floorplan_memory {
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
	int64_t wires;  /* wires across one boundary between dies */
	bool first_fit; /* any placement that fits is good enough */
};

struct floorplan_cost {
	/* sum over all resources and boundaries of the excess, relative to what is available; 0: it
	 * fits */
	double overflow;
	/* bits over boundaries; an edge across two boundaries counts twice */
	int64_t crossing;
};

struct floorplan_load {
	struct resources used[PLATFORM_DIES];
	int64_t wires[PLATFORM_DIES]; /* over the boundary between die d and d + 1 */
};

void floorplan_index(struct floorplan_problem *problem); /* sets touching */
struct floorplan_load floorplan_load(const struct floorplan_problem *problem, const int *die);
struct floorplan_cost floorplan_cost(const struct floorplan_problem *problem, const int *die);
bool floorplan_better(struct floorplan_cost left, struct floorplan_cost right);
/* Merges each small item with the item that it shares most bits with, if that never costs a
 * crossing: a smaller problem with the same best crossings, capacity aside. group: [items] the item
 * of the smaller problem that each belongs to. */
struct floorplan_problem floorplan_merge(const struct floorplan_problem *problem, int *group);
/* greedy starts, then passes of moves */
struct floorplan_cost floorplan_start(const struct floorplan_problem *problem, int *die);
/* restarts from `die` with a few items moved at random, while it does not fit */
struct floorplan_cost floorplan_perturb(const struct floorplan_problem *problem, int *die);
/* both */
struct floorplan_cost floorplan_search(const struct floorplan_problem *problem, int *die);
/* passes of moves from `die` */
struct floorplan_cost floorplan_refine(const struct floorplan_problem *problem, int *die);
/* by ILP, from `die`; unchanged if that finds nothing better */
struct floorplan_cost floorplan_ilp(const struct floorplan_problem *problem, int *die);
/* If more block RAMs are needed on die `where` than it has, turns memories there into URAMs as far
 * as it has these, or the other way round: changes their stream.storage and the needs of their
 * items. true: some were changed. */
bool swap_bram_uram(struct module *module, const struct platform *platform,
        struct floorplan_problem *problem, const int *die, int where);
/* FIFOs over which words are distributed round-robin have one common depth. Setting it leaves the
 * types of process arguments unchanged. */
#define FLOORPLAN_FIFO_DEEPEST 4096 /* of a URAM */
/* 0: there are no such FIFOs */
int64_t floorplan_fifo_depth(struct module *module);
/* regardless of the dies' resources */
void floorplan_set_fifo_depth(struct module *module, int64_t depth);
/* Makes them as deep as the remaining memory of every die allows. */
void floorplan_deepen_fifos(struct module *module, const struct platform *platform,
        struct floorplan_problem *problem, const int *die);
/* Is there a placement that leaves every die of the platform uncrowded? If moves find one, it need
 * not be a good one. */
bool floorplan_fits(const struct platform *platform, struct module *module);
/* A resource (or wires) of which a part of the design needs more than there is. */
struct shortage {
	const char *name;
	int64_t need, have;
};
/* Reports it, for what and where; returns false. */
bool report_shortage(struct module *module, const char *what, const struct shortage *shortage,
        const char *where);
#endif
