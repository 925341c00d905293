/* Elementwise kernels behind the block of a converter instead of in front of it. */
#ifndef STC_REPEAT_BOXES_H
#define STC_REPEAT_BOXES_H
#include "streams/streams.h"

void repeat_boxes(struct module *module, struct block *block);             /* while forks are placed, after plan_buffers and before repeat_kernels */

#endif
