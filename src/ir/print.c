/* Prints a module in MLIR's generic form. All attributes of an operation are in one dictionary,
 * sorted by name. */
#include "ir/print.h"
#include <string.h>

struct printer {
	struct module *module;
	struct text *out;
	int depth;  /* indentation */
	int values; /* values numbered so far in the current function */
};

int operand_segments(enum op_code code)
{
	static const int segments[OP_COUNT] = { [OP_KERNEL] = KERNEL_OPERANDS,
		[OP_CONTRACT] = 6,
		[OP_LOAD] = 2,
		[OP_GATHER] = 3,
		[OP_STORE] = 3,
		[OP_CONCAT] = 8,
		[OP_JOIN] = 8,
		[OP_SEQUENTIAL] = SEQUENTIAL_SEGMENTS };
	return segments[code];
}

int result_segments(enum op_code code)
{
	static const int segments[OP_COUNT] = {
		[OP_BUFFER] = 8, [OP_SEQUENTIAL] = SEQUENTIAL_SEGMENTS
	};
	return segments[code];
}

int type_runs(int count, struct value *const *value)
{
	int runs = 0;
	for (int i = 0; i < count; i++)
		runs += !i || value[i]->type != value[i - 1]->type;
	return runs;
}

static const struct attr *segment_sizes(
        struct module *module, int segments, int values, struct value *const *value)
{
	int runs = type_runs(values, value);
	int count = runs > segments ? runs : segments;
	int64_t *size = ARENA_ARRAY(module->arena, int64_t, count);
	for (int i = 0, run = -1; i < values; i++) {
		run += !i || value[i]->type != value[i - 1]->type;
		size[run]++;
	}
	struct attr attr = { .kind = ATTR_INTEGERS,
		.type = type_integer(module, 32),
		.count = count,
		.integers = size };
	return arena_copy(module->arena, &attr, sizeof attr);
}

/* Attributes in the text of an operation that are derived from its fields. */
static const struct attr *derived_attributes(struct module *module, const struct op *op)
{
	if (op->code == OP_KERNEL)
		return kernel_attributes(module, op);
	/* MLIR's reader adds these where the text lacks them, so printing them makes the text a
	 * fixed point */
	if (op->code == OP_ALLOCA) {
		struct attr sizes = { .kind = ATTR_INTEGERS,
			.type = type_integer(module, 32),
			.count = 2,
			.integers = ARENA_ARRAY(module->arena, int64_t, 2) };
		struct named segments = { key_name(KEY_MLIR_SEGMENT_SIZES),
			arena_copy(module->arena, &sizes, sizeof sizes) };
		return attr_dictionary(module, 1, &segments);
	}
	if (op->code == OP_MODULE) {
		struct named level = { key_name(KEY_STREAM_LEVEL),
			attr_string(module, level_name(module->level)) };
		return attr_dictionary(module, 1, &level);
	}
	return attr_dictionary(module, 0, NULL);
}

static const struct attr *all_attributes(struct module *module, const struct op *op)
{
	const struct attr *derived = derived_attributes(module, op);
	VEC(struct named) all = { 0 };
	for (int i = 0; i < derived->count; i++)
		VEC_PUSH(module->arena, &all, derived->items[i]);
	int operands = operand_segments(op->code);
	int results = result_segments(op->code);
	if (operands)
		VEC_PUSH(module->arena, &all,
		        ((struct named){ key_name(KEY_OPERAND_SEGMENT_SIZES),
		                segment_sizes(module, operands, op->operands, op->operand) }));
	if (results)
		VEC_PUSH(module->arena, &all,
		        ((struct named){ key_name(KEY_RESULT_SEGMENT_SIZES),
		                segment_sizes(module, results, op->results, op->result) }));
	for (int i = 0; i < op->attributes; i++) {
		const char *name = op->attribute[i].name;
		bool same = (operands && !strcmp(name, key_name(KEY_OPERAND_SEGMENT_SIZES))) ||
		        (results && !strcmp(name, key_name(KEY_RESULT_SEGMENT_SIZES)));
		if (!same && !attr_item_named(derived, op->attribute[i].name))
			VEC_PUSH(module->arena, &all, op->attribute[i]);
	}
	return attr_dictionary(module, (int)all.count, all.data);
}

