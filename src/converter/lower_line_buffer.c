/* Lowers a converter whose reader's windows overlap to one process with a ring of words
 * (src/itensor/line_buffer.h). Words are popped before their first use: those that the innermost
 * moving loop adds while the position is read, those of other loops before them. What the loop of
 * rows adds comes in positions of its own, if that is quicker than a second nest:
 *
 *     rows │ positions that only pop, then columns │ window: pop a fresh word, push a word
 *
 * or while the row before is read, where the ring holds it beside that row: `ahead`.
 *
 * An extra word of the array takes what iterations store that pop nothing.  Taps, of a reader whose
 * tile is several words, are held by window_taps.c instead of a ring. */
#include "converter/lower_converters.h"
#include "itensor/line_buffer.h"
#include "base/number.h"
#include "converter/lower_box.h"
#include "converter/window_taps.h"

#define RESTART_CYCLES 16       /* of a pipeline between two nests, about */
#define ROUND_BITS (16 * 18432) /* most bits that a power of two may add */

struct ring {
	struct process p;
	const struct line_buffer *line_buffer;
	struct value *in, *out, *array;
	struct window_taps *taps; /* NULL: a ring of words */
	int64_t words;            /* of the array, but for the extra word */
	int64_t points;           /* iterations of a position */
	int64_t early;            /* positions that only pop, before the first one of a row */
	struct value **counter;   /* [loops] */
};

/* The words of a ring that holds `words`: a power of two, whose remainders are wires, unless that
 * takes many bits more. */
static int64_t ring_words(int64_t words, int64_t bits)
{
	int64_t ring = power_of_two_from(words);
	return (ring - words) * bits <= ROUND_BITS ? ring : words;
}

static struct value *ring_address(struct ring *r, struct value *word)
{
	return make_divided(&r->p, OP_REMSI, word, r->words);
}

/* An offset of addresses that the counters up to `loop` are part of, without the positions that
 * only pop.  Whole rings keep it above 0, since their remainder is taken. */
static int64_t ring_offset(const struct ring *r, int loop, int64_t offset)
{
	if (loop == r->line_buffer->outer - 1)
		offset -= r->early * r->line_buffer->step[loop];
	while (offset < 0)
		offset += r->words;
	return offset;
}

/* Position, in the writer's sequence, of word `number` of those that are popped when loop `loop`
 * advances; NULL: taps need none, since words come in order. */
static struct value *fresh_word(struct ring *r, int loop, struct value *number)
{
	struct arena *arena = r->p.module->arena;
	struct value **all = ARENA_ARRAY(arena, struct value *, loop + 2);
	int64_t *step = ARENA_ARRAY(arena, int64_t, loop + 2);
	if (r->taps)
		return NULL;
	for (int l = 0; l <= loop; l++) {
		all[l] = r->counter[l];
		step[l] = r->line_buffer->step[l];
	}
	all[loop + 1] = number;
	step[loop + 1] = 1;
	return make_address(&r->p, loop + 2, all, step,
	        ring_offset(r, loop, r->line_buffer->first - r->line_buffer->carry[loop]));
}

static void take_first(struct ring *r)
{
	struct value *number;
	int opened = process_nest(&r->p, 1, &r->line_buffer->first, 1, &number);
	struct value *word = number ? number : make_index(&r->p, 0);
	struct value *taken = make_pop(&r->p, NULL, r->in);
	if (r->taps)
		window_taps_begin(&r->p, r->taps, make_equal(&r->p, word, 0), taken);
	else
		make_store(&r->p, taken, r->array, ring_address(r, word));
	process_close(&r->p, opened);
}

static void store_when(struct ring *r, struct value *when, struct value *word)
{
	struct value *taken = make_pop(&r->p, when, r->in);
	if (r->taps) {
		window_taps_add(&r->p, r->taps, when, taken);
		return;
	}
	struct value *nowhere = make_index(&r->p, r->words);
	struct value *place = make_select(&r->p, when, ring_address(r, word), nowhere);
	make_store(&r->p, taken, r->array, place);
}

