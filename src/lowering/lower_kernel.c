/* Lowers a scheduled kernel to a process: one nest with one pipelined body, preceded by a nest that
 * fills a consumer buffer, if there is one. Each iteration pops the words that are due, updates one
 * accumulator word, and at the last iteration of a reduction pushes one result word. */
#include "lowering/lowering_internal.h"
#include "ir/kernel_edit.h"
#include "predict/timing.h"
#include "schedule/kernel_schedule.h"
#include "lowering/lower_kernel.h"

struct value *at_last(struct lowering *l, int loop)
{
	const struct loop *of = &l->kernel->loop[loop];
	if (!of->run_time)
		return make_equal(&l->p, l->counter[loop], of->extent - 1);
	const int64_t one = 1;
	struct value *count = process_trip_count(&l->p, of->run_time, 1);
	return make_equal_values(&l->p, l->counter[loop], make_address(&l->p, 1, &count, &one, -1));
}

/* Is a loop at the first iteration of a sum? The first terms of partial sums follow each other. */
static struct value *at_first(struct lowering *l, int loop)
{
	int64_t partial_sums = l->kernel->partial_sums;
	if (loop == kernel_inner_reduction(l->kernel) && partial_sums > 1)
		return make_compare(&l->p, CMPI_SLT, l->counter[loop], partial_sums);
	return make_equal(&l->p, l->counter[loop], 0);
}

struct value *at_reduction_end(struct lowering *l, bool last)
{
	struct value *all = NULL;
	for (int i = 0; i < l->nest; i++)
		if (l->kernel->loop[i].reduction && l->counter[i])
			all = make_and(&l->p, all, last ? at_last(l, i) : at_first(l, i));
	return all;
}

struct value *inside_guards(struct lowering *l, const struct access *access)
{
	struct value *all = NULL;
	for (int g = 0; g < access->guards; g++) {
		const struct guard_range *range = &access->guard[g];
		if (!l->counter[range->loop])
			continue;
		if (range->last) {
			all = make_and(&l->p, all, at_last(l, range->loop));
			continue;
		}
		if (range->low > 0)
			all = make_and(&l->p, all,
			        make_compare(&l->p, CMPI_SGE, l->counter[range->loop], range->low));
		if (range->high < l->kernel->loop[range->loop].extent)
			all = make_and(&l->p, all,
			        make_compare(
			                &l->p, CMPI_SLT, l->counter[range->loop], range->high));
	}
	return all;
}

/* Inside all guards, and in iterations for which the operand has a row; NULL: always. */
static struct value *row_is_valid(struct lowering *l, const struct access *access)
{
	struct process *p = &l->p;
	const struct row_predicate *row_predicate = access->row_predicate;
	struct value *inside = inside_guards(l, access);
	if (!row_predicate)
		return inside;
	int64_t *first = ARENA_ARRAY(p->module->arena, int64_t, l->nest + 1);
	for (int i = 0; i < l->nest; i++)
		first[i] = row_predicate->weight[i] * row_predicate->step;
	struct value *tokens = process_token_count(p, &row_predicate->rows);
	struct value *token = make_address(p, l->nest, l->counter, first, 0);
	return make_and(p, inside, make_below(p, token, tokens));
}

/* Is a loop at the first iteration in which an operand is read? */
static struct value *at_range_begin(struct lowering *l, const struct access *access, int loop)
{
	const struct guard_range *range = access_guard(access, loop);
	if (range && range->last)
		return at_last(l, loop);
	return make_equal(&l->p, l->counter[loop], range ? range->low : 0);
}

/* When operand j's next word is popped: docs/ir.md, stream level. valid: condition for it to be
 * read at all, or NULL. */
static struct value *word_is_due(struct lowering *l, int j, struct value *valid)
{
	const struct access *access = &l->kernel->operand[j];
	bool post = kernel_is_post_operand(l->kernel, j);
	struct value *when = valid;
	int used = -1;
	for (int i = 0; i < l->nest; i++) {
		const struct guard_range *range = access_guard(access, i);
		int64_t trip = range ? range->high - range->low : l->kernel->loop[i].extent;
		if (access->stride[i] && trip > 1 && !(post && l->kernel->loop[i].reduction))
			used = i;
	}
	for (int i = 0; i < l->nest; i++) {
		if (!l->counter[i])
			continue;
		if (post && l->kernel->loop[i].reduction) {
			when = make_and(&l->p, when, at_last(l, i));
		} else if (i > used) {
			when = make_and(&l->p, when, at_range_begin(l, access, i));
		}
	}
	return when;
}

