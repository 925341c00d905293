/* Dimensions of values that a kernel walks as one. */
#ifndef STC_JOIN_DIMENSIONS_H
#define STC_JOIN_DIMENSIONS_H
#include "ir/kernel.h"

/* Joins dimensions of a value between kernels along which a loop walks. */
void join_walked_dimensions(struct module *module, const struct block *block, struct value *value,
        int64_t stride, int64_t extent);

#endif
