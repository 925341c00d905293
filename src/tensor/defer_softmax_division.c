/* Moves the division of a softmax behind the product that it is a factor of.
 * Before: Σ_t (e_t / s) v_t      After: (Σ_t e_t v_t) / s, where s = Σ_t e_t
 * One division is done for each sum instead of one for each e_t, and the e_t need not be buffered
 * until s is known.  Only where e is an exponential and s the sum of the same e: both are positive
 * and e_t / s is at most 1, so neither form overflows where the other does not.
 * Needs: fused kernels.
 * Guarantees: no kernel divides exponentials by their sum if a sum of products alone reads them.
 * Reassociating: the same real number, rounded elsewhere.
 * Ends: each step removes a kernel. */
#include "ir/kernel_edit.h"
#include "tensor/tensor_passes.h"

struct quotient {
	struct op *op;              /* the elementwise kernel that divides */
	int numerator, denominator; /* its operands */
};

static const struct node *result_node(const struct body *body)
{
	return body->count ? &body->node[body->result] : NULL;
}

static bool is_exponential(const struct value *value)
{
	const struct op *def = value->def;
	if (!def || def->code != OP_KERNEL)
		return false;
	const struct node *last =
	        result_node(def->kernel->post.count ? &def->kernel->post : &def->kernel->update);
	return last && last->kind == NODE_OP && last->code == OP_EXP;
}

/* Is `sum` the sum over all of one or several dims of `value`, element by element? */
static bool is_sum_of(const struct value *sum, const struct value *value)
{
	const struct op *def = sum->def;
	int term;
	if (!def || def->code != OP_KERNEL || def->operands != 1 || def->operand[0] != value)
		return false;
	if (def->kernel->post.count || def->kernel->init != 0)
		return false;
	return kernel_combine(def->kernel, &term) == OP_ADDF &&
	        def->kernel->update.node[term].kind == NODE_OPERAND &&
	        !def->kernel->operand[0].guards;
}

/* Is the kernel exponentials over their sum? */
static bool match_quotient(struct op *op, struct quotient *quotient)
{
	const struct kernel *kernel = op->kernel;
	const struct node *last = result_node(&kernel->update);
	if (kernel_has_reduction(kernel) || op->operands != 2)
		return false;
	if (!last || last->kind != NODE_OP || last->code != OP_DIVF)
		return false;
	const struct node *numerator = &kernel->update.node[last->argument[0]];
	const struct node *denominator = &kernel->update.node[last->argument[1]];
	if (numerator->kind != NODE_OPERAND || denominator->kind != NODE_OPERAND ||
	        numerator->integer == denominator->integer)
		return false;
	*quotient = (struct quotient){ op, (int)numerator->integer, (int)denominator->integer };
	return access_is_plain(&kernel->operand[0]) && access_is_plain(&kernel->operand[1]) &&
	        access_same(
	                &kernel->operand[quotient->numerator], &kernel->result, kernel->loops) &&
	        is_exponential(op->operand[quotient->numerator]) &&
	        is_sum_of(op->operand[quotient->denominator], op->operand[quotient->numerator]);
}

/* Is operand j a factor of every term of the product, once? */
static bool is_factor(const struct kernel *kernel, int operand)
{
	int term;
	int times = 0;
	if (kernel_combine(kernel, &term) != OP_ADDF || kernel->init != 0 || kernel->post.count ||
	        !access_is_plain(&kernel->operand[operand]))
		return false;
	const struct node *product = &kernel->update.node[term];
	for (int n = 0; n < kernel->update.count; n++)
		times += kernel->update.node[n].kind == NODE_OPERAND &&
		        kernel->update.node[n].integer == operand;
	if (times != 1 || product->kind != NODE_OP || product->code != OP_MULF)
		return false;
	/* nothing but the product may read it */
	for (int n = 0; n < kernel->update.count; n++) {
		const struct node *node = &kernel->update.node[n];
		for (int a = 0;
		        node->kind == NODE_OP && node != product && a < body_arguments(node); a++)
			if (kernel->update.node[node->argument[a]].kind == NODE_OPERAND &&
			        kernel->update.node[node->argument[a]].integer == operand)
				return false;
	}
	bool left = kernel->update.node[product->argument[0]].kind == NODE_OPERAND &&
	        kernel->update.node[product->argument[0]].integer == operand;
	bool right = kernel->update.node[product->argument[1]].kind == NODE_OPERAND &&
	        kernel->update.node[product->argument[1]].integer == operand;
	return left != right;
}

static void defer_division(struct module *module, const struct quotient *quotient,
        struct op *product, int operand, struct access divisor)
{
	product->operand[operand] = quotient->op->operand[quotient->numerator];
	kernel_join_sum(
	        module, product, OP_DIVF, quotient->op->operand[quotient->denominator], divisor);
	op_remove(quotient->op);
}

static void defer_in_block(struct module *module, struct block *block)
{
	for (struct op *op = block->first, *next; op; op = next) {
		struct quotient quotient;
		struct access divisor;
		int operand = 0;
		next = op->next;
		if (op->code == OP_FOR)
			defer_in_block(module, op->region[0]);
		if (op->code != OP_KERNEL || !match_quotient(op, &quotient))
			continue;
		struct op *product = only_reader(block, op->result[0], &operand);
		if (product && product->kernel->type == op->kernel->type &&
		        is_factor(product->kernel, operand) &&
		        access_compose(module, op->kernel, quotient.denominator, product->kernel,
		                operand, &divisor))
			defer_division(module, &quotient, product, operand, divisor);
	}
}

bool defer_softmax_division(struct pass_context *context, struct module *module)
{
	(void)context;
	ir_count_uses(module_main(module)->region[0]);
	defer_in_block(module, module_main(module)->region[0]);
	return true;
}
