/* Counts the adder bits of a packed dot product and converts them to LUTs. */
#include "platform/dot_cost.h"

#define FLAG_LUTS 2 /* per field: its sign and its borrow each depend on five bits */

/* Adder bits of a tree over so many terms of `bits` bits, with one for the carry of each adder;
 * raises cost->latency to the tree's. */
static int64_t tree_bits(
        struct operator_cost *cost, const struct operator_cost *add, int64_t terms, int bits)
{
	int64_t added = 0;
	int latency = 0;
	for (int64_t lanes = terms, each = DOT_TREE; lanes > 1;
	        lanes = (lanes + DOT_TREE - 1) / DOT_TREE, each *= DOT_TREE) {
		added += (lanes / DOT_TREE + (lanes % DOT_TREE > 1)) *
		        (dot_tree_bits(bits, each, terms) + 1);
		latency += add->latency;
	}
	cost->latency = latency > cost->latency ? latency : cost->latency;
	return added;
}

/* Four fields, three counts of borrows, and the corrections. */
static int64_t four_bits(
        const struct dot *dot, struct operator_cost *cost, const struct operator_cost *add)
{
	int64_t added = 0;
	for (int field = 0; field < 4; field++)
		added += tree_bits(
		        cost, add, dot->lanes, field % 2 ? dot->product : dot->product - 1);
	for (int count = 0; count < 3; count++)
		added += tree_bits(cost, add, dot->lanes, 1);
	return added + 5 * dot->sum;
}

/* Two fields, a count of borrows, and the correction. */
static int64_t separate_bits(
        const struct dot *dot, struct operator_cost *cost, const struct operator_cost *add)
{
	int64_t added = 0;
	for (int field = 0; field < 2; field++)
		added += tree_bits(cost, add, dot->lanes, dot->product);
	return added + tree_bits(cost, add, dot->lanes, 1) + dot->sum;
}

struct operator_cost dot_cost(const struct platform *platform, const struct dot *dot)
{
	struct operator_cost add = platform->cost[OP_ADDI];
	struct operator_cost cost = { .dsp = (int)dot->lanes };
	int64_t added = 0;
	if (dot->x_per_dsp > 1)
		added = four_bits(dot, &cost, &add) * dot->pairs;
	else if (dot->unpacks_products)
		added = separate_bits(dot, &cost, &add);
	else
		added = tree_bits(&cost, &add, dot->lanes, dot->product);
	int64_t flags = 0;
	cost.latency += platform->cost[OP_MULI].latency;
	/* packing w, once for all x: the low bits of w_1 * 2^offset are zero, so only the sign of
	 * w_0 is added above them */
	if (dot->words > 1) {
		added += dot->lanes * (dot->w_bits + 1);
		cost.latency += 2 * add.latency;
	}
	if (dot->x_per_dsp > 1)
		flags = FLAG_LUTS * dot->lanes * dot->pairs;
	else if (dot->words > 1 && !dot->unpacks_products)
		added += dot->sum + dot->offset + 1;
	int64_t dots = dot->columns ? dot->columns / dot->words : 1;
	cost.dsp *= (int)dots * dot->pairs;
	cost.lut = (int)(dots * ((added * add.lut + 31) / 32 + flags));
	cost.ff = (int)(dots * ((added * add.ff + 31) / 32 + flags));
	return cost;
}
