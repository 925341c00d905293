/* Emits the body of a kernel for one iteration of its nest: nodes are ops on words of all lanes.
 * Unrolled rows are evaluated one by one, or by dot products of which several share multipliers. */
#include "lowering/lower_kernel.h"
#include "schedule/dot_products.h"

const struct type *lanes_word(struct lowering *l, const struct type *scalar, bool lanes)
{
	int64_t count = l->width;
	return lanes && count > 1 ? type_shaped(l->p.module, TYPE_VECTOR, 1, &count, scalar)
	                          : scalar;
}

bool lane_is_parallel(const struct kernel *kernel)
{
	return kernel->lanes > 1 && !kernel->loop[kernel->loops - 1].reduction;
}

struct value *widen_word(struct lowering *l, struct value *value, const struct type *type)
{
	return value->type->kind == TYPE_VECTOR || type->kind != TYPE_VECTOR
	        ? value
	        : make_op(&l->p, OP_BROADCAST, lanes_word(l, value->type, true), 1, &value);
}

/* 0, 1, 2 … in the lanes */
static struct value *lane_numbers(struct lowering *l)
{
	struct process *p = &l->p;
	const struct type *type = lanes_word(l, type_index(p->module), true);
	struct value **number = ARENA_ARRAY(p->module->arena, struct value *, l->kernel->lanes);
	for (int64_t i = 0; i < l->kernel->lanes; i++)
		number[i] = make_index(p, i);
	return make_op(p, OP_JOIN_LANES, type, (int)l->kernel->lanes, number);
}

static struct value *constant_node(struct process *p, const struct node *node)
{
	if (type_is_real(node->type))
		return make_number(p, node->real, node->type);
	if (node->type->kind == TYPE_INDEX)
		return make_index(p, node->integer);
	if (node->type->width == 1)
		return make_bool(p, node->integer);
	return make_integer(p, node->integer, node->type);
}

/* the index of a loop in the current iteration */
static struct value *loop_index(struct lowering *l, int loop)
{
	if (loop == l->kernel->loops - 1 && l->kernel->lanes > 1)
		return lane_numbers(l);
	if (loop == l->nest)
		return make_index(&l->p, l->row);
	if (!l->counter[loop])
		return make_index(&l->p, 0);
	return process_window_index(&l->p, l->kernel->loop[loop].run_time, 1, l->counter[loop]);
}

static struct value *lower_node(
        struct lowering *l, const struct node *node, struct value *const *made)
{
	struct process *p = &l->p;
	if (node->kind == NODE_OPERAND)
		return l->operand[node->integer];
	if (node->kind == NODE_ACCUMULATOR)
		return l->accumulator;
	if (node->kind == NODE_CONSTANT)
		return constant_node(p, node);
	if (node->code == OP_INDEX)
		return loop_index(l, (int)node->integer);
	if (node->code == OP_ACTIVE)
		return make_condition(p, inside_guards(l, &l->kernel->operand[node->integer]));
	int count = op_info[node->code].operands;
	bool vector = false;
	for (int a = 0; a < count; a++)
		vector = vector || made[node->argument[a]]->type->kind == TYPE_VECTOR;
	const struct type *type = lanes_word(l, node->type, vector);
	struct value *argument[3];
	for (int a = 0; a < count; a++)
		argument[a] = vector ? widen_word(l, made[node->argument[a]], type)
		                     : made[node->argument[a]];
	struct value *value = make_op(p, node->code, type, count, argument);
	if (node->code == OP_CMPF || node->code == OP_CMPI)
		attr_set(p->module, value->def, KEY_PREDICATE,
		        attr_integer(p->module, node->integer));
	return value;
}

struct value *lower_body(struct lowering *l, const struct body *body, int result)
{
	struct value **made = ARENA_ARRAY(l->p.module->arena, struct value *, body->count + 1);
	bool *needed = ARENA_ARRAY(l->p.module->arena, bool, body->count + 1);
	needed[result] = true;
	for (int n = result; n >= 0; n--)
		for (int a = 0; needed[n] && body->node[n].kind == NODE_OP &&
		        a < op_info[body->node[n].code].operands;
		        a++)
			needed[body->node[n].argument[a]] = true;
	for (int n = 0; n <= result; n++)
		made[n] = needed[n] ? lower_node(l, &body->node[n], made) : NULL;
	return made[result];
}

