/* Reads a stream.kernel from its attributes and the private functions that hold its bodies (text
 * form: docs/ir.md). */
#include "import/read.h"
#include "ir/kernel.h"
#include <string.h>

#define LOOPS_MOST 64
#define EXTENT_MOST (INT64_C(1) << 40)

static const enum attr_key payload[] = {
	KEY_NAME,
	KEY_LOOPS,
	KEY_REDUCTION,
	KEY_RUN_TIME,
	KEY_ACCESS,
	KEY_RESULT,
	KEY_GUARDS,
	KEY_ROW_PREDICATE,
	KEY_GATHERS,
	KEY_CAUSAL_OPERANDS,
	KEY_INIT,
	KEY_UPDATE,
	KEY_POST,
	KEY_COMBINE,
	KEY_ORDERED,
	KEY_TILE_OUTERMOST,
	KEY_SCHEDULED,
	KEY_LANES,
	KEY_ROW_UNROLL,
	KEY_PARTIAL_SUMS,
	KEY_INITIATION_INTERVAL,
	KEY_COMBINE_INTERVAL,
};

static bool attribute_error(struct reader *reader, enum attr_key key, const char *wanted)
{
	read_error(reader, "attribute %s of stream.kernel is missing or wrong", key_name(key));
	return diag_note(reader->diag, "accepted is %s", wanted);
}

static const struct attr *attr_of_kind(const struct op *op, enum attr_key key, enum attr_kind kind)
{
	const struct attr *attr = attr_get(op, key);
	return attr && attr->kind == kind ? attr : NULL;
}

static bool read_loops(struct reader *reader, const struct op *op, struct kernel *kernel)
{
	const struct attr *loops = attr_of_kind(op, KEY_LOOPS, ATTR_INTEGERS);
	const struct attr *reduction = attr_of_kind(op, KEY_REDUCTION, ATTR_INTEGERS);
	if (!loops || loops->count > LOOPS_MOST)
		return attribute_error(
		        reader, KEY_LOOPS, "array<i64: …> with the extents of up to 64 loops");
	if (!reduction || reduction->count != loops->count)
		return attribute_error(
		        reader, KEY_REDUCTION, "array<i64: …> with 0 or 1 for every loop");
	kernel->loops = loops->count;
	kernel->loop = ARENA_ARRAY(reader->arena, struct loop, loops->count);
	for (int i = 0; i < loops->count; i++) {
		kernel->loop[i] = (struct loop){ .extent = loops->integers[i],
			.reduction = reduction->integers[i] != 0 };
		if (loops->integers[i] < 1)
			return attribute_error(reader, KEY_LOOPS, "extents of at least 1");
	}
	return true;
}

/* Reads an optional array; *list is NULL if it is absent. */
static bool optional_list(struct reader *reader, const struct op *op, enum attr_key key,
        const char *wanted, const struct attr **list)
{
	*list = attr_get(op, key);
	return !*list || (*list)->kind == ATTR_ARRAY || attribute_error(reader, key, wanted);
}

/* Reads rows {loop, symbol, plus, tile}; the maximum of a count is the loop's extent. */
static bool read_run_time(struct reader *reader, const struct op *op, struct kernel *kernel)
{
	static const char wanted[] = "rows {loop = LOOP, symbol = \"INPUT\", plus = N, tile = N}";
	const struct attr *rows;
	if (!optional_list(reader, op, KEY_RUN_TIME, wanted, &rows))
		return false;
	for (int i = 0; rows && i < rows->count; i++) {
		const struct attr *row = rows->items[i].value;
		const struct attr *loop = attr_item(row, KEY_LOOP);
		const struct attr *symbol = attr_item(row, KEY_SYMBOL);
		const struct attr *plus = attr_item(row, KEY_PLUS);
		const struct attr *tile = attr_item(row, KEY_TILE);
		bool good = loop && loop->kind == ATTR_INTEGER && symbol &&
		        symbol->kind == ATTR_STRING && plus && plus->kind == ATTR_INTEGER && tile &&
		        tile->kind == ATTR_INTEGER && loop->integer >= 0 &&
		        loop->integer < kernel->loops && tile->integer >= 1 &&
		        tile->integer <= EXTENT_MOST && plus->integer >= -EXTENT_MOST &&
		        plus->integer <= EXTENT_MOST;
		if (!good)
			return attribute_error(reader, KEY_RUN_TIME, wanted);
		struct run_time_trip *trip = ARENA_NEW(reader->arena, struct run_time_trip);
		*trip = (struct run_time_trip){ .symbol = symbol->text,
			.plus = plus->integer,
			.tile = tile->integer,
			.most = kernel->loop[loop->integer].extent };
		kernel->loop[loop->integer].run_time = trip;
	}
	return true;
}

