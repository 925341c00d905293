/* Run-time extents of a design: which inputs they are, and their largest values. */
#include "ir/sliding_window.h"
#include "ir/launch_tokens.h"
#include "report/simulate.h"

/* Clears *symbol if a loop's trip count depends on it. */
static void find_extent(struct op *op, void *context)
{
	const char **symbol = context;
	struct run_time_trip trip;
	int64_t times;
	if (*symbol && op->code == OP_FOR && timing_run_time(op, &trip, &times) &&
	        text_same(trip.symbol, *symbol))
		*symbol = NULL;
}

/* Is the symbol the length of a dim of an input?  It is an extent even if no loop depends on it,
 * because all of that input is one tile. */
static bool names_dim(const struct module *module, const char *symbol)
{
	const struct attr *inputs = attr_get(module_main(module), KEY_STREAM_INPUTS);
	for (int i = 0; inputs && i < inputs->count; i++) {
		const struct attr *dims = attr_item(inputs->items[i].value, KEY_DIMS);
		for (int d = 0; dims && d < dims->count; d++) {
			const char *named = timing_dim_symbol(dims->items[d].value);
			if (named && text_same(sliding_window_symbol(module, named), symbol))
				return true;
		}
	}
	return false;
}

bool simulate_is_extent(const struct module *module, const char *symbol)
{
	const char *unseen = symbol;
	ir_walk(module_body(module), find_extent, &unseen);
	return !unseen || names_dim(module, symbol);
}

/* min(most, extent of dim `axis` - lead) of an input or output; `most` if it has no such dim. */
static int64_t bounded_extent(const struct attr *entry, int64_t axis, int64_t lead, int64_t most)
{
	const struct type *type = entry ? attr_item(entry, KEY_TYPE)->type : NULL;
	bool known = type && axis >= 0 && axis < type->rank && type->shape[axis] - lead < most;
	return known ? type->shape[axis] - lead : most;
}

int64_t simulate_extent_most(const struct module *module, const char *symbol)
{
	const struct attr *inputs = attr_get(module_main(module), KEY_STREAM_INPUTS);
	const struct attr *outputs = attr_get(module_main(module), KEY_STREAM_OUTPUTS);
	int64_t most = INT64_MAX;
	for (int i = 0; inputs && i < inputs->count; i++) {
		const struct attr *input = inputs->items[i].value;
		const struct attr *dims = attr_item(input, KEY_DIMS);
		if (text_same(attr_item_text(input, KEY_TOKEN_COUNT), symbol))
			most = bounded_extent(
			        input, attr_item_integer(input, KEY_AXIS, -1), 0, most);
		for (int d = 0; dims && d < dims->count; d++)
			if (dims->items[d].value->kind == ATTR_STRING &&
			        text_same(dims->items[d].value->text, symbol))
				most = bounded_extent(input, d, 0, most);
	}
	for (int i = 0; outputs && i < outputs->count; i++) {
		const struct attr *output = outputs->items[i].value;
		int64_t axis = attr_item_integer(output, KEY_AXIS, -1);
		if (text_same(attr_item_text(output, KEY_TOKEN_COUNT), symbol))
			most = bounded_extent(output, axis, 0, most);
		if (!text_same(attr_item_text(output, KEY_POSITION), symbol))
			continue;
		most = bounded_extent(attr_entry(inputs, attr_item_text(output, KEY_NAME)), axis,
		        attr_item_integer(output, KEY_LEAD, 0), most);
		/* the state may be longer than the context: padded */
		int64_t past = attr_item_integer(output, KEY_PAST, most);
		most = past < most ? past : most;
	}
	bool continues = launch_may_continue(module_main(module)) &&
	        text_same(token_count_symbol(module_main(module)), symbol);
	return continues ? most + 1 : most;
}
