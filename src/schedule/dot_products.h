/* Sums of products of narrow integers, several row_unroll of which run at once: what stream.dot
 * forms (ir/dot.h). */
#ifndef STC_PRODUCTS_H
#define STC_PRODUCTS_H
#include "ir/dot.h"
#include "ir/kernel.h"

struct dot_products {
	/* nodes of the update: the factor that row_unroll have in common, or lanes, and the one
	 * that each has for itself */
	int common, own;
	struct dot dot;    /* of two row_unroll; of all with `columns` */
	int64_t dot_count; /* so many make all sums */
};

/* row, lane: the loops that run at once, the inner one being the lanes'; row_unroll, lanes: how
 * much of them.  tree: the lanes are a reduction; else the row_unroll are.  false: it has
 * another form. */
bool match_dot_products(const struct kernel *kernel, int row, int lane, int64_t row_unroll,
        int64_t lanes, bool tree, struct dot_products *dot_products);
#endif
