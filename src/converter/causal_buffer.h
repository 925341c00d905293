/* A converter that holds tiles of tokens and replays all of them in every iteration of its reader's
 * loop over tiles. Later tiles are masked (skip_causal_tiles.c), so they need not be waited for.
 * With the attribute causal = array<i64: TILES, PITCH>, where PITCH is elements of the tensor
 * between tiles, iteration t reads tile min(u, t) for tile u. A tile is stored before the first
 * iteration that reads it. */
#ifndef STC_CAUSAL_BUFFER_H
#define STC_CAUSAL_BUFFER_H
#include "itensor/box.h"

struct causal_buffer {
	const char *why; /* NULL, or why the types do not allow it */
	struct box box;
	int64_t tiles, pitch;                    /* tiles, and elements of the box between them */
	const struct run_time_trip *valid_tiles; /* dynamic bound of the tiles; NULL: always all */
	/* the loops that store one tile (the first loop, of one iteration, stands for the tiles),
	 * and those that read in one iteration */
	struct box_side fill, drain;
	int part;      /* the loop of `drain` that walks tiles … */
	int64_t first; /* … from this one on */
	/* Outermost loops of an iteration that both sides have: in each of their iterations a part
	 * of the tile is stored, then read. With dynamic tiles only: so a single token waits for no
	 * other part. */
	int shared;
};

struct causal_buffer causal_buffer_between(struct arena *arena, const struct type *tensor,
        const struct type *from, const struct type *to, const struct attr *causal_buffer);
#endif
