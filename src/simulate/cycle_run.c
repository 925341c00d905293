/* Scheduler of the cycle simulator: runs ready processes round-robin, each until it needs a time
 * that is not known, and executes their steps. */
#include "simulate/cycle_access.h"

/* Iterations after which a process yields: processes advance in step, so that unbounded FIFOs
 * need little memory. */
#define FUEL ((int64_t)1 << 14)
#define SLOTS_LEAST 16

/* --- channels */

static void make_room(struct cycle_network *network, struct cycle_channel *channel, int64_t words)
{
	int64_t slots = channel->mask + 1;
	if (slots >= words)
		return;
	for (slots = slots < SLOTS_LEAST ? SLOTS_LEAST : slots; slots < words;)
		slots *= 2;
	int64_t *full_at = ARENA_ARRAY(network->arena, int64_t, slots);
	int64_t *free_at = ARENA_ARRAY(network->arena, int64_t, slots);
	for (int64_t k = channel->popped; k < channel->pushed; k++)
		full_at[k & (slots - 1)] = channel->full_at[k & channel->mask];
	for (int64_t k = channel->popped > channel->mask ? channel->popped - channel->mask - 1 : 0;
	        k < channel->popped; k++)
		free_at[k & (slots - 1)] = channel->free_at[k & channel->mask];
	channel->full_at = full_at;
	channel->free_at = free_at;
	channel->mask = slots - 1;
}

void cycle_set_depth(struct cycle_network *network, struct cycle_channel *channel, int64_t depth)
{
	channel->depth = depth;
	make_room(network, channel, depth == UNBOUNDED ? SLOTS_LEAST : depth);
	channel->limit = depth == UNBOUNDED ? channel->mask + 1 : depth;
}

void cycle_deepen(struct cycle_network *network, struct cycle_channel *channel)
{
	cycle_set_depth(network, channel, channel->depth + 1);
	channel->waiting[CYCLE_WRITER] = false;
	cycle_wake(network, channel->process[CYCLE_WRITER]);
}

bool cycle_full(struct cycle_network *network, struct cycle_channel *channel)
{
	if (channel->depth != UNBOUNDED)
		return true;
	/* its slots are full, or pops are not counted yet: both are mended here */
	cycle_count_words(network, channel);
	make_room(network, channel, 2 * (channel->pushed - channel->counted_pop));
	cycle_count_words(network, channel);
	return false;
}

/* Updates the highest occupancy as far as times of both ends are known.  Where a push and a pop
 * fall into the same cycle, the push counts first. */
void cycle_count_words(struct cycle_network *network, struct cycle_channel *channel)
{
	const int64_t *full_at = channel->full_at;
	const int64_t *free_at = channel->free_at;
	int64_t push = channel->counted_push;
	int64_t pop = channel->counted_pop;
	int64_t pushed = channel->pushed;
	int64_t popped = channel->popped;
	int64_t mask = channel->mask;
	int64_t most = channel->most;
	struct cycle_occupancy occupancy = cycle_occupancy_of(network, channel);
	while (push < pushed && pop < popped) {
		int64_t full = full_at[push & mask];
		int64_t free = free_at[pop & mask];
		int64_t words = push - pop;
		if (full > free) {
			cycle_set_occupancy(network, channel, &occupancy, free, words);
			pop++;
			continue;
		}
		cycle_set_occupancy(network, channel, &occupancy, full, words);
		push++;
		most = words + 1 > most ? words + 1 : most;
	}
	channel->counted_push = push;
	channel->counted_pop = pop;
	channel->most = most;
	channel->occupied_since = occupancy.since;
	if (channel->depth == UNBOUNDED)
		channel->limit = channel->mask + 1 - (channel->popped - channel->counted_pop);
}

/* --- steps */

void cycle_wake(struct cycle_network *network, struct cycle_process *process)
{
	if (!process || process->queued || process->ended)
		return;
	process->queued = true;
	size_t place = network->first + network->queued++;
	network->queue[place < network->processes.count ? place
	                                                : place - network->processes.count] =
	        process;
}

bool cycle_unknown(struct cycle_process *process, const struct cycle_access *access)
{
	if (access->channel)
		access->channel->waiting[cycle_side_of(access->kind)] = true;
	if (!process->waits_for)
		process->waits_for = access;
	return false;
}

static bool run_access(
        struct cycle_network *network, struct cycle_process *process, struct cycle_step *step)
{
	const struct cycle_access *why = NULL;
	int64_t begins = process->time;
	bool resumed = process->waits_for == &step->access;
	process->waits_for = NULL;
	if (step->access.bit >= 0 &&
	        !(cycle_condition_bits(step->condition, 0) >> step->access.bit & 1))
		return true;
	if (step->access.port && !resumed) {
		cycle_port_begin(network, step->access.port, &step->access.requests, process->time);
		cycle_port_ask(network, step->access.port, process->time);
	}
	if (!cycle_access_time(network, process, &step->access, &process->time, &why))
		return false;
	if (process->time > begins) {
		cycle_log_wait(network, process, why, begins, process->time);
		cycle_log_stall(network, why, begins, process->time);
	}
	cycle_access_make(network, &step->access, process->time);
	return true;
}

