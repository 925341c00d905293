/* Moves iterations through the stages of a flushing (flp) pipeline.  Most groups are a single
 * access to a bounded channel or a prefetched memory read: iterations pass them in bulk. */
#include "simulate/cycle_access.h"

#define SPREAD 0x9e3779b97f4a7c15u /* multiplicative hash of condition bits */
#define RUN_LEAST 4                /* fewer iterations are passed one by one */

void cycle_next_row(struct cycle_pipe *pipe)
{
	pipe->inner = 0;
	for (int i = pipe->levels - 2; i >= 0; i--) {
		if (++*pipe->counter[i] < pipe->trips[i])
			return;
		*pipe->counter[i] = 0;
	}
}

void cycle_list_made(const struct cycle_pipe *pipe, const struct cycle_group *group, uint64_t bits,
        struct cycle_made *made)
{
	made->bits = bits;
	made->count = 0;
	for (int i = group->first; i < group->first + group->count; i++)
		if (pipe->access[i].bit < 0 || (bits >> pipe->access[i].bit & 1))
			made->access[made->count++] = &pipe->access[i];
}

/* The accesses made under these bits, from a small cache: few combinations of bits recur. */
static inline const struct cycle_made *made_of(
        const struct cycle_pipe *pipe, const struct cycle_group *group, uint64_t bits)
{
	struct cycle_made *made =
	        &group->made[(bits & group->conditions) * SPREAD >> (64 - CYCLE_MADE_BITS)];
	if (made->bits != (bits & group->conditions))
		cycle_list_made(pipe, group, bits & group->conditions, made);
	return made;
}

/* All accesses of an iteration to the group are made at once.  false: when is not known yet. */
CYCLE_INLINE bool make_all(struct cycle_network *network, struct cycle_process *process,
        const struct cycle_made *made, int64_t *time, const struct cycle_access **why)
{
	const struct cycle_access *const *access = made->access;
	const struct cycle_access *const *end = access + made->count;
	for (; access < end; access++)
		if (!cycle_access_time(network, process, *access, time, why))
			return false;
	for (access = made->access; access < end; access++)
		cycle_access_make(network, *access, *time);
	return true;
}

/* An iteration that passes a group. */
struct passage {
	bool enters; /* the group is the first: the iteration enters the pipeline */
	/* cycle in which it would pass if nothing blocked; if only room in the pipeline blocked;
	 * in which it passes */
	int64_t begins, arrives, time;
	const struct cycle_access *waits; /* the access that delays it */
};

static inline int64_t begins(
        const struct cycle_pipe *pipe, const struct cycle_group *group, bool enters)
{
	int64_t comes =
	        !enters ? group->before[group->done & pipe->mask] + group->distance : pipe->start;
	int64_t next = group->time + pipe->interval;
	return group->done && next > comes ? next : comes;
}

static inline struct passage arrive(
        struct cycle_pipe *pipe, const struct cycle_group *group, bool enters)
{
	int64_t first = begins(pipe, group, enters);
	struct passage p = { .enters = enters, .begins = first, .time = first };
	if (group->next_times && group->done >= group->room)
		cycle_not_before(&p.time, &p.waits,
		        group->next_times[(group->done - group->room) & pipe->mask], group[1].why);
	p.arrives = p.time;
	if (enters && pipe->issued == group->done)
		cycle_issue(pipe);
	return p;
}

/* Waits are counted where iterations enter; later ones show in when the last iteration leaves.
 * false: the process has used its fuel. */
static inline bool leave(struct cycle_network *network, struct cycle_process *process,
        const struct cycle_pipe *pipe, struct cycle_group *group, const struct passage *p)
{
	group->times[group->done++ & pipe->mask] = group->time = p->time;
	if (p->waits) {
		group->why = p->waits;
		if (p->enters)
			cycle_log_wait(network, process, p->waits, p->begins, p->time);
		if (p->time > p->arrives)
			cycle_log_stall(network, p->waits, p->arrives, p->time);
	}
	return !p->enters || !cycle_must_yield(network, process);
}

/* One iteration passes the group, the first one of the pipeline where `enters`.  false: it cannot
 * pass yet, or the process yields. */
