/* Lowers a kernel with a register tile (kernel.h): one nest in which every row of the tile has an
 * array of sums of its own. At the last term whole tiles leave, in words of several rows; a second
 * process sends their rows one after the other. */
#include "lowering/lower_kernel.h"
#include "process/process_builder.h"

#define GROUP_BITS 4096 /* widest word in which rows leave */

/* Rows that leave in one word. */
static int64_t rows_of_group(const struct kernel *kernel)
{
	int64_t rows = kernel->row_unroll;
	while (rows > 1 &&
	        (kernel->row_unroll % rows ||
	                rows * kernel->lanes * type_bits(kernel->type) > GROUP_BITS))
		rows--;
	return rows;
}

/* The arrays of sums, and the sums of all rows before this term. NULL arrays: there is one term. */
static struct value **sums_before(
        struct lowering *l, const struct type *word, struct value *address, int64_t words)
{
	struct process *p = &l->p;
	int64_t rows = l->kernel->row_unroll;
	struct value **before = ARENA_ARRAY(p->module->arena, struct value *, rows);
	struct value *start = make_number(p, l->kernel->init, word);
	struct value *first = at_reduction_end(l, false);
	l->row_array = ARENA_ARRAY(p->module->arena, struct value *, rows);
	for (int64_t r = 0; r < rows; r++) {
		before[r] = start;
		if (!address)
			continue;
		l->row_array[r] = make_array(p, "acc", words, word, 1);
		if (words > 1)
			attr_set(p->module, l->row_array[r]->def, KEY_STREAM_DISTANCE,
			        attr_integer(p->module, words));
		before[r] = make_select(p, first, start, make_load(p, l->row_array[r], address));
	}
	return before;
}

static void push_rows(struct lowering *l, struct value *last, struct value **sums)
{
	struct process *p = &l->p;
	int64_t together = rows_of_group(l->kernel);
	int64_t lanes = together * l->kernel->lanes;
	const struct type *group = type_shaped(p->module, TYPE_VECTOR, 1, &lanes, l->kernel->type);
	int64_t tiles = itensor_tiles(l->op->result[0]->type->itensor) / l->kernel->row_unroll;
	l->groups = (int)(l->kernel->row_unroll / together);
	l->tiles = ARENA_ARRAY(p->module->arena, struct value *, l->groups);
	for (int g = 0; g < l->groups; g++) {
		l->tiles[g] = design_fifo(p->design, "s_tile", group, tiles);
		struct value *fifo =
		        process_argument(p, l->tiles[g], text_format(p->module->arena, "y%d", g));
		struct value *word = together == 1
		        ? sums[g]
		        : make_op(p, OP_JOIN_LANES, group, (int)together, sums + g * together);
		make_push(p, last, word, fifo);
	}
}

int lower_register_tile(
        struct lowering *l, const int64_t *trip, const struct run_time_trip *const *run_time)
{
	struct process *p = &l->p;
	const struct type *word = lanes_word(l, l->kernel->type, true);
	int opened = process_nest_run_time(p, (struct loop_bounds){ l->nest, trip, run_time },
	        l->kernel->initiation_interval, l->counter);
	take_operands(l, TAKE_ALL);
	int64_t words = 1;
	struct value *last = at_reduction_end(l, true);
	struct value *address = last ? accumulator_address(l, NULL, 0, &words) : NULL;
	l->row_sums = sums_before(l, word, address, words);
	struct value **sums = tile_sums(l);
	for (int64_t r = 0; last && r < l->kernel->row_unroll; r++)
		make_store(p, sums[r], l->row_array[r], address);
	push_rows(l, last, sums);
	return opened;
}

void lower_tile_rows(struct design *design, const struct op *op, const struct lowering *l)
{
	const struct kernel *kernel = op->kernel;
	int64_t together = rows_of_group(kernel);
	struct process p = process_new(design, "rows");
	struct value *out = process_argument(&p, stream_fifo(design, op->result[0]), "y");
	const struct type *row = out->type->element;
	process_layers(&p);
	process_loop(&p, itensor_tiles(op->result[0]->type->itensor) / kernel->row_unroll);
	struct value *group = l->groups > 1 ? process_loop(&p, l->groups) : NULL;
	struct value *part = together > 1 ? process_loop(&p, together) : NULL;
	process_pipeline(&p, 1);
	struct value *sent = NULL;
	for (int g = 0; g < l->groups; g++) {
		struct value *in = process_argument(
		        &p, l->tiles[g], text_format(design->module->arena, "x%d", g));
		struct value *here = group ? make_equal(&p, group, g) : NULL;
		struct value *begin = part ? make_equal(&p, part, 0) : NULL;
		struct value *word = make_pop(&p, make_and(&p, here, begin), in);
		if (part)
			word = make_op(
			        &p, OP_SPLIT_LANES, row, 2, (struct value *[2]){ word, part });
		sent = sent ? make_select(&p, here, word, sent) : word;
	}
	make_push(&p, NULL, sent, out);
	process_close(&p, 1 + (group != NULL) + (part != NULL) + (design->layers > 0));
	process_finish(&p);
}
