/* Latencies of loops, functions and dataflow regions from those of what they contain. */
#include "hls_model/hls_model_internal.h"
#include <string.h>

enum {
	MODULE_CYCLES = 2,   /* a pipelined loop or function is started and ends */
	READ_CYCLES = 71,    /* from a request to external memory to its first word */
	WRITTEN_CYCLES = 69, /* from the last word to the answer that it is written */
	DEPTH_CYCLES = 2,    /* of an iteration: its counter and its end */
	LEVEL_MOST = 100
};

struct item_timing {
	int64_t latency, interval;
	struct operators cost;
};

struct timed_nest {
	struct modeller *modeller;
	int level, depth; /* in the table; loops around */
	int64_t trips[CPP_DEPTH];
};

static struct item_timing time_body(struct timed_nest region, int body);
static struct item_timing time_dataflow(struct timed_nest region, int body);

static int new_row(const struct timed_nest *region, const char *name, struct location location)
{
	struct model *model = region->modeller->model;
	struct model_row row = { .name = name, .location = location, .level = region->level };
	VEC_PUSH(region->modeller->arena, &model->rows, row);
	return (int)model->rows.count - 1;
}

/* --- loops --- */

/* The loop that is all of this one's body; NULL: there is more, or none. */
static const struct cpp_loop *only_loop(
        const struct cpp_design *design, const struct cpp_loop *loop)
{
	const struct cpp_body *body = &design->bodies.data[loop->body];
	const struct cpp_loop *found = NULL;
	for (size_t i = 0; i < body->items.count; i++) {
		struct cpp_item item = body->items.data[i];
		bool carried = item.kind == CPP_OPERATION &&
		        design->operations.data[item.index].kind == CPP_CARRIED;
		if (carried)
			continue;
		if (item.kind != CPP_LOOP || found)
			return NULL;
		found = &design->loops.data[item.index];
	}
	return found;
}

/* The pipelined loop that a perfect nest runs as; NULL: it does not. */
static const struct cpp_loop *flattened(
        const struct cpp_design *design, const struct cpp_loop *loop)
{
	while (loop && !loop->pipelined) {
		const struct cpp_loop *inner = loop->dataflow ? NULL : only_loop(design, loop);
		if (inner && (inner->no_flatten || inner->varies))
			return NULL;
		loop = inner;
	}
	return loop;
}

static void external_accesses(
        struct modeller *modeller, struct cpp_item item, bool *reads, bool *writes)
{
	struct access_set set = model_accesses(modeller, item);
	for (size_t i = 0; i < modeller->design->arrays.count; i++) {
		bool external = modeller->design->arrays.data[i].storage == CPP_AXI;
		*reads |= external && set.reads[i];
		*writes |= external && set.writes[i];
	}
}

static struct item_timing time_pipeline(
        struct timed_nest region, const struct cpp_loop *outer, const struct cpp_loop *loop)
{
	struct modeller *modeller = region.modeller;
	struct flat_nest nest = { .body = loop->body,
		.first = outer->depth,
		.last = loop->depth,
		.interval = loop->interval };
	struct text name = text_new(modeller->arena);
	int64_t trips = 1;
	bool estimated = false;
	for (const struct cpp_loop *at = outer;; at = only_loop(modeller->design, at)) {
		region.trips[at->depth] = at->trips;
		trips *= at->trips;
		estimated |= at->varies || at->trips_given;
		text_add(&name, "%s%s", name.size ? "_" : "", at->name);
		if (at == loop)
			break;
	}
	memcpy(nest.trips, region.trips, sizeof nest.trips);
	struct pipeline pipeline = model_pipeline(modeller, &nest);
	struct item_timing timing = { 0 };
	int64_t depth = pipeline.depth + DEPTH_CYCLES;
	timing.cost =
	        model_operation_cost(modeller, loop->body, pipeline.interval, pipeline.fabric);
	timing.latency = depth + pipeline.interval * (trips - 1) - 1;
	timing.interval = timing.latency;
	int number = new_row(&region, name.data, outer->location);
	struct model_row *row = &modeller->model->rows.data[number];
	row->is_loop = row->pipelined = true;
	row->estimated = estimated;
	row->trips = trips;
	row->interval = pipeline.interval;
	row->asked = loop->interval;
	row->depth = depth;
	row->latency = timing.latency;
	row->cost = timing.cost.all;
	row->limit = pipeline.limit;
	timing.latency += MODULE_CYCLES;
	return timing;
}

