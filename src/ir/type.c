/* Types, interned by their text: equal types have equal pointers. */
#include "ir/ir.h"
#include "ir/print.h"
#include <inttypes.h>

static const char *const shaped_name[] = {
	[TYPE_VECTOR] = "vector", [TYPE_TENSOR] = "tensor", [TYPE_MEMREF] = "memref"
};

/* The type of this text, or a new one with only kind and text filled in; *fresh says which. */
static struct type *intern(
        struct module *module, enum type_kind kind, const char *text, bool *fresh)
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

static const struct type *scalar(
        struct module *module, enum type_kind kind, int width, const char *text)
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

const struct type *type_shaped(struct module *module, enum type_kind kind, int rank,
        const int64_t *shape, const struct type *element)
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

const struct type *type_function(struct module *module, int inputs, const struct type *const *input,
        int outputs, const struct type *const *output)
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

static void print_trips(struct text *text, const struct itensor *order)
{
	text_add(text, "[");
	for (int i = 0; i < order->dims; i++) {
		const struct run_time_trip *trip = order->run_time ? order->run_time[i] : NULL;
		text_add(text, "%s", i ? ", " : "");
		if (!trip) {
			text_add(text, "%" PRId64, order->trip[i]);
			continue;
		}
		text_add(text, "{most = %" PRId64 ", plus = %" PRId64 ", symbol = ", trip->most,
		        trip->plus);
		print_string(trip->symbol, text);
		text_add(text, ", tile = %" PRId64 "}", trip->tile);
	}
	text_add(text, "]");
}

static const struct run_time_trip *const *copy_run_time(
        struct arena *arena, const struct itensor *from)
{
	if (!from->run_time)
		return NULL;
	const struct run_time_trip **copy =
	        ARENA_ARRAY(arena, const struct run_time_trip *, from->dims + 1);
	for (int i = 0; i < from->dims; i++) {
		if (!from->run_time[i])
			continue;
		struct run_time_trip trip = *from->run_time[i];
		trip.symbol = text_format(arena, "%s", trip.symbol);
		copy[i] = arena_copy(arena, &trip, sizeof trip);
	}
	return copy;
}

static struct itensor *itensor_copy(struct arena *arena, const struct itensor *from)
{
	struct itensor *itensor = arena_copy(arena, from, sizeof *from);
	size_t dims = (size_t)from->dims;
	size_t rows = (size_t)(from->map.dims + 1) * (size_t)from->map.results;
	itensor->trip = arena_copy(arena, from->trip, sizeof *from->trip * dims);
	itensor->step = arena_copy(arena, from->step, sizeof *from->step * dims);
	itensor->run_time = copy_run_time(arena, from);
	itensor->map.coefficient =
	        arena_copy(arena, from->map.coefficient, sizeof *from->map.coefficient * rows);
	return itensor;
}

const struct type *type_itensor(
        struct module *module, const struct type *tile, const struct itensor *order)
{
	struct text text = text_new(module->arena);
	text_add(&text, "!stream.itensor<%s, ", tile->text);
	print_trips(&text, order);
	text_add(&text, ", ");
	print_extents(&text, order->dims, order->step);
	text_add(&text, ", affine_map<");
	affine_print(order->map, &text);
	text_add(&text, ">>");
	bool fresh;
	struct type *type = intern(module, TYPE_ITENSOR, text.data, &fresh);
	if (!fresh)
		return type;
	type->element = tile;
	type->itensor = itensor_copy(module->arena, order);
	return type;
}

const struct type *type_channel(
        struct module *module, enum type_kind kind, const struct type *element, int64_t depth)
{
	const char *name = kind == TYPE_FIFO ? "fifo" : "block_channel";
	const char *text = text_format(
	        module->arena, "!stream.%s<%s, %" PRId64 ">", name, element->text, depth);
	bool fresh;
	struct type *type = intern(module, kind, text, &fresh);
	type->element = element;
	type->depth = depth;
	return type;
}

/* Product of extents, saturated at INT64_MAX; -1 if an extent is unknown. */
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

bool run_time_same(const struct run_time_trip *left, const struct run_time_trip *right)
{
	if (!left || !right)
		return left == right;
	return text_same(left->symbol, right->symbol) && left->plus == right->plus &&
	        left->tile == right->tile && left->most == right->most &&
	        left->remaining == right->remaining && left->last_chunk == right->last_chunk &&
	        left->least == right->least && left->interleave == right->interleave;
}

static int64_t count_to(const struct run_time_trip *trip, int64_t value)
{
	int64_t from = value < 0 ? 0 : value;
	if (from >= trip->most * trip->tile - trip->plus)
		return trip->most;
	return from + trip->plus <= 0 ? 0 : (from + trip->plus + trip->tile - 1) / trip->tile;
}

int64_t run_time_count(const struct run_time_trip *trip, int64_t value)
{
	int64_t count = count_to(trip, value);
	count = count < trip->least ? trip->least : count;
	return trip->remaining ? trip->most - count : count;
}

int64_t type_elements(const struct type *type)
{
	return product(type->rank, type->shape);
}

int64_t type_lanes(const struct type *type)
{
	return type->kind == TYPE_VECTOR ? type_elements(type) : 1;
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
	return __builtin_mul_overflow(type_elements(type), type_bits(type->element), &bits)
	        ? INT64_MAX
	        : bits;
}

int64_t type_packed_bytes(const struct type *scalar, int64_t count)
{
	int64_t bits = type_bits(scalar);
	return count / 8 * bits + (count % 8 * bits + 7) / 8;
}

bool type_is_real(const struct type *type)
{
	return type->kind == TYPE_FLOAT || type->kind == TYPE_BFLOAT;
}

bool type_is_whole(const struct type *type)
{
	return type->kind == TYPE_INDEX || type->kind == TYPE_INTEGER;
}

bool type_is_port(const struct type *type)
{
	return type->kind == TYPE_MEMREF && type->rank && type->shape[0] < 0;
}

int64_t stream_lanes(const struct type *itensor)
{
	return type_elements(itensor->element);
}

int64_t stream_tile(const struct type *itensor, int dim)
{
	return itensor->element->kind == TYPE_VECTOR ? itensor->element->shape[dim] : 1;
}

int64_t itensor_tiles(const struct itensor *itensor)
{
	return product(itensor->dims, itensor->trip);
}
