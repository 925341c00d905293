/* A scheduled kernel as a process: one nest, one pipelined body; before it another, where an operand is kept.  Each iteration takes the words that are due, updates one accumulator word, and at the
 * last reduction point pushes one result word. */
#include "ir/rows.h"
#include "pass/carried.h"
#include "pass/given.h"
#include "pass/kept.h"
#include "pass/products.h"

#define TURNS_LEAST 4         /* points of a loop, of which one more costs little */

struct lowering {
	struct process p;
	const struct op *op;
	const struct kernel *kernel;
	int nest;                 /* loops without the lane loop, and without the row loop */
	int64_t width;            /* lanes of the words at hand: the kernel's, or its rows */
	int64_t row;              /* of the rows that run at once, the one at hand */
	struct value **counter;   /* [nest]; NULL where the trip is 1 */
	struct value **operand;   /* words taken */
	struct value *terms;      /* in turns: whether a term is added, or NULL: always */
	struct value *accumulator;
	struct served served;     /* no buffer, or one whose readers are served from the sums */
	struct carried carried;   /* no loop, or the one whose next turn's readers are served from the sums, before that turn's are added up */
	struct given given;       /* NULL converter, or one whose order the sums are given in */
	struct kept kept;         /* the operand that is there as a whole before the first point, in the array */
	struct value *array;
};

static const struct type *word_type(struct lowering *l, const struct type *scalar, bool lanes)
{
	int64_t count = l->width;
	return lanes && count > 1 ? type_shaped(l->p.module, TYPE_VECTOR, 1, &count, scalar) : scalar;
}

static bool lane_is_parallel(const struct kernel *kernel)
{
	return kernel->lanes > 1 && !kernel->loop[kernel->loops - 1].reduction;
}

/* Is the loop at its last point? */
static struct value *at_last(struct lowering *l, int loop)
{
	const struct loop *of = &l->kernel->loop[loop];
	if (!of->run_time)
		return make_equal(&l->p, l->counter[loop], of->extent - 1);
	const int64_t one = 1;
	struct value *count = process_count(&l->p, of->run_time, 1);
	return make_same(&l->p, l->counter[loop], make_address(&l->p, 1, &count, &one, -1));
}

/* All reduction counters at their first (or last) point; NULL: always.  The first terms of partial sums come one after the other. */
static struct value *at_reduction_end(struct lowering *l, bool last)
{
	struct value *all = NULL;
	int inner = kernel_inner_reduction(l->kernel);
	for (int i = 0; i < l->nest; i++)
		if (l->kernel->loop[i].reduction && l->counter[i])
			all = make_and(&l->p, all, last ? at_last(l, i) : i == inner && l->kernel->partial > 1 ? make_compare(&l->p, 2, l->counter[i], l->kernel->partial) :
				       make_equal(&l->p, l->counter[i], 0));
	return all;
}

static const struct guard_range *guard_on(const struct access *access, int loop)
{
	for (int g = 0; g < access->guards; g++)
		if (access->guard[g].loop == loop)
			return &access->guard[g];
	return NULL;
}

/* Inside all guards; NULL: always. */
static struct value *inside(struct lowering *l, const struct access *access)
{
	struct value *all = NULL;
	for (int g = 0; g < access->guards; g++) {
		const struct guard_range *range = &access->guard[g];
		if (!l->counter[range->loop])
			continue;
		if (range->low > 0)
			all = make_and(&l->p, all, make_compare(&l->p, 5, l->counter[range->loop], range->low));
		if (range->high < l->kernel->loop[range->loop].extent)
			all = make_and(&l->p, all, make_compare(&l->p, 2, l->counter[range->loop], range->high));
	}
	return all;
}

/* When operand j's next word is due: docs/ir.md, stream level. */
static struct value *due(struct lowering *l, int j)
{
	const struct access *access = &l->kernel->operand[j];
	bool post = kernel_is_post_operand(l->kernel, j);
	struct value *when = inside(l, access);
	int used = -1;
	for (int i = 0; i < l->nest; i++) {
		const struct guard_range *range = guard_on(access, i);
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
			const struct guard_range *range = guard_on(access, i);
			when = make_and(&l->p, when, make_equal(&l->p, l->counter[i], range ? range->low : 0));
		}
	}
	return when;
}

