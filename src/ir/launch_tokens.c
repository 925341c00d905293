/* How the tokens of a launch fall into tiles, and which input counts them. */
#include "ir/launch_tokens.h"

/* Tiles by which the last job of a layer lags its first (engine/engine_job_order.c): two jobs
 * follow the one that reads attention's result. */
#define DRAINED_TILES_MOST (ATTENTION_LAG_TILES + 2)
/* Tokens per tile. The engine reads weights once per tile, so with this many tokens it computes
 * longer than memory takes; smaller tiles let kernels start earlier. With a run-time count PEs
 * take half as many tokens per cycle (a single token wants many PEs), so half a tile is enough. */
#define TILE_MOST 16
#define TILE_RUN_TIME 8

int64_t token_tile(int64_t most, bool counted)
{
	int64_t tile = most < TILE_MOST ? most : TILE_MOST;
	while (most % tile)
		tile--;
	return counted && tile < most && most % TILE_RUN_TIME == 0 ? TILE_RUN_TIME : tile;
}

bool layers_drain_between(int64_t most)
{
	int64_t tiles = most > 0 ? most / token_tile(most, false) : 0;
	return tiles > 1 && tiles <= DRAINED_TILES_MOST;
}

static const struct run_time_trip *trip_of(
        struct arena *arena, const char *symbol, int64_t tile, int64_t most)
{
	struct run_time_trip *trip = ARENA_NEW(arena, struct run_time_trip);
	*trip = (struct run_time_trip){ .symbol = symbol, .tile = tile, .most = most };
	return trip;
}

struct launch_tokens launch_tokens_of(struct arena *arena, const char *symbol, int64_t most)
{
	struct launch_tokens rows = { .most = most, .tile = token_tile(most, symbol) };
	if (!symbol || most == 1)
		return rows;
	rows.tiles = most > rows.tile ? trip_of(arena, symbol, rows.tile, most / rows.tile) : NULL;
	rows.each = rows.tile > 1 ? trip_of(arena, symbol, 1, rows.tile) : NULL;
	return rows;
}

const struct attr *token_dims(
        struct module *module, const struct type *tensor, int axis, const char *symbol)
{
	int64_t most = tensor->shape[axis];
	int64_t tile = token_tile(most, true);
	struct named items[] = { { key_name(KEY_FIRST), attr_integer(module, 0) },
		{ key_name(KEY_TILE), attr_integer(module, tile) },
		{ key_name(KEY_MOST), attr_integer(module, most / tile) },
		{ key_name(KEY_SYMBOL), attr_string(module, symbol) },
		{ key_name(KEY_PLUS), attr_integer(module, 0) },
		{ key_name(KEY_MAX_WORD), attr_integer(module, 1) },
		{ key_name(KEY_BOUNDED_TILES), attr_unit(module) } };
	const struct attr **dim = ARENA_ARRAY(module->arena, const struct attr *, tensor->rank);
	for (int d = 0; d < tensor->rank; d++)
		dim[d] = d == axis ? attr_dictionary(module, 7, items) : attr_string(module, "");
	return attr_array(module, tensor->rank, dim);
}

int token_axis(const struct type *tensor, int64_t pitch, int64_t most)
{
	int64_t inner = 1;
	for (int d = tensor->rank - 1; d >= 0; d--) {
		if (inner == pitch && tensor->shape[d] == most)
			return d;
		inner *= tensor->shape[d];
	}
	return -1;
}

int counted_token_input(const struct op *main)
{
	const struct attr *inputs = attr_get(main, KEY_STREAM_INPUTS);
	for (int i = 0; inputs && i < inputs->count; i++)
		if (*attr_item_text(inputs->items[i].value, KEY_TOKEN_COUNT))
			return i;
	return -1;
}

static const struct attr *counted_input(const struct op *main)
{
	int number = counted_token_input(main);
	return number < 0 ? NULL : attr_get(main, KEY_STREAM_INPUTS)->items[number].value;
}

const char *token_count_symbol(const struct op *main)
{
	const struct attr *entry = counted_input(main);
	return entry ? attr_item_text(entry, KEY_TOKEN_COUNT) : NULL;
}

int64_t rows_most(const struct op *main)
{
	const struct attr *entry = counted_input(main);
	return attr_item(entry, KEY_TYPE)->type->shape[attr_item_integer(entry, KEY_AXIS, 0)];
}

bool launch_may_continue(const struct op *main)
{
	const struct attr *entry = counted_input(main);
	return entry && attr_item(entry, KEY_MORE_CHUNKS);
}

bool tokens_counted_by(const struct op *main, const char *symbol)
{
	const struct attr *inputs = attr_get(main, KEY_STREAM_INPUTS);
	bool counted = false;
	for (int i = 0; inputs && i < inputs->count; i++)
		counted |=
		        text_same(attr_item_text(inputs->items[i].value, KEY_TOKEN_COUNT), symbol);
	return counted;
}
