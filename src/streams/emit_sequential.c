/* Gives a sequential nest stream types: its operands enter and its results leave in row-major
 * order. Its body stays the same. */
#include "ir/nest_array.h"
#include "streams/stream_builder.h"

/* Of lanes for a bank, over all lanes of a word. */
enum { CHOICES_MOST = 512 };
/* Operands of so many have a memory port of their own. */
enum { BULK_ELEMENTS = 4096 };

/* In words as wide as the banks of a row can take or give in a cycle. */
static const struct type *row_major(struct streams *s, const struct op *nest,
        const struct value *array, const struct type *tensor)
{
	const struct type *type = natural_order(s->module, tensor);
	struct nest_array layout = nest_array_of(nest, array->index);
	int64_t banks = layout.banks[layout.rank - 1];
	int64_t lanes = stream_lanes(type);
	int64_t used = lanes; /* a part of it divides a row, too */
	while (lanes % used || used > banks ||
	        used * (banks / common_divisor(used, banks)) > CHOICES_MOST)
		used--;
	return used < lanes ? type_regroup(s->module, type, used) : type;
}

void emit_sequential(struct streams *s, struct op *old)
{
	struct module *module = s->module;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, old->operands + 1);
	const struct type **type = ARENA_ARRAY(module->arena, const struct type *, old->results);
	const struct attr **tensor = ARENA_ARRAY(module->arena, const struct attr *, old->results);
	for (int j = 0; j < old->operands; j++)
		operand[j] = demand_stream(s, tensor_source_of(old->operand[j]),
		        row_major(s, old, old->region[0]->argument[j], old->operand[j]->type),
		        type_elements(old->operand[j]->type) >= BULK_ELEMENTS);
	for (int i = 0; i < old->results; i++) {
		type[i] = row_major(s, old, old->region[0]->last->operand[i], old->result[i]->type);
		tensor[i] = attr_type(module, old->result[i]->type);
	}
	struct op *op = op_new(
	        module, OP_SEQUENTIAL, old->location, old->operands, operand, old->results, type);
	for (int i = 0; i < old->attributes; i++)
		if (old->attribute[i].name != key_name(KEY_OPERAND_SEGMENT_SIZES))
			attr_set_named(module, op, old->attribute[i].name, old->attribute[i].value);
	attr_set(module, op, KEY_TENSORS, attr_array(module, old->results, tensor));
	op->region[0] = old->region[0];
	op->region[0]->parent = op;
	op_append(s->block, op);
	for (int i = 0; i < old->results; i++)
		new_tensor_source(module, old->result[i], SOURCE_STREAM)->stream = op->result[i];
}
