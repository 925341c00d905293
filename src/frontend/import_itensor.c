/* One itensor type from a command line.  MLIR parses the parameters as an array attribute; each is looked at by itself, so that the message is about it. */
#include "frontend/read.h"
#include <mlir-c/AffineMap.h>
#include <mlir-c/Diagnostics.h>
#include <inttypes.h>
#include <string.h>

#define ITENSOR_EXAMPLE "accepted is !stream.itensor<vector<4x2xf32>, [4, 2], [2, 4], affine_map<(d0, d1) -> (d1, d0)>>: tile, trip counts, steps, map"

struct parse {
	struct reader reader;
	int skipped;                   /* columns of the type before its parameters, less the bracket put there */
};

static bool wrong(struct reader *reader, const char *format, const char *detail)
{
	read_error(reader, format, detail);
	return diag_note(reader->diag, ITENSOR_EXAMPLE);
}

static MlirLogicalResult take_diagnostic(MlirDiagnostic diagnostic, void *data)
{
	struct parse *parse = data;
	struct reader *reader = &parse->reader;
	struct text text = text_new(reader->arena), at = text_new(reader->arena);
	if (mlirDiagnosticGetSeverity(diagnostic) != MlirDiagnosticError || reader->failed)
		return mlirLogicalResultSuccess();
	mlirDiagnosticPrint(diagnostic, append_text, &text);
	mlirLocationPrint(mlirDiagnosticGetLocation(diagnostic), append_text, &at);
	struct location location = parse_location(reader->arena, reader->file, at.data ? at.data : "");
	reader->at = (struct location){reader->file, location.line, location.column + parse->skipped};
	wrong(reader, "not a type: %s", text.data ? text.data : "malformed");
	return mlirLogicalResultSuccess();
}

static bool read_numbers(struct reader *reader, MlirAttribute attribute, const char *what, int64_t **result, int *count)
{
	if (!mlirAttributeIsAArray(attribute))
		return wrong(reader, "the %s are no list of numbers", what);
	*count = (int)mlirArrayAttrGetNumElements(attribute);
	*result = ARENA_ARRAY(reader->arena, int64_t, *count);
	for (int i = 0; i < *count; i++) {
		MlirAttribute item = mlirArrayAttrGetElement(attribute, i);
		bool number = mlirAttributeIsAInteger(item) && mlirTypeIsAInteger(mlirAttributeGetType(item)) &&
			      mlirIntegerTypeIsSignless(mlirAttributeGetType(item)) && mlirIntegerTypeGetWidth(mlirAttributeGetType(item)) == 64;
		if (!number)
			return wrong(reader, "the %s are no list of 64-bit numbers", what);
		(*result)[i] = mlirIntegerAttrGetValueInt(item);
	}
	return true;
}

static const struct type *read_parameters(struct reader *reader, MlirAttribute list)
{
	int64_t *trip, *step;
	int trips, steps;
	struct affine_map map;
	if (mlirArrayAttrGetNumElements(list) != 4)
		return wrong(reader, "%s parameters instead of four", text_format(reader->arena, "%" PRIdPTR, mlirArrayAttrGetNumElements(list))), NULL;
	MlirAttribute tile = mlirArrayAttrGetElement(list, 0), order = mlirArrayAttrGetElement(list, 3);
	if (!mlirAttributeIsAType(tile))
		return wrong(reader, "the tile %s is no type", print_attr(reader->arena, tile)), NULL;
	if (!read_numbers(reader, mlirArrayAttrGetElement(list, 1), "trip counts", &trip, &trips))
		return NULL;
	if (!read_numbers(reader, mlirArrayAttrGetElement(list, 2), "steps", &step, &steps))
		return NULL;
	if (trips != steps)
		return wrong(reader, "%s", text_format(reader->arena, "%d trip count%s and %d step%s", trips, trips == 1 ? "" : "s", steps, steps == 1 ? "" : "s")), NULL;
	if (!mlirAttributeIsAAffineMap(order))
		return wrong(reader, "the map %s is no affine map", print_attr(reader->arena, order)), NULL;
	MlirAffineMap affine = mlirAffineMapAttrGetValue(order);
	if (mlirAffineMapGetNumSymbols(affine))
		return wrong(reader, "the map %s has symbols", print_attr(reader->arena, order)), NULL;
	const struct type *element = read_type(reader, mlirTypeAttrGetValue(tile));
	if (!element || !read_map(reader, affine, &map))
		return NULL;
	if (map.dims != trips)
		return wrong(reader, "%s", text_format(reader->arena, "%d trip count%s and %d map dim%s", trips, trips == 1 ? "" : "s", map.dims, map.dims == 1 ? "" : "s")), NULL;
	return type_itensor(reader->module, element, trips, trip, step, map);
}

static const char *skip_name(const char *text)
{
	static const char name[] = "!stream.itensor";
	text += strspn(text, " \t\n");
	return strncmp(text, name, sizeof name - 1) ? text : text + sizeof name - 1;
}

const struct type *import_itensor(struct module *module, struct diag *diag, const char *name, const char *text)
{
	struct arena *arena = module->arena;
	struct parse parse = {.reader = {.module = module, .arena = arena, .diag = diag, .file = name, .at = {.file = name}, .own = true}};
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
	reader->context = mlirContextCreateWithThreading(false);
	mlirContextSetAllowUnregisteredDialects(reader->context, true);
	mlirContextAttachDiagnosticHandler(reader->context, take_diagnostic, &parse, NULL);
	char *list = text_format(arena, "[%s", open + 1);
	list[size - 1] = ']';
	list[size] = 0;
	MlirAttribute parameters = mlirAttributeParseGet(reader->context, mlirStringRefCreateFromCString(list));
	const struct type *type = NULL;
	if (!mlirAttributeIsNull(parameters) && mlirAttributeIsAArray(parameters))
		type = read_parameters(reader, parameters);
	else if (!reader->failed)
		wrong(reader, "%s", "not a type");
	mlirContextDestroy(reader->context);
	return type;
}