static struct value *next_word(struct lowering *l, int j)
{
	if (l->kept.convert && l->kept.operand == j)
		return kept_word(&l->p, &l->kept, l->array, l->counter, l->nest, inside(l, &l->kernel->operand[j]));
	struct value *fifo = process_argument(&l->p, stream_fifo(l->p.design, l->op->operand[j]), text_format(l->p.module->arena, "x%d", j));
	return make_take(&l->p, make_and(&l->p, l->terms, due(l, j)), fifo);
}

enum taken { TAKE_ALL, TAKE_TERMS, TAKE_POST };

static void take_operands(struct lowering *l, enum taken taken)
{
	for (int j = 0; j < l->op->operands; j++) {
		if (taken != TAKE_ALL && kernel_is_post_operand(l->kernel, j) != (taken == TAKE_POST))
			continue;
		struct value *word = next_word(l, j), *active = inside(l, &l->kernel->operand[j]);
		l->operand[j] = active ? make_select(&l->p, active, word, make_number(&l->p, 0, word->type)) : word;
	}
}

static struct value *widen(struct lowering *l, struct value *value, const struct type *type)
{
	return value->type->kind == TYPE_VECTOR || type->kind != TYPE_VECTOR ? value : make_op(&l->p, OP_BROADCAST, word_type(l, value->type, true), 1, &value);
}

/* 0, 1, 2 … in the lanes. */
static struct value *lane_numbers(struct lowering *l)
{
	struct process *p = &l->p;
	const struct type *type = word_type(l, type_index(p->module), true);
	struct value **number = ARENA_ARRAY(p->module->arena, struct value *, l->kernel->lanes);
	for (int64_t i = 0; i < l->kernel->lanes; i++)
		number[i] = make_index(p, i);
	return make_op(p, OP_JOIN_LANES, type, (int)l->kernel->lanes, number);
}

static struct value *lower_node(struct lowering *l, const struct node *node, struct value *const *made)
{
	struct process *p = &l->p;
	if (node->kind == NODE_OPERAND)
		return l->operand[node->integer];
	if (node->kind == NODE_ACCUMULATOR)
		return l->accumulator;
	if (node->kind == NODE_CONSTANT)
		return type_is_real(node->type) ? make_number(p, node->real, node->type) : node->type->kind == TYPE_INDEX ? make_index(p, node->integer) :
		       node->type->width == 1 ? make_bool(p, node->integer) : make_number(p, (double)node->integer, node->type);
	if (node->code == OP_INDEX) {
		if (node->integer == l->kernel->loops - 1 && l->kernel->lanes > 1)
			return lane_numbers(l);
		if (node->integer == l->nest)
			return make_index(p, l->row);
		return l->counter[node->integer] ? process_point(p, l->kernel->loop[node->integer].run_time, 1, l->counter[node->integer]) : make_index(p, 0);
	}
	if (node->code == OP_ACTIVE)
		return make_when(p, inside(l, &l->kernel->operand[node->integer]));
	int count = op_info[node->code].operands;
	bool vector = false;
	for (int a = 0; a < count; a++)
		vector = vector || made[node->argument[a]]->type->kind == TYPE_VECTOR;
	const struct type *type = word_type(l, node->type, vector);
	struct value *argument[3];
	for (int a = 0; a < count; a++)
		argument[a] = vector ? widen(l, made[node->argument[a]], type) : made[node->argument[a]];
	struct value *value = make_op(p, node->code, type, count, argument);
	if (node->code == OP_CMPF || node->code == OP_CMPI)
		attr_set(p->module, value->def, "predicate", attr_integer(p->module, node->integer));
	return value;
}

