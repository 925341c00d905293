/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_TENSOR_PASSES_H
#define STC_TENSOR_PASSES_H
#include "options/pass_context.h"

bool name_arguments(struct pass_context *context, struct module *module);
bool fold_views(struct pass_context *context, struct module *module);
bool batch_images(struct pass_context *context, struct module *module);
bool demote_f64(struct pass_context *context, struct module *module);
bool merge_common(struct pass_context *context, struct module *module);
bool scan_prefixes(struct pass_context *context, struct module *module);
bool bind_extents(struct pass_context *context, struct module *module);
bool defer_softmax_division(struct pass_context *context, struct module *module);
bool online_softmax(struct pass_context *context, struct module *module);
bool split_gathers(struct pass_context *context, struct module *module);
bool split_epilogues(struct pass_context *context, struct module *module);
bool order_windows(struct pass_context *context, struct module *module);
#endif
