/* Deep copy of a module. A copy in another arena shares nothing with the original. */
#include "ir/attr_name.h"
#include "ir/kernel.h"
#include <string.h>

struct cloner {
	struct module *module; /* the copy */
	struct value **value;  /* copies, by the id of the original */
	int values;
	/* the copy is in the original's arena: immutable types and attributes are shared */
	bool shares;
	const char *file, *file_copy; /* the last file name of a location, and its copy */
};

static const struct type *clone_type(struct module *module, const struct type *type);

static const struct type **clone_types(
        struct module *module, int count, const struct type *const *types)
{
	const struct type **copy = ARENA_ARRAY(module->arena, const struct type *, count);
	for (int i = 0; i < count; i++)
		copy[i] = clone_type(module, types[i]);
	return copy;
}

static const struct type *clone_none(struct module *module, const struct type *type)
{
	(void)type;
	return type_none(module);
}

static const struct type *clone_index(struct module *module, const struct type *type)
{
	(void)type;
	return type_index(module);
}

static const struct type *clone_integer(struct module *module, const struct type *type)
{
	return type_integer(module, type->width);
}

static const struct type *clone_float(struct module *module, const struct type *type)
{
	return type_float(module, type->width);
}

static const struct type *clone_bfloat(struct module *module, const struct type *type)
{
	(void)type;
	return type_bfloat(module);
}

static const struct type *clone_shaped(struct module *module, const struct type *type)
{
	return type_shaped(
	        module, type->kind, type->rank, type->shape, clone_type(module, type->element));
}

static const struct type *clone_function(struct module *module, const struct type *type)
{
	const struct type **input = clone_types(module, type->inputs, type->input);
	const struct type **output = clone_types(module, type->outputs, type->output);
	return type_function(module, type->inputs, input, type->outputs, output);
}

static const struct type *clone_itensor(struct module *module, const struct type *type)
{
	return type_itensor(module, clone_type(module, type->element), type->itensor);
}

static const struct type *clone_channel(struct module *module, const struct type *type)
{
	return type_channel(module, type->kind, clone_type(module, type->element), type->depth);
}

static const struct type *clone_type(struct module *module, const struct type *type)
{
	static const struct type *(*const clone[])(struct module *, const struct type *) = {
		[TYPE_NONE] = clone_none,
		[TYPE_INDEX] = clone_index,
		[TYPE_INTEGER] = clone_integer,
		[TYPE_FLOAT] = clone_float,
		[TYPE_BFLOAT] = clone_bfloat,
		[TYPE_VECTOR] = clone_shaped,
		[TYPE_TENSOR] = clone_shaped,
		[TYPE_MEMREF] = clone_shaped,
		[TYPE_FUNCTION] = clone_function,
		[TYPE_ITENSOR] = clone_itensor,
		[TYPE_FIFO] = clone_channel,
		[TYPE_BLOCKS] = clone_channel,
	};
	const struct type *known = map_get(&module->types, type->text);
	return known ? known : clone[type->kind](module, type);
}

static const char *clone_text(struct module *module, const char *text)
{
	return text ? text_copy(module->arena, text, strlen(text)) : NULL;
}

static const struct attr *clone_attr(struct module *module, const struct attr *attr);

static struct named *clone_items(struct module *module, int count, const struct named *items)
{
	struct named *copy = ARENA_ARRAY(module->arena, struct named, count);
	for (int i = 0; i < count; i++)
		copy[i] = (struct named){ items[i].name ? attr_name(module->arena, items[i].name)
			                                : NULL,
			clone_attr(module, items[i].value) };
	return copy;
}

