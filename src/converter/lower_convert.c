/* Lowers a converter (src/itensor/box.h says what its box holds and how each side walks it). With
 * one half it is one process, which fills an array and then drains it, in each iteration of the
 * shared loops. With two, *fill* and *drain* are processes that work at once on a channel of
 * blocks (ping-pong). A converter that reorders tokens has nothing to do for a single token: its
 * words bypass the box then, so none waits for the last one. */
#include "converter/lower_converters.h"
#include "ir/converter.h"
#include "ir/workload.h"
#include "ir/launch_tokens.h"
#include "converter/replay_buffer.h"
#include "converter/causal_buffer.h"
#include "converter/lower_box.h"

/* the path of a single token's words */
struct bypass {
	int64_t words; /* in an iteration of the shared loops; 0: there is no bypass */
	/* bound of a loop: 1 with a single token, else 0 */
	struct run_time_trip single_token;
};

/* The loops of a side with a single token, without those of one iteration; a loop that continues
 * where the one inside it ends is combined with it. */
struct token_walk {
	int loops;
	int64_t *trip, *step;
};

static bool counts_tokens(const struct run_time_trip *trip, const char *rows)
{
	return text_same(trip->symbol, rows) && !trip->plus && !trip->remaining && !trip->least &&
	        !trip->interleave;
}

/* false: the number of iterations of some loop with a single token is unknown */
static bool walk_row(struct arena *arena, const struct box_side *side, int shared, const char *rows,
        struct token_walk *token_walk)
{
	*token_walk = (struct token_walk){ 0, ARENA_ARRAY(arena, int64_t, side->loops + 1),
		ARENA_ARRAY(arena, int64_t, side->loops + 1) };
	for (int l = shared; l < side->loops; l++) {
		const struct run_time_trip *trip = side->run_time[l];
		if (trip && !counts_tokens(trip, rows))
			return false;
		int64_t trips = trip ? side->trip[l] / trip->most : side->trip[l];
		int last = token_walk->loops - 1;
		bool joins = last >= 0 && token_walk->step[last] == side->step[l] * trips;
		if (trips == 1)
			continue;
		if (!joins)
			token_walk->trip[++last] = 1;
		token_walk->trip[last] *= trips;
		token_walk->step[last] = side->step[l];
		token_walk->loops = last + 1;
	}
	return true;
}

/* Words of a single token, which both sides have in the same order. 0: their orders differ, or
 * are not known. */
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

/* only with several tiles: else it gains nothing that is worth its LUTs */
static struct bypass bypass_of(struct design *design, const struct box *box)
{
	const char *rows = workload_of(design->source) == WORKLOAD_TILED_COUNTED_TOKENS
	        ? token_symbol(box, design->source)
	        : NULL;
	return (struct bypass){ rows ? words_of_row(design->module->arena, box, rows) : 0,
		{ .symbol = rows, .plus = -1, .tile = 1, .most = 1, .remaining = true } };
}

struct conversion {
	struct bank_sides sides;
	struct banks banks;
	struct side fill, drain;
	struct value *from, *to; /* FIFOs */
	bool into_layers; /* its input comes from outside of the rolled layer that it is in */
	struct bypass bypass;
};

/* NULL: there is no bypass */
static struct value *is_single_token(
        struct process *p, const struct conversion *conversion, bool single_token)
{
	const struct bypass *bypass = &conversion->bypass;
	return bypass->words
	        ? make_equal(p, process_trip_count(p, &bypass->single_token, 1), single_token)
	        : NULL;
}

/* Opens the layers, if all of the side is in them, and the shared loops; returns how many. */
static int open_shared(struct process *p, const struct side *side, bool in_layers)
{
	if (in_layers)
		process_layers(p);
	for (int i = 0; i < side->shared; i++)
		process_loop_run_time(p, side->steps->trip[i], side->steps->run_time[i]);
	return side->shared + (in_layers && p->design->layers);
}

