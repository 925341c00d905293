/* Internal interface of the reader from MLIR objects to the IR. Everything is copied to the arena,
 * so that the MLIR context can be destroyed. MLIR uniques types, attributes and locations, so each
 * is read once and cached by its pointer. */
#ifndef STC_READ_H
#define STC_READ_H
#include "import/import.h"
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/IR.h>

#define ITENSOR_ACCEPTED                                                                           \
	"accepted is !stream.itensor<vector<4x2xf32>, [4, 2], [2, 4], affine_map<(d0, d1) -> "     \
	"(d1, d0)>>: tile, trip counts, steps, map"
#define SCAN_DEPTH_MOST 256 /* maximum nesting of brackets, attributes and types */

struct pointer_entry {
	const void *key;
	const void *value;
};

struct pointer_map {
	struct arena *arena;
	struct pointer_entry *entry; /* open addressing; key NULL: free */
	size_t count, slots;
};

/* NULL if absent */
const struct pointer_entry *pointer_find(const struct pointer_map *map, const void *key);
void pointer_set(struct pointer_map *map, const void *key, const void *value);

struct reader {
	struct module *module;
	struct arena *arena;
	struct diag *diag;
	MlirContext context;
	const char *file; /* name of the text in messages */
	const char *text;
	size_t size;
	bool own;     /* a dump of the compiler, not a model */
	bool failed;  /* an error was reported */
	bool in_nest; /* in the body of a sequential nest */
	int depth;    /* nesting of the current attribute */
	/* text of the !stream type whose parameters MLIR is parsing, or NULL */
	const char *parsing_type;
	struct location at; /* location of the current operation, for messages */
	struct pointer_map types, attributes, values, locations;
	struct pointer_map names; /* MLIR's operation names -> row of op_info */
	struct map keys;          /* key_map */
	struct map refused;       /* operation names and levels already reported */
	struct map bodies;        /* dumps: symbol -> struct kernel_body */
	struct map resources;     /* key -> struct resource, filled on first use */
	bool resources_scanned;
	struct map aliases; /* name -> text, filled on first use */
	bool aliases_scanned;
};

struct resource {
	const char *hex; /* two digits per byte, without the alignment header */
	size_t bytes;
};

struct kernel_body {
	MlirOperation function;
	bool used;
};

/* reports an error at reader->at */
__attribute__((format(printf, 2, 3))) void read_error(
        struct reader *reader, const char *format, ...);

/* Are the op's attributes, and the entries of their dictionaries, of the kinds and of the owners
 * that attrs.def says? Of a dump all keys of the table are checked, of a model only those that
 * begin with `stream.`: it may have attributes that mean nothing here. false: after a
 * diagnostic. */
bool read_attributes_are_legal(struct reader *reader, const struct op *op);

/* adds a note that lists the accepted operations */
void note_accepted(struct reader *reader);

/* number of leading characters that are spaces, or an identifier */
size_t scan_spaces(const char *text);
size_t scan_identifier(const char *text);

struct alias_scan {
	struct arena *arena;
	struct map aliases;    /* with # or ! -> struct alias */
	struct alias *current; /* alias whose definition is being scanned; NULL: none */
};

/* scans an alias at # or !; false: it expands to too much text */
bool scan_alias(struct alias_scan *scan, const char *text, bool outermost);

struct name_scan {
	struct arena *arena;
	struct map names;                /* with % -> struct name_scope */
	VEC(struct name_scope *) scopes; /* open braces; the first is the whole text */
};

struct name_scan name_scan_new(struct arena *arena);
/* call for { and }; other characters are ignored */
void scan_brace(struct name_scan *scan, char brace);
/* scans a value name at %; false: it is not defined in an open brace */
bool scan_name(struct name_scan *scan, const char *text);
/* scans of the text before MLIR parses it (scan_start.c, scan.c) */
#define SCAN_ACCEPTED                                                                              \
	"accepted is MLIR text with one function, as `streamtensor export MODEL -o FOLDER` "       \
	"writes it"
/* false: the text is not MLIR */
bool scan_start(struct diag *diag, const char *file, const char *text);
bool scan_text(struct diag *diag, const char *file, const char *text, size_t size);
struct location read_location(struct reader *reader, MlirLocation location);
struct location parse_location(struct arena *arena, const char *file, const char *printed);
/* NULL: refused */
const struct type *read_type(struct reader *reader, MlirType type);
/* NULL: refused */
const struct type *read_itensor(struct reader *reader, MlirAttribute parameters);
/* NULL: refused */
const struct attr *read_attr(struct reader *reader, MlirAttribute attribute);
bool read_map(struct reader *reader, MlirAffineMap map, struct affine_map *result);
bool read_resource(struct reader *reader, const char *key, size_t bytes, struct attr *result);
/* replaces each #NAME in text by its definition */
const char *resolve_aliases(struct reader *reader, const char *text);
void read_module(struct reader *reader, MlirOperation module);
/* turns the attributes of op into op->kernel */
bool read_kernel(struct reader *reader, struct op *op);
struct value *read_value(struct reader *reader, MlirValue value);
/* OP_NONE: refused */
enum op_code read_op_code(struct reader *reader, MlirOperation operation);
bool import_boundary(struct module *module);
/* null after diagnostics */
MlirModule import_parse(struct reader *reader);
bool import_normalise(struct reader *reader, MlirModule module);

/* Text of MLIR objects. */
/* MLIR string callback; user data: struct text */
void append_text(MlirStringRef part, void *text);
const char *print_attr(struct arena *arena, MlirAttribute attribute);
const char *print_type(struct arena *arena, MlirType type);
const char *copy_string(struct arena *arena, MlirStringRef string);

#endif
