/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_LOWERING_PASSES_H
#define STC_LOWERING_PASSES_H
#include "options/pass_context.h"

bool split_shared_epilogues(struct pass_context *context, struct module *module);
bool share_operators(struct pass_context *context, struct module *module);
bool schedule_reductions(struct pass_context *context, struct module *module);
bool plan_engine(struct pass_context *context, struct module *module);
bool make_processes(struct pass_context *context, struct module *module);
#endif
