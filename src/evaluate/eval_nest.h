/* A scalar body as straight-line steps over arrays of registers, and the loop nest that runs it
 * over strided memory: what linalg.generic and stream.kernel become.  The innermost loop runs in
 * chunks, so that one dispatch serves many points. */
#ifndef STC_EVAL_NEST_H
#define STC_EVAL_NEST_H
#include "ir/kernel.h"
#include "evaluate/eval.h"
#include "evaluate/scalar.h"

#define NEST_CHUNK 256

enum step_kind {
	STEP_OPERAND, /* element of operand `number` */
	STEP_CARRIED, /* what result `number` holds at this point */
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
	int *argument; /* steps before this one */
	struct scalar_op op;
	union scalar constant;
	const struct tensor *table;
	bool sequential; /* depends on an accumulator along the innermost loop */
	void *value;     /* NEST_CHUNK registers */
};

struct program {
	VEC(struct step) steps;
};

struct port {                    /* an operand or a result in memory */
	const struct type *type; /* scalar */
	void *data;
	int64_t elements;
	struct access access;
	/* [loops] NULL, or weights: an operand has come where Σ turn[l] counter[l] < come */
	const int64_t *row_weight;
	int64_t valid_rows_end;
};

/* from the point `head` on, counters are `out` more: run-time extents, see ir/sliding_window.h */
struct gap {
	int64_t head, out;
};

struct nest {
	int loops;
	int64_t *extent;       /* [loops] */
	const struct gap *gap; /* [loops]; NULL: there are none */
	bool packed;           /* ports hold no elements for what lies in a gap */
	int operands, results;
	struct port *operand, *result;
	struct program program;
	int *yield; /* [results] steps; with `tree`: the term */
	/* the last loop is lanes: result = combine(result, tree over them) */
	bool tree;
	struct scalar_op combine;
};

/* returns its index */
int program_add(struct arena *arena, struct program *program, struct step step);
bool program_add_body(struct module *module, struct arena *arena, struct location location,
        struct program *program, const struct body *body);
int64_t gap_point(struct gap gap, int64_t turn);
bool nest_run(struct module *module, struct arena *arena, const struct op *op, struct nest *nest);
#endif
