/* Where the elements of each tensor value come from while streams are made (memory, a stream, or
 * one stream per layer), and what follows from that for the schedules of kernels. */
#ifndef STC_TENSOR_SOURCES_H
#define STC_TENSOR_SOURCES_H
#include "ir/contract.h"
#include "itensor/element_sequence.h"
#include "options/pass_context.h"
#include "schedule/port_order.h"
#include "schedule/kernel_schedule.h"

#define NON_ENGINE_PORTS 2 /* memory ports that are not PEs', about */
/* least bytes of the converter that a drain order replaces: below that, the second loop nest over
 * the sums starts too late to pay */
#define DRAIN_ORDER_MIN_BYTES 4096

enum tensor_source_kind { SOURCE_NONE, SOURCE_MEMORY, SOURCE_STREAM, SOURCE_LAYER_MUX };

/* Where the elements of a tensor value come from. */
struct tensor_source {
	enum tensor_source_kind kind;
	const struct type *tensor;
	struct value *stream; /* SOURCE_STREAM: the stream that carries it */
	int count;            /* SOURCE_MEMORY: 1, or the number of layers */
	struct value *
	        *argument; /* SOURCE_MEMORY: arguments or constants of main, or of the new main */
	bool layered;      /* SOURCE_MEMORY: selected by the layer counter */
	/* SOURCE_LAYER_MUX: [count] streams from outside, of which each layer reads one */
	struct tensor_source **choice;
	int layers;     /* SOURCE_LAYER_MUX */
	int64_t *table; /* SOURCE_LAYER_MUX: [layers] which stream each layer reads */
	bool ordered;   /* SOURCE_MEMORY: a state, in row-major order */
	/* SOURCE_MEMORY: an input of the launch, which is read completely because its loader also
	 * reads run-time counts */
	bool is_launch_input;
	const struct attr *dims; /* SOURCE_MEMORY: stream.dims, or NULL */
	/* SOURCE_MEMORY, ordered: number of equal parts, each read by readers of its own; 1: it is
	 * not partitioned; 0: no kernel reads it */
	int64_t kv_partitions;
	/* SOURCE_MEMORY, ordered: bits of the widest word that a reader wants and that several
	 * memory ports together deliver; 0: one port */
	int64_t bits;
	bool stored, read; /* stored: it is a result of main; read: kernels read it */
	bool row;          /* it is stored as a row of a state */
	/* choose_loop_orders: 1 + the kernel that produces it; 1 + its row among the values; 0:
	 * none */
	int kernel, order;
};

/* Sets the source of every value of main as its `data`. made: the main that is being made, whose
 * arguments are those of main and then its constants, instead of which memory has these; NULL:
 * memory has those of main itself. */
void find_tensor_sources(struct module *module, const struct block *made);
/* A source of that kind for the value, which keeps what is marked already. */
struct tensor_source *new_tensor_source(
        struct module *module, struct value *value, enum tensor_source_kind kind);
bool is_tensor_constant(const struct op *op);
/* The results of main to which a carried stack of layers is stored, as rows of a state or as they
 * are: one per layer. If a layer is stored several times, the one after `skip` others; NULL: there
 * is none. */
const struct attr *stack_results(
        struct module *module, const struct op *loop, int carried, bool rows, int skip);
struct tensor_source *tensor_source_of(const struct value *value);
/* What the loop yields for a carried value or for a result of the loop; else the value itself. */
const struct value *loop_yield_of(const struct value *value);
/* Is the carried value a stack in which a rolled layer collects its results? */
bool loop_collects(const struct op *loop, int carried);
/* Is it read as a whole after the loop, as a stream?  Else results of main store its rows. */
bool loop_streams_stack(const struct op *loop, int carried);
enum operand_location *operand_locations(struct arena *arena, const struct op *kernel);
bool is_only_stored(const struct op *kernel);
/* Order in which the engine produces the result of a contraction. */
struct order order_of_contract(struct module *module, const struct op *op);
/* Order in which the engine reads groups of an operand, or their scales. */
struct order order_of_group_operand(struct module *module, const struct op *op, int operand);
/* Is a tensor in memory, of which `elements` are needed and `once` are distinct, read once and
 * cached on chip? */
bool is_cached_on_chip(double elements, double once);
/* The row-major order of a tensor in words of at most `bits`; dims: stream.dims, or NULL. */
const struct type *natural_order_to(
        struct module *module, const struct type *tensor, const struct attr *dims, int64_t bits);
/* The same in words of at most a memory port, whose lanes divide the last dimension. */
const struct type *natural_order(struct module *module, const struct type *tensor);
/* Do all the bits that a layer reads of states fit the bundle of small operands, beside these? */
bool states_share_weight_port(const struct platform *platform, const struct module *module,
        const struct op *main, int64_t bits);
const struct type *stream_tensor(const struct value *stream);
/* Lanes of the words in which the engine can deliver a result. */
int64_t contract_result_lanes(
        struct module *module, const struct contract *contract, const struct type *tensor);
/* The first `count` of `wide` columns of an affine map, and its constants. */
int64_t *narrowed_rows(struct arena *arena, int results, const int64_t *rows, int wide, int count);
/* Bits of the engine's weights that a layer reads; layer: the block is a layer. */
int64_t weights_bits(const struct block *block, bool layer);
#endif
