/* JSON as a tree in an arena. cJSON parses it; nothing of cJSON outlives the call. */
#ifndef STC_JSON_H
#define STC_JSON_H
#include "base/text.h"
#include <stdint.h>

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_kind kind;
	const char *name; /* of a member; NULL in arrays */
	double number;    /* 0 or 1 of a bool */
	const char *text;
	int count; /* items or members */
	struct json *first, *next;
};

/* NULL: not JSON; *offset (may be NULL) is the position of the error. Nested at most 64 deep. */
const struct json *json_parse(struct arena *arena, const char *text, size_t size, size_t *offset);
/* NULL if absent or not an object */
const struct json *json_get(const struct json *object, const char *name);
/* NULL if absent or no string */
const char *json_text(const struct json *object, const char *name);
/* false: the item is NULL, or no integer of magnitude up to 2^53 */
bool json_integer(const struct json *item, int64_t *value);
/* adds the text as a JSON string, with its quotes */
void json_quote(struct text *out, const char *text);
/* adds the texts as a JSON list of strings */
void json_quote_list(struct text *out, const char *const *texts, size_t count);

#endif
