/* Folds a vector added to activations, as the bias of a LayerNorm, into the biases of the
 * contractions that read them; the packer computes the product offline:
 *     Σ_k (x[k] + v[k]) w[n, k] + b[n]  ->  Σ_k x[k] w[n, k] + b'[n]
 *     b'[n] = b[n] + Σ_k v[k] w[n, k]
 * with w as it is rounded; v itself is not rounded to bytes any more.  What is left of the norm are
 * products, whose factors may be moved behind the sums (defer_norm_factors.c).
 * Only where all readers are quantized contractions that add a bias of their own: so no vector is
 * loaded that was not before, and a head without bias stays as it is.
 * Needs: fused kernels, no rolled layers.
 * Guarantees: no vector is added to what quantized contractions with biases alone read.
 * Quantizing: b' has the error of the rounded w.
 * Ends: it visits every kernel once. */
#include "quantize/quantize.h"
#include "quantize/quantize_passes.h"

/* An elementwise kernel with the result x + v. */
struct bias_source {
	struct op *op;
	int vector;      /* operand v */
	int rest;        /* node x */
	int64_t numbers; /* of v */
};

/* A contraction that reads the result. */
struct bias_consumer {
	struct op *op;
	int bias; /* operand b */
	struct value *weight;
	struct value *folded_bias; /* b' */
	struct quantized from;     /* how the packer makes b' */
};

/* Uses of operand `operand`, or of other leaves of that kind, in the body. */
static int node_uses(const struct body *body, enum node_kind kind, int operand)
{
	int uses = 0;
	for (int n = 0; n < body->count; n++)
		for (int a = 0; a < body_arguments(&body->node[n]); a++) {
			const struct node *argument = &body->node[body->node[n].argument[a]];
			uses += argument->kind == kind &&
			        (kind != NODE_OPERAND || argument->integer == operand);
		}
	return uses;
}

/* Do the loops walk v exactly as they walk the last dim of the result? */
static bool lies_as_rows(const struct kernel *kernel, const struct access *access, int64_t numbers)
{
	bool rows = access_is_plain(access) && !access->offset && !kernel->result.offset;
	for (int l = 0; rows && l < kernel->loops; l++) {
		int64_t stride = kernel->result.stride[l];
		int64_t extent = kernel->loop[l].extent;
		bool inside = stride * extent <= numbers && stride == access->stride[l];
		bool outside = stride % numbers == 0 && !access->stride[l];
		rows = extent == 1 || inside || outside;
	}
	return rows;
}

/* Is the kernel an x + v with a weight v that it reads once? */
static bool match_bias_source(const struct quantizer *q, struct op *op, struct bias_source *before)
{
	const struct body *update = &op->kernel->update;
	const struct node *last = &update->node[update->result];
	for (int a = 0; last->kind == NODE_OP && last->code == OP_ADDF && a < 2; a++) {
		const struct node *leaf = &update->node[last->argument[a]];
		int vector = (int)leaf->integer;
		if (leaf->kind != NODE_OPERAND || !is_weight(q, op->operand[vector]) ||
		        node_uses(update, NODE_OPERAND, vector) != 1)
			continue;
		*before = (struct bias_source){ op, vector, last->argument[1 - a],
			type_elements(op->operand[vector]->type) };
		return update->node[before->rest].kind == NODE_OP &&
		        lies_as_rows(op->kernel, &op->kernel->operand[vector], before->numbers);
	}
	return false;
}

/* The operand b that is added to the sum and used for nothing else; -1: none. */
static int own_bias(const struct quantizer *q, const struct op *op)
{
	const struct body *post = &op->kernel->post;
	if (node_uses(post, NODE_ACCUMULATOR, 0) != 1)
		return -1;
	for (int n = 0; n < post->count; n++) {
		const struct node *sum = &post->node[n];
		for (int a = 0; sum->kind == NODE_OP && sum->code == OP_ADDF && a < 2; a++) {
			const struct node *accumulator = &post->node[sum->argument[a]];
			const struct node *leaf = &post->node[sum->argument[1 - a]];
			if (accumulator->kind == NODE_ACCUMULATOR && leaf->kind == NODE_OPERAND &&
			        is_weight(q, op->operand[leaf->integer]) &&
			        node_uses(post, NODE_OPERAND, (int)leaf->integer) == 1)
				return (int)leaf->integer;
		}
	}
	return -1;
}

/* Is there one number of the bias for each row of the weight, walked alike? */
static bool walks_bias(const struct contraction *c, int axis, int bias, int64_t pitch)
{
	const struct kernel *kernel = c->op->kernel;
	const struct access *own = &kernel->operand[bias];
	const struct access *weight = &kernel->operand[c->w];
	bool walks = access_is_plain(own) && own->offset * pitch == weight->offset &&
	        type_elements(c->op->operand[bias]->type) ==
	                c->op->operand[c->w]->type->shape[1 - axis];
	for (int l = 0; walks && l < kernel->loops; l++)
		walks = kernel->loop[l].reduction || own->stride[l] * pitch == weight->stride[l];
	return walks;
}

/* Describes the weight to the packer as [outputs][groups][numbers of a group]; the last group may
 * be short. */
