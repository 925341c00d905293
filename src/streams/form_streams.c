/* Tensor level to demand level: every kernel gets the loops of its schedule, every port the itensor
 * type that follows from it, memory is read and written by DMA ops.
 *
 * Before: %t = kernel k0;  kernel k1 (%t)
 * After:  %s = kernel k0;  %d = demand of %s in the type that k1 wants;  kernel k1 (%d)
 * Needs: kernels with parallelism and schedules, gathers apart. Guarantees: an op's stream
 * operands have just the types that its ports have. Numeric class: reassociating (lanes and loop
 * order fix the order of accumulation). Ends: one walk over the program. */
#include "ir/workload.h"
#include "ir/kernel_edit.h"
#include "schedule/recorded_choices.h"
#include "streams/describe_schedules.h"
#include "streams/streams_passes.h"
#include "ir/sliding_window.h"
#include "streams/stream_builder.h"
#include <string.h>

static struct value *new_argument(struct streams *s, const struct type *type)
{
	return block_add_argument(s->module, s->function->region[0], type);
}

/* An entry of stream.inputs or stream.outputs. */
static const struct attr *signature_entry(struct module *module, const struct op *function,
        int index, bool result, const struct type *type)
{
	static const enum attr_key keys[] = {
		KEY_NAME,
		KEY_ROLE,
		KEY_AXIS,
		KEY_POSITION,
		KEY_TOKEN_COUNT,
		KEY_DERIVED_FROM,
		KEY_DIMS,
		KEY_LEAD,
		KEY_PAST,
		KEY_BATCH,
		KEY_NEXT,
		KEY_STEP,
	};
	static const enum attr_key from[] = {
		KEY_STREAM_NAME,
		KEY_STREAM_ROLE,
		KEY_STREAM_AXIS,
		KEY_STREAM_POSITION,
		KEY_STREAM_TOKEN_COUNT,
		KEY_STREAM_DERIVED_FROM,
		KEY_STREAM_DIMS,
		KEY_STREAM_LEAD,
		KEY_STREAM_PAST,
		KEY_STREAM_BATCH,
		KEY_STREAM_NEXT,
		KEY_STREAM_STEP,
	};
	enum { KEYS = sizeof keys / sizeof *keys };
	struct named items[KEYS + 1];
	int count = 0;
	for (int k = 0; k < KEYS; k++) {
		const struct attr *value = result
		        ? function_result_attr(function, index, from[k])
		        : function_argument_attr(function, index, from[k]);
		if (value)
			items[count++] =
			        (struct named){ .name = key_name(keys[k]), .value = value };
	}
	items[count++] =
	        (struct named){ .name = key_name(KEY_TYPE), .value = attr_type(module, type) };
	return attr_dictionary(module, count, items);
}

/* Starts the new main: its arguments are the old ones, then the tensors that were constants. */
static void start_function(struct streams *s, struct op *old)
{
	struct module *module = s->module;
	s->function = op_new(module, OP_FUNC, old->location, 0, NULL, 0, NULL);
	block_new(module, s->function, 0);
	s->block = s->function->region[0];
	attr_set(module, s->function, KEY_SYM_NAME, attr_get(old, KEY_SYM_NAME));
	attr_set(module, s->function, KEY_STREAM_WORKLOAD, attr_get(old, KEY_STREAM_WORKLOAD));
	attr_set(module, s->function, KEY_STREAM_IMAGES, attr_get(old, KEY_STREAM_IMAGES));
	attr_set(module, s->function, KEY_STREAM_TRANSFORMATIONS, describe_schedules(module));
	attr_set(
	        module, s->function, KEY_STREAM_PRAGMA_COST, attr_get(old, KEY_STREAM_PRAGMA_COST));
	VEC(const struct attr *) inputs = { 0 };
	for (int i = 0; i < old->region[0]->arguments; i++) {
		const struct type *type = old->region[0]->argument[i]->type;
		new_argument(s, type);
		VEC_PUSH(module->arena, &inputs, signature_entry(module, old, i, false, type));
	}
	int constants = 0;
	for (struct op *op = old->region[0]->first; op; op = op->next) {
		if (!is_tensor_constant(op))
			continue;
		struct named items[] = {
			{ key_name(KEY_NAME),
			        attr_string(module,
			                text_format(module->arena, "constant%d", constants++)) },
			{ key_name(KEY_ROLE), attr_string(module, "constant") },
			{ key_name(KEY_TYPE), attr_type(module, op->result[0]->type) },
			{ key_name(KEY_VALUE), attr_get(op, KEY_VALUE) }
		};
		new_argument(s, op->result[0]->type);
		VEC_PUSH(module->arena, &inputs, attr_dictionary(module, 4, items));
	}
	attr_set(module, s->function, KEY_STREAM_INPUTS,
	        attr_array(module, (int)inputs.count, inputs.data));
}

