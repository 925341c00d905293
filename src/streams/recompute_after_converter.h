/* Moves elementwise kernels from in front of a block converter to behind it. */
#ifndef STC_RECOMPUTE_AFTER_CONVERTER_H
#define STC_RECOMPUTE_AFTER_CONVERTER_H
#include "streams/stream_builder.h"

/* Needs plan_shared_buffers, and runs it again after a change. */
void recompute_after_converter(struct module *module, struct block *block);

#endif
