/* The buffer of a converter: a box of elements that one side fills and the other drains, and how
 * each side steps through it. */
#ifndef STC_BOX_H
#define STC_BOX_H
#include "itensor/itensor.h"

#define BOX_LEAST (-1) /* as many shared loops as make the buffer smallest */

/* loops strip-mined: the first `shared` are the other side's; inside a box they stand still */
struct box_side {
	int loops;
	int64_t *trip; /* [loops], outermost first */
	/* [loops] NULL: fixed; else the trip is a multiple of this one */
	const struct run_time_trip **run_time;
	int64_t *step; /* [loops] elements of the block; 0 for shared loops */
	int64_t first; /* element of the block where the first tile begins */
	int64_t lanes; /* elements of a tile */
	int64_t *lane; /* [lanes] elements of the block from the tile's first */
};

struct box {
	const char *why; /* NULL, or why no buffer helps */
	int shared, halves;
	int64_t elements; /* of one half */
	struct box_side fill, drain;
};

/* Between a writer's and a reader's type of one tensor.  Where the reader wants only part of
 * what is written, the buffer holds all that is written. */
struct box box_between(struct arena *arena, const struct type *tensor, const struct type *from,
        const struct type *to, int shared);
/* Elements of a buffer word: as many neighbours as both sides always move together. */
int64_t box_word(const struct box *box);

#endif
