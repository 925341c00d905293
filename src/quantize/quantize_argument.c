/* Arguments of main that replace the model's weights.  Each is described by how the packer makes
 * it from a weight (stream.derived_from); weights that nothing reads then are removed. */
#include "quantize/quantize.h"
#include <string.h>

static const char *free_name(struct quantizer *q, const char *name)
{
	const char *candidate = name;
	for (int n = 1; map_get(&q->names, candidate); n++)
		candidate = text_format(q->module->arena, "%s_%d", name, n);
	map_set(&q->names, candidate, q->main);
	return candidate;
}

struct quantized from_weight(const struct quantizer *q, const struct value *weight)
{
	int64_t *trip = ARENA_ARRAY(q->module->arena, int64_t, 1);
	int64_t *stride = ARENA_ARRAY(q->module->arena, int64_t, 1);
	*trip = type_elements(weight->type);
	*stride = 1;
	return (struct quantized){
		.source = function_argument_attr(q->main, weight->index, KEY_STREAM_NAME)->text,
		.type = weight->type,
		.axis = -1,
		.group = 1,
		.shared = 1,
		.block = 1,
		.from = { .dims = 1,
		        .trip = trip,
		        .stride = stride,
		        .host_bytes = 4,
		        .image_bytes = 4 }
	};
}

struct value *add_weight(struct quantizer *q, const struct quantized *from, const char *suffix,
        const struct type *type)
{
	struct module *module = q->module;
	const char *name = free_name(q, text_format(module->arena, "%s.%s", from->source, suffix));
	struct named items[] = { { key_name(KEY_STREAM_NAME), attr_string(module, name) },
		{ key_name(KEY_STREAM_ROLE), attr_string(module, "weight") },
		{ key_name(KEY_STREAM_DERIVED_FROM), quantized_attr(module, from) } };
	VEC_PUSH(module->arena, &q->attributes, attr_dictionary(module, 3, items));
	return block_add_argument(module, q->main->region[0], type);
}

struct op *quantize_kernel(struct quantizer *q, const struct kernel_spec *spec)
{
	const char *base = spec->name ? spec->name : spec->at->kernel->name;
	const char *name = text_format(q->module->arena, "%s_%s", base, spec->suffix);
	struct op *op = kernel_new(q->module, spec->at->location, name, spec->loops, spec->operands,
	        spec->operand, spec->result);
	op_insert_before(spec->at, op);
	return op;
}

void finish_arguments(struct quantizer *q)
{
	struct module *module = q->module;
	struct block *block = q->main->region[0];
	const struct attr *old = attr_get(q->main, KEY_ARG_ATTRS);
	int count = 0;
	int old_count = block->arguments - (int)q->attributes.count;
	const struct attr **attributes =
	        ARENA_ARRAY(module->arena, const struct attr *, block->arguments + 1);
	const struct type **types =
	        ARENA_ARRAY(module->arena, const struct type *, block->arguments + 1);
	ir_count_uses(block);
	for (int i = 0; i < block->arguments; i++) {
		struct value *argument = block->argument[i];
		if (i < old_count && !argument->uses && is_weight(q, argument))
			continue;
		attributes[count] =
		        i < old_count ? old->items[i].value : q->attributes.data[i - old_count];
		types[count] = argument->type;
		block->argument[count++] = argument;
	}
	block->arguments = count;
	for (int i = 0; i < count; i++)
		block->argument[i]->index = i;
	const struct type *type = attr_get(q->main, KEY_FUNCTION_TYPE)->type;
	attr_set(module, q->main, KEY_ARG_ATTRS, attr_array(module, count, attributes));
	attr_set(module, q->main, KEY_FUNCTION_TYPE,
	        attr_type(
	                module, type_function(module, count, types, type->outputs, type->output)));
}
