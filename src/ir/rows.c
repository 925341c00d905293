#include "ir/rows.h"

#define TILES_WITH_BREAK (ROWS_BEHIND_ATTENTION + 2)  /* so many is the last contraction of a layer behind its first (engine/unit_order.c): two follow the one that takes what attention gives */
#define TILE_MOST 16          /* so many rows keep memory quiet; fewer wait less for each other, */
#define TILE_COUNTED 8        /* and where slices take half as many of them a cycle, since one row alone wants many slices, so many keep it quiet */

int64_t rows_tile(int64_t most, bool counted)
{
	int64_t tile = most < TILE_MOST ? most : TILE_MOST;
	while (most % tile)
		tile--;
	return counted && tile < most && most % TILE_COUNTED == 0 ? TILE_COUNTED : tile;
}

bool rows_have_break(int64_t most)
{
	int64_t tiles = most > 0 ? most / rows_tile(most, false) : 0;
	return tiles > 1 && tiles <= TILES_WITH_BREAK;
}

static const struct run_time_trip *trip_of(struct arena *arena, const char *symbol, int64_t tile, int64_t most)
{
	struct run_time_trip *trip = ARENA_NEW(arena, struct run_time_trip);
	*trip = (struct run_time_trip){.symbol = symbol, .tile = tile, .most = most};
	return trip;
}

struct launch_rows rows_of_launch(struct arena *arena, const char *symbol, int64_t most)
{
	struct launch_rows rows = {.most = most, .tile = rows_tile(most, symbol)};
	if (!symbol || most == 1)
		return rows;
	rows.tiles = most > rows.tile ? trip_of(arena, symbol, rows.tile, most / rows.tile) : NULL;
	rows.each = rows.tile > 1 ? trip_of(arena, symbol, 1, rows.tile) : NULL;
	return rows;
}

const struct attr *rows_dims(struct module *module, const struct type *tensor, int axis, const char *symbol)
{
	int64_t most = tensor->shape[axis], tile = rows_tile(most, true);
	struct named items[] = {{key_name(KEY_FIRST), attr_integer(module, 0)}, {key_name(KEY_TILE), attr_integer(module, tile)}, {key_name(KEY_MOST), attr_integer(module, most / tile)}, {key_name(KEY_SYMBOL), attr_string(module, symbol)},
				{key_name(KEY_PLUS), attr_integer(module, 0)}, {key_name(KEY_MAX_WORD), attr_integer(module, 1)}, {key_name(KEY_BOUNDED_TILES), attr_unit(module)}};
	const struct attr **dim = ARENA_ARRAY(module->arena, const struct attr *, tensor->rank);
	for (int d = 0; d < tensor->rank; d++)
		dim[d] = d == axis ? attr_dictionary(module, 7, items) : attr_string(module, "");
	return attr_array(module, tensor->rank, dim);
}

int rows_axis(const struct type *tensor, int64_t pitch, int64_t most)
{
	int64_t inner = 1;
	for (int d = tensor->rank - 1; d >= 0; d--) {
		if (inner == pitch && tensor->shape[d] == most)
			return d;
		inner *= tensor->shape[d];
	}
	return -1;
}

int rows_input(const struct op *main)
{
	const struct attr *inputs = attr_get(main, KEY_STREAM_INPUTS);
	for (int i = 0; inputs && i < inputs->count; i++)
		if (*attr_item_text(inputs->items[i].value, KEY_TOKEN_COUNT))
			return i;
	return -1;
}

static const struct attr *counted_input(const struct op *main)
{
	int number = rows_input(main);
	return number < 0 ? NULL : attr_get(main, KEY_STREAM_INPUTS)->items[number].value;
}

const char *rows_counter(const struct op *main)
{
	const struct attr *entry = counted_input(main);
	return entry ? attr_item_text(entry, KEY_TOKEN_COUNT) : NULL;
}

int64_t rows_most(const struct op *main)
{
	const struct attr *entry = counted_input(main);
	return attr_item(entry, KEY_TYPE)->type->shape[attr_item_integer(entry, KEY_AXIS, 0)];
}

bool rows_may_go_on(const struct op *main)
{
	const struct attr *entry = counted_input(main);
	return entry && attr_item(entry, KEY_MORE_CHUNKS);
}

bool rows_counted_by(const struct op *main, const char *symbol)
{
	const struct attr *inputs = attr_get(main, KEY_STREAM_INPUTS);
	bool counted = false;
	for (int i = 0; inputs && i < inputs->count; i++)
		counted |= text_same(attr_item_text(inputs->items[i].value, KEY_TOKEN_COUNT), symbol);
	return counted;
}
