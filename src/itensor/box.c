/* Computes the buffer of a converter from two walks. The box is packed: coordinates that no tile
 * covers take no room, so the rows of a matrix tile are stored one after the other. Data dims are
 * those of the types, or, where one type counts along the tensor's dims and the other along its
 * linear addresses, the one dim of addresses. */
#include "itensor/box.h"
#include "itensor/coverage.h"
#include "itensor/walk.h"

/* Minimum words of a box with run-time loops: around it, and inside it, which then may have one
 * iteration, but takes memory for all. */
#define WORDS_LEAST 32
#define WORDS_LEAST_INSIDE 16
#define WORDS_MOST 64 /* of a box that covers several iterations */

struct lane_walk { /* a type's walk, and the position of each lane in a tile */
	struct walk walk;
	int64_t lanes;
	int64_t *lane;  /* [lanes][rank] */
	bool scattered; /* on linear addresses: the tile is not a run of neighbors */
};

static void view_lanes(struct arena *arena, struct lane_walk *view)
{
	int rank = view->walk.rank;
	view->lanes = 1;
	for (int r = 0; r < rank; r++)
		view->lanes *= view->walk.tile[r];
	view->lane = ARENA_ARRAY(arena, int64_t, view->lanes *rank + 1);
	for (int64_t l = 0; l < view->lanes; l++) {
		int64_t rest = l;
		for (int r = rank - 1; r >= 0; r--) {
			view->lane[l * rank + r] = rest % view->walk.tile[r];
			rest /= view->walk.tile[r];
		}
	}
}

static int64_t linear(const struct type *tensor, const int64_t *coordinate)
{
	int64_t address = 0;
	for (int r = 0; r < tensor->rank; r++)
		address = address * tensor->shape[r] + coordinate[r];
	return address;
}

/* The same walk over the tensor's linear addresses. */
static struct lane_walk view_linear(
        struct arena *arena, const struct type *tensor, struct lane_walk from)
{
	struct lane_walk to = { .walk = from.walk,
		.lanes = from.lanes,
		.lane = ARENA_ARRAY(arena, int64_t, from.lanes) };
	to.walk.rank = 1;
	to.walk.tile = ARENA_ARRAY(arena, int64_t, 1);
	to.walk.offset = ARENA_ARRAY(arena, int64_t, 1);
	to.walk.vector = ARENA_ARRAY(arena, int64_t, from.walk.loops + 1);
	to.walk.offset[0] = linear(tensor, from.walk.offset);
	to.walk.tile[0] = from.lanes;
	for (int l = 0; l < from.walk.loops; l++)
		to.walk.vector[l] = linear(tensor, from.walk.vector + l * from.walk.rank);
	for (int64_t l = 0; l < from.lanes; l++) {
		to.lane[l] = linear(tensor, from.lane + l * from.walk.rank);
		to.scattered = to.scattered || to.lane[l] != l;
	}
	return to;
}

static struct lane_walk view_of(
        struct arena *arena, const struct type *tensor, const struct type *type, bool linearly)
{
	struct lane_walk view = { .walk = itensor_walk(arena, type) };
	view_lanes(arena, &view);
	if (linearly && type->itensor->map.results == tensor->rank)
		view = view_linear(arena, tensor, view);
	view.walk = walk_normal(arena, view.walk);
	return view;
}

/* The dim that becomes innermost in the box: the one along which the writer's lanes lie, so that
 * they form whole words. */
static int innermost(const struct lane_walk *view)
{
	int dim = view->walk.rank - 1;
	for (int r = 0; r < view->walk.rank; r++)
		if (view->walk.tile[r] > 1)
			dim = r;
	return dim;
}

static void add_dim(struct box_side *side, const struct lane_walk *view, const struct axis *axis,
        int dim, int64_t pitch)
{
	int rank = view->walk.rank;
	side->first += axis->start * pitch;
	for (int l = 0; l < view->walk.loops; l++)
		side->step[l] += axis->step[l] * pitch;
	for (int64_t l = 0; l < view->lanes; l++)
		side->lane[l] += view->lane[l * rank + dim] * pitch;
}

