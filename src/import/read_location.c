/* Reads locations. MLIR 19's C API cannot take a location apart, so it is printed, and the first
 * "file":line:column in it is used, with the name that stands around it. */
#include "import/read.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void append_text(MlirStringRef part, void *text)
{
	text_add_bytes(text, part.data, part.length);
}

const char *print_attr(struct arena *arena, MlirAttribute attribute)
{
	struct text text = text_new(arena);
	mlirAttributePrint(attribute, append_text, &text);
	return text.data ? text.data : "";
}

const char *print_type(struct arena *arena, MlirType type)
{
	struct text text = text_new(arena);
	mlirTypePrint(type, append_text, &text);
	return text.data ? text.data : "";
}

const char *copy_string(struct arena *arena, MlirStringRef string)
{
	return text_copy(arena, string.length ? string.data : "", string.length);
}

struct location_text {
	char data[2048];
	size_t size;
};

static void append_buffer(MlirStringRef part, void *data)
{
	struct location_text *buffer = data;
	size_t room = sizeof buffer->data - 1 - buffer->size;
	size_t size = part.length < room ? part.length : room;
	memcpy(buffer->data + buffer->size, part.data, size);
	buffer->size += size;
}

static const char *string_end(const char *start)
{
	const char *end = start;
	while (*end && *end != '"')
		end += *end == '\\' && end[1] ? 2 : 1;
	return end;
}

/* A string is a file name if `:12:34` follows. */
static bool parse_numbers(const char *text, int *line, int *column)
{
	char *end;
	if (text[0] != ':' || !isdigit((unsigned char)text[1]))
		return false;
	*line = (int)strtol(text + 1, &end, 10);
	if (end[0] != ':' || !isdigit((unsigned char)end[1]))
		return false;
	*column = (int)strtol(end + 1, NULL, 10);
	return true;
}

struct location parse_location(struct arena *arena, const char *file, const char *printed)
{
	const char *layer = NULL;
	for (const char *quote = strchr(printed, '"'); quote; quote = strchr(quote, '"')) {
		const char *end = string_end(quote + 1);
		struct location found = { 0 };
		if (!*end)
			break;
		if (parse_numbers(end + 1, &found.line, &found.column)) {
			size_t size = (size_t)(end - quote - 1);
			bool parsed_text = size == 1 && quote[1] == '-';
			found.file = parsed_text ? file : text_copy(arena, quote + 1, size);
			found.layer = layer;
			return found;
		}
		if (!layer && end[1] == '(') /* loc("layer"("file":12:34)) */
			layer = text_copy(arena, quote + 1, (size_t)(end - quote - 1));
		quote = end + 1;
	}
	return (struct location){ .file = file };
}

struct location read_location(struct reader *reader, MlirLocation location)
{
	const struct pointer_entry *known = pointer_find(&reader->locations, location.ptr);
	if (known)
		return *(const struct location *)known->value;
	struct location_text buffer = { .size = 0 };
	mlirLocationPrint(location, append_buffer, &buffer);
	buffer.data[buffer.size] = 0;
	struct location *result = ARENA_NEW(reader->arena, struct location);
	*result = parse_location(reader->arena, reader->file, buffer.data);
	pointer_set(&reader->locations, location.ptr, result);
	return *result;
}

void read_error(struct reader *reader, const char *format, ...)
{
	va_list arguments;
	struct text text = text_new(reader->arena);
	va_start(arguments, format);
	text_add_arguments(&text, format, arguments);
	va_end(arguments);
	reader->failed = true;
	diag_error(reader->diag, reader->at, "%s", text.data ? text.data : "");
}
