/* Parses a C file and reads one function of it. */
#include "frontend/c_reader.h"
#include "base/closest_name.h"
#include "base/cxx_border.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool c_is_source(const char *file)
{
	const char *dot = strrchr(file, '.');
	return text_same(dot, ".c");
}

/* --- parsing --- */

static const char **arguments_of(struct c_reader *reader, int *count)
{
	const struct c_options *options = reader->options;
	static const char *const fixed[] = { "-x", "c", "-std=gnu17", "-w" };
	size_t most = 4 + options->macros.count + options->includes.count;
	const char **argument = ARENA_ARRAY(reader->arena, const char *, most);
	int n = 0;
	for (int i = 0; i < 4; i++)
		argument[n++] = fixed[i];
	for (size_t i = 0; i < options->macros.count; i++)
		argument[n++] = text_format(reader->arena, "-D%s", options->macros.data[i]);
	for (size_t i = 0; i < options->includes.count; i++)
		argument[n++] = text_format(reader->arena, "-I%s", options->includes.data[i]);
	*count = n;
	return argument;
}

/* The first error: what follows is often its consequence. */
static bool report_error(struct c_reader *reader)
{
	unsigned count = clang_getNumDiagnostics(reader->unit);
	for (unsigned i = 0; i < count; i++) {
		CXDiagnostic diagnostic = clang_getDiagnostic(reader->unit, i);
		bool error = clang_getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Error;
		const char *message =
		        c_text(reader->arena, clang_getDiagnosticSpelling(diagnostic));
		struct location at = c_location(reader, clang_getDiagnosticLocation(diagnostic));
		clang_disposeDiagnostic(diagnostic);
		if (!error)
			continue;
		diag_error(reader->module->diag, at, "%s", message);
		return diag_note(reader->module->diag,
		        "accepted is C that clang compiles; -I DIR "
		        "and -D NAME=VALUE as there");
	}
	return true;
}

bool c_parse(struct c_reader *reader, CXIndex index, const char **argument, int count)
{
	struct CXUnsavedFile own = { reader->source->file, reader->source->text,
		(unsigned long)reader->source->size };
	reader->argument = argument;
	reader->arguments = count;
	enum CXErrorCode code = clang_parseTranslationUnit2(index, reader->source->file, argument,
	        count, &own, 1, CXTranslationUnit_None, &reader->unit);
	if (code == CXError_Success && reader->unit)
		return report_error(reader);
	reader->unit = NULL;
	diag_error(reader->module->diag, (struct location){ .file = reader->source->file },
	        "clang cannot parse this file");
	return diag_note(reader->module->diag, "accepted is C that clang compiles");
}

/* --- the function --- */

struct function_search {
	struct c_reader *reader;
	VEC(CXCursor) found; /* definitions that other files may call */
	struct closest_name nearest;
};

static enum CXChildVisitResult find_functions(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct function_search *search = data;
	struct c_reader *reader = search->reader;
	(void)parent;
	bool definition = clang_getCursorKind(cursor) == CXCursor_FunctionDecl &&
	        clang_isCursorDefinition(cursor);
	if (!definition)
		return CXChildVisit_Continue;
	const char *name = c_name(reader->arena, cursor);
	const char *top = reader->options->top;
	bool own = clang_Location_isFromMainFile(clang_getCursorLocation(cursor)) &&
	        clang_getCursorLinkage(cursor) == CXLinkage_External;
	if (own || text_same(name, top))
		closest_name_consider(&search->nearest, name);
	if (top ? text_same(name, top) : own)
		VEC_PUSH(reader->arena, &search->found, cursor);
	return CXChildVisit_Continue;
}

bool c_find_function(struct c_reader *reader)
{
	const char *top = reader->options->top;
	struct diag *diag = reader->module->diag;
	struct function_search search = { .reader = reader, .nearest.wanted = top ? top : "" };
	struct location file = { .file = reader->source->file };
	clang_visitChildren(clang_getTranslationUnitCursor(reader->unit), find_functions, &search);
	if (search.found.count == 1) {
		reader->function = search.found.data[0];
		reader->region->name = c_name(reader->arena, reader->function);
		reader->region->location =
		        c_location(reader, clang_getCursorLocation(reader->function));
		return true;
	}
	if (!search.nearest.found) {
		diag_error(diag, file, "the file defines no function");
		return diag_note(diag, "accepted is one that becomes the design");
	}
	if (top) {
		diag_error(diag, file, "there is no function '%s'", top);
		return diag_note(diag, "the nearest is --top %s", search.nearest.found);
	}
	diag_error(diag, file, "the file defines %zu functions", search.found.count);
	return diag_note(diag, "--top NAME chooses one of them, as --top %s", search.nearest.found);
}

/* --- its variables --- */

static void note_assigned(struct c_reader *reader, CXCursor target)
{
	target = c_strip(reader->arena, target);
	while (clang_getCursorKind(target) == CXCursor_ArraySubscriptExpr ||
	        clang_getCursorKind(target) == CXCursor_UnaryOperator) {
		struct c_cursors parts = c_children(reader->arena, target);
		if (!parts.list.count)
			return;
		target = c_strip(reader->arena, parts.list.data[0]);
	}
	if (clang_getCursorKind(target) == CXCursor_DeclRefExpr)
		map_set(&reader->assigned, c_key(reader->arena, clang_getCursorReferenced(target)),
		        reader);
}

static enum CXChildVisitResult find_assigned(CXCursor cursor, CXCursor parent, CXClientData data);

