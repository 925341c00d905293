/* Pads the tokens of a launch, as a process: pushes zeros for tokens beyond a dynamic count, or
 * drops them. */
#include "lowering/lowering_internal.h"
#include "ir/launch_tokens.h"
#include "process/operation_builder.h"

/* the data dim of the tokens that a dynamic count bounds */
static int token_dim(const struct itensor *order)
{
	for (int d = 0; d < order->map.results; d++)
		for (int i = 0; i < order->dims; i++)
			if (order->run_time && order->run_time[i] && affine_at(order->map, d, i))
				return d;
	return 0;
}

static const char *token_symbol(const struct itensor *order)
{
	int i = 0;
	while (!order->run_time[i])
		i++;
	return order->run_time[i]->symbol;
}

/* The order's loops; fixed loops inside a counted one that continue in the same dim are combined
 * with it. */
struct token_nest {
	int loops;
	int64_t *trip, *row; /* [loops] row: tokens from one iteration to the next */
	const struct run_time_trip **run_time; /* [loops] */
};

static struct token_nest token_nest(struct arena *arena, const struct itensor *order, int dim)
{
	struct token_nest nest = { 0, ARENA_ARRAY(arena, int64_t, order->dims + 1),
		ARENA_ARRAY(arena, int64_t, order->dims + 1),
		ARENA_ARRAY(arena, const struct run_time_trip *, order->dims + 1) };
	for (int i = 0; i < order->dims; i++) {
		int64_t row = affine_at(order->map, dim, i) * order->step[i];
		int last = nest.loops - 1;
		bool joins = row && last >= 0 && nest.run_time[last] && !order->run_time[i] &&
		        nest.row[last] == row * order->trip[i];
		nest.loops += !joins;
		last += !joins;
		nest.trip[last] = order->trip[i] * (joins ? nest.trip[last] : 1);
		nest.run_time[last] = joins ? nest.run_time[last] : order->run_time[i];
		nest.row[last] = row;
	}
	return nest;
}

/* Are the counters below all dynamic bounds? */
static struct value *row_below_extents(
        struct process *p, const struct itensor *order, struct value *const *counter)
{
	struct value *valid = NULL;
	for (int i = 0; i < order->dims; i++)
		if (order->run_time && order->run_time[i] && counter[i])
			valid = make_and(p, valid,
			        make_below(p, counter[i],
			                process_trip_count(p, order->run_time[i], 1)));
	return valid;
}

/* Is the current token valid? In tiles that are valid, this is one of `each`. */
static struct value *token_is_valid(struct process *p, const struct token_nest *nest,
        const struct launch_tokens *rows, struct value *const *counter)
{
	int last = nest->loops - 1;
	while (last > 0 && nest->row[last] != 1)
		last--;
	if (rows->each && nest->trip[last] == rows->tile && nest->row[last] == 1)
		return make_below(p, counter[last], process_trip_count(p, rows->each, 1));
	struct value *tokens = process_token_count(p, rows);
	return make_below(p, make_address(p, nest->loops, counter, nest->row, 0), tokens);
}

/* Pads within a dynamic number of tiles: the position decides whether a token comes. */
static void lower_pad_counted(struct design *design, const struct op *op)
{
	const struct itensor *from = op->operand[0]->type->itensor;
	struct process p = process_new(design, "pad_tokens");
	int dim = token_dim(from);
	struct launch_tokens rows = launch_tokens_of(design->module->arena, token_symbol(from),
	        attr_get(op, KEY_TENSOR)->type->shape[dim]);
	struct token_nest nest =
	        token_nest(design->module->arena, op->result[0]->type->itensor, dim);
	struct value **counter = ARENA_ARRAY(design->module->arena, struct value *, nest.loops + 1);
	struct value *in = process_argument(&p, stream_fifo(design, op->operand[0]), "x");
	struct value *out = process_argument(&p, stream_fifo(design, op->result[0]), "y");
	process_layers(&p);
	int opened = process_nest_run_time(
	        &p, (struct loop_bounds){ nest.loops, nest.trip, nest.run_time }, 1, counter);
	struct value *valid = token_is_valid(&p, &nest, &rows, counter);
	struct value *word = make_pop(&p, valid, in);
	make_push(&p, NULL, make_select(&p, valid, word, make_number(&p, 0, word->type)), out);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}

void lower_pad_tokens(struct design *design, const struct op *op)
{
	const struct type *from = op->operand[0]->type;
	const struct type *to = op->result[0]->type;
	if (from->itensor->run_time && to->itensor->run_time) {
		lower_pad_counted(design, op);
		return;
	}
	bool fills = from->itensor->run_time;
	const struct itensor *order = fills ? from->itensor : to->itensor;
	struct process p = process_new(design, "pad_tokens");
	struct value **counter =
	        ARENA_ARRAY(design->module->arena, struct value *, order->dims + 1);
	struct value *in = process_argument(&p, stream_fifo(design, op->operand[0]), "x");
	struct value *out = process_argument(&p, stream_fifo(design, op->result[0]), "y");
	process_layers(&p);
	int opened = process_nest(&p, order->dims, order->trip, 1, counter);
	struct value *valid = row_below_extents(&p, order, counter);
	struct value *word = make_pop(&p, fills ? valid : NULL, in);
	if (fills && valid)
		word = make_select(&p, valid, word, make_number(&p, 0, word->type));
	make_push(&p, fills ? NULL : valid, word, out);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}
