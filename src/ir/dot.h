/* stream.dot: y[j * words + i] = Σ_k x_j[k] * w_i[k] in i32, for one or two words w of one type,
 * and for one word x of one type, or an even number of them (attribute `input_words`: how many)
 * if there are two w. With two w, each multiplier makes both products: (w_0 + w_1 * 2^offset) *
 * x, summed as it is and taken apart once, at the end.  Products are in (-2^m, 2^m] with m =
 * bits of x + bits of w - 2, their sums over n lanes in (-2^k, 2^k] with k = m + ⌈log2 n⌉; so k
 * + 1 bits tell the first sum, and offset = k + 1. Where joined words are too wide so, offset =
 * bits of x + bits of w: the lower bits of a product are the first one, with its sign, the upper
 * ones the second, less one where the first is negative; so each product is taken apart, and
 * what the second ones lack is counted and given back once (`apart`).
 * `columns` = m: one word x and one w of m times as many lanes, n rows of m numbers: y[j] = Σ_k
 * x[k] * w[k * m + j], for any m; two neighbours share a multiplier, as if w_0 and w_1 were
 * columns. With two of both it makes all four: (w_0 + w_1 * 2^offset) * (x_0 + x_1 * 2^beside),
 * where beside = m and offset = 2 m + 2.  The second x of such a pair comes `lent`: less one
 * where the first is negative.  So joining it to the lower bits of the first takes no adder, of
 * which there would be one for each multiplier.  No x may be the least number of its type then:
 * products are in (-2^m, 2^m).  Fields that lie m bits apart overlap by their sign: of x_0 * w_0
 * and x_0 * w_1 only m bits are in the field, and the sign follows from the factors' signs, or
 * there is none where a factor is 0.  A negative field borrows from the one above it, which is
 * given back, all of a sum's at once. */
#ifndef STC_DOT_H
#define STC_DOT_H
#include "ir/ir.h"

#define DOT_WIDE 27 /* bits of the ports of a DSP48E2's multiplier */
#define DOT_NARROW 18

struct dot {
	int words;     /* w: 1 or 2 */
	int x_per_dsp; /* x that share a multiplier: 1, or 2 if there are two w */
	int pairs;     /* of such x; one where there is one x */
	int64_t lanes;
	int x_bits, w_bits; /* bits of a number of x, and of w */
	int offset;         /* 0: one word */
	int x_offset;       /* 0: one x */
	/* products of two words are taken apart before they are summed */
	bool unpacks_products;
	int64_t columns;                  /* columns of w; 0: words */
	int packed_w_bits, packed_x_bits; /* bits of the joined w, and of the joined x */
	/* of a product, and of the sum of all; with two x or apart, of one of the four or two */
	int product, sum;
};

/* x of which each has a sum with each w. */
static inline int dot_x_count(const struct dot *dot)
{
	return dot->x_per_dsp * dot->pairs;
}

/* May so many words share multipliers?  false: not with sums that stay apart. */
bool dot_plan(struct dot *dot, int words, int x_per_dsp, int64_t lanes, int x_bits, int w_bits);
/* Sums are formed three at a time: a LUT adds a bit of three numbers where it adds one of two,
 * and the vendor's scheduler groups such additions ("TernaryAdder"). Bits of a sum at a level of
 * the tree, each of so many terms of `bits`, of which there are `terms` in all. */
#define DOT_TREE 3
int dot_tree_bits(int bits, int64_t each, int64_t terms);
/* false: the operands or the result do not fit together. */
bool dot_of(const struct op *op, struct dot *dot);
#endif
