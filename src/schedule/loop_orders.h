/* The joint choice of loop orders. choose_loop_orders.c builds the graph of kernels and tensors,
 * loop_order_splits.c and loop_order_options.c list the options, loop_order_cost.c computes the
 * bytes on chip, and loop_order_search.c searches. */
#ifndef STC_LOOP_ORDERS_H
#define STC_LOOP_ORDERS_H
#include "base/memo.h"
#include "options/pass_context.h"
#include "schedule/port_order.h"

#define LOOP_ORDER_DIGITS 7  /* most loops of a kernel after splitting: 5040 permutations */
#define LOOP_ORDER_SPILLS 64 /* most converters that are counted as spilled */
/* the lag of a reader that needs the whole tensor first */
#define LOOP_ORDER_WHOLE (INT64_C(1) << 20)

/* One possible schedule of a kernel. */
struct loop_order_option {
	struct schedule schedule;
	int result; /* order of its result: index in `written` of the value */
	/* [operands] order of each operand: index in `wanted` of the value; -1: laid out freely in
	 * memory */
	int *operand;
	/* [operands] part of the operand that it reads before its first result, in units of 1 /
	 * LOOP_ORDER_WHOLE */
	int64_t *lag;
	int64_t accumulators; /* bytes of accumulators, because a reduction is not innermost */
	/* it holds all sums until the last term, so that they can be drained in any order
	 * (drain_order.h) */
	bool holds_sums;
};

struct loop_order_list {
	VEC(struct order) order;
};

struct loop_order_reader {
	int kernel, operand; /* kernel -1: a reader with a fixed order, whose index is `operand` */
};

/* A converter between two orders of a value. */
struct loop_order_buffer {
	struct order_buffer needed;
	/* part of the value that it delays, in units of 1 / LOOP_ORDER_WHOLE */
	int64_t delayed_part;
};

/* A tensor that kernels stream, or that memory holds in an order of its own. */
struct loop_order_value {
	int64_t elements, bytes; /* bytes: of one element */
	int writer;              /* kernel that produces it; -1: its order is fixed */
	int fixed;               /* index of that order in `written` */
	/* number of streams that a layer mux chooses among: each converter exists as often */
	int copies;
	bool into_layers; /* it comes from outside the layer, always through a buffer */
	/* it does not come from memory, so its readers may have to wait for each other */
	bool streams;
	bool stored;                /* it is stored: in any order, each element once */
	int64_t lanes, lane_stride; /* of the producer's words */
	VEC(struct loop_order_reader) reader;
	struct loop_order_list written, wanted;
	struct arena *arena; /* allocates the buffers */
	/* [written, then wanted][wanted]: rows and entries are computed when first used; NULL or
	 * blocks 0: not yet */
	struct loop_order_buffer **buffer;
};

struct loop_order_kernel {
	const struct op *op;
	int operands;
	int *source;        /* [operands]: value, or -1 */
	bool *post_operand; /* [operands]: read only after the reduction */
	int value;          /* its result */
	/* the value by which the layer hands its result to the next layer and out of the loop; -1:
	 * it does not */
	int carried;
	int options;
	struct loop_order_option *option; /* the first is the heuristic's */
};

struct loop_order_buffered {
	int at; /* kernel * ports + operand */
	int64_t bytes;
};

/* What was computed for a fork with the last choice. Most choices differ from the last one in a
 * kernel or two, so only what depends on these is computed anew. */
struct loop_order_fork_cache {
	/* [2 * kernels + 1] along the paths, the options and the order indices last used; then that
	 * of the fork itself; NULL: not yet used */
	int *asked;
	/* [values] lag of each behind the fork; -1: it does not depend on the fork */
	int64_t *lag;
	int *holds_sums;                      /* [kernels] number of operands that it buffers */
	struct loop_order_buffered *buffered; /* [kernels][ports] these operands */
};

/* A value with paths that may meet again (reconvergent paths), and the kernels on them until a
 * single value remains. Paths from there on belong to a fork of their own. */
struct loop_order_fork {
	int value, kernels;
	int *kernel; /* [kernels] in program order */
	/* [1 + wanted orders of the value] with all its readers; with those that want the order */
	struct loop_order_fork_cache *cache;
};

struct loop_order_graph {
	struct arena *arena;
	int kernels, values;
	int ports;                        /* most operands of a kernel */
	struct loop_order_kernel *kernel; /* producers before consumers */
	struct loop_order_value *value;
	int forks;
	struct loop_order_fork *fork;
	/* [values] scratch of loop_order_fifos: index of the order that is written */
	int *written;
	/* scratch of loop_order_fifos: bytes buffered at each operand of each kernel, then the lag
	 * of the operands of one kernel */
	int64_t *scratch;
	/* [values] scratch of loop_order_fifos: its order or its lag has changed; all false between
	 * calls */
	bool *moved;
	/* results of loop_order_fifos, because searches repeat choices */
	struct memo *known;
	/* number of converters that will be spilled to memory: the largest possible ones, which do
	 * not count */
	int spills;
};

struct loop_order_cost {
	int64_t converters, accumulators, fifos, all;
};

/* Where a loop may be split: trip counts of the inner part, each a multiple of the one before. */
#define LOOP_ORDER_SPLITS 4
struct loop_order_splits {
	int count;
	int64_t at[LOOP_ORDER_SPLITS];
};

/* Splits of all kernels: [kernels][loops]. */
struct loop_order_splits **loop_order_find_splits(
        const struct loop_order_graph *graph, const struct schedule *first);
void loop_order_options(struct loop_order_graph *graph, int kernel, const struct platform *platform,
        const struct schedule *first, const struct loop_order_splits *splits);
/* Index of an order in the list, to which it is added if it is new. */
int loop_order_row(struct arena *arena, struct loop_order_list *list, const struct order *order);
/* Computes the options of the kernels, the buffers of the values and the forks of a graph that has
 * its kernels, values and readers. first: the heuristic's schedules. */
void loop_order_prepare(struct loop_order_graph *graph, const struct platform *platform,
        const struct schedule *first);
/* Bytes of the converter between two orders of a value; 0: none. `written` counts on into the
 * wanted orders, since a kernel may drain its sums in one of them. */
int64_t loop_order_bytes(const struct loop_order_value *value, int written, int wanted);
int64_t loop_order_converters(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value);
/* Index of the order in which the readers of a value get it. */
int loop_order_written(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value);
/* Bytes buffered where reconvergent paths meet, or some number that is not below `enough`. */
int64_t loop_order_fifos(const struct loop_order_graph *graph, const int *choice, int64_t enough);
struct loop_order_cost loop_order_cost(const struct loop_order_graph *graph, const int *choice);
/* Fills choice[kernels], all 0 before, with the best choice found at the cost of at most `points`
 * evaluations. Deterministic. */
void loop_order_search(const struct loop_order_graph *graph, int64_t points, int *choice);
/* Chooses the loop orders of all kernels and records their schedules (choose_loop_orders.c).
 * spills: how many converters count as spilled to memory. */
void choose_orders(struct pass_context *context, struct module *module, int spills);
#endif
