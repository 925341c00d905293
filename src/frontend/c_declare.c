/* Declarations: parameters of the function, local variables, constants; what a name stands for. */
#include "frontend/c_reader.h"
#include <string.h>

#define ELEMENTS_MOST (INT64_C(1) << 40)

void c_set_symbol(struct c_reader *reader, CXCursor declaration, struct c_symbol symbol)
{
	map_set(&reader->symbols, c_key(reader->arena, declaration),
	        arena_copy(reader->arena, &symbol, sizeof symbol));
}

int c_add_array(struct c_reader *reader, const struct region_array *array)
{
	VEC_PUSH(reader->arena, &reader->region->arrays, *array);
	return (int)reader->region->arrays.count - 1;
}

static bool is_assigned(struct c_reader *reader, CXCursor declaration)
{
	return map_get(&reader->assigned, c_key(reader->arena, declaration)) != NULL;
}

/* --- types of arrays --- */

/* The extents of a variable-length array as the parameter's declaration writes them. */
static bool variable_extent(
        struct c_reader *reader, CXCursor declaration, int dim, int rank, int64_t *extent)
{
	struct c_cursors parts = c_children(reader->arena, declaration);
	struct c_cursors sizes = { .arena = reader->arena };
	for (size_t i = 0; i < parts.list.count; i++)
		if (clang_isExpression(clang_getCursorKind(parts.list.data[i])))
			VEC_PUSH(reader->arena, &sizes.list, parts.list.data[i]);
	struct poly_form form;
	if ((int)sizes.list.count < rank || !c_affine(reader, sizes.list.data[dim], &form))
		return false;
	for (int d = 0; d < POLY_DIMS; d++)
		if (form.coefficient[d])
			return false;
	*extent = form.constant;
	return true;
}

static int rank_of(CXType type)
{
	int rank = 0;
	for (type = clang_getCanonicalType(type); c_is_array(type); rank++)
		type = clang_getCanonicalType(clang_getArrayElementType(type));
	return rank;
}

static bool refuse_extent(struct c_reader *reader, CXCursor declaration)
{
	return c_refuse_affine(reader, declaration, "an extent of this array is not known",
	        "accepted are constants, and parameters whose value --define NAME=COUNT gives");
}

/* Rank, extents and element type. */
static bool read_array(struct c_reader *reader, CXCursor declaration, struct region_array *array)
{
	CXType type = clang_getCanonicalType(clang_getCursorType(declaration));
	int64_t elements = 1;
	array->name = c_name(reader->arena, declaration);
	array->location = c_place(reader, declaration);
	array->rank = rank_of(type);
	if (array->rank > POLY_DIMS)
		return c_refuse(reader, declaration, "this array has more than 12 dimensions",
		        "accepted are up to 12");
	for (int d = 0; d < array->rank; d++) {
		int64_t *extent = &array->extent[d];
		*extent = (int64_t)clang_getArraySize(type);
		bool known = type.kind == CXType_ConstantArray ||
		        (type.kind == CXType_VariableArray &&
		                variable_extent(reader, declaration, d, array->rank, extent));
		if (!known)
			return refuse_extent(reader, declaration);
		if (*extent < 1 || *extent > ELEMENTS_MOST / elements)
			return c_refuse(reader, declaration,
			        "this array has no elements, or too many",
			        "accepted are 1 to 2^40 elements");
		elements *= *extent;
		type = clang_getCanonicalType(clang_getArrayElementType(type));
	}
	array->type = c_type_of(reader, type).type;
	if (array->type)
		return true;
	return c_refuse(reader, declaration,
	        text_format(reader->arena, "elements of type %s cannot be held by a design",
	                c_text(reader->arena, clang_getTypeSpelling(type))),
	        "accepted are double, float, _Float16, __bf16, bool and integers of 8 to 64 bits");
}

/* --- parameters --- */

static bool refuse_pointer(struct c_reader *reader, CXCursor declaration)
{
	return c_refuse(reader, declaration, "the extents behind this pointer are not known",
	        text_format(reader->arena, "accepted is an array, as float %s[64][32]",
	                c_name(reader->arena, declaration)));
}

