/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_ATTENTION_PASSES_H
#define STC_ATTENTION_PASSES_H
#include "options/pass_context.h"

bool bind_token_count(struct pass_context *context, struct module *module);
bool tile_tokens(struct pass_context *context, struct module *module);
bool skip_causal_tiles(struct pass_context *context, struct module *module);
bool order_scales_by_group(struct pass_context *context, struct module *module);
bool partition_kv_heads(struct pass_context *context, struct module *module);
bool interleave_qkv_heads(struct pass_context *context, struct module *module);
#endif
