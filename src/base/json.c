/* Copies cJSON's tree to an arena. */
#include "base/json.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#define DEPTH_MOST 64

static enum json_kind kind_of(const cJSON *item)
{
	if (cJSON_IsBool(item))
		return JSON_BOOL;
	if (cJSON_IsNumber(item))
		return JSON_NUMBER;
	if (cJSON_IsString(item))
		return JSON_STRING;
	if (cJSON_IsArray(item))
		return JSON_ARRAY;
	return cJSON_IsObject(item) ? JSON_OBJECT : JSON_NULL;
}

/* NULL: nested too deep. */
static struct json *copy(struct arena *arena, const cJSON *from, int depth)
{
	if (depth > DEPTH_MOST)
		return NULL;
	struct json *json = ARENA_NEW(arena, struct json);
	struct json **last = &json->first;
	json->kind = kind_of(from);
	json->name = from->string ? text_copy(arena, from->string, strlen(from->string)) : NULL;
	json->number = cJSON_IsNumber(from) ? from->valuedouble : (double)cJSON_IsTrue(from);
	json->text = cJSON_IsString(from)
	        ? text_copy(arena, from->valuestring, strlen(from->valuestring))
	        : NULL;
	if (json->kind != JSON_ARRAY && json->kind != JSON_OBJECT)
		return json;
	for (const cJSON *item = from->child; item; item = item->next, json->count++) {
		*last = copy(arena, item, depth + 1);
		if (!*last)
			return NULL;
		last = &(*last)->next;
	}
	return json;
}

const struct json *json_parse(struct arena *arena, const char *text, size_t size, size_t *offset)
{
	const char *end = text;
	errno = 0;
	cJSON *parsed = cJSON_ParseWithLengthOpts(text, size, &end, false);
	if (!parsed && errno == ENOMEM) /* else its answer is that of a broken text */
		arena_exhausted(arena, size);
	const char *rest = end;
	while (parsed && rest < text + size && strchr(" \n\r\t", *rest)) /* a 0 counts as space */
		rest++;
	const struct json *json = parsed && rest == text + size ? copy(arena, parsed, 0) : NULL;
	cJSON_Delete(parsed);
	if (offset)
		*offset = (size_t)(rest - text);
	return json;
}

const struct json *json_get(const struct json *object, const char *name)
{
	if (!object || object->kind != JSON_OBJECT)
		return NULL;
	for (const struct json *item = object->first; item; item = item->next)
		if (!strcmp(item->name, name))
			return item;
	return NULL;
}

const char *json_text(const struct json *object, const char *name)
{
	const struct json *item = json_get(object, name);
	return item ? item->text : NULL;
}

bool json_integer(const struct json *item, int64_t *value)
{
	if (!item || item->kind != JSON_NUMBER ||
	        !(item->number >= -9007199254740992.0 && item->number <= 9007199254740992.0))
		return false;
	*value = (int64_t)item->number;
	return (double)*value == item->number;
}

void json_quote(struct text *out, const char *text)
{
	text_add(out, "\"");
	for (const char *c = text; *c; c++) {
		if (*c == '"' || *c == '\\')
			text_add(out, "\\%c", *c);
		else if ((unsigned char)*c < 32)
			text_add(out, "\\u%04x", (unsigned)(unsigned char)*c);
		else
			text_add_bytes(out, c, 1);
	}
	text_add(out, "\"");
}

void json_quote_list(struct text *out, const char *const *texts, size_t count)
{
	text_add(out, "[");
	for (size_t i = 0; i < count; i++) {
		text_add(out, "%s", i ? ", " : "");
		json_quote(out, texts[i]);
	}
	text_add(out, "]");
}