static void take_carry(struct ring *r, int loop)
{
	struct value *number;
	int opened = process_nest(&r->p, 1, &r->line_buffer->carry[loop], 1, &number);
	struct value *word = fresh_word(r, loop, number);
	store_when(r, make_compare(&r->p, CMPI_SGT, r->counter[loop], 0), word);
	process_close(&r->p, opened);
}

/* When a word is popped for the row to come, and which one: `number` counts the reads of a
 * position. */
static struct value *early_word(
        struct ring *r, struct value *early, struct value *number, struct value **word)
{
	int last = r->line_buffer->outer - 1;
	const int64_t weight[2] = { r->points, 1 };
	struct value *counted[2] = { r->counter[last], number };
	struct value *before = make_address(&r->p, 2, counted, weight, 0);
	struct value *due = make_compare(&r->p, CMPI_SLT, before, r->line_buffer->carry[last - 1]);
	struct value *later = make_compare(&r->p, CMPI_SGT, r->counter[last - 1], 0);
	if (!r->taps)
		*word = make_select(&r->p, early, fresh_word(r, last - 1, before), *word);
	return make_and(&r->p, later, due);
}

/* When a word is popped for the next turn of a loop, and which one: each position pops `ahead` of
 * them. */
static struct value *word_ahead(struct ring *r, struct value *number, struct value **word)
{
	const struct line_buffer *w = r->line_buffer;
	int loop = w->ahead_loop;
	int inner = w->outer - loop - 1;
	int64_t *weight = ARENA_ARRAY(r->p.module->arena, int64_t, inner + 1);
	struct value **counted = ARENA_ARRAY(r->p.module->arena, struct value *, inner + 1);
	int64_t share = w->ahead;
	for (int i = inner - 1; i >= 0; i--) {
		weight[i] = share;
		counted[i] = r->counter[loop + 1 + i];
		share *= w->trip[loop + 1 + i];
	}
	weight[inner] = 1;
	counted[inner] = number;
	struct value *before = make_address(&r->p, inner + 1, counted, weight, 0);
	struct value *some = make_compare(&r->p, CMPI_SLT, number, w->ahead);
	struct value *due = make_compare(&r->p, CMPI_SLT, before, w->step[loop]);
	struct value *more = make_compare(&r->p, CMPI_SLT, r->counter[loop], w->trip[loop] - 1);
	*word = fresh_word(r, loop, before);
	return make_and(&r->p, more, make_and(&r->p, some, due));
}

/* The iteration of a position, and the loops that it is made of. */
static struct value *open_position(struct ring *r, int *opened)
{
	const struct line_buffer *w = r->line_buffer;
	int inner = w->loops - w->outer;
	int64_t *weight = ARENA_ARRAY(r->p.module->arena, int64_t, inner + 1);
	int64_t points = 1;
	struct value *number;
	if (w->delay) {
		*opened = process_nest(&r->p, 1, &r->points, 1, &number);
		return number;
	}
	*opened = process_nest(&r->p, inner, w->trip + w->outer, 1, r->counter + w->outer);
	for (int i = inner - 1; i >= 0; i--) {
		weight[i] = points;
		points *= w->trip[w->outer + i];
	}
	return make_address(&r->p, inner, r->counter + w->outer, weight, 0);
}

static struct value *read_word(struct ring *r)
{
	const struct line_buffer *w = r->line_buffer;
	int64_t offset = ring_offset(r, w->outer - 1, w->start);
	if (r->taps)
		return window_taps_read(&r->p, r->taps, r->counter, r->early);
	struct value *place = make_address(&r->p, w->loops, r->counter, w->step, offset);
	return make_load(&r->p, r->array, ring_address(r, place));
}

