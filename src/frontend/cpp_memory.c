/* Reads and writes of arrays and FIFOs while HLS C++ is read. In one body a value that was written
 * or read is not read again. */
#include "frontend/cpp_internal.h"
#include <inttypes.h>

void cpp_forget(struct cpp_reader *reader)
{
	reader->epochs++;
	for (size_t i = 0; i < reader->contents.count; i++)
		reader->contents.data[i] = (struct cpp_contents){ reader->epochs, NULL };
}

static struct cpp_contents *contents_of(struct cpp_reader *reader, int array)
{
	while (reader->contents.count <= (size_t)array)
		VEC_PUSH(reader->c.arena, &reader->contents,
		        ((struct cpp_contents){ reader->epochs, NULL }));
	return &reader->contents.data[array];
}

static void add_form(struct text *text, const struct cpp_form *form, bool constant)
{
	if (!form->known)
		text_add(text, " ?");
	for (int i = 0; form->known && i < CPP_DEPTH; i++)
		text_add(text, ",%" PRId64, form->coefficient[i]);
	if (constant)
		text_add(text, " %" PRId64, form->constant);
}

/* What the subscripts have in common if they name different elements wherever constants differ. */
static const char *signature_of(struct cpp_reader *reader, const struct cpp_value *place)
{
	struct text text = text_new(reader->c.arena);
	for (int i = 0; i < place->given; i++)
		add_form(&text, &place->subscript[i], false);
	return text.size ? text.data : "";
}

/* NULL: a subscript is not known */
static const char *element_key(struct cpp_reader *reader, const struct cpp_value *place)
{
	struct text text = text_new(reader->c.arena);
	const struct cpp_contents *contents = contents_of(reader, place->array);
	text_add(&text, "%d element %d %d", reader->body, place->array, contents->epoch);
	for (int i = 0; i < place->given; i++) {
		if (!place->subscript[i].known)
			return NULL;
		add_form(&text, &place->subscript[i], true);
	}
	return text.data;
}

static void remember(struct cpp_reader *reader, const char *key, const struct cpp_value *value)
{
	map_set(&reader->elements, key, arena_copy(reader->c.arena, value, sizeof *value));
}

static bool check_place(struct cpp_reader *reader, CXCursor cursor, const struct cpp_value *place)
{
	const struct cpp_array *array = &reader->design->arrays.data[place->array];
	if (place->given == array->rank)
		return true;
	return c_refuse(&reader->c, cursor, "a part of an array is no number",
	        "accepted are elements of arrays, and arrays as arguments of functions");
}

static struct cpp_operation access_of(
        struct cpp_reader *reader, enum cpp_kind kind, const struct cpp_value *place)
{
	const struct cpp_array *array = &reader->design->arrays.data[place->array];
	struct cpp_operation operation = {
		.kind = kind, .array = place->array, .bits = array->bits
	};
	for (int i = 0; i < place->given; i++)
		operation.subscript[i] = place->subscript[i];
	return operation;
}

struct cpp_value cpp_load(
        struct cpp_reader *reader, CXCursor cursor, const struct cpp_value *place, CXType type)
{
	if (!check_place(reader, cursor, place))
		return (struct cpp_value){ .kind = CPP_REFUSED };
	const char *key = element_key(reader, place);
	struct cpp_contents *contents = contents_of(reader, place->array);
	const char *signature = signature_of(reader, place);
	const struct cpp_value *known = key ? map_get(&reader->elements, key) : NULL;
	if (known)
		return *known;
	struct cpp_operation load = access_of(reader, CPP_LOAD, place);
	VEC(int) sources = { 0 };
	for (int i = 0; i < place->given; i++)
		if (!place->subscript[i].known && place->lane)
			VEC_PUSH(reader->c.arena, &sources, place->lane[i].operation);
	load.operand = sources.data;
	load.operands = (int)sources.count;
	struct cpp_value value = cpp_blank(reader, type, cpp_add_operation(reader, cursor, load));
	if (contents->signature && !text_same(contents->signature, signature))
		signature = "several";
	contents->signature = signature;
	if (key)
		remember(reader, key, &value);
	return value;
}

/* What the same body stores to the same element before is never read. */
static void drop_overwritten(struct cpp_reader *reader, const char *element, int store)
{
	const char *key = text_format(reader->c.arena, "stored %s", element);
	const int *before = map_get(&reader->elements, key);
	if (before) {
		struct cpp_operation *dead = &reader->design->operations.data[*before];
		dead->kind = CPP_CARRIED;
		dead->operands = 0;
	}
	map_set(&reader->elements, key, arena_copy(reader->c.arena, &store, sizeof store));
}

bool cpp_store(struct cpp_reader *reader, CXCursor cursor, const struct cpp_value *place,
        const struct cpp_value *value)
{
	if (!check_place(reader, cursor, place))
		return false;
	struct cpp_operation store = access_of(reader, CPP_STORE, place);
	int count = value->kind == CPP_LANES ? value->lanes : 1;
	store.operand = ARENA_ARRAY(reader->c.arena, int, count + place->given);
	for (int i = 0; i < count; i++)
		store.operand[i] =
		        value->kind == CPP_LANES ? value->lane[i].operation : value->operation;
	for (int i = 0; i < place->given; i++)
		if (!place->subscript[i].known && place->lane)
			store.operand[count++] = place->lane[i].operation;
	store.operands = count;
	int number = cpp_add_operation(reader, cursor, store);
	const char *signature = signature_of(reader, place);
	struct cpp_contents *contents = contents_of(reader, place->array);
	bool same = contents->signature && text_same(contents->signature, signature);
	if (!same || reader->conditions || !element_key(reader, place))
		contents->epoch = ++reader->epochs;
	contents->signature = signature;
	const char *key = element_key(reader, place);
	if (key && !reader->conditions) {
		drop_overwritten(reader, key, number);
		remember(reader, key, value);
	}
	return true;
}

struct cpp_value cpp_stream_read(
        struct cpp_reader *reader, CXCursor cursor, const struct cpp_value *stream, CXType element)
{
	struct cpp_operation load = access_of(reader, CPP_LOAD, stream);
	return cpp_blank(reader, element, cpp_add_operation(reader, cursor, load));
}
