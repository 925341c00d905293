/* Parts of the time simulator.  Processes exchange times, not data: of word k of a channel it is
 * known when it can be popped, and when its place is free again. Each process goes on until it
 * needs a time that is not known yet.  Times do not depend on the order in which processes are
 * run, because each is a maximum of known ones; only requests to a shared memory channel have an
 * order of their own, see cycle_memory.c. */
#ifndef STC_CYCLE_NETWORK_H
#define STC_CYCLE_NETWORK_H
#include "predict/condition.h"
#include "predict/feedback.h"
#include "predict/timing.h"
#include "simulate/cycle_sim.h"

#define MEMORY_FRACTION 65536 /* parts of a cycle in which bandwidth is counted */
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

/* when waits at one end of a channel, or at a port, ended: `count` of them from `first` on,
 * `step` cycles apart, each `length` cycles long */
struct cycle_wait_run {
	int64_t first, step, count, length;
};

struct cycle_log {
	VEC(struct cycle_wait_run) runs;
};

struct cycle_channel {
	const char *name;
	bool blocks;
	int number;
	int64_t built, run_depth; /* depth as the module says, and of this run; 0: unbounded */
	int64_t depth;            /* the same, or UNBOUNDED where no launch has as many words */
	int64_t words_most;       /* of a launch */
	int64_t pushed, popped;
	/* words that fit: the depth, or of an unbounded one what there is room for in full_at */
	int64_t limit;
	int64_t mask; /* slots - 1: word k is in slot k & mask */
	int64_t *full_at, *free_at;
	/* merged so far in the order of time, to find the most words held */
	int64_t counted_push, counted_pop, most;
	struct cycle_process *process[CYCLE_SIDES]; /* NULL: nobody */
	bool waiting[CYCLE_SIDES];
	int64_t *occupancy, occupied_since; /* [samples]; when it last changed */
	struct cycle_log log[CYCLE_SIDES];
};

struct cycle_memory { /* a memory channel; cycle_memory.c */
	VEC(struct cycle_port *) ports;
	int64_t free; /* when it can serve the next burst, in parts */
};

struct cycle_stretch {                /* what a pipelined loop reads or writes through a port */
	int64_t run;                  /* words in a row */
	int64_t bursts_a_run, bursts; /* of the whole loop */
	/* addresses are known when the loop begins, so reading runs ahead */
	bool prefetches;
	/* so much later than a request is all that follows from it, beyond the access itself */
	int64_t lead;
};

struct cycle_port { /* of one process */
	const char *name;
	int number; /* of main's argument */
	bool write, waiting;
	struct cycle_process *process;
	/* for a second access in one loop; whose twin it is.  NULL: there is none */
	struct cycle_port *twin, *of;
	struct cycle_memory *memory;
	int channel;
	int64_t bytes, word; /* of a word: bytes, and the parts of a cycle that it takes */
	int64_t burst, outstanding, latency;
	int64_t mask; /* slots - 1 of those: burst k is in slot k & mask */
	/* of the bursts under way: cycle of the request, and of the first word in parts */
	int64_t *request, *start;
	const struct cycle_stretch *stretch;
	int64_t posted, granted, used; /* bursts of this stretch */
	/* words left of the burst at hand, when the next one may begin, in parts */
	int64_t left, next;
	int64_t last; /* cycle of the last request */
	int64_t words;
	int64_t *moved; /* [samples] */
	struct cycle_log log;
};

struct cycle_node { /* an operation on counters */
	const struct op *op;
	column_function *function; /* NULL: an affine map */
	const struct affine_map *map;
	int64_t *out;
	int parts;
	const int64_t **part;
	int64_t *at; /* inner: [width] its column, and those of its parts */
	const int64_t **from;
};

struct cycle_condition { /* one bit per conditional access of a loop or of an operation */
	VEC(struct cycle_node) outer, inner; /* inner: depends on the innermost counter */
	VEC(const int64_t *) when;           /* values of the bits */
	VEC(const int64_t *) key; /* what a row depends on beside the innermost counter */
	int64_t *innermost;       /* counter; NULL: of no loop */
	int64_t trips;            /* of the innermost loop */
	struct arena *arena;
	int width;                /* of columns: iterations that are worked out at once */
	int64_t *counted, **same; /* columns of the innermost counter, and of keys */
	const int64_t **when_at;  /* and of the bits */
	/* [trips] bits for each value of the innermost counter; NULL: not made yet */
	uint64_t *row;
	int64_t *row_key; /* [key.count] for which `row` was made */
	bool made;
};

