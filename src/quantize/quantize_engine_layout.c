/* Brings a contraction of several tokens into the form that the shared matmul engine runs:
 *     post(Σ x * w) in any layout  ->  s[tokens][outputs] = Σ x * w;  post or copy of s */
#include "ir/contract.h"
#include "quantize/quantize.h"

/* Do these loops walk one run of addresses, as a single loop would? */
static bool is_run(
        const struct kernel *kernel, const struct access *access, int count, const int *loop)
{
	for (int i = 0; i + 1 < count; i++)
		if (access->stride[loop[i]] !=
		        access->stride[loop[i + 1]] * kernel->loop[loop[i + 1]].extent)
			return false;
	return true;
}

static int64_t points(const struct kernel *kernel, int count, const int *loop)
{
	int64_t product = 1;
	for (int i = 0; i < count; i++)
		product *= kernel->loop[loop[i]].extent;
	return product;
}

bool contraction_fits_engine(const struct quantizer *q, const struct contraction *c)
{
	const struct kernel *kernel = c->op->kernel;
	bool fixed = true;
	for (int l = 0; l < kernel->loops; l++)
		fixed = fixed && !kernel->loop[l].run_time;
	bool weights_fit = c->bits == q->scheme->weight && c->group * c->bits == ENGINE_WORD_BITS &&
	        !c->row_scale && !c->per_token;
	return q->for_engine && fixed && c->tokens && weights_fit &&
	        access_is_plain(&kernel->result) &&
	        is_run(kernel, &kernel->operand[c->x], c->tokens, c->token) &&
	        is_run(kernel, &kernel->operand[c->w], c->outputs, c->output);
}

/* Strides in a tensor [tokens][outputs], by parallel loop. */
static int64_t *plain_strides(struct quantizer *q, const struct contraction *c)
{
	const struct kernel *kernel = c->op->kernel;
	int64_t *stride = ARENA_ARRAY(q->module->arena, int64_t, kernel->loops + 1);
	int64_t pitch = 1;
	for (int i = c->outputs - 1; i >= 0; i--) {
		stride[c->output[i]] = pitch;
		pitch *= kernel->loop[c->output[i]].extent;
	}
	for (int t = c->tokens - 1; t >= 0; t--) {
		stride[c->token[t]] = pitch;
		pitch *= kernel->loop[c->token[t]].extent;
	}
	return stride;
}

/* Does the contraction have that form already? */
static bool is_plain(const struct contraction *c, const int64_t *stride)
{
	const struct kernel *kernel = c->op->kernel;
	bool plain = c->tokens == 1 && c->outputs == 1 && !kernel->post.count &&
	        c->op->result[0]->type->rank == 2;
	for (int l = 0; plain && l < kernel->loops; l++)
		plain = kernel->loop[l].reduction || kernel->result.stride[l] == stride[l];
	return plain;
}

/* Splits off what follows the sum, or a copy if nothing does, as a kernel that reads
 * [tokens][outputs] and stores where the contraction did. */
static struct op *split_layout_change(
        struct quantizer *q, const struct contraction *c, const int64_t *stride)
{
	struct kernel *kernel = c->op->kernel;
	int loops = 0;
	int all = kernel->loops;
	int64_t *parallel = ARENA_ARRAY(q->module->arena, int64_t, all + 1);
	for (int l = 0; l < all; l++)
		if (!kernel->loop[l].reduction)
			parallel[loops++] = stride[l];
	if (!kernel->post.count)
		kernel->post.result = body_add(q->module, &kernel->post,
		        (struct node){ .kind = NODE_ACCUMULATOR, .type = kernel->type });
	kernel_split_epilogue(q->module, c->op);
	struct op *after = c->op->next;
	after->kernel->operand[0].stride = parallel;
	return after;
}

/* The sum with one loop of tokens, one of outputs, then the reduction. */
static struct op *make_plain(
        struct quantizer *q, const struct contraction *c, const int64_t shape[2])
{
	const struct kernel *old = c->op->kernel;
	struct value *operand[2] = { c->op->operand[c->x], c->op->operand[c->w] };
	const int own[2] = { c->x, c->w };
	const int last[2] = { c->token[c->tokens - 1], c->output[c->outputs - 1] };
	int loops = 2;
	int *renamed = ARENA_ARRAY(q->module->arena, int, c->op->operands + 1);
	for (int l = 0; l < old->loops; l++)
		loops += old->loop[l].reduction;
	struct op *op = kernel_new(q->module, c->op->location, old->name, loops, 2, operand,
	        type_shaped(q->module, TYPE_TENSOR, 2, shape, old->type));
	struct kernel *kernel = op->kernel;
	kernel->init = old->init;
	for (int j = 0; j < 2; j++) {
		renamed[own[j]] = j;
		kernel->loop[j].extent = shape[j];
		kernel->result.stride[j] = j ? 1 : shape[1];
		kernel->operand[j].offset = old->operand[own[j]].offset;
		kernel->operand[j].stride[j] = old->operand[own[j]].stride[last[j]];
	}
	for (int l = 0, at = 2; l < old->loops; l++) {
		if (!old->loop[l].reduction)
			continue;
		kernel->loop[at] = old->loop[l];
		for (int j = 0; j < 2; j++)
			kernel->operand[j].stride[at] = old->operand[own[j]].stride[l];
		at++;
	}
	kernel->update.result = body_import(q->module, &kernel->update, &old->update, renamed, -1);
	op_insert_before(c->op, op);
	return op;
}

void contraction_plain(struct quantizer *q, struct contraction *c)
{
	const struct kernel *kernel = c->op->kernel;
	const int64_t *stride = plain_strides(q, c);
	const int64_t shape[2] = { points(kernel, c->tokens, c->token),
		points(kernel, c->outputs, c->output) };
	struct contraction split = { 0 };
	struct contraction plain = { 0 };
	if (is_plain(c, stride))
		return;
	struct op *after = split_layout_change(q, c, stride);
	bool matches = contraction_match(q, c->op, &split);
	struct op *op = matches ? make_plain(q, &split, shape) : NULL;
	INVARIANT(q->module->guard, op && contraction_match(q, op, &plain),
	        "contraction %s is none without what follows it", kernel->name);
	after->operand[0] = op->result[0];
	plain.bits = c->bits;
	plain.group = c->group;
	plain.zeros = c->zeros;
	plain.factor = c->factor;
	plain.factor_access = access_empty(q->module, plain.op->kernel->loops);
	if (c->factor) {
		plain.factor_access.offset = c->factor_access.offset;
		plain.factor_access.stride[plain.token[0]] =
		        c->factor_access.stride[c->token[c->tokens - 1]];
	}
	op_remove(c->op);
	*c = plain;
}