/* What a part of a body needs. */
static struct value *lower_body(struct lowering *l, const struct body *body, int result)
{
	struct value **made = ARENA_ARRAY(l->p.module->arena, struct value *, body->count + 1);
	bool *needed = ARENA_ARRAY(l->p.module->arena, bool, body->count + 1);
	needed[result] = true;
	for (int n = result; n >= 0; n--)
		for (int a = 0; needed[n] && body->node[n].kind == NODE_OP && a < op_info[body->node[n].code].operands; a++)
			needed[body->node[n].argument[a]] = true;
	for (int n = 0; n <= result; n++)
		made[n] = needed[n] ? lower_node(l, &body->node[n], made) : NULL;
	return made[result];
}

/* The tree over one row's terms. */
static struct value *row_tree(struct lowering *l, int term)
{
	const struct kernel *kernel = l->kernel;
	struct value *word = lower_body(l, &kernel->update, term);
	if (word->type->kind != TYPE_VECTOR)
		word = widen(l, word, word_type(l, word->type, true));
	struct value *tree = make_op(&l->p, OP_TREE, kernel->type, 1, &word);
	attr_set(l->p.module, tree->def, "kind", attr_string(l->p.module, op_info[kernel->combine].name));
	return tree;
}

/* One row's part of the words that hold several rows; of numbers that are no lanes it is one of them. */
static void take_row(struct lowering *l, struct value *const *whole, int64_t row)
{
	const struct kernel *kernel = l->kernel;
	l->row = row;
	for (int j = 0; j < l->op->operands; j++) {
		struct value *part[2] = {whole[j], make_index(&l->p, row)};
		const int64_t *stride = kernel->operand[j].stride;
		bool rows = stride[kernel->loops - 2] && !kernel_is_post_operand(kernel, j);
		l->operand[j] = rows ? make_op(&l->p, OP_SPLIT_LANES, word_type(l, type_scalar(whole[j]->type), stride[kernel->loops - 1] != 0), 2, part) : whole[j];
	}
}

typedef struct value *row_function(struct lowering *l, int term);

/* What each row makes of the terms. */
static struct value **row_by_row(struct lowering *l, int term, row_function *make)
{
	const struct kernel *kernel = l->kernel;
	struct value **whole = l->operand, **made = ARENA_ARRAY(l->p.module->arena, struct value *, kernel->rows);
	l->operand = ARENA_ARRAY(l->p.module->arena, struct value *, l->op->operands + 1);
	for (int64_t r = 0; r < kernel->rows; r++) {
		take_row(l, whole, r);
		made[r] = make(l, term);
	}
	l->operand = whole;
	return made;
}

/* Each row has a tree of its own. */
static struct value *row_trees(struct lowering *l, int term)
{
	struct value **tree = row_by_row(l, term, row_tree);
	l->width = l->kernel->rows;
	return make_op(&l->p, OP_JOIN_LANES, word_type(l, l->kernel->type, true), (int)l->kernel->rows, tree);
}

static struct value *tree_of(struct lowering *l, struct value **term, int64_t terms)
{
	for (; terms > 1; terms /= 2)
		for (int64_t i = 0; i < terms / 2; i++)
			term[i] = make_op(&l->p, l->kernel->combine, term[2 * i]->type, 2, term + 2 * i);
	return term[0];
}

static struct value *row_term(struct lowering *l, int term)
{
	return widen(l, lower_body(l, &l->kernel->update, term), word_type(l, l->kernel->type, true));
}

/* The terms of all rows, put together lane by lane. */
static struct value *row_terms(struct lowering *l, int term)
{
	return tree_of(l, row_by_row(l, term, row_term), l->kernel->rows);
}

/* A factor of each row, in all lanes. */
static struct value *row_factor(struct lowering *l, int factor)
{
	struct value *word = lower_body(l, &l->kernel->update, factor);
	return widen(l, word, word_type(l, word->type, true));
}

static struct value *row_number(struct lowering *l, int factor)
{
	return lower_body(l, &l->kernel->update, factor);
}