/* Reads one position, and meanwhile pops the words that the innermost moving loop adds to it. */
static void read_position(struct ring *r)
{
	const struct line_buffer *w = r->line_buffer;
	int last = w->outer - 1;
	int opened;
	struct value *number = open_position(r, &opened);
	struct value *carried = make_compare(&r->p, CMPI_SLT, number, w->carry[last]);
	struct value *later = make_compare(&r->p, CMPI_SGT, r->counter[last], r->early);
	struct value *when = make_and(&r->p, later, carried);
	struct value *word = fresh_word(r, last, number);
	struct value *pushes = NULL;
	if (w->ahead)
		when = word_ahead(r, number, &word);
	if (r->early) {
		struct value *early = make_compare(&r->p, CMPI_SLT, r->counter[last], r->early);
		struct value *before = early_word(r, early, number, &word);
		when = make_select(&r->p, early, before, when);
		pushes = make_compare(&r->p, CMPI_SGE, r->counter[last], r->early);
	}
	if (w->delay)
		pushes = make_and(&r->p, pushes, make_compare(&r->p, CMPI_SGE, number, w->delay));
	store_when(r, when, word);
	make_push(&r->p, pushes, read_word(r), r->out);
	process_close(&r->p, opened);
}

/* Positions that only pop what the loop around the innermost moving one adds; none where a nest of
 * its own takes fewer cycles. */
static int64_t early_positions(const struct ring *r)
{
	int row = r->line_buffer->outer - 2;
	int64_t carry = row < 0 ? 0 : r->line_buffer->carry[row];
	int64_t early = ceil_div(carry, r->points);
	return early * r->points - carry <= RESTART_CYCLES ? early : 0;
}

static void drop_rest(struct ring *r)
{
	struct value *number;
	int opened = process_nest(&r->p, 1, &r->line_buffer->rest, 1, &number);
	make_pop(&r->p, NULL, r->in);
	process_close(&r->p, opened);
}

static void walk_positions(struct ring *r)
{
	const struct line_buffer *w = r->line_buffer;
	for (int l = 0; l < w->outer; l++) {
		bool last = l == w->outer - 1;
		bool nested = r->early && l == w->outer - 2;
		r->counter[l] = process_loop(&r->p, w->trip[l] + (last ? r->early : 0));
		if (!last && !nested && w->carry[l])
			take_carry(r, l);
	}
	read_position(r);
	process_close(&r->p, w->outer);
}

bool lower_line_buffer(struct design *design, const struct op *op)
{
	struct module *module = design->module;
	const struct type *from = op->operand[0]->type;
	const struct type *to = op->result[0]->type;
	struct line_buffer line_buffer = line_buffer_between(module->arena, from, to);
	int64_t lanes = stream_lanes(from);
	int64_t size = attr_integer_or(op, KEY_BUFFER_ELEMENTS, 0);
	if (line_buffer.why || !line_buffer.streams) {
		diag_error(module->diag, op->location, "stream.convert: %s",
		        line_buffer.why ? line_buffer.why
		                        : "a line buffer that does not advance while it is read");
		return diag_note(module->diag, "from %s to %s", from->text, to->text);
	}
	if (size != line_buffer.elements) {
		diag_error(module->diag, op->location,
		        "stream.convert: a line buffer of %lld elements", (long long)size);
		return diag_note(module->diag, "it needs %lld, from its oldest to its newest word",
		        (long long)line_buffer.elements);
	}
	struct ring r = { .p = process_new(design, "line_buffer"),
		.line_buffer = &line_buffer,
		.counter = ARENA_ARRAY(module->arena, struct value *, line_buffer.loops + 1) };
	r.in = process_argument(&r.p, stream_fifo(design, op->operand[0]), "x");
	r.out = process_argument(&r.p, stream_fifo(design, op->result[0]), "y");
	r.words = ring_words(line_buffer.words, lanes * type_bits(type_scalar(from)));
	if (line_buffer_has_taps(&line_buffer))
		r.taps = window_taps_new(&r.p, &line_buffer, from, to);
	else
		r.array =
		        make_array(&r.p, "line_buffer", r.words + 1, stream_word(module, from), 1);
	r.points = 1;
	for (int l = line_buffer.outer; l < line_buffer.loops; l++)
		r.points *= line_buffer.trip[l];
	r.points += line_buffer.delay;
	r.early = early_positions(&r);
	process_layers(&r.p);
	take_first(&r);
	walk_positions(&r);
	if (line_buffer.rest)
		drop_rest(&r);
	process_close(&r.p, design->layers > 0);
	process_finish(&r.p);
	return true;
}
