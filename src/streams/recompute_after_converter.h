/* Moves elementwise kernels from in front of a block converter to behind it. */
#ifndef STC_RECOMPUTE_AFTER_CONVERTER_H
#define STC_RECOMPUTE_AFTER_CONVERTER_H
#include "streams/stream_builder.h"

/* Runs while forks are placed, after plan_shared_buffers and before recompute_kernels. */
void recompute_after_converter(struct module *module, struct block *block);

#endif
