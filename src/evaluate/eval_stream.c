/* Evaluates the stream level.  A stream is the literal sequence of its words, so an itensor type
 * that does not match what its op sends or receives gives a wrong number or count. */
#include "ir/converter.h"
#include "evaluate/eval_level.h"
#include <string.h>

/* The order in which a type's elements flow, on the linear addresses of a tensor. */
struct element_order {
	const struct type *stream, *tensor;
	int64_t words, lanes;
	int dims;                /* data dims: those of the tensor, or 1 */
	const int64_t *extent;   /* [dims] */
	const int64_t *tile;     /* [dims] */
	int64_t *counter, *trip; /* [iteration dims]; trips of this run */
	struct gap *gap;         /* [iteration dims] */
	int64_t *at;             /* [dims] index of the word */
	int64_t *inside;         /* [dims] offset of the lane in the word */
};

static const struct type *tensor_of_op(const struct op *op)
{
	const struct attr *attr = attr_get(op, KEY_TENSOR);
	return attr && attr->kind == ATTR_TYPE ? attr->type : NULL;
}

/* Type of the tensor that a stream carries, from the op that produces it. */
static const struct type *tensor_of_stream(const struct value *value)
{
	if (!value->def)
		return tensor_of_stream(value->block->parent->operand[2 + value->index]);
	if (value->def->code == OP_FOR)
		return tensor_of_stream(value->def->operand[3 + value->index]);
	return tensor_of_op(value->def);
}

/* Tiles that flow in this run. */
static int64_t eval_tiles(const struct evaluation *e, const struct type *stream)
{
	const struct itensor *order = stream->itensor;
	int64_t tiles = 1;
	for (int i = 0; i < order->dims; i++)
		tiles *= eval_trips(e, order->trip[i], order->run_time ? order->run_time[i] : NULL);
	return tiles;
}

/* Extent of a word along dim `d`. */
static int64_t tile_of(const struct type *stream, int d, int dims)
{
	const struct type *element = stream->element;
	if (element->kind != TYPE_VECTOR)
		return 1;
	if (element->rank == dims)
		return element->shape[d];
	return d == dims - 1 ? type_elements(element) : 1;
}

static bool order_of(struct evaluation *e, const struct op *op, const struct type *stream,
        const struct type *tensor, struct element_order *order)
{
	struct arena *arena = e->arena;
	int dims = stream->itensor->map.results;
	if (!tensor || (dims != 1 && dims != tensor->rank))
		return diag_error(e->module->diag, op->location, "%s is no stream of %s",
		        stream->text, tensor ? tensor->text : "an unknown tensor");
	*order = (struct element_order){
		.stream = stream, .tensor = tensor, .words = eval_tiles(e, stream), .dims = dims
	};
	int64_t *extent = ARENA_ARRAY(arena, int64_t, dims + 1);
	int64_t *tile = ARENA_ARRAY(arena, int64_t, dims + 1);
	bool vector = stream->element->kind == TYPE_VECTOR;
	order->lanes = vector ? type_elements(stream->element) : 1;
	for (int d = 0; d < dims; d++) {
		extent[d] = dims == tensor->rank ? tensor->shape[d] : type_elements(tensor);
		tile[d] = tile_of(stream, d, dims);
	}
	order->extent = extent;
	order->tile = tile;
	order->counter = ARENA_ARRAY(arena, int64_t, stream->itensor->dims + 1);
	order->trip = ARENA_ARRAY(arena, int64_t, stream->itensor->dims + 1);
	order->gap = ARENA_ARRAY(arena, struct gap, stream->itensor->dims + 1);
	for (int i = 0; i < stream->itensor->dims; i++) {
		const struct run_time_trip *run_time =
		        stream->itensor->run_time ? stream->itensor->run_time[i] : NULL;
		order->trip[i] = eval_trips(e, stream->itensor->trip[i], run_time);
		order->gap[i] = eval_gap(e, stream->itensor->trip[i], run_time);
	}
	order->at = ARENA_ARRAY(arena, int64_t, dims + 1);
	order->inside = ARENA_ARRAY(arena, int64_t, dims + 1);
	return true;
}

