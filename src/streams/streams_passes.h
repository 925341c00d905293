/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_STREAMS_PASSES_H
#define STC_STREAMS_PASSES_H
#include "options/pass_context.h"

bool fit_loop_orders(struct pass_context *context, struct module *module);
bool form_streams(struct pass_context *context, struct module *module);
bool insert_converters(struct pass_context *context, struct module *module);
bool recompute_kernels(struct pass_context *context, struct module *module);
bool share_buffers(struct pass_context *context, struct module *module);
bool fold_converters(struct pass_context *context, struct module *module);
bool spill_to_budget(struct pass_context *context, struct module *module);
bool mark_last_chunk_only(struct pass_context *context, struct module *module);
#endif
