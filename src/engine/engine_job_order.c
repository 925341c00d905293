/* The order in which a unit works on phases and tiles of tokens.
 * Phases of the same numbers are a group: a tile of all of them, then the next.  Groups that
 * take a tile from each other when it is there, tile by tile all the way, are a series: each is
 * a tile behind the one before it.  So while a norm, attention or an activation works on a tile
 * between two groups, the unit works on another tile.
 *     three groups a, b, c and four tiles:  a0 | a1 b0 | a2 b1 c0 | a3 b2 c1 | b3 c2 | c3
 * Where all groups of a layer are one series, and the next layer takes tile by tile what this
 * one hands on, the next layer begins while this one ends, and all groups always take turns:
 *     … | a3 b2 c1 | A0 b3 c2 | A1 B0 c3 | A2 B1 C0 | …
 * Where a launch says how many tokens there are, slots stay, and what works on a tile that is
 * not there is left out.  Where attention cannot do without later tiles, it waits for keys and
 * values k of all, but for queries q of its own: others of these are made meanwhile (`apart`,
 * tile_tokens.c), and layers follow each other with a break.
 *     k0 k1 k2 k3 | q0 | q1 | q2 a0 | q3 b0 a1 | c0 b1 a2 | c1 b2 a3 | c2 b3 | c3
 * Where it can (skip_causal_tiles.c), keys, queries and values are one group again, which takes
 * turns with the others and is ahead by one slot more (engine_join_queries).  What is furthest
 * behind comes first in a slot and the first group last, so it may be as many tiles behind as
 * there are: the next layer takes in the slot's last turn what was made in its first.
 *     q0 | q1 | a0 q2 | b0 a1 q3 | c0 b1 a2 Q0 | c1 b2 a3 Q1 | c2 b3 A0 Q2 | c3 B0 A1 Q3 | C0 …
 * What a group waits for then was always begun before it, so an order that ends remains one. */
#include "ir/converter.h"
#include "ir/launch_tokens.h"
#include "itensor/box.h"
#include "engine/engine.h"

/* ---- which groups are a series */

struct seen {
	const struct value *value;
	bool tiles; /* all that was passed since keeps tiles apart */
};

struct tile_search {
	const struct engine *engine;
	int first, end; /* phases of the series so far */
	int64_t tiles;
	const struct run_time_trip *run_time; /* of the tiles; NULL: all */
	/* the series goes on in the next layer: what a layer hands on comes tile by tile too */
	bool layer_overlap;
	bool behind_causal; /* keys of all tiles came in a tile's turn */
	VEC(struct seen) seen;
};

/* Do the outermost of these loops together walk whole tiles? */
static bool walks_tiles(int64_t tiles, int64_t trips)
{
	return trips % tiles == 0;
}

/* May a loop be one of these?  Where tiles are counted they are the outermost, so that there are
 * as many as of tokens. */
static bool may_walk(const struct tile_search *s, int loop, const struct run_time_trip *run_time)
{
	return s->run_time ? !loop && run_time_same(run_time, s->run_time) : !run_time;
}

/* The first so many parts of the result need no more than as many of the operand. */
static bool kernel_keeps_tiles(
        const struct tile_search *s, const struct kernel *kernel, int operand)
{
	const struct access *access = &kernel->operand[operand];
	int64_t trips = 1;
	for (int l = 0; l < kernel->loops && !walks_tiles(s->tiles, trips); l++) {
		bool guarded = false;
		for (int g = 0; g < access->guards; g++)
			guarded = guarded || access->guard[g].loop == l;
		if (kernel->loop[l].reduction || !may_walk(s, l, kernel->loop[l].run_time) ||
		        guarded || (!access->stride[l] && kernel->loop[l].extent > 1))
			return false;
		trips *= kernel->loop[l].extent;
	}
	return walks_tiles(s->tiles, trips) && !kernel->scan;
}

