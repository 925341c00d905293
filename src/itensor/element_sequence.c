/* Computes the address sequence of an itensor type, its normal form, and types with the same
 * sequence. */
#include "itensor/element_sequence.h"

const struct type *stream_word(struct module *module, const struct type *stream)
{
	int64_t lanes = stream_lanes(stream);
	const struct type *scalar = type_scalar(stream);
	return lanes == 1 ? scalar : type_shaped(module, TYPE_VECTOR, 1, &lanes, scalar);
}

/* Addresses between neighbors of data dim `dim`: row-major, or 1 for a linear type. */
static int64_t dim_stride(const struct type *tensor, int results, int dim)
{
	int64_t stride = 1;
	if (results == tensor->rank)
		for (int d = dim + 1; d < tensor->rank; d++)
			stride *= tensor->shape[d];
	return stride;
}

static int64_t dim_extent(const struct type *tensor, int results, int dim)
{
	return results == tensor->rank ? tensor->shape[dim] : type_elements(tensor);
}

static int64_t tile_extent(const struct type *stream, int results, int dim)
{
	const struct type *tile = stream->element;
	if (tile->kind != TYPE_VECTOR)
		return 1;
	return tile->rank == results ? tile->shape[dim] : tile->shape[0];
}

/* Adds a condition for a data dim whose last tile reaches past the edge. unrolled: the row dim of
 * its tile, row_dims for the lanes. */
static void add_condition(struct sequence *sequence, const struct type *tensor,
        const struct type *stream, int dim, int unrolled)
{
	struct affine_map map = stream->itensor->map;
	int width = sequence->dims + sequence->row_dims + 2;
	int64_t *row = sequence->condition + sequence->conditions * width;
	int64_t tile = tile_extent(stream, map.results, dim);
	int64_t highest = affine_constant(map, dim) + tile - 1;
	for (int i = 0; i < sequence->dims; i++) {
		row[i] = affine_at(map, dim, i) * stream->itensor->step[i];
		highest += row[i] * (sequence->trip[i] - 1);
	}
	row[sequence->dims + unrolled] = tile > 1;
	row[width - 1] = dim_extent(tensor, map.results, dim) - affine_constant(map, dim);
	if (highest >= dim_extent(tensor, map.results, dim))
		sequence->conditions++;
	else
		for (int i = 0; i < width; i++)
			row[i] = 0;
}

int64_t sequence_row_lanes(const struct sequence *sequence)
{
	int64_t lanes = sequence->lanes;
	for (int i = 0; i < sequence->row_dims; i++)
		lanes /= sequence->row_trip[i];
	return lanes;
}

struct sequence sequence_of_type(
        struct arena *arena, const struct type *tensor, const struct type *stream)
{
	const struct itensor *order = stream->itensor;
	struct affine_map map = order->map;
	struct sequence sequence = {
		.dims = order->dims, .lanes = stream_lanes(stream), .run_time = order->run_time
	};
	sequence.trip = ARENA_ARRAY(arena, int64_t, order->dims + 1);
	sequence.stride = ARENA_ARRAY(arena, int64_t, order->dims + 1);
	sequence.condition =
	        ARENA_ARRAY(arena, int64_t, (map.results + 1) * (order->dims + map.results + 2));
	sequence.row_trip = ARENA_ARRAY(arena, int64_t, map.results + 1);
	sequence.row_stride = ARENA_ARRAY(arena, int64_t, map.results + 1);
	int64_t inner = 0; /* extent of the tile along the lanes so far */
	for (int i = 0; i < order->dims; i++)
		sequence.trip[i] = order->trip[i];
	for (int r = 0; r < map.results; r++) {
		int64_t stride = dim_stride(tensor, map.results, r);
		sequence.offset += stride * affine_constant(map, r);
		for (int i = 0; i < order->dims; i++)
			sequence.stride[i] += stride * affine_at(map, r, i) * order->step[i];
		if (sequence.lanes > 1 && tile_extent(stream, map.results, r) > 1) {
			if (inner) {
				sequence.row_trip[sequence.row_dims] = inner;
				sequence.row_stride[sequence.row_dims++] = sequence.lane_stride;
			}
			sequence.lane_stride = stride;
			inner = tile_extent(stream, map.results, r);
		}
	}
	int unrolled = 0;
	for (int r = 0; r < map.results; r++) {
		add_condition(&sequence, tensor, stream, r, unrolled);
		unrolled += unrolled < sequence.row_dims && tile_extent(stream, map.results, r) > 1;
	}
	return sequence;
}

/* Appends a loop, or merges it with the last one. `run_time` [dims of the result] is used only
 * where there are run-time trip counts. */
static void merge_loop(struct sequence *into, const struct run_time_trip **run_time, int64_t trip,
        int64_t stride, const struct run_time_trip *to)
{
	int last = into->dims - 1;
	if (trip == 1 && !to)
		return;
	if (last >= 0 && !to && !run_time[last] && into->stride[last] == stride * trip) {
		into->trip[last] *= trip;
		into->stride[last] = stride;
		return;
	}
	if (to)
		into->run_time = run_time;
	run_time[into->dims] = to;
	into->trip[into->dims] = trip;
	into->stride[into->dims++] = stride;
}