static bool declare_parameter(struct c_reader *reader, CXCursor declaration)
{
	CXType type = clang_getCursorType(declaration);
	const char *name = c_name(reader->arena, declaration);
	const int64_t *size = map_get(&reader->sizes, name);
	struct region_array array = { .argument = true };
	if (!*name)
		return c_refuse(reader, declaration, "this parameter has no name",
		        "accepted are parameters with names");
	if (size && is_assigned(reader, declaration))
		return c_refuse(reader, declaration, "the function assigns this parameter",
		        "accepted is a size that stays the same");
	if (size && c_is_scalar(type)) {
		struct c_symbol symbol = { .kind = C_SYMBOL_FORM };
		symbol.form.constant = *size;
		c_set_symbol(reader, declaration, symbol);
		return true;
	}
	if (clang_getCanonicalType(type).kind == CXType_Pointer)
		return refuse_pointer(reader, declaration);
	if (!read_array(reader, declaration, &array))
		return false;
	struct c_symbol symbol = { .kind = C_SYMBOL_ARRAY };
	symbol.array = c_add_array(reader, &array);
	c_set_symbol(reader, declaration, symbol);
	return true;
}

/* Sizes of options: each must be a parameter. */
static bool check_sizes(struct c_reader *reader, int parameters)
{
	for (size_t i = 0; i < reader->sizes.entries.count; i++) {
		const char *name = reader->sizes.entries.data[i].key;
		bool found = false;
		for (int p = 0; p < parameters; p++)
			found = found ||
			        text_same(name,
			                c_name(reader->arena,
			                        clang_Cursor_getArgument(
			                                reader->function, (unsigned)p)));
		if (found)
			continue;
		diag_error(reader->module->diag, reader->region->location,
		        "--define %s: the function '%s' has no such parameter", name,
		        reader->region->name);
		return diag_note(reader->module->diag,
		        "accepted are the function's own integer parameters; -D NAME=VALUE defines "
		        "a macro");
	}
	return true;
}

bool c_declare_parameters(struct c_reader *reader)
{
	int parameters = clang_Cursor_getNumArguments(reader->function);
	if (!check_sizes(reader, parameters))
		return false;
	/* sizes first: extents name them */
	for (int others = 0; others < 2; others++)
		for (int p = 0; p < parameters; p++) {
			CXCursor declaration =
			        clang_Cursor_getArgument(reader->function, (unsigned)p);
			const char *name = c_name(reader->arena, declaration);
			bool size = map_get(&reader->sizes, name) != NULL;
			if (size != (others == 1) && !declare_parameter(reader, declaration))
				return false;
		}
	return true;
}

/* --- local variables and constants --- */

static CXCursor initializer_of(CXCursor declaration)
{
	return clang_Cursor_getVarDeclInitializer(declaration);
}

/* Appends the numbers of an initializer, depth first; missing ones are 0. */
static bool add_numbers(struct c_reader *reader, CXCursor cursor, CXType type, struct text *bytes)
{
	struct c_type element = c_type_of(reader, type);
	if (c_is_array(type)) {
		struct c_cursors parts = c_children(reader->arena, cursor);
		CXType inner = clang_getArrayElementType(clang_getCanonicalType(type));
		long long count = clang_getArraySize(clang_getCanonicalType(type));
		if (clang_getCursorKind(cursor) != CXCursor_InitListExpr ||
		        (long long)parts.list.count != count)
			return c_refuse(reader, cursor,
			        "this table does not list all of its elements",
			        "accepted is an initializer with a number for every element");
		for (size_t i = 0; i < parts.list.count; i++)
			if (!add_numbers(reader, parts.list.data[i], inner, bytes))
				return false;
		return true;
	}
	double real = 0;
	int64_t whole = 0;
	bool is_real = element.type && type_is_real(element.type);
	bool known = element.type &&
	        (is_real ? c_real(cursor, &real) || c_integer(cursor, &whole)
	                 : c_integer(cursor, &whole));
	if (!known || (is_real && element.type->width < 32))
		return c_refuse(reader, cursor, "this is no constant number",
		        "accepted are float, double and integer constants in a table");
	float single = (float)(real + (double)whole);
	double wide = real + (double)whole;
	if (is_real && element.type->width == 32)
		text_add_bytes(bytes, (const char *)&single, sizeof single);
	else if (is_real)
		text_add_bytes(bytes, (const char *)&wide, sizeof wide);
	else
		text_add_bytes(bytes, (const char *)&whole, (size_t)(element.type->width + 7) / 8);
	return true;
}

static bool declare_table(struct c_reader *reader, CXCursor declaration, struct region_array *array)
{
	struct text bytes = text_new(reader->arena);
	CXCursor list = c_strip(reader->arena, initializer_of(declaration));
	if (!add_numbers(reader, list, clang_getCursorType(declaration), &bytes))
		return false;
	struct attr *value = ARENA_NEW(reader->arena, struct attr);
	value->kind = ATTR_DENSE;
	value->type =
	        type_shaped(reader->module, TYPE_TENSOR, array->rank, array->extent, array->type);
	value->data = bytes.data;
	value->bytes = bytes.size;
	array->value = value;
	return true;
}

