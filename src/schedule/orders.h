/* The choice of loop orders: what choose_orders.c builds, orders_options.c fills and orders_search.c searches. */
#ifndef STC_ORDERS_H
#define STC_ORDERS_H
#include "base/memo.h"
#include "schedule/order.h"

#define ORDERS_DIGITS 7                   /* of a kernel's loops, cut: 5040 permutations */
#define ORDERS_CUTS 64                    /* counted at most */
#define ORDERS_WHOLE (INT64_C(1) << 20)   /* the lag of a reader that needs the whole tensor first */

/* One schedule of a kernel. */
struct orders_option {
	struct plan plan;
	int result;               /* its order, a row of what is written */
	int *operand;             /* [operands] rows of what is wanted; -1: laid out freely in memory */
	int64_t *lag;             /* [operands]: the part of the operand that it takes before its first result, of ORDERS_WHOLE */
	int64_t accumulators;     /* bytes held because a reduction is not innermost */
	bool holds;               /* all sums until the last term: they can be given in any order (given.h) */
};

struct orders_list {
	VEC(struct order) order;
};

struct orders_reader {
	int kernel, operand;      /* kernel -1: the order is fixed, `operand` is its row */
};

/* A tensor that kernels hand on, or that memory holds in an order of its own. */
struct orders_buffer {        /* of a converter */
	struct order_buffer needed;
	int64_t held_back;        /* the part of the value, of ORDERS_WHOLE */
};

struct orders_value {
	int64_t elements, bytes;  /* bytes: of one element */
	int writer;               /* kernel; -1: the order is fixed */
	int fixed;                /* the row of that order among the written */
	int copies;               /* converters of one order that it takes: streams that are chosen among */
	bool crossing;            /* comes from outside the layer: always through a buffer */
	bool streams;             /* not from memory: its readers may have to wait for each other */
	bool stored;              /* in any order, each element once */
	int64_t lanes, lane_stride;       /* of its maker's words */
	VEC(struct orders_reader) reader;
	struct orders_list written, wanted;
	struct arena *arena;      /* of the buffers: */
	struct orders_buffer **buffer;    /* [written, then wanted][wanted], rows and they themselves filled when first asked for: NULL or blocks 0 is not yet known */
};

struct orders_kernel {
	const struct op *op;
	int operands;
	int *source;              /* [operands]: value, or -1 */
	bool *late;               /* [operands]: read after the reduction */
	int value;                /* its result */
	int carried;              /* the same as the next layer has it, and what comes out of the last; -1: it is not handed on */
	int options;
	struct orders_option *option;     /* the first is the heuristic's */
};

struct orders_held {
	int at;                   /* kernel * ports + operand */
	int64_t bytes;
};

/* What a fork was last looked at with, and what was found.  Most choices that a search prices differ in a kernel or two, so only what comes behind those is looked at again. */
struct orders_look {
	int *asked;               /* [2 * kernels + 1] along the paths, the options chosen and the rows written; the fork's own row; NULL: it was never looked at */
	int64_t *lag;             /* [values] how far each is behind the fork; -1: it does not come from there */
	int *holds;               /* [kernels] operands that it holds: */
	struct orders_held *held; /* [kernels][ports] */
};

/* A value from which several paths may meet again, and the kernels that they go through until only one value is left of them.  What comes after it needs no
 * look from here: it is ahead by no more than when the paths begin at that value, which is a fork of its own. */
struct orders_fork {
	int value, kernels;
	int *kernel;              /* [kernels] in order */
	struct orders_look *look; /* [1 + wanted rows of the value] with all its readers; with those that want the row */
};

struct orders_graph {
	struct arena *arena;
	int kernels, values;
	int ports;                /* most operands of a kernel */
	struct orders_kernel *kernel;     /* makers before readers */
	struct orders_value *value;
	int forks;
	struct orders_fork *fork;
	int *written;             /* [values] scratch of orders_fifos: the row that is written */
	int64_t *scratch;         /* of orders_fifos: words held at each operand of each kernel, the lag of the operands at hand */
	bool *moved;              /* [values] the same: what is asked of it, or its lag, is no longer what it was; all false between looks */
	struct memo *known;       /* what orders_fifos has found: searches come by the same choices again and again */
	int cuts;                 /* so many converters, the largest that can, will go through memory and do not count */
};

struct orders_cost {
	int64_t converters, accumulators, fifos, all;
};

/* Where a loop may be cut: in counts of the loop, each a multiple of the one before. */
#define ORDERS_SPLITS 4
struct orders_splits {
	int count;
	int64_t at[ORDERS_SPLITS];
};

struct orders_splits **orders_find_splits(const struct orders_graph *graph, const struct plan *first);     /* [kernels][loops] */
void orders_options(struct orders_graph *graph, int kernel, const struct platform *platform, const struct plan *first, const struct orders_splits *splits);
int orders_row(struct arena *arena, struct orders_list *list, const struct order *order);  /* added if new */
/* The kernels' options, the values' buffers and the forks of a graph whose kernels, values and readers are there.  first: the heuristic's plans. */
void orders_prepare(struct orders_graph *graph, const struct platform *platform, const struct plan *first);
int64_t orders_bytes(const struct orders_value *value, int written, int wanted);          /* of the converter between these rows; 0: none.  What is wanted may be written too: behind what is written */
int64_t orders_converters(const struct orders_graph *graph, const int *choice, const struct orders_value *value);
int orders_written(const struct orders_graph *graph, const int *choice, const struct orders_value *value);       /* the row in which its readers get it */
int64_t orders_fifos(const struct orders_graph *graph, const int *choice, int64_t enough);       /* or some number that is not less than `enough` */
struct orders_cost orders_cost(const struct orders_graph *graph, const int *choice);
/* Fills choice[kernels], all 0 before; `points` objectives are computed at most.  Deterministic. */
void orders_search(const struct orders_graph *graph, int64_t points, int *choice);
#endif
