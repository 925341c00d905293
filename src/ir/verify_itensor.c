/* Decides whether an itensor type is well-formed, for the verifier and `stc itensor`. */
#include "ir/type.h"
#include <inttypes.h>

static bool is_number(const struct type *type)
{
	return type_is_whole(type) || type_is_real(type);
}

static bool is_vector(const struct type *type)
{
	return type->kind == TYPE_VECTOR && is_number(type->element);
}

/* Range [*low, *high) of tile offsets and tiles in data dim `dim`. false: it overflows. */
static bool reach(const struct type *type, int dim, int64_t *low, int64_t *high)
{
	const struct itensor *order = type->itensor;
	*low = affine_constant(order->map, dim);
	if (__builtin_add_overflow(*low, stream_tile(type, dim), high))
		return false;
	for (int i = 0; i < order->dims; i++) {
		int64_t far;
		int64_t *end = affine_at(order->map, dim, i) < 0 ? low : high;
		bool over = __builtin_mul_overflow(
		        affine_at(order->map, dim, i), order->trip[i] - 1, &far);
		over = over || __builtin_mul_overflow(far, order->step[i], &far);
		if (over || __builtin_add_overflow(*end, far, end))
			return false;
	}
	return true;
}

static const char *reach_fault(struct arena *arena, const struct type *type)
{
	int64_t box = 1;
	int64_t low;
	int64_t high;
	for (int r = 0; r < type->itensor->map.results; r++) {
		if (!reach(type, r, &low, &high) || high > ITENSOR_EXTENT_MOST)
			return text_format(arena, "data dim %d reaches beyond 2^48 elements", r);
		if (low < 0)
			return text_format(arena,
			        "the map is out of range: data dim %d begins at %" PRId64
			        ", before 0",
			        r, low);
		if (__builtin_mul_overflow(box, high - low, &box) || box > ITENSOR_EXTENT_MOST)
			return "the tiles spread over more than 2^48 elements";
	}
	return NULL;
}

static const char *loop_fault(struct arena *arena, const struct itensor *order)
{
	int64_t tiles = 1;
	if (order->map.dims != order->dims)
		return text_format(arena, "there are %d trip counts and the map has %d dims",
		        order->dims, order->map.dims);
	for (int i = 0; i < order->dims; i++) {
		if (order->trip[i] < 1)
			return text_format(arena, "trip count %d is %" PRId64 ", not positive", i,
			        order->trip[i]);
		if (order->run_time && order->run_time[i] && order->run_time[i]->tile < 1)
			return text_format(arena,
			        "the tile of trip count %d is %" PRId64 ", not positive", i,
			        order->run_time[i]->tile);
		if (order->step[i] < 1)
			return text_format(
			        arena, "step %d is %" PRId64 ", not positive", i, order->step[i]);
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
		return text_format(arena, "the tile %s is neither a number nor a vector of numbers",
		        tile->text);
	if (is_vector(tile) &&
	        (type_elements(tile) < 1 || type_elements(tile) > ITENSOR_EXTENT_MOST))
		return text_format(
		        arena, "the tile %s has not from 1 to 2^48 elements", tile->text);
	if (is_vector(tile) && tile->rank != results)
		return text_format(arena, "the tile %s has rank %d and the map has %d result%s",
		        tile->text, tile->rank, results, results == 1 ? "" : "s");
	const char *fault = loop_fault(arena, type->itensor);
	int64_t bits;
	if (!fault && __builtin_mul_overflow(itensor_tiles(type->itensor), type_bits(tile), &bits))
		fault = "the bits of all tiles overflow";
	return fault ? fault : reach_fault(arena, type);
}