static bool converter_keeps_tiles(
        const struct tile_search *s, const struct op *op, const struct value *result)
{
	struct arena *arena = s->engine->design->module->arena;
	struct box box = box_between(arena, attr_get(op, KEY_TENSOR)->type, op->operand[0]->type,
	        result->type, BOX_LEAST);
	int64_t trips = 1;
	if (box.why || !box.shared || box.shared != converter_shared_loops(op) ||
	        (op->code == OP_CONVERT && !converter_is_reorder(op)))
		return false;
	for (int l = 0; l < box.shared && !walks_tiles(s->tiles, trips); l++) {
		if (!may_walk(s, l, box.fill.run_time[l]))
			return false;
		trips *= box.fill.trip[l];
	}
	return walks_tiles(s->tiles, trips);
}

/* Words of an outermost part are all let through. */
static bool chunk_keeps_tiles(const struct tile_search *s, const struct op *op)
{
	const struct itensor *order = op->operand[0]->type->itensor;
	const int64_t *low = attr_get(op, KEY_LOW)->integers;
	const int64_t *high = attr_get(op, KEY_HIGH)->integers;
	int64_t trips = 1;
	for (int i = 0; i < order->dims && !walks_tiles(s->tiles, trips); i++) {
		if (low[i] || high[i] != order->trip[i] ||
		        !may_walk(s, i, order->run_time ? order->run_time[i] : NULL))
			return false;
		trips *= order->trip[i];
	}
	return walks_tiles(s->tiles, trips);
}

/* Rows are filled up in each tile. */
static bool padding_keeps_tiles(const struct tile_search *s, const struct value *result)
{
	const struct itensor *order = result->type->itensor;
	return s->run_time && order->dims && order->run_time && may_walk(s, 0, order->run_time[0]);
}

/* What comes back from external memory comes when all tiles are there (lower_spill.c). */
static bool is_causal_buffer(const struct op *op)
{
	return converter_form(op) == CONVERTER_CAUSAL;
}

/* All tiles come in every tile's turn, but those that are hidden from it need not be there
 * (causal_buffer.h). */
static bool comes_through_causal_buffer(const struct value *value)
{
	const struct op *op = value->def;
	while (op && (op->code == OP_CAST || op->code == OP_FORK))
		op = op->operand[0]->def;
	return op && is_causal_buffer(op);
}

static bool passes_causal_buffer(struct tile_search *s, const struct value *value)
{
	bool behind_causal =
	        (s->layer_overlap || s->run_time) && comes_through_causal_buffer(value);
	s->behind_causal |= behind_causal;
	return behind_causal;
}

static bool op_keeps_tiles(struct tile_search *s, const struct value *result, int operand)
{
	const struct op *op = result->def;
	switch (op->code) {
	case OP_KERNEL:
		return kernel_keeps_tiles(s, op->kernel, operand) ||
		        passes_causal_buffer(s, op->operand[operand]);
	case OP_CONVERT:
	case OP_BUFFER:
		return converter_keeps_tiles(s, op, result) ||
		        ((s->layer_overlap || s->run_time) && is_causal_buffer(op));
	case OP_CHUNK: return chunk_keeps_tiles(s, op);
	case OP_PAD_TOKENS: return padding_keeps_tiles(s, result);
	case OP_CAST:
	case OP_REASSOCIATE:
	case OP_FORK: return true;
	default: return false;
	}
}

static bool is_of_wavefront(const struct tile_search *s, const struct op *op)
{
	for (int i = s->first; i < s->end; i++)
		if (s->engine->jobs.data[i].op == op)
			return true;
	return false;
}

static bool comes_in_tiles(struct tile_search *s, const struct value *value, bool tiles);

/* What the layer before hands on, or what comes from outside of all layers. */
static bool handed_in_tiles(struct tile_search *s, const struct value *value, bool tiles)
{
	const struct block *layer = s->engine->jobs.data[s->first].op->parent;
	for (int i = 1; s->layer_overlap && i < layer->arguments; i++)
		if (layer->argument[i] == value)
			return tiles && comes_in_tiles(s, layer->last->operand[i - 1], true);
	return true;
}

