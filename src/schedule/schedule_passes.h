/* The passes of this room; pipeline/passes.c says what each needs and guarantees. */
#ifndef STC_SCHEDULE_PASSES_H
#define STC_SCHEDULE_PASSES_H
#include "options/pass_context.h"

bool choose_register_tiles(struct pass_context *context, struct module *module);
bool choose_parallelism(struct pass_context *context, struct module *module);
bool choose_loop_orders(struct pass_context *context, struct module *module);
/* DSPs for kernels: what the option gives less those of sequential nests. */
int64_t parallelism_dsp(const struct pass_context *context, const struct block *body);
#endif
