/* Where the elements of a tensor value come from while streams are made, and what follows from
 * that for the schedules of kernels. */
#ifndef STC_SOURCES_H
#define STC_SOURCES_H
#include "ir/contract.h"
#include "itensor/element_sequence.h"
#include "options/pass_context.h"
#include "schedule/port_order.h"
#include "schedule/kernel_schedule.h"

#define NON_ENGINE_PORTS 2 /* memory ports that are no slice's, about */
/* of converters: for less, another nest over the sums takes too long to begin */
#define DRAIN_ORDER_MIN_BYTES 4096

enum tensor_source_kind { SOURCE_NONE, SOURCE_MEMORY, SOURCE_STREAM, SOURCE_LAYER_MUX };

/* Where the elements of a tensor value come from. */
struct tensor_source {
	enum tensor_source_kind kind;
	const struct type *tensor;
	struct value *stream;    /* SOURCE_STREAM: the stream that carries it */
	int count;               /* SOURCE_MEMORY: 1, or one argument a layer */
	struct value **argument; /* SOURCE_MEMORY: arguments of the new main */
	bool layered;            /* SOURCE_MEMORY: chosen by the layer counter */
	/* SOURCE_LAYER_MUX: [count] streams from outside, one of them a layer */
	struct tensor_source **choice;
	int layers;     /* SOURCE_LAYER_MUX */
	int64_t *table; /* SOURCE_LAYER_MUX: [layers] the choice of each layer */
	bool ordered;   /* SOURCE_MEMORY: a state, in its natural order */
	/* SOURCE_MEMORY: an input of the launch: all of it is read, since its loader brings
	 * run-time counts too */
	bool is_launch_input;
	const struct attr *dims; /* SOURCE_MEMORY: stream.dims, or NULL */
	/* SOURCE_MEMORY, ordered: equal parts that its readers want, one each; 1: all of it; 0:
	 * no kernel reads it */
	int64_t kv_partitions;
	/* SOURCE_MEMORY, ordered: of the widest word that a reader wants, and that memory ports
	 * side by side may bring; 0: of one port */
	int64_t bits;
	bool stored, read; /* who uses the tensor: results of main; kernels */
	bool row;          /* it is stored as a row of a state */
	/* choose_loop_orders: 1 + the kernel that makes it; 1 + its row among the values; 0:
	 * none */
	int kernel, order;
};

/* How wide a kernel may be; decided for all kernels together before any is planned. */
struct parallelism {
	int64_t lanes; /* most lanes */
	int bulk;      /* operand whose stream has memory ports of its own, or -1 */
	int ports;     /* how many */
};

struct streams {
	struct pass_context *context;
	struct module *module;
	struct op *function;                   /* the new main */
	struct block *block;                   /* being filled */
	struct value *layer;                   /* counter of the rolled layer around, or NULL */
	const struct block *body;              /* of the old main */
	const struct op *results;              /* the old return */
	const struct parallelism *parallelism; /* of the kernels, by result id */
	const struct schedule *schedule;
	int64_t tiles; /* of tokens, that the kernel at hand walks outermost; else 0 */
	/* orders that hold least where every edge goes through memory that can, rather than
	 * least in all */
	bool assume_spilled;
};

struct tensor_source *tensor_source_of(const struct value *value);
/* what is yielded into a carried value, or comes out of the loop as its result; else itself */
const struct value *loop_yield_of(const struct value *value);
/* sets value->id of each kernel's result to its row; NULL after a diagnostic */
struct parallelism *choose_parallelism(struct streams *streams, const struct block *block);
/* a plan for the kernel of each row */
struct schedule *choose_loop_orders(
        struct streams *streams, const struct block *block, const struct parallelism *parallelism);
enum operand_location *operand_locations(struct arena *arena, const struct op *kernel);
bool is_only_stored(const struct op *kernel);
/* in which its sums come */
struct order order_of_contract(const struct streams *streams, const struct op *op);
/* in which it takes groups, or their scales */
struct order order_of_group_operand(
        const struct streams *streams, const struct op *op, int operand);
/* of a tensor in memory that is taken more than once: is it read once, and kept? */
bool is_cached_on_chip(double elements, double once);
/* dims: stream.dims, or NULL; bits: most of a word */
const struct type *natural_order_to(
        struct module *module, const struct type *tensor, const struct attr *dims, int64_t bits);
/* row-major, words as wide as divides the last dim, at most a memory port */
const struct type *natural_order(struct module *module, const struct type *tensor);
/* Do so many bits that a layer reads of states all travel with small operands? */
bool states_share_weight_port(const struct streams *streams, const struct op *main, int64_t bits);
const struct type *stream_tensor(const struct value *stream);
/* words of results that the slices can give in turns */
int64_t contract_result_lanes(
        const struct streams *streams, const struct contract *contract, const struct type *tensor);
/* of an affine map: the first `count` of `wide` columns, and the constants */
int64_t *narrowed_rows(struct arena *arena, int results, const int64_t *rows, int wide, int count);
/* of what a layer reads of a unit's weights; layer: the block is one */
int64_t weights_bits(const struct block *block, bool layer);
#endif
