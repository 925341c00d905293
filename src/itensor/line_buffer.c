/* Computes a line buffer from the walks of a writer and a reader, or says why none is possible. */
#include "itensor/line_buffer.h"
#include "base/number.h"
#include "itensor/walk.h"

#define SLOWER_PART 8         /* a ring may take longer by one part in so many */
#define AHEAD_PART 16         /* what rows come ahead for, in parts of all cycles */
#define POINTS_MOST (1 << 16) /* maximum reads of a position that are checked one by one */

/* Distance in the writer's sequence between neighbors of each data dim; each dim must be walked by
 * at most one loop, tile by tile. */
static const char *word_weights(struct walk from, int64_t *weight, int64_t *words)
{
	*words = 1;
	for (int l = from.loops - 1; l >= 0; l--) {
		int dim = -1;
		for (int r = 0; r < from.rank; r++)
			if (from.vector[l * from.rank + r])
				dim = dim < 0 ? r : from.rank;
		if (dim < 0 || dim == from.rank || weight[dim] ||
		        from.vector[l * from.rank + dim] != from.tile[dim])
			return "the writer does not walk each data dim once, tile by tile";
		weight[dim] = *words;
		*words *= from.trip[l];
	}
	return NULL;
}

/* Does the writer send every element of the reader's tiles? Dims that the writer does not walk are
 * one tile. */
static bool inside(struct walk from, struct walk to, const int64_t *weight)
{
	for (int r = 0; r < from.rank; r++) {
		int64_t low = to.offset[r] - from.offset[r];
		int64_t high = low;
		int64_t end = 1;
		for (int l = 0; l < to.loops; l++) {
			int64_t far = to.vector[l * to.rank + r] * (to.trip[l] - 1);
			low += far < 0 ? far : 0;
			high += far > 0 ? far : 0;
			if (to.vector[l * to.rank + r] % from.tile[r])
				return false;
		}
		for (int l = 0; weight[r] && l < from.loops; l++)
			end = from.vector[l * from.rank + r] ? from.trip[l] : end;
		high += to.tile[r] - from.tile[r];
		if (low % from.tile[r] || low < 0 || high / from.tile[r] >= end)
			return false;
	}
	return true;
}

static void word_steps(struct arena *arena, struct walk from, struct walk to, const int64_t *weight,
        struct line_buffer *line_buffer)
{
	line_buffer->loops = to.loops;
	line_buffer->trip = to.trip;
	line_buffer->step = ARENA_ARRAY(arena, int64_t, to.loops + 1);
	for (int r = 0; r < to.rank; r++) {
		line_buffer->start += (to.offset[r] - from.offset[r]) / from.tile[r] * weight[r];
		for (int l = 0; l < to.loops; l++)
			line_buffer->step[l] +=
			        to.vector[l * to.rank + r] / from.tile[r] * weight[r];
	}
}

bool line_buffer_has_taps(const struct line_buffer *line_buffer)
{
	return line_buffer->taps[0] > 1;
}

bool line_buffer_reads_columns(const struct line_buffer *line_buffer)
{
	bool moves = false;
	for (int l = line_buffer->outer; l < line_buffer->loops; l++)
		moves = moves || line_buffer->step[l];
	return moves;
}

/* Finds the taps of a tile, of which the writer's word is a part. */
static const char *find_taps(
        struct walk from, struct walk to, const int64_t *weight, struct line_buffer *line_buffer)
{
	int dims = 0;
	line_buffer->taps[0] = line_buffer->taps[1] = 1;
	for (int r = 0; r < from.rank; r++) {
		int64_t taps = to.tile[r] / from.tile[r];
		if (to.tile[r] == from.tile[r])
			continue;
		if (to.tile[r] % from.tile[r] || !weight[r] || dims == 2)
			return "the writer's words are not the reader's, or taps of them";
		int at = dims && weight[r] > line_buffer->pitch[0] ? 0 : dims;
		line_buffer->taps[1] = line_buffer->taps[0];
		line_buffer->pitch[1] = line_buffer->pitch[0];
		line_buffer->tap_dim[1] = line_buffer->tap_dim[0];
		line_buffer->tap_dim[at] = r;
		line_buffer->taps[at] = taps;
		line_buffer->pitch[at] = weight[r];
		dims++;
	}
	return NULL;
}

/* Counts the outer loops that only move forward, so that no position begins before the one that
 * precedes it. */
