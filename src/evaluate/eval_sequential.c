/* Runs a sequential nest at tensor and at stream level: its body is a process without channels. */
#include "evaluate/eval_network.h"
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

static size_t bytes_of(const struct type *array)
{
	return (size_t)(type_elements(array) * scalar_storage_bytes(array->element));
}

bool eval_sequential(struct evaluation *e, struct op *op)
{
	struct network network = { .e = e };
	struct block *body = op->region[0];
	for (int i = 0; i < body->arguments; i++) {
		const struct type *type = body->argument[i]->type;
		char *data = arena_alloc(e->arena, bytes_of(type));
		if (i < op->operands)
			memcpy(data, data_of(e, op->operand[i]), bytes_of(type));
		body->argument[i]->data =
		        array_new(e->arena, "an array", type, type->shape[0], data);
	}
	if (!network_add_nest(&network, op) || !network_run(&network))
		return false;
	for (int i = 0; i < op->results; i++) {
		const struct value *array = body->last->operand[i];
		memcpy(new_data(e, op->result[i]), ((struct array *)array->data)->data,
		        bytes_of(array->type));
	}
	return true;
}
