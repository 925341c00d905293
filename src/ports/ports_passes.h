/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_PORTS_PASSES_H
#define STC_PORTS_PASSES_H
#include "options/pass_context.h"

bool assign_axi_bundles(struct pass_context *context, struct module *module);
#endif
