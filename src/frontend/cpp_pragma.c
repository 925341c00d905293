/* Pragmas of HLS C++: read from the tokens of a function, since libclang leaves them out of its
 * tree, and kept with the innermost loop that they stand in. */
#include "frontend/cpp_internal.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PORTS_MANY = 1024 /* reading ports of a memory that has one for each reader */ };

static unsigned offset_of(CXSourceLocation location)
{
	unsigned offset;
	clang_getExpansionLocation(location, NULL, NULL, NULL, &offset);
	return offset;
}

static unsigned begin_of(CXCursor cursor)
{
	return offset_of(clang_getRangeStart(clang_getCursorExtent(cursor)));
}

struct owner_search {
	unsigned offset, owner;
};

static enum CXChildVisitResult find_owner(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct owner_search *search = data;
	(void)parent;
	if (clang_getCursorKind(cursor) != CXCursor_ForStmt)
		return CXChildVisit_Recurse;
	unsigned end = offset_of(clang_getRangeEnd(clang_getCursorExtent(cursor)));
	if (begin_of(cursor) > search->offset || end < search->offset)
		return CXChildVisit_Continue;
	search->owner = begin_of(cursor);
	return CXChildVisit_Recurse;
}

static const char *in_capitals(struct arena *arena, const char *name)
{
	char *copy = text_copy(arena, name, strlen(name));
	for (char *c = copy; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return copy;
}

static const char *const known[] = { "PIPELINE", "UNROLL", "ARRAY_PARTITION", "ARRAY_RESHAPE",
	"BIND_STORAGE", "RESOURCE", "INTERFACE", "DATAFLOW", "INLINE", "LOOP_TRIPCOUNT",
	"DEPENDENCE", "STREAM", "LOOP_FLATTEN" };

static void note_unknown(struct cpp_reader *reader, const struct cpp_pragma *pragma)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (text_same(known[i], pragma->name))
			return;
	struct cpp_note note = { pragma->location,
		text_format(reader->c.arena, "#pragma HLS %s is not modelled", pragma->name) };
	VEC_PUSH(reader->c.arena, &reader->design->notes, note);
}

static const char *spelling(struct cpp_reader *reader, CXToken token)
{
	return c_text(reader->c.arena, clang_getTokenSpelling(reader->c.unit, token));
}

/* What a token of a pragma says: behind `factor =` and the like a macro counts as its number. */
static const char *word_of(struct cpp_reader *reader, const CXToken *token, unsigned at)
{
	static const char *const numbers[] = { "factor", "ii", "dim", "depth", "min", "max",
		"latency", "distance" };
	const char *word = spelling(reader, token[at]);
	bool value = at > 2 && clang_getTokenKind(token[at]) == CXToken_Identifier &&
	        text_same(spelling(reader, token[at - 1]), "=");
	const char *key = value ? spelling(reader, token[at - 2]) : "";
	int64_t number;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!strcasecmp(key, numbers[i]) && c_constant_text(&reader->c, word, &number))
			return text_format(reader->c.arena, "%" PRId64, number);
	return word;
}

/* The words of the line behind `HLS`, from token `at` on. */
static struct cpp_pragma pragma_at(
        struct cpp_reader *reader, CXCursor function, const CXToken *token, unsigned count)
{
	struct cpp_pragma pragma = { .location = c_location(&reader->c,
		                             clang_getTokenLocation(reader->c.unit, token[0])) };
	struct text text = text_new(reader->c.arena);
	text_add(&text, " ");
	for (unsigned i = 1; i < count; i++) {
		struct location at =
		        c_location(&reader->c, clang_getTokenLocation(reader->c.unit, token[i]));
		if (at.line != pragma.location.line)
			break;
		text_add(&text, "%s ", word_of(reader, token, i));
	}
	struct owner_search search = { offset_of(clang_getTokenLocation(reader->c.unit, token[0])),
		begin_of(function) };
	clang_visitChildren(function, find_owner, &search);
	pragma.name = in_capitals(reader->c.arena,
	        c_text(reader->c.arena, clang_getTokenSpelling(reader->c.unit, token[0])));
	pragma.text = text.data;
	pragma.owner = search.owner;
	return pragma;
}

const struct cpp_pragmas *cpp_pragmas_of(struct cpp_reader *reader, CXCursor function)
{
	const char *key = c_key(reader->c.arena, function);
	struct cpp_pragmas *found = map_get(&reader->pragmas, key);
	if (found)
		return found;
	CXToken *token;
	unsigned count;
	found = ARENA_NEW(reader->c.arena, struct cpp_pragmas);
	map_set(&reader->pragmas, key, found);
	clang_tokenize(reader->c.unit, clang_getCursorExtent(function), &token, &count);
	for (unsigned i = 0; i + 3 < count; i++) {
		const char *word[3];
		for (unsigned j = 0; j < 3; j++)
			word[j] = c_text(reader->c.arena,
			        clang_getTokenSpelling(reader->c.unit, token[i + j]));
		if (!text_same(word[0], "#") || !text_same(word[1], "pragma") ||
		        strcasecmp(word[2], "HLS") != 0)
			continue;
		struct cpp_pragma pragma =
		        pragma_at(reader, function, &token[i + 3], count - i - 3);
		note_unknown(reader, &pragma);
		VEC_PUSH(reader->c.arena, &found->list, pragma);
	}
	clang_disposeTokens(reader->c.unit, token, count);
	return found;
}

