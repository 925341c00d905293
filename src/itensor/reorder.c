/* Finds the smallest buffer between a writer and a reader that walk the same elements in different
 * orders. */
#include "itensor/coverage.h"
#include "itensor/walk.h"

/* The factor of a trip count that is known at compile time. */
static int64_t fixed_trips(struct walk walk, int loop)
{
	const struct run_time_trip *run_time = walk_run_time(walk, loop);
	return run_time ? walk.trip[loop] / run_time->most : walk.trip[loop];
}

int walk_share(struct arena *arena, struct walk *left, struct walk *right)
{
	struct walk from = *left;
	struct walk to = *right;
	int rank = from.rank;
	int l = 0;
	int shared = 0;
	*left = walk_new(arena, from, from.loops + 1);
	*right = walk_new(arena, to, to.loops + 1);
	bool even = true;
	for (; even && l < from.loops && l < to.loops; l++) {
		const int64_t *a = from.vector + l * rank;
		const int64_t *b = to.vector + l * rank;
		const struct run_time_trip *run_time = walk_run_time(from, l);
		int64_t common = common_divisor(fixed_trips(from, l), fixed_trips(to, l));
		int64_t inner = fixed_trips(from, l) / common;
		int64_t other = fixed_trips(to, l) / common;
		if (!run_time_same(run_time, walk_run_time(to, l)) || (common == 1 && !run_time) ||
		        !walk_same_pace(rank, a, inner, b, other))
			break;
		walk_push(left, run_time ? common * run_time->most : common, run_time, a, inner);
		walk_push(right, run_time ? common * run_time->most : common, run_time, b, other);
		shared++;
		even = inner == 1 && other == 1;
		if (inner > 1)
			walk_push(left, inner, NULL, a, 1);
		if (other > 1)
			walk_push(right, other, NULL, b, 1);
	}
	for (int i = l; i < from.loops; i++)
		walk_push(left, from.trip[i], walk_run_time(from, i), from.vector + i * rank, 1);
	for (int i = l; i < to.loops; i++)
		walk_push(right, to.trip[i], walk_run_time(to, i), to.vector + i * rank, 1);
	return shared;
}

/* Number of loops from `first` on with this run-time trip count that move equally far. */
static int steps_like(struct walk walk, int first, const struct run_time_trip *run_time,
        const int64_t *vector, int64_t scale)
{
	int found = 0;
	for (int l = first; l < walk.loops; l++)
		found += walk_run_time(walk, l) &&
		        run_time_same(walk_run_time(walk, l), run_time) &&
		        walk_same_pace(walk.rank, walk.vector + l * walk.rank, fixed_trips(walk, l),
		                vector, scale);
	return found;
}

/* A replay loop that runs at least once for any extent. */
static bool has_reaccess(struct walk walk, int loop)
{
	for (int r = 0; r < walk.rank; r++)
		if (walk.vector[loop * walk.rank + r])
			return false;
	return walk_run_time(walk, loop)->plus > 0;
}

/* Do loops with a run-time trip count move equally far on both sides? */
static bool same_run_time_steps(struct walk left, struct walk right, int first)
{
	for (int l = first; l < left.loops; l++) {
		const struct run_time_trip *run_time = walk_run_time(left, l);
		const int64_t *vector = left.vector + l * left.rank;
		if (run_time && !has_reaccess(left, l) &&
		        steps_like(left, first, run_time, vector, fixed_trips(left, l)) !=
		                steps_like(right, first, run_time, vector, fixed_trips(left, l)))
			return false;
	}
	return true;
}

static struct walk at_least(struct arena *arena, struct walk walk)
{
	struct walk least = walk_new(arena, walk, walk.loops);
	for (int l = 0; l < walk.loops; l++)
		walk_push(&least, fixed_trips(walk, l), NULL, walk.vector + l * walk.rank, 1);
	return least;
}

/* coverage_differs for any run-time trip counts: the same steps from the same elements. */
static const char *differs(struct arena *arena, struct walk from, struct walk to, int first)
{
	if (!same_run_time_steps(from, to, first) || !same_run_time_steps(to, from, first))
		return "different data: run-time trip counts lead elsewhere";
	return coverage_differs(arena, at_least(arena, from), at_least(arena, to), first);
}

static int64_t bytes_of(struct walk walk, const int64_t *shape, int halves)
{
	int64_t elements = halves;
	for (int r = 0; r < walk.rank; r++)
		elements *= shape[r];
	return type_packed_bytes(walk.scalar, elements);
}

/* The smallest buffer over all numbers of shared loops; among equals the one with the most loops
 * shared. */
struct reorder walk_reorder(struct arena *arena, struct walk from, struct walk to)
{
	struct reorder best = { 0 };
	if (from.scalar != to.scalar)
		best.why = text_format(
		        arena, "element type %s against %s", from.scalar->text, to.scalar->text);
	else if (from.rank != to.rank)
		best.why =
		        text_format(arena, "data of rank %d against rank %d", from.rank, to.rank);
	else
		best.why = differs(arena, from, to, 0);
	if (best.why)
		return best;
	int shared = walk_share(arena, &from, &to);
	for (int k = 0; k <= shared; k++) {
		struct reorder next = { .shape = ARENA_ARRAY(arena, int64_t, from.rank + 1),
			.shared = k,
			.halves = k ? 2 : 1 };
		if (k && differs(arena, from, to, k))
			continue;
		coverage_shape(arena, from, k, next.shape);
		next.bytes = bytes_of(from, next.shape, next.halves);
		if (!k || next.bytes <= best.bytes)
			best = next;
	}
	return best;
}
