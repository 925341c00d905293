/* Between scores and values of bytes, probabilities have a scale for each block of keys; so may
 * the maximum.  Exponentials are taken from the largest score up to the end of their block, as a
 * running maximum has it, and the sums of a block are added to those before it, scaled by what
 * that maximum has risen:
 *     m_b = max(m_(b-1), scores of block b);  e = exp(score - m_b);  f_b = exp(m_(b-1) - m_b);  sum <- sum * f_b + Σ e;  value <- value * f_b + (float)(Σ p' * v') * s_p
 * A score waits for those of its block then, not for all of its row; the factor is one for a
 * block, and not in the chain of exponentials (online_softmax.c has it there, where there are no
 * blocks). The running maximum begins with the least finite number: a block of minus infinities
 * gives zeros, and nothing is the difference of two infinities. */
#include "quantize/quantize_attention.h"
#include "tensor/softmax.h"
#include <float.h>
#include <math.h>

struct online_max {
	struct quantizer *q;
	const struct attention *a;
	struct loop_map blocks; /* of all tokens: what there is one number for */
	/* the exponentials: kernels are put in front of it, and named after it */
	struct op *at;
	const struct type *real;
};

static bool is_read_by(const struct value *value, const struct op *reader, const struct op *other)
{
	for (const struct op *op = value->def->next; op; op = op->next)
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == value && op != reader && op != other)
				return false;
	return true;
}

/* Rows that share values, whose scores are made together. */
static int64_t rows_sharing_values(const struct attention *a)
{
	const struct kernel *kernel = a->values.op->kernel;
	int64_t rows = 1;
	for (int l = 0; l < kernel->loops; l++)
		rows *= kernel->operand[a->values.x].stride[l] &&
		                !kernel->operand[a->values.past].stride[l]
		        ? kernel->loop[l].extent
		        : 1;
	return rows;
}

static bool is_wanted(const struct quantizer *q, const struct attention *a)
{
	switch (q->softmax) {
	case SOFTMAX_AUTO:
		return rows_sharing_values(a) * a->keys.extent * (int64_t)sizeof(float) >
		        SOFTMAX_BUFFERED_MOST &&
		        a->keys.fresh == 1;
	case SOFTMAX_ONLINE: return true;
	case SOFTMAX_TWO_PASS:
	case SOFTMAX_FORMS: return false;
	}
	return false;
}

/* Where the product reads the sum of the exponentials, behind its own; -1: not so, or not once. */
static int sum_operand(const struct attention *a)
{
	const struct op *values = a->values.op;
	const struct op *sum = a->softmax_kernel.data[2].op;
	int found = -1;
	for (int j = 0; j < values->operands; j++)
		if (values->operand[j] == sum->result[0])
			found = found < 0 ? j : values->operands;
	if (found < 0 || found == values->operands ||
	        !kernel_is_post_operand(values->kernel, found))
		return -1;
	return access_is_plain(&values->kernel->operand[found]) &&
	                !values->kernel->operand[found].offset
	        ? found
	        : -1;
}

bool softmax_is_online(const struct quantizer *q, const struct attention *a)
{
	struct softmax softmax;
	int term;
	if (a->keys.blocks < 2 || a->softmax_kernel.count != 3 ||
	        !softmax_match(a->softmax_kernel.data[1].op, &softmax) ||
	        softmax.maxima != a->softmax_kernel.data[0].op)
		return false;
	const struct op *sum = a->softmax_kernel.data[2].op;
	const struct op *op = softmax.op;
	const struct kernel *kernel = sum->kernel;
	bool sums = sum->operands == 1 && sum->operand[0] == op->result[0] &&
	        kernel_combine(kernel, &term) == OP_ADDF &&
	        kernel->update.node[term].kind == NODE_OPERAND && !kernel->post.count &&
	        kernel->init == 0;
	return sums && op->operand[softmax.score] == a->scores.op->result[0] &&
	        is_read_by(op->result[0], sum, a->values.op) &&
	        is_read_by(softmax.maxima->result[0], op, NULL) &&
	        is_read_by(sum->result[0], a->values.op, NULL) && sum_operand(a) >= 0 &&
	        is_wanted(q, a);
}

/* A block's sum, or its maximum, of what has a number for each key. */
static struct value *of_block(const struct online_max *r, const struct loop_map *loop_map,
        const char *suffix, struct value *from, const int64_t *stride, int64_t offset,
        enum op_code combine, double init)
{
	struct module *module = r->q->module;
	struct loop_map inside = *loop_map;
	inside.mapped_loop = arena_copy(module->arena, loop_map->mapped_loop,
	        sizeof *loop_map->mapped_loop * (size_t)loop_map->count);
	for (int i = 0; i < loop_map->count; i++)
		inside.mapped_loop[i].reduction =
		        loop_map->mapped_loop[i].source == r->a->values.key &&
		        loop_map->mapped_loop[i].step < r->a->keys.block;
	struct op *op = loop_map_kernel(r->q, r->at, suffix, &inside, 1, &from, r->real);
	struct body *body = &op->kernel->update;
	for (int i = 0; i < loop_map->count; i++)
		op->kernel->operand[0].stride[i] = stride[i];
	op->kernel->operand[0].offset = offset;
	op->kernel->init = init;
	int before =
	        body_add(module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = r->real });
	body->result = body_op(
	        module, body, combine, r->real, before, body_operand(module, body, r->real, 0), 0);
	return op->result[0];
}

