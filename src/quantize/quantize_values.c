/* The product of probabilities with values, on bytes.
 *     Σ p * v in f32  ->  weighted: p * s_v for each key, the scale of its values
 *                         p_scale, p_q: these rounded to bytes, one scale s_p for a block of keys
 *                         sums: Σ p' * v' over a block in integers
 *                         scaled: post(Σ_blocks (float)sum * s_p) */
#include "base/number.h"
#include "ir/launch_tokens.h"
#include "quantize/quantize_attention.h"

#define PROBABILITY_MOST 127
/* Kernels that share the sums of a block of keys when several tokens read each row. */
#define VALUE_SPLITS 4

/* The product with values while it is replaced. */
struct value_product {
	struct quantizer *q;
	const struct attention *a;
	struct contraction c;
	struct activation p; /* the rounded probabilities */
	int splits;          /* kernels that form the sums of a block, a part of its keys each */
};

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

/* ---- probabilities */

/* The kernel p * s_v for each key, stored in the order of the loops `as`. */
static struct value *weighted(struct quantizer *q, const struct attention *a,
        const struct loop_map *as, const struct loop_map *loop_map)
{
	struct module *module = q->module;
	const struct product *p = &a->values;
	const struct type *real = type_float(module, 32);
	const struct access *x = &p->op->kernel->operand[p->x];
	struct value *operand[4] = { p->op->operand[p->x], a->v.past_scale, a->v.scale,
		a->keys.count };
	struct op *op = loop_map_kernel(q, loop_map, real,
	        (struct kernel_spec){ .at = p->op,
	                .suffix = "weighted",
	                .operands = a->keys.fresh_last ? 4 : 3,
	                .operand = operand });
	const struct cache_read rows = { q, a, &a->v, p, loop_map, true };
	loop_map_store_as(q, as, loop_map, op);
	if (a->online_max)
		loop_map_stride_over(q, as, loop_map, op->kernel->operand[0].stride);
	else
		loop_map_walk(loop_map, x->stride, op->kernel->operand[0].stride);
	op->kernel->operand[0].offset = x->offset;
	op->kernel->ordered = a->online_max;
	rows_walk(&rows, op->kernel, 1);
	struct body *body = &op->kernel->update;
	int scale = rows_scale(module, body, 1, rows_are_fresh(&rows, body, 2));
	body->result =
	        body_op(module, body, OP_MULF, real, body_operand(module, body, real, 0), scale, 0);
	return op->result[0];
}

/* Weighted probabilities as bytes, with a scale for each token and block of keys. */
static struct activation probabilities(
        struct quantizer *q, const struct attention *a, const struct contraction *c)
{
	struct module *module = q->module;
	struct op *at = a->values.op;
	struct loop_map loop_map = probability_loop_map(q, a, c);
	struct loop_map loops = probability_loops(q, a, c);
	struct activation made = { .x = weighted(q, a, &loop_map, &loops) };
	struct loop_map scales = loop_map_reduce_block(q, a, &loop_map);
	struct op *scale = loop_map_kernel(q, &scales, type_float(module, 32),
	        (struct kernel_spec){
	                .at = at, .suffix = "p_scale", .operands = 1, .operand = &made.x });
	loop_map_row_major(&loop_map, scale->kernel->operand[0].stride);
	quantize_scale(module, scale->kernel, PROBABILITY_MOST, true);
	struct value *operand[2] = { made.x, scale->result[0] };
	struct op *rounded = loop_map_kernel(q, &loops, type_integer(module, 8),
	        (struct kernel_spec){
	                .at = at, .suffix = "p_q", .operands = 2, .operand = operand });
	loop_map_store_as(q, &loop_map, &loops, rounded);
	loop_map_stride_over(q, &loop_map, &loops, rounded->kernel->operand[0].stride);
	loop_map_stride_over(q, &scales, &loops, rounded->kernel->operand[1].stride);
	rounded->kernel->ordered = a->online_max;
	quantize_round(module, rounded->kernel, type_float(module, 32), PROBABILITY_MOST);
	made.q = rounded->result[0];
	made.scale = scale->result[0];
	return made;
}

/* ---- sums of a block */

/* Loops over the sums: tokens, blocks of keys, then the loops that move rows but not
 * probabilities. */
static struct loop_map value_loop_map(const struct value_product *v, bool reduced)
{
	const struct product *p = &v->a->values;
	struct loop_map loop_map = probability_blocks(v->q, v->a, &v->c, reduced);
	const int64_t *x = p->op->kernel->operand[p->x].stride;
	for (int l = 0; l < p->op->kernel->loops; l++)
		if (l != p->key && !x[l])
			loop_map_add(&loop_map, l, p->op->kernel->loop[l].extent, 1, false);
	return loop_map;
}

