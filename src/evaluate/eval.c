/* Entry of the evaluator, and the walk over main at tensor and stream level: control flow, inputs,
 * launch scalars and results.  eval_hardware.c runs the hardware level. */
#include "ir/sliding_window.h"
#include "ir/launch_tokens.h"
#include "evaluate/eval_level.h"
#include <string.h>

size_t tensor_bytes(const struct type *type)
{
	return (size_t)type_elements(type) * (size_t)scalar_storage_bytes(type_scalar(type));
}

struct tensor *eval_tensor_of(const struct value *value)
{
	return value->data;
}

struct tensor *eval_new(struct evaluation *e, const struct type *type)
{
	struct tensor *tensor = ARENA_NEW(e->arena, struct tensor);
	tensor->type = type;
	tensor->data = arena_alloc(e->arena, tensor_bytes(type));
	return tensor;
}

struct tensor *eval_result(struct evaluation *e, struct op *op)
{
	return op->result[0]->data = eval_new(e, op->result[0]->type);
}

int64_t eval_integer(const struct value *value)
{
	const struct tensor *tensor = value->data;
	int64_t number;
	scalar_read(type_scalar(tensor->type), &number, tensor->data, 0, 0, 1);
	return number;
}

int64_t eval_trips(const struct evaluation *e, int64_t extent, const struct run_time_trip *trip)
{
	const int64_t *value = trip ? map_get(&e->symbols, trip->symbol) : NULL;
	INVARIANT(e->module->guard, !trip || value,
	        "run-time extent \"%s\" is no input of one integer", trip->symbol);
	return trip ? extent / trip->most * run_time_count(trip, *value) : extent;
}

bool eval_row_is_valid(const struct evaluation *e, const struct launch_tokens *rows, int64_t row)
{
	return row / rows->tile < eval_trips(e, rows->most / rows->tile, rows->tiles) &&
	        row % rows->tile < eval_trips(e, rows->tile, rows->each);
}

struct gap eval_gap(const struct evaluation *e, int64_t extent, const struct run_time_trip *trip)
{
	struct sliding_window sliding_window;
	if (!trip || !sliding_window_named(e->module, trip->symbol, &sliding_window))
		return (struct gap){ 0 };
	const int64_t *all = map_get(&e->symbols, sliding_window.symbol);
	const int64_t *value = map_get(&e->symbols, trip->symbol);
	const int64_t times = extent / trip->most;
	return (struct gap){ sliding_window_gap_start(&sliding_window, trip) * times,
		(sliding_window_extent(&sliding_window, *all) - *value) / trip->tile * times };
}

/* Sets the extents of sliding windows to those of this layer. */
static void bind_layer(struct evaluation *e, int layer)
{
	const struct attr *list = attr_get(e->module->op, KEY_STREAM_SLIDING_WINDOW);
	for (int i = 0; list && i < list->count; i++) {
		struct sliding_window sliding_window;
		const char *name = attr_item_text(list->items[i].value, KEY_NAME);
		const int64_t *all = sliding_window_named(e->module, name, &sliding_window)
		        ? map_get(&e->symbols, sliding_window.symbol)
		        : NULL;
		if (!all || layer >= sliding_window.layers)
			continue;
		int64_t *value = ARENA_NEW(e->arena, int64_t);
		*value = sliding_window_value(&sliding_window, layer, *all);
		map_set(&e->symbols, name, value);
	}
}

static bool eval_nothing(struct evaluation *e, struct op *op)
{
	(void)e;
	(void)op;
	return true;
}

static bool eval_for(struct evaluation *e, struct op *op)
{
	struct block *body = op->region[0];
	int64_t lower = eval_integer(op->operand[0]);
	int64_t upper = eval_integer(op->operand[1]);
	int64_t step = eval_integer(op->operand[2]);
	if (step <= 0)
		return diag_error(
		        e->module->diag, op->location, "a loop with step %lld", (long long)step);
	for (int i = 0; i < op->results; i++)
		body->argument[1 + i]->data = op->operand[3 + i]->data;
	for (int64_t at = lower; at < upper; at += step) {
		struct tensor *counter = eval_new(e, body->argument[0]->type);
		memcpy(counter->data, &at, (size_t)scalar_storage_bytes(counter->type));
		body->argument[0]->data = counter;
		bind_layer(e, (int)at);
		if (!eval_block(e, body))
			return false;
		for (int i = 0; i < op->results; i++)
			body->argument[1 + i]->data = body->last->operand[i]->data;
	}
	for (int i = 0; i < op->results; i++)
		op->result[i]->data = body->argument[1 + i]->data;
	return true;
}

