/* The order in which a unit works on phases and tiles of tokens.
 * Phases of the same numbers are a group: a tile of all of them, then the next.  Groups that take a tile from each other when it is there, tile by tile all the way, are a series: each is a tile behind the
 * one before it.  So while a norm, attention or an activation works on a tile between two groups, the unit works on another tile.
 *     three groups a, b, c and four tiles:  a0 | a1 b0 | a2 b1 c0 | a3 b2 c1 | b3 c2 | c3
 * What a group waits for then was always begun before it, so an order that ends remains one. */
#include "model/box.h"
#include "pass/unit.h"

#define TILES_LEAST 2         /* of so few the order would be the same */

/* ---- which groups are a series */

struct seen {
	const struct op *op;
	bool tiles;               /* all that was passed since keeps tiles apart */
};

struct search {
	const struct unit *unit;
	int first, end;           /* phases of the series so far */
	int64_t tiles;
	VEC(struct seen) seen;
};

/* Do the outermost of these loops together walk whole tiles? */
static bool walks_tiles(int64_t tiles, int64_t turns)
{
	return turns % tiles == 0;
}

/* The first so many parts of the result need no more than as many of the operand. */
static bool kernel_keeps(const struct kernel *kernel, int operand, int64_t tiles)
{
	const struct access *access = &kernel->operand[operand];
	int64_t turns = 1;
	for (int l = 0; l < kernel->loops && !walks_tiles(tiles, turns); l++) {
		bool guarded = false;
		for (int g = 0; g < access->guards; g++)
			guarded = guarded || access->guard[g].loop == l;
		if (kernel->loop[l].reduction || kernel->loop[l].run_time || guarded || (!access->stride[l] && kernel->loop[l].extent > 1))
			return false;
		turns *= kernel->loop[l].extent;
	}
	return walks_tiles(tiles, turns) && !kernel->scan;
}

static bool box_keeps(struct arena *arena, const struct op *op, const struct value *result, int64_t tiles)
{
	struct box box = box_between(arena, attr_get(op, "tensor")->type, op->operand[0]->type, result->type, BOX_LEAST);
	int64_t turns = 1;
	if (box.why || !box.shared || box.shared != attr_integer_or(op, "shared", 0) || attr_get(op, "window") || attr_get(op, "given") || attr_get(op, "cut"))
		return false;
	for (int l = 0; l < box.shared && !walks_tiles(tiles, turns); l++) {
		if (box.fill.run_time[l])
			return false;
		turns *= box.fill.trip[l];
	}
	return walks_tiles(tiles, turns);
}

/* Words of an outermost part are all let through. */
static bool chunk_keeps(const struct op *op, int64_t tiles)
{
	const struct itensor *order = op->operand[0]->type->itensor;
	const int64_t *low = attr_get(op, "low")->integers, *high = attr_get(op, "high")->integers;
	int64_t turns = 1;
	for (int i = 0; i < order->dims && !walks_tiles(tiles, turns); i++) {
		if (low[i] || high[i] != order->trip[i] || (order->run_time && order->run_time[i]))
			return false;
		turns *= order->trip[i];
	}
	return walks_tiles(tiles, turns);
}

static bool op_keeps(struct arena *arena, const struct value *result, int operand, int64_t tiles)
{
	const struct op *op = result->def;
	switch (op->code) {
	case OP_KERNEL: return kernel_keeps(op->kernel, operand, tiles);
	case OP_CONVERT: case OP_BUFFER: return box_keeps(arena, op, result, tiles);
	case OP_CHUNK: return chunk_keeps(op, tiles);
	case OP_CAST: case OP_REASSOCIATE: case OP_FORK: return true;
	default: return false;
	}
}

static bool is_of_series(const struct search *s, const struct op *op)
{
	for (int i = s->first; i < s->end; i++)
		if (s->unit->phases.data[i].op == op)
			return true;
	return false;
}

/* Does nothing of a phase of the series stand between that waits for more than the tile at hand? */
static bool comes_in_tiles(struct search *s, const struct value *value, bool tiles)
{
	const struct op *op = value->def;
	struct arena *arena = s->unit->design->module->arena;
	if (!op || op->parent != s->unit->phases.data[s->first].op->parent)
		return true;
	if (op->code == OP_CONTRACT)
		return tiles || !is_of_series(s, op);
	for (size_t i = 0; i < s->seen.count; i++)
		if (s->seen.data[i].op == op && s->seen.data[i].tiles == tiles)
			return true;
	VEC_PUSH(arena, &s->seen, ((struct seen){op, tiles}));
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j]->type->kind == TYPE_ITENSOR && !comes_in_tiles(s, op->operand[j], tiles && op_keeps(arena, value, j, s->tiles)))
			return false;
	return true;
}

