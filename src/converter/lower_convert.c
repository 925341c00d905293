/* Lowers a converter to two processes, *fill* and *drain*, on a channel of blocks
 * (src/itensor/box.h says what a block holds and how each side walks it). There is one block per
 * iteration of the shared loops; with two copies both sides work at once (ping-pong). A converter
 * that reorders tokens has nothing to do for a single token: its words bypass the block then, so
 * none waits for the last one. */
#include "converter/lower_converters.h"
#include "ir/converter.h"
#include "ir/workload.h"
#include "ir/launch_tokens.h"
#include "converter/replay_buffer.h"
#include "converter/causal_buffer.h"
#include "converter/lower_box.h"

/* the path of a single token's words */
struct bypass {
	struct value *fifo; /* NULL: there is no bypass */
	int64_t words;      /* words in an iteration of the shared loops */
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
static struct bypass bypass_of(
        struct design *design, const struct box *box, const struct type *word)
{
	const char *rows = workload_of(design->source) == WORKLOAD_TILED_COUNTED_TOKENS
	        ? token_symbol(box, design->source)
	        : NULL;
	int64_t words = rows ? words_of_row(design->module->arena, box, rows) : 0;
	if (!words)
		return (struct bypass){ 0 };
	return (struct bypass){ design_fifo(design, "s_bypass", word, 2), words,
		{ .symbol = rows, .plus = -1, .tile = 1, .most = 1, .remaining = true } };
}

/* The reader's side: passes words on; the block, to which they were written as well, is released
 * unread. */
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

/* one of the two processes of a converter */
struct converter_side {
	struct side side;
	struct value *fifo;
	bool fill;        /* the writer's side */
	bool into_layers; /* its input comes from outside of the rolled layer that it is in */
};

static void lower_side(struct design *design, const struct converter_side *converter,
        const struct bypass *bypass, struct value *blocks)
{
	const struct side *side = &converter->side;
	bool fill = converter->fill;
	struct process p = process_new(design, fill ? "fill" : "drain");
	struct value *channel = process_argument(&p, blocks, "blocks");
	struct value *words = process_argument(&p, converter->fifo, fill ? "x" : "y");
	int loops = side->shared;
	struct value **counter =
	        ARENA_ARRAY(p.module->arena, struct value *, side->steps->loops + 1);
	if (!converter->into_layers) {
		process_layers(&p);
		loops += design->layers > 0;
	}
	for (int i = 0; i < side->shared; i++)
		process_loop_run_time(&p, side->steps->trip[i], side->steps->run_time[i]);
	if (bypass->fifo && !fill)
		bypass_words(&p, bypass, words);
	struct value *array = make_op(&p, OP_ACQUIRE, blocks->type->element, 1, &channel);
	attr_set(p.module, array->def, KEY_SIDE, attr_string(p.module, fill ? "write" : "read"));
	int layers_inside = converter->into_layers && design->layers && !fill;
	if (layers_inside) /* all layers read the same block */
		process_layers(&p);
	int opened = side_loops(&p, side, counter);
	struct value *word = fill ? make_pop(&p, NULL, words) : side_read(&p, side, array, counter);
	if (fill)
		side_write(&p, side, array, counter, word);
	if (!fill || bypass->fifo) {
		struct value *out = fill ? process_argument(&p, bypass->fifo, "row") : words;
		make_push(&p, is_single_token(&p, bypass, fill), word, out);
	}
	process_close(&p, opened + layers_inside);
	struct value *operand[2] = { array, channel };
	op_append(p.block, op_new(p.module, OP_RELEASE, NOWHERE, 2, operand, 0, NULL));
	process_close(&p, loops);
	process_finish(&p);
}

/* opens the loops of a side from loop `first` on */
static int loops_inside(
        struct process *p, const struct box_side *side, int first, struct value **counter)
{
	return process_nest_run_time(p,
	        (struct loop_bounds){
	                side->loops - first, side->trip + first, side->run_time + first },
	        1, counter + first);
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
	int64_t word = box_word(&causal_buffer.box);
	int64_t widest = causal_buffer.fill.lanes;
	if (causal_buffer.drain.lanes > widest)
		widest = causal_buffer.drain.lanes;
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
	struct value **fill_counter =
	        ARENA_ARRAY(module->arena, struct value *, causal_buffer.fill.loops);
	struct value **drain_counter =
	        ARENA_ARRAY(module->arena, struct value *, causal_buffer.drain.loops);
	process_layers(&p);
	struct value *iteration =
	        process_loop_run_time(&p, causal_buffer.tiles, causal_buffer.valid_tiles);
	fill_counter[0] = iteration;
	int common = open_common_loops(&p, &causal_buffer, fill_counter + 1, drain_counter);
	int opened = loops_inside(&p, &causal_buffer.fill, 1 + causal_buffer.shared, fill_counter);
	side_write(&p, &fill, array, fill_counter, make_pop(&p, NULL, in));
	process_close(&p, opened);
	opened = loops_inside(&p, &causal_buffer.drain, causal_buffer.shared, drain_counter);
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

/* the channel of blocks between the two processes */
static struct value *add_block_channel(
        struct design *design, const struct type *scalar, const struct box *box, int64_t copies)
{
	struct module *module = design->module;
	int64_t word = box_word(box);
	int64_t size = box->elements / word;
	int64_t widest = box->fill.lanes > box->drain.lanes ? box->fill.lanes : box->drain.lanes;
	const struct type *element =
	        word > 1 ? type_shaped(module, TYPE_VECTOR, 1, &word, scalar) : scalar;
	struct value *blocks = design_blocks(
	        design, "b_convert", type_shaped(module, TYPE_MEMREF, 1, &size, element), copies);
	if (word < widest)
		attr_set(module, blocks->def, KEY_STREAM_PARTITION,
		        attr_integer(module, widest / word));
	return blocks;
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
	int64_t word = box_word(&box);
	struct value *blocks = add_block_channel(design, type_scalar(tensor), &box, copies);
	struct converter_side fill = { .side = { &box.fill, box.shared, word,
		                               stream_word(module, from) },
		.fifo = stream_fifo(design, op->operand[0]),
		.fill = true,
		.into_layers = into_layers };
	struct converter_side drain = { .side = { &box.drain, box.shared, word,
		                                stream_word(module, to) },
		.fifo = stream_fifo(design, op->result[0]),
		.into_layers = into_layers };
	int64_t layers = design->layers;
	struct bypass bypass = { 0 };
	if (!into_layers)
		bypass = bypass_of(design, &box, fill.side.type);
	design->layers = into_layers ? 0 : layers;
	lower_side(design, &fill, &bypass, blocks);
	design->layers = layers;
	lower_side(design, &drain, &bypass, blocks);
	return true;
}
