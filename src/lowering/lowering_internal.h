/* One function per kind of stream-level op that becomes a process. */
#ifndef STC_LOWERING_INTERNAL_H
#define STC_LOWERING_INTERNAL_H
#include "process/design_builder.h"

/* Begins a design in place of main, with the processes of all ops but contractions; false after a
 * diagnostic. */
bool lower_streams(struct pass_context *context, struct module *module, struct design *design);
/* false after a diagnostic */
bool lower_kernel(struct design *design, const struct op *op);
void lower_sequential(struct design *design, const struct op *op);
void lower_chunk(struct design *design, const struct op *op);
void lower_concat(struct design *design, const struct op *op);
void lower_join(struct design *design, const struct op *op);
void lower_pad_tokens(struct design *design, const struct op *op);
/* Adds processes that drop operands of an op of the last launch in all other launches. */
void lower_last_chunk_gate(struct design *design, const struct op *op);
void lower_cast(struct design *design, const struct op *op);
void lower_fork(struct design *design, const struct op *op);
void lower_layer_mux(struct design *design, const struct op *op);
/* sets stream.feedback, where an output feeds an input */
void lower_feedback(struct design *design);
void lower_layer_feedback(struct design *design, const struct op *loop);

#endif
