/* Along one data dim a walk covers sums of a multiple of each of its strides, plus a tile. Strides
 * no larger than what lies inside them give one interval; strides that all leave a gap give regular
 * runs, described exactly; a mix is marked element by element. */
#include "itensor/coverage.h"
#include <inttypes.h>
#include <string.h>

#define MARKED_MOST (INT64_C(1) << 22) /* maximum elements of a bit map */
#define WORK_MOST (INT64_C(1) << 26)   /* maximum marks that are set */

struct stride {
	int64_t step, trip;
};

/* Coverage of one data dim. */
struct line {
	int64_t low, span; /* from the first to the last element */
	int64_t run;       /* elements of a run without gaps */
	int64_t count;     /* elements, if regular */
	int strides;
	struct stride *stride; /* ascending */
	int gaps;              /* first stride that leaves a gap; smaller ones form one run */
	bool regular;
};

static void insert_stride(struct line *line, struct stride stride)
{
	int at = line->strides++;
	for (; at > 0 && line->stride[at - 1].step > stride.step; at--)
		line->stride[at] = line->stride[at - 1];
	line->stride[at] = stride;
}

/* Merges strides that continue the one before. */
static void merge_strides(struct line *line, int first)
{
	int kept = first;
	for (int i = first; i < line->strides; i++) {
		struct stride *last = kept > first ? &line->stride[kept - 1] : NULL;
		if (last && line->stride[i].step == last->step * last->trip)
			last->trip *= line->stride[i].trip;
		else
			line->stride[kept++] = line->stride[i];
	}
	line->strides = kept;
}

static struct line line_of(struct arena *arena, struct walk walk, int first, int dim)
{
	struct line line = { .low = walk.offset[dim],
		.span = walk.tile[dim],
		.run = walk.tile[dim],
		.regular = true };
	line.stride = ARENA_ARRAY(arena, struct stride, walk.loops + 1);
	for (int l = first; l < walk.loops; l++) {
		int64_t step = walk.vector[l * walk.rank + dim];
		line.low += step < 0 ? step * (walk.trip[l] - 1) : 0;
		if (step)
			insert_stride(
			        &line, (struct stride){ step < 0 ? -step : step, walk.trip[l] });
	}
	for (int i = 0; i < line.strides; i++) {
		bool touches = line.stride[i].step <= line.span;
		if (touches && line.gaps == i)
			line.run += line.stride[i].step * (line.stride[i].trip - 1), line.gaps++;
		else if (touches)
			line.regular = false;
		line.span += line.stride[i].step * (line.stride[i].trip - 1);
	}
	line.count = line.run;
	for (int i = line.gaps; line.regular && i < line.strides; i++)
		line.count *= line.stride[i].trip;
	if (line.regular)
		merge_strides(&line, line.gaps);
	return line;
}

/* One byte per element of the span, 1 where it is covered; NULL: too many. */
static char *marks_of(struct arena *arena, const struct line *line)
{
	int64_t work = line->span;
	for (int i = line->gaps; i < line->strides; i++)
		if (__builtin_mul_overflow(line->stride[i].trip, line->span, &work) ||
		        work > WORK_MOST)
			return NULL;
	if (line->span > MARKED_MOST)
		return NULL;
	char *mark = ARENA_ARRAY(arena, char, line->span);
	memset(mark, 1, (size_t)line->run);
	for (int i = line->gaps; i < line->strides; i++)
		for (int64_t e = line->span - 1; e >= 0; e--)
			for (int64_t t = 1; t < line->stride[i].trip && !mark[e] &&
			        e >= t * line->stride[i].step;
			        t++)
				mark[e] = mark[e - t * line->stride[i].step];
	return mark;
}

static bool same_strides(const struct line *left, const struct line *right)
{
	int gaps = left->strides - left->gaps;
	bool same = left->run == right->run && gaps == right->strides - right->gaps;
	for (int i = 0; same && i < gaps; i++) {
		struct stride a = left->stride[left->gaps + i];
		struct stride b = right->stride[right->gaps + i];
		same = a.step == b.step && a.trip == b.trip;
	}
	return same;
}

static const char *line_differs(
        struct arena *arena, const struct line *left, const struct line *right, int dim)
{
	if (left->low != right->low || left->span != right->span)
		return text_format(arena,
		        "different data: dim %d covers [%" PRId64 ", %" PRId64 ") against [%" PRId64
		        ", %" PRId64 ")",
		        dim, left->low, left->low + left->span, right->low,
		        right->low + right->span);
	const char *gaps =
	        text_format(arena, "different data: other elements are left out along dim %d", dim);
	if (left->regular && right->regular)
		return same_strides(left, right) ? NULL : gaps;
	const char *a = marks_of(arena, left);
	const char *b = marks_of(arena, right);
	if (!a || !b)
		return text_format(arena,
		        "the tiles along dim %d leave out too many elements to compare", dim);
	return memcmp(a, b, (size_t)left->span) ? gaps : NULL;
}

