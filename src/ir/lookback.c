#include "ir/lookback.h"

static const struct attr *list_of(const struct op *module)
{
	const struct attr *list = attr_get(module, KEY_STREAM_SLIDING_WINDOW);
	return list && list->kind == ATTR_ARRAY ? list : NULL;
}

static bool read_entry(const struct attr *entry, struct lookback *to)
{
	const struct attr *rows = attr_item(entry, KEY_VISIBLE_ROWS);
	to->name = attr_item_text(entry, KEY_NAME);
	to->symbol = attr_item_text(entry, KEY_SYMBOL);
	to->tile = attr_item_integer(entry, KEY_TILE, 0);
	to->room = attr_item_integer(entry, KEY_PINNED_ROWS, -1);
	to->most = attr_item_integer(entry, KEY_MOST, 0);
	if (!*to->name || !*to->symbol || to->tile < 1 || to->room < 0 || to->most < 1 || !rows || rows->kind != ATTR_INTEGERS || rows->count < 1)
		return false;
	to->layers = rows->count;
	to->rows = rows->integers;
	return true;
}

static bool find(const struct op *module, const char *name, struct lookback *lookback)
{
	const struct attr *list = list_of(module);
	for (int i = 0; list && i < list->count; i++)
		if (read_entry(list->items[i].value, lookback) && text_same(lookback->name, name))
			return true;
	return false;
}

bool lookback_find(const struct module *module, const char *name, struct lookback *lookback)
{
	return find(module->op, name, lookback);
}

bool lookback_of(const struct op *op, const char *name, struct lookback *lookback)
{
	while (op->parent)
		op = op->parent->parent;
	return find(op, name, lookback);
}

static bool same(const struct lookback *left, const struct lookback *right)
{
	bool same = text_same(left->symbol, right->symbol) && left->tile == right->tile && left->room == right->room && left->most == right->most && left->layers == right->layers;
	for (int i = 0; same && i < left->layers; i++)
		same = left->rows[i] == right->rows[i];
	return same;
}

const char *lookback_add(struct module *module, struct lookback lookback)
{
	const struct attr *list = list_of(module->op);
	int count = list ? list->count : 0;
	const struct attr **items = ARENA_ARRAY(module->arena, const struct attr *, count + 1);
	for (int i = 0; i < count; i++) {
		struct lookback other;
		items[i] = list->items[i].value;
		if (read_entry(items[i], &other) && same(&other, &lookback))
			return other.name;
	}
	const struct op *main = module_main(module);
	const char *name = text_format(module->arena, "%s_near%d", lookback.symbol, count);
	for (int more = count; main && function_argument_named(main, name) >= 0;)
		name = text_format(module->arena, "%s_near%d", lookback.symbol, ++more);
	struct named entry[] = {{key_name(KEY_NAME), attr_string(module, name)}, {key_name(KEY_SYMBOL), attr_string(module, lookback.symbol)}, {key_name(KEY_TILE), attr_integer(module, lookback.tile)},
				{key_name(KEY_PINNED_ROWS), attr_integer(module, lookback.room)}, {key_name(KEY_MOST), attr_integer(module, lookback.most)}, {key_name(KEY_VISIBLE_ROWS), attr_integers(module, lookback.layers, lookback.rows)}};
	items[count] = attr_dictionary(module, sizeof entry / sizeof *entry, entry);
	attr_set(module, module->op, KEY_STREAM_SLIDING_WINDOW, attr_array(module, count + 1, items));
	return name;
}

const char *lookback_symbol(const struct module *module, const char *name)
{
	struct lookback lookback;
	return lookback_find(module, name, &lookback) ? lookback.symbol : name;
}

const char *lookback_in_tiles(struct module *module, const char *name, int64_t tile, int64_t room)
{
	struct lookback lookback;
	if (!lookback_find(module, name, &lookback))
		return name;
	lookback.tile = tile;
	lookback.room = room;
	return lookback_add(module, lookback);
}

/* Plain in some layers: these see all rows. */
const char *lookback_of_layers(struct module *module, int layers, const char *const *name)
{
	struct lookback all = {0}, own;
	int64_t *rows = ARENA_ARRAY(module->arena, int64_t, layers);
	bool alike = true;
	for (int i = 0; i < layers; i++) {
		rows[i] = LOOKBACK_ALL;
		alike = alike && text_same(name[i], name[0]);
		if (!lookback_find(module, name[i], &own))
			continue;
		bool fits = !all.symbol || (text_same(all.symbol, own.symbol) && all.tile == own.tile && all.room == own.room && all.most == own.most);
		if (own.layers != 1 || !fits)
			return NULL;
		all = own;
		rows[i] = own.rows[0];
	}
	for (int i = 0; i < layers; i++)
		if (rows[i] == LOOKBACK_ALL && all.symbol && !text_same(name[i], all.symbol))
			return NULL;
	all.layers = layers;
	all.rows = rows;
	return alike ? name[0] : all.symbol ? lookback_add(module, all) : NULL;
}

int64_t lookback_there(const struct lookback *lookback, int64_t value)
{
	return value < 0 ? 0 : value < lookback->most ? value : lookback->most;
}

int64_t lookback_rows_out(const struct lookback *lookback, int layer, int64_t value)
{
	int64_t rows = lookback->rows[lookback->layers == 1 ? 0 : layer], out = lookback_there(lookback, value) - rows - lookback->room;
	return rows == LOOKBACK_ALL || out < 0 ? 0 : out / lookback->tile * lookback->tile;
}

int64_t lookback_value(const struct lookback *lookback, int layer, int64_t value)
{
	return lookback_there(lookback, value) - lookback_rows_out(lookback, layer, value);
}

int64_t lookback_head(const struct lookback *lookback, const struct run_time_trip *trip)
{
	return (lookback->room + trip->plus) / trip->tile;
}

double lookback_part(const struct lookback *lookback)
{
	double rows = 0;
	for (int layer = 0; layer < lookback->layers; layer++)
		rows += (double)lookback_value(lookback, layer, lookback->most);
	return rows / ((double)lookback->layers * (double)lookback->most);
}

int64_t lookback_fewest(const struct lookback *lookback, int *layers)
{
	int64_t fewest = lookback->most;
	*layers = 0;
	for (int layer = 0; layer < lookback->layers; layer++) {
		int64_t rows = lookback_value(lookback, layer, lookback->most);
		*layers = rows < fewest ? 1 : *layers + (rows == fewest);
		fewest = rows < fewest ? rows : fewest;
	}
	return fewest;
}
