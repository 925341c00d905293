/* The product with values on bytes: probabilities are rounded in blocks of keys, and sums of
 * integer products with the values' rows are added up over the blocks. */
#include "base/number.h"
#include "ir/launch_tokens.h"
#include "quantize/quantize_attention.h"

#define PROBABILITY_MOST 127
/* of a block of keys, whose sums several tokens form at once: one row of a state serves them all */
#define VALUE_SPLITS 4

struct loop_map probability_blocks(
        struct quantizer *q, const struct attention *a, const struct contraction *c, bool reduced)
{
	struct loop_map loop_map = loop_map_none(q, c->op);
	loop_map_add_tokens(a, c, &loop_map, false);
	loop_map_add_blocks(q, &a->keys, &loop_map, a->values.key, reduced);
	loop_map_add_tokens(a, c, &loop_map, true);
	return loop_map;
}

struct loop_map probability_loop_map(
        struct quantizer *q, const struct attention *a, const struct contraction *c)
{
	struct loop_map loop_map = probability_blocks(q, a, c, false);
	loop_map_add_block(&a->keys, &loop_map, a->values.key);
	return loop_map;
}

struct loop_map probability_loops(
        struct quantizer *q, const struct attention *a, const struct contraction *c)
{
	struct loop_map loop_map = loop_map_none(q, c->op);
	loop_map_add_tokens(a, c, &loop_map, false);
	loop_map_add_blocks(q, &a->keys, &loop_map, a->values.key, false);
	loop_map_add_block(&a->keys, &loop_map, a->values.key);
	loop_map_add_tokens(a, c, &loop_map, true);
	return loop_map;
}

/* p * s_v for each key. */
static struct value *weighted(struct quantizer *q, const struct attention *a,
        const struct loop_map *as, const struct loop_map *loop_map)
{
	struct module *module = q->module;
	const struct product *p = &a->values;
	const struct type *real = type_float(module, 32);
	const struct access *x = &p->op->kernel->operand[p->x];
	struct value *operand[4] = { p->op->operand[p->x], a->v.past_scale, a->v.scale,
		a->keys.count };
	struct op *op = loop_map_kernel(
	        q, p->op, "weighted", loop_map, a->keys.fresh_last ? 4 : 3, operand, real);
	loop_map_store_as(q, as, loop_map, op);
	if (a->online_max)
		loop_map_stride_over(q, as, loop_map, op->kernel->operand[0].stride);
	else
		loop_map_walk(loop_map, x->stride, op->kernel->operand[0].stride);
	op->kernel->operand[0].offset = x->offset;
	op->kernel->ordered = a->online_max;
	rows_walk(q, a, &a->v, p, loop_map, true, op->kernel, 1);
	struct body *body = &op->kernel->update;
	int scale = rows_scale(module, body, 1, rows_are_fresh(q, a, body, loop_map, p->key, 2));
	body->result =
	        body_op(module, body, OP_MULF, real, body_operand(module, body, real, 0), scale, 0);
	return op->result[0];
}

static struct activation probabilities(
        struct quantizer *q, const struct attention *a, const struct contraction *c)
{
	struct module *module = q->module;
	const struct product *p = &a->values;
	struct loop_map loop_map = probability_loop_map(q, a, c);
	struct loop_map scales = loop_map;
	struct loop_map loops = probability_loops(q, a, c);
	struct activation made = { .x = weighted(q, a, &loop_map, &loops) };
	scales.mapped_loop = arena_copy(module->arena, loop_map.mapped_loop,
	        sizeof *loop_map.mapped_loop * (size_t)loop_map.count);
	for (int i = 0; i < loop_map.count; i++)
		scales.mapped_loop[i].reduction = loop_map.mapped_loop[i].source == a->values.key &&
		        loop_map.mapped_loop[i].step < a->keys.block;
	struct op *scale =
	        loop_map_kernel(q, p->op, "p_scale", &scales, 1, &made.x, type_float(module, 32));
	loop_map_row_major(&loop_map, scale->kernel->operand[0].stride);
	quantize_scale(module, scale->kernel, PROBABILITY_MOST, true);
	struct value *operand[2] = { made.x, scale->result[0] };
	struct op *rounded =
	        loop_map_kernel(q, p->op, "p_q", &loops, 2, operand, type_integer(module, 8));
	loop_map_store_as(q, &loop_map, &loops, rounded);
	loop_map_stride_over(q, &loop_map, &loops, rounded->kernel->operand[0].stride);
	loop_map_stride_over(q, &scales, &loops, rounded->kernel->operand[1].stride);
	rounded->kernel->ordered = a->online_max;
	quantize_round(module, rounded->kernel, type_float(module, 32), PROBABILITY_MOST);
	made.q = rounded->result[0];
	made.scale = scale->result[0];
	return made;
}

