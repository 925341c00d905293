/* Puts every process on a die, so that as few bits as possible cross between dies.
 * Needs: channels and arrays with their storage.  Guarantees: stream.die on every process; the two sides of a block channel on one die, processes with memory
 * ports on the memory die; no die and no boundary over what the platform has.  Exact.
 * Memories become URAMs where a die lacks block RAMs for them, or block RAMs where it lacks URAMs (place_trade.c).  Dies are filled as far as the platform calls them crowded if that can be (fuller ones route badly), else further.  Moves find a placement; CBC improves it where the problem is small. */
#include "base/jobs.h"
#include "fifo/fifo.h"
#include "floorplan/floorplan_passes.h"
#include "floorplan/place.h"
#include <math.h>
#include <string.h>

#define LESS_DEEP 1024        /* so much less is tried where as deep FIFOs found no room */
#define ROOM_SHARE 8          /* one part in so many of block RAMs is left where all are taken and nothing fits */
#define TRADES 4              /* placements, each with the memories that the one before asks for */

static const int fuller_percent[] = {90, 100};

struct placing {
	struct module *module;
	const struct platform *platform;
	struct design_cost cost;
	int *item;                /* of each process */
	struct place_problem problem;
	VEC(struct place_memory) memories;
	int owner;                /* item that arrays are added for */
	int *die;                 /* of each item */
};

/* Calls that use the value, in order: its writer and its reader. */
static int users_of(const struct placing *p, const struct value *value, int user[2])
{
	int count = 0;
	for (int i = 0; i < p->cost.processes && count < 2; i++) {
		const struct op *call = p->cost.process[i].call;
		for (int a = 0; a < call->operands; a++)
			if (call->operand[a] == value) {
				user[count++] = i;
				break;
			}
	}
	return count;
}

static bool has_port(const struct op *call)
{
	for (int a = 0; a < call->operands; a++)
		if (!call->operand[a]->def)
			return true;
	return false;
}

/* The sides of a block channel are one item. */
static void join_sides(struct placing *p)
{
	for (int c = 0; c < p->cost.channels; c++) {
		int user[2], from, to;
		if (p->cost.channel[c].op->code != OP_BLOCKS || users_of(p, p->cost.channel[c].op->result[0], user) < 2)
			continue;
		from = p->item[user[1]];
		to = p->item[user[0]];
		for (int i = 0; i < p->cost.processes; i++)
			if (p->item[i] == from)
				p->item[i] = to;
	}
}

static void number_items(struct placing *p)
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

static void add_edges(struct placing *p)
{
	struct place_problem *problem = &p->problem;
	for (int c = 0; c < p->cost.channels; c++) {
		struct op *op = p->cost.channel[c].op;
		int user[2], users = users_of(p, op->result[0], user);
		if (!users)
			continue;
		int last = p->item[user[users - 1]];   /* design_cost counts it there, too */
		problem->item[last].need = resources_add(problem->item[last].need, p->cost.channel[c].resources);
		VEC_PUSH(p->module->arena, &p->memories, ((struct place_memory){op, last}));
		if (users == 2 && op->code == OP_FIFO && p->item[user[0]] != p->item[user[1]])
			problem->edge[problem->edges++] = (struct place_edge){p->item[user[0]], p->item[user[1]], type_bits(op->result[0]->type->element)};
	}
}

static void add_array(struct op *op, void *context)
{
	struct placing *p = context;
	if (op->code == OP_ALLOCA)
		VEC_PUSH(p->module->arena, &p->memories, ((struct place_memory){op, p->owner}));
}

