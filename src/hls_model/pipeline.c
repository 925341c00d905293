/* Schedules the iteration of a pipelined loop: the least interval for which recurrences and memory
 * ports allow a start of every operation, and the cycles from the first start to the last end. */
#include "hls_model/hls_model_internal.h"
#include <stdlib.h>
#include <string.h>

enum {
	CYCLES_MOST = 100000, /* of an interval */
	ACCESSES_MOST = 6000, /* of an array that are compared in pairs */
	ATTEMPTS = 12
};

struct start_edge {
	int from, to;
	int64_t latency, distance; /* start(to) >= start(from) + latency - interval distance */
};

struct modulo_schedule {
	struct modeller *modeller;
	const struct flat_nest *nest;
	const struct cpp_body *body;
	struct port_demand ports;
	bool quick;
	int count;
	const struct cpp_operation **operation;
	int64_t *start, *least;
	VEC(struct start_edge) edges, carried; /* inside an iteration; to later ones */
	int worst;                             /* array of the longest recurrence, or CPP_NONE */
};

static int64_t latency_of(const struct modulo_schedule *schedule, int at)
{
	return model_latency(schedule->modeller, schedule->operation[at], schedule->quick);
}

/* --- dependences --- */

static void add_operands(struct modulo_schedule *schedule, const int *position, int at)
{
	const struct cpp_operation *operation = schedule->operation[at];
	struct arena *arena = schedule->modeller->arena;
	for (int i = 0; i < operation->operands; i++) {
		int number = operation->operand[i];
		int from = number == CPP_NONE ? CPP_NONE : position[number];
		if (from == CPP_NONE)
			continue;
		struct start_edge edge = { from, at, latency_of(schedule, from),
			operation->kind == CPP_CARRIED };
		if (operation->kind == CPP_CARRIED)
			VEC_PUSH(arena, &schedule->carried, edge);
		else
			VEC_PUSH(arena, &schedule->edges, edge);
	}
}

static void add_pair(
        struct modulo_schedule *schedule, const struct cpp_array *array, int first, int second)
{
	struct arena *arena = schedule->modeller->arena;
	const struct cpp_operation *a = schedule->operation[first];
	const struct cpp_operation *b = schedule->operation[second];
	if (a->kind == CPP_LOAD && b->kind == CPP_LOAD)
		return;
	if (first < second && model_same_element(array, a, b)) {
		int64_t latency = a->kind == CPP_STORE ? latency_of(schedule, first) : 0;
		VEC_PUSH(arena, &schedule->edges,
		        ((struct start_edge){ first, second, latency, 0 }));
	}
	if (a->kind != CPP_STORE || b->kind != CPP_LOAD || array->independent)
		return;
	int64_t distance = model_distance(schedule->nest, array, a, b);
	if (distance < DEPENDENCE_NEVER)
		VEC_PUSH(arena, &schedule->carried,
		        ((struct start_edge){
		                first, second, latency_of(schedule, first), distance }));
}

static bool is_access(const struct cpp_operation *operation)
{
	return operation->kind == CPP_LOAD || operation->kind == CPP_STORE;
}

static void add_accesses(struct modulo_schedule *schedule, int array_number)
{
	const struct cpp_array *array = &schedule->modeller->design->arrays.data[array_number];
	VEC(int) list = { 0 };
	for (int i = 0; i < schedule->count; i++)
		if (is_access(schedule->operation[i]) &&
		        schedule->operation[i]->array == array_number)
			VEC_PUSH(schedule->modeller->arena, &list, i);
	if (array->storage != CPP_MEMORY || list.count > ACCESSES_MOST)
		return;
	for (size_t i = 0; i < list.count; i++)
		for (size_t j = 0; j < list.count; j++)
			if (i != j)
				add_pair(schedule, array, list.data[i], list.data[j]);
}

static void collect_operations(struct modulo_schedule *schedule)
{
	const struct cpp_design *design = schedule->modeller->design;
	struct arena *arena = schedule->modeller->arena;
	int *position = ARENA_ARRAY(arena, int, design->operations.count + 1);
	size_t items = schedule->body->items.count;
	schedule->operation = ARENA_ARRAY(arena, const struct cpp_operation *, items + 1);
	schedule->start = ARENA_ARRAY(arena, int64_t, items + 1);
	schedule->least = ARENA_ARRAY(arena, int64_t, items + 1);
	for (size_t i = 0; i < design->operations.count; i++)
		position[i] = CPP_NONE;
	for (size_t i = 0; i < items; i++) {
		struct cpp_item item = schedule->body->items.data[i];
		if (item.kind != CPP_OPERATION)
			continue;
		schedule->ports.bank[schedule->count] = schedule->ports.bank[i];
		position[item.index] = schedule->count;
		schedule->operation[schedule->count++] = &design->operations.data[item.index];
	}
	for (int i = 0; i < schedule->count; i++)
		add_operands(schedule, position, i);
	bool *seen = ARENA_ARRAY(arena, bool, design->arrays.count + 1);
	for (int i = 0; i < schedule->count; i++) {
		const struct cpp_operation *access = schedule->operation[i];
		if (is_access(access) && !seen[access->array])
			add_accesses(schedule, access->array);
		seen[is_access(access) ? access->array : (int)design->arrays.count] = true;
	}
}

/* --- the interval of recurrences --- */

/* Order of edges: by the operation that they lead to, which comes later than the one they come
 * from. */
static int by_target(const void *left, const void *right)
{
	const struct start_edge *a = left;
	const struct start_edge *b = right;
	return a->to != b->to ? (a->to > b->to) - (a->to < b->to)
	                      : (a->from > b->from) - (a->from < b->from);
}

