/* Rejects values that are used before they are defined. If the text has an error further on, MLIR
 * 19's parser destroys such a text in an order that writes to freed memory if the value is defined
 * in another region. Names end with the braces in which they are defined. A first `%NAME` is a
 * definition if `=` or `:` follows, also after a list of names (`%a, %b = `, `(%i, %j) = `, `(%i,
 * %j) in`); MLIR handles those that are taken for definitions wrongly. */
#include "import/read.h"
#include <ctype.h>
#include <string.h>

struct name_scope {
	bool over;
};

struct name_scan name_scan_new(struct arena *arena)
{
	struct name_scan scan = { .arena = arena, .names = map_new(arena) };
	VEC_PUSH(arena, &scan.scopes, ARENA_NEW(arena, struct name_scope));
	return scan;
}

static const char *skip_name(const char *text)
{
	return text + 1 + scan_identifier(text + 1);
}

/* `:2`, the number of results. */
static const char *skip_count(const char *text)
{
	const char *at = text + scan_spaces(text);
	return *at == ':' && isdigit((unsigned char)at[1]) ? at + 1 + strspn(at + 1, "0123456789")
	                                                   : text;
}

static bool is_definition(const char *after)
{
	after += scan_spaces(after);
	if (*after == ':')
		return true;
	after = skip_count(after);
	for (after += scan_spaces(after);
	        after[0] == ',' && after[1 + scan_spaces(after + 1)] == '%';
	        after += scan_spaces(after))
		after = skip_count(skip_name(after + 1 + scan_spaces(after + 1)));
	if (*after == ')')
		after += 1 + scan_spaces(after + 1);
	return (after[0] == '=' && after[1] != '=') || !strncmp(after, "in ", 3);
}

void scan_brace(struct name_scan *scan, char brace)
{
	if (brace == '{')
		VEC_PUSH(scan->arena, &scan->scopes, ARENA_NEW(scan->arena, struct name_scope));
	if (brace == '}' && scan->scopes.count > 1)
		scan->scopes.data[--scan->scopes.count]->over = true;
}

bool scan_name(struct name_scan *scan, const char *text)
{
	const char *after = skip_name(text);
	const char *name = text_format(scan->arena, "%.*s", (int)(after - text), text);
	const struct name_scope *scope = map_get(&scan->names, name);
	if (after == text + 1 || (scope && !scope->over))
		return true;
	map_set(&scan->names, name, scan->scopes.data[scan->scopes.count - 1]);
	return is_definition(after);
}
