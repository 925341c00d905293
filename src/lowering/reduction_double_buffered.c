/* Double-buffered sums: the partial sums of one iteration of an outer loop are combined while the
 * terms of the next one are added, so that the pipeline never drains. */
#include "ir/workload.h"
#include "ir/launch_tokens.h"
#include "lowering/lower_kernel.h"

#define DOUBLE_BUFFER_MIN_POINTS 4 /* iterations of a loop from which on one more costs little */

/* Does the operand change with every iteration of the outer loops, so that one counter can stand
 * for all of them? */
static bool changes_with_outer(const struct access *access, int outer)
{
	return outer == 1 || (access->stride[outer - 1] && !access->guards);
}

static bool is_counted(const struct loop *loop)
{
	return loop->run_time && loop->run_time->tile == 1;
}

/* The loop outside of the reduction that is double buffered, where outer loops have dynamic bounds:
 * one of fixed extent, for which one more iteration is cheap; or the only one. -1: none. */
static int counted_buffered_loop(const struct kernel *kernel, int outer)
{
	int buffered_loop = -1;
	int loops = 0;
	for (int i = 0; i < outer; i++) {
		const struct loop *loop = &kernel->loop[i];
		if (loop->run_time && !is_counted(loop))
			return -1;
		loops += loop->run_time || loop->extent > 1;
		if (buffered_loop < 0 && !loop->run_time &&
		        loop->extent >= DOUBLE_BUFFER_MIN_POINTS)
			buffered_loop = i;
	}
	if (buffered_loop >= 0)
		return buffered_loop;
	return loops == 1 && is_counted(&kernel->loop[outer - 1]) ? outer - 1 : -1;
}

int double_buffered_loop(const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	int nest = kernel->loops - (kernel->lanes > 1) - (kernel->row_unroll > 1);
	int outer = kernel_outer_reduction(kernel);
	int inner = kernel_inner_reduction(kernel);
	if (kernel->partial_sums == 1 || kernel->combine_interval > 1 || outer < 1 ||
	        kernel->loop[inner].run_time || kernel->loop[inner].extent < kernel->partial_sums ||
	        body_uses_counters(&kernel->post))
		return -1;
	bool several = false, counted = false;
	for (int i = 0; i < nest; i++) {
		const struct loop *loop = &kernel->loop[i];
		several = several || (i < outer && loop->extent > 1);
		counted = counted || (i < outer && loop->run_time);
		if (i >= outer &&
		        (!loop->reduction || (loop->run_time && loop->run_time->plus < 1)))
			return -1;
	}
	if (counted)
		return counted_buffered_loop(kernel, outer);
	several = several && kernel->loop[outer - 1].extent > 1;
	for (int j = 0; several && j < op->operands; j++)
		several = changes_with_outer(&kernel->operand[j], outer);
	return several ? outer - 1 : -1;
}

/* iterations of the loops inside the buffered one, each of which has sums of its own */
static int64_t points_inside(const struct kernel *kernel, int buffered_loop)
{
	int64_t points = 1;
	for (int i = buffered_loop + 1; i < kernel_outer_reduction(kernel); i++)
		points *= kernel->loop[i].extent;
	return points;
}

int64_t sum_buffers(const struct op *op)
{
	switch (reduction_schedule_of(op)) {
	case REDUCTION_DYNAMIC: return 2;
	case REDUCTION_DOUBLE_BUFFERED:
		return 2 * points_inside(op->kernel, double_buffered_loop(op));
	default: return 1;
	}
}

/* address of a sum in one of two sets, for even and odd iterations */
static struct value *sum_address(struct lowering *l, int buffered_loop, int64_t next_point,
        struct value *part, int64_t number)
{
	struct process *p = &l->p;
	const int64_t one = 1;
	int outer = first_reduction(l);
	int64_t *stride = ARENA_ARRAY(p->module->arena, int64_t, l->nest + 1);
	int64_t words = l->kernel->partial_sums;
	struct value **of = ARENA_ARRAY(p->module->arena, struct value *, l->nest + 1);
	of[l->nest] = part;
	stride[l->nest] = 1;
	for (int i = outer - 1; i > buffered_loop; i--) {
		of[i] = l->counter[i];
		stride[i] = words;
		words *= l->kernel->loop[i].extent;
	}
	struct value *odd[2] = { make_address(p, 1, &l->counter[buffered_loop], &one, next_point) };
	odd[1] = make_index(p, 1);
	of[buffered_loop] = make_op(p, OP_ANDI, type_index(p->module), 2, odd);
	stride[buffered_loop] = words;
	return make_address(p, l->nest + 1, of, stride, number);
}

/* When an operand of the epilogue is popped, for the iteration before: in the first iteration of
 * the loops that it does not depend on. */
