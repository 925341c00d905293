/* Double-buffered sums of a dynamic number of terms, for kernels whose outermost loop walks tiles.
 * In one nest per tile the partial sums of an iteration are combined while the next iteration's
 * terms come; those of the last iteration follow in a nest of their own. There are two sets of
 * sums, for even and odd iterations. If an iteration has fewer terms than partial sums, iterations
 * without a term follow, so that the last addition is far enough from the combination. */
#include "lowering/lower_kernel.h"
#include "schedule/kernel_schedule.h"

bool is_reduction_dynamic(const struct op *op)
{
	return schedule_is_dynamic_buffered(op->kernel, NULL, op->kernel->partial_sums);
}

static const struct run_time_trip *at_least(
        struct arena *arena, const struct run_time_trip *trip, int64_t least)
{
	struct run_time_trip *more = arena_copy(arena, trip, sizeof *trip);
	more->least = least;
	return more;
}

/* iterations of a loop in this launch */
static struct value *points_of(struct lowering *l, int loop)
{
	const struct loop *of = &l->kernel->loop[loop];
	return of->run_time ? process_trip_count(&l->p, of->run_time, 1)
	                    : make_index(&l->p, of->extent);
}

/* Even or odd: parity of the current iteration, or of the one next_point iterations later. */
static struct value *point_parity(struct lowering *l, int64_t next_point)
{
	struct process *p = &l->p;
	const struct type *index = type_index(p->module);
	const int64_t each[2] = { 1, 1 };
	struct value *number = NULL;
	for (int i = 1; i < first_reduction(l); i++) {
		if (!l->counter[i])
			continue;
		struct value *wrap[2] = { number, number ? points_of(l, i) : NULL };
		struct value *sum[2] = { number ? make_op(p, OP_ANDI, index, 2, wrap) : NULL,
			l->counter[i] };
		number = make_address(p, 2, sum, each, 0);
	}
	struct value *odd[2] = { make_address(p, 1, &number, each, next_point) };
	odd[1] = make_index(p, 1);
	return make_op(p, OP_ANDI, index, 2, odd);
}

/* sums of an iteration, without their parts */
static int64_t sums_of_point(const struct lowering *l)
{
	int64_t sums = 1;
	for (int i = first_reduction(l); i < l->nest; i++)
		sums *= l->kernel->loop[i].reduction ? 1 : l->kernel->loop[i].extent;
	return sums;
}

static struct value *sum_address(
        struct lowering *l, struct value *parity, struct value *part, int64_t number)
{
	struct arena *arena = l->p.module->arena;
	int64_t *stride = ARENA_ARRAY(arena, int64_t, l->nest + 2);
	int64_t words = l->kernel->partial_sums;
	struct value **of = ARENA_ARRAY(arena, struct value *, l->nest + 2);
	for (int i = l->nest - 1; i > first_reduction(l); i--) {
		if (l->kernel->loop[i].reduction)
			continue;
		of[i] = l->counter[i];
		stride[i] = words;
		words *= l->kernel->loop[i].extent;
	}
	of[l->nest] = part;
	stride[l->nest] = 1;
	of[l->nest + 1] = parity;
	stride[l->nest + 1] = words;
	return make_address(&l->p, l->nest + 2, of, stride, number);
}

/* Pops the operands of the epilogue, each once for all iterations that do not change it. */
static void take_post_operands(struct lowering *l, struct value *when)
{
	struct process *p = &l->p;
	for (int j = 0; j < l->op->operands; j++) {
		if (!kernel_is_post_operand(l->kernel, j))
			continue;
		struct value *due = when;
		int used = -1;
		for (int i = 0; i < l->nest; i++)
			used = !l->kernel->loop[i].reduction && l->counter[i] &&
			                l->kernel->operand[j].stride[i]
			        ? i
			        : used;
		for (int i = used + 1; i < l->nest; i++)
			due = !l->kernel->loop[i].reduction && l->counter[i]
			        ? make_and(p, due, make_equal(p, l->counter[i], 0))
			        : due;
		l->operand[j] = make_pop(p, due, operand_fifo(l, j));
	}
}

