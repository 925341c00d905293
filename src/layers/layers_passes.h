/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_LAYERS_PASSES_H
#define STC_LAYERS_PASSES_H
#include "options/pass_context.h"

bool count_unfused(struct pass_context *context, struct module *module);
bool roll_layers(struct pass_context *context, struct module *module);
bool count_fused(struct pass_context *context, struct module *module);
bool tile_steps(struct pass_context *context, struct module *module);
bool sink_layer_select(struct pass_context *context, struct module *module);
#endif
