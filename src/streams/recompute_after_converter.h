/* Elementwise kernels behind the block of a converter instead of in front of it. */
#ifndef STC_REPEAT_BOXES_H
#define STC_REPEAT_BOXES_H
#include "streams/stream_builder.h"

/* while forks are placed, after plan_shared_buffers and before recompute_kernels */
void recompute_after_converter(struct module *module, struct block *block);

#endif
