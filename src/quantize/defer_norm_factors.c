/* A factor that is the same for all that a contraction adds up is multiplied into its sums: Σ_k
 * (r x[k]) w[n, k] = r Σ_k x[k] w[n, k].  A norm's 1/rms is known when the whole vector has
 * come; without it numbers are rounded as they come, and the contraction does not wait.
 * Of rounded numbers as well: the scale of a group is r times as large, and x / s the same but
 * for its last bits. Only where the factor comes of a reduction, and nothing but quantised
 * contractions reads the product.  Of one token the sums are multiplied.  Several tokens' sums
 * are ended one after the other anyway, and would have a number each to wait for: there the
 * scales are (quantize_activation.c), of so many tokens that they come in tiles, and where the
 * factor comes of two reductions one behind the other, a mean and a variance: the second looks
 * at the numbers while they are rounded. */
#include "ir/workload.h"
#include "quantize/quantize.h"

struct factor {
	struct op *op; /* a product, without a reduction */
	int operand;
	int product; /* node of the update that multiplies by it */
};

static int times_used(const struct body *body, int node)
{
	int times = node == body->result;
	for (int n = 0; n < body->count; n++)
		for (int a = 0; a < body_arguments(&body->node[n]); a++)
			times += body->node[n].argument[a] == node;
	return times;
}

/* The leaf of operand j among the factors of `node`; -1: none.  *product: what multiplies by it. */
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

static bool find_factor(struct op *op, int operand, struct factor *factor)
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

/* Does this use of the product, as operand `through`, let the factor go behind the sums, or into
 * the scales of several tokens?  Then where it is found there. */
static bool reads_sums(struct quantizer *q, const struct factor *factor, struct op *reader,
        int through, bool several, struct access *access)
{
	struct contraction c;
	if (reader->code != OP_KERNEL || !contraction_match(q, reader, &c) ||
	        !contraction_bits(q, reader) || c.x != through)
		return false;
	contraction_scheme(q, &c);
	if (several ? contraction_tokens(&c) <= FEW_TOKENS || c.digits > 1 ||
	                        !contraction_fits_engine(q, &c)
	            : contraction_tokens(&c) > 1)
		return false;
	return access_compose(
	        q->module, factor->op->kernel, factor->operand, reader->kernel, c.x, access);
}

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

static bool defer_norm_factor(struct quantizer *q, const struct factor *factor, bool several)
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
			if (!reads_sums(q, factor, op, j, several, &access))
				return false;
			uses++;
			VEC_PUSH(q->module->arena, &readers, op);
			VEC_PUSH(q->module->arena, &accesses, access);
		}
	if (!uses || uses != result->uses)
		return false;
	const struct deferred_factor late = { result, by,
		kernel_clone(q->module, factor->op->kernel, factor->op->operands),
		factor->operand };
	if (several)
		VEC_PUSH(q->module->arena, &q->deferred_factors, late);
	for (size_t i = 0; i < readers.count && !several; i++)
		kernel_join_sum(q->module, readers.data[i], OP_MULF, by, accesses.data[i]);
	leave_out(q->module, factor);
	return true;
}

/* One factor of a kernel: operands are renumbered by it. */
static void sink_one(struct quantizer *q, struct op *op)
{
	struct factor factor;
	for (int j = 0; j < op->operands; j++)
		if (find_factor(op, j, &factor) &&
		        (defer_norm_factor(q, &factor, false) ||
		                (kernel_mean_of(op->operand[j]->def) &&
		                        defer_norm_factor(q, &factor, true))))
			return;
}

void defer_norm_factors(struct quantizer *q)
{
	struct block *block = q->main->region[0];
	ir_count_uses(block);
	for (struct op *op = block->first; op; op = op->next)
		if (op->code == OP_KERNEL && !kernel_has_reduction(op->kernel) &&
		        op->kernel->type == type_float(q->module, 32))
			sink_one(q, op);
}