/* Does nothing of a phase of the series stand between that waits for more than the tile at hand? */
static bool comes_in_tiles(struct tile_search *s, const struct value *value, bool tiles)
{
	const struct op *op = value->def;
	for (size_t i = 0; i < s->seen.count; i++)
		if (s->seen.data[i].value == value && s->seen.data[i].tiles == tiles)
			return true;
	VEC_PUSH(s->engine->design->module->arena, &s->seen, ((struct seen){ value, tiles }));
	if (!op || op->parent != s->engine->jobs.data[s->first].op->parent)
		return handed_in_tiles(s, value, tiles);
	if (op->code == OP_CONTRACT)
		return tiles || !is_of_wavefront(s, op);
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j]->type->kind == TYPE_ITENSOR &&
		        !comes_in_tiles(s, op->operand[j], tiles && op_keeps_tiles(s, value, j)))
			return false;
	return true;
}

static bool in_loop_of(const struct engine *engine, int i, int other)
{
	const struct job *job = engine->jobs.data;
	return other >= 0 && other < (int)engine->jobs.count &&
	        job[i].op->parent == job[other].op->parent &&
	        !attr_get(job[i].op, KEY_LAST_CHUNK_ONLY) ==
	        !attr_get(job[other].op, KEY_LAST_CHUNK_ONLY);
}

/* Does the phase behind phase i work on the same numbers, or on a tile as well that is the only
 * one? */
static bool shares_tile(const struct engine *engine, int i)
{
	const struct job *job = &engine->jobs.data[i];
	return in_loop_of(engine, i, i + 1) &&
	        (job->tiles > 1 ? job[1].contract.same_input && !job[1].contract.second_pass
	                        : job[1].tiles == 1);
}

static int group_end(const struct engine *engine, int i)
{
	while (shares_tile(engine, i))
		i++;
	return i + 1;
}

static bool fits_wavefront(const struct job *job, int64_t tiles)
{
	return job->tiles == tiles && tiles > WAVEFRONT_TILES_LEAST &&
	        tiles <= WAVEFRONT_TILES_MOST;
}

static bool group_comes_in_tiles(struct tile_search *s, int first)
{
	for (int j = 0; j < 2; j++)
		if (!comes_in_tiles(s, s->engine->jobs.data[first].op->operand[j], true))
			return false;
	return true;
}

/* Are the phases of a loop one series that goes on from layer to layer?  The first tile of the
 * next layer takes turns with what is behind this layer's last tile, so no group is as many
 * tiles behind, but where it comes before that in a slot. */
static bool overlaps_layers(const struct engine *engine, int first, int end)
{
	struct job *job = engine->jobs.data;
	struct tile_search tile_search = { .engine = engine,
		.first = first,
		.end = end,
		.tiles = job[first].tiles,
		.run_time = job[first].run_time.tiles,
		.layer_overlap = true };
	int64_t lag = 0;
	for (int i = first; i < end; i = group_end(engine, i)) {
		tile_search.behind_causal = false;
		if (!fits_wavefront(&job[i], tile_search.tiles) ||
		        !group_comes_in_tiles(&tile_search, i))
			return false;
		lag += i == first ? 0 : tile_search.behind_causal ? ATTENTION_LAG_TILES : 1;
		job[i].lag = lag;
	}
	bool few = tile_search.run_time
	        ? job[first].behind_causal && lag <= tile_search.tiles
	        : !job[first].contract.token_symbol && lag < tile_search.tiles;
	return job[first].layers > 1 && few && end > group_end(engine, first);
}

/* Where a tile's queries need not wait for the other tiles' keys (skip_causal_tiles.c), they
 * need not stand apart from these.  Scores are the first that attention makes, of queries and
 * keys: so values come last. One product may also make all three. */
