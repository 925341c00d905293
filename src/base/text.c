/* Formats the common conversions without vsnprintf, which takes several times as long. */
#include "base/text.h"
#include <stdio.h>
#include <string.h>

struct text text_new(struct arena *arena)
{
	return (struct text){ .arena = arena };
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

static void add_number(struct text *text, bool negative, unsigned long long number)
{
	char digits[24];
	size_t at = sizeof digits;
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	if (negative)
		digits[--at] = '-';
	text_add_bytes(text, digits + at, sizeof digits - at);
}

static void add_signed(struct text *text, long long number)
{
	add_number(text, number < 0,
	        number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number);
}

static void add_string(struct text *text, const char *string)
{
	string = string ? string : "(null)";
	text_add_bytes(text, string, strlen(string));
}

static void add_any(struct text *text, const char *format, va_list arguments)
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

/* The conversion at a '%' as one character: l for ld (PRId64), L for lld, Z for zu, 0 for any
 * other. */
static char conversion_at(const char *at)
{
	switch (at[1]) {
	case 's':
	case 'd':
	case 'c':
	case '%': return at[1];
	case 'l':
		if (at[2] == 'l')
			return at[3] == 'd' ? 'L' : 0;
		return at[2] == 'd' ? 'l' : 0;
	case 'z': return at[2] == 'u' ? 'Z' : 0;
	default: return 0;
	}
}

/* Handles the conversions of conversion_at; the rest of a format from another one on goes to
 * vsnprintf. */
void text_add_arguments(struct text *text, const char *format, va_list arguments)
{
	for (;;) {
		const char *at = format;
		while (*at && *at != '%')
			at++;
		text_add_bytes(text, format, (size_t)(at - format));
		if (!*at)
			return;
		char conversion = conversion_at(at);
		format = at + 2;
		if (conversion == 'Z' || conversion == 'l')
			format = at + 3;
		if (conversion == 'L')
			format = at + 4;
		switch (conversion) {
		case 's': add_string(text, va_arg(arguments, const char *)); break;
		case 'd': add_signed(text, va_arg(arguments, int)); break;
		case 'l': add_signed(text, va_arg(arguments, long)); break;
		case 'L': add_signed(text, va_arg(arguments, long long)); break;
		case 'Z': add_number(text, false, va_arg(arguments, size_t)); break;
		case 'c': text_add_bytes(text, (char[]){ (char)va_arg(arguments, int) }, 1); break;
		case '%': text_add_bytes(text, "%", 1); break;
		default: add_any(text, at, arguments); return;
		}
	}
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

void text_add_literal(struct text *text, const char *string)
{
	text_add(text, "\"");
	for (const char *c = string; *c; c++)
		if (strchr("\"\\?", *c) || (unsigned char)*c < 32 || *c == 127)
			text_add(text, "\\%03o", (unsigned)(unsigned char)*c);
		else
			text_add_bytes(text, c, 1);
	text_add(text, "\"");
}

/* The bytes of one character of UTF-8; 0: it is none.  Surrogates and longer forms than needed are
 * none. */
static int character_bytes(const unsigned char *at)
{
	static const struct {
		unsigned char low, high; /* of the first byte */
		unsigned char from, to;  /* of the second */
		int bytes;
	} forms[] = { { 0x01, 0x7f, 0, 0, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 } };
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (*at < forms[i].low || *at > forms[i].high)
			continue;
		bool good = forms[i].bytes == 1 || (at[1] >= forms[i].from && at[1] <= forms[i].to);
		for (int b = 2; b < forms[i].bytes && good; b++)
			good = at[b] >= 0x80 && at[b] <= 0xbf;
		return good ? forms[i].bytes : 0;
	}
	return 0;
}

bool text_is_utf8(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	for (int bytes; *at; at += bytes)
		if (!(bytes = character_bytes(at)))
			return false;
	return true;
}

bool text_same(const char *left, const char *right)
{
	return left == right || (left && right && !strcmp(left, right));
}
