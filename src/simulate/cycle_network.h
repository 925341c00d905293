/* Data structures of the cycle simulator.  Processes exchange times, not data: for word k of a
 * channel the simulator knows when it can be popped and when its slot is free.  A process runs
 * until it needs a time that is not known yet.  Times do not depend on the order in which
 * processes are run, because each is a maximum of known ones; only requests to a shared memory
 * channel are ordered, see cycle_memory.c. */
#ifndef STC_CYCLE_NETWORK_H
#define STC_CYCLE_NETWORK_H
#include "predict/condition.h"
#include "predict/feedback.h"
#include "predict/timing.h"
#include "simulate/cycle_sim.h"

#define MEMORY_FRACTION 65536 /* bandwidth is counted in this fraction of a cycle: a "part" */
#define UNBOUNDED (INT64_MAX / 4)
#define CYCLE_MADE_BITS 3
#define CYCLE_MADE (1 << CYCLE_MADE_BITS)
#define COUNT_MOST (INT64_MAX / 16)

enum cycle_side { CYCLE_READER, CYCLE_WRITER, CYCLE_SIDES };
enum access_kind {
	ACCESS_TAKE,
	ACCESS_PUSH,
	ACCESS_ACQUIRE_READ,
	ACCESS_ACQUIRE_WRITE,
	ACCESS_RELEASE_READ,
	ACCESS_RELEASE_WRITE,
	ACCESS_LOAD,
	ACCESS_STORE
};

struct cycle_process;

/* Equidistant waits at one end of a channel or at a port: `count` of them, each `length` cycles
 * long; the first ends in cycle `first`, each other one `step` cycles after the one before. */
struct cycle_wait_run {
	int64_t first, step, count, length;
};

struct cycle_log {
	VEC(struct cycle_wait_run) runs;
};

struct cycle_channel {
	const char *name;
	bool blocks; /* it carries blocks (ping-pong buffers), not words */
	int number;
	int64_t built, run_depth; /* depth in the module, and in this run; 0: unbounded */
	int64_t depth;            /* run_depth, or UNBOUNDED where no launch fills it */
	/* of a channel between dies (predict/crossing.h): words that its registers hold beside the
	 * depth, which `depth` includes, and cycles from a push to when the word can be popped */
	int64_t between, passes;
	int64_t words_most; /* words of a launch, at most */
	int64_t results;    /* words of a launch that are results by image; 0: others */
	/* words popped when an image is complete; -1: none is left, or these are no results */
	int64_t image_words;
	int64_t image;          /* images complete so far */
	int64_t pushed, popped; /* words so far */
	/* words that fit: the depth; for an unbounded channel, the slots in full_at */
	int64_t limit;
	int64_t mask; /* slots - 1: word k is in slot k & mask */
	/* [slots] cycle from which a word can be popped, or its slot be filled */
	int64_t *full_at, *free_at;
	/* pushes and pops merged so far in the order of time; the highest occupancy found */
	int64_t counted_push, counted_pop, most;
	struct cycle_process *process[CYCLE_SIDES]; /* NULL: no process at this end */
	bool waiting[CYCLE_SIDES];
	int64_t *occupancy, occupied_since; /* [samples]; cycle of the last change */
	struct cycle_log log[CYCLE_SIDES];
};

struct cycle_memory { /* a memory channel; cycle_memory.c */
	VEC(struct cycle_port *) ports;
	int64_t free; /* part from which it can start the next burst */
};

struct cycle_requests {               /* what a pipelined loop reads or writes through a port */
	int64_t run;                  /* words at consecutive addresses */
	int64_t bursts_a_run, bursts; /* of a run; of the whole loop */
	/* all addresses are known when the loop begins, so requests run ahead of it */
	bool prefetches;
	/* cycles after a request in which nothing but the access itself can follow from it */
	int64_t lookahead;
};

