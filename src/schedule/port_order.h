/* The order in which a port's elements flow, in closed form: the search for loop orders compares
 * millions of orders. */
#ifndef STC_PORT_ORDER_H
#define STC_PORT_ORDER_H
#include "schedule/kernel_schedule.h"
#include "itensor/element_sequence.h"

#define ORDER_LOOPS 24

struct order_loop {
	/* stride: in addresses of the tensor; 0: the inner loops are repeated */
	int64_t trip, stride;
};

/* Loops over linear addresses, outermost first, the lanes innermost. Normal form: no trip count of
 * 1, and neighbours that continue each other are merged. */
struct order {
	int64_t offset;
	int loops;
	struct order_loop loop[ORDER_LOOPS];
};

/* The reorder buffer between two orders, by the rule of walk_reorder (itensor/itensor.h). */
struct order_buffer {
	/* in all buffer halves; 0: none, because the orders are equal or one is a part of the
	 * other */
	int64_t elements;
	int64_t blocks; /* how often it is filled in one pass over the tensor */
};

/* Order of operand j, or of the result (-1). The schedule has fewer than ORDER_LOOPS parts. */
struct order order_of_port(
        const struct kernel *kernel, const struct schedule *schedule, int operand);
struct order order_of_tensor(const struct type *tensor); /* row-major */
struct order order_of_loops(int loops, const struct order_loop *loop);
/* without lanes; fewer than ORDER_LOOPS dims */
struct order order_of_sequence(const struct sequence *flat);
bool order_same(const struct order *left, const struct order *right);
/* Does the order consist of words of `lanes` elements, `stride` addresses apart, without an
 * outermost repeat? */
bool order_of_words(const struct order *order, int64_t lanes, int64_t stride);
/* The buffer from one order to the other. whole: elements of the tensor, which are all held if one
 * side leaves some out. */
struct order_buffer order_buffer(const struct order *from, const struct order *to, int64_t whole);
#endif
