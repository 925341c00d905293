/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_FLOORPLAN_PASSES_H
#define STC_FLOORPLAN_PASSES_H
#include "options/pass_context.h"

bool allocate_memory(struct pass_context *context, struct module *module);
bool place_dies(struct pass_context *context, struct module *module);
#endif