/* A kernel in these loops; its operands have a number for each token and block. */
static struct op *block_kernel(const struct online_max *r, const struct loop_map *loop_map,
        const char *suffix, int operands, struct value *const *operand, const struct type *result)
{
	struct op *op = loop_map_kernel(r->q, r->at, suffix, loop_map, operands, operand, r->real);
	op->result[0]->type = result;
	for (int j = 0; j < operands; j++)
		loop_map_stride_over(r->q, &r->blocks, loop_map, op->kernel->operand[j].stride);
	op->kernel->ordered = true;
	return op;
}

/* For each block, the maximum up to its end; or, as a factor, what it has risen by. */
static struct value *running_maximum(const struct online_max *r, const struct loop_map *loop_map,
        struct value *maxima, bool factor)
{
	struct module *module = r->q->module;
	const struct type *real = r->real;
	struct op *op = block_kernel(
	        r, loop_map, factor ? "factor" : "online_max", 1, &maxima, maxima->type);
	struct kernel *kernel = op->kernel;
	loop_map_stride_over(r->q, &r->blocks, loop_map, kernel->result.stride);
	kernel->scan = true;
	kernel->init = -FLT_MAX;
	struct body *body[2] = { &kernel->update, &kernel->post };
	int before = 0;
	int most = 0;
	for (int i = 0; i < 2; i++) {
		before = body_add(
		        module, body[i], (struct node){ .kind = NODE_ACCUMULATOR, .type = real });
		body[i]->result = most = body_op(module, body[i], OP_MAXIMUMF, real, before,
		        body_operand(module, body[i], real, 0), 0);
	}
	if (factor)
		kernel->post.result = body_op(module, &kernel->post, OP_EXP, real,
		        body_op(module, &kernel->post, OP_SUBF, real, before, most, 0), 0, 0);
	return op->result[0];
}

/* Of what lies over the parts as they are, in the loops. */
static struct value *exponentials(const struct online_max *r, const struct loop_map *loop_map,
        const struct loop_map *loops, struct value *scores, const struct access *access,
        struct value *maxima)
{
	struct module *module = r->q->module;
	struct value *operand[2] = { scores, maxima };
	struct op *op = loop_map_kernel(r->q, r->at, "exponential", loops, 2, operand, r->real);
	struct body *body = &op->kernel->update;
	loop_map_store_as(r->q, loop_map, loops, op);
	loop_map_walk(loops, access->stride, op->kernel->operand[0].stride);
	op->kernel->operand[0].offset = access->offset;
	loop_map_stride_over(r->q, &r->blocks, loops, op->kernel->operand[1].stride);
	op->kernel->ordered = true;
	int difference = body_op(module, body, OP_SUBF, r->real,
	        body_operand(module, body, r->real, 0), body_operand(module, body, r->real, 1), 0);
	body->result = body_op(module, body, OP_EXP, r->real, difference, 0, 0);
	return op->result[0];
}

/* The sum over all keys, where the product looks for it. */
static void sum_blocks(const struct online_max *r, const struct loop_map *loop_map,
        struct value *sums, struct value *factor)
{
	struct module *module = r->q->module;
	struct op *values = r->a->values.op;
	int place = sum_operand(r->a);
	struct value *operand[2] = { sums, factor };
	struct op *op = block_kernel(r, loop_map, "sum", 2, operand, values->operand[place]->type);
	struct body *body = &op->kernel->update;
	for (int i = 0; i < loop_map->count; i++)
		op->kernel->result.stride[i] = loop_map->mapped_loop[i].reduction
		        ? 0
		        : values->kernel->operand[place].stride[loop_map->mapped_loop[i].source];
	int before =
	        body_add(module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = r->real });
	int scaled = body_op(
	        module, body, OP_MULF, r->real, before, body_operand(module, body, r->real, 1), 0);
	body->result = body_op(
	        module, body, OP_ADDF, r->real, scaled, body_operand(module, body, r->real, 0), 0);
	values->operand[place] = op->result[0];
}

void attention_softmax(struct quantizer *q, struct attention *a)
{
	struct op *values = a->values.op;
	struct contraction c = keys_query(q, &a->values);
	struct online_max r = { .q = q,
		.a = a,
		.at = a->softmax_kernel.data[1].op,
		.real = type_float(q->module, 32) };
	struct access *x = &values->kernel->operand[a->values.x];
	struct value *scores = a->softmax_kernel.data[0].op->operand[0];
	a->online_max = true;
	r.blocks = probability_blocks(q, a, &c, false);
	struct loop_map loop_map = probability_loop_map(q, a, &c);
	struct loop_map loops = probability_loops(q, a, &c);
	struct loop_map blocks = probability_blocks(q, a, &c, true);
	int64_t *from = ARENA_ARRAY(q->module->arena, int64_t, loop_map.count);
	int64_t *own = ARENA_ARRAY(q->module->arena, int64_t, loop_map.count);
	loop_map_walk(&loop_map, x->stride, from);
	loop_map_stride_over(q, &loop_map, &loop_map, own);
	struct value *maxima = of_block(
	        &r, &loop_map, "block_max", scores, from, x->offset, OP_MAXIMUMF, -INFINITY);
	struct value *online_max = running_maximum(&r, &blocks, maxima, false);
	a->factor = running_maximum(&r, &blocks, maxima, true);
	struct value *exponential = exponentials(&r, &loop_map, &loops, scores, x, online_max);
	sum_blocks(&r, &blocks,
	        of_block(&r, &loop_map, "block_sum", exponential, own, 0, OP_ADDF, 0), a->factor);
	x->offset = 0;
	values->operand[a->values.x] = exponential;
	for (size_t i = a->softmax_kernel.count; i-- > 0;)
		op_remove(a->softmax_kernel.data[i].op);
}
