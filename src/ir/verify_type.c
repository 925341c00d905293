/* Checks types of values, and the operand types of each op against its result types. */
#include "ir/contract.h"
#include "ir/dot.h"
#include "ir/verify.h"
#include <inttypes.h>
#include <string.h>

/* Layers or steps that a rolled loop may have. */
#define STEPS_MOST (1 << 24)

static bool is_scalar(const struct type *type)
{
	return type->kind == TYPE_INDEX || type->kind == TYPE_INTEGER || type_is_real(type);
}

static bool is_word(const struct type *type)
{
	return is_scalar(type) ||
	        (type->kind == TYPE_VECTOR && is_scalar(type->element) && type_elements(type) > 0);
}

/* NULL: nothing is wrong. */
static const char *itensor_error(const struct verifier *verifier, const struct type *type)
{
	struct arena *arena = verifier->module->arena;
	const struct itensor *order = type->itensor;
	const char *fault = itensor_fault(arena, type);
	for (int i = 0; !fault && order->run_time && i < order->dims; i++)
		if (order->run_time[i] && !verify_symbol(verifier, order->run_time[i]->symbol))
			return text_format(arena,
			        "trip count %d runs up to \"%s\", which is no input of one integer",
			        i, order->run_time[i]->symbol);
	return fault;
}

static const char *channel_error(const struct type *type)
{
	if (type->depth <= 0)
		return "the depth is not positive";
	if (type->kind == TYPE_FIFO)
		return is_word(type->element) ? NULL : "the word is neither a scalar nor a vector";
	bool block = type->element->kind == TYPE_MEMREF && is_word(type->element->element) &&
	        type_elements(type->element) > 0;
	return block ? NULL : "the block is not a memref of known extents";
}

static const char *type_error(const struct verifier *verifier, const struct type *type)
{
	if (type->kind == TYPE_ITENSOR)
		return itensor_error(verifier, type);
	if (type->kind == TYPE_FIFO || type->kind == TYPE_BLOCKS)
		return channel_error(type);
	if (type->element && type_bits(type) == INT64_MAX)
		return "its size overflows";
	return NULL;
}

static void check_type(struct verifier *verifier, const struct op *op, const struct value *value)
{
	const char *error = type_error(verifier, value->type);
	if (error)
		verify_fail(verifier, op, "%s: %s", value->type->text, error);
}

void verify_types(struct verifier *verifier, const struct op *op)
{
	for (int i = 0; i < op->results; i++)
		check_type(verifier, op, op->result[i]);
	for (int r = 0; r < 2; r++)
		for (int i = 0; op->region[r] && i < op->region[r]->arguments; i++)
			check_type(verifier, op, op->region[r]->argument[i]);
}

static const struct type *operand_type(const struct op *op, int index)
{
	return op->operand[index]->type;
}

static void wrong_types(struct verifier *verifier, const struct op *op, const char *expected)
{
	verify_fail(verifier, op, "expected are %s", expected);
}

static void check_scalar(struct verifier *verifier, const struct op *op)
{
	const struct type *operand[3];
	for (int i = 0; i < op->operands && i < 3; i++)
		operand[i] = operand_type(op, i);
	const char *error = scalar_type_error(op->code, operand, op->result[0]->type);
	if (error)
		verify_fail(verifier, op, "%s", error);
	int64_t most = (op->code == OP_CMPF ? FLOAT_PREDICATES : INTEGER_PREDICATES) - 1;
	int64_t predicate = attr_integer_or(op, KEY_PREDICATE, -1);
	if ((op->code == OP_CMPF || op->code == OP_CMPI) && (predicate < 0 || predicate > most))
		verify_fail(verifier, op, "the predicate is not one of 0 to %" PRId64, most);
}