CYCLE_INLINE bool pass_one(struct cycle_network *network, struct cycle_process *process,
        struct cycle_pipe *pipe, struct cycle_group *group, bool enters)
{
	struct passage p = arrive(pipe, group, enters);
	if (!group->only) {
		if (!make_all(network, process,
		            made_of(pipe, group, pipe->bits[group->done & pipe->mask]), &p.time,
		            &p.waits))
			return false;
	} else if (cycle_is_made(pipe, group->only, group->done)) {
		if (!cycle_access_time(network, process, group->only, &p.time, &p.waits))
			return false;
		cycle_access_make(network, group->only, p.time);
	}
	return leave(network, process, pipe, group, &p);
}

/* --- many iterations and one access */

/* Local copy of all that the loop over iterations reads and writes, so that it stays in
 * registers. */
struct access_run {
	const struct cycle_access *access;
	int64_t at, may, last, start, interval, mask, distance, room;
	const int64_t *before, *next_times;
	int64_t *times;
	const struct cycle_access *why, *next_why;
	bool enters;
};

static inline struct access_run begin_run(const struct cycle_network *network,
        const struct cycle_pipe *pipe, const struct cycle_group *group, int64_t may)
{
	struct access_run run = { .access = group->only,
		.at = group->done,
		.may = may,
		.start = pipe->start,
		.interval = pipe->interval,
		.mask = pipe->mask,
		.distance = group->distance,
		.room = group->room };
	run.before = group->before;
	run.next_times = group->next_times;
	run.times = group->times;
	run.why = group->why;
	run.next_why = run.next_times ? group[1].why : NULL;
	run.enters = !run.before;
	run.last = run.at ? group->time : run.start - run.interval;
	if (run.enters && may - run.at > network->fuel + 1)
		run.may = run.at + network->fuel + 1;
	return run;
}

static inline struct passage run_on(const struct access_run *run, struct cycle_pipe *pipe)
{
	int64_t comes = run->enters ? run->start : run->before[run->at & run->mask] + run->distance;
	int64_t next = run->last + run->interval;
	struct passage p = { .begins = next > comes ? next : comes };
	p.time = p.begins;
	if (run->next_times && run->at >= run->room)
		cycle_not_before(&p.time, &p.waits,
		        run->next_times[(run->at - run->room) & run->mask], run->next_why);
	p.arrives = p.time;
	if (run->enters && pipe->issued == run->at)
		cycle_issue(pipe);
	return p;
}

static inline void run_past(struct access_run *run, struct cycle_network *network,
        struct cycle_process *process, const struct passage *p)
{
	run->times[run->at++ & run->mask] = run->last = p->time;
	if (p->waits) {
		run->why = p->waits;
		if (run->enters)
			cycle_log_wait(network, process, p->waits, p->begins, p->time);
		if (p->time > p->arrives)
			cycle_log_stall(network, p->waits, p->arrives, p->time);
	}
}

static inline void end_run(const struct access_run *run, struct cycle_network *network,
        struct cycle_process *process, struct cycle_group *group)
{
	if (run->enters) {
		network->fuel -= run->at - group->done;
		process->yielded = network->fuel < 0;
	}
	if (run->at > group->done)
		group->time = run->last;
	group->done = run->at;
	group->why = run->why;
}

static void run_channel(struct cycle_network *network, struct cycle_process *process,
        struct cycle_pipe *pipe, struct cycle_group *group, int64_t may)
{
	struct access_run run = begin_run(network, pipe, group, may);
	struct cycle_channel *channel = run.access->channel;
	bool takes = run.access->kind == ACCESS_TAKE;
	int64_t *words = takes ? &channel->popped : &channel->pushed;
	int64_t *gives = takes ? channel->free_at : channel->full_at;
	const int64_t *needs = takes ? channel->full_at : channel->free_at;
	const int64_t mask = channel->mask;
	int64_t begun = *words;
	int64_t word = begun;
	int64_t most = takes ? channel->pushed : channel->popped + channel->limit;
	int64_t ahead = takes ? 0 : channel->depth;
	int64_t passes = takes ? 1 : channel->passes;
	while (run.at < run.may) {
		struct passage p = run_on(&run, pipe);
		if (cycle_is_made(pipe, run.access, run.at)) {
			if (word == most) {
				cycle_unknown(process, run.access);
				break;
			}
			if (word >= ahead)
				cycle_not_before(&p.time, &p.waits, needs[(word - ahead) & mask],
				        run.access);
			gives[word++ & mask] = p.time + passes;
		}
		run_past(&run, network, process, &p);
	}
	*words = word;
	if (word > begun)
		cycle_notify(network, channel, takes ? CYCLE_READER : CYCLE_WRITER);
	end_run(&run, network, process, group);
}

