/* Who waits for whom where no process can go on. */
#include "simulate/flow_access.h"

static bool is_missing(const struct flow_access *access)
{
	const struct flow_channel *channel = access->channel;
	if (!channel)
		return false;
	if (access->kind == ACCESS_TAKE || access->kind == ACCESS_ACQUIRE_READ)
		return channel->popped == channel->pushed;
	return (access->kind == ACCESS_PUSH || access->kind == ACCESS_ACQUIRE_WRITE) && channel->pushed - channel->popped == channel->depth;
}

/* Of the accesses that hold up a frozen pipeline, the one of the oldest iteration, and of these the first. */
static const struct flow_access *oldest(const struct flow_process *process, const struct flow_pipe *pipe)
{
	const struct flow_access *found = process->waits_for;
	const struct flow_group *group = &pipe->group[pipe->at < pipe->groups ? pipe->at : 0];
	int64_t longest = -1;
	for (int i = group->first; i < group->first + group->count; i++) {
		const struct flow_access *access = &pipe->access[i];
		int64_t iteration = pipe->window - pipe->lag[i];
		bool made = iteration >= 0 && iteration < pipe->iterations && flow_is_made(pipe, access, iteration);
		bool older = pipe->lag[i] > longest || (pipe->lag[i] == longest && access->order < found->order);
		if (made && older && is_missing(access)) {
			longest = pipe->lag[i];
			found = access;
		}
	}
	return found;
}

static void find_oldest(struct flow_process *process)
{
	const struct flow_step *step = &process->steps.data[process->at];
	if (!process->ended && step->kind == STEP_PIPE && !step->pipe->flushes && !step->pipe->drained)
		process->waits_for = oldest(process, step->pipe);
}

static struct flow_process *waits_on(const struct flow_process *process)
{
	const struct flow_access *access = process->waits_for;
	const struct flow_channel *channel = access ? access->channel : NULL;
	return channel ? channel->process[flow_other(flow_side_of(access->kind))] : NULL;
}

/* The first process of the cycle in which the chain of waits closes, or the last one that still waits. */
static struct flow_process *find_cycle(const struct flow_network *network, struct flow_process *process)
{
	for (size_t i = 0; i < network->processes.count; i++) {
		struct flow_process *next = waits_on(process);
		if (!next || next->ended)
			return process;
		process = next;
	}
	struct flow_process *first = process;
	for (struct flow_process *other = waits_on(process); other != process; other = waits_on(other))
		first = other->number < first->number ? other : first;
	return first;
}

static void add_wait(const struct flow_process *process, struct flow_result *result)
{
	const struct flow_access *access = process->waits_for;
	const struct flow_channel *channel = access->channel;
	result->wait[result->waits++] = (struct flow_wait){
		.process = process->number, .channel = channel->number, .room = flow_side_of(access->kind) == FLOW_WRITER, .since = process->time, .depth = channel->given};
}

static void describe(const struct flow_result *result, const struct flow_wait *wait, struct text *text)
{
	const struct flow_channel_result *channel = &result->channel[wait->channel];
	text_add(text, "%s waits for %s %s (%s, depth %lld)", result->process[wait->process].name, !wait->room ? (channel->blocks ? "a block of" : "a word of") : "room in", channel->name, wait->room ? "full" : "empty", (long long)wait->depth);
}

struct flow_process *flow_first_stuck(const struct flow_network *network)
{
	for (size_t i = 0; i < network->processes.count; i++)
		if (!network->processes.data[i]->ended)
			return network->processes.data[i];
	return NULL;
}

static void add_cycle(struct flow_network *network, struct text *text, bool *listed, struct flow_result *result)
{
	struct flow_process *start = find_cycle(network, flow_first_stuck(network)), *process = start, *next;
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

/* With one channel as deep as it takes: wherever all wait and it is full, it gets deeper by one.  What is reached does not depend on times, so the depth is the least. */
static int64_t least_depth(struct flow_network *network, int channel)
{
	struct flow_channel *grows = network->channels.data[channel];
	for (flow_clean(network); flow_run_all(network); flow_deepen(network, grows)) {
		const struct flow_process *writer = grows->process[FLOW_WRITER];
		if (!flow_first_stuck(network))
			return grows->depth;
		if (grows->pushed - grows->popped < grows->depth || !writer || writer->ended)
			return 0;
	}
	return 0;
}

void flow_deadlock(struct flow_network *network, struct flow_result *result)
{
	struct arena *arena = network->options.arena;
	result->deadlock = "all processes wait";
	if (!arena)
		return;
	bool *listed = ARENA_ARRAY(arena, bool, network->processes.count);
	struct text text = text_new(arena);
	for (size_t i = 0; i < network->processes.count; i++)
		find_oldest(network->processes.data[i]);
	result->wait = ARENA_ARRAY(arena, struct flow_wait, network->processes.count);
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
