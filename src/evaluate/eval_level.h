/* Shared by the levels of the evaluator.  At tensor and stream level it walks the blocks of main;
 * value->data is the value's `struct tensor` (scalars: one element) or, for a stream, its
 * `struct words`.  The hardware level runs as a network of processes (eval_network.h). */
#ifndef STC_EVAL_LEVEL_H
#define STC_EVAL_LEVEL_H
#include "evaluate/eval_nest.h"

struct evaluation {
	struct module *module;
	struct arena *arena;
	int results; /* of main */
	struct tensor *result;
	struct map symbols; /* name -> int64_t *: the inputs that are one integer */
};

typedef bool eval_function(struct evaluation *e, struct op *op);

struct words {                   /* a stream: all its elements, in order */
	const struct type *type; /* itensor */
	int64_t elements, lanes; /* in all; per word */
	char *data;              /* [elements] in storage format */
};

extern eval_function *const eval_tensor_functions[OP_COUNT];
extern eval_function *const eval_stream_functions[OP_COUNT];
eval_function route_cast, route_fork, route_layer_mux, route_chunk, route_concat, route_join;
eval_function route_layer_row, route_insert_layer, route_empty_stack;
struct words *eval_words(struct evaluation *e, const struct type *type); /* new, all zero */
eval_function eval_contract;
/* The result of a contraction of tensor `x` with scales `s`; NULL after a diagnostic. */
struct tensor *eval_contraction(struct evaluation *e, const struct op *op, const struct tensor *x,
        const struct tensor *s, const struct type *result);
eval_function eval_generic;
eval_function eval_sequential;
eval_function eval_tensor_kernel;
bool eval_hardware(struct evaluation *e, int inputs, const struct tensor *input);

/* stream.inputs or stream.outputs of main; NULL: there is none */
const struct attr *eval_list(const struct module *module, enum attr_key key);
/* A tensor of the constant `attr`; NULL after a diagnostic: its size is not that of `type`. */
struct tensor *eval_constant_tensor(struct evaluation *e, const struct type *type,
        const struct attr *attr, struct location location);
bool eval_block(struct evaluation *e, struct block *block); /* up to its terminator */
struct tensor *eval_tensor_of(const struct value *value);
struct tensor *eval_new(struct evaluation *e, const struct type *type); /* all zero */
/* a new tensor, bound to result 0 */
struct tensor *eval_result(struct evaluation *e, struct op *op);
/* Trip count in this run of a loop of at most `extent` iterations; trip NULL: `extent`. */
int64_t eval_trips(const struct evaluation *e, int64_t extent, const struct run_time_trip *trip);
struct launch_tokens;
/* Does this launch have that token? */
bool eval_row_is_valid(const struct evaluation *e, const struct launch_tokens *rows, int64_t row);
/* The points that the sliding window of the current layer skips. */
struct gap eval_gap(const struct evaluation *e, int64_t extent, const struct run_time_trip *trip);
/* The number in an index or integer value. */
int64_t eval_integer(const struct value *value);
/* The nest of a kernel: loops, and ports without data. */
struct nest eval_kernel_nest(struct evaluation *e, const struct op *op);
bool eval_kernel_run(struct evaluation *e, const struct op *op, struct nest *nest);
#endif
