/* A converter that holds tiles of tokens and gives all of them in every turn of its reader's,
 * the tiles', loop.  What is not there yet is hidden (skip_causal_tiles.c), so it need not be
 * waited for: with the attribute `later = array<i64: TILES, PITCH>`, of elements between tiles
 * of the tensor, tile u is in turn t the tile min(u, t).  A tile is taken before the turn that
 * first gives it. */
#ifndef STC_LATER_H
#define STC_LATER_H
#include "itensor/box.h"

struct causal_buffer {
	const char *why; /* NULL, or why the types do not allow it */
	struct box box;
	int64_t tiles, pitch;                    /* elements of the box between tiles */
	const struct run_time_trip *valid_tiles; /* of the tiles; NULL: all are */
	/* of one tile, which the first loop, of one trip, stands for; of one turn */
	struct box_side fill, drain;
	int part;      /* the loop of `drain` that walks tiles … */
	int64_t first; /* … from this one on */
	/* outermost loops of a turn that both have, for each point of which a part of the tile
	 * is taken, and then given; of tiles that are counted: one alone waits for no other part */
	int shared;
};

struct causal_buffer causal_buffer_between(struct arena *arena, const struct type *tensor,
        const struct type *from, const struct type *to, const struct attr *causal_buffer);
#endif