static void check_constant(struct verifier *verifier, const struct op *op)
{
	const struct attr *value = attr_get(op, KEY_VALUE);
	bool number = value &&
	        (value->kind == ATTR_BOOL || value->kind == ATTR_INTEGER ||
	                value->kind == ATTR_FLOAT || value->kind == ATTR_DENSE);
	if (!number || value->type != op->result[0]->type)
		verify_fail(verifier, op, "the value is not of the result's type");
}

static bool has_types(
        const struct type *function, bool inputs, int count, struct value *const *value)
{
	const struct type *const *type = inputs ? function->input : function->output;
	if (count != (inputs ? function->inputs : function->outputs))
		return false;
	for (int i = 0; i < count; i++)
		if (value[i]->type != type[i])
			return false;
	return true;
}

static void check_return(struct verifier *verifier, const struct op *op)
{
	const struct op *function = op->parent->parent;
	const struct attr *type =
	        function->code == OP_FUNC ? attr_get(function, KEY_FUNCTION_TYPE) : NULL;
	if (!type || !has_types(type->type, false, op->operands, op->operand))
		verify_fail(verifier, op, "the types are not those of the function's results");
}

static void check_call(struct verifier *verifier, const struct op *op)
{
	const char *name = attr_text_or(op, KEY_CALLEE, "");
	const struct op *callee = verifier->called
	        ? module_find_after(verifier->module, verifier->called, name)
	        : module_find(verifier->module, name);
	verifier->called = callee;
	if (!callee)
		verify_fail(verifier, op, "there is no function '%s'", name);
	else if (!has_types(attr_get(callee, KEY_FUNCTION_TYPE)->type, true, op->operands,
	                 op->operand))
		verify_fail(verifier, op, "the types are not those of the arguments of '%s': %s",
		        name, attr_get(callee, KEY_FUNCTION_TYPE)->type->text);
}

/* Loop-carried values: operands from the fourth on, results, block arguments from the second on,
 * and what the body yields. */
/* Layers or steps of a rolled loop: a bound that runs to the largest integer stands for a condition
 * that the loop lost. */
static bool runs_too_often(const struct op *op, int64_t *trips)
{
	int64_t bound[3];
	for (int i = 0; i < 3; i++) {
		const struct op *from = op->operand[i]->def;
		const struct attr *number =
		        from && from->code == OP_CONSTANT ? attr_get(from, KEY_VALUE) : NULL;
		if (!number || number->kind != ATTR_INTEGER)
			return false;
		bound[i] = number->integer;
	}
	if (bound[2] < 1 || __builtin_sub_overflow(bound[1], bound[0], trips))
		return false;
	*trips /= bound[2];
	return op->results && *trips > STEPS_MOST;
}

static void check_for(struct verifier *verifier, const struct op *op)
{
	int64_t trips;
	if (runs_too_often(op, &trips)) {
		verify_fail(verifier, op, "it runs %lld times, and %d are accepted",
		        (long long)trips, STEPS_MOST);
		return;
	}
	const struct block *body = op->region[0];
	const struct op *yield = body->last;
	int carried = op->results;
	if (op->operands != 3 + carried || body->arguments != 1 + carried ||
	        yield->operands != carried) {
		verify_fail(verifier, op, "the carried values differ in number");
		return;
	}
	const struct type *counter = body->argument[0]->type;
	bool same = counter->kind == TYPE_INDEX || counter->kind == TYPE_INTEGER;
	for (int i = 0; i < 3; i++)
		same = same && operand_type(op, i) == counter;
	for (int i = 0; i < carried; i++) {
		const struct type *type = op->result[i]->type;
		same = same && operand_type(op, 3 + i) == type &&
		        body->argument[1 + i]->type == type && yield->operand[i]->type == type;
	}
	if (!same)
		verify_fail(
		        verifier, op, "the counter's types or the carried values' types differ");
}

/* The dim that a map result equals, without factor or offset; -1 if it has another form. */
static int counter_of(struct affine_map map, int result)
{
	int counter = -1;
	int terms = affine_constant(map, result) != 0;
	for (int d = 0; d < map.dims; d++)
		if (affine_at(map, result, d)) {
			counter = affine_at(map, result, d) == 1 ? d : -1;
			terms++;
		}
	return terms == 1 ? counter : -1;
}

