/* Fuzzes itensor types: a mutated type must be refused with a diagnostic or read, never crash, and
 * read back from its text as the same type.  Every two successive types are compared: equality must
 * be symmetric, and a reorder buffer as large in the other direction.  Usage: fuzz_itensor N SEED
 * FILE …, one type a line. */
#include "import/import.h"
#include "itensor/itensor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fuzz {
	struct arena *arena;
	struct guard guard;
	struct diag diag;
	struct module *module;
};

static void broken(const char *what, const char *text)
{
	fprintf(stderr, "%s: %s\n", what, text);
	abort();
}

static const struct type *read_one(struct fuzz *fuzz, const char *text)
{
	int before = fuzz->diag.count;
	const struct type *type = import_itensor(fuzz->module, &fuzz->diag, "type", text);
	if (!type && fuzz->diag.count == before && before < DIAG_MOST)
		broken("refused without a diagnostic", text);
	if (!type || itensor_fault(fuzz->arena, type))
		return NULL;
	if (import_itensor(fuzz->module, &fuzz->diag, "again", type->text) != type)
		broken("printed, it reads back as another type", type->text);
	return type;
}

static void compare(struct fuzz *fuzz, const struct type *left, const struct type *right)
{
	struct walk from = walk_normal(fuzz->arena, itensor_walk(fuzz->arena, left)),
	            to = walk_normal(fuzz->arena, itensor_walk(fuzz->arena, right));
	bool same = walk_same(from, to);
	if (same != walk_same(to, from))
		broken("the same in one direction only", left->text);
	if (same)
		return;
	struct reorder forward = walk_reorder(fuzz->arena, from, to);
	struct reorder backward = walk_reorder(fuzz->arena, to, from);
	if (!forward.why != !backward.why ||
	        (!forward.why && (forward.bytes < 1 || forward.bytes != backward.bytes)))
		broken("another buffer in the other direction",
		        text_format(fuzz->arena, "%s and %s", left->text, right->text));
	walk_mismatch(fuzz->arena, from, to);
}

static void run(char *text, size_t size)
{
	(void)size;
	struct fuzz *fuzz = calloc(1, sizeof *fuzz);
	fuzz->arena = arena_new(&fuzz->guard);
	if (setjmp(fuzz->guard.leave))
		broken("left through the guard", fuzz->guard.message);
	fuzz->diag.arena = fuzz->arena;
	fuzz->module = module_new(fuzz->arena, &fuzz->guard, &fuzz->diag, LEVEL_STREAM);
	const struct type *last = NULL;
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		const struct type *type = read_one(fuzz, line);
		if (type && last)
			compare(fuzz, last, type);
		last = type;
	}
	arena_free(fuzz->arena);
	free(fuzz);
}

static const char *const words[] = {
	"0",
	"-1",
	"1",
	"2",
	"7",
	"4294967296",
	"9223372036854775807",
	"f32",
	"i4",
	"index",
	"vector<4x2xf32>",
	"vector<2xf32>",
	"vector<0xf32>",
	"tensor<4xf32>",
	"[4, 2]",
	"[0, 3]",
	"d0",
	"d1",
	"d0 + d1",
	"d0 * 2",
	"affine_map<(d0, d1) -> (d0, d1)>",
	"affine_map<(d0) -> (d0 mod 2)>",
	"{symbol = \"s\", most = 4}",
	"{}",
	"[]",
	", ",
	"plus = 3",
	"tile = 0",
	"\"t\"",
};

#define FUZZ_NAME "fuzz_itensor"
#include "driver.h"