struct value *operand_fifo(struct lowering *l, int operand)
{
	if (!l->source[operand])
		l->source[operand] =
		        process_argument(&l->p, stream_fifo(l->p.design, l->op->operand[operand]),
		                text_format(l->p.module->arena, "x%d", operand));
	return l->source[operand];
}

static struct value *next_word(struct lowering *l, int j, struct value *valid)
{
	if (l->consumer_buffer.convert && l->consumer_buffer.operand == j)
		return consumer_buffer_word(
		        &l->p, &l->consumer_buffer, l->array, l->counter, valid);
	struct value *fifo = operand_fifo(l, j);
	return make_pop(&l->p, make_and(&l->p, l->terms, word_is_due(l, j, valid)), fifo);
}

void take_operands(struct lowering *l, enum taken taken)
{
	for (int j = 0; j < l->op->operands; j++) {
		if (taken != TAKE_ALL &&
		        kernel_is_post_operand(l->kernel, j) != (taken == TAKE_POST))
			continue;
		struct value *valid = row_is_valid(l, &l->kernel->operand[j]);
		struct value *word = next_word(l, j, valid);
		l->operand[j] = valid
		        ? make_select(&l->p, valid, word, make_number(&l->p, 0, word->type))
		        : word;
	}
}

int first_reduction(const struct lowering *l)
{
	int loop = kernel_outer_reduction(l->kernel);
	return loop < 0 ? l->nest : loop;
}

/* Sums that are drained in other orders than the kernel's lie as in the box between the orders. */
static struct value *box_address(
        struct lowering *l, const struct box *box, const int64_t *stride, int64_t *words)
{
	*words = box->elements / box->fill.lanes;
	return make_address(&l->p, l->nest, l->counter, stride, box->fill.first / box->fill.lanes);
}

struct value *accumulator_address(
        struct lowering *l, struct value *part, int64_t number, int64_t *words)
{
	int64_t *stride = ARENA_ARRAY(l->p.module->arena, int64_t, l->nest + 1);
	struct value **counter = ARENA_ARRAY(l->p.module->arena, struct value *, l->nest + 1);
	bool inside_reduction = false;
	int outermost = first_reduction(l);
	if (l->drain_order.convert)
		return box_address(l, &l->drain_order.box, l->drain_order.stride, words);
	if (l->accumulator_drain.stride)
		return box_address(
		        l, &l->accumulator_drain.box[0], l->accumulator_drain.stride, words);
	*words = l->kernel->partial_sums;
	for (int i = l->nest - 1; i > outermost; i--) {
		inside_reduction = !l->kernel->loop[i].reduction;
		counter[i] = l->counter[i];
		stride[i] = inside_reduction ? *words : 0;
		*words *= inside_reduction ? l->kernel->loop[i].extent : 1;
	}
	counter[l->nest] = part;
	stride[l->nest] = 1;
	return make_address(&l->p, l->nest + 1, counter, stride, number);
}

struct value *part_of_sum(struct lowering *l)
{
	struct value *counter =
	        l->kernel->partial_sums > 1 ? l->counter[kernel_inner_reduction(l->kernel)] : NULL;
	if (!counter)
		return NULL;
	struct value *operand[2] = { counter, make_index(&l->p, l->kernel->partial_sums - 1) };
	return make_op(&l->p, OP_ANDI, type_index(l->p.module), 2, operand);
}

const struct type *sum_word(struct lowering *l)
{
	int64_t rows = lane_is_parallel(l->kernel) ? 1 : l->kernel->row_unroll;
	return rows > 1 ? type_shaped(l->p.module, TYPE_VECTOR, 1, &rows, l->kernel->type)
	                : lanes_word(l, l->kernel->type, lane_is_parallel(l->kernel));
}

/* Is the sum of each term the one that was updated the longest ago, `distance` terms? */
static bool sums_rotate(const struct lowering *l, int64_t distance)
{
	const struct kernel *kernel = l->kernel;
	const int inner = kernel_inner_reduction(kernel);
	const struct loop *reduction = &kernel->loop[inner];
	bool exact = kernel->partial_sums == 1 ||
	        (!reduction->run_time && reduction->extent % kernel->partial_sums == 0);
	for (int i = first_reduction(l); i < l->nest; i++) {
		const struct loop *loop = &kernel->loop[i];
		bool several = loop->run_time || loop->extent > 1;
		if ((i > inner && loop->run_time) || (i < inner && several && !loop->reduction) ||
		        (i < inner && several && !exact))
			return false;
	}
	return distance > 1;
}