/* Minimum and maximum of a map result. false: the extent of a counter is unknown here. */
static bool range_of(
        struct affine_map map, int result, const int64_t *extent, int64_t *low, int64_t *high)
{
	*low = *high = affine_constant(map, result);
	for (int d = 0; d < map.dims; d++) {
		int64_t end = affine_at(map, result, d) * (extent[d] - 1);
		if (affine_at(map, result, d) && extent[d] < 1)
			return false;
		*(end < 0 ? low : high) += end;
	}
	return true;
}

/* Checks that windows, whose maps are sums of counters, stay inside their operands: negative
 * strides and dilations may not. */
static void check_windows(struct verifier *verifier, const struct op *op, const struct attr *maps)
{
	int dims = maps->count ? maps->items[0].value->map.dims : 0;
	int64_t *extent = ARENA_ARRAY(verifier->module->arena, int64_t, dims + 1);
	int64_t low;
	int64_t high;
	for (int i = 0; i < op->operands; i++)
		for (int r = 0; operand_type(op, i)->kind == TYPE_TENSOR &&
		        r < maps->items[i].value->map.results;
		        r++) {
			int counter = counter_of(maps->items[i].value->map, r);
			if (counter >= 0)
				extent[counter] = operand_type(op, i)->shape[r];
		}
	for (int i = 0; i < op->operands; i++)
		for (int r = 0; operand_type(op, i)->kind == TYPE_TENSOR &&
		        r < maps->items[i].value->map.results;
		        r++) {
			int64_t has = operand_type(op, i)->shape[r];
			if (!range_of(maps->items[i].value->map, r, extent, &low, &high) ||
			        (low >= 0 && high < has))
				continue;
			verify_fail(verifier, op,
			        "operand %d is read from %lld to %lld in dim %d, which has %lld", i,
			        (long long)low, (long long)high, r, (long long)has);
			diag_note(verifier->module->diag,
			        "accepted are strides, dilations and extents with which it stays "
			        "inside");
			return;
		}
}

static void check_generic(struct verifier *verifier, const struct op *op)
{
	const struct attr *maps = attr_get(op, KEY_INDEXING_MAPS);
	const struct block *body = op->region[0];
	if (!maps || maps->kind != ATTR_ARRAY || maps->count != op->operands ||
	        body->arguments != op->operands) {
		verify_fail(verifier, op, "there is not one map and one argument for each operand");
		return;
	}
	for (int i = 0; i < op->operands; i++)
		if (maps->items[i].value->kind != ATTR_MAP ||
		        body->argument[i]->type != type_scalar(operand_type(op, i)))
			verify_fail(
			        verifier, op, "operand %d does not fit its map or its argument", i);
	if (!verifier->failed)
		check_windows(verifier, op, maps);
}

static void check_layer_select(struct verifier *verifier, const struct op *op)
{
	bool same = op->operands > 1 && operand_type(op, 0)->kind == TYPE_INDEX;
	for (int i = 1; i < op->operands; i++)
		same = same && operand_type(op, i) == op->result[0]->type;
	if (!same)
		wrong_types(verifier, op, "a layer number and tensors of the result's type");
}

static void check_contract(struct verifier *verifier, const struct op *op)
{
	struct contract contract;
	if (!contract_of(op, &contract))
		wrong_types(verifier, op,
		        "groups of i8 for each token, their f32 scales, weights of 4 to 8 bits and "
		        "their f16 scales, maybe zero points, for as many f32 sums");
	else if (contract.token_symbol && !verify_symbol(verifier, contract.token_symbol))
		verify_fail(verifier, op, "the attribute `rows` names no input of one integer");
}

