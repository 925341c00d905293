/* Entries of the module attribute stream.sliding_window, and the rows that they skip. */
#include "ir/sliding_window.h"

static const struct attr *list_of(const struct op *module)
{
	const struct attr *list = attr_get(module, KEY_STREAM_SLIDING_WINDOW);
	return list && list->kind == ATTR_ARRAY ? list : NULL;
}

static bool read_entry(const struct attr *entry, struct sliding_window *to)
{
	const struct attr *rows = attr_item(entry, KEY_VISIBLE_ROWS);
	to->name = attr_item_text(entry, KEY_NAME);
	to->symbol = attr_item_text(entry, KEY_SYMBOL);
	to->tile = attr_item_integer(entry, KEY_TILE, 0);
	to->unskipped_rows = attr_item_integer(entry, KEY_PINNED_ROWS, -1);
	to->most = attr_item_integer(entry, KEY_MOST, 0);
	if (!*to->name || !*to->symbol || to->tile < 1 || to->unskipped_rows < 0 || to->most < 1 ||
	        !rows || rows->kind != ATTR_INTEGERS || rows->count < 1)
		return false;
	to->layers = rows->count;
	to->rows = rows->integers;
	return true;
}

static bool find_window(
        const struct op *module, const char *name, struct sliding_window *sliding_window)
{
	const struct attr *list = list_of(module);
	for (int i = 0; list && i < list->count; i++)
		if (read_entry(list->items[i].value, sliding_window) &&
		        text_same(sliding_window->name, name))
			return true;
	return false;
}

bool sliding_window_named(
        const struct module *module, const char *name, struct sliding_window *sliding_window)
{
	return find_window(module->op, name, sliding_window);
}

bool sliding_window_of(const struct op *op, const char *name, struct sliding_window *sliding_window)
{
	while (op->parent)
		op = op->parent->parent;
	return find_window(op, name, sliding_window);
}

static bool same(const struct sliding_window *left, const struct sliding_window *right)
{
	bool same = text_same(left->symbol, right->symbol) && left->tile == right->tile &&
	        left->unskipped_rows == right->unskipped_rows && left->most == right->most &&
	        left->layers == right->layers;
	for (int i = 0; same && i < left->layers; i++)
		same = left->rows[i] == right->rows[i];
	return same;
}

const char *sliding_window_add(struct module *module, struct sliding_window sliding_window)
{
	const struct attr *list = list_of(module->op);
	int count = list ? list->count : 0;
	const struct attr **items = ARENA_ARRAY(module->arena, const struct attr *, count + 1);
	for (int i = 0; i < count; i++) {
		struct sliding_window other;
		items[i] = list->items[i].value;
		if (read_entry(items[i], &other) && same(&other, &sliding_window))
			return other.name;
	}
	const struct op *main = module_main(module);
	const char *name = text_format(module->arena, "%s_window%d", sliding_window.symbol, count);
	for (int more = count; main && function_argument_named(main, name) >= 0;)
		name = text_format(module->arena, "%s_window%d", sliding_window.symbol, ++more);
	struct named entry[] = { { key_name(KEY_NAME), attr_string(module, name) },
		{ key_name(KEY_SYMBOL), attr_string(module, sliding_window.symbol) },
		{ key_name(KEY_TILE), attr_integer(module, sliding_window.tile) },
		{ key_name(KEY_PINNED_ROWS), attr_integer(module, sliding_window.unskipped_rows) },
		{ key_name(KEY_MOST), attr_integer(module, sliding_window.most) },
		{ key_name(KEY_VISIBLE_ROWS),
		        attr_integers(module, sliding_window.layers, sliding_window.rows) } };
	items[count] = attr_dictionary(module, sizeof entry / sizeof *entry, entry);
	attr_set(module, module->op, KEY_STREAM_SLIDING_WINDOW,
	        attr_array(module, count + 1, items));
	return name;
}

const char *sliding_window_symbol(const struct module *module, const char *name)
{
	struct sliding_window sliding_window;
	return sliding_window_named(module, name, &sliding_window) ? sliding_window.symbol : name;
}

const char *sliding_window_in_tiles(
        struct module *module, const char *name, int64_t tile, int64_t unskipped_rows)
{
	struct sliding_window sliding_window;
	if (!sliding_window_named(module, name, &sliding_window))
		return name;
	sliding_window.tile = tile;
	sliding_window.unskipped_rows = unskipped_rows;
	return sliding_window_add(module, sliding_window);
}

/* A layer whose name is the input itself has no window and sees all rows. */
const char *sliding_window_of_layers(struct module *module, int layers, const char *const *name)
{
	struct sliding_window all = { 0 };
	struct sliding_window own;
	int64_t *rows = ARENA_ARRAY(module->arena, int64_t, layers);
	bool alike = true;
	for (int i = 0; i < layers; i++) {
		rows[i] = SLIDING_WINDOW_ALL;
		alike = alike && text_same(name[i], name[0]);
		if (!sliding_window_named(module, name[i], &own))
			continue;
		bool fits = !all.symbol ||
		        (text_same(all.symbol, own.symbol) && all.tile == own.tile &&
		                all.unskipped_rows == own.unskipped_rows && all.most == own.most);
		if (own.layers != 1 || !fits)
			return NULL;
		all = own;
		rows[i] = own.rows[0];
	}
	for (int i = 0; i < layers; i++)
		if (rows[i] == SLIDING_WINDOW_ALL && all.symbol && !text_same(name[i], all.symbol))
			return NULL;
	all.layers = layers;
	all.rows = rows;
	if (alike)
		return name[0];
	return all.symbol ? sliding_window_add(module, all) : NULL;
}

int64_t sliding_window_extent(const struct sliding_window *sliding_window, int64_t value)
{
	if (value < 0)
		return 0;
	return value < sliding_window->most ? value : sliding_window->most;
}

int64_t sliding_window_rows_skipped(
        const struct sliding_window *sliding_window, int layer, int64_t value)
{
	int64_t rows = sliding_window->rows[sliding_window->layers == 1 ? 0 : layer];
	int64_t out = sliding_window_extent(sliding_window, value) - rows -
	        sliding_window->unskipped_rows;
	return rows == SLIDING_WINDOW_ALL || out < 0
	        ? 0
	        : out / sliding_window->tile * sliding_window->tile;
}

int64_t sliding_window_value(const struct sliding_window *sliding_window, int layer, int64_t value)
{
	return sliding_window_extent(sliding_window, value) -
	        sliding_window_rows_skipped(sliding_window, layer, value);
}

int64_t sliding_window_gap_start(
        const struct sliding_window *sliding_window, const struct run_time_trip *trip)
{
	return (sliding_window->unskipped_rows + trip->plus) / trip->tile;
}

double sliding_window_fraction(const struct sliding_window *sliding_window)
{
	double rows = 0;
	for (int layer = 0; layer < sliding_window->layers; layer++)
		rows += (double)sliding_window_value(sliding_window, layer, sliding_window->most);
	return rows / ((double)sliding_window->layers * (double)sliding_window->most);
}

int64_t sliding_window_rows_least(const struct sliding_window *sliding_window, int *layers)
{
	int64_t fewest = sliding_window->most;
	*layers = 0;
	for (int layer = 0; layer < sliding_window->layers; layer++) {
		int64_t rows = sliding_window_value(sliding_window, layer, sliding_window->most);
		*layers = rows < fewest ? 1 : *layers + (rows == fewest);
		fewest = rows < fewest ? rows : fewest;
	}
	return fewest;
}