const struct cpp_pragma *cpp_find_pragma(
        const struct cpp_reader *reader, CXCursor owner, const char *name)
{
	unsigned offset = begin_of(owner);
	for (size_t i = 0; i < reader->here->list.count; i++) {
		const struct cpp_pragma *pragma = &reader->here->list.data[i];
		if (pragma->owner == offset && text_same(pragma->name, name))
			return pragma;
	}
	return NULL;
}

static bool same_word(const char *text, const char *word, size_t size)
{
	return !strncasecmp(text, word, size) && text[size] == ' ';
}

/* The word behind ` key = `. */
static const char *value_of(const struct cpp_pragma *pragma, const char *key)
{
	size_t size = strlen(key);
	for (const char *at = pragma ? strchr(pragma->text, ' ') : NULL; at;
	        at = strchr(at + 1, ' '))
		if (same_word(at + 1, key, size) && at[size + 2] == '=' && at[size + 3] == ' ')
			return at + size + 4;
	return NULL;
}

int64_t cpp_pragma_number(const struct cpp_pragma *pragma, const char *key, int64_t otherwise)
{
	const char *text = value_of(pragma, key);
	char *end;
	if (!text)
		return otherwise;
	long long number = strtoll(text, &end, 10);
	return end == text || number < 0 ? otherwise : number;
}

const char *cpp_pragma_word(
        struct cpp_reader *reader, const struct cpp_pragma *pragma, const char *key)
{
	const char *text = value_of(pragma, key);
	return text ? text_copy(reader->c.arena, text, strcspn(text, " ")) : NULL;
}

bool cpp_pragma_has(const struct cpp_pragma *pragma, const char *word)
{
	size_t size = strlen(word);
	for (const char *at = strchr(pragma->text, ' '); at; at = strchr(at + 1, ' '))
		if (same_word(at + 1, word, size))
			return true;
	return false;
}

/* --- arrays --- */

static void set_partition(const struct cpp_pragma *pragma, struct cpp_array *array, int given)
{
	int64_t dim = cpp_pragma_number(pragma, "dim", 1);
	int64_t factor = cpp_pragma_number(pragma, "factor", 1);
	enum cpp_partition kind = cpp_pragma_has(pragma, "cyclic") ? CPP_CYCLIC
	        : cpp_pragma_has(pragma, "block")                  ? CPP_BLOCK
	                                                           : CPP_COMPLETE;
	for (int i = 0; i < array->rank; i++) {
		bool meant = dim == 0 ? i >= given : i == dim - 1 + given;
		if (!meant)
			continue;
		array->partition[i] = kind;
		array->factor[i] = kind == CPP_COMPLETE ? array->extent[i] : factor;
		if (array->factor[i] < 1)
			array->factor[i] = 1;
	}
}

/* Ports of a kind of memory that a pragma names, as ram_s2p or core=RAM_1P_BRAM. */
static void set_ports(
        struct cpp_reader *reader, const struct cpp_pragma *pragma, struct cpp_array *array)
{
	const char *text = in_capitals(reader->c.arena, pragma->text);
	array->bound = true;
	array->shared_ports = 2;
	array->read_ports = array->write_ports = 0;
	if (strstr(text, "ROM_1P") || strstr(text, "RAM_1P"))
		array->shared_ports = 1;
	if (strstr(text, "RAM_S2P") || strstr(text, "RAM_1WNR")) {
		array->shared_ports = 0;
		array->read_ports = strstr(text, "1WNR") ? PORTS_MANY : 1;
		array->write_ports = 1;
	}
}

static void apply(struct cpp_reader *reader, const struct cpp_pragma *pragma,
        struct cpp_array *array, int given)
{
	const char *name = pragma->name;
	if (text_same(name, "ARRAY_PARTITION") || text_same(name, "ARRAY_RESHAPE"))
		set_partition(pragma, array, given);
	if (text_same(name, "BIND_STORAGE") || text_same(name, "RESOURCE"))
		set_ports(reader, pragma, array);
	if (text_same(name, "STREAM"))
		array->depth = cpp_pragma_number(pragma, "depth", 2);
	if (text_same(name, "DEPENDENCE"))
		array->independent = cpp_pragma_has(pragma, "false");
	if (text_same(name, "INTERFACE") && cpp_pragma_has(pragma, "m_axi")) {
		array->storage = CPP_AXI;
		array->bundle = cpp_pragma_word(reader, pragma, "bundle");
	}
	if (text_same(name, "INTERFACE") && cpp_pragma_has(pragma, "axis"))
		array->storage = CPP_STREAM;
}

void cpp_array_pragmas(struct cpp_reader *reader, int array, const char *name, int given)
{
	for (size_t i = 0; i < reader->here->list.count; i++) {
		const struct cpp_pragma *pragma = &reader->here->list.data[i];
		const char *variable = cpp_pragma_word(reader, pragma, "variable");
		if (!variable)
			variable = cpp_pragma_word(reader, pragma, "port");
		if (text_same(variable, name))
			apply(reader, pragma, &reader->design->arrays.data[array], given);
	}
}
