/* Functions that the passes which form streams share. */
#ifndef STC_STREAM_BUILDER_H
#define STC_STREAM_BUILDER_H
#include "schedule/tensor_sources.h"

/* The new main while it is filled. */
struct streams {
	struct pass_context *context;
	struct module *module;
	struct op *function;      /* the new main */
	struct block *block;      /* block that is being filled */
	struct value *layer;      /* counter of the enclosing rolled layer, or NULL */
	struct block *outside;    /* the block of its loop */
	const struct op *results; /* the old return */
	int64_t tiles;            /* token tiles that the current kernel walks outermost; else 0 */
};

/* Where an op on a stream is inserted: in front of `before`; tensor: that the stream carries. */
struct insertion {
	struct module *module;
	struct op *before;
	const struct type *tensor;
};

/* A new op that reads `from` and gives a stream of type `type`. */
struct op *insert_stream_op(
        const struct insertion *at, enum op_code code, struct value *from, const struct type *type);
/* `from` without the words that `type` leaves out; NULL: `type` is no part of it in its own
 * order. */
struct value *chunk_to(const struct insertion *at, struct value *from, const struct type *type);
/* is `type` a part of `from` in its order? */
bool is_chunk(struct module *module, const struct type *tensor, const struct type *from,
        const struct type *type);
/* Drops in front of a converter to `type` what it would buffer and never send: keeps the iterations
 * of the outermost loop of which something is wanted; NULL: that is all of them. */
struct value *chunk_wanted(const struct insertion *at, struct value *from, const struct type *type);
bool emit_kernel(struct streams *streams, const struct op *old);
/* Appends op to the new block; its result replaces that of `old`. */
void append_producer(struct streams *s, const struct op *old, struct op *op);
bool emit_contract(struct streams *s, const struct op *old);
/* pads the rows that exist to the full type; apart from that both types have the same words */
struct value *emit_token_padding(
        struct streams *s, struct value *rows, const struct type *tensor, const struct type *type);
const struct type *full_extent_type(struct module *module, const struct type *stream);
/* A sequential nest: its tensors enter and leave in row-major order. */
void emit_sequential(struct streams *s, struct op *old);
bool emit_pad_tokens(struct streams *s, const struct op *old);
/* the operand of a padded-rows reader: rows padded in the iterations of the predicate alone;
 * by_tile: walked tile by tile */
struct value *demand_padded(struct streams *s, const struct op *fill,
        const struct row_predicate *row_predicate, bool by_tile, const struct type *type);
bool emit_gather(struct streams *streams, const struct op *old);
/* the elements of a source in the order of `type` */
struct value *demand_stream(struct streams *streams, const struct tensor_source *tensor_source,
        const struct type *type, int ports);
/* sets kv_partitions and bits of the states' sources, from the schedules of their readers */
void mark_kv_partitions(struct streams *streams, const struct op *old);
/* the type in which a state is loaded for a reader that wants `wanted` */
const struct type *state_order(struct streams *streams, const struct tensor_source *tensor_source,
        const struct type *wanted);
void set_stream_tensor(struct module *module, struct op *op, const struct type *tensor);
#endif