/* A sum that is alone is a register. Others are a memory of whole words, in which the updates of a
 * word are as far apart as a memory needs; a rotation that is too short for that is a shift
 * register. */
struct value *running_sums(struct lowering *l, const char *name, int64_t words, int64_t distance)
{
	const int least = schedule_chain_latency(
	                          l->p.design->context->platform, l->p.module->arena, l->kernel) +
	        ARRAY_UPDATE_CYCLES;
	const bool shift = words == distance && distance < least && sums_rotate(l, distance);
	struct value *array = make_array(&l->p, name, words, sum_word(l), 1);
	if (distance > 1)
		attr_set(l->p.module, array->def, KEY_STREAM_DISTANCE,
		        attr_integer(l->p.module, distance));
	if (shift)
		attr_set(l->p.module, array->def, KEY_STREAM_ROTATION, attr_unit(l->p.module));
	return array;
}

static int64_t update_distance(const struct lowering *l)
{
	int64_t distance = l->kernel->partial_sums;
	for (int i = kernel_inner_reduction(l->kernel) + 1; i < l->nest; i++)
		distance *= l->kernel->loop[i].run_time ? 1 : l->kernel->loop[i].extent;
	return distance;
}

/* Are sums read when the last terms have been added, in a nest of their own? */
static bool are_read_later(const struct lowering *l)
{
	enum reduction_schedule schedule = reduction_schedule_of(l->op);
	return schedule == REDUCTION_DRAINED || schedule == REDUCTION_DRAIN_AFTER;
}

/* The array of running sums; *later becomes the array from which others read them. Several are
 * read at a time, each from a bank of its own, and a shift register has no addresses: then each sum
 * is stored in both. */
static struct value *accumulators(struct lowering *l, int64_t words, struct value **later)
{
	int64_t distance = update_distance(l);
	int64_t parts = l->kernel->partial_sums;
	struct value *running = *later ? *later : running_sums(l, "acc", words, distance);
	bool shift = attr_get(running->def, KEY_STREAM_ROTATION);
	if (!*later && are_read_later(l) && (parts > 1 || shift)) {
		attr_set(l->p.module, running->def, KEY_STREAM_NAME,
		        attr_string(l->p.module, "running"));
		*later = make_array(&l->p, "acc", words, sum_word(l), parts);
	}
	*later = *later ? *later : running;
	return running;
}

void add_to_sum(struct lowering *l, bool stored, struct value **array, struct value **result)
{
	struct process *p = &l->p;
	const struct type *word = sum_word(l);
	int64_t words;
	struct value *start = make_number(p, l->kernel->init, word);
	struct value *address = NULL;
	struct value *running = NULL;
	l->accumulator = start;
	/* with several reduction iterations the accumulator is stored between them */
	if (stored) {
		address = accumulator_address(l, part_of_sum(l), 0, &words);
		running = accumulators(l, words, array);
		struct value *before = make_load(p, running, address);
		l->accumulator = make_select(p, at_reduction_end(l, false), start, before);
	}
	struct value *sum = NULL;
	bool over_lanes = l->kernel->scan && l->kernel->lanes > 1 && !lane_is_parallel(l->kernel);
	if (over_lanes)
		l->accumulator = scan_lanes(l, stored, &sum);
	if (result)
		*result = lower_body(l, &l->kernel->post, l->kernel->post.result);
	sum = over_lanes ? sum : widen_word(l, updated_sum(l), word);
	if (stored)
		make_store(p, sum, running, address);
	if (stored && *array != running)
		make_store(p, sum, *array, address);
	l->accumulator = sum;
}

/* Has partial sum `number` a term? NULL: always. */
static struct value *has_terms(struct lowering *l, int64_t number)
{
	struct value *all = NULL;
	int inner = kernel_inner_reduction(l->kernel);
	for (int i = 0; i < l->nest; i++) {
		const struct loop *loop = &l->kernel->loop[i];
		bool counted = loop->reduction && loop->run_time &&
		        (loop->run_time->plus < 1 || (i == inner && l->kernel->partial_sums > 1));
		if (!counted)
			continue;
		struct value *count = process_trip_count(&l->p, loop->run_time, 1);
		all = make_and(
		        &l->p, all, make_compare(&l->p, CMPI_SGT, count, i == inner ? number : 0));
	}
	return all;
}

struct value *sum_of_terms(
        struct lowering *l, struct value *sum, struct value *start, int64_t number)
{
	struct value *terms = has_terms(l, number);
	return terms ? make_select(&l->p, terms, sum, start) : sum;
}

