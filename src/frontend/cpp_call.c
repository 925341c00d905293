/* Calls in HLS C++: FIFOs, vectors, numbers of any width, functions of math.h, and the functions
 * of the design, which become modules or stand in the place of the call. */
#include "frontend/cpp_internal.h"
#include <string.h>

/* The object of a method. */
static CXCursor object_of(struct cpp_reader *reader, CXCursor call)
{
	struct c_cursors parts = c_children(reader->c.arena, call);
	if (!parts.list.count)
		return clang_getNullCursor();
	CXCursor member = cpp_strip(reader, parts.list.data[0]);
	struct c_cursors inner = c_children(reader->c.arena, member);
	return inner.list.count ? inner.list.data[0] : clang_getNullCursor();
}

/* --- FIFOs --- */

static struct cpp_value stream_read(
        struct cpp_reader *reader, CXCursor call, CXCursor object, int arguments)
{
	CXType element = cpp_element(clang_getCursorType(object));
	struct cpp_value stream = cpp_place(reader, object);
	if (stream.kind != CPP_PLACE)
		return cpp_refused(reader, call, "it reads from no hls::stream",
		        "accepted are streams that are arguments or local variables");
	struct cpp_value value = cpp_stream_read(reader, call, &stream, element);
	if (arguments &&
	        !cpp_assign(
	                reader, clang_Cursor_getArgument(call, (unsigned)arguments - 1), &value))
		return (struct cpp_value){ .kind = CPP_REFUSED };
	return value;
}

static struct cpp_value stream_write(
        struct cpp_reader *reader, CXCursor call, CXCursor object, CXCursor argument)
{
	struct cpp_value stream = cpp_place(reader, object);
	struct cpp_value value = cpp_evaluate(reader, argument);
	if (value.kind == CPP_REFUSED)
		return value;
	if (stream.kind != CPP_PLACE)
		return cpp_refused(reader, call, "it writes to no hls::stream",
		        "accepted are streams that are arguments or local variables");
	if (!cpp_store(reader, call, &stream, &value))
		return (struct cpp_value){ .kind = CPP_REFUSED };
	return (struct cpp_value){ .kind = CPP_VOID };
}

static struct cpp_value stream_method(
        struct cpp_reader *reader, CXCursor call, const char *name, CXCursor object)
{
	int arguments = clang_Cursor_getNumArguments(call);
	bool shifts = text_same(name, "operator>>") || text_same(name, "operator<<");
	CXCursor last = arguments ? clang_Cursor_getArgument(call, (unsigned)arguments - 1)
	                          : clang_getNullCursor();
	if (shifts)
		object = clang_Cursor_getArgument(call, 0);
	if (text_same(name, "read") || text_same(name, "read_nb") || text_same(name, "operator>>"))
		return stream_read(reader, call, object, arguments);
	if (arguments &&
	        (text_same(name, "write") || text_same(name, "write_nb") ||
	                text_same(name, "operator<<")))
		return stream_write(reader, call, object, last);
	if (text_same(name, "empty") || text_same(name, "full"))
		return cpp_unknown(reader, CPP_NONE, 1, false);
	return cpp_refused(reader, call, "this method of hls::stream is not known",
	        "accepted are read, write, read_nb, write_nb, empty, full, << and >>");
}

/* --- operators of our headers' classes --- */

static enum CXBinaryOperatorKind operator_of(const char *name)
{
	static const struct {
		const char *name;
		enum CXBinaryOperatorKind kind;
	} rows[] = {
		{ "+", CXBinaryOperator_Add },
		{ "-", CXBinaryOperator_Sub },
		{ "*", CXBinaryOperator_Mul },
		{ "/", CXBinaryOperator_Div },
		{ "%", CXBinaryOperator_Rem },
		{ "<<", CXBinaryOperator_Shl },
		{ ">>", CXBinaryOperator_Shr },
		{ "&", CXBinaryOperator_And },
		{ "|", CXBinaryOperator_Or },
		{ "^", CXBinaryOperator_Xor },
	};
	size_t size = strlen(name);
	size -= size && name[size - 1] == '=' ? 1 : 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strlen(rows[i].name) == size && !strncmp(rows[i].name, name, size))
			return rows[i].kind;
	return CXBinaryOperator_Invalid;
}