static struct item_timing time_sequential(struct timed_nest region, const struct cpp_loop *loop)
{
	struct modeller *modeller = region.modeller;
	int number = new_row(&region, loop->name, loop->location);
	region.level++;
	region.depth++;
	region.trips[loop->depth] = loop->trips;
	struct item_timing inner =
	        loop->dataflow ? time_dataflow(region, loop->body) : time_body(region, loop->body);
	struct item_timing timing = inner;
	int64_t each = inner.latency + 1;
	timing.latency = loop->dataflow ? each + (loop->trips - 1) * (inner.interval + 1)
	                                : each * loop->trips;
	timing.interval = timing.latency;
	struct model_row *row = &modeller->model->rows.data[number];
	row->is_loop = true;
	row->dataflow = loop->dataflow;
	row->estimated = loop->varies || loop->trips_given;
	row->trips = loop->trips;
	row->depth = each;
	row->interval = loop->dataflow ? inner.interval + 1 : each;
	row->latency = timing.latency;
	row->cost = timing.cost.all;
	timing.latency += 1;
	return timing;
}

static struct item_timing time_loop(struct timed_nest region, const struct cpp_loop *loop)
{
	const struct cpp_loop *inner = flattened(region.modeller->design, loop);
	return inner ? time_pipeline(region, loop, inner) : time_sequential(region, loop);
}

/* --- functions --- */

static struct item_timing time_pipelined_call(struct timed_nest region, const struct cpp_call *call)
{
	struct flat_nest nest = {
		.body = call->body, .first = 0, .last = -1, .interval = call->interval
	};
	struct pipeline pipeline = model_pipeline(region.modeller, &nest);
	return (struct item_timing){ pipeline.depth + DEPTH_CYCLES, pipeline.interval,
		model_operation_cost(
		        region.modeller, call->body, pipeline.interval, pipeline.fabric) };
}

static struct item_timing time_call(struct timed_nest region, const struct cpp_call *call)
{
	struct modeller *modeller = region.modeller;
	int number = new_row(&region, call->name, call->location);
	region.level++;
	struct item_timing timing = call->dataflow ? time_dataflow(region, call->body)
	        : call->pipelined                  ? time_pipelined_call(region, call)
	                                           : time_body(region, call->body);
	struct model_row *row = &modeller->model->rows.data[number];
	row->pipelined = call->pipelined;
	row->dataflow = call->dataflow;
	row->latency = timing.latency;
	row->interval = call->pipelined || call->dataflow ? timing.interval : timing.latency;
	row->cost = timing.cost.all;
	timing.latency += 1;
	return timing;
}

static struct item_timing time_item(struct timed_nest region, struct cpp_item item)
{
	const struct cpp_design *design = region.modeller->design;
	struct item_timing timing = { 0 };
	bool reads = false;
	bool writes = false;
	if (item.kind == CPP_OPERATION) {
		timing.latency =
		        model_latency(region.modeller, &design->operations.data[item.index], false);
		return timing;
	}
	if (item.kind == CPP_CALL)
		return time_call(region, &design->calls.data[item.index]);
	timing = time_loop(region, &design->loops.data[item.index]);
	if (design->bodies.data[design->loops.data[item.index].body].depth > 1)
		return timing;
	external_accesses(region.modeller, item, &reads, &writes);
	timing.latency += reads ? READ_CYCLES : 0;
	timing.latency += writes ? WRITTEN_CYCLES : 0;
	return timing;
}

/* --- bodies --- */

struct body_plan {
	struct modeller *modeller;
	const struct cpp_body *body;
	int *owner; /* by operation: the item of this body in which it is; CPP_NONE */
	struct access_set *set;
	int64_t *start, *end;
	bool *waits; /* an item for which all later ones wait: a loop without a module */
};

static void own_items(const struct cpp_design *design, struct cpp_item item, int number, int *owner)
{
	int body = item.kind == CPP_LOOP ? design->loops.data[item.index].body
	        : item.kind == CPP_CALL  ? design->calls.data[item.index].body
	                                 : CPP_NONE;
	if (item.kind == CPP_OPERATION)
		owner[item.index] = number;
	for (size_t i = 0; body != CPP_NONE && i < design->bodies.data[body].items.count; i++)
		own_items(design, design->bodies.data[body].items.data[i], number, owner);
}

static struct body_plan new_plan(struct modeller *modeller, int body)
{
	const struct cpp_design *design = modeller->design;
	struct body_plan plan = { .modeller = modeller, .body = &design->bodies.data[body] };
	size_t items = plan.body->items.count;
	plan.owner = ARENA_ARRAY(modeller->arena, int, design->operations.count + 1);
	plan.set = ARENA_ARRAY(modeller->arena, struct access_set, items + 1);
	plan.start = ARENA_ARRAY(modeller->arena, int64_t, items + 1);
	plan.end = ARENA_ARRAY(modeller->arena, int64_t, items + 1);
	plan.waits = ARENA_ARRAY(modeller->arena, bool, items + 1);
	for (size_t i = 0; i < design->operations.count; i++)
		plan.owner[i] = CPP_NONE;
	for (size_t i = 0; i < items; i++) {
		own_items(design, plan.body->items.data[i], (int)i, plan.owner);
		if (plan.body->items.data[i].kind != CPP_OPERATION)
			plan.set[i] = model_accesses(modeller, plan.body->items.data[i]);
	}
	return plan;
}

