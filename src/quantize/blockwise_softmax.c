/* Softmax of attention on bytes with a maximum that runs from block to block of keys.
 *     maximum, exponentials, sum over all keys
 *         ->  block_max, online_max, factor, exponential, block_sum, sum, where for block b
 *     m_b = max(m_(b-1), scores of block b)     e = exp(score - m_b)     f_b = exp(m_(b-1) - m_b)
 *     sum <- sum * f_b + Σ e                    value <- value * f_b + (float)(Σ p' * v') * s_p
 * An exponential then waits for the scores of its block, not for all of its row.  The factor is
 * one number for a block, outside the chain of exponentials; online_softmax.c has it inside,
 * where there are no blocks.  The running maximum begins with the least finite number: a block of
 * minus infinities gives zeros, and no difference of two infinities occurs. */
#include "quantize/quantize_attention.h"
#include "tensor/softmax.h"
#include <float.h>
#include <math.h>

struct online_max {
	struct quantizer *q;
	const struct attention *a;
	struct loop_map keys;    /* one number for each token and key: how tensors lie */
	struct loop_map blocks;  /* one number for each token and block */
	struct loop_map loops;   /* loops in which the exponentials are computed */
	struct loop_map running; /* loops in which blocks are a reduction */
	struct op *at;           /* the exponentials: new kernels are named after them */
	const struct type *real;
};

/* Is the value read by no kernels but these two? */
static bool is_read_by(const struct value *value, const struct op *reader, const struct op *other)
{
	for (const struct op *op = value->def->next; op; op = op->next)
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == value && op != reader && op != other)
				return false;
	return true;
}

/* Query rows (tokens times query heads) that read the same values; their scores are computed at
 * the same time. */
static int64_t rows_sharing_values(const struct attention *a)
{
	const struct kernel *kernel = a->values.op->kernel;
	int64_t rows = 1;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->operand[a->values.x].stride[l] &&
		        !kernel->operand[a->values.past].stride[l])
			rows *= kernel->loop[l].extent;
	return rows;
}

/* As --softmax says; by itself for one token whose buffer of scores would be too large. */
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

/* The operand by which the product's post body reads the sum of the exponentials; -1: it does not
 * read it, or not exactly once. */
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
	const struct access *access = &values->kernel->operand[found];
	return access_is_plain(access) && !access->offset ? found : -1;
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

/* What a kernel computes of the keys of a block. */
struct block_reduction {
	const char *suffix;
	enum op_code combine;
	double init;
};

/* A number for each token and block, of numbers for each key. */
static struct value *of_block(const struct online_max *r, const struct block_reduction *reduction,
        struct value *from, const struct access *access)
{
	struct module *module = r->q->module;
	struct loop_map inside = loop_map_reduce_block(r->q, r->a, &r->keys);
	struct op *op = loop_map_kernel(r->q, &inside, r->real,
	        (struct kernel_spec){ .at = r->at,
	                .suffix = reduction->suffix,
	                .operands = 1,
	                .operand = &from });
	struct body *body = &op->kernel->update;
	for (int i = 0; i < r->keys.count; i++)
		op->kernel->operand[0].stride[i] = access->stride[i];
	op->kernel->operand[0].offset = access->offset;
	op->kernel->init = reduction->init;
	int before =
	        body_add(module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = r->real });
	body->result = body_op(module, body, reduction->combine, r->real, before,
	        body_operand(module, body, r->real, 0), 0);
	return op->result[0];
}

/* A kernel in the loops `running`; its operands have a number for each token and block. */
static struct op *block_kernel(
        const struct online_max *r, struct kernel_spec spec, const struct type *result)
{
	spec.at = r->at;
	struct op *op = loop_map_kernel(r->q, &r->running, r->real, spec);
	op->result[0]->type = result;
	for (int j = 0; j < op->operands; j++)
		loop_map_stride_over(r->q, &r->blocks, &r->running, op->kernel->operand[j].stride);
	op->kernel->ordered = true;
	return op;
}

