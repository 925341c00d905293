/* What is known of a number without its data: for masks, which follow from positions alone, and
 * for what they hide. */
#ifndef STC_HIDDEN_H
#define STC_HIDDEN_H
#include "ir/kernel.h"

enum known {
	KNOWN_NOTHING,        /* it is what it is */
	KNOWN_VARIES,         /* may be another number */
	KNOWN_MINUS_INFINITY, /* minus infinity */
	KNOWN_ZERO,
	KNOWN_ACCUMULATOR, /* the accumulator as it was */
	KNOWN_INTEGER,     /* base + integer */
};

struct abstract_value {
	enum known known;
	int64_t integer;          /* a truth value is 0 or 1 */
	const struct value *base; /* an input of one integer, or NULL */
};

/* At one point of a kernel: its counters, and what is known of its operands and its accumulator. */
struct kernel_point {
	const int64_t *counter;
	const struct abstract_value *operand;
	struct abstract_value sum;
};

bool access_inside(const struct access *access, const int64_t *counter);
int64_t access_address(const struct access *access, int loops, const int64_t *counter);
struct abstract_value known_of_body(struct arena *arena, const struct kernel *kernel,
        const struct body *body, const struct kernel_point *kernel_point);
/* One element of a tensor that kernels make of positions. */
struct abstract_value known_of_element(
        struct arena *arena, const struct value *value, int64_t address);
#endif
