/* What the files of make_streams share. */
#ifndef STC_STREAMS_H
#define STC_STREAMS_H
#include "schedule/tensor_sources.h"

/* Every use of a stream wanted in some type becomes a fifo, a cast or a converter; forks make
 * single readers. */
bool resolve_streams(struct streams *streams, struct block *block);
/* `from` without the words that `type` leaves out; NULL: they are no part of it in its own
 * order. */
struct value *chunk_to(struct module *module, struct op *before, struct value *from,
        const struct type *tensor, const struct type *type);
/* are they? */
bool is_chunk(struct module *module, const struct type *tensor, const struct type *from,
        const struct type *type);
/* What a converter to `type` would hold and never send is dropped in front of it: of the
 * outermost loop the turns of which something is wanted; NULL: of all. */
struct value *chunk_wanted(struct module *module, struct op *before, struct value *from,
        const struct type *tensor, const struct type *type);
bool emit_kernel(struct streams *streams, const struct op *old);
/* op stands in the new block; what it gives is from now on the result of `old`. */
void append_producer(struct streams *s, const struct op *old, struct op *op);
bool emit_contract(struct streams *s, const struct op *old);
/* the same words, but for rows that are not there in either type */
struct value *emit_token_padding(
        struct streams *s, struct value *rows, const struct type *tensor, const struct type *type);
const struct type *full_extent_type(struct module *module, const struct type *stream);
bool emit_pad_tokens(struct streams *s, const struct op *old);
/* rows filled up in those turns alone; later: tile by tile */
struct value *demand_padded(struct streams *s, const struct op *fill,
        const struct row_predicate *row_predicate, bool by_tile, const struct type *type);
bool emit_gather(struct streams *streams, const struct op *old);
/* the elements of `flow` in the order of `type` */
struct value *demand_stream(struct streams *streams, const struct tensor_source *tensor_source,
        const struct type *type, int ports);
/* sets flow->parts of states, from the plans */
void mark_kv_partitions(struct streams *streams, const struct op *old);
/* what is loaded of a state for a reader that wants this */
const struct type *state_order(struct streams *streams, const struct tensor_source *tensor_source,
        const struct type *wanted);
void set_stream_tensor(struct module *module, struct op *op, const struct type *tensor);
#endif