struct cycle_access {
	enum access_kind kind;
	struct cycle_channel *channel; /* NULL: of a port */
	struct cycle_port *port;
	int bit;   /* of the condition; -1: always */
	int order; /* in the body */
	int64_t stage;
	struct cycle_stretch stretch;
};

/* accesses of a group that an iteration makes, for the bits of the group's conditions */
struct cycle_made {
	uint64_t bits;
	int count;
	const struct cycle_access **access;
};

/* accesses of a pipelined loop in the same stage (flp), or in the same cycle of the interval
 * (stp) */
struct cycle_group {
	int first, count;
	int64_t stage;      /* stp: within the interval */
	int64_t done, time; /* flp: iterations that passed, and when the last one did */
	int64_t room;       /* flp: iterations that fit between this group and the next */
	const struct cycle_access *why; /* flp: of its last delay */
	int64_t *times;                 /* flp: [ring] */
	/* flp: times of the group before, `distance` stages ahead, and of the next one; NULL:
	 * there is none */
	const int64_t *before, *next_times;
	int64_t distance;
	const struct cycle_access *only; /* flp: NULL: it is not one access */
	/* flp: that is one of a word of a channel with a depth, or of memory */
	bool runs;
	uint64_t conditions;     /* flp: their bits */
	struct cycle_made *made; /* flp: [CYCLE_MADE] those that were asked for last */
};

struct cycle_pipe {
	int levels;
	int64_t **counter, *trips; /* outermost first */
	int64_t iterations, interval, depth;
	bool flushes; /* style flp */
	/* it reads memory at addresses that are not known when it begins */
	bool asks;
	struct cycle_condition condition;
	int accesses, groups;
	struct cycle_access *access;
	int64_t *lag; /* [accesses] stp: intervals after the iteration has begun */
	struct cycle_group *group;
	int64_t ring, mask;  /* a power of two above every lag; less 1 */
	uint64_t *bits;      /* [ring] of the iterations in flight */
	int64_t issued;      /* iterations whose bits are made */
	int64_t last_window; /* stp: of the last lag of the last iteration */
	/* state */
	bool running;
	int64_t start; /* cycle in which it began */
	int64_t inner; /* innermost counter of the next iteration */
	/* stp: the interval at hand, and the stage-cycle up to which it came */
	int64_t window, cycle;
	int at; /* stp: group of the window */
	/* its iterations have left it; what it wrote may not have arrived */
	bool drained;
};

enum cycle_step_kind {
	STEP_LOOP,
	STEP_NEXT,
	STEP_WAIT,
	STEP_ACCESS,
	STEP_ARRIVAL,
	STEP_PIPE,
	STEP_DRAIN,
	STEP_END
};

struct cycle_step {
	enum cycle_step_kind kind;
	int64_t *counter, trips, cycles;
	int target;
	struct cycle_access access;
	struct cycle_condition *condition;
	struct cycle_pipe *pipe;
};

struct cycle_process {
	const char *name;
	int number;
	const struct op *function;
	bool flushes;
	/* a pipelined loop enters behind the one before it, which has not left yet */
	bool rewinding;
	VEC(struct cycle_step) steps;
	VEC(struct cycle_channel *) channels;
	VEC(struct cycle_port *) ports; /* on memory channels with others */
	int at;                         /* step */
	int64_t time, left; /* left: when all iterations so far have left their pipelines */
	int64_t bound;      /* nothing that it does from here on is earlier */
	int64_t waited[CAUSES], *sampled[CAUSES];
	int64_t began, active; /* of the launch at hand; cycles of those before */
	int64_t launch;        /* that it is at */
	bool ended, queued, yielded;
	const struct cycle_access *waits_for; /* the oldest access that it could not make */
};

struct cycle_series { /* points over time */
	int64_t *data;
	bool most; /* else: sums */
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
	int64_t events;              /* of one launch */
	/* cycles of a launch behind its last process: from a token to the next */
	int64_t tail;
	/* state of a run */
	struct cycle_options options;
	struct cycle_process **queue; /* ring of [processes] */
	size_t first, queued;
	int64_t fuel, done; /* iterations until the process at hand yields; events so far */
	int64_t first_output, first_cycles, ended; /* ended: processes of this launch */
	int64_t launch, launch_began, launches_done;
	struct cycle_process *last_ended; /* of the launch */
	int samples;
	int64_t sample_cycles, sample_end; /* of one point; of all */
	int sample_bits;                   /* of them: a power of two */
	VEC(struct cycle_series) series;
	size_t logged; /* runs in all logs */
	int64_t path_from;
	struct cycle_result own; /* lists of a result that nobody keeps */
};

