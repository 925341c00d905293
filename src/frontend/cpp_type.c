/* Types of HLS C++: numbers of any width, vectors, FIFOs, arrays. */
#include "frontend/cpp_internal.h"
#include <string.h>

CXType cpp_plain(CXType type)
{
	type = clang_getCanonicalType(type);
	while (type.kind == CXType_LValueReference || type.kind == CXType_RValueReference)
		type = clang_getCanonicalType(clang_getPointeeType(type));
	return type;
}

const char *cpp_class(struct cpp_reader *reader, CXType type)
{
	CXCursor declaration = clang_getTypeDeclaration(cpp_plain(type));
	enum CXCursorKind kind = clang_getCursorKind(declaration);
	if (kind != CXCursor_ClassDecl && kind != CXCursor_StructDecl &&
	        kind != CXCursor_ClassTemplate)
		return "";
	return c_name(reader->c.arena, declaration);
}

bool cpp_is_stream(struct cpp_reader *reader, CXType type)
{
	return text_same(cpp_class(reader, type), "stream");
}

CXType cpp_element(CXType type)
{
	return clang_Type_getTemplateArgumentAsType(cpp_plain(type), 0);
}

static enum CXVisitorResult first_field(CXCursor cursor, CXClientData data)
{
	*(int64_t *)data = clang_getArraySize(clang_getCanonicalType(clang_getCursorType(cursor)));
	return CXVisit_Break;
}

/* Our headers tell a number's width by the extent of its only member. */
int64_t cpp_width(struct cpp_reader *reader, CXType type)
{
	int64_t width = 0;
	type = cpp_plain(type);
	if (*cpp_class(reader, type)) {
		clang_Type_visitFields(type, first_field, &width);
		return width < 1 ? 1 : width;
	}
	long long size = clang_Type_getSizeOf(type);
	if (type.kind == CXType_Bool)
		return 1;
	return size < 1 ? 32 : size * 8;
}

static int64_t bits_of(struct cpp_reader *reader, CXType type)
{
	if (text_same(cpp_class(reader, type), "vector"))
		return cpp_width(reader, type) * cpp_width(reader, cpp_element(type));
	return cpp_width(reader, type);
}

static bool is_real(CXType type)
{
	return type.kind == CXType_Float || type.kind == CXType_Double ||
	        type.kind == CXType_Half || type.kind == CXType_LongDouble ||
	        type.kind == CXType_Float16;
}

struct cpp_value cpp_blank(struct cpp_reader *reader, CXType type, int operation)
{
	type = cpp_plain(type);
	if (text_same(cpp_class(reader, type), "vector")) {
		int64_t lanes = cpp_width(reader, type);
		struct cpp_value value = { .kind = CPP_LANES };
		value.lanes = (int)(lanes < CPP_LANES_MOST ? lanes : CPP_LANES_MOST);
		value.lane = ARENA_ARRAY(reader->c.arena, struct cpp_value, value.lanes);
		for (int i = 0; i < value.lanes; i++)
			value.lane[i] = cpp_blank(reader, cpp_element(type), operation);
		return value;
	}
	struct cpp_value value =
	        cpp_unknown(reader, operation, (int)cpp_width(reader, type), is_real(type));
	value.is_double = type.kind == CXType_Double || type.kind == CXType_LongDouble;
	return value;
}

/* Extents of the array, outermost first, and the type of an element. */
static bool find_extents(
        struct cpp_reader *reader, CXCursor declaration, struct cpp_array *array, CXType *element)
{
	CXType type = cpp_plain(clang_getCursorType(declaration));
	bool parameter = clang_getCursorKind(declaration) == CXCursor_ParmDecl;
	while (type.kind == CXType_ConstantArray || type.kind == CXType_IncompleteArray ||
	        (type.kind == CXType_Pointer && parameter)) {
		bool sized = type.kind == CXType_ConstantArray;
		if (array->rank == CPP_DEPTH)
			return c_refuse(&reader->c, declaration,
			        "the array has too many dimensions",
			        "accepted are arrays of up to 16 dimensions");
		array->extent[array->rank++] = sized ? (int64_t)clang_getArraySize(type) : 0;
		type = clang_getCanonicalType(type.kind == CXType_Pointer
		                ? clang_getPointeeType(type)
		                : clang_getArrayElementType(type));
	}
	*element = type;
	if (type.kind != CXType_VariableArray && type.kind != CXType_Pointer)
		return true;
	return c_refuse(&reader->c, declaration, "the array has no constant extent",
	        "accepted are arrays with constant extents, as float a[64], and pointers as "
	        "parameters");
}

int cpp_declare_array(struct cpp_reader *reader, CXCursor declaration, const char *name)
{
	struct cpp_array array = { .name = name,
		.location = c_place(&reader->c, declaration),
		.shared_ports = 2,
		.depth = 2 };
	CXType element;
	if (!find_extents(reader, declaration, &array, &element))
		return CPP_NONE;
	if (cpp_is_stream(reader, element)) {
		array.storage = CPP_STREAM;
		element = cpp_element(element);
	}
	array.bits = (int)bits_of(reader, element);
	for (int i = 0; i < CPP_DEPTH; i++)
		array.factor[i] = 1;
	VEC_PUSH(reader->c.arena, &reader->design->arrays, array);
	return (int)reader->design->arrays.count - 1;
}