static struct box_side side_new(struct arena *arena, const struct lane_walk *view)
{
	struct box_side side = {
		.loops = view->walk.loops, .trip = view->walk.trip, .lanes = view->lanes
	};
	side.run_time = ARENA_ARRAY(arena, const struct run_time_trip *, side.loops + 1);
	for (int l = 0; l < side.loops; l++)
		side.run_time[l] = walk_run_time(view->walk, l);
	side.step = ARENA_ARRAY(arena, int64_t, side.loops + 1);
	side.lane = ARENA_ARRAY(arena, int64_t, side.lanes);
	return side;
}

/* Merges neighboring loops inside the box that continue each other. */
static void merge_inner(struct arena *arena, struct box_side *side, int shared)
{
	struct box_side merged = *side;
	merged.trip = ARENA_ARRAY(arena, int64_t, side->loops + 1);
	merged.step = ARENA_ARRAY(arena, int64_t, side->loops + 1);
	merged.run_time = ARENA_ARRAY(arena, const struct run_time_trip *, side->loops + 1);
	merged.loops = 0;
	for (int l = 0; l < side->loops; l++) {
		int last = merged.loops - 1;
		bool joins = l > shared && !side->run_time[l] &&
		        merged.step[last] == side->step[l] * side->trip[l];
		merged.trip[joins ? last : merged.loops] =
		        side->trip[l] * (joins ? merged.trip[last] : 1);
		merged.step[joins ? last : merged.loops] = side->step[l];
		if (!joins)
			merged.run_time[merged.loops] = side->run_time[l];
		merged.loops += !joins;
	}
	*side = merged;
}

struct sides {
	struct arena *arena;
	const struct lane_walk *from, *to;
	int shared;
	bool same; /* both cover the same elements */
	const struct type *tensor;
};

/* Elements of the tensor along a dim of the walks. */
static int64_t edge_of(const struct sides *s, int dim)
{
	return s->from->walk.rank == s->tensor->rank ? s->tensor->shape[dim]
	                                             : type_elements(s->tensor);
}

/* The axis of a dim for both sides: packed where both omit the same coordinates, else from the
 * writer's first coordinate to its last. */
static const char *both_axes(const struct sides *s, int dim, struct axis *fill, struct axis *drain)
{
	const struct walk *from = &s->from->walk;
	const struct walk *to = &s->to->walk;
	bool packed = s->same && coverage_axis(s->arena, *from, s->shared, dim, true, fill) &&
	        coverage_axis(s->arena, *to, s->shared, dim, true, drain);
	if (packed && fill->extent == drain->extent)
		return NULL;
	coverage_axis(s->arena, *from, s->shared, dim, false, fill);
	coverage_axis(s->arena, *to, s->shared, dim, false, drain);
	int64_t end = drain->low + drain->extent;
	int64_t sent = fill->low + fill->extent;
	if (drain->low >= fill->low && end > sent && sent >= edge_of(s, dim)) {
		fill->extent = end - fill->low; /* padding, of any value */
		sent = end;
	}
	if (drain->low < fill->low || end > sent)
		return text_format(s->arena,
		        "the reader wants elements of data dim %d that the writer does not send",
		        dim);
	drain->start += drain->low - fill->low;
	return NULL;
}

/* Dims of the box from the inside: the innermost one; those of the writer's tile as long as it has
 * all of the one before, so that words are long; then the others from the last on. */
struct dim_order {
	bool *taken;
	bool in_tile;
};

static int next_dim(const struct sides *s, struct dim_order *order, int last, int64_t extent)
{
	const int64_t *tile = s->from->walk.tile;
	int dim = innermost(s->from);
	if (last >= 0) {
		order->in_tile = order->in_tile && tile[last] == extent;
		dim = s->from->walk.rank - 1;
		while (order->in_tile && dim >= 0 && (order->taken[dim] || tile[dim] == 1))
			dim--;
		order->in_tile = order->in_tile && dim >= 0;
		if (!order->in_tile)
			dim = s->from->walk.rank - 1;
		while (order->taken[dim])
			dim--;
	}
	order->taken[dim] = true;
	return dim;
}

