/* Text of a kernel: its fields as attributes, its bodies as private functions, as in MLIR. */
#include "ir/print.h"

static const struct attr *access_map(
        struct module *module, const struct kernel *kernel, const struct access *access)
{
	int64_t *row = affine_rows(module->arena, kernel->loops, 1);
	for (int i = 0; i < kernel->loops; i++)
		row[i] = access->stride[i];
	row[kernel->loops] = access->offset;
	return attr_map(module, (struct affine_map){ kernel->loops, 1, row });
}

static const struct attr *loop_extents(struct module *module, const struct kernel *kernel)
{
	int64_t *extent = ARENA_ARRAY(module->arena, int64_t, kernel->loops);
	for (int i = 0; i < kernel->loops; i++)
		extent[i] = kernel->loop[i].extent;
	return attr_integers(module, kernel->loops, extent);
}

static const struct attr *loop_reductions(struct module *module, const struct kernel *kernel)
{
	int64_t *reduction = ARENA_ARRAY(module->arena, int64_t, kernel->loops);
	for (int i = 0; i < kernel->loops; i++)
		reduction[i] = kernel->loop[i].reduction;
	return attr_integers(module, kernel->loops, reduction);
}

/* Loops with run-time trip counts; NULL if there are none. */
static const struct attr *run_time_trips(struct module *module, const struct kernel *kernel)
{
	VEC(const struct attr *) list = { 0 };
	for (int i = 0; i < kernel->loops; i++) {
		const struct run_time_trip *trip = kernel->loop[i].run_time;
		if (!trip)
			continue;
		struct named items[] = { { key_name(KEY_LOOP), attr_integer(module, i) },
			{ key_name(KEY_SYMBOL), attr_string(module, trip->symbol) },
			{ key_name(KEY_PLUS), attr_integer(module, trip->plus) },
			{ key_name(KEY_TILE), attr_integer(module, trip->tile) } };
		VEC_PUSH(module->arena, &list, attr_dictionary(module, 4, items));
	}
	return list.count ? attr_array(module, (int)list.count, list.data) : NULL;
}

static const struct attr *accesses(struct module *module, const struct kernel *kernel, int operands)
{
	const struct attr **map = ARENA_ARRAY(module->arena, const struct attr *, operands);
	for (int i = 0; i < operands; i++)
		map[i] = access_map(module, kernel, &kernel->operand[i]);
	return attr_array(module, operands, map);
}

/* [operand, loop, low, high] of all guards; NULL if there are none. */
static const struct attr *guards(struct module *module, const struct kernel *kernel, int operands)
{
	VEC(const struct attr *) list = { 0 };
	for (int i = 0; i < operands; i++) {
		const struct access *access = &kernel->operand[i];
		for (int g = 0; g < access->guards; g++) {
			const struct guard_range *guard = &access->guard[g];
			int64_t row[] = { i, guard->loop, guard->last ? -1 : guard->low,
				guard->last ? 0 : guard->high };
			VEC_PUSH(module->arena, &list, attr_integers(module, 4, row));
		}
	}
	return list.count ? attr_array(module, (int)list.count, list.data) : NULL;
}

/* The row predicates of operands; NULL if there are none. */
static const struct attr *row_predicate(
        struct module *module, const struct kernel *kernel, int operands)
{
	VEC(const struct attr *) list = { 0 };
	for (int i = 0; i < operands; i++) {
		const struct row_predicate *row_predicate = kernel->operand[i].row_predicate;
		if (!row_predicate)
			continue;
		struct named items[] = { { key_name(KEY_OPERAND), attr_integer(module, i) },
			{ key_name(KEY_COEFFICIENTS),
			        attr_integers(module, kernel->loops, row_predicate->weight) },
			{ key_name(KEY_ROWS_PER_ITERATION),
			        attr_integer(module, row_predicate->step) },
			{ key_name(KEY_MOST), attr_integer(module, row_predicate->rows.most) },
			{ key_name(KEY_SYMBOL), attr_string(module, row_predicate->symbol) } };
		VEC_PUSH(module->arena, &list, attr_dictionary(module, 5, items));
	}
	return list.count ? attr_array(module, (int)list.count, list.data) : NULL;
}