/* The latest end among the items whose operations these need. */
static int64_t operands_ready(const struct body_plan *plan, int item, int body)
{
	const struct cpp_design *design = plan->modeller->design;
	int64_t ready = 0;
	const struct cpp_body *items = &design->bodies.data[body];
	for (size_t i = 0; i < items->items.count; i++) {
		struct cpp_item inner = items->items.data[i];
		int deeper = inner.kind == CPP_LOOP ? design->loops.data[inner.index].body
		        : inner.kind == CPP_CALL    ? design->calls.data[inner.index].body
		                                    : CPP_NONE;
		int64_t after = deeper == CPP_NONE ? 0 : operands_ready(plan, item, deeper);
		ready = after > ready ? after : ready;
		if (inner.kind != CPP_OPERATION)
			continue;
		const struct cpp_operation *operation = &design->operations.data[inner.index];
		for (int j = 0; j < operation->operands; j++) {
			int owner = operation->operand[j] == CPP_NONE
			        ? CPP_NONE
			        : plan->owner[operation->operand[j]];
			if (owner != CPP_NONE && owner < item && plan->end[owner] > ready)
				ready = plan->end[owner];
		}
	}
	return ready;
}

static bool item_accesses(const struct body_plan *plan, size_t item, int array, bool write)
{
	struct cpp_item at = plan->body->items.data[item];
	if (at.kind != CPP_OPERATION)
		return write ? plan->set[item].writes[array]
		             : plan->set[item].reads[array] || plan->set[item].writes[array];
	const struct cpp_operation *operation = &plan->modeller->design->operations.data[at.index];
	return operation->kind != CPP_COMPUTE && operation->kind != CPP_CARRIED &&
	        operation->array == array && (!write || operation->kind == CPP_STORE);
}

static bool must_wait(const struct body_plan *plan, size_t first, size_t second)
{
	struct cpp_item a = plan->body->items.data[first];
	struct cpp_item b = plan->body->items.data[second];
	const struct cpp_design *design = plan->modeller->design;
	if (a.kind != CPP_OPERATION && b.kind != CPP_OPERATION)
		return model_conflict(plan->modeller, &plan->set[first], &plan->set[second]);
	size_t single = a.kind == CPP_OPERATION ? first : second;
	const struct cpp_operation *operation =
	        &design->operations.data[plan->body->items.data[single].index];
	if (operation->kind == CPP_COMPUTE || operation->kind == CPP_CARRIED)
		return false;
	if (a.kind == CPP_OPERATION && b.kind == CPP_OPERATION &&
	        !item_accesses(plan, single == first ? second : first, operation->array, false))
		return false;
	bool stores = operation->kind == CPP_STORE;
	return item_accesses(plan, single == first ? second : first, operation->array, !stores);
}

/* Loops without a module of their own are states of the function: nothing passes them. */
static bool is_barrier(const struct cpp_design *design, struct cpp_item item)
{
	return item.kind == CPP_LOOP && !flattened(design, &design->loops.data[item.index]);
}

static int64_t start_of(const struct body_plan *plan, size_t item, const int64_t *barrier)
{
	const struct cpp_design *design = plan->modeller->design;
	struct cpp_item at = plan->body->items.data[item];
	int64_t start = *barrier;
	if (at.kind == CPP_OPERATION) {
		const struct cpp_operation *operation = &design->operations.data[at.index];
		for (int j = 0; j < operation->operands; j++) {
			int owner = operation->operand[j] == CPP_NONE
			        ? CPP_NONE
			        : plan->owner[operation->operand[j]];
			if (owner != CPP_NONE && owner < (int)item && plan->end[owner] > start)
				start = plan->end[owner];
		}
	} else {
		int body = at.kind == CPP_LOOP ? design->loops.data[at.index].body
		                               : design->calls.data[at.index].body;
		int64_t ready = operands_ready(plan, (int)item, body);
		start = ready > start ? ready : start;
	}
	for (size_t j = 0; j < item; j++)
		if (plan->end[j] > start && must_wait(plan, j, item))
			start = plan->end[j];
	return start;
}

/* Loops and functions that are called one after the other lend each other their operators: of each
 * kind there are so many as those take that run at one time. */