/* Copies one tile between its word and the tensor; elements beyond the edge of the tensor are sent
 * as 0, and dropped on receiving. */
static void move_tile(
        const struct element_order *order, char *words, char *tensor, int bytes, bool send)
{
	memset(order->inside, 0, sizeof *order->inside * (size_t)order->dims);
	for (int64_t lane = 0; lane < order->lanes; lane++, words += bytes) {
		int64_t address = 0;
		bool within = true;
		for (int d = 0; d < order->dims; d++) {
			int64_t index = order->at[d] + order->inside[d];
			within = within && index >= 0 && index < order->extent[d];
			address = address * order->extent[d] + index;
		}
		if (within && send)
			memcpy(words, tensor + address * bytes, (size_t)bytes);
		else if (within)
			memcpy(tensor + address * bytes, words, (size_t)bytes);
		for (int d = order->dims - 1; d >= 0 && ++order->inside[d] == order->tile[d]; d--)
			order->inside[d] = 0;
	}
}

/* Copies all tiles from the tensor to the words (send), or back. */
static void move_words(const struct element_order *order, char *words, char *tensor, bool send)
{
	const struct itensor *type = order->stream->itensor;
	int bytes = scalar_storage_bytes(type_scalar(order->tensor));
	for (int64_t w = 0; w < order->words; w++) {
		for (int d = 0; d < order->dims; d++) {
			order->at[d] = affine_constant(type->map, d);
			for (int i = 0; i < type->dims; i++)
				order->at[d] += affine_at(type->map, d, i) * type->step[i] *
				        gap_point(order->gap[i], order->counter[i]);
		}
		move_tile(order, words + w * order->lanes * bytes, tensor, bytes, send);
		for (int i = type->dims - 1; i >= 0 && ++order->counter[i] == order->trip[i]; i--)
			order->counter[i] = 0;
	}
}

struct words *eval_words(struct evaluation *e, const struct type *type)
{
	struct words *words = ARENA_NEW(e->arena, struct words);
	words->type = type;
	words->lanes = stream_lanes(type);
	words->elements = eval_tiles(e, type) * words->lanes;
	words->data = arena_alloc(
	        e->arena, (size_t)(words->elements * scalar_storage_bytes(type_scalar(type))));
	return words;
}

/* Sends a tensor in the order of a result's type. */
static bool send_to(struct evaluation *e, struct op *op, int result, const struct tensor *tensor)
{
	struct element_order order;
	if (!order_of(e, op, op->result[result]->type, tensor->type, &order))
		return false;
	struct words *words = eval_words(e, op->result[result]->type);
	move_words(&order, words->data, tensor->data, true);
	op->result[result]->data = words;
	return true;
}

static bool send(struct evaluation *e, struct op *op, const struct tensor *tensor)
{
	return send_to(e, op, 0, tensor);
}

/* Assembles the tensor from an operand's words. */
static struct tensor *receive(struct evaluation *e, const struct op *op, const struct value *stream,
        const struct type *type)
{
	struct words *words = stream->data;
	struct element_order order;
	if (!order_of(e, op, words->type, type, &order))
		return NULL;
	struct tensor *tensor = eval_new(e, type);
	move_words(&order, words->data, tensor->data, false);
	return tensor;
}

/* The tensor in memory among the first `count` operands: inside a rolled layer that of the layer.
 * NULL: a diagnostic was given. */
static const struct tensor *picked_tensor(struct evaluation *e, struct op *op, int count)
{
	if (op->operand[0]->type->kind == TYPE_TENSOR)
		return op->operand[0]->data;
	int64_t layer = eval_integer(op->operand[0]);
	if (layer >= 0 && layer < count - 1)
		return op->operand[1 + layer]->data;
	diag_error(e->module->diag, op->location, "layer %lld of %d", (long long)layer, count - 1);
	return NULL;
}

static bool eval_load(struct evaluation *e, struct op *op)
{
	const struct tensor *from = picked_tensor(e, op, op->operands);
	return from && send(e, op, from);
}

/* A causal buffer sends the tensor once per tile t, complete up to tile t; later tiles, which are
 * masked, are replaced by tile t. */
