/* Reads MLIR operations generically: the op table decides what is legal, the verifier checks the
 * rest. */
#include "import/read.h"
#include <string.h>

static const char *const control_flow[] = {
	"scf.if",
	"scf.while",
	"scf.parallel",
	"scf.forall",
	"scf.index_switch",
	"scf.execute_region",
	"cf.br",
	"cf.cond_br",
	"cf.switch",
	"affine.for",
	"affine.if",
	"affine.parallel",
	"func.call",
	"func.call_indirect",
};

static bool is_control_flow(const char *name)
{
	for (size_t i = 0; i < sizeof control_flow / sizeof *control_flow; i++)
		if (!strcmp(control_flow[i], name))
			return true;
	return false;
}

/* `tensor.{cast, empty, …}` for every op of the family at this level. */
static void list_family(struct text *text, const char *family, int level)
{
	size_t size = strlen(family);
	const char *separator = "{";
	for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
		if (!(op_info[code].levels & level) ||
		        strncmp(op_info[code].name, family, size) != 0)
			continue;
		text_add(text, "%s%s", separator, op_info[code].name + size);
		separator = ", ";
	}
	text_add(text, "}");
}

void note_accepted(struct reader *reader)
{
	struct text text = text_new(reader->arena);
	if (reader->own) {
		diag_note(reader->diag, "docs/ir.md lists the operations of %s level",
		        level_name(reader->module->level));
		return;
	}
	text_add(&text,
	        "accepted are linalg.generic, the named linalg operations that MLIR can "
	        "generalise, tensor.");
	list_family(&text, "tensor.", LEVEL_TENSOR);
	text_add(&text, ", arith.");
	list_family(&text, "arith.", LEVEL_TENSOR);
	text_add(&text, ", math.");
	list_family(&text, "math.", LEVEL_TENSOR);
	text_add(&text, " and cf.assert");
	diag_note(reader->diag, "%s", text.data);
}

static bool first_time(struct reader *reader, const char *name)
{
	if (map_get(&reader->refused, name))
		return false;
	map_set(&reader->refused, name, reader);
	return true;
}

static enum op_code refuse_op(struct reader *reader, const char *name)
{
	reader->failed = true;
	if (!first_time(reader, name))
		return OP_NONE;
	if (!reader->own && is_control_flow(name)) {
		read_error(reader, "control flow is not supported: %s", name);
		diag_note(reader->diag,
		        "accepted are straight-line models: unroll loops, inline calls and resolve "
		        "branches before the export");
		return OP_NONE;
	}
	if (!reader->own && !strncmp(name, "stream.", 7))
		read_error(reader, "operation %s in a module without the attribute stream.level",
		        name);
	else if (op_code_of(name, strlen(name)) == OP_NONE)
		read_error(reader, "operation %s is not supported", name);
	else
		read_error(reader, "operation %s does not belong to %s level", name,
		        level_name(reader->module->level));
	note_accepted(reader);
	return OP_NONE;
}

/* A model may not contain operations of the stream dialect, and of control flow only loops over
 * rows (fold_loop.c). */
static bool is_legal(const struct reader *reader, enum op_code code)
{
	int levels = (int)reader->module->level | (reader->in_nest ? LEVEL_HARDWARE : 0);
	if (code == OP_NONE || !(op_info[code].levels & levels))
		return false;
	return reader->own || strncmp(op_info[code].name, "stream.", 7) != 0;
}

enum op_code read_op_code(struct reader *reader, MlirOperation operation)
{
	MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(operation));
	const struct pointer_entry *known = pointer_find(&reader->names, name.data);
	if (known)
		return (enum op_code)((const struct op_info *)known->value - op_info);
	enum op_code code = op_code_of(name.data, name.length);
	if (!is_legal(reader, code))
		return refuse_op(reader, copy_string(reader->arena, name));
	pointer_set(&reader->names, name.data, &op_info[code]);
	return code;
}

struct value *read_value(struct reader *reader, MlirValue value)
{
	const struct pointer_entry *known = pointer_find(&reader->values, value.ptr);
	return known ? (struct value *)(uintptr_t)known->value : NULL;
}

