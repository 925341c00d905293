/* Pragmas, which libclang leaves out of its tree: tokens `#` `pragma` of the function. */
#include "frontend/c_reader.h"
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
	{ "PIPELINE",
	        "is not needed: all innermost loops are pipelined, report.txt has the intervals" },
	{ "DATAFLOW", "is not needed: the statements are processes that run at once" },
	{ "INLINE", "is not needed: functions that are called stand in the place of the call" },
	{ "LOOP_TRIPCOUNT", "is not needed: the trip counts follow from the extents" },
	{ "DEPENDENCE", "is not needed: which iteration reads what another wrote is computed" },
	{ "INTERFACE",
	        "has no effect: arguments are in memory, behind AXI ports that the compiler "
	        "chooses" },
	{ "ARRAY_PARTITION", "has no effect: arrays have the banks that their accesses need" },
	{ "ARRAY_RESHAPE", "has no effect: arrays have the banks that their accesses need" },
	{ "BIND_STORAGE", "has no effect: an array's extent decides on the kind of its memory" },
	{ "STREAM", "has no effect: the depths of FIFOs are computed" },
};

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
static const char *unroll(struct c_reader *reader, unsigned offset, const char *text, size_t size)
{
	struct loop_search search = { .offset = offset };
	const char *factor = memchr(text, '=', size);
	const char *count = factor ? factor + 1 + strspn(factor + 1, " ") : "";
	int digits = (int)strspn(count, "0123456789");
	struct text asked = text_new(reader->arena);
	clang_visitChildren(reader->function, find_loop, &search);
	for (size_t i = 0; i < reader->region->statements.count; i++) {
		const struct region_statement *statement = &reader->region->statements.data[i];
		const struct poly_access *write = &statement->affine.write;
		int line = statement->location.line;
		bool inside = search.loops && statement->affine.dims >= search.loops &&
		        line >= (int)search.first && line <= (int)search.last;
		if (!inside || !digits || !is_lane_loop(reader, write, search.loops - 1))
			continue;
		const char *option = text_format(reader->arena, "%s_l%d:lanes=%.*s",
		        reader->region->arrays.data[write->array].name, line, digits, count);
		VEC_PUSH(reader->arena, &reader->region->unrolls, option);
		text_add(&asked, " --fix-kernel %s", option);
	}
	if (!digits)
		return "has no effect: it names no factor; lanes are chosen by the compiler";
	return asked.size
	        ? text_format(reader->arena, "is taken as%s, if that is possible", asked.data)
	        : "has no effect: lanes are along the loop of an array's last subscript";
}

static const char *why_not(const char *name)
{
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
	while (size && (text[size - 1] == '\r' || text[size - 1] == ' '))
		size--;
	const char *name = c_text(reader->arena, clang_getTokenSpelling(reader->unit, token[1]));
	bool unrolls = !strcasecmp(name, "UNROLL");
	const char *why = unrolls ? unroll(reader, offset, text, size) : why_not(name);
	struct region_note note = { c_location(reader, location),
		text_format(reader->arena, "#pragma %.*s %s", (int)size, text, why) };
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