static const struct attr *gathers(struct module *module, const struct kernel *kernel, int operands)
{
	VEC(const struct attr *) list = { 0 };
	for (int i = 0; i < operands; i++) {
		const struct access *access = &kernel->operand[i];
		int64_t row[] = { i, access->index_operand, access->index_stride,
			access->index_limit };
		if (access->index_operand >= 0)
			VEC_PUSH(module->arena, &list, attr_integers(module, 4, row));
	}
	return list.count ? attr_array(module, (int)list.count, list.data) : NULL;
}

/* [operand, pitch] of the causal operands; NULL if there are none. */
static const struct attr *causal_pitch(
        struct module *module, const struct kernel *kernel, int operands)
{
	VEC(const struct attr *) list = { 0 };
	for (int i = 0; i < operands; i++) {
		int64_t row[] = { i, kernel->operand[i].causal_pitch };
		if (row[1])
			VEC_PUSH(module->arena, &list, attr_integers(module, 2, row));
	}
	return list.count ? attr_array(module, (int)list.count, list.data) : NULL;
}

static const struct attr *number(
        struct module *module, const struct type *type, double real, int64_t integer)
{
	if (type_is_real(type))
		return attr_float(module, real, type);
	return attr_typed_integer(module, integer, type);
}

static const char *body_name(struct module *module, const struct kernel *kernel, const char *which)
{
	return text_format(module->arena, "%s.%s", kernel->name, which);
}

struct field_list {
	struct module *module;
	VEC(struct named) items;
};

static void add_item(struct field_list *list, enum attr_key key, const struct attr *value)
{
	struct named item = { key_name(key), value };
	if (value)
		VEC_PUSH(list->module->arena, &list->items, item);
}

static void add_schedule(struct field_list *list, const struct kernel *kernel)
{
	struct module *module = list->module;
	if (kernel->combine)
		add_item(list, KEY_COMBINE, attr_string(module, op_info[kernel->combine].name));
	if (kernel->scan)
		add_item(list, KEY_SCAN, attr_unit(module));
	if (kernel->ordered)
		add_item(list, KEY_ORDERED, attr_unit(module));
	if (kernel->tile_outermost)
		add_item(list, KEY_TILE_OUTERMOST, attr_unit(module));
	if (!kernel->scheduled)
		return;
	add_item(list, KEY_SCHEDULED, attr_unit(module));
	add_item(list, KEY_LANES, attr_integer(module, kernel->lanes));
	add_item(list, KEY_ROW_UNROLL,
	        kernel->row_unroll > 1 ? attr_integer(module, kernel->row_unroll) : NULL);
	add_item(list, KEY_PARTIAL_SUMS,
	        kernel->partial_sums > 1 ? attr_integer(module, kernel->partial_sums) : NULL);
	add_item(list, KEY_INITIATION_INTERVAL, attr_integer(module, kernel->initiation_interval));
	add_item(list, KEY_COMBINE_INTERVAL,
	        kernel->combine_interval > 1 ? attr_integer(module, kernel->combine_interval)
	                                     : NULL);
}

const struct attr *kernel_attributes(struct module *module, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	struct field_list list = { .module = module };
	add_item(&list, KEY_NAME, attr_string(module, kernel->name));
	add_item(&list, KEY_LOOPS, loop_extents(module, kernel));
	add_item(&list, KEY_REDUCTION, loop_reductions(module, kernel));
	add_item(&list, KEY_RUN_TIME, run_time_trips(module, kernel));
	add_item(&list, KEY_ACCESS, accesses(module, kernel, op->operands));
	add_item(&list, KEY_RESULT, access_map(module, kernel, &kernel->result));
	add_item(&list, KEY_GUARDS, guards(module, kernel, op->operands));
	add_item(&list, KEY_ROW_PREDICATE, row_predicate(module, kernel, op->operands));
	add_item(&list, KEY_GATHERS, gathers(module, kernel, op->operands));
	add_item(&list, KEY_CAUSAL_OPERANDS, causal_pitch(module, kernel, op->operands));
	if (kernel_has_reduction(kernel))
		add_item(&list, KEY_INIT,
		        number(module, kernel->type, kernel->init,
		                kernel_init_integer(kernel->init)));
	add_item(&list, KEY_UPDATE, attr_symbol(module, body_name(module, kernel, "update")));
	if (kernel->post.count)
		add_item(&list, KEY_POST, attr_symbol(module, body_name(module, kernel, "post")));
	add_schedule(&list, kernel);
	return attr_dictionary(module, (int)list.items.count, list.items.data);
}

struct body_printer {
	struct module *module;
	struct text *out;
	const struct op *op;
	const struct body *body;
	int *id; /* value number of each node */
};

