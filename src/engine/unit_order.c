/* The order in which a unit works on phases and tiles of tokens.
 * Phases of the same numbers are a group: a tile of all of them, then the next.  Groups that take a tile from each other when it is there, tile by tile all the way, are a series: each is a tile behind the
 * one before it.  So while a norm, attention or an activation works on a tile between two groups, the unit works on another tile.
 *     three groups a, b, c and four tiles:  a0 | a1 b0 | a2 b1 c0 | a3 b2 c1 | b3 c2 | c3
 * Where all groups of a layer are one series, and the next layer takes tile by tile what this one hands on, the next layer begins while this one ends, and all groups always take turns:
 *     … | a3 b2 c1 | A0 b3 c2 | A1 B0 c3 | A2 B1 C0 | …
 * Where a launch says how many tokens there are, slots stay, and what works on a tile that is not there is left out.  Where attention cannot do without later tiles, it waits for keys and values k of
 * all, but for queries q of its own: others of these are made meanwhile (`apart`, tile_tokens.c), and layers follow each other with a break.
 *     k0 k1 k2 k3 | q0 | q1 | q2 a0 | q3 b0 a1 | c0 b1 a2 | c1 b2 a3 | c2 b3 | c3
 * Where it can (hide_later.c), keys, queries and values are one group again, which takes turns with the others and is ahead by one slot more (unit_join_queries).  What is furthest behind comes first in a
 * slot and the first group last, so it may be as many tiles behind as there are: the next layer takes in the slot's last turn what was made in its first.
 *     q0 | q1 | a0 q2 | b0 a1 q3 | c0 b1 a2 Q0 | c1 b2 a3 Q1 | c2 b3 A0 Q2 | c3 B0 A1 Q3 | C0 …
 * What a group waits for then was always begun before it, so an order that ends remains one. */
#include "ir/rows.h"
#include "itensor/box.h"
#include "engine/unit.h"

/* ---- which groups are a series */

struct seen {
	const struct value *value;
	bool tiles;               /* all that was passed since keeps tiles apart */
};

struct search {
	const struct unit *unit;
	int first, end;           /* phases of the series so far */
	int64_t tiles;
	const struct run_time_trip *there;        /* of the tiles; NULL: all */
	bool around;              /* the series goes on in the next layer: what a layer hands on comes tile by tile too */
	bool turned;              /* keys of all tiles came in a tile's turn */
	VEC(struct seen) seen;
};

/* Do the outermost of these loops together walk whole tiles? */
static bool walks_tiles(int64_t tiles, int64_t turns)
{
	return turns % tiles == 0;
}

/* May a loop be one of these?  Where tiles are counted they are the outermost, so that there are as many as of tokens. */
static bool may_walk(const struct search *s, int loop, const struct run_time_trip *run_time)
{
	return s->there ? !loop && run_time_same(run_time, s->there) : !run_time;
}

/* The first so many parts of the result need no more than as many of the operand. */
static bool kernel_keeps(const struct search *s, const struct kernel *kernel, int operand)
{
	const struct access *access = &kernel->operand[operand];
	int64_t turns = 1;
	for (int l = 0; l < kernel->loops && !walks_tiles(s->tiles, turns); l++) {
		bool guarded = false;
		for (int g = 0; g < access->guards; g++)
			guarded = guarded || access->guard[g].loop == l;
		if (kernel->loop[l].reduction || !may_walk(s, l, kernel->loop[l].run_time) || guarded || (!access->stride[l] && kernel->loop[l].extent > 1))
			return false;
		turns *= kernel->loop[l].extent;
	}
	return walks_tiles(s->tiles, turns) && !kernel->scan;
}

