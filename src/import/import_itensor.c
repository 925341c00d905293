/* Reads an itensor type from a command line: MLIR parses its parameters as an array attribute. */
#include "base/cxx_border.h"
#include "import/read.h"
#include <mlir-c/Diagnostics.h>
#include <string.h>

struct parse {
	struct reader reader;
	/* columns of the type before its parameters, without the added bracket */
	int skipped;
};

static bool wrong(struct reader *reader, const char *format, const char *detail)
{
	read_error(reader, format, detail);
	return diag_note(reader->diag, ITENSOR_ACCEPTED);
}

static MlirLogicalResult take_diagnostic(MlirDiagnostic diagnostic, void *data)
{
	struct parse *parse = data;
	struct reader *reader = &parse->reader;
	struct text text = text_new(reader->arena);
	struct text at = text_new(reader->arena);
	if (mlirDiagnosticGetSeverity(diagnostic) != MlirDiagnosticError || reader->failed)
		return mlirLogicalResultSuccess();
	mlirDiagnosticPrint(diagnostic, append_text, &text);
	mlirLocationPrint(mlirDiagnosticGetLocation(diagnostic), append_text, &at);
	struct location location =
	        parse_location(reader->arena, reader->file, at.data ? at.data : "");
	reader->at = (struct location){ .file = reader->file,
		.line = location.line,
		.column = location.column + parse->skipped };
	wrong(reader, "not a type: %s", text.data ? text.data : "malformed");
	return mlirLogicalResultSuccess();
}

static const char *skip_name(const char *text)
{
	static const char name[] = "!stream.itensor";
	text += strspn(text, " \t\n");
	return strncmp(text, name, sizeof name - 1) ? text : text + sizeof name - 1;
}

const struct type *import_itensor(
        struct module *module, struct diag *diag, const char *name, const char *text)
{
	struct arena *arena = module->arena;
	struct parse parse = { .reader = { .module = module,
		                       .arena = arena,
		                       .diag = diag,
		                       .file = name,
		                       .at = { .file = name },
		                       .own = true } };
	struct reader *reader = &parse.reader;
	const char *open = skip_name(text);
	size_t size = strlen(open);
	while (size && strchr(" \t\n", open[size - 1]))
		size--;
	if (size < 2 || open[0] != '<' || open[size - 1] != '>')
		return wrong(reader, "'%s' is no itensor type", text), NULL;
	if (!scan_text(diag, name, text, strlen(text)))
		return NULL;
	parse.skipped = (int)(open - text);
	reader->types.arena = reader->locations.arena = reader->names.arena = arena;
	cxx_enter(arena_guard(arena));
	reader->context = mlirContextCreateWithThreading(false);
	mlirContextSetAllowUnregisteredDialects(reader->context, true);
	mlirContextAttachDiagnosticHandler(reader->context, take_diagnostic, &parse, NULL);
	char *list = text_format(arena, "[%s", open + 1);
	list[size - 1] = ']';
	list[size] = 0;
	MlirAttribute parameters =
	        mlirAttributeParseGet(reader->context, mlirStringRefCreateFromCString(list));
	const struct type *type = NULL;
	if (!mlirAttributeIsNull(parameters) && mlirAttributeIsAArray(parameters))
		type = read_itensor(reader, parameters);
	else if (!reader->failed)
		wrong(reader, "%s", "not a type");
	mlirContextDestroy(reader->context);
	cxx_leave();
	return type;
}