static void check_pad_tokens(struct verifier *verifier, const struct op *op)
{
	const struct type *from = operand_type(op, 0);
	const struct type *to = op->result[0]->type;
	const char *rows = attr_text_or(op, KEY_TOKEN_COUNT, NULL);
	if (from->kind == TYPE_ITENSOR && to->kind == TYPE_ITENSOR) {
		if (stream_lanes(from) != stream_lanes(to) ||
		        itensor_tiles(from->itensor) != itensor_tiles(to->itensor) ||
		        (!from->itensor->run_time && !to->itensor->run_time))
			wrong_types(
			        verifier, op, "a stream of the valid tokens and one of all tokens");
		return;
	}
	int64_t axis = attr_integer_or(op, KEY_AXIS, -1);
	if (from != to || from->kind != TYPE_TENSOR || axis < 0 || axis >= from->rank)
		wrong_types(verifier, op, "a tensor with the dim `axis`, and the same");
	else if (!rows || !verify_symbol(verifier, rows))
		verify_fail(verifier, op, "the attribute `rows` names no input of one integer");
}

static bool is_stack(const struct type *stack, const struct type *row)
{
	if (stack->kind != TYPE_TENSOR || row->kind != TYPE_TENSOR ||
	        stack->rank != row->rank + 1 || stack->element != row->element)
		return false;
	for (int i = 0; i < row->rank; i++)
		if (stack->shape[i + 1] != row->shape[i])
			return false;
	return true;
}

/* Does the stream of a stack send the words of a row for every layer? */
static bool is_stack_stream(const struct type *stack, const struct type *row)
{
	return stack->kind == TYPE_ITENSOR && row->kind == TYPE_ITENSOR &&
	        stream_lanes(stack) == stream_lanes(row) && !row->itensor->run_time &&
	        itensor_tiles(stack->itensor) % itensor_tiles(row->itensor) == 0;
}

static void check_layer_row(struct verifier *verifier, const struct op *op)
{
	const struct type *stack = operand_type(op, 1);
	const struct type *row = op->result[0]->type;
	if (operand_type(op, 0)->kind != TYPE_INDEX ||
	        (!is_stack(stack, row) && !is_stack_stream(stack, row)))
		wrong_types(verifier, op, "a layer number and a stack, for its row");
}

static void check_insert_layer(struct verifier *verifier, const struct op *op)
{
	const struct type *stack = op->result[0]->type;
	const struct type *row = operand_type(op, 0);
	if (operand_type(op, 1) != stack || operand_type(op, 2)->kind != TYPE_INDEX ||
	        (!is_stack(stack, row) && !is_stack_stream(stack, row)))
		wrong_types(verifier, op, "a row, a stack of such rows and a layer number");
}

static void check_layer_extract(struct verifier *verifier, const struct op *op)
{
	const struct type *stack = operand_type(op, 0);
	int64_t index = attr_integer_or(op, KEY_INDEX, -1);
	if (!is_stack(stack, op->result[0]->type))
		wrong_types(verifier, op, "a stack and its row");
	else if (index < 0 || index >= stack->shape[0])
		verify_fail(
		        verifier, op, "the index is not one of 0 to %" PRId64, stack->shape[0] - 1);
}

static void check_pop(struct verifier *verifier, const struct op *op)
{
	const struct type *when = operand_type(op, 0);
	const struct type *fifo = operand_type(op, 1);
	if (fifo->kind != TYPE_FIFO || fifo->element != op->result[0]->type ||
	        when->kind != TYPE_INTEGER || when->width != 1)
		wrong_types(verifier, op, "a flag, a FIFO and its word");
}

static void check_push(struct verifier *verifier, const struct op *op)
{
	const struct type *when = operand_type(op, 0);
	const struct type *fifo = operand_type(op, 2);
	if (fifo->kind != TYPE_FIFO || fifo->element != operand_type(op, 1) ||
	        when->kind != TYPE_INTEGER || when->width != 1)
		wrong_types(verifier, op, "a flag, a word and a FIFO of such words");
}

