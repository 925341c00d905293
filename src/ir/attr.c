/* Attributes: the table of their keys, construction and lookup. They are immutable; an operation
 * lists its own by name. A name that is a key is stored as that key's text in the table, wherever
 * it came from, so that a key is found by comparing pointers. */
#include "ir/attr_name.h"
#include "ir/ir.h"
#include <stdlib.h>
#include <string.h>

#define UNIT (1U << ATTR_UNIT)
#define BOOL (1U << ATTR_BOOL)
#define INTEGER (1U << ATTR_INTEGER)
#define FLOAT (1U << ATTR_FLOAT)
#define STRING (1U << ATTR_STRING)
#define SYMBOL (1U << ATTR_SYMBOL)
#define TYPE (1U << ATTR_TYPE)
#define MAP (1U << ATTR_MAP)
#define ARRAY (1U << ATTR_ARRAY)
#define DICTIONARY (1U << ATTR_DICTIONARY)
#define INTEGERS (1U << ATTR_INTEGERS)
#define DENSE (1U << ATTR_DENSE)

/* The texts of all keys in one object, so that an address tells whether a name is one of them. */
static const struct key_texts {
#define KEY(code, key, kinds, owners, meaning) char name_of_##code[sizeof key];
#include "ir/attrs.def"
#undef KEY
} key_texts = {
#define KEY(code, key, kinds, owners, meaning) key,
#include "ir/attrs.def"
#undef KEY
};

const struct key_info key_info[KEY_COUNT] = {
#define KEY(code, key, kinds, owners, meaning) { key_texts.name_of_##code, kinds, owners, meaning },
#include "ir/attrs.def"
#undef KEY
};

struct map key_map(struct arena *arena)
{
	struct map map = map_new(arena);
	for (int key = 0; key < KEY_COUNT; key++)
		map_set(&map, key_info[key].name, (void *)(uintptr_t)&key_info[key]);
	return map;
}

static bool is_key_text(const char *name)
{
	uintptr_t first = (uintptr_t)&key_texts;
	return (uintptr_t)name - first < sizeof key_texts;
}

const char *attr_name(struct arena *arena, const char *name)
{
	if (is_key_text(name))
		return name;
	size_t size = strlen(name) + 1;
	for (int key = 0; key < KEY_COUNT; key++)
		if (!strcmp(key_info[key].name, name))
			return key_info[key].name;
	return arena_copy(arena, name, size);
}

static const struct attr *keep(struct module *module, struct attr attr)
{
	return arena_copy(module->arena, &attr, sizeof attr);
}

static char *copy_text(struct module *module, const char *text)
{
	return text_copy(module->arena, text, strlen(text));
}

const struct attr *attr_unit(struct module *module)
{
	return keep(module, (struct attr){ .kind = ATTR_UNIT });
}

const struct attr *attr_bool(struct module *module, bool value)
{
	return keep(module,
	        (struct attr){
	                .kind = ATTR_BOOL, .integer = value, .type = type_integer(module, 1) });
}

const struct attr *attr_integer(struct module *module, int64_t value)
{
	return attr_typed_integer(module, value, type_integer(module, 64));
}

const struct attr *attr_typed_integer(struct module *module, int64_t value, const struct type *type)
{
	return keep(module, (struct attr){ .kind = ATTR_INTEGER, .integer = value, .type = type });
}

const struct attr *attr_float(struct module *module, double value, const struct type *type)
{
	return keep(module, (struct attr){ .kind = ATTR_FLOAT, .real = value, .type = type });
}

const struct attr *attr_string(struct module *module, const char *text)
{
	return keep(module, (struct attr){ .kind = ATTR_STRING, .text = copy_text(module, text) });
}

const struct attr *attr_symbol(struct module *module, const char *text)
{
	return keep(module, (struct attr){ .kind = ATTR_SYMBOL, .text = copy_text(module, text) });
}