struct cycle_port { /* a memory port of one process */
	const char *name;
	int number; /* of main's argument */
	bool write, waiting;
	struct cycle_process *process;
	/* the port of a second access in the same loop, and the port whose twin this one is;
	 * or NULL */
	struct cycle_port *twin, *of;
	struct cycle_memory *memory;
	int channel;         /* of the memory */
	int64_t bytes, word; /* of a word: bytes, and the parts of a cycle that it takes */
	int64_t burst, outstanding, latency; /* words, bursts, cycles */
	int64_t mask;                        /* slots of bursts - 1: burst k is in slot k & mask */
	/* [slots] of the outstanding bursts: cycle of the request, part of the first word */
	int64_t *request, *start;
	const struct cycle_requests *requests;
	int64_t posted, granted, used; /* bursts of these requests */
	/* of the current burst: words left, and the part in which the next one may start */
	int64_t left, next;
	int64_t last;   /* cycle of the last request */
	int64_t words;  /* moved so far */
	int64_t *moved; /* [samples] bytes */
	struct cycle_log log;
};

struct cycle_node { /* an operation on loop counters, part of a condition */
	const struct op *op;
	column_function *function; /* NULL: an affine map */
	const struct affine_map *map;
	int64_t *out;
	int parts;
	const int64_t **part; /* [parts] operands */
	/* inner nodes: [width] columns of the result and of each operand */
	int64_t *at;
	const int64_t **from;
};

struct cycle_condition { /* one bit per conditional access of a loop or of an operation */
	VEC(struct cycle_node) outer, inner; /* inner: depends on the innermost counter */
	VEC(const int64_t *) when;           /* values of the bits */
	VEC(const int64_t *) key; /* all that a row depends on, except the innermost counter */
	int64_t *innermost;       /* counter; NULL: the access stands in no loop */
	int64_t trips;            /* of the innermost loop */
	struct arena *arena;
	int width;                /* iterations evaluated at once: length of a column */
	int64_t *counted, **same; /* columns of the innermost counter, and of keys */
	const int64_t **when_at;  /* columns of the bits */
	/* [trips] bits for each value of the innermost counter; NULL: not made yet */
	uint64_t *row;
	int64_t *row_key; /* [key.count] for which `row` was made */
	bool made;
};

struct cycle_access {
	enum access_kind kind;
	struct cycle_channel *channel; /* NULL: the access is to a port */
	struct cycle_port *port;
	int bit;       /* of the condition; -1: always */
	int order;     /* in the body */
	int64_t stage; /* of the pipeline: cycles after the iteration entered */
	struct cycle_requests requests;
};

/* The accesses of a group that an iteration with these condition bits makes. */
struct cycle_made {
	uint64_t bits;
	int count;
	const struct cycle_access **access;
};

/* Accesses of a pipelined loop in the same stage (flp), or in the same cycle of the initiation
 * interval (stp). */
struct cycle_group {
	int first, count;   /* accesses */
	int64_t stage;      /* stp: within the interval */
	int64_t done, time; /* flp: iterations that passed, and when the last one did */
	int64_t room;       /* flp: iterations that fit between this group and the next */
	const struct cycle_access *why; /* flp: the access that last delayed it */
	int64_t *times;                 /* flp: [ring] when iterations passed */
	/* flp: times of the group `distance` stages before, and of the next one; or NULL */
	const int64_t *before, *next_times;
	int64_t distance;
	const struct cycle_access *only; /* flp: the access of a group of one; else NULL */
	/* flp: `only` is a word of a bounded channel or of memory: iterations pass in bulk */
	bool runs;
	uint64_t conditions;     /* flp: mask of the bits of its accesses */
	struct cycle_made *made; /* flp: [CYCLE_MADE] cache of lists by bits */
};

struct cycle_pipe { /* a pipelined loop nest */
	int levels;
	int64_t **counter, *trips;           /* [levels] outermost first */
	int64_t iterations, interval, depth; /* initiation interval and depth in cycles */
	bool flushes;                        /* style flp */
	/* the emitted loop advances its counters itself: no bursts (predict/port_run.h) */
	bool counts_by_hand;
	/* it reads memory at addresses that are not known when it begins */
	bool asks;
	struct cycle_condition condition;
	int accesses, groups;
	struct cycle_access *access;
	int64_t *lag; /* [accesses] stp: whole intervals from entry to the access */
	struct cycle_group *group;
	int64_t ring, mask;  /* a power of two above every lag; ring - 1 */
	uint64_t *bits;      /* [ring] condition bits of the iterations in flight */
	int64_t issued;      /* iterations whose bits are made */
	int64_t last_window; /* stp: interval of the last access of the last iteration */
	/* state of a run */
	bool running;
	int64_t start; /* cycle in which it began */
	int64_t inner; /* innermost counter of the next iteration */
	/* stp: the current interval, and the cycle of the pipeline that it has reached */
	int64_t window, cycle;
	int at; /* stp: group within the interval */
	/* all iterations have left; what they wrote may not have arrived in memory */
	bool drained;
};

