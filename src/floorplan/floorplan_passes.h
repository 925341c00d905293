/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_FLOORPLAN_PASSES_H
#define STC_FLOORPLAN_PASSES_H
#include "options/pass_context.h"

bool bind_storage(struct pass_context *context, struct module *module);
bool check_multipliers(struct pass_context *context, struct module *module);
bool floorplan(struct pass_context *context, struct module *module);
#endif
