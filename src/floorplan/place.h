/* Which die each process stands on, as a problem of its own: items with needs, edges with widths, dies in a row. */
#ifndef STC_PLACE_H
#define STC_PLACE_H
#include "predict/resource.h"

struct place_item {
	struct resources need;
	bool home;                /* has a memory port: stands on the memory die */
	int first, count;         /* its part of `touching` */
};

struct place_edge {
	int from, to;             /* items */
	int64_t bits;
};

struct place_memory {         /* an array or a channel */
	struct op *op;
	int item;
};

struct place_problem {
	struct arena *arena;
	int items, edges, dies, home;
	struct place_item *item;
	struct place_edge *edge;
	int *touching;            /* edges of each item, in order */
	int memories;
	struct place_memory *memory;
	struct resources capacity[PLATFORM_DIES];
	int64_t wires;            /* across one boundary between dies */
	bool any;                 /* the first placement that fits is as good as any other */
};

struct place_cost {
	double overflow;          /* sum of what each resource and boundary is exceeded by, relative to what there is; 0: it fits */
	int64_t crossing;         /* bits over boundaries; an edge over two boundaries counts twice */
};

struct place_load {
	struct resources used[PLATFORM_DIES];
	int64_t wires[PLATFORM_DIES];         /* over the boundary above die d */
};

void place_index(struct place_problem *problem);                   /* fills touching */
struct place_load place_load(const struct place_problem *problem, const int *die);
struct place_cost place_cost(const struct place_problem *problem, const int *die);
bool place_better(struct place_cost left, struct place_cost right);
/* Moves an item to the side of the one it shares most bits with where that never costs a crossing: smaller problems with the same best crossings, capacity aside.
 * group: [items], the item of the smaller problem that each became. */
struct place_problem place_merge(const struct place_problem *problem, int *group);
struct place_cost place_start(const struct place_problem *problem, int *die);         /* greedy starts, then passes of moves */
struct place_cost place_throw(const struct place_problem *problem, int *die);         /* from what `die` has, where that does not fit: a few items elsewhere, then passes of moves */
struct place_cost place_search(const struct place_problem *problem, int *die);        /* both */
struct place_cost place_refine(const struct place_problem *problem, int *die);        /* passes of moves from what `die` has */
struct place_cost place_exact(const struct place_problem *problem, int *die);         /* by ILP, from what `die` has; unchanged where that finds nothing better */
/* Where more block RAMs are placed on die `where` than it has, memories there become URAMs, as far as it has these, or the other way round: their stream.storage, and what their items need.  true: some did. */
bool place_trade(struct module *module, const struct platform *platform, struct place_problem *problem, const int *die, int where);
/* FIFOs that words are dealt out to in turn have one depth; their readers' and writers' arguments are as they were where it is set. */
#define PLACE_DEEPEST 4096    /* of a URAM */
int64_t place_depth(struct module *module);          /* 0: there are none */
void place_set_depth(struct module *module, int64_t depth);        /* whatever dies have */
/* They become as deep as what is left on every die makes all of them. */
void place_deepen(struct module *module, const struct platform *platform, struct place_problem *problem, const int *die);
/* Is a placement found that leaves every die of the platform uncrowded?  Where moves find one, it need not be a good one. */
bool place_finds_room(const struct platform *platform, struct module *module);
#endif
