/* Inside fuse_elementwise and split_by_consumer: two kernels made one, and how the loops of one
 * are seen by the other. */
#ifndef STC_FUSE_H
#define STC_FUSE_H
#include "ir/kernel_edit.h"

/* counter t of the producer = constant[t] + Σ factor[t * loops + l] * counter l of the consumer */
struct composed {
	int loops; /* of the consumer */
	int64_t *factor, *constant;
	bool once; /* no element is read twice (inside the guards) */
};

/* How consumer's operand `operand` walks the producer's loops; may split loops of the consumer.
 * False if it is not affine. The producer has no reduction loops and writes every address once. */
bool fuse_compose(struct module *module, const struct op *producer, struct op *consumer,
        int operand, struct composed *composed);

/* The producer's body is put in the place of the operand; false, and nothing is lost, if it does
 * not fit. */
bool fuse_inline(struct module *module, struct op *producer, struct op *consumer, int operand);
/* The elementwise consumer becomes the post body of the producer, which has a reduction. */
bool fuse_epilogue(struct module *module, struct op *producer, struct op *consumer);
/* `copy` puts the whole result of a kernel into another order: the kernel's other readers read
 * the copy instead.  False if one of them cannot; then nothing changed.  `readers` are all
 * readers of the kernel. */
bool fuse_layout(struct module *module, struct op *copy, int readers, struct op *const *reader);

/* Two operands that are the two parts of a concat and read one tensor alike become one. */
bool fuse_parts(struct module *module, struct op *op);
/* A loop of an elementwise kernel in each turn of which it computes the same; -1: none. */
int fuse_invariant_loop(struct module *module, const struct op *op);
/* It becomes a kernel without the loop, which is returned; op is a copy of its result then. */
struct op *fuse_drop_loop(struct module *module, struct op *op, int loop);

/* Result address = Σ stride * counter reaches each address once: digits by falling stride. */
bool fuse_digits(struct module *module, const struct op *op, int *order, int *count);
#endif