static bool in_loop_of(const struct unit *unit, int i, int other)
{
	return other >= 0 && other < (int)unit->phases.count && unit->phases.data[i].op->parent == unit->phases.data[other].op->parent;
}

/* Does the phase behind phase i work on the same numbers? */
static bool goes_on(const struct unit *unit, int i)
{
	return in_loop_of(unit, i, i + 1) && unit->phases.data[i].tiles > 1 && unit->phases.data[i + 1].contract.same;
}

static int group_end(const struct unit *unit, int i)
{
	while (goes_on(unit, i))
		i++;
	return i + 1;
}

void unit_find_series(struct unit *unit)
{
	int first = 0;
	for (int i = 0; i < (int)unit->phases.count; i = group_end(unit, i)) {
		struct phase *phase = &unit->phases.data[i];
		struct search search = {.unit = unit, .first = first, .end = i, .tiles = phase->tiles};
		bool joins = i && in_loop_of(unit, i, first) && phase->tiles > TILES_LEAST && phase->tiles <= TILES_IN_TURN && phase->tiles == unit->phases.data[first].tiles && !phase->contract.rows;
		for (int j = 0; joins && j < 2; j++)
			joins = comes_in_tiles(&search, phase->op->operand[j], true);
		first = joins ? first : i;
		for (int k = i; k < group_end(unit, i); k++)
			unit->phases.data[k].series = first;
	}
}

/* ---- the walk */

static int series_end(const struct unit *unit, int i)
{
	int end = i + 1;
	while (end < (int)unit->phases.count && unit->phases.data[end].series == unit->phases.data[i].series)
		end++;
	return end;
}

/* One group: all its tiles. */
static void walk_group(const struct unit *unit, struct process *p, int first, int end, unit_group *add, void *context)
{
	const struct phase *phase = &unit->phases.data[first];
	if (phase->tiles > 1)
		process_loop_to(p, phase->tiles, phase->there.tiles);
	add(unit, p, first, end, context);
	process_close(p, phase->tiles > 1);
}

static void walk_series(const struct unit *unit, struct process *p, int first, int end, unit_group *add, void *context)
{
	int64_t tiles = unit->phases.data[first].tiles, turns;
	int groups = 0, *begin = ARENA_ARRAY(p->module->arena, int, end - first + 1);
	for (int i = first; i < end; i = group_end(unit, i))
		begin[groups++] = i;
	begin[groups] = end;
	for (int64_t slot = 0; slot < tiles + groups - 1; slot += turns) {
		turns = slot == groups - 1 && tiles > groups ? tiles - groups + 1 : 1;      /* of all groups */
		if (turns > 1)
			process_loop(p, turns);
		for (int g = 0; g < groups; g++)
			if (slot >= g && slot - g < tiles)
				add(unit, p, begin[g], begin[g + 1], context);
		process_close(p, turns > 1);
	}
}

int unit_loop_end(const struct unit *unit, int first)
{
	int end = first + 1;
	while (in_loop_of(unit, first, end))
		end++;
	return end;
}

int unit_walk_series(const struct unit *unit, struct process *p, int first, unit_group *add, void *context)
{
	int end = series_end(unit, first);
	if (group_end(unit, first) == end)
		walk_group(unit, p, first, end, add, context);
	else
		walk_series(unit, p, first, end, add, context);
	return end;
}

struct each {
	unit_add *add;
	void *context;
};

static void add_each(const struct unit *unit, struct process *p, int first, int end, void *context)
{
	const struct each *each = context;
	for (int i = first; i < end; i++)
		each->add(unit, p, &unit->phases.data[i], each->context);
}

void unit_each(const struct unit *unit, struct process *p, unit_add *add, void *context)
{
	struct each each = {add, context};
	for (int first = 0, end; first < (int)unit->phases.count; first = end) {
		int64_t layers = unit->phases.data[first].layers;
		end = unit_loop_end(unit, first);
		p->design->layers = layers;
		process_layers(p);
		for (int i = first; i < end; )
			i = unit_walk_series(unit, p, i, add_each, &each);
		process_close(p, layers > 0);
		p->layer = NULL;
	}
	p->design->layers = 0;
}
