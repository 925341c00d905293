/* Types of values. They are interned per module: equal types have equal pointers. */
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

/* maximum elements of the bounding box of all tiles */
#define ITENSOR_EXTENT_MOST (INT64_C(1) << 48)

/* A run-time trip count: ceil((symbol + plus) / tile), from 0 to `most`. The symbol names an input
 * of one integer; negative values count as 0. */
struct run_time_trip {
	const char *symbol;
	int64_t plus, tile, most;
	/* loops of processes only: `most` minus the count, the remaining iterations */
	bool remaining;
	/* Of a loop around work that is done in the last chunk of a prompt only; without a value of
	 * the symbol (in a simulation) all of `most` remains. */
	bool last_chunk;
	/* loops of processes only: minimum iterations, some of which may do nothing; 0: no
	 * minimum */
	int64_t least;
	/* loops of processes only: processes that share the iterations round-robin; each runs as
	 * many as the one with most. 0: one process runs all */
	int64_t interleave;
};

/* An iterative tensor (E, T, S, M): tiles of type `element` at the offsets map(i * step), with i in
 * lexicographic order over the trip counts, outermost first. A dim that the map does not use is a
 * re-access: everything inside it is sent once more per iteration. */
struct itensor {
	int dims;
	const int64_t *trip, *step; /* [dims]; a run-time trip count is listed with its maximum */
	/* [dims], each NULL if fixed; the array is NULL if all are */
	const struct run_time_trip *const *run_time;
	/* iteration dims -> data dims; the constants are the offset of the first tile */
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
	const char *text; /* MLIR syntax; the key of the interning table */
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
/* the order is copied */
const struct type *type_itensor(
        struct module *module, const struct type *tile, const struct itensor *order);
/* kind: TYPE_FIFO or TYPE_BLOCKS */
const struct type *type_channel(
        struct module *module, enum type_kind kind, const struct type *element, int64_t depth);

/* either may be NULL: a fixed trip count */
bool run_time_same(const struct run_time_trip *left, const struct run_time_trip *right);
/* the trip count for this value of the symbol */
int64_t run_time_count(const struct run_time_trip *trip, int64_t value);
int64_t type_elements(const struct type *type); /* of a shaped type; 1 for a scalar */
int64_t type_lanes(const struct type *type);    /* elements of a vector; else 1 */
/* the innermost element: f32 of vector<4xf32>, of an itensor of such tiles, … */
const struct type *type_scalar(const struct type *type);
/* scalar width x elements; index counts 64 */
int64_t type_bits(const struct type *type);
/* bytes of `count` numbers packed bit by bit without gaps */
int64_t type_packed_bytes(const struct type *scalar, int64_t count);
bool type_is_real(const struct type *type);  /* float or bfloat */
bool type_is_whole(const struct type *type); /* index or integer */
/* a memory port: an array of unknown extent */
bool type_is_port(const struct type *type);
/* product of the trip counts: tiles in the stream */
int64_t itensor_tiles(const struct itensor *itensor);
int64_t stream_lanes(const struct type *itensor);         /* elements of a word */
int64_t stream_tile(const struct type *itensor, int dim); /* extent of a word along dim */
/* NULL if the type is well-formed, else a message that says what is wrong */
const char *itensor_fault(struct arena *arena, const struct type *type);

#endif
