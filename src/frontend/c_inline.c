/* Calls as statements: the body of a function of the file stands in the place of the call, its
 * parameters bound to the arguments.
 * Before: static void scale(int n, float x[N], float f) { … x[i] *= f; }
 *         scale(4, A[i], 2 * c);
 * After:  f = 2 * c;  … A[i][i2] *= f;      n is 4, x is the row A[i] */
#include "frontend/c_reader.h"
#include "ir/kernel_edit.h"

#define CALL_ACCEPTED                                                                              \
	"accepted are void functions whose definition is in the file, called with scalars and "    \
	"with arrays or rows of arrays"

/* A pointer parameter takes a row or an element; an array parameter what has its extents behind the
 * first. */
static bool same_shape(struct c_reader *reader, CXCursor parameter, const struct c_symbol *part)
{
	const struct region_array *array = &reader->region->arrays.data[part->array];
	CXType type = clang_getCanonicalType(clang_getCursorType(parameter));
	int rank = part->element ? 1 : array->rank - part->given;
	for (int d = 0; d < rank; d++) {
		bool pointer = d == 0 && type.kind == CXType_Pointer;
		if (!pointer && (!c_is_array(type) || part->element))
			return false;
		if (d > 0 && type.kind == CXType_ConstantArray &&
		        clang_getArraySize(type) != array->extent[part->given + d])
			return false;
		type = clang_getCanonicalType(
		        pointer ? clang_getPointeeType(type) : clang_getArrayElementType(type));
	}
	return rank > 0 && c_type_of(reader, type).type == array->type;
}

/* &x of an element or scalar. */
static bool takes_address(struct c_reader *reader, CXCursor *argument)
{
	CXCursor stripped = c_strip(reader->arena, *argument);
	struct c_cursors parts = c_children(reader->arena, stripped);
	bool address = clang_getCursorKind(stripped) == CXCursor_UnaryOperator &&
	        clang_getCursorUnaryOperatorKind(stripped) == CXUnaryOperator_AddrOf &&
	        parts.list.count == 1;
	if (address)
		*argument = parts.list.data[0];
	return address;
}

static bool bind_array(
        struct c_reader *reader, CXCursor argument, CXCursor parameter, struct c_symbol *symbol)
{
	CXCursor written = argument;
	bool address = takes_address(reader, &argument);
	if (!c_part(reader, argument, symbol))
		return false;
	bool whole = symbol->given == reader->region->arrays.data[symbol->array].rank;
	symbol->element = symbol->element || (address && whole);
	if ((!address || whole) && same_shape(reader, parameter, symbol))
		return true;
	return c_refuse(reader, written,
	        text_format(reader->arena,
	                "this array has another shape or type than the parameter %s",
	                c_name(reader->arena, parameter)),
	        "accepted is an array, a row of one, or the address of an element, of the extents "
	        "and the type of the parameter");
}

/* By value: in a scalar of its own, unless it is an affine value that stays the same. */
static bool bind_scalar(
        struct c_reader *reader, CXCursor argument, CXCursor parameter, struct c_symbol *symbol)
{
	bool assigned = map_get(&reader->assigned, c_key(reader->arena, parameter)) != NULL;
	struct c_type type = c_type_of(reader, clang_getCursorType(parameter));
	if (!type.type)
		return c_refuse(reader, argument, "this type has no counterpart in a design",
		        CALL_ACCEPTED);
	*symbol = (struct c_symbol){ .kind = C_SYMBOL_FORM };
	if (!assigned && !type_is_real(type.type) && c_affine(reader, argument, &symbol->form))
		return true;
	struct region_array array = { .type = type.type };
	array.name = c_name(reader->arena, parameter);
	array.location = c_place(reader, argument);
	*symbol = (struct c_symbol){ .kind = C_SYMBOL_ARRAY,
		.array = c_add_array(reader, &array),
		.unknown = c_unknown_size(reader, argument) };
	return c_write_initial(reader, argument, parameter, argument, symbol->array);
}

/* All arguments come before the parameters: one may be a parameter of the same function. */
static bool bind(struct c_reader *reader, CXCursor call, CXCursor definition)
{
	int arguments = clang_Cursor_getNumArguments(call);
	struct c_symbol *symbol = ARENA_ARRAY(reader->arena, struct c_symbol, arguments + 1);
	for (int i = 0; i < arguments; i++) {
		CXCursor argument = clang_Cursor_getArgument(call, (unsigned)i);
		CXCursor parameter = clang_Cursor_getArgument(definition, (unsigned)i);
		CXType type = clang_getCursorType(parameter);
		bool array =
		        c_is_array(type) || clang_getCanonicalType(type).kind == CXType_Pointer;
		bool good = array ? bind_array(reader, argument, parameter, &symbol[i])
		                  : bind_scalar(reader, argument, parameter, &symbol[i]);
		if (!good)
			return false;
	}
	for (int i = 0; i < arguments; i++)
		c_set_symbol(reader, clang_Cursor_getArgument(definition, (unsigned)i), symbol[i]);
	return true;
}

bool c_call_statement(struct c_reader *reader, CXCursor call)
{
	CXCursor definition = clang_getCursorDefinition(clang_getCursorReferenced(call));
	bool known = !clang_Cursor_isNull(definition) &&
	        clang_getCanonicalType(clang_getCursorResultType(definition)).kind == CXType_Void;
	if (!known)
		return c_refuse(reader, call, "this call has no body that could stand in its place",
		        CALL_ACCEPTED);
	if (!c_check_call(reader, call, definition) || !bind(reader, call, definition))
		return false;
	VEC_PUSH(reader->arena, &reader->calls, c_key(reader->arena, definition));
	bool good = c_function_body(reader, definition);
	reader->calls.count--;
	return good;
}