static bool send_causal(struct evaluation *e, struct op *op, const struct tensor *from,
        const struct attr *causal_tiles)
{
	int64_t tiles = causal_tiles->integers[0];
	int64_t pitch = causal_tiles->integers[1];
	int64_t bytes = scalar_storage_bytes(type_scalar(from->type));
	int64_t elements = type_elements(from->type);
	struct words *words = eval_words(e, op->result[0]->type);
	const struct itensor *order = op->result[0]->type->itensor;
	int64_t iterations = eval_trips(e, tiles, order->run_time ? order->run_time[0] : NULL);
	for (int64_t t = 0; t < iterations; t++) {
		struct tensor *causal = eval_new(e, from->type);
		for (int64_t n = 0; n < elements; n++) {
			int64_t beyond = n / pitch % tiles - t;
			int64_t source = beyond > 0 ? n - beyond * pitch : n;
			memcpy((char *)causal->data + n * bytes,
			        (char *)from->data + source * bytes, (size_t)bytes);
		}
		if (!send(e, op, causal))
			return false;
		const struct words *all = op->result[0]->data;
		int64_t part = all->elements / iterations * bytes;
		memcpy((char *)words->data + t * part, (char *)all->data + t * part, (size_t)part);
	}
	op->result[0]->data = words;
	return true;
}

static bool eval_convert(struct evaluation *e, struct op *op)
{
	const struct type *type = tensor_of_op(op);
	const struct tensor *tensor =
	        receive(e, op, op->operand[0], type ? type : tensor_of_stream(op->operand[0]));
	const struct attr *causal_tiles =
	        converter_form(op) == CONVERTER_CAUSAL && !attr_get(op, KEY_DEMAND)
	        ? attr_get(op, KEY_CAUSAL)
	        : NULL;
	if (!tensor)
		return false;
	return causal_tiles ? send_causal(e, op, tensor, causal_tiles) : send(e, op, tensor);
}

/* A cast that rereads words of a shared buffer sends them as a converter would. */
static bool eval_cast(struct evaluation *e, struct op *op)
{
	return attr_get(op, KEY_READS_SHARED_BUFFER) ? eval_convert(e, op) : route_cast(e, op);
}

static bool eval_buffer(struct evaluation *e, struct op *op)
{
	const struct tensor *tensor = receive(e, op, op->operand[0], tensor_of_op(op));
	bool good = tensor != NULL;
	for (int i = 0; good && i < op->results; i++)
		good = send_to(e, op, i, tensor);
	return good;
}

/* For every row number received, `length` elements of the table; numbers are clamped to the table.
 * With a run-time token count only the first rows are received. */
static bool eval_gather(struct evaluation *e, struct op *op)
{
	const struct tensor *table = picked_tensor(e, op, op->operands - 1);
	const struct words *rows = op->operand[op->operands - 1]->data;
	if (!table)
		return false;
	const struct type *scalar = type_scalar(table->type);
	const struct type *tensor = tensor_of_op(op);
	const struct type *index = type_scalar(rows->type);
	int64_t pitch = attr_integer_or(op, KEY_ROW_PITCH, 0);
	int64_t length = attr_integer_or(op, KEY_LENGTH, pitch);
	int64_t offset = attr_integer_or(op, KEY_OFFSET, 0);
	int64_t limit = attr_integer_or(op, KEY_LIMIT, 1);
	int64_t bytes = scalar_storage_bytes(scalar);
	int64_t reach = offset + (limit - 1) * pitch + length;
	int64_t missing = tensor ? type_elements(tensor) - rows->elements * length : -1;
	if (missing < 0 || (missing && !rows->type->itensor->run_time))
		return diag_error(e->module->diag, op->location,
		        "%lld rows of %lld elements for %s", (long long)rows->elements,
		        (long long)length, tensor ? tensor->text : "nothing");
	if (offset < 0 || limit < 1 || reach > type_elements(table->type))
		return diag_error(e->module->diag, op->location,
		        "rows that reach element %lld of %s", (long long)reach, table->type->text);
	struct tensor *out = eval_new(e, tensor);
	for (int64_t r = 0; r < rows->elements; r++) {
		int64_t row;
		scalar_read(index, &row, rows->data, r, 0, 1);
		if (row >= limit)
			row = limit - 1;
		if (row < 0)
			row = 0;
		memcpy((char *)out->data + r * length * bytes,
		        (char *)table->data + (offset + row * pitch) * bytes,
		        (size_t)(length * bytes));
	}
	return send(e, op, out);
}

