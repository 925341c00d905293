/* Expands aliases (`#map = affine_map<…>` at the start of a line, as mlir-opt prints them) in the
 * text of stream types, which MLIR does not look into. */
#include "import/read.h"
#include <ctype.h>
#include <string.h>

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_$.-", c));
}

static size_t word_size(const char *text)
{
	size_t size = 0;
	while (is_word(text[size]))
		size++;
	return size;
}

/* One line `#NAME = TEXT`. */
static void add_alias(struct reader *reader, const char *line, const char *end)
{
	size_t size = word_size(line + 1);
	const char *value = line + 1 + size;
	while (value < end && (*value == ' ' || *value == '='))
		value++;
	if (size && value < end)
		map_set(&reader->aliases, text_copy(reader->arena, line + 1, size),
		        text_copy(reader->arena, value, (size_t)(end - value)));
}

static void scan_aliases(struct reader *reader)
{
	reader->aliases_scanned = true;
	for (const char *line = reader->text, *end; *line; line = *end ? end + 1 : end) {
		end = strchr(line, '\n');
		end = end ? end : line + strlen(line);
		if (*line == '#')
			add_alias(reader, line, end);
	}
}

const char *resolve_aliases(struct reader *reader, const char *text)
{
	struct text result = text_new(reader->arena);
	if (!strchr(text, '#'))
		return text;
	if (!reader->aliases_scanned)
		scan_aliases(reader);
	while (*text) {
		size_t plain = strcspn(text, "#");
		text_add_bytes(&result, text, plain);
		text += plain;
		if (!*text)
			break;
		size_t size = word_size(text + 1);
		const char *value =
		        map_get(&reader->aliases, text_copy(reader->arena, text + 1, size));
		text_add(&result, "%s", value ? value : "#");
		text += value ? size + 1 : 1;
	}
	return result.data;
}
