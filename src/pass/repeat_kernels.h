/* An elementwise kernel whose result is read several times works several times where that keeps less. */
#ifndef STC_REPEAT_KERNELS_H
#define STC_REPEAT_KERNELS_H
#include "pass/streams.h"

void repeat_kernels(struct module *module, struct block *block);           /* while forks are placed, after plan_buffers */
const struct type *type_once(struct module *module, const struct type *stream);          /* without the outermost loop, if that sends the same again; else NULL */
#endif