static void indent(const struct printer *printer)
{
	for (int i = 0; i < printer->depth; i++)
		text_add(printer->out, "  ");
}

static void print_op(struct printer *printer, const struct op *op);

static void print_arguments(struct printer *printer, const struct block *block)
{
	if (!block->arguments && block->first)
		return;
	indent(printer);
	text_add(printer->out, block->arguments ? "^bb0(" : "^bb0");
	for (int i = 0; i < block->arguments; i++) {
		struct value *argument = block->argument[i];
		argument->id = printer->values++;
		text_add(printer->out, "%s%%%d: %s", i ? ", " : "", argument->id,
		        argument->type->text);
	}
	text_add(printer->out, block->arguments ? "):\n" : ":\n");
}

static void print_block(struct printer *printer, const struct block *block)
{
	print_arguments(printer, block);
	printer->depth++;
	for (const struct op *op = block->first; op; op = op->next)
		print_op(printer, op);
	printer->depth--;
}

static void print_regions(struct printer *printer, const struct op *op)
{
	if (!op->region[0])
		return;
	text_add(printer->out, " (");
	for (int r = 0; r < 2 && op->region[r]; r++) {
		text_add(printer->out, r ? ", {\n" : "{\n");
		print_block(printer, op->region[r]);
		indent(printer);
		text_add(printer->out, "}");
	}
	text_add(printer->out, ")");
}

static void print_types(const struct op *op, struct text *out)
{
	text_add(out, " : (");
	for (int i = 0; i < op->operands; i++)
		text_add(out, "%s%s", i ? ", " : "", op->operand[i]->type->text);
	bool bare = op->results == 1 && op->result[0]->type->kind != TYPE_FUNCTION;
	text_add(out, bare ? ") -> " : ") -> (");
	for (int i = 0; i < op->results; i++)
		text_add(out, "%s%s", i ? ", " : "", op->result[i]->type->text);
	text_add(out, bare ? "" : ")");
}

static void print_results(struct printer *printer, const struct op *op)
{
	for (int i = 0; i < op->results; i++) {
		op->result[i]->id = printer->values++;
		text_add(printer->out, "%s%%%d", i ? ", " : "", op->result[i]->id);
	}
	text_add(printer->out, "%s", op->results ? " = " : "");
}

static void print_op(struct printer *printer, const struct op *op)
{
	struct text *out = printer->out;
	if (op->code == OP_FUNC)
		printer->values = 0;
	indent(printer);
	print_results(printer, op);
	text_add(out, "\"%s\"(", op_info[op->code].name);
	for (int i = 0; i < op->operands; i++)
		text_add(out, "%s%%%d", i ? ", " : "", op->operand[i]->id);
	text_add(out, ")");
	print_regions(printer, op);
	const struct attr *attributes = all_attributes(printer->module, op);
	if (attributes->count) {
		text_add(out, " ");
		attr_print_items(attributes->count, attributes->items, out);
	}
	print_types(op, out);
	text_add(out, "\n");
}

static void print_bodies(struct op *op, void *context)
{
	struct printer *printer = context;
	if (op->code == OP_KERNEL)
		kernel_print_bodies(printer->module, op, printer->out);
}

void ir_print(struct module *module, struct text *out)
{
	struct printer printer = { .module = module, .out = out };
	const struct block *body = module_body(module);
	text_add(out, "\"builtin.module\"() ({\n");
	if (!body->first)
		text_add(out, "^bb0:\n");
	printer.depth++;
	for (const struct op *op = body->first; op; op = op->next)
		print_op(&printer, op);
	ir_walk(module_body(module), print_bodies, &printer);
	const struct attr *attributes = all_attributes(module, module->op);
	text_add(out, "}) ");
	attr_print_items(attributes->count, attributes->items, out);
	text_add(out, " : () -> ()\n");
}

void op_print_short(const struct op *op, struct text *out)
{
	const char *name = op->kernel ? op->kernel->name : attr_text_or(op, KEY_SYM_NAME, NULL);
	text_add(out, "%s", op_info[op->code].name);
	if (name)
		text_add(out, " '%s'", name);
	print_types(op, out);
}
