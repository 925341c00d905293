/* stream.fill between kernels: rows of a launch, of which there may be fewer than a stream's type says, filled up where a reader walks all, dropped where it walks those that are there. */
#include "pass/process.h"
#include "pass/streams.h"
#include "ir/rows.h"

/* The same words, all of them. */
const struct type *all_there(struct module *module, const struct type *stream)
{
	const struct itensor *order = stream->itensor;
	struct arena *arena = module->arena;
	int64_t *trip = arena_copy(arena, order->trip, sizeof *trip * (size_t)order->dims), *step = arena_copy(arena, order->step, sizeof *step * (size_t)order->dims);
	int64_t *rows = arena_copy(arena, order->map.coefficient, sizeof *rows * (size_t)(order->map.dims + 1) * (size_t)order->map.results);
	return type_canonical(module, stream->element, order->dims, trip, NULL, step, order->map.results, rows);
}

struct value *emit_rows(struct streams *s, struct value *rows, const struct type *tensor, const struct type *type)
{
	struct op *op = op_new(s->module, OP_FILL, NOWHERE, 1, &rows, 1, &type);
	set_stream_tensor(s->module, op, tensor);
	op_append(s->block, op);
	return op->result[0];
}

bool emit_fill(struct streams *s, const struct op *old)
{
	struct module *module = s->module;
	const struct flow *flow = flow_of(old->operand[0]);
	const struct attr *dims = rows_dims(module, flow->tensor, (int)attr_integer_or(old, "axis", 0), attr_text_or(old, "rows", ""));
	struct value *some = want_stream(s, flow, natural_order_to(module, flow->tensor, dims, PORT_BITS), 0);
	const struct type *type = all_there(module, some->type);
	append_maker(s, old, op_new(module, OP_FILL, old->location, 1, &some, 1, &type));
	return true;
}

/* Is the row there at which the counters stand? */
static struct value *row_there(struct process *p, const struct itensor *order, struct value *const *counter)
{
	struct value *there = NULL;
	for (int i = 0; i < order->dims; i++)
		if (order->run_time && order->run_time[i] && counter[i])
			there = make_and(p, there, make_below(p, counter[i], process_count(p, order->run_time[i], 1)));
	return there;
}

void lower_fill(struct design *design, const struct op *op)
{
	const struct type *from = op->operand[0]->type, *to = op->result[0]->type;
	bool fills = from->itensor->run_time;
	const struct itensor *order = fills ? from->itensor : to->itensor;
	struct process p = process_new(design, "rows");
	struct value **counter = ARENA_ARRAY(design->module->arena, struct value *, order->dims + 1);
	struct value *in = process_argument(&p, stream_fifo(design, op->operand[0]), "x"), *out = process_argument(&p, stream_fifo(design, op->result[0]), "y");
	process_layers(&p);
	int opened = process_nest(&p, order->dims, order->trip, 1, counter);
	struct value *there = row_there(&p, order, counter), *word = make_take(&p, fills ? there : NULL, in);
	if (fills && there)
		word = make_select(&p, there, word, make_number(&p, 0, word->type));
	make_push(&p, fills ? NULL : there, word, out);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}