/* A number for each token and block: the maximum up to the end of the block; or the factor
 * exp(old maximum - new maximum). */
static struct value *running_maximum(const struct online_max *r, struct value *maxima, bool factor)
{
	struct module *module = r->q->module;
	const struct type *real = r->real;
	const struct kernel_spec spec = {
		.suffix = factor ? "factor" : "online_max", .operands = 1, .operand = &maxima
	};
	struct op *op = block_kernel(r, spec, maxima->type);
	struct kernel *kernel = op->kernel;
	loop_map_stride_over(r->q, &r->blocks, &r->running, kernel->result.stride);
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

/* exp(score - running maximum), stored in the order of `keys`. */
static struct value *exponentials(const struct online_max *r, struct value *scores,
        const struct access *access, struct value *maxima)
{
	struct module *module = r->q->module;
	struct value *operand[2] = { scores, maxima };
	struct op *op = loop_map_kernel(r->q, &r->loops, r->real,
	        (struct kernel_spec){
	                .at = r->at, .suffix = "exponential", .operands = 2, .operand = operand });
	struct body *body = &op->kernel->update;
	loop_map_store_as(r->q, &r->keys, &r->loops, op);
	loop_map_walk(&r->loops, access->stride, op->kernel->operand[0].stride);
	op->kernel->operand[0].offset = access->offset;
	loop_map_stride_over(r->q, &r->blocks, &r->loops, op->kernel->operand[1].stride);
	op->kernel->ordered = true;
	int maximum = body_operand(module, body, r->real, 1);
	int score = body_operand(module, body, r->real, 0);
	int difference = body_op(module, body, OP_SUBF, r->real, score, maximum, 0);
	body->result = body_op(module, body, OP_EXP, r->real, difference, 0, 0);
	return op->result[0];
}

/* The sum over all keys, sum <- sum * factor + sum of the block, becomes the product's operand. */
static void sum_blocks(const struct online_max *r, struct value *sums, struct value *factor)
{
	struct module *module = r->q->module;
	struct op *values = r->a->values.op;
	int place = sum_operand(r->a);
	struct value *operand[2] = { sums, factor };
	const struct kernel_spec spec = { .suffix = "sum", .operands = 2, .operand = operand };
	struct op *op = block_kernel(r, spec, values->operand[place]->type);
	struct body *body = &op->kernel->update;
	const int64_t *stride = values->kernel->operand[place].stride;
	for (int i = 0; i < r->running.count; i++) {
		const struct mapped_loop *loop = &r->running.mapped_loop[i];
		op->kernel->result.stride[i] = loop->reduction ? 0 : stride[loop->source];
	}
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
	static const struct block_reduction block_max = { "block_max", OP_MAXIMUMF, -INFINITY };
	static const struct block_reduction block_sum = { "block_sum", OP_ADDF, 0 };
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
	r.keys = probability_loop_map(q, a, &c);
	r.loops = probability_loops(q, a, &c);
	r.running = probability_blocks(q, a, &c, true);
	struct access from = access_empty(q->module, r.keys.count); /* of the scores */
	struct access own = access_empty(q->module, r.keys.count);  /* of the exponentials */
	from.offset = x->offset;
	loop_map_walk(&r.keys, x->stride, from.stride);
	loop_map_stride_over(q, &r.keys, &r.keys, own.stride);
	struct value *maxima = of_block(&r, &block_max, scores, &from);
	struct value *online_max = running_maximum(&r, maxima, false);
	a->factor = running_maximum(&r, maxima, true);
	struct value *exponential = exponentials(&r, scores, x, online_max);
	sum_blocks(&r, of_block(&r, &block_sum, exponential, &own), a->factor);
	x->offset = 0;
	values->operand[a->values.x] = exponential;
	for (size_t i = a->softmax_kernel.count; i-- > 0;)
		op_remove(a->softmax_kernel.data[i].op);
}