static const struct run_time_trip *run_time_at(const struct sequence *sequence, int dim)
{
	return sequence->run_time ? sequence->run_time[dim] : NULL;
}

struct sequence sequence_merged(struct arena *arena, struct sequence from)
{
	struct sequence merged = { .offset = from.offset,
		.lanes = from.lanes,
		.lane_stride = from.lane_stride,
		.row_dims = from.row_dims,
		.row_trip = from.row_trip,
		.row_stride = from.row_stride };
	if (from.conditions)
		return from;
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, from.dims + 1);
	merged.trip = ARENA_ARRAY(arena, int64_t, from.dims + 1);
	merged.stride = ARENA_ARRAY(arena, int64_t, from.dims + 1);
	for (int i = 0; i < from.dims; i++)
		merge_loop(&merged, run_time, from.trip[i], from.stride[i], run_time_at(&from, i));
	return merged;
}

struct sequence sequence_flat(struct arena *arena, struct sequence from)
{
	struct sequence flat = { .offset = from.offset, .lanes = 1, .conditions = from.conditions };
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, from.dims + from.row_dims + 2);
	flat.trip = ARENA_ARRAY(arena, int64_t, from.dims + from.row_dims + 1);
	flat.stride = ARENA_ARRAY(arena, int64_t, from.dims + from.row_dims + 1);
	for (int i = 0; i < from.dims; i++)
		merge_loop(&flat, run_time, from.trip[i], from.stride[i], run_time_at(&from, i));
	for (int i = 0; i < from.row_dims; i++)
		merge_loop(&flat, run_time, from.row_trip[i], from.row_stride[i], NULL);
	merge_loop(&flat, run_time, sequence_row_lanes(&from), from.lane_stride, NULL);
	return flat;
}

bool sequence_same(struct sequence left, struct sequence right)
{
	if (left.offset != right.offset || left.dims != right.dims || left.lanes != right.lanes ||
	        left.conditions || right.conditions)
		return false;
	for (int i = 0; i < left.dims; i++)
		if (left.trip[i] != right.trip[i] || left.stride[i] != right.stride[i] ||
		        !run_time_same(run_time_at(&left, i), run_time_at(&right, i)))
			return false;
	for (int i = 0; i < left.row_dims && left.row_dims == right.row_dims; i++)
		if (left.row_trip[i] != right.row_trip[i] ||
		        left.row_stride[i] != right.row_stride[i])
			return false;
	return left.lane_stride == right.lane_stride && left.row_dims == right.row_dims;
}

int64_t sequence_words(struct sequence sequence)
{
	int64_t words = 1;
	for (int i = 0; i < sequence.dims; i++)
		words *= sequence.trip[i];
	return words;
}

/* Does dim `outer` continue `inner`, of so many iterations, in every data dim? */
static bool continues(const struct itensor *order, int outer, int inner, int64_t trip)
{
	for (int r = 0; r < order->map.results; r++) {
		int64_t far = affine_at(order->map, r, outer);
		int64_t near = affine_at(order->map, r, inner);
		if (far * order->step[outer] != near * order->step[inner] * trip ||
		        (far != 0) != (near != 0))
			return false;
	}
	return true;
}

/* Lists the dims that remain, and their trip counts; returns how many. */
static int merged_dims(const struct itensor *order, int *from, int64_t *trip)
{
	int count = 0;
	for (int i = 0; i < order->dims; i++) {
		bool fixed = !order->run_time || !order->run_time[i];
		int last = count ? from[count - 1] : -1;
		bool last_fixed = count && !(order->run_time && order->run_time[last]);
		if (order->trip[i] == 1 && fixed)
			continue;
		trip[count] = order->trip[i];
		if (fixed && last_fixed && continues(order, last, i, order->trip[i]))
			trip[--count] *= order->trip[i];
		from[count++] = i;
	}
	return count;
}

const struct type *type_canonical(
        struct module *module, const struct type *tile, const struct itensor *order)
{
	struct arena *arena = module->arena;
	int results = order->map.results;
	int *from = ARENA_ARRAY(arena, int, order->dims + 1);
	int64_t *trip = ARENA_ARRAY(arena, int64_t, order->dims + 1);
	int dims = merged_dims(order, from, trip);
	int64_t *rows = affine_rows(arena, dims, results);
	int64_t *step = ARENA_ARRAY(arena, int64_t, dims + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, dims + 1);
	bool any = false;
	for (int k = 0; k < dims; k++) {
		bool moves = false;
		for (int r = 0; r < results; r++) {
			rows[r * (dims + 1) + k] = affine_at(order->map, r, from[k]);
			moves = moves || rows[r * (dims + 1) + k];
		}
		run_time[k] = order->run_time ? order->run_time[from[k]] : NULL;
		any = any || run_time[k];
		step[k] = moves ? order->step[from[k]] : 1;
	}
	for (int r = 0; r < results; r++)
		rows[r * (dims + 1) + dims] = affine_constant(order->map, r);
	const struct itensor merged = { .dims = dims,
		.trip = trip,
		.step = step,
		.run_time = any ? run_time : NULL,
		.map = { .dims = dims, .results = results, .coefficient = rows } };
	return type_itensor(module, tile, &merged);
}

