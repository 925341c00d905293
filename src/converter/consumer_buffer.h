/* Folds a reorder buffer into its consumer.
 * Before: producer -> FIFO -> fill | buffer | drain -> FIFO -> consumer
 * After:  producer -> FIFO -> consumer { fill a local array; compute from it }
 * Legal when the consumer needs the whole buffer before its first output, is its only reader, and
 * walks it by its own loops. */
#ifndef STC_CONSUMER_BUFFER_H
#define STC_CONSUMER_BUFFER_H
#include "itensor/box.h"
#include "process/operation_builder.h"

struct consumer_buffer {
	const struct op *convert; /* NULL: there is none */
	int operand;              /* operand of the kernel */
	struct box box;
	int loops; /* loops of the kernel's nest, without those over lanes and unrolled rows */
	/* [loops] words of the box from one iteration of the kernel's loop to the next */
	int64_t *stride;
};

/* Fills stride[loops]: words of the box from one iteration of each loop to the next. false: the
 * kernel's loops, some of them combined, do not walk the box. */
bool kernel_strides(const struct kernel *kernel, const struct access *access,
        const struct box_side *side, int64_t *stride);
/* Sets the form IN_CONSUMER of all converters in the block that can have it, and of no other. */
void mark_consumer_buffers(struct module *module, struct block *block);
/* of the converter in front of the kernel with that form */
struct consumer_buffer consumer_buffer_of(struct arena *arena, const struct op *kernel);
/* false after a diagnostic: the reader of a converter with that form cannot hold its words */
bool check_consumer_buffer(struct design *design, const struct op *convert);
/* a nest that fills the array, which it returns */
struct value *consumer_buffer_fill(
        struct process *p, const struct consumer_buffer *consumer_buffer);
struct value *consumer_buffer_word(struct process *p, const struct consumer_buffer *consumer_buffer,
        struct value *array, struct value *const *counter, struct value *active);
#endif
