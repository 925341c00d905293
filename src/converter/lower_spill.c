/* Lowers a spilled converter: its box lies in external memory. One process writes it, another reads
 * it in the reader's order. The reader waits for a token that the writer sends after its last
 * burst; from the second layer on the writer waits for the token that the reader sends after its
 * last word. */
#include "converter/lower_converters.h"
#include "converter/lower_box.h"

struct spill {
	const struct box_side *steps;
	int64_t word;         /* elements of a memory word: a stream's word, or a part of it */
	int parts;            /* loops over the parts of a stream's word */
	int64_t *trip, *step; /* [parts] step: elements of the box */
	struct value *port, *fifo, *written, *read;
};

/* the largest power of two of elements that both sides move together and that fits a port */
static int64_t memory_word(const struct box *box, int64_t bits)
{
	int64_t most = box_word(box);
	int64_t word = most;
	while (word > 1 && (most % word || word * bits > PORT_BITS || (word & (word - 1))))
		word--;
	return word;
}

/* Finds the loops over the parts of a stream's word: a tile of several dims has one for each. */
static void split_word(struct arena *arena, struct spill *spill)
{
	const struct box_side *steps = spill->steps;
	int64_t inner = spill->word;
	spill->trip = ARENA_ARRAY(arena, int64_t, steps->lanes);
	spill->step = ARENA_ARRAY(arena, int64_t, steps->lanes);
	while (inner < steps->lanes) {
		int64_t step = steps->lane[inner] - steps->lane[0];
		int64_t end = inner;
		while (end < steps->lanes &&
		        steps->lane[end] - steps->lane[0] == end / inner * step)
			end += inner;
		for (int i = spill->parts++; i > 0; i--) {
			spill->trip[i] = spill->trip[i - 1];
			spill->step[i] = spill->step[i - 1];
		}
		spill->trip[0] = end / inner;
		spill->step[0] = step;
		inner = end;
	}
}

static struct spill spill_of(struct arena *arena, const struct box_side *steps, int64_t word)
{
	struct spill spill = { .steps = steps, .word = word };
	split_word(arena, &spill);
	return spill;
}

/* opens the loops over memory words; returns the address of the current one */
static struct value *open_words(struct process *p, const struct spill *spill, int *opened)
{
	struct arena *arena = p->module->arena;
	const struct box_side *steps = spill->steps;
	int dims = steps->loops + spill->parts;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, dims + 1);
	int64_t *pitch = ARENA_ARRAY(arena, int64_t, dims + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, dims + 1);
	struct value **counter = ARENA_ARRAY(arena, struct value *, dims + 1);
	for (int i = 0; i < dims; i++) {
		bool part = i >= steps->loops;
		trip[i] = part ? spill->trip[i - steps->loops] : steps->trip[i];
		pitch[i] = (part ? spill->step[i - steps->loops] : steps->step[i]) / spill->word;
		run_time[i] = part ? NULL : steps->run_time[i];
	}
	*opened =
	        process_nest_run_time(p, (struct loop_bounds){ dims, trip, run_time }, 1, counter);
	for (int i = 0; i < dims; i++) {
		int64_t times = run_time[i] ? trip[i] / run_time[i]->most : 1;
		counter[i] =
		        pitch[i] ? process_window_index(p, run_time[i], times, counter[i]) : NULL;
	}
	return make_address(p, dims, counter, pitch, steps->first / spill->word);
}

/* sends a token after the nest, when all its bursts are done */
static void send_token(struct process *p, struct value *token)
{
	process_loop(p, 1);
	process_pipeline(p, 1);
	struct value *done = process_argument(p, token, "done");
	make_push(p, NULL, make_bool(p, true), done);
	process_close(p, 1);
}

static void await_token(struct process *p, struct value *when, struct value *token)
{
	process_loop(p, 1);
	process_pipeline(p, 1);
	make_pop(p, when, process_argument(p, token, "ready"));
	process_close(p, 1);
}

