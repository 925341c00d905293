/* Runs a pipelined loop of the cycle simulator: stp pipelines cycle by cycle, flp pipelines by
 * cycle_advance.c; then waits until written data has arrived. */
#include "simulate/cycle_access.h"

/* Can iterations pass this access in bulk?  Decided for each run, since depths differ.  Words of
 * results pass one by one: some complete an image. */
static bool is_bulk(const struct cycle_access *only)
{
	return only && !(only->channel && only->channel->results) &&
	        (only->kind == ACCESS_LOAD || only->kind == ACCESS_TAKE ||
	                (only->kind == ACCESS_PUSH && only->channel->depth != UNBOUNDED));
}

static void begin(
        struct cycle_network *network, struct cycle_process *process, struct cycle_pipe *pipe)
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
		pipe->group[i].runs = is_bulk(pipe->group[i].only);
	}
	for (int i = 0; !pipe->drained && i < pipe->accesses; i++)
		if (pipe->access[i].port)
			cycle_port_begin(network, pipe->access[i].port, &pipe->access[i].requests,
			        pipe->start + pipe->access[i].stage);
}

/* All accesses of one cycle of an stp pipeline, or none of them. */
static bool run_cycle(struct cycle_network *network, struct cycle_process *process,
        struct cycle_pipe *pipe, const struct cycle_group *group)
{
	int64_t cycle = pipe->window * pipe->interval + group->stage;
	int64_t begins = process->time + cycle - pipe->cycle;
	int64_t time = begins;
	const struct cycle_access *why = NULL;
	for (int i = group->first; pipe->asks && i < group->first + group->count; i++)
		cycle_ask(network, pipe, &pipe->access[i], pipe->window - pipe->lag[i], begins);
	for (int pass = 0; pass < 2; pass++)
		for (int i = group->first; i < group->first + group->count; i++) {
			int64_t iteration = pipe->window - pipe->lag[i];
			const struct cycle_access *access = &pipe->access[i];
			if (iteration < 0 || iteration >= pipe->iterations ||
			        !cycle_is_made(pipe, access, iteration))
				continue;
			if (pass)
				cycle_access_make(network, access, time);
			else if (!cycle_access_time(network, process, access, &time, &why))
				return false;
		}
	if (time > begins) {
		cycle_log_wait(network, process, why, begins, time);
		cycle_log_stall(network, why, begins, time);
	}
	process->time = time;
	pipe->cycle = cycle;
	return true;
}

/* Style stp: the pipeline stalls as a whole. */
static bool run_stalling(
        struct cycle_network *network, struct cycle_process *process, struct cycle_pipe *pipe)
{
	process->waits_for = NULL;
	for (; pipe->window <= pipe->last_window; pipe->window++, pipe->at = 0) {
		if (pipe->issued == pipe->window && pipe->issued < pipe->iterations)
			cycle_issue(pipe);
		for (; pipe->at < pipe->groups; pipe->at++)
			if (!run_cycle(network, process, pipe, &pipe->group[pipe->at]))
				return false;
		if (cycle_must_yield(network, process)) {
			pipe->window++;
			pipe->at = 0;
			return false;
		}
	}
	process->time += (pipe->iterations - 1) * pipe->interval + pipe->depth - pipe->cycle;
	return true;
}

/* The access that delayed the last group that was delayed at all. */
static const struct cycle_access *last_reason(const struct cycle_pipe *pipe)
{
	const struct cycle_access *why = NULL;
	for (int i = pipe->groups - 1; i >= 0 && !why; i--)
		why = pipe->group[i].why;
	return why;
}

/* When the next loop's first iteration may enter without overtaking the last one of this loop. */
static int64_t next_entry(const struct cycle_pipe *pipe)
{
	const struct cycle_group *first = &pipe->group[0];
	const struct cycle_group *last = &pipe->group[pipe->groups - 1];
	int64_t enters = first->time + pipe->interval;
	int64_t leaves = last->time + 1 - last->stage;
	return enters > leaves ? enters : leaves;
}

/* Style flp. */
static bool run_flushing(
        struct cycle_network *network, struct cycle_process *process, struct cycle_pipe *pipe)
{
	struct cycle_group *first = &pipe->group[0];
	struct cycle_group *last = &pipe->group[pipe->groups - 1];
	cycle_advance(network, process, pipe);
	if (process->yielded)
		return false;
	process->time = last->done ? last->time : pipe->start;
	if (last->done < pipe->iterations)
		return false;
	int64_t left = first->time + last->stage;
	if (last->time > left)
		cycle_log_wait(network, process, last_reason(pipe), left, last->time);
	process->left = last->time + pipe->depth - last->stage;
	process->time = process->rewinding ? next_entry(pipe) : process->left;
	return true;
}

/* Lower bound of the cycle of anything that the loop still does. */
int64_t cycle_pipe_bound(const struct cycle_process *process, const struct cycle_pipe *pipe)
{
	int64_t bound = INT64_MAX;
	if (!pipe->flushes || pipe->drained)
		return process->time;
	for (int i = 0; i < pipe->groups; i++) {
		const struct cycle_group *group = &pipe->group[i];
		int64_t time = group->done ? group->time : pipe->start;
		bound = group->done < pipe->iterations && time < bound ? time : bound;
	}
	return bound;
}

/* Waits until what was written has arrived in memory. */
static bool arrive(
        struct cycle_network *network, struct cycle_process *process, const struct cycle_pipe *pipe)
{
	for (int i = 0; i < pipe->accesses; i++)
		if (pipe->access[i].kind == ACCESS_STORE &&
		        !cycle_port_end(network, process, &pipe->access[i]))
			return cycle_unknown(process, &pipe->access[i]);
	return true;
}

bool cycle_pipe_run(
        struct cycle_network *network, struct cycle_process *process, struct cycle_pipe *pipe)
{
	if (!pipe->running)
		begin(network, process, pipe);
	bool (*run)(struct cycle_network *, struct cycle_process *, struct cycle_pipe *) =
	        pipe->flushes ? run_flushing : run_stalling;
	if (!pipe->drained && !run(network, process, pipe))
		return false;
	pipe->drained = true;
	if (pipe->iterations && !arrive(network, process, pipe))
		return false;
	pipe->running = false;
	process->time += process->rewinding ? 0 : LOOP_CYCLES;
	return true;
}