static void check_acquire(struct verifier *verifier, const struct op *op)
{
	const struct type *blocks = operand_type(op, 0);
	const char *side = attr_text_or(op, KEY_SIDE, "");
	if (blocks->kind != TYPE_BLOCKS || blocks->element != op->result[0]->type)
		wrong_types(verifier, op, "a channel of blocks and its block");
	if (!text_same(side, "read") && !text_same(side, "write"))
		verify_fail(verifier, op, "the side '%s' is neither 'read' nor 'write'", side);
}

static void check_release(struct verifier *verifier, const struct op *op)
{
	const struct type *blocks = operand_type(op, 1);
	if (blocks->kind != TYPE_BLOCKS || blocks->element != operand_type(op, 0))
		wrong_types(verifier, op, "a block and the channel it belongs to");
}

static void check_tree(struct verifier *verifier, const struct op *op)
{
	const struct type *word = operand_type(op, 0);
	const char *kind = attr_text_or(op, KEY_KIND, "");
	enum op_code code = op_code_of(kind, strlen(kind));
	if (word->kind != TYPE_VECTOR || word->element != op->result[0]->type)
		wrong_types(verifier, op, "a word and its element");
	else if (!(op_info[code].levels & LEVEL_BODY) || op_info[code].operands != 2)
		verify_fail(verifier, op, "'%s' is not an operation of two numbers", kind);
}

static void check_dot(struct verifier *verifier, const struct op *op)
{
	struct dot dot;
	if (!dot_of(op, &dot))
		wrong_types(verifier, op,
		        "one or two words of integers (`input_words`: how many), one or two more "
		        "of as many lanes, and an i32 for each pair; the products of two fit one "
		        "multiplier side by side; or, with `columns`, a word and one of so many "
		        "times its lanes, and a word of so many i32");
}

static int64_t lanes(const struct type *type)
{
	return is_word(type) ? type_elements(type) : 0;
}

static void check_join(struct verifier *verifier, const struct op *op)
{
	const struct type *result = op->result[0]->type;
	int64_t total = 0;
	bool same = op->operands > 0;
	for (int i = 0; i < op->operands; i++) {
		same = same && lanes(operand_type(op, i)) &&
		        operand_type(op, i) == operand_type(op, 0) &&
		        type_scalar(operand_type(op, i)) == type_scalar(result);
		total += lanes(operand_type(op, i));
	}
	if (!same || total != lanes(result))
		wrong_types(verifier, op, "words of one type that fill the result");
}

static void check_split(struct verifier *verifier, const struct op *op)
{
	const struct type *word = operand_type(op, 0);
	const struct type *result = op->result[0]->type;
	bool divides = lanes(result) && lanes(word) % lanes(result) == 0;
	if (!lanes(word) || !divides || type_scalar(word) != type_scalar(result) ||
	        operand_type(op, 1)->kind != TYPE_INDEX)
		wrong_types(verifier, op,
		        "a word and a part number; the result's lanes divide the word's");
}

static bool indexes(const struct op *op, int first, const struct type *array)
{
	if (array->kind != TYPE_MEMREF || op->operands != first + array->rank)
		return false;
	for (int i = first; i < op->operands; i++)
		if (operand_type(op, i)->kind != TYPE_INDEX)
			return false;
	return true;
}

static void check_load(struct verifier *verifier, const struct op *op)
{
	if (op->operands < 1 || !indexes(op, 1, operand_type(op, 0)) ||
	        operand_type(op, 0)->element != op->result[0]->type)
		wrong_types(
		        verifier, op, "an array, an index for each of its dims, and its element");
}

static void check_store(struct verifier *verifier, const struct op *op)
{
	if (op->operands < 2 || !indexes(op, 2, operand_type(op, 1)) ||
	        operand_type(op, 1)->element != operand_type(op, 0))
		wrong_types(verifier, op,
		        "a value, an array of such values and an index for each of its dims");
}