/* What the function assigns, and the variables that are passed for parameters that it assigns. */
static void note_call(struct c_reader *reader, CXCursor call)
{
	CXCursor definition = clang_getCursorDefinition(clang_getCursorReferenced(call));
	if (clang_Cursor_isNull(definition))
		return;
	const char *key = c_key(reader->arena, definition);
	if (!map_get(&reader->assigned, key)) {
		map_set(&reader->assigned, key, reader);
		clang_visitChildren(definition, find_assigned, reader);
	}
	int arguments = clang_Cursor_getNumArguments(call);
	for (int i = 0; i < arguments && i < clang_Cursor_getNumArguments(definition); i++) {
		CXCursor parameter = clang_Cursor_getArgument(definition, (unsigned)i);
		if (!c_is_scalar(clang_getCursorType(parameter)) &&
		        map_get(&reader->assigned, c_key(reader->arena, parameter)))
			note_assigned(reader, clang_Cursor_getArgument(call, (unsigned)i));
	}
}

static enum CXChildVisitResult find_assigned(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct c_reader *reader = data;
	(void)parent;
	enum CXCursorKind kind = clang_getCursorKind(cursor);
	if (kind == CXCursor_CallExpr)
		note_call(reader, cursor);
	bool assigns = kind == CXCursor_CompoundAssignOperator ||
	        (kind == CXCursor_BinaryOperator &&
	                clang_getCursorBinaryOperatorKind(cursor) == CXBinaryOperator_Assign);
	if (kind == CXCursor_UnaryOperator) {
		enum CXUnaryOperatorKind which = clang_getCursorUnaryOperatorKind(cursor);
		assigns = which <= CXUnaryOperator_AddrOf;
	}
	if (assigns) {
		struct c_cursors parts = c_children(reader->arena, cursor);
		if (parts.list.count)
			note_assigned(reader, parts.list.data[0]);
	}
	return CXChildVisit_Recurse;
}

/* PARAMETER=COUNT of the options. */
static bool read_sizes(struct c_reader *reader)
{
	for (size_t i = 0; i < reader->options->sizes.count; i++) {
		const char *text = reader->options->sizes.data[i];
		const char *equals = strchr(text, '=');
		char *end = NULL;
		long long value = equals ? strtoll(equals + 1, &end, 10) : 0;
		bool good = equals && equals != text && end != equals + 1 && !*end &&
		        value >= INT32_MIN && value <= INT32_MAX;
		if (!good) {
			diag_error(reader->module->diag, NOWHERE, "--define is '%s'", text);
			return diag_note(
			        reader->module->diag, "accepted is PARAMETER=COUNT, as n=4096");
		}
		int64_t number = value;
		const char *name = text_copy(reader->arena, text, (size_t)(equals - text));
		const int64_t *before = map_get(&reader->sizes, name);
		if (before && *before != number) {
			diag_error(reader->module->diag, NOWHERE,
			        "--define gives '%s' two values, %" PRId64 " and %" PRId64, name,
			        *before, number);
			return diag_note(reader->module->diag, "accepted is one value a parameter");
		}
		map_set(&reader->sizes, name, arena_copy(reader->arena, &number, sizeof number));
	}
	return true;
}

static bool is_last_return(CXCursor cursor, bool last)
{
	return last && clang_getCursorKind(cursor) == CXCursor_ReturnStmt;
}

bool c_function_body(struct c_reader *reader, CXCursor definition)
{
	struct c_cursors parts = c_children(reader->arena, definition);
	struct c_cursors body = c_children(reader->arena, parts.list.data[parts.list.count - 1]);
	for (size_t i = 0; i < body.list.count; i++)
		if (!is_last_return(body.list.data[i], i + 1 == body.list.count) &&
		        !c_statement(reader, body.list.data[i]))
			return false;
	return true;
}

static bool read_body(struct c_reader *reader)
{
	CXType result = clang_getCursorResultType(reader->function);
	if (clang_getCanonicalType(result).kind != CXType_Void) {
		diag_error(reader->module->diag, reader->region->location,
		        "the function '%s' returns a value", reader->region->name);
		return diag_note(reader->module->diag,
		        "accepted is a void function: results go to arrays, as float y[1]");
	}
	VEC_PUSH(reader->arena, &reader->calls, c_key(reader->arena, reader->function));
	return c_function_body(reader, reader->function);
}

static bool read_function(struct c_reader *reader)
{
	if (!c_find_function(reader))
		return false;
	clang_visitChildren(reader->function, find_assigned, reader);
	if (!read_sizes(reader))
		return false;
	c_find_sizes(reader);
	if (!c_declare_parameters(reader) || !read_body(reader) || !c_check_overlap(reader))
		return false;
	c_read_pragmas(reader);
	if (reader->region->statements.count)
		return true;
	diag_error(reader->module->diag, reader->region->location,
	        "the function '%s' assigns nothing", reader->region->name);
	return diag_note(reader->module->diag,
	        "accepted is a function that assigns elements of its arguments");
}

struct region *c_read(
        struct module *module, const struct c_options *options, const struct c_source *source)
{
	struct arena *arena = module->arena;
	struct c_reader reader = { .module = module,
		.arena = arena,
		.options = options,
		.source = source,
		.region = ARENA_NEW(arena, struct region),
		.symbols = map_new(arena),
		.assigned = map_new(arena),
		.sizes = map_new(arena) };
	int count;
	const char **argument = arguments_of(&reader, &count);
	cxx_enter(arena_guard(reader.arena));
	CXIndex index = clang_createIndex(0, 0);
	bool good = c_parse(&reader, index, argument, count) && read_function(&reader);
	if (reader.unit)
		clang_disposeTranslationUnit(reader.unit);
	clang_disposeIndex(index);
	cxx_leave();
	return good ? reader.region : NULL;
}