/* Tokens, blocks of keys, then what only the rows walk. */
static struct loop_map value_loop_map(
        struct quantizer *q, const struct attention *a, const struct contraction *c, bool reduced)
{
	const struct product *p = &a->values;
	struct loop_map loop_map = probability_blocks(q, a, c, reduced);
	const int64_t *x = p->op->kernel->operand[p->x].stride;
	for (int l = 0; l < p->op->kernel->loops; l++)
		if (l != p->key && !x[l])
			loop_map_add(&loop_map, l, p->op->kernel->loop[l].extent, 1, false);
	return loop_map;
}

/* Are a block's keys terms of one sum?  Of few tokens, whose rows serve all, and where layers
 * follow each other with a break; of more tiles, and of one, several kernels add up a block. */
static bool in_one_sum(const struct attention *a)
{
	return keys_are_shared(&a->keys) || layers_drain_between(a->keys.fresh);
}

/* The loop along the numbers of a row, which comes last, as many of them as a word may have. */
struct row {
	int loop; /* -1: there is none */
	int64_t numbers, lanes;
};

static struct row row_of(const struct product *p)
{
	const struct kernel *kernel = p->op->kernel;
	struct row row = { -1, 1, 1 };
	for (int l = 0; l < kernel->loops; l++)
		row.loop = l != p->key && !kernel->operand[p->x].stride[l] &&
		                kernel->operand[p->past].stride[l] == 1
		        ? l
		        : row.loop;
	row.numbers = row.loop < 0 ? 1 : kernel->loop[row.loop].extent;
	row.lanes = row.numbers % STATE_GROUP ? row.numbers : STATE_GROUP;
	return row;
}

/* Loops of the product other than the keys' and a row's: of few tokens, what walks the past; of
 * many, the tokens.  Then blocks of keys. */
static struct loop_map outer_loops(
        struct quantizer *q, const struct attention *a, const struct contraction *c, int row)
{
	const struct product *p = &a->values;
	const struct kernel *kernel = p->op->kernel;
	if (keys_are_shared(&a->keys)) {
		struct loop_map loop_map = loop_map_none(q, p->op);
		loop_map_add_others(p, &loop_map, row, true);
		loop_map_add_blocks(q, &a->keys, &loop_map, p->key, false);
		return loop_map;
	}
	struct loop_map loop_map = probability_blocks(q, a, c, false);
	for (int l = 0; l < kernel->loops; l++)
		if (l != p->key && l != row && !kernel->operand[p->x].stride[l])
			loop_map_add(&loop_map, l, kernel->loop[l].extent, 1, false);
	return loop_map;
}

/* The loops in which the sums of values are formed: a key, or several at once, is a term of all
 * numbers of its row; of few tokens it serves all of them, of many probabilities are taken as
 * they come. */
static struct loop_map sum_loops(
        struct quantizer *q, const struct attention *a, const struct contraction *c)
{
	const struct product *p = &a->values;
	const struct row row = row_of(p);
	struct loop_map loop_map = outer_loops(q, a, c, row.loop);
	const int64_t most = keys_per_run(&a->keys);
	/* keys of one tile: later ones need not be waited for */
	const int64_t keys_at_once = keys_are_shared(&a->keys)
	        ? most
	        : power_of_two_in(token_tile(a->keys.fresh, false), most);
	if (keys_at_once > 1)
		loop_map_add(&loop_map, p->key, a->keys.block / keys_at_once, keys_at_once, true);
	loop_map_add(&loop_map, p->key, keys_at_once > 1 ? keys_at_once : a->keys.block, 1, true);
	if (row.numbers > row.lanes)
		loop_map_add(&loop_map, row.loop, row.numbers / row.lanes, row.lanes, false);
	if (keys_are_shared(&a->keys))
		loop_map_add_others(p, &loop_map, row.loop, false);
	if (row.loop >= 0)
		loop_map_add(&loop_map, row.loop, row.lanes, 1, false);
	return loop_map;
}

