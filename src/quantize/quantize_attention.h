/* The kernels of attention on bytes: what their files share. */
#ifndef STC_QUANTISE_ATTENTION_H
#define STC_QUANTISE_ATTENTION_H
#include "quantize/quantize_kv_cache.h"

/* Loops of a kernel that is made from another: loop i walks `step` points of loop `source` at
 * once. */
struct loop_map {
	int count;
	struct mapped_loop {
		int source;
		int64_t trip, step;
		bool reduction;
		const struct run_time_trip *run_time;
	} *mapped_loop;
};

/* None yet; there is room for those of op's loops in parts. */
struct loop_map loop_map_none(struct quantizer *q, const struct op *op);
void loop_map_add(
        struct loop_map *loop_map, int source, int64_t trip, int64_t step, bool reduction);
/* Blocks of keys, as many as there are at run time; the keys of one. */
void loop_map_add_blocks(struct quantizer *q, const struct keys *keys, struct loop_map *loop_map,
        int source, bool reduction);
void loop_map_add_block(const struct keys *keys, struct loop_map *loop_map, int source);
/* Where the maximum runs from block to block: the tokens that share values, or the others.  Else
 * all are others. */
void loop_map_add_tokens(const struct attention *a, const struct contraction *c,
        struct loop_map *loop_map, bool share);
/* Loops of the product other than the keys' and the one that is added up, which walk the rows of
 * the past, or do not. */
void loop_map_add_others(const struct product *p, struct loop_map *loop_map, int but, bool past);
/* The strides of an access, part by part. */
void loop_map_walk(const struct loop_map *loop_map, const int64_t *stride, int64_t *to);
/* A tensor of the parallel parts, and row-major strides over them. */
const struct type *loop_map_type(
        struct module *module, const struct loop_map *loop_map, const struct type *scalar);
void loop_map_row_major(const struct loop_map *loop_map, int64_t *stride);
/* How the parts walk what lies row-major over the parallel parts `as`. */
void loop_map_stride_over(struct quantizer *q, const struct loop_map *as,
        const struct loop_map *loop_map, int64_t *to);
/* The result lies row-major over the parts `as`, whatever the order of the loops. */
void loop_map_store_as(struct quantizer *q, const struct loop_map *as,
        const struct loop_map *loop_map, struct op *op);
/* A kernel in front of `at`, named after it; its result lies row-major over the parallel parts. */
struct op *loop_map_kernel(struct quantizer *q, struct op *at, const char *suffix,
        const struct loop_map *loop_map, int operands, struct value *const *operand,
        const struct type *scalar);
/* Of the probabilities: tokens, then keys in blocks; the same without the keys of a block; and
 * the loops in which they are made: where the maximum runs, a key serves all tokens that share
 * its values. */
struct loop_map probability_loop_map(
        struct quantizer *q, const struct attention *a, const struct contraction *c);
struct loop_map probability_blocks(
        struct quantizer *q, const struct attention *a, const struct contraction *c, bool reduced);
struct loop_map probability_loops(
        struct quantizer *q, const struct attention *a, const struct contraction *c);

/* What x walks, as a contraction with a weight has it: tokens, and the numbers that are added
 * up. */
struct contraction keys_query(struct quantizer *q, const struct product *p);
/* Few rows share a key as query heads do; of many, all keys of a head come for each. */
bool keys_are_shared(const struct keys *keys);
/* Keys of a run that are all of this launch, or all of the past. */
int64_t keys_per_run(const struct keys *keys);

/* How the parts walk the rows of the state, or their scales; those of this launch, which of the
 * keys are the first `count`; both, as operands past and past + 1. */
void rows_past(struct quantizer *q, const struct attention *a, const struct cache *cache,
        const struct product *p, const struct loop_map *loop_map, bool scales, struct access *to);
void rows_fresh(struct quantizer *q, const struct attention *a, const struct cache *cache,
        const struct product *p, const struct loop_map *loop_map, bool scales, struct access *to,
        int64_t count);
void rows_walk(struct quantizer *q, const struct attention *a, const struct cache *cache,
        const struct product *p, const struct loop_map *loop_map, bool scales,
        struct kernel *kernel, int past);
/* Nodes: the number of the key at hand; whether its row is one of this launch, which operand
 * `fresh` has then (and operand fresh + 1 how many past ones there are, if it comes behind
 * them); the scale of the row that `choice` says. */
int rows_key(struct quantizer *q, struct body *body, const struct loop_map *loop_map, int key);
int rows_are_fresh(struct quantizer *q, const struct attention *a, struct body *body,
        const struct loop_map *loop_map, int key, int fresh);
int rows_scale(struct module *module, struct body *body, int past, int choice);
/* acc + x * row, in integers: operands x, past, and fresh where some rows are of this launch.
 * choice: whether it is one of them; -1: none is. */
void rows_sum(struct module *module, struct body *body, int choice);

/* Adds what the post body of the product reads, from operand `first` on; returns how many there
 * are then. */
int post_operands(const struct op *old, int first, struct value **operand, int *renamed);
void post_walk(struct quantizer *q, const struct op *old, const struct loop_map *loop_map,
        const int *renamed, struct kernel *kernel);
/* The product's own post body on a sum; counters are those of the parts. */
int post_body(struct module *module, struct body *body, const struct op *old,
        const struct loop_map *loop_map, const int *renamed, int sum);
#endif
