/* The import pipeline: scan, parse, normalize, read, check. The MLIR context lives only inside. */
#include "base/cxx_border.h"
#include "import/read.h"
#include <string.h>

static MlirAttribute module_attribute(MlirModule module, enum attr_key key)
{
	return mlirOperationGetAttributeByName(
	        mlirModuleGetOperation(module), mlirStringRefCreateFromCString(key_name(key)));
}

/* The level of a dump; 0 if the module is none. */
static int level_of(struct reader *reader, MlirModule module)
{
	enum level level;
	MlirAttribute attribute = module_attribute(module, KEY_STREAM_LEVEL);
	if (mlirAttributeIsNull(attribute))
		return 0;
	const char *name = mlirAttributeIsAString(attribute)
	        ? copy_string(reader->arena, mlirStringAttrGetValue(attribute))
	        : "";
	if (level_find(name, &level))
		return (int)level;
	reader->at =
	        read_location(reader, mlirOperationGetLocation(mlirModuleGetOperation(module)));
	read_error(reader, "attribute stream.level has an unknown value");
	diag_note(reader->diag, "accepted are \"tensor\", \"demand\", \"stream\" and \"hardware\"");
	return 0;
}

static bool read_all(struct reader *reader, MlirModule module, struct guard *guard)
{
	int level = level_of(reader, module);
	reader->own = level != 0;
	reader->module = module_new(
	        reader->arena, guard, reader->diag, level ? (enum level)level : LEVEL_TENSOR);
	if (reader->failed || (!reader->own && !import_normalise(reader, module)))
		return false;
	read_module(reader, mlirModuleGetOperation(module));
	return !reader->failed;
}

struct module *import_mlir(struct arena *arena, struct guard *guard, struct diag *diag,
        const char *file, const char *text, size_t size)
{
	struct reader reader = {
		.arena = arena, .diag = diag, .file = file, .text = text, .size = size
	};
	if (!scan_start(diag, file, text) || !scan_text(diag, file, text, size))
		return NULL;
	reader.types.arena = reader.attributes.arena = reader.values.arena =
	        reader.locations.arena = reader.names.arena = arena;
	reader.keys = key_map(arena);
	reader.refused = map_new(arena);
	reader.bodies = map_new(arena);
	reader.resources = map_new(arena);
	reader.aliases = map_new(arena);
	cxx_enter(guard);
	MlirModule module = import_parse(&reader);
	bool good = !mlirModuleIsNull(module) && read_all(&reader, module, guard);
	if (!mlirModuleIsNull(module))
		mlirModuleDestroy(module);
	mlirContextDestroy(reader.context);
	cxx_leave();
	if (!good || (!reader.own && !import_boundary(reader.module)))
		return NULL;
	return ir_verify(reader.module) ? reader.module : NULL;
}