enum cycle_step_kind {
	STEP_LOOP,    /* a loop that is not pipelined begins */
	STEP_NEXT,    /* its next iteration, or its end */
	STEP_WAIT,    /* a fixed number of cycles */
	STEP_ACCESS,  /* an access outside pipelined loops */
	STEP_ARRIVAL, /* until what was written has arrived in memory */
	STEP_PIPE,    /* a pipelined loop */
	STEP_DRAIN,   /* until all iterations have left their pipelines */
	STEP_END
};

struct cycle_step {
	enum cycle_step_kind kind;
	int64_t *counter, trips, cycles;
	int target; /* of a loop: the step to go to */
	struct cycle_access access;
	struct cycle_condition *condition;
	struct cycle_pipe *pipe;
};

struct cycle_process {
	const char *name;
	int number;
	const struct op *function;
	bool flushes; /* style flp */
	/* a pipelined loop starts before the previous one has drained */
	bool rewinding;
	VEC(struct cycle_step) steps;
	VEC(struct cycle_channel *) channels;
	VEC(struct cycle_port *) ports; /* those that share their memory channel */
	int at;                         /* current step */
	int64_t time, left; /* left: cycle in which all iterations so far leave their pipelines */
	int64_t bound;      /* nothing that it does from now on is in an earlier cycle */
	int64_t waited[CAUSES], *sampled[CAUSES]; /* cycles in all; [samples] */
	int64_t began, active; /* start of the current launch; cycles of those before it */
	int64_t launch;        /* number of the current launch */
	bool ended, queued, yielded;
	const struct cycle_access *waits_for; /* the oldest access that it could not make */
};

struct cycle_series {  /* points over time */
	int64_t *data; /* [samples] */
	bool most;     /* a point is a maximum; else a sum */
};

struct cycle_network {
	struct arena *arena;
	const struct platform *platform;
	const struct module *module;
	struct op *main;
	int extents;
	const struct extent_value *extent; /* [extents] launch scalars */
	VEC(struct cycle_process *) processes;
	VEC(struct cycle_channel *) channels;
	VEC(struct cycle_port *) ports;
	struct cycle_memory *memory; /* [platform->channels] */
	int64_t images;              /* of a launch; 0: their results do not come in order */
	int64_t *image_end;          /* [images] cycle in which the last of its words was popped */
	int64_t events;              /* iterations of pipelined loops in one launch */
	/* cycles from the end of a launch's last process to the end of the launch: what feeds a
	 * token to the next step (predict/feedback.h) */
	int64_t tail;
	/* state of a run */
	struct cycle_options options;
	struct cycle_process **queue; /* ring of [processes] */
	size_t first, queued;
	int64_t fuel, done; /* iterations until the running process yields; events so far */
	int64_t first_output, first_cycles, ended; /* ended: processes of this launch */
	int64_t launch, launch_began, launches_done;
	struct cycle_process *last_ended; /* of the launch */
	int samples;
	int64_t sample_cycles, sample_end; /* cycles of one point; of all points */
	int sample_bits;                   /* log2 of sample_cycles */
	VEC(struct cycle_series) series;
	size_t logged;           /* runs in all logs */
	int64_t path_from;       /* cycle from which the logs are complete */
	struct cycle_result own; /* lists of a result without an arena of its own */
};