static struct cpp_value operator_call(struct cpp_reader *reader, CXCursor call, const char *name)
{
	int arguments = clang_Cursor_getNumArguments(call);
	CXCursor left = clang_Cursor_getArgument(call, 0);
	if (text_same(name, "[]")) {
		struct cpp_value place = cpp_place(reader, call);
		const struct cpp_array *array =
		        place.kind == CPP_PLACE ? &reader->design->arrays.data[place.array] : NULL;
		return array && place.given == array->rank
		        ? cpp_load(reader, call, &place, clang_getCursorType(call))
		        : place;
	}
	if (text_same(name, "=") && arguments == 2) {
		struct cpp_value value = cpp_evaluate(reader, clang_Cursor_getArgument(call, 1));
		if (value.kind == CPP_REFUSED || cpp_assign(reader, left, &value))
			return value;
		return (struct cpp_value){ .kind = CPP_REFUSED };
	}
	enum CXBinaryOperatorKind which = operator_of(name);
	bool steps = text_same(name, "++") || text_same(name, "--");
	bool assigns = steps || name[strlen(name) - 1] == '=';
	struct cpp_value value = cpp_evaluate(reader, left);
	struct cpp_value right = steps || arguments < 2
	        ? cpp_integer(1)
	        : cpp_evaluate(reader, clang_Cursor_getArgument(call, 1));
	if (value.kind == CPP_REFUSED || right.kind == CPP_REFUSED)
		return (struct cpp_value){ .kind = CPP_REFUSED };
	if (text_same(name, "()")) /* a range of bits */
		return value;
	if (steps)
		which = *name == '+' ? CXBinaryOperator_Add : CXBinaryOperator_Sub;
	if (which == CXBinaryOperator_Invalid)
		return cpp_refused(reader, call, "this operator is not known",
		        "accepted are the arithmetic and bitwise ones");
	value = cpp_binary(reader, call, which, value, right);
	if (value.kind != CPP_REFUSED && assigns && !cpp_assign(reader, left, &value))
		return (struct cpp_value){ .kind = CPP_REFUSED };
	return value;
}

/* A number or vector from its argument, or from nothing. */
static struct cpp_value constructed(struct cpp_reader *reader, CXCursor call)
{
	struct cpp_value blank = cpp_blank(reader, clang_getCursorType(call), CPP_NONE);
	if (clang_Cursor_getNumArguments(call) < 1)
		return blank;
	struct cpp_value value = cpp_evaluate(reader, clang_Cursor_getArgument(call, 0));
	if (blank.kind == CPP_LANES && value.kind == CPP_SCALAR)
		for (int i = 0; i < blank.lanes; i++)
			blank.lane[i] = value;
	if (blank.kind == CPP_LANES)
		return value.kind == CPP_SCALAR ? blank : value;
	if (value.kind == CPP_SCALAR && !value.real)
		value.bits = blank.bits;
	return value;
}

static struct cpp_value sum_of_lanes(
        struct cpp_reader *reader, CXCursor call, struct cpp_value vector)
{
	if (vector.kind != CPP_LANES)
		return vector;
	for (int width = vector.lanes; width > 1; width = (width + 1) / 2)
		for (int i = 0; i < width / 2; i++)
			vector.lane[i] = cpp_binary(reader, call, CXBinaryOperator_Add,
			        vector.lane[i], vector.lane[width - 1 - i]);
	return vector.lane[0];
}

static struct cpp_value method(struct cpp_reader *reader, CXCursor call, const char *name)
{
	CXCursor object = object_of(reader, call);
	struct cpp_value value = cpp_evaluate(reader, object);
	if (value.kind == CPP_LANES && text_same(name, "reduce_add")) {
		struct cpp_value copy = value;
		copy.lane = ARENA_ARRAY(reader->c.arena, struct cpp_value, value.lanes);
		for (int i = 0; i < value.lanes; i++)
			copy.lane[i] = value.lane[i];
		return sum_of_lanes(reader, call, copy);
	}
	return value; /* range, to_int and the like are wires */
}

/* --- functions --- */

static struct cpp_value math_call(struct cpp_reader *reader, CXCursor call, enum op_code code)
{
	struct cpp_value operand[3];
	int count = clang_Cursor_getNumArguments(call);
	for (int i = 0; i < count && i < 3; i++) {
		operand[i] = cpp_evaluate(reader, clang_Cursor_getArgument(call, (unsigned)i));
		if (operand[i].kind == CPP_REFUSED)
			return operand[i];
	}
	return cpp_compute(reader, call, code, operand, count < 3 ? count : 3);
}