static void push_sums(
        struct lowering *l, struct value *when, struct value *array, struct value *parity)
{
	struct process *p = &l->p;
	int64_t parts = l->kernel->partial_sums;
	struct value **sum = ARENA_ARRAY(p->module->arena, struct value *, parts);
	take_post_operands(l, when);
	for (int64_t i = 0; i < parts; i++) {
		struct value *none = make_number(p, l->kernel->init, sum_word(l));
		struct value *stored = make_load(p, array, sum_address(l, parity, NULL, i));
		sum[i] = sum_of_terms(l, stored, none, i);
	}
	l->accumulator = tree_over(l, sum, parts);
	push_result(l, when, finished_sum(l));
}

/* Is there an iteration before this one, and have all of its terms been added? */
static struct value *previous_point_is_done(struct lowering *l)
{
	struct process *p = &l->p;
	int outer = first_reduction(l);
	int inner = kernel_inner_reduction(l->kernel);
	int64_t *each = ARENA_ARRAY(p->module->arena, int64_t, l->nest + 1);
	for (int i = 1; i < outer; i++)
		each[i] = 1;
	struct value *when =
	        make_compare(p, CMPI_SGE, make_address(p, outer, l->counter, each, 0), 1);
	for (int i = outer; i < l->nest; i++)
		if (l->kernel->loop[i].reduction && l->counter[i])
			when = make_and(p, when,
			        make_equal(p, l->counter[i],
			                i == inner ? l->kernel->partial_sums - 1 : 0));
	return when;
}

/* array: of `sums` for even points, and as many for odd ones */
static void add_term(struct lowering *l, int64_t sums, struct value *array)
{
	struct process *p = &l->p;
	const struct type *word = sum_word(l);
	int inner = kernel_inner_reduction(l->kernel);
	if (l->kernel->loop[inner].run_time)
		l->terms = make_below(p, l->counter[inner], points_of(l, inner));
	take_operands(l, TAKE_TERMS);
	struct value *part = part_of_sum(l);
	struct value *address = sum_address(l, point_parity(l, 0), part, 0);
	struct value *own = sum_address(l, NULL, part, 0);
	struct value *running = running_sums(l, "running", sums, sums);
	struct value *before = make_load(p, running, own);
	struct value *start = make_number(p, l->kernel->init, word);
	l->accumulator = make_select(p, at_reduction_end(l, false), start, before);
	struct value *sum = widen_word(l, updated_sum(l), word);
	make_store(p, sum, running, own);
	make_store(p, sum, array, address);
}

/* the sums of the last iteration, if there is one */
static int lower_last_point(struct lowering *l, int64_t *trip,
        const struct run_time_trip **run_time, struct value *array)
{
	struct process *p = &l->p;
	const int64_t one = 1;
	struct value *any = NULL;
	int outer = first_reduction(l);
	for (int i = outer; i < l->nest; i++) {
		trip[i] = l->kernel->loop[i].reduction ? 1 : trip[i];
		run_time[i] = NULL;
	}
	int opened = process_nest_run_time(p,
	        (struct loop_bounds){ l->nest - outer, trip + outer, run_time + outer }, 1,
	        l->counter + outer);
	for (int i = 1; i < outer; i++) {
		struct value *points = points_of(l, i);
		l->counter[i] = l->counter[i] ? make_address(p, 1, &points, &one, -1) : NULL;
		any = run_time[i] && run_time[i]->plus < 1
		        ? make_and(p, any, make_compare(p, CMPI_SGE, points, 1))
		        : any;
	}
	push_sums(l, any, array, point_parity(l, 0));
	return opened;
}

int lower_reduction_dynamic(
        struct lowering *l, int64_t *trip, const struct run_time_trip **run_time)
{
	struct process *p = &l->p;
	int inner = kernel_inner_reduction(l->kernel);
	int tiles = trip[0] > 1 || run_time[0];
	int64_t sums = sums_of_point(l) * l->kernel->partial_sums;
	struct value *array = make_array(p, "acc", 2 * sums, sum_word(l), l->kernel->partial_sums);
	l->counter[0] = tiles ? process_loop_run_time(p, trip[0], run_time[0]) : NULL;
	run_time[inner] = run_time[inner]
	        ? at_least(p->module->arena, run_time[inner], l->kernel->partial_sums)
	        : NULL;
	int adding = process_nest_run_time(p,
	        (struct loop_bounds){ l->nest - 1, trip + 1, run_time + 1 },
	        l->kernel->initiation_interval, l->counter + 1);
	add_term(l, sums, array);
	struct value *parity = point_parity(l, 1);
	push_sums(l, previous_point_is_done(l), array, parity);
	process_close(p, adding);
	return tiles + lower_last_point(l, trip, run_time, array);
}
