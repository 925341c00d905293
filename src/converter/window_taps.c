/* Builds the taps of a window in a process. A word that comes joins those above it to a column of
 * taps, and goes with them to the memory of columns; columns shift through the window:
 *
 *     columns[x] = [row y - 2, row y - 1]    a word of row y comes: column = [y - 2, y - 1, y]
 *     window     = [column x - 2, column x - 1, column]    with channels in groups, one a group
 *
 * Words come in order, so their column is a counter. Where nothing comes, the window stays. */
#include "converter/window_taps.h"

struct window_taps {
	const struct line_buffer *line_buffer;
	const struct type *scalar;
	int64_t lanes; /* of a word that comes */
	int64_t kept;  /* words of a column in memory */
	struct value *columns, *read_columns;
	struct value *windows;    /* by group of channels; NULL: there is one group */
	struct value *newest;     /* window, or column */
	struct value *at, *group; /* counters of columns and groups; NULL: there is one */
	const struct type *tile;
	const int64_t *source; /* [lanes of the tile] of the window; NULL: they are the same */
};

static const struct type *words_type(
        const struct process *p, const struct window_taps *taps, int64_t words)
{
	int64_t lanes = words * taps->lanes;
	return lanes == 1 ? taps->scalar
	                  : type_shaped(p->module, TYPE_VECTOR, 1, &lanes, taps->scalar);
}

static int64_t groups_of(const struct line_buffer *line_buffer)
{
	return line_buffer->taps[1] > 1 ? line_buffer->pitch[1] : 1;
}

static bool reads_columns(const struct window_taps *taps)
{
	return line_buffer_reads_columns(taps->line_buffer);
}

/* Where lane `lane` of the reader's tile is in a window: columns one after the other, of words from
 * top to bottom. */
static int64_t source_of(const struct line_buffer *line_buffer, const struct type *from,
        const struct type *to, int64_t lane)
{
	int64_t tap[2] = { 0, 0 };
	int64_t inside = 0;
	int64_t pitch = 1;
	for (int r = to->itensor->map.results - 1; r >= 0; r--) {
		int64_t index = lane % stream_tile(to, r);
		lane /= stream_tile(to, r);
		for (int d = 0; d < 2; d++)
			if (line_buffer->taps[d] > 1 && line_buffer->tap_dim[d] == r)
				tap[d] = index / stream_tile(from, r);
		inside += index % stream_tile(from, r) * pitch;
		pitch *= stream_tile(from, r);
	}
	return (tap[1] * line_buffer->taps[0] + tap[0]) * pitch + inside;
}

static const int64_t *list_sources(struct arena *arena, const struct line_buffer *line_buffer,
        const struct type *from, const struct type *to)
{
	int64_t *source = ARENA_ARRAY(arena, int64_t, stream_lanes(to));
	bool same = true;
	for (int64_t l = 0; l < stream_lanes(to); l++) {
		source[l] = source_of(line_buffer, from, to, l);
		same = same && source[l] == l;
	}
	return same ? NULL : source;
}

static struct value *counter_of(struct process *p, const char *name, int64_t numbers)
{
	return numbers > 1 ? make_array(p, name, 1, type_index(p->module), 1) : NULL;
}

static struct value *memory_of(struct process *p, const struct window_taps *taps, const char *name,
        int64_t columns, int64_t words)
{
	struct value *array = make_array(p, name, columns + 1, words_type(p, taps, words), 1);
	if (columns > 1)
		attr_set(p->module, array->def, KEY_STREAM_DISTANCE,
		        attr_integer(p->module, columns));
	return array;
}

struct window_taps *window_taps_new(struct process *p, const struct line_buffer *line_buffer,
        const struct type *from, const struct type *to)
{
	struct window_taps *taps = ARENA_NEW(p->module->arena, struct window_taps);
	int64_t groups = groups_of(line_buffer);
	int64_t rows = line_buffer->taps[0];
	*taps = (struct window_taps){ .line_buffer = line_buffer,
		.scalar = type_scalar(from),
		.lanes = stream_lanes(from),
		.tile = stream_word(p->module, to) };
	taps->kept = reads_columns(taps) ? rows : rows - 1;
	taps->source = list_sources(p->module->arena, line_buffer, from, to);
	taps->columns = memory_of(p, taps, "columns", line_buffer->pitch[0], taps->kept);
	taps->at = counter_of(p, "column", line_buffer->pitch[0]);
	if (reads_columns(taps)) {
		taps->read_columns = make_array(
		        p, "read", line_buffer->pitch[0] + 1, words_type(p, taps, rows), 1);
		return taps;
	}
	taps->group = counter_of(p, "group", groups);
	if (groups > 1)
		taps->windows = memory_of(p, taps, "windows", groups, rows * line_buffer->taps[1]);
	taps->newest =
	        make_array(p, "window", 1, words_type(p, taps, rows * line_buffer->taps[1]), 1);
	return taps;
}