static void order_rows(struct quantizer *q, const struct contraction *c, int axis,
        const int64_t pitch[2], struct quantized *from)
{
	struct arena *arena = q->module->arena;
	const struct type *type = c->op->operand[c->w]->type;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, 3);
	int64_t *stride = ARENA_ARRAY(arena, int64_t, 3);
	int64_t inputs = type->shape[axis];
	int64_t group = c->group && c->group < inputs ? c->group : inputs;
	trip[0] = type->shape[1 - axis];
	trip[1] = (inputs + group - 1) / group;
	trip[2] = group;
	stride[0] = pitch[1 - axis];
	stride[1] = pitch[axis] * group;
	stride[2] = pitch[axis];
	from->bits = c->bits;
	from->axis = axis;
	from->group = group;
	from->shared = c->row_scale ? trip[1] : 1;
	from->from = (struct segment){
		.dims = 3, .trip = trip, .stride = stride, .host_bytes = 4, .image_bytes = 4
	};
	if (inputs % group) {
		int64_t *limit = ARENA_ARRAY(arena, int64_t, 4);
		limit[1] = group;
		limit[2] = 1;
		limit[3] = inputs;
		from->from.condition = limit;
		from->from.conditions = 1;
	}
}

/* Is `reader`, by its operand `through`, a contraction whose bias can take in v? */
static bool match_bias_consumer(struct quantizer *q, const struct bias_source *before,
        struct op *reader, int through, struct bias_consumer *consumer)
{
	struct contraction c;
	if (reader->code != OP_KERNEL || !contraction_match(q, reader, &c) ||
	        !contraction_bits(q, &c) || c.x != through)
		return false;
	const struct type *type = reader->operand[c.w]->type;
	int axis = contraction_axis(&c);
	int bias = own_bias(q, reader);
	if (axis < 0 || bias < 0 || type->rank != 2 || type->shape[axis] != before->numbers)
		return false;
	if (c.digits != 1 || c.digit[0].x != 1 ||
	        reader->kernel->operand[c.x].offset % before->numbers)
		return false;
	const int64_t pitch[2] = { type->shape[1], 1 };
	for (int t = 0; t < c.tokens; t++)
		if (reader->kernel->operand[c.x].stride[c.token[t]] % before->numbers)
			return false;
	contraction_scheme(q, &c);
	*consumer = (struct bias_consumer){ .op = reader,
		.bias = bias,
		.weight = reader->operand[c.w],
		.from = from_weight(q, reader->operand[c.w]) };
	consumer->from.has_zeros = c.zeros;
	order_rows(q, &c, axis, pitch, &consumer->from);
	const struct value *own = reader->operand[bias];
	const struct value *vector = before->op->operand[before->vector];
	consumer->from.folded_bias = (struct folded_bias){
		function_argument_attr(q->main, own->index, KEY_STREAM_NAME)->text,
		function_argument_attr(q->main, vector->index, KEY_STREAM_NAME)->text, own->type,
		vector->type
	};
	return walks_bias(&c, axis, bias, pitch[1 - axis]);
}

/* The argument b' of consumer `at`: contractions with parts of one weight and bias share it. */
static struct value *folded_bias_of(
        struct quantizer *q, const struct bias_consumer *consumer, int at)
{
	const struct value *own = consumer[at].op->operand[consumer[at].bias];
	for (int i = 0; i < at; i++)
		if (consumer[i].weight == consumer[at].weight &&
		        consumer[i].op->operand[consumer[i].bias] == own)
			return consumer[i].folded_bias;
	return add_weight(q, &consumer[at].from, "bias", own->type);
}

/* Changes the biases of all readers, if all are such contractions. */
static bool fold_norm_bias(struct quantizer *q, const struct bias_source *before)
{
	const struct value *result = before->op->result[0];
	VEC(struct bias_consumer) consumer = { 0 };
	int uses = 0;
	for (struct op *op = before->op->next; op; op = op->next)
		for (int j = 0; j < op->operands; j++) {
			struct bias_consumer reader;
			if (op->operand[j] != result)
				continue;
			if (!match_bias_consumer(q, before, op, j, &reader))
				return false;
			uses++;
			VEC_PUSH(q->module->arena, &consumer, reader);
		}
	if (!uses || uses != result->uses)
		return false;
	for (size_t i = 0; i < consumer.count; i++)
		consumer.data[i].folded_bias = folded_bias_of(q, consumer.data, (int)i);
	for (size_t i = 0; i < consumer.count; i++)
		consumer.data[i].op->operand[consumer.data[i].bias] = consumer.data[i].folded_bias;
	return true;
}

bool fold_norm_biases(struct pass_context *context, struct module *module)
{
	struct quantizer q;
	if (!context->quant || !context->quant->weights)
		return true;
	if (!quantizer_begin(&q, context, module))
		return false;
	struct block *block = q.main->region[0];
	ir_count_uses(block);
	for (struct op *op = block->first; op; op = op->next) {
		struct bias_source before;
		if (op->code != OP_KERNEL || kernel_has_reduction(op->kernel) ||
		        op->kernel->type != type_float(module, 32) ||
		        !match_bias_source(&q, op, &before) || !fold_norm_bias(&q, &before))
			continue;
		op->kernel->update.result = before.rest;
		kernel_tidy(module, op);
	}
	quantizer_end(&q);
	return true;
}
