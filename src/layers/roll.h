/* Inside roll_layers: a run of equal layers, and how their operands relate. */
#ifndef STC_ROLL_H
#define STC_ROLL_H
#include "ir/kernel.h"

/* Where an operand comes from. */
enum edge_kind {
	EDGE_INSIDE,      /* a kernel of the same layer */
	EDGE_SAME,        /* one value for all layers */
	EDGE_CARRIED,     /* a kernel of the layer before */
	EDGE_LAYER_SELECT /* a value for each layer, as weights are */
};

/* One operand of one kernel of the layer. */
struct edge {
	enum edge_kind kind;
	/* INSIDE: position of the kernel; CARRIED, LAYER_SELECT: number in the lists below */
	int position;
};

/* Values of which each layer reads its own. */
struct layer_select {
	struct value **value; /* [layers], of one type, all from before the layers */
};

struct roll {
	struct module *module;
	int kernels;        /* of main */
	struct op **kernel; /* [kernels], in program order */
	int *shape;         /* [kernels]: equal numbers mean equal signatures */
	int start;          /* first kernel of the first layer */
	int period;         /* kernels of a layer */
	int layers;
	struct edge **edge; /* [period][operands] */
	VEC(struct layer_select) layer_selects;
	VEC(int) carried;          /* positions whose value goes to the next layer */
	VEC(struct value *) first; /* what the first layer reads instead */
	/* [period]: the values of all layers are read after the layers, other than as the value
	 * carried out of the last one */
	bool *stacked;
	int cost; /* carried values and stacks */
};

/* The kernel at a position of a layer. */
static inline struct op *roll_op(const struct roll *roll, int layer, int position)
{
	return roll->kernel[roll->start + layer * roll->period + position];
}

/* Sets edge, layer_selects, carried, first, stacked and cost.  false: the operands of the layers do
 * not correspond. */
bool roll_classify(struct roll *roll);
/* Gives the first layer's run-time loops, and the caches of layer selects, symbols that have a
 * value for each layer. */
void roll_sliding_window(struct roll *roll);
/* Replaces the kernels by one scf.for. */
void roll_build(struct roll *roll);
#endif
