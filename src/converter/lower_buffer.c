/* Lowers a buffer with several readers to one process: it fills a local array, passing words on to
 * the readers of service round 0 as they come, and then reads the array for one round after
 * another, once per iteration of the shared loops. Why it does not deadlock: let its output FIFOs
 * hold a round; then the process never waits for a reader, only for its writer. Any network that
 * ends with such FIFOs ends under every schedule (Kahn), and size_fifos shortens them only where no
 * reader of a round waits, by another path, for a later round. */
#include "converter/lower_converters.h"
#include "converter/layer_carry.h"
#include "converter/lower_box.h"

struct shared_buffer {
	const struct op *op;
	const struct attr *service_round;
	struct box *box; /* [results] */
	struct bank_sides sides;
	struct banks banks;
	struct value *array;
};

/* Checks that all readers find the elements at the same positions; false after a diagnostic. */
static bool check_boxes(struct design *design, const struct shared_buffer *buffer)
{
	const struct op *op = buffer->op;
	for (int r = 0; r < op->results; r++) {
		const struct box *box = &buffer->box[r];
		const struct box *first = &buffer->box[0];
		if (!box_is_right(design, op, op->result[r]->type, box, false))
			return false;
		bool same = box->fill.first == first->fill.first &&
		        box->fill.loops == first->fill.loops;
		for (int l = 0; same && l < box->fill.loops; l++)
			same = box->fill.step[l] == first->fill.step[l] &&
			        box->fill.trip[l] == first->fill.trip[l];
		if (!same) {
			diag_error(design->module->diag, op->location,
			        "stream.buffer: reader %d needs another layout than reader 0", r);
			return diag_note(design->module->diag,
			        "the readers' data must be the same, or all that is written must "
			        "be one box");
		}
	}
	return true;
}

