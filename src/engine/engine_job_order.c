/* The order in which the matmul engine works on jobs and tiles of tokens. Jobs of the same
 * activations are a group: the engine works on a tile of all of them, then on the next tile. Groups
 * that pass tiles to each other one by one form a wavefront, in which each group lags one tile
 * behind the group before it. So while a norm, attention or an activation works on a tile between
 * two groups, the engine works on another tile.
 *     three groups a, b, c and four tiles:  a0 | a1 b0 | a2 b1 c0 | a3 b2 c1 | b3 c2 | c3
 * What stands between two bars is a slot. If all groups of a layer form one wavefront and the next
 * layer takes tile by tile what this one produces, layers overlap: the next layer's slots
 * (capitals) begin while this layer's end.
 *     … | a3 b2 c1 | A0 b3 c2 | A1 B0 c3 | A2 B1 C0 | …
 * With a dynamic token count the slots stay, and work on a tile beyond the last one is left out.
 * Attention that needs all tiles waits for keys and values k of all, but for queries q of its own
 * tile only: other queries are made meanwhile (second_pass, tile_tokens.c), and layers do not
 * overlap.
 *     k0 k1 k2 k3 | q0 | q1 | q2 a0 | q3 b0 a1 | c0 b1 a2 | c1 b2 a3 | c2 b3 | c3
 * Attention that needs no later tile (skip_causal_tiles.c) lets keys, queries and values be one
 * group of the wavefront, one slot further ahead (engine_join_queries). In a slot the group that
 * lags most comes first and the first group last, so a group may lag as many tiles as there are: at
 * the end of the slot the next layer takes what was made at its beginning.
 *     q0 | q1 | a0 q2 | b0 a1 q3 | c0 b1 a2 Q0 | c1 b2 a3 Q1 | c2 b3 A0 Q2 | c3 B0 A1 Q3 | C0 …
 * All that a group waits for was begun before it, so the order cannot deadlock. */
#include "ir/converter.h"
#include "ir/launch_tokens.h"
#include "itensor/box.h"
#include "engine/engine.h"

/* ---- which groups form a wavefront */

struct seen {
	const struct value *value;
	bool tiles; /* everything between the value and here keeps tiles apart from each other */
};

struct tile_search {
	const struct engine *engine;
	int first, end; /* jobs of the wavefront so far */
	int64_t tiles;
	const struct run_time_trip *run_time; /* dynamic bound of the tiles; NULL: always all */
	/* the wavefront goes on in the next layer: a layer's inputs come tile by tile too */
	bool layer_overlap;
	bool behind_causal; /* keys of all tiles come with every tile */
	VEC(struct seen) seen;
};

/* Do the iterations of the outermost loops make whole tiles? */
static bool walks_tiles(int64_t tiles, int64_t trips)
{
	return trips % tiles == 0;
}

/* May a loop be one of those over tiles? With a dynamic token count only the outermost loop may,
 * with the same bound as that of the tiles. */
static bool may_walk(const struct tile_search *s, int loop, const struct run_time_trip *run_time)
{
	return s->run_time ? !loop && run_time_same(run_time, s->run_time) : !run_time;
}

/* Is a kernel's result, tile by tile, made of the same tiles of an operand only? */
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

/* Does a chunk take all iterations of the loops over tiles? */
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

/* Padding tokens fill up each tile on its own. */
static bool padding_keeps_tiles(const struct tile_search *s, const struct value *result)
{
	const struct itensor *order = result->type->itensor;
	return s->run_time && order->dims && order->run_time && may_walk(s, 0, order->run_time[0]);
}

/* A causal buffer; but a spilled one comes back from external memory when all tiles are stored
 * (lower_spill.c). */
static bool is_causal_buffer(const struct op *op)
{
	return converter_form(op) == CONVERTER_CAUSAL;
}

/* The buffer replays all tiles for every tile, but does not wait for those that the causal mask
 * hides (causal_buffer.h). */
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

static bool in_wavefront(const struct tile_search *s, const struct op *op)
{
	for (int i = s->first; i < s->end; i++)
		if (s->engine->jobs.data[i].op == op)
			return true;
	return false;
}

static bool comes_in_tiles(struct tile_search *s, const struct value *value, bool tiles);

