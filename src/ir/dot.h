/* stream.dot: y[i] = Σ_k x[k] * w_i[k] in i32, for one or two words w of one type.
 * With two, each multiplier makes both products: (w_0 + w_1 * 2^offset) * x, summed as it is and taken apart once, at the end.  Products are in (-2^m, 2^m] with m = bits of x + bits of w - 2,
 * their sums over n lanes in (-2^k, 2^k] with k = m + ⌈log2 n⌉; so k + 1 bits tell the first sum, and offset = k + 1. */
#ifndef STC_DOT_H
#define STC_DOT_H
#include "ir/ir.h"

#define DOT_WIDE 27           /* bits of the ports of a DSP48E2's multiplier */
#define DOT_NARROW 18

struct dot {
	int words;                /* w: 1 or 2 */
	int64_t lanes;
	int common, own;          /* bits of a number of x, and of w */
	int offset;               /* 0: one word */
	int joined, product, sum; /* bits of what is multiplied with x, of a product, and of the sum of all */
};

/* May so many words share multipliers?  false: not with sums that stay apart. */
bool dot_plan(struct dot *dot, int words, int64_t lanes, int common, int own);
/* false: the operands or the result do not fit together. */
bool dot_of(const struct op *op, struct dot *dot);
#endif
