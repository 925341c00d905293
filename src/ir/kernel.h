/* A kernel: a perfect nest of loops over linear addresses with a scalar body and one result.
 *
 *     for every point of the loops, outermost first:
 *         x[j] = operand j at offset + Σ stride[l] * counter[l] (+ index value * index_stride),
 *                if inside its guards, else 0
 *     without reduction loops:
 *         result[…] = update(x)
 *     with reduction loops:
 *         acc = init at the first reduction point of each result element
 *         acc = update(x, acc) at every reduction point
 *         result[…] = post(x, acc) after the last one; with no reduction points post(x, init)
 *
 * Scan: a reduction with `scan` gives a result at every point, result[…] = post(x, acc before the
 * update of that point), and the result's address depends on the reduction loops. Over lanes, acc
 * is what came before the word, combined with the lanes before this one. In all other
 * reductions post reads only operands and counters that do not depend on reduction loops.
 *
 * Addresses count elements of the root value in row-major order.
 *
 * Loop order: at tensor level the order of the loops means nothing, unless `ordered`. At stream
 * level (`scheduled`) the loops are in schedule order. If lanes > 1, all points of the last loop,
 * the lane loop, run in one iteration. If row_unroll > 1, the loop before the lane loop is unrolled
 * too. Are both parallel, they are a *register tile*: row_unroll x lanes sums side by side, whose
 * result is sent row by row. Is one of the two a reduction, either row_unroll sums are formed in
 * parallel, or each lane sums row_unroll terms by a tree.
 * A loop that is unrolled may stand for several of the tensor level, as the taps of a window: then
 * its strides only tell which words it moves in.
 *
 * A reduction over lanes computes acc = combine(acc, tree over the lanes of the term), where update
 * = combine(acc, term); the tree pairs neighbors: (t0·t1)·(t2·t3) … If partial_sums > 1, the terms
 * go round-robin to that many partial sums: the counter of kernel_inner_reduction modulo
 * partial_sums selects one. Each starts with init, and at the end the same tree over them gives the
 * accumulator. */
#ifndef STC_KERNEL_H
#define STC_KERNEL_H
#include "ir/launch_tokens.h"

/* maximum operands; the text of a kernel can distinguish that many types */
enum { KERNEL_OPERANDS = 32 };
/* the same of a sequential nest, for operands and for results */
enum { SEQUENTIAL_SEGMENTS = 32 };

struct loop {
	int64_t extent;
	bool reduction;
	/* NULL: always `extent` points; else points beyond the run-time count do not exist */
	const struct run_time_trip *run_time;
};

struct guard_range {
	int loop;
	int64_t low, high; /* active where low <= counter < high */
	/* low 0 and high 1 mean the last iteration instead, of a loop with a run-time trip count */
	bool last;
};

/* Condition under which an operand is read when the number of tokens is a run-time value: the
 * iteration's first row must be below that number. The row is iteration * step, where iteration is
 * a weighted sum of the counters of neighboring loops over the operand's rows, the innermost of
 * weight 1. */
struct row_predicate {
	/* [loops] weight of each counter in the iteration number; 0: not a loop over rows */
	int64_t *weight;
	int64_t step; /* rows per iteration; the operand is read if the first of them exists */
	const char *symbol;        /* name of the input that holds the number of rows */
	struct launch_tokens rows; /* the tokens that this input counts */
};

struct access { /* address of an operand, or of the result */
	int64_t offset;
	/* [loops], in elements; 0: does not depend on that loop. With guards, addresses are only
	 * formed inside them */
	int64_t *stride;
	int guards;
	struct guard_range *guard;
	/* stream level: NULL, or the iterations in which a word of the operand arrives; in all
	 * others the operand is 0 and no word is read */
	const struct row_predicate *row_predicate;
	int index_operand; /* -1, or the operand whose value selects a row of this one (a gather) */
	int64_t index_stride; /* elements between rows */
	int64_t index_limit;  /* rows; the index is clamped to 0 … limit - 1 */
	/* Elements between token tiles of a causally masked operand, else 0. In iteration t of the
	 * first loop, tiles after tile t are masked and may hold any finite values, so a CAUSAL
	 * converter sends tile t in their place. */
	int64_t causal_pitch;
};

enum node_kind { NODE_OPERAND, NODE_ACCUMULATOR, NODE_CONSTANT, NODE_OP };

struct node { /* one value of a body, in topological order */
	enum node_kind kind;
	enum op_code code;       /* NODE_OP: a row of ops.def with level B */
	const struct type *type; /* scalar */
	int argument[3];         /* NODE_OP: indices of earlier nodes */
	/* by kind: operand number, integer constant, predicate of CMPF and CMPI, loop of INDEX,
	 * operand of ACTIVE */
	int64_t integer;
	double real; /* float constant */
};

struct body {
	/* result: index of the node that is the body's value; count 0: no body */
	int count, result;
	struct node *node;
};

/* Cycles between iterations of a kernel without loops, which has one: so its operations share
 * operators. */
enum { SCALAR_INTERVAL = 32 };

