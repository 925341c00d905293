/* Parts of the time simulator.  Processes exchange times, not data: channel slot k % depth holds when word k could be popped, and when its place was free again.
 * Each process goes on until it needs a time that is not known yet.  Times do not depend on the order in which processes are run, because each is a maximum of known ones. */
#ifndef STC_FLOW_NETWORK_H
#define STC_FLOW_NETWORK_H
#include "model/timing.h"
#include "sim/flow.h"

#define MEMORY_FRACTION 65536 /* parts of a cycle in which bandwidth is counted */

enum flow_side { FLOW_READER, FLOW_WRITER, FLOW_SIDES };
enum flow_cause { CAUSE_NONE, CAUSE_INPUT, CAUSE_OUTPUT, CAUSE_MEMORY, CAUSES };
enum access_kind { ACCESS_TAKE, ACCESS_PUSH, ACCESS_ACQUIRE_READ, ACCESS_ACQUIRE_WRITE, ACCESS_RELEASE_READ, ACCESS_RELEASE_WRITE, ACCESS_LOAD, ACCESS_STORE };

struct flow_process;

struct flow_channel {
	const char *name;
	bool blocks;
	int64_t depth, pushed, popped;
	int64_t head, tail;       /* slots of the next word to pop and to push */
	int64_t *full_at, *free_at;        /* [depth] */
	int64_t counted_push, counted_pop, most;   /* merged so far in the order of time, to find the most words held */
	int64_t push_slot, pop_slot;       /* of the next ones to merge */
	struct flow_process *process[FLOW_SIDES];  /* NULL: nobody */
	bool waiting[FLOW_SIDES];
};

struct flow_port {            /* of one process */
	int64_t word;             /* parts of a cycle that a word takes */
	int64_t next;             /* when the next one may begin, in parts */
};

struct flow_node {            /* an operation on counters */
	const struct op *op;
	int64_t *out;
	const int64_t *in[3];
	int parts;                /* of an affine map */
	const int64_t **part;
};

struct flow_condition {       /* one bit per conditional access of a loop or of an operation */
	VEC(struct flow_node) outer, inner;        /* inner: depends on the innermost counter */
	VEC(const int64_t *) when;         /* values of the bits */
	VEC(const int64_t *) key;          /* what a row depends on beside the innermost counter */
	int64_t *innermost;       /* counter; NULL: of no loop */
	int64_t trips;            /* of the innermost loop */
	uint64_t *row;            /* [trips] bits for each value of the innermost counter */
	int64_t *row_key;         /* [key.count] for which `row` was made */
	bool made;
};

struct flow_access {
	enum access_kind kind;
	struct flow_channel *channel;      /* NULL: of a port */
	struct flow_port *port;
	int bit;                  /* of the condition; -1: always */
	int64_t stage;
};

struct flow_group {           /* accesses of a pipelined loop in the same stage (flp), or in the same cycle of the interval (stp) */
	int first, count;
	int64_t stage;            /* stp: within the interval */
	int64_t done, time;       /* flp: iterations that passed, and when the last one did */
	int64_t room;             /* flp: iterations that fit between this group and the next */
	enum flow_cause cause;    /* flp: of its last delay */
	int64_t *times;           /* flp: [ring] */
};

struct flow_pipe {
	int levels;
	int64_t **counter, *trips;         /* outermost first */
	int64_t iterations, interval, depth;
	bool flushes;             /* style flp */
	struct flow_condition condition;
	int accesses, groups;
	struct flow_access *access;
	int64_t *lag;             /* [accesses] stp: intervals after the iteration has begun */
	struct flow_group *group;
	int64_t ring;             /* a power of two above every lag */
	uint64_t *bits;           /* [ring] of the iterations in flight */
	int64_t issued;           /* iterations whose bits are made */
	int64_t last_window;      /* stp: of the last lag of the last iteration */
	/* state */
	bool running;
	int64_t start;            /* cycle in which it began */
	int64_t inner;            /* innermost counter of the next iteration */
	int64_t window, cycle;    /* stp: the interval at hand, and the stage-cycle up to which it came */
	int at;                   /* stp: group of the window */
};

enum step_kind { STEP_LOOP, STEP_NEXT, STEP_WAIT, STEP_ACCESS, STEP_PIPE, STEP_END };

struct flow_step {
	enum step_kind kind;
	int64_t *counter, trips, cycles;
	int target;
	struct flow_access access;
	struct flow_condition *condition;
	struct flow_pipe *pipe;
};

