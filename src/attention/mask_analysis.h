/* Abstract interpretation of kernels: a causal mask follows from positions alone, so which numbers
 * it hides can be computed without data. Each number is abstracted to what is known of it. */
#ifndef STC_MASK_ANALYSIS_H
#define STC_MASK_ANALYSIS_H
#include "ir/kernel.h"

enum known {
	KNOWN_NOTHING,        /* any number that does not depend on later token tiles */
	KNOWN_VARIES,         /* any number; it may depend on later token tiles */
	KNOWN_MINUS_INFINITY, /* minus infinity */
	KNOWN_ZERO,
	KNOWN_ACCUMULATOR, /* the accumulator, unchanged */
	KNOWN_INTEGER,     /* base + integer */
};

struct abstract_value {
	enum known known;
	int64_t integer;          /* of KNOWN_INTEGER; a truth value is 0 or 1 */
	const struct value *base; /* an argument of one integer; NULL: 0 */
};

/* One point of a kernel. */
struct kernel_point {
	const int64_t *counter;               /* [loops] */
	const struct abstract_value *operand; /* [operands] */
	struct abstract_value sum;            /* the accumulator */
};

/* Do the guards let the access read at these counters? */
bool access_inside(const struct access *access, const int64_t *counter);
/* Element that is accessed at these counters. */
int64_t access_address(const struct access *access, int loops, const int64_t *counter);
/* The result of the body at a point. */
struct abstract_value known_of_body(struct arena *arena, const struct kernel *kernel,
        const struct body *body, const struct kernel_point *kernel_point);
/* One element of a tensor; kernels that compute it are evaluated. */
struct abstract_value known_of_element(
        struct arena *arena, const struct value *value, int64_t address);
#endif
