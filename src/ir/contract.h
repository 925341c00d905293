/* stream.contract: one phase of a contraction unit.
 *     y[n] = Σ_g (float)(Σ_k x[g, k] * w[n, g, k]) * (s[g] * s'[n, g])        sums over k in i32, over g in f32 in index order, from 0
 * Operands: x, s, then at stream level in a rolled layer the layer's counter, then the weights and as many scales (one of each a layer, else one).
 * The weight's number (n, g, k) lies at (g * outputs + n) * size + k, its scale at g * outputs + n. */
#ifndef STC_CONTRACT_H
#define STC_CONTRACT_H
#include "ir/ir.h"

struct contract {
	int64_t groups, size, outputs;    /* extents of g, k and n */
	int layers;               /* weights to choose from; 0: one, for all */
	struct value *layer;      /* NULL where layers is 0 */
	struct value *const *weight, *const *scale;        /* [layers or 1] tensors */
};

/* false: the operands do not fit together. */
bool contract_of(const struct op *op, struct contract *contract);
#endif
