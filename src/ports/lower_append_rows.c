/* Appends several rows of a launch to a state (KV cache), by two processes: one drops the padding
 * rows, the other writes the rest one after another from the launch's position on. Rows beyond the
 * end of the state are all written to its last row, as in lower_append.c. */
#include "ports/append_internal.h"
#include "ir/launch_tokens.h"
#include "process/operation_builder.h"

/* the words of a result, row-major */
struct rows {
	int64_t trip[3]; /* iterations above the axis, rows, words of one row */
	int64_t lanes;
	struct launch_tokens run_time; /* token count of the rows that are made */
	/* dynamic count of the rows that are written; NULL: all */
	const struct run_time_trip *count;
};

static struct rows rows_of(struct design *design, const struct op *store, int axis,
        const struct attr *name, bool bound)
{
	const struct type *tensor = attr_get(store, KEY_TENSOR)->type;
	struct rows rows = { .trip = { 1, tensor->shape[axis], 1 },
		.lanes = stream_lanes(store->operand[0]->type) };
	for (int d = 0; d < tensor->rank; d++)
		if (d != axis)
			rows.trip[d < axis ? 0 : 2] *= tensor->shape[d];
	rows.run_time =
	        launch_tokens_of(design->module->arena, bound ? name->text : NULL, rows.trip[1]);
	if (rows.trip[2] % rows.lanes)
		rows.lanes = 0;
	else
		rows.trip[2] /= rows.lanes;
	if (name) {
		struct run_time_trip *count =
		        ARENA_NEW(design->module->arena, struct run_time_trip);
		*count = (struct run_time_trip){
			.symbol = name->text, .tile = 1, .most = rows.trip[1]
		};
		rows.count = count;
	}
	return rows;
}

bool append_rows_in_partitions(const struct op *store, int axis, int parts)
{
	const struct type *tensor = attr_get(store, KEY_TENSOR)->type;
	int64_t above = 1;
	for (int d = 0; d < axis; d++)
		above *= tensor->shape[d];
	return above % parts == 0;
}

/* drops the padding rows */
static struct value *add_filter(struct design *design, const struct rows *rows, struct value *all)
{
	struct value *some = design_fifo(design, "s_rows", all->type->element,
	        rows->trip[0] * rows->trip[1] * rows->trip[2]);
	struct value *counter[4];
	const int64_t trip[4] = { rows->trip[0], rows->run_time.most / rows->run_time.tile,
		rows->run_time.tile, rows->trip[2] };
	const int64_t pitch[2] = { rows->run_time.tile, 1 };
	const struct run_time_trip *bound[4] = { NULL, rows->run_time.tiles, rows->run_time.each,
		NULL };
	/* writes wait until all tiles have read the state, and narrow words go one by one: so the
	 * FIFO holds all rows and delays nobody */
	if (rows->run_time.tiles)
		attr_set(design->module, some->def, KEY_STREAM_FULL_DEPTH,
		        attr_unit(design->module));
	struct process p = process_new(design, "write_rows");
	struct value *in = process_argument(&p, all, "x");
	struct value *out = process_argument(&p, some, "y");
	process_layers(&p);
	int opened = process_nest_run_time(&p, (struct loop_bounds){ 4, trip, bound }, 1, counter);
	struct value *row = make_address(&p, 2, counter + 1, pitch, 0);
	struct value *written = make_below(&p, row, process_trip_count(&p, rows->count, 1));
	make_push(&p, written, make_pop(&p, NULL, in), out);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
	return some;
}

/* where the rows of a state are written */
struct place {
	const struct state *state;
	/* rows of the state, with those in front that are not written; words of the latter */
	int64_t extent, before;
	/* words between two iterations above the axis, and between two layers */
	int64_t outside[2];
};

/* One loop nest per partition; but with interleaved ports one for all, since each nest drains its
 * pipeline. */
static void write_rows(struct design *design, const struct op *store, const struct rows *rows,
        const struct place *place, struct value *fifo)
{
	const struct state *state = place->state;
	const char *extent = append_extent(design, store, state);
	struct process p = process_new(design, "append");
	struct value **memory = append_ports(&p, state, fifo->type->element);
	struct value *in = process_argument(&p, fifo, "x");
	struct value *counter[4] = { 0 };
	struct value *position_array = append_begin(&p, state, extent,
	        process_argument(&p, stream_fifo(design, store->operand[1]), "position"));
	int loops = state->port_interleave ? 1 : state->parts;
	int ports = state->ports * state->parts / loops;
	const struct run_time_trip *bound[3] = { NULL, rows->count, NULL };
	const int64_t one[2] = { 1, 1 };
	const int64_t inside[2] = { rows->trip[2], 1 };
	const int64_t trip[3] = { rows->trip[0] / loops, rows->trip[1], rows->trip[2] };
	for (int i = 0; i < loops; i++) {
		int opened = process_nest_run_time(
		        &p, (struct loop_bounds){ 3, trip, bound }, ports, counter);
		struct value *position[2] = {
			append_position(&p, extent, position_array, place->extent), counter[1]
		};
		struct value *row[2] = { make_clamped(&p, make_address(&p, 2, position, one, 0),
			                         place->extent - place->before / rows->trip[2]),
			counter[2] };
		struct value *above[2] = { counter[0], p.layer };
		struct value *outer =
		        make_address(&p, 2, above, place->outside, state->offset / rows->lanes);
		struct value *inner = make_address(&p, 2, row, inside, place->before);
		struct value *word = make_pop(&p, NULL, in);
		if (state_is_interleaved(state))
			append_interleaved(&p, state, memory + i * ports,
			        &(struct appended_word){ word, rows->lanes, outer, inner });
		else
			make_store(&p, word, memory[i],
			        make_address(&p, 2, (struct value *[2]){ outer, inner }, one, 0));
		process_close(&p, opened);
	}
	process_close(&p, design->layers > 0);
	process_finish(&p);
}

bool lower_append_rows(struct design *design, const struct op *store, const struct state *state,
        const struct type *whole)
{
	struct module *module = design->module;
	const struct attr *output =
	        signature_of(design, true, (int)attr_get(store, KEY_RESULT)->integers[0]);
	const char *name = attr_item(output, KEY_NAME)->text;
	int axis = (int)attr_item(output, KEY_AXIS)->integer;
	struct rows rows = rows_of(design, store, axis, attr_item(output, KEY_TOKEN_COUNT),
	        attr_item(output, KEY_DIMS) != NULL);
	if (!rows.lanes)
		return diag_error(module->diag, store->location,
		        "words written to the state \"%s\" cross a row boundary", name);
	struct value *fifo = stream_fifo(design, store->operand[0]);
	if (rows.count)
		fifo = add_filter(design, &rows, fifo);
	struct place place = { .state = state,
		.extent = whole->shape[axis],
		.before = attr_item_integer(output, KEY_LEAD, 0) * rows.trip[2] };
	place.outside[0] = place.extent * rows.trip[2] /
	        (state->ports * (state->port_interleave ? state->parts : 1));
	place.outside[1] = state->layer / rows.lanes;
	write_rows(design, store, &rows, &place, fifo);
	return true;
}
