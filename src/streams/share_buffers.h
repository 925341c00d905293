/* Where a stream's readers come at different times: one buffer instead of a fork and long FIFOs. */
#ifndef STC_BUFFER_READERS_H
#define STC_BUFFER_READERS_H
#include "options/pass_context.h"

struct reader {
	struct op *op;
	int operand;
};
/* a stream, in program order; value->data while forks are placed */
struct stream_readers {
	VEC(struct reader) list;
	int64_t *service_round; /* [readers] when a buffer serves each */
	/* [readers] then: what the buffer gives, a cast behind it aside */
	const struct type **type;
	/* NULL: a fork is better.  Else the readers of a buffer, those of casts in their place */
	struct stream_readers *deferred;
};

static inline struct stream_readers *stream_readers(const struct value *value)
{
	return value->data;
}

/* decides for all streams of the block and below */
void plan_shared_buffers(struct module *module, const struct block *block);
/* is the op the one reader of its phase, when the array is full? */
bool is_sole_round_reader(const struct value *array, const struct op *op);
void share_buffer(struct module *module, struct value *value, struct op *before);
#endif