static void join_queries(struct engine *engine, int first)
{
	struct job *job = engine->jobs.data;
	struct tile_search tile_search = { .engine = engine,
		.first = first,
		.end = first,
		.tiles = job[first].tiles,
		.run_time = job[first].run_time.tiles };
	int end = engine_loop_end(engine, first);
	int second_pass = first;
	while (second_pass < end && !job[second_pass].contract.second_pass)
		second_pass++;
	if (second_pass == first || (second_pass == end && !tile_search.run_time))
		return;
	if (second_pass < end)
		job[second_pass].contract.second_pass = false;
	bool all = second_pass == end ? fits_wavefront(&job[first], tile_search.tiles)
	                              : group_end(engine, first) > second_pass;
	for (tile_search.end = group_end(engine, first); all && tile_search.end < end;
	        tile_search.end = group_end(engine, tile_search.end))
		all = fits_wavefront(&job[tile_search.end], tile_search.tiles) &&
		        group_comes_in_tiles(&tile_search, tile_search.end);
	for (int i = first; all && i < end; i++)
		job[i].behind_causal = true;
	if (second_pass == end)
		return;
	job[second_pass].contract.second_pass = !all;
	if (!all)
		return;
	struct job queries = job[second_pass];
	queries.queries = true;
	for (; second_pass - first > 1; second_pass--)
		job[second_pass] = job[second_pass - 1];
	job[second_pass] = queries;
}

void engine_join_queries(struct engine *engine)
{
	for (int i = 0; i < (int)engine->jobs.count; i = engine_loop_end(engine, i))
		join_queries(engine, i);
}

void engine_find_wavefronts(struct engine *engine)
{
	int first = 0;
	bool layer_overlap = false;
	for (int i = 0; i < (int)engine->jobs.count; i = group_end(engine, i)) {
		bool begins = !i || !in_loop_of(engine, i, first);
		layer_overlap = begins ? overlaps_layers(engine, i, engine_loop_end(engine, i))
		                       : layer_overlap;
		struct tile_search tile_search = { .engine = engine,
			.first = first,
			.end = i,
			.tiles = engine->jobs.data[i].tiles,
			.run_time = engine->jobs.data[i].run_time.tiles };
		bool joins = !begins &&
		        (layer_overlap ||
		                (fits_wavefront(
		                         &engine->jobs.data[i], engine->jobs.data[first].tiles) &&
		                        !engine->jobs.data[i].contract.second_pass &&
		                        group_comes_in_tiles(&tile_search, i)));
		first = joins ? first : i;
		for (int k = i; k < group_end(engine, i); k++) {
			engine->jobs.data[k].wavefront = first;
			engine->jobs.data[k].layer_overlap = layer_overlap;
		}
	}
}

/* ---- the walk */

static int wavefront_last(const struct engine *engine, int i)
{
	int end = i + 1;
	while (end < (int)engine->jobs.count &&
	        engine->jobs.data[end].wavefront == engine->jobs.data[i].wavefront)
		end++;
	return end;
}

/* One group: all its tiles. */
static void walk_group(const struct engine *engine, struct process *p, int first, int end,
        job_group_visitor *add, void *context)
{
	const struct job *job = &engine->jobs.data[first];
	if (job->tiles > 1)
		process_loop_run_time(p, job->tiles, job->run_time.tiles);
	add(engine, p, first, end, context);
	process_close(p, job->tiles > 1);
}

int engine_loop_end(const struct engine *engine, int first)
{
	int end = first + 1;
	while (in_loop_of(engine, first, end))
		end++;
	return end;
}

/* Groups that take turns: in slot n of a layer a group works on its tile n - lag, where there is
 * one. */
struct wavefront_schedule {
	int groups, *begin;  /* and the phase behind them */
	int64_t *lag, tiles; /* slots that a group is behind the first one */
	bool counted;        /* some tiles may not be there, */
	/* and the first group waits for nothing, while layers follow each other with a break */
	bool first_leads;
	job_group_visitor *add;
	void *context;
};

