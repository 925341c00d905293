/* The readers of each stream, and where one buffer serves them one after the other, instead of a
 * fork and long FIFOs. */
#ifndef STC_SHARED_BUFFER_PLAN_H
#define STC_SHARED_BUFFER_PLAN_H
#include "options/pass_context.h"

struct stream_reader {
	struct op *op;
	int operand;
};
/* The readers of a stream in program order; value->data points to it. */
struct stream_readers {
	VEC(struct stream_reader) list;
	int64_t *service_round; /* [readers] round in which a buffer serves each */
	/* [readers] type that the buffer gives each, apart from a cast after it */
	const struct type **type;
	/* the readers of a shared buffer, casts replaced by their readers; NULL: a fork is
	 * better */
	struct stream_readers *deferred;
	bool loads; /* each round has a load of its own, instead of the buffer */
};

static inline struct stream_readers *stream_readers(const struct value *value)
{
	return value->data;
}

/* Lists the readers of all streams of the block and of blocks inside it. */
void collect_stream_readers(struct module *module, struct block *block);
/* Decides for all these streams: sets `deferred` of their readers. */
void plan_shared_buffers(struct module *module, const struct block *block);
/* Large tensors in memory, of more bytes than `most`, are loaded again for late readers: decides
 * that after plan_shared_buffers. */
void plan_loads(struct module *module, const struct block *block, int64_t most);
/* Is the op the only reader of its service round, after the array is full? */
bool is_sole_round_reader(const struct value *array, const struct op *op);
/* The kernel that holds the whole stream in its accumulators and sends it in its own or, by an
 * in-producer converter, in another order; or NULL. */
struct op *accumulator_holder(const struct value *value);
#endif
