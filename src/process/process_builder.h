/* Builds hardware-level processes: functions with channels and memory ports as arguments, whose
 * bodies are constants followed by nests of counted loops. */
#ifndef STC_PROCESS_H
#define STC_PROCESS_H
#include "options/pass_context.h"
#include "itensor/element_sequence.h"

/* the hardware-level main under construction */
struct design {
	struct pass_context *context;
	struct module *module;
	struct op *function;
	struct block *block;     /* its body: channels, then calls */
	const struct op *source; /* the stream-level main */
	/* iterations of the rolled layer around the op that is being lowered; 0: outside */
	int64_t layers;
	/* dynamic bound around the op that is being lowered: 1 in the last launch of a chunked
	 * prompt, else 0; NULL: it runs in every launch (mark_last_chunk_only.c) */
	const struct run_time_trip *last_chunk;
	struct op *last_channel; /* the last channel so far, as channels precede calls */
	int serial;              /* number for unique names */
	VEC(const struct attr *) port_attrs; /* a dictionary per argument of main */
	VEC(const struct attr *) buffers;    /* for stream.buffers */
	/* buffer of a state -> struct value *, the FIFO that says its reads are done */
	struct map reads_done;
	struct map states;   /* state name -> struct state * */
	struct map controls; /* symbol -> struct control * */
	/* buffers that the shared loader reads, each from beginning to end and ahead of use */
	struct map shared;
	/* buffer of a state with interleaved ports -> struct state * */
	struct map interleaved_states;
};

/* a launch scalar that bounds loops, or what layers with a sliding window use of it */
struct control {
	const char *symbol;
	struct control *windowed; /* list: the extents of sliding windows that derive from it */
	struct value *in;         /* FIFO that brings it */
	const struct type *word;
	VEC(struct value *) fifo; /* one per process that needs it */
};

/* Where a state lies: in parts (partitions of its outermost extent, or interleaved words); the
 * words of a part lie in the buffers of `ports` ports, which are read in parallel. */
struct state {
	int parts, ports;
	const char **buffer; /* [parts * ports] */
	int64_t offset;      /* the state's first element in each of them */
	int64_t elements;    /* elements in each of them */
	int64_t layer;       /* elements of one layer */
	int64_t lanes;       /* lanes of a port's word */
	/* consecutive words (of all ports) are in consecutive parts, in rotation; else each part
	 * has an equal share of the outermost extent */
	bool port_interleave;
};

/* Does a word's position decide which port has it? */
static inline bool state_is_interleaved(const struct state *state)
{
	return state->ports > 1 || state->port_interleave;
}

struct process {
	struct design *design;
	struct module *module;
	struct op *function;
	struct block *entry, *block; /* block: of the innermost open loop */
	VEC(struct value *) channel; /* main's values, in argument order */
	VEC(const struct attr *) argument_attrs;
	struct value *layer;   /* counter of the layer loop, or NULL */
	int64_t layers_before; /* layers before the first one of that loop */
	int rolled;            /* layer loops so far */
	struct map constants;
};

/* Sets what depends on the op that is lowered next; NULL: none. */
void design_begin(struct design *design, const struct op *op);
/* A process that runs as often as the op that is being lowered. */
struct process process_new(struct design *design, const char *name);
/* Makes main's channel or port an argument of this process; each call makes a new argument. */
struct value *process_argument(struct process *process, struct value *channel, const char *name);
/* closes all loops, adds the function and its call */
void process_finish(struct process *process);

/* opens a loop; returns its counter */
struct value *process_loop(struct process *process, int64_t trips);
/* run_time: its count in this launch times trips / most; NULL: `trips` */
struct value *process_loop_run_time(
        struct process *process, int64_t trips, const struct run_time_trip *run_time);
struct value *process_loop_value(struct process *process, struct value *trips);
/* sets a unit attribute of the innermost open loop */
void process_mark(struct process *process, enum attr_key key);
/* opens the loop around what only the last launch does; returns how many it opened */
int process_last_chunk(struct process *process);
/* opens one iteration per word of the stream; returns the loops opened */
int process_word_loops(struct process *process, const struct type *stream);
/* the same, the innermost loop pipelined */
int process_word_pipeline(struct process *process, const struct type *stream);
/* `times` the number of iterations in this launch */
struct value *process_trip_count(
        struct process *process, const struct run_time_trip *trip, int64_t times);
