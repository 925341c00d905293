/* Before ops that run only in the last launch of a chunked prompt (mark_last_chunk_only.c): their
 * operands come in every launch, and a gate drops them in all but the last. */
#include "lowering/lowering_internal.h"
#include "process/operation_builder.h"

static void add_gate(
        struct design *design, struct value *stream, const struct run_time_trip *last_chunk)
{
	struct value *from = stream_fifo(design, stream);
	struct value *to =
	        design_fifo(design, "s_last_chunk", from->type->element, from->type->depth);
	struct process p = process_new(design, "last_chunk");
	struct value *in = process_argument(&p, from, "x");
	struct value *out = process_argument(&p, to, "y");
	struct value *last = make_equal(&p, process_trip_count(&p, last_chunk, 1), 1);
	int opened = process_word_pipeline(&p, stream->type);
	make_push(&p, last, make_pop(&p, NULL, in), out);
	process_close(&p, opened);
	process_finish(&p);
	stream->data = to;
}

void lower_last_chunk_gate(struct design *design, const struct op *op)
{
	const struct run_time_trip *last_chunk = design->last_chunk;
	design->last_chunk = NULL;
	for (int j = 0; last_chunk && j < op->operands; j++)
		if (op->operand[j]->type->kind == TYPE_ITENSOR &&
		        !(op->operand[j]->def &&
		                attr_get(op->operand[j]->def, KEY_LAST_CHUNK_ONLY)))
			add_gate(design, op->operand[j], last_chunk);
	design->last_chunk = last_chunk;
}
