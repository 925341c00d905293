#include "pass/served.h"

/* The outermost loop of several points is a reduction, so no result is done before all are. */
bool kernel_holds_result(const struct op *op)
{
	const struct kernel *kernel = op->code == OP_KERNEL ? op->kernel : NULL;
	int outermost = kernel ? kernel_outer_reduction(kernel) : -1;
	if (outermost < 0 || kernel->scan || kernel->partial > 1 || kernel->rows > 1 || (kernel->lanes > 1 && kernel->loop[kernel->loops - 1].reduction))
		return false;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].run_time || (l < outermost && kernel->loop[l].extent > 1))
			return false;
	return true;
}

static bool takes_parts(const struct op *buffer)
{
	for (int r = 0; r < buffer->results; r++)
		if (stream_lanes(buffer->operand[0]->type) % stream_lanes(buffer->result[r]->type))
			return false;
	return true;
}

/* All readers want the elements in the writer's order, in its words or parts of them. */
static bool keeps_order(struct arena *arena, const struct op *buffer)
{
	const struct type *tensor = attr_get(buffer, "tensor")->type;
	struct sequence from = sequence_flat(arena, sequence_of_type(arena, tensor, buffer->operand[0]->type));
	bool same = true;
	for (int r = 0; r < buffer->results; r++)
		same = same && sequence_same(from, sequence_flat(arena, sequence_of_type(arena, tensor, buffer->result[r]->type)));
	return same;
}

bool served_by_writer(struct arena *arena, const struct op *buffer)
{
	const struct op *writer = buffer->operand[0]->def;
	return writer && kernel_holds_result(writer) && !attr_integer_or(buffer, "shared", 0) && takes_parts(buffer) && keeps_order(arena, buffer);
}

/* Result `first` and those after it in the same phase; returns the next one. */
static int serve(struct process *p, const struct op *buffer, struct value *array, int64_t words, int first)
{
	const struct attr *phase = attr_get(buffer, "phases");
	const struct type *type = stream_word(p->module, buffer->result[first]->type);
	const int64_t trip[2] = {words, stream_lanes(buffer->operand[0]->type) / stream_lanes(buffer->result[first]->type)};
	struct value *counter[2];
	int opened = process_nest(p, 2, trip, 1, counter), r = first;
	struct value *word = make_load(p, array, counter[0] ? counter[0] : make_index(p, 0));
	if (counter[1])
		word = make_op(p, OP_SPLIT_LANES, type, 2, (struct value *[]){word, counter[1]});
	for (; r < buffer->results && phase->integers[r] == phase->integers[first]; r++)
		make_push(p, NULL, word, process_argument(p, stream_fifo(p->design, buffer->result[r]), text_format(p->module->arena, "y%d", r)));
	process_close(p, opened);
	return r;
}

void serve_results(struct process *p, const struct op *buffer, struct value *array, int64_t words)
{
	for (int r = 0; r < buffer->results;)
		r = serve(p, buffer, array, words, r);
}
