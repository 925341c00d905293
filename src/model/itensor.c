/* Normal form, equality and re-ordering buffers of itensors. */
#include "model/itensor.h"
#include "model/coverage.h"
#include <inttypes.h>
#include <string.h>

static bool is_number(const struct type *type)
{
	return type->kind == TYPE_INDEX || type->kind == TYPE_INTEGER || type_is_real(type);
}

static bool is_vector(const struct type *type)
{
	return type->kind == TYPE_VECTOR && is_number(type->element);
}

static int64_t tile_extent(const struct type *type, int dim)
{
	return type->element->kind == TYPE_VECTOR ? type->element->shape[dim] : 1;
}

/* The reach of data dim `dim`: [*low, *high).  false: it overflows. */
static bool reach(const struct type *type, int dim, int64_t *low, int64_t *high)
{
	const struct itensor *order = type->itensor;
	*low = affine_constant(order->map, dim);
	if (__builtin_add_overflow(*low, tile_extent(type, dim), high))
		return false;
	for (int i = 0; i < order->dims; i++) {
		int64_t far, *end = affine_at(order->map, dim, i) < 0 ? low : high;
		bool over = __builtin_mul_overflow(affine_at(order->map, dim, i), order->trip[i] - 1, &far);
		over = over || __builtin_mul_overflow(far, order->step[i], &far);
		if (over || __builtin_add_overflow(*end, far, end))
			return false;
	}
	return true;
}

static const char *reach_fault(struct arena *arena, const struct type *type)
{
	int64_t box = 1, low, high;
	for (int r = 0; r < type->itensor->map.results; r++) {
		if (!reach(type, r, &low, &high) || high > ITENSOR_EXTENT_MOST)
			return text_format(arena, "data dim %d reaches beyond 2^48 elements", r);
		if (low < 0)
			return text_format(arena, "the map is out of range: data dim %d begins at %" PRId64 ", before 0", r, low);
		if (__builtin_mul_overflow(box, high - low, &box) || box > ITENSOR_EXTENT_MOST)
			return "the tiles spread over more than 2^48 elements";
	}
	return NULL;
}

static const char *loop_fault(struct arena *arena, const struct itensor *order)
{
	int64_t tiles = 1;
	if (order->map.dims != order->dims)
		return text_format(arena, "there are %d trip counts and the map has %d dims", order->dims, order->map.dims);
	for (int i = 0; i < order->dims; i++) {
		if (order->trip[i] < 1)
			return text_format(arena, "trip count %d is %" PRId64 ", not positive", i, order->trip[i]);
		if (order->step[i] < 1)
			return text_format(arena, "step %d is %" PRId64 ", not positive", i, order->step[i]);
		if (__builtin_mul_overflow(tiles, order->trip[i], &tiles))
			return "the number of tiles overflows";
	}
	return NULL;
}

const char *itensor_fault(struct arena *arena, const struct type *type)
{
	const struct type *tile = type->element;
	int results = type->itensor->map.results;
	if (!is_number(tile) && !is_vector(tile))
		return text_format(arena, "the tile %s is neither a number nor a vector of numbers", tile->text);
	if (is_vector(tile) && (type_elements(tile) < 1 || type_elements(tile) > ITENSOR_EXTENT_MOST))
		return text_format(arena, "the tile %s has not from 1 to 2^48 elements", tile->text);
	if (is_vector(tile) && tile->rank != results)
		return text_format(arena, "the tile %s has rank %d and the map has %d result%s", tile->text, tile->rank, results, results == 1 ? "" : "s");
	const char *fault = loop_fault(arena, type->itensor);
	return fault ? fault : reach_fault(arena, type);
}

static struct walk walk_new(struct arena *arena, struct walk like, int loops)
{
	like.loops = 0;
	like.trip = ARENA_ARRAY(arena, int64_t, loops + 1);
	like.vector = ARENA_ARRAY(arena, int64_t, (loops + 1) * (like.rank + 1));
	return like;
}

struct walk itensor_walk(struct arena *arena, const struct type *type)
{
	const struct itensor *order = type->itensor;
	struct walk walk = {.scalar = type_scalar(type), .rank = order->map.results};
	walk.tile = ARENA_ARRAY(arena, int64_t, walk.rank + 1);
	walk.offset = ARENA_ARRAY(arena, int64_t, walk.rank + 1);
	walk = walk_new(arena, walk, order->dims);
	for (int r = 0; r < walk.rank; r++) {
		walk.tile[r] = tile_extent(type, r);
		walk.offset[r] = affine_constant(order->map, r);
	}
	for (int i = 0; i < order->dims; i++) {
		for (int r = 0; order->trip[i] > 1 && r < walk.rank; r++)
			walk.vector[i * walk.rank + r] = affine_at(order->map, r, i) * order->step[i];
		walk.trip[i] = order->trip[i];
	}
	walk.loops = order->dims;
	return walk;
}

