/* Writes host/main.c: a C program on the runtime library that reads inputs from files, launches the
 * design and writes the outputs. */
#include "emit/emit.h"
#include "predict/feedback.h"

static const char *const choice =
        "/* What the launch runs. */\n"
        "static int choose(stc_design *design, const char *name)\n"
        "{\n"
        "\tfor (const struct phase *phase = phases; phase->name; phase++)\n"
        "\t\tif (!strcmp(name, phase->name)) {\n"
        "\t\t\tinputs = phase->inputs;\n"
        "\t\t\toutputs = phase->outputs;\n"
        "%s"
        "\t\t\treturn stc_design_phase(design, name) ? fail(name, stc_design_error(design)) : 0;\n"
        "\t\t}\n"
        "\treturn fail(name, \"the design has no such phase\");\n"
        "}\n"
        "\n";

static const char *const chosen_text = "\t\t\ttext = phase->text;\n";

static const char *const chosen = "\tif (choose(design, argument[3]))\n"
                                  "\t\treturn 1;\n"
                                  "\tcount--;\n"
                                  "\targument++;\n";

/* For designs that feed tokens back themselves. */
static const char *const text_type =
        "\n"
        "/* The input that takes the token that was chosen: with --tokens its file holds several, "
        "the input and what follows, and --out NAME=FILE gets them all. */\n"
        "struct text {\n"
        "\tconst char *name;\n"
        "\tsize_t first, each;        /* bytes of the input, and of a token that is fed to it, of "
        "which a step reads as many as the input has */\n"
        "\tsize_t begin;              /* of what --out gets: that of an input that may be several "
        "tokens is not written again */\n"
        "};\n";

static const char *const several_steps =
        "struct several {\n"
        "\tint asked;\n"
        "\tlong long tokens;\n"
        "\tconst char *in, *out;      /* files */\n"
        "};\n"
        "\n"
        "static const char *file_of(const char *argument, const char *name)\n"
        "{\n"
        "\tsize_t size = strlen(name);\n"
        "\treturn !strncmp(argument, name, size) && argument[size] == '=' ? argument + size + 1 : "
        "NULL;\n"
        "}\n"
        "\n"
        "/* --tokens COUNT and, with it, the files of the text are taken out of the arguments; how "
        "many are left. */\n"
        "static int take_several(struct several *several, int count, char **argument)\n"
        "{\n"
        "\tint left = 3, end = 3;\n"
        "\tfor (int i = 3; i < count; i++)\n"
        "\t\tif (!strcmp(argument[i], \"--tokens\") && i + 1 < count && text)\n"
        "\t\t\t*several = (struct several){.asked = 1, .tokens = atoll(argument[++i])};\n"
        "\t\telse\n"
        "\t\t\targument[left++] = argument[i];\n"
        "\tfor (int i = 3; i < left; i++) {\n"
        "\t\tint out = !strcmp(argument[i], \"--out\") && i + 1 < left;\n"
        "\t\tconst char *file = several->asked ? file_of(argument[i + out], text->name) : NULL;\n"
        "\t\tif (file && out)\n"
        "\t\t\tseveral->out = file;\n"
        "\t\telse if (file)\n"
        "\t\t\tseveral->in = file;\n"
        "\t\telse\n"
        "\t\t\targument[end++] = argument[i];\n"
        "\t\ti += file && out;\n"
        "\t}\n"
        "\treturn end;\n"
        "}\n"
        "\n"
        "static int save_text(const char *path, const char *data, size_t bytes)\n"
        "{\n"
        "\tFILE *file = fopen(path, \"wb\");\n"
        "\tsize_t put = file ? fwrite(data, 1, bytes, file) : 0;\n"
        "\treturn !file || fclose(file) || put != bytes ? fail(path, \"cannot be written\") : 0;\n"
        "}\n"
        "\n"
        "static int launch_several(stc_design *design, const struct several *several)\n"
        "{\n"
        "\tif (several->tokens < 1 || several->tokens > stc_design_tokens_most(design))\n"
        "\t\treturn stc_design_tokens(design, several->tokens, 1, NULL, 0) ? fail(\"--tokens\", "
        "stc_design_error(design)) : 0;\n"
        "\tsize_t steps = (size_t)several->tokens, most = steps * text->first + text->each;\n"
        "\tFILE *file = several->in ? fopen(several->in, \"rb\") : NULL;\n"
        "\tchar *data = calloc(most + 1, 1);\n"
        "\tsize_t got = file && data ? fread(data, 1, most + 1, file) : 0, behind = got < "
        "text->first ? 0 : got - text->first, chunks = (behind + text->first - 1) / text->first;\n"
        "\tsize_t bytes = got + (chunks < steps ? steps - chunks : 0) * text->each;\n"
        "\tint whole = got >= text->first && got <= most && behind % text->each == 0, status = 0;\n"
        "\tif (file)\n"
        "\t\tfclose(file);\n"
        "\tif (!whole)\n"
        "\t\tstatus = fail(several->in ? several->in : text->name, \"cannot be read, or has not "
        "the size of the input\");\n"
        "\telse if (stc_design_tokens(design, several->tokens, 1 + (long long)(behind / "
        "text->each), data, bytes))\n"
        "\t\tstatus = fail(\"launch\", stc_design_error(design));\n"
        "\telse if (several->out)\n"
        "\t\tstatus = save_text(several->out, data + text->begin, bytes - text->begin);\n"
        "\tfree(data);\n"
        "\treturn status;\n"
        "}\n"
        "\n";

