/* Where the elements of a tensor value come from while streams are made, and what follows from that for the schedules of kernels. */
#ifndef STC_SOURCES_H
#define STC_SOURCES_H
#include "ir/contract.h"
#include "itensor/sequence.h"
#include "options/pass_context.h"
#include "schedule/order.h"
#include "schedule/schedule.h"

#define BESIDE_SLICES 2       /* memory ports that are no slice's, about */
#define GIVEN_BYTES 4096      /* of converters: for less, another nest over the sums takes too long to begin */

enum flow_kind { FLOW_NONE, FLOW_MEMORY, FLOW_STREAM, FLOW_CHOICE };

/* Where the elements of a tensor value come from. */
struct flow {
	enum flow_kind kind;
	const struct type *tensor;
	struct value *stream;     /* FLOW_STREAM: the stream that carries it */
	int count;                /* FLOW_MEMORY: 1, or one argument a layer */
	struct value **argument;  /* FLOW_MEMORY: arguments of the new main */
	bool layered;             /* FLOW_MEMORY: chosen by the layer counter */
	struct flow **choice;     /* FLOW_CHOICE: [count] streams from outside, one of them a layer */
	int layers;               /* FLOW_CHOICE */
	int64_t *table;           /* FLOW_CHOICE: [layers] the choice of each layer */
	bool ordered;             /* FLOW_MEMORY: a state, in its natural order */
	bool given;               /* FLOW_MEMORY: an input of the launch: all of it is read, since its loader brings run-time counts too */
	const struct attr *dims;  /* FLOW_MEMORY: stream.dims, or NULL */
	int64_t parts;            /* FLOW_MEMORY, ordered: equal parts that its readers want, one each; 1: all of it; 0: no kernel reads it */
	int64_t bits;             /* FLOW_MEMORY, ordered: of the widest word that a reader wants, and that memory ports side by side may bring; 0: of one port */
	bool stored, read;        /* who uses the tensor: results of main; kernels */
	bool row;                 /* it is stored as a row of a state */
	int kernel, order;        /* choose_orders: 1 + the kernel that makes it; 1 + its row among the values; 0: none */
};

/* How wide a kernel may be; decided for all kernels together before any is planned. */
struct width {
	int64_t lanes;            /* most lanes */
	int bulk;                 /* operand whose stream has memory ports of its own, or -1 */
	int ports;                /* how many */
};

struct streams {
	struct pass_context *context;
	struct module *module;
	struct op *function;      /* the new main */
	struct block *block;      /* being filled */
	struct value *layer;      /* counter of the rolled layer around, or NULL */
	const struct block *body; /* of the old main */
	const struct op *results; /* the old return */
	const struct width *width;        /* of the kernels, by result id */
	const struct plan *plan;
	int64_t tiles;            /* of tokens, that the kernel at hand walks outermost; else 0 */
	bool frugal;              /* orders that hold least where every edge goes through memory that can, rather than least in all */
};

struct flow *flow_of(const struct value *value);
const struct value *made_as(const struct value *value);           /* what is yielded into a carried value, or comes out of the loop as its result; else itself */
struct width *choose_widths(struct streams *streams, const struct block *block);          /* sets value->id of each kernel's result to its row; NULL after a diagnostic */
struct plan *choose_orders(struct streams *streams, const struct block *block, const struct width *width);       /* a plan for the kernel of each row */
enum reach *reach_of(struct arena *arena, const struct op *kernel);
bool only_stored(const struct op *kernel);
struct order order_of_contract(const struct streams *streams, const struct op *op);       /* in which its sums come */
struct order order_of_groups(const struct streams *streams, const struct op *op, int operand);    /* in which it takes groups, or their scales */
bool is_kept(double elements, double once);       /* of a tensor in memory that is taken more than once: is it read once, and kept? */
const struct type *natural_order_to(struct module *module, const struct type *tensor, const struct attr *dims, int64_t bits);   /* dims: stream.dims, or NULL; bits: most of a word */
const struct type *natural_order(struct module *module, const struct type *tensor);       /* row-major, words as wide as divides the last dim, at most a memory port */
/* Do so many bits that a layer reads of states all travel with small operands? */
bool states_ride(const struct streams *streams, const struct op *main, int64_t bits);
const struct type *stream_tensor(const struct value *stream);
int64_t contract_result_lanes(const struct streams *streams, const struct contract *contract, const struct type *tensor);      /* words of results that the slices can give in turns */
int64_t *narrowed_rows(struct arena *arena, int results, const int64_t *rows, int wide, int count);       /* of an affine map: the first `count` of `wide` columns, and the constants */
int64_t weights_bits(const struct block *block, bool layer);         /* of what a layer reads of a unit's weights; layer: the block is one */
#endif