/* Does a loop move along two data dims? Then the covered elements are no product of intervals. */
static bool slants(struct walk walk, int first)
{
	for (int l = first; l < walk.loops; l++) {
		int moved = 0;
		for (int r = 0; r < walk.rank; r++)
			moved += walk.vector[l * walk.rank + r] != 0;
		if (moved > 1)
			return true;
	}
	return false;
}

static void mark_tile(struct walk walk, const struct line *line, const int64_t *offset,
        int64_t elements, char *mark)
{
	for (int64_t e = 0; e < elements; e++) {
		int64_t rest = e;
		int64_t at = 0;
		int64_t scale = 1;
		for (int r = walk.rank - 1; r >= 0; r--) {
			at += (offset[r] - line[r].low + rest % walk.tile[r]) * scale;
			rest /= walk.tile[r];
			scale *= line[r].span;
		}
		mark[at] = 1;
	}
}

/* One byte per element of the bounding box, 1 where it is covered; NULL: too many. */
static char *box_of(
        struct arena *arena, struct walk walk, const struct line *line, int first, int64_t *size)
{
	int64_t elements = 1;
	int64_t work;
	*size = 1;
	for (int r = 0; r < walk.rank; r++) {
		elements *= walk.tile[r];
		*size *= line[r].span;
	}
	work = elements;
	for (int l = first; l < walk.loops; l++)
		if (__builtin_mul_overflow(work, walk.trip[l], &work) || work > WORK_MOST)
			return NULL;
	if (*size > MARKED_MOST || work > WORK_MOST)
		return NULL;
	char *mark = ARENA_ARRAY(arena, char, *size);
	int64_t *counter = ARENA_ARRAY(arena, int64_t, walk.loops + 1);
	int64_t *offset = ARENA_ARRAY(arena, int64_t, walk.rank + 1);
	do {
		walk_at(walk, counter, offset);
		mark_tile(walk, line, offset, elements, mark);
	} while (walk_next(walk, counter) && !(first && counter[first - 1]));
	return mark;
}

const char *coverage_differs(struct arena *arena, struct walk left, struct walk right, int first)
{
	struct line *a = ARENA_ARRAY(arena, struct line, left.rank + 1);
	struct line *b = ARENA_ARRAY(arena, struct line, left.rank + 1);
	const char *why = NULL;
	for (int r = 0; r < left.rank && !why; r++) {
		a[r] = line_of(arena, left, first, r);
		b[r] = line_of(arena, right, first, r);
		why = line_differs(arena, &a[r], &b[r], r);
	}
	if (why || (!slants(left, first) && !slants(right, first)))
		return why;
	int64_t size;
	const char *marked = box_of(arena, left, a, first, &size);
	const char *other = box_of(arena, right, b, first, &size);
	if (!marked || !other)
		return "a loop moves along two data dims, over too many elements to compare";
	return memcmp(marked, other, (size_t)size) ? "different data: other elements are left out"
	                                           : NULL;
}

void coverage_shape(struct arena *arena, struct walk walk, int first, int64_t *shape)
{
	for (int r = 0; r < walk.rank; r++) {
		struct line line = line_of(arena, walk, first, r);
		shape[r] = line.count;
		if (line.regular)
			continue;
		const char *mark = marks_of(arena, &line);
		shape[r] = mark ? 0 : line.span;
		for (int64_t e = 0; mark && e < line.span; e++)
			shape[r] += mark[e];
	}
}

/* A step counted in covered coordinates: what lies below a gap takes as much room as it has
 * elements. */
static int64_t packed_step(const struct line *line, int64_t step)
{
	int64_t size = step < 0 ? -step : step;
	int64_t room = line->run;
	int gap = line->gaps;
	if (gap == line->strides || size < line->stride[gap].step)
		return step;
	for (; gap + 1 < line->strides && size >= line->stride[gap + 1].step; gap++)
		room *= line->stride[gap].trip;
	return step / line->stride[gap].step * room;
}

bool coverage_axis(
        struct arena *arena, struct walk walk, int first, int dim, bool packed, struct axis *axis)
{
	struct line line = line_of(arena, walk, first, dim);
	*axis = (struct axis){ .low = line.low,
		.extent = packed ? line.count : line.span,
		.step = ARENA_ARRAY(arena, int64_t, walk.loops + 1) };
	for (int l = first; l < walk.loops; l++) {
		int64_t step = walk.vector[l * walk.rank + dim];
		axis->step[l] = packed ? packed_step(&line, step) : step;
		axis->start += step < 0 ? -axis->step[l] * (walk.trip[l] - 1) : 0;
	}
	return !packed || line.regular;
}