static struct wavefront_schedule wavefront_schedule_of(
        const struct engine *engine, int first, int end, job_group_visitor *add, void *context)
{
	const struct job *job = engine->jobs.data;
	struct arena *arena = engine->design->module->arena;
	struct wavefront_schedule s = { .begin = ARENA_ARRAY(arena, int, end - first + 1),
		.lag = ARENA_ARRAY(arena, int64_t, end - first),
		.tiles = job[first].tiles,
		.add = add,
		.context = context };
	s.counted = job[first].run_time.tiles;
	s.first_leads = !job[first].layer_overlap &&
	        (job[first].contract.second_pass || job[first].behind_causal);
	for (int i = first; i < end; i = group_end(engine, i)) {
		s.lag[s.groups] =
		        job[i].layer_overlap ? job[i].lag : s.groups + (s.groups && s.first_leads);
		s.begin[s.groups++] = i;
	}
	s.begin[s.groups] = end;
	return s;
}

static int64_t wavefront_end(const struct wavefront_schedule *s)
{
	return s->tiles + s->lag[s->groups - 1];
}

static bool group_has_tile(const struct wavefront_schedule *s, int group, int64_t step)
{
	return step >= s->lag[group] && step - s->lag[group] < s->tiles;
}

/* In slots of a layer, and if `both` in those as many tiles later of the layer before. */
static bool steps_match(const struct wavefront_schedule *s, bool both, int64_t step, int64_t other)
{
	bool same = true;
	for (int g = 0; g < s->groups; g++)
		same = same && group_has_tile(s, g, step) == group_has_tile(s, g, other) &&
		        (!both ||
		                group_has_tile(s, g, step + s->tiles) ==
		                        group_has_tile(s, g, other + s->tiles));
	return same;
}

/* Opens a loop of one turn, or of none where there is no such tile. */
static int open_tile(struct process *p, const struct job *job, int64_t tile)
{
	struct run_time_trip *trip = job->run_time.tiles && tile > 0
	        ? ARENA_NEW(p->module->arena, struct run_time_trip)
	        : NULL;
	if (!trip)
		return 0;
	*trip = (struct run_time_trip){ .symbol = job->run_time.tiles->symbol,
		.plus = -job->tile * tile,
		.tile = 1,
		.most = 1 };
	process_loop_run_time(p, 1, trip);
	return 1;
}

/* The n-th group of a slot.  Of counted tiles what is furthest behind comes first: attention is
 * often slower than the unit.  Where layers follow each other with a break, what waits for
 * nothing comes before it. */
static int group_at(const struct wavefront_schedule *s, int n)
{
	int last = s->groups - 1;
	return !s->counted ? n : !s->first_leads ? last - n : n ? last + 1 - n : 0;
}

static void walk_wavefront(const struct engine *engine, struct process *p,
        const struct wavefront_schedule *s, int64_t from, int64_t end, bool both, int64_t before)
{
	for (int64_t step = from, trips; step < end; step += trips) {
		for (trips = 1; !s->counted && step + trips < end &&
		        steps_match(s, both, step, step + trips);)
			trips++;
		if (trips > 1)
			process_loop(p, trips);
		for (int n = 0; n < s->groups; n++) {
			int g = group_at(s, n);
			bool own = group_has_tile(s, g, step);
			p->layers_before = before + (both && own);
			if (!own && !(both && group_has_tile(s, g, step + s->tiles)))
				continue;
			int opened = open_tile(p, &engine->jobs.data[s->begin[g]],
			        step - s->lag[g] + (own ? 0 : s->tiles));
			s->add(engine, p, s->begin[g], s->begin[g + 1], s->context);
			process_close(p, opened);
		}
		process_close(p, trips > 1);
	}
	p->layers_before = 0;
}

