/* Time simulator of hardware level: exact cycles of launches under the schedule model below, without data.
 *
 * A loop nest whose outer bodies only hold the next loop, with a pipelined innermost body, is one pipelined loop.  Every access to a FIFO or a memory port has a stage:
 * the latencies of the operations before it (predict/timing.h).  Iterations enter every `interval` cycles where nothing blocks.
 *   style stp: all stages move together; one access that cannot be made stops them all, also those that hold words for others.
 *   style flp: stages move on as long as there is room ahead of them, so what is inside flows out although nothing enters.
 * A loop ends when its last iteration has left it; of an unbroken process (ir/nest.h) when that has entered, but no sooner than that the next loop's first one stays behind it.  Other loops and operations follow one another.
 * A word pushed in cycle t can be popped in t + 1, its place is free in the cycle after the pop; a depth is never exceeded.
 * Memory: flow_memory.c.  Conditions are evaluated from loop counters; one that depends on data is refused.
 * What moves a design on to the next token (predict/feedback.h) comes behind the last process of a launch.
 * Launches: the next one begins when the last process of the one before has ended, `gap` cycles later; with `overlap` each process begins again as soon as it has ended. */
#ifndef STC_FLOW_H
#define STC_FLOW_H
#include "platform/platform.h"
#include <signal.h>

struct flow_network;          /* a module made ready; belongs to the arena it was opened in */

enum flow_cause { CAUSE_NONE, CAUSE_INPUT, CAUSE_OUTPUT, CAUSE_MEMORY, CAUSES };

struct flow_options {
	struct arena *arena;      /* where the result lies; NULL: lists of figures alone, which stay in the network until the next run: no samples, path, waits or texts */
	int64_t budget;           /* most events; 0: any number */
	int64_t launches;         /* 0: one */
	int64_t gap;              /* cycles between two launches */
	bool overlap;
	const int64_t *depth;     /* [channels], 0: unbounded; NULL: as built */
	int samples;              /* points over time; 0: none */
	bool path;                /* the critical path is wanted */
	bool remedy;              /* deadlock: how deep each full FIFO would have to be is wanted */
	void (*progress)(void *user, int64_t events, int64_t of);
	void *user;
	const volatile sig_atomic_t *stop; /* set: end soon with what is known; may be NULL */
};

struct flow_process_result {
	const char *name;
	int64_t end;              /* cycle in which it ended; otherwise: up to which it came */
	int64_t active;           /* cycles from the beginning to the end of its part in a launch, over all launches */
	int64_t input, output, memory;     /* of them it waited for words or blocks, for room, for memory; otherwise it was busy */
	bool ended;
	const int64_t *waited[CAUSES];     /* [samples] cycles that it waited, by cause; CAUSE_NONE: that it was not active */
};

struct flow_channel_result {
	const char *name;
	bool blocks;
	int64_t depth;            /* 0: unbounded */
	int64_t most;             /* words or blocks it held at once */
	int64_t words;            /* that went through */
	int writer, reader;       /* processes; -1: nobody */
	const int64_t *held;      /* [samples] most that it held */
};

struct flow_port_result {
	const char *name;
	int number;               /* of main's argument */
	int process, channel;     /* channel of the memory */
	bool write;
	int64_t bytes;
	const int64_t *moved;     /* [samples] bytes */
};

struct flow_wait {            /* a process that waits for ever */
	int process, channel;
	bool room;                /* for room, not for a word */
	int64_t since;            /* cycle */
	int64_t depth;            /* of the channel */
	int64_t needed;           /* room: the least depth of this channel with which, the others as they are, all processes end; 0: none does, or it was not asked for */
};

struct flow_segment {         /* of the critical path: the process whose work or waiting for memory nothing else hides */
	int process;
	int64_t begin, end;       /* cycles */
	int64_t busy, memory;     /* of them; the rest passed between processes */
	int via;                  /* channel through which the path goes on to the next segment; -1: the last one */
};

struct flow_result {
	int64_t cycles;           /* until the last process of the last launch ends */
	int64_t steady;           /* cycles that one more launch adds: (cycles - those of the first launch) / (launches - 1); of one launch: cycles */
	int64_t first_output;     /* cycle of the first write to memory; -1: none */
	int64_t events;           /* iterations of pipelined loops, all launches; what a budget counts */
	int64_t launches;         /* that ended */
	int processes, channels, ports;
	struct flow_process_result *process;       /* in the order of calls */
	struct flow_channel_result *channel;       /* in the order in which main makes them */
	struct flow_port_result *port;             /* in the order of main's arguments that some process uses */
	int samples;
	int64_t sample_cycles;    /* between two points */
	int segments;
	struct flow_segment *segment;      /* in the order of time; of the last launch */
	int64_t *on_path;         /* [processes] cycles of the path, if it was wanted */
	int waits, cycle;         /* the first `cycle` waits are those of one cycle (or chain), in order; then the other processes */
	struct flow_wait *wait;
	const char *deadlock;     /* the cycle of waits as text; NULL: all ended */
};

enum flow_outcome { FLOW_DONE, FLOW_DEADLOCK, FLOW_OVER_BUDGET, FLOW_STOPPED, FLOW_REFUSED };

struct extent_value;          /* predict/timing.h */

/* NULL: a diagnostic in module->diag says why.  Uses the scratch fields of the module's values.  Run-time extents are at their most. */
struct flow_network *flow_open(struct arena *arena, const struct platform *platform, const struct module *module);
/* The same at given extents; those that are not listed are at their most. */
struct flow_network *flow_open_at(struct arena *arena, const struct platform *platform, const struct module *module, int extents, const struct extent_value *extent);
int flow_channels(const struct flow_network *network);
const char *flow_channel_name(const struct flow_network *network, int channel);
int64_t flow_channel_depth(const struct flow_network *network, int channel);       /* as built */
int64_t flow_events(const struct flow_network *network);           /* of one launch */
/* Any number of times; each begins clean.  Over budget: nothing is simulated, only result->events is filled. */
enum flow_outcome flow_run(struct flow_network *network, const struct flow_options *options, struct flow_result *result);
int64_t flow_busy(const struct flow_process_result *process);      /* cycles of its part in which it did not wait */
int flow_points(const struct flow_result *result);         /* samples up to the end of the run; 0: none */
/* Opens and runs once: one launch, as built. */
enum flow_outcome flow_simulate(struct arena *arena, const struct platform *platform, const struct module *module, int64_t budget, struct flow_result *result);
#endif
