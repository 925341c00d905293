/* Finds sums of products of narrow integers that can be packed in pairs into DSPs. */
#include "schedule/dot_products.h"

#define NARROW_FACTOR 8 /* most bits of a factor, so that two products share a multiplier */

static bool depends_on(const struct kernel *kernel, int number, int loop)
{
	const struct node *node = &kernel->update.node[number];
	bool depends = node->kind == NODE_OPERAND && kernel->operand[node->integer].stride[loop];
	if (node->kind != NODE_OP)
		return depends;
	if (node->code == OP_INDEX)
		return node->integer == loop;
	for (int a = 0; a < op_info[node->code].operands; a++)
		depends = depends || depends_on(kernel, node->argument[a], loop);
	return depends;
}

/* The node that is sign-extended to a factor of the product; -1: it is not an extension of a narrow
 * integer. */
static int factor_of(const struct body *body, int extension)
{
	const struct node *node = &body->node[extension];
	if (node->kind != NODE_OP || node->code != OP_EXTSI)
		return -1;
	const struct type *type = body->node[node->argument[0]].type;
	return type->kind == TYPE_INTEGER && type->width > 1 && type->width <= NARROW_FACTOR
	        ? node->argument[0]
	        : -1;
}

bool match_dot_products(const struct kernel *kernel, const struct unrolled_loops *unrolled,
        struct dot_products *dot_products)
{
	int64_t row_unroll = unrolled->row_unroll;
	int64_t lanes = unrolled->lanes;
	/* the parallel loop, which one factor alone depends on, and the loop of the terms */
	int parallel = unrolled->tree ? unrolled->row : unrolled->lane;
	int terms = unrolled->tree ? unrolled->lane : unrolled->row;
	const struct body *body = &kernel->update;
	int term;
	int factor[2];
	if (row_unroll < 2 || row_unroll % 2 || lanes < 2 || kernel->type->kind != TYPE_INTEGER ||
	        kernel->type->width != 32 || kernel_combine(kernel, &term) != OP_ADDI)
		return false;
	const struct node *product = &body->node[term];
	if (product->kind != NODE_OP || product->code != OP_MULI)
		return false;
	for (int a = 0; a < 2; a++) {
		factor[a] = factor_of(body, product->argument[a]);
		if (factor[a] < 0 || !depends_on(kernel, factor[a], terms))
			return false;
	}
	bool varies[2] = { depends_on(kernel, factor[0], parallel),
		depends_on(kernel, factor[1], parallel) };
	if (varies[0] == varies[1])
		return false;
	*dot_products = (struct dot_products){ .common = factor[varies[0]],
		.own = factor[varies[1]],
		.dot_count = unrolled->tree ? row_unroll / 2 : 1 };
	dot_products->dot = (struct dot){ .words = unrolled->tree || lanes % 2 == 0 ? 2 : 1,
		.x_per_dsp = 1,
		.lanes = unrolled->tree ? lanes : row_unroll,
		.x_bits = body->node[dot_products->common].type->width,
		.w_bits = body->node[dot_products->own].type->width };
	if (!dot_plan(&dot_products->dot))
		return false;
	dot_products->dot.columns = unrolled->tree ? 0 : lanes;
	return true;
}