static void make_problem(struct placing *p)
{
	struct arena *arena = p->module->arena;
	p->item = ARENA_ARRAY(arena, int, p->cost.processes + 1);
	number_items(p);
	struct place_problem *problem = &p->problem;
	problem->item = ARENA_ARRAY(arena, struct place_item, problem->items + 1);
	problem->edge = ARENA_ARRAY(arena, struct place_edge, p->cost.channels + 1);
	p->die = ARENA_ARRAY(arena, int, problem->items + 1);
	for (int i = 0; i < p->cost.processes; i++) {
		struct place_item *item = &problem->item[p->item[i]];
		item->need = resources_add(item->need, p->cost.process[i].resources);
		item->home |= has_port(p->cost.process[i].call);
		p->owner = p->item[i];
		ir_walk(p->cost.process[i].function->region[0], add_array, p);
	}
	add_edges(p);
	problem->memory = p->memories.data;
	problem->memories = (int)p->memories.count;
	place_index(problem);
}

/* Less than what all need together, or those with memory ports: then no placement fits. */
static bool lacks_room(const struct place_problem *problem)
{
	struct resources all = {0}, home = {0}, room = {0};
	int64_t have, need;
	for (int i = 0; i < problem->items; i++) {
		all = resources_add(all, problem->item[i].need);
		home = problem->item[i].home ? resources_add(home, problem->item[i].need) : home;
	}
	for (int d = 0; d < problem->dies; d++)
		room = resources_add(room, problem->capacity[d]);
	return resources_exceeded(all, room, &have, &need) || resources_exceeded(home, problem->capacity[problem->home], &have, &need);
}

/* Two ways to one placement, which look at nothing of each other: of items that were merged, or of each by itself. */
struct way {
	const struct place_problem *problem;
	const int *group;         /* of each item, the one that it was merged into; NULL: none was */
	const struct place_problem *merged;
	int *coarse;              /* the die of each merged one, to begin with */
	int *die;
	struct place_cost cost;
};

static void place_way(void *data, struct arena *scratch)
{
	struct way *way = data;
	struct place_problem problem = *way->problem;
	problem.arena = scratch;
	if (!way->group) {
		way->cost = place_search(&problem, way->die);
		return;
	}
	struct place_problem merged = *way->merged;
	merged.arena = scratch;
	if (place_throw(&merged, way->coarse).overflow > 0 || !problem.any)
		place_exact(&merged, way->coarse);
	for (int i = 0; i < problem.items; i++)
		way->die[i] = way->coarse[way->group[i]];
	way->cost = place_refine(&problem, way->die);
}

/* The second way is gone beside the first where that does not fit at once. */
static struct place_cost place(struct guard *guard, const struct place_problem *problem, int *die)
{
	if (lacks_room(problem))
		return (struct place_cost){.overflow = INFINITY};
	int *group = ARENA_ARRAY(problem->arena, int, problem->items + 1);
	struct place_problem merged = place_merge(problem, group);
	struct way way[] = {{.problem = problem, .group = group, .merged = &merged, .coarse = ARENA_ARRAY(problem->arena, int, problem->items + 1), .die = die},
			    {.problem = problem, .die = ARENA_ARRAY(problem->arena, int, problem->items + 1)}};
	struct job job[] = {{place_way, &way[0]}, {place_way, &way[1]}};
	bool fits = place_start(&merged, way[0].coarse).overflow <= 0;
	jobs_run(guard, fits ? 1 : 2, job);
	if (way[0].cost.overflow <= 0)
		return way[0].cost;
	if (fits)
		jobs_run(guard, 1, &job[1]);
	if (!place_better(way[1].cost, way[0].cost))
		return way[0].cost;
	memcpy(die, way[1].die, sizeof *die * (size_t)problem->items);
	return way[1].cost;
}

/* Of processes with memory ports, which stand on one die whatever the placement. */
static void trade_home(struct placing *p)
{
	struct place_problem *problem = &p->problem;
	for (int i = 0; i < problem->items; i++)
		p->die[i] = problem->item[i].home ? problem->home : problem->home ? 0 : problem->dies - 1;
	if (problem->dies > 1)
		place_trade(p->module, p->platform, problem, p->die, problem->home);
}