static bool read_access(struct reader *reader, const struct kernel *kernel, const struct attr *attr,
        struct access *access)
{
	if (!attr || attr->kind != ATTR_MAP || attr->map.dims != kernel->loops ||
	        attr->map.results != 1)
		return attribute_error(reader, KEY_ACCESS,
		        "one linear map of all loops per operand, and one as result");
	access->offset = affine_constant(attr->map, 0);
	access->stride = ARENA_ARRAY(reader->arena, int64_t, kernel->loops);
	for (int i = 0; i < kernel->loops; i++)
		access->stride[i] = affine_at(attr->map, 0, i);
	access->index_operand = -1;
	return true;
}

static bool read_accesses(struct reader *reader, const struct op *op, struct kernel *kernel)
{
	const struct attr *access = attr_of_kind(op, KEY_ACCESS, ATTR_ARRAY);
	if (!access || access->count != op->operands)
		return attribute_error(
		        reader, KEY_ACCESS, "one linear map of all loops per operand");
	kernel->operand = ARENA_ARRAY(reader->arena, struct access, op->operands);
	for (int i = 0; i < op->operands; i++)
		if (!read_access(reader, kernel, access->items[i].value, &kernel->operand[i]))
			return false;
	return read_access(reader, kernel, attr_get(op, KEY_RESULT), &kernel->result);
}

/* Checks rows of so many integers, the first of which is an operand. */
static bool check_rows(struct reader *reader, const struct op *op, enum attr_key key, int numbers,
        const char *wanted)
{
	const struct attr *rows;
	if (!optional_list(reader, op, key, wanted, &rows))
		return false;
	for (int i = 0; rows && i < rows->count; i++) {
		const struct attr *row = rows->items[i].value;
		if (row->kind != ATTR_INTEGERS || row->count != numbers || row->integers[0] < 0 ||
		        row->integers[0] >= op->operands)
			return attribute_error(reader, key, wanted);
	}
	return true;
}

static void add_guard(struct reader *reader, struct access *access, struct guard_range guard)
{
	struct guard_range *larger =
	        ARENA_ARRAY(reader->arena, struct guard_range, access->guards + 1);
	if (access->guards)
		memcpy(larger, access->guard, sizeof guard * (size_t)access->guards);
	larger[access->guards++] = guard;
	access->guard = larger;
}

static bool read_guards(struct reader *reader, const struct op *op, struct kernel *kernel)
{
	static const char wanted[] = "rows array<i64: OPERAND, LOOP, LOW, HIGH>, or -1 and 0 for a "
	                             "loop's last iteration";
	if (!check_rows(reader, op, KEY_GUARDS, 4, wanted))
		return false;
	const struct attr *rows = attr_get(op, KEY_GUARDS);
	for (int i = 0; rows && i < rows->count; i++) {
		const int64_t *row = rows->items[i].value->integers;
		if (row[1] < 0 || row[1] >= kernel->loops)
			return attribute_error(reader, KEY_GUARDS, wanted);
		bool last = row[2] == -1 && !row[3];
		add_guard(reader, &kernel->operand[row[0]],
		        (struct guard_range){ .loop = (int)row[1],
		                .low = last ? 0 : row[2],
		                .high = last ? 1 : row[3],
		                .last = last });
	}
	return true;
}

/* Reads rows {operand, coefficients, rows_per_iteration, most, symbol}. */
static bool read_row_predicate(struct reader *reader, const struct op *op, struct kernel *kernel)
{
	static const char wanted[] =
	        "rows {operand = OPERAND, coefficients = array<i64: …> of all loops, "
	        "rows_per_iteration = ROWS, most = ROWS, symbol = \"INPUT\"}";
	const struct attr *rows;
	if (!optional_list(reader, op, KEY_ROW_PREDICATE, wanted, &rows))
		return false;
	for (int i = 0; rows && i < rows->count; i++) {
		const struct attr *row = rows->items[i].value;
		const struct attr *symbol = attr_item(row, KEY_SYMBOL);
		const struct attr *weights = attr_item(row, KEY_COEFFICIENTS);
		int64_t operand = attr_item_integer(row, KEY_OPERAND, -1);
		int64_t step = attr_item_integer(row, KEY_ROWS_PER_ITERATION, 0);
		int64_t most = attr_item_integer(row, KEY_MOST, 0);
		if (operand < 0 || operand >= op->operands || step < 1 || most < 1 ||
		        most > EXTENT_MOST || !symbol || symbol->kind != ATTR_STRING || !weights ||
		        weights->kind != ATTR_INTEGERS || weights->count != kernel->loops)
			return attribute_error(reader, KEY_ROW_PREDICATE, wanted);
		struct row_predicate *row_predicate =
		        ARENA_NEW(reader->arena, struct row_predicate);
		*row_predicate = (struct row_predicate){ .step = step,
			.symbol = symbol->text,
			.rows = launch_tokens_of(reader->arena, symbol->text, most) };
		row_predicate->weight = arena_copy(reader->arena, weights->integers,
		        sizeof *weights->integers * (size_t)kernel->loops);
		kernel->operand[operand].row_predicate = row_predicate;
	}
	return true;
}