static void add_axes(const struct sides *s, struct box *box)
{
	int rank = s->from->walk.rank;
	int64_t extent = 0;
	int dim = -1;
	struct dim_order order = { ARENA_ARRAY(s->arena, bool, rank + 1), true };
	box->elements = 1;
	for (int i = 0; i < rank && !box->why; i++) {
		dim = next_dim(s, &order, dim, extent);
		struct axis fill;
		struct axis drain;
		box->why = both_axes(s, dim, &fill, &drain);
		add_dim(&box->fill, s->from, &fill, dim, box->elements);
		add_dim(&box->drain, s->to, &drain, dim, box->elements);
		box->elements *= fill.extent;
		extent = fill.extent;
	}
}

/* Buffers the whole tensor by linear address, for tiles that are not a run of neighbors. */
static void add_whole(
        const struct type *tensor, struct box *box, struct lane_walk *view, struct box_side *side)
{
	struct axis axis = { .start = view->walk.offset[0], .step = view->walk.vector };
	add_dim(side, view, &axis, 0, 1);
	box->elements = type_elements(tensor);
}

/* In each iteration of the shared loops, does the writer send every element of a box once, and does
 * the reader want no others? */
static bool reads_part(struct arena *arena, const struct walk *from, const struct walk *to,
        int shared, int64_t *elements)
{
	int64_t *shape = ARENA_ARRAY(arena, int64_t, from->rank + 1);
	int64_t sent = 1;
	coverage_shape(arena, *from, shared, shape);
	*elements = 1;
	for (int l = shared; l < from->loops; l++)
		sent *= from->trip[l];
	for (int r = 0; r < from->rank; r++) {
		struct axis fill;
		struct axis drain;
		coverage_axis(arena, *from, shared, r, false, &fill);
		coverage_axis(arena, *to, shared, r, false, &drain);
		if (fill.extent != shape[r] || drain.low < fill.low ||
		        drain.low + drain.extent > fill.low + fill.extent)
			return false;
		sent *= from->tile[r];
		*elements *= fill.extent;
	}
	return sent == *elements;
}

/* The number of shared loops where the reader reads only part of the data: that with the smallest
 * two halves, or 0. */
static int share_part(struct arena *arena, const struct walk *from, const struct walk *to, int most)
{
	int64_t elements;
	int64_t least = INT64_MAX;
	int best = 0;
	if (reads_part(arena, from, to, 0, &elements))
		least = elements;
	for (int k = 1; k <= most; k++) {
		if (!reads_part(arena, from, to, k, &elements) || 2 * elements > least)
			continue;
		least = 2 * elements;
		best = k;
	}
	return best;
}

static bool can_share(
        struct arena *arena, const struct walk *from, const struct walk *to, int shared)
{
	int64_t elements;
	return !coverage_differs(arena, *from, *to, shared) ||
	        reads_part(arena, from, to, shared, &elements);
}

/* Splits a loop in two; the inner one has so many iterations. */
static void split_loop(struct arena *arena, struct walk *walk, int loop, int64_t iterations)
{
	struct walk split = *walk;
	split.loops++;
	split.trip = ARENA_ARRAY(arena, int64_t, split.loops);
	split.vector = ARENA_ARRAY(arena, int64_t, split.loops * walk->rank + 1);
	split.run_time = ARENA_ARRAY(arena, const struct run_time_trip *, split.loops);
	for (int l = 0; l < split.loops; l++) {
		int from = l > loop ? l - 1 : l;
		split.trip[l] = walk->trip[from];
		if (l == loop)
			split.trip[l] /= iterations;
		if (l == loop + 1)
			split.trip[l] = iterations;
		split.run_time[l] = walk_run_time(*walk, from);
		for (int r = 0; r < walk->rank; r++)
			split.vector[l * walk->rank + r] =
			        walk->vector[from * walk->rank + r] * (l == loop ? iterations : 1);
	}
	*walk = split;
}

/* Iterations of the last shared loop that one box covers. Handing a box over takes as many cycles
 * as some words, and with run-time loops a box may have few words: rows of a KV cache, for
 * instance, are sent in blocks of a few heads each. */
