/* Assigns a die to every process with as few bits as possible crossing between dies.
 * Before: processes and channels. After: stream.die on every process, stream.crossings on FIFOs
 * between dies.
 * Needs: channels and arrays with their storage. Guarantees: both sides of a block channel are on
 * one die, processes with memory ports are on the memory die, and no die and no boundary exceeds
 * what the platform has. Exact.
 * Memories become URAMs where a die lacks block RAMs, or block RAMs where it lacks URAMs
 * (swap_bram_uram.c). Dies are filled up to where the platform calls them crowded if possible,
 * since fuller ones route badly, else further. Moves find a placement; CBC improves it if the
 * problem is small. Ends: every search has a fixed number of passes. */
#include "base/parallel.h"
#include "fifo/fifo.h"
#include "floorplan/floorplan_passes.h"
#include "floorplan/floorplan.h"
#include "predict/crossing.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_STEP 1024 /* step by which the depth is reduced when FIFOs do not fit */
/* 1/ROOM_SHARE of the block RAMs is freed if all are used and nothing fits */
#define ROOM_SHARE 8
/* placements, each after swaps for the one before */
#define SWAP_ROUNDS 4
/* placements, each with room for the registers between dies that the one before needs */
#define CROSSING_ROUNDS 5
#define CROSSING_MARGIN 8

static const int fuller_percent[] = { 90, 100 };

struct floorplan_state {
	struct module *module;
	const struct platform *platform;
	struct design_cost cost;
	int *item; /* of each process */
	struct floorplan_problem problem;
	VEC(struct floorplan_memory) memories;
	VEC(struct op *) crossing; /* FIFO of each edge; NULL: of a rewinding process' nests */
	int owner;                 /* item whose arrays are being added */
	int *die;                  /* of each item */
};

static bool has_port(const struct op *call)
{
	for (int a = 0; a < call->operands; a++)
		if (!call->operand[a]->def)
			return true;
	return false;
}

/* Merges both sides of a block channel into one item. */
static void join_sides(struct floorplan_state *p)
{
	for (int c = 0; c < p->cost.channels; c++) {
		const struct channel_cost *channel = &p->cost.channel[c];
		if (channel->op->code != OP_BLOCK_CHANNEL || channel->writer < 0 ||
		        channel->reader < 0)
			continue;
		int from = p->item[channel->reader];
		int to = p->item[channel->writer];
		for (int i = 0; i < p->cost.processes; i++)
			if (p->item[i] == from)
				p->item[i] = to;
	}
}

static void number_items(struct floorplan_state *p)
{
	int *number = ARENA_ARRAY(p->module->arena, int, p->cost.processes + 1);
	for (int i = 0; i < p->cost.processes; i++)
		p->item[i] = i;
	join_sides(p);
	for (int i = 0; i < p->cost.processes; i++) {
		if (p->item[i] == i)
			number[i] = p->problem.items++;
		p->item[i] = number[p->item[i]];
	}
}

static void add_edges(struct floorplan_state *p)
{
	struct floorplan_problem *problem = &p->problem;
	for (int c = 0; c < p->cost.channels; c++) {
		const struct channel_cost *channel = &p->cost.channel[c];
		struct op *op = channel->op;
		if (channel->writer < 0 && channel->reader < 0)
			continue;
		int to = p->item[channel->reader < 0 ? channel->writer : channel->reader];
		int from = p->item[channel->writer < 0 ? channel->reader : channel->writer];
		problem->item[to].need = resources_add(problem->item[to].need, channel->resources);
		VEC_PUSH(p->module->arena, &p->memories, ((struct floorplan_memory){ op, to }));
		if (op->code == OP_FIFO && from != to) {
			VEC_PUSH(p->module->arena, &p->crossing, op);
			problem->edge[problem->edges++] = (struct floorplan_edge){ from, to,
				type_bits(op->result[0]->type->element) };
		}
	}
}

/* What reads no channel is started by the kernel itself, and what writes none is waited for: both
 * are with its control, on the first die. */
static void keep_ends_with_control(struct floorplan_state *p)
{
	bool *reads = ARENA_ARRAY(p->module->arena, bool, p->cost.processes + 1);
	bool *writes = ARENA_ARRAY(p->module->arena, bool, p->cost.processes + 1);
	for (int c = 0; c < p->cost.channels; c++) {
		const struct channel_cost *channel = &p->cost.channel[c];
		if (channel->reader >= 0)
			reads[channel->reader] = true;
		if (channel->writer >= 0)
			writes[channel->writer] = true;
	}
	for (int i = 0; i < p->cost.processes && !p->problem.memory_die; i++)
		p->problem.item[p->item[i]].memory_die |= !reads[i] || !writes[i];
}