enum attr_key kernel_number_key(enum op_code code)
{
	switch (code) {
	case OP_CONSTANT: return KEY_VALUE;
	case OP_INDEX: return KEY_LOOP;
	case OP_ACTIVE: return KEY_OPERAND;
	case OP_CMPF:
	case OP_CMPI: return KEY_PREDICATE;
	default: return KEY_COUNT;
	}
}

static void print_node_attributes(const struct body_printer *printer, const struct node *node)
{
	struct module *module = printer->module;
	bool constant = node->kind == NODE_CONSTANT;
	enum attr_key key = KEY_COUNT;
	if (node->kind == NODE_OP)
		key = kernel_number_key(node->code);
	if (constant)
		key = KEY_VALUE;
	if (key == KEY_COUNT)
		return;
	struct named item = { key_name(key),
		constant ? number(module, node->type, node->real, node->integer)
		         : attr_integer(module, node->integer) };
	text_add(printer->out, " ");
	attr_print_items(1, &item, printer->out);
}

static void print_node(const struct body_printer *printer, int index)
{
	const struct node *node = &printer->body->node[index];
	const struct op_info *info =
	        &op_info[node->kind == NODE_CONSTANT ? OP_CONSTANT : node->code];
	struct text *out = printer->out;
	text_add(out, "    %%%d = \"%s\"(", printer->id[index], info->name);
	for (int i = 0; i < info->operands; i++)
		text_add(out, "%s%%%d", i ? ", " : "", printer->id[node->argument[i]]);
	text_add(out, ")");
	print_node_attributes(printer, node);
	text_add(out, " : (");
	for (int i = 0; i < info->operands; i++)
		text_add(out, "%s%s", i ? ", " : "",
		        printer->body->node[node->argument[i]].type->text);
	text_add(out, ") -> %s\n", node->type->text);
}

static void number_nodes(struct body_printer *printer, int arguments)
{
	int operands = printer->op->operands;
	int values = arguments;
	for (int i = 0; i < printer->body->count; i++) {
		const struct node *node = &printer->body->node[i];
		if (node->kind == NODE_OPERAND)
			printer->id[i] = (int)node->integer;
		else
			printer->id[i] = node->kind == NODE_ACCUMULATOR ? operands : values++;
	}
}

static const struct type *body_type(struct module *module, const struct op *op)
{
	int arguments = op->operands + kernel_has_reduction(op->kernel);
	const struct type **input =
	        ARENA_ARRAY(module->arena, const struct type *, op->operands + 1);
	for (int i = 0; i < op->operands; i++)
		input[i] = type_scalar(op->operand[i]->type);
	input[op->operands] = op->kernel->type;
	const struct type *output = type_scalar(op->result[0]->type);
	return type_function(module, arguments, input, 1, &output);
}

static void print_body(struct module *module, const struct op *op, const struct body *body,
        const char *which, struct text *out)
{
	if (!body->count)
		return;
	const struct type *type = body_type(module, op);
	struct body_printer printer = { .module = module, .out = out, .op = op, .body = body };
	printer.id = ARENA_ARRAY(module->arena, int, body->count);
	number_nodes(&printer, type->inputs);
	text_add(out, "  \"func.func\"() ({\n");
	for (int i = 0; i < type->inputs; i++)
		text_add(out, "%s%%%d: %s", i ? ", " : "  ^bb0(", i, type->input[i]->text);
	text_add(out, "%s", type->inputs ? "):\n" : "");
	for (int i = 0; i < body->count; i++)
		if (body->node[i].kind == NODE_CONSTANT || body->node[i].kind == NODE_OP)
			print_node(&printer, i);
	const char *result = body->node[body->result].type->text;
	text_add(out, "    \"func.return\"(%%%d) : (%s) -> ()\n", printer.id[body->result], result);
	struct named attributes[] = {
		{ key_name(KEY_FUNCTION_TYPE), attr_type(module, type) },
		{ key_name(KEY_SYM_NAME),
		        attr_string(module, body_name(module, op->kernel, which)) },
		{ key_name(KEY_SYM_VISIBILITY), attr_string(module, "private") },
	};
	text_add(out, "  }) ");
	attr_print_items(3, attributes, out);
	text_add(out, " : () -> ()\n");
}

void kernel_print_bodies(struct module *module, const struct op *op, struct text *out)
{
	print_body(module, op, &op->kernel->update, "update", out);
	print_body(module, op, &op->kernel->post, "post", out);
}
