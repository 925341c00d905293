/* First-order time of a hardware-level design: no stalls inside a process, none between
 * processes but those of the order of data. A pipelined loop takes II (trips - 1) + depth; a
 * nest whose outer bodies only hold the next loop is one such loop; other loops add up. */
#ifndef STC_TIMING_H
#define STC_TIMING_H
#include "predict/resource.h"

#define LOOP_CYCLES 1    /* entering and leaving a loop */
#define PROCESS_CYCLES 2 /* starting and ending a process */

struct process_time {
	int64_t busy;        /* cycles of one launch without waiting */
	int64_t multiplies;  /* products made in one launch, of numbers and not of addresses */
	int64_t multipliers; /* products it can make in a cycle, rounded up */
	double memory_bytes; /* over its ports */
	bool source;         /* reads memory, and no other process sends it words */
};

struct design_time {
	struct process_time *process; /* as in design_cost */
	int longest;                  /* the process that is busy longest */
	int64_t least;                /* its busy cycles: no schedule is faster */
	/* along the longest chain of processes, one after the other: a pipelined run is not
	 * slower */
	int64_t most;
	int64_t multiplies, multipliers;
	double memory_bytes;
};

struct design_time design_time(struct arena *arena, const struct platform *platform,
        const struct module *module, const struct design_cost *cost);
/* Cycles along the longest chain of processes; fills process->source. */
int64_t longest_chain(struct arena *arena, const struct platform *platform,
        const struct design_cost *cost, struct process_time *process);
/* The loop that is all a block does, constants and addresses aside: the two flatten into one
 * pipeline.  NULL if there is other work. */
struct op *timing_only_loop(const struct block *block);
/* The input that says how much of a dim there is: of an entry of stream.dims.  NULL: all of it. */
const char *timing_dim_symbol(const struct attr *dim);
struct extent_value { /* the value of a launch scalar that bounds loops */
	const char *symbol;
	int64_t value;
};

/* false: it is not listed, and *value stays */
bool timing_extent(
        const char *symbol, int extents, const struct extent_value *extent, int64_t *value);
/* The attribute stream.run_time of a loop, or of the operation that makes a run-time trip count,
 * `times` over; false: it has none. */
bool timing_run_time(const struct op *op, struct run_time_trip *trip, int64_t *times);
/* Every symbol that a loop is bound by, with the most that it is worth to count to; returns how
 * many.  Those of layers that look back are listed as well: at the most of all, FIFOs suffice
 * for each layer. */
int timing_extents(struct arena *arena, const struct module *module, struct extent_value **extent);
/* The run-time trip count of a loop, or of the operation that makes it, at given extents; those
 * that are not listed are at their most.  -1: it has none. Of layers that look back differently
 * far (ir/sliding_window.h) it is the mean, unless the symbol that they have in place of the
 * input is listed itself. */
int64_t timing_run_time_at(const struct op *op, int extents, const struct extent_value *extent);
/* Trips of a loop: at given extents where they are known at run time only. */
int64_t timing_trips(const struct op *loop, int extents, const struct extent_value *extent);
/* cycles from its operands to its result */
int operation_latency(const struct platform *platform, const struct op *op);
#endif
