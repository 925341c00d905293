/* Where a stream's readers come at different times: one buffer instead of a fork and long FIFOs. */
#ifndef STC_BUFFER_READERS_H
#define STC_BUFFER_READERS_H
#include "options/pass_context.h"

struct reader {
	struct op *op;
	int operand;
};
struct readers_of {           /* a stream, in program order; value->data while forks are placed */
	VEC(struct reader) list;
	int64_t *phase;           /* [readers] when a buffer serves each */
	const struct type **type; /* [readers] then: what the buffer gives, a cast behind it aside */
	struct readers_of *late;  /* NULL: a fork is better.  Else the readers of a buffer, those of casts in their place */
};

static inline struct readers_of *readers_of(const struct value *value)
{
	return value->data;
}

void plan_buffers(struct module *module, const struct block *block);              /* decides for all streams of the block and below */
bool array_serves_alone(const struct value *array, const struct op *op);             /* is the op the one reader of its phase, when the array is full? */
void buffer_readers(struct module *module, struct value *value, struct op *before);
#endif