static bool run_arrival(
        struct cycle_network *network, struct cycle_process *process, struct cycle_step *step)
{
	process->waits_for = NULL;
	return cycle_port_end(network, process, &step->access) ||
	        cycle_unknown(process, &step->access);
}

typedef bool step_function(
        struct cycle_network *network, struct cycle_process *process, struct cycle_step *step);

static bool run_loop(
        struct cycle_network *network, struct cycle_process *process, struct cycle_step *step)
{
	(void)network;
	*step->counter = 0;
	if (!step->trips)
		process->at = step->target - 1;
	return true;
}

static bool run_next(
        struct cycle_network *network, struct cycle_process *process, struct cycle_step *step)
{
	(void)network;
	if (++*step->counter < step->trips)
		process->at = step->target - 1;
	return true;
}

static bool run_wait(
        struct cycle_network *network, struct cycle_process *process, struct cycle_step *step)
{
	(void)network;
	process->time += step->cycles;
	return true;
}

static bool run_pipe(
        struct cycle_network *network, struct cycle_process *process, struct cycle_step *step)
{
	return cycle_pipe_run(network, process, step->pipe);
}

static bool run_drain(
        struct cycle_network *network, struct cycle_process *process, struct cycle_step *step)
{
	(void)network;
	(void)step;
	process->time = process->left > process->time ? process->left : process->time;
	return true;
}

/* --- launches */

static void begin_launch(struct cycle_network *network, struct cycle_process *process, int64_t time)
{
	if (network->samples)
		cycle_sample_span(network, process->sampled[CAUSE_NONE], process->time, time);
	process->launch++;
	process->at = 0;
	process->ended = false;
	process->time = process->began = process->bound = time;
	cycle_wake(network, process);
}

/* All processes have ended the current launch. */
static void end_launch(struct cycle_network *network, int64_t time)
{
	network->ended = 0;
	if (network->options.overlap) {
		network->launches_done = network->options.launches;
		return;
	}
	network->first_cycles =
	        network->launches_done++ ? network->first_cycles : time + network->tail;
	if (network->launches_done == network->options.launches)
		return;
	network->launch_began = time + network->tail + network->options.gap;
	for (size_t i = 0; i < network->processes.count; i++)
		begin_launch(network, network->processes.data[i], network->launch_began);
}

static bool run_end(
        struct cycle_network *network, struct cycle_process *process, struct cycle_step *step)
{
	const struct cycle_options *options = &network->options;
	(void)step;
	process->ended = true;
	process->active += process->time - process->began;
	if (options->overlap && process->launch == 0 && process->time > network->first_cycles)
		network->first_cycles = process->time;
	if (options->overlap && process->launch + 1 < options->launches) {
		begin_launch(network, process, process->time + options->gap);
		return false;
	}
	if (!network->last_ended || process->time > network->last_ended->time || !network->ended)
		network->last_ended = process;
	if (++network->ended == (int64_t)network->processes.count)
		end_launch(network, network->last_ended->time);
	return false;
}

/* --- running */

static step_function *const step_functions[] = {
	[STEP_LOOP] = run_loop,
	[STEP_NEXT] = run_next,
	[STEP_WAIT] = run_wait,
	[STEP_ACCESS] = run_access,
	[STEP_ARRIVAL] = run_arrival,
	[STEP_PIPE] = run_pipe,
	[STEP_DRAIN] = run_drain,
	[STEP_END] = run_end,
};

static void resume(struct cycle_network *network, struct cycle_process *process)
{
	struct cycle_step *step = &process->steps.data[process->at];
	process->yielded = false;
	while (step_functions[step->kind](network, process, step))
		step = &process->steps.data[++process->at];
	for (size_t i = 0; i < process->channels.count; i++)
		cycle_count_words(network, process->channels.data[i]);
	if (process->ports.count)
		process->bound = step->kind == STEP_PIPE ? cycle_pipe_bound(process, step->pipe)
		                                         : process->time;
	for (size_t i = 0; i < process->ports.count; i++)
		cycle_memory_grant(network, process->ports.data[i]->memory);
	if (process->yielded)
		cycle_wake(network, process);
}

static struct cycle_process *next_process(struct cycle_network *network)
{
	struct cycle_process *process = network->queue[network->first];
	network->first = network->first + 1 == network->processes.count ? 0 : network->first + 1;
	network->queued--;
	process->queued = false;
	return process;
}

static bool stopped(struct cycle_network *network)
{
	const struct cycle_options *options = &network->options;
	if (options->progress)
		options->progress(
		        options->user, network->done, network->events * options->launches);
	return options->stop && *options->stop;
}

bool cycle_run_all(struct cycle_network *network)
{
	int64_t reported = 0;
	for (;;) {
		while (network->queued) {
			network->fuel = FUEL;
			resume(network, next_process(network));
			network->done += FUEL - network->fuel;
			if (network->done - reported < 64 * FUEL)
				continue;
			reported = network->done;
			if (stopped(network))
				return false;
		}
		if (!cycle_memory_grant_first(network))
			return true;
	}
}
