/* Moves a factor that all terms of a contraction share from its activations to its sums:
 *     Σ_k (r x[k]) w[n, k]  ->  r Σ_k x[k] w[n, k]
 * The 1/rms of a norm is known only when the whole vector has been read; without it activations
 * are rounded as they arrive and the contraction starts at once.  Rounding commutes with it: the
 * scale of a group is r times as large, and x / s the same but for its last bits.
 * One token: its sums are multiplied.  Several tokens, enough for tiles: sums would need a number
 * per token, so the activation scales are multiplied (quantize_activation.c); until then the
 * epilogue does it, and the attribute deferred_factor marks it.  That is done where the factor
 * follows two dependent reductions, a mean and a variance: the second one then overlaps with the
 * rounding.
 * Only where the factor is the result of a reduction and quantized contractions alone read the
 * product.
 * Needs: fused kernels, no rolled layers.
 * Guarantees: what quantized contractions read has no such factor.
 * Reassociating.
 * Ends: it visits every kernel once. */
#include "ir/workload.h"
#include "quantize/quantize.h"
#include "quantize/quantize_passes.h"

struct factor {
	struct op *op;    /* the elementwise kernel that multiplies by it */
	int operand;      /* the factor */
	int product;      /* node of the update that multiplies by it */
	bool into_scales; /* of several tokens: into their scales; else behind the sums of one */
};

static int times_used(const struct body *body, int node)
{
	int times = node == body->result;
	for (int n = 0; n < body->count; n++)
		for (int a = 0; a < body_arguments(&body->node[n]); a++)
			times += body->node[n].argument[a] == node;
	return times;
}

/* The node of that operand among the factors of `node`; -1: none.  *product: the node that
 * multiplies by it. */
static int find_leaf(const struct body *body, int node, int operand, int *product)
{
	const struct node *at = &body->node[node];
	if (at->kind == NODE_OPERAND)
		return at->integer == operand ? node : -1;
	if (at->kind != NODE_OP || at->code != OP_MULF || times_used(body, node) != 1)
		return -1;
	int found = -1;
	for (int a = 0; a < 2 && found < 0; a++) {
		found = find_leaf(body, at->argument[a], operand, product);
		if (found == at->argument[a])
			*product = node;
	}
	return found;
}

/* Is the operand, the result of a reduction, a factor of the kernel's result? */
static bool match_factor(struct op *op, int operand, struct factor *factor)
{
	const struct body *update = &op->kernel->update;
	const struct op *def = op->operand[operand]->def;
	*factor = (struct factor){ .op = op, .operand = operand, .product = -1 };
	if (!def || def->code != OP_KERNEL || !kernel_has_reduction(def->kernel) ||
	        !access_is_plain(&op->kernel->operand[operand]))
		return false;
	int leaf = find_leaf(update, update->result, operand, &factor->product);
	return leaf >= 0 && factor->product >= 0 && times_used(update, leaf) == 1;
}

/* Does this reader of the product, by its operand `through`, allow the factor to be moved?
 * *access: how the reader's loops walk the factor then. */
static bool reader_allows(struct quantizer *q, const struct factor *factor, struct op *reader,
        int through, struct access *access)
{
	struct contraction c;
	if (reader->code != OP_KERNEL || !contraction_match(q, reader, &c) ||
	        !contraction_bits(q, &c) || c.x != through)
		return false;
	contraction_scheme(q, &c);
	int64_t tokens = contraction_tokens(&c);
	if (!factor->into_scales && tokens > 1)
		return false;
	if (factor->into_scales &&
	        (tokens <= FEW_TOKENS || c.digits > 1 || !contraction_fits_engine(q, &c)))
		return false;
	return access_compose(
	        q->module, factor->op->kernel, factor->operand, reader->kernel, c.x, access);
}

