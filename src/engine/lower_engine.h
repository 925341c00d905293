/* The matmul engine as processes. */
#ifndef STC_LOWER_ENGINE_H
#define STC_LOWER_ENGINE_H
#include "process/design_builder.h"

/* The memory ports of the engine's PEs (as many as the ports of the design so far leave room for,
 * less one for scales) and how loaders share them, as the attribute stream.engine of the module;
 * NULL: there is no contraction. */
const struct attr *engine_choose_ports(
        struct design *design, const struct block *body, struct module *module);
/* lowers all stream.contract ops */
bool lower_engine(struct design *design, const struct block *body);

#endif
