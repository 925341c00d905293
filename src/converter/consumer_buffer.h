/* A kernel keeps what a converter in front of it would: where all must be there before it can
 * begin, the reader's buffer is the converter's, and the words need no FIFO between them. */
#ifndef STC_KEPT_H
#define STC_KEPT_H
#include "itensor/box.h"
#include "process/process_builder.h"

struct consumer_buffer {
	const struct op *convert; /* NULL: there is none */
	int operand;              /* of the kernel */
	struct box box;
	/* [loops] words of the box from one point of the kernel's loop to the next */
	int64_t *stride;
};

/* Fills stride[loops]: words of the box from one point of each loop to the next.  The box is
 * walked by loops that are the kernel's, some of them as one; false: by others. */
bool kernel_strides(const struct kernel *kernel, const struct access *access,
        const struct box_side *side, int64_t *stride);
struct consumer_buffer consumer_buffer_of(struct arena *arena, const struct op *kernel);
bool is_in_consumer(struct arena *arena, const struct op *convert);
/* a nest that fills an array, which is returned */
struct value *consumer_buffer_fill(
        struct process *p, const struct consumer_buffer *consumer_buffer);
struct value *consumer_buffer_word(struct process *p, const struct consumer_buffer *consumer_buffer,
        struct value *array, struct value *const *counter, int loops, struct value *active);
#endif
