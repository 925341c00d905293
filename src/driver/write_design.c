/* Writes the code of a design folder (hls/, host/, design.mlir) and its manifest. */
#include "driver/write_design.h"
#include "base/blake2.h"
#include "base/data.h"
#include "base/json.h"
#include "emit/emit.h"
#include "platform/platform.h"
#include <stdlib.h>
#include <string.h>

/* Headers copied into a design: ours next to the source; those with the vendor's names in csim/,
 * for the build on the CPU only. */
static const struct {
	const char *from, *to;
} headers[] = {
	{ "runtime/include/st_math.h", "hls/st_math.h" },
	{ "runtime/include/st_functions.h", "hls/st_functions.h" },
	{ "runtime/include/st_integer.h", "hls/st_integer.h" },
	{ "runtime/include/st_narrow.h", "hls/st_narrow.h" },
	{ "runtime/include/st_double.h", "hls/st_double.h" },
	{ "runtime/include/ap_int.h", "hls/csim/ap_int.h" },
	{ "runtime/include/st_fibre.h", "hls/csim/st_fibre.h" },
	{ "runtime/include/hls_stream.h", "hls/csim/hls_stream.h" },
	{ "runtime/include/hls_streamofblocks.h", "hls/csim/hls_streamofblocks.h" },
	{ "runtime/include/hls_vector.h", "hls/csim/hls_vector.h" },
	{ "runtime/hls/csynth.py", "hls/csynth.py" },
	{ "runtime/hls/crossings.py", "hls/crossings.py" },
	{ "runtime/hls/st_crossing.v", "hls/st_crossing.v" },
	{ "include/stc_runtime.h", "host/stc_runtime.h" },
};

/* Dataflow regions that are not what they seem are an error, not a warning. */
static const char strict[] = "config_dataflow -strict_mode error\n";

static bool copy_headers(struct output *output)
{
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		const char *from = data_path(output->arena, headers[i].from);
		const char *reason;
		size_t size;
		const char *text = file_read(output->arena, from, &size, &reason);
		if (!text)
			return diag_error(output->diag, (struct location){ .file = from },
			        "cannot be read: %s", reason);
		if (!output_file(output, headers[i].to, text, size))
			return false;
	}
	return true;
}

bool write_code(struct output *output, const struct phases *phases, const struct platform *platform,
        const char *name)
{
	struct arena *arena = output->arena;
	const char *top = emit_top_name(arena, name);
	struct text code = text_new(arena);
	struct text link = text_new(arena);
	struct text make = text_new(arena);
	struct text host = text_new(arena);
	struct text floorplan = text_new(arena);
	struct placed_cells placement = { .cells = { 0 } };
	bool several = platform->dies > 1 && emit_only_die(phases) < 0;
	if (!emit_hls_phases(phases, platform, top, &code, &placement))
		return false;
	emit_floorplan(&placement, platform->dies, top, &floorplan);
	emit_link(phases, platform, top, &link);
	emit_makefile(platform, top, &make);
	emit_host(phases, top, &host);
	for (int p = 0; p < phases->count; p++) {
		struct text dump = text_new(arena);
		ir_print(phases->phase[p].module, &dump);
		if (!output_file(output,
		            phase_file(arena, p ? phases->phase[p].name : NULL, "design.mlir"),
		            dump.data, dump.size))
			return false;
	}
	return output_file(output, text_format(arena, "hls/%s.cpp", top), code.data, code.size) &&
	        output_file(output, "hls/strict.tcl", strict, sizeof strict - 1) &&
	        output_file(output, "hls/link.cfg", link.data, link.size) &&
	        (!several ||
	                output_file(output, "hls/floorplan.tcl", floorplan.data, floorplan.size)) &&
	        output_file(output, "hls/Makefile", make.data, make.size) &&
	        output_file(output, "host/main.c", host.data, host.size) && copy_headers(output);
}

static int by_path(const void *left, const void *right)
{
	return strcmp(((const struct output_entry *)left)->path,
	        ((const struct output_entry *)right)->path);
}

bool write_manifest(struct output *output, struct text *text)
{
	if (output->entries.count)
		qsort(output->entries.data, output->entries.count, sizeof *output->entries.data,
		        by_path);
	text_add(text, "\"files\":{");
	for (size_t i = 0; i < output->entries.count; i++) {
		text_add(text, "%s\n  ", i ? "," : "");
		json_quote(text, output->entries.data[i].path);
		text_add(text, ":\"%s\"", output->entries.data[i].hash);
	}
	text_add(text, "}");
	char hash[65];
	blake2_hex(text->data, text->size, hash);
	text_add(text, ",\n\"hash\":\"%s\"}\n", hash);
	return output_unlisted(output, "manifest.json", text->data, text->size);
}