static bool box_keeps(const struct search *s, const struct op *op, const struct value *result)
{
	struct arena *arena = s->unit->design->module->arena;
	struct box box = box_between(arena, attr_get(op, KEY_TENSOR)->type, op->operand[0]->type, result->type, BOX_LEAST);
	int64_t turns = 1;
	if (box.why || !box.shared || box.shared != attr_integer_or(op, KEY_SHARED_LOOPS, 0) || attr_get(op, KEY_LINE_BUFFER) || attr_get(op, KEY_IN_PRODUCER) || attr_get(op, KEY_SPILLED))
		return false;
	for (int l = 0; l < box.shared && !walks_tiles(s->tiles, turns); l++) {
		if (!may_walk(s, l, box.fill.run_time[l]))
			return false;
		turns *= box.fill.trip[l];
	}
	return walks_tiles(s->tiles, turns);
}

/* Words of an outermost part are all let through. */
static bool chunk_keeps(const struct search *s, const struct op *op)
{
	const struct itensor *order = op->operand[0]->type->itensor;
	const int64_t *low = attr_get(op, KEY_LOW)->integers, *high = attr_get(op, KEY_HIGH)->integers;
	int64_t turns = 1;
	for (int i = 0; i < order->dims && !walks_tiles(s->tiles, turns); i++) {
		if (low[i] || high[i] != order->trip[i] || !may_walk(s, i, order->run_time ? order->run_time[i] : NULL))
			return false;
		turns *= order->trip[i];
	}
	return walks_tiles(s->tiles, turns);
}

/* Rows are filled up in each tile. */
static bool fill_keeps(const struct search *s, const struct value *result)
{
	const struct itensor *order = result->type->itensor;
	return s->there && order->dims && order->run_time && may_walk(s, 0, order->run_time[0]);
}

/* What comes back from external memory comes when all tiles are there (lower_cut.c). */
static bool is_later(const struct op *op)
{
	return op->code == OP_CONVERT && attr_get(op, KEY_CAUSAL) && !attr_get(op, KEY_SPILLED);
}

/* All tiles come in every tile's turn, but those that are hidden from it need not be there (later.h). */
static bool comes_in_turns(const struct value *value)
{
	const struct op *op = value->def;
	while (op && (op->code == OP_CAST || op->code == OP_FORK))
		op = op->operand[0]->def;
	return op && is_later(op);
}

static bool takes_turned(struct search *s, const struct value *value)
{
	bool turned = (s->around || s->there) && comes_in_turns(value);
	s->turned |= turned;
	return turned;
}

static bool op_keeps(struct search *s, const struct value *result, int operand)
{
	const struct op *op = result->def;
	switch (op->code) {
	case OP_KERNEL: return kernel_keeps(s, op->kernel, operand) || takes_turned(s, op->operand[operand]);
	case OP_CONVERT: case OP_BUFFER: return box_keeps(s, op, result) || ((s->around || s->there) && is_later(op));
	case OP_CHUNK: return chunk_keeps(s, op);
	case OP_FILL: return fill_keeps(s, result);
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

static bool comes_in_tiles(struct search *s, const struct value *value, bool tiles);

/* What the layer before hands on, or what comes from outside of all layers. */
static bool handed_in_tiles(struct search *s, const struct value *value, bool tiles)
{
	const struct block *layer = s->unit->phases.data[s->first].op->parent;
	for (int i = 1; s->around && i < layer->arguments; i++)
		if (layer->argument[i] == value)
			return tiles && comes_in_tiles(s, layer->last->operand[i - 1], true);
	return true;
}

/* Does nothing of a phase of the series stand between that waits for more than the tile at hand? */
static bool comes_in_tiles(struct search *s, const struct value *value, bool tiles)
{
	const struct op *op = value->def;
	for (size_t i = 0; i < s->seen.count; i++)
		if (s->seen.data[i].value == value && s->seen.data[i].tiles == tiles)
			return true;
	VEC_PUSH(s->unit->design->module->arena, &s->seen, ((struct seen){value, tiles}));
	if (!op || op->parent != s->unit->phases.data[s->first].op->parent)
		return handed_in_tiles(s, value, tiles);
	if (op->code == OP_CONTRACT)
		return tiles || !is_of_series(s, op);
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j]->type->kind == TYPE_ITENSOR && !comes_in_tiles(s, op->operand[j], tiles && op_keeps(s, value, j)))
			return false;
	return true;
}