/* cycle_build.c */
bool cycle_build(struct cycle_network *network); /* false: a diagnostic */
/* false: a diagnostic */
bool cycle_trips(const struct cycle_network *network, const struct op *loop, int64_t *trips);
/* of counts; never more than COUNT_MOST */
int64_t cycle_multiply_counts(int64_t left, int64_t right);
int64_t cycle_add_counts(int64_t left, int64_t right);
/* that may be written in a launch */
void cycle_add_words(struct cycle_channel *channel, int64_t words);
/* value->data of the operand: its channel or port */
struct cycle_access cycle_access_of(const struct op *op);
bool cycle_is_access(const struct op *op);
/* cycle_pipe_build.c */
/* adds the step; `loop` is flattened */
bool cycle_pipe_build(struct cycle_network *network, struct cycle_process *process,
        const struct op *loop, int64_t repeats);
/* cycle_advance.c */
void cycle_next_row(struct cycle_pipe *pipe);
void cycle_list_made(const struct cycle_pipe *pipe, const struct cycle_group *group, uint64_t bits,
        struct cycle_made *made);
/* all iterations through all groups, as far as can */
void cycle_advance(
        struct cycle_network *network, struct cycle_process *process, struct cycle_pipe *pipe);
/* cycle_pipe.c */
/* false: it waits, or yields */
bool cycle_pipe_run(
        struct cycle_network *network, struct cycle_process *process, struct cycle_pipe *pipe);
int64_t cycle_pipe_bound(const struct cycle_process *process, const struct cycle_pipe *pipe);
/* cycle_condition.c */
/* When an access is made.  false: it depends on data; a word is written as if it held. */
bool cycle_condition_add(struct cycle_network *network, struct cycle_condition *condition,
        const struct op *op, int *bit);
void cycle_condition_finish(struct arena *arena, struct cycle_condition *condition);
void cycle_condition_row(struct cycle_condition *condition);
/* cycle_memory.c */
struct cycle_port *cycle_port_new(
        struct cycle_network *network, struct cycle_process *process, int number);
struct cycle_port *cycle_port_twin(struct cycle_network *network, struct cycle_port *port);
bool cycle_memory_build(struct cycle_network *network);
struct cycle_stretch cycle_stretch_of(const struct cycle_port *port, const struct op *op,
        int64_t latency, int levels, int64_t *const *counter, const int64_t *trips);
void cycle_port_begin(struct cycle_network *network, struct cycle_port *port,
        const struct cycle_stretch *stretch, int64_t time);
/* an iteration has come to where it reads */
void cycle_port_ask(struct cycle_network *network, struct cycle_port *port, int64_t time);
/* of a burst: when its first word may go; false: not known yet */
bool cycle_port_first(struct cycle_network *network, struct cycle_port *port);
void cycle_port_end_burst(struct cycle_network *network, struct cycle_port *port, int64_t time);
/* what was written has arrived; false: not known yet */
bool cycle_port_end(struct cycle_network *network, struct cycle_process *process,
        const struct cycle_access *access);
/* requests that no other can come before */
void cycle_memory_grant(struct cycle_network *network, struct cycle_memory *memory);
/* where all wait: the first request of all, and those that are certain then; false: there is
 * none */
bool cycle_memory_grant_first(struct cycle_network *network);
/* cycle_sample.c */
void cycle_sample_begin(struct cycle_network *network);
void cycle_sample_span(struct cycle_network *network, int64_t *data, int64_t from, int64_t to);
/* `held` up to `time`, which is later than before */
void cycle_sample_occupancy(struct cycle_network *network, struct cycle_channel *channel,
        int64_t time, int64_t occupancy);
/* until points reach that far */
void cycle_sample_coarsen(struct cycle_network *network, int64_t time);
void cycle_log_wait(struct cycle_network *network, struct cycle_process *process,
        const struct cycle_access *why, int64_t from, int64_t to);
/* for the critical path: an access had to wait */
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
/* until nothing moves; false: it was stopped */
bool cycle_run_all(struct cycle_network *network);
void cycle_set_depth(struct cycle_network *network, struct cycle_channel *channel, int64_t depth);
/* by one, and lets its writer go on */
void cycle_deepen(struct cycle_network *network, struct cycle_channel *channel);
void cycle_wake(struct cycle_network *network, struct cycle_process *process);
void cycle_count_words(struct cycle_network *network, struct cycle_channel *channel);
bool cycle_unknown(struct cycle_process *process, const struct cycle_access *access);
/* whether it is; an unbounded one gets more slots */
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

/* Since when a channel holds what it does, and up to when that many words, or fewer, change
 * nothing that is kept. */
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

/* That many words were held up to `time`. */
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