static const struct attr *clone_attr(struct module *module, const struct attr *attr)
{
	struct arena *arena = module->arena;
	struct attr *copy = arena_copy(arena, attr, sizeof *attr);
	copy->type = attr->type ? clone_type(module, attr->type) : NULL;
	copy->text = clone_text(module, attr->text);
	if (attr->map.coefficient)
		copy->map.coefficient = arena_copy(arena, attr->map.coefficient,
		        sizeof(int64_t) * (size_t)(attr->map.dims + 1) * (size_t)attr->map.results);
	if (attr->items)
		copy->items = clone_items(module, attr->count, attr->items);
	if (attr->integers)
		copy->integers = arena_copy(
		        arena, attr->integers, sizeof *attr->integers * (size_t)attr->count);
	if (attr->data)
		copy->data = arena_copy(arena, attr->data, attr->bytes);
	return copy;
}

static struct location clone_location(struct cloner *cloner, struct location location)
{
	if (location.file != cloner->file) {
		cloner->file = location.file;
		cloner->file_copy = clone_text(cloner->module, location.file);
	}
	location.file = cloner->file_copy;
	return location;
}

static void retype_body(struct module *module, struct body *body)
{
	for (int i = 0; i < body->count; i++)
		body->node[i].type = clone_type(module, body->node[i].type);
}

static struct kernel *clone_payload(struct module *module, const struct op *op)
{
	struct kernel *kernel = kernel_clone(module, op->kernel, op->operands);
	kernel->type = clone_type(module, kernel->type);
	retype_body(module, &kernel->update);
	retype_body(module, &kernel->post);
	return kernel;
}

static void clone_block(
        struct cloner *cloner, struct op *parent, int region, const struct block *block);

static struct op *clone_op(struct cloner *cloner, const struct op *op)
{
	struct module *module = cloner->module;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, op->operands);
	for (int i = 0; i < op->operands; i++)
		operand[i] = cloner->value[op->operand[i]->id];
	const struct type **result = ARENA_ARRAY(module->arena, const struct type *, op->results);
	for (int i = 0; i < op->results; i++)
		result[i] = clone_type(module, op->result[i]->type);
	struct op *copy = op_new(module, op->code, clone_location(cloner, op->location),
	        op->operands, operand, op->results, result);
	for (int i = 0; i < op->results; i++)
		cloner->value[op->result[i]->id] = copy->result[i];
	copy->attributes = op->attributes;
	copy->attribute = cloner->shares ? arena_copy(module->arena, op->attribute,
	                                           sizeof *op->attribute * (size_t)op->attributes)
	                                 : clone_items(module, op->attributes, op->attribute);
	if (op->kernel)
		copy->kernel = clone_payload(module, op);
	for (int r = 0; r < 2; r++)
		if (op->region[r])
			clone_block(cloner, copy, r, op->region[r]);
	return copy;
}

static void clone_block(
        struct cloner *cloner, struct op *parent, int region, const struct block *block)
{
	struct module *module = cloner->module;
	struct block *copy = block_new(module, parent, region);
	for (int i = 0; i < block->arguments; i++)
		cloner->value[block->argument[i]->id] = block_add_argument(
		        module, copy, clone_type(module, block->argument[i]->type));
	for (const struct op *op = block->first; op; op = op->next)
		op_append(copy, clone_op(cloner, op));
}

static void number_values(struct op *op, void *context)
{
	int *values = context;
	for (int r = 0; r < 2; r++)
		for (int i = 0; op->region[r] && i < op->region[r]->arguments; i++)
			op->region[r]->argument[i]->id = (*values)++;
	for (int i = 0; i < op->results; i++)
		op->result[i]->id = (*values)++;
}

struct module *module_clone(const struct module *module, struct arena *arena)
{
	struct cloner cloner = { .module = module_new(
		                         arena, module->guard, module->diag, module->level),
		.shares = arena == module->arena };
	for (size_t i = 0; cloner.shares && i < module->types.entries.count; i++)
		map_set(&cloner.module->types, module->types.entries.data[i].key,
		        module->types.entries.data[i].value);
	ir_walk(module_body(module), number_values, &cloner.values);
	cloner.value = ARENA_ARRAY(arena, struct value *, cloner.values);
	cloner.module->op = clone_op(&cloner, module->op);
	return cloner.module;
}
