/* The verifier: checks the op table, structure and visibility of values, then runs the checks of
 * verify_*.c. */
#include "ir/sliding_window.h"
#include "ir/verify.h"
#include "ir/workload.h"
#include <string.h>

void verify_fail(struct verifier *verifier, const struct op *op, const char *format, ...)
{
	struct text text = text_new(verifier->module->arena);
	op_print_short(op, &text);
	text_add(&text, ": ");
	va_list arguments;
	va_start(arguments, format);
	text_add_arguments(&text, format, arguments);
	va_end(arguments);
	diag_error(verifier->module->diag, op->location, "%s", text.data);
	verifier->failed = true;
}

static void check_count(
        struct verifier *verifier, const struct op *op, const char *what, int found, int expected)
{
	if (expected >= 0 && found != expected)
		verify_fail(verifier, op, "%d %s where %d are expected", found, what, expected);
}

static int regions(const struct op *op)
{
	return !!op->region[0] + !!op->region[1];
}

static bool is_private(const struct op *function)
{
	return text_same(attr_text_or(function, KEY_SYM_VISIBILITY, NULL), "private");
}

static bool is_process(const struct op *function)
{
	return attr_get(function, KEY_STREAM_PROCESS);
}

static const char *level_text(int level)
{
	switch (level) {
	case LEVEL_TENSOR: return "the tensor level";
	case LEVEL_DEMAND: return "the demand level";
	case LEVEL_STREAM: return "the stream level";
	case LEVEL_BODY: return "the body of a kernel";
	default: return "the hardware level";
	}
}

static void check_table(struct verifier *verifier, const struct op *op)
{
	const struct op_info *info = &op_info[op->code];
	check_count(verifier, op, "operands", op->operands, info->operands);
	check_count(verifier, op, "results", op->results, info->results);
	check_count(verifier, op, "regions", regions(op), info->regions);
	if (!(info->levels & verifier->level) &&
	        !(verifier->level == LEVEL_BODY && op->code == OP_RETURN))
		verify_fail(verifier, op, "does not belong to %s", level_text(verifier->level));
	if ((op->code == OP_FUNC) != (op->parent == module_body(verifier->module)))
		verify_fail(verifier, op,
		        "a module contains functions only, and functions are nowhere else");
}

static enum op_code terminator_of(const struct op *op)
{
	static const enum op_code terminator[OP_COUNT] = {
		[OP_FUNC] = OP_RETURN,
		[OP_FOR] = OP_YIELD,
		[OP_GENERIC] = OP_LINALG_YIELD,
		[OP_TENSOR_PAD] = OP_TENSOR_YIELD,
		[OP_SEQUENTIAL] = OP_SEQUENTIAL_YIELD,
	};
	return terminator[op->code];
}

static bool is_terminator(enum op_code code)
{
	return code == OP_RETURN || code == OP_YIELD || code == OP_LINALG_YIELD ||
	        code == OP_TENSOR_YIELD || code == OP_SEQUENTIAL_YIELD;
}

static void check_terminators(struct verifier *verifier, const struct op *op)
{
	if (is_terminator(op->code) && op->next)
		verify_fail(verifier, op, "is a terminator before the end of its block");
	enum op_code wanted = terminator_of(op);
	for (int r = 0; wanted && r < 2; r++)
		if (op->region[r] && (!op->region[r]->last || op->region[r]->last->code != wanted))
			verify_fail(
			        verifier, op, "its body does not end in %s", op_info[wanted].name);
}

/* Visible values have id 1 while their block is checked. */
static void hide(const struct block *block)
{
	for (int i = 0; i < block->arguments; i++)
		block->argument[i]->id = 0;
	for (const struct op *op = block->first; op; op = op->next)
		for (int i = 0; i < op->results; i++)
			op->result[i]->id = 0;
}

static void hide_all(struct op *op, void *context)
{
	(void)context;
	for (int i = 0; i < op->operands; i++)
		op->operand[i]->id = 0;
	for (int r = 0; r < 2; r++)
		if (op->region[r])
			hide(op->region[r]);
}

static void check_op(struct verifier *verifier, const struct op *op);

static void check_block(struct verifier *verifier, const struct block *block)
{
	for (int i = 0; i < block->arguments; i++)
		block->argument[i]->id = 1;
	for (const struct op *op = block->first; op; op = op->next)
		check_op(verifier, op);
	hide(block);
}

static void check_op(struct verifier *verifier, const struct op *op)
{
	int level = verifier->level;
	check_table(verifier, op);
	if (op->code == OP_FUNC && is_private(op) && !is_process(op))
		verifier->level = LEVEL_BODY;
	if (op->code == OP_SEQUENTIAL)
		verifier->level |= LEVEL_HARDWARE;
	for (int i = 0; i < op->operands; i++)
		if (op->operand[i]->id != 1)
			verify_fail(verifier, op,
			        "operand %d is used before it is defined, or outside its block", i);
	check_terminators(verifier, op);
	for (int r = 0; r < 2; r++)
		if (op->region[r])
			check_block(verifier, op->region[r]);
	verifier->level = level;
	for (int i = 0; i < op->results; i++)
		op->result[i]->id = 1;
}