static const char *const take = "\tstruct several several = {0};\n"
                                "\tcount = take_several(&several, count, argument);\n";

static const char *const launch_text = "\tif (!status && several.asked)\n"
                                       "\t\tstatus = launch_several(design, &several);\n"
                                       "\telse if";

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
        "\tint status = got == tensor->bytes ? stc_design_input(design, tensor->name, data, got) : "
        "-1;\n"
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
        "\t\tif (!strncmp(argument, list->name, strlen(list->name)) && "
        "argument[strlen(list->name)] == '=')\n"
        "\t\t\treturn list;\n"
        "\treturn NULL;\n"
        "}\n"
        "\n"
        "/* Inputs first, then the launch, then outputs, in the order of the command line. */\n"
        "static int transfer(stc_design *design, int count, char **argument, const struct tensor "
        "*list, int (*move)(stc_design *, const struct tensor *, const char *))\n"
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
        "%s%sint main(int count, char **argument)\n"
        "{\n"
        "\tstc_design *design;\n"
        "\tchar error[4096];\n"
        "\tdouble host, device, clock, wanted;\n"
        "\tif (count < %d) {\n"
        "\t\tfprintf(stderr, \"usage: host DESIGN DEVICE %s%sNAME=FILE…\\nDEVICE: cpu, or xrt:0 "
        "for the card; FILE: the raw numbers, little endian\\n\");\n"
        "\t\treturn 2;\n"
        "\t}\n"
        "\tif (stc_design_open(argument[1], argument[2], NULL, &design, error, sizeof error))\n"
        "\t\treturn fail(argument[1], error);\n"
        "%s%s\tint status = transfer(design, count, argument, inputs, load);\n"
        "%s (!status && stc_design_launch(design))\n"
        "\t\tstatus = fail(\"launch\", stc_design_error(design));\n"
        "\tif (!status)\n"
        "\t\tstatus = transfer(design, count, argument, outputs, save);\n"
        "\tstc_design_times(design, &host, &device);\n"
        "\tstc_design_clock(design, &clock, &wanted);\n"
        "\tif (!status)\n"
        "\t\tprintf(\"device %%.6f s, host %%.6f s\\n\", device, host);\n"
        "\tif (!status && clock > 0)\n"
        "\t\tprintf(\"clock %%.0f MHz, compiled for %%.0f MHz\\n\", clock, wanted);\n"
        "\tstc_design_close(design);\n"
        "\treturn status;\n"
        "}\n";

static const char *literal(struct arena *arena, const char *string)
{
	struct text text = text_new(arena);
	text_add_literal(&text, string);
	return text.data;
}

static void write_list(const struct attr *list, const char *name, bool output, struct text *out)
{
	text_add(out, "\nstatic const struct tensor %s[] = {\n", name);
	for (int i = 0; i < list->count; i++) {
		const struct attr *entry = list->items[i].value;
		const char *role = attr_item(entry, KEY_ROLE)->text;
		bool shown = output ? !text_same(role, "state")
		                    : !text_same(role, "constant") && !text_same(role, "weight");
		if (shown)
			text_add(out, "\t{%s, %lld},       /* %s */\n",
			        literal(out->arena, attr_item(entry, KEY_NAME)->text),
			        (long long)emit_bytes(attr_item(entry, KEY_TYPE)->type),
			        attr_item(entry, KEY_TYPE)->type->text);
	}
	text_add(out, "\t{NULL, 0},\n};\n");
}