/* cycle_build.c */
/* Fills the network from its module.  false: a diagnostic. */
bool cycle_build(struct cycle_network *network);
/* Trip count of a loop, at the extents of the network.  false: a diagnostic. */
bool cycle_trips(const struct cycle_network *network, const struct op *loop, int64_t *trips);
/* Product and sum of counts, at most COUNT_MOST. */
int64_t cycle_multiply_counts(int64_t left, int64_t right);
int64_t cycle_add_counts(int64_t left, int64_t right);
/* Adds to the words that a launch may push. */
void cycle_add_words(struct cycle_channel *channel, int64_t words);
/* The access that an op makes; its operand's value->data is the channel or port. */
struct cycle_access cycle_access_of(const struct op *op);
bool cycle_is_access(const struct op *op);
/* cycle_images.c */
void cycle_images_build(struct cycle_network *network);
void cycle_images_clean(struct cycle_network *network);
/* A word of results was popped that completes an image as far as this channel brings it. */
void cycle_image_complete(
        struct cycle_network *network, struct cycle_channel *channel, int64_t time);
/* Gives the times to the result of a run that has ended. */
void cycle_images_collect(const struct cycle_network *network, struct cycle_result *result);
/* cycle_pipe_build.c */
/* Adds the step of a flattened pipelined loop that runs `repeats` times in a launch. */
bool cycle_pipe_build(struct cycle_network *network, struct cycle_process *process,
        const struct op *loop, int64_t repeats);
/* cycle_advance.c */
/* Advances the outer counters by one; the innermost one becomes 0. */
void cycle_next_row(struct cycle_pipe *pipe);
void cycle_list_made(const struct cycle_pipe *pipe, const struct cycle_group *group, uint64_t bits,
        struct cycle_made *made);
/* Moves iterations of a flushing loop through all groups as far as known times allow. */
void cycle_advance(
        struct cycle_network *network, struct cycle_process *process, struct cycle_pipe *pipe);
/* cycle_pipe.c */
/* false: the loop waits or yields, and is to be resumed. */
bool cycle_pipe_run(
        struct cycle_network *network, struct cycle_process *process, struct cycle_pipe *pipe);
int64_t cycle_pipe_bound(const struct cycle_process *process, const struct cycle_pipe *pipe);
/* cycle_condition.c */
/* Adds the condition under which `op` makes its access; *bit is its bit, -1: always.  A memref
 * write whose condition depends on data counts as always made; for any other access that is a
 * diagnostic, and false. */
bool cycle_condition_add(struct cycle_network *network, struct cycle_condition *condition,
        const struct op *op, int *bit);
void cycle_condition_finish(struct arena *arena, struct cycle_condition *condition);
void cycle_condition_row(struct cycle_condition *condition);
/* cycle_memory.c */
struct cycle_port *cycle_port_new(
        struct cycle_network *network, struct cycle_process *process, int number);
struct cycle_port *cycle_port_twin(struct cycle_network *network, struct cycle_port *port);
bool cycle_memory_build(struct cycle_network *network);
/* Bursts of an access of `loop`; loop NULL: one access outside pipelined loops. */
struct cycle_requests cycle_requests_of(const struct cycle_port *port, const struct op *op,
        int64_t latency, const struct cycle_pipe *loop);
void cycle_port_begin(struct cycle_network *network, struct cycle_port *port,
        const struct cycle_requests *requests, int64_t time);
/* An iteration has reached its read. */
void cycle_port_ask(struct cycle_network *network, struct cycle_port *port, int64_t time);
/* Sets port->next to the time of the next burst's first word; false: not known yet. */
bool cycle_port_first(struct cycle_network *network, struct cycle_port *port);
void cycle_port_end_burst(struct cycle_network *network, struct cycle_port *port, int64_t time);
/* Waits until what was written has arrived; false: that time is not known yet. */
bool cycle_port_end(struct cycle_network *network, struct cycle_process *process,
        const struct cycle_access *access);
/* Grants the pending requests that no other request can precede. */
void cycle_memory_grant(struct cycle_network *network, struct cycle_memory *memory);
/* All processes wait: grants the earliest request of all channels and those that are certain
 * then.  false: none is pending. */
bool cycle_memory_grant_first(struct cycle_network *network);
/* cycle_sample.c */
void cycle_sample_begin(struct cycle_network *network);
void cycle_sample_span(struct cycle_network *network, int64_t *data, int64_t from, int64_t to);
/* The channel held `occupancy` words since its last change, up to `time`. */
void cycle_sample_occupancy(struct cycle_network *network, struct cycle_channel *channel,
        int64_t time, int64_t occupancy);
