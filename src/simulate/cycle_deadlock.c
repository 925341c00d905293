/* Explains a deadlock of the cycle simulator: the cycle of processes that wait for one another, and
 * on request the smallest depth of each full FIFO in it that ends the deadlock. */
#include "simulate/cycle_access.h"

static bool is_missing(const struct cycle_access *access)
{
	const struct cycle_channel *channel = access->channel;
	if (!channel)
		return false;
	if (access->kind == ACCESS_TAKE || access->kind == ACCESS_ACQUIRE_READ)
		return channel->popped == channel->pushed;
	return (access->kind == ACCESS_PUSH || access->kind == ACCESS_ACQUIRE_WRITE) &&
	        channel->pushed - channel->popped == channel->depth;
}

/* Of the accesses that stall an stp pipeline, the one of the oldest iteration, and of these the
 * first in the body. */
static const struct cycle_access *oldest_missing(
        const struct cycle_process *process, const struct cycle_pipe *pipe)
{
	const struct cycle_access *found = process->waits_for;
	const struct cycle_group *group = &pipe->group[pipe->at < pipe->groups ? pipe->at : 0];
	int64_t longest = -1;
	for (int i = group->first; i < group->first + group->count; i++) {
		const struct cycle_access *access = &pipe->access[i];
		int64_t iteration = pipe->window - pipe->lag[i];
		bool made = iteration >= 0 && iteration < pipe->iterations &&
		        cycle_is_made(pipe, access, iteration);
		bool older = pipe->lag[i] > longest ||
		        (pipe->lag[i] == longest && access->order < found->order);
		if (made && older && is_missing(access)) {
			longest = pipe->lag[i];
			found = access;
		}
	}
	return found;
}

static void set_oldest_wait(struct cycle_process *process)
{
	const struct cycle_step *step = &process->steps.data[process->at];
	if (!process->ended && step->kind == STEP_PIPE && !step->pipe->flushes &&
	        !step->pipe->drained)
		process->waits_for = oldest_missing(process, step->pipe);
}

static struct cycle_process *waits_on(const struct cycle_process *process)
{
	const struct cycle_access *access = process->waits_for;
	const struct cycle_channel *channel = access ? access->channel : NULL;
	return channel ? channel->process[cycle_other_side(cycle_side_of(access->kind))] : NULL;
}

/* The first process of the cycle in which the chain of waits closes, or the last one that still
 * waits. */
static struct cycle_process *find_wait_cycle(
        const struct cycle_network *network, struct cycle_process *process)
{
	for (size_t i = 0; i < network->processes.count; i++) {
		struct cycle_process *next = waits_on(process);
		if (!next || next->ended)
			return process;
		process = next;
	}
	struct cycle_process *first = process;
	for (struct cycle_process *other = waits_on(process); other != process;
	        other = waits_on(other))
		first = other->number < first->number ? other : first;
	return first;
}

static void add_wait(const struct cycle_process *process, struct cycle_result *result)
{
	const struct cycle_access *access = process->waits_for;
	const struct cycle_channel *channel = access->channel;
	result->wait[result->waits++] = (struct cycle_wait){ .process = process->number,
		.channel = channel->number,
		.room = cycle_side_of(access->kind) == CYCLE_WRITER,
		.since = process->time,
		.depth = channel->run_depth };
}

static void describe(
        const struct cycle_result *result, const struct cycle_wait *wait, struct text *text)
{
	const struct cycle_channel_result *channel = &result->channel[wait->channel];
	const char *item = channel->blocks ? "a block of" : "a word of";
	if (wait->room)
		item = "space in";
	text_add(text, "%s waits for %s %s (%s, depth %lld)", result->process[wait->process].name,
	        item, channel->name, wait->room ? "full" : "empty", (long long)wait->depth);
}

struct cycle_process *cycle_first_stuck(const struct cycle_network *network)
{
	for (size_t i = 0; i < network->processes.count; i++)
		if (!network->processes.data[i]->ended)
			return network->processes.data[i];
	return NULL;
}

static void add_cycle(
        struct cycle_network *network, struct text *text, bool *listed, struct cycle_result *result)
{
	struct cycle_process *start = find_wait_cycle(network, cycle_first_stuck(network));
	struct cycle_process *process = start;
	struct cycle_process *next;
	do {
		add_wait(process, result);
		listed[process->number] = true;
		text_add(text, "%s", process == start ? "" : "; ");
		describe(result, &result->wait[result->waits - 1], text);
		next = waits_on(process);
		process = next;
	} while (next && !next->ended && next != start);
	if (!next || next->ended)
		text_add(text, ", whose other end %s", next ? "has ended" : "does not exist");
	result->cycle = result->waits;
}

/* The smallest depth of `channel` with which all processes end: whenever all wait and it is full,
 * it gets one slot more.  Which words flow does not depend on times, so no smaller depth does. */
static int64_t least_depth(struct cycle_network *network, int channel)
{
	struct cycle_channel *grows = network->channels.data[channel];
	for (cycle_clean(network); cycle_run_all(network); cycle_deepen(network, grows)) {
		const struct cycle_process *writer = grows->process[CYCLE_WRITER];
		if (!cycle_first_stuck(network))
			return grows->depth - grows->between;
		if (grows->pushed - grows->popped < grows->depth || !writer || writer->ended)
			return 0;
	}
	return 0;
}

void cycle_deadlock(struct cycle_network *network, struct cycle_result *result)
{
	struct arena *arena = network->options.arena;
	result->deadlock = "all processes wait";
	if (!arena)
		return;
	bool *listed = ARENA_ARRAY(arena, bool, network->processes.count);
	struct text text = text_new(arena);
	for (size_t i = 0; i < network->processes.count; i++)
		set_oldest_wait(network->processes.data[i]);
	result->wait = ARENA_ARRAY(arena, struct cycle_wait, network->processes.count);
	add_cycle(network, &text, listed, result);
	for (size_t i = 0; i < network->processes.count; i++)
		if (!network->processes.data[i]->ended && !listed[i])
			add_wait(network->processes.data[i], result);
	result->deadlock = text.data;
	network->options.samples = 0;
	network->options.path = false;
	for (int i = 0; network->options.remedy && i < result->cycle; i++)
		if (result->wait[i].room)
			result->wait[i].needed = least_depth(network, result->wait[i].channel);
}