static int64_t iterations_per_box(const struct walk *from, int shared)
{
	int64_t words = 1;
	int64_t iterations = 1;
	bool bound = false;
	bool inside = false;
	for (int l = 0; l < from->loops; l++) {
		const struct run_time_trip *trip = walk_run_time(*from, l);
		if (l >= shared) {
			words *= from->trip[l] / (trip ? trip->most : 1);
			inside = inside || trip;
		}
		bound = bound || trip;
	}
	if (!shared || !bound || walk_run_time(*from, shared - 1))
		return 1;
	int64_t least = inside ? WORDS_LEAST_INSIDE : WORDS_LEAST;
	while (words * iterations < least && iterations < from->trip[shared - 1])
		for (iterations++; from->trip[shared - 1] % iterations;)
			iterations++;
	bool takes_all = iterations == from->trip[shared - 1];
	return words * iterations > WORDS_MOST || (inside && takes_all) ? 1 : iterations;
}

/* The loops to share for the smallest buffer. */
static int least_shared(struct arena *arena, const struct lane_walk *writer,
        const struct lane_walk *reader, const struct reorder *reorder, int most)
{
	if (writer->scattered || reader->scattered)
		return 0;
	return reorder->why ? share_part(arena, &writer->walk, &reader->walk, most)
	                    : reorder->shared;
}

struct box box_between(struct arena *arena, const struct type *tensor, const struct type *from,
        const struct type *to, int shared)
{
	bool linearly = from->itensor->map.results != to->itensor->map.results;
	struct lane_walk writer = view_of(arena, tensor, from, linearly);
	struct lane_walk reader = view_of(arena, tensor, to, linearly);
	bool scattered = writer.scattered || reader.scattered;
	struct reorder reorder = walk_reorder(arena, writer.walk, reader.walk);
	int most = walk_share(arena, &writer.walk, &reader.walk);
	struct box box = { .shared = shared };
	if (shared == BOX_LEAST)
		box.shared = least_shared(arena, &writer, &reader, &reorder, most);
	bool possible = box.shared >= 0 && box.shared <= most;
	int64_t iterations =
	        possible && !scattered ? iterations_per_box(&writer.walk, box.shared) : 1;
	while (iterations > 1 && iterations == writer.walk.trip[box.shared - 1])
		iterations = iterations_per_box(&writer.walk, --box.shared);
	if (iterations > 1) {
		split_loop(arena, &writer.walk, box.shared - 1, iterations);
		split_loop(arena, &reader.walk, box.shared - 1, iterations);
	}
	box.halves = box.shared ? 2 : 1;
	box.fill = side_new(arena, &writer);
	box.drain = side_new(arena, &reader);
	if (possible && box.shared)
		possible = !scattered && can_share(arena, &writer.walk, &reader.walk, box.shared);
	if (!possible) {
		box.why = text_format(
		        arena, "producer and consumer do not share %d loops", box.shared);
	} else if (scattered) {
		add_whole(tensor, &box, &writer, &box.fill);
		add_whole(tensor, &box, &reader, &box.drain);
	} else {
		struct sides sides = { .arena = arena,
			.from = &writer,
			.to = &reader,
			.shared = box.shared,
			.tensor = tensor };
		sides.same = !reorder.why ||
		        (box.shared &&
		                !coverage_differs(arena, writer.walk, reader.walk, box.shared));
		add_axes(&sides, &box);
	}
	if (box.why)
		return box;
	merge_inner(arena, &box.fill, box.shared);
	merge_inner(arena, &box.drain, box.shared);
	return box;
}

/* Does the side move its lanes in runs of so many neighbors, each starting at a multiple of the run
 * length? */
static bool moves_runs(const struct box_side *side, int64_t run)
{
	bool good = side->lanes % run == 0 && side->first % run == 0;
	for (int l = 0; l < side->loops; l++)
		good = good && side->step[l] % run == 0;
	for (int64_t l = 0; good && l < side->lanes; l++)
		good = side->lane[l] == side->lane[l - l % run] + l % run &&
		        side->lane[l - l % run] % run == 0;
	return good;
}

int64_t box_word(const struct box *box)
{
	int64_t run = box->fill.lanes < box->drain.lanes ? box->fill.lanes : box->drain.lanes;
	while (run > 1 &&
	        (box->elements % run || !moves_runs(&box->fill, run) ||
	                !moves_runs(&box->drain, run)))
		run--;
	return run;
}