/* Doubles the cycles of a point until the points reach `time`. */
void cycle_sample_coarsen(struct cycle_network *network, int64_t time);
void cycle_log_wait(struct cycle_network *network, struct cycle_process *process,
        const struct cycle_access *why, int64_t from, int64_t to);
/* Records for the critical path that an access had to wait. */
void cycle_log_stall(
        struct cycle_network *network, const struct cycle_access *why, int64_t from, int64_t to);
/* cycle_critical_path.c, cycle_deadlock.c */
void cycle_critical_path(
        const struct cycle_network *network, struct arena *arena, struct cycle_result *result);
void cycle_deadlock(struct cycle_network *network, struct cycle_result *result);
/* NULL: all have ended */
struct cycle_process *cycle_first_stuck(const struct cycle_network *network);
/* cycle_sim.c */
void cycle_clean(struct cycle_network *network);
/* cycle_run.c */
/* Runs until no process can go on; false: it was stopped. */
bool cycle_run_all(struct cycle_network *network);
void cycle_set_depth(struct cycle_network *network, struct cycle_channel *channel, int64_t depth);
/* One slot more; wakes the writer. */
void cycle_deepen(struct cycle_network *network, struct cycle_channel *channel);
void cycle_wake(struct cycle_network *network, struct cycle_process *process);
void cycle_count_words(struct cycle_network *network, struct cycle_channel *channel);
/* Marks the process as waiting for the access; always false. */
bool cycle_unknown(struct cycle_process *process, const struct cycle_access *access);
/* Is the channel full?  An unbounded one gets more slots. */
bool cycle_full(struct cycle_network *network, struct cycle_channel *channel);

static inline enum cycle_cause cycle_cause_of(const struct cycle_access *why)
{
	static const enum cycle_cause causes[] = {
		[ACCESS_TAKE] = CAUSE_INPUT,
		[ACCESS_PUSH] = CAUSE_OUTPUT,
		[ACCESS_ACQUIRE_READ] = CAUSE_INPUT,
		[ACCESS_ACQUIRE_WRITE] = CAUSE_OUTPUT,
		[ACCESS_RELEASE_READ] = CAUSE_NONE,
		[ACCESS_RELEASE_WRITE] = CAUSE_NONE,
		[ACCESS_LOAD] = CAUSE_MEMORY,
		[ACCESS_STORE] = CAUSE_MEMORY,
	};
	return why ? causes[why->kind] : CAUSE_NONE;
}

/* Samples record the highest occupancy of each point.  Up to cycle `until`, an occupancy of at
 * most `most` words changes no sample and need not be recorded. */
struct cycle_occupancy {
	int64_t since, until, most;
};

static inline struct cycle_occupancy cycle_occupancy_of(
        const struct cycle_network *network, const struct cycle_channel *channel)
{
	int64_t since = channel->occupied_since, point = since >> network->sample_bits;
	if (!network->samples)
		return (struct cycle_occupancy){ since, INT64_MAX, INT64_MAX };
	if (since >= network->sample_end)
		return (struct cycle_occupancy){ since, since, 0 };
	return (struct cycle_occupancy){ since, (point + 1) << network->sample_bits,
		channel->occupancy[point] };
}

/* The channel held `words` words up to `time`. */
static inline void cycle_set_occupancy(struct cycle_network *network, struct cycle_channel *channel,
        struct cycle_occupancy *occupancy, int64_t time, int64_t words)
{
	if (time <= occupancy->since)
		return;
	if (time <= occupancy->until && words <= occupancy->most) {
		occupancy->since = time;
		return;
	}
	channel->occupied_since = occupancy->since;
	cycle_sample_occupancy(network, channel, time, words);
	*occupancy = cycle_occupancy_of(network, channel);
}

static inline void cycle_sample_reach(struct cycle_network *network, int64_t time)
{
	if (time >= network->sample_end)
		cycle_sample_coarsen(network, time);
}

static inline enum cycle_side cycle_side_of(enum access_kind kind)
{
	return kind == ACCESS_TAKE || kind == ACCESS_ACQUIRE_READ || kind == ACCESS_RELEASE_READ
	        ? CYCLE_READER
	        : CYCLE_WRITER;
}

static inline enum cycle_side cycle_other_side(enum cycle_side side)
{
	return side == CYCLE_READER ? CYCLE_WRITER : CYCLE_READER;
}
#endif