/* Block arguments: a value that the layer before hands on, or one from outside of all layers. */
static bool handed_in_tiles(struct tile_search *s, const struct value *value, bool tiles)
{
	const struct block *layer = s->engine->jobs.data[s->first].op->parent;
	for (int i = 1; s->layer_overlap && i < layer->arguments; i++)
		if (layer->argument[i] == value)
			return tiles && comes_in_tiles(s, layer->last->operand[i - 1], true);
	return true;
}

/* Does `value` depend on jobs of the wavefront only through ops that need no other tile than the
 * current one? tiles: so far everything on the path to the user keeps tiles apart. */
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
		return tiles || !in_wavefront(s, op);
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

/* Has the job after job i the same activations, or is it, like job i, of a single tile? */
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

/* Do the jobs of a loop form one wavefront that goes on from layer to layer? The first tile of the
 * next layer shares slots with what follows this layer's last tile. So a group's lag is below the
 * number of tiles, or equal to it where the group comes first in a slot. Sets the lags. */
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
		if (i > first)
			lag += tile_search.behind_causal ? ATTENTION_LAG_TILES : 1;
		job[i].lag = lag;
	}
	bool few = tile_search.run_time
	        ? job[first].behind_causal && lag <= tile_search.tiles
	        : !job[first].contract.token_symbol && lag < tile_search.tiles;
	return job[first].layers > 1 && few && end > group_end(engine, first);
}

/* Puts queries in the group of keys and values, where attention to a tile needs no later tile's
 * keys (skip_causal_tiles.c). Then all jobs of the layer are behind_causal. Queries come before
 * values: scores, of queries and keys, are the first that attention makes. One packed contraction
 * may also make all three. */
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

/* all tiles of a group that is in no wavefront */
static void walk_group(const struct job_walk *walk, int first, int end)
{
	const struct job *job = &walk->engine->jobs.data[first];
	if (job->tiles > 1)
		process_loop_run_time(walk->p, job->tiles, job->run_time.tiles);
	walk->add(walk->engine, walk->p, first, end, walk->context);
	process_close(walk->p, job->tiles > 1);
}

int engine_loop_end(const struct engine *engine, int first)
{
	int end = first + 1;
	while (in_loop_of(engine, first, end))
		end++;
	return end;
}

/* Groups of a wavefront: in slot n of a layer a group works on its tile n - lag, if that exists. */
struct wavefront_schedule {
	int groups, *begin;  /* first job of each group, and the job after the last one */
	int64_t *lag, tiles; /* slots by which a group lags behind the first one; tiles */
	bool counted;        /* the number of tiles is dynamic */
	/* the first group comes first in a slot, since it waits for nothing; layers do
	 * not overlap */
	bool first_leads;
};