static void push_loop(struct walk *walk, int64_t trip, const int64_t *vector, int64_t scale)
{
	for (int r = 0; r < walk->rank; r++)
		walk->vector[walk->loops * walk->rank + r] = vector[r] * scale;
	walk->trip[walk->loops++] = trip;
}

/* Do `times` steps of `left` lead as far as `trip` steps of `right`? */
static bool same_pace(int rank, const int64_t *left, int64_t times, const int64_t *right, int64_t trip)
{
	for (int r = 0; r < rank; r++)
		if (left[r] * times != right[r] * trip)
			return false;
	return true;
}

struct walk walk_normal(struct arena *arena, struct walk from)
{
	struct walk normal = walk_new(arena, from, from.loops);
	for (int l = 0; l < from.loops; l++) {
		const int64_t *vector = from.vector + l * from.rank;
		int last = normal.loops - 1;
		if (from.trip[l] == 1)
			continue;
		if (last >= 0 && same_pace(from.rank, normal.vector + last * from.rank, 1, vector, from.trip[l])) {
			normal.loops--;
			push_loop(&normal, normal.trip[last] * from.trip[l], vector, 1);
			continue;
		}
		push_loop(&normal, from.trip[l], vector, 1);
	}
	return normal;
}

static bool equal_numbers(int count, const int64_t *left, const int64_t *right)
{
	return !count || !memcmp(left, right, sizeof *left * (size_t)count);
}

bool walk_same(struct walk left, struct walk right)
{
	return left.scalar == right.scalar && left.rank == right.rank && left.loops == right.loops && equal_numbers(left.rank, left.tile, right.tile) &&
	       equal_numbers(left.rank, left.offset, right.offset) && equal_numbers(left.loops, left.trip, right.trip) &&
	       equal_numbers(left.loops * left.rank, left.vector, right.vector);
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

static int64_t common_divisor(int64_t left, int64_t right)
{
	while (right) {
		int64_t rest = left % right;
		left = right;
		right = rest;
	}
	return left;
}

int walk_share(struct arena *arena, struct walk *left, struct walk *right)
{
	struct walk from = *left, to = *right;
	int rank = from.rank, l = 0, shared = 0;
	*left = walk_new(arena, from, from.loops + 1);
	*right = walk_new(arena, to, to.loops + 1);
	bool even = true;
	for (; even && l < from.loops && l < to.loops; l++) {
		const int64_t *a = from.vector + l * rank, *b = to.vector + l * rank;
		int64_t common = common_divisor(from.trip[l], to.trip[l]), inner = from.trip[l] / common, other = to.trip[l] / common;
		if (common == 1 || !same_pace(rank, a, inner, b, other))
			break;
		push_loop(left, common, a, inner);
		push_loop(right, common, b, other);
		shared++;
		even = inner == 1 && other == 1;
		if (inner > 1)
			push_loop(left, inner, a, 1);
		if (other > 1)
			push_loop(right, other, b, 1);
	}
	for (int i = l; i < from.loops; i++)
		push_loop(left, from.trip[i], from.vector + i * rank, 1);
	for (int i = l; i < to.loops; i++)
		push_loop(right, to.trip[i], to.vector + i * rank, 1);
	return shared;
}

static int64_t bytes_of(struct walk walk, const int64_t *shape, int halves)
{
	int64_t elements = halves, bits = type_bits(walk.scalar);
	for (int r = 0; r < walk.rank; r++)
		elements *= shape[r];
	return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
}

/* The least buffer over the shared prefixes; of equals the one with the most loops shared. */
struct reorder walk_reorder(struct arena *arena, struct walk from, struct walk to)
{
	struct reorder best = {0};
	if (from.scalar != to.scalar)
		best.why = text_format(arena, "element type %s against %s", from.scalar->text, to.scalar->text);
	else if (from.rank != to.rank)
		best.why = text_format(arena, "data of rank %d against rank %d", from.rank, to.rank);
	else
		best.why = coverage_differs(arena, from, to, 0);
	if (best.why)
		return best;
	int shared = walk_share(arena, &from, &to);
	for (int k = 0; k <= shared; k++) {
		struct reorder next = {.shape = ARENA_ARRAY(arena, int64_t, from.rank + 1), .shared = k, .halves = k ? 2 : 1};
		if (coverage_differs(arena, from, to, k))
			continue;
		coverage_shape(arena, from, k, next.shape);
		next.bytes = bytes_of(from, next.shape, next.halves);
		if (!k || next.bytes <= best.bytes)
			best = next;
	}
	return best;
}
