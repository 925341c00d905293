/* Finds the critical path of the last launch, backwards from the end of its last process: through
 * the process's own work to its last wait, from there to the process that ended this wait by a
 * word or by room, and so on.  Iterations of a flushing loop that are in flight at the same time
 * are distinguished by their times only. */
#include "simulate/cycle_network.h"
#include <string.h>

#define POINTS 512 /* of the path; each names the process with the most cycles in it */
#define HOPS_MOST ((int64_t)1 << 22)

struct path {
	const struct cycle_network *network;
	struct cycle_result *result;
	int64_t begin, end, width; /* cycles of the path; of a point */
	int64_t *busy, *memory;    /* [processes] cycles in the current point */
	int *via;                  /* [processes] channel to the next segment */
	int64_t point;             /* current one; counts down */
};

struct hop { /* the last wait of a process before some cycle */
	int64_t end, length;
	const struct cycle_channel *channel; /* NULL: memory */
	const struct cycle_process *next;    /* the process that ended the wait */
};

static void find_last_wait(const struct cycle_log *log, int64_t time,
        const struct cycle_channel *channel, enum cycle_side side, struct hop *hop)
{
	size_t low = 0;
	size_t high = log->runs.count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (log->runs.data[middle].first <= time)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return;
	const struct cycle_wait_run *waits = &log->runs.data[low - 1];
	int64_t number = waits->count > 1 ? (time - waits->first) / waits->step : 0;
	int64_t end =
	        waits->first + waits->step * (number < waits->count ? number : waits->count - 1);
	if (end <= hop->end)
		return;
	*hop = (struct hop){ end, waits->length, channel,
		channel ? channel->process[cycle_other_side(side)] : NULL };
}

static struct hop last_wait(
        const struct cycle_network *network, const struct cycle_process *process, int64_t time)
{
	struct hop hop = { .end = -1 };
	for (size_t i = 0; i < process->channels.count; i++) {
		const struct cycle_channel *channel = process->channels.data[i];
		enum cycle_side side =
		        channel->process[CYCLE_READER] == process ? CYCLE_READER : CYCLE_WRITER;
		find_last_wait(&channel->log[side], time, channel, side, &hop);
	}
	for (size_t i = 0; i < network->ports.count; i++)
		if (network->ports.data[i]->process == process)
			find_last_wait(
			        &network->ports.data[i]->log, time, NULL, CYCLE_READER, &hop);
	return hop;
}

/* The process with the most cycles names the point; adjacent points of one process are joined to
 * one segment. */
static void end_point(struct path *path)
{
	struct cycle_result *result = path->result;
	int most = 0;
	for (int i = 1; i < result->processes; i++)
		if (path->busy[i] + path->memory[i] > path->busy[most] + path->memory[most])
			most = i;
	int64_t begin = path->begin + path->point * path->width;
	int64_t end = begin + path->width < path->end ? begin + path->width : path->end;
	struct cycle_path_segment *last =
	        result->segments ? &result->segment[result->segments - 1] : NULL;
	if (path->busy[most] + path->memory[most] == 0 || (last && last->process == most)) {
		if (last)
			last->begin = begin;
	} else {
		last = &result->segment[result->segments++];
		*last = (struct cycle_path_segment){
			.process = most, .begin = begin, .end = end, .via = path->via[most]
		};
	}
	if (last) {
		last->busy += path->busy[most];
		last->memory += path->memory[most];
	}
	memset(path->busy, 0, sizeof *path->busy * (size_t)result->processes);
	memset(path->memory, 0, sizeof *path->memory * (size_t)result->processes);
	for (int i = 0; i < result->processes; i++)
		path->via[i] = -1;
}

/* Adds cycles of a process to the points, the last point first. */
static void add_cycles(struct path *path, int process, int64_t *kind, int64_t from, int64_t to)
{
	path->result->on_path[process] += to - from;
	while (to > from) {
		int64_t point = (to - 1 - path->begin) / path->width;
		int64_t first = path->begin + point * path->width;
		for (; path->point > point; path->point--)
			end_point(path);
		first = first > from ? first : from;
		kind[process] += to - first;
		to = first;
	}
}

static int64_t max_cycle(int64_t left, int64_t right)
{
	return left > right ? left : right;
}

static void follow(struct path *path, const struct cycle_process *process)
{
	int64_t time = path->end;
	for (int64_t hops = 0; process && time > path->begin && hops < HOPS_MOST; hops++) {
		struct hop hop = last_wait(path->network, process, time);
		int64_t from = max_cycle(hop.end, path->begin);
		add_cycles(path, process->number, path->busy, from, time);
		time = from;
		if (hop.end <= path->begin)
			return;
		if (hop.channel) {
			process = hop.next;
			time--;
			if (process && path->via[process->number] < 0)
				path->via[process->number] = hop.channel->number;
			continue;
		}
		from = max_cycle(time - hop.length, path->begin);
		add_cycles(path, process->number, path->memory, from, time);
		time = from;
	}
}

static void reverse_path(struct cycle_result *result)
{
	for (int i = 0, j = result->segments - 1; i < j; i++, j--) {
		struct cycle_path_segment swapped = result->segment[i];
		result->segment[i] = result->segment[j];
		result->segment[j] = swapped;
	}
}

void cycle_critical_path(
        const struct cycle_network *network, struct arena *arena, struct cycle_result *result)
{
	const struct cycle_process *last = network->last_ended;
	result->on_path = ARENA_ARRAY(arena, int64_t, result->processes + 1);
	result->segment = ARENA_ARRAY(arena, struct cycle_path_segment, POINTS + 1);
	if (!last || !last->ended)
		return;
	struct path path = { .network = network,
		.result = result,
		.begin = max_cycle(last->began, network->path_from),
		.end = last->time };
	path.width = (path.end - path.begin + POINTS - 1) / POINTS;
	path.point = path.width ? (path.end - 1 - path.begin) / path.width : 0;
	path.busy = ARENA_ARRAY(arena, int64_t, result->processes);
	path.memory = ARENA_ARRAY(arena, int64_t, result->processes);
	path.via = ARENA_ARRAY(arena, int, result->processes);
	for (int i = 0; i < result->processes; i++)
		path.via[i] = -1;
	follow(&path, last);
	end_point(&path);
	reverse_path(result);
}