static struct wavefront_schedule wavefront_schedule_of(
        const struct engine *engine, int first, int end)
{
	const struct job *job = engine->jobs.data;
	struct arena *arena = engine->design->module->arena;
	struct wavefront_schedule s = { .begin = ARENA_ARRAY(arena, int, end - first + 1),
		.lag = ARENA_ARRAY(arena, int64_t, end - first),
		.tiles = job[first].tiles };
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

static bool group_has_tile(const struct wavefront_schedule *s, int group, int64_t slot)
{
	return slot >= s->lag[group] && slot - s->lag[group] < s->tiles;
}

/* Do the same groups have a tile in both slots? both: also in the slots `tiles` later, those of the
 * layer before. */
static bool slots_match(const struct wavefront_schedule *s, bool both, int64_t slot, int64_t other)
{
	bool same = true;
	for (int g = 0; g < s->groups; g++)
		same = same && group_has_tile(s, g, slot) == group_has_tile(s, g, other) &&
		        (!both ||
		                group_has_tile(s, g, slot + s->tiles) ==
		                        group_has_tile(s, g, other + s->tiles));
	return same;
}

/* Opens a loop of one iteration, or of none where a launch has no such tile. */
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

/* The n-th group of a slot. With dynamic tiles the group that lags most comes first, since
 * attention is often slower than the engine. If layers do not overlap, the first group, which waits
 * for nothing, precedes it. */
static int group_at(const struct wavefront_schedule *s, int n)
{
	int last = s->groups - 1;
	if (!s->counted)
		return n;
	if (!s->first_leads)
		return last - n;
	return n ? last + 1 - n : 0;
}

/* slots from … end - 1 of a wavefront */
struct wavefront_slots {
	int64_t from, end;
	/* together with the last tiles of the layer before */
	bool overlap;
	/* layers whose loops are closed */
	int64_t layers_before;
};

/* Calls the visitor for a group's tile of this slot, of this layer or of the one before. */
static void walk_tile(const struct job_walk *walk, const struct wavefront_schedule *s,
        const struct wavefront_slots *slots, int group, int64_t slot)
{
	struct process *p = walk->p;
	bool own = group_has_tile(s, group, slot);
	p->layers_before = slots->layers_before + (slots->overlap && own);
	if (!own && !(slots->overlap && group_has_tile(s, group, slot + s->tiles)))
		return;
	int opened = open_tile(p, &walk->engine->jobs.data[s->begin[group]],
	        slot - s->lag[group] + (own ? 0 : s->tiles));
	walk->add(walk->engine, p, s->begin[group], s->begin[group + 1], walk->context);
	process_close(p, opened);
}

static void walk_wavefront(const struct job_walk *walk, const struct wavefront_schedule *s,
        struct wavefront_slots slots)
{
	for (int64_t slot = slots.from, trips; slot < slots.end; slot += trips) {
		for (trips = 1; !s->counted && slot + trips < slots.end &&
		        slots_match(s, slots.overlap, slot, slot + trips);)
			trips++;
		if (trips > 1)
			process_loop(walk->p, trips);
		for (int n = 0; n < s->groups; n++)
			walk_tile(walk, s, &slots, group_at(s, n), slot);
		process_close(walk->p, trips > 1);
	}
	walk->p->layers_before = 0;
}

static void walk_wavefront_jobs(const struct job_walk *walk, int first, int end)
{
	struct wavefront_schedule s = wavefront_schedule_of(walk->engine, first, end);
	if (s.groups == 1)
		walk_group(walk, first, end);
	else
		walk_wavefront(walk, &s, (struct wavefront_slots){ .end = wavefront_end(&s) });
}

/* Opens the loop over the layers of a job, if there is one. With overlapping layers it has an
 * iteration less: the first layer's first slots precede it. */
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

static int open_last_chunk(struct process *p, const struct job *job)
{
	design_begin(p->design, job->op);
	return process_last_chunk(p);
}

static void close_last_chunk(struct process *p, int opened)
{
	process_close(p, opened);
	design_begin(p->design, NULL);
}

static void walk_overlapped_layers(const struct job_walk *walk, int first, int end)
{
	const struct job *job = &walk->engine->jobs.data[first];
	struct wavefront_schedule s = wavefront_schedule_of(walk->engine, first, end);
	walk_wavefront(walk, &s, (struct wavefront_slots){ .end = s.tiles });
	open_layers(walk->p, job, true);
	walk_wavefront(walk, &s, (struct wavefront_slots){ .end = s.tiles, .overlap = true });
	close_layers(walk->p);
	walk_wavefront(walk, &s,
	        (struct wavefront_slots){ .from = s.tiles,
	                .end = wavefront_end(&s),
	                .layers_before = job->layers - 1 });
}

struct span_walk {
	const struct engine *engine;
	struct process *p;
	job_span_visitor *add;
	void *context;
};

/* a span of tiles first … end - 1, as far as the launch has them */
static void add_tile_span(const struct span_walk *walk, const struct wavefront_schedule *s, int g,
        int64_t first, int64_t end)
{
	const struct job *job = &walk->engine->jobs.data[s->begin[g]];
	struct run_time_trip *run_time = job->run_time.tiles
	        ? ARENA_NEW(walk->p->module->arena, struct run_time_trip)
	        : NULL;
	if (run_time)
		*run_time = (struct run_time_trip){ .symbol = job->run_time.tiles->symbol,
			.plus = -job->tile * first,
			.tile = job->tile,
			.most = end - first };
	if (first < end)
		walk->add(walk->p,
		        (struct job_span){ s->begin[g], s->begin[g + 1], end - first, run_time },
		        walk->context);
}

void engine_each_span(const struct engine *engine, struct process *p, int first,
        job_span_visitor *add, void *context)
{
	const struct span_walk walk = { engine, p, add, context };
	const struct job *job = &engine->jobs.data[first];
	int end = engine_loop_end(engine, first);
	int opened = open_last_chunk(p, job);
	struct wavefront_schedule s = wavefront_schedule_of(engine, first, end);
	for (int g = 0; job->layer_overlap && g < s.groups; g++)
		add_tile_span(&walk, &s, g, 0, s.tiles - s.lag[g]);
	open_layers(p, job, job->layer_overlap);
	add(p, (struct job_span){ first, end, job->tiles, job->run_time.tiles }, context);
	close_layers(p);
	for (int g = 0; job->layer_overlap && g < s.groups; g++)
		add_tile_span(&walk, &s, g, s.tiles - s.lag[g], s.tiles);
	close_last_chunk(p, opened);
}

typedef void job_walker(const struct job_walk *walk, int first, int end);

/* the jobs of a layer, or of a loop nest without layers */
static void walk_layer(const struct job_walk *walk, int first, int end)
{
	for (int i = first; i < end; i = wavefront_last(walk->engine, i))
		walk_wavefront_jobs(walk, i, wavefront_last(walk->engine, i));
}

static void walk_layers(const struct job_walk *walk, int first, int end, job_walker *walk_jobs)
{
	open_layers(walk->p, &walk->engine->jobs.data[first], false);
	walk_jobs(walk, first, end);
	close_layers(walk->p);
}

static void walk_one_group(const struct job_walk *walk, int first, int end)
{
	walk->add(walk->engine, walk->p, first, end, walk->context);
}

static void walk_tiles(const struct job_walk *walk, int first, int end)
{
	if (walk->engine->jobs.data[first].layer_overlap)
		walk_overlapped_layers(walk, first, end);
	else
		walk_layers(walk, first, end, walk_layer);
}

/* A launch of one tile: all jobs of a layer are one group, and layers follow each other directly.
 * Launches of more tiles take the usual order. Both cases are in the program, with a dynamic bound
 * of one iteration or none. */
static void walk_single_tile(const struct job_walk *walk, int first, int end)
{
	struct process *p = walk->p;
	const struct job *job = &walk->engine->jobs.data[first];
	struct run_time_trip *single_tile = ARENA_NEW(p->module->arena, struct run_time_trip);
	struct run_time_trip *more = ARENA_NEW(p->module->arena, struct run_time_trip);
	*more = (struct run_time_trip){
		.symbol = job->run_time.tiles->symbol, .plus = -job->tile, .tile = 1, .most = 1
	};
	*single_tile = *more;
	single_tile->remaining = true;
	process_loop_run_time(p, 1, single_tile);
	walk_layers(walk, first, end, walk_one_group);
	process_close(p, 1);
	process_loop_run_time(p, 1, more);
	walk_tiles(walk, first, end);
	process_close(p, 1);
}

int engine_walk_loop(const struct job_walk *walk, int first, bool single_tile)
{
	const struct job *job = &walk->engine->jobs.data[first];
	int end = engine_loop_end(walk->engine, first);
	int opened = open_last_chunk(walk->p, job);
	if (single_tile && job->run_time.tiles)
		walk_single_tile(walk, first, end);
	else
		walk_tiles(walk, first, end);
	close_last_chunk(walk->p, opened);
	return end;
}

struct each {
	job_visitor *add;
	void *context;
	/* jobs that share loops are one, with the blocks of all */
	bool shares_pipeline;
};

static void append_job(const struct engine *engine, struct job *all, const struct job *job)
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

static void add_group_jobs(
        const struct engine *engine, struct process *p, int first, int end, void *context)
{
	const struct each *each = context;
	for (int i = first; i < end; i++) {
		const struct job *job = &engine->jobs.data[i];
		struct job all = *job;
		while (each->shares_pipeline && i + 1 < end &&
		        (engine->jobs.data[i + 1].shares_pipeline ||
		                engine->jobs.data[i + 1].rows_stacked))
			append_job(engine, &all, &engine->jobs.data[++i]);
		each->add(engine, p, each->shares_pipeline ? &all : job, each->context);
	}
}

static void walk_all(const struct engine *engine, struct process *p, struct each each)
{
	const struct job_walk walk = { engine, p, add_group_jobs, &each };
	for (int first = 0; first < (int)engine->jobs.count;)
		first = engine_walk_loop(&walk, first, false);
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
