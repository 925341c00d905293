/* Addresses of a box in a process: words are written and read by loops of box_side. */
#include "converter/lower_box.h"

void side_use_banks(
        struct side *side, const struct bank_sides *sides, const struct banks *banks, bool write)
{
	struct box_side *split = ARENA_NEW(sides->arena, struct box_side);
	side->interval = banks_interval(sides, banks, side->steps, write);
	*split = banks_split(sides, banks, side->steps, side->shared);
	side->steps = split;
	side->banks = banks;
}

int side_loops(struct process *p, const struct side *side, struct value **counter)
{
	return process_nest_run_time(p,
	        (struct loop_bounds){ side->steps->loops - side->shared,
	                side->steps->trip + side->shared, side->steps->run_time + side->shared },
	        side->interval ? side->interval : 1, counter);
}

/* The counters of all loops as they step through the box. */
static struct value **side_points(
        struct process *p, const struct side *side, struct value *const *counter)
{
	const struct box_side *steps = side->steps;
	struct value **point = ARENA_ARRAY(p->module->arena, struct value *, steps->loops + 1);
	for (int l = side->shared; l < steps->loops; l++) {
		const struct run_time_trip *trip = steps->run_time[l];
		int64_t times = trip ? steps->trip[l] / trip->most : 1;
		if (steps->step[l])
			point[l] = process_window_index(p, trip, times, counter[l - side->shared]);
	}
	return point;
}

static const struct banks in_order = { .copies = 1 };

static struct bank_access access_of(const struct side *side, struct value *const *point)
{
	return (struct bank_access){ .banks = side->banks ? side->banks : &in_order,
		.side = side->steps,
		.point = point,
		.word = side->word };
}

struct value *side_read(struct process *p, const struct side *side, struct value *array,
        struct value *const *counter)
{
	struct bank_access from = access_of(side, side_points(p, side, counter));
	int64_t words = side->steps->lanes / side->word;
	struct value **word = ARENA_ARRAY(p->module->arena, struct value *, words);
	for (int64_t w = 0; w < words; w++) {
		struct value *operand[BANK_DIMS_MOST + 1] = { array };
		int rank = banks_indices(p, &from, w, w % from.banks->copies, operand + 1);
		word[w] = make_op(p, OP_MEMREF_LOAD, array->type->element, 1 + rank, operand);
	}
	return words == 1 ? word[0] : make_op(p, OP_JOIN_LANES, side->type, (int)words, word);
}

void side_write(struct process *p, const struct side *side, struct value *array,
        struct value *const *counter, struct value *word)
{
	struct bank_access to = access_of(side, side_points(p, side, counter));
	int64_t words = side->steps->lanes / side->word;
	for (int64_t w = 0; w < words; w++) {
		struct value *part[2] = { word, make_index(p, w) };
		struct value *operand[BANK_DIMS_MOST + 2] = { word, array };
		if (words > 1)
			operand[0] = make_op(p, OP_SPLIT_LANES, array->type->element, 2, part);
		for (int64_t copy = 0; copy < to.banks->copies; copy++) {
			int rank = banks_indices(p, &to, w, copy, operand + 2);
			op_append(p->block,
			        op_new(p->module, OP_MEMREF_STORE, NOWHERE, 2 + rank, operand, 0,
			                NULL));
		}
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
