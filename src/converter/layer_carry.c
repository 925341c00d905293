/* Matches and emits buffers that layers pass to each other in place (layer_carry.h). */
#include "ir/converter.h"
#include "converter/layer_carry.h"

/* The kernel that produces what the layer passes to the next one, in its own order or in one that
 * it can drain in; else NULL. */
static const struct op *kernel_of_carried(const struct op *loop, int number)
{
	const struct op *def = loop->region[0]->last->operand[number]->def;
	if (def && converter_form(def) == CONVERTER_IN_PRODUCER)
		def = def->operand[0]->def;
	return def && def->code == OP_KERNEL && def->parent == loop->region[0] ? def : NULL;
}

static bool is_whole_buffer(const struct op *op)
{
	return op->code == OP_BUFFER && !attr_integer_or(op, KEY_SHARED_LOOPS, 0);
}

/* the buffer that is the only reader of the layer's input, or NULL */
static const struct op *buffer_of_carried(const struct op *loop, int number)
{
	const struct value *inside = loop->region[0]->argument[number + 1];
	for (const struct op *op = loop->region[0]->first; op; op = op->next)
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == inside)
				return is_whole_buffer(op) ? op : NULL;
	return NULL;
}

static bool reads_any(const struct op *op, size_t count, struct value *const *below)
{
	for (int j = 0; j < op->operands; j++)
		for (size_t i = 0; i < count; i++)
			if (op->operand[j] == below[i])
				return true;
	return false;
}

/* Does the kernel need results of the stream? Then it starts after the stream's reader has
 * everything. */
static bool needs_stream(struct arena *arena, const struct op *kernel, struct value *stream)
{
	VEC(struct value *) below = { 0 };
	VEC_PUSH(arena, &below, stream);
	for (const struct op *op = stream->def->next; op != kernel; op = op->next)
		for (int r = 0; op && r < op->results && reads_any(op, below.count, below.data);
		        r++)
			VEC_PUSH(arena, &below, op->result[r]);
	return reads_any(kernel, below.count, below.data);
}

static bool comes_after(const struct op *op, const struct op *first)
{
	while (first && first != op)
		first = first->next;
	return first;
}

static bool match_layer_carry(
        struct arena *arena, const struct op *loop, int number, struct layer_carry *layer_carry)
{
	const struct op *kernel = kernel_of_carried(loop, number);
	const struct op *buffer =
	        kernel && kernel_holds_result(kernel) ? buffer_of_carried(loop, number) : NULL;
	const struct value *inside = loop->region[0]->argument[number + 1];
	if (!buffer || !comes_after(kernel, buffer) ||
	        stream_lanes(inside->type) != stream_lanes(kernel->result[0]->type))
		return false;
	const struct type **type = ARENA_ARRAY(arena, const struct type *, buffer->results + 1);
	for (int r = 0; r < buffer->results; r++) {
		type[r] = buffer->result[r]->type;
		if (!needs_stream(arena, kernel, buffer->result[r]))
			return false;
	}
	type[buffer->results] = inside->type;
	*layer_carry = (struct layer_carry){ .loop = loop,
		.number = number,
		.accumulator_drain = {
		        .buffer = buffer, .readers = buffer->results + 1, .type = type } };
	return match_accumulator_drain(
	        arena, kernel, attr_get(buffer, KEY_TENSOR)->type, &layer_carry->accumulator_drain);
}

/* Matches one that fold_converters has recorded. */
static bool recorded_layer_carry(
        struct arena *arena, const struct op *loop, int number, struct layer_carry *layer_carry)
{
	const struct op *buffer = buffer_of_carried(loop, number);
	return buffer && attr_get(buffer, KEY_IN_PRODUCER) &&
	        match_layer_carry(arena, loop, number, layer_carry);
}

bool layer_carry_in_place(struct arena *arena, const struct op *loop, int number)
{
	struct layer_carry layer_carry;
	return recorded_layer_carry(arena, loop, number, &layer_carry);
}

struct layer_carry layer_carry_of(struct arena *arena, const struct op *kernel)
{
	const struct op *loop = kernel->parent->parent;
	struct layer_carry layer_carry;
	for (int i = 0; loop && loop->code == OP_FOR && i < loop->results; i++)
		if (kernel_of_carried(loop, i) == kernel &&
		        recorded_layer_carry(arena, loop, i, &layer_carry))
			return layer_carry;
	return (struct layer_carry){ 0 };
}

/* Can the kernel that writes the buffer's input for the next layer drain its accumulators to the
 * readers? */
static bool is_drained_by_layer(struct arena *arena, const struct op *buffer)
{
	const struct value *from = buffer->operand[0];
	struct layer_carry layer_carry;
	return !from->def && from->block->parent->code == OP_FOR && from->index > 0 &&
	        match_layer_carry(arena, from->block->parent, from->index - 1, &layer_carry);
}

static bool is_in_producer(struct arena *arena, const struct op *buffer)
{
	return is_drained_by_writer(arena, buffer) || is_drained_by_layer(arena, buffer);
}

void mark_buffers_in_producer(struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			mark_buffers_in_producer(module, op->region[0]);
		if (op->code == OP_BUFFER)
			attr_set(module, op, KEY_IN_PRODUCER,
			        is_in_producer(module->arena, op) ? attr_unit(module) : NULL);
	}
}

bool check_buffer_in_producer(struct design *design, const struct op *buffer)
{
	if (is_in_producer(design->module->arena, buffer))
		return true;
	diag_error(design->module->diag, buffer->location,
	        "stream.buffer: held by its producer, which does not accumulate all words of %s "
	        "before it writes, or cannot write them in the readers' orders",
	        buffer->operand[0]->type->text);
	return diag_note(
	        design->module->diag, "without in_producer the buffer is a process of its own");
}

void layer_carry_fill(struct process *p, const struct layer_carry *layer_carry, struct value *array)
{
	struct value *address;
	struct value *first =
	        stream_fifo(p->design, layer_carry->loop->operand[3 + layer_carry->number]);
	int opened = drain_word_nest(p, &layer_carry->accumulator_drain,
	        layer_carry->accumulator_drain.buffer->results, &address);
	make_store(p, make_pop(p, NULL, process_argument(p, first, "first")), array, address);
	process_close(p, opened);
}

void layer_carry_drain(
        struct process *p, const struct layer_carry *layer_carry, struct value *array)
{
	struct value *address;
	struct value *result = layer_carry->loop->result[layer_carry->number];
	if (!result->uses)
		return;
	int opened = drain_word_nest(p, &layer_carry->accumulator_drain,
	        layer_carry->accumulator_drain.buffer->results, &address);
	struct value *out = process_argument(p, stream_fifo(p->design, result), "y");
	make_push(p, NULL, make_load(p, array, address), out);
	process_close(p, opened);
}
