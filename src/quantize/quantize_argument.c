/* Arguments of main that replace the model's weights. Each is described by how the packer makes it
 * from a weight (stream.derived_from). */
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
