/* Chooses the order in which a kernel drains a result that it holds in its accumulators, while the
 * types that readers want are still demands (stream.convert with `demand`). */
#ifndef STC_CHOOSE_DRAIN_ORDER_H
#define STC_CHOOSE_DRAIN_ORDER_H
#include "ir/ir.h"

/* demands for one stream; value->data of the stream points to it */
struct demand_list {
	VEC(struct op *);
};

/* The stream from which the demands are satisfied: `from`, or a converter in the producer
 * (in_producer) that reorders it. */
struct value *choose_drain_order(
        struct module *module, struct value *from, const struct demand_list *demand);
/* Does the same for values that layers hand to the next layer. */
void reorder_layer_feedback(struct module *module, struct block *block);
#endif