/* Does one kernel sum all keys of a block?  Yes for few tokens, where a row is loaded once for all
 * of them, and where layers drain before the next begins.  Otherwise VALUE_SPLITS kernels may
 * share a block. */
static bool in_one_sum(const struct attention *a)
{
	return keys_are_shared(&a->keys) || layers_drain_between(a->keys.fresh);
}

/* The loop along the numbers of a row, innermost in the kernel. */
struct value_row {
	int loop;        /* -1: there is none */
	int64_t numbers; /* of the row */
	int64_t lanes;   /* of the numbers, those of one word */
};

static struct value_row row_of(const struct product *p)
{
	const struct kernel *kernel = p->op->kernel;
	struct value_row row = { -1, 1, 1 };
	for (int l = 0; l < kernel->loops; l++)
		if (l != p->key && !kernel->operand[p->x].stride[l] &&
		        kernel->operand[p->past].stride[l] == 1)
			row.loop = l;
	row.numbers = row.loop < 0 ? 1 : kernel->loop[row.loop].extent;
	row.lanes = row.numbers % STATE_GROUP ? row.numbers : STATE_GROUP;
	return row;
}

/* The loops outside the keys of a block: for few tokens those that move rows of the cache, for
 * many those of the tokens; then blocks of keys. */
static struct loop_map outer_loops(const struct value_product *v, int row)
{
	const struct product *p = &v->a->values;
	const struct kernel *kernel = p->op->kernel;
	if (keys_are_shared(&v->a->keys)) {
		struct loop_map loop_map = loop_map_none(v->q, p->op);
		loop_map_add_others(p, &loop_map, row, true);
		loop_map_add_blocks(v->q, &v->a->keys, &loop_map, p->key, false);
		return loop_map;
	}
	struct loop_map loop_map = probability_blocks(v->q, v->a, &v->c, false);
	for (int l = 0; l < kernel->loops; l++)
		if (l != p->key && l != row && !kernel->operand[p->x].stride[l])
			loop_map_add(&loop_map, l, kernel->loop[l].extent, 1, false);
	return loop_map;
}

/* Loops of a kernel that sums a whole block: a key, or several at once, is a term for all numbers
 * of its row.  For few tokens the term is added for all of them before the next key; for many,
 * the tokens are outside and probabilities are taken in their order. */
static struct loop_map sum_loops(const struct value_product *v)
{
	const struct keys *keys = &v->a->keys;
	const struct product *p = &v->a->values;
	const struct value_row row = row_of(p);
	struct loop_map loop_map = outer_loops(v, row.loop);
	int64_t at_once = keys_per_run(keys);
	/* keys of one token tile: the sum need not wait for those of the next tile */
	if (!keys_are_shared(keys))
		at_once = power_of_two_in(token_tile(keys->fresh, false), at_once);
	if (at_once > 1)
		loop_map_add(&loop_map, p->key, keys->block / at_once, at_once, true);
	loop_map_add(&loop_map, p->key, at_once > 1 ? at_once : keys->block, 1, true);
	if (row.numbers > row.lanes)
		loop_map_add(&loop_map, row.loop, row.numbers / row.lanes, row.lanes, false);
	if (keys_are_shared(keys))
		loop_map_add_others(p, &loop_map, row.loop, false);
	if (row.loop >= 0)
		loop_map_add(&loop_map, row.loop, row.lanes, 1, false);
	return loop_map;
}

/* The kernel Σ p' * v' over split `number` of the keys of each block. */
static struct value *value_sums(const struct value_product *v, int number)
{
	struct quantizer *q = v->q;
	const struct attention *a = v->a;
	struct loop_map as = value_loop_map(v, false);
	struct loop_map loop_map = as;
	int64_t keys = a->keys.block / v->splits;
	int64_t first = number * keys;
	int64_t fresh = a->keys.fresh - first;
	int rows = fresh > 0 ? 2 : 1; /* operands: past rows, and fresh ones if the split has any */
	int key = as.count;
	if (in_one_sum(a))
		loop_map = sum_loops(v);
	else
		loop_map_add(&loop_map, a->values.key, keys, 1, true);
	struct value *operand[4] = { v->p.q, a->v.past, a->v.q, a->keys.count };
	const char *suffix = "sums";
	if (number)
		suffix = text_format(q->module->arena, "sums%d", number);
	struct op *op = loop_map_kernel(q, &loop_map, type_integer(q->module, 32),
	        (struct kernel_spec){ .at = a->values.op,
	                .suffix = suffix,
	                .operands = 1 + rows + (rows == 2 && a->keys.fresh_last),
	                .operand = operand });
	const struct cache_read read = { q, a, &a->v, &a->values, &loop_map, false };
	struct access *access = op->kernel->operand;
	loop_map_store_as(q, &as, &loop_map, op);
	struct loop_map probabilities = probability_loop_map(q, a, &v->c);
	loop_map_stride_over(q, &probabilities, &loop_map, access[0].stride);
	rows_past(&read, &access[1]);
	if (rows == 2)
		rows_fresh(&read, &access[2], fresh);
	for (int j = 0; j <= rows; j++)
		access[j].offset += first * access[j].stride[key];
	int choice = rows == 2 ? rows_are_fresh(&read, &op->kernel->update, 2) : -1;
	rows_sum(q->module, &op->kernel->update, choice);
	op->kernel->ordered = in_one_sum(a);
	return op->result[0];
}