static enum op_code other_function(const char *name)
{
	if (text_same(name, "max") || text_same(name, "fmaxf"))
		return OP_MAXNUMF;
	if (text_same(name, "min") || text_same(name, "fminf"))
		return OP_MINNUMF;
	return text_same(name, "rsqrt") ? OP_RSQRT : c_math_code(name);
}

/* The parameter stands for the argument. */
static bool bind(struct cpp_reader *reader, CXCursor parameter, CXCursor argument)
{
	const char *key = c_key(reader->c.arena, parameter);
	CXType type = clang_getCanonicalType(clang_getCursorType(parameter));
	bool is_reference = type.kind == CXType_LValueReference;
	struct cpp_variable *own = cpp_variable(reader, argument);
	if (is_reference && own) {
		map_set(&reader->variables, key, own);
	} else {
		bool place = is_reference || type.kind == CXType_Pointer ||
		        type.kind == CXType_ConstantArray || type.kind == CXType_IncompleteArray;
		struct cpp_variable *variable = ARENA_NEW(reader->c.arena, struct cpp_variable);
		variable->value =
		        place ? cpp_place(reader, argument) : cpp_evaluate(reader, argument);
		if (variable->value.kind == CPP_REFUSED)
			return false;
		map_set(&reader->variables, key, variable);
	}
	const struct cpp_variable *bound = map_get(&reader->variables, key);
	if (bound->value.kind == CPP_PLACE)
		cpp_array_pragmas(reader, bound->value.array, c_name(reader->c.arena, parameter),
		        bound->value.given);
	return true;
}

static enum CXChildVisitResult find_loop(CXCursor cursor, CXCursor parent, CXClientData data)
{
	(void)parent;
	enum CXCursorKind kind = clang_getCursorKind(cursor);
	*(bool *)data |= kind == CXCursor_ForStmt;
	return kind == CXCursor_ForStmt ? CXChildVisit_Break : CXChildVisit_Recurse;
}

static bool read_function_body(struct cpp_reader *reader, CXCursor definition)
{
	struct c_cursors parts = c_children(reader->c.arena, definition);
	return cpp_statement(reader, parts.list.data[parts.list.count - 1]);
}

static struct cpp_call call_of(struct cpp_reader *reader, CXCursor definition)
{
	const struct cpp_pragma *pipeline = cpp_find_pragma(reader, definition, "PIPELINE");
	return (struct cpp_call){ .name = c_name(reader->c.arena, definition),
		.location = c_place(&reader->c, definition),
		.dataflow = cpp_find_pragma(reader, definition, "DATAFLOW") != NULL,
		.pipelined = pipeline != NULL,
		.interval = cpp_pragma_number(pipeline, "ii", 0) };
}

/* The function as a module of its own, in its place among the caller's items. */
static bool read_module(struct cpp_reader *reader, CXCursor definition)
{
	struct cpp_call call = call_of(reader, definition);
	int caller = reader->body;
	bool pipelined = reader->pipelined;
	call.body = cpp_new_body(reader);
	VEC_PUSH(reader->c.arena, &reader->design->calls, call);
	int index = (int)reader->design->calls.count - 1;
	cpp_add_item(reader, caller, CPP_CALL, index);
	reader->body = call.body;
	reader->pipelined = call.pipelined;
	cpp_forget(reader);
	bool good = read_function_body(reader, definition);
	cpp_forget(reader);
	reader->body = caller;
	reader->pipelined = pipelined;
	return good;
}

