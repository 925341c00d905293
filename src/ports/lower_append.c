/* Appends rows to a state (KV cache): a process writes one row at the position of the launch, after
 * all reads of the state in this layer. Several rows: lower_append_rows.c. */
#include "ports/append_internal.h"
#include "ports/memory_image.h"

static int first_result(const struct op *store)
{
	return (int)attr_get(store, KEY_RESULT)->integers[0];
}

/* Turns a row's linear addresses into those of the state: loops are split at the axis, and strides
 * above it are multiplied by the axis' extent. */
static bool split_at_axis(
        struct arena *arena, struct sequence *order, int64_t inner, int64_t extent)
{
	struct sequence to = *order;
	to.dims = 0;
	to.trip = ARENA_ARRAY(arena, int64_t, 2 * order->dims + 1);
	to.stride = ARENA_ARRAY(arena, int64_t, 2 * order->dims + 1);
	for (int i = 0; i < order->dims; i++) {
		int64_t trip = order->trip[i];
		int64_t stride = order->stride[i];
		int64_t below = trip;
		if (stride < inner && stride * trip > inner) {
			if (inner % stride || trip % (inner / stride))
				return false;
			below = inner / stride;
			to.trip[to.dims] = trip / below;
			to.stride[to.dims++] = inner * extent;
		}
		to.trip[to.dims] = below;
		to.stride[to.dims++] = stride < inner ? stride : stride * extent;
	}
	*order = to;
	return true;
}

static const struct type *state_type(const struct design *design, const char *name)
{
	const struct attr *type =
	        attr_item(attr_entry(attr_get(design->source, KEY_STREAM_INPUTS), name), KEY_TYPE);
	return type ? type->type : NULL;
}

/* the order of a row's words, with the addresses that they have in the state */
static bool row_order(struct design *design, const struct op *store, const struct type *words,
        struct sequence *order)
{
	struct arena *arena = design->module->arena;
	const struct attr *output = signature_of(design, true, first_result(store));
	const struct type *whole = state_type(design, attr_item(output, KEY_NAME)->text);
	const struct type *row = attr_get(store, KEY_TENSOR)->type;
	int axis = (int)attr_item(output, KEY_AXIS)->integer;
	int64_t inner = 1;
	for (int d = axis + 1; d < whole->rank; d++)
		inner *= whole->shape[d];
	*order = image_of(arena, sequence_merged(arena, sequence_of_type(arena, row, words))).order;
	return inner % order->lanes == 0 &&
	        type_elements(whole) / whole->shape[axis] == type_elements(row) &&
	        (order->lanes == 1 || order->lane_stride == 1) &&
	        split_at_axis(arena, order, inner, whole->shape[axis]);
}

/* The outermost loop with several iterations, if it walks the whole state and splits into `parts`;
 * else -1. */
static int part_loop(const struct sequence *order, int64_t elements, int parts)
{
	int i = 0;
	while (i < order->dims - 1 && order->trip[i] == 1)
		i++;
	bool walks_all = i < order->dims && order->trip[i] * order->stride[i] == elements;
	return walks_all && order->trip[i] % parts == 0 ? i : -1;
}

static const struct op *store_of(
        const struct design *design, const struct block *block, const char *state)
{
	const struct op *found = NULL;
	for (const struct op *op = block->first; op && !found; op = op->next) {
		bool appends = op->code == OP_STORE && op->operands == 2 &&
		        text_same(attr_item(signature_of(design, true, first_result(op)), KEY_NAME)
		                          ->text,
		                state);
		if (appends)
			found = op;
		else if (op->code == OP_FOR)
			found = store_of(design, op->region[0], state);
	}
	return found;
}

static bool writes_rows(const struct design *design, const struct op *store)
{
	const struct attr *output = signature_of(design, true, first_result(store));
	return attr_get(store, KEY_TENSOR)->type->shape[attr_item(output, KEY_AXIS)->integer] > 1 ||
	        attr_item(output, KEY_TOKEN_COUNT);
}

bool append_has_rows(struct design *design, const char *state)
{
	const struct op *store = store_of(design, design->source->region[0], state);
	return store && writes_rows(design, store);
}

bool append_in_partitions(struct design *design, const char *state, int parts)
{
	const struct op *store = store_of(design, design->source->region[0], state);
	struct sequence order;
	if (!store)
		return false;
	if (writes_rows(design, store))
		return append_rows_in_partitions(store,
		        (int)attr_item(signature_of(design, true, first_result(store)), KEY_AXIS)
		                ->integer,
		        parts);
	return row_order(design, store, store_words(design, store), &order) &&
	        part_loop(&order, type_elements(state_type(design, state)), parts) >= 0;
}

