/* Evaluates a launch of the hardware level: packs host tensors into the images of the memory
 * buffers, runs the processes, unpacks the results. */
#include "image/segment.h"
#include "evaluate/eval_network.h"
#include <string.h>

struct buffer {
	const char *name;
	const struct type *scalar;
	int64_t lanes, words;
	char *data;
	const struct attr *segments;
};

struct host { /* a tensor that the host knows by name */
	const char *name;
	const struct type *type;
	char *data;
};

struct machine {
	struct evaluation *e;
	struct op *main;
	struct network network;
	int buffers;
	struct buffer *buffer;
	const struct attr *inputs, *outputs;
};

static bool complain(const struct machine *m, const char *what, const char *name)
{
	return diag_error(m->e->module->diag, m->main->location, "%s \"%s\"", what, name);
}

static bool read_segment(const struct machine *m, const struct attr *attr,
        const struct buffer *buffer, const struct type *host, struct segment *segment)
{
	const char *wrong = segment_read(m->e->arena, attr, segment);
	if (wrong)
		return complain(m, wrong, segment->name);
	segment->host_bytes = scalar_storage_bytes(type_scalar(host));
	segment->image_bytes = scalar_storage_bytes(buffer->scalar);
	if (segment->offset < 0 ||
	        segment->offset + segment_span(segment) > buffer->words * buffer->lanes)
		return complain(m, "a segment beyond the end of its buffer:", segment->name);
	return true;
}

/* Packs every segment of the tensor `host` into the images, or unpacks it. */
static bool move_segments(const struct machine *m, const struct host *host, bool pack, int *found)
{
	*found = 0;
	for (int b = 0; b < m->buffers; b++) {
		const struct buffer *buffer = &m->buffer[b];
		for (int s = 0; s < buffer->segments->count; s++) {
			const struct attr *attr = buffer->segments->items[s].value;
			struct segment segment;
			if (!text_same(attr_item_text(attr, KEY_NAME), host->name))
				continue;
			if (!read_segment(m, attr, buffer, host->type, &segment))
				return false;
			++*found;
			if (pack)
				segment_pack(&segment, host->data, buffer->data, 0, 0,
				        segment_elements(&segment));
			else
				segment_unpack(&segment, buffer->data, host->data);
		}
	}
	return true;
}

static bool make_buffers(struct machine *m)
{
	const struct attr *list = attr_get(m->main, KEY_STREAM_BUFFERS);
	m->buffers = list ? list->count : 0;
	m->buffer = ARENA_ARRAY(m->e->arena, struct buffer, m->buffers + 1);
	for (int b = 0; b < m->buffers; b++) {
		const struct attr *attr = list->items[b].value;
		const struct attr *word = attr_item(attr, KEY_WORD);
		struct buffer *buffer = &m->buffer[b];
		buffer->name = attr_item_text(attr, KEY_NAME);
		buffer->segments = attr_item(attr, KEY_SEGMENTS);
		if (!word || word->kind != ATTR_TYPE || !buffer->segments)
			return complain(m, "no word type or no segments in buffer", buffer->name);
		buffer->scalar = type_scalar(word->type);
		buffer->lanes = type_lanes(word->type);
		buffer->words = attr_item_integer(attr, KEY_WORDS, 0);
		buffer->data = arena_alloc(m->e->arena,
		        (size_t)(buffer->words * buffer->lanes *
		                scalar_storage_bytes(buffer->scalar)));
	}
	return true;
}

static bool bind_ports(struct machine *m)
{
	struct block *body = m->main->region[0];
	for (int i = 0; i < body->arguments; i++) {
		const struct attr *name = function_argument_attr(m->main, i, KEY_STREAM_BUFFER);
		const struct attr *port = function_argument_attr(m->main, i, KEY_STREAM_PORT);
		const char *wanted = name && name->text ? name->text : "";
		int b = 0;
		while (b < m->buffers && !text_same(m->buffer[b].name, wanted))
			b++;
		if (b == m->buffers)
			return complain(m, "a memory port on no buffer:", wanted);
		struct buffer *buffer = &m->buffer[b];
		const struct type *memref = body->argument[i]->type;
		struct array *array = array_new(m->e->arena,
		        port && port->text ? port->text : wanted, memref, 0, buffer->data);
		if (scalar_storage_bytes(array->scalar) != scalar_storage_bytes(buffer->scalar))
			return complain(m,
			        "a memory port whose elements are not those of its buffer", wanted);
		array->words = buffer->words * buffer->lanes / array->lanes;
		body->argument[i]->data = array;
	}
	return true;
}

