/* Walks of itensor types: construction, normal form, equality, and the first difference of two. */
#include "itensor/walk.h"
#include <string.h>

#define MISMATCH_TILES_MOST (INT64_C(1) << 22) /* maximum tiles compared */

struct walk walk_new(struct arena *arena, struct walk like, int loops)
{
	like.loops = 0;
	like.trip = ARENA_ARRAY(arena, int64_t, loops + 1);
	like.vector = ARENA_ARRAY(arena, int64_t, (loops + 1) * (like.rank + 1));
	like.run_time = ARENA_ARRAY(arena, const struct run_time_trip *, loops + 1);
	return like;
}

struct walk itensor_walk(struct arena *arena, const struct type *type)
{
	const struct itensor *order = type->itensor;
	struct walk walk = { .scalar = type_scalar(type), .rank = order->map.results };
	walk.tile = ARENA_ARRAY(arena, int64_t, walk.rank + 1);
	walk.offset = ARENA_ARRAY(arena, int64_t, walk.rank + 1);
	walk = walk_new(arena, walk, order->dims);
	for (int r = 0; r < walk.rank; r++) {
		walk.tile[r] = stream_tile(type, r);
		walk.offset[r] = affine_constant(order->map, r);
	}
	for (int i = 0; i < order->dims; i++) {
		for (int r = 0; order->trip[i] > 1 && r < walk.rank; r++)
			walk.vector[i * walk.rank + r] =
			        affine_at(order->map, r, i) * order->step[i];
		walk.trip[i] = order->trip[i];
		walk.run_time[i] = order->run_time ? order->run_time[i] : NULL;
	}
	walk.loops = order->dims;
	return walk;
}

void walk_push(struct walk *walk, int64_t trip, const struct run_time_trip *run_time,
        const int64_t *vector, int64_t scale)
{
	for (int r = 0; r < walk->rank; r++)
		walk->vector[walk->loops * walk->rank + r] = vector[r] * scale;
	walk->run_time[walk->loops] = run_time;
	walk->trip[walk->loops++] = trip;
}

const struct run_time_trip *walk_run_time(struct walk walk, int loop)
{
	return walk.run_time ? walk.run_time[loop] : NULL;
}

bool walk_same_pace(
        int rank, const int64_t *left, int64_t times, const int64_t *right, int64_t trip)
{
	for (int r = 0; r < rank; r++)
		if (left[r] * times != right[r] * trip)
			return false;
	return true;
}

static bool is_replay(int rank, const int64_t *vector)
{
	for (int r = 0; r < rank; r++)
		if (vector[r])
			return false;
	return true;
}

/* Does the last loop of `normal` continue loop l of `from`? Before a loop with a run-time trip
 * count only a replay does. */
static bool continues(struct walk normal, struct walk from, int l)
{
	int last = normal.loops - 1;
	const int64_t *vector = from.vector + l * from.rank;
	if (last < 0 ||
	        !walk_same_pace(
	                from.rank, normal.vector + last * from.rank, 1, vector, from.trip[l]))
		return false;
	return !walk_run_time(from, l) || (!normal.run_time[last] && is_replay(from.rank, vector));
}

static int run_time_order(const struct run_time_trip *left, const struct run_time_trip *right)
{
	int order = strcmp(left->symbol, right->symbol);
	order = order ? order : (left->plus > right->plus) - (left->plus < right->plus);
	order = order ? order : (left->tile > right->tile) - (left->tile < right->tile);
	return order ? order : (left->most > right->most) - (left->most < right->most);
}

/* Replay loops nested in each other repeat equally often in any order: they are sorted, and the
 * first one gets the whole fixed factor. */
