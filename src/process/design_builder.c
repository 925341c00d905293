/* Adds channels, memory ports and buffers to the design under construction. */
#include "ir/launch_tokens.h"
#include "process/operation_builder.h"

static struct value *add_channel(struct design *design, enum op_code code, const char *name,
        const struct type *type, bool in_layer)
{
	struct op *op = op_new(design->module, code, NOWHERE, 0, NULL, 1, &type);
	attr_set(design->module, op, KEY_NAME,
	        attr_string(design->module,
	                text_format(design->module->arena, "%s_%d", name, design->serial++)));
	attr_set(design->module, op, KEY_STREAM_IN_LAYER,
	        in_layer ? attr_unit(design->module) : NULL);
	if (design->last_channel && design->last_channel->next)
		op_insert_before(design->last_channel->next, op);
	else if (!design->last_channel && design->block->first)
		op_insert_before(design->block->first, op);
	else
		op_append(design->block, op);
	design->last_channel = op;
	return op->result[0];
}

struct value *design_fifo(
        struct design *design, const char *name, const struct type *word, int64_t depth)
{
	return add_channel(design, OP_FIFO, name,
	        type_channel(design->module, TYPE_FIFO, word, depth < 2 ? 2 : depth),
	        design->layers > 0);
}

struct value *design_blocks(
        struct design *design, const char *name, const struct type *block, int64_t depth)
{
	return add_channel(design, OP_BLOCK_CHANNEL, name,
	        type_channel(design->module, TYPE_BLOCKS, block, depth), design->layers > 0);
}

struct value *design_port(struct design *design, const char *name, const struct type *word,
        const char *buffer, bool write)
{
	struct module *module = design->module;
	int64_t unknown = -1;
	struct value *port = block_add_argument(
	        module, design->block, type_shaped(module, TYPE_MEMREF, 1, &unknown, word));
	struct named items[] = {
		{ key_name(KEY_STREAM_PORT),
		        attr_string(module, text_format(module->arena, "m_%s", name)) },
		{ key_name(KEY_STREAM_BUFFER), attr_string(module, buffer) },
		{ key_name(KEY_STREAM_CHANNEL), attr_integer(module, 0) },
		{ key_name(KEY_STREAM_DIRECTION), attr_string(module, write ? "write" : "read") },
	};
	VEC_PUSH(module->arena, &design->port_attrs, attr_dictionary(module, 4, items));
	return port;
}

void design_mark_port(
        struct design *design, const char *buffer, enum attr_key key, const char *value)
{
	for (size_t i = 0; i < design->port_attrs.count; i++) {
		const struct attr **port = &design->port_attrs.data[i];
		if (text_same(attr_item_text(*port, KEY_STREAM_BUFFER), buffer) &&
		        text_same(attr_item_text(*port, KEY_STREAM_DIRECTION), "read"))
			*port = attr_with(
			        design->module, *port, key, attr_string(design->module, value));
	}
}

void design_buffer(struct design *design, const char *name, const struct type *word, int64_t words,
        const struct attr *segments)
{
	struct module *module = design->module;
	struct named items[] = {
		{ key_name(KEY_NAME), attr_string(module, name) },
		{ key_name(KEY_WORDS), attr_integer(module, words) },
		{ key_name(KEY_WORD), attr_type(module, word) },
		{ key_name(KEY_SEGMENTS), segments },
	};
	VEC_PUSH(module->arena, &design->buffers, attr_dictionary(module, 4, items));
}

void design_prefetch(struct design *design, struct value *fifo)
{
	attr_set(design->module, fifo->def, KEY_STREAM_PREFETCH, attr_unit(design->module));
}

/* Do the words come from memory, computed by no kernel? */
static bool from_memory(const struct value *stream)
{
	const struct op *def = stream->def;
	if (!def || def->code == OP_KERNEL || def->code == OP_FOR || def->code == OP_LOAD ||
	        def->code == OP_GATHER)
		return def && (def->code == OP_LOAD || def->code == OP_GATHER);
	for (int j = 0; j < def->operands; j++)
		if (!from_memory(def->operand[j]))
			return false;
	return true;
}

void design_begin(struct design *design, const struct op *op)
{
	struct run_time_trip *last_chunk = op && attr_get(op, KEY_LAST_CHUNK_ONLY)
	        ? ARENA_NEW(design->module->arena, struct run_time_trip)
	        : NULL;
	if (last_chunk)
		*last_chunk = (struct run_time_trip){ .symbol = token_count_symbol(design->source),
			.plus = -rows_most(design->source),
			.tile = 1,
			.most = 1,
			.remaining = true,
			.last_chunk = true };
	design->last_chunk = last_chunk;
	bool of_function = op && op->location.line == design->source->location.line;
	design->location = op && !of_function ? op->location : NOWHERE;
}

static bool flows_in_layer(const struct value *stream)
{
	const struct op *parent = stream->def ? stream->def->parent->parent : stream->block->parent;
	return parent->code == OP_FOR;
}

/* what the names of its FIFOs begin with: the kernel, or the op without its dialect */
static const char *stream_name(const struct value *stream)
{
	if (!stream->def)
		return "layer";
	if (stream->def->code == OP_KERNEL)
		return stream->def->kernel->name;
	if (stream->def->code == OP_FOR)
		return "layers";
	return op_info[stream->def->code].name + sizeof "stream." - 1;
}

/* The FIFO of a stream holds all words of one launch, or of one layer. Then the processes can run
 * one after another, in the order of the stream-level ops and layer by layer, and none ever finds
 * a FIFO full. A network of processes that only read and write FIFOs and has one schedule that
 * ends, ends under every schedule (Kahn), so nothing deadlocks. size_fifos shortens those that
 * need less. */
struct value *stream_fifo(struct design *design, const struct value *stream)
{
	/* the words stay the same */
	if (stream->def && stream->def->code == OP_REASSOCIATE)
		return stream_fifo(design, stream->def->operand[0]);
	if (stream->def && stream->def->code == OP_LAYER_ROW)
		return stream_fifo(design, stream->def->operand[1]);
	struct value *writable = (struct value *)(uintptr_t)stream;
	if (!writable->data) {
		const struct type *type = stream->type;
		const char *name = stream_name(stream);
		int64_t words = itensor_tiles(type->itensor);
		const struct type *fifo = type_channel(design->module, TYPE_FIFO,
		        stream_word(design->module, type), words < 2 ? 2 : words);
		struct value *channel = add_channel(design, OP_FIFO,
		        text_format(design->module->arena, "s_%s", name), fifo,
		        flows_in_layer(stream));
		if (from_memory(stream))
			design_prefetch(design, channel);
		writable->data = channel;
	}
	return writable->data;
}

const struct attr *signature_of(const struct design *design, bool output, int index)
{
	return attr_get(design->source, output ? KEY_STREAM_OUTPUTS : KEY_STREAM_INPUTS)
	        ->items[index]
	        .value;
}
