/* Reads the parameters of an itensor type, an array attribute: TILE, [trips], [steps], MAP. Each is
 * checked on its own, so that the message can name it.
 *
 * TILE may be [vector, N]: the tile is sent in words of N elements, row by row. A trip count may be
 * a number, [LOW, HIGH] (the counter runs from LOW to HIGH - 1) or a dictionary (a run-time count).
 * Words and ranges are only notation: the resulting type has words as tiles and an offset for
 * LOW. */
#include "import/read.h"
#include <mlir-c/AffineMap.h>
#include <inttypes.h>
#include <string.h>

struct draft {
	const struct type *tile;
	struct itensor order;
	/* low: start of each counter; rows: coefficients of the map, to be changed */
	int64_t *trip, *low, *rows;
	const struct run_time_trip **run_time;
};

static bool wrong(struct reader *reader, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static bool wrong(struct reader *reader, const char *format, ...)
{
	struct text text = text_new(reader->arena);
	va_list arguments;
	va_start(arguments, format);
	text_add_arguments(&text, format, arguments);
	va_end(arguments);
	read_error(reader, "%s", text.data);
	return diag_note(reader->diag, ITENSOR_ACCEPTED);
}

static const char *plural(int count)
{
	return count == 1 ? "" : "s";
}

static bool read_integer(MlirAttribute attribute, int64_t *result)
{
	if (mlirAttributeIsNull(attribute) || !mlirAttributeIsAInteger(attribute))
		return false;
	MlirType type = mlirAttributeGetType(attribute);
	if (!mlirTypeIsAInteger(type) || !mlirIntegerTypeIsSignless(type) ||
	        mlirIntegerTypeGetWidth(type) != 64)
		return false;
	*result = mlirIntegerAttrGetValueInt(attribute);
	return true;
}

static MlirAttribute entry(MlirAttribute dictionary, enum attr_key key)
{
	return mlirDictionaryAttrGetElementByName(
	        dictionary, mlirStringRefCreateFromCString(key_name(key)));
}

static bool is_symbol(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	static const char more[] =
	        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	return *text && strchr(letters, *text) && !text[strspn(text, more)];
}

static bool read_run_time(
        struct reader *reader, MlirAttribute attribute, struct draft *draft, int i)
{
	struct run_time_trip trip = { .tile = 1 };
	MlirAttribute symbol = entry(attribute, KEY_SYMBOL);
	MlirAttribute plus = entry(attribute, KEY_PLUS);
	MlirAttribute tile = entry(attribute, KEY_TILE);
	int known = 2 + !mlirAttributeIsNull(plus) + !mlirAttributeIsNull(tile);
	bool named = !mlirAttributeIsNull(symbol) && mlirAttributeIsAString(symbol);
	trip.symbol = named ? copy_string(reader->arena, mlirStringAttrGetValue(symbol)) : "";
	if (!is_symbol(trip.symbol) || mlirDictionaryAttrGetNumElements(attribute) != known ||
	        !read_integer(entry(attribute, KEY_MOST), &trip.most) ||
	        (!mlirAttributeIsNull(plus) && !read_integer(plus, &trip.plus)) ||
	        (!mlirAttributeIsNull(tile) && !read_integer(tile, &trip.tile)))
		return wrong(reader,
		        "trip count %d, %s, is not {symbol = \"NAME\", plus = N, tile = N, most = "
		        "N}",
		        i, print_attr(reader->arena, attribute));
	draft->trip[i] = trip.most;
	draft->run_time[i] = arena_copy(reader->arena, &trip, sizeof trip);
	draft->order.run_time = draft->run_time;
	return true;
}

static bool read_range(struct reader *reader, MlirAttribute attribute, struct draft *draft, int i)
{
	int64_t high = 0;
	bool two = mlirArrayAttrGetNumElements(attribute) == 2;
	if (!two || !read_integer(mlirArrayAttrGetElement(attribute, 0), &draft->low[i]) ||
	        !read_integer(mlirArrayAttrGetElement(attribute, 1), &high))
		return wrong(reader, "the range %d, %s, is no pair of 64-bit numbers", i,
		        print_attr(reader->arena, attribute));
	if (draft->low[i] < 0 || draft->low[i] >= high)
		return wrong(reader,
		        "the range %d, from %" PRId64 " to %" PRId64
		        ", is not within the counters from 0 on, or empty",
		        i, draft->low[i], high - 1);
	draft->trip[i] = high - draft->low[i];
	return true;
}

static bool read_trips(struct reader *reader, MlirAttribute attribute, struct draft *draft)
{
	if (!mlirAttributeIsAArray(attribute))
		return wrong(reader, "the trip counts are no list of numbers");
	draft->order.dims = (int)mlirArrayAttrGetNumElements(attribute);
	draft->order.trip = draft->trip =
	        ARENA_ARRAY(reader->arena, int64_t, draft->order.dims + 1);
	draft->low = ARENA_ARRAY(reader->arena, int64_t, draft->order.dims + 1);
	draft->run_time =
	        ARENA_ARRAY(reader->arena, const struct run_time_trip *, draft->order.dims + 1);
	for (int i = 0; i < draft->order.dims; i++) {
		MlirAttribute item = mlirArrayAttrGetElement(attribute, i);
		if (mlirAttributeIsADictionary(item) && !read_run_time(reader, item, draft, i))
			return false;
		if (mlirAttributeIsAArray(item) && !read_range(reader, item, draft, i))
			return false;
		if (!mlirAttributeIsADictionary(item) && !mlirAttributeIsAArray(item) &&
		        !read_integer(item, &draft->trip[i]))
			return wrong(reader, "the trip counts are no list of 64-bit numbers");
	}
	return true;
}

static bool read_steps(struct reader *reader, MlirAttribute attribute, struct draft *draft)
{
	if (!mlirAttributeIsAArray(attribute))
		return wrong(reader, "the steps are no list of numbers");
	int steps = (int)mlirArrayAttrGetNumElements(attribute);
	int trips = draft->order.dims;
	if (steps != trips)
		return wrong(reader, "%d trip count%s and %d step%s", trips, plural(trips), steps,
		        plural(steps));
	int64_t *step = ARENA_ARRAY(reader->arena, int64_t, steps + 2);
	for (int i = 0; i < steps; i++)
		if (!read_integer(mlirArrayAttrGetElement(attribute, i), &step[i]))
			return wrong(reader, "the steps are no list of 64-bit numbers");
	draft->order.step = step;
	return true;
}

static bool read_order(struct reader *reader, MlirAttribute attribute, struct draft *draft)
{
	int trips = draft->order.dims;
	if (!mlirAttributeIsAAffineMap(attribute))
		return wrong(reader, "the map %s is no affine map",
		        print_attr(reader->arena, attribute));
	MlirAffineMap affine = mlirAffineMapAttrGetValue(attribute);
	if (mlirAffineMapGetNumSymbols(affine))
		return wrong(
		        reader, "the map %s has symbols", print_attr(reader->arena, attribute));
	if (!read_map(reader, affine, &draft->order.map))
		return false;
	if (draft->order.map.dims != trips)
		return wrong(reader, "%d trip count%s and %d map dim%s", trips, plural(trips),
		        draft->order.map.dims, plural(draft->order.map.dims));
	size_t rows = (size_t)(trips + 1) * (size_t)draft->order.map.results;
	draft->order.map.coefficient = draft->rows =
	        arena_copy(reader->arena, draft->order.map.coefficient, sizeof(int64_t) * rows);
	return true;
}

/* Moves the constants of the map to the start of the ranges. */
static bool move_to_ranges(struct reader *reader, struct draft *draft)
{
	struct itensor *order = &draft->order;
	for (int r = 0; r < order->map.results; r++)
		for (int i = 0; i < order->dims; i++) {
			int64_t far;
			int64_t *constant = &draft->rows[r * (order->dims + 1) + order->dims];
			bool over = __builtin_mul_overflow(draft->low[i], order->step[i], &far);
			over = over ||
			        __builtin_mul_overflow(far, affine_at(order->map, r, i), &far);
			if (over || __builtin_add_overflow(*constant, far, constant))
				return wrong(reader, "the range %d begins beyond 2^48 elements", i);
		}
	return true;
}

/* The shape of a word of `lanes` elements of the tile, row-major; false: such words are not boxes
 * of one shape. */
static bool word_shape(const struct type *tile, int64_t lanes, int64_t *shape)
{
	for (int r = tile->rank - 1; r >= 0; r--) {
		shape[r] = lanes % tile->shape[r] == 0 ? tile->shape[r] : lanes;
		if (tile->shape[r] % shape[r])
			return false;
		lanes /= shape[r];
	}
	return lanes == 1;
}

/* Adds an innermost iteration dim: `trip` words along data dim `dim`. */
static void add_loop(
        struct reader *reader, struct draft *draft, int dim, int64_t trip, int64_t word)
{
	struct itensor *order = &draft->order;
	int dims = order->dims;
	int results = order->map.results;
	int64_t *rows = affine_rows(reader->arena, dims + 1, results);
	int64_t *step = ARENA_ARRAY(reader->arena, int64_t, dims + 1);
	int64_t *trips = ARENA_ARRAY(reader->arena, int64_t, dims + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(reader->arena, const struct run_time_trip *, dims + 1);
	for (int i = 0; i < dims; i++) {
		trips[i] = order->trip[i];
		step[i] = order->step[i];
		run_time[i] = draft->run_time[i];
	}
	trips[dims] = trip;
	step[dims] = word;
	for (int r = 0; r < results; r++) {
		for (int i = 0; i < dims; i++)
			rows[r * (dims + 2) + i] = affine_at(order->map, r, i);
		rows[r * (dims + 2) + dims] = r == dim;
		rows[r * (dims + 2) + dims + 1] = affine_constant(order->map, r);
	}
	draft->run_time = run_time;
	*order = (struct itensor){ dims + 1, trips, step, order->run_time ? run_time : NULL,
		{ dims + 1, results, rows } };
}

static bool cut_into_words(struct reader *reader, struct draft *draft, int64_t lanes)
{
	const struct type *tile = draft->tile;
	bool box = tile->kind == TYPE_VECTOR && type_elements(tile) > 0 &&
	        tile->rank == draft->order.map.results;
	int64_t *word = ARENA_ARRAY(reader->arena, int64_t, tile->rank + 1);
	if (!box || lanes < 1 || !word_shape(tile, lanes, word))
		return wrong(reader,
		        "words of %" PRId64
		        " elements do not cut the tile %s, row by row, into boxes of one shape",
		        lanes, tile->text);
	for (int r = 0; r < tile->rank; r++)
		if (tile->shape[r] > word[r])
			add_loop(reader, draft, r, tile->shape[r] / word[r], word[r]);
	draft->tile = lanes == 1
	        ? tile->element
	        : type_shaped(reader->module, TYPE_VECTOR, tile->rank, word, tile->element);
	return true;
}

/* The type of a tile, and the elements of a word; 0: the whole tile. */
static bool read_tile(
        struct reader *reader, MlirAttribute attribute, struct draft *draft, int64_t *lanes)
{
	MlirAttribute tile = attribute;
	*lanes = 0;
	if (mlirAttributeIsAArray(attribute)) {
		if (mlirArrayAttrGetNumElements(attribute) != 2 ||
		        !read_integer(mlirArrayAttrGetElement(attribute, 1), lanes))
			return wrong(reader,
			        "the tile %s is no pair of a vector and the elements of a word",
			        print_attr(reader->arena, attribute));
		tile = mlirArrayAttrGetElement(attribute, 0);
	}
	if (!mlirAttributeIsAType(tile))
		return wrong(reader, "the tile %s is no type", print_attr(reader->arena, tile));
	draft->tile = read_type(reader, mlirTypeAttrGetValue(tile));
	return draft->tile;
}

const struct type *read_itensor(struct reader *reader, MlirAttribute list)
{
	struct draft draft = { 0 };
	int64_t lanes;
	if (mlirArrayAttrGetNumElements(list) != 4) {
		wrong(reader, "%" PRIdPTR " parameters instead of four",
		        mlirArrayAttrGetNumElements(list));
		return NULL;
	}
	bool fine = read_tile(reader, mlirArrayAttrGetElement(list, 0), &draft, &lanes) &&
	        read_trips(reader, mlirArrayAttrGetElement(list, 1), &draft) &&
	        read_steps(reader, mlirArrayAttrGetElement(list, 2), &draft) &&
	        read_order(reader, mlirArrayAttrGetElement(list, 3), &draft) &&
	        move_to_ranges(reader, &draft) &&
	        (mlirAttributeIsAType(mlirArrayAttrGetElement(list, 0)) ||
	                cut_into_words(reader, &draft, lanes));
	return fine ? type_itensor(reader->module, draft.tile, &draft.order) : NULL;
}
