/* Inputs that are run-time extents of a design: which there are, and what they may be at most. */
#include "ir/sliding_window.h"
#include "ir/launch_tokens.h"
#include "report/simulate.h"

/* Some loop is bound by the symbol. */
static void find_extent(struct op *op, void *context)
{
	const char **symbol = context;
	struct run_time_trip trip;
	int64_t times;
	if (*symbol && op->code == OP_FOR && timing_run_time(op, &trip, &times) &&
	        text_same(trip.symbol, *symbol))
		*symbol = NULL;
}

/* An input says how long a dim of another is: even if all of it is read anyway, because it is
 * one block. */
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

/* The extent of the dim `axis` of an input or output, less `lead`; `most`: it has none. */
static int64_t extent_of(const struct attr *entry, int64_t axis, int64_t lead, int64_t most)
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
		most = text_same(attr_item_text(input, KEY_TOKEN_COUNT), symbol)
		        ? extent_of(input, attr_item_integer(input, KEY_AXIS, -1), 0, most)
		        : most;
		for (int d = 0; dims && d < dims->count; d++)
			most = dims->items[d].value->kind == ATTR_STRING &&
			                text_same(dims->items[d].value->text, symbol)
			        ? extent_of(input, d, 0, most)
			        : most;
	}
	for (int i = 0; outputs && i < outputs->count; i++) {
		const struct attr *output = outputs->items[i].value;
		int64_t axis = attr_item_integer(output, KEY_AXIS, -1);
		most = text_same(attr_item_text(output, KEY_TOKEN_COUNT), symbol)
		        ? extent_of(output, axis, 0, most)
		        : most;
		if (!text_same(attr_item_text(output, KEY_POSITION), symbol))
			continue;
		most = extent_of(attr_entry(inputs, attr_item_text(output, KEY_NAME)), axis,
		        attr_item_integer(output, KEY_LEAD, 0), most);
		/* a state may have been padded */
		int64_t past = attr_item_integer(output, KEY_PAST, most);
		most = past < most ? past : most;
	}
	return launch_may_continue(module_main(module)) &&
	                text_same(token_count_symbol(module_main(module)), symbol)
	        ? most + 1
	        : most;
}
