/* A converter as two processes, *fill* and *drain*, on a channel of blocks (src/itensor/box.h
 * says what a block holds and how each side steps through it). One block a turn of the shared
 * loops; with two halves both sides work at once.
 * What puts rows of a launch in another order has nothing to do where there is one: its words
 * pass by the block then, and none waits for the last. */
#include "ir/converter.h"
#include "ir/workload.h"
#include "ir/launch_tokens.h"
#include "converter/replay_buffer.h"
#include "converter/causal_buffer.h"
#include "converter/lower_box.h"

struct bypass {             /* words of a row that is alone */
	struct value *fifo; /* NULL: they do not pass */
	int64_t words;      /* in a turn of the shared loops */
	/* one turn where there is one row, else none */
	struct run_time_trip single_token;
};

/* loops of a side where there is one row: those of one turn are left out, neighbours that go on
 * where the other ends are one */
struct token_walk {
	int loops;
	int64_t *trip, *step;
};

static bool counts_tokens(const struct run_time_trip *trip, const char *rows)
{
	return text_same(trip->symbol, rows) && !trip->plus && !trip->remaining && !trip->least &&
	        !trip->interleave;
}

/* false: how many turns some loop has then is not known. */
static bool walk_row(struct arena *arena, const struct box_side *side, int shared, const char *rows,
        struct token_walk *token_walk)
{
	*token_walk = (struct token_walk){ 0, ARENA_ARRAY(arena, int64_t, side->loops + 1),
		ARENA_ARRAY(arena, int64_t, side->loops + 1) };
	for (int l = shared; l < side->loops; l++) {
		const struct run_time_trip *trip = side->run_time[l];
		if (trip && !counts_tokens(trip, rows))
			return false;
		int64_t turns = trip ? side->trip[l] / trip->most : side->trip[l];
		int last = token_walk->loops - 1;
		bool joins = last >= 0 && token_walk->step[last] == side->step[l] * turns;
		if (turns == 1)
			continue;
		token_walk->trip[joins ? last : token_walk->loops] =
		        turns * (joins ? token_walk->trip[last] : 1);
		token_walk->step[joins ? last : token_walk->loops] = side->step[l];
		token_walk->loops += !joins;
	}
	return true;
}

/* Words of one row, which both sides have in the same order; 0: they have not, or there may be
 * no such launch. */
static int64_t words_of_row(struct arena *arena, const struct box *box, const char *rows)
{
	struct token_walk fill;
	struct token_walk drain;
	if (!walk_row(arena, &box->fill, box->shared, rows, &fill) ||
	        !walk_row(arena, &box->drain, box->shared, rows, &drain))
		return 0;
	bool same = fill.loops == drain.loops && box->fill.lanes == box->drain.lanes &&
	        box->fill.first == box->drain.first;
	for (int64_t l = 0; same && l < box->fill.lanes; l++)
		same = box->fill.lane[l] == box->drain.lane[l];
	int64_t words = 1;
	for (int l = 0; same && l < fill.loops; l++) {
		same = fill.trip[l] == drain.trip[l] && fill.step[l] == drain.step[l];
		words *= fill.trip[l];
	}
	return same ? words : 0;
}

static const char *token_symbol(const struct box *box, const struct op *main)
{
	for (int l = box->shared; l < box->fill.loops; l++)
		if (box->fill.run_time[l] && tokens_counted_by(main, box->fill.run_time[l]->symbol))
			return box->fill.run_time[l]->symbol;
	return NULL;
}

/* Where all tokens of a launch are one tile it gains nothing that is worth its LUTs. */
static struct bypass bypass_of(
        struct design *design, const struct box *box, const struct type *word)
{
	const char *rows = engine_has_run_time_tiles(design->source->region[0])
	        ? token_symbol(box, design->source)
	        : NULL;
	int64_t words = rows ? words_of_row(design->module->arena, box, rows) : 0;
	if (!words)
		return (struct bypass){ 0 };
	return (struct bypass){ design_fifo(design, "s_bypass", word, 2), words,
		{ .symbol = rows, .plus = -1, .tile = 1, .most = 1, .remaining = true } };
}