/* An itensor's loops while its words change: one more dim than before. */
struct regrouping {
	int dims, results; /* dims: without the new one */
	int64_t *trip, *step, *map;
	const struct run_time_trip **run_time;
	int64_t *tile; /* [results] of the old word */
	int outer_dim; /* data dim of its lanes, or of its rows if it has several */
	int64_t inner; /* lanes of a row; 1: it has no rows */
};

static struct regrouping regrouping_of(struct arena *arena, const struct type *stream)
{
	const struct itensor *order = stream->itensor;
	struct regrouping g = { .dims = order->dims, .results = order->map.results };
	g.tile = ARENA_ARRAY(arena, int64_t, g.results + 1);
	g.trip = ARENA_ARRAY(arena, int64_t, g.dims + 2);
	g.step = ARENA_ARRAY(arena, int64_t, g.dims + 2);
	g.run_time = ARENA_ARRAY(arena, const struct run_time_trip *, g.dims + 2);
	g.map = affine_rows(arena, g.dims + 1, g.results);
	g.outer_dim = g.results - 1;
	for (int r = g.results - 1; r >= 0; r--) {
		g.tile[r] = stream_lanes(stream) > 1 ? tile_extent(stream, g.results, r) : 1;
		g.outer_dim = g.tile[r] > 1 ? r : g.outer_dim;
		for (int i = 0; i < g.dims; i++)
			g.map[r * (g.dims + 2) + i] = affine_at(order->map, r, i);
		g.map[r * (g.dims + 2) + g.dims + 1] = affine_constant(order->map, r);
	}
	g.inner = g.results ? stream_lanes(stream) / g.tile[g.outer_dim] : 1;
	for (int i = 0; i < g.dims; i++) {
		g.trip[i] = order->trip[i];
		g.step[i] = order->step[i];
		g.run_time[i] = order->run_time ? order->run_time[i] : NULL;
	}
	return g;
}

bool type_has_rows(const struct type *stream)
{
	const struct type *tile = stream->element;
	int long_dims = 0;
	for (int r = 0; tile->kind == TYPE_VECTOR && r < tile->rank; r++)
		long_dims += tile->shape[r] > 1;
	return long_dims > 1;
}

/* Narrower words: the new innermost dim walks the old word, by its outermost rows if it has
 * several. */
static bool split_words(struct regrouping *g, int64_t old, int64_t lanes)
{
	g->trip[g->dims] = old / lanes;
	g->step[g->dims] = g->tile[g->outer_dim] = lanes / g->inner;
	g->map[g->outer_dim * (g->dims + 2) + g->dims] = 1;
	return old % lanes == 0 && lanes % g->inner == 0;
}

/* Wider words: the innermost moving dim must run along the lanes. */
static bool join_words(struct regrouping *g, int64_t old, int64_t lanes)
{
	int inner = g->dims - 1;
	if (g->inner > 1)
		return false;
	while (inner >= 0 && g->trip[inner] == 1 && !g->run_time[inner])
		inner--;
	if (inner < 0 || g->run_time[inner] || lanes % old || g->trip[inner] % (lanes / old))
		return false;
	int moving = -1;
	for (int r = 0; r < g->results; r++)
		if (g->map[r * (g->dims + 2) + inner])
			moving = moving < 0 ? r : g->results;
	if (moving < 0 || moving == g->results || (old > 1 && moving != g->outer_dim))
		return false;
	if (g->map[moving * (g->dims + 2) + inner] * g->step[inner] != old)
		return false;
	g->tile[moving] = lanes;
	g->trip[inner] /= lanes / old;
	g->step[inner] *= lanes / old;
	g->trip[g->dims] = g->step[g->dims] = 1;
	return true;
}

const struct type *type_regroup(struct module *module, const struct type *stream, int64_t lanes)
{
	struct regrouping g = regrouping_of(module->arena, stream);
	int64_t old = stream_lanes(stream);
	if (lanes < g.inner) {
		const struct type *row = type_regroup(module, stream, g.inner);
		return row ? type_regroup(module, row, lanes) : NULL;
	}
	if (!(lanes < old ? split_words(&g, old, lanes) : join_words(&g, old, lanes)))
		return NULL;
	const struct type *scalar = type_scalar(stream);
	const struct type *tile =
	        lanes == 1 ? scalar : type_shaped(module, TYPE_VECTOR, g.results, g.tile, scalar);
	return type_canonical(module, tile,
	        &(struct itensor){ .dims = g.dims + 1,
	                .trip = g.trip,
	                .step = g.step,
	                .run_time = g.run_time,
	                .map = { g.dims + 1, g.results, g.map } });
}
