/* Types, interned by their text. */
#include "ir/ir.h"
#include <inttypes.h>

static const char *const shaped_name[] = {[TYPE_VECTOR] = "vector", [TYPE_TENSOR] = "tensor", [TYPE_MEMREF] = "memref"};

/* The type of this text, or a new one of that kind with nothing but its text; `fresh` says which. */
static struct type *intern(struct module *module, enum type_kind kind, const char *text, bool *fresh)
{
	struct type *type = map_get(&module->types, text);
	*fresh = !type;
	if (type)
		return type;
	type = ARENA_NEW(module->arena, struct type);
	type->kind = kind;
	type->text = text;
	map_set(&module->types, text, type);
	return type;
}

static const struct type *scalar(struct module *module, enum type_kind kind, int width, const char *text)
{
	bool fresh;
	struct type *type = intern(module, kind, text, &fresh);
	type->width = width;
	return type;
}

const struct type *type_none(struct module *module)
{
	return scalar(module, TYPE_NONE, 0, "none");
}

const struct type *type_index(struct module *module)
{
	return scalar(module, TYPE_INDEX, 0, "index");
}

const struct type *type_integer(struct module *module, int width)
{
	return scalar(module, TYPE_INTEGER, width, text_format(module->arena, "i%d", width));
}

const struct type *type_float(struct module *module, int width)
{
	return scalar(module, TYPE_FLOAT, width, text_format(module->arena, "f%d", width));
}

const struct type *type_bfloat(struct module *module)
{
	return scalar(module, TYPE_BFLOAT, 16, "bf16");
}

const struct type *type_shaped(struct module *module, enum type_kind kind, int rank, const int64_t *shape, const struct type *element)
{
	struct text text = text_new(module->arena);
	text_add(&text, "%s<", shaped_name[kind]);
	for (int i = 0; i < rank; i++) {
		if (shape[i] < 0)
			text_add(&text, "?x");
		else
			text_add(&text, "%" PRId64 "x", shape[i]);
	}
	text_add(&text, "%s>", element->text);
	bool fresh;
	struct type *type = intern(module, kind, text.data, &fresh);
	if (!fresh)
		return type;
	type->rank = rank;
	type->shape = arena_copy(module->arena, shape, sizeof *shape * (size_t)rank);
	type->element = element;
	return type;
}

static void print_types(struct text *text, int count, const struct type *const *types)
{
	for (int i = 0; i < count; i++)
		text_add(text, "%s%s", i ? ", " : "", types[i]->text);
}

const struct type *type_function(struct module *module, int inputs, const struct type *const *input, int outputs, const struct type *const *output)
{
	struct text text = text_new(module->arena);
	bool bare = outputs == 1 && output[0]->kind != TYPE_FUNCTION;
	text_add(&text, "(");
	print_types(&text, inputs, input);
	text_add(&text, bare ? ") -> " : ") -> (");
	print_types(&text, outputs, output);
	text_add(&text, bare ? "" : ")");
	bool fresh;
	struct type *type = intern(module, TYPE_FUNCTION, text.data, &fresh);
	if (!fresh)
		return type;
	type->inputs = inputs;
	type->outputs = outputs;
	type->input = arena_copy(module->arena, input, sizeof *input * (size_t)inputs);
	type->output = arena_copy(module->arena, output, sizeof *output * (size_t)outputs);
	return type;
}

static void print_extents(struct text *text, int count, const int64_t *extent)
{
	text_add(text, "[");
	for (int i = 0; i < count; i++)
		text_add(text, "%s%" PRId64, i ? ", " : "", extent[i]);
	text_add(text, "]");
}

static struct itensor *itensor_copy(struct arena *arena, int dims, const int64_t *trip, const int64_t *step, struct affine_map map)
{
	struct itensor *itensor = ARENA_NEW(arena, struct itensor);
	size_t rows = (size_t)(map.dims + 1) * (size_t)map.results;
	itensor->dims = dims;
	itensor->trip = arena_copy(arena, trip, sizeof *trip * (size_t)dims);
	itensor->step = arena_copy(arena, step, sizeof *step * (size_t)dims);
	itensor->map = map;
	itensor->map.coefficient = arena_copy(arena, map.coefficient, sizeof *map.coefficient * rows);
	return itensor;
}

const struct type *type_itensor(struct module *module, const struct type *tile, int dims, const int64_t *trip, const int64_t *step, struct affine_map map)
{
	struct text text = text_new(module->arena);
	text_add(&text, "!stream.itensor<%s, ", tile->text);
	print_extents(&text, dims, trip);
	text_add(&text, ", ");
	print_extents(&text, dims, step);
	text_add(&text, ", affine_map<");
	affine_print(map, &text);
	text_add(&text, ">>");
	bool fresh;
	struct type *type = intern(module, TYPE_ITENSOR, text.data, &fresh);
	if (!fresh)
		return type;
	type->element = tile;
	type->itensor = itensor_copy(module->arena, dims, trip, step, map);
	return type;
}

const struct type *type_channel(struct module *module, enum type_kind kind, const struct type *element, int64_t depth)
{
	const char *name = kind == TYPE_FIFO ? "fifo" : "blocks";
	const char *text = text_format(module->arena, "!stream.%s<%s, %" PRId64 ">", name, element->text, depth);
	bool fresh;
	struct type *type = intern(module, kind, text, &fresh);
	type->element = element;
	type->depth = depth;
	return type;
}

/* Saturates at the largest number; -1 if an extent is unknown. */
static int64_t product(int count, const int64_t *extent)
{
	int64_t result = 1;
	for (int i = 0; i < count; i++) {
		if (extent[i] < 0)
			return -1;
		if (__builtin_mul_overflow(result, extent[i], &result))
			result = INT64_MAX;
	}
	return result;
}

int64_t type_elements(const struct type *type)
{
	return product(type->rank, type->shape);
}

const struct type *type_scalar(const struct type *type)
{
	while (type->element)
		type = type->element;
	return type;
}

int64_t type_bits(const struct type *type)
{
	if (!type->element)
		return type->kind == TYPE_INDEX ? 64 : type->width;
	int64_t bits;
	return __builtin_mul_overflow(type_elements(type), type_bits(type->element), &bits) ? INT64_MAX : bits;
}

bool type_is_real(const struct type *type)
{
	return type->kind == TYPE_FLOAT || type->kind == TYPE_BFLOAT;
}

int64_t itensor_tiles(const struct itensor *itensor)
{
	return product(itensor->dims, itensor->trip);
}