/* Attributes that are ignored: arithmetic is IEEE in the written order, and integers wrap. The
 * printer derives the last three. */
static bool is_dropped(const struct reader *reader, MlirStringRef name)
{
	static const enum attr_key dropped[] = {
		KEY_FASTMATH,
		KEY_OVERFLOW_FLAGS,
		KEY_NONTEMPORAL,
		KEY_OPERAND_SEGMENT_SIZES,
		KEY_RESULT_SEGMENT_SIZES,
		KEY_STREAM_LEVEL,
	};
	for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
		if (name.length == strlen(key_name(dropped[i])) &&
		        !memcmp(name.data, key_name(dropped[i]), name.length))
			return true;
	bool dialect = memchr(name.data, '.', name.length) != NULL;
	return dialect && !reader->own && (name.length < 7 || memcmp(name.data, "stream.", 7) != 0);
}

static void read_attributes(struct reader *reader, MlirOperation operation, struct op *op)
{
	intptr_t count = mlirOperationGetNumAttributes(operation);
	for (intptr_t i = 0; i < count; i++) {
		MlirNamedAttribute named = mlirOperationGetAttribute(operation, i);
		MlirStringRef name = mlirIdentifierStr(named.name);
		if (is_dropped(reader, name))
			continue;
		const struct attr *attr = read_attr(reader, named.attribute);
		if (attr)
			attr_set_named(reader->module, op, copy_string(reader->arena, name), attr);
	}
	if (!reader->failed && !read_attributes_are_legal(reader, op))
		reader->failed = true;
}

/* Values that could not be read leave their users without operands; the module is discarded
 * then. */
static int read_operands(struct reader *reader, MlirOperation operation, struct value ***operand)
{
	int count = (int)mlirOperationGetNumOperands(operation);
	*operand = ARENA_ARRAY(reader->arena, struct value *, count);
	for (int i = 0; i < count; i++)
		if (!((*operand)[i] = read_value(reader, mlirOperationGetOperand(operation, i)))) {
			if (!reader->failed)
				read_error(reader, "operand %d is used before it is defined", i);
			return 0;
		}
	return count;
}

static int read_results(struct reader *reader, MlirOperation operation, const struct type ***result)
{
	int count = (int)mlirOperationGetNumResults(operation);
	*result = ARENA_ARRAY(reader->arena, const struct type *, count);
	for (int i = 0; i < count; i++)
		if (!((*result)[i] = read_type(
		              reader, mlirValueGetType(mlirOperationGetResult(operation, i)))))
			return -1;
	return count;
}

static void read_operation(struct reader *reader, MlirOperation operation, struct block *into);

static void read_block(struct reader *reader, MlirBlock from, struct block *into)
{
	intptr_t arguments = mlirBlockGetNumArguments(from);
	for (intptr_t i = 0; i < arguments; i++) {
		MlirValue argument = mlirBlockGetArgument(from, i);
		const struct type *type = read_type(reader, mlirValueGetType(argument));
		if (type)
			pointer_set(&reader->values, argument.ptr,
			        block_add_argument(reader->module, into, type));
	}
	for (MlirOperation op = mlirBlockGetFirstOperation(from); !mlirOperationIsNull(op);
	        op = mlirOperationGetNextInBlock(op))
		read_operation(reader, op, into);
}

static void read_region(struct reader *reader, MlirRegion region, struct op *op, int index)
{
	MlirBlock block = mlirRegionGetFirstBlock(region);
	if (mlirBlockIsNull(block)) {
		read_error(reader, "%s has no body", op_info[op->code].name);
		return;
	}
	if (!mlirBlockIsNull(mlirBlockGetNextInRegion(block))) {
		MlirOperation last = mlirBlockGetTerminator(block);
		if (!mlirOperationIsNull(last))
			reader->at = read_location(reader, mlirOperationGetLocation(last));
		read_error(reader, "control flow is not supported: %s has several blocks",
		        op_info[op->code].name);
		diag_note(reader->diag,
		        "accepted are straight-line models: unroll loops, inline calls and resolve "
		        "branches before the export");
		return;
	}
	read_block(reader, block, block_new(reader->module, op, index));
}

