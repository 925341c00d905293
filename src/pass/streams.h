/* What the files of make_streams share. */
#ifndef STC_STREAMS_H
#define STC_STREAMS_H
#include "pass/order.h"
#include "pass/pass.h"
#include "pass/schedule.h"
#include "pass/sequence.h"

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
/* Every use of a stream wanted in some type becomes a fifo, a cast or a converter; forks make single readers. */
bool resolve_streams(struct streams *streams, struct block *block);
/* `from` without the words that `type` leaves out; NULL: they are no part of it in its own order. */
struct value *chunk_to(struct module *module, struct op *before, struct value *from, const struct type *tensor, const struct type *type);
bool is_chunk(struct module *module, const struct type *tensor, const struct type *from, const struct type *type);       /* are they? */
/* What a converter to `type` would hold and never send is dropped in front of it: of the outermost loop the turns of which something is wanted; NULL: of all. */
struct value *chunk_wanted(struct module *module, struct op *before, struct value *from, const struct type *tensor, const struct type *type);
bool emit_kernel(struct streams *streams, const struct op *old);
#define PORT_BITS 512         /* of a word of memory */

/* op stands in the new block; what it gives is from now on the result of `old`. */
void append_maker(struct streams *s, const struct op *old, struct op *op);
bool emit_contract(struct streams *s, const struct op *old);
struct value *emit_rows(struct streams *s, struct value *rows, const struct type *tensor, const struct type *type);       /* the same words, but for rows that are not there in either type */
const struct type *all_there(struct module *module, const struct type *stream);
bool emit_fill(struct streams *s, const struct op *old);
struct value *want_filled(struct streams *s, const struct op *fill, const struct turns_there *there, bool later, const struct type *type);   /* rows filled up in those turns alone; later: tile by tile */
struct order order_of_contract(const struct streams *streams, const struct op *op);       /* in which its sums come */
struct order order_of_groups(const struct streams *streams, const struct op *op, int operand);    /* in which it takes groups, or their scales */
bool emit_gather(struct streams *streams, const struct op *old);
struct value *want_stream(struct streams *streams, const struct flow *flow, const struct type *type, int ports);   /* the elements of `flow` in the order of `type` */
bool is_kept(double elements, double once);       /* of a tensor in memory that is taken more than once: is it read once, and kept? */
int64_t shared_load_lanes(const struct type *scalar, bool full);      /* that the loader of operands without ports of their own gives a cycle, where their order has such words */
const struct type *natural_order_to(struct module *module, const struct type *tensor, const struct attr *dims, int64_t bits);   /* dims: stream.dims, or NULL; bits: most of a word */
const struct type *natural_order(struct module *module, const struct type *tensor);       /* row-major, words as wide as divides the last dim, at most a memory port */
int64_t weights_ahead(const struct platform *platform);      /* words of a slice of a unit that its loader reads ahead */
/* Do so many bits that a layer reads of states all travel with small operands? */
bool states_ride(const struct streams *streams, const struct op *main, int64_t bits);
void mark_state_parts(struct streams *streams, const struct op *old);        /* sets flow->parts of states, from the plans */
const struct type *state_order(struct streams *streams, const struct flow *flow, const struct type *wanted);      /* what is loaded of a state for a reader that wants this */
bool kernel_is_gather(const struct op *op);       /* result = one gathered operand, nothing else */
void set_stream_tensor(struct module *module, struct op *op, const struct type *tensor);
const struct type *stream_tensor(const struct value *stream);
#endif
