/* Gives a sequential nest stream types: its operands enter and its results leave in row-major
 * order. Its body stays the same. */
#include "streams/stream_builder.h"

static const struct type *row_major(struct streams *s, const struct type *tensor)
{
	const struct type *type = natural_order(s->module, tensor);
	return stream_lanes(type) > 1 ? type_regroup(s->module, type, 1) : type;
}

void emit_sequential(struct streams *s, struct op *old)
{
	struct module *module = s->module;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, old->operands + 1);
	const struct type **type = ARENA_ARRAY(module->arena, const struct type *, old->results);
	const struct attr **tensor = ARENA_ARRAY(module->arena, const struct attr *, old->results);
	for (int j = 0; j < old->operands; j++)
		operand[j] = demand_stream(s, tensor_source_of(old->operand[j]),
		        row_major(s, old->operand[j]->type), 0);
	for (int i = 0; i < old->results; i++) {
		type[i] = row_major(s, old->result[i]->type);
		tensor[i] = attr_type(module, old->result[i]->type);
	}
	struct op *op = op_new(
	        module, OP_SEQUENTIAL, old->location, old->operands, operand, old->results, type);
	attr_set(module, op, KEY_STREAM_NAME, attr_get(old, KEY_STREAM_NAME));
	attr_set(module, op, KEY_TENSORS, attr_array(module, old->results, tensor));
	op->region[0] = old->region[0];
	op->region[0]->parent = op;
	op_append(s->block, op);
	for (int i = 0; i < old->results; i++)
		new_tensor_source(module, old->result[i], SOURCE_STREAM)->stream = op->result[i];
}