static void sort_repeats(struct walk *normal)
{
	for (int l = normal->loops - 1; l > 0; l--) {
		const struct run_time_trip **run_time = normal->run_time + l;
		if (!run_time[0] || !run_time[-1] ||
		        !is_replay(normal->rank, normal->vector + l * normal->rank) ||
		        !is_replay(normal->rank, normal->vector + (l - 1) * normal->rank))
			return;
		int64_t fixed = normal->trip[l] / run_time[0]->most *
		        (normal->trip[l - 1] / run_time[-1]->most);
		if (run_time_order(run_time[-1], run_time[0]) > 0) {
			const struct run_time_trip *inner = run_time[0];
			run_time[0] = run_time[-1];
			run_time[-1] = inner;
		}
		normal->trip[l - 1] = fixed * run_time[-1]->most;
		normal->trip[l] = run_time[0]->most;
	}
}

struct walk walk_normal(struct arena *arena, struct walk from)
{
	struct walk normal = walk_new(arena, from, from.loops);
	for (int l = 0; l < from.loops; l++) {
		const int64_t *vector = from.vector + l * from.rank;
		const struct run_time_trip *run_time = walk_run_time(from, l);
		int64_t trip = from.trip[l];
		if (trip == 1 && !run_time)
			continue;
		if (continues(normal, from, l)) {
			int last = --normal.loops;
			trip *= normal.trip[last];
			run_time = run_time ? run_time : normal.run_time[last];
		}
		walk_push(&normal, trip, run_time, vector, 1);
		sort_repeats(&normal);
	}
	return normal;
}

static bool equal_numbers(int count, const int64_t *left, const int64_t *right)
{
	return !count || !memcmp(left, right, sizeof *left * (size_t)count);
}

static bool same_run_time(struct walk left, struct walk right)
{
	for (int l = 0; l < left.loops; l++)
		if (!run_time_same(walk_run_time(left, l), walk_run_time(right, l)))
			return false;
	return true;
}

static bool same_tile(struct walk left, struct walk right)
{
	return left.scalar == right.scalar && left.rank == right.rank &&
	        equal_numbers(left.rank, left.tile, right.tile);
}

bool walk_same(struct walk left, struct walk right)
{
	return same_tile(left, right) && left.loops == right.loops &&
	        equal_numbers(left.rank, left.offset, right.offset) &&
	        equal_numbers(left.loops, left.trip, right.trip) &&
	        equal_numbers(left.loops * left.rank, left.vector, right.vector) &&
	        same_run_time(left, right);
}

bool walk_next(struct walk walk, int64_t *counter)
{
	for (int l = walk.loops - 1; l >= 0; l--) {
		if (++counter[l] < walk.trip[l])
			return true;
		counter[l] = 0;
	}
	return false;
}

void walk_at(struct walk walk, const int64_t *counter, int64_t *offset)
{
	for (int r = 0; r < walk.rank; r++) {
		offset[r] = walk.offset[r];
		for (int l = 0; l < walk.loops; l++)
			offset[r] += counter[l] * walk.vector[l * walk.rank + r];
	}
}

struct sequence_mismatch walk_mismatch(struct arena *arena, struct walk left, struct walk right)
{
	int64_t *at = ARENA_ARRAY(arena, int64_t, left.loops + 1);
	int64_t *other = ARENA_ARRAY(arena, int64_t, right.loops + 1);
	int64_t *offset = ARENA_ARRAY(arena, int64_t, left.rank + 1);
	int64_t *reached = ARENA_ARRAY(arena, int64_t, right.rank + 1);
	bool more = true, others = true;
	for (int64_t tile = 0; tile < MISMATCH_TILES_MOST && (more || others); tile++) {
		walk_at(left, at, offset);
		walk_at(right, other, reached);
		if (!more || !others || !same_tile(left, right) ||
		        !equal_numbers(left.rank, offset, reached))
			return (struct sequence_mismatch){ true, tile, more ? offset : NULL,
				others ? reached : NULL };
		more = walk_next(left, at);
		others = walk_next(right, other);
	}
	return (struct sequence_mismatch){ 0 };
}
