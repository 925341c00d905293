/* Attributes of operations, and those of a function's arguments and results. The keys are in the
 * table attrs.def. */
#ifndef STC_ATTRIBUTES_H
#define STC_ATTRIBUTES_H
#include "ir/keys.h"
#include "ir/type.h"

struct module;
struct op;

enum attr_kind {
	ATTR_UNIT,
	ATTR_BOOL,       /* integer 0 or 1 */
	ATTR_INTEGER,    /* integer, type */
	ATTR_FLOAT,      /* real, type */
	ATTR_STRING,     /* text */
	ATTR_SYMBOL,     /* text without @ */
	ATTR_TYPE,       /* type */
	ATTR_MAP,        /* map */
	ATTR_ARRAY,      /* items[i].value, count */
	ATTR_DICTIONARY, /* items, sorted by name */
	/* array<i64: …> (type = element type, i1/i8/i32/i64): integers, count */
	ATTR_INTEGERS,
	/* dense elements: type is a tensor or vector type; data holds `bytes` bytes. splat: data is
	 * one element, repeated */
	ATTR_DENSE,
	/* text as MLIR prints it, for attributes of dialects that the compiler does not
	 * interpret */
	ATTR_OPAQUE,
};

struct attr {
	enum attr_kind kind;
	const struct type *type;
	int64_t integer;
	double real;
	const char *text;
	struct affine_map map;
	int count;
	const struct named *items;
	const int64_t *integers;
	const void *data; /* little endian; i1 one byte an element */
	size_t bytes;
	bool splat;
};

struct named {
	const char *name; /* NULL in arrays */
	const struct attr *value;
};

const struct attr *attr_get(const struct op *op, enum attr_key key); /* NULL if absent */
/* the same for a name that may be no key of attrs.def */
const struct attr *attr_named(const struct op *op, const char *name);
/* a NULL value removes the attribute */
void attr_set(struct module *module, struct op *op, enum attr_key key, const struct attr *value);
void attr_set_named(
        struct module *module, struct op *op, const char *name, const struct attr *value);
const struct attr *attr_unit(struct module *module);
const struct attr *attr_bool(struct module *module, bool value);
const struct attr *attr_integer(struct module *module, int64_t value); /* i64 */
const struct attr *attr_typed_integer(
        struct module *module, int64_t value, const struct type *type);
const struct attr *attr_float(struct module *module, double value, const struct type *type);
const struct attr *attr_string(struct module *module, const char *text);
const struct attr *attr_symbol(struct module *module, const char *text);
const struct attr *attr_type(struct module *module, const struct type *type);
const struct attr *attr_map(struct module *module, struct affine_map map);
const struct attr *attr_array(struct module *module, int count, const struct attr *const *items);
/* the items are copied and sorted by name */
const struct attr *attr_dictionary(struct module *module, int count, const struct named *items);
/* an array<i64> */
const struct attr *attr_integers(struct module *module, int count, const int64_t *integers);
/* NULL if absent or not a dictionary */
const struct attr *attr_item(const struct attr *dictionary, enum attr_key key);
const struct attr *attr_item_named(const struct attr *dictionary, const char *name);
int64_t attr_item_integer(const struct attr *dictionary, enum attr_key key, int64_t absent);
/* "" if it is absent or not a string or symbol */
const char *attr_item_text(const struct attr *dictionary, enum attr_key key);
/* a copy of the dictionary with this entry added or replaced; a NULL dictionary is empty */
const struct attr *attr_with(struct module *module, const struct attr *dictionary,
        enum attr_key key, const struct attr *value);
/* the dictionary with this `name` in an array of dictionaries; NULL if absent or not an array */
const struct attr *attr_entry(const struct attr *list, const char *name);
int64_t attr_integer_or(const struct op *op, enum attr_key key, int64_t absent);
/* text of a string or symbol attribute */
const char *attr_text_or(const struct op *op, enum attr_key key, const char *absent);
/* Argument and result attributes of a function (arg_attrs, res_attrs): NULL if absent. */
const struct attr *function_argument_attr(const struct op *function, int index, enum attr_key key);
const struct attr *function_result_attr(const struct op *function, int index, enum attr_key key);
void function_set_argument_attr(struct module *module, struct op *function, int index,
        enum attr_key key, const struct attr *value);
/* the argument with this stream.name; -1 if there is none */
int function_argument_named(const struct op *function, const char *name);

#endif
