/* Lowers ops that only pass words on to processes: fork, chunk, concat, join. */
#include "lowering/lowering_internal.h"
#include "process/operation_builder.h"

static struct value *operand_fifo(struct process *p, const struct op *op, int operand)
{
	return process_argument(p, stream_fifo(p->design, op->operand[operand]),
	        text_format(p->module->arena, "x%d", operand));
}

static void push_word(
        struct process *p, const struct op *op, struct value *when, struct value *word, int opened)
{
	make_push(p, when, word, process_argument(p, stream_fifo(p->design, op->result[0]), "y"));
	process_close(p, opened + (p->design->layers > 0));
	process_finish(p);
}

/* Is the current word in the chunk? NULL: always. */
static struct value *inside_chunk(
        struct process *p, const struct op *chunk, struct value *const *counter)
{
	const struct itensor *order = chunk->operand[0]->type->itensor;
	const struct attr *low = attr_get(chunk, KEY_LOW);
	const struct attr *high = attr_get(chunk, KEY_HIGH);
	struct value *all = NULL;
	for (int i = 0; i < order->dims; i++) {
		if (low->integers[i] > 0)
			all = make_and(
			        p, all, make_compare(p, CMPI_SGE, counter[i], low->integers[i]));
		if (high->integers[i] < order->trip[i])
			all = make_and(
			        p, all, make_compare(p, CMPI_SLT, counter[i], high->integers[i]));
	}
	return all;
}

void lower_chunk(struct design *design, const struct op *op)
{
	if (attr_get(op, KEY_IN_FORK))
		return;
	struct process p = process_new(design, "chunk");
	const struct itensor *order = op->operand[0]->type->itensor;
	struct value **counter =
	        ARENA_ARRAY(design->module->arena, struct value *, order->dims + 1);
	process_layers(&p);
	int opened = process_nest_run_time(
	        &p, (struct loop_bounds){ order->dims, order->trip, order->run_time }, 1, counter);
	struct value *when = inside_chunk(&p, op, counter);
	push_word(&p, op, when, make_pop(&p, NULL, operand_fifo(&p, op, 0)), opened);
}

static bool counts_alike(const struct itensor *left, const struct itensor *right)
{
	if (left->dims != right->dims || left->run_time || right->run_time)
		return false;
	for (int i = 0; i < left->dims; i++)
		if (left->trip[i] != right->trip[i])
			return false;
	return true;
}

/* the op that reads the stream, which has one reader */
static struct op *reader_of(const struct op *from, const struct value *stream)
{
	for (struct op *op = from->next; op; op = op->next)
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == stream)
				return op->code == OP_REASSOCIATE ? reader_of(op, op->result[0])
				                                  : op;
	return NULL;
}

/* Moves chunks that read results of a fork into the fork, so that unwanted words are dropped there:
 * a FIFO between them would delay all readers for words that nobody uses. Fills chunk[results],
 * NULL where all words are wanted; returns the loops by which the fork has to count, NULL: none. */
static const struct itensor *move_chunks_to_fork(
        struct module *module, const struct op *fork, struct op **chunk)
{
	const struct itensor *order = NULL;
	for (int r = 0; r < fork->results; r++) {
		struct op *reader = reader_of(fork, fork->result[r]);
		if (!reader || reader->code != OP_CHUNK ||
		        (order && !counts_alike(order, reader->operand[0]->type->itensor)) ||
		        reader->operand[0]->type->itensor->run_time)
			continue;
		order = reader->operand[0]->type->itensor;
		chunk[r] = reader;
		attr_set(module, reader, KEY_IN_FORK, attr_unit(module));
	}
	return order;
}

void lower_fork(struct design *design, const struct op *op)
{
	struct module *module = design->module;
	struct op **chunk = ARENA_ARRAY(module->arena, struct op *, op->results);
	const struct itensor *order = move_chunks_to_fork(module, op, chunk);
	struct value **counter =
	        ARENA_ARRAY(module->arena, struct value *, order ? order->dims + 1 : 1);
	struct process p = process_new(design, "fork");
	struct value *in = process_argument(&p, stream_fifo(design, op->operand[0]), "x");
	process_layers(&p);
	int opened = order ? process_nest(&p, order->dims, order->trip, 1, counter)
	                   : process_word_pipeline(&p, op->operand[0]->type);
	struct value *word = make_pop(&p, NULL, in);
	for (int r = 0; r < op->results; r++) {
		struct value *when = chunk[r] ? inside_chunk(&p, chunk[r], counter) : NULL;
		struct value *out =
		        stream_fifo(design, chunk[r] ? chunk[r]->result[0] : op->result[r]);
		make_push(&p, when, word,
		        process_argument(&p, out, text_format(module->arena, "y%d", r)));
	}
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}

void lower_concat(struct design *design, const struct op *op)
{
	struct process p = process_new(design, "concat");
	const struct attr *words = attr_get(op, KEY_WORDS);
	int64_t trip[2] = { itensor_tiles(op->operand[0]->type->itensor) / words->integers[0], 0 };
	int64_t end = 0;
	for (int j = 0; j < op->operands; j++)
		trip[1] += words->integers[j];
	struct value *counter[2];
	struct value *word = NULL;
	struct value *from = NULL;
	process_layers(&p);
	int opened = process_nest(&p, 2, trip, 1, counter);
	for (int j = 0; j < op->operands; j++) {
		end += words->integers[j];
		struct value *before =
		        end < trip[1] ? make_compare(&p, CMPI_SLT, counter[1], end) : NULL;
		struct value *fifo = operand_fifo(&p, op, j);
		struct value *taken = make_pop(&p, make_and(&p, from, before), fifo);
		word = word ? make_select(&p, from, taken, word) : taken;
		from = before ? make_compare(&p, CMPI_SGE, counter[1], end) : NULL;
	}
	push_word(&p, op, NULL, word, opened);
}

void lower_join(struct design *design, const struct op *op)
{
	struct process p = process_new(design, "join");
	const struct type *to = op->result[0]->type;
	struct value **word = ARENA_ARRAY(design->module->arena, struct value *, op->operands);
	process_layers(&p);
	int opened = process_word_pipeline(&p, to);
	for (int j = 0; j < op->operands; j++)
		word[j] = make_pop(&p, NULL, operand_fifo(&p, op, j));
	struct value *joined = op->operands > 1
	        ? make_op(&p, OP_JOIN_LANES, stream_word(design->module, to), op->operands, word)
	        : word[0];
	push_word(&p, op, NULL, joined, opened);
}
