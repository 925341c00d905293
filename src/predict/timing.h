/* Closed-form time of a hardware-level design: processes never stall, and wait for each other only
 * where data does. A pipelined loop takes II (trips - 1) + depth cycles; a nest in which each outer
 * body only holds the next loop counts as one such loop; other loops add up. */
#ifndef STC_TIMING_H
#define STC_TIMING_H
#include "predict/resource.h"

struct extent_value { /* value of an input that bounds loops */
	const char *symbol;
	int64_t value;
};

struct extent_list { /* those that are not listed have their maximum */
	int count;
	const struct extent_value *value; /* [count] */
};

#define LOOP_CYCLES 1 /* to enter and leave a loop */
/* from the address of a word in an on-chip memory to the word, and to store a word */
#define ARRAY_LOAD_CYCLES 2
#define ARRAY_STORE_CYCLES 1
/* A word of a memory that is updated in each iteration of a loop takes so many cycles more than the
 * update's operators. */
#define ARRAY_UPDATE_CYCLES (ARRAY_LOAD_CYCLES + ARRAY_STORE_CYCLES)
#define PROCESS_CYCLES 2 /* to start and end a process */

struct process_time {
	int64_t busy;        /* cycles of one launch without waiting */
	int64_t multiplies;  /* multiplications per launch, without those of addresses */
	int64_t multipliers; /* multiplications it can do per cycle, rounded up */
	double memory_bytes; /* bytes through its memory ports */
	bool source;         /* reads memory, and no process sends it words */
};

struct design_time {
	struct process_time *process; /* in the order of design_cost */
	int longest;                  /* the busiest process */
	int64_t least;                /* its busy cycles, a lower bound of any launch */
	/* upper bound: the longest chain of processes, one after the other */
	int64_t most;
	int64_t multiplies, multipliers;
	double memory_bytes;
};

/* Cycles of the longest chain of processes, one after the other; sets process->source. */
int64_t longest_chain(struct arena *arena, const struct platform *platform,
        const struct design_cost *cost, struct process_time *process);
/* The only loop of a block that does nothing else except constants and addresses, so that both
 * flatten into one pipeline. NULL if there is other work, or the loop is a run (port_run.h). */
struct op *timing_only_loop(const struct block *block);
/* The input that holds the run-time extent of a dim, from its entry of stream.dims. NULL: the dim
 * is static. */
const char *timing_dim_symbol(const struct attr *dim);
/* Of a launch at the given run-time extents. */
struct design_time design_time(struct arena *arena, const struct platform *platform,
        const struct module *module, const struct design_cost *cost, struct extent_list extents);
/* false: the symbol is not listed, and *value stays unchanged */
bool timing_extent(
        const char *symbol, int extents, const struct extent_value *extent, int64_t *value);
/* The same, in the module of op; of a sliding window, the mean over its layers. */
bool timing_mean_extent(const struct op *op, const char *symbol, int extents,
        const struct extent_value *extent, int64_t *value);
/* Reads the attribute stream.run_time of a loop, or of the op that computes a trip count: `times`
 * the count of *trip. false: it has none. */
bool timing_run_time(const struct op *op, struct run_time_trip *trip, int64_t *times);
/* All symbols that bound loops, each with its maximum useful value; returns their number. Symbols
 * of sliding windows are listed too: FIFOs sized for their maximum suffice for each layer. */
int timing_extents(struct arena *arena, const struct module *module, struct extent_value **extent);
/* The run-time trip count of a loop, or of the op that computes one, at given extents (others have
 * their maximum). -1: it has none. Where sliding windows (ir/sliding_window.h) differ between
 * layers it is the mean, unless their own symbol is listed. */
int64_t timing_run_time_at(const struct op *op, int extents, const struct extent_value *extent);
/* Trip count of a loop, constant or at given extents. */
int64_t timing_trips(const struct op *loop, int extents, const struct extent_value *extent);
/* Most trips of a loop, whatever the run-time extents and in whatever layer. */
int64_t timing_most_trips(const struct op *loop);
/* Stages of a pipelined loop with this body: the longest latency path through it. */
int64_t timing_depth(const struct platform *platform, const struct block *body);
/* latency in cycles from operands to result */
int operation_latency(const struct platform *platform, const struct op *op);
/* The cycle in which the last operand of an op is ready, where value->id of each value of the op's
 * block is the cycle in which it is ready. Values from outside the block are ready at 0. */
int64_t operands_ready(const struct op *op);
#endif