static struct operators shared_cost(const struct body_plan *plan, const struct operators *cost)
{
	size_t items = plan->body->items.count;
	struct operators most = { 0 };
	int64_t called = 0;
	for (size_t i = 0; i < items; i++) {
		struct operators now = { 0 };
		called += cost[i].dsp[POOL_CALLED];
		for (size_t j = 0; j < items; j++)
			if (plan->start[j] <= plan->start[i] && plan->end[j] > plan->start[i])
				now = model_both(now, cost[j]);
		most.all.lut = now.all.lut > most.all.lut ? now.all.lut : most.all.lut;
		most.all.ff = now.all.ff > most.all.ff ? now.all.ff : most.all.ff;
		for (int p = 0; p < POOLS; p++)
			most.dsp[p] = now.dsp[p] > most.dsp[p] ? now.dsp[p] : most.dsp[p];
	}
	most.dsp[POOL_CALLED] = called;
	for (int p = 0; p < POOLS; p++)
		most.all.dsp += most.dsp[p];
	return most;
}

static bool lends(const struct cpp_design *design, struct cpp_item item)
{
	return item.kind == CPP_LOOP ||
	        (item.kind == CPP_CALL && !design->calls.data[item.index].dataflow);
}

/* One after the other, as far as one needs another. */
static struct item_timing time_body(struct timed_nest region, int body)
{
	struct modeller *modeller = region.modeller;
	struct body_plan plan = new_plan(modeller, body);
	struct item_timing total = { 0 };
	struct operators *lent =
	        ARENA_ARRAY(modeller->arena, struct operators, plan.body->items.count + 1);
	int64_t barrier = 0;
	for (size_t i = 0; i < plan.body->items.count; i++) {
		struct cpp_item item = plan.body->items.data[i];
		bool blocks = is_barrier(modeller->design, item);
		struct item_timing timing = time_item(region, item);
		plan.start[i] = start_of(&plan, i, blocks ? &total.latency : &barrier);
		plan.end[i] = plan.start[i] + timing.latency;
		if (lends(modeller->design, item))
			lent[i] = timing.cost;
		else
			total.cost = model_both(total.cost, timing.cost);
		if (plan.end[i] > total.latency)
			total.latency = plan.end[i];
		if (blocks)
			barrier = plan.end[i];
	}
	struct operators own =
	        model_operation_cost(modeller, body, total.latency < 1 ? 1 : total.latency, false);
	total.cost = model_both(model_both(total.cost, own), shared_cost(&plan, lent));
	total.interval = total.latency;
	return total;
}

/* --- dataflow --- */

/* Cycles by which a consumer of a FIFO is behind its producer. */
#define STREAM_CYCLES 2

/* From the start of one process to the earliest of another; -1: they do not meet. */
static int64_t handover(const struct body_plan *plan, size_t first, size_t second)
{
	int64_t delay = -1;
	for (size_t i = 0; i < plan->modeller->design->arrays.count; i++) {
		const struct cpp_array *array = &plan->modeller->design->arrays.data[i];
		if (!item_accesses(plan, first, (int)i, true) ||
		        !item_accesses(plan, second, (int)i, false))
			continue;
		bool flows = array->storage == CPP_STREAM;
		int64_t own = flows ? STREAM_CYCLES : plan->end[first] - plan->start[first];
		delay = own > delay ? own : delay;
	}
	return delay;
}

static struct item_timing time_dataflow(struct timed_nest region, int body)
{
	struct body_plan plan = new_plan(region.modeller, body);
	struct item_timing total = { .interval = 1 };
	for (size_t i = 0; i < plan.body->items.count; i++) {
		struct item_timing timing = time_item(region, plan.body->items.data[i]);
		for (size_t j = 0; j < i; j++) {
			int64_t delay = handover(&plan, j, i);
			if (delay >= 0 && plan.start[j] + delay > plan.start[i])
				plan.start[i] = plan.start[j] + delay;
		}
		plan.end[i] = plan.start[i] + timing.latency;
		total.cost = model_both(total.cost, timing.cost);
		if (plan.end[i] > total.latency)
			total.latency = plan.end[i];
		if (timing.latency > total.interval)
			total.interval = timing.latency;
	}
	return total;
}

/* --- the whole --- */

struct model *model_design(struct arena *arena, struct cpp_design *design,
        const struct platform *platform, const struct model_options *options)
{
	struct model *model = ARENA_NEW(arena, struct model);
	model_prepare(arena, design, options->reassociate);
	struct modeller modeller = { arena, design, platform, options, model, map_new(arena) };
	struct timed_nest region = { .modeller = &modeller };
	*model =
	        (struct model){ .design = design, .platform = platform, .period = options->period };
	struct item_timing timing = time_call(region, &design->calls.data[0]);
	model->cost = timing.cost.all;
	for (size_t i = 0; i < design->arrays.count; i++)
		model->cost = resources_add(
		        model->cost, model_array_cost(&modeller, &design->arrays.data[i]));
	return model;
}
