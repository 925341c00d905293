/* Calls inside expressions: functions of math.h, and functions of the file that only return an
 * expression. */
#include "frontend/c_reader.h"
#include "base/closest_name.h"
#include "ir/kernel_edit.h"
#include <string.h>

#define CALLS_MOST 32

struct math_function {
	const char *name; /* of the double version; those of float end in f */
	enum op_code code;
};

static const struct math_function functions[] = {
	{ "fabs", OP_ABSF },
	{ "sqrt", OP_SQRT },
	{ "fmax", OP_MAXNUMF },
	{ "fmin", OP_MINNUMF },
	{ "fmod", OP_REMF },
	{ "floor", OP_FLOOR },
	{ "ceil", OP_CEIL },
	{ "rint", OP_ROUNDEVEN },
	{ "nearbyint", OP_ROUNDEVEN },
	{ "exp", OP_EXP },
	{ "expm1", OP_EXPM1 },
	{ "log", OP_LOG },
	{ "log1p", OP_LOG1P },
	{ "log2", OP_LOG2 },
	{ "log10", OP_LOG10 },
	{ "pow", OP_POWF },
	{ "sin", OP_SIN },
	{ "cos", OP_COS },
	{ "tan", OP_TAN },
	{ "sinh", OP_SINH },
	{ "cosh", OP_COSH },
	{ "tanh", OP_TANH },
	{ "asin", OP_ASIN },
	{ "acos", OP_ACOS },
	{ "atan", OP_ATAN },
	{ "atan2", OP_ATAN2 },
	{ "asinh", OP_ASINH },
	{ "acosh", OP_ACOSH },
	{ "atanh", OP_ATANH },
	{ "erf", OP_ERF },
};
#define FUNCTIONS ((int)(sizeof functions / sizeof *functions))

static const struct c_value refused = { .node = -1 };

enum op_code c_math_code(const char *name)
{
	size_t size = strlen(name);
	if (text_same(name, "abs") || text_same(name, "labs") || text_same(name, "llabs"))
		return OP_ABSI;
	for (int i = 0; i < FUNCTIONS; i++) {
		size_t own = strlen(functions[i].name);
		bool same = !strncmp(name, functions[i].name, own) &&
		        (size == own || (size == own + 1 && name[own] == 'f'));
		if (same)
			return functions[i].code;
	}
	return OP_NONE;
}

const char *c_function_of(enum op_code code)
{
	for (int i = 0; i < FUNCTIONS; i++)
		if (functions[i].code == code)
			return functions[i].name;
	return op_info[code].name;
}

static struct c_value unknown(struct c_reader *reader, CXCursor cursor, const char *name)
{
	struct closest_name nearest = { .wanted = name };
	for (int i = 0; i < FUNCTIONS; i++)
		closest_name_consider(&nearest, functions[i].name);
	c_refuse(reader, cursor, "this function has no counterpart in a design",
	        text_format(reader->arena,
	                "accepted are functions of math.h that designs have, the nearest is %s, "
	                "and functions of the file that only return an expression",
	                nearest.found));
	return refused;
}

/* The expression of `return EXPRESSION;`, the only statement of the function. */
static bool returned(struct c_reader *reader, CXCursor function, CXCursor *expression)
{
	CXCursor definition = clang_getCursorDefinition(function);
	if (clang_Cursor_isNull(definition))
		return false;
	struct c_cursors parts = c_children(reader->arena, definition);
	if (!parts.list.count)
		return false;
	CXCursor body = parts.list.data[parts.list.count - 1];
	if (clang_getCursorKind(body) != CXCursor_CompoundStmt)
		return false;
	struct c_cursors statements = c_children(reader->arena, body);
	if (statements.list.count != 1 ||
	        clang_getCursorKind(statements.list.data[0]) != CXCursor_ReturnStmt)
		return false;
	struct c_cursors result = c_children(reader->arena, statements.list.data[0]);
	if (result.list.count != 1)
		return false;
	*expression = result.list.data[0];
	return true;
}

static bool is_recursive(const struct c_reader *reader, const char *key)
{
	for (size_t i = 0; i < reader->calls.count; i++)
		if (text_same(reader->calls.data[i], key))
			return true;
	return false;
}

bool c_check_call(struct c_reader *reader, CXCursor call, CXCursor definition)
{
	if (is_recursive(reader, c_key(reader->arena, definition)) ||
	        reader->calls.count >= CALLS_MOST)
		return c_refuse(reader, call, "this function calls itself",
		        "accepted are functions that end after a known number of calls");
	if (clang_Cursor_getNumArguments(call) != clang_Cursor_getNumArguments(definition))
		return c_refuse(reader, call, "the number of arguments differs from the parameters",
		        "accepted is one argument for each parameter");
	return true;
}

/* All arguments come before the parameters: one may call the same function. */
static struct c_value inlined(
        struct c_reader *reader, CXCursor call, CXCursor function, CXCursor expression)
{
	CXCursor definition = clang_getCursorDefinition(function);
	int arguments = clang_Cursor_getNumArguments(call);
	struct c_value *argument = ARENA_ARRAY(reader->arena, struct c_value, arguments + 1);
	if (!c_check_call(reader, call, definition))
		return refused;
	for (int i = 0; i < arguments; i++) {
		argument[i] = c_expression(reader, clang_Cursor_getArgument(call, (unsigned)i));
		if (argument[i].node < 0)
			return refused;
	}
	for (int i = 0; i < arguments; i++) {
		struct c_symbol symbol = { .kind = C_SYMBOL_VALUE, .value = argument[i] };
		c_set_symbol(reader, clang_Cursor_getArgument(definition, (unsigned)i), symbol);
	}
	VEC_PUSH(reader->arena, &reader->calls, c_key(reader->arena, definition));
	struct c_value value = c_expression(reader, expression);
	reader->calls.count--;
	return value;
}

/* Single-precision where the arguments are so: the result is converted to float anyway. */
struct c_value c_call(struct c_reader *reader, CXCursor cursor)
{
	CXCursor function = clang_getCursorReferenced(cursor);
	const char *name = c_name(reader->arena, cursor);
	CXCursor expression;
	if (returned(reader, function, &expression))
		return inlined(reader, cursor, function, expression);
	enum op_code code = c_math_code(name);
	struct c_type type = c_type_of(reader, clang_getCursorType(cursor));
	int arguments = clang_Cursor_getNumArguments(cursor);
	if (code == OP_NONE || arguments != op_info[code].operands || !type.type)
		return unknown(reader, cursor, name);
	int argument[3] = { 0 };
	for (int i = 0; i < arguments; i++) {
		struct c_value value =
		        c_expression(reader, clang_Cursor_getArgument(cursor, (unsigned)i));
		value = c_convert(reader, value, type);
		if (value.node < 0)
			return refused;
		argument[i] = value.node;
	}
	int node = body_op(reader->module, &reader->statement->body, code, type.type, argument[0],
	        argument[1], argument[2]);
	return (struct c_value){ node, type };
}