/* The tree over the partial sums; those without terms have the initial value. */
static struct value *all_parts(struct lowering *l, struct value *array)
{
	struct process *p = &l->p;
	int64_t parts = l->kernel->partial_sums;
	int64_t words;
	const struct loop *inner = &l->kernel->loop[kernel_inner_reduction(l->kernel)];
	struct value **sum = ARENA_ARRAY(p->module->arena, struct value *, parts);
	struct value *start = make_number(p, l->kernel->init, sum_word(l));
	for (int64_t i = 0; i < parts; i++) {
		sum[i] = make_load(p, array, accumulator_address(l, NULL, i, &words));
		sum[i] = !inner->run_time && i >= inner->extent ? start
		                                                : sum_of_terms(l, sum[i], start, i);
	}
	return tree_over(l, sum, parts);
}

struct value *finished_sum(struct lowering *l)
{
	return l->kernel->post.count ? lower_body(l, &l->kernel->post, l->kernel->post.result)
	                             : l->accumulator;
}

void push_result(struct lowering *l, struct value *when, struct value *result)
{
	const struct type *word = stream_word(l->p.module, l->op->result[0]->type);
	struct value *pushed = widen_word(l, result, word);
	if (!l->sink)
		l->sink = process_argument(&l->p, stream_fifo(l->p.design, l->op->result[0]), "y");
	make_push(&l->p, when, pushed, l->sink);
}

/* all in one pipelined nest */
static int lower_nest(
        struct lowering *l, const int64_t *trip, const struct run_time_trip *const *run_time)
{
	struct value *array = NULL;
	int opened = process_nest_run_time(&l->p, (struct loop_bounds){ l->nest, trip, run_time },
	        l->kernel->initiation_interval, l->counter);
	take_operands(l, TAKE_ALL);
	struct value *last = at_reduction_end(l, true);
	bool reduction = kernel_has_reduction(l->kernel);
	if (l->kernel->scan) {
		struct value *result;
		add_to_sum(l, last != NULL, &array, &result);
		push_result(l, NULL, result);
		return opened;
	}
	if (reduction)
		add_to_sum(l, last != NULL, &array, NULL);
	push_result(l, last,
	        reduction ? finished_sum(l)
	                  : lower_body(l, &l->kernel->update, l->kernel->update.result));
	return opened;
}

/* Two nests, one after another: the first adds terms, the second, a short one, goes over
 * the sums. */
static int add_terms(struct lowering *l, int outer, int64_t *trip,
        const struct run_time_trip **run_time, struct value **array)
{
	int adding = process_nest_run_time(&l->p,
	        (struct loop_bounds){ l->nest - outer, trip + outer, run_time + outer },
	        l->kernel->initiation_interval, l->counter + outer);
	take_operands(l, TAKE_TERMS);
	add_to_sum(l, true, array, NULL);
	process_close(&l->p, adding);
	for (int i = outer; i < l->nest; i++)
		if (l->kernel->loop[i].reduction) {
			trip[i] = 1;
			run_time[i] = NULL;
		}
	int opened = process_nest_run_time(&l->p,
	        (struct loop_bounds){ l->nest - outer, trip + outer, run_time + outer },
	        l->kernel->combine_interval, l->counter + outer);
	take_operands(l, TAKE_POST);
	return opened;
}

/* For each iteration of the outer loops, a pipelined nest that adds terms and one that combines
 * partial sums. */
static int lower_drain_after(
        struct lowering *l, int64_t *trip, const struct run_time_trip **run_time)
{
	struct value *array = NULL;
	int outer = first_reduction(l);
	int opened = 0;
	for (int i = 0; i < outer; i++) {
		l->counter[i] = trip[i] > 1 || run_time[i]
		        ? process_loop_run_time(&l->p, trip[i], run_time[i])
		        : NULL;
		opened += l->counter[i] != NULL;
	}
	opened += add_terms(l, outer, trip, run_time, &array);
	l->accumulator = all_parts(l, array);
	push_result(l, NULL, finished_sum(l));
	return opened;
}

/* All results are held until the last term: they are finished in place and drained to the readers
 * of the buffer or converter; with a layer carry to the next layer's readers, when that layer
 * starts. */
