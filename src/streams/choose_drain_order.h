/* Orders of results that their makers hold: decided while streams are still wished for. */
#ifndef STC_RESOLVE_GIVEN_H
#define STC_RESOLVE_GIVEN_H
#include "ir/ir.h"

struct demand_list { /* of one stream; value->data points to it */
	VEC(struct op *);
};

/* `from`, or behind its maker a converter that all are served from */
struct value *choose_drain_order(
        struct module *module, struct value *from, const struct demand_list *wish);
/* what layers hand on */
void reorder_layer_feedback(struct module *module, struct block *block);
#endif
