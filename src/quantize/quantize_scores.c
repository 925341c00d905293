/* Scores of attention on bytes: sums of integer products of a query and the keys' rows, which
 * both scales make real numbers. */
#include "quantize/quantize_attention.h"
#include <string.h>

/* Strides over [tokens …, each] by loop of the product. */
static int64_t *token_strides(struct quantizer *q, const struct contraction *c, int64_t each)
{
	int64_t *stride = ARENA_ARRAY(q->module->arena, int64_t, c->op->kernel->loops);
	for (int t = c->tokens - 1; t >= 0; t--) {
		stride[c->token[t]] = each;
		each *= c->op->kernel->loop[c->token[t]].extent;
	}
	return stride;
}

/* Keys beyond the last one have no score: minus infinity. */
static int only_keys(struct quantizer *q, const struct attention *a, struct body *body,
        const struct loop_map *loop_map, int score, int count)
{
	struct module *module = q->module;
	const struct keys *keys = &a->keys;
	const struct type *index = type_index(module);
	const struct type *real = type_float(module, 32);
	if (!keys->trip && keys->block * keys->blocks == keys->extent)
		return score;
	int limit = body_integer(module, body, index, keys->extent);
	if (keys->trip) {
		int past = keys_past(q, keys, body, count);
		limit = body_op(module, body, OP_MINSI, index,
		        body_op(module, body, OP_ADDI, index, past,
		                body_integer(module, body, index, keys->fresh), 0),
		        limit, 0);
	}
	struct node below = { .kind = NODE_OP,
		.code = OP_CMPI,
		.type = type_integer(module, 1),
		.argument = { rows_key(q, body, loop_map, a->scores.key), limit },
		.integer = 2 };
	int low = body_add(module, body,
	        (struct node){ .kind = NODE_CONSTANT, .type = real, .real = -1.0 / 0.0 });
	return body_op(module, body, OP_SELECT, real, body_add(module, body, below), score, low);
}

/* The parallel loops of a product, keys in blocks. */
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

/* The loops in which the sums of scores are formed, of few tokens: a key, or several at once,
 * serves all of them and all query heads that share it before the next one comes. */
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
	struct op *op = loop_map_kernel(q, p->op, "sums", &loop_map, a->keys.fresh_last ? 4 : 3,
	        operand, type_integer(module, 32));
	loop_map_store_as(q, &as, &loop_map, op);
	int64_t *own = token_strides(q, c, a->k.inner);
	own[p->reduction] = 1;
	loop_map_walk(&loop_map, own, op->kernel->operand[0].stride);
	rows_walk(q, a, &a->k, p, &loop_map, false, op->kernel, 1);
	rows_sum(module, &op->kernel->update,
	        rows_are_fresh(q, a, &op->kernel->update, &loop_map, p->key, 2));
	/* so several rows of a state are taken at once */
	op->kernel->ordered = keys_are_shared(&a->keys) || keys_per_run(&a->keys) > 1;
	return op->result[0];
}

/* The scores in blocks of keys: where the kernel's result lay, with room for whole blocks. */
static void score_result(struct quantizer *q, const struct attention *a,
        const struct loop_map *loop_map, struct op *op)
{
	const struct product *p = &a->scores;
	const struct kernel *old = p->op->kernel;
	struct access spread = access_copy(q->module, &old->result, old->loops);
	int64_t each = old->result.stride[p->key];
	keys_spread(&a->keys, each, old->loops, &spread);
	loop_map_walk(loop_map, spread.stride, op->kernel->result.stride);
	op->result[0]->type = keys_type(q->module, p->op->result[0]->type, each, a->keys.extent,
	        a->keys.block * a->keys.blocks);
}

/* Is there not a number for every key of a block? */
static bool must_fill(const struct attention *a, const struct access *access)
{
	const struct guard_range *guard = access_guard(access, a->scores.key);
	return guard
	        ? !keys_guard_splits(&a->keys, *guard)
	        : access->stride[a->scores.key] && a->keys.block * a->keys.blocks > a->keys.extent;
}

/* The kernel that makes scores of the sums. */
struct scaled {
	struct op *op;
	struct loop_map loop_map; /* its loops */
	int *renamed, operands;   /* of the product's post body */
};

static void make_scaled(struct quantizer *q, const struct attention *a, struct value *sums,
        struct value *scale, struct scaled *s)
{
	struct arena *arena = q->module->arena;
	struct op *old = a->scores.op;
	s->loop_map = loop_map_none(q, old);
	add_parallel(q, a, &a->scores, &s->loop_map);
	struct value **operand = ARENA_ARRAY(arena, struct value *, old->operands + 6);
	struct value *const own[5] = { sums, scale, a->k.past_scale, a->k.scale, a->keys.count };
	memcpy(operand, own, sizeof own);
	s->renamed = ARENA_ARRAY(arena, int, old->operands + 1);
	s->operands = post_operands(old, a->keys.fresh_last ? 5 : 4, operand, s->renamed);
	if (a->keys.trip)
		operand[s->operands++] = a->keys.count;
	s->op = loop_map_kernel(
	        q, old, "scaled", &s->loop_map, s->operands, operand, type_float(q->module, 32));
}

static void walk_scaled(struct quantizer *q, const struct attention *a, const struct contraction *c,
        struct scaled *s)
{
	struct kernel *kernel = s->op->kernel;
	loop_map_row_major(&s->loop_map, kernel->operand[0].stride);
	loop_map_walk(&s->loop_map, token_strides(q, c, 1), kernel->operand[1].stride);
	rows_walk(q, a, &a->k, &a->scores, &s->loop_map, true, kernel, 2);
	post_walk(q, a->scores.op, &s->loop_map, s->renamed, kernel);
}

static void scaled_body(struct quantizer *q, const struct attention *a, const struct scaled *s)
{
	struct module *module = q->module;
	const struct type *real = type_float(module, 32);
	struct body *body = &s->op->kernel->update;
	int sum = body_op(module, body, OP_SITOFP, real,
	        body_operand(module, body, type_integer(module, 32), 0), 0, 0);
	int row = rows_scale(
	        module, body, 2, rows_are_fresh(q, a, body, &s->loop_map, a->scores.key, 3));
	int scale =
	        body_op(module, body, OP_MULF, real, body_operand(module, body, real, 1), row, 0);
	int score = body_op(module, body, OP_MULF, real, sum, scale, 0);
	body->result = only_keys(q, a, body, &s->loop_map,
	        post_body(module, body, a->scores.op, &s->loop_map, s->renamed, score),
	        s->operands - 1);
}

void attention_scores(struct quantizer *q, const struct attention *a)
{
	const struct product *p = &a->scores;
	struct op *old = p->op;
	struct contraction c = keys_query(q, p);
	struct activation query = activation_of(q, &c);
	struct scaled s;
	struct value *sums = score_sums(q, a, &c, &query);
	for (int j = 0; j < old->operands; j++)
		if (body_uses_operand(&old->kernel->post, j) &&
		        must_fill(a, &old->kernel->operand[j]))
			old->operand[j] = keys_fill(q, a, old, j, p->key, &old->kernel->operand[j]);
	make_scaled(q, a, sums, query.scale, &s);
	walk_scaled(q, a, &c, &s);
	score_result(q, a, &s.loop_map, s.op);
	scaled_body(q, a, &s);
	s.op->result[0]->data = old->result[0]->data;
	ir_replace(q->main->region[0], old->result[0], s.op->result[0]);
	op_remove(old);
}
