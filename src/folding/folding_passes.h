/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_FOLDING_PASSES_H
#define STC_FOLDING_PASSES_H
#include "options/pass_context.h"

bool fold_convolutions(struct pass_context *context, struct module *module);
#endif
