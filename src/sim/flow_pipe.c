/* Pipelined loops of the time simulator. */
#include "sim/flow_network.h"

static void begin(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe)
{
	pipe->running = true;
	pipe->drained = !pipe->iterations;
	pipe->start = process->time;
	pipe->inner = pipe->issued = pipe->window = pipe->cycle = 0;
	pipe->at = 0;
	for (int i = 0; i < pipe->levels; i++)
		*pipe->counter[i] = 0;
	for (int i = 0; i < pipe->groups; i++) {
		pipe->group[i].done = pipe->group[i].time = 0;
		pipe->group[i].why = NULL;
	}
	for (int i = 0; !pipe->drained && i < pipe->accesses; i++)
		if (pipe->access[i].port)
			flow_port_begin(network, pipe->access[i].port, &pipe->access[i].stretch, pipe->start + pipe->access[i].stage);
}

/* An iteration enters: its conditions, and the counters of the next one. */
static void issue(struct flow_pipe *pipe)
{
	int64_t slot = pipe->issued++ & (pipe->ring - 1);
	if (!pipe->condition.when.count)
		return;
	pipe->bits[slot] = flow_condition_bits(&pipe->condition, pipe->inner);
	if (++pipe->inner < pipe->trips[pipe->levels - 1])
		return;
	pipe->inner = 0;
	for (int i = pipe->levels - 2; i >= 0; i--) {
		if (++*pipe->counter[i] < pipe->trips[i])
			return;
		*pipe->counter[i] = 0;
	}
}

static bool out_of_fuel(struct flow_network *network, struct flow_process *process)
{
	process->yielded = --network->fuel < 0;
	return process->yielded;
}

static void ask(struct flow_network *network, const struct flow_pipe *pipe, const struct flow_access *access, int64_t iteration, int64_t time)
{
	if (access->kind == ACCESS_LOAD && iteration >= 0 && iteration < pipe->iterations)
		flow_port_ask(network, access->port, time);
}

static bool run_cycle(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe, const struct flow_group *group)
{
	int64_t cycle = pipe->window * pipe->interval + group->stage, begins = process->time + cycle - pipe->cycle, time = begins;
	const struct flow_access *why = NULL;
	for (int i = group->first; pipe->asks && i < group->first + group->count; i++)
		ask(network, pipe, &pipe->access[i], pipe->window - pipe->lag[i], begins);
	for (int pass = 0; pass < 2; pass++)
		for (int i = group->first; i < group->first + group->count; i++) {
			int64_t iteration = pipe->window - pipe->lag[i];
			const struct flow_access *access = &pipe->access[i];
			if (iteration < 0 || iteration >= pipe->iterations || !flow_is_made(pipe, access, iteration))
				continue;
			if (pass)
				flow_access_make(network, access, time);
			else if (!flow_access_time(network, process, access, &time, &why))
				return false;
		}
	if (time > begins) {
		flow_waited(network, process, why, begins, time);
		flow_held_up(network, why, begins, time);
	}
	process->time = time;
	pipe->cycle = cycle;
	return true;
}

/* Style stp. */
static bool run_frozen(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe)
{
	process->waits_for = NULL;
	for (; pipe->window <= pipe->last_window; pipe->window++, pipe->at = 0) {
		if (pipe->issued == pipe->window && pipe->issued < pipe->iterations)
			issue(pipe);
		for (; pipe->at < pipe->groups; pipe->at++)
			if (!run_cycle(network, process, pipe, &pipe->group[pipe->at]))
				return false;
		if (out_of_fuel(network, process)) {
			pipe->window++;
			pipe->at = 0;
			return false;
		}
	}
	process->time += (pipe->iterations - 1) * pipe->interval + pipe->depth - pipe->cycle;
	return true;
}

static inline bool is_among(const struct flow_access *access, uint64_t bits)
{
	return access->bit < 0 || (bits >> access->bit & 1);
}

/* All accesses of an iteration to the group are made at once.  false: when is not known yet. */
static inline bool make_all(struct flow_network *network, struct flow_process *process, const struct flow_access *first, const struct flow_access *end, uint64_t bits, int64_t *time,
			    const struct flow_access **why)
{
	for (const struct flow_access *access = first; access < end; access++)
		if (is_among(access, bits) && !flow_access_time(network, process, access, time, why))
			return false;
	for (const struct flow_access *access = first; access < end; access++)
		if (is_among(access, bits))
			flow_access_make(network, access, *time);
	return true;
}

/* Iterations before this one may pass the group, channels and ports aside: they have come, and there is room behind it. */
static int64_t may_pass(const struct flow_pipe *pipe, int number)
{
	const struct flow_group *group = &pipe->group[number];
	int64_t come = number ? group[-1].done : pipe->iterations;
	return number + 1 < pipe->groups && group[1].done + group->room < come ? group[1].done + group->room : come;
}

