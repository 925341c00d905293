/* The choice of loop orders: what choose_loop_orders.c builds, loop_order_options.c fills and
 * loop_order_search.c searches. */
#ifndef STC_ORDERS_H
#define STC_ORDERS_H
#include "base/memo.h"
#include "schedule/port_order.h"

#define LOOP_ORDER_DIGITS 7  /* of a kernel's loops, cut: 5040 permutations */
#define LOOP_ORDER_SPILLS 64 /* counted at most */
/* the lag of a reader that needs the whole tensor first */
#define LOOP_ORDER_WHOLE (INT64_C(1) << 20)

/* One schedule of a kernel. */
struct loop_order_option {
	struct schedule schedule;
	int result; /* its order, a row of what is written */
	/* [operands] rows of what is wanted; -1: laid out freely in memory */
	int *operand;
	/* [operands]: the part of the operand that it takes before its first result, of
	 * LOOP_ORDER_WHOLE */
	int64_t *lag;
	int64_t accumulators; /* bytes held because a reduction is not innermost */
	/* all sums until the last term: they can be given in any order (drain_order.h) */
	bool holds_sums;
};

struct loop_order_list {
	VEC(struct order) order;
};

struct loop_order_reader {
	int kernel, operand; /* kernel -1: the order is fixed, `operand` is its row */
};

/* A tensor that kernels hand on, or that memory holds in an order of its own. */
struct loop_order_buffer { /* of a converter */
	struct order_buffer needed;
	int64_t delayed_part; /* the part of the value, of LOOP_ORDER_WHOLE */
};

struct loop_order_value {
	int64_t elements, bytes; /* bytes: of one element */
	int writer;              /* kernel; -1: the order is fixed */
	int fixed;               /* the row of that order among the written */
	/* converters of one order that it takes: streams that are chosen among */
	int copies;
	bool crossing; /* comes from outside the layer: always through a buffer */
	bool streams;  /* not from memory: its readers may have to wait for each other */
	bool stored;   /* in any order, each element once */
	int64_t lanes, lane_stride; /* of its maker's words */
	VEC(struct loop_order_reader) reader;
	struct loop_order_list written, wanted;
	struct arena *arena; /* of the buffers: */
	/* [written, then wanted][wanted], rows and they themselves filled when first asked for:
	 * NULL or blocks 0 is not yet known */
	struct loop_order_buffer **buffer;
};

struct loop_order_kernel {
	const struct op *op;
	int operands;
	int *source;        /* [operands]: value, or -1 */
	bool *post_operand; /* [operands]: read after the reduction */
	int value;          /* its result */
	/* the same as the next layer has it, and what comes out of the last; -1: it is not
	 * handed on */
	int carried;
	int options;
	struct loop_order_option *option; /* the first is the heuristic's */
};

struct loop_order_buffered {
	int at; /* kernel * ports + operand */
	int64_t bytes;
};

/* What a fork was last looked at with, and what was found.  Most choices that a search prices
 * differ in a kernel or two, so only what comes behind those is looked at again. */
struct loop_order_fork_cache {
	/* [2 * kernels + 1] along the paths, the options chosen and the rows written; the fork's
	 * own row; NULL: it was never looked at */
	int *asked;
	/* [values] how far each is behind the fork; -1: it does not come from there */
	int64_t *lag;
	int *holds_sums;                      /* [kernels] operands that it holds: */
	struct loop_order_buffered *buffered; /* [kernels][ports] */
};

/* A value from which several paths may meet again, and the kernels that they go through until
 * only one value is left of them.  What comes after it needs no look from here: it is ahead by
 * no more than when the paths begin at that value, which is a fork of its own. */
struct loop_order_fork {
	int value, kernels;
	int *kernel; /* [kernels] in order */
	/* [1 + wanted rows of the value] with all its readers; with those that want the row */
	struct loop_order_fork_cache *cache;
};

struct loop_order_graph {
	struct arena *arena;
	int kernels, values;
	int ports;                        /* most operands of a kernel */
	struct loop_order_kernel *kernel; /* makers before readers */
	struct loop_order_value *value;
	int forks;
	struct loop_order_fork *fork;
	/* [values] scratch of loop_order_fifos: the row that is written */
	int *written;
	/* of loop_order_fifos: words held at each operand of each kernel, the lag of the
	 * operands at hand */
	int64_t *scratch;
	/* [values] the same: what is asked of it, or its lag, is no longer what it was; all
	 * false between looks */
	bool *moved;
	/* what loop_order_fifos has found: searches come by the same choices again and again */
	struct memo *known;
	/* so many converters, the largest that can, will go through memory and do not count */
	int spills;
};

struct loop_order_cost {
	int64_t converters, accumulators, fifos, all;
};

/* Where a loop may be cut: in counts of the loop, each a multiple of the one before. */
#define LOOP_ORDER_SPLITS 4
struct loop_order_splits {
	int count;
	int64_t at[LOOP_ORDER_SPLITS];
};

/* [kernels][loops] */
struct loop_order_splits **loop_order_find_splits(
        const struct loop_order_graph *graph, const struct schedule *first);
void loop_order_options(struct loop_order_graph *graph, int kernel, const struct platform *platform,
        const struct schedule *first, const struct loop_order_splits *splits);
/* added if new */
int loop_order_row(struct arena *arena, struct loop_order_list *list, const struct order *order);
/* The kernels' options, the values' buffers and the forks of a graph whose kernels, values and
 * readers are there.  first: the heuristic's plans. */
void loop_order_prepare(struct loop_order_graph *graph, const struct platform *platform,
        const struct schedule *first);
/* of the converter between these rows; 0: none.  What is wanted may be written too: behind what
 * is written */
int64_t loop_order_bytes(const struct loop_order_value *value, int written, int wanted);
int64_t loop_order_converters(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value);
/* the row in which its readers get it */
int loop_order_written(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value);
/* or some number that is not less than `enough` */
int64_t loop_order_fifos(const struct loop_order_graph *graph, const int *choice, int64_t enough);
struct loop_order_cost loop_order_cost(const struct loop_order_graph *graph, const int *choice);
/* Fills choice[kernels], all 0 before; `points` objectives are computed at most.  Deterministic. */
void loop_order_search(const struct loop_order_graph *graph, int64_t points, int *choice);
#endif
