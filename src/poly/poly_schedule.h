/* An order of iterations in which more loops run in parallel than in that of C. */
#ifndef STC_POLY_SCHEDULE_H
#define STC_POLY_SCHEDULE_H
#include "poly/poly.h"

enum { POLY_LANES = 2 }; /* loops of a leaf with lanes, at most */

/* Iterations of one statement in loops of their own, of which the inner ones are parallel. */
struct poly_leaf {
	int statement;
	bool parallel[POLY_DIMS]; /* counters of the parallel loops of more than one iteration */
	/* A counter that follows from its loop, which is skewed, and from parallel counters: minus
	 * how much of each. */
	int64_t skew[POLY_DIMS][POLY_DIMS];
	bool is_box; /* no bound of a parallel loop depends on another parallel one */
	int64_t low[POLY_DIMS], high[POLY_DIMS]; /* the box around the iterations, inclusive */
	/* To be chosen: counters whose loops run several iterations at once, and how many. A lane
	 * works on counters that are the same number modulo `lanes`. */
	int lane_loops;
	int lane_counter[POLY_LANES];
	int64_t lanes[POLY_LANES];
	/* The parallel counters in the order of their loops. */
	int loops;
	int counter[POLY_DIMS];
	/* A further statement that runs in the same iterations of these loops, behind this one;
	 * its own loops and lanes are those of the first one. */
	struct poly_leaf *next;
};

struct poly_schedule {
	int leaves;
	struct poly_leaf **leaf;
	struct poly_pieces *pieces; /* inside poly/ */
};

/* What is known of the statements, each [statements]. */
struct poly_traits {
	const int *alike;  /* the first statement that does the same at its counters */
	const bool *light; /* it only copies */
};

/* NULL: it is too complex. It lives as long as poly. */
struct poly_schedule *poly_schedule_new(
        struct poly *poly, const bool *inside, const struct poly_traits *traits);
void poly_schedule_free(struct poly_schedule *schedule);
#endif
