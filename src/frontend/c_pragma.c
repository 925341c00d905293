/* Pragmas, which libclang leaves out of its tree: tokens `#` `pragma` of the function. */
#include "frontend/c_reader.h"
#include <string.h>

static size_t line_end(const struct c_source *source, size_t at)
{
	while (at < source->size && source->text[at] != '\n')
		at++;
	return at;
}

/* The rest of the line behind `# pragma`. */
static void note_pragma(struct c_reader *reader, CXToken token)
{
	CXSourceLocation location = clang_getTokenLocation(reader->unit, token);
	unsigned offset;
	clang_getSpellingLocation(location, NULL, NULL, NULL, &offset);
	const char *text = reader->source->text + offset;
	size_t size = line_end(reader->source, offset) - offset;
	while (size && (text[size - 1] == '\r' || text[size - 1] == ' '))
		size--;
	struct region_note note = { c_location(reader, location),
		text_format(reader->arena,
		        "#pragma %.*s has no effect: the schedule is chosen by the "
		        "compiler, --fix-kernel sets it",
		        (int)size, text) };
	VEC_PUSH(reader->arena, &reader->region->notes, note);
}

void c_read_pragmas(struct c_reader *reader)
{
	CXToken *token;
	unsigned count;
	clang_tokenize(reader->unit, clang_getCursorExtent(reader->function), &token, &count);
	for (unsigned i = 0; i + 2 < count; i++) {
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
			note_pragma(reader, token[i + 2]);
	}
	clang_disposeTokens(reader->unit, token, count);
}
