/* Reference evaluator: runs a module of any level on dense tensors and gives its results, bit for
 * bit those of the accelerator.  It does not model time (see simulate/). */
#ifndef STC_EVAL_H
#define STC_EVAL_H
#include "ir/ir.h"

/* Dense, row-major, little endian; an i1 takes one byte, an index eight. */
struct tensor {
	const struct type *type; /* of any module: only shape and element type are read */
	void *data;
};

/* Runs main.  `input` has one tensor per argument of main (hardware level: per entry of
 * stream.inputs), `result` one per result (hardware level: per entry of stream.outputs; an output
 * of role `state` is the row that was written).  Results lie in `arena`.
 * false: a diagnostic says why: a wrong input, or at hardware level a deadlock. */
bool eval_module(struct module *module, struct arena *arena, int inputs, const struct tensor *input,
        struct tensor *result);
int eval_results(const struct module *module); /* number of results */
int eval_inputs(const struct module *module);  /* number of inputs */
size_t tensor_bytes(const struct type *type);  /* host bytes of a tensor type */
#endif
