#include "itensor/element_sequence.h"

const struct type *stream_word(struct module *module, const struct type *stream)
{
	int64_t lanes = stream_lanes(stream);
	const struct type *scalar = type_scalar(stream);
	return lanes == 1 ? scalar : type_shaped(module, TYPE_VECTOR, 1, &lanes, scalar);
}

/* Addresses between neighbours of data dim `dim`: row-major, or 1 for a linear type. */
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

/* A data dim whose last tile reaches over the edge makes a condition. */
static void add_condition(
        struct sequence *sequence, const struct type *tensor, const struct type *stream, int dim)
{
	struct affine_map map = stream->itensor->map;
	int64_t *row = sequence->condition + sequence->conditions * (sequence->dims + 2);
	int64_t tile = tile_extent(stream, map.results, dim);
	int64_t highest = affine_constant(map, dim) + tile - 1;
	for (int i = 0; i < sequence->dims; i++) {
		row[i] = affine_at(map, dim, i) * stream->itensor->step[i];
		highest += row[i] * (sequence->trip[i] - 1);
	}
	row[sequence->dims] = tile > 1;
	row[sequence->dims + 1] = dim_extent(tensor, map.results, dim) - affine_constant(map, dim);
	if (highest >= dim_extent(tensor, map.results, dim))
		sequence->conditions++;
	else
		for (int i = 0; i < sequence->dims + 2; i++)
			row[i] = 0;
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
	sequence.condition = ARENA_ARRAY(arena, int64_t, (map.results + 1) * (order->dims + 2));
	for (int i = 0; i < order->dims; i++)
		sequence.trip[i] = order->trip[i];
	for (int r = 0; r < map.results; r++) {
		int64_t stride = dim_stride(tensor, map.results, r);
		sequence.offset += stride * affine_constant(map, r);
		for (int i = 0; i < order->dims; i++)
			sequence.stride[i] += stride * affine_at(map, r, i) * order->step[i];
		if (sequence.lanes > 1 && tile_extent(stream, map.results, r) > 1)
			sequence.lane_stride = stride;
		add_condition(&sequence, tensor, stream, r);
	}
	return sequence;
}

/* Appends a loop; `run_time`, [dims] of the result, is filled where there are run-time trip
 * counts. */
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
	struct sequence merged = {
		.offset = from.offset, .lanes = from.lanes, .lane_stride = from.lane_stride
	};
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
	        ARENA_ARRAY(arena, const struct run_time_trip *, from.dims + 2);
	flat.trip = ARENA_ARRAY(arena, int64_t, from.dims + 1);
	flat.stride = ARENA_ARRAY(arena, int64_t, from.dims + 1);
	for (int i = 0; i < from.dims; i++)
		merge_loop(&flat, run_time, from.trip[i], from.stride[i], run_time_at(&from, i));
	merge_loop(&flat, run_time, from.lanes, from.lane_stride, NULL);
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
	return left.lane_stride == right.lane_stride;
}

int64_t sequence_words(struct sequence sequence)
{
	int64_t words = 1;
	for (int i = 0; i < sequence.dims; i++)
		words *= sequence.trip[i];
	return words;
}

/* Does dim `outer` continue `inner` in every data dim? */
static bool continues(int dims, const int64_t *trip, const int64_t *step, int results,
        const int64_t *rows, int outer, int inner)
{
	for (int r = 0; r < results; r++) {
		const int64_t *row = rows + r * (dims + 1);
		if (row[outer] * step[outer] != row[inner] * step[inner] * trip[inner] ||
		        (row[outer] != 0) != (row[inner] != 0))
			return false;
	}
	return true;
}

