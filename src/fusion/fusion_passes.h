/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_FUSION_PASSES_H
#define STC_FUSION_PASSES_H
#include "options/pass_context.h"

bool split_sliced(struct pass_context *context, struct module *module);
bool fuse_elementwise(struct pass_context *context, struct module *module);
bool fold_sigmoids(struct pass_context *context, struct module *module);
bool fuse_largest(struct pass_context *context, struct module *module);
#endif