static bool build_network(struct machine *m)
{
	for (struct op *op = m->main->region[0]->first; op; op = op->next) {
		if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL)
			op->result[0]->data = channel_new(&m->network, op);
		else if (op->code == OP_CALL && !network_add_process(&m->network, op))
			return false;
	}
	return true;
}

static struct host host_of(const struct attr *attr)
{
	const struct attr *type = attr_item(attr, KEY_TYPE);
	return (struct host){ .name = attr_item_text(attr, KEY_NAME),
		.type = type ? type->type : NULL };
}

static bool pack_inputs(struct machine *m, int inputs, const struct tensor *input)
{
	for (int i = 0; i < m->inputs->count; i++) {
		struct host host = host_of(m->inputs->items[i].value);
		int found;
		if (!host.type)
			return complain(m, "no type of input", host.name);
		if (i < inputs && tensor_bytes(host.type) != tensor_bytes(input[i].type))
			return diag_error(m->e->module->diag, m->main->location,
			        "input \"%s\" is %s, not %s", host.name, input[i].type->text,
			        host.type->text);
		const struct tensor *tensor = i < inputs
		        ? &input[i]
		        : eval_constant_tensor(m->e, host.type,
		                  attr_item(m->inputs->items[i].value, KEY_VALUE),
		                  m->main->location);
		if (!tensor)
			return false;
		host.data = tensor->data;
		if (!move_segments(m, &host, true, &found))
			return false;
	}
	return true;
}

static int input_named(const struct machine *m, const char *name)
{
	for (int i = 0; i < m->inputs->count; i++)
		if (text_same(attr_item_text(m->inputs->items[i].value, KEY_NAME), name))
			return i;
	return -1;
}

/* Copies `rows` rows of a state tensor, from row `at` on along `axis`. */
static void copy_rows(
        const struct host *state, const struct host *row, int64_t axis, int64_t at, int64_t rows)
{
	int64_t outer = 1;
	int64_t inner = scalar_storage_bytes(type_scalar(state->type));
	int64_t extent = row->type->shape[axis];
	for (int d = 0; d < state->type->rank; d++) {
		outer *= d < axis ? state->type->shape[d] : 1;
		inner *= d > axis ? state->type->shape[d] : 1;
	}
	for (int64_t o = 0; o < outer; o++)
		memcpy(row->data + o * extent * inner,
		        state->data + (o * state->type->shape[axis] + at) * inner,
		        (size_t)(rows * inner));
}

static int64_t integer_input(const struct tensor *input, int number)
{
	int64_t value = 0;
	scalar_read(type_scalar(input[number].type), &value, input[number].data, 0, 0, 1);
	return value;
}

static bool unpack_state(
        struct machine *m, const struct attr *attr, const struct tensor *input, struct host *row)
{
	int state_input = input_named(m, row->name);
	int at_input = input_named(m, attr_item_text(attr, KEY_POSITION));
	int count_input = input_named(m, attr_item_text(attr, KEY_TOKEN_COUNT));
	int found;
	int64_t axis = attr_item_integer(attr, KEY_AXIS, 0);
	int64_t rows;
	if (state_input < 0 || at_input < 0)
		return complain(m, "no input that holds the state, or its position:", row->name);
	struct host state = host_of(m->inputs->items[state_input].value);
	int64_t at = integer_input(input, at_input) + attr_item_integer(attr, KEY_LEAD, 0);
	state.data = arena_alloc(m->e->arena, tensor_bytes(state.type));
	if (!move_segments(m, &state, false, &found))
		return false;
	if (!found || axis < 0 || axis >= state.type->rank || row->type->rank != state.type->rank)
		return complain(m, "no such row in state", row->name);
	rows = count_input < 0 ? row->type->shape[axis] : integer_input(input, count_input);
	if (rows > row->type->shape[axis])
		rows = row->type->shape[axis];
	if (rows < 0)
		rows = 0;
	if (at < 0 || at + rows > state.type->shape[axis])
		return complain(m, "no such row in state", row->name);
	copy_rows(&state, row, axis, at, rows);
	return true;
}

