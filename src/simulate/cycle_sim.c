/* Interface of the cycle simulator: a network is built once, reset before each run, and the result
 * of a run is gathered from its processes, channels and ports. */
#include "base/guard.h"
#include "simulate/cycle_network.h"

/* --- a run */

static void clean_channel(struct cycle_network *network, struct cycle_channel *channel)
{
	const int64_t *depth = network->options.depth;
	int64_t wanted = depth ? depth[channel->number] : channel->built;
	channel->pushed = channel->popped = channel->counted_push = channel->counted_pop =
	        channel->most = channel->occupied_since = 0;
	for (int side = 0; side < CYCLE_SIDES; side++) {
		channel->waiting[side] = false;
		channel->log[side].runs.count = 0;
	}
	channel->run_depth = wanted > 0 ? wanted : 0;
	cycle_set_depth(network, channel,
	        wanted > 0 &&
	                        wanted + channel->between <=
	                                cycle_multiply_counts(
	                                        channel->words_most, network->options.launches)
	                ? wanted + channel->between
	                : UNBOUNDED);
}

static void clean_process(struct cycle_process *process)
{
	process->at = 0;
	process->time = process->bound = process->began = process->active = process->launch = 0;
	process->ended = process->queued = process->yielded = false;
	process->waits_for = NULL;
	for (int cause = 0; cause < CAUSES; cause++)
		process->waited[cause] = 0;
	for (size_t i = 0; i < process->steps.count; i++)
		if (process->steps.data[i].kind == STEP_PIPE)
			process->steps.data[i].pipe->running = false;
}

static void clean_port(struct cycle_port *port)
{
	port->waiting = false;
	port->requests = NULL;
	port->posted = port->granted = port->used = port->left = port->next = port->words = 0;
	port->last = -1;
	port->memory->free = 0;
	port->log.runs.count = 0;
}

void cycle_clean(struct cycle_network *network)
{
	network->first = network->queued = network->logged = 0;
	network->done = network->first_cycles = network->ended = network->launch_began =
	        network->launches_done = network->path_from = 0;
	network->first_output = -1;
	network->last_ended = NULL;
	cycle_sample_begin(network);
	cycle_images_clean(network);
	for (size_t i = 0; i < network->channels.count; i++)
		clean_channel(network, network->channels.data[i]);
	for (size_t i = 0; i < network->ports.count; i++)
		clean_port(network->ports.data[i]);
	for (size_t i = 0; i < network->processes.count; i++) {
		clean_process(network->processes.data[i]);
		cycle_wake(network, network->processes.data[i]);
	}
}

/* --- results */

/* After a run: words that were never popped count for the occupancy too. */
static void count_rest(struct cycle_network *network, struct cycle_channel *channel)
{
	cycle_count_words(network, channel);
	struct cycle_occupancy rest = cycle_occupancy_of(network, channel);
	for (; channel->counted_push < channel->pushed && network->samples; channel->counted_push++)
		cycle_set_occupancy(network, channel, &rest,
		        channel->full_at[channel->counted_push & channel->mask],
		        channel->counted_push - channel->counted_pop);
	channel->counted_push = channel->pushed;
	int64_t occupancy = channel->pushed - channel->counted_pop;
	if (channel->counted_pop == channel->popped && occupancy > channel->most)
		channel->most = occupancy;
	for (; channel->counted_pop < channel->popped && network->samples; channel->counted_pop++)
		cycle_set_occupancy(network, channel, &rest,
		        channel->free_at[channel->counted_pop & channel->mask],
		        channel->counted_push - channel->counted_pop);
}

static void collect_process(struct cycle_network *network, const struct cycle_process *process,
        struct cycle_process_result *result)
{
	int64_t now = process->ended ? 0 : process->time - process->began;
	*result = (struct cycle_process_result){ .name = process->name,
		.end = process->time,
		.ended = process->ended,
		.active = process->active + now,
		.input = process->waited[CAUSE_INPUT],
		.output = process->waited[CAUSE_OUTPUT],
		.memory = process->waited[CAUSE_MEMORY] };
	for (int cause = 0; network->samples && cause < CAUSES; cause++)
		result->waited[cause] = process->sampled[cause];
}

static void collect_channel(struct cycle_network *network, struct cycle_channel *channel,
        struct cycle_channel_result *result)
{
	const struct cycle_process *writer = channel->process[CYCLE_WRITER];
	const struct cycle_process *reader = channel->process[CYCLE_READER];
	count_rest(network, channel);
	*result = (struct cycle_channel_result){ .name = channel->name,
		.blocks = channel->blocks,
		.depth = channel->run_depth,
		.most = channel->most,
		.words = channel->pushed,
		.writer = writer ? writer->number : -1,
		.reader = reader ? reader->number : -1,
		.occupancy = network->samples ? channel->occupancy : NULL };
}

static void collect_port(
        struct cycle_network *network, const struct cycle_port *port, struct cycle_result *result)
{
	struct cycle_port_result *at = result->ports ? &result->port[result->ports - 1] : NULL;
	if (!at || at->number != port->number) {
		at = &result->port[result->ports++];
		*at = (struct cycle_port_result){ .name = port->name,
			.number = port->number,
			.process = port->process->number,
			.channel = port->channel,
			.write = port->write,
			.moved = network->samples ? port->moved : NULL };
	} else if (network->samples) {
		for (int i = 0; i < network->samples; i++)
			port->of->moved[i] += port->moved[i];
	}
	at->bytes += port->words * port->bytes;
}

