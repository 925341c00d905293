/* Folds a reorder buffer into its producer: a kernel that holds all its sums until the last term
 * pushes them in its consumer's order.
 * Before: kernel { sums[] } -> FIFO -> fill | buffer | drain -> FIFO -> consumer
 * After:  kernel { sums[]; read them in the consumer's order } -> FIFO -> consumer */
#ifndef STC_DRAIN_ORDER_H
#define STC_DRAIN_ORDER_H
#include "converter/lower_box.h"

struct drain_order {
	const struct op *convert; /* NULL: there is none */
	struct box box;
	/* [loops] words of the box from one iteration of the kernel's loop to the next */
	int64_t *stride;
};

/* Can a scheduled kernel push its result in the order of a stream of this type? */
bool can_drain_in_order(struct arena *arena, const struct op *writer, const struct type *tensor,
        const struct type *type);
/* the kernel's converter with the attribute in_producer */
struct drain_order drain_order_of(struct arena *arena, const struct op *kernel);
/* false after a diagnostic: the producer of the converter's operand cannot */
bool check_drain_order(struct design *design, const struct op *convert);
void emit_drain(struct process *p, const struct drain_order *drain_order, struct value *array);
#endif