/* row: where a single token's words go too; NULL: there is no bypass */
static void fill_box(struct process *p, const struct conversion *conversion, struct value *array,
        struct value *words, struct value *row)
{
	const struct side *side = &conversion->fill;
	struct value **counter =
	        ARENA_ARRAY(p->module->arena, struct value *, side->steps->loops + 1);
	int opened = side_loops(p, side, counter);
	struct value *word = make_pop(p, NULL, words);
	side_write(p, side, array, counter, word);
	if (row)
		make_push(p, is_single_token(p, conversion, true), word, row);
	process_close(p, opened);
}

static void drain_box(struct process *p, const struct conversion *conversion, struct value *array,
        struct value *words)
{
	const struct side *side = &conversion->drain;
	struct value **counter =
	        ARENA_ARRAY(p->module->arena, struct value *, side->steps->loops + 1);
	if (conversion->into_layers) /* all layers read the same box */
		process_layers(p);
	int opened = side_loops(p, side, counter);
	struct value *word = side_read(p, side, array, counter);
	make_push(p, is_single_token(p, conversion, false), word, words);
	process_close(p, opened + (conversion->into_layers && p->design->layers));
}

/* One half: the process fills an array and drains it. */
static void lower_single(
        struct design *design, const struct conversion *conversion, const struct type *type)
{
	struct process p = process_new(design, "convert");
	struct value *array = make_shaped_array(&p, "box", type, banks_total(&conversion->banks));
	struct value *in = process_argument(&p, conversion->from, "x");
	struct value *out = process_argument(&p, conversion->to, "y");
	int opened = open_shared(&p, &conversion->fill, !conversion->into_layers);
	fill_box(&p, conversion, array, in, conversion->bypass.words ? out : NULL);
	drain_box(&p, conversion, array, out);
	process_close(&p, opened);
	process_finish(&p);
}

/* The reader's side: passes words on; the block, to which they were written as well, is released
 * unread. */
static void bypass_words(
        struct process *p, const struct bypass *bypass, struct value *row, struct value *words)
{
	process_loop_run_time(p, bypass->words, &bypass->single_token);
	process_pipeline(p, 1);
	make_push(p, NULL, make_pop(p, NULL, process_argument(p, row, "row")), words);
	process_close(p, 1);
}

/* One of two processes on a channel of blocks; row: FIFO of the bypass, or NULL. */
static void lower_half(struct design *design, const struct conversion *conversion,
        struct value *blocks, struct value *row, bool fill)
{
	const struct side *side = fill ? &conversion->fill : &conversion->drain;
	struct process p = process_new(design, fill ? "fill" : "drain");
	struct value *channel = process_argument(&p, blocks, "blocks");
	struct value *fifo = fill ? conversion->from : conversion->to;
	struct value *words = process_argument(&p, fifo, fill ? "x" : "y");
	int opened = open_shared(&p, side, true);
	if (row && !fill)
		bypass_words(&p, &conversion->bypass, row, words);
	struct value *array = make_op(&p, OP_ACQUIRE, blocks->type->element, 1, &channel);
	attr_set(p.module, array->def, KEY_SIDE, attr_string(p.module, fill ? "write" : "read"));
	if (fill)
		fill_box(&p, conversion, array, words,
		        row ? process_argument(&p, row, "row") : NULL);
	else
		drain_box(&p, conversion, array, words);
	struct value *operand[2] = { array, channel };
	op_append(p.block, op_new(p.module, OP_RELEASE, NOWHERE, 2, operand, 0, NULL));
	process_close(&p, opened);
	process_finish(&p);
}

static void lower_ping_pong(
        struct design *design, const struct conversion *conversion, const struct type *type)
{
	struct value *row = conversion->bypass.words
	        ? design_fifo(design, "s_bypass", conversion->fill.type, 2)
	        : NULL;
	int64_t partition = banks_total(&conversion->banks);
	struct value *blocks = design_blocks(design, "b_convert", type, 2);
	if (partition > 1)
		attr_set(design->module, blocks->def, KEY_STREAM_PARTITION,
		        attr_integer(design->module, partition));
	lower_half(design, conversion, blocks, row, true);
	lower_half(design, conversion, blocks, row, false);
}

