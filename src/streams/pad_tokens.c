/* Emits stream.pad_tokens between kernels. A launch may have fewer tokens than a stream's type
 * says: zeros are added where a reader walks all rows, and dropped where it walks only those that
 * exist. */
#include "ir/kernel_edit.h"
#include "process/operation_builder.h"
#include "schedule/recorded_choices.h"
#include "streams/stream_builder.h"
#include "ir/launch_tokens.h"

/* The same type with all run-time trip counts at their most. */
const struct type *full_extent_type(struct module *module, const struct type *stream)
{
	const struct itensor *order = stream->itensor;
	struct arena *arena = module->arena;
	int64_t *trip = arena_copy(arena, order->trip, sizeof *trip * (size_t)order->dims);
	int64_t *step = arena_copy(arena, order->step, sizeof *step * (size_t)order->dims);
	int64_t *rows = arena_copy(arena, order->map.coefficient,
	        sizeof *rows * (size_t)(order->map.dims + 1) * (size_t)order->map.results);
	return type_canonical(module, stream->element,
	        &(struct itensor){ .dims = order->dims,
	                .trip = trip,
	                .step = step,
	                .map = { order->dims, order->map.results, rows } });
}

struct value *emit_token_padding(
        struct streams *s, struct value *rows, const struct type *tensor, const struct type *type)
{
	INVARIANT(s->module->guard,
	        full_extent_type(s->module, rows->type) == full_extent_type(s->module, type),
	        "tokens are padded in another order than they arrive");
	struct op *op = op_new(s->module, OP_PAD_TOKENS, NOWHERE, 1, &rows, 1, &type);
	set_stream_tensor(s->module, op, tensor);
	op_append(s->block, op);
	return op->result[0];
}

/* The type with its first run-time loop outermost, so that it is walked tile by tile. */
static const struct type *tile_outermost_type(struct module *module, const struct type *stream)
{
	const struct itensor *order = stream->itensor;
	struct arena *arena = module->arena;
	int dims = order->dims;
	int first = 0;
	int width = order->map.dims + 1;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, dims + 1);
	int64_t *step = ARENA_ARRAY(arena, int64_t, dims + 1);
	int64_t *rows = affine_rows(arena, dims, order->map.results);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, dims + 1);
	while (!order->run_time[first])
		first++;
	for (int i = 0; i < dims; i++) {
		int from = i <= first ? i - 1 : i;
		from = i ? from : first;
		trip[i] = order->trip[from];
		step[i] = order->step[from];
		run_time[i] = order->run_time[from];
		for (int d = 0; d < order->map.results; d++)
			rows[d * width + i] = affine_at(order->map, d, from);
	}
	return type_canonical(module, stream->element,
	        &(struct itensor){ .dims = dims,
	                .trip = trip,
	                .step = step,
	                .run_time = run_time,
	                .map = { dims, order->map.results, rows } });
}

/* A demand for the rows that exist. */
static struct value *valid_tokens(struct streams *s, const struct op *fill, bool by_tile)
{
	const struct tensor_source *tensor_source = tensor_source_of(fill->operand[0]);
	const struct attr *dims = token_dims(s->module, tensor_source->tensor,
	        (int)attr_integer_or(fill, KEY_AXIS, 0), attr_text_or(fill, KEY_TOKEN_COUNT, ""));
	const struct type *order =
	        natural_order_to(s->module, tensor_source->tensor, dims, PORT_BITS);
	return demand_stream(
	        s, tensor_source, by_tile ? tile_outermost_type(s->module, order) : order, 0);
}

struct value *demand_padded(struct streams *s, const struct op *fill,
        const struct row_predicate *row_predicate, bool by_tile, const struct type *type)
{
	/* a word of several tiles needs all of them */
	by_tile = by_tile && row_predicate->step <= row_predicate->rows.tile;
	struct tensor_source filled = { .kind = SOURCE_STREAM, .tensor = fill->result[0]->type };
	struct value *some = valid_tokens(s, fill, by_tile);
	const struct type *order = schedule_padded_type(s->module, some->type, filled.tensor,
	        (int)attr_integer_or(fill, KEY_AXIS, 0), row_predicate);
	filled.stream = emit_token_padding(
	        s, some, filled.tensor, by_tile ? tile_outermost_type(s->module, order) : order);
	return demand_stream(s, &filled, type, 0);
}

/* Does the operand of a reader skip padding? */
static bool reads_valid_rows(struct arena *arena, const struct op *op, int operand)
{
	if (op->code != OP_KERNEL || kernel_is_gather(op))
		return false;
	struct schedule schedule = recorded_schedule(arena, op);
	return schedule_row_predicate(arena, op, &schedule, operand);
}

/* Does a reader walk all rows, padding included? */
static bool all_are_read(const struct streams *s, const struct op *fill, const struct block *block)
{
	bool all = false;
	for (const struct op *op = block->first; op && !all; op = op->next) {
		all = op->region[0] && all_are_read(s, fill, op->region[0]);
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == fill->result[0])
				all = all || !reads_valid_rows(s->module->arena, op, j);
	}
	return all;
}

bool emit_pad_tokens(struct streams *s, const struct op *old)
{
	if (!all_are_read(s, old, old->parent)) /* each reader has padding of its own */
		return true;
	struct value *some = valid_tokens(s, old, false);
	const struct type *type = full_extent_type(s->module, some->type);
	append_producer(
	        s, old, op_new(s->module, OP_PAD_TOKENS, old->location, 1, &some, 1, &type));
	return true;
}
