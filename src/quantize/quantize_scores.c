/* Scores of attention on bytes.
 *     Σ q * k in f32  ->  sums:   Σ q' * k' in integers
 *                         scaled: post((float)sum * (s_q * s_k)), minus infinity beyond the keys */
#include "quantize/quantize_attention.h"
#include <string.h>

/* By loop of the product: strides in a tensor [token extents ..., each]. */
static int64_t *token_strides(struct quantizer *q, const struct contraction *c, int64_t each)
{
	int64_t *stride = ARENA_ARRAY(q->module->arena, int64_t, c->op->kernel->loops);
	for (int t = c->tokens - 1; t >= 0; t--) {
		stride[c->token[t]] = each;
		each *= c->op->kernel->loop[c->token[t]].extent;
	}
	return stride;
}

/* Adds the parallel loops of the product, with keys in blocks. */
static void add_parallel(struct quantizer *q, const struct attention *a, const struct product *p,
        struct loop_map *loop_map)
{
	for (int l = 0; l < p->op->kernel->loops; l++) {
		if (l == p->key && l != p->reduction) {
			loop_map_add_blocks(q, &a->keys, loop_map, l, false);
			loop_map_add_block(&a->keys, loop_map, l);
		} else if (l != p->reduction)
			loop_map_add(loop_map, l, p->op->kernel->loop[l].extent, 1, false);
	}
}

/* Loops in which the sums are formed for few tokens: one key, or several at once, is multiplied
 * with all of them and with all query heads that share it, then the next is loaded. */
static struct loop_map score_loops(struct quantizer *q, const struct attention *a)
{
	const struct product *p = &a->scores;
	struct loop_map loop_map = loop_map_none(q, p->op);
	loop_map_add_others(p, &loop_map, -1, true);
	loop_map_add_blocks(q, &a->keys, &loop_map, p->key, false);
	loop_map_add_block(&a->keys, &loop_map, p->key);
	loop_map_add_others(p, &loop_map, -1, false);
	return loop_map;
}

/* The kernel Σ q' * k' over the numbers of a row. */
static struct value *score_sums(struct quantizer *q, const struct attention *a,
        const struct contraction *c, const struct activation *query)
{
	struct module *module = q->module;
	const struct product *p = &a->scores;
	struct loop_map as = loop_map_none(q, p->op);
	add_parallel(q, a, p, &as);
	struct loop_map loop_map = keys_are_shared(&a->keys) ? score_loops(q, a) : as;
	loop_map_add(&loop_map, p->reduction, a->k.inner, 1, true);
	struct value *operand[4] = { query->q, a->k.past, a->k.q, a->keys.count };
	struct op *op = loop_map_kernel(q, &loop_map, type_integer(module, 32),
	        (struct kernel_spec){ .at = p->op,
	                .suffix = "sums",
	                .operands = a->keys.fresh_last ? 4 : 3,
	                .operand = operand });
	const struct cache_read rows = { q, a, &a->k, p, &loop_map, false };
	loop_map_store_as(q, &as, &loop_map, op);
	int64_t *own = token_strides(q, c, a->k.inner);
	own[p->reduction] = 1;
	loop_map_walk(&loop_map, own, op->kernel->operand[0].stride);
	rows_walk(&rows, op->kernel, 1);
	rows_sum(module, &op->kernel->update, rows_are_fresh(&rows, &op->kernel->update, 2));
	/* in this order several rows of the cache are taken at once */
	op->kernel->ordered = keys_are_shared(&a->keys) || keys_per_run(&a->keys) > 1;
	return op->result[0];
}

/* Does an operand of the post body lack numbers for some keys of the padded blocks? */
static bool must_fill(const struct attention *a, const struct access *access)
{
	const struct guard_range *guard = access_guard(access, a->scores.key);
	if (guard)
		return !keys_guard_splits(&a->keys, *guard);
	bool padded = a->keys.block * a->keys.blocks > a->keys.extent;
	return access->stride[a->scores.key] && padded;
}

/* The kernel that scales the sums and applies the product's post body. */
struct scaled {
	struct quantizer *q;
	const struct attention *a;
	struct op *op;
	struct loop_map loop_map; /* loops of op */
	struct epilogue epilogue;
	int operands;
};