/* opens the loops around words as wide as the writer's, or around parts of them */
static int part_loops(
        struct process *p, const struct side *side, int64_t parts, struct value **counter)
{
	int inner = side->steps->loops - side->shared;
	int64_t *trip = ARENA_ARRAY(p->module->arena, int64_t, inner + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(p->module->arena, const struct run_time_trip *, inner + 1);
	for (int i = 0; i < inner; i++) {
		trip[i] = side->steps->trip[side->shared + i];
		run_time[i] = side->steps->run_time[side->shared + i];
	}
	trip[inner] = parts;
	return process_nest_run_time(
	        p, (struct loop_bounds){ inner + 1, trip, run_time }, side->interval, counter);
}

/* part `part` of the word; NULL: the whole word */
static struct value *word_part(
        struct process *p, struct value *word, struct value *part, const struct type *type)
{
	struct value *operand[2] = { word, part };
	return part ? make_op(p, OP_SPLIT_LANES, type, 2, operand) : word;
}

static void fill_buffer(struct process *p, const struct shared_buffer *buffer)
{
	struct design *design = p->design;
	const struct op *op = buffer->op;
	struct side side = { .steps = &buffer->box[0].fill,
		.shared = buffer->box[0].shared,
		.word = buffer->sides.word };
	side_use_banks(&side, &buffer->sides, &buffer->banks, true);
	int inner = side.steps->loops - side.shared;
	int64_t lanes = stream_lanes(op->operand[0]->type);
	int64_t parts =
	        buffer->service_round->integers[0] ? 1 : lanes / stream_lanes(op->result[0]->type);
	struct value **counter =
	        ARENA_ARRAY(p->module->arena, struct value *, side.steps->loops + 1);
	int opened = part_loops(p, &side, parts, counter);
	struct value *part = counter[inner];
	struct value *first = part ? make_equal(p, part, 0) : NULL;
	struct value *word =
	        make_pop(p, first, process_argument(p, stream_fifo(design, op->operand[0]), "x"));
	side_write(p, &side, buffer->array, counter, word);
	word = word_part(p, word, part, stream_word(p->module, op->result[0]->type));
	for (int r = 0; r < op->results && !buffer->service_round->integers[r]; r++)
		make_push(p, NULL, word,
		        process_argument(p, stream_fifo(design, op->result[r]),
		                text_format(p->module->arena, "y%d", r)));
	process_close(p, opened);
}

/* Reads the array for result `first` and those after it of the same service round; returns the
 * next one. */
static int drain_round(struct process *p, const struct shared_buffer *buffer, int first)
{
	const struct op *op = buffer->op;
	struct side side = { .steps = &buffer->box[first].drain,
		.shared = buffer->box[first].shared,
		.word = buffer->sides.word };
	side_use_banks(&side, &buffer->sides, &buffer->banks, false);
	int64_t lanes = stream_lanes(op->result[first]->type);
	int64_t parts = side.steps->lanes / lanes;
	side.type = parts > 1 ? stream_word(p->module, op->operand[0]->type)
	                      : stream_word(p->module, op->result[first]->type);
	struct value **counter =
	        ARENA_ARRAY(p->module->arena, struct value *, side.steps->loops + 1);
	int opened = part_loops(p, &side, parts, counter);
	int r = first;
	struct value *word = side_read(p, &side, buffer->array, counter);
	word = word_part(p, word, counter[side.steps->loops - side.shared],
	        stream_word(p->module, op->result[first]->type));
	for (; r < op->results &&
	        buffer->service_round->integers[r] == buffer->service_round->integers[first];
	        r++)
		make_push(p, NULL, word,
		        process_argument(p, stream_fifo(p->design, op->result[r]),
		                text_format(p->module->arena, "y%d", r)));
	process_close(p, opened);
	return r;
}

/* The box of a reader. If it takes parts of the writer's words, the box is in whole words, if that
 * makes it no larger. */
static struct box reader_box(
        struct arena *arena, struct module *module, const struct op *op, int result)
{
	const struct type *tensor = attr_get(op, KEY_TENSOR)->type;
	const struct type *from = op->operand[0]->type;
	const struct type *to = op->result[result]->type;
	int shared = (int)attr_integer_or(op, KEY_SHARED_LOOPS, 0);
	const struct type *whole = stream_lanes(to) < stream_lanes(from)
	        ? type_regroup(module, to, stream_lanes(from))
	        : NULL;
	struct box box = box_between(arena, tensor, from, to, shared);
	struct box words = whole ? box_between(arena, tensor, from, whole, shared) : box;
	return words.why || words.elements != box.elements ? box : words;
}

/* Words as wide as the writer's, if all readers move such; how they lie. */
static const struct type *choose_word(struct design *design, struct shared_buffer *buffer)
{
	const struct op *op = buffer->op;
	struct arena *arena = design->module->arena;
	const struct box_side **drain = ARENA_ARRAY(arena, const struct box_side *, op->results);
	const struct type *element = stream_word(design->module, op->operand[0]->type);
	for (int r = 0; r < op->results; r++) {
		if (box_word(&buffer->box[r]) < stream_lanes(op->operand[0]->type))
			element = type_scalar(element);
		drain[r] = &buffer->box[r].drain;
	}
	int64_t word = type_lanes(element);
	buffer->sides = (struct bank_sides){ .arena = arena,
		.words = buffer->box[0].elements / word,
		.word = word,
		.bits = type_bits(element),
		.fill = &buffer->box[0].fill,
		.drain = drain,
		.drains = op->results };
	buffer->banks = banks_choose(&buffer->sides);
	return element;
}

bool lower_buffer(struct design *design, const struct op *op)
{
	if (attr_get(op, KEY_IN_PRODUCER))
		return check_buffer_in_producer(design, op);
	struct module *module = design->module;
	struct shared_buffer buffer = { .op = op,
		.service_round = attr_get(op, KEY_SERVICE_ROUNDS),
		.box = ARENA_ARRAY(module->arena, struct box, op->results) };
	for (int r = 0; r < op->results; r++)
		buffer.box[r] = reader_box(module->arena, module, op, r);
	if (!check_boxes(design, &buffer))
		return false;
	struct process p = process_new(design, "buffer");
	const struct type *element = choose_word(design, &buffer);
	buffer.array = make_shaped_array(&p, "words", banks_type(module, &buffer.banks, element),
	        banks_total(&buffer.banks));
	process_layers(&p);
	int shared = buffer.box[0].shared;
	for (int i = 0; i < shared; i++)
		process_loop_run_time(
		        &p, buffer.box[0].fill.trip[i], buffer.box[0].fill.run_time[i]);
	fill_buffer(&p, &buffer);
	for (int r = 0; r < op->results;)
		r = buffer.service_round->integers[r] ? drain_round(&p, &buffer, r) : r + 1;
	process_close(&p, shared + (design->layers > 0));
	process_finish(&p);
	return true;
}
