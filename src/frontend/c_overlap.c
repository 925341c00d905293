/* Arguments that share elements. A design keeps every argument in a memory of its own, as C does
 * with parameters that are `restrict`: a call in the file that passes one array twice means another
 * function than the one that would be built. */
#include "frontend/c_reader.h"

struct argument_part { /* bytes of a variable that a parameter stands for */
	CXCursor variable;
	int64_t first, size;
};

static int64_t size_of(CXType type)
{
	return (int64_t)clang_Type_getSizeOf(clang_getCanonicalType(type));
}

/* The bytes of what a pointer or an array refers to, one step of a subscript or a sum. */
static int64_t stride_of(CXType type)
{
	type = clang_getCanonicalType(type);
	return size_of(
	        c_is_array(type) ? clang_getArrayElementType(type) : clang_getPointeeType(type));
}

/* One step inwards: x of &x, *x, x[2] and x + 2, of which `first` notes the bytes. */
static bool step_inwards(struct c_reader *reader, CXCursor *cursor, int64_t *first)
{
	struct c_cursors parts = c_children(reader->arena, *cursor);
	enum CXCursorKind kind = clang_getCursorKind(*cursor);
	if (kind == CXCursor_UnaryOperator && parts.list.count == 1) {
		enum CXUnaryOperatorKind which = clang_getCursorUnaryOperatorKind(*cursor);
		*cursor = parts.list.data[0];
		return which == CXUnaryOperator_AddrOf || which == CXUnaryOperator_Deref;
	}
	bool sum = kind == CXCursor_BinaryOperator &&
	        clang_getCursorBinaryOperatorKind(*cursor) == CXBinaryOperator_Add;
	int64_t number;
	if ((!sum && kind != CXCursor_ArraySubscriptExpr) || parts.list.count != 2 ||
	        !c_integer(parts.list.data[1], &number) || number > INT32_MAX || number < INT32_MIN)
		return false;
	*cursor = parts.list.data[0];
	*first += number * stride_of(clang_getCursorType(*cursor));
	return true;
}

/* false: it is not known. */
static bool find_part(struct c_reader *reader, CXCursor call, int at, struct argument_part *part)
{
	CXCursor cursor = clang_Cursor_getArgument(call, (unsigned)at);
	CXCursor parameter = clang_Cursor_getArgument(reader->function, (unsigned)at);
	CXType type = clang_getCanonicalType(clang_getCursorType(parameter));
	*part = (struct argument_part){ .size = size_of(type) };
	if (!c_is_array(type) || part->size < 1)
		return false;
	cursor = c_strip(reader->arena, cursor);
	while (clang_getCursorKind(cursor) != CXCursor_DeclRefExpr) {
		if (!step_inwards(reader, &cursor, &part->first))
			return false;
		cursor = c_strip(reader->arena, cursor);
	}
	part->variable = clang_getCursorReferenced(cursor);
	return true;
}

static bool is_written(struct c_reader *reader, int at)
{
	CXCursor parameter = clang_Cursor_getArgument(reader->function, (unsigned)at);
	return map_get(&reader->assigned, c_key(reader->arena, parameter)) != NULL;
}

static const char *parameter_name(struct c_reader *reader, int at)
{
	return c_name(reader->arena, clang_Cursor_getArgument(reader->function, (unsigned)at));
}

static bool check_pair(struct c_reader *reader, CXCursor call, int one, int other)
{
	struct argument_part a;
	struct argument_part b;
	bool apart = (!is_written(reader, one) && !is_written(reader, other)) ||
	        !find_part(reader, call, one, &a) || !find_part(reader, call, other, &b) ||
	        !clang_equalCursors(a.variable, b.variable) || a.first >= b.first + b.size ||
	        b.first >= a.first + a.size;
	if (apart)
		return true;
	return c_refuse(reader, call,
	        text_format(reader->arena,
	                "the arguments for %s and %s overlap, but a design keeps them apart",
	                parameter_name(reader, one), parameter_name(reader, other)),
	        "accepted are calls with an array for each parameter, as for parameters that are "
	        "restrict");
}

struct call_search {
	struct c_reader *reader;
	bool good;
};

static enum CXChildVisitResult find_calls(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct call_search *search = data;
	struct c_reader *reader = search->reader;
	(void)parent;
	bool called = clang_getCursorKind(cursor) == CXCursor_CallExpr &&
	        clang_equalCursors(clang_getCanonicalCursor(clang_getCursorReferenced(cursor)),
	                clang_getCanonicalCursor(reader->function));
	if (!called)
		return CXChildVisit_Recurse;
	int arguments = clang_Cursor_getNumArguments(cursor);
	if (arguments != clang_Cursor_getNumArguments(reader->function))
		return CXChildVisit_Recurse;
	for (int one = 0; one < arguments; one++)
		for (int other = one + 1; other < arguments; other++)
			if (!check_pair(reader, cursor, one, other)) {
				search->good = false;
				return CXChildVisit_Break;
			}
	return CXChildVisit_Recurse;
}

/* Visits the functions of the file itself, not those of its headers. */
static enum CXChildVisitResult find_own(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct call_search *search = data;
	(void)parent;
	if (clang_getCursorKind(cursor) == CXCursor_FunctionDecl &&
	        clang_Location_isFromMainFile(clang_getCursorLocation(cursor)))
		clang_visitChildren(cursor, find_calls, search);
	return search->good ? CXChildVisit_Continue : CXChildVisit_Break;
}

bool c_check_overlap(struct c_reader *reader)
{
	struct call_search search = { reader, true };
	clang_visitChildren(clang_getTranslationUnitCursor(reader->unit), find_own, &search);
	return search.good;
}
