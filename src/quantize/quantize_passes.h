/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_QUANTIZE_PASSES_H
#define STC_QUANTIZE_PASSES_H
#include "options/pass_context.h"

bool quantize_bf16(struct pass_context *context, struct module *module);
bool quantize_kv_cache(struct pass_context *context, struct module *module);
bool fold_norm_biases(struct pass_context *context, struct module *module);
bool defer_norm_factors(struct pass_context *context, struct module *module);
bool quantize_embeddings(struct pass_context *context, struct module *module);
bool quantize_contractions(struct pass_context *context, struct module *module);
#endif