static bool unpack_outputs(struct machine *m, const struct tensor *input)
{
	for (int i = 0; i < m->outputs->count; i++) {
		const struct attr *attr = m->outputs->items[i].value;
		struct host host = host_of(attr);
		int found = 1;
		bool state = text_same(attr_item_text(attr, KEY_ROLE), "state");
		if (!host.type)
			return complain(m, "no type of output", host.name);
		host.data = arena_alloc(m->e->arena, tensor_bytes(host.type));
		bool done = state ? unpack_state(m, attr, input, &host)
		                  : move_segments(m, &host, false, &found);
		if (!done)
			return false;
		if (!found)
			return complain(m, "no segment of output", host.name);
		m->e->result[i] = (struct tensor){ .type = host.type, .data = host.data };
	}
	return true;
}

/* One launch; `network` says which distance claims are violated, and returns all claims. */
static bool launch(
        struct evaluation *e, int inputs, const struct tensor *input, struct network *network)
{
	struct machine m = { .e = e, .main = module_main(e->module), .network = *network };
	m.network.e = e;
	m.inputs = eval_list(e->module, KEY_STREAM_INPUTS);
	m.outputs = eval_list(e->module, KEY_STREAM_OUTPUTS);
	if (!m.inputs || !m.outputs)
		return complain(&m, "stream.inputs or stream.outputs is missing on",
		        attr_text_or(m.main, KEY_SYM_NAME, ""));
	bool done = make_buffers(&m) && pack_inputs(&m, inputs, input) && bind_ports(&m) &&
	        build_network(&m) && network_run(&m.network) && unpack_outputs(&m, input);
	*network = m.network;
	return done;
}

/* Are results the same if too near reads of claims first … end - 1 get wrong numbers? */
static bool is_same(
        const struct evaluation *e, int inputs, const struct tensor *input, int first, int end)
{
	struct arena *arena = arena_within(e->arena);
	struct evaluation rerun = *e;
	struct network network = { .overtaken = first, .overtaken_end = end };
	const struct diag saved = *e->module->diag;
	rerun.arena = arena;
	rerun.result = ARENA_ARRAY(arena, struct tensor, e->results + 1);
	bool same = launch(&rerun, inputs, input, &network);
	for (int r = 0; same && r < e->results; r++)
		same = !memcmp(
		        rerun.result[r].data, e->result[r].data, tensor_bytes(e->result[r].type));
	*e->module->diag = saved;
	arena_free(arena);
	return same;
}

static bool claims_hold(const struct evaluation *e, int inputs, const struct tensor *input,
        const struct network *network)
{
	const struct distance_claim *early = NULL;
	int count = (int)network->claims.count;
	for (int i = 0; i < count; i++)
		early = network->claims.data[i]->nearest ? network->claims.data[i] : early;
	if (!early || is_same(e, inputs, input, 0, count))
		return true;
	for (int i = 0; i < count; i++)
		if (network->claims.data[i]->nearest && !is_same(e, inputs, input, i, i + 1))
			early = network->claims.data[i];
	return diag_error(e->module->diag, early->location,
	        "stream.distance of %s in process %s is %lld, and results depend on what is read "
	        "sooner than so many iterations after it was written, the soonest after %lld",
	        early->array, early->process, (long long)early->distance,
	        (long long)early->nearest);
}

bool eval_hardware(struct evaluation *e, int inputs, const struct tensor *input)
{
	struct network network = { 0 };
	return launch(e, inputs, input, &network) && claims_hold(e, inputs, input, &network);
}