static void write_out(struct design *design, const struct spill *spill, bool once)
{
	struct process p = process_new(design, "spill_store");
	struct value *memory = process_argument(&p, spill->port, "m");
	struct value *in = process_argument(&p, spill->fifo, "x");
	int opened;
	process_layers(&p);
	if (p.layer && !once)
		await_token(&p, make_compare(&p, CMPI_SGT, p.layer, 0), spill->read);
	struct value *address = open_words(&p, spill, &opened);
	make_store(&p, make_pop(&p, NULL, in), memory, address);
	process_close(&p, opened);
	send_token(&p, spill->written);
	process_close(&p, p.layer != NULL);
	process_finish(&p);
}

static void read_back(struct design *design, const struct spill *spill, bool once)
{
	struct process p = process_new(design, "spill_load");
	struct value *memory = process_argument(&p, spill->port, "m");
	struct value *out = process_argument(&p, spill->fifo, "y");
	int opened;
	if (once)
		await_token(&p, NULL, spill->written);
	process_layers(&p);
	if (!once)
		await_token(&p, NULL, spill->written);
	struct value *address = open_words(&p, spill, &opened);
	make_push(&p, NULL, make_load(&p, memory, address), out);
	process_close(&p, opened);
	if (p.layer && !once) { /* nobody waits after the last layer */
		process_loop(&p, 1);
		process_pipeline(&p, 1);
		struct value *done = process_argument(&p, spill->read, "done");
		struct value *token = make_bool(&p, true);
		make_push(&p, make_compare(&p, CMPI_SLT, p.layer, design->layers - 1), token, done);
		process_close(&p, 1);
	}
	process_close(&p, p.layer != NULL);
	process_finish(&p);
}

/* The FIFO of one side in memory words: after or before a cast, if the stream's words are wider. */
static struct value *side_fifo(
        struct design *design, const struct value *stream, const struct type *word, bool in)
{
	struct value *fifo = stream_fifo(design, stream);
	if (fifo->type->element == word)
		return fifo;
	int64_t lanes = type_lanes(word);
	struct value *narrow = design_fifo(design, "s_spill", word,
	        itensor_tiles(stream->type->itensor) * stream_lanes(stream->type) / lanes);
	if (in)
		add_cast(design, "cast", fifo, narrow, stream->type);
	else
		add_cast(design, "cast", narrow, fifo, stream->type);
	return narrow;
}

bool lower_spill(struct design *design, const struct op *op, bool into_layers)
{
	struct module *module = design->module;
	struct arena *arena = module->arena;
	const struct type *tensor = attr_get(op, KEY_TENSOR)->type;
	const struct type *scalar = type_scalar(tensor);
	const struct type *from = op->operand[0]->type;
	const struct type *to = op->result[0]->type;
	struct box box = box_between(arena, tensor, from, to, 0);
	if (!box_is_right(design, op, to, &box, into_layers))
		return false;
	int64_t lanes = memory_word(&box, type_bits(scalar));
	int64_t layers = design->layers;
	int64_t tokens = layers ? layers : 2;
	const struct type *word =
	        lanes == 1 ? scalar : type_shaped(module, TYPE_VECTOR, 1, &lanes, scalar);
	const char *name = text_format(arena, "spill%d", design->serial++);
	design_buffer(
	        design, name, word, box.elements / lanes, attr_array(design->module, 0, NULL));
	struct value *written = design_fifo(design, "s_written", type_integer(module, 1), tokens);
	struct value *read = NULL;
	if (layers && !into_layers) {
		read = design_fifo(design, "s_read", type_integer(module, 1), tokens);
		attr_set(module, read->def, KEY_STREAM_LAYER_FEEDBACK, attr_string(module, "back"));
	}
	struct spill writer = spill_of(arena, &box.fill, lanes);
	struct spill reader = spill_of(arena, &box.drain, lanes);
	writer.written = reader.written = written;
	writer.read = reader.read = read;
	writer.port = design_port(design, text_format(arena, "%s_w", name), word, name, true);
	reader.port = design_port(design, text_format(arena, "%s_r", name), word, name, false);
	design->layers = into_layers ? 0 : layers;
	writer.fifo = side_fifo(design, op->operand[0], word, true);
	write_out(design, &writer, into_layers);
	design->layers = layers;
	reader.fifo = side_fifo(design, op->result[0], word, false);
	read_back(design, &reader, into_layers);
	return true;
}