static bool read_gathers(struct reader *reader, const struct op *op, struct kernel *kernel)
{
	static const char wanted[] = "rows array<i64: OPERAND, INDEX_OPERAND, STRIDE, LIMIT>";
	if (!check_rows(reader, op, KEY_GATHERS, 4, wanted))
		return false;
	const struct attr *rows = attr_get(op, KEY_GATHERS);
	for (int i = 0; rows && i < rows->count; i++) {
		const int64_t *row = rows->items[i].value->integers;
		struct access *access = &kernel->operand[row[0]];
		if (row[1] < 0 || row[1] >= op->operands || row[3] < 1)
			return attribute_error(reader, KEY_GATHERS, wanted);
		access->index_operand = (int)row[1];
		access->index_stride = row[2];
		access->index_limit = row[3];
	}
	return true;
}

static bool read_causal_pitch(struct reader *reader, const struct op *op, struct kernel *kernel)
{
	static const char wanted[] = "rows array<i64: OPERAND, PITCH>, of a tiled kernel";
	const struct attr *rows = attr_get(op, KEY_CAUSAL_OPERANDS);
	if (!check_rows(reader, op, KEY_CAUSAL_OPERANDS, 2, wanted))
		return false;
	for (int i = 0; rows && i < rows->count; i++) {
		const int64_t *row = rows->items[i].value->integers;
		if (row[1] < 1 || !attr_get(op, KEY_TILE_OUTERMOST))
			return attribute_error(reader, KEY_CAUSAL_OPERANDS, wanted);
		kernel->operand[row[0]].causal_pitch = row[1];
	}
	return true;
}

static bool read_init(struct reader *reader, const struct op *op, struct kernel *kernel)
{
	const struct attr *init = attr_get(op, KEY_INIT);
	bool number = init &&
	        (init->kind == ATTR_FLOAT || init->kind == ATTR_INTEGER || init->kind == ATTR_BOOL);
	if (kernel_has_reduction(kernel) && !number)
		return attribute_error(reader, KEY_INIT, "the number that a reduction starts with");
	if (number)
		kernel->init = init->kind == ATTR_FLOAT ? init->real : (double)init->integer;
	return true;
}

static bool read_schedule(struct reader *reader, const struct op *op, struct kernel *kernel)
{
	const char *combine = attr_text_or(op, KEY_COMBINE, "");
	int64_t initiation_interval = attr_integer_or(op, KEY_INITIATION_INTERVAL, 1);
	int64_t combine_interval = attr_integer_or(op, KEY_COMBINE_INTERVAL, 1);
	kernel->scheduled = attr_get(op, KEY_SCHEDULED) != NULL;
	kernel->scan = attr_get(op, KEY_SCAN) != NULL;
	kernel->ordered = attr_get(op, KEY_ORDERED) != NULL;
	kernel->tile_outermost = attr_get(op, KEY_TILE_OUTERMOST) != NULL;
	kernel->lanes = attr_integer_or(op, KEY_LANES, 1);
	kernel->row_unroll = attr_integer_or(op, KEY_ROW_UNROLL, 1);
	kernel->partial_sums = attr_integer_or(op, KEY_PARTIAL_SUMS, 1);
	kernel->combine = op_code_of(combine, strlen(combine));
	kernel->initiation_interval = (int)initiation_interval;
	kernel->combine_interval = (int)combine_interval;
	if (*combine && kernel->combine == OP_NONE)
		return attribute_error(reader, KEY_COMBINE, "the name of an operation");
	if (kernel->lanes < 1 ||
	        (kernel->lanes > 1 &&
	                (!kernel->loops ||
	                        kernel->lanes != kernel->loop[kernel->loops - 1].extent)))
		return attribute_error(reader, KEY_LANES, "1, or the extent of the last loop");
	if (kernel->row_unroll < 1 ||
	        (kernel->row_unroll > 1 &&
	                (kernel->lanes == 1 || kernel->loops < 2 ||
	                        kernel->row_unroll != kernel->loop[kernel->loops - 2].extent)))
		return attribute_error(
		        reader, KEY_ROW_UNROLL, "1, or the extent of the loop before the lanes");
	if (initiation_interval < 1 || initiation_interval > 1 << 20)
		return attribute_error(reader, KEY_INITIATION_INTERVAL, "a number of cycles");
	if (combine_interval < 1 || combine_interval > 1 << 20)
		return attribute_error(reader, KEY_COMBINE_INTERVAL, "a number of cycles");
	return true;
}

