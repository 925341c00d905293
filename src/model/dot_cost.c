#include "model/dot_cost.h"

struct operator_cost dot_cost(const struct platform *platform, const struct dot *dot)
{
	struct operator_cost add = platform->cost[OP_ADDI], cost = {.latency = platform->cost[OP_MULI].latency, .dsp = (int)dot->lanes};
	int64_t added = 0;        /* bits that are added a cycle */
	int bits = dot->product;
	for (int64_t terms = dot->lanes; terms > 1; terms = (terms + 1) / 2) {
		added += terms / 2 * ++bits;
		cost.latency += add.latency;
	}
	if (dot->words > 1) {     /* the lower bits of the second number are zero: what is added there is the first one's sign */
		added += dot->lanes * (dot->own + 1) + dot->sum + dot->offset + 1;
		cost.latency += 2 * add.latency;
	}
	cost.lut = (int)((added * add.lut + 31) / 32);
	cost.ff = (int)((added * add.ff + 31) / 32);
	return cost;
}
