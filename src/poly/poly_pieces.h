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
};

struct poly_pieces {
	struct poly *poly;
	VEC(struct poly_piece) piece;
};

/* Pieces whose order is to be found, and what they have to observe: the edges belong to it. */
struct poly_task {
	int members;
	int *member;
	poly_edges edges;
};

void poly_edges_free(poly_edges *edges);
/* Splits the only piece of the task at the counters at which it writes what it reads later, in
 * place. false: nothing was done. */
bool poly_split(struct poly_pieces *pieces, struct poly_task *task);
/* Are there no edges between pieces that lead back to where they began? */
bool poly_is_acyclic(const struct poly_task *task, struct arena *arena);

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