struct body_reader {
	struct reader *reader;
	const struct op *op;
	struct body *body;
	struct pointer_map nodes; /* MLIR value -> struct node_index */
};

struct node_index {
	int index; /* -1: an argument that is not used yet */
	struct node argument;
};

static void set_node(struct body_reader *into, MlirValue value, struct node node)
{
	struct node_index *entry = ARENA_NEW(into->reader->arena, struct node_index);
	entry->index = body_add(into->reader->module, into->body, node);
	pointer_set(&into->nodes, value.ptr, entry);
}

static int node_of(struct body_reader *into, MlirValue value)
{
	const struct pointer_entry *entry = pointer_find(&into->nodes, value.ptr);
	if (!entry)
		return -1;
	const struct node_index *known = entry->value;
	return known->index >= 0 ? known->index
	                         : body_add(into->reader->module, into->body, known->argument);
}

static MlirAttribute named(MlirOperation operation, enum attr_key key)
{
	return mlirOperationGetAttributeByName(
	        operation, mlirStringRefCreateFromCString(key_name(key)));
}

static bool read_number(
        struct body_reader *into, MlirOperation operation, enum attr_key key, struct node *node)
{
	MlirAttribute attribute = named(operation, key);
	const struct attr *attr =
	        mlirAttributeIsNull(attribute) ? NULL : read_attr(into->reader, attribute);
	if (!attr ||
	        (attr->kind != ATTR_INTEGER && attr->kind != ATTR_FLOAT &&
	                attr->kind != ATTR_BOOL)) {
		read_error(into->reader, "attribute %s is missing or no number", key_name(key));
		return false;
	}
	node->integer = attr->integer;
	node->real = attr->real;
	return true;
}

/* Checks that the operand or loop exists. */
static bool check_number(struct body_reader *into, const struct node *node)
{
	const struct kernel *kernel = into->op->kernel;
	int64_t limit = node->code == OP_INDEX ? kernel->loops : INT64_MAX;
	if (node->code == OP_ACTIVE)
		limit = into->op->operands;
	if (node->integer >= 0 && node->integer < limit)
		return true;
	read_error(into->reader, "%s has no such %s", op_info[node->code].name,
	        node->code == OP_INDEX ? "loop" : "operand");
	return false;
}

static bool read_node(struct body_reader *into, MlirOperation operation)
{
	struct reader *reader = into->reader;
	MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(operation));
	enum op_code code = op_code_of(name.data, name.length);
	const struct op_info *info = &op_info[code];
	enum attr_key number = kernel_number_key(code);
	if (code == OP_NONE || !(info->levels & LEVEL_BODY) ||
	        mlirOperationGetNumOperands(operation) != info->operands ||
	        mlirOperationGetNumResults(operation) != 1) {
		read_error(reader, "operation %s does not belong into a kernel body",
		        copy_string(reader->arena, name));
		return diag_note(reader->diag,
		        "accepted are arith.*, math.*, stream.nearest, stream.peak, stream.index "
		        "and stream.active on scalars");
	}
	MlirValue result = mlirOperationGetResult(operation, 0);
	struct node node = { .kind = code == OP_CONSTANT ? NODE_CONSTANT : NODE_OP,
		.code = code,
		.type = read_type(reader, mlirValueGetType(result)) };
	for (int i = 0; i < info->operands; i++)
		if ((node.argument[i] = node_of(into, mlirOperationGetOperand(operation, i))) < 0)
			return read_error(reader,
			               "operand %d of %s comes from outside the kernel body", i,
			               info->name),
			       false;
	if (!node.type || (number != KEY_COUNT && !read_number(into, operation, number, &node)))
		return false;
	if (code == OP_CONSTANT)
		node.code = OP_NONE;
	else if (number != KEY_COUNT && !check_number(into, &node))
		return false;
	set_node(into, result, node);
	return true;
}