static void walk_series_jobs(const struct engine *engine, struct process *p, int first, int end,
        job_group_visitor *add, void *context)
{
	struct wavefront_schedule s = wavefront_schedule_of(engine, first, end, add, context);
	if (s.groups == 1)
		walk_group(engine, p, first, end, add, context);
	else
		walk_wavefront(engine, p, &s, 0, wavefront_end(&s), false, 0);
}

/* The loop over the layers of a phase, where there is one: where tiles go around in it, over
 * those behind the first. */
static void open_layers(struct process *p, const struct job *job, bool layer_overlap)
{
	p->design->layers = job->layers - layer_overlap;
	process_layers(p);
	if (layer_overlap)
		process_mark(p, KEY_STREAM_LAYER_OVERLAP);
}

static void close_layers(struct process *p)
{
	process_close(p, p->design->layers > 0);
	p->design->layers = 0;
	p->layer = NULL;
}

static int open_final(struct process *p, const struct job *job)
{
	design_begin(p->design, job->op);
	return process_last_chunk(p);
}

static void close_final(struct process *p, int opened)
{
	process_close(p, opened);
	design_begin(p->design, NULL);
}

static void walk_overlapped_layers(const struct engine *engine, struct process *p, int first,
        int end, job_group_visitor *add, void *context)
{
	const struct job *job = &engine->jobs.data[first];
	struct wavefront_schedule s = wavefront_schedule_of(engine, first, end, add, context);
	walk_wavefront(engine, p, &s, 0, s.tiles, false, 0);
	open_layers(p, job, true);
	walk_wavefront(engine, p, &s, 0, s.tiles, true, 0);
	close_layers(p);
	walk_wavefront(engine, p, &s, s.tiles, wavefront_end(&s), false, job->layers - 1);
}

/* Tiles first … end - 1, as far as they are there. */
static void add_tile_span(const struct engine *engine, struct process *p,
        const struct wavefront_schedule *s, int g, int64_t first, int64_t end,
        job_span_visitor *add, void *context)
{
	const struct job *job = &engine->jobs.data[s->begin[g]];
	struct run_time_trip *run_time =
	        job->run_time.tiles ? ARENA_NEW(p->module->arena, struct run_time_trip) : NULL;
	if (run_time)
		*run_time = (struct run_time_trip){ .symbol = job->run_time.tiles->symbol,
			.plus = -job->tile * first,
			.tile = job->tile,
			.most = end - first };
	if (first < end)
		add(p, (struct job_span){ s->begin[g], s->begin[g + 1], end - first, run_time },
		        context);
}

void engine_each_span(const struct engine *engine, struct process *p, int first,
        job_span_visitor *add, void *context)
{
	const struct job *job = &engine->jobs.data[first];
	int end = engine_loop_end(engine, first);
	int opened = open_final(p, job);
	struct wavefront_schedule s = wavefront_schedule_of(engine, first, end, NULL, NULL);
	for (int g = 0; job->layer_overlap && g < s.groups; g++)
		add_tile_span(engine, p, &s, g, 0, s.tiles - s.lag[g], add, context);
	open_layers(p, job, job->layer_overlap);
	add(p, (struct job_span){ first, end, job->tiles, job->run_time.tiles }, context);
	close_layers(p);
	for (int g = 0; job->layer_overlap && g < s.groups; g++)
		add_tile_span(engine, p, &s, g, s.tiles - s.lag[g], s.tiles, add, context);
	close_final(p, opened);
}

typedef void job_walker(const struct engine *engine, struct process *p, int first, int end,
        job_group_visitor *add, void *context);

/* A layer's phases, or its loop's. */
static void walk_layer(const struct engine *engine, struct process *p, int first, int end,
        job_group_visitor *add, void *context)
{
	for (int i = first; i < end; i = wavefront_last(engine, i))
		walk_series_jobs(engine, p, i, wavefront_last(engine, i), add, context);
}