struct gathered {
	const struct value *table;
	int64_t elements;
	int gathers;
};

/* Adds the gathers from a table. In a rolled layer each reads its table once a launch. */
static void count_gathers(const struct block *block, struct gathered *gathered)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			count_gathers(op->region[0], gathered);
		for (int j = 0; op->code == OP_GATHER && j < op->operands - 1; j++) {
			if (op->operand[j] != gathered->table)
				continue;
			gathered->elements += type_elements(stream_tensor(op->result[0]));
			gathered->gathers++;
		}
	}
}

/* Records how many elements a launch reads of tables that are only gathered from. */
static void note_gathered(struct streams *s)
{
	struct module *module = s->module;
	struct block *body = s->function->region[0];
	const struct attr *inputs = attr_get(s->function, KEY_STREAM_INPUTS);
	const struct attr **noted =
	        ARENA_ARRAY(module->arena, const struct attr *, inputs->count + 1);
	ir_count_uses(body);
	for (int i = 0; i < inputs->count; i++) {
		struct gathered found = { .table = body->argument[i] };
		count_gathers(body, &found);
		bool only = found.gathers && found.gathers == body->argument[i]->uses;
		noted[i] = only ? attr_with(module, inputs->items[i].value, KEY_GATHERED_ELEMENTS,
		                          attr_integer(module, found.elements))
		                : inputs->items[i].value;
	}
	attr_set(module, s->function, KEY_STREAM_INPUTS, attr_array(module, inputs->count, noted));
}

static void finish_function(struct streams *s, const struct op *old)
{
	struct module *module = s->module;
	struct block *body = s->function->region[0];
	op_append(body, op_new(module, OP_RETURN, old->location, 0, NULL, 0, NULL));
	const struct attr **outputs =
	        ARENA_ARRAY(module->arena, const struct attr *, s->results->operands + 1);
	for (int r = 0; r < s->results->operands; r++)
		outputs[r] = signature_entry(module, old, r, true, s->results->operand[r]->type);
	attr_set(module, s->function, KEY_STREAM_OUTPUTS,
	        attr_array(module, s->results->operands, outputs));
	const struct type **types =
	        ARENA_ARRAY(module->arena, const struct type *, body->arguments + 1);
	for (int i = 0; i < body->arguments; i++)
		types[i] = body->argument[i]->type;
	attr_set(module, s->function, KEY_FUNCTION_TYPE,
	        attr_type(module, type_function(module, body->arguments, types, 0, NULL)));
	note_gathered(s);
}