struct kernel {
	const char *name; /* unique in the module, an identifier */
	int loops;
	struct loop *loop;
	struct access *operand; /* [op->operands] */
	struct access result;
	const struct type *type;  /* scalar type of result and accumulator */
	struct body update, post; /* post.count 0: the accumulator itself */
	double init;              /* initial accumulator of a reduction, also of integers */
	/* a result at every reduction point, from the accumulator before it */
	bool scan;
	/* tensor level: loops run in the order in which they are listed */
	bool ordered;
	/* tensor level: the first loop runs outermost; the order of the others is free */
	bool tile_outermost;
	/* schedule (stream level): loops are in schedule order */
	bool scheduled;
	int64_t lanes; /* 1, or the extent of the last loop */
	/* 1, or the extent of the loop before the lane loop; at most one of the two is a
	 * reduction */
	int64_t row_unroll;
	int64_t partial_sums; /* 1, or a power of two: partial sums that take terms round-robin */
	int initiation_interval; /* cycles between iterations */
	/* the same of the nest that combines partial sums; above 1 it is one of its own, in the
	 * kernel's process */
	int combine_interval;
	/* of a reduction, the op with update = combine(acc, term); OP_NONE if update has another
	 * form (then the lane loop is no reduction) */
	enum op_code combine;
};

/* How a scheduled kernel adds up its results and sends them. */
enum reduction_schedule {
	REDUCTION_NONE,        /* no reduction: a result in every iteration */
	REDUCTION_NEST,        /* one nest: the last term of a result sends it */
	REDUCTION_DRAIN_AFTER, /* a nest adds terms, a short one after it finishes the results */
	/* partial sums of a result are combined while the next one's terms come, in one nest … */
	REDUCTION_DOUBLE_BUFFERED,
	REDUCTION_DYNAMIC, /* … or in one nest a tile, for a run-time number of terms … */
	REDUCTION_SPLIT,   /* … or by a second process */
	REDUCTION_DRAINED, /* all results are held to the end and drained in the readers' order */
	REDUCTION_SCHEDULES
};
extern const char *const reduction_schedule_name[REDUCTION_SCHEDULES];
/* What schedule_reductions recorded; REDUCTION_SCHEDULES: nothing. */
enum reduction_schedule reduction_schedule_of(const struct op *op);

/* The initial value of an integer reduction. INT64_MAX as a double rounds up by one, so it
 * saturates. */
static inline int64_t kernel_init_integer(double init)
{
	return init >= 0x1p63 ? INT64_MAX : (int64_t)init;
}

struct op *kernel_new(struct module *module, struct location location, const char *name, int loops,
        int operands, struct value *const *operand, const struct type *result);
struct kernel *kernel_clone(struct module *module, const struct kernel *kernel, int operands);
bool kernel_has_reduction(const struct kernel *kernel);
/* Does a parallel loop move one operand and not another, so that results side by side share what
 * they read? */
bool kernel_shares_operands(const struct kernel *kernel, int operands);
/* Do sums of neighbouring results share elements of an operand, as under the windows of a
 * convolution?  So some reduction takes the steps of a parallel loop, and reaches the next one. */
bool kernel_has_window(const struct kernel *kernel, int operands);
/* Of a scheduled kernel: are rows and lanes both parallel loops, which the result depends on? */
bool kernel_is_register_tile(const struct kernel *kernel);
/* The reduction whose result `op` takes as its second operand while reducing the same first
 * operand, as a variance takes the mean. NULL if `op` has not this form. */
const struct op *kernel_mean_of(const struct op *op);
/* the outermost sequential reduction loop of more than one point; -1: none */
int kernel_outer_reduction(const struct kernel *kernel);
/* Lists the parallel loops in `order` [loops], those of far elements of the result first; returns
 * their number. */
int kernel_parallel_order(const struct kernel *kernel, int *order);
/* the innermost sequential reduction loop of more than one iteration, else the innermost one; -1:
 * none */
int kernel_inner_reduction(const struct kernel *kernel);
/* Do two nodes, as body_add has made them, compute the same from the same nodes? */
bool node_same(const struct node *left, const struct node *right);
/* adds a node unless an equal one exists; returns its index */
int body_add(struct module *module, struct body *body, struct node node);
/* Gives the body nodes of its own, with memory for so many more; body_append adds one of these as
 * body_add does, without a copy of the others. */
void body_reserve(struct module *module, struct body *body, int count);
int body_append(struct body *body, struct node node);
/* copies the nodes of `from`; operand j becomes operand_map[j]; accumulator: node of `into` that
 * replaces ACCUMULATOR, or -1 to keep it. Returns the node of the result */
int body_import(struct module *module, struct body *into, const struct body *from,
        const int *operand_map, int accumulator);
bool body_uses_operand(const struct body *body, int operand);
int body_arguments(const struct node *node);
/* Is the accumulator needed for the value of this node?  Bodies of more than 4,096 nodes count as
 * if it were. */
bool body_depends_on_accumulator(const struct body *body, int at);
bool body_uses_accumulator(const struct body *body);
/* its value depends on counters: it has an INDEX or ACTIVE */
bool body_uses_counters(const struct body *body);
bool body_uses_counter(const struct body *body, int loop);
/* it has an op of this code */
bool body_has(const struct body *body, enum op_code code);
void body_remove_dead(struct module *module, struct body *body);
/* Is the operand read by post only? Never of a scan, whose post runs at every point. */
bool kernel_is_post_operand(const struct kernel *kernel, int operand);
/* a reduction whose terms must be combined in loop order: a scan, or one without combine(acc,
 * term) */
bool kernel_is_sequential(const struct kernel *kernel);
/* the op of update = combine(acc, term) and the node of its term; OP_NONE if update has another
 * form */
enum op_code kernel_combine(const struct kernel *kernel, int *term);
/* the same, of scans too */
enum op_code kernel_update_combine(const struct kernel *kernel, int *term);

/* The attribute that holds `integer` of a node of this op in the text; KEY_COUNT if it has none. */
enum attr_key kernel_number_key(enum op_code code);
#endif