const struct attr *attr_type(struct module *module, const struct type *type)
{
	return keep(module, (struct attr){ .kind = ATTR_TYPE, .type = type });
}

const struct attr *attr_map(struct module *module, struct affine_map map)
{
	size_t rows = (size_t)(map.dims + 1) * (size_t)map.results;
	map.coefficient =
	        arena_copy(module->arena, map.coefficient, sizeof *map.coefficient * rows);
	return keep(module, (struct attr){ .kind = ATTR_MAP, .map = map });
}

const struct attr *attr_array(struct module *module, int count, const struct attr *const *items)
{
	struct named *copy = ARENA_ARRAY(module->arena, struct named, count);
	for (int i = 0; i < count; i++)
		copy[i].value = items[i];
	return keep(module, (struct attr){ .kind = ATTR_ARRAY, .count = count, .items = copy });
}

static int by_name(const void *left, const void *right)
{
	return strcmp(((const struct named *)left)->name, ((const struct named *)right)->name);
}

const struct attr *attr_dictionary(struct module *module, int count, const struct named *items)
{
	struct named *copy = ARENA_ARRAY(module->arena, struct named, count);
	for (int i = 0; i < count; i++)
		copy[i] = (struct named){ .name = attr_name(module->arena, items[i].name),
			.value = items[i].value };
	if (count)
		qsort(copy, (size_t)count, sizeof *copy, by_name);
	return keep(
	        module, (struct attr){ .kind = ATTR_DICTIONARY, .count = count, .items = copy });
}

const struct attr *attr_integers(struct module *module, int count, const int64_t *integers)
{
	const int64_t *copy = arena_copy(module->arena, integers, sizeof *integers * (size_t)count);
	return keep(module,
	        (struct attr){ .kind = ATTR_INTEGERS,
	                .type = type_integer(module, 64),
	                .count = count,
	                .integers = copy });
}

/* Compares first letters before the rest: most names already differ there. */
static int compare(const char *left, const char *right)
{
	int first = (unsigned char)*left - (unsigned char)*right;
	return first ? first : strcmp(left, right);
}