/* Where block RAMs of the memory ports' die are all taken, what could do with URAMs crowds out processes, and wires are what is short. */
static bool trade_more(struct placing *p)
{
	int64_t *have = &p->problem.capacity[p->problem.home].bram18, all = *have;
	*have -= all / ROOM_SHARE;
	bool traded = p->problem.dies > 1 && place_trade(p->module, p->platform, &p->problem, p->die, p->problem.home);
	*have = all;
	return traded;
}

/* near: from where the items are. */
static bool place_trading(struct placing *p, bool near)
{
	for (int i = 0; i < TRADES; i++) {
		bool traded = false;
		struct place_cost cost = near ? place_throw(&p->problem, p->die) : place(p->module->guard, &p->problem, p->die);
		if (cost.overflow <= 0)
			return true;
		for (int d = 0; d < p->platform->dies; d++)
			traded |= place_trade(p->module, p->platform, &p->problem, p->die, d);
		if (!traded && !trade_more(p))
			return false;
	}
	return false;
}

static bool place_uncrowded(struct placing *p)
{
	for (int d = 0; d < p->platform->dies; d++)
		p->problem.capacity[d] = platform_uncrowded(p->platform, d);
	trade_home(p);
	return place_trading(p, false);
}

static bool place_at(struct placing *p, int percent)
{
	for (int d = 0; d < p->platform->dies; d++) {
		struct resources r = p->platform->die[d];
		p->problem.capacity[d] = (struct resources){r.lut * percent / 100, r.ff * percent / 100, r.dsp * percent / 100, r.bram18 * percent / 100, r.uram * percent / 100};
	}
	return place(p->module->guard, &p->problem, p->die).overflow <= 0;
}

/* --- what does not fit --- */

static bool refuse(const struct placing *p, const char *what, const char *name, int64_t need, int64_t have, const char *where)
{
	struct diag *diag = p->module->diag;
	bool memory = strstr(name, "BRAM") || strstr(name, "URAM");
	diag_error(diag, module_main(p->module)->location, "%s %lld %s, %lld more than the %lld of %s", what, (long long)need, name, (long long)(need - have), (long long)have, where);
	return diag_note(diag, "%sa smaller model, or another --platform (`stc platforms` lists them)", memory ? "--on-chip with less keeps more in external memory; or " : "");
}

static bool refuse_item(const struct placing *p, int item)
{
	int64_t have = 0, need = 0;
	const char *name = NULL, *process = "";
	for (int d = 0; d < p->problem.dies; d++) {
		name = resources_exceeded(p->problem.item[item].need, p->problem.capacity[d], &have, &need);
		if (!name)
			return true;
	}
	for (int i = p->cost.processes - 1; i >= 0; i--)
		process = p->item[i] == item ? p->cost.process[i].name : process;
	return refuse(p, text_format(p->module->arena, "process '%s' needs", process), name, need, have, text_format(p->module->arena, "one die of %s", p->platform->name));
}

static bool refuse_ports(const struct placing *p)
{
	struct resources sum = {0};
	int64_t have, need;
	for (int i = 0; i < p->problem.items; i++)
		if (p->problem.item[i].home)
			sum = resources_add(sum, p->problem.item[i].need);
	const char *name = resources_exceeded(sum, p->problem.capacity[p->problem.home], &have, &need);
	return !name || refuse(p, "processes with memory ports need", name, need, have, text_format(p->module->arena, "die %d, the memory die of %s", p->problem.home, p->platform->name));
}

static bool refuse_total(const struct placing *p)
{
	int64_t have, need;
	const char *name = resources_exceeded(p->cost.total, platform_total(p->platform), &have, &need);
	return !name || refuse(p, "the design needs", name, need, have, p->platform->name);
}

