/* Processes that read and write memory, and the AXI bundles of their ports. */
#ifndef STC_LOWER_PORTS_H
#define STC_LOWER_PORTS_H
#include "process/design_builder.h"

/* false after a diagnostic */
bool lower_loads(struct design *design, struct block *body);
void lower_gather(struct design *design, const struct op *op);
bool lower_stores(struct design *design, struct block *body);
/* adapters of the ports so far, without those that share the engine's adapters */
int adapters_outside_engine(struct design *design);
/* ports of KV words that are read in parallel, besides those of PEs; *parallel_ports: how many of
 * them are read in the same cycle */
int wide_state_ports(struct design *design, int *parallel_ports);
/* Adapters that keys and values need besides an engine with dynamic tiles whose PEs have `words`
 * words each: a port with more words than that would delay a PE, and with it the engine. */
int state_adapters(struct design *design, int64_t words);

#endif