/* What issues the nests of a rewinding process may be with the control of the kernel, beside the
 * processes with memory ports: their channel. */
static void add_nest_edges(struct floorplan_state *p)
{
	struct floorplan_problem *problem = &p->problem;
	int control = 0;
	while (control < problem->items && !problem->item[control].memory_die)
		control++;
	for (int i = 0; i < p->cost.processes && control < problem->items; i++)
		if (p->item[i] != control && nests_are_apart(p->cost.process[i].function)) {
			VEC_PUSH(p->module->arena, &p->crossing, NULL);
			problem->edge[problem->edges++] =
			        (struct floorplan_edge){ control, p->item[i], NEST_ENTRY_BITS };
		}
}

static void add_array(struct op *op, void *context)
{
	struct floorplan_state *p = context;
	if (op->code == OP_ALLOCA)
		VEC_PUSH(p->module->arena, &p->memories,
		        ((struct floorplan_memory){ op, p->owner }));
}

static void make_problem(struct floorplan_state *p)
{
	struct arena *arena = p->module->arena;
	p->item = ARENA_ARRAY(arena, int, p->cost.processes + 1);
	number_items(p);
	struct floorplan_problem *problem = &p->problem;
	problem->item = ARENA_ARRAY(arena, struct floorplan_item, problem->items + 1);
	problem->edge =
	        ARENA_ARRAY(arena, struct floorplan_edge, p->cost.channels + p->cost.processes + 1);
	p->die = ARENA_ARRAY(arena, int, problem->items + 1);
	for (int i = 0; i < p->cost.processes; i++) {
		struct floorplan_item *item = &problem->item[p->item[i]];
		item->need = resources_add(item->need, p->cost.process[i].resources);
		item->memory_die |= has_port(p->cost.process[i].call);
		p->owner = p->item[i];
		ir_walk(p->cost.process[i].function->region[0], add_array, p);
	}
	add_edges(p);
	add_nest_edges(p);
	keep_ends_with_control(p);
	problem->memory = p->memories.data;
	problem->memories = (int)p->memories.count;
	floorplan_index(problem);
}

/* Do all items together, or those with memory ports, need more than is available? Then no placement
 * fits. */
static bool lacks_room(const struct floorplan_problem *problem)
{
	struct resources all = { 0 };
	struct resources memory_die = { 0 };
	struct resources room = { 0 };
	int64_t have;
	int64_t need;
	for (int i = 0; i < problem->items; i++) {
		all = resources_add(all, problem->item[i].need);
		memory_die = problem->item[i].memory_die
		        ? resources_add(memory_die, problem->item[i].need)
		        : memory_die;
	}
	for (int d = 0; d < problem->dies; d++)
		room = resources_add(room, problem->capacity[d]);
	return resources_exceeded(all, room, &have, &need) ||
	        resources_exceeded(
	                memory_die, problem->capacity[problem->memory_die], &have, &need);
}

/* Two independent attempts at a placement: of merged items, or of each item by itself. */
struct attempt {
	const struct floorplan_problem *problem;
	/* the merged item of each; NULL: items are not merged */
	const int *group;
	const struct floorplan_problem *merged;
	int *coarse; /* initial die of each merged item */
	int *die;
	struct floorplan_cost cost;
};

static void floorplan_attempt(void *data, struct arena *scratch)
{
	struct attempt *attempt = data;
	struct floorplan_problem problem = *attempt->problem;
	problem.arena = scratch;
	if (!attempt->group) {
		attempt->cost = floorplan_search(&problem, attempt->die);
		return;
	}
	struct floorplan_problem merged = *attempt->merged;
	merged.arena = scratch;
	if (floorplan_perturb(&merged, attempt->coarse).overflow > 0 || !problem.first_fit)
		floorplan_ilp(&merged, attempt->coarse);
	for (int i = 0; i < problem.items; i++)
		attempt->die[i] = attempt->coarse[attempt->group[i]];
	attempt->cost = floorplan_refine(&problem, attempt->die);
}

