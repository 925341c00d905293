/* Checks attributes by the table attrs.def: a key with a value of another kind, or on another
 * owner, means nothing to any pass, and would be ignored where an edited dump relies on it. */
#include "import/read.h"
#include <string.h>

enum { OWNERS_MOST = 8 };

/* Where an attribute or an entry is, by each name that the table may give that place. */
struct attribute_place {
	const struct attribute_place *outer; /* NULL: the op */
	bool ours;                           /* inside an attribute that begins with `stream.` */
	const char *owner[OWNERS_MOST];
	int owners;
};

struct attribute_check {
	struct module *module;
	const struct op *op;
	const struct map *keys;
	bool whole;
};

static bool is_ours(const char *key)
{
	return !strncmp(key, "stream.", strlen("stream."));
}

static void add_owner(struct attribute_place *place, const char *owner)
{
	if (place->owners < OWNERS_MOST)
		place->owner[place->owners++] = owner;
}

static struct attribute_place place_of_op(const struct op *op)
{
	struct attribute_place place = { 0 };
	bool process = op->code == OP_FUNC && attr_get(op, KEY_STREAM_PROCESS);
	bool body = text_same(attr_text_or(op, KEY_SYM_VISIBILITY, ""), "private");
	add_owner(&place, op->code == OP_MODULE ? "module" : op_info[op->code].name);
	if (op->code == OP_FUNC && process)
		add_owner(&place, "process");
	if (op->code == OP_FUNC && !process && !body)
		add_owner(&place, "function main");
	return place;
}

/* An entry's owner is the attribute with its dictionary; entries of a dictionary in it may belong
 * to the outer one. */
static struct attribute_place place_of_entry(
        const struct attribute_check *check, const struct attribute_place *outer, const char *key)
{
	struct attribute_place place = { .outer = outer, .ours = outer->ours || is_ours(key) };
	struct arena *arena = check->module->arena;
	add_owner(&place, key);
	add_owner(&place, text_format(arena, "stream.%s", key));
	for (int i = 0; i < outer->owners && i < 2; i++)
		add_owner(&place, text_format(arena, "%s %s", outer->owner[i], key));
	for (int i = 0; i < outer->owners && outer->outer; i++)
		add_owner(&place, outer->owner[i]);
	if (text_same(key, key_name(KEY_ARG_ATTRS)) || text_same(key, key_name(KEY_RES_ATTRS)))
		for (int i = 0; i < outer->owners; i++)
			add_owner(&place, outer->owner[i]);
	return place;
}

/* Does the list "a, b, c.*" name the owner? */
static bool lists(const char *list, const char *owner)
{
	while (*list) {
		size_t size = strcspn(list, ",");
		bool any = size > 1 && list[size - 1] == '*';
		if (any && !strncmp(list, owner, size - 1))
			return true;
		if (!any && size == strlen(owner) && !memcmp(list, owner, size))
			return true;
		list += size;
		list += strspn(list, ", ");
	}
	return false;
}

static bool owns(const struct attribute_place *place, const struct key_info *key)
{
	for (int i = 0; i < place->owners; i++)
		if (lists(key->owners, place->owner[i]))
			return true;
	return false;
}

static const char *kinds_text(struct arena *arena, unsigned kinds)
{
	static const char *const name[] = {
		[ATTR_UNIT] = "unit",
		[ATTR_BOOL] = "a bool",
		[ATTR_INTEGER] = "an integer",
		[ATTR_FLOAT] = "a float",
		[ATTR_STRING] = "a string",
		[ATTR_SYMBOL] = "a symbol",
		[ATTR_TYPE] = "a type",
		[ATTR_MAP] = "an affine map",
		[ATTR_ARRAY] = "an array of attributes",
		[ATTR_DICTIONARY] = "a dictionary",
		[ATTR_INTEGERS] = "array<i64: …>",
		[ATTR_DENSE] = "dense elements",
		[ATTR_OPAQUE] = "an attribute of a dialect",
	};
	struct text text = text_new(arena);
	for (int kind = ATTR_UNIT; kind <= ATTR_OPAQUE; kind++)
		if (kinds & (1U << kind))
			text_add(&text, "%s%s", text.size ? " or " : "", name[kind]);
	return text.data;
}

static const char *owner_text(
        const struct attribute_check *check, const struct attribute_place *place)
{
	return place->outer ? place->owner[0] : op_info[check->op->code].name;
}

static bool refuse_kind(const struct attribute_check *check, const struct attribute_place *place,
        const struct key_info *key, const struct attr *attr)
{
	struct arena *arena = check->module->arena;
	diag_error(check->module->diag, check->op->location, "attribute %s of %s is %s", key->name,
	        owner_text(check, place), kinds_text(arena, 1U << attr->kind));
	return diag_note(check->module->diag, "accepted is %s", kinds_text(arena, key->kinds));
}

static bool refuse_owner(const struct attribute_check *check, const struct attribute_place *place,
        const struct key_info *key)
{
	diag_error(check->module->diag, check->op->location, "%s has no attribute %s",
	        owner_text(check, place), key->name);
	return diag_note(check->module->diag, "it belongs to %s", key->owners);
}

static bool is_legal(const struct attribute_check *check, const struct attribute_place *place,
        const struct named *attribute);

/* Entries of the dictionaries in the value. */
static bool entries_are_legal(const struct attribute_check *check,
        const struct attribute_place *place, const struct attr *value)
{
	bool legal = true;
	for (int i = 0; legal && value->kind == ATTR_ARRAY && i < value->count; i++)
		legal = entries_are_legal(check, place, value->items[i].value);
	for (int i = 0; legal && value->kind == ATTR_DICTIONARY && i < value->count; i++)
		legal = is_legal(check, place, &value->items[i]);
	return legal;
}

static bool is_legal(const struct attribute_check *check, const struct attribute_place *place,
        const struct named *attribute)
{
	const struct key_info *known = map_get(check->keys, attribute->name);
	bool checked = known && (check->whole || place->ours || is_ours(attribute->name));
	if (checked && !owns(place, known))
		return refuse_owner(check, place, known);
	if (checked && !(known->kinds & (1U << attribute->value->kind)))
		return refuse_kind(check, place, known, attribute->value);
	if (!known ||
	        (attribute->value->kind != ATTR_ARRAY && attribute->value->kind != ATTR_DICTIONARY))
		return true;
	const struct attribute_place entries = place_of_entry(check, place, attribute->name);
	return entries_are_legal(check, &entries, attribute->value);
}

bool read_attributes_are_legal(struct reader *reader, const struct op *op)
{
	const struct attribute_check check = { reader->module, op, &reader->keys, reader->own };
	const struct attribute_place place = place_of_op(op);
	bool legal = true;
	for (int i = 0; legal && i < op->attributes; i++)
		legal = is_legal(&check, &place, &op->attribute[i]);
	return legal;
}