/* Kernels that form the sums of a block: several where several tokens read each row. */
static int value_splits(const struct attention *a, const struct contraction *c)
{
	const struct access *past = &a->values.op->kernel->operand[a->values.past];
	int64_t tokens = 1;
	for (int t = 0; t < c->tokens; t++)
		if (!past->stride[c->token[t]])
			tokens *= c->op->kernel->loop[c->token[t]].extent;
	if (tokens < VALUE_SPLITS || in_one_sum(a))
		return 1;
	return (int)power_of_two_in(a->keys.block, VALUE_SPLITS);
}

/* ---- scaled sums */

/* Node: the sum of the first operands, those of the splits. */
static int all_sums(struct module *module, struct body *body, int splits)
{
	const struct type *type = type_integer(module, 32);
	int sum = body_operand(module, body, type, 0);
	for (int i = 1; i < splits; i++)
		sum = body_op(
		        module, body, OP_ADDI, type, sum, body_operand(module, body, type, i), 0);
	return sum;
}

/* acc * factor + sum * s_p over the blocks, then the product's post body. */
static void scaled_body(
        const struct value_product *v, const struct epilogue *epilogue, struct kernel *kernel)
{
	struct module *module = v->q->module;
	const struct type *real = type_float(module, 32);
	struct body *body = &kernel->update;
	int sum = body_op(module, body, OP_SITOFP, real, all_sums(module, body, v->splits), 0, 0);
	int value = body_op(
	        module, body, OP_MULF, real, sum, body_operand(module, body, real, v->splits), 0);
	struct body *last = body;
	if (v->a->keys.blocks > 1) {
		const struct node before = { .kind = NODE_ACCUMULATOR, .type = real };
		int accumulator = body_add(module, body, before);
		if (v->a->factor)
			accumulator = body_op(module, body, OP_MULF, real, accumulator,
			        body_operand(module, body, real, v->splits + 1), 0);
		body->result = body_op(module, body, OP_ADDF, real, accumulator, value, 0);
		last = &kernel->post;
		if (!epilogue->old->kernel->post.count)
			return;
		value = body_add(module, last, before);
	}
	last->result = post_body(module, epilogue, last, value);
}

/* Operands: sums of the splits, scales of the probabilities, the factor if there is one, and what
 * the post body reads. */
static struct op *scaled_kernel(const struct value_product *v)
{
	struct quantizer *q = v->q;
	const struct attention *a = v->a;
	struct op *old = a->values.op;
	struct loop_map of_sums = value_loop_map(v, false);
	struct loop_map loop_map = value_loop_map(v, true);
	struct epilogue epilogue = epilogue_of(q, old, &loop_map);
	struct value **operand =
	        ARENA_ARRAY(q->module->arena, struct value *, old->operands + v->splits + 2);
	for (int i = 0; i < v->splits; i++)
		operand[i] = value_sums(v, i);
	operand[v->splits] = v->p.scale;
	operand[v->splits + 1] = a->factor;
	int scales = a->factor ? 2 : 1;
	int operands = post_operands(&epilogue, v->splits + scales, operand);
	struct op *op = loop_map_kernel(q, &loop_map, type_float(q->module, 32),
	        (struct kernel_spec){
	                .at = old, .suffix = "scaled", .operands = operands, .operand = operand });
	struct kernel *kernel = op->kernel;
	for (int i = 0; i < v->splits; i++)
		loop_map_row_major(&of_sums, kernel->operand[i].stride);
	struct loop_map blocks = probability_blocks(q, a, &v->c, false);
	for (int j = v->splits; j < v->splits + scales; j++)
		loop_map_stride_over(q, &blocks, &loop_map, kernel->operand[j].stride);
	post_walk(q, &epilogue, kernel);
	loop_map_walk(&loop_map, old->kernel->result.stride, kernel->result.stride);
	op->result[0]->type = old->result[0]->type;
	scaled_body(v, &epilogue, kernel);
	return op;
}

void attention_values(struct quantizer *q, const struct attention *a)
{
	struct op *old = a->values.op;
	struct value_product v = { .q = q, .a = a, .c = keys_query(q, &a->values) };
	v.p = probabilities(q, a, &v.c);
	v.splits = value_splits(a, &v.c);
	struct op *op = scaled_kernel(&v);
	ir_replace(q->main->region[0], old->result[0], op->result[0]);
	op_remove(old);
}
