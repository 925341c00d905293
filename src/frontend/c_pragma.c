/* Pragmas, which libclang leaves out of its tree: tokens `#` `pragma` of the function. */
#include "frontend/c_reader.h"
#include "base/closest_name.h"
#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

static size_t line_end(const struct c_source *source, size_t at)
{
	while (at < source->size && source->text[at] != '\n')
		at++;
	return at;
}

struct directive {
	const char *name, *why;
};

/* What becomes of the wish of a pragma. */
static const struct directive directives[] = {
	{ "DATAFLOW", "is not needed: the statements are processes that run at once" },
	{ "INLINE", "is not needed: functions that are called stand in the place of the call" },
	{ "LOOP_TRIPCOUNT", "is not needed: the trip counts follow from the extents" },
	{ "DEPENDENCE", "is not needed: which iteration reads what another wrote is computed" },
	{ "INTERFACE",
	        "has no effect: arguments are in memory, behind AXI ports that the compiler "
	        "chooses" },
	{ "BIND_STORAGE", "has no effect: an array's extent decides on the kind of its memory" },
	{ "STREAM", "has no effect: the depths of FIFOs are computed" },
};

struct wish { /* a pragma */
	unsigned offset;
	const char *text; /* behind `#pragma`, to the end of the line */
};

/* --- its words --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_word(const char *text, size_t at, const char *word)
{
	size_t size = strlen(word);
	char before = at ? text[at - 1] : ' ';
	char after = strncasecmp(text + at, word, size) ? 'x' : text[at + size];
	return is_blank(before) && !isalnum((unsigned char)after) && after != '_';
}

/* Where the word stands; NULL: nowhere. */
static const char *find_word(const struct wish *wish, const char *word)
{
	for (size_t at = 0; wish->text[at]; at++)
		if (is_word(wish->text, at, word))
			return wish->text + at;
	return NULL;
}

/* What stands behind `key =`, up to a blank outside parentheses; NULL: nothing does. */
static const char *value_of(struct c_reader *reader, const struct wish *wish, const char *key)
{
	const char *at = find_word(wish, key);
	if (!at)
		return NULL;
	at += strlen(key);
	at += strspn(at, " \t");
	if (*at != '=')
		return NULL;
	at += 1 + strspn(at + 1, " \t");
	size_t size = 0;
	for (int open = 0; at[size] && (open || !is_blank(at[size])); size++)
		open += (at[size] == '(') - (at[size] == ')');
	return size ? text_copy(reader->arena, at, size) : NULL;
}

/* The number behind `key =`; 0: there is none; -1: it is no constant above 0. */
static int64_t number_of(struct c_reader *reader, const struct wish *wish, const char *key)
{
	const char *text = value_of(reader, wish, key);
	int64_t number = 0;
	if (!text)
		return 0;
	bool known = c_constant_text(reader, text, &number);
	return known && number > 0 && number <= INT32_MAX ? number : -1;
}

/* --- of loops --- */

struct loop_search {
	unsigned offset;      /* of the pragma */
	unsigned first, last; /* lines of the innermost loop around it */
	int loops;            /* around it */
};

static enum CXChildVisitResult find_loop(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct loop_search *search = data;
	(void)parent;
	if (clang_getCursorKind(cursor) != CXCursor_ForStmt)
		return CXChildVisit_Recurse;
	CXSourceRange extent = clang_getCursorExtent(cursor);
	unsigned lines[2];
	unsigned offsets[2];
	clang_getExpansionLocation(clang_getRangeStart(extent), NULL, &lines[0], NULL, &offsets[0]);
	clang_getExpansionLocation(clang_getRangeEnd(extent), NULL, &lines[1], NULL, &offsets[1]);
	if (offsets[0] > search->offset || offsets[1] < search->offset)
		return CXChildVisit_Continue;
	search->first = lines[0];
	search->last = lines[1];
	search->loops++;
	return CXChildVisit_Recurse;
}

static struct loop_search loop_around(struct c_reader *reader, const struct wish *wish)
{
	struct loop_search search = { .offset = wish->offset };
	clang_visitChildren(reader->function, find_loop, &search);
	return search;
}

/* The next statement from number `at` on that stands in the loop; NULL: none does. */
static struct region_statement *statement_in(
        struct c_reader *reader, const struct loop_search *search, size_t *at)
{
	while (search->loops && *at < reader->region->statements.count) {
		struct region_statement *statement = &reader->region->statements.data[(*at)++];
		int line = statement->location.line;
		if (statement->affine.dims >= search->loops && line >= (int)search->first &&
		        line <= (int)search->last)
			return statement;
	}
	return NULL;
}

/* Do elements that follow each other in the array come from this loop? Lanes are along it. */
static bool is_lane_loop(const struct c_reader *reader, const struct poly_access *write, int loop)
{
	int rank = reader->region->arrays.data[write->array].rank;
	for (int r = 0; r < rank; r++) {
		int64_t factor = write->subscript[r].coefficient[loop];
		if (r + 1 < rank ? factor != 0 : factor != 1)
			return false;
	}
	return rank > 0;
}

