/* Constant expressions in pragmas: `factor = TILE * 2`. Pragmas are no part of clang's tree, so the
 * file is parsed again with the expression as the value of an enumerator behind its end. */
#include "frontend/c_reader.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ENUMERATOR "stc_constant_of_pragma"

static bool is_number(const char *text, int64_t *value)
{
	char *end;
	long long number = strtoll(text, &end, 0);
	*value = number;
	return end != text && !*end;
}

struct enumerator_search {
	struct arena *arena;
	bool found;
	int64_t value;
};

static enum CXChildVisitResult find_enumerator(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct enumerator_search *search = data;
	enum CXCursorKind kind = clang_getCursorKind(cursor);
	(void)parent;
	if (kind == CXCursor_EnumDecl)
		return CXChildVisit_Recurse;
	if (kind != CXCursor_EnumConstantDecl ||
	        !text_same(c_name(search->arena, cursor), ENUMERATOR))
		return CXChildVisit_Continue;
	search->found = true;
	search->value = (int64_t)clang_getEnumConstantDeclValue(cursor);
	return CXChildVisit_Break;
}

static bool has_error(CXTranslationUnit unit)
{
	bool error = false;
	for (unsigned i = 0; i < clang_getNumDiagnostics(unit); i++) {
		CXDiagnostic diagnostic = clang_getDiagnostic(unit, i);
		error = error || clang_getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Error;
		clang_disposeDiagnostic(diagnostic);
	}
	return error;
}

/* Is it a name, or an expression of names, numbers and operators? */
static bool is_expression(const char *text)
{
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_+-*/%()<> ", *c))
			return false;
	return *text;
}

bool c_constant_text(struct c_reader *reader, const char *text, int64_t *value)
{
	if (is_number(text, value) || !is_expression(text))
		return is_number(text, value);
	struct text whole = text_new(reader->arena);
	text_add_bytes(&whole, reader->source->text, reader->source->size);
	text_add(&whole, "\nenum { " ENUMERATOR " = (%s) };\n", text);
	struct CXUnsavedFile own = { reader->source->file, whole.data, (unsigned long)whole.size };
	struct enumerator_search search = { .arena = reader->arena };
	CXTranslationUnit unit = NULL;
	CXIndex index = clang_createIndex(0, 0);
	enum CXErrorCode code = clang_parseTranslationUnit2(index, reader->source->file,
	        reader->argument, reader->arguments, &own, 1, CXTranslationUnit_None, &unit);
	if (code == CXError_Success && unit && !has_error(unit))
		clang_visitChildren(clang_getTranslationUnitCursor(unit), find_enumerator, &search);
	if (unit)
		clang_disposeTranslationUnit(unit);
	clang_disposeIndex(index);
	*value = search.value;
	return search.found;
}
