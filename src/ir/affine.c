/* Affine maps: evaluation and the text that MLIR prints for them. */
#include "ir/affine.h"
#include <inttypes.h>
#include <string.h>

int64_t *affine_rows(struct arena *arena, int dims, int results)
{
	return ARENA_ARRAY(arena, int64_t, (size_t)(dims + 1) * (size_t)results);
}

/* Overflow wraps (no undefined behavior); the verifier has checked ranges where they matter. */
int64_t affine_apply(struct affine_map map, int result, const int64_t *dim)
{
	uint64_t sum = (uint64_t)affine_constant(map, result);
	for (int i = 0; i < map.dims; i++)
		sum += (uint64_t)affine_at(map, result, i) * (uint64_t)dim[i];
	return (int64_t)sum;
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/* ` + d1 * 4` after another term, `d1 * 4` as the first one. */
static void print_term(int64_t coefficient, int dim, bool first, struct text *out)
{
	bool minus = coefficient < 0;
	if (first && coefficient == -1)
		text_add(out, "-d%d", dim);
	else if (first && coefficient == 1)
		text_add(out, "d%d", dim);
	else if (first)
		text_add(out, "d%d * %" PRId64, dim, coefficient);
	else if (magnitude(coefficient) == 1)
		text_add(out, " %c d%d", minus ? '-' : '+', dim);
	else
		text_add(out, " %c d%d * %" PRIu64, minus ? '-' : '+', dim, magnitude(coefficient));
}

static void print_result(struct affine_map map, int result, struct text *out)
{
	bool first = true;
	for (int i = 0; i < map.dims; i++) {
		if (!affine_at(map, result, i))
			continue;
		print_term(affine_at(map, result, i), i, first, out);
		first = false;
	}
	int64_t constant = affine_constant(map, result);
	if (first)
		text_add(out, "%" PRId64, constant);
	else if (constant)
		text_add(out, " %c %" PRIu64, constant < 0 ? '-' : '+', magnitude(constant));
}

void affine_print(struct affine_map map, struct text *out)
{
	text_add(out, "(");
	for (int i = 0; i < map.dims; i++)
		text_add(out, "%sd%d", i ? ", " : "", i);
	text_add(out, ") -> (");
	for (int i = 0; i < map.results; i++) {
		text_add(out, "%s", i ? ", " : "");
		print_result(map, i, out);
	}
	text_add(out, ")");
}

bool affine_same(struct affine_map left, struct affine_map right)
{
	size_t size = sizeof(int64_t) * (size_t)(left.dims + 1) * (size_t)left.results;
	return left.dims == right.dims && left.results == right.results &&
	        (!size || !memcmp(left.coefficient, right.coefficient, size));
}

int64_t common_divisor(int64_t left, int64_t right)
{
	while (right) {
		int64_t rest = left % right;
		left = right;
		right = rest;
	}
	return left;
}
