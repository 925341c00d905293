/* Keys and values as bytes: what the files of quantize_kv_cache share. */
#ifndef STC_QUANTISE_STATE_H
#define STC_QUANTISE_STATE_H
#include "quantize/quantize.h"

#define STATE_MOST 119 /* so that two signed nibbles carry a value */
/* keys of the probabilities that share a scale, and numbers of a word of values */
#define STATE_GROUP 128

/* The rows that attention sees: those of this launch, then those of the state, or the other way
 * round. */
struct keys {
	int64_t fresh, past;
	int64_t extent; /* all of them */
	/* keys that share a scale of the probabilities; blocks * block >= extent */
	int64_t block, blocks;
	int64_t lead, rows; /* of the state: rows in front of the past ones; all */
	/* the one row of a launch comes behind those of the past, as it will lie, so it is
	 * waited for last */
	bool fresh_last;
	/* the state is another phase's as well, whose blocks begin elsewhere: its words hold for
	 * any */
	bool shared_by_phases;
	const struct run_time_trip *trip; /* of all rows; NULL: all are there */
	struct value *count;              /* the input that has its symbol */
};

/* result = post(Σ x * row), over the numbers of a row (scores) or over the rows (values). */
struct product {
	struct op *op;
	int x, past, fresh; /* operands */
	int key, reduction; /* loops: over the rows; the one that is added up */
};

/* A state of main and the rows that this launch adds to it. */
struct cache {
	int argument, result; /* of main */
	int axis;
	int64_t inner;              /* numbers of a row */
	struct value *past, *fresh; /* as they were: f32 */
	const int64_t *stride;      /* of the product's loops over `fresh` */
	/* as they become: of the state, of the rows of this launch */
	struct value *past_scale, *q, *scale;
};

/* A kernel between scores and values: loop `key` walks the rows. */
struct softmax_kernel {
	struct op *op;
	int key;
};

struct attention {
	struct product scores, values;
	struct cache k, v;
	struct keys keys;
	VEC(struct softmax_kernel) softmax_kernel;
	/* the maximum runs from block to block: scores do not wait for that of their row */
	bool online_max;
	struct value *factor; /* by which sums over the blocks before one are scaled then */
};

/* Is a range of keys one of whole blocks, or inside one? */
bool keys_guard_splits(const struct keys *keys, struct guard_range guard);
/* Follows the scores up to the product with values.  False: there is an operation between, for
 * which it is not known what it makes of keys that are not there. */
bool keys_follow(struct quantizer *q, struct attention *a);
/* Lets the kernels between walk blocks of keys; what lies beyond the last key is minus infinity
 * in scores, 0 in exponentials. */
void keys_block(struct quantizer *q, const struct attention *a);
/* May the row of a launch come behind those of the past?  Then masks are turned, whose first
 * number was that row's. */
bool keys_can_rotate_masks(const struct attention *a);
void keys_rotate_masks(struct quantizer *q, struct attention *a);
/* Node: the number of past rows, of operand `count`. */
int keys_past(struct quantizer *q, const struct keys *keys, struct body *body, int count);
/* The row of the state that the first key stands for, or would if it were no row of this launch. */
int64_t keys_first(const struct keys *keys);
/* Blocks that rows of this launch fill, in front of those of the past; 0: a block has some of
 * both. */
int64_t keys_fresh_blocks(const struct keys *keys);
/* How often the loop over blocks runs; NULL: always as often. */
const struct run_time_trip *keys_trip(struct quantizer *q, const struct keys *keys);
/* What walks a value whose keys, `stride` apart, now fill whole blocks: what lies outside the
 * keys moves apart. */
void keys_spread(const struct keys *keys, int64_t stride, int loops, struct access *access);
/* The operand, which op walks with `key`, with a number for every key of a block: 0 where it was
 * not read. */
struct value *keys_fill(struct quantizer *q, const struct attention *a, struct op *op, int operand,
        int key, struct access *access);
/* A tensor type in which the digit of that stride and extent has `to` points; NULL: it has no
 * such dim. */
const struct type *keys_type(
        struct module *module, const struct type *type, int64_t stride, int64_t extent, int64_t to);

void attention_rows(struct quantizer *q, struct cache *cache, struct op *at);
void attention_scores(struct quantizer *q, const struct attention *a);
/* May the maximum run from block to block?  Then the exponentials, and the sums over them, are
 * as it has it. */
bool softmax_is_online(const struct quantizer *q, const struct attention *a);
void attention_softmax(struct quantizer *q, struct attention *a);
void attention_values(struct quantizer *q, const struct attention *a);
#endif