static void check_types(struct op *op, void *context)
{
	struct verifier *verifier = context;
	verify_types(verifier, op);
	verify_op_types(verifier, op);
	if (op->code == OP_KERNEL)
		verify_kernel(verifier, op);
}

static void check_item_attributes(
        struct verifier *verifier, const struct op *function, enum attr_key key, int count)
{
	const struct attr *list = attr_get(function, key);
	if (list && (list->kind != ATTR_ARRAY || list->count != count))
		verify_fail(verifier, function, "%s has not one dictionary for each of %d",
		        key_name(key), count);
}

static void check_function(struct verifier *verifier, struct op *function)
{
	const char *name = attr_text_or(function, KEY_SYM_NAME, NULL);
	if (!name) {
		verify_fail(verifier, function, "has no sym_name");
		return;
	}
	if (map_get(&verifier->symbols, name))
		verify_fail(verifier, function, "there are two functions of this name");
	map_set(&verifier->symbols, name, function);
	const struct attr *type = attr_get(function, KEY_FUNCTION_TYPE);
	if (!type || type->kind != ATTR_TYPE || type->type->kind != TYPE_FUNCTION) {
		verify_fail(verifier, function, "has no function_type");
		return;
	}
	const struct block *body = function->region[0];
	bool same = body && body->arguments == type->type->inputs;
	for (int i = 0; same && i < body->arguments; i++)
		same = body->argument[i]->type == type->type->input[i];
	if (!same)
		verify_fail(verifier, function,
		        "the arguments of its body are not those of its type %s", type->type->text);
	check_item_attributes(verifier, function, KEY_ARG_ATTRS, type->type->inputs);
	check_item_attributes(verifier, function, KEY_RES_ATTRS, type->type->outputs);
}

static void check_functions(struct verifier *verifier)
{
	int mains = 0;
	for (struct op *op = module_body(verifier->module)->first; op; op = op->next) {
		if (op->code != OP_FUNC)
			continue;
		check_function(verifier, op);
		mains += !is_private(op) && !is_process(op);
	}
	if (mains == 1)
		return;
	diag_error(verifier->module->diag, verifier->module->op->location,
	        "the module has %d public functions", mains);
	diag_note(verifier->module->diag, "one function is the model; all others are private");
	verifier->failed = true;
}

/* Inputs are the arguments of main at tensor level, the entries of stream.inputs below it. */
bool verify_symbol(const struct verifier *verifier, const char *symbol)
{
	const char *name = sliding_window_symbol(verifier->module, symbol);
	const struct op *main = module_main(verifier->module);
	const struct attr *inputs = main ? attr_get(main, KEY_STREAM_INPUTS) : NULL;
	int count = main ? main->region[0]->arguments : 0;
	count = inputs ? inputs->count : count;
	for (int i = 0; i < count; i++) {
		const struct attr *own = inputs ? attr_item(inputs->items[i].value, KEY_NAME)
		                                : function_argument_attr(main, i, KEY_STREAM_NAME);
		const struct attr *listed =
		        inputs ? attr_item(inputs->items[i].value, KEY_TYPE) : NULL;
		const struct type *type = listed ? listed->type : NULL;
		if (!inputs)
			type = main->region[0]->argument[i]->type;
		if (own && own->kind == ATTR_STRING && text_same(own->text, name))
			return type && type->kind == TYPE_TENSOR && type_elements(type) == 1 &&
			        type_scalar(type)->kind == TYPE_INTEGER;
	}
	return false;
}

/* Passes read the workload, so one that an edited dump says wrongly would make another design. */
static void check_workload(struct verifier *verifier)
{
	const struct module *module = verifier->module;
	const struct op *main = module_main(module);
	if (!main)
		return;
	const char *found = attr_text_or(main, KEY_STREAM_WORKLOAD, NULL);
	const char *wanted = workload_name(workload_of_contractions(main->region[0]));
	if ((!found && !wanted) || (found && wanted && text_same(found, wanted)))
		return;
	found = found ? found : "absent";
	wanted = wanted ? wanted : "absent";
	verify_fail(verifier, main,
	        "stream.workload is %s, where the contractions of main make it %s", found, wanted);
}

/* Later checks rely on earlier ones, so a stage runs only if the one before found nothing. */
bool ir_verify(struct module *module)
{
	struct verifier verifier = {
		.module = module, .level = (int)module->level, .symbols = map_new(module->arena)
	};
	ir_walk(module_body(module), hide_all, NULL);
	check_block(&verifier, module_body(module));
	if (!verifier.failed)
		check_functions(&verifier);
	if (!verifier.failed)
		ir_walk(module_body(module), check_types, &verifier);
	if (!verifier.failed && module->level != LEVEL_HARDWARE)
		check_workload(&verifier);
	if (!verifier.failed && module->level != LEVEL_TENSOR)
		verify_signature(&verifier);
	if (!verifier.failed && (module->level & (LEVEL_DEMAND | LEVEL_STREAM)))
		verify_streams(&verifier);
	if (!verifier.failed && module->level == LEVEL_HARDWARE)
		verify_hardware(&verifier);
	return !verifier.failed;
}
