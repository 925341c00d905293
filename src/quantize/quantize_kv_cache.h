/* Keys and values as bytes: what the files of quantize_kv_cache share.  "Rows" are keys or values
 * of one text token; "past" rows lie in the cache (a state of main), "fresh" rows are made by
 * this launch. */
#ifndef STC_QUANTIZE_KV_CACHE_H
#define STC_QUANTIZE_KV_CACHE_H
#include "quantize/quantize.h"

/* Largest byte: two signed nibbles -8 ... 7 can carry it (7 * 16 + 7). */
#define STATE_MOST 119
/* Keys that share a scale of the probabilities, and numbers in a word of values. */
#define STATE_GROUP 128

/* The keys that attention sees: the rows of this launch, then those of the cache, or the reverse.
 *     fresh first:  | fresh | past ...             |
 *     fresh last:   | past ...             | fresh |   */
struct keys {
	int64_t fresh, past;
	int64_t extent; /* fresh + past */
	/* keys that share a scale of the probabilities; blocks * block >= extent */
	int64_t block, blocks;
	int64_t lead; /* free rows of the cache in front of the past ones */
	int64_t rows; /* all rows of the cache */
	/* the one row of a launch follows the past ones, so only the last block waits for it */
	bool fresh_last;
	/* the other phase (prefill or decode) uses the cache too and begins its blocks
	 * elsewhere: words of the memory image must suit both */
	bool shared_by_phases;
	const struct run_time_trip *trip; /* number of all keys; NULL: always the extent */
	struct value *count;              /* the argument of main that is the symbol of trip */
};

/* result = post(Σ x * row), summed over the numbers of a row (scores) or over the rows
 * (values). */
struct product {
	struct op *op;
	int x, past, fresh; /* operands */
	int key;            /* loop over the rows */
	int reduction;      /* loop that is summed */
};

/* A cache of main and the rows that this launch adds to it. */
struct cache {
	int argument, result;     /* of main */
	int axis;                 /* dim of the rows */
	int64_t inner;            /* numbers of a row */
	struct value *past;       /* the cache; its type becomes i8 */
	struct value *fresh;      /* the launch's rows as they were, f32 */
	const int64_t *stride;    /* of the product's loops in `fresh` */
	struct value *past_scale; /* scales of the cache: an argument that is added */
	struct value *q, *scale;  /* the launch's rows as bytes, and their scales */
};

/* A kernel between scores and values; loop `key` walks the keys. */
struct softmax_kernel {
	struct op *op;
	int key;
};

struct attention {
	struct product scores, values;
	struct cache k, v;
	struct keys keys;
	VEC(struct softmax_kernel) softmax_kernel; /* in program order */
	/* the maximum runs from block to block: exponentials do not wait for that of all keys */
	bool online_max;
	/* with online_max: by what the sums over the blocks before are scaled, for each block */
	struct value *factor;
};

/* Does the guard cover whole blocks of keys from the first on, or a part of the first block? */
bool keys_guard_splits(const struct keys *keys, struct guard_range guard);
/* Follows the scores to the product with values and notes the kernels between.  false: an
 * operation between them makes something unknown of padded keys. */
bool keys_follow(struct quantizer *q, struct attention *a);
/* Lets the kernels between walk blocks of keys.  Padding beyond the last key is minus infinity in
 * scores and 0 in exponentials. */
void keys_block(struct quantizer *q, const struct attention *a);
/* Can the row of a launch come after those of the cache?  Then masks, whose first entry is that
 * row's, are rotated. */
bool keys_can_rotate_masks(const struct attention *a);
void keys_rotate_masks(struct quantizer *q, struct attention *a);
/* Node: the number of past rows, from operand `count`, at least 0. */
int keys_past(struct quantizer *q, const struct keys *keys, struct body *body, int count);
/* The row of the cache at the address of key 0, were all keys stored there. */
int64_t keys_first(const struct keys *keys);
/* Blocks that consist of rows of this launch only, in front of those of the past; 0: a block has
 * some of both. */
int64_t keys_fresh_blocks(const struct keys *keys);
/* Trip count of the loop over blocks; NULL: always keys->blocks. */
const struct run_time_trip *keys_trip(struct quantizer *q, const struct keys *keys);
/* Adapts an access to a tensor whose keys, `stride` apart, are padded to whole blocks: strides
 * and offset outside the keys grow. */
void keys_spread(const struct keys *keys, int64_t stride, int loops, struct access *access);
/* Copies an operand that op reads by loop `key` to a tensor with a number for every key of a
 * block, 0 where the access did not read; changes the access and returns the copy. */
struct value *keys_fill(
        struct quantizer *q, const struct attention *a, struct op *op, int operand, int key);
/* The tensor type with `to` points in the dim of that stride and extent; NULL: there is none. */
const struct type *keys_type(
        struct module *module, const struct type *type, int64_t stride, int64_t extent, int64_t to);

/* Rounds the launch's rows to bytes, before `at`. */
void attention_rows(struct quantizer *q, struct cache *cache, struct op *at);
/* Replaces the product with keys by kernels on bytes. */
void attention_scores(struct quantizer *q, const struct attention *a);
/* Can the maximum run from block to block, and should it? */
bool softmax_is_online(const struct quantizer *q, const struct attention *a);
/* Replaces maximum, exponentials and sum by kernels with a running maximum. */
void attention_softmax(struct quantizer *q, struct attention *a);
/* Replaces the product with values by kernels on bytes. */
void attention_values(struct quantizer *q, const struct attention *a);
#endif
