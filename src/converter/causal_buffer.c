/* Finds the loops by which a causal buffer is filled and read (causal_buffer.h). */
#include "converter/causal_buffer.h"
#include "itensor/element_sequence.h"

static void add_loop(
        struct box_side *side, int64_t trip, int64_t step, const struct run_time_trip *run_time)
{
	side->trip[side->loops] = trip;
	side->run_time[side->loops] = run_time;
	side->step[side->loops++] = step;
}

/* a side of the same words, without loops yet */
static struct box_side empty_side(struct arena *arena, const struct box_side *from)
{
	struct box_side side = *from;
	int room = from->loops + 3;
	side.loops = 0;
	side.trip = ARENA_ARRAY(arena, int64_t, room);
	side.step = ARENA_ARRAY(arena, int64_t, room);
	side.run_time = ARENA_ARRAY(arena, const struct run_time_trip *, room);
	return side;
}

/* The words of one tile: the first loop, of one iteration, stands for the loop over tiles. */
static void fill_one_tile(struct arena *arena, struct causal_buffer *l)
{
	const struct box_side *from = &l->box.fill;
	l->fill = empty_side(arena, from);
	add_loop(&l->fill, 1, l->pitch, NULL);
	if (from->loops)
		add_loop(&l->fill, from->trip[0] / l->tiles, from->step[0], NULL);
	for (int i = 1; i < from->loops; i++)
		add_loop(&l->fill, from->trip[i], from->step[i], from->run_time[i]);
}

/* The words of one iteration over tiles, by loops of which one walks tiles only. Returns NULL, or
 * why there is no such loop. */
static const char *drain_one_iteration(struct arena *arena, struct causal_buffer *l)
{
	const struct box_side from = l->box.drain;
	struct box_side *to = &l->drain;
	int64_t pitch = l->pitch;
	int64_t reach = 0;
	*to = empty_side(arena, &from);
	l->part = -1;
	for (int i = 0; i < from.loops; i++) {
		int64_t trip = from.trip[i] / (i ? 1 : l->tiles);
		int64_t step = from.step[i];
		int64_t inside;
		int64_t parts;
		if (step % (pitch * l->tiles) == 0 || step * trip <= pitch) {
			add_loop(to, trip, step, i ? from.run_time[i] : NULL);
			reach += step < pitch ? step * (trip - 1) : 0;
			continue;
		}
		inside = step < pitch ? pitch / step : 1;
		parts = trip / inside < l->tiles ? trip / inside : l->tiles;
		if (l->part >= 0 || pitch % step || trip % (inside * parts) ||
		        (trip / inside > l->tiles && (trip / inside) % l->tiles))
			return "its consumer has no loop over tiles";
		if (from.run_time[i] && (trip != parts || step != pitch))
			return "the consumer's tile loop has another run-time trip count";
		add_loop(to, trip / inside / parts, pitch * l->tiles, NULL);
		l->part = to->loops;
		add_loop(to, parts, pitch, from.run_time[i]);
		add_loop(to, inside, step, NULL);
		reach += step * (inside - 1);
	}
	if (l->part < 0) {
		l->part = to->loops;
		add_loop(to, 1, pitch, NULL);
	}
	l->first = from.first / pitch % l->tiles;
	for (int64_t lane = 0; lane < from.lanes; lane++)
		if (from.first % pitch + reach + from.lane[lane] >= pitch)
			return "its consumer reads words of several tiles at once";
	return l->first + to->trip[l->part] > l->tiles ? "its reader does not begin with a tile"
	                                               : NULL;
}

/* elements that the loops of a side from `first` on reach beyond the start of a tile */
static int64_t reach_inside(const struct box_side *side, int first, int part)
{
	int64_t reach = 0;
	for (int64_t lane = 0; lane < side->lanes; lane++)
		reach = side->lane[lane] > reach ? side->lane[lane] : reach;
	for (int i = first; i < side->loops; i++)
		reach += i == part ? 0 : side->step[i] * (side->trip[i] - 1);
	return reach;
}

/* Outermost loops that both sides have and whose iterations do not overlap, with all tiles of an
 * iteration. */
static int loops_shared(const struct causal_buffer *l)
{
	const struct box_side *fill = &l->fill;
	const struct box_side *drain = &l->drain;
	int i = 0;
	for (; i < l->part && i + 1 < fill->loops; i++) {
		int64_t step = drain->step[i];
		int64_t tiles = l->pitch * (l->tiles - 1);
		bool same = fill->trip[i + 1] == drain->trip[i] && !fill->run_time[i + 1] &&
		        !drain->run_time[i];
		if (same && drain->trip[i] == 1)
			continue;
		if (!same || fill->step[i + 1] != step ||
		        reach_inside(fill, i + 2, -1) + tiles >= step ||
		        reach_inside(drain, i + 1, l->part) + tiles >= step)
			break;
	}
	return i;
}

/* Outermost loops that replay everything may stand in any order: moves the one over tiles to
 * the front. */
static void put_tiles_first(struct box_side *drain, const struct box_side *fill)
{
	int tiles = 0;
	while (fill->loops && tiles < drain->loops && !drain->step[tiles] &&
	        !run_time_same(drain->run_time[tiles], fill->run_time[0]))
		tiles++;
	if (tiles == drain->loops || drain->step[tiles])
		return;
	const struct run_time_trip *run_time = drain->run_time[tiles];
	int64_t trip = drain->trip[tiles];
	for (int i = tiles; i > 0; i--) {
		drain->trip[i] = drain->trip[i - 1];
		drain->run_time[i] = drain->run_time[i - 1];
	}
	drain->trip[0] = trip;
	drain->run_time[0] = run_time;
}

struct causal_buffer causal_buffer_between(struct arena *arena, const struct type *tensor,
        const struct type *from, const struct type *to, const struct attr *causal_buffer)
{
	int64_t tiles = causal_buffer->integers[0];
	int64_t pitch = causal_buffer->integers[1];
	struct causal_buffer l = { .box = box_between(arena, tensor, from, to, 0), .tiles = tiles };
	struct sequence in = sequence_of_type(arena, tensor, from);
	struct sequence out = sequence_of_type(arena, tensor, to);
	const struct box_side *fill = &l.box.fill;
	const struct box_side *drain = &l.box.drain;
	l.why = l.box.why;
	if (!l.why)
		put_tiles_first(&l.box.drain, fill);
	if (!l.why &&
	        (!fill->loops || !drain->loops || fill->trip[0] % tiles || drain->trip[0] % tiles ||
	                drain->step[0] || out.stride[0] || in.trip[0] % tiles ||
	                in.stride[0] * (in.trip[0] / tiles) != pitch))
		l.why = "the outermost loops of producer and consumer are not the tile loops";
	if (!l.why &&
	        (!run_time_same(fill->run_time[0], drain->run_time[0]) ||
	                (fill->run_time[0] && (fill->trip[0] != tiles || drain->trip[0] != tiles))))
		l.why = "producer and consumer have different tile counts";
	if (l.why)
		return l;
	l.valid_tiles = fill->run_time[0];
	l.pitch = fill->step[0] * (fill->trip[0] / tiles);
	fill_one_tile(arena, &l);
	l.why = drain_one_iteration(arena, &l);
	l.shared = l.why || !l.valid_tiles ? 0 : loops_shared(&l);
	return l;
}