static bool has_zero_extent(const struct type *type)
{
	for (int i = 0; i < type->rank; i++)
		if (type->shape[i] == 0)
			return true;
	return false;
}

/* Results are known even if the operation is rejected, so that its users are checked too. */
static void read_operation(struct reader *reader, MlirOperation operation, struct block *into)
{
	struct value **operand;
	const struct type **result;
	reader->at = read_location(reader, mlirOperationGetLocation(operation));
	enum op_code code = read_op_code(reader, operation);
	int results = code == OP_NONE ? -1 : read_results(reader, operation, &result);
	if (results < 0)
		return;
	int operands = read_operands(reader, operation, &operand);
	struct op *op =
	        op_new(reader->module, code, reader->at, operands, operand, results, result);
	for (int i = 0; i < results; i++)
		pointer_set(
		        &reader->values, mlirOperationGetResult(operation, i).ptr, op->result[i]);
	read_attributes(reader, operation, op);
	if (code == OP_GENERIC && results && has_zero_extent(result[0]))
		read_error(reader, "the result %s has no elements", result[0]->text);
	int regions = (int)mlirOperationGetNumRegions(operation);
	if (regions > op_info[code].regions)
		read_error(reader, "%s has %d regions", op_info[code].name, regions);
	bool in_nest = reader->in_nest;
	reader->in_nest = in_nest || code == OP_SEQUENTIAL;
	for (int i = 0; i < regions && i < op_info[code].regions; i++)
		read_region(reader, mlirOperationGetRegion(operation, i), op, i);
	reader->in_nest = in_nest;
	if (code == OP_KERNEL && !reader->failed)
		read_kernel(reader, op);
	op_append(into, op);
}

static bool is_string(MlirAttribute attribute, const char *text)
{
	if (mlirAttributeIsNull(attribute) || !mlirAttributeIsAString(attribute))
		return false;
	MlirStringRef value = mlirStringAttrGetValue(attribute);
	return value.length == strlen(text) && !memcmp(value.data, text, value.length);
}

static MlirAttribute named(MlirOperation operation, enum attr_key key)
{
	return mlirOperationGetAttributeByName(
	        operation, mlirStringRefCreateFromCString(key_name(key)));
}

/* A private function that is not a process holds a kernel body. */
static bool is_body(const struct reader *reader, MlirOperation operation)
{
	MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(operation));
	return reader->own && op_code_of(name.data, name.length) == OP_FUNC &&
	        is_string(named(operation, KEY_SYM_VISIBILITY), "private") &&
	        mlirAttributeIsNull(named(operation, KEY_STREAM_PROCESS));
}

static void collect_body(struct reader *reader, MlirOperation function)
{
	struct kernel_body *body = ARENA_NEW(reader->arena, struct kernel_body);
	body->function = function;
	map_set(&reader->bodies,
	        copy_string(reader->arena, mlirStringAttrGetValue(named(function, KEY_SYM_NAME))),
	        body);
}

static void check_bodies(struct reader *reader)
{
	for (size_t i = 0; i < reader->bodies.entries.count && !reader->failed; i++) {
		const struct map_entry *entry = &reader->bodies.entries.data[i];
		const struct kernel_body *body = entry->value;
		if (body->used)
			continue;
		reader->at = read_location(reader, mlirOperationGetLocation(body->function));
		read_error(reader, "the private function @%s belongs to no kernel", entry->key);
		diag_note(reader->diag,
		        "accepted are bodies that a stream.kernel names, and processes (attribute "
		        "stream.process)");
	}
}

void read_module(struct reader *reader, MlirOperation module)
{
	MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(module, 0));
	reader->at = read_location(reader, mlirOperationGetLocation(module));
	reader->module->op->location = reader->at;
	read_attributes(reader, module, reader->module->op);
	for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
	        op = mlirOperationGetNextInBlock(op))
		if (is_body(reader, op))
			collect_body(reader, op);
	for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
	        op = mlirOperationGetNextInBlock(op))
		if (!is_body(reader, op))
			read_operation(reader, op, module_body(reader->module));
	check_bodies(reader);
}
