/* The matmul engine as processes. */
#ifndef STC_LOWER_ENGINE_H
#define STC_LOWER_ENGINE_H
#include "process/design_builder.h"

/* lowers all stream.contract ops */
bool lower_engine(struct design *design, const struct block *body);

#endif
