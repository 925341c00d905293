/* stream.fill between kernels: rows of a launch, of which there may be fewer than a stream's type says, filled up where a reader walks all, dropped where it walks those that are there. */
#include "ir/kernel_edit.h"
#include "process/process.h"
#include "streams/streams.h"
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
	INVARIANT(s->module->guard, all_there(s->module, rows->type) == all_there(s->module, type), "rows are filled up in another order than they come in");
	struct op *op = op_new(s->module, OP_FILL, NOWHERE, 1, &rows, 1, &type);
	set_stream_tensor(s->module, op, tensor);
	op_append(s->block, op);
	return op->result[0];
}

/* Tile by tile: its first counted loop outermost. */
static const struct type *tiles_first(struct module *module, const struct type *stream)
{
	const struct itensor *order = stream->itensor;
	struct arena *arena = module->arena;
	int dims = order->dims, first = 0, width = order->map.dims + 1;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, dims + 1), *step = ARENA_ARRAY(arena, int64_t, dims + 1), *rows = affine_rows(arena, dims, order->map.results);
	const struct run_time_trip **run_time = ARENA_ARRAY(arena, const struct run_time_trip *, dims + 1);
	while (!order->run_time[first])
		first++;
	for (int i = 0; i < dims; i++) {
		int from = !i ? first : i <= first ? i - 1 : i;
		trip[i] = order->trip[from];
		step[i] = order->step[from];
		run_time[i] = order->run_time[from];
		for (int d = 0; d < order->map.results; d++)
			rows[d * width + i] = affine_at(order->map, d, from);
	}
	return type_canonical(module, stream->element, dims, trip, run_time, step, order->map.results, rows);
}

/* The rows that come. */
static struct value *rows_that_come(struct streams *s, const struct op *fill, bool later)
{
	const struct flow *flow = flow_of(fill->operand[0]);
	const struct attr *dims = rows_dims(s->module, flow->tensor, (int)attr_integer_or(fill, KEY_AXIS, 0), attr_text_or(fill, KEY_TOKEN_COUNT, ""));
	const struct type *order = natural_order_to(s->module, flow->tensor, dims, PORT_BITS);
	return want_stream(s, flow, later ? tiles_first(s->module, order) : order, 0);
}

struct value *want_filled(struct streams *s, const struct op *fill, const struct turns_there *there, bool later, const struct type *type)
{
	later = later && there->step <= there->rows.tile;       /* a word of several tiles waits for all of them */
	struct flow filled = {.kind = FLOW_STREAM, .tensor = fill->result[0]->type};
	struct value *some = rows_that_come(s, fill, later);
	const struct type *order = plan_filled_type(s->module, some->type, filled.tensor, (int)attr_integer_or(fill, KEY_AXIS, 0), there);
	filled.stream = emit_rows(s, some, filled.tensor, later ? tiles_first(s->module, order) : order);
	return want_stream(s, &filled, type, 0);
}

/* Does a reader walk all rows, as they are filled up? */
static bool all_are_read(const struct streams *s, const struct op *fill, const struct block *block)
{
	bool all = false;
	for (const struct op *op = block->first; op && !all; op = op->next) {
		all = op->region[0] && all_are_read(s, fill, op->region[0]);
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == fill->result[0])
				all = all || op->code != OP_KERNEL || kernel_is_gather(op) || !plan_turns_there(s->module->arena, op, &s->plan[op->result[0]->id], j);
	}
	return all;
}

bool emit_fill(struct streams *s, const struct op *old)
{
	if (!all_are_read(s, old, old->parent))   /* its readers have their own */
		return true;
	struct value *some = rows_that_come(s, old, false);
	const struct type *type = all_there(s->module, some->type);
	append_maker(s, old, op_new(s->module, OP_FILL, old->location, 1, &some, 1, &type));
	return true;
}