struct value **append_ports(struct process *p, const struct state *state, const struct type *word)
{
	struct arena *arena = p->module->arena;
	int ports = state->parts * state->ports;
	struct value **port = ARENA_ARRAY(arena, struct value *, ports);
	for (int i = 0; i < ports; i++)
		port[i] = process_argument(p,
		        design_port(p->design, text_format(arena, "append%d", p->design->serial++),
		                word, state->buffer[i], true),
		        ports > 1 ? text_format(arena, "m%d", i) : "m");
	return port;
}

void append_wait(struct process *p, const struct state *state, struct value *when)
{
	for (int i = 0; i < state->parts; i++) {
		struct value *token =
		        map_get(&p->design->reads_done, state->buffer[i * state->ports]);
		if (token)
			make_pop(p, when,
			        process_argument(p, token,
			                state->parts > 1
			                        ? text_format(p->module->arena, "read_done%d", i)
			                        : "read_done"));
	}
}

const char *append_extent(struct design *design, const struct op *store, const struct state *state)
{
	const struct op *op = store->operand[1]->def;
	while (op && (op->code == OP_FORK || op->code == OP_CAST || op->code == OP_REASSOCIATE))
		op = op->operand[0]->def;
	const char *name = op && op->code == OP_LOAD && op->operand[0]->type->kind == TYPE_TENSOR
	        ? signature_name(design, false, op->operand[0]->index)
	        : NULL;
	return state_is_interleaved(state) && name && map_get(&design->controls, name) ? name
	                                                                               : NULL;
}

struct value *append_begin(
        struct process *p, const struct state *state, const char *extent, struct value *position)
{
	struct value *position_array =
	        extent ? NULL : make_array(p, "first", 1, position->type->element, 1);
	struct value *counter[1];
	process_layers(p);
	int opened = process_nest(p, 0, NULL, 1, counter);
	append_wait(p, state, NULL);
	struct value *taken = make_pop(p, NULL, position);
	if (position_array)
		make_store(p, taken, position_array, make_index(p, 0));
	process_close(p, opened);
	return position_array;
}

struct value *append_position(
        struct process *p, const char *extent, struct value *position_array, int64_t rows)
{
	const struct run_time_trip count = { .symbol = extent, .tile = 1, .most = rows - 1 };
	return extent ? process_trip_count(p, &count, 1)
	              : make_clamped(p, make_load(p, position_array, make_index(p, 0)), rows);
}

/* what all partitions of a row have in common */
struct row {
	const struct state *state;
	struct sequence order;
	/* elements of a row at one index of the axis; extent of the axis; first index that rows
	 * may have */
	int64_t inner, extent, before;
	int64_t elements; /* elements of a layer in each buffer */
	/* channels of words and position; array that stores the position, or NULL */
	struct value *in, *at, *position_array;
	const char *symbol; /* dynamic extent that is the position, or NULL */
};

void append_interleaved(struct process *p, const struct state *state, struct value *const *memory,
        const struct appended_word *appended)
{
	struct value *inner = appended->inner;
	int64_t each = state->lanes / appended->lanes;
	const int64_t pitch[3] = { 1, each, 1 };
	struct value *number = each > 1 ? make_divided(p, OP_DIVSI, inner, each) : inner;
	struct value *port =
	        state->ports > 1 ? make_divided(p, OP_REMSI, number, state->ports) : NULL;
	struct value *place = port ? make_divided(p, OP_DIVSI, number, state->ports) : number;
	struct value *part =
	        state->port_interleave ? make_divided(p, OP_REMSI, place, state->parts) : NULL;
	place = part ? make_divided(p, OP_DIVSI, place, state->parts) : place;
	struct value *term[3] = { appended->outer, place,
		each > 1 ? make_divided(p, OP_REMSI, inner, each) : NULL };
	struct value *address = make_address(p, 3, term, pitch, 0);
	for (int i = 0; i < state->ports * (part ? state->parts : 1); i++) {
		struct value *by_port = port ? make_equal(p, port, i % state->ports) : NULL;
		struct value *by_part = part ? make_equal(p, part, i / state->ports) : NULL;
		struct value *selected = make_and(p, by_part, by_port);
		make_write(p, selected, appended->word, memory[i], address);
	}
}

/* outer: the part of an address that heads and layers make, in each port's buffer; else
 * the rest. */
