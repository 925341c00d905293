/* Rules of sequential nests: arrays for operands and results, a body that uses nothing else.
 * Rules of stream level: every stream has one reader (at demand level: some) and names its tensor;
 * routing ops pass on exactly the words that their types say. */
#include "ir/nest_array.h"
#include "ir/print.h"
#include "ir/verify.h"
#include <inttypes.h>

static void check_reader(struct verifier *verifier, const struct op *op, const struct value *value)
{
	/* the value that the last layer passes on may be unused */
	bool left = op->code == OP_FOR && value->def == op && !value->uses;
	bool several = verifier->module->level == LEVEL_DEMAND && value->uses > 1;
	if (value->type->kind == TYPE_ITENSOR && value->uses != 1 && !left && !several)
		verify_fail(
		        verifier, op, "a stream has %d readers where one is expected", value->uses);
}

/* What only the passes from form_streams to share_buffers use. */
static void check_demand(struct verifier *verifier, const struct op *op)
{
	static const enum attr_key keys[] = { KEY_DEMAND, KEY_LOOP_CARRIED, KEY_ANY_ORDER,
		KEY_READS_SHARED_BUFFER };
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (verifier->module->level == LEVEL_STREAM && attr_get(op, keys[i]))
			verify_fail(verifier, op, "the attribute `%s` belongs to demand level",
			        key_name(keys[i]));
}

static int64_t tensor_extent(const struct type *tensor, int results, int dim)
{
	return results == tensor->rank ? tensor->shape[dim] : type_elements(tensor);
}

/* The tensor that flows in a result. */
static const struct attr *tensor_of(const struct op *op, int result)
{
	if (op->code != OP_SEQUENTIAL)
		return attr_get(op, KEY_TENSOR);
	const struct attr *all = attr_get(op, KEY_TENSORS);
	return all && all->kind == ATTR_ARRAY && all->count == op->results
	        ? all->items[result].value
	        : NULL;
}

static void check_tensor(struct verifier *verifier, const struct op *op, int result)
{
	const struct attr *tensor = tensor_of(op, result);
	const struct type *stream = op->result[result]->type;
	if (!tensor || tensor->kind != ATTR_TYPE || tensor->type->kind != TYPE_TENSOR) {
		verify_fail(verifier, op, "the attribute `tensor` does not say which tensor flows");
		return;
	}
	int results = stream->itensor->map.results;
	if (tensor->type->element != type_scalar(stream) ||
	        (results != 1 && results != tensor->type->rank)) {
		verify_fail(
		        verifier, op, "%s is no stream of %s", stream->text, tensor->type->text);
		return;
	}
	for (int r = 0; r < results; r++) {
		int64_t tile = stream_tile(stream, r);
		int64_t extent = tensor_extent(tensor->type, results, r);
		if (tile > extent)
			verify_fail(verifier, op,
			        "%s: the tile has %" PRId64
			        " elements in data dim %d and %s only %" PRId64,
			        stream->text, tile, r, tensor->type->text, extent);
	}
}

static bool all_streams(const struct op *op)
{
	bool all = op->operands > 0 && op->results > 0;
	for (int i = 0; i < op->operands; i++)
		all = all && op->operand[i]->type->kind == TYPE_ITENSOR;
	for (int i = 0; i < op->results; i++)
		all = all && op->result[i]->type->kind == TYPE_ITENSOR &&
		        type_scalar(op->result[i]->type) == type_scalar(op->operand[0]->type);
	return all;
}

static void check_reassociate(struct verifier *verifier, const struct op *op)
{
	const struct type *from = op->operand[0]->type;
	const struct type *to = op->result[0]->type;
	if (stream_lanes(from) != stream_lanes(to) ||
	        itensor_tiles(from->itensor) != itensor_tiles(to->itensor))
		verify_fail(verifier, op, "%s and %s are not as many words of one width",
		        from->text, to->text);
}

static const struct attr *numbers(
        struct verifier *verifier, const struct op *op, enum attr_key key, int count)
{
	const struct attr *attr = attr_get(op, key);
	if (attr && attr->kind == ATTR_INTEGERS && attr->count == count)
		return attr;
	verify_fail(verifier, op, "the attribute `%s` is not an array of %d numbers", key_name(key),
	        count);
	return NULL;
}

static void check_chunk(struct verifier *verifier, const struct op *op)
{
	const struct type *from = op->operand[0]->type;
	const struct type *to = op->result[0]->type;
	const struct attr *low = numbers(verifier, op, KEY_LOW, from->itensor->dims);
	const struct attr *high = numbers(verifier, op, KEY_HIGH, from->itensor->dims);
	int64_t words = 1;
	for (int i = 0; low && high && i < from->itensor->dims; i++) {
		if (low->integers[i] < 0 || low->integers[i] >= high->integers[i] ||
		        high->integers[i] > from->itensor->trip[i])
			verify_fail(verifier, op, "range %d is no part of the %lld words there", i,
			        (long long)from->itensor->trip[i]);
		words *= high->integers[i] - low->integers[i];
	}
	if (low && high && !verifier->failed &&
	        (words != itensor_tiles(to->itensor) || stream_lanes(from) != stream_lanes(to)))
		verify_fail(verifier, op, "%lld words of %lld lanes go on, which %s does not say",
		        (long long)words, (long long)stream_lanes(from), to->text);
}

