/* Recognizes kernels whose update is a sum of products of narrow integers that share a factor, so
 * that two products fit one DSP: they are emitted as stream.dot (ir/dot.h). */
#ifndef STC_DOT_PRODUCTS_H
#define STC_DOT_PRODUCTS_H
#include "ir/dot.h"
#include "ir/kernel.h"

struct dot_products {
	/* nodes of the update: the factor that the rows, or the lanes, have in common, and the one
	 * that differs from row to row */
	int common, own;
	struct dot dot;    /* for two rows; for all of them with `columns` */
	int64_t dot_count; /* number of such dots that form all sums */
};

/* The two innermost loops of a kernel, which are unrolled. */
struct unrolled_loops {
	int row, lane; /* the loops; the lanes are innermost */
	int64_t row_unroll, lanes;
	bool tree; /* the lanes are a reduction; else the rows are */
};

/* Matches the update of a kernel under this unrolling; false: it has another form. */
bool match_dot_products(const struct kernel *kernel, const struct unrolled_loops *unrolled,
        struct dot_products *dot_products);
#endif