static bool in_loop_of(const struct unit *unit, int i, int other)
{
	const struct phase *phase = unit->phases.data;
	return other >= 0 && other < (int)unit->phases.count && phase[i].op->parent == phase[other].op->parent && !attr_get(phase[i].op, KEY_LAST_CHUNK_ONLY) == !attr_get(phase[other].op, KEY_LAST_CHUNK_ONLY);
}

/* Does the phase behind phase i work on the same numbers, or on a tile as well that is the only one? */
static bool goes_on(const struct unit *unit, int i)
{
	const struct phase *phase = &unit->phases.data[i];
	return in_loop_of(unit, i, i + 1) && (phase->tiles > 1 ? phase[1].contract.same && !phase[1].contract.apart : phase[1].tiles == 1);
}

static int group_end(const struct unit *unit, int i)
{
	while (goes_on(unit, i))
		i++;
	return i + 1;
}

static bool takes_turns(const struct phase *phase, int64_t tiles)
{
	return phase->tiles == tiles && tiles > TILES_LEAST && tiles <= TILES_IN_TURN;
}

static bool group_comes_in_tiles(struct search *s, int first)
{
	for (int j = 0; j < 2; j++)
		if (!comes_in_tiles(s, s->unit->phases.data[first].op->operand[j], true))
			return false;
	return true;
}

/* Are the phases of a loop one series that goes on from layer to layer?  The first tile of the next layer takes turns with what is behind this layer's last tile, so no group is as many tiles behind, but where it comes
 * before that in a slot. */
static bool goes_around(const struct unit *unit, int first, int end)
{
	struct phase *phase = unit->phases.data;
	struct search search = {.unit = unit, .first = first, .end = end, .tiles = phase[first].tiles, .there = phase[first].there.tiles, .around = true};
	int64_t behind = 0;
	for (int i = first; i < end; i = group_end(unit, i)) {
		search.turned = false;
		if (!takes_turns(&phase[i], search.tiles) || !group_comes_in_tiles(&search, i))
			return false;
		behind += i == first ? 0 : search.turned ? ROWS_BEHIND_ATTENTION : 1;
		phase[i].behind = behind;
	}
	bool few = search.there ? phase[first].turned && behind <= search.tiles : !phase[first].contract.rows && behind < search.tiles;
	return phase[first].layers > 1 && few && end > group_end(unit, first);
}

/* Where a tile's queries need not wait for the other tiles' keys (hide_later.c), they need not stand apart from these.  Scores are the first that attention makes, of queries and keys: so values come last.
 * One product may also make all three. */
static void join_queries(struct unit *unit, int first)
{
	struct phase *phase = unit->phases.data;
	struct search search = {.unit = unit, .first = first, .end = first, .tiles = phase[first].tiles, .there = phase[first].there.tiles};
	int end = unit_loop_end(unit, first), apart = first;
	while (apart < end && !phase[apart].contract.apart)
		apart++;
	if (apart == first || (apart == end && !search.there))
		return;
	if (apart < end)
		phase[apart].contract.apart = false;
	bool all = apart == end ? takes_turns(&phase[first], search.tiles) : group_end(unit, first) > apart;
	for (search.end = group_end(unit, first); all && search.end < end; search.end = group_end(unit, search.end))
		all = takes_turns(&phase[search.end], search.tiles) && group_comes_in_tiles(&search, search.end);
	for (int i = first; all && i < end; i++)
		phase[i].turned = true;
	if (apart == end)
		return;
	phase[apart].contract.apart = !all;
	if (!all)
		return;
	struct phase queries = phase[apart];
	queries.queries = true;
	for (; apart - first > 1; apart--)
		phase[apart] = phase[apart - 1];
	phase[apart] = queries;
}

void unit_join_queries(struct unit *unit)
{
	for (int i = 0; i < (int)unit->phases.count; i = unit_loop_end(unit, i))
		join_queries(unit, i);
}