/* All rows of a factor as one word: as it was taken, or put together. */
static struct value *rows_word(struct lowering *l, int factor, row_function *make)
{
	const struct node *node = &l->kernel->update.node[factor];
	if (node->kind == NODE_OPERAND)
		return l->operand[node->integer];
	struct value **row = row_by_row(l, factor, make);
	int64_t lanes = l->kernel->rows * type_lanes(row[0]->type);
	return make_op(&l->p, OP_JOIN_LANES, type_shaped(l->p.module, TYPE_VECTOR, 1, &lanes, type_scalar(row[0]->type)), (int)l->kernel->rows, row);
}

static struct value *sums_across(struct lowering *l, const struct products *products)
{
	struct value *factor[2] = {rows_word(l, products->common, row_number), rows_word(l, products->own, row_factor)};
	struct value *sums = make_op(&l->p, OP_DOT, word_type(l, l->kernel->type, true), 2, factor);
	attr_set(l->p.module, sums->def, "across", attr_integer(l->p.module, l->kernel->lanes));
	return sums;
}

/* Two rows share multipliers. */
static struct value *sums_in_pairs(struct lowering *l, const struct products *products)
{
	struct module *module = l->p.module;
	const int64_t two = 2, pairs = l->kernel->rows / 2;
	const struct type *pair = type_shaped(module, TYPE_VECTOR, 1, &two, l->kernel->type);
	struct value **row = row_by_row(l, products->own, row_factor), **sums = ARENA_ARRAY(module->arena, struct value *, pairs);
	struct value *common = row_factor(l, products->common);
	for (int64_t i = 0; i < pairs; i++)
		sums[i] = make_op(&l->p, OP_DOT, pair, 3, (struct value *[3]){common, row[2 * i], row[2 * i + 1]});
	l->width = l->kernel->rows;
	return pairs > 1 ? make_op(&l->p, OP_JOIN_LANES, word_type(l, l->kernel->type, true), (int)pairs, sums) : sums[0];
}

static struct value *sums_of_rows(struct lowering *l, int term, bool parallel)
{
	const struct kernel *kernel = l->kernel;
	struct products products;
	if (find_products(kernel, kernel->loops - 2, kernel->loops - 1, kernel->rows, kernel->lanes, !parallel, &products))
		return parallel ? sums_across(l, &products) : sums_in_pairs(l, &products);
	return parallel ? row_terms(l, term) : row_trees(l, term);
}

/* acc = combine(acc, tree(term)) for a reduction over lanes, else the update as it is. */
static struct value *updated(struct lowering *l)
{
	const struct kernel *kernel = l->kernel;
	int term = -1;
	bool parallel = lane_is_parallel(kernel);
	if (kernel_has_reduction(kernel) && (parallel ? kernel->rows > 1 : kernel->lanes > 1)) {
		kernel_combine(kernel, &term);
		struct value *tree = kernel->rows > 1 ? sums_of_rows(l, term, parallel) : row_tree(l, term);
		struct value *operand[2] = {l->accumulator, tree};
		return make_op(&l->p, kernel->combine, tree->type, 2, operand);
	}
	return lower_body(l, &kernel->update, kernel->update.result);
}

/* The loop from which on sums are kept between points: the outermost reduction; all loops: nothing is kept. */
static int first_reduction(const struct lowering *l)
{
	int loop = kernel_outer_reduction(l->kernel);
	return loop < 0 ? l->nest : loop;
}

/* Sums that are given in other orders than their kernel's lie as the box between does. */
static struct value *box_address(struct lowering *l, const struct box *box, const int64_t *stride, int64_t *words)
{
	*words = box->elements / box->fill.lanes;
	return make_address(&l->p, l->nest, l->counter, stride, box->fill.first / box->fill.lanes);
}

