/* Replaces a fork and long FIFOs by one buffer where a stream's readers read it one after the
 * other. */
#ifndef STC_SHARE_BUFFERS_H
#define STC_SHARE_BUFFERS_H
#include "options/pass_context.h"

struct reader {
	struct op *op;
	int operand;
};
/* The readers of a stream in program order; value->data points to it while forks are placed. */
struct stream_readers {
	VEC(struct reader) list;
	int64_t *service_round; /* [readers] round in which a buffer serves each */
	/* [readers] type that the buffer gives each, apart from a cast after it */
	const struct type **type;
	/* the readers of a shared buffer, casts replaced by their readers; NULL: a fork is
	 * better */
	struct stream_readers *deferred;
};

static inline struct stream_readers *stream_readers(const struct value *value)
{
	return value->data;
}

/* Decides for all streams of the block and of blocks inside it. */
void plan_shared_buffers(struct module *module, const struct block *block);
/* Is the op the only reader of its service round, after the array is full? */
bool is_sole_round_reader(const struct value *array, const struct op *op);
void share_buffer(struct module *module, struct value *value, struct op *before);
#endif
