/* host/main.c: a C program on the runtime that reads inputs from files, launches the design and writes the outputs. */
#include "emit/emit.h"

static const char *const choice =
	"/* What the launch runs. */\n"
	"static int choose(stc_design *design, const char *name)\n"
	"{\n"
	"\tfor (const struct phase *phase = phases; phase->name; phase++)\n"
	"\t\tif (!strcmp(name, phase->name)) {\n"
	"\t\t\tinputs = phase->inputs;\n"
	"\t\t\toutputs = phase->outputs;\n"
	"\t\t\treturn stc_design_phase(design, name) ? fail(name, stc_design_error(design)) : 0;\n"
	"\t\t}\n"
	"\treturn fail(name, \"the design has no such phase\");\n"
	"}\n"
	"\n";

static const char *const chosen =
	"\tif (choose(design, argument[3]))\n"
	"\t\treturn 1;\n"
	"\tcount--;\n"
	"\targument++;\n";

static const char *const program =
	"\n"
	"static int fail(const char *what, const char *why)\n"
	"{\n"
	"\tfprintf(stderr, \"%%s: %%s\\n\", what, why);\n"
	"\treturn 1;\n"
	"}\n"
	"\n"
	"static int load(stc_design *design, const struct tensor *tensor, const char *path)\n"
	"{\n"
	"\tFILE *file = fopen(path, \"rb\");\n"
	"\tchar *data = malloc(tensor->bytes + 1);\n"
	"\tsize_t got = file && data ? fread(data, 1, tensor->bytes + 1, file) : 0;\n"
	"\tint status = got == tensor->bytes ? stc_design_input(design, tensor->name, data, got) : -1;\n"
	"\tif (file)\n"
	"\t\tfclose(file);\n"
	"\tfree(data);\n"
	"\tif (got != tensor->bytes)\n"
	"\t\treturn fail(path, \"cannot be read, or has not the size of the input\");\n"
	"\treturn status ? fail(tensor->name, stc_design_error(design)) : 0;\n"
	"}\n"
	"\n"
	"static int save(stc_design *design, const struct tensor *tensor, const char *path)\n"
	"{\n"
	"\tchar *data = malloc(tensor->bytes + 1);\n"
	"\tint status = data ? stc_design_output(design, tensor->name, data, tensor->bytes) : -1;\n"
	"\tFILE *file = status ? NULL : fopen(path, \"wb\");\n"
	"\tsize_t put = file ? fwrite(data, 1, tensor->bytes, file) : 0;\n"
	"\tint closed = file ? fclose(file) : -1;\n"
	"\tfree(data);\n"
	"\tif (status)\n"
	"\t\treturn fail(tensor->name, stc_design_error(design));\n"
	"\treturn closed || put != tensor->bytes ? fail(path, \"cannot be written\") : 0;\n"
	"}\n"
	"\n"
	"static const struct tensor *find(const struct tensor *list, const char *argument)\n"
	"{\n"
	"\tfor (; list->name; list++)\n"
	"\t\tif (!strncmp(argument, list->name, strlen(list->name)) && argument[strlen(list->name)] == '=')\n"
	"\t\t\treturn list;\n"
	"\treturn NULL;\n"
	"}\n"
	"\n"
	"/* Inputs first, then the launch, then outputs, in the order of the command line. */\n"
	"static int transfer(stc_design *design, int count, char **argument, const struct tensor *list, int (*move)(stc_design *, const struct tensor *, const char *))\n"
	"{\n"
	"\tint status = 0;\n"
	"\tfor (int i = 3; i < count && !status; i++) {\n"
	"\t\tconst struct tensor *tensor = find(list, argument[i]);\n"
	"\t\tif (tensor)\n"
	"\t\t\tstatus = move(design, tensor, argument[i] + strlen(tensor->name) + 1);\n"
	"\t\telse if (!find(inputs, argument[i]) && !find(outputs, argument[i]))\n"
	"\t\t\tstatus = fail(argument[i], \"the design has no such input or output\");\n"
	"\t}\n"
	"\treturn status;\n"
	"}\n"
	"\n"
	"%sint main(int count, char **argument)\n"
	"{\n"
	"\tstc_design *design;\n"
	"\tchar error[4096];\n"
	"\tdouble host, device;\n"
	"\tif (count < %d) {\n"
	"\t\tfprintf(stderr, \"usage: host DESIGN DEVICE %sNAME=FILE…\\nDEVICE: cpu, or xrt:0 for the card; FILE: the raw numbers, little endian\\n\");\n"
	"\t\treturn 2;\n"
	"\t}\n"
	"\tif (stc_design_open(argument[1], argument[2], NULL, &design, error, sizeof error))\n"
	"\t\treturn fail(argument[1], error);\n"
	"%s\tint status = transfer(design, count, argument, inputs, load);\n"
	"\tif (!status && stc_design_launch(design))\n"
	"\t\tstatus = fail(\"launch\", stc_design_error(design));\n"
	"\tif (!status)\n"
	"\t\tstatus = transfer(design, count, argument, outputs, save);\n"
	"\tstc_design_times(design, &host, &device);\n"
	"\tif (!status)\n"
	"\t\tprintf(\"device %%.6f s, host %%.6f s\\n\", device, host);\n"
	"\tstc_design_close(design);\n"
	"\treturn status;\n"
	"}\n";

static void write_list(const struct attr *list, const char *name, bool output, struct text *out)
{
	text_add(out, "\nstatic const struct tensor %s[] = {\n", name);
	for (int i = 0; i < list->count; i++) {
		const struct attr *entry = list->items[i].value;
		const char *role = attr_item(entry, "role")->text;
		bool shown = output ? !text_same(role, "state") : !text_same(role, "constant") && !text_same(role, "weight");
		if (shown)
			text_add(out, "\t{\"%s\", %lld},       /* %s */\n", attr_item(entry, "name")->text, (long long)emit_bytes(attr_item(entry, "type")->type), attr_item(entry, "type")->type->text);
	}
	text_add(out, "\t{NULL, 0},\n};\n");
}

static void write_lists(const struct op *main, const char *suffix, struct text *out)
{
	write_list(attr_get(main, "stream.inputs"), text_format(out->arena, "inputs%s", suffix), false, out);
	write_list(attr_get(main, "stream.outputs"), text_format(out->arena, "outputs%s", suffix), true, out);
}

static void write_phases(const struct phases *phases, struct text *out)
{
	for (int p = 0; p < phases->count; p++)
		write_lists(module_main(phases->phase[p].module), text_format(out->arena, "_%d", p), out);
	text_add(out, "\nstatic const struct phase {\n\tconst char *name;\n\tconst struct tensor *inputs, *outputs;\n} phases[] = {\n");
	for (int p = 0; p < phases->count; p++)
		text_add(out, "\t{\"%s\", inputs_%d, outputs_%d},\n", phases->phase[p].name, p, p);
	text_add(out, "\t{NULL, NULL, NULL},\n};\nstatic const struct tensor *inputs, *outputs;\n");
}

void emit_host(const struct phases *phases, const char *top, struct text *out)
{
	bool one = phases->count == 1;
	text_add(out, "/* Runs %s: NAME=FILE reads an input, or writes an output after the launch. */\n", top);
	text_add(out, "#include <stc_runtime.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\nstruct tensor {\n\tconst char *name;\n\tsize_t bytes;\n};\n");
	if (one)
		write_lists(module_main(phases->phase[0].module), "", out);
	else
		write_phases(phases, out);
	text_add(out, program, one ? "" : choice, one ? 3 : 4, one ? "" : "PHASE ", one ? "" : chosen);
}
