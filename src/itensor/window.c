#include "itensor/window.h"
#include "itensor/walk.h"
#include <string.h>

#define POINTS_MOST (1 << 16)     /* reads of one position that are looked at one by one */

/* Words of the writer's sequence per data coordinate: each dim is walked by one loop at most, tile by tile. */
static const char *word_weights(struct walk from, int64_t *weight, int64_t *words)
{
	*words = 1;
	for (int l = from.loops - 1; l >= 0; l--) {
		int dim = -1;
		for (int r = 0; r < from.rank; r++)
			if (from.vector[l * from.rank + r])
				dim = dim < 0 ? r : from.rank;
		if (dim < 0 || dim == from.rank || weight[dim] || from.vector[l * from.rank + dim] != from.tile[dim])
			return "the writer does not walk each data dim once, tile by tile";
		weight[dim] = *words;
		*words *= from.trip[l];
	}
	return NULL;
}

/* Is every element of the reader's tiles one that the writer sends?  Dims that the writer does not walk are one tile. */
static bool inside(struct walk from, struct walk to, const int64_t *weight)
{
	for (int r = 0; r < from.rank; r++) {
		int64_t low = to.offset[r] - from.offset[r], high = low, end = 1;
		for (int l = 0; l < to.loops; l++) {
			int64_t far = to.vector[l * to.rank + r] * (to.trip[l] - 1);
			low += far < 0 ? far : 0;
			high += far > 0 ? far : 0;
			if (to.vector[l * to.rank + r] % to.tile[r])
				return false;
		}
		for (int l = 0; weight[r] && l < from.loops; l++)
			end = from.vector[l * from.rank + r] ? from.trip[l] : end;
		if (low % to.tile[r] || low < 0 || high / to.tile[r] >= end)
			return false;
	}
	return true;
}

static void word_steps(struct arena *arena, struct walk from, struct walk to, const int64_t *weight, struct window *window)
{
	window->loops = to.loops;
	window->trip = to.trip;
	window->step = ARENA_ARRAY(arena, int64_t, to.loops + 1);
	for (int r = 0; r < to.rank; r++) {
		window->start += (to.offset[r] - from.offset[r]) / to.tile[r] * weight[r];
		for (int l = 0; l < to.loops; l++)
			window->step[l] += to.vector[l * to.rank + r] / to.tile[r] * weight[r];
	}
}

/* As many outer loops as lead forwards only, each position beginning no earlier than the one before it. */
static void find_outer(struct arena *arena, struct window *window)
{
	while (window->outer < window->loops) {
		int next = window->outer;
		int64_t reach = 0;
		bool forwards = true;
		for (int l = next; l >= 0; l--) {
			forwards = forwards && window->step[l] > 0 && window->step[l] >= reach;
			reach += window->step[l] * (window->trip[l] - 1);
		}
		if (!forwards)
			break;
		window->outer++;
	}
	window->carry = ARENA_ARRAY(arena, int64_t, window->outer + 1);
	int64_t reach = 0;
	for (int l = window->outer - 1; l >= 0; l--) {
		window->carry[l] = window->step[l] - reach;
		reach += window->step[l] * (window->trip[l] - 1);
	}
}

/* Word t of a position is taken in its read t: is none read before? */
static bool in_time(struct arena *arena, const struct window *window, int64_t low)
{
	int inner = window->loops - window->outer;
	int64_t points = 1, fresh = window->outer ? window->carry[window->outer - 1] : 0, *counter = ARENA_ARRAY(arena, int64_t, inner + 1);
	for (int l = window->outer; l < window->loops; l++)
		if (__builtin_mul_overflow(points, window->trip[l], &points) || points > POINTS_MOST)
			return false;
	for (int64_t t = 0; t < points; t++) {
		int64_t word = low;
		for (int i = 0; i < inner; i++)
			word += counter[i] * window->step[window->outer + i];
		if (word - (window->words - fresh) > t)
			return false;
		for (int i = inner - 1; i >= 0 && ++counter[i] == window->trip[window->outer + i]; i--)
			counter[i] = 0;
	}
	return fresh <= points;
}

static int64_t product(const int64_t *trip, int first, int end)
{
	int64_t trips = 1;
	for (int l = first; l < end; l++)
		trips *= trip[l];
	return trips;
}

static int64_t cycles_of(const struct window *window)
{
	int64_t cycles = window->first + product(window->trip, 0, window->loops) + window->rest;
	for (int l = 0; l + 1 < window->outer; l++)
		cycles += window->carry[l] * product(window->trip, 0, l + 1);
	return cycles;
}

bool window_is_better(const struct window *window, const struct box *box)
{
	if (window->why || !window->streams || window->words * box->fill.lanes >= box->elements * box->halves)
		return false;
	int64_t fill = product(box->fill.trip, 0, box->fill.loops), drain = product(box->drain.trip, 0, box->drain.loops);
	int64_t longer = fill > drain ? fill : drain, blocks = product(box->fill.trip, 0, box->shared);
	return window->cycles <= longer + (fill + drain - longer) / blocks;
}

static bool at_run_time(struct walk walk)
{
	for (int l = 0; l < walk.loops; l++)
		if (walk_run_time(walk, l))
			return true;
	return false;
}

struct window window_between(struct arena *arena, const struct type *from, const struct type *to)
{
	struct walk writer = walk_normal(arena, itensor_walk(arena, from)), reader = walk_normal(arena, itensor_walk(arena, to));
	struct window window = {0};
	int64_t *weight = ARENA_ARRAY(arena, int64_t, writer.rank + 1), words, low = 0, high = 0, last;
	if (at_run_time(writer) || at_run_time(reader))
		window.why = "an extent is known at run time only";
	else if (writer.scalar != reader.scalar || writer.rank != reader.rank || memcmp(writer.tile, reader.tile, sizeof *writer.tile * (size_t)writer.rank))
		window.why = "the writer's words are not the reader's";
	else
		window.why = word_weights(writer, weight, &words);
	if (!window.why && !inside(writer, reader, weight))
		window.why = "the reader's tiles are not those that the writer sends";
	if (window.why)
		return window;
	word_steps(arena, writer, reader, weight, &window);
	find_outer(arena, &window);
	for (int l = window.outer; l < window.loops; l++) {
		low += window.step[l] < 0 ? window.step[l] * (window.trip[l] - 1) : 0;
		high += window.step[l] > 0 ? window.step[l] * (window.trip[l] - 1) : 0;
	}
	window.words = high - low + 1;
	window.first = window.start + high + 1;
	last = window.first;
	for (int l = 0; l < window.outer; l++)
		last += window.step[l] * (window.trip[l] - 1);
	window.rest = words - last;
	window.streams = window.outer && in_time(arena, &window, -low);
	window.cycles = cycles_of(&window);
	return window;
}
