/* Between scores and values of bytes, probabilities have a scale for each block of keys; so may the maximum.  Exponentials are taken from the largest score up to the end of their block, as a running maximum has it,
 * and the sums of a block are added to those before it, scaled by what that maximum has risen:
 *     m_b = max(m_(b-1), scores of block b);  e = exp(score - m_b);  f_b = exp(m_(b-1) - m_b);  sum <- sum * f_b + Σ e;  value <- value * f_b + (float)(Σ p' * v') * s_p
 * A score waits for those of its block then, not for all of its row; the factor is one for a block, and not in the chain of exponentials (carry_maxima.c has it there, where there are no blocks).
 * The running maximum begins with the least finite number: a block of minus infinities gives zeros, and nothing is the difference of two infinities. */
#include "quantize/quantise_attention.h"
#include "tensor/softmax.h"
#include <float.h>
#include <math.h>

struct running {
	struct quantiser *q;
	const struct attention *a;
	struct parts blocks;      /* of all tokens: what there is one number for */
	struct op *at;            /* the exponentials: kernels are put in front of it, and named after it */
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
static int64_t rows_together(const struct attention *a)
{
	const struct kernel *kernel = a->values.op->kernel;
	int64_t rows = 1;
	for (int l = 0; l < kernel->loops; l++)
		rows *= kernel->operand[a->values.x].stride[l] && !kernel->operand[a->values.past].stride[l] ? kernel->loop[l].extent : 1;
	return rows;
}

static bool is_wanted(const struct quantiser *q, const struct attention *a)
{
	switch (q->softmax) {
	case SOFTMAX_AUTO: return rows_together(a) * a->keys.extent * (int64_t)sizeof(float) > SOFTMAX_WAITING && a->keys.fresh == 1;
	case SOFTMAX_RUNNING: return true;
	case SOFTMAX_WHOLE:
	case SOFTMAXES: return false;
	}
	return false;
}

/* Where the product reads the sum of the exponentials, behind its own; -1: not so, or not once. */
static int sum_operand(const struct attention *a)
{
	const struct op *values = a->values.op, *sum = a->between.data[2].op;
	int found = -1;
	for (int j = 0; j < values->operands; j++)
		if (values->operand[j] == sum->result[0])
			found = found < 0 ? j : values->operands;
	if (found < 0 || found == values->operands || !kernel_is_post_operand(values->kernel, found))
		return -1;
	return access_is_plain(&values->kernel->operand[found]) && !values->kernel->operand[found].offset ? found : -1;
}

bool softmax_runs(const struct quantiser *q, const struct attention *a)
{
	struct softmax softmax;
	int term;
	if (a->keys.blocks < 2 || a->between.count != 3 || !softmax_find(a->between.data[1].op, &softmax) || softmax.maxima != a->between.data[0].op)
		return false;
	const struct op *sum = a->between.data[2].op, *op = softmax.op;
	const struct kernel *kernel = sum->kernel;
	bool sums = sum->operands == 1 && sum->operand[0] == op->result[0] && kernel_combine(kernel, &term) == OP_ADDF && kernel->update.node[term].kind == NODE_OPERAND && !kernel->post.count && kernel->init == 0;
	return sums && op->operand[softmax.score] == a->scores.op->result[0] && is_read_by(op->result[0], sum, a->values.op) && is_read_by(softmax.maxima->result[0], op, NULL) &&
	       is_read_by(sum->result[0], a->values.op, NULL) && sum_operand(a) >= 0 && is_wanted(q, a);
}

/* A block's sum, or its maximum, of what has a number for each key. */
static struct value *of_block(const struct running *r, const struct parts *parts, const char *suffix, struct value *from, const int64_t *stride, int64_t offset, enum op_code combine, double init)
{
	struct module *module = r->q->module;
	struct parts inside = *parts;
	inside.part = arena_copy(module->arena, parts->part, sizeof *parts->part * (size_t)parts->count);
	for (int i = 0; i < parts->count; i++)
		inside.part[i].reduction = parts->part[i].source == r->a->values.key && parts->part[i].step < r->a->keys.block;
	struct op *op = parts_kernel(r->q, r->at, suffix, &inside, 1, &from, r->real);
	struct body *body = &op->kernel->update;
	for (int i = 0; i < parts->count; i++)
		op->kernel->operand[0].stride[i] = stride[i];
	op->kernel->operand[0].offset = offset;
	op->kernel->init = init;
	int before = body_add(module, body, (struct node){.kind = NODE_ACCUMULATOR, .type = r->real});
	body->result = body_op(module, body, combine, r->real, before, body_operand(module, body, r->real, 0), 0);
	return op->result[0];
}

/* A kernel in these loops; its operands have a number for each token and block. */
static struct op *block_kernel(const struct running *r, const struct parts *parts, const char *suffix, int operands, struct value *const *operand, const struct type *result)
{
	struct op *op = parts_kernel(r->q, r->at, suffix, parts, operands, operand, r->real);
	op->result[0]->type = result;
	for (int j = 0; j < operands; j++)
		parts_lie_over(r->q, &r->blocks, parts, op->kernel->operand[j].stride);
	op->kernel->ordered = true;
	return op;
}

/* For each block, the maximum up to its end; or, as a factor, what it has risen by. */
static struct value *running_maximum(const struct running *r, const struct parts *parts, struct value *maxima, bool factor)
{
	struct module *module = r->q->module;
	const struct type *real = r->real;
	struct op *op = block_kernel(r, parts, factor ? "factor" : "running", 1, &maxima, maxima->type);
	struct kernel *kernel = op->kernel;
	parts_lie_over(r->q, &r->blocks, parts, kernel->result.stride);
	kernel->scan = true;
	kernel->init = -FLT_MAX;
	struct body *body[2] = {&kernel->update, &kernel->post};
	int before = 0, most = 0;
	for (int i = 0; i < 2; i++) {
		before = body_add(module, body[i], (struct node){.kind = NODE_ACCUMULATOR, .type = real});
		body[i]->result = most = body_op(module, body[i], OP_MAXIMUMF, real, before, body_operand(module, body[i], real, 0), 0);
	}
	if (factor)
		kernel->post.result = body_op(module, &kernel->post, OP_EXP, real, body_op(module, &kernel->post, OP_SUBF, real, before, most, 0), 0, 0);
	return op->result[0];
}

/* Of what lies over the parts as they are, in the loops. */
static struct value *exponentials(const struct running *r, const struct parts *parts, const struct parts *loops, struct value *scores, const struct access *access, struct value *maxima)
{
	struct module *module = r->q->module;
	struct value *operand[2] = {scores, maxima};
	struct op *op = parts_kernel(r->q, r->at, "from_running", loops, 2, operand, r->real);
	struct body *body = &op->kernel->update;
	parts_lie_as(r->q, parts, loops, op);
	parts_walk(loops, access->stride, op->kernel->operand[0].stride);
	op->kernel->operand[0].offset = access->offset;
	parts_lie_over(r->q, &r->blocks, loops, op->kernel->operand[1].stride);
	op->kernel->ordered = true;
	int difference = body_op(module, body, OP_SUBF, r->real, body_operand(module, body, r->real, 0), body_operand(module, body, r->real, 1), 0);
	body->result = body_op(module, body, OP_EXP, r->real, difference, 0, 0);
	return op->result[0];
}

/* The sum over all keys, where the product looks for it. */
static void sum_blocks(const struct running *r, const struct parts *parts, struct value *sums, struct value *factor)
{
	struct module *module = r->q->module;
	struct op *values = r->a->values.op;
	int place = sum_operand(r->a);
	struct value *operand[2] = {sums, factor};
	struct op *op = block_kernel(r, parts, "sum", 2, operand, values->operand[place]->type);
	struct body *body = &op->kernel->update;
	for (int i = 0; i < parts->count; i++)
		op->kernel->result.stride[i] = parts->part[i].reduction ? 0 : values->kernel->operand[place].stride[parts->part[i].source];
	int before = body_add(module, body, (struct node){.kind = NODE_ACCUMULATOR, .type = r->real});
	int scaled = body_op(module, body, OP_MULF, r->real, before, body_operand(module, body, r->real, 1), 0);
	body->result = body_op(module, body, OP_ADDF, r->real, scaled, body_operand(module, body, r->real, 0), 0);
	values->operand[place] = op->result[0];
}

void attention_softmax(struct quantiser *q, struct attention *a)
{
	struct op *values = a->values.op;
	struct contraction c = keys_query(q, &a->values);
	struct running r = {.q = q, .a = a, .at = a->between.data[1].op, .real = type_float(q->module, 32)};
	struct access *x = &values->kernel->operand[a->values.x];
	struct value *scores = a->between.data[0].op->operand[0];
	a->running = true;
	r.blocks = probability_blocks(q, a, &c, false);
	struct parts parts = probability_parts(q, a, &c), loops = probability_loops(q, a, &c), blocks = probability_blocks(q, a, &c, true);
	int64_t *from = ARENA_ARRAY(q->module->arena, int64_t, parts.count), *own = ARENA_ARRAY(q->module->arena, int64_t, parts.count);
	parts_walk(&parts, x->stride, from);
	parts_lie_over(q, &parts, &parts, own);
	struct value *maxima = of_block(&r, &parts, "block_largest", scores, from, x->offset, OP_MAXIMUMF, -INFINITY);
	struct value *running = running_maximum(&r, &blocks, maxima, false);
	a->factor = running_maximum(&r, &blocks, maxima, true);
	struct value *exponential = exponentials(&r, &parts, &loops, scores, x, running);
	sum_blocks(&r, &blocks, of_block(&r, &parts, "block_sum", exponential, own, 0, OP_ADDF, 0), a->factor);
	x->offset = 0;
	values->operand[a->values.x] = exponential;
	for (size_t i = a->between.count; i-- > 0;)
		op_remove(a->between.data[i].op);
}
