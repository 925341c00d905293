/* Text buffers that grow in an arena, with printf formats. */
#ifndef STC_TEXT_H
#define STC_TEXT_H
#include "base/arena.h"
#include <stdarg.h>
#include <stdbool.h>

struct text {
	struct arena *arena;
	char *data;            /* ends in 0; NULL while nothing was added */
	size_t size, capacity; /* size without the final 0 */
};

struct text text_new(struct arena *arena);
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_arguments(struct text *text, const char *format, va_list arguments);
void text_add_bytes(struct text *text, const char *bytes, size_t size);
char *text_format(struct arena *arena, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
char *text_copy(struct arena *arena, const char *bytes, size_t size); /* with a final 0 */
/* Adds the text as a string literal of C, with its quotes: whatever it holds, it ends there. */
void text_add_literal(struct text *text, const char *string);
bool text_is_utf8(const char *text);
/* equal texts; NULL equals NULL */
bool text_same(const char *left, const char *right);

#endif