static void make_scaled(struct scaled *s, struct value *sums, struct value *scale)
{
	const struct attention *a = s->a;
	struct op *old = a->scores.op;
	s->loop_map = loop_map_none(s->q, old);
	add_parallel(s->q, a, &a->scores, &s->loop_map);
	struct value **operand =
	        ARENA_ARRAY(s->q->module->arena, struct value *, old->operands + 6);
	struct value *const own[5] = { sums, scale, a->k.past_scale, a->k.scale, a->keys.count };
	memcpy(operand, own, sizeof own);
	s->epilogue = epilogue_of(s->q, old, &s->loop_map);
	s->operands = post_operands(&s->epilogue, a->keys.fresh_last ? 5 : 4, operand);
	if (a->keys.trip)
		operand[s->operands++] = a->keys.count;
	s->op = loop_map_kernel(s->q, &s->loop_map, type_float(s->q->module, 32),
	        (struct kernel_spec){ .at = old,
	                .suffix = "scaled",
	                .operands = s->operands,
	                .operand = operand });
}

static void walk_scaled(
        struct scaled *s, const struct contraction *c, const struct cache_read *rows)
{
	struct kernel *kernel = s->op->kernel;
	loop_map_row_major(&s->loop_map, kernel->operand[0].stride);
	loop_map_walk(&s->loop_map, token_strides(s->q, c, 1), kernel->operand[1].stride);
	rows_walk(rows, kernel, 2);
	post_walk(s->q, &s->epilogue, kernel);
}

/* Node: the score, or minus infinity where the key is beyond the last one.  The number of past
 * keys is the last operand. */
static int mask_padding(const struct scaled *s, struct body *body, int score)
{
	struct module *module = s->q->module;
	const struct keys *keys = &s->a->keys;
	const struct type *index = type_index(module);
	const struct type *real = type_float(module, 32);
	if (!keys->trip && keys->block * keys->blocks == keys->extent)
		return score;
	int limit = body_integer(module, body, index, keys->extent);
	if (keys->trip) {
		int past = keys_past(s->q, keys, body, s->operands - 1);
		limit = body_op(module, body, OP_MINSI, index,
		        body_op(module, body, OP_ADDI, index, past,
		                body_integer(module, body, index, keys->fresh), 0),
		        limit, 0);
	}
	struct node below = { .kind = NODE_OP,
		.code = OP_CMPI,
		.type = type_integer(module, 1),
		.argument = { rows_key(s->q, body, &s->loop_map, s->a->scores.key), limit },
		.integer = CMPI_SLT };
	int low = body_add(module, body,
	        (struct node){ .kind = NODE_CONSTANT, .type = real, .real = -1.0 / 0.0 });
	return body_op(module, body, OP_SELECT, real, body_add(module, body, below), score, low);
}

/* The result lies as before, with room for whole blocks of keys. */
static void place_scores(const struct scaled *s)
{
	const struct keys *keys = &s->a->keys;
	const struct product *p = &s->a->scores;
	const struct kernel *old = p->op->kernel;
	struct access spread = access_copy(s->q->module, &old->result, old->loops);
	int64_t each = old->result.stride[p->key];
	keys_spread(keys, each, old->loops, &spread);
	loop_map_walk(&s->loop_map, spread.stride, s->op->kernel->result.stride);
	s->op->result[0]->type = keys_type(s->q->module, p->op->result[0]->type, each, keys->extent,
	        keys->block * keys->blocks);
}

static void scaled_body(const struct scaled *s, const struct cache_read *rows)
{
	struct module *module = s->q->module;
	const struct type *real = type_float(module, 32);
	struct body *body = &s->op->kernel->update;
	int sum = body_op(module, body, OP_SITOFP, real,
	        body_operand(module, body, type_integer(module, 32), 0), 0, 0);
	int row = rows_scale(module, body, 2, rows_are_fresh(rows, body, 3));
	int scale =
	        body_op(module, body, OP_MULF, real, body_operand(module, body, real, 1), row, 0);
	int score = body_op(module, body, OP_MULF, real, sum, scale, 0);
	body->result = mask_padding(s, body, post_body(module, &s->epilogue, body, score));
}

void attention_scores(struct quantizer *q, const struct attention *a)
{
	const struct product *p = &a->scores;
	struct op *old = p->op;
	struct contraction c = keys_query(q, p);
	struct activation query = activation_of(q, &c);
	struct value *sums = score_sums(q, a, &c, &query);
	for (int j = 0; j < old->operands; j++)
		if (body_uses_operand(&old->kernel->post, j) &&
		        must_fill(a, &old->kernel->operand[j]))
			old->operand[j] = keys_fill(q, a, old, j, p->key);
	struct scaled s = { .q = q, .a = a };
	make_scaled(&s, sums, query.scale);
	const struct cache_read rows = { q, a, &a->k, p, &s.loop_map, true };
	walk_scaled(&s, &c, &rows);
	place_scores(&s);
	scaled_body(&s, &rows);
	s.op->result[0]->data = old->result[0]->data;
	ir_replace(q->main->region[0], old->result[0], s.op->result[0]);
	op_remove(old);
}
