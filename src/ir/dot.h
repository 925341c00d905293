/* stream.dot: integer dot products whose multiplications are packed into shared DSP multipliers.
 *
 *     y[j * words + i] = Σ_k x_j[k] * w_i[k]          in i32
 *
 * for one or two words w of one type and one word x, or with two w an even number of words x of one
 * type (attribute `input_words`). With the attribute `columns` = m there is one word x of n lanes
 * and one word w of n rows of m numbers: y[j] = Σ_k x[k] * w[k * m + j]; two neighboring columns
 * share a multiplier, as if they were w_0 and w_1.
 *
 * Let m = bits of x + bits of w - 2. A product lies in (-2^m, 2^m], a sum of n of them in (-2^k,
 * 2^k] with k = m + ⌈log2 n⌉. There are three packings:
 *
 * - Two products, summed packed: (w_0 + w_1 * 2^offset) * x with offset = k + 1, so that k + 1 bits
 *   hold the first sum. The packed products are summed as they are and the sum is split once, at
 *   the end.
 * - Two products, split first (`unpacks_products`), where such packed words exceed the multiplier:
 *   offset = bits of x + bits of w. The lower bits of a product are the first product with its
 *   sign, the upper bits are the second, minus one where the first is negative. The number of
 *   negative first products is counted and added once to the second sum.
 * - Four products, for pairs of x (x_per_dsp = 2): (w_0 + w_1 * 2^offset) * (x_0 + x_1 *
 *   2^x_offset) with x_offset = m and offset = 2 m + 2. The second x of a pair must arrive
 *   corrected, minus one where the first is negative (engine/dsp_operand_correction.c); joining it
 *   to the lower bits of the first then takes no adder per multiplier. No x may be the minimum of
 *   its type, so that products lie in (-2^m, 2^m). Fields are m bits wide and lack the sign of
 *   their product: it follows from the signs of the factors, and there is none where a factor is 0.
 *   A negative field borrows one from the field above it; the borrows are counted and added once
 *   per sum. */
#ifndef STC_DOT_H
#define STC_DOT_H
#include "ir/ir.h"

#define DOT_WIDE 27 /* bits of the wide and narrow input of a DSP48E2 multiplier */
#define DOT_NARROW 18

struct dot {
	int words;     /* words w: 1 or 2 */
	int x_per_dsp; /* words x that share a multiplier: 1, or 2 if there are two w */
	int pairs;     /* groups of x_per_dsp words x */
	int64_t lanes;
	int x_bits, w_bits; /* bits of an element of x, and of w */
	int offset;         /* bit position of w_1 in the packed w; 0: one word w */
	int x_offset;       /* bit position of x_1 in the packed x; 0: one x */
	/* packed products are split before they are summed */
	bool unpacks_products;
	int64_t columns;                  /* columns of w; 0: no columns form */
	int packed_w_bits, packed_x_bits; /* bits of the packed operands */
	/* bits of a (packed) product and of the sum over all lanes; where products are split before
	 * they are summed, of one of them */
	int product, sum;
};

/* Number of words x. */
static inline int dot_x_count(const struct dot *dot)
{
	return dot->x_per_dsp * dot->pairs;
}

/* Plans the packing from words, x_per_dsp, lanes, x_bits and w_bits, and sets all other fields.
 * false: it does not fit the multiplier, or a sum does not fit 32 bits. */
bool dot_plan(struct dot *dot);
/* Adder trees add three numbers at a time: a LUT adds a bit of three numbers as well as of two, and
 * Vitis HLS groups such additions ("TernaryAdder"). dot_tree_bits: bits of a partial sum of `each`
 * of the `terms` terms of `bits` bits. */
#define DOT_TREE 3
int dot_tree_bits(int bits, int64_t each, int64_t terms);
/* Reads the op. false: operands or result do not match. */
bool dot_of(const struct op *op, struct dot *dot);
#endif
