/* Runs a sequential nest at tensor and at stream level: its body is a process without channels. */
#include "evaluate/eval_network.h"
#include "ir/nest_array.h"
#include <string.h>

/* The elements of a tensor or of a stream in row-major order. */
static void *data_of(const struct evaluation *e, const struct value *value)
{
	if (e->module->level == LEVEL_TENSOR)
		return eval_tensor_of(value)->data;
	return ((struct words *)value->data)->data;
}

static void *new_data(struct evaluation *e, struct value *value)
{
	if (e->module->level == LEVEL_TENSOR) {
		struct tensor *tensor = eval_new(e, value->type);
		value->data = tensor;
		return tensor->data;
	}
	struct words *words = eval_words(e, value->type);
	value->data = words;
	return words->data;
}

/* Between a tensor's elements and the array that holds them. */
static void copy(const struct op *op, int number, char *array, char *tensor, bool leaves)
{
	struct nest_array layout = nest_array_of(op, number);
	size_t bytes = (size_t)scalar_storage_bytes(op->region[0]->argument[number]->type->element);
	int64_t elements = 1;
	for (int d = 0; d < layout.rank; d++)
		elements *= layout.extent[d];
	for (int64_t i = 0; i < elements; i++) {
		char *inside = array + (size_t)nest_array_place(&layout, i) * bytes;
		char *outside = tensor + (size_t)i * bytes;
		if (leaves)
			memcpy(outside, inside, bytes);
		else
			memcpy(inside, outside, bytes);
	}
}

bool eval_sequential(struct evaluation *e, struct op *op)
{
	struct network network = { .e = e };
	struct block *body = op->region[0];
	for (int i = 0; i < body->arguments; i++) {
		const struct type *type = body->argument[i]->type;
		int64_t elements = type_elements(type);
		char *data = arena_alloc(
		        e->arena, (size_t)(elements * scalar_storage_bytes(type->element)));
		if (i < op->operands)
			copy(op, i, data, data_of(e, op->operand[i]), false);
		body->argument[i]->data = array_new(e->arena, "an array", type, elements, data);
	}
	if (!network_add_nest(&network, op) || !network_run(&network))
		return false;
	for (int i = 0; i < op->results; i++) {
		const struct value *array = body->last->operand[i];
		copy(op, array->index, ((struct array *)array->data)->data,
		        new_data(e, op->result[i]), true);
	}
	return true;
}
