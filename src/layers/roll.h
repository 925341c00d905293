/* Inside roll_layers: a run of equal layers, and how their operands relate. */
#ifndef STC_ROLL_H
#define STC_ROLL_H
#include "ir/kernel.h"

enum edge_kind { EDGE_INSIDE, EDGE_SAME, EDGE_CARRIED, EDGE_LAYER_SELECT };

struct edge { /* one operand of one kernel of the layer */
	enum edge_kind kind;
	int position; /* CARRIED: kernel of the layer before; PICKED: number in picks */
};

struct layer_select {
	struct value **value; /* [layers], of one type, all from before the layers */
};

struct roll {
	struct module *module;
	int kernels; /* of main, in program order */
	struct op **kernel;
	int *shape; /* [kernels]: equal numbers, equal signatures */
	int start, period, layers;
	struct edge **edge; /* [period][operands] */
	VEC(struct layer_select) layer_selects;
	VEC(int) carried;          /* positions whose value goes to the next layer */
	VEC(struct value *) first; /* what the first layer takes instead */
	/* [period]: read after the layers, other than the last one's carried value */
	bool *stacked;
	int cost; /* carried values and stacks */
};

static inline struct op *roll_op(const struct roll *roll, int layer, int position)
{
	return roll->kernel[roll->start + layer * roll->period + position];
}

bool roll_classify(struct roll *roll); /* false: the layers' operands do not line up */
/* the first layer's loops, and the states that are picked, are bound for all layers */
void roll_sliding_window(struct roll *roll);
void roll_build(struct roll *roll); /* replaces the kernels by one scf.for */
#endif