/* The second attempt runs in parallel if the first one does not fit at once. */
static struct floorplan_cost floorplan_items(
        struct guard *guard, const struct floorplan_problem *problem, int *die)
{
	if (lacks_room(problem))
		return (struct floorplan_cost){ .overflow = INFINITY };
	int *group = ARENA_ARRAY(problem->arena, int, problem->items + 1);
	struct floorplan_problem merged = floorplan_merge(problem, group);
	struct attempt attempt[] = {
		{ .problem = problem,
		        .group = group,
		        .merged = &merged,
		        .coarse = ARENA_ARRAY(problem->arena, int, problem->items + 1),
		        .die = die },
		{ .problem = problem, .die = ARENA_ARRAY(problem->arena, int, problem->items + 1) }
	};
	struct task task[] = { { floorplan_attempt, &attempt[0] },
		{ floorplan_attempt, &attempt[1] } };
	bool fits = floorplan_start(&merged, attempt[0].coarse).overflow <= 0;
	tasks_run(guard, fits ? 1 : 2, task);
	if (attempt[0].cost.overflow <= 0)
		return attempt[0].cost;
	if (fits)
		tasks_run(guard, 1, &task[1]);
	if (!floorplan_better(attempt[1].cost, attempt[0].cost))
		return attempt[0].cost;
	memcpy(die, attempt[1].die, sizeof *die * (size_t)problem->items);
	return attempt[1].cost;
}

/* Swaps memories of processes with memory ports, whose die is known before the placement. */
static void swap_memory_die(struct floorplan_state *p)
{
	struct floorplan_problem *problem = &p->problem;
	int elsewhere = problem->memory_die ? 0 : problem->dies - 1;
	for (int i = 0; i < problem->items; i++)
		p->die[i] = problem->item[i].memory_die ? problem->memory_die : elsewhere;
	if (problem->dies > 1)
		swap_bram_uram(p->module, p->platform, problem, p->die, problem->memory_die);
}

/* If all block RAMs of the memory die are used, memories that could be URAMs displace processes,
 * and wires run short: swaps as if there were fewer block RAMs. */
static bool swap_in_advance(struct floorplan_state *p)
{
	int64_t *have = &p->problem.capacity[p->problem.memory_die].bram18;
	int64_t all = *have;
	*have -= all / ROOM_SHARE;
	bool swapped = p->problem.dies > 1 &&
	        swap_bram_uram(p->module, p->platform, &p->problem, p->die, p->problem.memory_die);
	*have = all;
	return swapped;
}

/* near: starts from the current placement. */
static bool floorplan_with_swaps(struct floorplan_state *p, bool near)
{
	for (int i = 0; i < SWAP_ROUNDS; i++) {
		bool swapped = false;
		struct floorplan_cost cost = near
		        ? floorplan_perturb(&p->problem, p->die)
		        : floorplan_items(p->module->guard, &p->problem, p->die);
		if (cost.overflow <= 0)
			return true;
		for (int d = 0; d < p->platform->dies; d++)
			swapped |= swap_bram_uram(p->module, p->platform, &p->problem, p->die, d);
		if (!swapped && !swap_in_advance(p))
			return false;
	}
	return false;
}

static bool is_short(struct resources need, struct resources have, struct shortage *shortage)
{
	shortage->name = resources_exceeded(need, have, &shortage->have, &shortage->need);
	return shortage->name;
}

static int64_t crossings_at(const struct floorplan_state *p, int edge)
{
	return abs(p->die[p->problem.edge[edge].from] - p->die[p->problem.edge[edge].to]);
}

/* What the registers between dies take. */
static void find_crossings(const struct floorplan_state *p, struct resources need[PLATFORM_DIES])
{
	memset(need, 0, sizeof *need * PLATFORM_DIES);
	for (int e = 0; e < p->problem.edges; e++) {
		const struct floorplan_edge *edge = &p->problem.edge[e];
		struct crossing_parts parts = crossing_parts(p->platform, edge->bits);
		crossing_add(&parts, p->die[edge->from], p->die[edge->to], 1, need);
	}
}

static bool fits_with(const struct floorplan_state *p, const struct resources *capacity,
        const struct resources *crossings)
{
	struct floorplan_load load = floorplan_load(&p->problem, p->die);
	struct shortage shortage;
	bool fits = true;
	for (int d = 0; d < p->problem.dies; d++)
		fits &= !is_short(
		        resources_add(load.used[d], crossings[d]), capacity[d], &shortage);
	return fits;
}