static void count_outer_loops(struct arena *arena, struct line_buffer *line_buffer)
{
	while (line_buffer->outer < line_buffer->loops) {
		int next = line_buffer->outer;
		int64_t reach = 0;
		bool forwards = true;
		for (int l = next; l >= 0; l--) {
			forwards = forwards && line_buffer->step[l] > 0 &&
			        line_buffer->step[l] >= reach;
			reach += line_buffer->step[l] * (line_buffer->trip[l] - 1);
		}
		if (!forwards)
			break;
		line_buffer->outer++;
	}
	line_buffer->carry = ARENA_ARRAY(arena, int64_t, line_buffer->outer + 1);
	int64_t reach = 0;
	for (int l = line_buffer->outer - 1; l >= 0; l--) {
		line_buffer->carry[l] = line_buffer->step[l] - reach;
		reach += line_buffer->step[l] * (line_buffer->trip[l] - 1);
	}
}

/* Word t of a position is received during its read t: is every word received before it is read?
 * Taps in registers are read when all have come. */
static bool arrives_in_time(struct arena *arena, const struct line_buffer *line_buffer, int64_t low)
{
	int inner = line_buffer->loops - line_buffer->outer;
	int64_t points = 1;
	int64_t fresh = line_buffer->outer ? line_buffer->carry[line_buffer->outer - 1] : 0;
	int64_t *counter = ARENA_ARRAY(arena, int64_t, inner + 1);
	if (line_buffer_has_taps(line_buffer) && !line_buffer_reads_columns(line_buffer))
		return true;
	for (int l = line_buffer->outer; l < line_buffer->loops; l++)
		if (__builtin_mul_overflow(points, line_buffer->trip[l], &points) ||
		        points > POINTS_MOST)
			return false;
	for (int64_t t = 0; t < points; t++) {
		int64_t word = low;
		for (int i = 0; i < inner; i++)
			word += counter[i] * line_buffer->step[line_buffer->outer + i];
		word += (line_buffer->taps[0] - 1) * line_buffer->pitch[0] +
		        (line_buffer->taps[1] - 1) * line_buffer->pitch[1];
		if (word - (line_buffer->words - fresh) > t)
			return false;
		for (int i = inner - 1;
		        i >= 0 && ++counter[i] == line_buffer->trip[line_buffer->outer + i]; i--)
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

static int64_t cycles_of(const struct line_buffer *line_buffer)
{
	int64_t cycles = line_buffer->first + product(line_buffer->trip, 0, line_buffer->loops) +
	        line_buffer->delay * product(line_buffer->trip, 0, line_buffer->outer) +
	        line_buffer->rest;
	for (int l = 0; l + 1 < line_buffer->outer; l++)
		cycles += line_buffer->carry[l] * product(line_buffer->trip, 0, l + 1);
	return cycles;
}

/* The line buffer whose positions receive words of the next turn of a loop. */
static struct line_buffer received_ahead(
        struct arena *arena, const struct line_buffer *line_buffer, int loop)
{
	struct line_buffer ahead = *line_buffer;
	int64_t positions = product(ahead.trip, loop + 1, ahead.outer);
	int64_t along = 0;
	ahead.carry = arena_copy(arena, ahead.carry, sizeof *ahead.carry * (size_t)ahead.outer);
	for (int l = loop + 1; l < ahead.outer; l++)
		along += ahead.step[l] * (ahead.trip[l] - 1);
	for (int l = 0; l < ahead.outer; l++)
		ahead.carry[l] = l < loop ? ahead.carry[l] + along : 0;
	ahead.ahead = ceil_div(ahead.step[loop], positions);
	ahead.ahead_loop = loop;
	ahead.words += along + ahead.step[loop];
	ahead.first += along;
	ahead.cycles = cycles_of(&ahead);
	return ahead;
}

/* Lets positions receive words ahead, if that saves enough cycles and the first one waits for no
 * more than a window again, as it would for the next image of a batch. */
static void receive_ahead(struct arena *arena, struct line_buffer *line_buffer)
{
	struct line_buffer best = *line_buffer;
	if (line_buffer_has_taps(line_buffer))
		return;
	for (int l = line_buffer->outer - 2; l >= 0; l--) {
		struct line_buffer ahead = received_ahead(arena, line_buffer, l);
		if (ahead.first - line_buffer->first <= line_buffer->words &&
		        ahead.ahead <= product(ahead.trip, ahead.outer, ahead.loops) &&
		        ahead.cycles + ahead.cycles / AHEAD_PART < best.cycles)
			best = ahead;
	}
	*line_buffer = best;
	line_buffer->streams = line_buffer->streams || best.ahead;
}

bool line_buffer_is_better(const struct line_buffer *line_buffer, const struct box *box)
{
	if (line_buffer->why || !line_buffer->streams)
		return false;
	if (line_buffer_has_taps(line_buffer))
		return true;
	if (line_buffer->elements >= box->elements * box->halves)
		return false;
	int64_t fill = product(box->fill.trip, 0, box->fill.loops);
	int64_t drain = product(box->drain.trip, 0, box->drain.loops);
	int64_t longer = fill > drain ? fill : drain;
	int64_t blocks = product(box->fill.trip, 0, box->shared);
	int64_t cycles = longer + (fill + drain - longer) / blocks;
	return line_buffer->cycles <= cycles + cycles / SLOWER_PART;
}

static bool at_run_time(struct walk walk)
{
	for (int l = 0; l < walk.loops; l++)
		if (walk_run_time(walk, l))
			return true;
	return false;
}

/* Elements of the ring; of memories of columns and of taps in registers. */
static int64_t elements_of(const struct line_buffer *line_buffer, int64_t lanes)
{
	const int64_t *taps = line_buffer->taps;
	const int64_t *pitch = line_buffer->pitch;
	if (!line_buffer_has_taps(line_buffer))
		return line_buffer->words * lanes;
	if (line_buffer_reads_columns(line_buffer))
		return 2 * pitch[0] * taps[0] * lanes;
	int64_t groups = taps[1] > 1 ? pitch[1] : 1;
	return (pitch[0] * (taps[0] - 1) + groups * taps[0] * taps[1]) * lanes;
}

/* Can a tile be read in registers or columns?  While a position is read it must not move along the
 * inner taps, nor farther than to the columns of one row. */
static bool taps_fit(const struct line_buffer *line_buffer)
{
	int64_t reach = 0;
	if (!line_buffer_has_taps(line_buffer))
		return true;
	for (int l = line_buffer->outer; l < line_buffer->loops; l++) {
		if (line_buffer->step[l] < 0)
			return false;
		reach += line_buffer->step[l] * (line_buffer->trip[l] - 1);
	}
	if (reach >= line_buffer->pitch[0])
		return false;
	return line_buffer->pitch[0] % (line_buffer->taps[1] > 1 ? line_buffer->pitch[1] : 1) ==
	        0 &&
	        (line_buffer->taps[1] == 1 || !line_buffer_reads_columns(line_buffer));
}

struct line_buffer line_buffer_between(
        struct arena *arena, const struct type *from, const struct type *to)
{
	struct walk writer = walk_normal(arena, itensor_walk(arena, from));
	struct walk reader = walk_normal(arena, itensor_walk(arena, to));
	struct line_buffer line_buffer = { 0 };
	int64_t *weight = ARENA_ARRAY(arena, int64_t, writer.rank + 1);
	int64_t words;
	int64_t low = 0;
	int64_t high = 0;
	int64_t last;
	if (at_run_time(writer) || at_run_time(reader))
		line_buffer.why = "an extent is known at run time only";
	else if (writer.scalar != reader.scalar || writer.rank != reader.rank)
		line_buffer.why = "the writer's words are not the reader's";
	else
		line_buffer.why = word_weights(writer, weight, &words);
	if (!line_buffer.why)
		line_buffer.why = find_taps(writer, reader, weight, &line_buffer);
	if (!line_buffer.why && !inside(writer, reader, weight))
		line_buffer.why = "the reader's tiles are not those that the writer sends";
	if (line_buffer.why)
		return line_buffer;
	word_steps(arena, writer, reader, weight, &line_buffer);
	count_outer_loops(arena, &line_buffer);
	for (int l = line_buffer.outer; l < line_buffer.loops; l++) {
		low += line_buffer.step[l] < 0 ? line_buffer.step[l] * (line_buffer.trip[l] - 1)
		                               : 0;
		high += line_buffer.step[l] > 0 ? line_buffer.step[l] * (line_buffer.trip[l] - 1)
		                                : 0;
	}
	high += (line_buffer.taps[0] - 1) * line_buffer.pitch[0] +
	        (line_buffer.taps[1] - 1) * line_buffer.pitch[1];
	line_buffer.words = high - low + 1;
	line_buffer.first = line_buffer.start + high + 1;
	last = line_buffer.first;
	for (int l = 0; l < line_buffer.outer; l++)
		last += line_buffer.step[l] * (line_buffer.trip[l] - 1);
	line_buffer.rest = words - last;
	line_buffer.streams = line_buffer.outer && taps_fit(&line_buffer) &&
	        arrives_in_time(arena, &line_buffer, -low);
	if (line_buffer.streams && line_buffer_has_taps(&line_buffer) &&
	        !line_buffer_reads_columns(&line_buffer))
		line_buffer.delay = line_buffer.carry[line_buffer.outer - 1] - 1;
	line_buffer.cycles = cycles_of(&line_buffer);
	if (line_buffer.outer)
		receive_ahead(arena, &line_buffer);
	line_buffer.elements = elements_of(&line_buffer, type_elements(from->element));
	return line_buffer;
}
