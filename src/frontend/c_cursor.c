/* Cursors of libclang: children, names, places, tokens and constants. */
#include "frontend/c_reader.h"
#include <ctype.h>
#include <string.h>

#define TOKENS_MOST 60 /* characters of the user's text in a message */

static enum CXChildVisitResult add_child(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct c_cursors *children = data;
	(void)parent;
	VEC_PUSH(children->arena, &children->list, cursor);
	return CXChildVisit_Continue;
}

struct c_cursors c_children(struct arena *arena, CXCursor cursor)
{
	struct c_cursors children = { .arena = arena };
	clang_visitChildren(cursor, add_child, &children);
	return children;
}

const char *c_text(struct arena *arena, CXString string)
{
	const char *text = clang_getCString(string);
	if (!text)
		text = "";
	const char *copy = text_copy(arena, text, strlen(text));
	clang_disposeString(string);
	return copy;
}

const char *c_name(struct arena *arena, CXCursor cursor)
{
	return c_text(arena, clang_getCursorSpelling(cursor));
}

struct location c_location(const struct c_reader *reader, CXSourceLocation location)
{
	CXFile file;
	unsigned line;
	unsigned column;
	clang_getExpansionLocation(location, &file, &line, &column, NULL);
	const char *name = file ? c_text(reader->arena, clang_getFileName(file)) : NULL;
	return (struct location){
		.file = name ? name : reader->source->file, .line = (int)line, .column = (int)column
	};
}

struct location c_place(const struct c_reader *reader, CXCursor cursor)
{
	return c_location(reader, clang_getRangeStart(clang_getCursorExtent(cursor)));
}

const char *c_key(struct arena *arena, CXCursor declaration)
{
	CXFile file;
	unsigned offset;
	clang_getExpansionLocation(
	        clang_getCursorLocation(declaration), &file, NULL, NULL, &offset);
	const char *name = file ? c_text(arena, clang_getFileName(file)) : "";
	return text_format(arena, "%u %s %s", offset, c_name(arena, declaration), name);
}

/* Offset of the end of the line. */
static size_t line_end(const struct c_source *source, size_t at)
{
	while (at < source->size && source->text[at] != '\n')
		at++;
	return at;
}

static bool is_letter(const struct c_source *source, size_t at)
{
	return at < source->size &&
	        (isalnum((unsigned char)source->text[at]) || source->text[at] == '_');
}

/* Where clang ends an expression whose last part is a macro, the macro begins: its name and its
 * arguments belong to the text. */
static unsigned with_macro(const struct c_source *source, unsigned last)
{
	size_t at = last;
	int open = 0;
	if (is_letter(source, at - 1) || !is_letter(source, at))
		return last;
	while (is_letter(source, at))
		at++;
	size_t end = at;
	for (; at < source->size && (open || source->text[at] == '('); at++) {
		open += source->text[at] == '(' ? 1 : 0;
		open -= source->text[at] == ')' ? 1 : 0;
		if (!open)
			return (unsigned)at + 1;
	}
	return (unsigned)end;
}

const char *c_tokens(const struct c_reader *reader, CXCursor cursor)
{
	CXSourceRange extent = clang_getCursorExtent(cursor);
	CXFile first_file;
	CXFile last_file;
	unsigned first;
	unsigned last;
	clang_getExpansionLocation(clang_getRangeStart(extent), &first_file, NULL, NULL, &first);
	clang_getExpansionLocation(clang_getRangeEnd(extent), &last_file, NULL, NULL, &last);
	CXFile own = clang_getFile(reader->unit, reader->source->file);
	if (!first_file || !clang_File_isEqual(first_file, own) || first >= reader->source->size)
		return c_name(reader->arena, cursor);
	if (!last_file || !clang_File_isEqual(last_file, own) || last <= first ||
	        last > reader->source->size)
		last = (unsigned)line_end(reader->source, first);
	else
		last = with_macro(reader->source, last);
	struct text text = text_new(reader->arena);
	bool space = false;
	for (unsigned at = first; at < last && text.size < TOKENS_MOST; at++) {
		char c = reader->source->text[at];
		bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
		if (!blank)
			text_add(&text, "%s%c", space ? " " : "", c);
		space = blank && text.size;
	}
	if (text.size >= TOKENS_MOST)
		text_add(&text, " …");
	return text.size ? text.data : "";
}

CXCursor c_strip(struct arena *arena, CXCursor cursor)
{
	for (;;) {
		enum CXCursorKind kind = clang_getCursorKind(cursor);
		if (kind != CXCursor_UnexposedExpr && kind != CXCursor_ParenExpr)
			return cursor;
		struct c_cursors children = c_children(arena, cursor);
		if (children.list.count != 1)
			return cursor;
		cursor = children.list.data[0];
	}
}

bool c_names(struct c_reader *reader, CXCursor cursor, CXCursor variable)
{
	cursor = c_strip(reader->arena, cursor);
	return clang_getCursorKind(cursor) == CXCursor_DeclRefExpr &&
	        clang_equalCursors(clang_getCursorReferenced(cursor), variable);
}

bool c_refuse(struct c_reader *reader, CXCursor cursor, const char *why, const char *accepted)
{
	diag_error(reader->module->diag, c_place(reader, cursor), "`%s`: %s",
	        c_tokens(reader, cursor), why);
	return diag_note(reader->module->diag, "%s", accepted);
}

bool c_refuse_affine(
        struct c_reader *reader, CXCursor cursor, const char *why, const char *accepted)
{
	const char *parameter = c_unknown_size(reader, cursor);
	if (!parameter)
		return c_refuse(reader, cursor, why, accepted);
	diag_error(reader->module->diag, c_place(reader, cursor),
	        "`%s`: the value of the parameter '%s' is not known", c_tokens(reader, cursor),
	        parameter);
	return diag_note(reader->module->diag, "--define %s=COUNT gives it", parameter);
}

/* The result if clang knows a value of this kind, else NULL. */
static CXEvalResult evaluate(CXCursor cursor, CXEvalResultKind kind)
{
	CXEvalResult result = clang_Cursor_Evaluate(cursor);
	if (!result || clang_EvalResult_getKind(result) == kind)
		return result;
	clang_EvalResult_dispose(result);
	return NULL;
}

bool c_integer(CXCursor cursor, int64_t *value)
{
	CXEvalResult result = evaluate(cursor, CXEval_Int);
	if (!result)
		return false;
	*value = (int64_t)clang_EvalResult_getAsLongLong(result);
	clang_EvalResult_dispose(result);
	return true;
}

bool c_real(CXCursor cursor, double *value)
{
	CXEvalResult result = evaluate(cursor, CXEval_Float);
	if (!result)
		return false;
	*value = clang_EvalResult_getAsDouble(result);
	clang_EvalResult_dispose(result);
	return true;
}

bool c_enter(struct c_reader *reader, CXCursor cursor)
{
	if (++reader->depth <= C_DEPTH_MOST)
		return true;
	diag_error(reader->module->diag, c_place(reader, cursor),
	        "this is nested more than %d levels deep", C_DEPTH_MOST);
	return diag_note(reader->module->diag, "accepted are fewer, in several statements");
}

void c_leave(struct c_reader *reader)
{
	reader->depth--;
}
