/* The buffer of a stream converter: a box of elements that the writer fills and the reader drains,
 * and the loops by which each side steps through it. */
#ifndef STC_BOX_H
#define STC_BOX_H
#include "itensor/itensor.h"

#define BOX_LEAST (-1) /* the number of shared loops with the smallest buffer */

/* One side of a buffer. Its loops are strip-mined so that the first `shared` equal those of the
 * other side; these select the box and do not move inside it. */
struct box_side {
	int loops;
	int64_t *trip; /* [loops], outermost first */
	/* [loops] NULL: fixed; else the trip count is a multiple of this one */
	const struct run_time_trip **run_time;
	int64_t *step; /* [loops] in elements of the box; 0 for shared loops */
	int64_t first; /* element of the box where the first tile begins */
	int64_t lanes; /* elements of a tile */
	int64_t *lane; /* [lanes] elements of the box, relative to the tile's first */
};

struct box {
	const char *why; /* NULL, or why no buffer can convert */
	int shared, halves;
	/* elements of one half; two halves: one is filled while the other is drained */
	int64_t elements;
	struct box_side fill, drain;
};

/* The buffer between a writer's and a reader's type of one tensor. If the reader reads only part of
 * what is written, the buffer still holds all of it. shared: number of loops, or BOX_LEAST. */
struct box box_between(struct arena *arena, const struct type *tensor, const struct type *from,
        const struct type *to, int shared);
/* Elements of a buffer word: the largest run of neighbors that both sides always move as one. */
int64_t box_word(const struct box *box);

#endif
