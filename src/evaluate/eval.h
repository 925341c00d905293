/* Reference evaluator: runs a module of any level on dense tensors.  Values only, no time. */
#ifndef STC_EVAL_H
#define STC_EVAL_H
#include "ir/ir.h"

/* dense, row-major, little endian; i1 one byte an element, index 8 bytes */
struct tensor {
	const struct type *type; /* tensor type (of any module: only shape and element are read) */
	void *data;
};

/* inputs: as main's arguments (hardware level: as its stream.inputs).  Results are made in
 * `arena`, one per result of main (hardware level: one per stream.outputs; a `state` output is
 * the row that was written).
 * false: a diagnostic says why (wrong input, or at hardware level a deadlock with the cycle of
 * waits). */
bool eval_module(struct module *module, struct arena *arena, int inputs, const struct tensor *input,
        struct tensor *result);
int eval_results(const struct module *module); /* how many there are */
int eval_inputs(const struct module *module);
size_t tensor_bytes(const struct type *type); /* host bytes of a tensor type */
#endif
