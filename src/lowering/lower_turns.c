/* Sums that take turns: those of a point are put together while the terms of the next one are added, so that the pipeline never drains. */
#include "ir/workload.h"
#include "ir/rows.h"
#include "lowering/lower_kernel.h"

#define TURNS_LEAST 4         /* points of a loop, of which one more costs little */

/* Does what is read change with every point of the loops outside, so that one counter will do for all of them? */
static bool changes(const struct access *access, int outer)
{
	return outer == 1 || (access->stride[outer - 1] && !access->guards);
}

static bool is_counted(const struct loop *loop)
{
	return loop->run_time && loop->run_time->tile == 1;
}

/* The loop outside the reduction whose points take turns, where some of those outside are counted at run time: one of fixed extent, whose point more is little beside the others; or the only one.  -1: none. */
static int counted_turns(const struct kernel *kernel, int outer)
{
	int turning = -1, loops = 0;
	for (int i = 0; i < outer; i++) {
		const struct loop *loop = &kernel->loop[i];
		if (loop->run_time && !is_counted(loop))
			return -1;
		loops += loop->run_time || loop->extent > 1;
		turning = turning < 0 && !loop->run_time && loop->extent >= TURNS_LEAST ? i : turning;
	}
	return turning >= 0 ? turning : loops == 1 && is_counted(&kernel->loop[outer - 1]) ? outer - 1 : -1;
}

int turning_loop(const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	int nest = kernel->loops - (kernel->lanes > 1) - (kernel->rows > 1), outer = kernel_outer_reduction(kernel), inner = kernel_inner_reduction(kernel);
	if (kernel->partial == 1 || outer < 1 || kernel->loop[inner].run_time || kernel->loop[inner].extent < kernel->partial || body_uses_counters(&kernel->post))
		return -1;
	bool several = false, counted = false;
	for (int i = 0; i < nest; i++) {
		const struct loop *loop = &kernel->loop[i];
		several = several || (i < outer && loop->extent > 1);
		counted = counted || (i < outer && loop->run_time);
		if (i >= outer && (!loop->reduction || (loop->run_time && loop->run_time->plus < 1)))
			return -1;
	}
	if (counted)
		return counted_turns(kernel, outer);
	several = several && kernel->loop[outer - 1].extent > 1;
	for (int j = 0; several && j < op->operands; j++)
		several = changes(&kernel->operand[j], outer);
	return several ? outer - 1 : -1;
}

/* Points of the loops inside the one that turns, each of which has sums of its own. */
static int64_t points_inside(const struct kernel *kernel, int turning)
{
	int64_t points = 1;
	for (int i = turning + 1; i < kernel_outer_reduction(kernel); i++)
		points *= kernel->loop[i].extent;
	return points;
}

int64_t sum_sets(const struct op *op)
{
	int turning = turning_loop(op);
	return points_turn(op) ? 2 : turning < 0 ? 1 : 2 * points_inside(op->kernel, turning);
}

/* Two sets of sums, one for every second point. */
static struct value *turn_address(struct lowering *l, int turning, int64_t later, struct value *part, int64_t number)
{
	struct process *p = &l->p;
	const int64_t one = 1;
	int outer = first_reduction(l);
	int64_t *stride = ARENA_ARRAY(p->module->arena, int64_t, l->nest + 1), words = l->kernel->partial;
	struct value **of = ARENA_ARRAY(p->module->arena, struct value *, l->nest + 1);
	of[l->nest] = part;
	stride[l->nest] = 1;
	for (int i = outer - 1; i > turning; i--) {
		of[i] = l->counter[i];
		stride[i] = words;
		words *= l->kernel->loop[i].extent;
	}
	struct value *odd[2] = {make_address(p, 1, &l->counter[turning], &one, later), make_index(p, 1)};
	of[turning] = make_op(p, OP_ANDI, type_index(p->module), 2, odd);
	stride[turning] = words;
	return make_address(p, l->nest + 1, of, stride, number);
}

/* When what follows the sum is due, for the point before: at the first one of the loops that it does not change with. */
static struct value *due_after(struct lowering *l, int j, int turning, struct value *when)
{
	int outer = first_reduction(l), used = -1;
	for (int i = 0; i < outer; i++)
		used = l->counter[i] && l->kernel->operand[j].stride[i] ? i : used;
	for (int i = used + 1; i < outer; i++)
		when = l->counter[i] ? make_and(&l->p, when, make_equal(&l->p, l->counter[i], i == turning)) : when;
	return when;
}