static struct value *part_address(struct process *p, const struct row *row,
        struct value *const *counter, const int64_t *pitch, bool outer)
{
	int count = row->order.dims + 2;
	struct value **term = ARENA_ARRAY(p->module->arena, struct value *, count);
	int64_t *own = ARENA_ARRAY(p->module->arena, int64_t, count);
	int64_t ports = row->state->ports;
	for (int i = 0; i < count; i++) {
		bool above = i < row->order.dims ? row->order.stride[i] >= row->inner * row->extent
		                                 : i == row->order.dims + 1;
		term[i] = above == outer ? counter[i] : NULL;
		own[i] = i < row->order.dims && outer ? pitch[i] / ports : pitch[i];
	}
	int64_t first = outer ? row->state->offset : row->order.offset + row->before * row->inner;
	return make_address(p, count, term, own, first / row->order.lanes);
}

static void append_part(struct process *p, const struct row *row, struct value *const *memory)
{
	const struct sequence *order = &row->order;
	int dims = order->dims;
	int ports = row->state->ports;
	struct value **counter = ARENA_ARRAY(p->module->arena, struct value *, dims + 2);
	struct value *first = NULL;
	int64_t *pitch = ARENA_ARRAY(p->module->arena, int64_t, dims + 2);
	int opened = process_nest(p, dims, order->trip, ports, counter);
	for (int i = 0; i < dims; i++) {
		pitch[i] = order->stride[i] / order->lanes;
		if (counter[i])
			first = make_and(p, first, make_equal(p, counter[i], 0));
	}
	struct value *taken = NULL;
	if (row->state->parts == 1) {
		append_wait(p, row->state, first);
		taken = make_pop(p, first, row->at);
	}
	counter[dims] = row->symbol || row->position_array
	        ? append_position(p, row->symbol, row->position_array, row->extent - row->before)
	        : make_clamped(p, taken, row->extent - row->before);
	pitch[dims] = row->inner / order->lanes;
	counter[dims + 1] = p->layer;
	pitch[dims + 1] = row->elements / order->lanes;
	struct value *word = make_pop(p, NULL, row->in);
	if (ports == 1) {
		make_store(p, word, memory[0],
		        make_address(p, dims + 2, counter, pitch,
		                (order->offset + row->state->offset + row->before * row->inner) /
		                        order->lanes));
	} else {
		struct value *outer = part_address(p, row, counter, pitch, true);
		struct value *inner = part_address(p, row, counter, pitch, false);
		append_interleaved(p, row->state, memory,
		        &(struct appended_word){ word, order->lanes, outer, inner });
	}
	process_close(p, opened);
}

bool lower_append(struct design *design, const struct op *store)
{
	struct module *module = design->module;
	const struct attr *output = signature_of(design, true, first_result(store));
	const char *name = attr_item(output, KEY_NAME)->text;
	const struct state *state = map_get(&design->states, name);
	const struct type *whole = state_type(design, name);
	if (!state || !whole)
		return diag_error(module->diag, store->location,
		        "a row is written to the state \"%s\", which no kernel reads", name);
	if (writes_rows(design, store))
		return lower_append_rows(design, store, state, whole);
	int axis = (int)attr_item(output, KEY_AXIS)->integer;
	struct row row = { .state = state,
		.symbol = append_extent(design, store, state),
		.inner = 1,
		.extent = whole->shape[axis],
		.before = attr_item_integer(output, KEY_LEAD, 0),
		.elements = type_elements(whole) / (state->parts * state->ports) };
	for (int d = axis + 1; d < whole->rank; d++)
		row.inner *= whole->shape[d];
	struct value *fifo = store_fifo(design, store);
	if (!row_order(design, store, store_words(design, store), &row.order))
		return diag_error(module->diag, store->location,
		        "the row written to the state \"%s\" does not have the state's shape "
		        "without axis %d",
		        name, axis);
	struct process p = process_new(design, "append");
	struct value **memory = append_ports(&p, state, fifo->type->element);
	row.in = process_argument(&p, fifo, "x");
	row.at = process_argument(&p, stream_fifo(design, store->operand[1]), "position");
	if (state->parts > 1) {
		row.position_array = append_begin(&p, state, row.symbol, row.at);
		row.order.trip[part_loop(&row.order, type_elements(whole), state->parts)] /=
		        state->parts;
	} else {
		process_layers(&p);
	}
	for (int i = 0; i < state->parts; i++)
		append_part(&p, &row, memory + i * state->ports);
	process_close(&p, design->layers > 0);
	process_finish(&p);
	return true;
}
