/* Checks the signature attributes of main below tensor level: inputs, outputs, and the memory
 * buffers behind its ports. */
#include "ir/verify.h"

struct wanted {
	enum attr_key key;
	enum attr_kind kind;
	bool needed;
};

/* Name of the first item that is missing or of another kind; NULL: none. */
static const char *wrong_item(const struct attr *entry, size_t count, const struct wanted *wanted)
{
	for (size_t i = 0; i < count; i++) {
		const struct attr *item =
		        entry->kind == ATTR_DICTIONARY ? attr_item(entry, wanted[i].key) : NULL;
		if (item ? item->kind != wanted[i].kind : wanted[i].needed)
			return key_name(wanted[i].key);
	}
	return NULL;
}

static const char *wrong_tensor(const struct attr *entry)
{
	static const struct wanted wanted[] = {
		{ KEY_NAME, ATTR_STRING, true },
		{ KEY_ROLE, ATTR_STRING, true },
		{ KEY_TYPE, ATTR_TYPE, true },
		{ KEY_POSITION, ATTR_STRING, false },
		{ KEY_TOKEN_COUNT, ATTR_STRING, false },
		{ KEY_AXIS, ATTR_INTEGER, false },
		{ KEY_LEAD, ATTR_INTEGER, false },
		{ KEY_PAST, ATTR_INTEGER, false },
		{ KEY_BATCH, ATTR_INTEGER, false },
		{ KEY_STEP, ATTR_INTEGER, false },
		{ KEY_GATHERED_ELEMENTS, ATTR_INTEGER, false },
		{ KEY_DIMS, ATTR_ARRAY, false },
		{ KEY_NEXT, ATTR_DICTIONARY, false },
		{ KEY_DERIVED_FROM, ATTR_DICTIONARY, false },
	};
	const char *wrong = wrong_item(entry, sizeof wanted / sizeof *wanted, wanted);
	const struct type *type = wrong ? NULL : attr_item(entry, KEY_TYPE)->type;
	const struct attr *axis = wrong ? NULL : attr_item(entry, KEY_AXIS);
	const struct attr *dims = wrong ? NULL : attr_item(entry, KEY_DIMS);
	if (wrong || type->kind != TYPE_TENSOR)
		return wrong ? wrong : "type";
	if (axis && (axis->integer < 0 || axis->integer >= type->rank))
		return "axis";
	return dims && dims->count != type->rank ? "dims" : NULL;
}

static const char *wrong_segment(const struct attr *segment)
{
	static const struct wanted wanted[] = {
		{ KEY_NAME, ATTR_STRING, true },
		{ KEY_ROLE, ATTR_STRING, true },
		{ KEY_OFFSET, ATTR_INTEGER, true },
		{ KEY_BASE, ATTR_INTEGER, true },
		{ KEY_TRIPS, ATTR_INTEGERS, true },
		{ KEY_STRIDES, ATTR_INTEGERS, true },
		{ KEY_CONDITIONS, ATTR_ARRAY, false },
	};
	const char *wrong = wrong_item(segment, sizeof wanted / sizeof *wanted, wanted);
	const struct attr *conditions = wrong ? NULL : attr_item(segment, KEY_CONDITIONS);
	int64_t loops = wrong ? 0 : attr_item(segment, KEY_TRIPS)->count;
	for (int i = 0; conditions && i < conditions->count; i++)
		if (conditions->items[i].value->kind != ATTR_INTEGERS ||
		        conditions->items[i].value->count != loops + 1)
			return "conditions";
	return wrong || attr_item(segment, KEY_STRIDES)->count == loops ? wrong : "strides";
}

static const char *wrong_buffer(const struct attr *buffer)
{
	static const struct wanted wanted[] = {
		{ KEY_NAME, ATTR_STRING, true },
		{ KEY_WORD, ATTR_TYPE, true },
		{ KEY_WORDS, ATTR_INTEGER, true },
		{ KEY_SEGMENTS, ATTR_ARRAY, true },
		{ KEY_SAME_AS, ATTR_STRING, false },
	};
	const char *wrong = wrong_item(buffer, sizeof wanted / sizeof *wanted, wanted);
	const struct attr *segments = wrong ? NULL : attr_item(buffer, KEY_SEGMENTS);
	for (int i = 0; !wrong && i < segments->count; i++)
		wrong = wrong_segment(segments->items[i].value);
	return wrong;
}

/* Checks one list. entry: form of an entry, for the note. Returns false after a diagnostic. */
static bool check_list(struct verifier *verifier, const struct op *main, enum attr_key key,
        const char *(*wrong)(const struct attr *), const char *entry)
{
	const struct attr *list = attr_get(main, key);
	const char *item = NULL;
	int i = 0;
	for (; list && list->kind == ATTR_ARRAY && i < list->count && !item; i++)
		item = wrong(list->items[i].value);
	if (!list || (list->kind == ATTR_ARRAY && !item))
		return true;
	if (item)
		verify_fail(verifier, main, "entry %d of %s has no proper '%s'", i - 1,
		        key_name(key), item);
	else
		verify_fail(verifier, main, "%s is no list", key_name(key));
	diag_note(
	        verifier->module->diag, "accepted is [{%s}, …], empty where there are none", entry);
	return false;
}

/* At demand and stream level the arguments of main must have the types of the entries. */
void verify_signature(struct verifier *verifier)
{
	static const char tensor[] = "name = \"…\", role = \"…\", type = tensor<…>";
	static const char buffer[] = "name = \"…\", word = …, words = …, segments = [{name, role, "
	                             "offset, base, trips, strides, conditions}, …]";
	const struct op *main = module_main(verifier->module);
	bool fine = check_list(verifier, main, KEY_STREAM_INPUTS, wrong_tensor, tensor) &&
	        check_list(verifier, main, KEY_STREAM_OUTPUTS, wrong_tensor, tensor) &&
	        (verifier->module->level != LEVEL_HARDWARE ||
	                check_list(verifier, main, KEY_STREAM_BUFFERS, wrong_buffer, buffer));
	if (!fine || verifier->module->level == LEVEL_HARDWARE)
		return;
	const struct attr *inputs = attr_get(main, KEY_STREAM_INPUTS);
	const struct block *body = main->region[0];
	bool same = !inputs || inputs->count == body->arguments;
	for (int i = 0; inputs && same && i < body->arguments; i++)
		same = attr_item(inputs->items[i].value, KEY_TYPE)->type == body->argument[i]->type;
	if (!same)
		verify_fail(verifier, main, "its arguments are not those of stream.inputs");
}
