/* Ops that only pass words on, as processes: chunk, concat, join. */
#include "pass/process.h"

static struct value *operand_fifo(struct process *p, const struct op *op, int operand)
{
	return process_argument(p, stream_fifo(p->design, op->operand[operand]), text_format(p->module->arena, "x%d", operand));
}

static void finish(struct process *p, const struct op *op, struct value *when, struct value *word, int opened)
{
	make_push(p, when, word, process_argument(p, stream_fifo(p->design, op->result[0]), "y"));
	process_close(p, opened + (p->design->layers > 0));
	process_finish(p);
}

void lower_chunk(struct design *design, const struct op *op)
{
	struct process p = process_new(design, "chunk");
	const struct itensor *order = op->operand[0]->type->itensor;
	const struct attr *low = attr_get(op, "low"), *high = attr_get(op, "high");
	struct value **counter = ARENA_ARRAY(design->module->arena, struct value *, order->dims + 1), *inside = NULL;
	process_layers(&p);
	int opened = process_nest_to(&p, order->dims, order->trip, order->run_time, 1, counter);
	for (int i = 0; i < order->dims; i++) {
		if (low->integers[i] > 0)
			inside = make_and(&p, inside, make_compare(&p, 5, counter[i], low->integers[i]));
		if (high->integers[i] < order->trip[i])
			inside = make_and(&p, inside, make_compare(&p, 2, counter[i], high->integers[i]));
	}
	finish(&p, op, inside, make_take(&p, NULL, operand_fifo(&p, op, 0)), opened);
}

void lower_concat(struct design *design, const struct op *op)
{
	struct process p = process_new(design, "concat");
	const struct attr *words = attr_get(op, "words");
	int64_t trip[2] = {itensor_tiles(op->operand[0]->type->itensor) / words->integers[0], 0}, end = 0;
	for (int j = 0; j < op->operands; j++)
		trip[1] += words->integers[j];
	struct value *counter[2], *word = NULL, *from = NULL;
	process_layers(&p);
	int opened = process_nest(&p, 2, trip, 1, counter);
	for (int j = 0; j < op->operands; j++) {
		end += words->integers[j];
		struct value *before = end < trip[1] ? make_compare(&p, 2, counter[1], end) : NULL;
		struct value *taken = make_take(&p, make_and(&p, from, before), operand_fifo(&p, op, j));
		word = word ? make_select(&p, from, taken, word) : taken;
		from = before ? make_compare(&p, 5, counter[1], end) : NULL;
	}
	finish(&p, op, NULL, word, opened);
}

void lower_join(struct design *design, const struct op *op)
{
	struct process p = process_new(design, "join");
	const struct type *to = op->result[0]->type;
	struct value **word = ARENA_ARRAY(design->module->arena, struct value *, op->operands);
	process_layers(&p);
	int opened = process_words(&p, to);
	for (int j = 0; j < op->operands; j++)
		word[j] = make_take(&p, NULL, operand_fifo(&p, op, j));
	struct value *joined = op->operands > 1 ? make_op(&p, OP_JOIN_LANES, stream_word(design->module, to), op->operands, word) : word[0];
	finish(&p, op, NULL, joined, opened);
}