/* Stores a tensor to results of main; a row of a state also needs its position. */
static bool emit_store(struct streams *s, struct tensor_source *tensor_source,
        const struct attr *results, struct location location)
{
	struct module *module = s->module;
	int first = 0;
	while (results->integers[first] < 0)
		first++;
	first = (int)results->integers[first];
	const struct op *old = module_main(module);
	const struct attr *at = function_result_attr(old, first, KEY_STREAM_POSITION);
	/* a row's words must not exceed the state's axis */
	bool as_made = tensor_source->kind == SOURCE_STREAM && !at;
	const struct type *type = as_made
	        ? tensor_source->stream->type
	        : natural_order_to(module, tensor_source->tensor,
	                  function_result_attr(old, first, KEY_STREAM_DIMS), PORT_BITS);
	const struct attr *axis = at ? function_result_attr(old, first, KEY_STREAM_AXIS) : NULL;
	if (axis && axis->integer == tensor_source->tensor->rank - 1 && stream_lanes(type) > 1)
		type = type_regroup(module, type, 1);
	struct value *operand[2] = { demand_stream(s, tensor_source, type, 0) };
	if (as_made)
		attr_set(module, operand[0]->def, KEY_ANY_ORDER, attr_unit(module));
	int count = 1;
	int row = at ? function_argument_named(old, at->text) : -1;
	if (row >= 0) {
		struct tensor_source *position = tensor_source_of(old->region[0]->argument[row]);
		operand[count++] =
		        demand_stream(s, position, natural_order(module, position->tensor), 0);
	}
	for (int l = 0; at && l < results->count; l++)
		if (results->integers[l] < 0)
			return diag_error(module->diag, location,
			        "a state is written in some of its layers only");
	if (at && count == 1)
		return diag_error(module->diag, location,
		        "result %d is a state written at \"%s\", but no argument has that name",
		        first, at->text);
	struct op *store = op_new(module, OP_STORE, location, count, operand, 0, NULL);
	attr_set(module, store, KEY_RESULT, results);
	set_stream_tensor(module, store, tensor_source->tensor);
	op_append(s->block, store);
	return true;
}

static bool emit_results(struct streams *s, const struct op *op)
{
	for (int r = 0; r < op->operands; r++) {
		const struct op *def = op->operand[r]->def;
		if (def && def->code == OP_LAYER_EXTRACT)
			continue;
		int64_t number = r;
		if (!emit_store(s, tensor_source_of(op->operand[r]),
		            attr_integers(s->module, 1, &number), op->location))
			return false;
	}
	return true;
}

static bool emit_block(struct streams *s, struct block *old);

static struct value *index_constant(struct streams *s, int64_t number)
{
	const struct type *index = type_index(s->module);
	struct value *value = build(s->module, s->block, OP_CONSTANT, index, 0, NULL);
	attr_set(s->module, value->def, KEY_VALUE, attr_typed_integer(s->module, number, index));
	return value;
}

/* Is it a stack of which results of main store the layers' rows? */
static bool is_stored_stack(const struct op *loop, int carried)
{
	return loop_collects(loop, carried) && !loop_streams_stack(loop, carried);
}

static int64_t constant_of(const struct value *value)
{
	const struct attr *number = value->def ? attr_get(value->def, KEY_VALUE) : NULL;
	return number ? number->integer : 0;
}

/* The stream that a loop carries: it has exactly this type inside and outside the loop, not another
 * type with the same words. */
static struct value *demand_carried(
        struct streams *s, const struct tensor_source *tensor_source, const struct type *type)
{
	struct value *words = demand_stream(s, tensor_source, type, 0);
	if (words->def->code == OP_CONVERT)
		attr_set(s->module, words->def, KEY_LOOP_CARRIED, attr_unit(s->module));
	return words;
}

static struct value *emit_empty_stack(
        struct streams *s, const struct type *tensor, const struct type *type)
{
	struct value *value = build(s->module, s->block, OP_EMPTY_STACK, type, 0, NULL);
	set_stream_tensor(s->module, value->def, tensor);
	return value;
}

