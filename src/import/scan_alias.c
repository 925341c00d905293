/* Limits the expansion of aliases. Aliases of aliases (`#a1 = [#a0, #a0]`, `#a2 = [#a1, #a1]` …)
 * stand for text that doubles with every line, and a chain of them nests without brackets. Both are
 * measured at each `#NAME` and `!NAME`, before MLIR or the printer expands any of them. */
#include "import/read.h"
#include <ctype.h>
#include <string.h>

#define EXPANSION_MOST (INT64_C(1) << 24)
#define CHAIN_MOST 1000

struct alias {
	int64_t size; /* number of aliases in its full expansion */
	int depth;
};

size_t scan_identifier(const char *text)
{
	size_t size = 0;
	while (isalnum((unsigned char)text[size]) || (text[size] && strchr("_$.-", text[size])))
		size++;
	return size;
}

static bool is_definition(const char *after)
{
	after += scan_spaces(after);
	return after[0] == '=' && after[1] != '=';
}

static void measure(struct alias *alias, const struct alias *part)
{
	alias->size += part->size;
	if (alias->depth <= part->depth)
		alias->depth = part->depth + 1;
}

/* false if the alias being defined becomes too large. */
bool scan_alias(struct alias_scan *scan, const char *text, bool outermost)
{
	size_t size = scan_identifier(text + 1);
	if (size == 0)
		return true;
	const char *name = text_copy(scan->arena, text, size + 1);
	if (outermost && is_definition(text + 1 + size)) {
		scan->current = ARENA_NEW(scan->arena, struct alias);
		scan->current->size = 1;
		map_set(&scan->aliases, name, scan->current);
		return true;
	}
	const struct alias *part = map_get(&scan->aliases, name);
	if (part && scan->current && part != scan->current)
		measure(scan->current, part);
	return !scan->current ||
	        (scan->current->size <= EXPANSION_MOST && scan->current->depth <= CHAIN_MOST);
}