void unit_find_series(struct unit *unit)
{
	int first = 0;
	bool around = false;
	for (int i = 0; i < (int)unit->phases.count; i = group_end(unit, i)) {
		bool begins = !i || !in_loop_of(unit, i, first);
		around = begins ? goes_around(unit, i, unit_loop_end(unit, i)) : around;
		struct search search = {.unit = unit, .first = first, .end = i, .tiles = unit->phases.data[i].tiles, .there = unit->phases.data[i].there.tiles};
		bool joins = !begins && (around || (takes_turns(&unit->phases.data[i], unit->phases.data[first].tiles) && !unit->phases.data[i].contract.apart && group_comes_in_tiles(&search, i)));
		first = joins ? first : i;
		for (int k = i; k < group_end(unit, i); k++) {
			unit->phases.data[k].series = first;
			unit->phases.data[k].around = around;
		}
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

int unit_loop_end(const struct unit *unit, int first)
{
	int end = first + 1;
	while (in_loop_of(unit, first, end))
		end++;
	return end;
}

/* Groups that take turns: in slot n of a layer a group works on its tile n - lag, where there is one. */
struct slots {
	int groups, *begin;       /* and the phase behind them */
	int64_t *lag, tiles;      /* slots that a group is behind the first one */
	bool counted;             /* some tiles may not be there, */
	bool ahead;               /* and the first group waits for nothing, while layers follow each other with a break */
	unit_group *add;
	void *context;
};

static struct slots slots_of(const struct unit *unit, int first, int end, unit_group *add, void *context)
{
	const struct phase *phase = unit->phases.data;
	struct arena *arena = unit->design->module->arena;
	struct slots s = {.begin = ARENA_ARRAY(arena, int, end - first + 1), .lag = ARENA_ARRAY(arena, int64_t, end - first), .tiles = phase[first].tiles, .add = add, .context = context};
	s.counted = phase[first].there.tiles;
	s.ahead = !phase[first].around && (phase[first].contract.apart || phase[first].turned);
	for (int i = first; i < end; i = group_end(unit, i)) {
		s.lag[s.groups] = phase[i].around ? phase[i].behind : s.groups + (s.groups && s.ahead);
		s.begin[s.groups++] = i;
	}
	s.begin[s.groups] = end;
	return s;
}

static int64_t slots_end(const struct slots *s)
{
	return s->tiles + s->lag[s->groups - 1];
}

static bool works(const struct slots *s, int group, int64_t slot)
{
	return slot >= s->lag[group] && slot - s->lag[group] < s->tiles;
}

/* In slots of a layer, and if `both` in those as many tiles later of the layer before. */
static bool same_slots(const struct slots *s, bool both, int64_t slot, int64_t other)
{
	bool same = true;
	for (int g = 0; g < s->groups; g++)
		same = same && works(s, g, slot) == works(s, g, other) && (!both || works(s, g, slot + s->tiles) == works(s, g, other + s->tiles));
	return same;
}

/* Opens a loop of one turn, or of none where there is no such tile. */
static int open_tile(struct process *p, const struct phase *phase, int64_t tile)
{
	struct run_time_trip *trip = phase->there.tiles && tile > 0 ? ARENA_NEW(p->module->arena, struct run_time_trip) : NULL;
	if (!trip)
		return 0;
	*trip = (struct run_time_trip){.symbol = phase->there.tiles->symbol, .plus = -phase->tile * tile, .tile = 1, .most = 1};
	process_loop_to(p, 1, trip);
	return 1;
}

/* The n-th group of a slot.  Of counted tiles what is furthest behind comes first: attention is often slower than the unit.  Where layers follow each other with a break, what waits for nothing comes before it. */
static int place_of(const struct slots *s, int n)
{
	int last = s->groups - 1;
	return !s->counted ? n : !s->ahead ? last - n : n ? last + 1 - n : 0;
}

static void walk_slots(const struct unit *unit, struct process *p, const struct slots *s, int64_t from, int64_t end, bool both, int64_t before)
{
	for (int64_t slot = from, turns; slot < end; slot += turns) {
		for (turns = 1; !s->counted && slot + turns < end && same_slots(s, both, slot, slot + turns); )
			turns++;
		if (turns > 1)
			process_loop(p, turns);
		for (int n = 0; n < s->groups; n++) {
			int g = place_of(s, n);
			bool own = works(s, g, slot);
			p->layers_before = before + (both && own);
			if (!own && !(both && works(s, g, slot + s->tiles)))
				continue;
			int opened = open_tile(p, &unit->phases.data[s->begin[g]], slot - s->lag[g] + (own ? 0 : s->tiles));
			s->add(unit, p, s->begin[g], s->begin[g + 1], s->context);
			process_close(p, opened);
		}
		process_close(p, turns > 1);
	}
	p->layers_before = 0;
}

static void walk_series(const struct unit *unit, struct process *p, int first, int end, unit_group *add, void *context)
{
	struct slots s = slots_of(unit, first, end, add, context);
	if (s.groups == 1)
		walk_group(unit, p, first, end, add, context);
	else
		walk_slots(unit, p, &s, 0, slots_end(&s), false, 0);
}

/* The loop over the layers of a phase, where there is one: where tiles go around in it, over those behind the first. */
static void open_layers(struct process *p, const struct phase *phase, bool around)
{
	p->design->layers = phase->layers - around;
	process_layers(p);
	if (around)
		process_mark(p, KEY_STREAM_LAYER_OVERLAP);
}

static void close_layers(struct process *p)
{
	process_close(p, p->design->layers > 0);
	p->design->layers = 0;
	p->layer = NULL;
}

static int open_final(struct process *p, const struct phase *phase)
{
	design_begin(p->design, phase->op);
	return process_final(p);
}

static void close_final(struct process *p, int opened)
{
	process_close(p, opened);
	design_begin(p->design, NULL);
}

static void walk_around(const struct unit *unit, struct process *p, int first, int end, unit_group *add, void *context)
{
	const struct phase *phase = &unit->phases.data[first];
	struct slots s = slots_of(unit, first, end, add, context);
	walk_slots(unit, p, &s, 0, s.tiles, false, 0);
	open_layers(p, phase, true);
	walk_slots(unit, p, &s, 0, s.tiles, true, 0);
	close_layers(p);
	walk_slots(unit, p, &s, s.tiles, slots_end(&s), false, phase->layers - 1);
}

/* Tiles first … end - 1, as far as they are there. */
static void add_tiles(const struct unit *unit, struct process *p, const struct slots *s, int g, int64_t first, int64_t end, unit_tiles *add, void *context)
{
	const struct phase *phase = &unit->phases.data[s->begin[g]];
	struct run_time_trip *there = phase->there.tiles ? ARENA_NEW(p->module->arena, struct run_time_trip) : NULL;
	if (there)
		*there = (struct run_time_trip){.symbol = phase->there.tiles->symbol, .plus = -phase->tile * first, .tile = phase->tile, .most = end - first};
	if (first < end)
		add(p, (struct unit_stretch){s->begin[g], s->begin[g + 1], end - first, there}, context);
}

void unit_each_stretch(const struct unit *unit, struct process *p, int first, unit_tiles *add, void *context)
{
	const struct phase *phase = &unit->phases.data[first];
	int end = unit_loop_end(unit, first), opened = open_final(p, phase);
	struct slots s = slots_of(unit, first, end, NULL, NULL);
	for (int g = 0; phase->around && g < s.groups; g++)
		add_tiles(unit, p, &s, g, 0, s.tiles - s.lag[g], add, context);
	open_layers(p, phase, phase->around);
	add(p, (struct unit_stretch){first, end, phase->tiles, phase->there.tiles}, context);
	close_layers(p);
	for (int g = 0; phase->around && g < s.groups; g++)
		add_tiles(unit, p, &s, g, s.tiles - s.lag[g], s.tiles, add, context);
	close_final(p, opened);
}

typedef void unit_walk(const struct unit *unit, struct process *p, int first, int end, unit_group *add, void *context);

/* A layer's phases, or its loop's. */
static void walk_layer(const struct unit *unit, struct process *p, int first, int end, unit_group *add, void *context)
{
	for (int i = first; i < end; i = series_end(unit, i))
		walk_series(unit, p, i, series_end(unit, i), add, context);
}

static void walk_layers(const struct unit *unit, struct process *p, int first, int end, unit_walk *walk, unit_group *add, void *context)
{
	open_layers(p, &unit->phases.data[first], false);
	walk(unit, p, first, end, add, context);
	close_layers(p);
}

static void walk_together(const struct unit *unit, struct process *p, int first, int end, unit_group *add, void *context)
{
	add(unit, p, first, end, context);
}

static void walk_tiles(const struct unit *unit, struct process *p, int first, int end, unit_group *add, void *context)
{
	if (unit->phases.data[first].around)
		walk_around(unit, p, first, end, add, context);
	else
		walk_layers(unit, p, first, end, walk_layer, add, context);
}

/* All phases of a layer together where the launch has one tile, and then layer after layer without a break; else as ever. */
static void walk_alone(const struct unit *unit, struct process *p, int first, int end, unit_group *add, void *context)
{
	const struct phase *phase = &unit->phases.data[first];
	struct run_time_trip *alone = ARENA_NEW(p->module->arena, struct run_time_trip), *more = ARENA_NEW(p->module->arena, struct run_time_trip);
	*more = (struct run_time_trip){.symbol = phase->there.tiles->symbol, .plus = -phase->tile, .tile = 1, .most = 1};
	*alone = *more;
	alone->rest = true;
	process_loop_to(p, 1, alone);
	walk_layers(unit, p, first, end, walk_together, add, context);
	process_close(p, 1);
	process_loop_to(p, 1, more);
	walk_tiles(unit, p, first, end, add, context);
	process_close(p, 1);
}

int unit_walk_loop(const struct unit *unit, struct process *p, int first, bool alone, unit_group *add, void *context)
{
	int end = unit_loop_end(unit, first), opened = open_final(p, &unit->phases.data[first]);
	(alone && unit->phases.data[first].there.tiles ? walk_alone : walk_tiles)(unit, p, first, end, add, context);
	close_final(p, opened);
	return end;
}

struct each {
	unit_add *add;
	void *context;
	bool joined;              /* phases that are joined are one, of the blocks of all */
};

static void join(const struct unit *unit, struct phase *all, const struct phase *phase)
{
	if (phase->stacked) {
		all->end[0] = (struct phase_end){1, all->block + phase->rows, phase->having};
		all->block += phase->block;
		return;
	}
	all->blocks += phase->blocks;
	all->ends += unit->streams;
	const struct phase *last = unit->streams ? phase : all;
	all->end[all->ends - 1] = (struct phase_end){all->blocks, last->rows, last->having};
}

static void add_each(const struct unit *unit, struct process *p, int first, int end, void *context)
{
	const struct each *each = context;
	for (int i = first; i < end; i++) {
		const struct phase *phase = &unit->phases.data[i];
		struct phase all = *phase;
		while (each->joined && i + 1 < end && (unit->phases.data[i + 1].joined || unit->phases.data[i + 1].stacked))
			join(unit, &all, &unit->phases.data[++i]);
		each->add(unit, p, each->joined ? &all : phase, each->context);
	}
}

static void walk_all(const struct unit *unit, struct process *p, struct each each)
{
	for (int first = 0; first < (int)unit->phases.count; )
		first = unit_walk_loop(unit, p, first, false, add_each, &each);
}

void unit_each(const struct unit *unit, struct process *p, unit_add *add, void *context)
{
	walk_all(unit, p, (struct each){add, context, false});
}

void unit_each_joined(const struct unit *unit, struct process *p, unit_add *add, void *context)
{
	walk_all(unit, p, (struct each){add, context, true});
}