/* The rows of a stack one after the other, each in the order of `row`. */
static const struct type *stack_stream(
        struct module *module, const struct type *row, int64_t layers)
{
	const struct itensor *from = row->itensor;
	struct arena *arena = module->arena;
	int dims = from->dims + 1;
	int results = from->map.results + 1;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, dims);
	int64_t *step = ARENA_ARRAY(arena, int64_t, dims);
	int64_t *map = affine_rows(arena, dims, results);
	trip[0] = layers;
	step[0] = map[0] = 1;
	memcpy(trip + 1, from->trip, sizeof *trip * (size_t)from->dims);
	memcpy(step + 1, from->step, sizeof *step * (size_t)from->dims);
	for (int r = 0; r < from->map.results; r++) {
		int64_t *to = map + (r + 1) * (dims + 1);
		for (int i = 0; i < from->dims; i++)
			to[i + 1] = affine_at(from->map, r, i);
		to[dims] = affine_constant(from->map, r);
	}
	const struct type *tile = row->element;
	if (tile->kind == TYPE_VECTOR) {
		int64_t *shape = ARENA_ARRAY(arena, int64_t, results);
		shape[0] = 1;
		memcpy(shape + 1, tile->shape, sizeof *shape * (size_t)tile->rank);
		tile = type_shaped(module, TYPE_VECTOR, results, shape, tile->element);
	}
	return type_canonical(module, tile,
	        &(struct itensor){
	                .dims = dims, .trip = trip, .step = step, .map = { dims, results, map } });
}

/* The row of a stack from outside, in row-major order: each layer takes its words. */
static bool emit_layer_row(struct streams *s, const struct op *op)
{
	struct module *module = s->module;
	struct block *body = s->block;
	struct value *layer = s->layer;
	const struct tensor_source *stack = tensor_source_of(op->operand[1]);
	const struct type *tensor = op->result[0]->type;
	const struct type *row = natural_order(module, tensor);
	int64_t lanes = stack->kind == SOURCE_STREAM ? stream_lanes(stack->stream->type)
	                                             : stream_lanes(row);
	const struct type *narrow =
	        lanes < stream_lanes(row) ? type_regroup(module, row, lanes) : NULL;
	row = narrow ? narrow : row;
	struct value *operand[2] = { layer };
	s->block = s->outside;
	s->layer = NULL;
	operand[1] = demand_stream(
	        s, stack, stack_stream(module, row, op->operand[1]->type->shape[0]), 0);
	s->block = body;
	s->layer = layer;
	append_producer(s, op, op_new(module, OP_LAYER_ROW, op->location, 2, operand, 1, &row));
	return true;
}

/* Collects the rows of all layers in a stream, which goes on after the loop. */
static bool emit_streamed_row(struct streams *s, const struct op *op)
{
	struct module *module = s->module;
	struct tensor_source *from = tensor_source_of(op->operand[0]);
	const struct type *tensor = op->operand[0]->type;
	const struct type *row = natural_order(module, tensor);
	if (from->kind == SOURCE_STREAM && !from->stream->type->itensor->run_time &&
	        from->stream->type->itensor->map.results == tensor->rank)
		row = from->stream->type;
	const struct type *type = stack_stream(module, row, op->result[0]->type->shape[0]);
	struct value *stack = tensor_source_of(op->operand[1])->stream;
	struct value *operand[3] = { demand_carried(s, from, row), stack, s->layer };
	stack->type = type;
	append_producer(s, op, op_new(module, OP_INSERT_LAYER, op->location, 3, operand, 1, &type));
	return true;
}

/* A rolled layer while it is made. */
struct carried_streams {
	int count;
	int *place; /* [count] which of the values that the old loop carries is the stream */
	/* [count] its type, and what a layer yields */
	const struct type **type;
	struct value **yield;
};

/* The carried tensors that are streams: a stack that results of main store is stored layer by
 * layer instead. */
