/* Processes for converters and shared buffers; false after a diagnostic. into_layers: the op's
 * input comes from outside of the rolled layer that it is in. */
#ifndef STC_LOWER_CONVERTERS_H
#define STC_LOWER_CONVERTERS_H
#include "process/design_builder.h"

bool lower_convert(struct design *design, const struct op *op, bool into_layers);
bool lower_line_buffer(struct design *design, const struct op *op);
bool lower_buffer(struct design *design, const struct op *op);
bool lower_spill(struct design *design, const struct op *op, bool into_layers);

#endif