/* the reduction tree over one row's terms */
static struct value *row_tree(struct lowering *l, int term)
{
	const struct kernel *kernel = l->kernel;
	struct value *word = lower_body(l, &kernel->update, term);
	if (word->type->kind != TYPE_VECTOR)
		word = widen_word(l, word, lanes_word(l, word->type, true));
	struct value *tree = make_op(&l->p, OP_TREE, kernel->type, 1, &word);
	attr_set(l->p.module, tree->def, KEY_KIND,
	        attr_string(l->p.module, op_info[kernel->combine].name));
	return tree;
}

/* Sets the operands of one unrolled row: its part of words that hold several rows. An operand
 * without lanes has one number per row. */
static void take_row(struct lowering *l, struct value *const *whole, int64_t row)
{
	const struct kernel *kernel = l->kernel;
	l->row = row;
	for (int j = 0; j < l->op->operands; j++) {
		struct value *part[2] = { whole[j], make_index(&l->p, row) };
		const int64_t *stride = kernel->operand[j].stride;
		bool rows = stride[kernel->loops - 2] && !kernel_is_post_operand(kernel, j);
		l->operand[j] = rows ? make_op(&l->p, OP_SPLIT_LANES,
		                               lanes_word(l, type_scalar(whole[j]->type),
		                                       stride[kernel->loops - 1] != 0),
		                               2, part)
		                     : whole[j];
	}
}

/* Combines each number with all before it, in place: pairs first, so that few operators do it. */
static void combine_prefixes(
        struct lowering *l, enum op_code combine, struct value **number, int64_t numbers)
{
	int64_t step = 1;
	for (; step < numbers; step *= 2)
		for (int64_t i = 2 * step - 1; i < numbers; i += 2 * step)
			number[i] = make_op(&l->p, combine, number[i]->type, 2,
			        (struct value *[2]){ number[i - step], number[i] });
	for (step /= 2; step > 1; step /= 2)
		for (int64_t i = step + step / 2 - 1; i < numbers; i += step)
			number[i] = make_op(&l->p, combine, number[i]->type, 2,
			        (struct value *[2]){ number[i - step / 2], number[i] });
}

struct value *scan_lanes(struct lowering *l, bool carried, struct value **sum)
{
	const struct kernel *kernel = l->kernel;
	struct process *p = &l->p;
	int term = 0;
	enum op_code combine = kernel_update_combine(kernel, &term);
	const struct type *type = lanes_word(l, kernel->type, true);
	struct value *word = widen_word(l, lower_body(l, &kernel->update, term), type);
	struct value **number = ARENA_ARRAY(p->module->arena, struct value *, kernel->lanes);
	struct value *before = widen_word(l, l->accumulator, type);
	for (int64_t i = 0; i < kernel->lanes; i++)
		number[i] = make_op(
		        p, OP_LANE, kernel->type, 2, (struct value *[2]){ word, make_index(p, i) });
	combine_prefixes(l, combine, number, kernel->lanes);
	*sum = make_op(p, combine, kernel->type, 2,
	        (struct value *[2]){ l->accumulator, number[kernel->lanes - 1] });
	for (int64_t i = kernel->lanes - 1; i > 0; i--)
		number[i] = number[i - 1];
	number[0] = make_number(p, kernel->init, kernel->type);
	struct value *own = make_op(p, OP_JOIN_LANES, type, (int)kernel->lanes, number);
	return carried ? make_op(p, combine, type, 2, (struct value *[2]){ before, own }) : own;
}

typedef struct value *row_function(struct lowering *l, int term);

/* what `make` returns for each row */
static struct value **each_row(struct lowering *l, int term, row_function *make)
{
	const struct kernel *kernel = l->kernel;
	struct value **whole = l->operand;
	struct value **made = ARENA_ARRAY(l->p.module->arena, struct value *, kernel->row_unroll);
	l->operand = ARENA_ARRAY(l->p.module->arena, struct value *, l->op->operands + 1);
	for (int64_t r = 0; r < kernel->row_unroll; r++) {
		take_row(l, whole, r);
		made[r] = make(l, term);
	}
	l->operand = whole;
	return made;
}

/* a word of all rows' sums, each by a tree of its own */
static struct value *row_trees(struct lowering *l, int term)
{
	struct value **tree = each_row(l, term, row_tree);
	l->width = l->kernel->row_unroll;
	return make_op(&l->p, OP_JOIN_LANES, lanes_word(l, l->kernel->type, true),
	        (int)l->kernel->row_unroll, tree);
}

struct value *tree_over(struct lowering *l, struct value **term, int64_t terms)
{
	for (; terms > 1; terms = (terms + 1) / 2) {
		for (int64_t i = 0; i < terms / 2; i++)
			term[i] = make_op(
			        &l->p, l->kernel->combine, term[2 * i]->type, 2, term + 2 * i);
		if (terms % 2)
			term[terms / 2] = term[terms - 1];
	}
	return term[0];
}