static eval_function *const structure_functions[OP_COUNT] = {
	[OP_FOR] = eval_for,
	[OP_YIELD] = eval_nothing,
	[OP_EXTENT] = eval_nothing,
	[OP_RETURN] = eval_nothing,
	[OP_TENSOR_YIELD] = eval_nothing,
	[OP_ASSERT] = eval_nothing,
};

static eval_function *function_of(const struct evaluation *e, enum op_code code)
{
	eval_function *const *level =
	        e->module->level == LEVEL_TENSOR ? eval_tensor_functions : eval_stream_functions;
	eval_function *function =
	        structure_functions[code] ? structure_functions[code] : level[code];
	return function ? function : eval_tensor_functions[code];
}

bool eval_block(struct evaluation *e, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		eval_function *function = function_of(e, op->code);
		if (!function)
			return diag_error(e->module->diag, op->location,
			        "\"%s\" cannot be evaluated here", op_info[op->code].name);
		if (!function(e, op))
			return false;
	}
	return true;
}

const struct attr *eval_list(const struct module *module, enum attr_key key)
{
	struct op *main = module_main(module);
	const struct attr *list =
	        main && module->level != LEVEL_TENSOR ? attr_get(main, key) : NULL;
	return list && list->kind == ATTR_ARRAY ? list : NULL;
}

/* Entries with numbers of their own are constants, the last of the list. */
int eval_inputs(const struct module *module)
{
	const struct attr *list = eval_list(module, KEY_STREAM_INPUTS);
	struct op *main = module_main(module);
	int count = 0;
	if (!list)
		return main ? main->region[0]->arguments : 0;
	while (count < list->count && !attr_item(list->items[count].value, KEY_VALUE))
		count++;
	return count;
}

int eval_results(const struct module *module)
{
	const struct attr *list = eval_list(module, KEY_STREAM_OUTPUTS);
	struct op *main = module_main(module);
	if (list)
		return list->count;
	return main && main->region[0]->last ? main->region[0]->last->operands : 0;
}

static bool same_shape(const struct type *left, const struct type *right)
{
	if (left->rank != right->rank ||
	        scalar_storage_bytes(type_scalar(left)) != scalar_storage_bytes(type_scalar(right)))
		return false;
	for (int d = 0; d < left->rank; d++)
		if (left->shape[d] != right->shape[d])
			return false;
	return true;
}

static bool bind_argument(
        struct evaluation *e, struct op *main, int number, const struct tensor *input)
{
	struct value *argument = main->region[0]->argument[number];
	if (!same_shape(input->type, argument->type))
		return diag_error(e->module->diag, main->location, "input %d is a %s, not a %s",
		        number, input->type->text, argument->type->text);
	argument->data = arena_copy(e->arena, input, sizeof *input);
	return true;
}

static bool bind_constant(struct evaluation *e, struct op *main, int number)
{
	const struct attr *list = eval_list(e->module, KEY_STREAM_INPUTS);
	struct value *argument = main->region[0]->argument[number];
	const struct attr *value = list && number < list->count
	        ? attr_item(list->items[number].value, KEY_VALUE)
	        : NULL;
	argument->data = eval_constant_tensor(e, argument->type, value, main->location);
	return argument->data;
}

static const char *argument_name(const struct evaluation *e, const struct op *main, int number)
{
	const struct attr *list = eval_list(e->module, KEY_STREAM_INPUTS);
	const struct attr *name = list && number < list->count
	        ? attr_item(list->items[number].value, KEY_NAME)
	        : function_argument_attr(main, number, KEY_STREAM_NAME);
	return name && name->kind == ATTR_STRING ? name->text : NULL;
}