/* Prefetched reads, burst by burst. */
static void run_load(struct cycle_network *network, struct cycle_process *process,
        struct cycle_pipe *pipe, struct cycle_group *group, int64_t may)
{
	struct access_run run = begin_run(network, pipe, group, may);
	struct cycle_port *port = run.access->port;
	while (run.at < run.may) {
		if (!port->left && !cycle_port_first(network, port)) {
			cycle_unknown(process, run.access);
			break;
		}
		int64_t first = run.at;
		int64_t end = run.may - first < port->left ? run.may : first + port->left;
		int64_t next = port->next;
		int64_t word = port->word;
		for (; run.at < end; next += word) {
			struct passage p = run_on(&run, pipe);
			cycle_not_before(&p.time, &p.waits, cycle_from_parts(next), run.access);
			cycle_port_sample(network, port, p.time);
			run_past(&run, network, process, &p);
		}
		port->next = next;
		port->words += end - first;
		port->left -= end - first;
		if (!port->left)
			cycle_port_end_burst(network, port, run.last);
	}
	end_run(&run, network, process, group);
}

/* Where addresses are not known when the loop begins, an iteration requests its words when it
 * reaches the group, even if it has to wait there. */
static void pass_asking(struct cycle_network *network, struct cycle_process *process,
        struct cycle_pipe *pipe, struct cycle_group *group, int64_t may)
{
	int64_t come = group->before ? group[-1].done : pipe->iterations;
	do {
		for (int i = group->first; group->done < come && i < group->first + group->count;
		        i++)
			cycle_ask(network, pipe, &pipe->access[i], group->done,
			        begins(pipe, group, !group->before));
	} while (group->done < may && pass_one(network, process, pipe, group, !group->before));
}

/* First iteration that cannot pass the group yet: it has not reached the group, or there is no
 * room after it.  Channels and ports are not looked at. */
static inline int64_t may_pass(const struct cycle_pipe *pipe, const struct cycle_group *group)
{
	int64_t come = group->before ? group[-1].done : pipe->iterations;
	return group->next_times && group[1].done + group->room < come ? group[1].done + group->room
	                                                               : come;
}

static void pass_run(struct cycle_network *network, struct cycle_process *process,
        struct cycle_pipe *pipe, struct cycle_group *group, int64_t may)
{
	(group->only->port ? run_load : run_channel)(network, process, pipe, group, may);
}

/* Until nothing moves, or the process yields.  The oldest iterations go first, so that the first
 * access that cannot be made is the one that the process really waits for. */
void cycle_advance(
        struct cycle_network *network, struct cycle_process *process, struct cycle_pipe *pipe)
{
	struct cycle_group *first = &pipe->group[0];
	struct cycle_group *last = &pipe->group[pipe->groups - 1];
	for (bool moved = true; moved && !process->yielded && last->done < pipe->iterations;) {
		moved = false;
		process->waits_for = NULL;
		for (struct cycle_group *group = last; group >= first; group--) {
			int64_t done = group->done;
			int64_t may = may_pass(pipe, group);
			if (pipe->asks)
				pass_asking(network, process, pipe, group, may);
			else if (group->runs && may - done >= RUN_LEAST)
				pass_run(network, process, pipe, group, may);
			else if (group == first)
				while (group->done < may &&
				        pass_one(network, process, pipe, group, true))
					;
			else
				while (group->done < may &&
				        pass_one(network, process, pipe, group, false))
					;
			moved |= group->done > done;
		}
	}
}
