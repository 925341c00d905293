/* How iterations pass a group of a flushing loop.  Most groups are one access to a channel or a read from memory that runs ahead: these pass in runs. */
#include "simulate/flow_access.h"

#define SPREAD 0x9e3779b97f4a7c15u    /* bits of conditions over the lists that are kept */
#define FEW 4                 /* iterations that are no run */

void flow_next_row(struct flow_pipe *pipe)
{
	pipe->inner = 0;
	for (int i = pipe->levels - 2; i >= 0; i--) {
		if (++*pipe->counter[i] < pipe->trips[i])
			return;
		*pipe->counter[i] = 0;
	}
}

void flow_list_made(const struct flow_pipe *pipe, const struct flow_group *group, uint64_t bits, struct flow_made *made)
{
	made->bits = bits;
	made->count = 0;
	for (int i = group->first; i < group->first + group->count; i++)
		if (pipe->access[i].bit < 0 || (bits >> pipe->access[i].bit & 1))
			made->access[made->count++] = &pipe->access[i];
}

/* Conditions hold in few ways, one after the other in turn. */
static inline const struct flow_made *made_of(const struct flow_pipe *pipe, const struct flow_group *group, uint64_t bits)
{
	struct flow_made *made = &group->made[(bits & group->conditions) * SPREAD >> (64 - FLOW_MADE_BITS)];
	if (made->bits != (bits & group->conditions))
		flow_list_made(pipe, group, bits & group->conditions, made);
	return made;
}

/* All accesses of an iteration to the group are made at once.  false: when is not known yet. */
FLOW_INLINE bool make_all(struct flow_network *network, struct flow_process *process, const struct flow_made *made, int64_t *time, const struct flow_access **why)
{
	const struct flow_access *const *access = made->access, *const *end = access + made->count;
	for (; access < end; access++)
		if (!flow_access_time(network, process, *access, time, why))
			return false;
	for (access = made->access; access < end; access++)
		flow_access_make(network, *access, *time);
	return true;
}

/* An iteration at a group: when it would pass if nothing held it up, when it may pass channels and ports aside, when it passes, and what it waits for. */
struct passage {
	int64_t begins, arrives, time;
	const struct flow_access *waits;
};

static inline int64_t begins(const struct flow_pipe *pipe, const struct flow_group *group, bool enters)
{
	int64_t comes = !enters ? group->before[group->done & pipe->mask] + group->distance : pipe->start, next = group->time + pipe->interval;
	return group->done && next > comes ? next : comes;
}

static inline struct passage arrive(struct flow_pipe *pipe, const struct flow_group *group, bool enters)
{
	int64_t first = begins(pipe, group, enters);
	struct passage p = {.begins = first, .time = first};
	if (group->behind && group->done >= group->room)
		flow_not_before(&p.time, &p.waits, group->behind[(group->done - group->room) & pipe->mask], group[1].why);
	p.arrives = p.time;
	if (enters && pipe->issued == group->done)
		flow_issue(pipe);
	return p;
}

/* Waits are counted where iterations enter; the others show in how late the last one leaves.  false: the process has had its turn. */
static inline bool leave(struct flow_network *network, struct flow_process *process, const struct flow_pipe *pipe, struct flow_group *group, bool enters, const struct passage *p)
{
	group->times[group->done++ & pipe->mask] = group->time = p->time;
	if (p->waits) {
		group->why = p->waits;
		if (enters)
			flow_waited(network, process, p->waits, p->begins, p->time);
		if (p->time > p->arrives)
			flow_held_up(network, p->waits, p->arrives, p->time);
	}
	return !enters || !flow_out_of_fuel(network, process);
}

/* enters: into the first group. */
FLOW_INLINE bool pass_one(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe, struct flow_group *group, bool enters)
{
	struct passage p = arrive(pipe, group, enters);
	if (!group->only) {
		if (!make_all(network, process, made_of(pipe, group, pipe->bits[group->done & pipe->mask]), &p.time, &p.waits))
			return false;
	} else if (flow_is_made(pipe, group->only, group->done)) {
		if (!flow_access_time(network, process, group->only, &p.time, &p.waits))
			return false;
		flow_access_make(network, group->only, p.time);
	}
	return leave(network, process, pipe, group, enters, &p);
}

/* --- runs: many iterations and one access, with all that they look at at hand */

struct run {
	const struct flow_access *access;
	int64_t at, may, last, start, interval, mask, distance, room;
	const int64_t *before, *behind;
	int64_t *times;
	const struct flow_access *why, *behind_why;
	bool enters;
};

static inline struct run begin_run(const struct flow_network *network, const struct flow_pipe *pipe, const struct flow_group *group, int64_t may)
{
	struct run run = {.access = group->only, .at = group->done, .may = may, .start = pipe->start, .interval = pipe->interval, .mask = pipe->mask, .distance = group->distance, .room = group->room};
	run.before = group->before;
	run.behind = group->behind;
	run.times = group->times;
	run.why = group->why;
	run.behind_why = run.behind ? group[1].why : NULL;
	run.enters = !run.before;
	run.last = run.at ? group->time : run.start - run.interval;
	if (run.enters && may - run.at > network->fuel + 1)
		run.may = run.at + network->fuel + 1;
	return run;
}

