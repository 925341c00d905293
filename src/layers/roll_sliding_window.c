/* Layers with different sliding windows in one loop: their run-time extents get a symbol that has a
 * value for each layer. */
#include "ir/sliding_window.h"
#include "predict/timing.h"
#include "layers/roll.h"

static const char *symbol_of_layers(const struct roll *roll, const char *const *name)
{
	const char *symbol = sliding_window_of_layers(roll->module, roll->layers, name);
	INVARIANT(roll->module->guard, symbol,
	        "layers with incompatible run-time extents: \"%s\" and others", name[0]);
	return symbol;
}

/* Bounds a run-time loop of the first layer for all layers. */
static void join_loop(const struct roll *roll, int position, int loop)
{
	struct arena *arena = roll->module->arena;
	struct loop *own = &roll_op(roll, 0, position)->kernel->loop[loop];
	const char **name = ARENA_ARRAY(arena, const char *, roll->layers);
	for (int layer = 0; layer < roll->layers; layer++)
		name[layer] = roll_op(roll, layer, position)->kernel->loop[loop].run_time->symbol;
	struct run_time_trip *trip = arena_copy(arena, own->run_time, sizeof *trip);
	trip->symbol = symbol_of_layers(roll, name);
	own->run_time = trip;
}

static const struct attr *dims_of(const struct op *main, const struct value *argument)
{
	if (argument->def || argument->block != main->region[0])
		return NULL;
	return function_argument_attr(main, argument->index, KEY_STREAM_DIMS);
}

static void set_dim_symbol(
        struct roll *roll, struct op *main, const struct value *argument, int d, const char *symbol)
{
	struct module *module = roll->module;
	const struct attr *dims = dims_of(main, argument);
	const struct attr **item = ARENA_ARRAY(module->arena, const struct attr *, dims->count);
	for (int i = 0; i < dims->count; i++)
		item[i] = dims->items[i].value;
	item[d] = item[d]->kind == ATTR_STRING
	        ? attr_string(module, symbol)
	        : attr_with(module, item[d], KEY_SYMBOL, attr_string(module, symbol));
	function_set_argument_attr(module, main, argument->index, KEY_STREAM_DIMS,
	        attr_array(module, dims->count, item));
}

/* Bounds the caches of a layer select by the same symbol as the loops that read them. */
static void join_dims(struct roll *roll, const struct layer_select *layer_select)
{
	struct op *main = module_main(roll->module);
	const struct attr *dims = dims_of(main, layer_select->value[0]);
	const char **name = ARENA_ARRAY(roll->module->arena, const char *, roll->layers);
	for (int d = 0; dims && d < dims->count; d++) {
		bool bound = true;
		for (int layer = 0; layer < roll->layers && bound; layer++) {
			const struct attr *own = dims_of(main, layer_select->value[layer]);
			name[layer] = own && d < own->count ? timing_dim_symbol(own->items[d].value)
			                                    : NULL;
			bound = name[layer];
		}
		for (int layer = 0; layer < roll->layers && bound; layer++)
			set_dim_symbol(roll, main, layer_select->value[layer], d,
			        symbol_of_layers(roll, name));
	}
}

void roll_sliding_window(struct roll *roll)
{
	if (!attr_get(roll->module->op, KEY_STREAM_SLIDING_WINDOW))
		return;
	for (int j = 0; j < roll->period; j++)
		for (int l = 0; l < roll_op(roll, 0, j)->kernel->loops; l++)
			if (roll_op(roll, 0, j)->kernel->loop[l].run_time)
				join_loop(roll, j, l);
	for (size_t p = 0; p < roll->layer_selects.count; p++)
		join_dims(roll, &roll->layer_selects.data[p]);
}