/* The larger of what is kept and a little more than what is needed: a placement that only just fits
 * changes with the room that is kept, and then needs other registers. */
static int64_t kept_room(int64_t kept, int64_t need)
{
	int64_t more = need + need / CROSSING_MARGIN;
	return more > kept ? more : kept;
}

static void keep_room(struct resources *kept, struct resources need)
{
	kept->lut = kept_room(kept->lut, need.lut);
	kept->ff = kept_room(kept->ff, need.ff);
}

/* A placement that has room for its registers between dies too. near: starts from the current
 * one. */
static bool floorplan_with_crossings(struct floorplan_state *p, bool near)
{
	struct resources whole[PLATFORM_DIES];
	struct resources crossings[PLATFORM_DIES];
	struct resources kept[PLATFORM_DIES] = { 0 };
	bool fits = false;
	memcpy(whole, p->problem.capacity, sizeof whole);
	for (int i = 0; !fits && i < CROSSING_ROUNDS; i++) {
		if (!floorplan_with_swaps(p, near))
			break;
		find_crossings(p, crossings);
		fits = fits_with(p, whole, crossings);
		for (int d = 0; d < p->problem.dies; d++) {
			keep_room(&kept[d], crossings[d]);
			p->problem.capacity[d] = resources_subtract(whole[d], kept[d]);
		}
	}
	memcpy(p->problem.capacity, whole, sizeof whole);
	return fits;
}

static bool floorplan_uncrowded(struct floorplan_state *p)
{
	for (int d = 0; d < p->platform->dies; d++)
		p->problem.capacity[d] = platform_uncrowded(p->platform, d);
	swap_memory_die(p);
	return floorplan_with_crossings(p, false);
}

static bool floorplan_within(struct floorplan_state *p, int percent)
{
	for (int d = 0; d < p->platform->dies; d++) {
		struct resources r = p->platform->die[d];
		p->problem.capacity[d] = (struct resources){ r.lut * percent / 100,
			r.ff * percent / 100, r.dsp * percent / 100, r.bram18 * percent / 100,
			r.uram * percent / 100 };
	}
	return floorplan_with_crossings(p, false);
}

/* --- what does not fit */

static bool report_item(const struct floorplan_state *p, int item)
{
	struct shortage shortage = { 0 };
	const char *process = "";
	for (int d = 0; d < p->problem.dies; d++)
		if (!is_short(p->problem.item[item].need, p->problem.capacity[d], &shortage))
			return true;
	for (int i = p->cost.processes - 1; i >= 0; i--)
		process = p->item[i] == item ? p->cost.process[i].name : process;
	return report_shortage(p->module,
	        text_format(p->module->arena, "process '%s' needs", process), &shortage,
	        text_format(p->module->arena, "one die of %s", p->platform->name));
}

static bool report_ports(const struct floorplan_state *p)
{
	struct resources sum = { 0 };
	struct shortage shortage;
	for (int i = 0; i < p->problem.items; i++)
		if (p->problem.item[i].memory_die)
			sum = resources_add(sum, p->problem.item[i].need);
	return !is_short(sum, p->problem.capacity[p->problem.memory_die], &shortage) ||
	        report_shortage(p->module, "processes with memory ports need", &shortage,
	                text_format(p->module->arena, "die %d, the memory die of %s",
	                        p->problem.memory_die, p->platform->name));
}

static bool report_total(const struct floorplan_state *p)
{
	struct shortage shortage;
	return !is_short(p->cost.total, platform_total(p->platform), &shortage) ||
	        report_shortage(p->module, "the design needs", &shortage, p->platform->name);
}

/* Reports what exceeds its limit in the best placement that was found. */
static bool report_nearest(const struct floorplan_state *p)
{
	struct arena *arena = p->module->arena;
	struct floorplan_load load = floorplan_load(&p->problem, p->die);
	struct shortage shortage;
	for (int d = 0; d < p->problem.dies; d++)
		if (is_short(load.used[d], p->problem.capacity[d], &shortage))
			return report_shortage(p->module,
			        text_format(arena,
			                "no placement on %d dies was found; in the nearest, die %d "
			                "needs",
			                p->problem.dies, d),
			        &shortage, p->platform->name);
	for (int d = 0; d + 1 < p->problem.dies; d++) {
		shortage = (struct shortage){ "wires", load.wires[d], p->problem.wires };
		if (shortage.need > shortage.have)
			return report_shortage(p->module,
			        text_format(arena,
			                "no placement on %d dies was found; in the nearest, the "
			                "boundary of dies %d and %d needs",
			                p->problem.dies, d, d + 1),
			        &shortage, p->platform->name);
	}
	return true;
}