/* The result of the point before, when its last term has been added. */
static void push_turn(struct lowering *l, int turning, struct value *array)
{
	struct process *p = &l->p;
	const struct kernel *kernel = l->kernel;
	int outer = first_reduction(l), inner = kernel_inner_reduction(kernel);
	struct value *when = make_compare(p, 5, l->counter[turning], 1), **sum = ARENA_ARRAY(p->module->arena, struct value *, kernel->partial);
	for (int i = outer; i < l->nest; i++)
		when = l->counter[i] ? make_and(p, when, make_equal(p, l->counter[i], i == inner ? kernel->partial - 1 : 0)) : when;
	for (int j = 0; j < l->op->operands; j++) {
		if (!kernel_is_post_operand(kernel, j))
			continue;
		struct value *fifo = process_argument(p, stream_fifo(p->design, l->op->operand[j]), text_format(p->module->arena, "x%d", j));
		l->operand[j] = make_take(p, due_after(l, j, turning, when), fifo);
	}
	for (int64_t i = 0; i < kernel->partial; i++)
		sum[i] = make_load(p, array, turn_address(l, turning, 1, NULL, i));
	l->accumulator = tree_over(l, sum, kernel->partial);
	push_result(l, when, finished_sum(l));
}

/* Points after which nothing more may come for long: those of a tile of a unit's tokens. */
static int64_t points_in_row(const struct lowering *l, int64_t points)
{
	const char *rows = NULL;
	int64_t tokens = unit_tokens(l->p.design->source->region[0], &rows);
	for (int j = 0; j < l->op->operands; j++)
		if (!l->kernel->operand[j].stride[first_reduction(l) - 1])
			return points;
	if (l->kernel->tiled)      /* all heads of a tile */
		return points / l->kernel->loop[0].extent;
	return points == tokens ? rows_tile(tokens, rows) : points;
}

/* Loops of fixed extent outside the reduction become one; of many points a row takes turns.  Returns the loops opened. */
static int join_outside(struct lowering *l, int64_t *trip)
{
	int64_t points = 1;
	int outer = first_reduction(l);
	for (int i = 0; i < outer; i++) {
		points *= trip[i];
		trip[i] = 1;
	}
	int64_t row = points_in_row(l, points);
	if (row < points)
		process_loop(&l->p, points / row);
	trip[outer - 1] = row;
	return row < points;
}

static const struct run_time_trip *one_more(struct arena *arena, const struct run_time_trip *trip)
{
	struct run_time_trip *more = ARENA_NEW(arena, struct run_time_trip);
	*more = *trip;
	more->plus++;
	more->most++;
	return more;
}

/* One nest, in which the loop that turns has one point more, without terms: the last results come in it. */
int lower_turns(struct lowering *l, int turning, int64_t *trip, const struct run_time_trip **run_time)
{
	struct process *p = &l->p;
	const struct type *word = sum_word(l);
	const struct run_time_trip *counted = run_time[turning];
	bool fixed = true;
	for (int i = 0; i < first_reduction(l); i++)
		fixed = fixed && !run_time[i];
	int opened = fixed ? join_outside(l, trip) : 0;
	int64_t points = trip[turning]++;
	struct value *array = make_array(p, "acc", 2 * points_inside(l->kernel, turning) * l->kernel->partial, word, l->kernel->partial), *start = make_number(p, l->kernel->init, word);
	attr_set(p->module, array->def, KEY_STREAM_DISTANCE, attr_integer(p->module, l->kernel->partial));
	run_time[turning] = counted ? one_more(p->module->arena, counted) : NULL;
	opened += process_nest_to(p, l->nest, trip, run_time, l->kernel->interval, l->counter);
	struct value *turn = l->counter[turning];
	l->terms = counted ? make_below(p, turn, process_count(p, counted, 1)) : make_compare(p, 2, turn, points);
	take_operands(l, TAKE_TERMS);
	struct value *address = turn_address(l, turning, 0, part_of_sum(l), 0);
	l->accumulator = make_select(p, at_reduction_end(l, false), start, make_load(p, array, address));
	make_store(p, widen_word(l, updated_sum(l), word), array, address);
	push_turn(l, turning, array);
	return opened;
}
