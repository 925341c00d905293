/* What the cycle simulator records over time: samples at equal distances, which double when the run
 * is longer than they reach; and, for the critical path, when waits ended. */
#include "simulate/cycle_network.h"

#define LOGGED_MOST ((size_t)1 << 22)

static int64_t *add_series(struct cycle_network *network, bool most)
{
	struct cycle_series series = {
		.data = ARENA_ARRAY(network->options.arena, int64_t, network->samples), .most = most
	};
	VEC_PUSH(network->options.arena, &network->series, series);
	return series.data;
}

void cycle_sample_begin(struct cycle_network *network)
{
	network->samples = (network->options.samples + 1) / 2 * 2;
	network->sample_cycles = 1;
	network->sample_end = network->samples;
	network->sample_bits = 0;
	network->series.data = NULL;
	network->series.count = network->series.capacity = 0;
	for (size_t i = 0; network->samples && i < network->processes.count; i++)
		for (int cause = 0; cause < CAUSES; cause++)
			network->processes.data[i]->sampled[cause] = add_series(network, false);
	for (size_t i = 0; network->samples && i < network->channels.count; i++)
		network->channels.data[i]->occupancy = add_series(network, true);
	for (size_t i = 0; network->samples && i < network->ports.count; i++)
		network->ports.data[i]->moved = add_series(network, false);
}

static void halve(const struct cycle_series *series, int samples)
{
	for (int i = 0; i < samples; i++) {
		int64_t left = 2 * i < samples ? series->data[2 * i] : 0;
		int64_t right = 2 * i < samples ? series->data[2 * i + 1] : 0;
		int64_t most = left > right ? left : right;
		series->data[i] = series->most ? most : left + right;
	}
}

void cycle_sample_coarsen(struct cycle_network *network, int64_t time)
{
	while (time >= network->sample_end) {
		for (size_t i = 0; i < network->series.count; i++)
			halve(&network->series.data[i], network->samples);
		network->sample_cycles *= 2;
		network->sample_end *= 2;
		network->sample_bits++;
	}
}

void cycle_sample_span(struct cycle_network *network, int64_t *data, int64_t from, int64_t to)
{
	if (to <= from)
		return;
	cycle_sample_reach(network, to - 1);
	int64_t width = network->sample_cycles;
	for (int64_t point = from >> network->sample_bits; point * width < to; point++) {
		int64_t begin = point * width > from ? point * width : from;
		int64_t end = (point + 1) * width < to ? (point + 1) * width : to;
		data[point] += end - begin;
	}
}

void cycle_sample_occupancy(struct cycle_network *network, struct cycle_channel *channel,
        int64_t time, int64_t occupancy)
{
	cycle_sample_reach(network, time - 1);
	int64_t last = (time - 1) >> network->sample_bits;
	for (int64_t point = channel->occupied_since >> network->sample_bits;
	        occupancy && point <= last; point++)
		channel->occupancy[point] = occupancy > channel->occupancy[point]
		        ? occupancy
		        : channel->occupancy[point];
	channel->occupied_since = time;
}

static void add_log(
        struct cycle_network *network, struct cycle_log *log, int64_t end, int64_t length)
{
	struct cycle_wait_run *last = log->runs.count ? &log->runs.data[log->runs.count - 1] : NULL;
	bool joins = last && last->length == length;
	if (joins && last->count == 1)
		last->step = end - last->first;
	if (joins && end == last->first + last->step * last->count) {
		last->count++;
		return;
	}
	if (network->logged == LOGGED_MOST) { /* too many: the path is known from here on */
		for (size_t i = 0; i < network->channels.count; i++)
			for (int side = 0; side < CYCLE_SIDES; side++)
				network->channels.data[i]->log[side].runs.count = 0;
		for (size_t i = 0; i < network->ports.count; i++)
			network->ports.data[i]->log.runs.count = 0;
		network->logged = 0;
		network->path_from = end;
	}
	VEC_PUSH(network->arena, &log->runs, ((struct cycle_wait_run){ end, 0, 1, length }));
	network->logged++;
}

void cycle_log_stall(
        struct cycle_network *network, const struct cycle_access *why, int64_t from, int64_t to)
{
	if (network->options.path)
		add_log(network,
		        why->channel ? &why->channel->log[cycle_side_of(why->kind)]
		                     : &why->port->log,
		        to, to - from);
}

void cycle_log_wait(struct cycle_network *network, struct cycle_process *process,
        const struct cycle_access *why, int64_t from, int64_t to)
{
	enum cycle_cause cause = cycle_cause_of(why);
	process->waited[cause] += to - from;
	if (network->samples)
		cycle_sample_span(network, process->sampled[cause], from, to);
}
