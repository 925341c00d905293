/* Toolkit of attention on a KV cache of bytes: the loops of its kernels (struct loop_map), how
 * they read rows of keys and values (struct cache_read), and how they end as the f32 product did
 * (struct epilogue). */
#ifndef STC_QUANTIZE_ATTENTION_H
#define STC_QUANTIZE_ATTENTION_H
#include "quantize/quantize_kv_cache.h"

/* Loops of a kernel that replaces another one.  Each walks a part of a loop of the original:
 * `trip` iterations of `step` points of loop `source`. */
struct loop_map {
	int count;
	struct mapped_loop {
		int source;
		int64_t trip, step;
		bool reduction;
		const struct run_time_trip *run_time;
	} *mapped_loop;
};

/* An empty map with room for the loops of op, some of them in parts. */
struct loop_map loop_map_none(struct quantizer *q, const struct op *op);
void loop_map_add(
        struct loop_map *loop_map, int source, int64_t trip, int64_t step, bool reduction);
/* A copy whose loops over the keys of one block are reductions. */
struct loop_map loop_map_reduce_block(
        struct quantizer *q, const struct attention *a, const struct loop_map *loop_map);
/* Adds the loop over blocks of keys, as many as the run time has; the loops over the keys of one
 * block. */
void loop_map_add_blocks(struct quantizer *q, const struct keys *keys, struct loop_map *loop_map,
        int source, bool reduction);
void loop_map_add_block(const struct keys *keys, struct loop_map *loop_map, int source);
/* Adds the token loops.  With a running maximum: those of tokens that share values (share), or
 * the others (!share).  Without: all of them count as the others. */
void loop_map_add_tokens(const struct attention *a, const struct contraction *c,
        struct loop_map *loop_map, bool share);
/* Adds the loops of the product other than the keys', the reduction and `but`: those that move
 * the rows of the cache (past), or those that do not. */
void loop_map_add_others(const struct product *p, struct loop_map *loop_map, int but, bool past);
/* Converts strides by loop of the original kernel to strides by mapped loop. */
void loop_map_walk(const struct loop_map *loop_map, const int64_t *stride, int64_t *to);
/* A tensor type with a dim for each parallel mapped loop, and row-major strides over it. */
const struct type *loop_map_type(
        struct module *module, const struct loop_map *loop_map, const struct type *scalar);
void loop_map_row_major(const struct loop_map *loop_map, int64_t *stride);
/* Strides of the loops in a tensor that is row-major over the parallel loops of `as`. */
void loop_map_stride_over(struct quantizer *q, const struct loop_map *as,
        const struct loop_map *loop_map, int64_t *to);
/* Lets op store its result row-major over the loops `as`, whatever its own loop order. */
void loop_map_store_as(struct quantizer *q, const struct loop_map *as,
        const struct loop_map *loop_map, struct op *op);
/* A kernel with these loops; its result of that scalar is row-major over the parallel ones.
 * Loops and result of `spec` are set here. */
struct op *loop_map_kernel(struct quantizer *q, const struct loop_map *loop_map,
        const struct type *scalar, struct kernel_spec spec);
/* Loops over the probabilities: tokens, then keys in blocks; the same without the keys of a
 * block (reduced: the blocks are a reduction); and the loops in which they are computed, where
 * with a running maximum a key is used by all tokens that share its values. */
struct loop_map probability_loop_map(
        struct quantizer *q, const struct attention *a, const struct contraction *c);
struct loop_map probability_blocks(
        struct quantizer *q, const struct attention *a, const struct contraction *c, bool reduced);
struct loop_map probability_loops(
        struct quantizer *q, const struct attention *a, const struct contraction *c);

/* The product's operand x described as if the rows were a weight: its token loops and its
 * reduction. */
struct contraction keys_query(struct quantizer *q, const struct product *p);
/* Does one loaded row multiply all tokens and query heads that read it?  So with few tokens; with
 * many, all keys of a head are walked for each token. */
bool keys_are_shared(const struct keys *keys);
/* Keys that are read at once: all of them rows of this launch, or all of the cache. */
int64_t keys_per_run(const struct keys *keys);

/* Rows of keys or values, or their scales, as the loops of a kernel read them.  The rows of the
 * cache are one operand, those of this launch the next one. */
struct cache_read {
	struct quantizer *q;
	const struct attention *a;
	const struct cache *cache;
	const struct product *p; /* the f32 product of these rows */
	const struct loop_map *loop_map;
	bool scales; /* the scales rather than the bytes */
};

/* Sets the access to the rows of the cache; to those of this launch, which are the first `count`
 * of the keys that the loops walk; to both, as operands past and past + 1. */
void rows_past(const struct cache_read *r, struct access *to);
void rows_fresh(const struct cache_read *r, struct access *to, int64_t count);
void rows_walk(const struct cache_read *r, struct kernel *kernel, int past);
/* Node: the number of the key that the loops are at. */
int rows_key(struct quantizer *q, struct body *body, const struct loop_map *loop_map, int key);
/* Node: whether the key's row is one of this launch, which are operand `fresh`; operand
 * fresh + 1 is the number of past rows if the launch's row comes last. */
int rows_are_fresh(const struct cache_read *r, struct body *body, int fresh);
/* Node: the scale of the row that `choice` selects of operands past and past + 1, as f32. */
int rows_scale(struct module *module, struct body *body, int past, int choice);
/* The body acc + x * row in integers: x is operand 0, rows of the cache operand 1 and of this
 * launch operand 2.  choice: node that says whether it is one of these; -1: none is. */
void rows_sum(struct module *module, struct body *body, int choice);

/* The post body of the f32 product `old`, at the end of a kernel with other loops. */
struct epilogue {
	const struct op *old;
	const struct loop_map *loop_map; /* loops of the new kernel */
	int *renamed;                    /* by operand of old: the operand of the new kernel */
};

/* An epilogue of `old` whose operands are not numbered yet. */
struct epilogue epilogue_of(
        struct quantizer *q, const struct op *old, const struct loop_map *loop_map);
/* Appends what the post body reads to the operands, from number `first` on; returns the number of
 * operands then. */
int post_operands(const struct epilogue *e, int first, struct value **operand);
/* Sets the accesses to these operands. */
void post_walk(struct quantizer *q, const struct epilogue *e, struct kernel *kernel);
/* Node: the post body applied to the node `sum`. */
int post_body(struct module *module, const struct epilogue *e, struct body *body, int sum);
#endif