static bool eval_stream_contract(struct evaluation *e, struct op *op)
{
	const struct tensor *x = receive(e, op, op->operand[0], tensor_of_stream(op->operand[0]));
	const struct tensor *s = receive(e, op, op->operand[1], tensor_of_stream(op->operand[1]));
	const struct tensor *y = x && s ? eval_contraction(e, op, x, s, tensor_of_op(op)) : NULL;
	return y && send(e, op, y);
}

/* Tokens that the launch does not have are not received and read as 0. */
static bool eval_stream_pad_tokens(struct evaluation *e, struct op *op)
{
	const struct tensor *tensor = receive(e, op, op->operand[0], tensor_of_op(op));
	return tensor && send(e, op, tensor);
}

static bool eval_store(struct evaluation *e, struct op *op)
{
	const struct attr *results = attr_get(op, KEY_RESULT);
	const struct op *loop = op->parent->parent;
	int64_t layer = loop->code == OP_FOR ? eval_integer(loop->region[0]->argument[0]) : 0;
	const struct tensor *tensor = receive(e, op, op->operand[0], tensor_of_op(op));
	if (!tensor || !results || results->kind != ATTR_INTEGERS || layer < 0 ||
	        layer >= results->count)
		return diag_error(e->module->diag, op->location,
		        "a store without a result for layer %lld", (long long)layer);
	int64_t number = results->integers[layer];
	if (number >= e->results)
		return diag_error(e->module->diag, op->location, "a store to result %lld of %d",
		        (long long)number, e->results);
	if (number >= 0)
		e->result[number] = *tensor;
	return true;
}

/* Rewrites a port's strides and offset from its tensor to the sequence of its words.  A word is
 * moved in every iteration of the loops down to the innermost one that the access uses, within its
 * guards; the lane loop and the row loop run inside a word.  Returns the elements moved. */
static int64_t walk_port(struct evaluation *e, const struct kernel *kernel, struct nest_port *port,
        bool parallel_only)
{
	struct access *access = &port->access;
	int64_t *stride = ARENA_ARRAY(e->arena, int64_t, kernel->loops + 1);
	int64_t elements = 1;
	int64_t offset = 0;
	int64_t iterations = 1;
	bool used = false;
	for (int l = kernel->loops - 1; l >= 0; l--) {
		int64_t low = 0;
		int64_t high = kernel->loop[l].extent;
		int64_t now = eval_trips(e, high, kernel->loop[l].run_time);
		if (l == kernel->loops - 1 && kernel->lanes > 1) {
			stride[l] = access->stride[l] != 0;
			elements *= access->stride[l] ? kernel->lanes : 1;
			continue;
		}
		/* unrolled rows are part of the word */
		if (l == kernel->loops - 2 && kernel->row_unroll > 1) {
			stride[l] = access->stride[l] ? elements : 0;
			elements *= access->stride[l] ? kernel->row_unroll : 1;
			continue;
		}
		for (int g = 0; g < access->guards; g++)
			if (access->guard[g].loop == l) {
				low = access->guard[g].low;
				high = access->guard[g].high;
			}
		used = used || (access->stride[l] && high - low > 1);
		if (!used || high - low <= 1 || (parallel_only && kernel->loop[l].reduction))
			continue;
		if (port->row_weight && port->row_weight[l]) {
			stride[l] = elements * port->row_weight[l];
			iterations = port->valid_rows_end;
			continue;
		}
		elements *= iterations;
		iterations = 1;
		stride[l] = elements;
		offset -= low * elements;
		int64_t end = now < high ? now : high;
		elements *= end > low ? end - low : 0;
	}
	access->stride = stride;
	access->offset = offset;
	return elements * iterations;
}

