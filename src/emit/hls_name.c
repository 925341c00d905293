/* Identifiers and types of the emitted C++: unique names that are legal in C++, Verilog and VHDL,
 * and typedefs of words and blocks. */
#include "emit/hls.h"
#include "ir/double_forms.h"
#include <ctype.h>
#include <string.h>

/* the vendor's tools add prefixes and truncate at 256 characters */
#define NAME_MOST 120

/* Reserved words of C++, Verilog and VHDL, and names that the emitted text uses itself. */
static const char *const reserved[] = {
	"abs",
	"access",
	"after",
	"alias",
	"all",
	"always",
	"and",
	"architecture",
	"array",
	"assert",
	"assign",
	"attribute",
	"auto",
	"automatic",
	"begin",
	"bind",
	"bit",
	"block",
	"body",
	"bool",
	"break",
	"buf",
	"buffer",
	"bufif0",
	"bufif1",
	"bus",
	"byte",
	"case",
	"casex",
	"casez",
	"cell",
	"char",
	"class",
	"clocking",
	"cmos",
	"component",
	"config",
	"configuration",
	"const",
	"constraint",
	"context",
	"continue",
	"cover",
	"covergroup",
	"cross",
	"deassign",
	"default",
	"defparam",
	"delete",
	"design",
	"disable",
	"disconnect",
	"dist",
	"do",
	"double",
	"downto",
	"edge",
	"else",
	"elsif",
	"end",
	"endcase",
	"endclass",
	"endconfig",
	"endfunction",
	"endgenerate",
	"endgroup",
	"endinterface",
	"endmodule",
	"endpackage",
	"endprimitive",
	"endprogram",
	"endproperty",
	"endsequence",
	"endspecify",
	"endtable",
	"endtask",
	"entity",
	"enum",
	"event",
	"exit",
	"expect",
	"explicit",
	"export",
	"extends",
	"extern",
	"false",
	"file",
	"final",
	"first_match",
	"float",
	"for",
	"force",
	"foreach",
	"forever",
	"fork",
	"forkjoin",
	"friend",
	"function",
	"generate",
	"generic",
	"genvar",
	"goto",
	"group",
	"guarded",
	"highz0",
	"highz1",
	"hls",
	"if",
	"iff",
	"ifnone",
	"ignore_bins",
	"illegal_bins",
	"import",
	"impure",
	"in",
	"incdir",
	"include",
	"inertial",
	"initial",
	"inline",
	"inout",
	"input",
	"inside",
	"instance",
	"int",
	"integer",
	"interface",
	"intersect",
	"is",
	"join",
	"join_any",
	"join_none",
	"l",
	"label",
	"large",
	"liblist",
	"library",
	"linkage",
	"literal",
	"local",
	"localparam",
	"logic",
	"long",
	"longint",
	"loop",
	"macromodule",
	"main",
	"map",
	"matches",
	"medium",
	"mod",
	"modport",
	"module",
	"mutable",
	"namespace",
	"nand",
	"negedge",
	"new",
	"next",
	"nmos",
	"nor",
	"noshowcancelled",
	"not",
	"notif0",
	"notif1",
	"null",
	"of",
	"on",
	"open",
	"operator",
	"or",
	"others",
	"out",
	"output",
	"package",
	"packed",
	"parameter",
	"pmos",
	"port",
	"posedge",
	"postponed",
	"primitive",
	"priority",
	"private",
	"procedure",
	"process",
	"program",
	"property",
	"protected",
	"public",
	"pull0",
	"pull1",
	"pulldown",
	"pullup",
	"pure",
	"rand",
	"randc",
	"randcase",
	"randsequence",
	"range",
	"rcmos",
	"real",
	"realtime",
	"record",
	"ref",
	"reg",
	"register",
	"reject",
	"release",
	"rem",
	"repeat",
	"report",
	"return",
	"rnmos",
	"rol",
	"ror",
	"rpmos",
	"rtran",
	"rtranif0",
	"rtranif1",
	"scalared",
	"select",
	"sequence",
	"severity",
	"shared",
	"short",
	"shortint",
	"shortreal",
	"showcancelled",
	"signal",
	"signed",
	"sizeof",
	"sla",
	"sll",
	"small",
	"solve",
	"specify",
	"specparam",
	"sra",
	"srl",
	"st",
	"static",
	"string",
	"strong",
	"strong0",
	"strong1",
	"struct",
	"subtype",
	"super",
	"supply0",
	"supply1",
	"switch",
	"table",
	"tagged",
	"task",
	"template",
	"then",
	"this",
	"throughout",
	"throw",
	"time",
	"timeprecision",
	"timeunit",
	"to",
	"tran",
	"tranif0",
	"tranif1",
	"transport",
	"tree",
	"tri",
	"tri0",
	"tri1",
	"triand",
	"trior",
	"trireg",
	"true",
	"try",
	"type",
	"typedef",
	"typename",
	"unaffected",
	"union",
	"unique",
	"units",
	"unsigned",
	"until",
	"use",
	"using",
	"uwire",
	"var",
	"variable",
	"vector",
	"vectored",
	"virtual",
	"void",
	"volatile",
	"wait",
	"wait_order",
	"wand",
	"weak",
	"weak0",
	"weak1",
	"when",
	"while",
	"wildcard",
	"wire",
	"with",
	"within",
	"wor",
	"word",
	"xnor",
	"xor",
};

