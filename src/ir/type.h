/* Types of values.  Interned per module: two types are the same if and only if their pointers
 * are. */
#ifndef STC_TYPE_H
#define STC_TYPE_H
#include "base/text.h"
#include "ir/affine.h"
#include <stdint.h>

struct module;

enum type_kind {
	TYPE_NONE,
	TYPE_INDEX,
	TYPE_INTEGER, /* width 1, 8, 16, 32, 64, … */
	TYPE_FLOAT,   /* width 16, 32, 64 */
	TYPE_BFLOAT,  /* width 16 */
	TYPE_VECTOR,  /* shape x element */
	TYPE_TENSOR,  /* shape x element */
	TYPE_MEMREF,  /* shape x element; extent -1 = unknown (a memory port) */
	TYPE_FUNCTION,
	TYPE_ITENSOR, /* a tensor's tiles in a fixed order: element = tile */
	TYPE_FIFO,    /* element = word, depth in words */
	/* element = memref of one block, depth in blocks: 2 = ping-pong */
	TYPE_BLOCKS,
};

#define ITENSOR_EXTENT_MOST (INT64_C(1) << 48) /* elements of the box around all tiles */

/* A trip count that is known at run time only: ceil((symbol + plus) / tile), from 0 to `most`.
 * The symbol is the name of an input of one integer; below 0 it counts as 0. */
struct run_time_trip {
	const char *symbol;
	int64_t plus, tile, most;
	/* what is left of `most` instead: of loops of a process alone; */
	bool remaining;
	/* of those around what a launch leaves out that others follow: all is left where the
	 * symbol's value is not said */
	bool last_chunk;
	/* turns of a loop of a process at least, some of which do nothing then; 0: as many as
	 * are counted */
	int64_t least;
	/* loops of processes that the turns are dealt out to: each has as many as the one that
	 * has most; 0: one has them all */
	int64_t interleave;
};

/* (E, T, S, M): tiles of type `element` at the offsets map(i * step), i in lexicographic order
 * over the trip counts, outermost first. A dim that the map does not use is a re-access: all
 * inside it is sent again. */
struct itensor {
	int dims;
	const int64_t *trip, *step; /* [dims]; of a run-time trip count the most it can be */
	const struct run_time_trip *const *run_time; /* [dims], NULL: fixed.  NULL: all are */
	/* dims -> data dims; its constants are the offset of the first tile */
	struct affine_map map;
};

struct type {
	enum type_kind kind;
	int width;            /* bits of an integer or float */
	int rank;             /* vector, tensor, memref */
	const int64_t *shape; /* [rank] */
	/* vector, tensor, memref, itensor (tile), fifo (word), blocks (block) */
	const struct type *element;
	int64_t depth; /* fifo, blocks */
	const struct itensor *itensor;
	int inputs, outputs; /* function */
	const struct type *const *input, *const *output;
	const char *text; /* MLIR syntax; the key it is interned by */
};

const struct type *type_none(struct module *module);
const struct type *type_index(struct module *module);
const struct type *type_integer(struct module *module, int width);
const struct type *type_float(struct module *module, int width);
const struct type *type_bfloat(struct module *module);
const struct type *type_shaped(struct module *module, enum type_kind kind, int rank,
        const int64_t *shape, const struct type *element);
const struct type *type_function(struct module *module, int inputs, const struct type *const *input,
        int outputs, const struct type *const *output);
const struct type *type_itensor(struct module *module, const struct type *tile, int dims,
        const int64_t *trip, const int64_t *step, struct affine_map map);
/* any trip counts; copied */
const struct type *type_itensor_run_time(
        struct module *module, const struct type *tile, const struct itensor *order);
/* fifo, blocks */
const struct type *type_channel(
        struct module *module, enum type_kind kind, const struct type *element, int64_t depth);

/* NULL: fixed */
bool run_time_same(const struct run_time_trip *left, const struct run_time_trip *right);
/* of the symbol */
int64_t run_time_count(const struct run_time_trip *trip, int64_t value);
int64_t type_elements(const struct type *type); /* of a shaped type; 1 for a scalar */
int64_t type_lanes(const struct type *type);    /* elements of a vector; else 1 */
/* the innermost element: f32 of vector<4xf32>, of an itensor of such tiles, … */
const struct type *type_scalar(const struct type *type);
/* scalar width x elements; index counts 64 */
int64_t type_bits(const struct type *type);
/* of so many numbers, bit by bit in a row */
int64_t type_packed_bytes(const struct type *scalar, int64_t count);
bool type_is_real(const struct type *type);  /* float or bfloat */
bool type_is_whole(const struct type *type); /* index or integer */
/* a memory port: an array of unknown extent */
bool type_is_port(const struct type *type);
/* product of the trip counts: tiles that flow */
int64_t itensor_tiles(const struct itensor *itensor);
int64_t stream_lanes(const struct type *itensor);         /* elements of a word */
int64_t stream_tile(const struct type *itensor, int dim); /* extent of a word along a data dim */
/* NULL: well-formed.  Else what is wrong */
const char *itensor_fault(struct arena *arena, const struct type *type);

#endif