/* The reader's side: the block, which they were written to as well, is released unread. */
static void bypass_words(struct process *p, const struct bypass *bypass, struct value *words)
{
	process_loop_run_time(p, bypass->words, &bypass->single_token);
	process_pipeline(p, 1);
	make_push(p, NULL, make_pop(p, NULL, process_argument(p, bypass->fifo, "row")), words);
	process_close(p, 1);
}

static struct value *is_single_token(
        struct process *p, const struct bypass *bypass, bool single_token)
{
	return bypass->fifo
	        ? make_equal(p, process_trip_count(p, &bypass->single_token, 1), single_token)
	        : NULL;
}

static void lower_side(struct design *design, const struct side *side, const struct bypass *bypass,
        struct value *blocks, struct value *fifo, bool fill, bool once)
{
	struct process p = process_new(design, fill ? "fill" : "drain");
	struct value *channel = process_argument(&p, blocks, "blocks");
	struct value *words = process_argument(&p, fifo, fill ? "x" : "y");
	int loops = side->shared;
	struct value **counter =
	        ARENA_ARRAY(p.module->arena, struct value *, side->steps->loops + 1);
	if (!once) {
		process_layers(&p);
		loops += design->layers > 0;
	}
	for (int i = 0; i < side->shared; i++)
		process_loop_run_time(&p, side->steps->trip[i], side->steps->run_time[i]);
	if (bypass->fifo && !fill)
		bypass_words(&p, bypass, words);
	struct value *array = make_op(&p, OP_ACQUIRE, blocks->type->element, 1, &channel);
	attr_set(p.module, array->def, KEY_SIDE, attr_string(p.module, fill ? "write" : "read"));
	int held = once && design->layers && !fill;
	if (held) /* the block is kept for all layers */
		process_layers(&p);
	int opened = side_loops(&p, side, counter);
	struct value *word = fill ? make_pop(&p, NULL, words) : side_read(&p, side, array, counter);
	if (fill)
		side_write(&p, side, array, counter, word);
	if (!fill || bypass->fifo)
		make_push(&p, is_single_token(&p, bypass, fill), word,
		        fill ? process_argument(&p, bypass->fifo, "row") : words);
	process_close(&p, opened + held);
	struct value *operand[2] = { array, channel };
	op_append(p.block, op_new(p.module, OP_RELEASE, NOWHERE, 2, operand, 0, NULL));
	process_close(&p, loops);
	process_finish(&p);
}

/* Opens the loops of a side behind the first so many. */
static int loops_inside(
        struct process *p, const struct box_side *side, int first, struct value **counter)
{
	return process_nest_run_time(p, side->loops - first, side->trip + first,
	        side->run_time + first, 1, counter + first);
}

/* One process, in each turn of which a tile is taken and all are given
 * (converter/causal_buffer.h), part by part where both sides have the same outer loops. */
