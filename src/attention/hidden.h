/* What is known of a number without its data: for masks, which follow from positions alone, and for what they hide. */
#ifndef STC_HIDDEN_H
#define STC_HIDDEN_H
#include "ir/kernel.h"

enum known {
	KNOWN_NOTHING,            /* it is what it is */
	KNOWN_FREE,               /* may be another number */
	KNOWN_LOW,                /* minus infinity */
	KNOWN_ZERO,
	KNOWN_SUM,                /* the accumulator as it was */
	KNOWN_INTEGER,            /* base + integer */
};

struct number {
	enum known known;
	int64_t integer;          /* a truth value is 0 or 1 */
	const struct value *base; /* an input of one integer, or NULL */
};

/* At one point of a kernel: its counters, and what is known of its operands and its accumulator. */
struct point {
	const int64_t *counter;
	const struct number *operand;
	struct number sum;
};

bool access_inside(const struct access *access, const int64_t *counter);
int64_t access_address(const struct access *access, int loops, const int64_t *counter);
struct number hidden_body(struct arena *arena, const struct kernel *kernel, const struct body *body, const struct point *point);
/* One element of a tensor that kernels make of positions. */
struct number hidden_element(struct arena *arena, const struct value *value, int64_t address);
#endif