/* The next number of a counter that starts at 0 with the first word. */
static struct value *advance(struct process *p, struct value *counter, int64_t numbers,
        struct value *at_first, struct value *when)
{
	const int64_t one = 1;
	struct value *zero = make_index(p, 0);
	if (!counter)
		return zero;
	struct value *before = make_load(p, counter, zero);
	struct value *last = make_equal(p, before, numbers - 1);
	struct value *after = make_address(p, 1, &before, &one, 1);
	struct value *next = make_select(p, last, zero, after);
	if (at_first)
		next = make_select(p, at_first, zero, next);
	make_store(p, when ? make_select(p, when, next, before) : next, counter, zero);
	return next;
}

/* Part `number` of a word of several. */
static struct value *part_of(
        struct process *p, struct value *word, const struct type *part, int64_t number)
{
	if (word->type == part)
		return word;
	struct value *operand[2] = { word, make_index(p, number) };
	return make_op(p, OP_SPLIT_LANES, part, 2, operand);
}

static struct value *join(
        struct process *p, const struct type *type, int64_t parts, struct value **part)
{
	return parts == 1 ? part[0] : make_op(p, OP_JOIN_LANES, type, (int)parts, part);
}

static struct value *place_when(
        struct process *p, struct value *when, struct value *place, int64_t nowhere)
{
	return when ? make_select(p, when, place, make_index(p, nowhere)) : place;
}

/* The window with the column behind its last ones. */
static void shift_window(struct process *p, struct window_taps *taps, struct value *column,
        struct value *at_first, struct value *when)
{
	const struct line_buffer *w = taps->line_buffer;
	int64_t groups = groups_of(w);
	struct value *zero = make_index(p, 0);
	struct value **part = ARENA_ARRAY(p->module->arena, struct value *, w->taps[1]);
	struct value *before = make_load(p, taps->newest, zero);
	struct value *group = advance(p, taps->group, groups, at_first, when);
	struct value *own = taps->windows ? make_load(p, taps->windows, group) : before;
	for (int64_t i = 0; i < w->taps[1] - 1; i++)
		part[i] = part_of(p, own, column->type, i + 1);
	part[w->taps[1] - 1] = column;
	struct value *window = join(p, taps->newest->type->element, w->taps[1], part);
	if (taps->windows)
		make_store(p, window, taps->windows, place_when(p, when, group, groups));
	make_store(p, when ? make_select(p, when, window, before) : window, taps->newest, zero);
}

static void add(struct process *p, struct window_taps *taps, struct value *at_first,
        struct value *when, struct value *word)
{
	const struct line_buffer *w = taps->line_buffer;
	int64_t rows = w->taps[0];
	struct value **part = ARENA_ARRAY(p->module->arena, struct value *, rows);
	struct value *at = advance(p, taps->at, w->pitch[0], at_first, when);
	struct value *above = make_load(p, taps->columns, at);
	for (int64_t i = 0; i < rows - 1; i++)
		part[i] = part_of(p, above, word->type, taps->kept - (rows - 1) + i);
	part[rows - 1] = word;
	struct value *place = place_when(p, when, at, w->pitch[0]);
	struct value *kept = join(p, above->type, taps->kept, part + rows - taps->kept);
	make_store(p, kept, taps->columns, place);
	struct value *column = join(p, words_type(p, taps, rows), rows, part);
	if (taps->read_columns)
		make_store(p, column, taps->read_columns, place);
	else
		shift_window(p, taps, column, at_first, when);
}

void window_taps_begin(
        struct process *p, struct window_taps *taps, struct value *at_first, struct value *word)
{
	add(p, taps, at_first, NULL, word);
}

void window_taps_add(
        struct process *p, struct window_taps *taps, struct value *when, struct value *word)
{
	add(p, taps, NULL, when, word);
}

/* The column that the reader's counters are at. */
static struct value *column_address(struct process *p, const struct window_taps *taps,
        struct value *const *counter, int64_t early)
{
	const struct line_buffer *w = taps->line_buffer;
	int64_t *step = ARENA_ARRAY(p->module->arena, int64_t, w->loops + 1);
	int64_t offset = w->start % w->pitch[0];
	int64_t most = offset;
	for (int l = 0; l < w->loops; l++) {
		step[l] = w->step[l] % w->pitch[0];
		most += step[l] * (w->trip[l] - 1);
	}
	offset += w->pitch[0] * early - step[w->outer - 1] * early;
	struct value *place = make_address(p, w->loops, counter, step, offset);
	return most < w->pitch[0] && !early ? place : make_divided(p, OP_REMSI, place, w->pitch[0]);
}

struct value *window_taps_read(
        struct process *p, struct window_taps *taps, struct value *const *counter, int64_t early)
{
	struct value *window = taps->read_columns
	        ? make_load(p, taps->read_columns, column_address(p, taps, counter, early))
	        : make_load(p, taps->newest, make_index(p, 0));
	if (!taps->source)
		return window;
	int64_t lanes = type_lanes(taps->tile);
	struct value **lane = ARENA_ARRAY(p->module->arena, struct value *, lanes);
	for (int64_t i = 0; i < lanes; i++)
		lane[i] = make_op(p, OP_LANE, taps->scalar, 2,
		        (struct value *[2]){ window, make_index(p, taps->source[i]) });
	return make_op(p, OP_JOIN_LANES, taps->tile, (int)lanes, lane);
}
