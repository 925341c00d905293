/* The order in which a port's elements flow, in closed form: what a search over loop orders
 * compares millions of times. */
#ifndef STC_ORDER_H
#define STC_ORDER_H
#include "schedule/kernel_schedule.h"
#include "itensor/element_sequence.h"

#define ORDER_LOOPS 24

struct order_loop {
	int64_t trip, stride; /* addresses of the tensor; 0: sent again */
};

/* Loops over linear addresses, outermost first, lanes as the innermost one; in normal form: no
 * trip of 1, neighbours that continue each other merged. */
struct order {
	int64_t offset;
	int loops;
	struct order_loop loop[ORDER_LOOPS];
};

/* A re-ordering buffer between two orders, by the rule of walk_reorder (itensor/itensor.h). */
struct order_buffer {
	/* of all halves; 0: the orders are the same, or one is a part of the other */
	int64_t elements;
	int64_t blocks; /* how often it is filled in one pass over the tensor */
};

/* Of operand j, or of the result (-1).  The plan has fewer than ORDER_LOOPS parts. */
struct order order_of_port(
        const struct kernel *kernel, const struct schedule *schedule, int operand);
struct order order_of_tensor(const struct type *tensor); /* row-major */
struct order order_of_loops(int loops, const struct order_loop *loop);
/* without lanes; fewer than ORDER_LOOPS dims */
struct order order_of_sequence(const struct sequence *flat);
bool order_same(const struct order *left, const struct order *right);
/* Is it an order of words of `lanes` elements, `stride` addresses apart, and not one word after
 * the other several times over? */
bool order_of_words(const struct order *order, int64_t lanes, int64_t stride);
/* `whole`: elements of the tensor, held where one side leaves some out. */
struct order_buffer order_buffer(const struct order *from, const struct order *to, int64_t whole);
#endif