/* The launch scalars that run-time extents may name. */
static void bind_symbols(struct evaluation *e, const struct op *main)
{
	e->symbols = map_new(e->arena);
	for (int i = 0; i < main->region[0]->arguments; i++) {
		const struct value *argument = main->region[0]->argument[i];
		const char *name = argument_name(e, main, i);
		if (!name || type_elements(argument->type) != 1 ||
		        type_scalar(argument->type)->kind != TYPE_INTEGER)
			continue;
		int64_t *value = ARENA_NEW(e->arena, int64_t);
		*value = eval_integer(argument);
		map_set(&e->symbols, name, value);
	}
	bind_layer(e, 0);
}

/* Rows from `count` on along `axis` become 0. */
static void clear_from(const struct tensor *rows, int64_t axis, int64_t count)
{
	const struct type *type = rows->type;
	int64_t outer = 1;
	int64_t inner = scalar_storage_bytes(type_scalar(type));
	int64_t extent = type->shape[axis];
	for (int d = 0; d < type->rank; d++) {
		outer *= d < axis ? type->shape[d] : 1;
		inner *= d > axis ? type->shape[d] : 1;
	}
	if (count > extent)
		count = extent;
	if (count < 0)
		count = 0;
	for (int64_t o = 0; o < outer; o++)
		memset((char *)rows->data + (o * extent + count) * inner, 0,
		        (size_t)((extent - count) * inner));
}

/* A result of tokens is defined for the tokens of this launch; its other rows read as 0. */
static void clear_rows(struct evaluation *e, const struct op *main)
{
	const struct attr *outputs = eval_list(e->module, KEY_STREAM_OUTPUTS);
	for (int r = 0; r < e->results; r++) {
		const struct attr *entry = outputs ? outputs->items[r].value : NULL;
		const struct attr *rows = entry
		        ? attr_item(entry, KEY_TOKEN_COUNT)
		        : function_result_attr(main, r, KEY_STREAM_TOKEN_COUNT);
		const struct attr *axis = entry ? attr_item(entry, KEY_AXIS)
		                                : function_result_attr(main, r, KEY_STREAM_AXIS);
		const int64_t *count = rows ? map_get(&e->symbols, rows->text) : NULL;
		if (!count || !axis)
			continue;
		/* the data may be that of an input */
		struct tensor *result = &e->result[r];
		result->data = arena_copy(e->arena, result->data, tensor_bytes(result->type));
		clear_from(result, axis->integer, *count);
	}
}

static bool eval_dense(struct evaluation *e, int inputs, const struct tensor *input)
{
	struct op *main = module_main(e->module);
	struct block *body = main->region[0];
	for (int i = 0; i < inputs && i < body->arguments; i++)
		if (!bind_argument(e, main, i, &input[i]))
			return false;
	for (int i = inputs; i < body->arguments; i++)
		if (!bind_constant(e, main, i))
			return false;
	bind_symbols(e, main);
	if (!eval_block(e, body))
		return false;
	for (int i = 0; i < body->last->operands; i++)
		e->result[i] = *eval_tensor_of(body->last->operand[i]);
	for (int i = 0; i < e->results; i++)
		if (!e->result[i].data)
			return diag_error(
			        e->module->diag, main->location, "result %d is never stored", i);
	clear_rows(e, main);
	return true;
}

bool eval_module(struct module *module, struct arena *arena, int inputs, const struct tensor *input,
        struct tensor *result)
{
	struct evaluation e = {
		.module = module, .arena = arena, .results = eval_results(module), .result = result
	};
	struct op *main = module_main(module);
	if (!main)
		return diag_error(module->diag, NOWHERE, "the module has no main function");
	if (inputs != eval_inputs(module))
		return diag_error(module->diag, main->location, "%d inputs for a function of %d",
		        inputs, eval_inputs(module));
	memset(result, 0, sizeof *result * (size_t)e.results);
	return module->level == LEVEL_HARDWARE ? eval_hardware(&e, inputs, input)
	                                       : eval_dense(&e, inputs, input);
}
