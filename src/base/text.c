#include "base/text.h"
#include <stdio.h>
#include <string.h>

struct text text_new(struct arena *arena)
{
	return (struct text){.arena = arena};
}

static void reserve(struct text *text, size_t more)
{
	size_t need = text->size + more + 1;
	if (need <= text->capacity)
		return;
	size_t capacity = text->capacity ? text->capacity : 64;
	while (capacity < need)
		capacity *= 2;
	char *data = arena_alloc(text->arena, capacity);
	if (text->size)
		memcpy(data, text->data, text->size);
	text->data = data;
	text->capacity = capacity;
}

void text_add_bytes(struct text *text, const char *bytes, size_t size)
{
	reserve(text, size);
	if (size)
		memcpy(text->data + text->size, bytes, size);
	text->size += size;
	text->data[text->size] = 0;
}

void text_add_arguments(struct text *text, const char *format, va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	reserve(text, 64);
	size_t room = text->capacity - text->size;
	int size = vsnprintf(text->data + text->size, room, format, arguments);
	if (size >= 0 && (size_t)size >= room) {
		reserve(text, (size_t)size);
		vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
	}
	va_end(again);
	if (size > 0)
		text->size += (size_t)size;
}

void text_add(struct text *text, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	text_add_arguments(text, format, arguments);
	va_end(arguments);
}

char *text_format(struct arena *arena, const char *format, ...)
{
	struct text text = text_new(arena);
	va_list arguments;
	va_start(arguments, format);
	text_add_arguments(&text, format, arguments);
	va_end(arguments);
	return text.data;
}

char *text_copy(struct arena *arena, const char *bytes, size_t size)
{
	char *copy = arena_alloc(arena, size + 1);
	if (size)
		memcpy(copy, bytes, size);
	return copy;
}

bool text_same(const char *left, const char *right)
{
	return left == right || (left && right && !strcmp(left, right));
}
