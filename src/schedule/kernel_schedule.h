/* Schedules of kernels: loop order, splits, lanes; and what follows from them: port types and
 * initiation interval. */
#ifndef STC_SCHEDULE_H
#define STC_SCHEDULE_H
#include "ir/kernel.h"
#include "platform/platform.h"

/* widest word of a stream; one that is wider than half of it takes two FIFOs (emit/hls_words.c) */
#define WORD_BITS 8192

struct schedule_part {
	int source;         /* loop of the unscheduled kernel */
	int64_t trip, step; /* its counter = Σ step * part counter */
};

struct schedule {
	int parts;
	/* schedule order, outermost first; the last one is the lane part if lanes > 1 */
	struct schedule_part *part;
	int64_t lanes;
	/* 1, or the trip of the part before the lanes, which then runs at once too (kernel.h) */
	int64_t row_unroll;
	/* the parts of the lane's loop cover more than its extent; a reduction drops the rest */
	bool padded;
};

/* How an operand reaches the kernel; decides what the schedule may ask of it. */
enum operand_location {
	LOCATION_PACKED,    /* from memory, laid out offline in any order */
	LOCATION_ROW_MAJOR, /* from memory in its natural order (a state) */
	LOCATION_ON_CHIP,   /* from another kernel */
};

/* The default schedule (docs/decisions/README.md).  location: one per operand.  is_only_stored:
 * all readers of the result are stores (its padding may be dropped). */
struct schedule schedule_kernel(struct module *module, const struct op *op,
        const enum operand_location *operand_location, bool is_only_stored, int64_t most_lanes);
/* The same for a kernel whose loops are listed in their order. */
struct schedule schedule_listed(struct module *module, const struct op *op, int64_t most_lanes);
bool schedule_is_lane(const struct schedule *schedule, int part);
bool schedule_is_row(const struct schedule *schedule, int part);
/* parts before those that run at once */
int schedule_loops(const struct schedule *schedule);
/* does a reduction over the lanes end in one number? */
bool schedule_is_tree(const struct kernel *kernel, const struct schedule *schedule);
/* Latency of what stands between the accumulator and the update's result; cycles between
 * iterations under that latency. */
int schedule_chain_latency(
        const struct platform *platform, struct arena *arena, const struct kernel *kernel);
/* So many partial sums let the accumulators be apart by the latency; 1 where they are so anyway,
 * or it does not pay. */
int64_t schedule_partial_sums(
        const struct kernel *kernel, const struct schedule *schedule, int latency);
/* Cycles of a launch in which a pipeline is empty because the partial sums of a point are put
 * together in a nest of their own: the last term and a tree of sums each time; told: with the
 * tree of a word's numbers and the turns of several sums, which count where times are told to a
 * hundredth. */
int64_t schedule_drain_cycles(
        const struct kernel *kernel, const struct schedule *schedule, int latency, bool told);
/* Adders one behind the other in a tree over so many numbers. */
int64_t schedule_tree_levels(int64_t numbers);
/* Of so many sums, each in so many parts: the last word's numbers go through their tree and into
 * a part; then each sum takes a turn, and the last one goes through the tree of its parts. */
int64_t schedule_combine_cycles(int64_t lanes, int64_t parts, int64_t sums, int latency);
/* Of a tiled kernel, one of whose reductions is counted at run time: are parts of a point's sums
 * put together while the next point's terms come (lower_reduction_dynamic.c)?  One reduction
 * that is counted, or some around a fixed one; inside it, what has sums of its own.  plan NULL:
 * of a scheduled kernel. */
bool schedule_is_dynamic_buffered(
        const struct kernel *kernel, const struct schedule *schedule, int64_t parts);
/* of a scheduled kernel: sets of partial sums; several where points take turns, so that the
 * pipeline never drains */
int64_t sum_buffers(const struct op *op);
int schedule_interval(const struct kernel *kernel, const struct schedule *schedule, int latency);
/* The plan with the parallel loop that stands around the reductions inside them, where there is
 * one and the search for orders (choose_loop_orders.c) may put it there: sums are formed in
 * turns then. */
bool schedule_interleaved(struct arena *arena, const struct kernel *kernel,
        const struct schedule *schedule, struct schedule *interleaved);
/* Words of an operand that a pass over the kernel's loops pops. */
int64_t schedule_words(const struct kernel *kernel, const struct schedule *schedule, int operand);
/* A scheduled copy of the kernel's payload. */
struct kernel *schedule_apply(struct module *module, const struct platform *platform,
        const struct kernel *kernel, int operands, const struct schedule *schedule);
/* The type of operand j's port (operand -1: the result) of a tensor of type `tensor`; kernel:
 * unscheduled; scalar: element type. */
/* there: of schedule_row_predicate, or NULL. */
const struct type *schedule_port_type(struct module *module, const struct kernel *kernel,
        const struct schedule *schedule, int operand, const struct type *tensor,
        const struct row_predicate *row_predicate);
/* Turns in which an operand of a kernel of tensor level, filled up with row_unroll of zeros, has
 * any that came, by the parts of the plan; NULL: all of it has to come. */
const struct row_predicate *schedule_row_predicate(
        struct arena *arena, const struct op *op, const struct schedule *schedule, int operand);
/* The loops that these turns are, of tiles and of turns in each; returns how many. */
int schedule_token_counts(struct arena *arena, const struct row_predicate *row_predicate,
        const struct run_time_trip **count);
/* The tensor's natural order in words as `some` has, filled up along `axis` in those turns
 * alone. */
const struct type *schedule_padded_type(struct module *module, const struct type *some,
        const struct type *tensor, int axis, const struct row_predicate *row_predicate);
/* The data dim of the tensor along which a loop of that stride and extent runs, or -1 if it does
 * not stay inside one; coefficient: its step there. */
int schedule_data_dim(
        const struct type *tensor, int64_t stride, int64_t extent, int64_t *coefficient);
/* Has every port a type under this plan? */
bool schedule_fits(struct module *module, const struct op *op, const struct schedule *schedule);
#endif