static void check_concat(struct verifier *verifier, const struct op *op)
{
	const struct attr *words = numbers(verifier, op, KEY_WORDS, op->operands);
	int64_t iterations = words && words->integers[0] > 0
	        ? itensor_tiles(op->operand[0]->type->itensor) / words->integers[0]
	        : 0;
	int64_t sum = 0;
	bool even = iterations > 0;
	for (int i = 0; even && i < op->operands; i++) {
		const struct type *part = op->operand[i]->type;
		even = words->integers[i] > 0 && words->integers[i] <= INT64_MAX / iterations &&
		        words->integers[i] * iterations == itensor_tiles(part->itensor) &&
		        stream_lanes(part) == stream_lanes(op->result[0]->type);
		sum += even ? words->integers[i] : 0;
	}
	if (words && (!even || sum * iterations != itensor_tiles(op->result[0]->type->itensor)))
		verify_fail(verifier, op,
		        "the words per iteration do not consume the operands exactly, or do not "
		        "form %s",
		        op->result[0]->type->text);
}

static void check_join(struct verifier *verifier, const struct op *op)
{
	const struct type *to = op->result[0]->type;
	int64_t lanes = 0;
	bool even = true;
	for (int i = 0; i < op->operands; i++) {
		lanes += stream_lanes(op->operand[i]->type);
		even = even &&
		        itensor_tiles(op->operand[i]->type->itensor) ==
		                itensor_tiles(to->itensor) &&
		        stream_lanes(op->operand[i]->type) == stream_lanes(op->operand[0]->type);
	}
	if (!even || lanes != stream_lanes(to))
		verify_fail(verifier, op, "words of its operands side by side are not those of %s",
		        to->text);
}

/* The words of `to` are words of `from` or equal parts of them. */
static bool passes_parts(const struct type *from, const struct type *to)
{
	return stream_lanes(from) % stream_lanes(to) == 0 && type_scalar(from) == type_scalar(to);
}

static void check_buffer(struct verifier *verifier, const struct op *op)
{
	const struct attr *round = numbers(verifier, op, KEY_SERVICE_ROUNDS, op->results);
	for (int i = 0; round && i < op->results; i++) {
		int64_t before = i ? round->integers[i - 1] : 0;
		const struct type *same = i && round->integers[i] == before
		        ? op->result[i - 1]->type
		        : op->result[i]->type;
		if (round->integers[i] < before || round->integers[i] > before + 1)
			verify_fail(verifier, op,
			        "service rounds start at 0 or 1 and rise by at most one from "
			        "result to result");
		else if (same != op->result[i]->type)
			verify_fail(verifier, op, "results of one service round have one type");
		else if (!round->integers[i] &&
		        !passes_parts(op->operand[0]->type, op->result[i]->type))
			verify_fail(verifier, op,
			        "words of service round 0 have to be the operand's words or parts "
			        "of them");
	}
	if (type_runs(op->results, op->result) > result_segments(OP_BUFFER))
		verify_fail(verifier, op, "its results change type more than %d times",
		        result_segments(OP_BUFFER) - 1);
}

static void check_route(struct verifier *verifier, const struct op *op)
{
	static void (*const check[OP_COUNT])(struct verifier *, const struct op *) = {
		[OP_REASSOCIATE] = check_reassociate,
		[OP_CHUNK] = check_chunk,
		[OP_CONCAT] = check_concat,
		[OP_JOIN] = check_join,
		[OP_BUFFER] = check_buffer,
	};
	if (!check[op->code])
		return;
	if (!all_streams(op)) {
		verify_fail(verifier, op,
		        "its operands and results are not streams of one element type");
		return;
	}
	check[op->code](verifier, op);
	if (operand_segments(op->code) &&
	        type_runs(op->operands, op->operand) > operand_segments(op->code))
		verify_fail(verifier, op, "its operands change type more than %d times",
		        operand_segments(op->code) - 1);
}

static void check_streams(struct op *op, void *context)
{
	struct verifier *verifier = context;
	check_route(verifier, op);
	check_demand(verifier, op);
	for (int i = 0; i < op->results; i++) {
		check_reader(verifier, op, op->result[i]);
		if (op->result[i]->type->kind == TYPE_ITENSOR && op->code != OP_FOR)
			check_tensor(verifier, op, i);
	}
	for (int r = 0; r < 2; r++)
		for (int i = 0; op->region[r] && i < op->region[r]->arguments; i++)
			check_reader(verifier, op, op->region[r]->argument[i]);
}

void verify_streams(struct verifier *verifier)
{
	struct block *body = module_body(verifier->module);
	ir_count_uses(body);
	ir_walk(body, check_streams, verifier);
}

/* --- sequential nests */

