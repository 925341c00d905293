/* A kernel that is being lowered to a process: what lower_kernel.c, lower_body.c and the files for
 * the forms of reductions share. */
#ifndef STC_LOWER_KERNEL_H
#define STC_LOWER_KERNEL_H
#include "converter/layer_carry.h"
#include "converter/drain_order.h"
#include "converter/consumer_buffer.h"

struct lowering {
	struct process p;
	const struct op *op;
	const struct kernel *kernel;
	int nest;               /* loops without those over lanes and unrolled rows */
	int64_t width;          /* lanes of the current words: the kernel's, or its unrolled rows */
	int64_t row;            /* the current one of the unrolled rows */
	struct value **counter; /* [nest]; NULL where the trip is 1 */
	struct value **operand; /* words popped */
	struct value **source;  /* FIFOs of the operands; NULL: not used yet */
	struct value *sink;     /* FIFO of the results; NULL: not used yet */
	/* of a register tile: FIFOs of whole tiles, each for some of the rows, or NULL; the array
	 * of each row's sums; the sums of each row before a term */
	int groups;
	struct value **tiles, **row_array, **row_sums;
	/* FIFO of partial sums that another process combines; NULL: none does */
	struct value *parts;
	/* condition under which operand words are popped, as not all iterations of
	 * double-buffered sums have a term; NULL: always */
	struct value *terms;
	struct value *accumulator;
	/* the buffer, if any, whose readers are served from the accumulators */
	struct accumulator_drain accumulator_drain;
	/* the loop-carried value, if any, that is drained to the next layer's readers before that
	 * layer's terms are added */
	struct layer_carry layer_carry;
	/* the converter, if any, in whose order the accumulators are drained */
	struct drain_order drain_order;
	/* the operand, if any, that is stored in `array` before the first iteration */
	struct consumer_buffer consumer_buffer;
	struct value *array;
};

/* ---- an iteration of the nest (lower_kernel.c) */

/* a process of that name, without loops */
struct lowering lowering_new(struct design *design, const struct op *op, const char *name);

enum taken { TAKE_ALL, TAKE_TERMS, TAKE_POST };
void take_operands(struct lowering *l, enum taken taken);
struct value *operand_fifo(struct lowering *l, int operand);
/* inside all guards; NULL: always */
struct value *inside_guards(struct lowering *l, const struct access *access);
/* all reduction loops at their first (or last) iteration; NULL: always */
struct value *at_reduction_end(struct lowering *l, bool last);
/* Is the loop at its last iteration? */
struct value *at_last(struct lowering *l, int loop);
/* The outermost reduction, from which on sums are stored between iterations; without one, the
 * number of loops. */
int first_reduction(const struct lowering *l);
/* number of the partial sum to which this term belongs; NULL: there is one */
struct value *part_of_sum(struct lowering *l);
/* one of the partial sums, or its initial value if it has no term */
struct value *sum_of_terms(
        struct lowering *l, struct value *sum, struct value *start, int64_t number);
const struct type *sum_word(struct lowering *l);
/* An array of running sums that only their own updates read. words: their number; distance: the
 * least number of iterations between two updates of one of them. */
struct value *running_sums(struct lowering *l, const char *name, int64_t words, int64_t distance);
/* Adds a term; the accumulator is the sum up to it. stored: the sum is stored between iterations.
 * `result`, if not NULL, is what a scan outputs here. */
void add_to_sum(struct lowering *l, bool stored, struct value **array, struct value **result);
/* Address of the accumulator: one word per iteration of the parallel loops inside the outermost
 * reduction, times the partial sums. */
struct value *accumulator_address(
        struct lowering *l, struct value *part, int64_t number, int64_t *words);
struct value *finished_sum(struct lowering *l);
void push_result(struct lowering *l, struct value *when, struct value *result);

/* ---- which of the forms below a kernel has (schedule_reductions.c) */

/* Can there be no term? Such a sum has a result too, which no last term comes with. */
bool reduction_may_be_empty(const struct kernel *kernel);
/* false after a diagnostic: the recorded schedule is not one that the kernel's loops allow */
bool check_reduction_schedule(struct design *design, const struct op *op);

/* ---- a body (lower_body.c) */

/* the type of a word of this scalar: of all lanes, or one */
const struct type *lanes_word(struct lowering *l, const struct type *scalar, bool lanes);
struct value *widen_word(struct lowering *l, struct value *value, const struct type *type);
bool lane_is_parallel(const struct kernel *kernel);
/* The value of the body's node `result` in this iteration, with all that it needs. */
struct value *lower_body(struct lowering *l, const struct body *body, int result);
struct value *tree_over(struct lowering *l, struct value **term, int64_t terms);
/* the sums of each row of a register tile, with this term */
struct value **tile_sums(struct lowering *l);
/* Of a scan over lanes the accumulators before each of them; *sum: that after the word. carried:
 * something comes before the word. */
struct value *scan_lanes(struct lowering *l, bool carried, struct value **sum);
/* acc = combine(acc, tree(term)) for a reduction over lanes, else the update as it is. */
struct value *updated_sum(struct lowering *l);

/* ---- double-buffered sums with a dynamic number of terms (reduction_dynamic.c) */

bool is_reduction_dynamic(const struct op *op);
/* One nest per tile, then one that outputs the sums of its last iteration. Returns the loops
 * left open. */
int lower_reduction_dynamic(
        struct lowering *l, int64_t *trip, const struct run_time_trip **run_time);

/* ---- partial sums that another process combines (reduction_split.c) */

/* Is there an outer loop around reductions only, with a fixed number of terms, the same for each
 * partial sum? */
bool is_reduction_split(const struct kernel *kernel, int64_t parts);
/* One nest over all terms, whose partial sums go to l->parts. Returns the loops left open. */
int lower_reduction_split(
        struct lowering *l, const int64_t *trip, const struct run_time_trip *const *run_time);
/* the process that combines them */
void lower_partial_sum_process(struct design *design, const struct op *op, struct value *parts);

/* ---- sums side by side along two loops (register_tile_nest.c) */

/* One nest that sends whole register tiles. Returns the loops left open. */
int lower_register_tile(
        struct lowering *l, const int64_t *trip, const struct run_time_trip *const *run_time);
/* the process that sends their rows one after the other */
void lower_tile_rows(struct design *design, const struct op *op, const struct lowering *l);

/* ---- double-buffered sums (reduction_double_buffered.c) */

/* the loop whose iterations alternate between two sets of sums; -1: none */
int double_buffered_loop(const struct op *op);
/* One nest, in which that loop has one more iteration. Returns the loops left open. */
int lower_double_buffered(struct lowering *l, int buffered_loop, int64_t *trip,
        const struct run_time_trip **run_time);
#endif