static struct value *row_term(struct lowering *l, int term)
{
	return widen_word(
	        l, lower_body(l, &l->kernel->update, term), lanes_word(l, l->kernel->type, true));
}

/* the terms of all rows, combined lane by lane */
static struct value *row_terms(struct lowering *l, int term)
{
	return tree_over(l, each_row(l, term, row_term), l->kernel->row_unroll);
}

/* a factor of one row, broadcast to all lanes */
static struct value *row_factor(struct lowering *l, int factor)
{
	struct value *word = lower_body(l, &l->kernel->update, factor);
	return widen_word(l, word, lanes_word(l, word->type, true));
}

static struct value *row_number(struct lowering *l, int factor)
{
	return lower_body(l, &l->kernel->update, factor);
}

/* all rows of a factor as one word: the operand as it is, or joined */
static struct value *rows_word(struct lowering *l, int factor, row_function *make)
{
	const struct node *node = &l->kernel->update.node[factor];
	if (node->kind == NODE_OPERAND)
		return l->operand[node->integer];
	struct value **row = each_row(l, factor, make);
	int64_t lanes = l->kernel->row_unroll * type_lanes(row[0]->type);
	return make_op(&l->p, OP_JOIN_LANES,
	        type_shaped(l->p.module, TYPE_VECTOR, 1, &lanes, type_scalar(row[0]->type)),
	        (int)l->kernel->row_unroll, row);
}

static struct value *sums_across(struct lowering *l, const struct dot_products *dot_products)
{
	struct value *factor[2] = { rows_word(l, dot_products->common, row_number) };
	factor[1] = rows_word(l, dot_products->own, row_factor);
	struct value *sums =
	        make_op(&l->p, OP_DOT, lanes_word(l, l->kernel->type, true), 2, factor);
	attr_set(l->p.module, sums->def, KEY_COLUMNS, attr_integer(l->p.module, l->kernel->lanes));
	return sums;
}

/* dot products of which two rows share multipliers */
static struct value *sums_in_pairs(struct lowering *l, const struct dot_products *dot_products)
{
	struct module *module = l->p.module;
	const int64_t two = 2;
	const int64_t pairs = l->kernel->row_unroll / 2;
	const struct type *pair = type_shaped(module, TYPE_VECTOR, 1, &two, l->kernel->type);
	struct value **row = each_row(l, dot_products->own, row_factor);
	struct value **sums = ARENA_ARRAY(module->arena, struct value *, pairs);
	struct value *common = row_factor(l, dot_products->common);
	for (int64_t i = 0; i < pairs; i++)
		sums[i] = make_op(&l->p, OP_DOT, pair, 3,
		        (struct value *[3]){ common, row[2 * i], row[2 * i + 1] });
	l->width = l->kernel->row_unroll;
	return pairs > 1 ? make_op(&l->p, OP_JOIN_LANES, lanes_word(l, l->kernel->type, true),
	                           (int)pairs, sums)
	                 : sums[0];
}

/* the sums of one row of a register tile */
static struct value *tile_row(struct lowering *l, int update)
{
	l->accumulator = l->row_sums[l->row];
	return widen_word(
	        l, lower_body(l, &l->kernel->update, update), lanes_word(l, l->kernel->type, true));
}

struct value **tile_sums(struct lowering *l)
{
	return each_row(l, l->kernel->update.result, tile_row);
}

static struct value *sums_of_rows(struct lowering *l, int term, bool parallel)
{
	const struct kernel *kernel = l->kernel;
	struct dot_products dot_products;
	struct unrolled_loops unrolled = { kernel->loops - 2, kernel->loops - 1, kernel->row_unroll,
		kernel->lanes, !parallel };
	if (match_dot_products(kernel, &unrolled, &dot_products))
		return parallel ? sums_across(l, &dot_products) : sums_in_pairs(l, &dot_products);
	return parallel ? row_terms(l, term) : row_trees(l, term);
}

struct value *updated_sum(struct lowering *l)
{
	const struct kernel *kernel = l->kernel;
	int term = -1;
	bool parallel = lane_is_parallel(kernel);
	if (kernel_has_reduction(kernel) &&
	        (parallel ? kernel->row_unroll > 1 : kernel->lanes > 1)) {
		kernel_combine(kernel, &term);
		struct value *tree = kernel->row_unroll > 1 ? sums_of_rows(l, term, parallel)
		                                            : row_tree(l, term);
		struct value *operand[2] = { l->accumulator, tree };
		return make_op(&l->p, kernel->combine, tree->type, 2, operand);
	}
	return lower_body(l, &kernel->update, kernel->update.result);
}