/* Part `number` of every block of keys, of so many. */
static struct value *value_sums(struct quantizer *q, const struct attention *a,
        const struct contraction *c, const struct activation *p, int64_t number, int64_t of)
{
	struct loop_map as = value_loop_map(q, a, c, false);
	struct loop_map loop_map = as;
	int64_t keys = a->keys.block / of;
	int64_t first = number * keys;
	int64_t fresh = a->keys.fresh - first;
	int rows = fresh > 0 ? 2 : 1;
	int key = as.count;
	if (in_one_sum(a))
		loop_map = sum_loops(q, a, c);
	else
		loop_map_add(&loop_map, a->values.key, keys, 1, true);
	struct value *operand[4] = { p->q, a->v.past, a->v.q, a->keys.count };
	int operands = 1 + rows + (rows == 2 && a->keys.fresh_last);
	struct op *op = loop_map_kernel(q, a->values.op,
	        number ? text_format(q->module->arena, "sums%lld", (long long)number) : "sums",
	        &loop_map, operands, operand, type_integer(q->module, 32));
	struct access *access = op->kernel->operand;
	loop_map_store_as(q, &as, &loop_map, op);
	struct loop_map probabilities = probability_loop_map(q, a, c);
	loop_map_stride_over(q, &probabilities, &loop_map, access[0].stride);
	rows_past(q, a, &a->v, &a->values, &loop_map, false, &access[1]);
	if (rows == 2)
		rows_fresh(q, a, &a->v, &a->values, &loop_map, false, &access[2], fresh);
	for (int j = 0; j <= rows; j++)
		access[j].offset += first * access[j].stride[key];
	rows_sum(q->module, &op->kernel->update,
	        rows == 2 ? rows_are_fresh(q, a, &op->kernel->update, &loop_map, a->values.key, 2)
	                  : -1);
	op->kernel->ordered = in_one_sum(a);
	return op->result[0];
}

/* How many kernels add up a block: some, where there are several tokens for each of its rows. */
static int64_t value_kernels(const struct attention *a, const struct contraction *c)
{
	const struct access *past = &a->values.op->kernel->operand[a->values.past];
	int64_t tokens = 1;
	for (int t = 0; t < c->tokens; t++)
		tokens *= past->stride[c->token[t]] ? 1 : c->op->kernel->loop[c->token[t]].extent;
	return tokens >= VALUE_SPLITS && !in_one_sum(a)
	        ? power_of_two_in(a->keys.block, VALUE_SPLITS)
	        : 1;
}

/* The sum of the first operands: those of the parts. */
static int all_sums(struct module *module, struct body *body, int64_t of)
{
	const struct type *type = type_integer(module, 32);
	int sum = body_operand(module, body, type, 0);
	for (int i = 1; i < of; i++)
		sum = body_op(
		        module, body, OP_ADDI, type, sum, body_operand(module, body, type, i), 0);
	return sum;
}

void attention_values(struct quantizer *q, const struct attention *a)
{
	struct module *module = q->module;
	struct op *old = a->values.op;
	const struct type *real = type_float(module, 32);
	struct contraction c = keys_query(q, &a->values);
	struct activation p = probabilities(q, a, &c);
	struct loop_map of_sums = value_loop_map(q, a, &c, false);
	struct loop_map loop_map = value_loop_map(q, a, &c, true);
	int sums = (int)value_kernels(a, &c);
	int *renamed = ARENA_ARRAY(module->arena, int, old->operands + 1);
	struct value **operand =
	        ARENA_ARRAY(module->arena, struct value *, old->operands + sums + 2);
	for (int i = 0; i < sums; i++)
		operand[i] = value_sums(q, a, &c, &p, i, sums);
	operand[sums] = p.scale;
	operand[sums + 1] = a->factor;
	int scales = a->factor ? 2 : 1;
	int operands = post_operands(old, sums + scales, operand, renamed);
	struct op *op = loop_map_kernel(q, old, "scaled", &loop_map, operands, operand, real);
	struct kernel *kernel = op->kernel;
	for (int i = 0; i < sums; i++)
		loop_map_row_major(&of_sums, kernel->operand[i].stride);
	struct loop_map blocks = probability_blocks(q, a, &c, false);
	for (int j = sums; j < sums + scales; j++)
		loop_map_stride_over(q, &blocks, &loop_map, kernel->operand[j].stride);
	post_walk(q, old, &loop_map, renamed, kernel);
	loop_map_walk(&loop_map, old->kernel->result.stride, kernel->result.stride);
	op->result[0]->type = old->result[0]->type;
	struct body *body = &kernel->update;
	int sum = body_op(module, body, OP_SITOFP, real, all_sums(module, body, sums), 0, 0);
	int value = body_op(
	        module, body, OP_MULF, real, sum, body_operand(module, body, real, sums), 0);
	struct body *last = body;
	if (a->keys.blocks > 1) {
		int accumulator = body_add(
		        module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = real });
		if (a->factor)
			accumulator = body_op(module, body, OP_MULF, real, accumulator,
			        body_operand(module, body, real, sums + 1), 0);
		body->result = body_op(module, body, OP_ADDF, real, accumulator, value, 0);
		last = &kernel->post;
		value = old->kernel->post.count
		        ? body_add(module, last,
		                  (struct node){ .kind = NODE_ACCUMULATOR, .type = real })
		        : -1;
	}
	if (value >= 0)
		last->result = post_body(module, last, old, &loop_map, renamed, value);
	ir_replace(q->main->region[0], old->result[0], op->result[0]);
	op_remove(old);
}