static bool lower_causal_buffer(struct design *design, const struct op *op)
{
	struct module *module = design->module;
	struct causal_buffer causal_buffer =
	        causal_buffer_between(module->arena, attr_get(op, KEY_TENSOR)->type,
	                op->operand[0]->type, op->result[0]->type, attr_get(op, KEY_CAUSAL));
	if (causal_buffer.why) {
		diag_error(module->diag, op->location, "stream.convert: causal buffer, but %s",
		        causal_buffer.why);
		return diag_note(module->diag, "from %s to %s", op->operand[0]->type->text,
		        op->result[0]->type->text);
	}
	int64_t word = box_word(&causal_buffer.box);
	int64_t widest = causal_buffer.fill.lanes > causal_buffer.drain.lanes
	        ? causal_buffer.fill.lanes
	        : causal_buffer.drain.lanes;
	const struct type *scalar = type_scalar(op->result[0]->type);
	const struct type *element =
	        word > 1 ? type_shaped(module, TYPE_VECTOR, 1, &word, scalar) : scalar;
	struct side fill = { .steps = &causal_buffer.fill, .word = word };
	struct side drain = { .steps = &causal_buffer.drain,
		.word = word,
		.type = stream_word(module, op->result[0]->type) };
	struct process p = process_new(design, "causal");
	struct value *in = process_argument(&p, stream_fifo(design, op->operand[0]), "x");
	struct value *out = process_argument(&p, stream_fifo(design, op->result[0]), "y");
	struct value *array = make_array(&p, "words", causal_buffer.box.elements / word, element,
	        word < widest ? widest / word : 1);
	struct value **taken = ARENA_ARRAY(module->arena, struct value *, causal_buffer.fill.loops);
	struct value **drain_counter =
	        ARENA_ARRAY(module->arena, struct value *, causal_buffer.drain.loops);
	const int64_t one = 1;
	process_layers(&p);
	struct value *turn =
	        process_loop_run_time(&p, causal_buffer.tiles, causal_buffer.valid_tiles);
	taken[0] = turn;
	int shared = 0;
	for (int i = 0; i < causal_buffer.shared; i++) {
		bool loop = causal_buffer.drain.trip[i] > 1;
		taken[1 + i] = drain_counter[i] =
		        loop ? process_loop(&p, causal_buffer.drain.trip[i]) : NULL;
		shared += loop;
	}
	int opened = loops_inside(&p, &causal_buffer.fill, 1 + causal_buffer.shared, taken);
	side_write(&p, &fill, array, taken, make_pop(&p, NULL, in));
	process_close(&p, opened);
	opened = loops_inside(&p, &causal_buffer.drain, causal_buffer.shared, drain_counter);
	struct value *tile =
	        make_address(&p, 1, &drain_counter[causal_buffer.part], &one, causal_buffer.first);
	struct value *valid_tiles = make_select(&p, make_below(&p, turn, tile), turn, tile);
	drain_counter[causal_buffer.part] =
	        make_address(&p, 1, &valid_tiles, &one, -causal_buffer.first);
	make_push(&p, NULL, side_read(&p, &drain, array, drain_counter), out);
	process_close(&p, opened + shared + 1 + (design->layers > 0));
	process_finish(&p);
	return true;
}

bool lower_convert(struct design *design, const struct op *op, bool crossing)
{
	if (converter_form(op) == CONVERTER_CAUSAL)
		return lower_causal_buffer(design, op);
	struct module *module = design->module;
	struct replay_buffer replay_buffer;
	if (!crossing && converter_form(op) == CONVERTER_REPLAY &&
	        replay_buffer_of(module->arena, op, &replay_buffer)) {
		lower_replay_buffer(design, op, &replay_buffer);
		return true;
	}
	const struct type *tensor = attr_get(op, KEY_TENSOR)->type;
	const struct type *from = op->operand[0]->type;
	const struct type *to = op->result[0]->type;
	struct box box = box_between(module->arena, tensor, from, to, converter_shared_loops(op));
	if (!box_is_right(design, op, to, &box, crossing))
		return false;
	int64_t halves = attr_integer_or(op, KEY_HALVES, box.halves);
	if (halves < 1 || halves > box.halves)
		return diag_error(module->diag, op->location,
		        "%s: %lld buffer copies, of which %d can be used at once",
		        op_info[op->code].name, (long long)halves, box.halves);
	int64_t word = box_word(&box);
	int64_t size = box.elements / word;
	int64_t widest = box.fill.lanes > box.drain.lanes ? box.fill.lanes : box.drain.lanes;
	const struct type *element = word > 1
	        ? type_shaped(module, TYPE_VECTOR, 1, &word, type_scalar(tensor))
	        : type_scalar(tensor);
	struct value *blocks = design_blocks(
	        design, "b_convert", type_shaped(module, TYPE_MEMREF, 1, &size, element), halves);
	if (word < widest)
		attr_set(module, blocks->def, KEY_STREAM_PARTITION,
		        attr_integer(module, widest / word));
	struct side fill = { .steps = &box.fill,
		.shared = box.shared,
		.word = word,
		.type = stream_word(module, from) };
	struct side drain = { .steps = &box.drain,
		.shared = box.shared,
		.word = word,
		.type = stream_word(module, to) };
	struct value *in = stream_fifo(design, op->operand[0]);
	struct value *out = stream_fifo(design, op->result[0]);
	int64_t layers = design->layers;
	struct bypass bypass = crossing ? (struct bypass){ 0 } : bypass_of(design, &box, fill.type);
	design->layers = crossing ? 0 : layers;
	lower_side(design, &fill, &bypass, blocks, in, true, crossing);
	design->layers = layers;
	lower_side(design, &drain, &bypass, blocks, out, false, crossing);
	return true;
}
