/* Reads a function of HLS C++ with libclang, against our own small headers in share/hls. */
#include "frontend/cpp_internal.h"
#include "base/cxx_border.h"
#include "base/data.h"
#include <string.h>

static const char **arguments_of(struct cpp_reader *reader, int *count)
{
	const struct c_options *options = reader->c.options;
	const char *fixed[] = { "-x", "c++", "-std=gnu++17", "-w", "-nostdinc", "-nostdinc++",
		"-isystem", data_path(reader->c.arena, "share/hls"), "-D__SYNTHESIS__" };
	size_t most =
	        sizeof fixed / sizeof *fixed + options->macros.count + options->includes.count;
	const char **argument = ARENA_ARRAY(reader->c.arena, const char *, most);
	int n = 0;
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		argument[n++] = fixed[i];
	for (size_t i = 0; i < options->macros.count; i++)
		argument[n++] = text_format(reader->c.arena, "-D%s", options->macros.data[i]);
	for (size_t i = 0; i < options->includes.count; i++)
		argument[n++] = text_format(reader->c.arena, "-I%s", options->includes.data[i]);
	*count = n;
	return argument;
}

struct cpp_design *cpp_read(
        struct module *module, const struct c_options *options, const struct c_source *source)
{
	struct arena *arena = module->arena;
	struct cpp_reader reader = { .design = ARENA_NEW(arena, struct cpp_design),
		.variables = map_new(arena),
		.pragmas = map_new(arena),
		.elements = map_new(arena) };
	reader.c = (struct c_reader){ .module = module,
		.arena = arena,
		.options = options,
		.source = source,
		.region = ARENA_NEW(arena, struct region) };
	int count;
	const char **argument = arguments_of(&reader, &count);
	cxx_enter(arena_guard(arena));
	CXIndex index = clang_createIndex(0, 0);
	bool good = c_parse(&reader.c, index, argument, count) && c_find_function(&reader.c) &&
	        cpp_read_top(&reader);
	if (reader.c.unit)
		clang_disposeTranslationUnit(reader.c.unit);
	clang_disposeIndex(index);
	cxx_leave();
	return good && !module->diag->count ? reader.design : NULL;
}