static bool read_arguments(struct body_reader *into, MlirBlock block)
{
	struct reader *reader = into->reader;
	int operands = into->op->operands;
	int wanted = operands + kernel_has_reduction(into->op->kernel);
	if (mlirBlockGetNumArguments(block) != wanted) {
		read_error(reader, "the kernel body has %ld arguments",
		        (long)mlirBlockGetNumArguments(block));
		return diag_note(reader->diag,
		        "accepted are %d: one per operand, and the accumulator of a reduction",
		        wanted);
	}
	for (int i = 0; i < wanted; i++) {
		MlirValue argument = mlirBlockGetArgument(block, i);
		const struct type *type = read_type(reader, mlirValueGetType(argument));
		const struct type *scalar = i < operands ? type_scalar(into->op->operand[i]->type)
		                                         : into->op->kernel->type;
		if (type != scalar)
			return read_error(reader, "argument %d of the kernel body is not %s", i,
			               scalar->text),
			       false;
		struct node_index *entry = ARENA_NEW(reader->arena, struct node_index);
		*entry = (struct node_index){ -1,
			{ .kind = i < operands ? NODE_OPERAND : NODE_ACCUMULATOR,
			        .type = type,
			        .integer = i < operands ? i : 0 } };
		pointer_set(&into->nodes, argument.ptr, entry);
	}
	return true;
}

static bool is_return(MlirOperation operation)
{
	MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(operation));
	return op_code_of(name.data, name.length) == OP_RETURN;
}

static bool read_body_block(struct body_reader *into, MlirBlock block)
{
	struct reader *reader = into->reader;
	if (!read_arguments(into, block))
		return false;
	MlirOperation operation = mlirBlockGetFirstOperation(block);
	for (; !mlirOperationIsNull(operation) && !is_return(operation);
	        operation = mlirOperationGetNextInBlock(operation)) {
		reader->at = read_location(reader, mlirOperationGetLocation(operation));
		if (!read_node(into, operation))
			return false;
	}
	int result = mlirOperationIsNull(operation) || mlirOperationGetNumOperands(operation) != 1
	        ? -1
	        : node_of(into, mlirOperationGetOperand(operation, 0));
	if (result < 0 || into->body->node[result].type != into->op->kernel->type)
		return read_error(reader, "the kernel body does not return one %s",
		               into->op->kernel->type->text),
		       false;
	into->body->result = result;
	return true;
}

static bool read_body(
        struct reader *reader, const struct op *op, enum attr_key which, struct body *body)
{
	const struct attr *symbol = attr_of_kind(op, which, ATTR_SYMBOL);
	struct kernel_body *found = symbol ? map_get(&reader->bodies, symbol->text) : NULL;
	if (!found || found->used)
		return attribute_error(reader, which,
		        "the name of a private function with the body of this kernel alone");
	found->used = true;
	struct location kernel_at = reader->at;
	reader->at = read_location(reader, mlirOperationGetLocation(found->function));
	MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(found->function, 0));
	if (mlirBlockIsNull(block) || !mlirBlockIsNull(mlirBlockGetNextInRegion(block)))
		return read_error(reader, "the kernel body @%s is not one block", symbol->text),
		       false;
	struct body_reader into = {
		.reader = reader, .op = op, .body = body, .nodes = { .arena = reader->arena }
	};
	bool good = read_body_block(&into, block);
	reader->at = kernel_at;
	return good;
}

bool read_kernel(struct reader *reader, struct op *op)
{
	const struct attr *name = attr_of_kind(op, KEY_NAME, ATTR_STRING);
	if (!name || !*name->text)
		return attribute_error(reader, KEY_NAME, "a string");
	if (op->results != 1)
		return read_error(reader, "stream.kernel has %d results", op->results), false;
	struct kernel *kernel = op->kernel = ARENA_NEW(reader->arena, struct kernel);
	kernel->name = name->text;
	kernel->type = type_scalar(op->result[0]->type);
	bool good = read_loops(reader, op, kernel) && read_run_time(reader, op, kernel) &&
	        read_accesses(reader, op, kernel) && read_guards(reader, op, kernel) &&
	        read_row_predicate(reader, op, kernel) && read_gathers(reader, op, kernel) &&
	        read_causal_pitch(reader, op, kernel) && read_init(reader, op, kernel) &&
	        read_schedule(reader, op, kernel) &&
	        read_body(reader, op, KEY_UPDATE, &kernel->update) &&
	        (!attr_get(op, KEY_POST) || read_body(reader, op, KEY_POST, &kernel->post));
	for (size_t i = 0; i < sizeof payload / sizeof *payload; i++)
		attr_set(reader->module, op, payload[i], NULL);
	return good;
}