/* Tokens of this launch, with the padding of its last tile; no token: a number below 1. */
struct value *process_token_count(struct process *process, const struct launch_tokens *rows);
/* The position of a counter that skips the rows before a sliding window; without one,
 * the counter. */
struct value *process_window_index(struct process *process, const struct run_time_trip *trip,
        int64_t times, struct value *counter);
/* pipelines the innermost open loop */
void process_pipeline(struct process *process, int interval);
void process_close(struct process *process, int loops);
/* opens the layer loop, if there is one */
void process_layers(struct process *process);
/* Opens a loop per trip > 1 (at least one loop in all), the innermost pipelined; counter[i] is NULL
 * where trip is 1. Returns the loops opened. */
int process_nest(struct process *process, int dims, const int64_t *trip, int interval,
        struct value **counter);
/* the bounds of a loop nest, from outside to inside */
struct loop_bounds {
	int loops;
	const int64_t *trip; /* [loops] iterations, at most */
	/* [loops] dynamic bounds; NULL: all are fixed */
	const struct run_time_trip *const *run_time;
};
/* the same, with dynamic bounds */
int process_nest_run_time(
        struct process *process, struct loop_bounds bounds, int interval, struct value **counter);

struct value *make_op(struct process *p, enum op_code code, const struct type *type, int operands,
        struct value *const *operand);
struct value *make_index(struct process *p, int64_t number);
struct value *make_bool(struct process *p, bool value);
/* a constant, scalar or word */
struct value *make_number(struct process *p, double number, const struct type *type);
/* Of an integer type; a double has not all numbers of 64 bits. */
struct value *make_integer(struct process *p, int64_t number, const struct type *type);
struct value *make_equal(struct process *p, struct value *index, int64_t number);
/* a constant of its own: other loops of the datapath may have another number in its place */
struct value *make_unshared_index(struct process *p, int64_t number);
struct value *make_equal_values(struct process *p, struct value *index, struct value *other);
/* left != right */
struct value *make_not_equal(struct process *p, struct value *index, struct value *other);
struct value *make_below(struct process *p, struct value *index, struct value *other);
struct value *make_compare(struct process *p, int predicate, struct value *index, int64_t number);
/* NULL operands are true */
struct value *make_and(struct process *p, struct value *left, struct value *right);
/* NULL: the constant true */
struct value *make_condition(struct process *p, struct value *condition);
struct value *make_select(
        struct process *p, struct value *when, struct value *yes, struct value *no);
/* offset + Σ stride[i] counter[i]; NULL counters count 0 */
struct value *make_address(struct process *p, int dims, struct value *const *counter,
        const int64_t *stride, int64_t offset);
/* OP_DIVSI or OP_REMSI */
struct value *make_divided(struct process *p, enum op_code code, struct value *number, int64_t by);
/* an index in 0 … limit - 1: numbers from the host never address beyond a buffer */
struct value *make_clamped(struct process *p, struct value *number, int64_t limit);
/* when NULL: always */
struct value *make_pop(struct process *p, struct value *when, struct value *fifo);
void make_push(struct process *p, struct value *when, struct value *word, struct value *fifo);
struct value *make_array(struct process *p, const char *name, int64_t size,
        const struct type *element, int64_t partition);
struct value *make_load(struct process *p, struct value *array, struct value *index);
void make_store(struct process *p, struct value *word, struct value *array, struct value *index);
void make_write(struct process *p, struct value *when, struct value *word, struct value *port,
        struct value *address);

/* Channels and ports of the design. */
const struct attr *run_time_attr(
        struct module *module, const struct run_time_trip *trip, int64_t times);
struct value *design_fifo(
        struct design *design, const char *name, const struct type *word, int64_t depth);
struct value *design_blocks(
        struct design *design, const char *name, const struct type *block, int64_t depth);
struct value *design_port(struct design *design, const char *name, const struct type *word,
        const char *buffer, bool write);
void design_buffer(struct design *design, const char *name, const struct type *word, int64_t words,
        const struct attr *segments);
/* marks words that come from memory, which are no intermediate of the model */
void design_prefetch(struct design *design, struct value *fifo);
/* the FIFO of a stream-level value */
struct value *stream_fifo(struct design *design, const struct value *stream);
/* the dictionary of a signature entry, from stream.inputs / stream.outputs of the source */
const struct attr *signature_of(const struct design *design, bool output, int index);