static struct carried_streams begin_carried(
        struct streams *s, const struct op *old, struct block *body)
{
	struct arena *arena = s->module->arena;
	int carried = old->operands - 3;
	struct carried_streams streams = { .place = ARENA_ARRAY(arena, int, carried + 1),
		.type = ARENA_ARRAY(arena, const struct type *, carried + 1),
		.yield = ARENA_ARRAY(arena, struct value *, carried + 1) };
	for (int c = 0; c < carried; c++) {
		if (is_stored_stack(old, c))
			continue;
		struct value *argument = old->region[0]->argument[c + 1];
		struct tensor_source *tensor_source =
		        new_tensor_source(s->module, argument, SOURCE_STREAM);
		tensor_source->stream = block_add_argument(
		        s->module, body, natural_order(s->module, argument->type));
		streams.place[streams.count++] = c;
	}
	return streams;
}

/* The type of what a layer produces is that of what the next one reads. */
static void yield_carried(struct streams *s, const struct op *old, struct carried_streams *streams)
{
	struct block *body = s->block;
	for (int i = 0; i < streams->count; i++) {
		struct tensor_source *out =
		        tensor_source_of(old->region[0]->last->operand[streams->place[i]]);
		const struct type *type = out->kind == SOURCE_STREAM
		        ? out->stream->type
		        : natural_order(s->module, out->tensor);
		bool stack = loop_streams_stack(old, streams->place[i]);
		streams->yield[i] = stack ? out->stream : demand_carried(s, out, type);
		body->argument[i + 1]->type = streams->type[i] = type;
	}
	op_append(body,
	        op_new(s->module, OP_YIELD, old->location, streams->count, streams->yield, 0,
	                NULL));
}

/* Appends the loop around its body, whose results are the carried streams. */
static void append_loop(struct streams *s, const struct op *old,
        const struct carried_streams *streams, struct value **operand, struct block *body)
{
	struct module *module = s->module;
	for (int i = 0; i < streams->count; i++) {
		int place = streams->place[i];
		operand[3 + i] = loop_streams_stack(old, place)
		        ? emit_empty_stack(s, old->result[place]->type, streams->type[i])
		        : demand_carried(
		                  s, tensor_source_of(old->operand[3 + place]), streams->type[i]);
	}
	struct op *loop = op_new(module, OP_FOR, old->location, 3 + streams->count, operand,
	        streams->count, streams->type);
	loop->region[0] = body;
	body->parent = loop;
	op_append(s->block, loop);
	for (int i = 0; i < streams->count; i++)
		new_tensor_source(module, old->result[streams->place[i]], SOURCE_STREAM)->stream =
		        loop->result[i];
	attr_set(module, loop, KEY_TENSOR,
	        attr_type(module,
	                streams->count ? old->result[streams->place[0]]->type
	                               : type_index(module)));
}

static bool emit_loop(struct streams *s, struct op *old)
{
	struct module *module = s->module;
	struct block *outside = s->block;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, old->operands);
	for (int i = 0; i < 3; i++)
		operand[i] = index_constant(s, constant_of(old->operand[i]));
	struct op *unsized = op_new(module, OP_FOR, old->location, 0, NULL, 0, NULL);
	struct block *body = block_new(module, unsized, 0);
	s->block = body;
	s->outside = outside;
	s->layer = block_add_argument(module, body, type_index(module));
	struct carried_streams streams = begin_carried(s, old, body);
	if (!emit_block(s, old->region[0]))
		return false;
	yield_carried(s, old, &streams);
	s->block = outside;
	s->layer = NULL;
	append_loop(s, old, &streams, operand, body);
	return true;
}

static bool emit_layer_result(struct streams *s, const struct op *op)
{
	const struct value *stack = op->operand[1];
	const struct op *loop = stack->block ? stack->block->parent : NULL;
	INVARIANT(s->module->guard, loop && loop->code == OP_FOR,
	        "stream.insert_layer into something that no layer carries");
	for (int rows = 0; rows < 2; rows++) {
		const struct attr *results;
		for (int skip = 0;
		        (results = stack_results(s->module, loop, stack->index - 1, rows, skip));
		        skip++)
			if (!emit_store(s, tensor_source_of(op->operand[0]), results, op->location))
				return false;
	}
	return true;
}