struct flow_process {
	const char *name;
	const struct op *function;
	bool flushes;
	VEC(struct flow_step) steps;
	VEC(struct flow_channel *) channels;
	int at;                   /* step */
	int64_t time;
	int64_t waited[CAUSES];
	bool ended, queued;
	const struct flow_channel *waits_for;      /* the oldest access that it could not make */
	enum flow_side side;
};

struct flow_network {
	struct arena *arena;
	const struct platform *platform;
	const struct module *module;
	struct op *main;
	VEC(struct flow_process *) processes;
	VEC(struct flow_channel *) channels;
	int64_t *port_word;       /* [main's arguments] parts of a cycle */
	struct flow_process **queue;       /* ring of [processes] */
	size_t first, queued;
	int64_t first_output, events;
};

bool flow_build(struct flow_network *network);     /* false: a diagnostic */
bool flow_pipe_build(struct flow_network *network, struct flow_process *process, const struct op *loop, int64_t repeats);    /* adds the step; `loop` is flattened */
bool flow_condition_add(struct flow_network *network, struct flow_condition *condition, const struct value *when, int *bit);
void flow_condition_finish(struct arena *arena, struct flow_condition *condition);
uint64_t flow_condition_bits(struct flow_condition *condition, int64_t innermost);

bool flow_pipe_run(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe);      /* false: it waits */
bool flow_is_port(const struct type *type);
int64_t flow_trips(const struct op *loop);
struct flow_access flow_access_of(const struct op *op);    /* value->data of the operand: its channel or port */
bool flow_is_access(const struct op *op);
void flow_wake(struct flow_network *network, struct flow_process *process);

static inline bool flow_unknown(struct flow_process *process, struct flow_channel *channel, enum flow_side side)
{
	channel->waiting[side] = true;
	if (!process->waits_for) {
		process->waits_for = channel;
		process->side = side;
	}
	return false;
}

static inline void flow_not_before(int64_t *time, enum flow_cause *cause, int64_t known, enum flow_cause why)
{
	if (known > *time) {
		*time = known;
		*cause = why;
	}
}

/* Moves `time` on to when the access can be made.  false: not known yet, and the process is marked as waiting. */
static inline bool flow_access_time(struct flow_process *process, const struct flow_access *access, int64_t *time, enum flow_cause *cause)
{
	struct flow_channel *channel = access->channel;
	if (!channel) {
		flow_not_before(time, cause, (access->port->next + MEMORY_FRACTION - 1) / MEMORY_FRACTION, CAUSE_MEMORY);
		return true;
	}
	if (access->kind == ACCESS_TAKE || access->kind == ACCESS_ACQUIRE_READ) {
		if (channel->popped == channel->pushed)
			return flow_unknown(process, channel, FLOW_READER);
		flow_not_before(time, cause, channel->full_at[channel->head], CAUSE_INPUT);
	} else if (access->kind == ACCESS_PUSH || access->kind == ACCESS_ACQUIRE_WRITE) {
		if (channel->pushed - channel->popped == channel->depth)
			return flow_unknown(process, channel, FLOW_WRITER);
		flow_not_before(time, cause, channel->free_at[channel->tail], CAUSE_OUTPUT);
	}
	return true;
}

static inline void flow_make_port(struct flow_network *network, const struct flow_access *access, int64_t time)
{
	struct flow_port *port = access->port;
	port->next = (time * MEMORY_FRACTION > port->next ? time * MEMORY_FRACTION : port->next) + port->word;
	if (access->kind == ACCESS_STORE && (network->first_output < 0 || time < network->first_output))
		network->first_output = time;
}

static inline void flow_done(struct flow_network *network, struct flow_channel *channel, enum flow_side side)
{
	enum flow_side other = side == FLOW_READER ? FLOW_WRITER : FLOW_READER;
	if (channel->waiting[other]) {
		channel->waiting[other] = false;
		flow_wake(network, channel->process[other]);
	}
}

static inline void flow_access_make(struct flow_network *network, const struct flow_access *access, int64_t time)
{
	struct flow_channel *channel = access->channel;
	if (!channel) {
		flow_make_port(network, access, time);
	} else if (access->kind == ACCESS_TAKE || access->kind == ACCESS_RELEASE_READ) {
		channel->free_at[channel->head] = time + 1;
		channel->head = channel->head + 1 == channel->depth ? 0 : channel->head + 1;
		channel->popped++;
		flow_done(network, channel, FLOW_READER);
	} else if (access->kind == ACCESS_PUSH || access->kind == ACCESS_RELEASE_WRITE) {
		channel->full_at[channel->tail] = time + 1;
		channel->tail = channel->tail + 1 == channel->depth ? 0 : channel->tail + 1;
		channel->pushed++;
		flow_done(network, channel, FLOW_WRITER);
	}
}
#endif
