/* What the parts of the reader share: MLIR objects in, our IR out.  Everything is copied to the
 * arena, so that the MLIR context can go. MLIR uniques types, attributes and locations, so each
 * is read once and found again by its pointer. */
#ifndef STC_READ_H
#define STC_READ_H
#include "import/import.h"
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/IR.h>

#define ITENSOR_ACCEPTED                                                                           \
	"accepted is !stream.itensor<vector<4x2xf32>, [4, 2], [2, 4], affine_map<(d0, d1) -> "     \
	"(d1, d0)>>: tile, trip counts, steps, map"
#define SCAN_DEPTH_MOST 256 /* nested brackets, attributes, types */

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
	const char *file; /* what the user calls the text */
	const char *text;
	size_t size;
	bool own;    /* a dump of ours, not a model from outside */
	bool failed; /* an error was reported */
	int depth;   /* of the attribute that is being read */
	/* text of the type of ours whose parameters MLIR is parsing, or NULL */
	const char *parsing_type;
	struct location at; /* of the operation that is being read, for messages */
	struct pointer_map types, attributes, values, locations;
	struct pointer_map names; /* MLIR's operation names -> row of op_info */
	struct map refused;       /* operation names and levels that were reported already */
	struct map bodies;        /* our dumps: symbol -> struct kernel_body */
	struct map resources;     /* key -> struct resource, filled on first use */
	bool resources_scanned;
	struct map aliases; /* name -> text, filled on first use */
	bool aliases_scanned;
};

struct resource {
	const char *hex; /* two digits a byte, alignment header skipped */
	size_t bytes;
};

struct kernel_body {
	MlirOperation function;
	bool used;
};

/* at reader->at */
__attribute__((format(printf, 2, 3))) void read_error(
        struct reader *reader, const char *format, ...);

/* a note on the operations that are */
void note_accepted(struct reader *reader);

/* how many characters at the begin are spaces, or belong to a name */
size_t scan_spaces(const char *text);
size_t scan_identifier(const char *text);

struct alias_scan {
	struct arena *arena;
	struct map aliases;    /* with # or ! -> struct alias */
	struct alias *current; /* whose definition is being scanned; NULL: none */
};

/* at # or !; false: it stands for too much */
bool scan_alias(struct alias_scan *scan, const char *text, bool outermost);

struct name_scan {
	struct arena *arena;
	struct map names;                /* with % -> struct name_scope */
	VEC(struct name_scope *) scopes; /* open braces; the first is the text's */
};

struct name_scan name_scan_new(struct arena *arena);
/* { and }; other characters are none */
void scan_brace(struct name_scan *scan, char brace);
/* at %; false: a value that is not defined here */
bool scan_name(struct name_scan *scan, const char *text);
/* scan_start.c, scan.c */
#define SCAN_ACCEPTED                                                                              \
	"accepted is MLIR text with one function, as `streamtensor export MODEL -o FOLDER` "       \
	"writes it"
/* false: it is something else than MLIR */
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
/* #NAME in text -> what the file says it is */
const char *resolve_aliases(struct reader *reader, const char *text);
void read_module(struct reader *reader, MlirOperation module);
/* op has its attributes; they become op->kernel */
bool read_kernel(struct reader *reader, struct op *op);
struct value *read_value(struct reader *reader, MlirValue value);
/* OP_NONE: refused */
enum op_code read_op_code(struct reader *reader, MlirOperation operation);
bool import_boundary(struct module *module);
/* null: diagnostics say why */
MlirModule import_parse(struct reader *reader);
bool import_normalise(struct reader *reader, MlirModule module);

/* Text of MLIR objects. */
/* user data: struct text */
void append_text(MlirStringRef part, void *text);
const char *print_attr(struct arena *arena, MlirAttribute attribute);
const char *print_type(struct arena *arena, MlirType type);
const char *copy_string(struct arena *arena, MlirStringRef string);

#endif