static void write_lists(const struct op *main, const char *suffix, struct text *out)
{
	write_list(attr_get(main, KEY_STREAM_INPUTS), text_format(out->arena, "inputs%s", suffix),
	        false, out);
	write_list(attr_get(main, KEY_STREAM_OUTPUTS), text_format(out->arena, "outputs%s", suffix),
	        true, out);
}

static bool feeds(const struct phases *phases)
{
	struct feedback feedback;
	bool feeds = false;
	for (int p = 0; p < phases->count; p++)
		feeds = feeds || feedback_read(module_main(phases->phase[p].module), &feedback);
	return feeds;
}

/* Initializer of the pointer to a phase's `struct text`, or NULL. */
static const char *text_of(struct arena *arena, const struct op *main)
{
	struct feedback feedback;
	if (!feedback_read(main, &feedback))
		return "NULL";
	long long first = (long long)emit_bytes(
	        attr_item(attr_entry(attr_get(main, KEY_STREAM_INPUTS), feedback.input), KEY_TYPE)
	                ->type);
	long long each = first / feedback.chunk_tokens;
	return text_format(arena, "&(const struct text){%s, %lld, %lld, %lld}",
	        literal(arena, feedback.input), first, each, feedback.rows ? first : 0);
}

static void write_phases(const struct phases *phases, bool several, struct text *out)
{
	for (int p = 0; p < phases->count; p++)
		write_lists(module_main(phases->phase[p].module), text_format(out->arena, "_%d", p),
		        out);
	text_add(out,
	        "\nstatic const struct phase {\n\tconst char *name;\n\tconst struct tensor "
	        "*inputs, *outputs;\n%s} phases[] = {\n",
	        several ? "\tconst struct text *text;\n" : "");
	for (int p = 0; p < phases->count; p++) {
		const char *text = "";
		if (several)
			text = text_format(out->arena, ", %s",
			        text_of(out->arena, module_main(phases->phase[p].module)));
		text_add(out, "\t{%s, inputs_%d, outputs_%d%s},\n",
		        literal(out->arena, phases->phase[p].name), p, p, text);
	}
	text_add(out,
	        "\t{NULL, NULL, NULL%s},\n};\nstatic const struct tensor *inputs, *outputs;\n",
	        several ? ", NULL" : "");
	if (several)
		text_add(out, "static const struct text *text;\n");
}

/* The parts of the program that differ between designs, in the order of its format. */
struct host_text {
	const char *choose, *steps;
	int arguments; /* of the command line, at least */
	const char *phase, *tokens, *chosen, *take, *launch;
};

void emit_host(const struct phases *phases, const char *top, struct text *out)
{
	bool one = phases->count == 1;
	bool text = feeds(phases);
	const struct op *main = module_main(phases->phase[0].module);
	text_add(out,
	        "/* Runs %s: NAME=FILE reads an input, or writes an output after the launch. */\n",
	        top);
	text_add(out,
	        "#include <stc_runtime.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include "
	        "<string.h>\n\nstruct tensor {\n\tconst char *name;\n\tsize_t bytes;\n};\n%s",
	        text ? text_type : "");
	if (one)
		write_lists(main, "", out);
	else
		write_phases(phases, text, out);
	if (one && text)
		text_add(out, "\nstatic const struct text *const text = %s;\n",
		        text_of(out->arena, main));
	struct host_text parts = { .choose = "",
		.steps = "",
		.arguments = one ? 3 : 4,
		.phase = one ? "" : "PHASE ",
		.tokens = "",
		.chosen = one ? "" : chosen,
		.take = "",
		.launch = "\tif" };
	if (!one)
		parts.choose = text_format(out->arena, choice, text ? chosen_text : "");
	if (text) {
		parts.steps = several_steps;
		parts.tokens = "[--tokens COUNT [--out NAME=FILE]] ";
		parts.take = take;
		parts.launch = launch_text;
	}
	text_add(out, program, parts.choose, parts.steps, parts.arguments, parts.phase,
	        parts.tokens, parts.chosen, parts.take, parts.launch);
}