static const struct type *box_element(struct module *module, const struct op *op, int64_t word)
{
	const struct type *scalar = type_scalar(op->result[0]->type);
	return word > 1 ? type_shaped(module, TYPE_VECTOR, 1, &word, scalar) : scalar;
}

static struct bank_sides bank_sides_of(
        struct module *module, const struct box *box, const struct type *element)
{
	int64_t word = type_lanes(element);
	return (struct bank_sides){ .arena = module->arena,
		.words = box->elements / word,
		.word = word,
		.bits = type_bits(element),
		.fill = &box->fill,
		.drains = 1 };
}

/* opens the loops of a side from loop `first` on */
static int loops_inside(
        struct process *p, const struct side *side, int first, struct value **counter)
{
	const struct box_side *steps = side->steps;
	return process_nest_run_time(p,
	        (struct loop_bounds){
	                steps->loops - first, steps->trip + first, steps->run_time + first },
	        side->interval, counter + first);
}

static bool check_causal_buffer(
        struct design *design, const struct op *op, const struct causal_buffer *causal_buffer)
{
	struct diag *diag = design->module->diag;
	if (!causal_buffer->why)
		return true;
	diag_error(diag, op->location, "stream.convert: causal buffer, but %s", causal_buffer->why);
	return diag_note(
	        diag, "from %s to %s", op->operand[0]->type->text, op->result[0]->type->text);
}

/* opens the outer loops that both sides have; returns how many are open */
static int open_common_loops(struct process *p, const struct causal_buffer *causal_buffer,
        struct value **fill_counter, struct value **drain_counter)
{
	int opened = 0;
	for (int i = 0; i < causal_buffer->shared; i++) {
		int64_t trip = causal_buffer->drain.trip[i];
		drain_counter[i] = trip > 1 ? process_loop(p, trip) : NULL;
		fill_counter[i] = drain_counter[i];
		opened += trip > 1;
	}
	return opened;
}

/* Replaces the counter over tiles: iteration t reads tile min(u, t) for tile u. */
static void limit_tile(struct process *p, const struct causal_buffer *causal_buffer,
        struct value *iteration, struct value **counter)
{
	const int64_t one = 1;
	struct value **tile_counter = &counter[causal_buffer->part];
	struct value *tile = make_address(p, 1, tile_counter, &one, causal_buffer->first);
	struct value *valid = make_select(p, make_below(p, iteration, tile), iteration, tile);
	*tile_counter = make_address(p, 1, &valid, &one, -causal_buffer->first);
}

/* One process: in each iteration over tiles it stores a tile and reads all
 * (converter/causal_buffer.h), part by part where both sides have the same outer loops. */
