/* Inside the isl room: statements, or parts of their iterations, while an order is found. */
#ifndef STC_POLY_PIECES_H
#define STC_POLY_PIECES_H
#include "poly/poly_internal.h"
#include "poly/poly_schedule.h"

struct poly_piece {
	isl_set *domain; /* NULL: it was split into other pieces */
	VEC(struct poly_form) time;
	bool used[POLY_DIMS]; /* counters in the order so far */
	struct poly_leaf leaf;
	int first; /* the piece in whose loops this one runs; -1: in loops of its own */
	int turn;  /* its place among those of the loops */
};

struct poly_pieces {
	struct poly *poly;
	VEC(struct poly_piece) piece;
	const struct poly_traits *traits;
	bool is_trial; /* only to see what an order leaves parallel */
};

/* Pieces whose order is to be found, and what they have to observe: the edges belong to it. */
struct poly_task {
	int members;
	int *member;
	poly_edges edges;
};

void poly_edges_free(poly_edges *edges);
/* Splits a piece of the task at the counters at which it writes what is read later, in place, if no
 * circle of edges is left. false: nothing was done. */
bool poly_split(struct poly_pieces *pieces, struct poly_task *task);
/* Makes one piece of those that do the same in parallel. */
void poly_merge(struct poly_pieces *pieces, struct poly_task *task);
/* [members * members]: does an edge, or a path of edges, lead from the one to the other? */
bool *poly_paths(const struct poly_task *task, struct arena *arena);
/* Lets the piece of the task run in the loops of piece `first`, which have no loops inside, behind
 * those that do so already. false: an iteration would come too early, or it costs more than it
 * saves. */
bool poly_fuse(struct poly_pieces *pieces, const struct poly_task *task, int first, int second);
/* The piece's place among the members. */
int poly_place(const struct poly_task *task, int piece);
/* Are there no edges between pieces that lead back to where they began? */
bool poly_is_acyclic(const struct poly_task *task, struct arena *arena);

/* The pairs of the map in which these forms of the counters are the same. Takes the map. */
isl_map *poly_same_step(isl_map *map, const struct poly_form *from, const struct poly_form *to);
/* Finds a loop over counter `last` plus multiples of those in front of it that carries all edges
 * which differ in one of these counters. false: there is none. */
bool poly_skew(const struct poly_pieces *pieces, const struct poly_task *task, int last,
        struct poly_form *form);

/* Time of all iterations: outer loops, parallel ones, lanes. */
isl_union_map *poly_schedule_map(const struct poly_schedule *schedule);
/* No loops over the numbers that order parts of the program. */
isl_union_map *poly_schedule_options(const struct poly_schedule *schedule);
/* What a loop is for the iterations in it. */
struct poly_loop_role {
	bool parallel;
	int64_t lanes; /* 0: it is no loop over lanes */
};
/* order: of these iterations, the loop's counter last */
struct poly_loop_role poly_schedule_role(
        const struct poly_schedule *schedule, const isl_union_map *order);
#endif