static bool explain_failure(const struct floorplan_state *p)
{
	bool found = !report_total(p);
	for (int i = 0; !found && i < p->problem.items; i++)
		found = !report_item(p, i);
	found = found || !report_ports(p) || !report_nearest(p);
	INVARIANT(p->module->guard, found, "the placement search rejected a placement that fits");
	return false;
}

static struct floorplan_state floorplan_state_of(
        const struct platform *platform, struct module *module)
{
	for (struct op *op = module_main(module)->region[0]->first; op; op = op->next)
		if (op->code == OP_FIFO)
			attr_set(module, op, KEY_STREAM_CROSSINGS, NULL);
	struct floorplan_state p = { .module = module,
		.platform = platform,
		.cost = design_cost(module->arena, platform, module) };
	p.problem = (struct floorplan_problem){ .arena = module->arena,
		.dies = platform->dies,
		.memory_die = platform->memory_die,
		.wires = platform->crossing_wires };
	make_problem(&p);
	return p;
}

bool floorplan_fits(const struct platform *platform, struct module *module)
{
	struct floorplan_state p = floorplan_state_of(platform, module);
	p.problem.first_fit = true;
	return floorplan_uncrowded(&p);
}

/* Places the design with deeper round-robin FIFOs; near: from the current placement. false: none
 * was found, and nothing has changed. */
static bool floorplan_deeper(struct floorplan_state *p, int64_t depth, bool near)
{
	struct module *module = p->module;
	int memories = p->problem.memories;
	const struct attr **storage = ARENA_ARRAY(module->arena, const struct attr *, memories + 1);
	for (int i = 0; i < memories; i++)
		storage[i] = attr_get(p->problem.memory[i].op, KEY_STREAM_STORAGE);
	int64_t before = floorplan_fifo_depth(module);
	floorplan_set_fifo_depth(module, depth);
	struct floorplan_state deeper = floorplan_state_of(p->platform, module);
	memcpy(deeper.problem.capacity, p->problem.capacity, sizeof deeper.problem.capacity);
	memcpy(deeper.die, p->die, sizeof *p->die * (size_t)p->problem.items);
	if (floorplan_with_crossings(&deeper, near)) {
		*p = deeper;
		return true;
	}
	floorplan_set_fifo_depth(module, before);
	for (int i = 0; i < memories; i++)
		attr_set(module, p->problem.memory[i].op, KEY_STREAM_STORAGE, storage[i]);
	return false;
}

bool floorplan(struct pass_context *context, struct module *module)
{
	const struct platform *platform = context->platform;
	struct floorplan_state p = floorplan_state_of(platform, module);
	bool placed = floorplan_uncrowded(&p);
	for (size_t i = 0; !placed && i < sizeof fuller_percent / sizeof *fuller_percent; i++)
		placed = floorplan_within(&p, fuller_percent[i]);
	if (!placed)
		return explain_failure(&p);
	int64_t least = floorplan_fifo_depth(module);
	floorplan_deepen_fifos(module, platform, &p.problem, p.die);
	int64_t depth = FLOORPLAN_FIFO_DEEPEST;
	int64_t now = floorplan_fifo_depth(module);
	while (now && depth > now && !floorplan_deeper(&p, depth, true))
		depth -= DEPTH_STEP;
	depth = floorplan_fifo_depth(module) + DEPTH_STEP;
	if (now && depth <= FLOORPLAN_FIFO_DEEPEST)
		floorplan_deeper(&p, depth, false);
	bool deeper = floorplan_fifo_depth(module) > least;
	for (int i = 0; i < p.cost.processes; i++) {
		attr_set(module, p.cost.process[i].function, KEY_STREAM_DIE,
		        attr_integer(module, p.die[p.item[i]]));
		if (deeper)
			fifo_set_arguments(module, p.cost.process[i].call);
	}
	for (int e = 0; e < p.problem.edges; e++)
		if (p.crossing.data[e] && crossings_at(&p, e))
			attr_set(module, p.crossing.data[e], KEY_STREAM_CROSSINGS,
			        attr_integer(module, crossings_at(&p, e)));
	return true;
}