static void walk_layers(const struct engine *engine, struct process *p, int first, int end,
        job_walker *walk, job_group_visitor *add, void *context)
{
	open_layers(p, &engine->jobs.data[first], false);
	walk(engine, p, first, end, add, context);
	close_layers(p);
}

static void walk_one_group(const struct engine *engine, struct process *p, int first, int end,
        job_group_visitor *add, void *context)
{
	add(engine, p, first, end, context);
}

static void walk_tiles(const struct engine *engine, struct process *p, int first, int end,
        job_group_visitor *add, void *context)
{
	if (engine->jobs.data[first].layer_overlap)
		walk_overlapped_layers(engine, p, first, end, add, context);
	else
		walk_layers(engine, p, first, end, walk_layer, add, context);
}

/* All phases of a layer together where the launch has one tile, and then layer after layer
 * without a break; else as ever. */
static void walk_single_tile(const struct engine *engine, struct process *p, int first, int end,
        job_group_visitor *add, void *context)
{
	const struct job *job = &engine->jobs.data[first];
	struct run_time_trip *single_tile = ARENA_NEW(p->module->arena, struct run_time_trip);
	struct run_time_trip *more = ARENA_NEW(p->module->arena, struct run_time_trip);
	*more = (struct run_time_trip){
		.symbol = job->run_time.tiles->symbol, .plus = -job->tile, .tile = 1, .most = 1
	};
	*single_tile = *more;
	single_tile->remaining = true;
	process_loop_run_time(p, 1, single_tile);
	walk_layers(engine, p, first, end, walk_one_group, add, context);
	process_close(p, 1);
	process_loop_run_time(p, 1, more);
	walk_tiles(engine, p, first, end, add, context);
	process_close(p, 1);
}

int engine_walk_loop(const struct engine *engine, struct process *p, int first, bool single_tile,
        job_group_visitor *add, void *context)
{
	int end = engine_loop_end(engine, first);
	int opened = open_final(p, &engine->jobs.data[first]);
	(single_tile && engine->jobs.data[first].run_time.tiles ? walk_single_tile : walk_tiles)(
	        engine, p, first, end, add, context);
	close_final(p, opened);
	return end;
}

struct each {
	job_visitor *add;
	void *context;
	/* phases that are joined are one, of the blocks of all */
	bool shares_pipeline;
};

static void join(const struct engine *engine, struct job *all, const struct job *job)
{
	if (job->rows_stacked) {
		all->end[0] = (struct job_end){ 1, all->block + job->rows, job->last_row_pes };
		all->block += job->block;
		return;
	}
	all->blocks += job->blocks;
	all->end_count += engine->streams_groups;
	const struct job *last = engine->streams_groups ? job : all;
	all->end[all->end_count - 1] =
	        (struct job_end){ all->blocks, last->rows, last->last_row_pes };
}

static void add_each(
        const struct engine *engine, struct process *p, int first, int end, void *context)
{
	const struct each *each = context;
	for (int i = first; i < end; i++) {
		const struct job *job = &engine->jobs.data[i];
		struct job all = *job;
		while (each->shares_pipeline && i + 1 < end &&
		        (engine->jobs.data[i + 1].shares_pipeline ||
		                engine->jobs.data[i + 1].rows_stacked))
			join(engine, &all, &engine->jobs.data[++i]);
		each->add(engine, p, each->shares_pipeline ? &all : job, each->context);
	}
}

static void walk_all(const struct engine *engine, struct process *p, struct each each)
{
	for (int first = 0; first < (int)engine->jobs.count;)
		first = engine_walk_loop(engine, p, first, false, add_each, &each);
}

void engine_each_job(
        const struct engine *engine, struct process *p, job_visitor *add, void *context)
{
	walk_all(engine, p, (struct each){ add, context, false });
}

void engine_each_pipeline(
        const struct engine *engine, struct process *p, job_visitor *add, void *context)
{
	walk_all(engine, p, (struct each){ add, context, true });
}
