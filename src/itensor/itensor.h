/* What itensor types denote and what stands between two of them.  Pure functions on well-formed
 * types. */
#ifndef STC_ITENSOR_H
#define STC_ITENSOR_H
#include "ir/ir.h"

/* The walk over the data that a type denotes: tiles at offset + Σ counter[l] vector[l], counters
 * in lexicographic order. */
struct walk {
	const struct type *scalar;
	int rank;               /* data dims */
	int64_t *tile, *offset; /* [rank] */
	int loops;
	int64_t *trip;   /* [loops], outermost first */
	int64_t *vector; /* [loops][rank]; all 0: sent again */
	/* [loops], NULL: fixed; else the trip is a multiple of this one.  NULL: all are fixed */
	const struct run_time_trip **run_time;
};

/* What stands between a writer and a reader whose sequences differ. */
struct reorder {
	const char *why; /* NULL, or why no buffer helps */
	int64_t *shape;  /* [rank], elements */
	int shared;      /* outer loops of both sides that run together */
	/* 2 where a loop is shared: one half is filled while the other is read */
	int halves;
	int64_t bytes; /* of all halves */
};

struct walk itensor_walk(struct arena *arena, const struct type *type);

/* The first tile where two sequences part. */
struct sequence_mismatch {
	bool found;                  /* false: not within 2^22 tiles */
	int64_t tile;                /* counted from 0 */
	const int64_t *left, *right; /* [rank] offsets there; NULL: that sequence has ended */
};

/* Loops of one trip vanish, a loop that continues the next inner one merges with it.  Equal
 * normal forms if and only if the same tiles in the same order: the innermost loop is the
 * longest run of equal steps that the sequence begins with, and the starts of such runs are a
 * sequence of the same kind. Run-time trip counts are equal if they are the same expression; a
 * loop of one stays, and offsets take it as its maximum. */
struct walk walk_normal(struct arena *arena, struct walk walk);
bool walk_same(struct walk left, struct walk right); /* of normal forms */
/* Loops that both sides walk together, each strip-mined where the other's is coarser: then both
 * walks begin with these loops.  Returns how many. */
/* of normal forms */
int walk_share(struct arena *arena, struct walk *left, struct walk *right);
/* of normal forms that differ */
struct reorder walk_reorder(struct arena *arena, struct walk from, struct walk to);
struct sequence_mismatch walk_mismatch(struct arena *arena, struct walk left, struct walk right);
/* The next counters; false after the last. */
bool walk_next(struct walk walk, int64_t *counter);
void walk_at(struct walk walk, const int64_t *counter, int64_t *offset);

#endif
