/* Matches a softmax as it is exported: the maximum of a row of scores, and the exponentials
 * exp(score - maximum). */
#ifndef STC_SOFTMAX_H
#define STC_SOFTMAX_H
#include "ir/kernel_edit.h"

/* Bytes of scores that may be buffered until their maximum is known (--softmax auto). */
#define SOFTMAX_BUFFERED_MOST 8192

struct softmax {
	struct op *op;     /* the exponentials: elementwise exp(scores - maxima) */
	struct op *maxima; /* the maximum over each row */
	int score;         /* operand of op; the other one is the maximum */
	int loop;          /* loop of op along the row */
};

/* Is op the exponentials of a softmax? */
bool softmax_match(struct op *op, struct softmax *softmax);
/* The only reduction loop of several points; -1: there is none, or another one. */
int softmax_row_loop(const struct kernel *kernel);
#endif
