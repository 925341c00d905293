/* Cycle simulator of the hardware level: exact cycles of launches, without data, under this model.
 *
 * Pipelines.  A loop nest whose outer bodies only hold the next loop, with a pipelined innermost
 * body, is one pipelined loop.  The stage of an access to a FIFO or a memory port is the sum of
 * the latencies before it (predict/timing.h).  Iterations enter every `interval` cycles unless
 * something blocks.
 *   style stp: all stages stall as one: an access that cannot be made stops every iteration.
 *   style flp: a stage advances while there is room after it, so the pipeline flushes although
 *   nothing enters.
 * A loop ends when its last iteration has left it.  In a rewinding process (ir/datapath_sharing.h)
 * it ends when that iteration has entered, and the next loop's first iteration follows without
 * overtaking it.  Other loops and operations run one after the other.
 * Channels.  A word pushed in cycle t can be popped in t + 1, or later if it crosses between dies
 * (predict/crossing.h); its slot is free in the cycle after the pop; a depth is never exceeded.
 * Memory: cycle_memory.c.
 * Conditions are evaluated from loop counters; one that depends on data is an error.
 * Launches.  One ends when its last process has ended and the token has been fed back
 * (predict/feedback.h); the next begins `gap` cycles later.  With `overlap` each process starts
 * its next launch as soon as it has ended. */
#ifndef STC_CYCLE_SIM_H
#define STC_CYCLE_SIM_H
#include "platform/platform.h"
#include "predict/images.h"
#include <signal.h>

struct cycle_network; /* a module made ready; belongs to the arena it was opened in */

enum cycle_cause { CAUSE_NONE, CAUSE_INPUT, CAUSE_OUTPUT, CAUSE_MEMORY, CAUSES };

struct cycle_options {
	/* where the result is allocated; NULL: only figures of processes, channels and ports,
	 * valid until the next run: no samples, path, waits or texts */
	struct arena *arena;
	int64_t budget;   /* most events; 0: any number */
	int64_t launches; /* 0: one */
	int64_t gap;      /* cycles between two launches */
	bool overlap;
	const int64_t *depth; /* [channels], 0: unbounded; NULL: as built */
	int samples;          /* points over time; 0: none */
	bool path;            /* find the critical path */
	bool remedy;          /* of a deadlock: find how deep each full FIFO has to be */
	void (*progress)(void *user, int64_t events, int64_t of);
	void *user;
	const volatile sig_atomic_t *stop; /* set: end soon with what is known; may be NULL */
};

struct cycle_process_result {
	const char *name;
	int64_t end; /* cycle in which it ended, or which it reached */
	/* cycles from its start to its end, summed over launches */
	int64_t active;
	/* of these, waiting for words or blocks, for space, for memory; busy in the others */
	int64_t input, output, memory;
	bool ended;
	/* [samples] cycles of waiting, by cause; CAUSE_NONE: cycles in which it was not active */
	const int64_t *waited[CAUSES];
};

struct cycle_channel_result {
	const char *name;
	bool blocks;
	int64_t depth;            /* 0: unbounded */
	int64_t most;             /* highest occupancy in words or blocks */
	int64_t words;            /* pushed in all */
	int writer, reader;       /* processes; -1: none */
	const int64_t *occupancy; /* [samples] highest occupancy */
};

struct cycle_port_result {
	const char *name;
	int number;           /* of main's argument */
	int process, channel; /* channel of the memory */
	bool write;
	int64_t bytes;
	const int64_t *moved; /* [samples] bytes */
};

struct cycle_wait { /* a process in a deadlock */
	int process, channel;
	bool room;     /* it waits for space, not for a word */
	int64_t since; /* cycle */
	int64_t depth; /* of the channel */
	/* room: the smallest depth of this channel with which, the others unchanged, all
	 * processes end; 0: no depth does, or `remedy` is not set */
	int64_t needed;
};

/* Segment of the critical path: a process whose work or waiting for memory delays the launch. */
struct cycle_path_segment {
	int process;
	int64_t begin, end;   /* cycles */
	int64_t busy, memory; /* cycles of these; the others passed between processes */
	int via;              /* channel from this segment to the next one; -1: the last */
};

struct cycle_result {
	/* of the first launch, if its results come image by image: the cycle in which each image is
	 * complete; 0 images: unknown */
	int64_t images;
	const int64_t *image_end; /* [images] */
	int64_t cycles;           /* until the last process of the last launch ends */
	/* cycles that one more launch adds: (cycles - cycles of the first) / (launches - 1);
	 * for one launch: cycles */
	int64_t steady;
	int64_t first_output; /* cycle of the first write to memory; -1: none */
	/* iterations of pipelined loops in all launches; `budget` limits them */
	int64_t events;
	int64_t launches; /* launches that ended */
	int processes, channels, ports;
	struct cycle_process_result *process; /* in the order of calls */
	struct cycle_channel_result *channel; /* in the order in which main makes them */
	/* in the order of main's arguments, only those that a process uses */
	struct cycle_port_result *port;
	int samples;
	int64_t sample_cycles; /* between two points */
	int segments;
	struct cycle_path_segment *segment; /* in the order of time; of the last launch */
	int64_t *on_path; /* [processes] cycles on the path; NULL without `path` */
	/* the first `cycle` waits form one cycle (or chain), in order; then the others */
	int waits, cycle;
	struct cycle_wait *wait;
	const char *deadlock; /* the cycle of waits as text; NULL: all ended */
};

enum cycle_outcome { CYCLE_DONE, CYCLE_DEADLOCK, CYCLE_OVER_BUDGET, CYCLE_STOPPED, CYCLE_REFUSED };

struct extent_value; /* predict/timing.h */

/* Builds the network of a module at its largest run-time extents.  NULL: a diagnostic in
 * module->diag says why.  Uses the scratch fields of the module's values. */
struct cycle_network *cycle_open(
        struct arena *arena, const struct platform *platform, const struct module *module);
/* The same with run-time extents of the caller; those that are not listed are at their largest. */
struct cycle_network *cycle_open_at(struct arena *arena, const struct platform *platform,
        const struct module *module, int extents, const struct extent_value *extent);
int cycle_channels(const struct cycle_network *network);
const char *cycle_channel_name(const struct cycle_network *network, int channel);
int64_t cycle_channel_depth(const struct cycle_network *network, int channel); /* as built */
int64_t cycle_events(const struct cycle_network *network);                     /* of one launch */
/* May be called any number of times; each run starts from an empty network.  Over budget: nothing
 * is simulated, only result->events is filled. */
enum cycle_outcome cycle_run(struct cycle_network *network, const struct cycle_options *options,
        struct cycle_result *result);
/* Latency of the first image and interval of the others; a result without them, as of a launch of
 * one image, has interval 0. */
struct image_times cycle_image_times(const struct cycle_result *result);
/* Cycles in which the process was active and did not wait. */
int64_t cycle_busy(const struct cycle_process_result *process);
/* Samples up to the end of the run; 0: none. */
int cycle_points(const struct cycle_result *result);
/* Opens the module and runs one launch with the depths of the module. */
enum cycle_outcome cycle_simulate(struct arena *arena, const struct platform *platform,
        const struct module *module, int64_t budget, struct cycle_result *result);
#endif