static struct value *post_word_is_due(
        struct lowering *l, int j, int buffered_loop, struct value *when)
{
	int outer = first_reduction(l);
	int used = -1;
	for (int i = 0; i < outer; i++)
		used = l->counter[i] && l->kernel->operand[j].stride[i] ? i : used;
	for (int i = used + 1; i < outer; i++)
		when = l->counter[i] ? make_and(&l->p, when,
		                               make_equal(&l->p, l->counter[i], i == buffered_loop))
		                     : when;
	return when;
}

/* pushes the result of the iteration before, once its last term has been added */
static void push_previous_point(struct lowering *l, int buffered_loop, struct value *array)
{
	struct process *p = &l->p;
	const struct kernel *kernel = l->kernel;
	int outer = first_reduction(l);
	int inner = kernel_inner_reduction(kernel);
	struct value *when = make_compare(p, CMPI_SGE, l->counter[buffered_loop], 1);
	struct value **sum = ARENA_ARRAY(p->module->arena, struct value *, kernel->partial_sums);
	for (int i = outer; i < l->nest; i++) {
		int64_t first = i == inner ? kernel->partial_sums - 1 : 0;
		if (l->counter[i])
			when = make_and(p, when, make_equal(p, l->counter[i], first));
	}
	for (int j = 0; j < l->op->operands; j++) {
		if (!kernel_is_post_operand(kernel, j))
			continue;
		struct value *fifo = process_argument(p, stream_fifo(p->design, l->op->operand[j]),
		        text_format(p->module->arena, "x%d", j));
		l->operand[j] = make_pop(p, post_word_is_due(l, j, buffered_loop, when), fifo);
	}
	for (int64_t i = 0; i < kernel->partial_sums; i++)
		sum[i] = make_load(p, array, sum_address(l, buffered_loop, 1, NULL, i));
	l->accumulator = tree_over(l, sum, kernel->partial_sums);
	push_result(l, when, finished_sum(l));
}

/* Iterations after which input may pause for long: those of a tile of the engine's tokens. */
static int64_t points_in_row(const struct lowering *l, int64_t points)
{
	const char *rows = NULL;
	int64_t tokens = engine_tokens(l->p.design->source->region[0], &rows);
	for (int j = 0; j < l->op->operands; j++)
		if (!l->kernel->operand[j].stride[first_reduction(l) - 1])
			return points;
	if (l->kernel->tile_outermost) /* all heads of a tile */
		return points / l->kernel->loop[0].extent;
	return points == tokens ? token_tile(tokens, rows) : points;
}

/* Combines outer loops of fixed extent in one, but for an outer loop over rows of iterations, if
 * there are several. Returns the loops opened. */
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

static const struct run_time_trip *one_iteration_more(
        struct arena *arena, const struct run_time_trip *trip)
{
	struct run_time_trip *more = ARENA_NEW(arena, struct run_time_trip);
	*more = *trip;
	more->plus++;
	more->most++;
	return more;
}

/* One nest, in which the buffered loop has one more iteration, without terms, for the
 * last results. */
int lower_double_buffered(
        struct lowering *l, int buffered_loop, int64_t *trip, const struct run_time_trip **run_time)
{
	struct process *p = &l->p;
	const struct type *word = sum_word(l);
	const struct run_time_trip *counted = run_time[buffered_loop];
	bool fixed = true;
	for (int i = 0; i < first_reduction(l); i++)
		fixed = fixed && !run_time[i];
	int opened = fixed ? join_outside(l, trip) : 0;
	int64_t points = trip[buffered_loop]++;
	const int64_t parts = l->kernel->partial_sums;
	struct value *array = make_array(
	        p, "acc", 2 * points_inside(l->kernel, buffered_loop) * parts, word, parts);
	struct value *running = running_sums(l, "running", parts, parts);
	struct value *start = make_number(p, l->kernel->init, word);
	run_time[buffered_loop] = counted ? one_iteration_more(p->module->arena, counted) : NULL;
	opened += process_nest_run_time(p, (struct loop_bounds){ l->nest, trip, run_time },
	        l->kernel->initiation_interval, l->counter);
	struct value *iteration = l->counter[buffered_loop];
	l->terms = counted ? make_below(p, iteration, process_trip_count(p, counted, 1))
	                   : make_compare(p, CMPI_SLT, iteration, points);
	take_operands(l, TAKE_TERMS);
	struct value *part = part_of_sum(l);
	struct value *address = sum_address(l, buffered_loop, 0, part, 0);
	struct value *before = make_load(p, running, part);
	l->accumulator = make_select(p, at_reduction_end(l, false), start, before);
	struct value *sum = widen_word(l, updated_sum(l), word);
	make_store(p, sum, running, part);
	make_store(p, sum, array, address);
	push_previous_point(l, buffered_loop, array);
	return opened;
}
