/* A converter that was cut: one process writes the tensor to external memory, another reads it back in the reader's order.  The reader waits for a word that
 * the writer sends after its last burst; the writer waits, from the second layer on, for the word that the reader sends after its last one. */
#include "pass/streams.h"
#include "pass/process.h"

struct cut {
	struct sequence order;
	int64_t word;             /* elements of a memory word */
	struct value *port, *fifo, *written, *read;
};

/* Counters of the words, and inside them of the elements if the memory word is narrower. */
static int open_words(struct process *p, const struct cut *cut, struct value **counter, int64_t *pitch)
{
	int dims = cut->order.dims;
	int64_t *trip = ARENA_ARRAY(p->module->arena, int64_t, dims + 1);
	for (int i = 0; i < dims; i++) {
		trip[i] = cut->order.trip[i];
		pitch[i] = cut->order.stride[i] / cut->word;
	}
	trip[dims] = cut->order.lanes / cut->word;
	pitch[dims] = cut->order.lane_stride;
	return process_nest(p, dims + 1, trip, 1, counter);
}

/* A word on its own, after the nest: then all bursts of the nest are done. */
static void send_token(struct process *p, struct value *token)
{
	process_loop(p, 1);
	process_pipeline(p, 1);
	make_push(p, NULL, make_bool(p, true), process_argument(p, token, "done"));
	process_close(p, 1);
}

static void await_token(struct process *p, struct value *when, struct value *token)
{
	process_loop(p, 1);
	process_pipeline(p, 1);
	make_take(p, when, process_argument(p, token, "ready"));
	process_close(p, 1);
}

static void write_out(struct design *design, const struct cut *cut, bool once)
{
	struct process p = process_new(design, "cut_store");
	struct value *memory = process_argument(&p, cut->port, "m"), *in = process_argument(&p, cut->fifo, "x");
	struct value **counter = ARENA_ARRAY(p.module->arena, struct value *, cut->order.dims + 2);
	int64_t *pitch = ARENA_ARRAY(p.module->arena, int64_t, cut->order.dims + 2);
	process_layers(&p);
	if (p.layer && !once)
		await_token(&p, make_compare(&p, 4, p.layer, 0), cut->read);
	int opened = open_words(&p, cut, counter, pitch);
	struct value *word = make_take(&p, NULL, in);
	make_store(&p, word, memory, make_address(&p, cut->order.dims + 1, counter, pitch, cut->order.offset / cut->word));
	process_close(&p, opened);
	send_token(&p, cut->written);
	process_close(&p, p.layer != NULL);
	process_finish(&p);
}

static void read_back(struct design *design, const struct cut *cut, bool once)
{
	struct process p = process_new(design, "cut_load");
	struct value *memory = process_argument(&p, cut->port, "m"), *out = process_argument(&p, cut->fifo, "y");
	struct value **counter = ARENA_ARRAY(p.module->arena, struct value *, cut->order.dims + 2);
	int64_t *pitch = ARENA_ARRAY(p.module->arena, int64_t, cut->order.dims + 2);
	if (once)
		await_token(&p, NULL, cut->written);
	process_layers(&p);
	if (!once)
		await_token(&p, NULL, cut->written);
	int opened = open_words(&p, cut, counter, pitch);
	make_push(&p, NULL, make_load(&p, memory, make_address(&p, cut->order.dims + 1, counter, pitch, cut->order.offset / cut->word)), out);
	process_close(&p, opened);
	if (p.layer && !once) {               /* nobody waits after the last layer */
		process_loop(&p, 1);
		process_pipeline(&p, 1);
		make_push(&p, make_compare(&p, 2, p.layer, design->layers - 1), make_bool(&p, true), process_argument(&p, cut->read, "done"));
		process_close(&p, 1);
	}
	process_close(&p, p.layer != NULL);
	process_finish(&p);
}

static bool aligned(struct sequence order, int64_t lanes)
{
	bool good = order.lanes == lanes && order.offset % lanes == 0 && (lanes == 1 || order.lane_stride == 1);
	for (int i = 0; i < order.dims; i++)
		good = good && order.stride[i] % lanes == 0;
	return good;
}

/* The FIFO of one side in memory words: through a cast where the stream's words are wider. */
static struct value *side_fifo(struct design *design, const struct value *stream, const struct type *word, int64_t words, bool in)
{
	struct value *fifo = stream_fifo(design, stream);
	if (fifo->type->element == word)
		return fifo;
	struct value *narrow = design_fifo(design, "s_cut", word, words);
	add_cast(design, "cast", in ? fifo : narrow, in ? narrow : fifo, stream->type);
	return narrow;
}

void lower_cut(struct design *design, const struct op *op, bool crossing)
{
	struct module *module = design->module;
	struct arena *arena = module->arena;
	const struct type *tensor = attr_get(op, "tensor")->type, *scalar = type_scalar(tensor);
	struct sequence in = sequence_merged(arena, sequence_of_type(arena, tensor, op->operand[0]->type));
	struct sequence out = sequence_merged(arena, sequence_of_type(arena, tensor, op->result[0]->type));
	int64_t lanes = aligned(in, in.lanes) && aligned(out, in.lanes) && in.lanes * type_bits(scalar) <= 512 ? in.lanes : 1;
	const struct type *word = lanes == 1 ? scalar : type_shaped(module, TYPE_VECTOR, 1, &lanes, scalar);
	const char *name = text_format(arena, "cut%d", design->serial++);
	int64_t layers = design->layers, tokens = layers ? layers : 2;
	design_buffer(design, name, word, (type_elements(tensor) + lanes - 1) / lanes, 0, NULL);
	struct value *written = design_fifo(design, "s_written", type_integer(module, 1), tokens), *read = NULL;
	if (layers && !crossing) {
		read = design_fifo(design, "s_read", type_integer(module, 1), tokens);
		attr_set(module, read->def, "stream.ring", attr_string(module, "back"));
	}
	struct cut writer = {.order = in, .word = lanes, .written = written, .read = read}, reader = {.order = out, .word = lanes, .written = written, .read = read};
	writer.port = design_port(design, text_format(arena, "%s_w", name), word, name, true);
	reader.port = design_port(design, text_format(arena, "%s_r", name), word, name, false);
	design->layers = crossing ? 0 : layers;
	writer.fifo = side_fifo(design, op->operand[0], word, sequence_words(in) * in.lanes / lanes, true);
	write_out(design, &writer, crossing);
	design->layers = layers;
	reader.fifo = side_fifo(design, op->result[0], word, sequence_words(out) * out.lanes / lanes, false);
	read_back(design, &reader, crossing);
}
