/* Addresses of a box in a process: words are written and read by loops of box_side. */
#include "converter/lower_box.h"

int side_loops(struct process *p, const struct side *side, struct value **counter)
{
	return process_nest_run_time(p,
	        (struct loop_bounds){ side->steps->loops - side->shared,
	                side->steps->trip + side->shared, side->steps->run_time + side->shared },
	        1, counter);
}

static struct value *side_address(
        struct process *p, const struct side *side, struct value *const *counter)
{
	int inner = side->steps->loops - side->shared;
	int64_t *step = ARENA_ARRAY(p->module->arena, int64_t, inner + 1);
	struct value **point = ARENA_ARRAY(p->module->arena, struct value *, inner + 1);
	for (int i = 0; i < inner; i++) {
		const struct run_time_trip *trip = side->steps->run_time[side->shared + i];
		step[i] = side->steps->step[side->shared + i] / side->word;
		int64_t times = trip ? side->steps->trip[side->shared + i] / trip->most : 1;
		if (step[i])
			point[i] = process_window_index(p, trip, times, counter[i]);
	}
	return make_address(p, inner, point, step, side->steps->first / side->word);
}

static struct value *lane_address(
        struct process *p, const struct side *side, struct value *address, int64_t lane)
{
	const int64_t one = 1;
	return make_address(p, 1, &address, &one, side->steps->lane[lane] / side->word);
}

struct value *side_read(struct process *p, const struct side *side, struct value *array,
        struct value *const *counter)
{
	int64_t lanes = side->steps->lanes;
	struct value *address = side_address(p, side, counter);
	if (side->word == lanes)
		return make_load(p, array, address);
	int64_t words = lanes / side->word;
	struct value **word = ARENA_ARRAY(p->module->arena, struct value *, words);
	for (int64_t w = 0; w < words; w++)
		word[w] = make_load(p, array, lane_address(p, side, address, w * side->word));
	return make_op(p, OP_JOIN_LANES, side->type, (int)words, word);
}

void side_write(struct process *p, const struct side *side, struct value *array,
        struct value *const *counter, struct value *word)
{
	int64_t lanes = side->steps->lanes;
	struct value *address = side_address(p, side, counter);
	if (side->word == lanes) {
		make_store(p, word, array, address);
		return;
	}
	for (int64_t w = 0; w < lanes / side->word; w++) {
		struct value *operand[2] = { word, make_index(p, w) };
		struct value *place = lane_address(p, side, address, w * side->word);
		struct value *part = make_op(p, OP_SPLIT_LANES, array->type->element, 2, operand);
		make_store(p, part, array, place);
	}
}

bool box_is_right(struct design *design, const struct op *op, const struct type *result,
        const struct box *box, bool into_layers)
{
	struct diag *diag = design->module->diag;
	const char *name = op_info[op->code].name;
	int64_t size = attr_integer_or(op, KEY_BUFFER_ELEMENTS, 0);
	if (box->why) {
		diag_error(diag, op->location, "%s: %s", name, box->why);
		return diag_note(diag, "from %s to %s", op->operand[0]->type->text, result->text);
	}
	if (into_layers && box->shared) {
		diag_error(diag, op->location,
		        "%s: it shares %d loops with a writer outside the rolled layer", name,
		        box->shared);
		return diag_note(
		        diag, "a stream from outside the layer is buffered completely, shared = 0");
	}
	/* a spilled line buffer has the whole tensor in memory */
	if (size == box->elements || (attr_get(op, KEY_LINE_BUFFER) && attr_get(op, KEY_SPILLED)))
		return true;
	diag_error(diag, op->location, "%s: a buffer of %lld elements", name, (long long)size);
	return diag_note(
	        diag, "with %d shared loops it has %lld", box->shared, (long long)box->elements);
}