struct names names_new(struct arena *arena)
{
	struct names names = { .taken = map_new(arena) };
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		map_set(&names.taken, reserved[i], (void *)(uintptr_t)reserved[i]);
	return names;
}

static char *identifier(struct arena *arena, const char *prefix, const char *name)
{
	if (!strncmp(name, prefix, strlen(prefix)))
		prefix = isdigit((unsigned char)*name) && !*prefix ? "n" : "";
	char *text = text_format(arena, "%s%.*s", prefix, NAME_MOST, name);
	for (char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
	return text;
}

const char *names_add(struct names *names, const char *prefix, const char *name)
{
	struct arena *arena = names->taken.arena;
	const char *base = identifier(arena, prefix, name);
	const char *text = base;
	for (int n = 1; map_get(&names->taken, text); n++)
		text = text_format(arena, "%s_%d", base, n);
	map_set(&names->taken, text, (void *)(uintptr_t)text);
	return text;
}

const char *emit_identifier(struct arena *arena, const char *name)
{
	struct names names = names_new(arena);
	return names_add(&names, "", *name ? name : "design");
}

const char *emit_top_name(struct arena *arena, const char *design)
{
	return text_format(arena, "top_%s", identifier(arena, "", *design ? design : "design"));
}

void hls_fail(struct emitter *e, const struct op *op, const char *what)
{
	struct text text = text_new(e->arena);
	op_print_short(op, &text);
	diag_error(e->module->diag, op->location, "%s %s", text.data, what);
	e->failed = true;
}

bool hls_is_half(const struct type *scalar)
{
	return type_is_real(scalar) && scalar->width == 16;
}

bool hls_is_packed(const struct type *word)
{
	return type_lanes(word) > 1 && type_scalar(word)->kind == TYPE_INTEGER &&
	        type_scalar(word)->width == 4;
}

static const char *scalar_name(struct emitter *e, const struct type *type)
{
	if (type->kind == TYPE_INDEX)
		return "int";
	if (type->kind == TYPE_FLOAT && type->width == 32)
		return "float";
	if (type_is_double(type)) {
		e->doubles = true;
		return "double";
	}
	if (hls_is_half(type)) {
		e->narrow = true;
		return type->kind == TYPE_BFLOAT ? "st_bf16" : "st_f16";
	}
	if (type->kind == TYPE_INTEGER && type->width == 1)
		return "bool";
	if (type->kind == TYPE_INTEGER && type->width == 4) {
		e->narrow = true;
		return "ap_int<4>";
	}
	if (type->kind == TYPE_INTEGER &&
	        (type->width == 8 || type->width == 16 || type->width == 32 || type->width == 64))
		return text_format(e->arena, "int%d_t", type->width);
	diag_error(e->module->diag, e->process ? e->process->location : NOWHERE,
	        "a design cannot hold numbers of type %s", type->text);
	diag_note(e->module->diag, "f64, f32, f16, bf16, i1, i4, i8, i16, i32 and i64 can be held");
	e->failed = true;
	return "int";
}

static const char *word_name(struct emitter *e, const struct type *type)
{
	const struct type *scalar = type_scalar(type);
	const char *element = scalar_name(e, scalar);
	char *name = text_format(e->arena, "%sx%lld", scalar->text, (long long)type_elements(type));
	if (map_get(&e->types, name))
		return name;
	map_set(&e->types, name, (void *)(uintptr_t)type);
	text_add(&e->typedefs, "typedef hls::vector<%s, %lld> %s;\n", element,
	        (long long)type_elements(type), name);
	return name;
}

static const char *block_name(struct emitter *e, const struct type *type)
{
	const char *element = hls_type(e, type->element);
	struct text name = text_new(e->arena);
	struct text shape = text_new(e->arena);
	/* ap_int<4> cannot be part of a name */
	text_add(&name, "block_%s", strchr(element, '<') ? type->element->text : element);
	for (int d = 0; d < type->rank; d++) {
		text_add(&name, "_%lld", (long long)type->shape[d]);
		text_add(&shape, "[%lld]", (long long)type->shape[d]);
	}
	if (!map_get(&e->types, name.data)) {
		map_set(&e->types, name.data, (void *)(uintptr_t)type);
		text_add(&e->typedefs, "typedef %s %s%s;\n", element, name.data, shape.data);
	}
	return name.data;
}

const char *hls_type(struct emitter *e, const struct type *type)
{
	if (type->kind == TYPE_MEMREF)
		return block_name(e, type);
	return type_lanes(type) > 1 ? word_name(e, type) : scalar_name(e, type_scalar(type));
}

const char *hls_port_type(struct emitter *e, const struct type *word)
{
	if (type_scalar(word)->kind == TYPE_INTEGER && type_scalar(word)->width == 4 &&
	        type_lanes(word) == 1)
		return "int8_t";
	if (!hls_is_packed(word))
		return hls_type(e, word);
	char *name = text_format(e->arena, "%s_bytes", hls_type(e, word));
	if (!map_get(&e->types, name)) {
		map_set(&e->types, name, (void *)(uintptr_t)word);
		text_add(&e->typedefs, "typedef hls::vector<uint8_t, %lld> %s;\n",
		        (long long)type_lanes(word) / 2, name);
	}
	return name;
}