/* The accumulators: one word per point of the parallel loops inside the outermost reduction loop, and partial sums side by side. */
static struct value *accumulator_address(struct lowering *l, struct value *part, int64_t number, int64_t *words)
{
	int64_t *stride = ARENA_ARRAY(l->p.module->arena, int64_t, l->nest + 1);
	struct value **counter = ARENA_ARRAY(l->p.module->arena, struct value *, l->nest + 1);
	bool inside_reduction = false;
	int outermost = first_reduction(l);
	if (l->given.convert)
		return box_address(l, &l->given.box, l->given.stride, words);
	if (l->served.stride)
		return box_address(l, &l->served.box[0], l->served.stride, words);
	*words = l->kernel->partial;
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

/* Which of the partial sums this term belongs to; NULL: there is one. */
static struct value *part_of(struct lowering *l)
{
	struct value *counter = l->kernel->partial > 1 ? l->counter[kernel_inner_reduction(l->kernel)] : NULL;
	if (!counter)
		return NULL;
	struct value *operand[2] = {counter, make_index(&l->p, l->kernel->partial - 1)};
	return make_op(&l->p, OP_ANDI, type_index(l->p.module), 2, operand);
}

static const struct type *sum_type(struct lowering *l)
{
	int64_t rows = lane_is_parallel(l->kernel) ? 1 : l->kernel->rows;
	return rows > 1 ? type_shaped(l->p.module, TYPE_VECTOR, 1, &rows, l->kernel->type) : word_type(l, l->kernel->type, lane_is_parallel(l->kernel));
}

static struct value *accumulators(struct lowering *l, int64_t words)
{
	int64_t distance = l->kernel->partial;
	struct value *array = make_array(&l->p, "acc", words, sum_type(l), l->kernel->partial);
	for (int i = kernel_inner_reduction(l->kernel) + 1; i < l->nest; i++)
		distance *= l->kernel->loop[i].run_time ? 1 : l->kernel->loop[i].extent;
	if (l->kernel->partial > 1)
		attr_set(l->p.module, array->def, "stream.distance", attr_integer(l->p.module, distance));
	return array;
}

/* One more term; the accumulator is what is summed up to it.  `result`, if it is not NULL, becomes what a scan gives here. */
static void add_term(struct lowering *l, bool kept, struct value **array, struct value **result)
{
	struct process *p = &l->p;
	const struct type *word = sum_type(l);
	int64_t words;
	struct value *start = make_number(p, l->kernel->init, word), *address = NULL;
	l->accumulator = start;
	if (kept) {                           /* several reduction points: the accumulator is kept between them */
		address = accumulator_address(l, part_of(l), 0, &words);
		*array = *array ? *array : accumulators(l, words);
		l->accumulator = make_select(p, at_reduction_end(l, false), start, make_load(p, *array, address));
	}
	if (result)
		*result = lower_body(l, &l->kernel->post, l->kernel->post.result);
	struct value *sum = widen(l, updated(l), word);
	if (kept)
		make_store(p, sum, *array, address);
	l->accumulator = sum;
}

/* A sum of no terms has a result, too, for which there is no last term to come with. */
static bool may_be_empty(const struct kernel *kernel)
{
	bool empty = false;
	for (int i = 0; i < kernel->loops && !kernel->scan; i++)
		empty = empty || (kernel->loop[i].reduction && kernel->loop[i].run_time && kernel->loop[i].run_time->plus < 1);
	return empty;
}

/* Has the sum a term?  number: of the partial sums; NULL: it has. */
static struct value *has_terms(struct lowering *l, int64_t number)
{
	struct value *all = NULL;
	int inner = kernel_inner_reduction(l->kernel);
	for (int i = 0; i < l->nest; i++) {
		const struct loop *loop = &l->kernel->loop[i];
		bool counted = loop->reduction && loop->run_time && (loop->run_time->plus < 1 || (i == inner && l->kernel->partial > 1));
		all = counted ? make_and(&l->p, all, make_compare(&l->p, 4, process_count(&l->p, loop->run_time, 1), i == inner ? number : 0)) : all;
	}
	return all;
}

static struct value *sum_or(struct lowering *l, struct value *sum, struct value *start, int64_t number)
{
	struct value *terms = has_terms(l, number);
	return terms ? make_select(&l->p, terms, sum, start) : sum;
}

/* The tree over the partial sums; where there were fewer terms, the others are what they began with. */
static struct value *all_parts(struct lowering *l, struct value *array)
{
	struct process *p = &l->p;
	int64_t parts = l->kernel->partial, words;
	const struct loop *inner = &l->kernel->loop[kernel_inner_reduction(l->kernel)];
	struct value **sum = ARENA_ARRAY(p->module->arena, struct value *, parts), *start = make_number(p, l->kernel->init, sum_type(l));
	for (int64_t i = 0; i < parts; i++) {
		sum[i] = make_load(p, array, accumulator_address(l, NULL, i, &words));
		sum[i] = !inner->run_time && i >= inner->extent ? start : sum_or(l, sum[i], start, i);
	}
	return tree_of(l, sum, parts);
}

static struct value *finished(struct lowering *l)
{
	return l->kernel->post.count ? lower_body(l, &l->kernel->post, l->kernel->post.result) : l->accumulator;
}

static void push_result(struct lowering *l, struct value *when, struct value *result)
{
	const struct type *word = stream_word(l->p.module, l->op->result[0]->type);
	make_push(&l->p, when, widen(l, result, word), process_argument(&l->p, stream_fifo(l->p.design, l->op->result[0]), "y"));
}

/* Everything in one pipelined nest. */
static int lower_nest(struct lowering *l, const int64_t *trip, const struct run_time_trip *const *run_time)
{
	struct value *array = NULL;
	int opened = process_nest_to(&l->p, l->nest, trip, run_time, l->kernel->interval, l->counter);
	take_operands(l, TAKE_ALL);
	struct value *last = at_reduction_end(l, true);
	bool reduction = kernel_has_reduction(l->kernel);
	if (l->kernel->scan) {
		struct value *result;
		add_term(l, last != NULL, &array, &result);
		push_result(l, NULL, result);
		return opened;
	}
	if (reduction)
		add_term(l, last != NULL, &array, NULL);
	push_result(l, last, reduction ? finished(l) : lower_body(l, &l->kernel->update, l->kernel->update.result));
	return opened;
}

/* Nests one after the other: the first adds, a short one goes over the sums. */
static int add_terms(struct lowering *l, int outer, int64_t *trip, const struct run_time_trip **run_time, struct value **array)
{
	int adding = process_nest_to(&l->p, l->nest - outer, trip + outer, run_time + outer, l->kernel->interval, l->counter + outer);
	take_operands(l, TAKE_TERMS);
	add_term(l, true, array, NULL);
	process_close(&l->p, adding);
	for (int i = outer; i < l->nest; i++)
		if (l->kernel->loop[i].reduction) {
			trip[i] = 1;
			run_time[i] = NULL;
		}
	int opened = process_nest_to(&l->p, l->nest - outer, trip + outer, run_time + outer, 1, l->counter + outer);
	take_operands(l, TAKE_POST);
	return opened;
}

/* For each point of the loops outside, a pipelined nest that adds and one that puts partial sums together. */
static int lower_parts(struct lowering *l, int64_t *trip, const struct run_time_trip **run_time)
{
	struct value *array = NULL;
	int outer = first_reduction(l), opened = 0;
	for (int i = 0; i < outer; i++) {
		l->counter[i] = trip[i] > 1 || run_time[i] ? process_loop_to(&l->p, trip[i], run_time[i]) : NULL;
		opened += l->counter[i] != NULL;
	}
	opened += add_terms(l, outer, trip, run_time, &array);
	l->accumulator = all_parts(l, array);
	push_result(l, NULL, finished(l));
	return opened;
}

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

/* The loop whose points take turns: the partial sums of one are put together while the first terms of the next one come, so that the pipeline never drains.  -1: none. */
static int turning_loop(const struct op *op)
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
	return turning < 0 ? 1 : 2 * points_inside(op->kernel, turning);
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
	l->accumulator = tree_of(l, sum, kernel->partial);
	push_result(l, when, finished(l));
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
static int lower_turns(struct lowering *l, int turning, int64_t *trip, const struct run_time_trip **run_time)
{
	struct process *p = &l->p;
	const struct type *word = sum_type(l);
	const struct run_time_trip *counted = run_time[turning];
	bool fixed = true;
	for (int i = 0; i < first_reduction(l); i++)
		fixed = fixed && !run_time[i];
	int opened = fixed ? join_outside(l, trip) : 0;
	int64_t points = trip[turning]++;
	struct value *array = make_array(p, "acc", 2 * points_inside(l->kernel, turning) * l->kernel->partial, word, l->kernel->partial), *start = make_number(p, l->kernel->init, word);
	attr_set(p->module, array->def, "stream.distance", attr_integer(p->module, l->kernel->partial));
	run_time[turning] = counted ? one_more(p->module->arena, counted) : NULL;
	opened += process_nest_to(p, l->nest, trip, run_time, l->kernel->interval, l->counter);
	struct value *turn = l->counter[turning];
	l->terms = counted ? make_below(p, turn, process_count(p, counted, 1)) : make_compare(p, 2, turn, points);
	take_operands(l, TAKE_TERMS);
	struct value *address = turn_address(l, turning, 0, part_of(l), 0);
	l->accumulator = make_select(p, at_reduction_end(l, false), start, make_load(p, array, address));
	make_store(p, widen(l, updated(l), word), array, address);
	push_turn(l, turning, array);
	return opened;
}

/* All results are held until the last term: they are finished in their places, and the readers of the buffer or of the converter get them from there; those of the next layer when it begins. */
static int lower_served(struct lowering *l, int64_t *trip, const struct run_time_trip **run_time, struct value *array)
{
	int64_t words;
	int opened = add_terms(l, 0, trip, run_time, &array);
	struct value *address = accumulator_address(l, NULL, 0, &words);
	l->accumulator = sum_or(l, make_load(&l->p, array, address), may_be_empty(l->kernel) ? make_number(&l->p, l->kernel->init, sum_type(l)) : NULL, 0);
	make_store(&l->p, widen(l, finished(l), sum_type(l)), array, address);
	process_close(&l->p, opened);
	if (l->carried.loop)
		return 0;
	if (l->served.buffer)
		serve_results(&l->p, &l->served, array);
	else
		give_results(&l->p, &l->given, array);
	return 0;
}

void lower_kernel(struct design *design, const struct op *op)
{
	struct arena *arena = design->module->arena;
	struct lowering l = {.p = process_new(design, op->kernel->name), .op = op, .kernel = op->kernel, .served = served_of(arena, op)};
	struct value *array = NULL;
	l.carried = carried_of(arena, op);
	if (l.carried.loop)
		l.served = l.carried.served;
	else
		l.given = given_of(arena, op);
	l.kept = kept_of(arena, op);
	l.nest = l.kernel->loops - (l.kernel->lanes > 1) - (l.kernel->rows > 1);
	l.width = l.kernel->lanes;
	l.counter = ARENA_ARRAY(arena, struct value *, l.nest + 1);
	l.operand = ARENA_ARRAY(arena, struct value *, op->operands + 1);
	int64_t *trip = ARENA_ARRAY(arena, int64_t, l.nest + 1);
	const struct run_time_trip **run_time = ARENA_ARRAY(arena, const struct run_time_trip *, l.nest + 1);
	for (int i = 0; i < l.nest; i++) {
		trip[i] = l.kernel->loop[i].extent;
		run_time[i] = l.kernel->loop[i].run_time;
	}
	if (l.kernel->scan)
		attr_set(l.p.module, l.p.function, "stream.scan", attr_unit(l.p.module));
	if (l.carried.loop) {
		array = accumulators(&l, l.served.words);
		carried_fill(&l.p, &l.carried, array);
	}
	process_layers(&l.p);
	if (l.carried.loop)
		serve_results(&l.p, &l.served, array);
	if (l.kept.convert)
		l.array = kept_filled(&l.p, &l.kept);
	bool parts = l.kernel->partial > 1 || may_be_empty(l.kernel);
	int turning = turning_loop(op), opened = l.served.buffer || l.given.convert ? lower_served(&l, trip, run_time, array) : turning >= 0 ? lower_turns(&l, turning, trip, run_time) : parts ? lower_parts(&l, trip, run_time) : lower_nest(&l, trip, run_time);
	process_close(&l.p, opened + (design->layers > 0));
	if (l.carried.loop)
		carried_give(&l.p, &l.carried, array);
	process_finish(&l.p);
}