static int lower_drained(struct lowering *l, int64_t *trip, const struct run_time_trip **run_time,
        struct value *array)
{
	int64_t words;
	int opened = add_terms(l, 0, trip, run_time, &array);
	struct value *address = accumulator_address(l, NULL, 0, &words);
	struct value *none = reduction_may_be_empty(l->kernel)
	        ? make_number(&l->p, l->kernel->init, sum_word(l))
	        : NULL;
	l->accumulator = sum_of_terms(l, make_load(&l->p, array, address), none, 0);
	make_store(&l->p, widen_word(l, finished_sum(l), sum_word(l)), array, address);
	process_close(&l->p, opened);
	if (l->layer_carry.loop)
		return 0;
	if (l->accumulator_drain.buffer)
		emit_accumulator_drain(&l->p, &l->accumulator_drain, array);
	else
		emit_drain(&l->p, &l->drain_order, array);
	return 0;
}

struct lowering lowering_new(struct design *design, const struct op *op, const char *name)
{
	struct arena *arena = design->module->arena;
	struct lowering l = { .p = process_new(design, name),
		.op = op,
		.kernel = op->kernel,
		.width = op->kernel->lanes };
	l.nest = l.kernel->loops - (l.kernel->lanes > 1) - (l.kernel->row_unroll > 1);
	l.counter = ARENA_ARRAY(arena, struct value *, l.nest + 1);
	l.operand = ARENA_ARRAY(arena, struct value *, op->operands + 1);
	l.source = ARENA_ARRAY(arena, struct value *, op->operands + 1);
	return l;
}

/* Emits the loops of a kernel by its reduction schedule; returns how many are left open. */
static int lower_loops(struct lowering *l, int64_t *trip, const struct run_time_trip **run_time,
        struct value *array)
{
	switch (reduction_schedule_of(l->op)) {
	case REDUCTION_DRAINED: return lower_drained(l, trip, run_time, array);
	case REDUCTION_DYNAMIC: return lower_reduction_dynamic(l, trip, run_time);
	case REDUCTION_DOUBLE_BUFFERED:
		return lower_double_buffered(l, double_buffered_loop(l->op), trip, run_time);
	case REDUCTION_SPLIT: return lower_reduction_split(l, trip, run_time);
	case REDUCTION_DRAIN_AFTER: return lower_drain_after(l, trip, run_time);
	case REDUCTION_NONE:
	case REDUCTION_NEST:
		if (kernel_is_register_tile(l->kernel))
			return lower_register_tile(l, trip, run_time);
		return lower_nest(l, trip, run_time);
	case REDUCTION_SCHEDULES: return lower_nest(l, trip, run_time);
	}
	return 0;
}

bool lower_kernel(struct design *design, const struct op *op)
{
	struct arena *arena = design->module->arena;
	if (!check_reduction_schedule(design, op))
		return false;
	struct lowering l = lowering_new(design, op, op->kernel->name);
	struct value *array = NULL;
	l.accumulator_drain = accumulator_drain_of(arena, op);
	l.layer_carry = layer_carry_of(arena, op);
	if (l.layer_carry.loop)
		l.accumulator_drain = l.layer_carry.accumulator_drain;
	else
		l.drain_order = drain_order_of(arena, op);
	l.consumer_buffer = consumer_buffer_of(arena, op);
	int64_t *trip = ARENA_ARRAY(arena, int64_t, l.nest + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, l.nest + 1);
	for (int i = 0; i < l.nest; i++) {
		trip[i] = l.kernel->loop[i].extent;
		run_time[i] = l.kernel->loop[i].run_time;
	}
	if (l.kernel->scan)
		attr_set(l.p.module, l.p.function, KEY_STREAM_SCAN, attr_unit(l.p.module));
	if (l.layer_carry.loop) {
		array = make_array(&l.p, "acc", l.accumulator_drain.words, sum_word(&l), 1);
		if (update_distance(&l) > 1)
			attr_set(l.p.module, array->def, KEY_STREAM_DISTANCE,
			        attr_integer(l.p.module, update_distance(&l)));
		layer_carry_fill(&l.p, &l.layer_carry, array);
	}
	process_layers(&l.p);
	if (l.layer_carry.loop)
		emit_accumulator_drain(&l.p, &l.accumulator_drain, array);
	if (l.consumer_buffer.convert)
		l.array = consumer_buffer_fill(&l.p, &l.consumer_buffer);
	int opened = lower_loops(&l, trip, run_time, array);
	process_close(&l.p, opened + (design->layers > 0));
	if (l.layer_carry.loop)
		layer_carry_drain(&l.p, &l.layer_carry, array);
	process_finish(&l.p);
	if (l.tiles)
		lower_tile_rows(design, op, &l);
	if (l.parts)
		lower_partial_sum_process(design, op, l.parts);
	return true;
}