bool c_write_initial(struct c_reader *reader, CXCursor written, CXCursor declaration,
        CXCursor initial, int array)
{
	struct poly_access target = { .array = array };
	struct c_type type = c_type_of(reader, clang_getCursorType(declaration));
	size_t outer = reader->guards.count;
	reader->guards.count = 0;
	c_begin_statement(reader, written);
	struct c_value value = c_expression(reader, initial);
	bool good =
	        value.node >= 0 && c_end_statement(reader, &target, c_convert(reader, value, type));
	reader->guards.count = outer;
	return good;
}

/* A variable that keeps an affine value is that value. */
static bool is_affine_alias(struct c_reader *reader, CXCursor declaration, struct poly_form *form)
{
	CXCursor value = initializer_of(declaration);
	return !clang_Cursor_isNull(value) && !is_assigned(reader, declaration) &&
	        c_affine(reader, value, form);
}

bool c_declare_local(struct c_reader *reader, CXCursor declaration)
{
	struct region_array array = { 0 };
	struct c_symbol symbol = { .kind = C_SYMBOL_FORM };
	bool initial = !clang_Cursor_isNull(initializer_of(declaration));
	bool is_static = clang_Cursor_getStorageClass(declaration) == CX_SC_Static;
	if (is_affine_alias(reader, declaration, &symbol.form)) {
		c_set_symbol(reader, declaration, symbol);
		return true;
	}
	if (clang_getCanonicalType(clang_getCursorType(declaration)).kind == CXType_Pointer)
		return refuse_pointer(reader, declaration);
	if (!read_array(reader, declaration, &array))
		return false;
	bool table = initial && array.rank && !is_assigned(reader, declaration);
	if (initial && array.rank && !table)
		return c_refuse(reader, declaration,
		        "this array has an initializer and is assigned later",
		        "accepted is one of both: assign the elements in a loop");
	if (is_static && !table)
		return c_refuse(reader, declaration, "this variable keeps its value between calls",
		        "accepted are variables that are not static");
	if (table && !declare_table(reader, declaration, &array))
		return false;
	symbol = (struct c_symbol){ .kind = C_SYMBOL_ARRAY, .array = c_add_array(reader, &array) };
	c_set_symbol(reader, declaration, symbol);
	return !initial || table ||
	        c_write_initial(reader, declaration, declaration, initializer_of(declaration),
	                symbol.array);
}

/* Global variables are constants, or refused where they are used. */
static bool declare_global(struct c_reader *reader, CXCursor declaration)
{
	CXType type = clang_getCursorType(declaration);
	while (c_is_array(type))
		type = clang_getArrayElementType(clang_getCanonicalType(type));
	bool constant = clang_isConstQualifiedType(type) &&
	        !clang_Cursor_isNull(initializer_of(declaration));
	struct c_symbol symbol = { .kind = C_SYMBOL_FORM };
	struct region_array array = { 0 };
	if (!constant)
		return c_refuse(reader, declaration, "this global variable is not constant",
		        "accepted are const variables with an initializer; pass others as "
		        "arguments");
	if (!is_affine_alias(reader, declaration, &symbol.form)) {
		if (!read_array(reader, declaration, &array) ||
		        !declare_table(reader, declaration, &array))
			return false;
		symbol = (struct c_symbol){ .kind = C_SYMBOL_ARRAY,
			.array = c_add_array(reader, &array) };
	}
	c_set_symbol(reader, declaration, symbol);
	return true;
}

struct c_symbol *c_symbol(struct c_reader *reader, CXCursor reference)
{
	CXCursor declaration = clang_getCursorReferenced(reference);
	const char *key = c_key(reader->arena, declaration);
	struct c_symbol *symbol = map_get(&reader->symbols, key);
	bool global = !symbol && clang_getCursorKind(declaration) == CXCursor_VarDecl &&
	        clang_getCursorKind(clang_getCursorSemanticParent(declaration)) ==
	                CXCursor_TranslationUnit;
	if (global && !declare_global(reader, declaration))
		c_set_symbol(reader, declaration, (struct c_symbol){ .kind = C_SYMBOL_REFUSED });
	return global ? map_get(&reader->symbols, key) : symbol;
}
