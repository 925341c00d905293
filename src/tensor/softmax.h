/* A softmax as it is exported: the maximum of a row of scores, and the exponentials of what they
 * are less than it. */
#ifndef STC_SOFTMAX_H
#define STC_SOFTMAX_H
#include "ir/kernel_edit.h"

/* bytes; --softmax auto: fewer scores than this may wait for their maximum */
#define SOFTMAX_BUFFERED_MOST 8192

struct softmax {
	struct op *op; /* the exponentials: elementwise exp(scores - maxima) */
	struct op *maxima;
	int score; /* its operand; the other one is the maximum */
	int loop;  /* its loop along the row */
};

/* Are these the exponentials of a softmax?  Else false. */
bool softmax_match(struct op *op, struct softmax *softmax);
/* The only reduction loop of several points; -1: there is none, or another one. */
int softmax_row_loop(const struct kernel *kernel);
#endif