static void check_write(struct verifier *verifier, const struct op *op)
{
	bool fits = op->operands >= 3 && indexes(op, 3, operand_type(op, 2)) &&
	        operand_type(op, 2)->element == operand_type(op, 1);
	if (!fits || operand_type(op, 0)->kind != TYPE_INTEGER || operand_type(op, 0)->width != 1)
		wrong_types(verifier, op,
		        "a flag, a word, a memory of such words and an index for each of its dims");
}

static void check_alloca(struct verifier *verifier, const struct op *op)
{
	const struct type *type = op->result[0]->type;
	if (type->kind != TYPE_MEMREF || type_elements(type) <= 0)
		wrong_types(verifier, op, "an array of known extents");
}

static void check_apply(struct verifier *verifier, const struct op *op)
{
	const struct attr *map = attr_get(op, KEY_MAP);
	bool right = map && map->kind == ATTR_MAP && map->map.results == 1 &&
	        map->map.dims == op->operands && op->result[0]->type->kind == TYPE_INDEX;
	for (int i = 0; i < op->operands; i++)
		right = right && operand_type(op, i)->kind == TYPE_INDEX;
	if (!right)
		wrong_types(
		        verifier, op, "a map with one result and one index for each of its dims");
}

static void check_broadcast(struct verifier *verifier, const struct op *op)
{
	const struct type *word = op->result[0]->type;
	if (word->kind != TYPE_VECTOR || word->element != operand_type(op, 0))
		wrong_types(verifier, op, "a scalar and a word of such scalars");
}

static bool is_lane(const struct type *word, const struct type *element, const struct type *number)
{
	return word->kind == TYPE_VECTOR && word->element == element &&
	        (number->kind == TYPE_INDEX || number->kind == TYPE_INTEGER);
}

static void check_lane(struct verifier *verifier, const struct op *op)
{
	if (!is_lane(operand_type(op, 0), op->result[0]->type, operand_type(op, 1)))
		wrong_types(verifier, op, "a word, a lane number and the word's element");
}

static void check_set_lane(struct verifier *verifier, const struct op *op)
{
	if (operand_type(op, 1) != op->result[0]->type ||
	        !is_lane(operand_type(op, 1), operand_type(op, 0), operand_type(op, 2)))
		wrong_types(verifier, op, "an element, a word of such elements and a lane number");
}

void verify_op_types(struct verifier *verifier, const struct op *op)
{
	static void (*const check[OP_COUNT])(struct verifier *, const struct op *) = {
		[OP_CONSTANT] = check_constant,
		[OP_RETURN] = check_return,
		[OP_CALL] = check_call,
		[OP_FOR] = check_for,
		[OP_GENERIC] = check_generic,
		[OP_CONTRACT] = check_contract,
		[OP_PAD_TOKENS] = check_pad_tokens,
		[OP_SEQUENTIAL] = verify_sequential,
		[OP_LAYER_SELECT] = check_layer_select,
		[OP_LAYER_ROW] = check_layer_row,
		[OP_INSERT_LAYER] = check_insert_layer,
		[OP_LAYER_EXTRACT] = check_layer_extract,
		[OP_POP] = check_pop,
		[OP_PUSH] = check_push,
		[OP_ACQUIRE] = check_acquire,
		[OP_RELEASE] = check_release,
		[OP_TREE] = check_tree,
		[OP_DOT] = check_dot,
		[OP_JOIN_LANES] = check_join,
		[OP_SPLIT_LANES] = check_split,
		[OP_ALLOCA] = check_alloca,
		[OP_MEMREF_LOAD] = check_load,
		[OP_MEMREF_STORE] = check_store,
		[OP_WRITE] = check_write,
		[OP_APPLY] = check_apply,
		[OP_BROADCAST] = check_broadcast,
		[OP_LANE] = check_lane,
		[OP_SET_LANE] = check_set_lane,
	};
	if (check[op->code])
		check[op->code](verifier, op);
	else if (op_info[op->code].levels & LEVEL_BODY)
		check_scalar(verifier, op);
}