static void ask_all(struct flow_network *network, const struct flow_pipe *pipe, const struct flow_group *group, int64_t iteration, int64_t time)
{
	for (int i = group->first; i < group->first + group->count; i++)
		ask(network, pipe, &pipe->access[i], iteration, time);
}

/* As many iterations pass the group as can, until the process has had its turn; false: none.  Waits are counted where iterations enter; the others show in how late the last one leaves. */
static bool pass_group(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe, int number)
{
	struct flow_group *group = &pipe->group[number];
	const struct flow_access *first = pipe->access + group->first, *end = first + group->count;
	const int64_t *before = number ? group[-1].times : NULL, *behind = number + 1 < pipe->groups ? group[1].times : NULL;
	int64_t mask = pipe->ring - 1, distance = number ? group->stage - group[-1].stage : 0, last = group->time;
	int64_t begun = group->done, may = may_pass(pipe, number), come = !pipe->asks ? may : number ? group[-1].done : pipe->iterations, i = begun;
	while (i < come) {
		int64_t begins = before ? before[i & mask] + distance : pipe->start;
		const struct flow_access *why = NULL;
		begins = i && last + pipe->interval > begins ? last + pipe->interval : begins;
		if (pipe->asks)
			ask_all(network, pipe, group, i, begins);
		if (i >= may)
			break;
		int64_t time = begins;
		if (behind && i >= group->room)
			flow_not_before(&time, &why, behind[(i - group->room) & mask], group[1].why);
		if (!number && pipe->issued == i)
			issue(pipe);
		int64_t arrives = time;
		if (!make_all(network, process, first, end, pipe->bits[i & mask], &time, &why))
			break;
		group->times[i++ & mask] = last = time;
		group->why = why ? why : group->why;
		if (!number && time > begins)
			flow_waited(network, process, why, begins, time);
		if (time > arrives)
			flow_held_up(network, why, arrives, time);
		if (!number && out_of_fuel(network, process))
			break;
	}
	group->done = i;
	group->time = last;
	return i > begun;
}

/* What held up the group nearest to the end. */
static const struct flow_access *last_reason(const struct flow_pipe *pipe)
{
	const struct flow_access *why = NULL;
	for (int i = pipe->groups - 1; i >= 0 && !why; i--)
		why = pipe->group[i].why;
	return why;
}

/* Style flp.  The oldest iterations go first, so that the first access that cannot be made is the one that the process really waits for. */
static bool run_flushing(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe)
{
	struct flow_group *first = &pipe->group[0], *last = &pipe->group[pipe->groups - 1];
	for (bool moved = true; moved && last->done < pipe->iterations;) {
		moved = false;
		process->waits_for = NULL;
		for (int i = pipe->groups - 1; i >= 0; i--)
			moved |= pass_group(network, process, pipe, i);
		if (process->yielded)
			return false;
	}
	process->time = last->done ? last->time : pipe->start;
	if (last->done < pipe->iterations)
		return false;
	int64_t left = first->time + last->stage;
	if (last->time > left)
		flow_waited(network, process, last_reason(pipe), left, last->time);
	process->time += pipe->depth - last->stage;
	return true;
}

/* Nothing that the loop still does is earlier. */
int64_t flow_pipe_bound(const struct flow_process *process, const struct flow_pipe *pipe)
{
	int64_t bound = INT64_MAX;
	if (!pipe->flushes || pipe->drained)
		return process->time;
	for (int i = 0; i < pipe->groups; i++) {
		const struct flow_group *group = &pipe->group[i];
		int64_t time = group->done ? group->time : pipe->start;
		bound = group->done < pipe->iterations && time < bound ? time : bound;
	}
	return bound;
}

/* What was written has arrived in memory. */
static bool arrive(struct flow_network *network, struct flow_process *process, const struct flow_pipe *pipe)
{
	for (int i = 0; i < pipe->accesses; i++)
		if (pipe->access[i].kind == ACCESS_STORE && !flow_port_end(network, process, &pipe->access[i]))
			return flow_unknown(process, &pipe->access[i]);
	return true;
}

bool flow_pipe_run(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe)
{
	if (!pipe->running)
		begin(network, process, pipe);
	if (!pipe->drained && !(pipe->flushes ? run_flushing : run_frozen)(network, process, pipe))
		return false;
	pipe->drained = true;
	if (pipe->iterations && !arrive(network, process, pipe))
		return false;
	pipe->running = false;
	process->time += LOOP_CYCLES;
	return true;
}
