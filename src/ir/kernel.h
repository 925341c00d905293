/* A kernel: a box of loops over linear addresses, with a scalar body.  One result.
 *
 *   for every point of the loops, outermost first:
 *       x[j]  = operand j at offset + Σ stride[l] * counter[l] (+ index value * index_stride),
 *       if inside its guard, else 0
 *   without reduction loops:  result[…] = update(x)
 *   with:  acc = init at the first reduction point of each result element; acc = update(x, acc);
 *   after the last: result[…] = post(x, acc);
 *                            of no reduction points it is post(x, init)
 *
 * With `scan` a reduction gives a result at every point: result[…] = post(x, acc before the
 * point's update), and the result's address depends on the reduction loops. Else post reads only
 * operands (and counters) that do not depend on reduction loops.  Addresses count elements of
 * the root value, row-major. At tensor level loops are in source order, which says nothing,
 * unless `ordered`.  At stream level they are in schedule order and, if lanes > 1, the last loop
 * is the lane loop (all its points at once); if rows > 1 the loop before it runs at once too,
 * and one of the two is a reduction: rows sums side by side, or, of integers, in each lane a
 * tree over rows terms; then `scheduled` is set.  A reduction lane loop: acc = combine(acc, tree
 * over the lanes of the term), where update = combine(acc, term); the tree pairs neighbours:
 * (t0·t1)·(t2·t3) …
 * If partial > 1, so many sums are formed in turn: a term goes to the one that the counter of
 * kernel_inner_reduction says, modulo partial; each begins with init, and at the end the same
 * tree over them is the accumulator. */
#ifndef STC_KERNEL_H
#define STC_KERNEL_H
#include "ir/launch_tokens.h"

enum { KERNEL_OPERANDS = 32 }; /* at most: as many types the text of a kernel can tell apart */

struct loop {
	int64_t extent;
	bool reduction;
	/* NULL: always `extent` points; else points beyond the count do not exist */
	const struct run_time_trip *run_time;
};

struct guard_range {
	int loop;
	int64_t low, high; /* active where low <= counter < high */
	/* 0 and 1 stand for the last turn instead, of a loop whose turns are counted at run time */
	bool last;
};

/* of the loops that walk an operand's rows, neighbours each of which goes on where the one
 * inside it ends */
struct row_predicate {
	/* [loops] in the number of a turn, Σ weight * counter; 0: of another loop */
	int64_t *weight;
	int64_t step;              /* rows of a turn; it is there if its first row is */
	const char *symbol;        /* the input that says how many rows there are */
	struct launch_tokens rows; /* by that */
};

struct access { /* how an operand, or the result, is addressed */
	int64_t offset;
	/* [loops]; 0: not used.  Guarded accesses: the address is only formed inside the guard */
	int64_t *stride;
	int guards;
	struct guard_range *guard;
	/* stream level: NULL, or the turns in which the operand has come; in others it is 0, and
	 * no word comes */
	const struct row_predicate *row_predicate;
	int index_operand;    /* -1, or the operand whose value selects a row (a gather) */
	int64_t index_stride; /* elements between rows */
	int64_t index_limit;  /* rows; the index is clamped to 0 … limit - 1 */
	/* elements between tiles of tokens, of a tiled kernel: in a turn of its first loop what
	 * later tiles have may be the own tile's; 0: it may not */
	int64_t causal_pitch;
};

enum node_kind { NODE_OPERAND, NODE_ACCUMULATOR, NODE_CONSTANT, NODE_OP };

struct node { /* one value of a body, in topological order */
	enum node_kind kind;
	enum op_code code;       /* NODE_OP: a row of ops.def with level B */
	const struct type *type; /* scalar */
	int argument[3];         /* NODE_OP: nodes before this one */
	/* operand number; integer constant; predicate of cmpf/cmpi; loop of INDEX; operand of
	 * ACTIVE */
	int64_t integer;
	double real; /* float constant */
};

struct body {
	/* result: index of the node that is the value; count 0: no body */
	int count, result;
	struct node *node;
};

struct kernel {
	const char *name; /* unique in the module, an identifier */
	int loops;
	struct loop *loop;
	struct access *operand; /* [op->operands] */
	struct access result;
	const struct type *type;  /* scalar type of the result and of the accumulator */
	struct body update, post; /* post.count 0: the accumulator itself */
	double init;              /* of reductions; integers too */
	/* a result at every point of the reduction, from the accumulator before it */
	bool scan;
	/* tensor level: its loops are listed in the order in which they should run; accumulators
	 * are kept where they say */
	bool ordered;
	/* tensor level: its first loop runs outermost, whatever is chosen for the others */
	bool tile_outermost;
	/* schedule (stream level) */
	bool scheduled;
	int64_t lanes; /* 1, or the extent of the last loop */
	/* 1, or the extent of the loop before it, of which just one is a reduction */
	int64_t row_unroll;
	int64_t partial_sums;    /* 1, or a power of two: sums that are formed in turn */
	int initiation_interval; /* initiation interval, cycles */
	/* of a reduction: update = combine(acc, term); OP_NONE if it has another form (then
	 * never a lane reduction) */
	enum op_code combine;
};

/* The initial value of a reduction over integers: as a double the largest one is one more. */
static inline int64_t kernel_init_integer(double init)
{
	return init >= 0x1p63 ? INT64_MAX : (int64_t)init;
}

struct op *kernel_new(struct module *module, struct location location, const char *name, int loops,
        int operands, struct value *const *operand, const struct type *result);
struct kernel *kernel_clone(struct module *module, const struct kernel *kernel, int operands);
bool kernel_has_reduction(const struct kernel *kernel);
/* The reduction that another one over the same numbers waits for, as a variance does for their
 * mean; NULL: `op` is no such. */
const struct op *kernel_mean_of(const struct op *op);
/* the outermost reduction loop of several points, lanes aside; -1: none */
int kernel_outer_reduction(const struct kernel *kernel);
/* the innermost reduction loop of more than one turn, else the innermost one, lanes aside; -1:
 * none */
int kernel_inner_reduction(const struct kernel *kernel);
/* returns its index; equal nodes are shared */
int body_add(struct module *module, struct body *body, struct node node);
/* copies nodes; operand j -> operand_map[j]; accumulator: node in `into` that replaces
 * ACCUMULATOR, or -1 to keep; returns the result's node */
int body_import(struct module *module, struct body *into, const struct body *from,
        const int *operand_map, int accumulator);
bool body_uses_operand(const struct body *body, int operand);
bool body_uses_accumulator(const struct body *body);
/* what it computes depends on where it is: an INDEX or ACTIVE */
bool body_uses_counters(const struct body *body);
bool body_uses_counter(const struct body *body, int loop);
/* an op of this code */
bool body_has(const struct body *body, enum op_code code);
void body_remove_dead(struct module *module, struct body *body);
/* read by post and not by update; of a scan none: its post is at every point */
bool kernel_is_post_operand(const struct kernel *kernel, int operand);
/* a reduction whose terms come in the order of the loops: a scan, or no combine(acc, term) */
bool kernel_is_sequential(const struct kernel *kernel);
/* update = combine(acc, term)? else OP_NONE; term: node */
enum op_code kernel_combine(const struct kernel *kernel, int *term);

/* The key under which a node of a body has its number, in text; KEY_COUNT: it has none. */
enum attr_key kernel_number_key(enum op_code code);
#endif