/* Position of the first name that is not less than `name`. */
static int position(int count, const struct named *items, const char *name, bool *found)
{
	int low = 0;
	int high = count;
	while (low < high) {
		int middle = (low + high) / 2;
		int order = compare(items[middle].name, name);
		*found = !order;
		if (!order)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = false;
	return low;
}

const struct attr *attr_named(const struct op *op, const char *name)
{
	bool found;
	int at = position(op->attributes, op->attribute, name, &found);
	return found ? op->attribute[at].value : NULL;
}

/* NULL if there is none. */
static const struct attr *of_key(int count, const struct named *items, enum attr_key key)
{
	const char *name = key_name(key);
	for (int i = 0; i < count; i++)
		if (items[i].name == name)
			return items[i].value;
	return NULL;
}

const struct attr *attr_get(const struct op *op, enum attr_key key)
{
	return of_key(op->attributes, op->attribute, key);
}

const struct attr *attr_item_named(const struct attr *dictionary, const char *name)
{
	if (!dictionary || dictionary->kind != ATTR_DICTIONARY)
		return NULL;
	bool found;
	int at = position(dictionary->count, dictionary->items, name, &found);
	return found ? dictionary->items[at].value : NULL;
}

const struct attr *attr_item(const struct attr *dictionary, enum attr_key key)
{
	bool any = dictionary && dictionary->kind == ATTR_DICTIONARY;
	return any ? of_key(dictionary->count, dictionary->items, key) : NULL;
}

int64_t attr_item_integer(const struct attr *dictionary, enum attr_key key, int64_t absent)
{
	const struct attr *item = attr_item(dictionary, key);
	return item ? item->integer : absent;
}

const char *attr_item_text(const struct attr *dictionary, enum attr_key key)
{
	const struct attr *item = attr_item(dictionary, key);
	return item && item->text ? item->text : "";
}

const struct attr *attr_with(struct module *module, const struct attr *dictionary,
        enum attr_key key, const struct attr *value)
{
	int old = dictionary ? dictionary->count : 0;
	int count = 0;
	struct named *items = ARENA_ARRAY(module->arena, struct named, old + 1);
	for (int i = 0; i < old; i++)
		if (dictionary->items[i].name != key_name(key))
			items[count++] = dictionary->items[i];
	items[count++] = (struct named){ .name = key_name(key), .value = value };
	return attr_dictionary(module, count, items);
}

const struct attr *attr_entry(const struct attr *list, const char *name)
{
	for (int i = 0; list && list->kind == ATTR_ARRAY && i < list->count; i++)
		if (text_same(attr_item_text(list->items[i].value, KEY_NAME), name))
			return list->items[i].value;
	return NULL;
}

static void insert(struct module *module, struct op *op, int at, struct named item)
{
	struct named *larger = ARENA_ARRAY(module->arena, struct named, op->attributes + 1);
	for (int i = 0; i < op->attributes; i++)
		larger[i < at ? i : i + 1] = op->attribute[i];
	larger[at] = item;
	op->attribute = larger;
	op->attributes++;
}

void attr_set_named(
        struct module *module, struct op *op, const char *name, const struct attr *value)
{
	bool found;
	int at = position(op->attributes, op->attribute, name, &found);
	if (value && found) {
		op->attribute[at].value = value;
	} else if (value) {
		insert(module, op, at,
		        (struct named){ .name = attr_name(module->arena, name), .value = value });
	} else if (found) {
		op->attributes--;
		memmove(op->attribute + at, op->attribute + at + 1,
		        sizeof *op->attribute * (size_t)(op->attributes - at));
	}
}

void attr_set(struct module *module, struct op *op, enum attr_key key, const struct attr *value)
{
	attr_set_named(module, op, key_name(key), value);
}

int64_t attr_integer_or(const struct op *op, enum attr_key key, int64_t absent)
{
	const struct attr *attr = attr_get(op, key);
	return attr && (attr->kind == ATTR_INTEGER || attr->kind == ATTR_BOOL) ? attr->integer
	                                                                       : absent;
}

const char *attr_text_or(const struct op *op, enum attr_key key, const char *absent)
{
	const struct attr *attr = attr_get(op, key);
	return attr && (attr->kind == ATTR_STRING || attr->kind == ATTR_SYMBOL) ? attr->text
	                                                                        : absent;
}

static const struct attr *item_attr(
        const struct op *function, enum attr_key list, int index, enum attr_key key)
{
	const struct attr *array = attr_get(function, list);
	if (!array || array->kind != ATTR_ARRAY || index < 0 || index >= array->count)
		return NULL;
	return attr_item(array->items[index].value, key);
}

const struct attr *function_argument_attr(const struct op *function, int index, enum attr_key key)
{
	return item_attr(function, KEY_ARG_ATTRS, index, key);
}

const struct attr *function_result_attr(const struct op *function, int index, enum attr_key key)
{
	return item_attr(function, KEY_RES_ATTRS, index, key);
}

void function_set_argument_attr(struct module *module, struct op *function, int index,
        enum attr_key key, const struct attr *value)
{
	const struct attr *list = attr_get(function, KEY_ARG_ATTRS);
	const struct attr **items = ARENA_ARRAY(module->arena, const struct attr *, list->count);
	for (int i = 0; i < list->count; i++)
		items[i] = list->items[i].value;
	items[index] = attr_with(module, items[index], key, value);
	attr_set(module, function, KEY_ARG_ATTRS, attr_array(module, list->count, items));
}

int function_argument_named(const struct op *function, const char *name)
{
	for (int i = 0; i < function->region[0]->arguments; i++) {
		const struct attr *own = function_argument_attr(function, i, KEY_STREAM_NAME);
		if (own && text_same(own->text, name))
			return i;
	}
	return -1;
}
