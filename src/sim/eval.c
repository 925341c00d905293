/* Walks main at tensor and stream level; the hardware level has its own interpreter. */
#include "sim/eval_level.h"
#include <string.h>

size_t tensor_bytes(const struct type *type)
{
	return (size_t)type_elements(type) * (size_t)scalar_storage_bytes(type_scalar(type));
}

struct tensor *eval_tensor_of(const struct value *value)
{
	return value->data;
}

struct tensor *eval_new(struct evaluation *e, const struct type *type)
{
	struct tensor *tensor = ARENA_NEW(e->arena, struct tensor);
	tensor->type = type;
	tensor->data = arena_alloc(e->arena, tensor_bytes(type));
	return tensor;
}

struct tensor *eval_result(struct evaluation *e, struct op *op)
{
	return op->result[0]->data = eval_new(e, op->result[0]->type);
}

int64_t eval_integer(const struct value *value)
{
	const struct tensor *tensor = value->data;
	int64_t number;
	scalar_read(type_scalar(tensor->type), &number, tensor->data, 0, 0, 1);
	return number;
}

static bool eval_nothing(struct evaluation *e, struct op *op)
{
	(void)e;
	(void)op;
	return true;
}

static bool eval_for(struct evaluation *e, struct op *op)
{
	struct block *body = op->region[0];
	int64_t lower = eval_integer(op->operand[0]), upper = eval_integer(op->operand[1]), step = eval_integer(op->operand[2]);
	if (step <= 0)
		return diag_error(e->module->diag, op->location, "a loop with step %lld", (long long)step);
	for (int i = 0; i < op->results; i++)
		body->argument[1 + i]->data = op->operand[3 + i]->data;
	for (int64_t at = lower; at < upper; at += step) {
		struct tensor *counter = eval_new(e, body->argument[0]->type);
		memcpy(counter->data, &at, (size_t)scalar_storage_bytes(counter->type));
		body->argument[0]->data = counter;
		if (!eval_block(e, body))
			return false;
		for (int i = 0; i < op->results; i++)
			body->argument[1 + i]->data = body->last->operand[i]->data;
	}
	for (int i = 0; i < op->results; i++)
		op->result[i]->data = body->argument[1 + i]->data;
	return true;
}

static eval_function *const structure_functions[OP_COUNT] = {
	[OP_FOR] = eval_for,
	[OP_YIELD] = eval_nothing,
	[OP_RETURN] = eval_nothing,
	[OP_TENSOR_YIELD] = eval_nothing,
	[OP_ASSERT] = eval_nothing,
};

static eval_function *function_of(const struct evaluation *e, enum op_code code)
{
	eval_function *const *level = e->module->level == LEVEL_STREAM ? eval_stream_functions : eval_tensor_functions;
	eval_function *function = structure_functions[code] ? structure_functions[code] : level[code];
	return function ? function : eval_tensor_functions[code];
}

bool eval_block(struct evaluation *e, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		eval_function *function = function_of(e, op->code);
		if (!function)
			return diag_error(e->module->diag, op->location, "\"%s\" cannot be evaluated here", op_info[op->code].name);
		if (!function(e, op))
			return false;
	}
	return true;
}

static const struct attr *main_list(const struct module *module, const char *name)
{
	struct op *main = module_main(module);
	return main ? attr_get(main, name) : NULL;
}

int eval_inputs(const struct module *module)
{
	const struct attr *list = main_list(module, "stream.inputs");
	struct op *main = module_main(module);
	if (module->level == LEVEL_HARDWARE)
		return list ? list->count : 0;
	return main ? main->region[0]->arguments : 0;
}

int eval_results(const struct module *module)
{
	const struct attr *list = main_list(module, "stream.outputs");
	struct op *main = module_main(module);
	if (module->level == LEVEL_HARDWARE)
		return list ? list->count : 0;
	return main && main->region[0]->last ? main->region[0]->last->operands : 0;
}

static bool same_shape(const struct type *left, const struct type *right)
{
	if (left->rank != right->rank || scalar_storage_bytes(type_scalar(left)) != scalar_storage_bytes(type_scalar(right)))
		return false;
	for (int d = 0; d < left->rank; d++)
		if (left->shape[d] != right->shape[d])
			return false;
	return true;
}

static bool eval_dense(struct evaluation *e, const struct tensor *input, struct tensor *result)
{
	struct op *main = module_main(e->module);
	struct block *body = main->region[0];
	for (int i = 0; i < body->arguments; i++) {
		struct value *argument = body->argument[i];
		if (!same_shape(input[i].type, argument->type))
			return diag_error(e->module->diag, main->location, "input %d is a %s, not a %s", i, input[i].type->text, argument->type->text);
		argument->data = arena_copy(e->arena, &input[i], sizeof input[i]);
	}
	if (!eval_block(e, body))
		return false;
	for (int i = 0; i < body->last->operands; i++)
		result[i] = *eval_tensor_of(body->last->operand[i]);
	return true;
}

bool eval_module(struct module *module, struct arena *arena, int inputs, const struct tensor *input, struct tensor *result)
{
	struct evaluation e = {.module = module, .arena = arena};
	struct op *main = module_main(module);
	if (!main)
		return diag_error(module->diag, NOWHERE, "the module has no main function");
	if (inputs != eval_inputs(module))
		return diag_error(module->diag, main->location, "%d inputs for a function of %d", inputs, eval_inputs(module));
	if (module->level == LEVEL_HARDWARE)
		return eval_hardware(&e, inputs, input, result);
	return eval_dense(&e, input, result);
}
