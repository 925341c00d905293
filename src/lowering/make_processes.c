/* Lowers the stream level to the hardware level.
 * Before: stream.kernel, stream.convert, … on streams
 * After:  a FIFO per stream, one or more processes per op, memory ports per load and store
 * Needs: streams with one reader each. Guarantees: docs/ir.md, hardware level; every FIFO holds all
 * words of a launch, or of a layer, so nothing deadlocks (see stream_fifo). Exact. Ends: one walk
 * over the program. */
#include "converter/lower_converters.h"
#include "engine/lower_engine.h"
#include "lowering/lowering_internal.h"
#include "ports/lower_ports.h"
#include "ir/converter.h"
#include "lowering/lowering_passes.h"
#include "platform/platform.h"
#include "converter/drain_order.h"
#include "converter/consumer_buffer.h"

static bool from_outside(const struct op *op)
{
	const struct value *from = op->operand[0];
	return (from->def ? from->def->parent : from->block) != op->parent;
}

static bool lower_converter(struct design *design, const struct op *op)
{
	switch (converter_form(op)) {
	case CONVERTER_SPILLED: return lower_spill(design, op, from_outside(op));
	case CONVERTER_LINE_BUFFER: return lower_line_buffer(design, op);
	case CONVERTER_IN_PRODUCER: return check_drain_order(design, op);
	case CONVERTER_IN_CONSUMER: return check_consumer_buffer(design, op);
	default: return lower_convert(design, op, from_outside(op));
	}
}

static bool lower_block(struct design *design, const struct block *block)
{
	bool good = true;
	for (const struct op *op = block->first; good && op; op = op->next) {
		design_begin(design, op);
		lower_last_chunk_gate(design, op);
		if (op->code == OP_KERNEL)
			good = lower_kernel(design, op);
		else if (op->code == OP_CONVERT)
			good = lower_converter(design, op);
		else if (op->code == OP_BUFFER)
			good = lower_buffer(design, op);
		else if (op->code == OP_SEQUENTIAL)
			lower_sequential(design, op);
		else if (op->code == OP_PAD_TOKENS)
			lower_pad_tokens(design, op);
		else if (op->code == OP_CHUNK)
			lower_chunk(design, op);
		else if (op->code == OP_CONCAT)
			lower_concat(design, op);
		else if (op->code == OP_JOIN)
			lower_join(design, op);
		else if (op->code == OP_CAST)
			lower_cast(design, op);
		else if (op->code == OP_FORK)
			lower_fork(design, op);
		else if (op->code == OP_LAYER_MUX)
			lower_layer_mux(design, op);
		else if (op->code == OP_GATHER)
			lower_gather(design, op);
		else if (op->code == OP_EXTENT || op->code == OP_CONTRACT)
			continue;
		else if (op->code == OP_FOR) {
			design->layers = attr_get(op->operand[1]->def, KEY_VALUE)->integer;
			lower_layer_feedback(design, op);
			good = lower_block(design, op->region[0]);
			design->layers = 0;
		}
	}
	design_begin(design, NULL);
	return good;
}

static void finish_design(struct design *design)
{
	struct module *module = design->module;
	int ports = design->block->arguments;
	const struct type **types = ARENA_ARRAY(module->arena, const struct type *, ports + 1);
	for (int i = 0; i < ports; i++)
		types[i] = design->block->argument[i]->type;
	op_append(design->block, op_new(module, OP_RETURN, NOWHERE, 0, NULL, 0, NULL));
	attr_set(module, design->function, KEY_SYM_NAME, attr_get(design->source, KEY_SYM_NAME));
	attr_set(module, design->function, KEY_FUNCTION_TYPE,
	        attr_type(module, type_function(module, ports, types, 0, NULL)));
	attr_set(module, design->function, KEY_ARG_ATTRS,
	        attr_array(module, (int)design->port_attrs.count, design->port_attrs.data));
	attr_set(module, design->function, KEY_STREAM_INPUTS,
	        attr_get(design->source, KEY_STREAM_INPUTS));
	attr_set(module, design->function, KEY_STREAM_OUTPUTS,
	        attr_get(design->source, KEY_STREAM_OUTPUTS));
	attr_set(module, design->function, KEY_STREAM_WORKLOAD,
	        attr_get(design->source, KEY_STREAM_WORKLOAD));
	attr_set(module, design->function, KEY_STREAM_IMAGES,
	        attr_get(design->source, KEY_STREAM_IMAGES));
	attr_set(module, design->function, KEY_STREAM_PRAGMA_COST,
	        attr_get(design->source, KEY_STREAM_PRAGMA_COST));
	attr_set(module, design->function, KEY_STREAM_TRANSFORMATIONS,
	        attr_get(design->source, KEY_STREAM_TRANSFORMATIONS));
	attr_set(module, design->function, KEY_STREAM_CONVERTERS,
	        attr_get(design->source, KEY_STREAM_CONVERTERS));
	attr_set(module, design->function, KEY_STREAM_BUFFERS,
	        attr_array(module, (int)design->buffers.count, design->buffers.data));
}

bool lower_streams(struct pass_context *context, struct module *module, struct design *design)
{
	struct op *source = module_main(module);
	struct block *body = source->region[0];
	*design = (struct design){
		.context = context,
		.module = module,
		.source = source,
		.reads_done = map_new(module->arena),
		.states = map_new(module->arena),
		.controls = map_new(module->arena),
	};
	ir_clear_data(body);
	ir_count_uses(body);
	design->function = op_new(module, OP_FUNC, source->location, 0, NULL, 0, NULL);
	design->block = block_new(module, design->function, 0);
	op_insert_before(source, design->function);
	op_remove(source);
	for (const struct op *op = body->first; op; op = op->next)
		if (op->code == OP_EXTENT)
			lower_extent(design, op);
	lower_loads(design, body);
	return lower_block(design, body) && lower_stores(design, body);
}

bool make_processes(struct pass_context *context, struct module *module)
{
	struct design design;
	if (!lower_streams(context, module, &design) ||
	        !lower_engine(&design, design.source->region[0]))
		return false;
	lower_controls(&design);
	lower_feedback(&design);
	finish_design(&design);
	module->level = LEVEL_HARDWARE;
	return true;
}
