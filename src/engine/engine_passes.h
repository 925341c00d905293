/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_ENGINE_PASSES_H
#define STC_ENGINE_PASSES_H
#include "options/pass_context.h"

bool map_contractions(struct pass_context *context, struct module *module);
#endif