static inline struct passage run_on(const struct run *run, struct flow_pipe *pipe)
{
	int64_t comes = run->enters ? run->start : run->before[run->at & run->mask] + run->distance, next = run->last + run->interval;
	struct passage p = {.begins = next > comes ? next : comes};
	p.time = p.begins;
	if (run->behind && run->at >= run->room)
		flow_not_before(&p.time, &p.waits, run->behind[(run->at - run->room) & run->mask], run->behind_why);
	p.arrives = p.time;
	if (run->enters && pipe->issued == run->at)
		flow_issue(pipe);
	return p;
}

static inline void run_past(struct run *run, struct flow_network *network, struct flow_process *process, const struct passage *p)
{
	run->times[run->at++ & run->mask] = run->last = p->time;
	if (p->waits) {
		run->why = p->waits;
		if (run->enters)
			flow_waited(network, process, p->waits, p->begins, p->time);
		if (p->time > p->arrives)
			flow_held_up(network, p->waits, p->arrives, p->time);
	}
}

static inline void end_run(const struct run *run, struct flow_network *network, struct flow_process *process, struct flow_group *group)
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

static void run_channel(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe, struct flow_group *group, int64_t may)
{
	struct run run = begin_run(network, pipe, group, may);
	struct flow_channel *channel = run.access->channel;
	bool takes = run.access->kind == ACCESS_TAKE;
	int64_t *words = takes ? &channel->popped : &channel->pushed, *gives = takes ? channel->free_at : channel->full_at;
	const int64_t *needs = takes ? channel->full_at : channel->free_at, mask = channel->mask;
	int64_t begun = *words, word = begun, most = takes ? channel->pushed : channel->popped + channel->limit, ahead = takes ? 0 : channel->depth;
	while (run.at < run.may) {
		struct passage p = run_on(&run, pipe);
		if (flow_is_made(pipe, run.access, run.at)) {
			if (word == most) {
				flow_unknown(process, run.access);
				break;
			}
			if (word >= ahead)
				flow_not_before(&p.time, &p.waits, needs[(word - ahead) & mask], run.access);
			gives[word++ & mask] = p.time + 1;
		}
		run_past(&run, network, process, &p);
	}
	*words = word;
	if (word > begun)
		flow_done(network, channel, takes ? FLOW_READER : FLOW_WRITER);
	end_run(&run, network, process, group);
}

/* Burst by burst. */
static void run_load(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe, struct flow_group *group, int64_t may)
{
	struct run run = begin_run(network, pipe, group, may);
	struct flow_port *port = run.access->port;
	while (run.at < run.may) {
		if (!port->left && !flow_port_first(network, port)) {
			flow_unknown(process, run.access);
			break;
		}
		int64_t first = run.at, end = run.may - first < port->left ? run.may : first + port->left, next = port->next, word = port->word;
		for (; run.at < end; next += word) {
			struct passage p = run_on(&run, pipe);
			flow_not_before(&p.time, &p.waits, flow_cycle_of(next), run.access);
			flow_port_sample(network, port, p.time);
			run_past(&run, network, process, &p);
		}
		port->next = next;
		port->words += end - first;
		port->left -= end - first;
		if (!port->left)
			flow_port_end_burst(network, port, run.last);
	}
	end_run(&run, network, process, group);
}

/* Where addresses are not known when the loop begins, an iteration asks for its words when it has come, whether it may pass or not. */
static void pass_asking(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe, struct flow_group *group, int64_t may)
{
	int64_t come = group->before ? group[-1].done : pipe->iterations;
	do {
		for (int i = group->first; group->done < come && i < group->first + group->count; i++)
			flow_ask(network, pipe, &pipe->access[i], group->done, begins(pipe, group, !group->before));
	} while (group->done < may && pass_one(network, process, pipe, group, !group->before));
}

/* Iterations before this one may pass the group, channels and ports aside: they have come, and there is room behind it. */
static inline int64_t may_pass(const struct flow_pipe *pipe, const struct flow_group *group)
{
	int64_t come = group->before ? group[-1].done : pipe->iterations;
	return group->behind && group[1].done + group->room < come ? group[1].done + group->room : come;
}

static void pass_run(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe, struct flow_group *group, int64_t may)
{
	(group->only->port ? run_load : run_channel)(network, process, pipe, group, may);
}

/* As many iterations pass a group as can, until the process has had its turn.  The oldest go first, so that the first access that cannot be made is the one that the process really waits for. */
void flow_pass(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe)
{
	struct flow_group *first = &pipe->group[0], *last = &pipe->group[pipe->groups - 1];
	for (bool moved = true; moved && !process->yielded && last->done < pipe->iterations;) {
		moved = false;
		process->waits_for = NULL;
		for (struct flow_group *group = last; group >= first; group--) {
			int64_t done = group->done, may = may_pass(pipe, group);
			if (pipe->asks)
				pass_asking(network, process, pipe, group, may);
			else if (group->runs && may - done >= FEW)
				pass_run(network, process, pipe, group, may);
			else if (group == first)
				while (group->done < may && pass_one(network, process, pipe, group, true))
					;
			else
				while (group->done < may && pass_one(network, process, pipe, group, false))
					;
			moved |= group->done > done;
		}
	}
}
