/* Double precision that a literal brings into a statement on floats: `y[i] = x[i] * 0.1 + z[i]`. It
 * is computed as C means it, at the cost of operators of twice the width, so the user is told. */
#include "frontend/c_reader.h"
#include "ir/double_forms.h"

struct literal_search {
	bool found;
	CXCursor literal;
};

static enum CXChildVisitResult find_literal(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct literal_search *search = data;
	(void)parent;
	bool wide = clang_getCursorKind(cursor) == CXCursor_FloatingLiteral &&
	        clang_getCanonicalType(clang_getCursorType(cursor)).kind == CXType_Double;
	if (!wide)
		return CXChildVisit_Recurse;
	*search = (struct literal_search){ true, cursor };
	return CXChildVisit_Break;
}

/* Does the statement read or write an array of doubles? */
static bool names_doubles(const struct c_reader *reader)
{
	const struct region_array *arrays = reader->region->arrays.data;
	const struct poly_statement *affine = &reader->statement->affine;
	bool doubles = type_is_double(arrays[affine->write.array].type);
	for (int r = 0; r < affine->reads; r++)
		doubles = doubles || type_is_double(arrays[affine->read[r].array].type);
	return doubles;
}

void c_note_double(struct c_reader *reader, CXCursor cursor)
{
	const struct body *body = &reader->statement->body;
	struct literal_search search = { 0 };
	bool wide = false;
	for (int n = 0; n < body->count; n++)
		wide = wide || type_is_double(body->node[n].type);
	if (wide && !names_doubles(reader))
		clang_visitChildren(cursor, find_literal, &search);
	if (!search.found)
		return;
	const char *number = c_tokens(reader, search.literal);
	struct region_note note = { c_place(reader, search.literal),
		text_format(reader->arena,
		        "`%s` is computed in double precision, since `%s` is a double: a float "
		        "literal ends in f",
		        reader->statement->text, number) };
	VEC_PUSH(reader->arena, &reader->region->notes, note);
}
