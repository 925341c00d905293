/* Evaluates kernels without data: masks follow from positions alone, and so does what they hide.
 * Each number is abstracted to one of the kinds below. */
#ifndef STC_MASK_ANALYSIS_H
#define STC_MASK_ANALYSIS_H
#include "ir/kernel.h"

enum known {
	KNOWN_NOTHING,        /* any number, but the same whatever later tiles have */
	KNOWN_VARIES,         /* may change with the numbers of later tiles */
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
