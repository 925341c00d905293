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
	const struct attr *dims = rows_dims(s->module, flow->tensor, (int)attr_integer_or(fill, "axis", 0), attr_text_or(fill, "rows", ""));
	const struct type *order = natural_order_to(s->module, flow->tensor, dims, PORT_BITS);
	return want_stream(s, flow, later ? tiles_first(s->module, order) : order, 0);
}

struct value *want_filled(struct streams *s, const struct op *fill, const struct turns_there *there, bool later, const struct type *type)
{
	later = later && there->step <= there->rows.tile;       /* a word of several tiles waits for all of them */
	struct flow filled = {.kind = FLOW_STREAM, .tensor = fill->result[0]->type};
	struct value *some = rows_that_come(s, fill, later);
	const struct type *order = plan_filled_type(s->module, some->type, filled.tensor, (int)attr_integer_or(fill, "axis", 0), there);
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

/* The data dim of the rows that a run-time count bounds. */
static int rows_dim(const struct itensor *order)
{
	for (int d = 0; d < order->map.results; d++)
		for (int i = 0; i < order->dims; i++)
			if (order->run_time && order->run_time[i] && affine_at(order->map, d, i))
				return d;
	return 0;
}

static const char *rows_symbol(const struct itensor *order)
{
	int i = 0;
	while (!order->run_time[i])
		i++;
	return order->run_time[i]->symbol;
}

/* The order's loops, those inside counted ones that go on in the same dim as one with these. */
struct rows_nest {
	int loops;
	int64_t *trip, *row;      /* [loops] row: rows that a turn moves on */
	const struct run_time_trip **run_time;     /* [loops] */
};

static struct rows_nest rows_nest(struct arena *arena, const struct itensor *order, int dim)
{
	struct rows_nest nest = {0, ARENA_ARRAY(arena, int64_t, order->dims + 1), ARENA_ARRAY(arena, int64_t, order->dims + 1), ARENA_ARRAY(arena, const struct run_time_trip *, order->dims + 1)};
	for (int i = 0; i < order->dims; i++) {
		int64_t row = affine_at(order->map, dim, i) * order->step[i];
		int last = nest.loops - 1;
		bool joins = row && last >= 0 && nest.run_time[last] && !order->run_time[i] && nest.row[last] == row * order->trip[i];
		nest.loops += !joins;
		last += !joins;
		nest.trip[last] = order->trip[i] * (joins ? nest.trip[last] : 1);
		nest.run_time[last] = joins ? nest.run_time[last] : order->run_time[i];
		nest.row[last] = row;
	}
	return nest;
}

/* Is the row there at which the counters stand? */
static struct value *row_below_extents(struct process *p, const struct itensor *order, struct value *const *counter)
{
	struct value *there = NULL;
	for (int i = 0; i < order->dims; i++)
		if (order->run_time && order->run_time[i] && counter[i])
			there = make_and(p, there, make_below(p, counter[i], process_count(p, order->run_time[i], 1)));
	return there;
}

/* Does the row come at which the counters stand?  In tiles that do, one of `each`. */
static struct value *row_comes(struct process *p, const struct rows_nest *nest, const struct launch_rows *rows, struct value *const *counter)
{
	int last = nest->loops - 1;
	while (last > 0 && nest->row[last] != 1)
		last--;
	if (rows->each && nest->trip[last] == rows->tile && nest->row[last] == 1)
		return make_below(p, counter[last], process_count(p, rows->each, 1));
	return make_below(p, make_address(p, nest->loops, counter, nest->row, 0), process_rows(p, rows));
}

/* Filled up in some turns: the row says whether it comes. */
static void lower_fill_some(struct design *design, const struct op *op)
{
	const struct itensor *from = op->operand[0]->type->itensor;
	struct process p = process_new(design, "rows");
	int dim = rows_dim(from);
	struct launch_rows rows = rows_of_launch(design->module->arena, rows_symbol(from), attr_get(op, "tensor")->type->shape[dim]);
	struct rows_nest nest = rows_nest(design->module->arena, op->result[0]->type->itensor, dim);
	struct value **counter = ARENA_ARRAY(design->module->arena, struct value *, nest.loops + 1);
	struct value *in = process_argument(&p, stream_fifo(design, op->operand[0]), "x"), *out = process_argument(&p, stream_fifo(design, op->result[0]), "y");
	process_layers(&p);
	int opened = process_nest_to(&p, nest.loops, nest.trip, nest.run_time, 1, counter);
	struct value *there = row_comes(&p, &nest, &rows, counter), *word = make_take(&p, there, in);
	make_push(&p, NULL, make_select(&p, there, word, make_number(&p, 0, word->type)), out);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}

void lower_fill(struct design *design, const struct op *op)
{
	const struct type *from = op->operand[0]->type, *to = op->result[0]->type;
	if (from->itensor->run_time && to->itensor->run_time) {
		lower_fill_some(design, op);
		return;
	}
	bool fills = from->itensor->run_time;
	const struct itensor *order = fills ? from->itensor : to->itensor;
	struct process p = process_new(design, "rows");
	struct value **counter = ARENA_ARRAY(design->module->arena, struct value *, order->dims + 1);
	struct value *in = process_argument(&p, stream_fifo(design, op->operand[0]), "x"), *out = process_argument(&p, stream_fifo(design, op->result[0]), "y");
	process_layers(&p);
	int opened = process_nest(&p, order->dims, order->trip, 1, counter);
	struct value *there = row_below_extents(&p, order, counter), *word = make_take(&p, fills ? there : NULL, in);
	if (fills && there)
		word = make_select(&p, there, word, make_number(&p, 0, word->type));
	make_push(&p, fills ? NULL : there, word, out);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}
