/* What itensor types denote (walks over tiles), when two are equal, and which buffer converts one
 * order into another. Pure functions on well-formed types. */
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
	int64_t *vector; /* [loops][rank]; all 0: a replay */
	/* [loops], NULL: fixed; else the trip count is a multiple of this one. NULL: all are
	 * fixed */
	const struct run_time_trip **run_time;
};

/* The buffer that reorders between a writer and a reader with different sequences. */
struct reorder {
	const char *why; /* NULL, or why no buffer can convert */
	int64_t *shape;  /* [rank], elements */
	int shared;      /* outer loops that both sides run in step */
	/* 2 where a loop is shared (ping-pong): one half is filled while the other is read */
	int halves;
	int64_t bytes; /* of all halves */
};

struct walk itensor_walk(struct arena *arena, const struct type *type);

/* The first tile in which two sequences differ. */
struct sequence_mismatch {
	bool found;                  /* false: not within 2^22 tiles */
	int64_t tile;                /* counted from 0 */
	const int64_t *left, *right; /* [rank] offsets there; NULL: that sequence has ended */
};

/* Normal form: loops of one iteration are dropped, a loop that continues the next inner one is
 * merged with it. Two normal forms are equal if and only if the walks visit the same tiles in the
 * same order: the innermost loop is the longest run of equal steps at the start of the sequence,
 * and the starts of such runs form a sequence of the same kind. Run-time trip counts are equal if
 * they are the same expression; a loop with a run-time count always stays, and offsets assume its
 * maximum. */
struct walk walk_normal(struct arena *arena, struct walk walk);
bool walk_same(struct walk left, struct walk right); /* of normal forms */
/* Strip-mines the outer loops of two normal forms so that both begin with the same loops, which
 * the two sides can run in step. Returns their number. */
int walk_share(struct arena *arena, struct walk *left, struct walk *right);
/* of two normal forms that differ */
struct reorder walk_reorder(struct arena *arena, struct walk from, struct walk to);
struct sequence_mismatch walk_mismatch(struct arena *arena, struct walk left, struct walk right);
/* The next counters; false after the last. */
bool walk_next(struct walk walk, int64_t *counter);
void walk_at(struct walk walk, const int64_t *counter, int64_t *offset);

#endif
