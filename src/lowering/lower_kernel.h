/* A kernel on its way to a process: what lower_kernel.c, lower_body.c and
 * lower_double_buffered.c share. */
#ifndef STC_LOWER_KERNEL_H
#define STC_LOWER_KERNEL_H
#include "converter/layer_carry.h"
#include "converter/drain_order.h"
#include "converter/consumer_buffer.h"

struct lowering {
	struct process p;
	const struct op *op;
	const struct kernel *kernel;
	int nest;               /* loops without the lane loop, and without the row loop */
	int64_t width;          /* lanes of the words at hand: the kernel's, or its rows */
	int64_t row;            /* of the rows that run at once, the one at hand */
	struct value **counter; /* [nest]; NULL where the trip is 1 */
	struct value **operand; /* words taken */
	struct value **source;  /* FIFOs that they are taken from; NULL: none has been taken */
	struct value *sink;     /* the FIFO of the results; NULL: none has been pushed */
	/* the FIFO of partial sums that another process puts together; NULL: none does */
	struct value *parts;
	struct value *terms; /* in turns: whether a term is added, or NULL: always */
	struct value *accumulator;
	/* no buffer, or one whose readers are served from the sums */
	struct accumulator_drain accumulator_drain;
	/* no loop, or the one whose next turn's readers are served from the sums, before that
	 * turn's are added up */
	struct layer_carry layer_carry;
	/* NULL converter, or one whose order the sums are given in */
	struct drain_order drain_order;
	/* the operand that is there as a whole before the first point, in the array */
	struct consumer_buffer consumer_buffer;
	struct value *array;
};

/* ---- a point of the nest (lower_kernel.c) */

/* Of a process of that name, which has no loops yet. */
struct lowering lowering_new(struct design *design, const struct op *op, const char *name);

enum taken { TAKE_ALL, TAKE_TERMS, TAKE_POST };
void take_operands(struct lowering *l, enum taken taken);
struct value *operand_fifo(struct lowering *l, int operand);
/* Inside all guards; NULL: always. */
struct value *inside_guards(struct lowering *l, const struct access *access);
/* All reduction counters at their first (or last) point; NULL: always. */
struct value *at_reduction_end(struct lowering *l, bool last);
/* Is the loop at its last point? */
struct value *at_last(struct lowering *l, int loop);
/* The loop from which on sums are kept between points: the outermost reduction; all loops:
 * nothing is kept. */
int first_reduction(const struct lowering *l);
/* Which of the partial sums this term belongs to; NULL: there is one. */
struct value *part_of_sum(struct lowering *l);
/* One of the partial sums, or, where it has no term, what it begins with. */
struct value *sum_of_terms(
        struct lowering *l, struct value *sum, struct value *start, int64_t number);
const struct type *sum_word(struct lowering *l);
/* One more term; the accumulator is what is summed up to it.  `result`, if it is not NULL,
 * becomes what a scan gives here. */
void add_to_sum(
        struct lowering *l, bool consumer_buffer, struct value **array, struct value **result);
struct value *finished_sum(struct lowering *l);
void push_result(struct lowering *l, struct value *when, struct value *result);

/* ---- a body (lower_body.c) */

/* What a word has of a scalar: the lanes at hand, or one. */
const struct type *lanes_word(struct lowering *l, const struct type *scalar, bool lanes);
struct value *widen_word(struct lowering *l, struct value *value, const struct type *type);
bool lane_is_parallel(const struct kernel *kernel);
/* What the body's node `result` is at this point, and what that needs. */
struct value *lower_body(struct lowering *l, const struct body *body, int result);
struct value *tree_over(struct lowering *l, struct value **term, int64_t terms);
/* acc = combine(acc, tree(term)) for a reduction over lanes, else the update as it is. */
struct value *updated_sum(struct lowering *l);

/* ---- sums of counted terms that take turns (lower_reduction_dynamic.c) */

bool is_reduction_dynamic(const struct op *op);
/* A nest for each tile, and one that gives its last point's sums.  Returns the loops opened. */
int lower_reduction_dynamic(
        struct lowering *l, int64_t *trip, const struct run_time_trip **run_time);

/* ---- partial sums of row after row (reduction_split.c) */

/* Rows of sums around reductions that alone stand inside, with a known number of terms, as many
 * for each part? */
bool is_reduction_split(const struct kernel *kernel, int64_t parts);
/* One nest of all rows, whose partial sums go to l->parts.  Returns the loops opened. */
int lower_reduction_split(
        struct lowering *l, const int64_t *trip, const struct run_time_trip *const *run_time);
/* The process that puts them together. */
void lower_partial_sum_process(struct design *design, const struct op *op, struct value *parts);

/* ---- sums that take turns (lower_double_buffered.c) */

/* The loop whose points take turns; -1: none. */
int double_buffered_loop(const struct op *op);
/* One nest, in which that loop has one point more.  Returns the loops opened. */
int lower_double_buffered(struct lowering *l, int buffered_loop, int64_t *trip,
        const struct run_time_trip **run_time);
#endif
