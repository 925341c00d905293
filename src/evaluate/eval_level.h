/* What the levels of the evaluator share.  Tensor and stream level walk the blocks of main:
 * value->data is the value's `struct tensor` (scalars: one element) or, for a stream, its
 * `struct words`.  Hardware level is a network of processes of its own. */
#ifndef STC_EVAL_LEVEL_H
#define STC_EVAL_LEVEL_H
#include "evaluate/eval_nest.h"

struct evaluation {
	struct module *module;
	struct arena *arena;
	int results; /* stream level: of main */
	struct tensor *result;
	struct map symbols; /* name -> int64_t *, the inputs of one integer */
};

typedef bool eval_function(struct evaluation *e, struct op *op);

struct words {                   /* a stream: all its elements, in order */
	const struct type *type; /* itensor */
	int64_t elements, lanes;
	char *data; /* storage */
};

extern eval_function *const eval_tensor_functions[OP_COUNT];
extern eval_function *const eval_stream_functions[OP_COUNT];
eval_function route_cast, route_fork, route_layer_mux, route_chunk, route_concat, route_join;
struct words *eval_words(struct evaluation *e, const struct type *type); /* zeros */
eval_function eval_contract;
/* The result of a contraction, of a tensor and its scales; NULL after a diagnostic. */
struct tensor *eval_contraction(struct evaluation *e, const struct op *op, const struct tensor *x,
        const struct tensor *s, const struct type *result);
eval_function eval_generic;
eval_function eval_tensor_kernel;
bool eval_hardware(struct evaluation *e, int inputs, const struct tensor *input);

/* stream.inputs or stream.outputs of main; NULL */
const struct attr *eval_list(const struct module *module, enum attr_key key);
/* NULL: not its numbers */
struct tensor *eval_constant_tensor(struct evaluation *e, const struct type *type,
        const struct attr *attr, struct location location);
bool eval_block(struct evaluation *e, struct block *block); /* up to its terminator */
struct tensor *eval_tensor_of(const struct value *value);
struct tensor *eval_new(struct evaluation *e, const struct type *type); /* zeros */
/* a new tensor, already bound to result 0 */
struct tensor *eval_result(struct evaluation *e, struct op *op);
/* in this run: extent / most times its count; trip NULL: extent */
int64_t eval_trips(const struct evaluation *e, int64_t extent, const struct run_time_trip *trip);
struct launch_tokens;
/* in this run */
bool eval_row_is_valid(const struct evaluation *e, const struct launch_tokens *rows, int64_t row);
/* of the points, in this layer */
struct gap eval_gap(const struct evaluation *e, int64_t extent, const struct run_time_trip *trip);
/* of an index or integer value */
int64_t eval_integer(const struct value *value);
/* loops, and ports without data */
struct nest eval_kernel_nest(struct evaluation *e, const struct op *op);
bool eval_kernel_run(struct evaluation *e, const struct op *op, struct nest *nest);
#endif
