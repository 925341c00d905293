/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_FUSION_PASSES_H
#define STC_FUSION_PASSES_H
#include "options/pass_context.h"

bool split_by_consumer(struct pass_context *context, struct module *module);
bool fuse_elementwise(struct pass_context *context, struct module *module);
bool rewrite_gelu_silu(struct pass_context *context, struct module *module);
bool fuse_rounding(struct pass_context *context, struct module *module);
bool fuse_argmax(struct pass_context *context, struct module *module);
#endif
