/* Makes a failing C file smaller: drops statements, and loops and conditions with what is in them,
 * as long as it still fails. One statement, and one head of a block, a line. */
#ifndef REDUCE_C_H
#define REDUCE_C_H
#include "base/arena.h"
#include "base/text.h"
#include <string.h>

struct reduce_c {
	struct arena *arena;
	bool (*fails)(void *context, const char *text);
	void *context;
	int trials; /* how many are left */
};

static inline const char *reduce_c_line_end(const char *at)
{
	const char *end = strchr(at, '\n');
	return end ? end + 1 : at + strlen(at);
}

static inline int reduce_c_depth(const char *line, const char *end)
{
	int depth = 0;
	for (const char *c = line; c < end; c++)
		depth += (*c == '{' ? 1 : 0) - (*c == '}' ? 1 : 0);
	return depth;
}

/* The end of the statement or block that the line begins; NULL: the line closes a block. */
static inline const char *reduce_c_item_end(const char *line)
{
	const char *end = reduce_c_line_end(line);
	int depth = reduce_c_depth(line, end);
	bool closes = line[strspn(line, "\t ")] == '}';
	for (; depth > 0 && *end; end = reduce_c_line_end(end))
		depth += reduce_c_depth(end, reduce_c_line_end(end));
	return closes || depth < 0 ? NULL : end;
}

/* The text without [from, to) if it still fails, else NULL. */
static inline const char *reduce_c_without(
        struct reduce_c *r, const char *text, const char *from, const char *to)
{
	struct text less = text_new(r->arena);
	text_add(&less, "%.*s%s", (int)(from - text), text, to);
	r->trials--;
	return r->fails(r->context, less.data) ? less.data : NULL;
}

static inline const char *reduce_c(struct reduce_c *r, const char *text)
{
	for (bool smaller = true; smaller && r->trials > 0;) {
		smaller = false;
		for (const char *line = text; *line && r->trials > 0;) {
			const char *end = reduce_c_item_end(line);
			const char *less = end ? reduce_c_without(r, text, line, end) : NULL;
			size_t at = (size_t)(line - text);
			if (!less) {
				line = reduce_c_line_end(line);
				continue;
			}
			text = less;
			line = text + at;
			smaller = true;
		}
	}
	return text;
}
#endif
