/* The schedule of a kernel: its loop order, the loops that are split, lanes and row unroll; and
 * what follows from it: port types, initiation interval, partial sums. */
#ifndef STC_KERNEL_SCHEDULE_H
#define STC_KERNEL_SCHEDULE_H
#include "ir/kernel.h"
#include "platform/platform.h"

/* widest word of a stream; one wider than half of it takes two FIFOs (emit/hls_words.c) */
#define WORD_BITS 8192

struct schedule_part {
	int source;         /* loop of the unscheduled kernel */
	int64_t trip, step; /* the loop's index is the sum of step * index over its parts */
};

struct schedule {
	int parts;
	/* in schedule order, outermost first; the last ones are the lane parts if lanes > 1 */
	struct schedule_part *part;
	/* 1, or the trip counts of the last parts, multiplied: several become one lane loop */
	int64_t lanes;
	/* 1, or the trip counts of the parts before the lanes, multiplied, which are then unrolled
	 * too (kernel.h) */
	int64_t row_unroll;
	/* the parts of the lane loop cover more than its extent; a reduction ignores the excess */
	bool padded;
	/* NULL: it is no register tile; else [operands] the part of the schedule from which on
	 * words that are sent again are held on chip. Sums keep the source's order, but for
	 * trees. */
	const int64_t *held;
	/* with `held`: memory ports of each operand; 0: it comes through the loader that small
	 * operands share */
	const int64_t *ports;
};

/* How an operand reaches the kernel, which limits the orders that its schedule may use. */
enum operand_location {
	LOCATION_PACKED,    /* from memory, laid out offline in any order */
	LOCATION_ROW_MAJOR, /* from memory in row-major order (a state) */
	LOCATION_ON_CHIP,   /* from another kernel */
};

/* The default schedule of one kernel. operand_location: one per operand. is_only_stored: all
 * readers of the result are stores, so its padding may be dropped. most_lanes: limit of the
 * lanes. */
struct schedule schedule_kernel(struct module *module, const struct op *op,
        const enum operand_location *operand_location, bool is_only_stored, int64_t most_lanes);
/* The same for an ordered kernel: its loops keep the order in which they are listed. */
struct schedule schedule_listed(struct module *module, const struct op *op, int64_t most_lanes);
bool schedule_is_lane(const struct schedule *schedule, int part);
bool schedule_is_row(const struct schedule *schedule, int part);
/* the first lane part; the number of parts if there is none */
int schedule_first_lane(const struct schedule *schedule);
/* number of parts that are not unrolled: those before row unroll and lanes */
int schedule_loops(const struct schedule *schedule);
/* Are rows and lanes both parallel (kernel.h, register tile)? */
bool schedule_is_register_tile(const struct kernel *kernel, const struct schedule *schedule);
/* Is the lane loop a reduction, so that an adder tree sums up each word? */
bool schedule_is_tree(const struct kernel *kernel, const struct schedule *schedule);
/* Cycles from the accumulator to the update's result: the least distance between two updates of one
 * accumulator. */
int schedule_chain_latency(
        const struct platform *platform, struct arena *arena, const struct kernel *kernel);
/* DSPs of the operators of a body, for one lane. */
int64_t schedule_body_dsp(const struct platform *platform, const struct body *body);
/* The number of partial sums per result that hides the latency of the accumulation; 1 where loops
 * inside the reduction hide it already, or partial sums do not pay. */
int64_t schedule_partial_sums(
        const struct kernel *kernel, const struct schedule *schedule, int latency);
/* Cycles of a launch in which the pipeline is empty because a nest of its own combines the
 * partial sums of a result: the last term and an adder tree each time. exact: also counts the
 * adder tree of a word and the iterations over several sums, for searches that compare times to
 * about a percent. */
int64_t schedule_drain_cycles(
        const struct kernel *kernel, const struct schedule *schedule, int latency, bool exact);
/* Levels of a binary adder tree over so many operands. */
int64_t schedule_tree_levels(int64_t numbers);
/* Cycles to combine `sums` results of `parts` partial sums each: the last word passes its adder
 * tree and an accumulator, one iteration per result follows, and the last result passes the tree of
 * its parts. */
int64_t schedule_combine_cycles(int64_t lanes, int64_t parts, int64_t sums, int latency);
/* Is the reduction of a tiled kernel double-buffered (reduction_dynamic.c), so that the
 * partial sums of one result are combined while the terms of the next one arrive? That takes
 * exactly one reduction with a run-time trip count, or several loops around a fixed one. schedule
 * NULL: the kernel is scheduled already. */
bool schedule_is_dynamic_buffered(
        const struct kernel *kernel, const struct schedule *schedule, int64_t parts);
/* Of a scheduled kernel: copies of the partial sums; more than one where results are
 * double-buffered, so that the pipeline never drains. */
int64_t sum_buffers(const struct op *op);
int schedule_interval(const struct kernel *kernel, const struct schedule *schedule, int latency);
/* Are results of the kernel interleaved, because its terms have to be added in their order? Those
 * of language models are where a launch is one token. */
bool schedule_needs_interleaving(const struct op *op);
/* The schedule with the parallel loop directly outside the reductions moved inside them, so that
 * several sums are interleaved; false where there is no such loop, or the search for loop orders
 * (choose_loop_orders.c) may not move it. */
bool schedule_interleaved(struct arena *arena, const struct kernel *kernel,
        const struct schedule *schedule, struct schedule *interleaved);
/* Words of an operand that the kernel pops in one run of its loops. */
int64_t schedule_words(const struct kernel *kernel, const struct schedule *schedule, int operand);
/* A scheduled copy of the kernel's payload. */
struct kernel *schedule_apply(struct module *module, const struct platform *platform,
        const struct kernel *kernel, int operands, const struct schedule *schedule);
/* The type of the port of operand j (-1: the result) for a tensor of type `tensor`; NULL: it has
 * none under this schedule. kernel: unscheduled. row_predicate: of schedule_row_predicate, or
 * NULL. */
const struct type *schedule_port_type(struct module *module, const struct kernel *kernel,
        const struct schedule *schedule, int operand, const struct type *tensor,
        const struct row_predicate *row_predicate);
/* The iterations, by the parts of the schedule, in which an operand that is zero-padded to whole
 * row unrolls has rows that exist; NULL: all rows exist. */
const struct row_predicate *schedule_row_predicate(
        struct arena *arena, const struct op *op, const struct schedule *schedule, int operand);
/* The run-time trip counts of these iterations, of tiles and of rows in a tile; returns how
 * many. */
int schedule_token_counts(struct arena *arena, const struct row_predicate *row_predicate,
        const struct run_time_trip **count);
/* The row-major order of the tensor in words as `some` has, padded along `axis` in the iterations
 * of the predicate alone. */
const struct type *schedule_padded_type(struct module *module, const struct type *some,
        const struct type *tensor, int axis, const struct row_predicate *row_predicate);
/* The data dimension of the tensor along which a loop of that stride and extent runs, or -1 if it
 * does not stay inside one; coefficient: the loop's step in that dimension. */
int schedule_data_dim(
        const struct type *tensor, int64_t stride, int64_t extent, int64_t *coefficient);
/* Has every port a type under this schedule? */
bool schedule_fits(struct module *module, const struct op *op, const struct schedule *schedule);
#endif
