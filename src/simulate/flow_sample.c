/* What the time simulator keeps over time: points of equal distance, which doubles where the run is longer than they reach; and when waits ended. */
#include "simulate/flow_network.h"

#define LOGGED_MOST ((size_t)1 << 22)

static int64_t *add_series(struct flow_network *network, bool most)
{
	struct flow_series series = {.data = ARENA_ARRAY(network->options.arena, int64_t, network->samples), .most = most};
	VEC_PUSH(network->options.arena, &network->series, series);
	return series.data;
}

void flow_sample_begin(struct flow_network *network)
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
		network->channels.data[i]->held = add_series(network, true);
	for (size_t i = 0; network->samples && i < network->ports.count; i++)
		network->ports.data[i]->moved = add_series(network, false);
}

static void halve(const struct flow_series *series, int samples)
{
	for (int i = 0; i < samples; i++) {
		int64_t left = 2 * i < samples ? series->data[2 * i] : 0, right = 2 * i < samples ? series->data[2 * i + 1] : 0;
		series->data[i] = !series->most ? left + right : left > right ? left : right;
	}
}

void flow_sample_coarsen(struct flow_network *network, int64_t time)
{
	while (time >= network->sample_end) {
		for (size_t i = 0; i < network->series.count; i++)
			halve(&network->series.data[i], network->samples);
		network->sample_cycles *= 2;
		network->sample_end *= 2;
		network->sample_bits++;
	}
}

void flow_sample_span(struct flow_network *network, int64_t *data, int64_t from, int64_t to)
{
	if (to <= from)
		return;
	flow_sample_reach(network, to - 1);
	int64_t width = network->sample_cycles;
	for (int64_t point = from >> network->sample_bits; point * width < to; point++) {
		int64_t begin = point * width > from ? point * width : from, end = (point + 1) * width < to ? (point + 1) * width : to;
		data[point] += end - begin;
	}
}

void flow_sample_held(struct flow_network *network, struct flow_channel *channel, int64_t time, int64_t held)
{
	flow_sample_reach(network, time - 1);
	int64_t last = (time - 1) >> network->sample_bits;
	for (int64_t point = channel->held_since >> network->sample_bits; held && point <= last; point++)
		channel->held[point] = held > channel->held[point] ? held : channel->held[point];
	channel->held_since = time;
}

static void add_log(struct flow_network *network, struct flow_log *log, int64_t end, int64_t length)
{
	struct flow_waits *last = log->runs.count ? &log->runs.data[log->runs.count - 1] : NULL;
	bool joins = last && last->length == length;
	if (joins && last->count == 1)
		last->step = end - last->first;
	if (joins && end == last->first + last->step * last->count) {
		last->count++;
		return;
	}
	if (network->logged == LOGGED_MOST) {       /* too many: the path is known from here on */
		for (size_t i = 0; i < network->channels.count; i++)
			for (int side = 0; side < FLOW_SIDES; side++)
				network->channels.data[i]->log[side].runs.count = 0;
		for (size_t i = 0; i < network->ports.count; i++)
			network->ports.data[i]->log.runs.count = 0;
		network->logged = 0;
		network->path_from = end;
	}
	VEC_PUSH(network->arena, &log->runs, ((struct flow_waits){end, 0, 1, length}));
	network->logged++;
}

void flow_held_up(struct flow_network *network, const struct flow_access *why, int64_t from, int64_t to)
{
	if (network->options.path)
		add_log(network, why->channel ? &why->channel->log[flow_side_of(why->kind)] : &why->port->log, to, to - from);
}

void flow_waited(struct flow_network *network, struct flow_process *process, const struct flow_access *why, int64_t from, int64_t to)
{
	enum flow_cause cause = flow_cause_of(why);
	process->waited[cause] += to - from;
	if (network->samples)
		flow_sample_span(network, process->sampled[cause], from, to);
}