/* Removes the multiplication by the factor. */
static void leave_out(struct module *module, const struct factor *factor)
{
	struct body *update = &factor->op->kernel->update;
	const struct node *product = &update->node[factor->product];
	bool first = update->node[product->argument[0]].kind == NODE_OPERAND &&
	        update->node[product->argument[0]].integer == factor->operand;
	int other = product->argument[first ? 1 : 0];
	for (int n = 0; n < update->count; n++)
		for (int a = 0; a < body_arguments(&update->node[n]); a++)
			if (update->node[n].argument[a] == factor->product)
				update->node[n].argument[a] = other;
	update->result = update->result == factor->product ? other : update->result;
	kernel_tidy(module, factor->op);
}

/* Moves the factor if all readers allow it. */
static bool defer_norm_factor(struct quantizer *q, const struct factor *factor)
{
	const struct value *result = factor->op->result[0];
	struct value *by = factor->op->operand[factor->operand];
	VEC(struct op *) readers = { 0 };
	VEC(struct access) accesses = { 0 };
	int uses = 0;
	for (struct op *op = factor->op->next; op; op = op->next)
		for (int j = 0; j < op->operands; j++) {
			struct access access;
			if (op->operand[j] != result)
				continue;
			if (!reader_allows(q, factor, op, j, &access))
				return false;
			uses++;
			VEC_PUSH(q->module->arena, &readers, op);
			VEC_PUSH(q->module->arena, &accesses, access);
		}
	if (!uses || uses != result->uses)
		return false;
	for (size_t i = 0; i < readers.count; i++) {
		kernel_join_sum(q->module, readers.data[i], OP_MULF, by, accesses.data[i]);
		if (factor->into_scales)
			attr_set(q->module, readers.data[i], KEY_DEFERRED_FACTOR,
			        attr_unit(q->module));
	}
	leave_out(q->module, factor);
	return true;
}

/* Moves one factor of a kernel at most: that renumbers its operands. */
static void defer_one_factor(struct quantizer *q, struct op *op)
{
	struct factor factor;
	for (int j = 0; j < op->operands; j++) {
		if (!match_factor(op, j, &factor))
			continue;
		if (defer_norm_factor(q, &factor))
			return;
		factor.into_scales = true;
		if (kernel_mean_of(op->operand[j]->def) && defer_norm_factor(q, &factor))
			return;
	}
}

/* The node of the post body that multiplies the sum by the last operand; -1: none. */
static int product_with_last(const struct op *op)
{
	const struct body *post = &op->kernel->post;
	for (int n = 0; n < post->count; n++) {
		const struct node *product = &post->node[n];
		if (product->kind != NODE_OP || product->code != OP_MULF)
			continue;
		const struct node *by = &post->node[product->argument[1]];
		if (post->node[product->argument[0]].kind == NODE_ACCUMULATOR &&
		        by->kind == NODE_OPERAND && by->integer == op->operands - 1)
			return n;
	}
	return -1;
}

void take_deferred_factor(struct quantizer *q, struct contraction *c)
{
	struct op *op = c->op;
	struct body *post = &op->kernel->post;
	int last = op->operands - 1;
	int product = attr_get(op, KEY_DEFERRED_FACTOR) ? product_with_last(op) : -1;
	if (product < 0)
		return;
	c->factor = op->operand[last];
	c->factor_access = op->kernel->operand[last];
	post->node[product] = (struct node){ .kind = NODE_ACCUMULATOR, .type = op->kernel->type };
	if (post->result == product)
		*post = (struct body){ 0 };
	else
		body_remove_dead(q->module, post);
	op_set_operands(q->module, op, last, op->operand);
	attr_set(q->module, op, KEY_DEFERRED_FACTOR, NULL);
}

bool defer_norm_factors(struct pass_context *context, struct module *module)
{
	struct quantizer q;
	if (!context->quant || !context->quant->weights)
		return true;
	if (!quantizer_begin(&q, context, module))
		return false;
	struct block *block = q.main->region[0];
	ir_count_uses(block);
	for (struct op *op = block->first; op; op = op->next)
		if (op->code == OP_KERNEL && !kernel_has_reduction(op->kernel) &&
		        op->kernel->type == type_float(module, 32))
			defer_one_factor(&q, op);
	quantizer_end(&q);
	return true;
}
