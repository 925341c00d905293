/* In front of what a launch leaves out that others follow (mark_final.c): words of what it does come in every launch, and go on in the last one alone. */
#include "process/process.h"

static void add_gate(struct design *design, struct value *stream, const struct run_time_trip *final)
{
	struct value *from = stream_fifo(design, stream), *to = design_fifo(design, "s_final", from->type->element, from->type->depth);
	struct process p = process_new(design, "final");
	struct value *in = process_argument(&p, from, "x"), *out = process_argument(&p, to, "y"), *last = make_equal(&p, process_count(&p, final, 1), 1);
	int opened = process_words(&p, stream->type);
	make_push(&p, last, make_take(&p, NULL, in), out);
	process_close(&p, opened);
	process_finish(&p);
	stream->data = to;
}

void lower_final(struct design *design, const struct op *op)
{
	const struct run_time_trip *final = design->final;
	design->final = NULL;
	for (int j = 0; final && j < op->operands; j++)
		if (op->operand[j]->type->kind == TYPE_ITENSOR && !(op->operand[j]->def && attr_get(op->operand[j]->def, KEY_LAST_CHUNK_ONLY)))
			add_gate(design, op->operand[j], final);
	design->final = final;
}
