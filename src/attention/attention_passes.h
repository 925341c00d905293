/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_ATTENTION_PASSES_H
#define STC_ATTENTION_PASSES_H
#include "options/pass_context.h"

bool bind_rows(struct pass_context *context, struct module *module);
bool tile_tokens(struct pass_context *context, struct module *module);
bool hide_later(struct pass_context *context, struct module *module);
bool group_tokens(struct pass_context *context, struct module *module);
bool split_states(struct pass_context *context, struct module *module);
bool interleave_parts(struct pass_context *context, struct module *module);
#endif