static bool emit_op(struct streams *s, struct op *op)
{
	if (op->code == OP_KERNEL)
		return kernel_is_gather(op) ? emit_gather(s, op) : emit_kernel(s, op);
	if (op->code == OP_CONTRACT)
		return emit_contract(s, op);
	if (op->code == OP_PAD_TOKENS)
		return emit_pad_tokens(s, op);
	if (op->code == OP_SEQUENTIAL) {
		emit_sequential(s, op);
		return true;
	}
	if (op->code == OP_FOR)
		return emit_loop(s, op);
	if (op->code == OP_LAYER_ROW)
		return emit_layer_row(s, op);
	if (op->code == OP_INSERT_LAYER)
		return loop_streams_stack(op->parent->parent, op->operand[1]->index - 1)
		        ? emit_streamed_row(s, op)
		        : emit_layer_result(s, op);
	if (op->code == OP_RETURN)
		return emit_results(s, op);
	bool known = op->code == OP_CONSTANT || op->code == OP_LAYER_SELECT ||
	        op->code == OP_LAYER_EXTRACT || op->code == OP_TENSOR_EMPTY || op->code == OP_YIELD;
	INVARIANT(s->module->guard, known, "%s at tensor level after folding",
	        op_info[op->code].name);
	return true;
}

static bool emit_block(struct streams *s, struct block *old)
{
	for (struct op *op = old->first; op; op = op->next)
		if (!emit_op(s, op))
			return false;
	return true;
}

/* Reads an input that bounds loops, once per launch. */
static void emit_extent(struct streams *s, const struct op *old, const char *symbol,
        struct location location, struct map *done)
{
	if (map_get(done, symbol))
		return;
	map_set(done, symbol, s);
	struct tensor_source *tensor_source =
	        tensor_source_of(old->region[0]->argument[function_argument_named(old, symbol)]);
	struct value *words =
	        demand_stream(s, tensor_source, natural_order(s->module, tensor_source->tensor), 0);
	struct op *extent = op_new(s->module, OP_EXTENT, location, 1, &words, 0, NULL);
	attr_set(s->module, extent, KEY_NAME, attr_string(s->module, symbol));
	op_append(s->block, extent);
}

static void emit_extents(
        struct streams *s, const struct op *old, const struct block *block, struct map *done)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			emit_extents(s, old, op->region[0], done);
		for (int l = 0; op->code == OP_KERNEL && l < op->kernel->loops; l++)
			if (op->kernel->loop[l].run_time)
				emit_extent(s, old,
				        sliding_window_symbol(
				                s->module, op->kernel->loop[l].run_time->symbol),
				        op->location, done);
	}
}

/* Reads the inputs that say how many rows of a result are stored in its state. */
static void emit_token_counts(struct streams *s, const struct op *old, struct map *done)
{
	for (int r = 0; r < s->results->operands; r++) {
		const struct attr *rows = function_result_attr(old, r, KEY_STREAM_TOKEN_COUNT);
		if (rows)
			emit_extent(s, old, rows->text, s->results->location, done);
	}
}

bool form_streams(struct pass_context *context, struct module *module)
{
	struct op *old = module_main(module);
	struct block *body = old->region[0];
	struct streams s = { .context = context, .module = module, .results = body->last };
	if (!kernels_have_parallelism(module) || !kernels_have_schedules(module))
		return false;
	start_function(&s, old);
	find_tensor_sources(module, s.block);
	struct map extents = map_new(module->arena);
	emit_extents(&s, old, body, &extents);
	emit_token_counts(&s, old, &extents);
	mark_kv_partitions(&s, old);
	if (!emit_block(&s, body))
		return false;
	finish_function(&s, old);
	op_insert_before(old, s.function);
	op_remove(old);
	module->level = LEVEL_DEMAND;
	return true;
}
