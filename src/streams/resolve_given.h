/* Orders of results that their makers hold: decided while streams are still wished for. */
#ifndef STC_RESOLVE_GIVEN_H
#define STC_RESOLVE_GIVEN_H
#include "ir/ir.h"


struct wish_list {            /* of one stream; value->data points to it */
	VEC(struct op *);
};

struct value *give_to_readers(struct module *module, struct value *from, const struct wish_list *wish);  /* `from`, or behind its maker a converter that all are served from */
void turn_rings(struct module *module, struct block *block);      /* what layers hand on */
#endif
