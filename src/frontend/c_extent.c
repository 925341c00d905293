/* Values of integer parameters that bound loops over arrays of constant extents.
 * Before: float A[400][410], int n, for (i = 0; i < n; i++) … A[i][j]      After: n = 400
 * An option that gives the value comes first. */
#include "frontend/c_reader.h"
#include <inttypes.h>

struct extent_search {
	struct c_reader *reader;
	struct map counters; /* c_key of a counter -> declaration of the parameter that bounds it */
	struct map array;    /* parameter -> name of the array that gave its value */
};

/* x of x + 1, 1 + x and x - 1; else the expression itself. */
static CXCursor without_constant(struct arena *arena, CXCursor cursor)
{
	cursor = c_strip(arena, cursor);
	if (clang_getCursorKind(cursor) != CXCursor_BinaryOperator)
		return cursor;
	enum CXBinaryOperatorKind which = clang_getCursorBinaryOperatorKind(cursor);
	struct c_cursors parts = c_children(arena, cursor);
	bool sum = which == CXBinaryOperator_Add || which == CXBinaryOperator_Sub;
	int64_t number;
	if (!sum || parts.list.count != 2)
		return cursor;
	if (c_integer(parts.list.data[1], &number))
		return c_strip(arena, parts.list.data[0]);
	if (which == CXBinaryOperator_Add && c_integer(parts.list.data[0], &number))
		return c_strip(arena, parts.list.data[1]);
	return cursor;
}

/* The integer parameter that an expression is, apart from a constant, without a value of its own;
 * false: it is none. */
static bool bounding_parameter(struct extent_search *search, CXCursor cursor, CXCursor *parameter)
{
	struct c_reader *reader = search->reader;
	cursor = without_constant(reader->arena, cursor);
	if (clang_getCursorKind(cursor) != CXCursor_DeclRefExpr)
		return false;
	*parameter = clang_getCursorReferenced(cursor);
	const char *name = c_name(reader->arena, *parameter);
	bool given = map_get(&reader->sizes, name) && !map_get(&search->array, name);
	struct c_type type = c_type_of(reader, clang_getCursorType(*parameter));
	return clang_getCursorKind(*parameter) == CXCursor_ParmDecl && !given && type.type &&
	        !type_is_real(type.type) &&
	        !map_get(&reader->assigned, c_key(reader->arena, *parameter));
}

/* Notes the counter of `for (…; i < n; …)`, also of `i <= n - 1`. */
static void note_bound(struct extent_search *search, CXCursor condition)
{
	struct arena *arena = search->reader->arena;
	condition = c_strip(arena, condition);
	struct c_cursors parts = c_children(arena, condition);
	CXCursor parameter;
	enum CXBinaryOperatorKind which = clang_getCursorBinaryOperatorKind(condition);
	bool less = clang_getCursorKind(condition) == CXCursor_BinaryOperator &&
	        (which == CXBinaryOperator_LT || which == CXBinaryOperator_LE);
	if (!less || parts.list.count != 2)
		return;
	CXCursor counter = c_strip(arena, parts.list.data[0]);
	if (clang_getCursorKind(counter) != CXCursor_DeclRefExpr)
		return;
	const char *key = c_key(arena, clang_getCursorReferenced(counter));
	bool bounded = bounding_parameter(search, parts.list.data[1], &parameter);
	map_set(&search->counters, key,
	        bounded ? arena_copy(arena, &parameter, sizeof parameter) : NULL);
}

static void note_extent(
        struct extent_search *search, CXCursor parameter, CXCursor array, int64_t extent)
{
	struct c_reader *reader = search->reader;
	const char *name = c_name(reader->arena, parameter);
	const int64_t *known = map_get(&reader->sizes, name);
	if (known && *known <= extent)
		return;
	map_set(&reader->sizes, name, arena_copy(reader->arena, &extent, sizeof extent));
	map_set(&search->array, name, (void *)(uintptr_t)c_name(reader->arena, array));
}

/* A[i], A[i + 1] and the like where a parameter bounds i. */
static void note_subscript(struct extent_search *search, CXCursor cursor)
{
	struct c_reader *reader = search->reader;
	struct c_cursors parts = c_children(reader->arena, cursor);
	if (parts.list.count != 2)
		return;
	CXCursor index = without_constant(reader->arena, parts.list.data[1]);
	CXCursor base = c_strip(reader->arena, parts.list.data[0]);
	CXType type = clang_getCanonicalType(clang_getCursorType(base));
	const CXCursor *parameter =
	        map_get(&search->counters, c_key(reader->arena, clang_getCursorReferenced(index)));
	bool known = clang_getCursorKind(index) == CXCursor_DeclRefExpr && parameter &&
	        type.kind == CXType_ConstantArray;
	while (clang_getCursorKind(base) == CXCursor_ArraySubscriptExpr) {
		struct c_cursors inner = c_children(reader->arena, base);
		if (!inner.list.count)
			return;
		base = c_strip(reader->arena, inner.list.data[0]);
	}
	if (known)
		note_extent(search, *parameter, base, (int64_t)clang_getArraySize(type));
}

static enum CXChildVisitResult find_sizes_at(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct extent_search *search = data;
	struct c_reader *reader = search->reader;
	(void)parent;
	if (clang_getCursorKind(cursor) == CXCursor_ForStmt) {
		struct c_cursors parts = c_children(reader->arena, cursor);
		if (parts.list.count == 4)
			note_bound(search, parts.list.data[1]);
	}
	if (clang_getCursorKind(cursor) == CXCursor_ArraySubscriptExpr)
		note_subscript(search, cursor);
	return CXChildVisit_Recurse;
}

void c_find_sizes(struct c_reader *reader)
{
	struct extent_search search = { .reader = reader,
		.counters = map_new(reader->arena),
		.array = map_new(reader->arena) };
	clang_visitChildren(reader->function, find_sizes_at, &search);
	for (size_t i = 0; i < search.array.entries.count; i++) {
		const char *name = search.array.entries.data[i].key;
		const int64_t *size = map_get(&reader->sizes, name);
		struct region_note note = { reader->region->location,
			text_format(reader->arena,
			        "%s is %" PRId64 ", an extent of %s; --define %s=COUNT sets it",
			        name, *size, (const char *)search.array.entries.data[i].value,
			        name) };
		VEC_PUSH(reader->arena, &reader->region->notes, note);
	}
}

/* A scalar integer argument in an expression that has to be affine. */
static enum CXChildVisitResult find_unknown(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct extent_search *search = data;
	struct c_reader *reader = search->reader;
	CXCursor parameter;
	(void)parent;
	if (clang_getCursorKind(cursor) != CXCursor_DeclRefExpr ||
	        !bounding_parameter(search, cursor, &parameter))
		return CXChildVisit_Recurse;
	const struct c_symbol *symbol = map_get(&reader->symbols, c_key(reader->arena, parameter));
	const char *name =
	        symbol && symbol->unknown ? symbol->unknown : c_name(reader->arena, parameter);
	map_set(&search->array, name, reader);
	return CXChildVisit_Break;
}

const char *c_unknown_size(struct c_reader *reader, CXCursor cursor)
{
	struct extent_search search = { .reader = reader, .array = map_new(reader->arena) };
	find_unknown(cursor, cursor, &search);
	if (!search.array.entries.count)
		clang_visitChildren(cursor, find_unknown, &search);
	return search.array.entries.count ? search.array.entries.data[0].key : NULL;
}
