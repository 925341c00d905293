/* Sums of products of narrow integers, several rows of which run at once: what stream.dot forms (ir/dot.h). */
#ifndef STC_PRODUCTS_H
#define STC_PRODUCTS_H
#include "ir/dot.h"
#include "ir/kernel.h"

struct products {
	int common, own;          /* nodes of the update: the factor that rows have in common, or lanes, and the one that each has for itself */
	struct dot dot;           /* of two rows; of all with `across` */
	int64_t dots;             /* so many make all sums */
};

/* row, lane: the loops that run at once, the inner one being the lanes'; rows, lanes: how much of them.  tree: the lanes are a reduction; else the rows are.  false: it has another form. */
bool find_products(const struct kernel *kernel, int row, int lane, int64_t rows, int64_t lanes, bool tree, struct products *products);
#endif
