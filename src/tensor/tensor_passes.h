/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_TENSOR_PASSES_H
#define STC_TENSOR_PASSES_H
#include "options/pass_context.h"

bool name_arguments(struct pass_context *context, struct module *module);
bool fold_views(struct pass_context *context, struct module *module);
bool demote_f64(struct pass_context *context, struct module *module);
bool merge_common(struct pass_context *context, struct module *module);
bool bind_extents(struct pass_context *context, struct module *module);
bool sink_quotients(struct pass_context *context, struct module *module);
bool carry_maxima(struct pass_context *context, struct module *module);
bool split_gathers(struct pass_context *context, struct module *module);
bool split_posts(struct pass_context *context, struct module *module);
#endif