static bool lower_causal_buffer(struct design *design, const struct op *op)
{
	struct module *module = design->module;
	struct causal_buffer causal_buffer =
	        causal_buffer_between(module->arena, attr_get(op, KEY_TENSOR)->type,
	                op->operand[0]->type, op->result[0]->type, attr_get(op, KEY_CAUSAL));
	if (!check_causal_buffer(design, op, &causal_buffer))
		return false;
	const struct type *element = box_element(module, op, box_word(&causal_buffer.box));
	const struct box_side *reader = &causal_buffer.drain;
	struct bank_sides sides = bank_sides_of(module, &causal_buffer.box, element);
	sides.fill = &causal_buffer.fill;
	sides.drain = &reader;
	sides.whole_loops = true;
	struct banks banks = banks_choose(&sides);
	struct side fill = { .steps = &causal_buffer.fill, .word = sides.word };
	struct side drain = { .steps = reader,
		.word = sides.word,
		.type = stream_word(module, op->result[0]->type) };
	side_use_banks(&fill, &sides, &banks, true);
	side_use_banks(&drain, &sides, &banks, false);
	struct process p = process_new(design, "causal");
	struct value *in = process_argument(&p, stream_fifo(design, op->operand[0]), "x");
	struct value *out = process_argument(&p, stream_fifo(design, op->result[0]), "y");
	struct value *array = make_shaped_array(
	        &p, "words", banks_type(module, &banks, element), banks_total(&banks));
	struct value **fill_counter =
	        ARENA_ARRAY(module->arena, struct value *, causal_buffer.fill.loops);
	struct value **drain_counter =
	        ARENA_ARRAY(module->arena, struct value *, causal_buffer.drain.loops);
	process_layers(&p);
	struct value *iteration =
	        process_loop_run_time(&p, causal_buffer.tiles, causal_buffer.valid_tiles);
	fill_counter[0] = iteration;
	int common = open_common_loops(&p, &causal_buffer, fill_counter + 1, drain_counter);
	int opened = loops_inside(&p, &fill, 1 + causal_buffer.shared, fill_counter);
	side_write(&p, &fill, array, fill_counter, make_pop(&p, NULL, in));
	process_close(&p, opened);
	opened = loops_inside(&p, &drain, causal_buffer.shared, drain_counter);
	limit_tile(&p, &causal_buffer, iteration, drain_counter);
	make_push(&p, NULL, side_read(&p, &drain, array, drain_counter), out);
	process_close(&p, opened + common + 1 + (design->layers > 0));
	process_finish(&p);
	return true;
}

/* copies of the buffer, two of which let both sides work at once; 0 after a diagnostic */
static int64_t buffer_copies(struct design *design, const struct op *op, const struct box *box)
{
	int64_t copies = attr_integer_or(op, KEY_HALVES, box->halves);
	if (copies >= 1 && copies <= box->halves)
		return copies;
	diag_error(design->module->diag, op->location,
	        "%s: %lld buffer copies, of which %d can be used at once", op_info[op->code].name,
	        (long long)copies, box->halves);
	return 0;
}

bool lower_convert(struct design *design, const struct op *op, bool into_layers)
{
	if (converter_form(op) == CONVERTER_CAUSAL)
		return lower_causal_buffer(design, op);
	struct module *module = design->module;
	struct replay_buffer replay_buffer;
	if (!into_layers && converter_form(op) == CONVERTER_REPLAY &&
	        replay_buffer_of(module->arena, op, &replay_buffer)) {
		lower_replay_buffer(design, op, &replay_buffer);
		return true;
	}
	const struct type *tensor = attr_get(op, KEY_TENSOR)->type;
	const struct type *from = op->operand[0]->type;
	const struct type *to = op->result[0]->type;
	struct box box = box_between(module->arena, tensor, from, to, converter_shared_loops(op));
	if (!box_is_right(design, op, to, &box, into_layers))
		return false;
	int64_t copies = buffer_copies(design, op, &box);
	if (!copies)
		return false;
	const struct type *element = box_element(module, op, box_word(&box));
	const struct box_side *reader = &box.drain;
	struct conversion conversion = { .sides = bank_sides_of(module, &box, element),
		.into_layers = into_layers,
		.fill = { &box.fill, box.shared, type_lanes(element), stream_word(module, from) },
		.drain = { reader, box.shared, type_lanes(element), stream_word(module, to) } };
	conversion.from = stream_fifo(design, op->operand[0]);
	conversion.to = stream_fifo(design, op->result[0]);
	conversion.sides.drain = &reader;
	conversion.banks = banks_choose(&conversion.sides);
	side_use_banks(&conversion.fill, &conversion.sides, &conversion.banks, true);
	side_use_banks(&conversion.drain, &conversion.sides, &conversion.banks, false);
	if (!into_layers)
		conversion.bypass = bypass_of(design, &box);
	const struct type *type = banks_type(module, &conversion.banks, element);
	if (copies > 1)
		lower_ping_pong(design, &conversion, type);
	else
		lower_single(design, &conversion, type);
	return true;
}