static int64_t elements_of(const struct type *type)
{
	return type->kind == TYPE_ITENSOR ? itensor_tiles(type->itensor) * stream_lanes(type)
	                                  : type_elements(type);
}

/* Does the array of the nest's body hold the tensor? */
static bool holds(const struct op *nest, const struct value *array, const struct type *type)
{
	bool shaped = type->kind == TYPE_TENSOR || type->kind == TYPE_ITENSOR;
	struct nest_array layout = nest_array_of(nest, array->index);
	int64_t elements = 1;
	for (int d = 0; d < layout.rank; d++)
		elements *= layout.extent[d];
	return shaped && type_scalar(type) == array->type->element && elements_of(type) == elements;
}

static bool is_array(const struct type *type)
{
	return type->kind == TYPE_MEMREF && type->rank > 0 && type->rank <= NEST_DIMS &&
	        type_elements(type) > 0 && type->element->kind != TYPE_VECTOR;
}

static bool is_laid_out(const struct nest_array *array)
{
	for (int d = 0; d < array->rank; d++)
		if (array->banks[d] < 1 || array->margin[d] < 0 || array->extent[d] < 1 ||
		        array->extent[d] > array->shape[d] - array->margin[d] ||
		        array->shape[d] % array->banks[d])
			return false;
	return true;
}

static void check_arrays(struct verifier *verifier, const struct op *op)
{
	const struct block *body = op->region[0];
	for (int i = 0; i < body->arguments; i++)
		if (!is_array(body->argument[i]->type)) {
			verify_fail(verifier, op, "argument %d of its body is %s, no array", i,
			        body->argument[i]->type->text);
			return;
		}
	for (int i = 0; i < body->arguments; i++) {
		struct nest_array array = nest_array_of(op, i);
		if (!is_laid_out(&array)) {
			verify_fail(verifier, op,
			        "banks, margins and extents of array %d do not fit its shape", i);
			return;
		}
	}
	if (body->arguments < op->operands) {
		verify_fail(
		        verifier, op, "%d operands enter %d arrays", op->operands, body->arguments);
		return;
	}
	for (int i = 0; i < op->operands; i++)
		if (!holds(op, body->argument[i], op->operand[i]->type))
			verify_fail(verifier, op, "operand %d is %s, its array %s", i,
			        op->operand[i]->type->text, body->argument[i]->type->text);
}

static void check_results(struct verifier *verifier, const struct op *op)
{
	const struct block *body = op->region[0];
	const struct op *yield = body->last;
	if (!op->results || yield->operands != op->results) {
		verify_fail(verifier, op, "%d arrays leave as %d results", yield->operands,
		        op->results);
		return;
	}
	for (int i = 0; i < op->results; i++) {
		const struct value *array = yield->operand[i];
		if (array->def || array->block != body || !holds(op, array, op->result[i]->type))
			verify_fail(verifier, op, "result %d is %s, what leaves %s", i,
			        op->result[i]->type->text, array->type->text);
	}
}

struct nest_check {
	struct verifier *verifier;
	const struct op *nest;
};

static bool is_inside(const struct op *nest, const struct value *value)
{
	const struct block *block = value->def ? value->def->parent : value->block;
	while (block && block != nest->region[0])
		block = block->parent && block->parent->code != OP_MODULE ? block->parent->parent
		                                                          : NULL;
	return block;
}

static bool is_number(const struct value *value, int64_t number)
{
	const struct attr *is = value->def && value->def->code == OP_CONSTANT
	        ? attr_get(value->def, KEY_VALUE)
	        : NULL;
	return is && is->kind == ATTR_INTEGER && is->integer == number;
}

static void check_in_nest(struct op *op, void *context)
{
	struct nest_check *check = context;
	const struct value *accessed = op_accessed(op);
	bool known = op->code == OP_FOR || op->code == OP_YIELD ||
	        op->code == OP_SEQUENTIAL_YIELD || op->code == OP_APPLY ||
	        op->code == OP_CONSTANT || accessed || (op_info[op->code].levels & LEVEL_BODY);
	if (!known || (accessed && accessed->type->kind != TYPE_MEMREF))
		verify_fail(check->verifier, op, "does not belong to a sequential nest");
	for (int i = 0; i < op->operands; i++)
		if (!is_inside(check->nest, op->operand[i]))
			verify_fail(check->verifier, op,
			        "operand %d comes from outside the sequential nest", i);
	if (op->code == OP_FOR &&
	        (op->results || !is_number(op->operand[0], 0) || !is_number(op->operand[2], 1)))
		verify_fail(check->verifier, op,
		        "a loop of a sequential nest counts from 0 by 1 and carries no values");
	if (op->code == OP_MEMREF_LOAD && attr_integer_or(op, KEY_STREAM_DISTANCE, 1) < 1)
		verify_fail(check->verifier, op, "stream.distance is not positive");
}

void verify_sequential(struct verifier *verifier, const struct op *op)
{
	struct nest_check check = { verifier, op };
	check_arrays(verifier, op);
	if (!verifier->failed)
		check_results(verifier, op);
	if (!verifier->failed)
		ir_walk(op->region[0], check_in_nest, &check);
}
