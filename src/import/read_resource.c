/* Reads the blobs of dense_resource attributes: `{-# dialect_resources: { builtin: { KEY: "0x…", …
 * } } } #-}` at the end of the text. The first four bytes of a blob are its alignment, little
 * endian. Keys are found once; a blob is decoded when it is used. */
#include "import/read.h"
#include <ctype.h>
#include <string.h>

static int digit(char c)
{
	const char *found = c ? strchr("0123456789abcdef", tolower((unsigned char)c)) : NULL;
	return found ? (int)(found - "0123456789abcdef") : -1;
}

static const char *last_section(const struct reader *reader)
{
	for (size_t at = reader->size; at >= 3; at--)
		if (!memcmp(reader->text + at - 3, "{-#", 3))
			return reader->text + at;
	return NULL;
}

static bool is_key(char c)
{
	return isalnum((unsigned char)c) || strchr("_-.$", c);
}

/* The key before `colon`: an identifier or a string. */
static const char *key_before(struct arena *arena, const char *start, const char *colon)
{
	const char *end = colon;
	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	bool quoted = end > start && end[-1] == '"';
	end -= quoted;
	const char *first = end;
	while (first > start && (quoted ? first[-1] != '"' : first[-1] && is_key(first[-1])))
		first--;
	return text_copy(arena, first, (size_t)(end - first));
}

static void add_resource(struct reader *reader, const char *key, const char *hex, size_t digits)
{
	if (digits < 10 || hex[0] != '0' || hex[1] != 'x')
		return;
	struct resource *resource = ARENA_NEW(reader->arena, struct resource);
	*resource = (struct resource){ .hex = hex + 10, .bytes = (digits - 10) / 2 };
	map_set(&reader->resources, key, resource);
}

static void scan_resources(struct reader *reader)
{
	const char *start = last_section(reader);
	const char *end = reader->text + reader->size;
	reader->resources_scanned = true;
	for (const char *at = start; at && at < end; at++) {
		if (*at != ':')
			continue;
		const char *value = at + 1;
		while (value < end && isspace((unsigned char)*value))
			value++;
		if (*value != '"')
			continue;
		const char *close = memchr(value + 1, '"', (size_t)(end - value - 1));
		if (!close)
			return;
		add_resource(reader, key_before(reader->arena, start, at), value + 1,
		        (size_t)(close - value - 1));
		at = close;
	}
}

bool read_resource(struct reader *reader, const char *key, size_t bytes, struct attr *result)
{
	if (!reader->resources_scanned)
		scan_resources(reader);
	const struct resource *resource = map_get(&reader->resources, key);
	if (!resource) {
		read_error(reader, "resource %s is not in the file", key);
		return diag_note(reader->diag,
		        "accepted is a blob of %zu bytes in the section `{-# dialect_resources: { "
		        "builtin: { … } } #-}`",
		        bytes);
	}
	if (resource->bytes != bytes) {
		read_error(reader, "resource %s has %zu bytes", key, resource->bytes);
		return diag_note(reader->diag, "its type needs %zu bytes", bytes);
	}
	unsigned char *data = arena_alloc(reader->arena, bytes + 1);
	result->data = data;
	for (size_t i = 0; i < bytes; i++) {
		int high = digit(resource->hex[2 * i]);
		int low = digit(resource->hex[2 * i + 1]);
		if (high < 0 || low < 0)
			return read_error(reader, "resource %s is not hexadecimal", key), false;
		data[i] = (unsigned char)(high * 16 + low);
	}
	return true;
}
