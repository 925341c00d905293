/* Time simulator of hardware level: exact cycles of one launch under the schedule model below, without data.
 *
 * A loop nest whose outer bodies only hold the next loop, with a pipelined innermost body, is one pipelined loop.  Every access to a FIFO or a memory port has a stage:
 * the latencies of the operations before it (model/timing.h).  Iterations enter every `interval` cycles where nothing blocks.
 *   style stp: all stages move together; one access that cannot be made stops them all, also those that hold words for others.
 *   style flp: stages move on as long as there is room ahead of them, so what is inside flows out although nothing enters.
 * A loop ends when its last iteration has left it.  Other loops and operations follow one another.
 * A word pushed in cycle t can be popped in t + 1, its place is free in the cycle after the pop; a depth is never exceeded.
 * Memory: the latency once per word in the pipeline's depth; a channel's bandwidth is divided evenly among the ports on it.
 * Conditions are evaluated from loop counters; one that depends on data is refused. */
#ifndef STC_FLOW_H
#define STC_FLOW_H
#include "model/platform.h"

struct flow_process_result {
	const char *name;
	int64_t end;              /* cycle in which it ended; deadlock: up to which it came */
	int64_t input, output, memory;     /* cycles it waited for words or blocks, for room, for bandwidth; otherwise it was busy */
	bool ended;
};

struct flow_channel_result {
	const char *name;
	bool blocks;
	int64_t depth, most;      /* most: words or blocks it held at once */
	int64_t words;            /* that went through */
};

struct flow_result {
	int64_t cycles;           /* of the launch: the last process ends */
	int64_t first_output;     /* cycle of the first write to memory; -1: none */
	int64_t events;           /* iterations of pipelined loops; what a budget counts */
	int processes, channels;
	struct flow_process_result *process;       /* in the order of calls */
	struct flow_channel_result *channel;       /* in the order in which main makes them */
	const char *deadlock;     /* who waits for whom; NULL: all ended */
};

enum flow_outcome { FLOW_DONE, FLOW_DEADLOCK, FLOW_OVER_BUDGET, FLOW_REFUSED };

/* Over budget: nothing is simulated, only result->events is filled.  Refused: a diagnostic in module->diag says why. */
enum flow_outcome flow_simulate(struct arena *arena, const struct platform *platform, const struct module *module, int64_t budget, struct flow_result *result);
#endif