/* The nearest that was found. */
static bool refuse_nearest(const struct placing *p)
{
	struct arena *arena = p->module->arena;
	struct place_load load = place_load(&p->problem, p->die);
	int64_t have, need;
	for (int d = 0; d < p->problem.dies; d++) {
		const char *name = resources_exceeded(load.used[d], p->problem.capacity[d], &have, &need);
		if (name)
			return refuse(p, text_format(arena, "no placement on %d dies was found; in the nearest, die %d needs", p->problem.dies, d), name, need, have, p->platform->name);
	}
	for (int d = 0; d + 1 < p->problem.dies; d++)
		if (load.wires[d] > p->problem.wires)
			return refuse(p, text_format(arena, "no placement on %d dies was found; in the nearest, the boundary of dies %d and %d needs", p->problem.dies, d, d + 1), "wires",
				      load.wires[d], p->problem.wires, p->platform->name);
	return true;
}

static bool explain(const struct placing *p)
{
	bool found = !refuse_total(p);
	for (int i = 0; !found && i < p->problem.items; i++)
		found = !refuse_item(p, i);
	found = found || !refuse_ports(p) || !refuse_nearest(p);
	INVARIANT(p->module->guard, found, "a placement that fits was refused");
	return false;
}

static struct placing placing_of(const struct platform *platform, struct module *module)
{
	struct placing p = {.module = module, .platform = platform, .cost = design_cost(module->arena, platform, module)};
	p.problem = (struct place_problem){.arena = module->arena, .dies = platform->dies, .home = platform->memory_die, .wires = platform->crossing_wires};
	make_problem(&p);
	return p;
}

bool place_finds_room(const struct platform *platform, struct module *module)
{
	struct placing p = placing_of(platform, module);
	p.problem.any = true;
	return place_uncrowded(&p);
}

/* With deeper FIFOs where words are dealt to; near: from where processes stand.  false: it was not found, and all is as it was. */
static bool place_deeper(struct placing *p, int64_t depth, bool near)
{
	struct module *module = p->module;
	int memories = p->problem.memories;
	const struct attr **storage = ARENA_ARRAY(module->arena, const struct attr *, memories + 1);
	for (int i = 0; i < memories; i++)
		storage[i] = attr_get(p->problem.memory[i].op, KEY_STREAM_STORAGE);
	int64_t before = place_depth(module);
	place_set_depth(module, depth);
	struct placing deeper = placing_of(p->platform, module);
	memcpy(deeper.problem.capacity, p->problem.capacity, sizeof deeper.problem.capacity);
	memcpy(deeper.die, p->die, sizeof *p->die * (size_t)p->problem.items);
	if (place_trading(&deeper, near)) {
		*p = deeper;
		return true;
	}
	place_set_depth(module, before);
	for (int i = 0; i < memories; i++)
		attr_set(module, p->problem.memory[i].op, KEY_STREAM_STORAGE, storage[i]);
	return false;
}

bool place_dies(struct pass_context *context, struct module *module)
{
	const struct platform *platform = context->platform;
	struct placing p = placing_of(platform, module);
	bool placed = place_uncrowded(&p);
	for (size_t i = 0; !placed && i < sizeof fuller_percent / sizeof *fuller_percent; i++)
		placed = place_at(&p, fuller_percent[i]);
	if (!placed)
		return explain(&p);
	int64_t least = place_depth(module);
	place_deepen(module, platform, &p.problem, p.die);
	int64_t depth = PLACE_DEEPEST, now = place_depth(module);
	while (now && depth > now && !place_deeper(&p, depth, true))
		depth -= LESS_DEEP;
	depth = place_depth(module) + LESS_DEEP;
	if (now && depth <= PLACE_DEEPEST)
		place_deeper(&p, depth, false);
	bool deeper = place_depth(module) > least;
	for (int i = 0; i < p.cost.processes; i++) {
		attr_set(module, p.cost.process[i].function, KEY_STREAM_DIE, attr_integer(module, p.die[p.item[i]]));
		if (deeper)
			fifo_set_arguments(module, p.cost.process[i].call);
	}
	return true;
}