const struct type *type_canonical(struct module *module, const struct type *tile, int dims,
        int64_t *trip, const struct run_time_trip *const *run_time, int64_t *step, int results,
        int64_t *rows)
{
	int kept = 0;
	int *from = ARENA_ARRAY(module->arena, int, dims + 1);
	for (int i = 0; i < dims; i++) {
		bool fixed = !run_time || !run_time[i];
		if (trip[i] == 1 && fixed)
			continue;
		if (kept && fixed && !(run_time && run_time[from[kept - 1]]) &&
		        continues(dims, trip, step, results, rows, from[kept - 1], i)) {
			trip[i] *= trip[from[kept - 1]];
			from[kept - 1] = i;
			continue;
		}
		from[kept++] = i;
	}
	int64_t *to = affine_rows(module->arena, kept, results);
	int64_t *trips = ARENA_ARRAY(module->arena, int64_t, kept + 1);
	int64_t *steps = ARENA_ARRAY(module->arena, int64_t, kept + 1);
	const struct run_time_trip **to_run =
	        ARENA_ARRAY(module->arena, const struct run_time_trip *, kept + 1);
	bool any = false;
	for (int k = 0; k < kept; k++) {
		bool moves = false;
		for (int r = 0; r < results; r++) {
			to[r * (kept + 1) + k] = rows[r * (dims + 1) + from[k]];
			moves = moves || to[r * (kept + 1) + k];
		}
		trips[k] = trip[from[k]];
		to_run[k] = run_time ? run_time[from[k]] : NULL;
		any = any || to_run[k];
		steps[k] = moves ? step[from[k]] : 1;
	}
	for (int r = 0; r < results; r++)
		to[r * (kept + 1) + kept] = rows[r * (dims + 1) + dims];
	const struct itensor order = { .dims = kept,
		.trip = trips,
		.step = steps,
		.run_time = any ? to_run : NULL,
		.map = { .dims = kept, .results = results, .coefficient = to } };
	return type_itensor_run_time(module, tile, &order);
}

/* Re-types the innermost dims: first every lane becomes an iteration, then `lanes` iterations of
 * the innermost dims become a word. */
const struct type *type_regroup(struct module *module, const struct type *stream, int64_t lanes)
{
	const struct itensor *order = stream->itensor;
	int results = order->map.results;
	int dims = order->dims;
	int64_t old = stream_lanes(stream);
	int lane_dim = results - 1;
	for (int r = 0; old > 1 && r < results; r++)
		if (tile_extent(stream, results, r) > 1)
			lane_dim = r;
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, dims + 2);
	int64_t *step = ARENA_ARRAY(module->arena, int64_t, dims + 2);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(module->arena, const struct run_time_trip *, dims + 2);
	int64_t *rows = affine_rows(module->arena, dims + 1, results);
	for (int r = 0; r < results; r++) {
		for (int i = 0; i < dims; i++)
			rows[r * (dims + 2) + i] = affine_at(order->map, r, i);
		rows[r * (dims + 2) + dims + 1] = affine_constant(order->map, r);
	}
	for (int i = 0; i < dims; i++) {
		trip[i] = order->trip[i];
		step[i] = order->step[i];
		run_time[i] = order->run_time ? order->run_time[i] : NULL;
	}
	/* words fall apart: a new innermost dim walks the old word */
	if (lanes < old) {
		if (old % lanes)
			return NULL;
		trip[dims] = old / lanes;
		step[dims] = lanes;
		rows[lane_dim * (dims + 2) + dims] = 1;
	} else { /* words grow together: the innermost moving dim must run along the lanes */
		int inner = dims - 1;
		while (inner >= 0 && trip[inner] == 1 && !run_time[inner])
			inner--;
		if (inner < 0 || run_time[inner] || lanes % old || trip[inner] % (lanes / old))
			return NULL;
		int moving = -1;
		for (int r = 0; r < results; r++)
			if (rows[r * (dims + 2) + inner])
				moving = moving < 0 ? r : results;
		if (moving < 0 || moving == results || (old > 1 && moving != lane_dim) ||
		        rows[moving * (dims + 2) + inner] * step[inner] != old)
			return NULL;
		lane_dim = moving;
		trip[inner] /= lanes / old;
		step[inner] *= lanes / old;
		trip[dims] = step[dims] = 1;
	}
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, results + 1);
	for (int r = 0; r < results; r++)
		shape[r] = r == lane_dim ? lanes : 1;
	const struct type *scalar = type_scalar(stream);
	const struct type *tile =
	        lanes == 1 ? scalar : type_shaped(module, TYPE_VECTOR, results, shape, scalar);
	return type_canonical(module, tile, dims + 1, trip, run_time, step, results, rows);
}
