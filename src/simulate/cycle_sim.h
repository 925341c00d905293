/* Time simulator of hardware level: exact cycles of launches under the schedule model below,
 * without data.
 *
 * A loop nest whose outer bodies only hold the next loop, with a pipelined innermost body, is
 * one pipelined loop.  Every access to a FIFO or a memory port has a stage: the latencies of the
 * operations before it (predict/timing.h).  Iterations enter every `interval` cycles where
 * nothing blocks.
 *   style stp: all stages move together; one access that cannot be made stops them all, also
 *   those that hold words for others.
 *   style flp: stages move on as long as there is room ahead of them, so what is inside flows
 *   out although nothing enters. A loop ends when its last iteration has left it; of an unbroken
 *   process (ir/datapath_sharing.h) when that has entered, but no sooner than that the next
 *   loop's first one stays behind it.  Other loops and operations follow one another. A word
 *   pushed in cycle t can be popped in t + 1, its place is free in the cycle after the pop; a
 *   depth is never exceeded. Memory: cycle_memory.c.  Conditions are evaluated from loop
 *   counters; one that depends on data is refused. What moves a design on to the next token
 *   (predict/feedback.h) comes behind the last process of a launch. Launches: the next one
 *   begins when the last process of the one before has ended, `gap` cycles later; with `overlap`
 *   each process begins again as soon as it has ended. */
#ifndef STC_CYCLE_SIM_H
#define STC_CYCLE_SIM_H
#include "platform/platform.h"
#include <signal.h>

struct cycle_network; /* a module made ready; belongs to the arena it was opened in */

enum cycle_cause { CAUSE_NONE, CAUSE_INPUT, CAUSE_OUTPUT, CAUSE_MEMORY, CAUSES };

struct cycle_options {
	/* where the result lies; NULL: lists of figures alone, which stay in the network until
	 * the next run: no samples, path, waits or texts */
	struct arena *arena;
	int64_t budget;   /* most events; 0: any number */
	int64_t launches; /* 0: one */
	int64_t gap;      /* cycles between two launches */
	bool overlap;
	const int64_t *depth; /* [channels], 0: unbounded; NULL: as built */
	int samples;          /* points over time; 0: none */
	bool path;            /* the critical path is wanted */
	bool remedy;          /* deadlock: how deep each full FIFO would have to be is wanted */
	void (*progress)(void *user, int64_t events, int64_t of);
	void *user;
	const volatile sig_atomic_t *stop; /* set: end soon with what is known; may be NULL */
};

struct cycle_process_result {
	const char *name;
	int64_t end; /* cycle in which it ended; otherwise: up to which it came */
	/* cycles from the beginning to the end of its part in a launch, over all launches */
	int64_t active;
	/* of them it waited for words or blocks, for room, for memory; otherwise it was busy */
	int64_t input, output, memory;
	bool ended;
	/* [samples] cycles that it waited, by cause; CAUSE_NONE: that it was not active */
	const int64_t *waited[CAUSES];
};

struct cycle_channel_result {
	const char *name;
	bool blocks;
	int64_t depth;            /* 0: unbounded */
	int64_t most;             /* words or blocks it held at once */
	int64_t words;            /* that went through */
	int writer, reader;       /* processes; -1: nobody */
	const int64_t *occupancy; /* [samples] most that it held */
};

struct cycle_port_result {
	const char *name;
	int number;           /* of main's argument */
	int process, channel; /* channel of the memory */
	bool write;
	int64_t bytes;
	const int64_t *moved; /* [samples] bytes */
};

struct cycle_wait { /* a process that waits for ever */
	int process, channel;
	bool room;     /* for room, not for a word */
	int64_t since; /* cycle */
	int64_t depth; /* of the channel */
	/* room: the least depth of this channel with which, the others as they are, all
	 * processes end; 0: none does, or it was not asked for */
	int64_t needed;
};

/* of the critical path: the process whose work or waiting for memory nothing else hides */
struct cycle_path_segment {
	int process;
	int64_t begin, end;   /* cycles */
	int64_t busy, memory; /* of them; the rest passed between processes */
	/* channel through which the path goes on to the next segment; -1: the last one */
	int via;
};

struct cycle_result {
	int64_t cycles; /* until the last process of the last launch ends */
	/* cycles that one more launch adds: (cycles - those of the first launch) / (launches -
	 * 1); of one launch: cycles */
	int64_t steady;
	int64_t first_output; /* cycle of the first write to memory; -1: none */
	/* iterations of pipelined loops, all launches; what a budget counts */
	int64_t events;
	int64_t launches; /* that ended */
	int processes, channels, ports;
	struct cycle_process_result *process; /* in the order of calls */
	struct cycle_channel_result *channel; /* in the order in which main makes them */
	/* in the order of main's arguments that some process uses */
	struct cycle_port_result *port;
	int samples;
	int64_t sample_cycles; /* between two points */
	int segments;
	struct cycle_path_segment *segment; /* in the order of time; of the last launch */
	int64_t *on_path;                   /* [processes] cycles of the path, if it was wanted */
	/* the first `cycle` waits are those of one cycle (or chain), in order; then the other
	 * processes */
	int waits, cycle;
	struct cycle_wait *wait;
	const char *deadlock; /* the cycle of waits as text; NULL: all ended */
};

enum cycle_outcome { CYCLE_DONE, CYCLE_DEADLOCK, CYCLE_OVER_BUDGET, CYCLE_STOPPED, CYCLE_REFUSED };

struct extent_value; /* predict/timing.h */

/* NULL: a diagnostic in module->diag says why.  Uses the scratch fields of the module's values.
 * Run-time extents are at their most. */
struct cycle_network *cycle_open(
        struct arena *arena, const struct platform *platform, const struct module *module);
/* The same at given extents; those that are not listed are at their most. */
struct cycle_network *cycle_open_at(struct arena *arena, const struct platform *platform,
        const struct module *module, int extents, const struct extent_value *extent);
int cycle_channels(const struct cycle_network *network);
const char *cycle_channel_name(const struct cycle_network *network, int channel);
int64_t cycle_channel_depth(const struct cycle_network *network, int channel); /* as built */
int64_t cycle_events(const struct cycle_network *network);                     /* of one launch */
/* Any number of times; each begins clean.  Over budget: nothing is simulated, only
 * result->events is filled. */
enum cycle_outcome cycle_run(struct cycle_network *network, const struct cycle_options *options,
        struct cycle_result *result);
/* cycles of its part in which it did not wait */
int64_t cycle_busy(const struct cycle_process_result *process);
/* samples up to the end of the run; 0: none */
int cycle_points(const struct cycle_result *result);
/* Opens and runs once: one launch, as built. */
enum cycle_outcome cycle_simulate(struct arena *arena, const struct platform *platform,
        const struct module *module, int64_t budget, struct cycle_result *result);
#endif
