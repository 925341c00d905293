/* Checks that a text starts as MLIR does. For other files the parser would only report the first
 * token that it cannot read. */
#include "import/read.h"
#include <ctype.h>
#include <string.h>

#define SHOWN_MOST 24 /* characters of a line shown in the message */

/* Skips spaces and comments. */
static const char *first_token(const char *text, struct location *at)
{
	const char *line = text;
	for (;; text++) {
		if (text[0] == '/' && text[1] == '/')
			text += strcspn(text, "\n");
		if (!*text || !strchr(" \t\r\n", *text))
			break;
		if (*text != '\n')
			continue;
		line = text + 1;
		at->line++;
	}
	at->column = (int)(text - line) + 1;
	return text;
}

/* `#NAME =` or `!NAME =`; `%NAME =`, `%NAME:2 =` or `%NAME, …`. */
static bool is_defined(const char *text, const char *follows)
{
	size_t size = scan_identifier(text + 1);
	text += 1 + size;
	text += scan_spaces(text);
	return size && *text && strchr(follows, *text);
}

/* The only operation that may be written without its dialect's name is builtin.module. */
static bool is_operation(const char *text)
{
	size_t size = scan_identifier(text);
	return (size == 6 && !strncmp(text, "module", size)) || memchr(text, '.', size);
}

/* Brackets are accepted here: scan.c counts them. */
static bool begins_well(const char *text)
{
	switch (*text) {
	case 0:
	case '(': return true;
	case '#':
	case '!': return is_defined(text, "=");
	case '%': return is_defined(text, "=:,");
	case '"': return isalpha((unsigned char)text[1]) || text[1] == '_';
	case '{': return text[1] == '-' && text[2] == '#';
	default: return (isalpha((unsigned char)*text) || *text == '_') && is_operation(text);
	}
}

static int shown(const char *text)
{
	int size = 0;
	while (size < SHOWN_MOST && isprint((unsigned char)text[size]))
		size++;
	while (size && text[size - 1] == ' ')
		size--;
	return size;
}

bool scan_start(struct diag *diag, const char *file, const char *text)
{
	struct location at = { .file = file, .line = 1, .column = 1 };
	if (!strncmp(text, "ML\xefR", 4))
		return diag_error(diag, at, "this is MLIR bytecode"),
		       diag_note(
		               diag, "accepted is MLIR text; `mlir-opt` turns bytecode into text");
	const char *first = first_token(text, &at);
	if (begins_well(first))
		return true;
	if (isprint((unsigned char)*first))
		diag_error(diag, at, "this is no MLIR text: it begins with '%.*s'", shown(first),
		        first);
	else
		diag_error(diag, at, "this is no MLIR text: it begins with the byte 0x%02X",
		        (unsigned)(unsigned char)*first);
	return diag_note(diag, SCAN_ACCEPTED);
}