static void idle_to_the_end(struct cycle_network *network, const struct cycle_result *result)
{
	for (size_t i = 0; network->samples && i < network->processes.count; i++) {
		struct cycle_process *process = network->processes.data[i];
		if (process->ended)
			cycle_sample_span(network, process->sampled[CAUSE_NONE], process->time,
			        result->cycles);
	}
}

static void make_lists(
        struct cycle_network *network, struct arena *arena, struct cycle_result *result)
{
	result->processes = (int)network->processes.count;
	result->channels = (int)network->channels.count;
	result->process = ARENA_ARRAY(arena, struct cycle_process_result, result->processes + 1);
	result->channel = ARENA_ARRAY(arena, struct cycle_channel_result, result->channels + 1);
	result->port = ARENA_ARRAY(arena, struct cycle_port_result, network->ports.count + 1);
}

static void collect_result(struct cycle_network *network, struct cycle_result *result)
{
	if (network->options.arena)
		make_lists(network, network->options.arena, result);
	else if (!network->own.process)
		make_lists(network, network->arena, &network->own);
	if (!network->options.arena)
		*result = network->own;
	for (int i = 0; i < result->processes; i++)
		result->cycles = network->processes.data[i]->time > result->cycles
		        ? network->processes.data[i]->time
		        : result->cycles;
	result->cycles += network->launches_done == network->options.launches ? network->tail : 0;
	idle_to_the_end(network, result);
	for (int i = 0; i < result->processes; i++)
		collect_process(network, network->processes.data[i], &result->process[i]);
	for (int i = 0; i < result->channels; i++)
		collect_channel(network, network->channels.data[i], &result->channel[i]);
	for (size_t i = 0; i < network->ports.count; i++)
		collect_port(network, network->ports.data[i], result);
	result->first_output = network->first_output;
	result->launches = network->launches_done;
	result->steady = result->launches > 1
	        ? (result->cycles - network->first_cycles) / (result->launches - 1)
	        : result->cycles;
	cycle_images_collect(network, result);
	result->samples = network->samples;
	result->sample_cycles = network->sample_cycles;
}

/* --- interface */

struct cycle_network *cycle_open(
        struct arena *arena, const struct platform *platform, const struct module *module)
{
	return cycle_open_at(arena, platform, module, 0, NULL);
}

struct cycle_network *cycle_open_at(struct arena *arena, const struct platform *platform,
        const struct module *module, int extents, const struct extent_value *extent)
{
	struct cycle_network *network = ARENA_NEW(arena, struct cycle_network);
	*network = (struct cycle_network){ .arena = arena,
		.platform = platform,
		.module = module,
		.main = module_main(module),
		.extents = extents,
		.extent = extent };
	if (!cycle_build(network))
		return NULL;
	network->queue = ARENA_ARRAY(arena, struct cycle_process *, network->processes.count + 1);
	return network;
}

int cycle_channels(const struct cycle_network *network)
{
	return (int)network->channels.count;
}

const char *cycle_channel_name(const struct cycle_network *network, int channel)
{
	return network->channels.data[channel]->name;
}

int64_t cycle_channel_depth(const struct cycle_network *network, int channel)
{
	return network->channels.data[channel]->built;
}

int64_t cycle_events(const struct cycle_network *network)
{
	return network->events;
}

static bool is_over_budget(const struct cycle_network *network)
{
	const struct cycle_options *options = &network->options;
	return options->budget &&
	        (network->events > options->budget ||
	                network->events > INT64_MAX / options->launches ||
	                network->events * options->launches > options->budget);
}

enum cycle_outcome cycle_run(struct cycle_network *network, const struct cycle_options *options,
        struct cycle_result *result)
{
	network->options = *options;
	network->options.launches = options->launches > 1 ? options->launches : 1;
	network->options.samples = options->arena && options->samples > 0 ? options->samples : 0;
	network->options.path = options->arena && options->path;
	*result = (struct cycle_result){ .first_output = -1,
		.events = network->events * network->options.launches };
	if (is_over_budget(network))
		return CYCLE_OVER_BUDGET;
	cycle_clean(network);
	bool whole = cycle_run_all(network), deadlock = whole && cycle_first_stuck(network);
	collect_result(network, result);
	guard_count(arena_guard(network->arena), network->done);
	result->events = whole ? result->events : network->done;
	if (network->options.path)
		cycle_critical_path(network, options->arena, result);
	if (deadlock)
		cycle_deadlock(network, result);
	if (!whole)
		return CYCLE_STOPPED;
	return deadlock ? CYCLE_DEADLOCK : CYCLE_DONE;
}

int64_t cycle_busy(const struct cycle_process_result *process)
{
	return process->active - process->input - process->output - process->memory;
}

int cycle_points(const struct cycle_result *result)
{
	int64_t used = result->samples
	        ? (result->cycles + result->sample_cycles - 1) / result->sample_cycles
	        : 0;
	return (int)(used < result->samples ? used : result->samples);
}

enum cycle_outcome cycle_simulate(struct arena *arena, const struct platform *platform,
        const struct module *module, int64_t budget, struct cycle_result *result)
{
	struct cycle_network *network = cycle_open(arena, platform, module);
	*result = (struct cycle_result){ .first_output = -1 };
	return network
	        ? cycle_run(network, &(struct cycle_options){ .arena = arena, .budget = budget },
	                  result)
	        : CYCLE_REFUSED;
}
