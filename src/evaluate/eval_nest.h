/* A loop nest over strided memory with a scalar body as straight-line steps over arrays of
 * registers: the evaluator's form of linalg.generic and stream.kernel.  The innermost loop runs
 * in chunks, so that a step is dispatched once for many points. */
#ifndef STC_EVAL_NEST_H
#define STC_EVAL_NEST_H
#include "ir/kernel.h"
#include "evaluate/eval.h"
#include "evaluate/scalar.h"

#define NEST_CHUNK 256 /* points of a chunk */

enum step_kind {
	STEP_OPERAND, /* element of operand `number` */
	STEP_CARRIED, /* value of result `number` before this point: the accumulator */
	STEP_CONSTANT,
	STEP_COUNTER, /* counter of loop `number` */
	STEP_ACTIVE,  /* is operand `number` inside its guard? */
	STEP_EXTRACT, /* element of `table` at the arguments; indices are clamped */
	STEP_OP,
};

struct step {
	enum step_kind kind;
	const struct type *type; /* scalar */
	int number;
	int arguments;
	int *argument; /* earlier steps */
	struct scalar_op op;
	union scalar constant;
	const struct tensor *table;
	bool sequential; /* depends on an accumulator along the innermost loop */
	void *value;     /* NEST_CHUNK registers */
};

struct program {
	VEC(struct step) steps;
};

struct nest_port {               /* an operand or a result in memory */
	const struct type *type; /* scalar */
	void *data;
	int64_t elements;
	struct access access;
	/* [loops] or NULL: an operand is valid where
	 *         Σ row_weight[l] counter[l] < valid_rows_end, and reads 0 elsewhere */
	const int64_t *row_weight;
	int64_t valid_rows_end;
};

/* Points that a loop skips, see ir/sliding_window.h: iteration i is point i where i < head, and
 * point i + out from there on. */
struct gap {
	int64_t head, out;
};

struct nest {
	int loops;
	int64_t *extent;       /* [loops] */
	const struct gap *gap; /* [loops]; NULL: there are none */
	bool packed;           /* ports hold no elements for points in a gap */
	int operands, results;
	struct nest_port *operand, *result;
	struct program program;
	int *yield; /* [results] steps; with `tree`: the term */
	/* result = combine(result, balanced tree over the terms of loop `tree_loop`) */
	bool tree;
	int tree_loop;
	struct scalar_op combine;
};

/* Appends the step and returns its index. */
int program_add(struct arena *arena, struct program *program, struct step step);
/* Appends the steps of a kernel's body.  false: a diagnostic. */
bool program_add_body(struct module *module, struct arena *arena, struct location location,
        struct program *program, const struct body *body);
int64_t gap_point(struct gap gap, int64_t iteration);
/* Runs the nest of `op`.  false: a diagnostic. */
bool nest_run(struct module *module, struct arena *arena, const struct op *op, struct nest *nest);
#endif