static void set_row_weights(struct evaluation *e, struct nest_port *port)
{
	const struct row_predicate *row_predicate = port->access.row_predicate;
	if (!row_predicate)
		return;
	port->row_weight = row_predicate->weight;
	const struct launch_tokens *rows = &row_predicate->rows;
	int64_t tiles = eval_trips(e, rows->most / rows->tile, rows->tiles);
	int64_t valid_rows_end = (tiles - 1) * rows->tile + eval_trips(e, rows->tile, rows->each);
	port->valid_rows_end =
	        tiles ? (valid_rows_end + row_predicate->step - 1) / row_predicate->step : 0;
}

/* by_rows: rows are words of their own. */
static int64_t port_lanes(const struct kernel *kernel, const struct access *access, bool by_rows)
{
	int64_t lanes = kernel->lanes > 1 && access->stride[kernel->loops - 1] ? kernel->lanes : 1;
	return kernel->row_unroll > 1 && access->stride[kernel->loops - 2] && !by_rows
	        ? lanes * kernel->row_unroll
	        : lanes;
}

/* Binds operand `number`, or the result where there is no such operand, to its stream.  false: the
 * kernel's loops do not move as many words as the stream has. */
static bool bind_port(struct evaluation *e, const struct op *op, struct nest *nest, int number,
        const struct words *words)
{
	const struct kernel *kernel = op->kernel;
	bool result = number == op->operands;
	bool parallel_only = result ? !kernel->scan : kernel_is_post_operand(kernel, number);
	struct nest_port *port = result ? &nest->result[0] : &nest->operand[number];
	int64_t lanes =
	        port_lanes(kernel, &port->access, result && kernel_is_register_tile(kernel));
	port->data = words->data;
	if (!result)
		set_row_weights(e, port);
	port->elements = walk_port(e, kernel, port, parallel_only);
	if (words->elements == port->elements && words->lanes == lanes)
		return true;
	const char *kind = result ? "result" : "operand";
	const int index = result ? 0 : number;
	return diag_error(e->module->diag, op->location,
	        "kernel %s: its loops move %lld words of %lld lanes through %s %d, whose type says "
	        "%lld of %lld",
	        kernel->name, (long long)(port->elements / lanes), (long long)lanes, kind, index,
	        (long long)(words->elements / words->lanes), (long long)words->lanes);
}

static bool eval_stream_kernel(struct evaluation *e, struct op *op)
{
	struct nest nest = eval_kernel_nest(e, op);
	nest.packed = true;
	for (int i = 0; i < op->operands; i++) {
		if (nest.operand[i].access.index_operand >= 0)
			return diag_error(e->module->diag, op->location,
			        "kernel %s gathers; at stream level only stream.gather does",
			        op->kernel->name);
		if (!bind_port(e, op, &nest, i, op->operand[i]->data))
			return false;
	}
	struct words *out = eval_words(e, op->result[0]->type);
	op->result[0]->data = out;
	return bind_port(e, op, &nest, op->operands, out) && eval_kernel_run(e, op, &nest);
}

eval_function *const eval_stream_functions[OP_COUNT] = {
	[OP_KERNEL] = eval_stream_kernel,
	[OP_SEQUENTIAL] = eval_sequential,
	[OP_CONTRACT] = eval_stream_contract,
	[OP_PAD_TOKENS] = eval_stream_pad_tokens,
	[OP_LOAD] = eval_load,
	[OP_GATHER] = eval_gather,
	[OP_STORE] = eval_store,
	[OP_CONVERT] = eval_convert,
	[OP_BUFFER] = eval_buffer,
	[OP_REASSOCIATE] = route_cast,
	[OP_CHUNK] = route_chunk,
	[OP_CONCAT] = route_concat,
	[OP_JOIN] = route_join,
	[OP_CAST] = eval_cast,
	[OP_FORK] = route_fork,
	[OP_LAYER_MUX] = route_layer_mux,
	[OP_LAYER_ROW] = route_layer_row,
	[OP_INSERT_LAYER] = route_insert_layer,
	[OP_EMPTY_STACK] = route_empty_stack,
};