/* Asks for lanes of the kernels in the loop around a pragma; what becomes of that. */
static const char *unroll(struct c_reader *reader, const struct wish *wish)
{
	struct loop_search search = loop_around(reader, wish);
	int64_t factor = number_of(reader, wish, "factor");
	struct text asked = text_new(reader->arena);
	const struct region_statement *statement;
	bool varies = false;
	if (factor < 0)
		return "has no effect: its factor is no constant above 0";
	for (size_t i = 0; (statement = statement_in(reader, &search, &i));) {
		const struct poly_access *write = &statement->affine.write;
		int64_t lanes = factor ? factor : statement->trips[search.loops - 1];
		if (!is_lane_loop(reader, write, search.loops - 1))
			continue;
		varies = varies || !lanes;
		if (!lanes)
			continue;
		const char *option = text_format(reader->arena, "%s_l%d:lanes=%" PRId64,
		        reader->region->arrays.data[write->array].name, statement->location.line,
		        lanes);
		VEC_PUSH(reader->arena, &reader->region->unrolls, option);
		text_add(&asked, " --fix-kernel %s", option);
	}
	if (asked.size)
		return text_format(reader->arena, "is taken as%s, if that is possible", asked.data);
	return varies ? "has no effect: it names no factor, and the trip count varies"
	              : "has no effect: lanes are along the loop of an array's last subscript";
}

static const char *pipeline(struct c_reader *reader, const struct wish *wish)
{
	struct loop_search search = loop_around(reader, wish);
	int64_t interval = number_of(reader, wish, "II");
	struct region_statement *statement;
	if (interval < 0)
		return "has no effect: its II is no constant above 0";
	if (find_word(wish, "off"))
		return "has no effect: all innermost loops are pipelined";
	for (size_t i = 0; (statement = statement_in(reader, &search, &i));)
		statement->interval = interval;
	return interval ? "is compared with the interval that is built, in report.txt"
	                : "is not needed: all innermost loops are pipelined, report.txt has the "
	                  "intervals";
}

/* --- of arrays --- */

static struct region_array *find_array(struct c_reader *reader, const char *name)
{
	for (size_t i = 0; i < reader->region->arrays.count; i++)
		if (text_same(reader->region->arrays.data[i].name, name))
			return &reader->region->arrays.data[i];
	return NULL;
}

/* Keeps what is asked for, so that the report can set it beside what is built. */
static const char *partition(struct c_reader *reader, const struct wish *wish)
{
	const char *name = value_of(reader, wish, "variable");
	struct region_array *array = find_array(reader, name);
	int64_t factor = number_of(reader, wish, "factor");
	int64_t dim = number_of(reader, wish, "dim");
	struct closest_name nearest = { .wanted = name ? name : "" };
	for (size_t i = 0; i < reader->region->arrays.count; i++)
		closest_name_consider(&nearest, reader->region->arrays.data[i].name);
	if (!array)
		return text_format(reader->arena,
		        "has no effect: the function has no such array, the nearest is %s",
		        nearest.found);
	if (factor < 0)
		return "has no effect: its factor is no constant above 0";
	struct text asked = text_new(reader->arena);
	const char *kind = find_word(wish, "block") ? "block" : "complete";
	text_add(&asked, "%s", find_word(wish, "cyclic") ? "cyclic" : kind);
	if (factor)
		text_add(&asked, " factor=%" PRId64, factor);
	if (dim > 0)
		text_add(&asked, " dim=%" PRId64, dim);
	array->partition = asked.data;
	return "is compared with the banks that the accesses get, in report.txt";
}

static const char *outcome(struct c_reader *reader, const struct wish *wish, const char *name)
{
	if (!strcasecmp(name, "UNROLL"))
		return unroll(reader, wish);
	if (!strcasecmp(name, "PIPELINE"))
		return pipeline(reader, wish);
	if (!strcasecmp(name, "ARRAY_PARTITION") || !strcasecmp(name, "ARRAY_RESHAPE"))
		return partition(reader, wish);
	for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
		if (!strcasecmp(directives[i].name, name))
			return directives[i].why;
	return "has no effect: the schedule is chosen by the compiler, --fix-kernel sets it";
}

/* The rest of the line behind `# pragma`; token[1] names the wish. */
static void note_pragma(struct c_reader *reader, const CXToken *token)
{
	CXSourceLocation location = clang_getTokenLocation(reader->unit, *token);
	unsigned offset;
	clang_getSpellingLocation(location, NULL, NULL, NULL, &offset);
	const char *text = reader->source->text + offset;
	size_t size = line_end(reader->source, offset) - offset;
	while (size && (text[size - 1] == '\r' || is_blank(text[size - 1])))
		size--;
	struct wish wish = { offset, text_copy(reader->arena, text, size) };
	const char *name = c_text(reader->arena, clang_getTokenSpelling(reader->unit, token[1]));
	struct region_note note = { c_location(reader, location),
		text_format(
		        reader->arena, "#pragma %s %s", wish.text, outcome(reader, &wish, name)) };
	VEC_PUSH(reader->arena, &reader->region->notes, note);
}

void c_read_pragmas(struct c_reader *reader)
{
	CXToken *token;
	unsigned count;
	clang_tokenize(reader->unit, clang_getCursorExtent(reader->function), &token, &count);
	for (unsigned i = 0; i + 3 < count; i++) {
		const char *hash =
		        c_text(reader->arena, clang_getTokenSpelling(reader->unit, token[i]));
		if (!text_same(hash, "#"))
			continue;
		const char *pragma =
		        c_text(reader->arena, clang_getTokenSpelling(reader->unit, token[i + 1]));
		const char *kind =
		        c_text(reader->arena, clang_getTokenSpelling(reader->unit, token[i + 2]));
		if (text_same(pragma, "pragma") &&
		        (text_same(kind, "HLS") || text_same(kind, "ACCEL")))
			note_pragma(reader, &token[i + 2]);
	}
	clang_disposeTokens(reader->unit, token, count);
}