/* One function per kind of stream-level op; false after a diagnostic. */
bool lower_loads(struct design *design, struct block *body);
void lower_kernel(struct design *design, const struct op *op);
bool lower_convert(struct design *design, const struct op *op, bool crossing);
bool lower_line_buffer(struct design *design, const struct op *op);
bool lower_buffer(struct design *design, const struct op *op);
void lower_chunk(struct design *design, const struct op *op);
void lower_concat(struct design *design, const struct op *op);
void lower_join(struct design *design, const struct op *op);
void lower_pad_tokens(struct design *design, const struct op *op);
/* Adds processes that drop operands of an op of the last launch in all other launches. */
void lower_last_chunk_gate(struct design *design, const struct op *op);
bool lower_spill(struct design *design, const struct op *op, bool crossing);
void lower_cast(struct design *design, const struct op *op);
void lower_fork(struct design *design, const struct op *op);
void lower_layer_mux(struct design *design, const struct op *op);
void lower_gather(struct design *design, const struct op *op);
bool lower_stores(struct design *design, struct block *body);
/* sets stream.feedback, where an output feeds an input */
void lower_feedback(struct design *design);
bool lower_append_rows(struct design *design, const struct op *store, const struct state *state,
        const struct type *whole);
/* Are the extents above the axis a multiple of `parts`, so that all words of a part precede those
 * of the next? */
bool append_rows_in_partitions(const struct op *store, int axis, int parts);
/* the same for the rows that are written to a state */
bool append_in_partitions(struct design *design, const char *state, int parts);
/* may a launch append several rows to the state? */
bool append_has_rows(struct design *design, const char *state);
bool lower_append(struct design *design, const struct op *store);
/* For a process that appends to a state: append_ports makes its memory ports; append_wait waits
 * until all is read; append_begin does so at the beginning of a layer, and stores the position in
 * the array that it returns. */
struct value **append_ports(struct process *p, const struct state *state, const struct type *word);
void append_wait(struct process *p, const struct state *state, struct value *when);
/* The dynamic extent that is the position of appended rows, which selects one of several ports.
 * NULL: the position comes by FIFO. */
const char *append_extent(struct design *design, const struct op *store, const struct state *state);
/* the array with the position; NULL: `extent` is the position */
struct value *append_begin(
        struct process *p, const struct state *state, const char *extent, struct value *position);
/* the position, clamped below `rows` */
struct value *append_position(
        struct process *p, const char *extent, struct value *position_array, int64_t rows);
/* A word that is appended to a state whose position selects the port. `lanes` may be fewer than the
 * port's. outer: address of the port's word from which the index of the axis counts; inner: words
 * (of `lanes`) from there on. */
struct appended_word {
	struct value *word;
	int64_t lanes;
	struct value *outer, *inner;
};
void append_interleaved(struct process *p, const struct state *state, struct value *const *memory,
        const struct appended_word *appended);
/* Sets the bundles of all ports. engine_port: the first port of the engine's loaders, which are the
 * last ports; the number of ports: there is no engine. */
void bundle_ports(struct design *design, int engine_port);
/* adapters of the ports so far, without those that share the engine's adapters */
int adapters_outside_engine(struct design *design);
/* ports of KV words that are read in parallel, besides those of PEs; *parallel_ports: how many of
 * them are read in the same cycle */
int wide_state_ports(struct design *design, int *parallel_ports);
/* Adapters that keys and values need besides an engine with dynamic tiles whose PEs have `words`
 * words each: a port with more words than that would delay a PE, and with it the engine. */
int state_adapters(struct design *design, int64_t words);
int design_adapters(const struct design *design); /* adapters of all ports */
/* lowers all stream.contract ops */
bool lower_engine(struct design *design, const struct block *body);
void lower_extent(struct design *design, const struct op *op);
void lower_controls(struct design *design); /* after all processes are made */
void lower_layer_feedback(struct design *design, const struct op *loop);
/* A process between two FIFOs of different word widths; `stream`: the type of the wider side. */
void add_cast(struct design *design, const char *name, struct value *from, struct value *to,
        const struct type *stream);
/* packs `words` words in full ones, of which the last need not be filled */
void add_pack(struct design *design, struct value *from, struct value *to, int64_t words);
#endif