static struct cpp_value call_function(struct cpp_reader *reader, CXCursor call, CXCursor definition)
{
	const char *key = c_key(reader->c.arena, definition);
	int count = clang_Cursor_getNumArguments(definition);
	for (size_t i = 0; i < reader->calls.count; i++)
		if (text_same(reader->calls.data[i], key))
			return cpp_refused(reader, call, "the function calls itself",
			        "accepted are functions without recursion");
	const struct cpp_pragmas *here = reader->here;
	reader->here = cpp_pragmas_of(reader, definition);
	for (int i = 0; i < count && i < clang_Cursor_getNumArguments(call); i++)
		if (!bind(reader, clang_Cursor_getArgument(definition, (unsigned)i),
		            clang_Cursor_getArgument(call, (unsigned)i)))
			return (struct cpp_value){ .kind = CPP_REFUSED };
	bool loops = false;
	clang_visitChildren(definition, find_loop, &loops);
	const struct cpp_pragma *wish = cpp_find_pragma(reader, definition, "INLINE");
	bool apart = wish ? cpp_pragma_has(wish, "off") : loops;
	struct cpp_value result =
	        cpp_blank(reader, clang_getCursorResultType(definition), CPP_NONE);
	struct cpp_value *outer = reader->result;
	reader->result = &result;
	VEC_PUSH(reader->c.arena, &reader->calls, key);
	bool called = reader->called;
	reader->called = called || (reader->pipelined && (!wish || cpp_pragma_has(wish, "off")));
	bool good = apart && !reader->pipelined ? read_module(reader, definition)
	                                        : read_function_body(reader, definition);
	reader->calls.count--;
	reader->called = called;
	reader->result = outer;
	reader->here = here;
	return good ? result : (struct cpp_value){ .kind = CPP_REFUSED };
}

struct cpp_value cpp_call(struct cpp_reader *reader, CXCursor call)
{
	CXCursor callee = clang_getCursorReferenced(call);
	enum CXCursorKind kind = clang_getCursorKind(callee);
	const char *name = c_name(reader->c.arena, call);
	CXCursor parent = clang_getCursorSemanticParent(callee);
	CXType owner = clang_getCursorType(parent);
	CXCursor definition = clang_getCursorDefinition(callee);
	if (kind == CXCursor_Constructor)
		return constructed(reader, call);
	if (kind == CXCursor_ConversionFunction)
		return cpp_evaluate(reader, object_of(reader, call));
	bool member = kind == CXCursor_CXXMethod;
	bool is_operator = !strncmp(name, "operator", 8);
	if (member && text_same(cpp_class(reader, owner), "stream"))
		return stream_method(reader, call, name, object_of(reader, call));
	if (is_operator)
		return operator_call(reader, call, name + 8);
	if (member && !clang_Location_isFromMainFile(clang_getCursorLocation(callee)))
		return method(reader, call, name);
	if (!member && !clang_Cursor_isNull(definition))
		return call_function(reader, call, definition);
	enum op_code code = other_function(name);
	if (code != OP_NONE)
		return math_call(reader, call, code);
	return cpp_refused(reader, call, "this function has no body here",
	        "accepted are functions of the file and those of math.h");
}

/* --- the top function --- */

static bool declare_parameter(struct cpp_reader *reader, CXCursor parameter)
{
	struct cpp_variable *variable = ARENA_NEW(reader->c.arena, struct cpp_variable);
	const char *name = c_name(reader->c.arena, parameter);
	CXType type = cpp_plain(clang_getCursorType(parameter));
	bool array = type.kind == CXType_ConstantArray || type.kind == CXType_IncompleteArray ||
	        type.kind == CXType_Pointer || cpp_is_stream(reader, type);
	variable->value = cpp_blank(reader, type, CPP_NONE);
	if (array) {
		int index = cpp_declare_array(reader, parameter, name);
		if (index == CPP_NONE)
			return false;
		reader->design->arrays.data[index].outside = true;
		variable->value = (struct cpp_value){ .kind = CPP_PLACE, .array = index };
		cpp_array_pragmas(reader, index, name, 0);
	}
	map_set(&reader->variables, c_key(reader->c.arena, parameter), variable);
	return true;
}

bool cpp_read_top(struct cpp_reader *reader)
{
	CXCursor top = reader->c.function;
	reader->here = cpp_pragmas_of(reader, top);
	for (int i = 0; i < clang_Cursor_getNumArguments(top); i++)
		if (!declare_parameter(reader, clang_Cursor_getArgument(top, (unsigned)i)))
			return false;
	struct cpp_call call = call_of(reader, top);
	struct cpp_value result = { .kind = CPP_VOID };
	reader->body = call.body = cpp_new_body(reader);
	reader->pipelined = call.pipelined;
	reader->result = &result;
	reader->design->name = call.name;
	VEC_PUSH(reader->c.arena, &reader->design->calls, call);
	VEC_PUSH(reader->c.arena, &reader->calls, c_key(reader->c.arena, top));
	return read_function_body(reader, top);
}
