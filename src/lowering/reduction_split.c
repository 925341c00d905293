/* Splits a kernel that sums up many rows in two processes: the second one combines the partial sums
 * of a row while the first adds the next row's terms. In one process the pipeline would drain after
 * every row.
 *     terms of a row: … | 0 1 2 3 … | 0 1 2 3 … | …   the last term of each partial sum is pushed
 * The terms of all rows are one nest. The numbers are added in the order in which one process would
 * add them. */
#include "ir/kernel_edit.h"
#include "lowering/lower_kernel.h"

#define PARTIAL_SUM_ROWS 2 /* rows whose partial sums wait in the FIFO */

bool is_reduction_split(const struct kernel *kernel, int64_t parts)
{
	int nest = kernel->loops - (kernel->lanes > 1) - (kernel->row_unroll > 1);
	int64_t rows = 1;
	int64_t terms = 0;
	for (int i = 0; i < nest; i++) {
		const struct loop *loop = &kernel->loop[i];
		bool several = loop->extent > 1 || loop->run_time;
		if (!terms && !(loop->reduction && several))
			rows *= loop->extent;
		else if (several && (loop->run_time || !loop->reduction))
			return false;
		else
			terms = several ? loop->extent : terms;
	}
	return parts > 1 && kernel->combine_interval == 1 && !kernel->scan && rows > 1 && terms &&
	        terms % parts == 0;
}

int lower_reduction_split(
        struct lowering *l, const int64_t *trip, const struct run_time_trip *const *run_time)
{
	struct process *p = &l->p;
	struct value *array = NULL;
	struct value *last = NULL;
	int opened = process_nest_run_time(p, (struct loop_bounds){ l->nest, trip, run_time },
	        l->kernel->initiation_interval, l->counter);
	int inner = kernel_inner_reduction(l->kernel);
	take_operands(l, TAKE_TERMS);
	add_to_sum(l, true, &array, NULL);
	for (int i = first_reduction(l); i < l->nest; i++)
		if (l->counter[i])
			last = make_and(p, last,
			        i == inner ? make_compare(p, CMPI_SGE, l->counter[i],
			                             trip[i] - l->kernel->partial_sums)
			                   : at_last(l, i));
	l->parts = design_fifo(p->design,
	        text_format(p->module->arena, "s_%s_partial_sums", l->kernel->name), sum_word(l),
	        PARTIAL_SUM_ROWS * l->kernel->partial_sums);
	make_push(p, last, l->accumulator, process_argument(p, l->parts, "parts"));
	return opened;
}

/* all partial sums of a row, with the last one just popped */
static struct value *joined_parts(struct lowering *l, struct value *from, struct value *part)
{
	struct process *p = &l->p;
	int64_t parts = l->kernel->partial_sums;
	struct value **sum = ARENA_ARRAY(p->module->arena, struct value *, parts);
	struct value *array = make_array(p, "acc", parts, sum_word(l), parts);
	sum[parts - 1] = make_pop(p, NULL, from);
	make_store(p, sum[parts - 1], array, part);
	for (int64_t i = 0; i < parts - 1; i++)
		sum[i] = make_load(p, array, make_index(p, i));
	return tree_over(l, sum, parts);
}

void lower_partial_sum_process(struct design *design, const struct op *op, struct value *parts)
{
	struct arena *arena = design->module->arena;
	const struct kernel *kernel = op->kernel;
	struct lowering l = lowering_new(design, op, text_format(arena, "%s_sum", kernel->name));
	int outer = first_reduction(&l);
	struct value *from = process_argument(&l.p, parts, "parts");
	process_layers(&l.p);
	int64_t *trip = ARENA_ARRAY(arena, int64_t, outer + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, outer + 1);
	struct value **counter = ARENA_ARRAY(arena, struct value *, outer + 1);
	for (int i = 0; i < outer; i++) {
		trip[i] = kernel->loop[i].extent;
		run_time[i] = kernel->loop[i].run_time;
	}
	trip[outer] = kernel->partial_sums;
	int opened = process_nest_run_time(
	        &l.p, (struct loop_bounds){ outer + 1, trip, run_time }, 1, counter);
	for (int i = 0; i < outer; i++)
		l.counter[i] = counter[i];
	l.terms = make_equal(&l.p, counter[outer], kernel->partial_sums - 1);
	l.accumulator = joined_parts(&l, from, counter[outer]);
	take_operands(&l, TAKE_POST);
	push_result(&l, l.terms, finished_sum(&l));
	process_close(&l.p, opened + (design->layers > 0));
	process_finish(&l.p);
}
