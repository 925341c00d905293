#include "platform/dot_cost.h"

#define FLAG_LUTS 2 /* a field's sign, and the one above: each follows from five bits */

/* Bits that a tree adds a cycle, from terms of so many, and one more for each adder's last
 * carry; it deepens the latency. */
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

/* Four fields, three counts of borrows, and what puts both together. */
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

/* Two fields, a count of borrows, and what gives them back. */
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
	int64_t added = dot->x_per_dsp > 1 ? four_bits(dot, &cost, &add) * dot->pairs
	        : dot->unpacks_products    ? separate_bits(dot, &cost, &add)
	                                   : tree_bits(&cost, &add, dot->lanes, dot->product);
	int64_t flags = 0;
	cost.latency += platform->cost[OP_MULI].latency;
	/* once for all x; the lower bits of the second number are zero: what is added there is
	 * the first one's sign */
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