static bool relax(struct modulo_schedule *schedule, const struct start_edge *edge, int64_t interval)
{
	int64_t start = schedule->start[edge->from] + edge->latency - interval * edge->distance;
	if (start <= schedule->start[edge->to])
		return false;
	schedule->start[edge->to] = start;
	return true;
}

/* Least starts without ports; false: the recurrences need a longer interval. */
static bool starts_exist(struct modulo_schedule *schedule, int64_t interval)
{
	memcpy(schedule->start, schedule->least, sizeof(int64_t) * (size_t)schedule->count);
	for (size_t pass = 0; pass <= schedule->carried.count + 1; pass++) {
		bool moved = false;
		for (size_t i = 0; i < schedule->edges.count; i++)
			relax(schedule, &schedule->edges.data[i], interval);
		for (size_t i = 0; i < schedule->carried.count; i++)
			if (relax(schedule, &schedule->carried.data[i], interval)) {
				moved = true;
				schedule->worst = schedule->carried.data[i].from;
			}
		if (!moved)
			return true;
		if (pass > 64)
			return false;
	}
	return false;
}

static int64_t recurrence_interval(struct modulo_schedule *schedule, int64_t least)
{
	int64_t low = least;
	int64_t high = least;
	while (high < CYCLES_MOST && !starts_exist(schedule, high)) {
		low = high + 1;
		high *= 2;
	}
	while (low < high) {
		int64_t middle = (low + high) / 2;
		if (starts_exist(schedule, middle))
			high = middle;
		else
			low = middle + 1;
	}
	return high;
}

/* --- ports --- */

/* Starts that also respect the ports; false: a recurrence does not close any more. */
static bool place(struct modulo_schedule *schedule, int64_t interval)
{
	struct arena *arena = schedule->modeller->arena;
	int64_t slots = interval * (schedule->ports.banks + 1);
	int *used = ARENA_ARRAY(arena, int, slots + 1);
	size_t edge = 0;
	if (!starts_exist(schedule, interval))
		return false;
	for (int i = 0; i < schedule->count; i++) {
		for (; edge < schedule->edges.count && schedule->edges.data[edge].to == i; edge++)
			relax(schedule, &schedule->edges.data[edge], interval);
		int bank = schedule->ports.bank[i];
		if (bank == CPP_NONE)
			continue;
		const struct cpp_operation *access = schedule->operation[i];
		int64_t ports =
		        model_bank_ports(&schedule->modeller->design->arrays.data[access->array],
		                access->kind == CPP_STORE);
		for (int64_t tries = 0; tries < interval; tries++, schedule->start[i]++)
			if (used[bank * interval + schedule->start[i] % interval] < ports)
				break;
		used[bank * interval + schedule->start[i] % interval]++;
	}
	bool good = true;
	for (size_t i = 0; i < schedule->carried.count; i++) {
		const struct start_edge *back = &schedule->carried.data[i];
		int64_t start =
		        schedule->start[back->from] + back->latency - interval * back->distance;
		if (start <= schedule->start[back->to])
			continue;
		good = false;
		schedule->least[back->to] = start;
	}
	return good;
}

static int64_t depth_of(const struct modulo_schedule *schedule)
{
	int64_t depth = 0;
	for (int i = 0; i < schedule->count; i++) {
		int64_t end = schedule->start[i] + latency_of(schedule, i);
		depth = end > depth ? end : depth;
	}
	return depth;
}

static const char *describe_recurrence(const struct modulo_schedule *schedule)
{
	const struct cpp_operation *last =
	        schedule->worst == CPP_NONE ? NULL : schedule->operation[schedule->worst];
	const struct cpp_array *arrays = schedule->modeller->design->arrays.data;
	if (last && is_access(last))
		return text_format(schedule->modeller->arena, "recurrence through %s",
		        arrays[last->array].name);
	return last ? text_format(schedule->modeller->arena, "recurrence, line %d", last->line)
	            : "recurrence";
}

static struct modulo_schedule new_schedule(
        struct modeller *modeller, const struct flat_nest *nest, bool quick)
{
	struct modulo_schedule schedule = { .modeller = modeller,
		.nest = nest,
		.body = &modeller->design->bodies.data[nest->body],
		.quick = quick,
		.worst = CPP_NONE };
	schedule.ports = model_ports(modeller, schedule.body);
	collect_operations(&schedule);
	if (schedule.edges.count)
		qsort(schedule.edges.data, schedule.edges.count, sizeof *schedule.edges.data,
		        by_target);
	return schedule;
}

struct pipeline model_pipeline(struct modeller *modeller, const struct flat_nest *nest)
{
	struct modulo_schedule schedule = new_schedule(modeller, nest, false);
	int64_t asked = nest->interval < 1 ? 1 : nest->interval;
	int64_t least = schedule.ports.interval > asked ? schedule.ports.interval : asked;
	int64_t interval = recurrence_interval(&schedule, least);
	struct pipeline result = { 0 };
	if (interval > least) { /* it closes with adders of fewer stages: of LUTs, unless sums
		                         * are trees */
		result.fabric = !modeller->options->reassociate;
		schedule = new_schedule(modeller, nest, true);
		interval = recurrence_interval(&schedule, least);
	}
	if (interval > least)
		result.limit = describe_recurrence(&schedule);
	else if (interval > asked)
		result.limit = text_format(modeller->arena, "ports of %s",
		        modeller->design->arrays.data[schedule.ports.array].name);
	for (int i = 0; i < ATTEMPTS && !place(&schedule, interval); i++)
		if (i == ATTEMPTS / 2)
			interval++;
	result.interval = interval;
	result.depth = depth_of(&schedule);
	return result;
}
