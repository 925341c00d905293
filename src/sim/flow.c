/* Runs the processes of a network in turn, each until it needs a time that is not known, and collects what they did. */
#include "sim/flow_network.h"

void flow_wake(struct flow_network *network, struct flow_process *process)
{
	if (!process || process->queued || process->ended)
		return;
	process->queued = true;
	network->queue[(network->first + network->queued++) % network->processes.count] = process;
}

/* Counts the words held, as far as both ends are known; a word that comes while another one goes finds it still there. */
static void count_words(struct flow_channel *channel)
{
	while (channel->counted_push < channel->pushed && channel->counted_pop < channel->popped) {
		if (channel->full_at[channel->push_slot] > channel->free_at[channel->pop_slot]) {
			channel->counted_pop++;
			channel->pop_slot = channel->pop_slot + 1 == channel->depth ? 0 : channel->pop_slot + 1;
			continue;
		}
		int64_t held = ++channel->counted_push - channel->counted_pop;
		channel->push_slot = channel->push_slot + 1 == channel->depth ? 0 : channel->push_slot + 1;
		channel->most = held > channel->most ? held : channel->most;
	}
}

/* At the end, words that nobody took are held too. */
static void count_rest(struct flow_channel *channel)
{
	count_words(channel);
	int64_t held = channel->pushed - channel->counted_pop;
	if (channel->counted_pop == channel->popped && held > channel->most)
		channel->most = held;
}

static bool run_access(struct flow_network *network, struct flow_process *process, struct flow_step *step)
{
	enum flow_cause cause = CAUSE_NONE;
	int64_t begins = process->time;
	process->waits_for = NULL;
	if (step->access.bit >= 0 && !(flow_condition_bits(step->condition, 0) >> step->access.bit & 1))
		return true;
	if (!flow_access_time(process, &step->access, &process->time, &cause))
		return false;
	process->waited[cause] += process->time - begins;
	flow_access_make(network, &step->access, process->time);
	return true;
}

typedef bool step_function(struct flow_network *network, struct flow_process *process, struct flow_step *step);

static bool run_loop(struct flow_network *network, struct flow_process *process, struct flow_step *step)
{
	(void)network;
	*step->counter = 0;
	if (!step->trips)
		process->at = step->target - 1;
	return true;
}

static bool run_next(struct flow_network *network, struct flow_process *process, struct flow_step *step)
{
	(void)network;
	if (++*step->counter < step->trips)
		process->at = step->target - 1;
	return true;
}

static bool run_wait(struct flow_network *network, struct flow_process *process, struct flow_step *step)
{
	(void)network;
	process->time += step->cycles;
	return true;
}

static bool run_pipe(struct flow_network *network, struct flow_process *process, struct flow_step *step)
{
	return flow_pipe_run(network, process, step->pipe);
}

static bool run_end(struct flow_network *network, struct flow_process *process, struct flow_step *step)
{
	(void)network;
	(void)step;
	process->ended = true;
	return false;
}

static step_function *const step_functions[] = {
	[STEP_LOOP] = run_loop, [STEP_NEXT] = run_next, [STEP_WAIT] = run_wait, [STEP_ACCESS] = run_access, [STEP_PIPE] = run_pipe, [STEP_END] = run_end,
};

static void resume(struct flow_network *network, struct flow_process *process)
{
	struct flow_step *step = &process->steps.data[process->at];
	while (step_functions[step->kind](network, process, step))
		step = &process->steps.data[++process->at];
	for (size_t i = 0; i < process->channels.count; i++)
		count_words(process->channels.data[i]);
}

static void run(struct flow_network *network)
{
	network->queue = ARENA_ARRAY(network->arena, struct flow_process *, network->processes.count + 1);
	for (size_t i = 0; i < network->processes.count; i++)
		flow_wake(network, network->processes.data[i]);
	while (network->queued) {
		struct flow_process *process = network->queue[network->first];
		network->first = (network->first + 1) % network->processes.count;
		network->queued--;
		process->queued = false;
		resume(network, process);
	}
}

/* --- deadlock */

static struct flow_process *waits_on(const struct flow_process *process)
{
	const struct flow_channel *channel = process->waits_for;
	return channel ? channel->process[process->side == FLOW_READER ? FLOW_WRITER : FLOW_READER] : NULL;
}

/* The process in which the chain of waits closes, or the last one that still waits. */
static struct flow_process *find_cycle(const struct flow_network *network, struct flow_process *process)
{
	for (size_t i = 0; i < network->processes.count; i++) {
		struct flow_process *next = waits_on(process);
		if (!next || next->ended)
			return process;
		process = next;
	}
	return process;
}

static void describe(const struct flow_process *process, struct text *text)
{
	const struct flow_channel *channel = process->waits_for;
	bool reads = process->side == FLOW_READER;
	text_add(text, "%s waits from cycle %lld for %s %s (%s, depth %lld)", process->name, (long long)process->time, reads ? (channel->blocks ? "a block of" : "a word of") : "room in",
		 channel->name, reads ? "empty" : "full", (long long)channel->depth);
}

static const char *deadlock(const struct flow_network *network, struct flow_process *stuck)
{
	struct flow_process *start = find_cycle(network, stuck), *process = start;
	struct text text = text_new(network->arena);
	do {
		text_add(&text, "%s", process == start ? "" : "; ");
		describe(process, &text);
		struct flow_process *next = waits_on(process);
		if (!next || next->ended) {
			text_add(&text, ", whose other end %s", next ? "has ended" : "does not exist");
			break;
		}
		process = next;
	} while (process != start);
	return text.data;
}

/* --- results */

static void collect_processes(const struct flow_network *network, struct flow_result *result)
{
	result->processes = (int)network->processes.count;
	result->process = ARENA_ARRAY(network->arena, struct flow_process_result, result->processes + 1);
	for (int i = 0; i < result->processes; i++) {
		struct flow_process *process = network->processes.data[i];
		result->process[i] = (struct flow_process_result){.name = process->name, .end = process->time, .ended = process->ended, .input = process->waited[CAUSE_INPUT],
								  .output = process->waited[CAUSE_OUTPUT], .memory = process->waited[CAUSE_MEMORY]};
		result->cycles = process->time > result->cycles ? process->time : result->cycles;
		if (!process->ended && !result->deadlock)
			result->deadlock = deadlock(network, process);
	}
}

static void collect_channels(const struct flow_network *network, struct flow_result *result)
{
	result->channels = (int)network->channels.count;
	result->channel = ARENA_ARRAY(network->arena, struct flow_channel_result, result->channels + 1);
	for (int i = 0; i < result->channels; i++) {
		struct flow_channel *channel = network->channels.data[i];
		count_rest(channel);
		result->channel[i] = (struct flow_channel_result){channel->name, channel->blocks, channel->depth, channel->most, channel->pushed};
	}
}

enum flow_outcome flow_simulate(struct arena *arena, const struct platform *platform, const struct module *module, int64_t budget, struct flow_result *result)
{
	struct flow_network network = {.arena = arena, .platform = platform, .module = module, .main = module_main(module), .first_output = -1};
	*result = (struct flow_result){.first_output = -1};
	if (!flow_build(&network))
		return FLOW_REFUSED;
	result->events = network.events;
	if (network.events > budget)
		return FLOW_OVER_BUDGET;
	run(&network);
	result->first_output = network.first_output;
	collect_processes(&network, result);
	collect_channels(&network, result);
	return result->deadlock ? FLOW_DEADLOCK : FLOW_DONE;
}
