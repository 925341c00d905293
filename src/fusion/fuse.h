/* Toolkit of fuse_elementwise and split_by_consumer: how the loops of a consumer walk those of its
 * producer, and the ways in which two kernels become one. */
#ifndef STC_FUSE_H
#define STC_FUSE_H
#include "ir/kernel_edit.h"

/* Counters of the producer at a point of the consumer:
 *     counter t = constant[t] + Σ_l factor[t * loops + l] * counter l of the consumer */
struct composed {
	int loops; /* of the consumer */
	int64_t *factor, *constant;
	bool once; /* inside the guards no element is read twice */
};

/* How an operand of the consumer walks the producer's loops; may split loops of the consumer.
 * Needs a producer without reduction loops that stores every address once.  false: not affine. */
bool fuse_compose(struct module *module, const struct op *producer, struct op *consumer,
        int operand, struct composed *composed);

/* Computes the producer's body where the consumer read its result.  false: it does not fit, and the
 * consumer computes the same as before. */
bool fuse_inline(struct module *module, struct op *producer, struct op *consumer, int operand);
/* Makes an elementwise consumer the post body of the producer, a reduction.  false: nothing is
 * changed. */
bool fuse_epilogue(struct module *module, struct op *producer, struct op *consumer);
/* `copy` stores the whole result of a kernel in another order: lets all readers of the kernel
 * (`reader`, the copy among them) read the copy instead.  false: one of them cannot, and nothing
 * is changed. */
bool fuse_layout(struct module *module, struct op *copy, int readers, struct op *const *reader);

/* Merges two operands that are the two parts of a concat and read the same numbers. */
bool fuse_parts(struct module *module, struct op *op);
/* A loop of an elementwise kernel that computes the same in each iteration; -1: none. */
int fuse_invariant_loop(struct module *module, const struct op *op);
/* Moves the computation to a kernel without the loop, which is returned; op becomes a copy of its
 * result. */
struct op *fuse_drop_loop(struct module *module, struct op *op, int loop);

/* Does the kernel store each address of its result once?  Then order[count]: its parallel loops by
 * falling stride. */
bool fuse_digits(struct module *module, const struct op *op, int *order, int *count);
#endif
