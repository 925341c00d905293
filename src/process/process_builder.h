/* Building hardware-level processes: a function with channels and memory ports as arguments,
 * constants first, then nests of counted loops. */
#ifndef STC_PROCESS_H
#define STC_PROCESS_H
#include "options/pass_context.h"
#include "itensor/element_sequence.h"

struct design { /* the hardware-level main being made */
	struct pass_context *context;
	struct module *module;
	struct op *function;
	struct block *block;     /* its body: channels, then calls */
	const struct op *source; /* the stream-level main */
	/* trips of the rolled layer around the op being lowered; 0 outside */
	int64_t layers;
	/* around the op being lowered: one turn, or none in a launch that others follow; NULL:
	 * it is done in all (mark_last_chunk_only.c) */
	const struct run_time_trip *last_chunk;
	struct op *last_channel;             /* channels stand before calls */
	int serial;                          /* for names */
	VEC(const struct attr *) port_attrs; /* one dictionary per argument of main */
	VEC(const struct attr *) buffers;    /* stream.buffers */
	/* buffer of a state -> struct value * (fifo that says its reads are done) */
	struct map reads_done;
	struct map states;   /* state name -> struct state * */
	struct map controls; /* symbol -> struct control * */
	/* buffers that the loader of small operands reads, from the beginning to the end and
	 * ahead of their use */
	struct map shared;
	/* buffer of a state whose words are dealt out to one port each -> struct state * */
	struct map interleaved_states;
};

/* a launch scalar that bounds loops, or what of it counts in each layer */
struct control {
	const char *symbol;
	struct control *windowed; /* list: what layers that look back only so far make of it */
	struct value *in;         /* FIFO that brings it */
	const struct type *word;
	VEC(struct value *) fifo; /* one per process that needs it */
};

/* where a state lies: in equal parts, of its outermost extent or of words in turn, and the words
 * of a part in turns in the buffers of as many ports as bring them side by side */
struct state {
	int parts, ports;
	const char **buffer; /* [parts * ports] */
	int64_t offset;      /* of the first element in each of them */
	int64_t elements;    /* in each of them */
	int64_t layer;       /* those of one layer */
	int64_t lanes;       /* of a word of a port */
	/* the next part has the next word of all ports, and the first one follows after the
	 * last; else each part is so much of the outermost extent */
	bool port_interleave;
};

/* Which of its ports has a word depends on where the word lies. */
static inline bool state_is_interleaved(const struct state *state)
{
	return state->ports > 1 || state->port_interleave;
}

struct process {
	struct design *design;
	struct module *module;
	struct op *function;
	struct block *entry, *block; /* block: innermost open */
	VEC(struct value *) channel; /* main's values, in argument order */
	VEC(const struct attr *) argument_attrs;
	struct value *layer;   /* counter of the layer loop, or NULL */
	int64_t layers_before; /* layers in front of those that it counts */
	int rolled;            /* layer loops so far */
	struct map constants;
};

/* the op is lowered now; NULL: none is */
void design_begin(struct design *design, const struct op *op);
/* what is made is done as often as the op */
struct process process_new(struct design *design, const char *name);
/* Main's channel or port as this process sees it; the same value again gives a new argument. */
struct value *process_argument(struct process *process, struct value *channel, const char *name);
/* closes all loops, adds the function and its call */
void process_finish(struct process *process);

/* opens; returns the counter */
struct value *process_loop(struct process *process, int64_t trips);
/* run_time NULL: `trips` times; else trips / most times its count */
struct value *process_loop_run_time(
        struct process *process, int64_t trips, const struct run_time_trip *run_time);
struct value *process_loop_value(struct process *process, struct value *trips);
/* the innermost open loop has it */
void process_mark(struct process *process, enum attr_key key);
/* opens the loop around what only the last launch does; returns the loops */
int process_last_chunk(struct process *process);
/* opens one iteration per word of the stream; returns the loops */
int process_word_loops(struct process *process, const struct type *stream);
/* the same, the innermost pipelined */
int process_word_pipeline(struct process *process, const struct type *stream);
/* `times` the number of trips in this launch */
struct value *process_trip_count(
        struct process *process, const struct run_time_trip *trip, int64_t times);
/* that come in this launch, with those of its last tile that no one asked for; none: a number
 * below 1 */
struct value *process_token_count(struct process *process, const struct launch_tokens *rows);
/* Where a counter stands that jumps over rows that are left out; else the counter. */
struct value *process_window_index(struct process *process, const struct run_time_trip *trip,
        int64_t times, struct value *counter);
/* the innermost open loop is pipelined */
void process_pipeline(struct process *process, int interval);
void process_close(struct process *process, int loops);
/* opens the layer loop where there is one */
void process_layers(struct process *process);
/* Opens one loop per trip > 1 (at least one loop in all), the innermost pipelined; counter[i] is
 * NULL where trip is 1.  Returns the loops opened. */
int process_nest(struct process *process, int dims, const int64_t *trip, int interval,
        struct value **counter);
/* run_time NULL: all fixed */
int process_nest_run_time(struct process *process, int dims, const int64_t *trip,
        const struct run_time_trip *const *run_time, int interval, struct value **counter);

struct value *make_op(struct process *p, enum op_code code, const struct type *type, int operands,
        struct value *const *operand);
struct value *make_index(struct process *p, int64_t number);
struct value *make_bool(struct process *p, bool value);
/* scalar or word */
struct value *make_number(struct process *p, double number, const struct type *type);
struct value *make_equal(struct process *p, struct value *index, int64_t number);
/* a constant of its own: other loops of the datapath may have another number there */
struct value *make_unshared_index(struct process *p, int64_t number);
struct value *make_equal_values(struct process *p, struct value *index, struct value *other);
/* are they not the same? */
struct value *make_not_equal(struct process *p, struct value *index, struct value *other);
struct value *make_below(struct process *p, struct value *index, struct value *other);
struct value *make_compare(struct process *p, int predicate, struct value *index, int64_t number);
/* NULL: true */
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
/* as an index in 0 … limit - 1: numbers from the host never address beyond a buffer */
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
        int segments, const struct attr *const *segment);
/* its words are on their way from memory: no intermediate of the model */
void design_prefetch(struct design *design, struct value *fifo);
/* the FIFO of a stream-level value */
struct value *stream_fifo(struct design *design, const struct value *stream);
/* name and role of the signature entry, from stream.inputs / stream.outputs of the source */
const struct attr *signature_of(const struct design *design, bool output, int index);

/* One per kind of stream-level op. */
bool lower_loads(struct design *design, struct block *body);
void lower_kernel(struct design *design, const struct op *op);
bool lower_convert(struct design *design, const struct op *op, bool crossing);
bool lower_line_buffer(struct design *design, const struct op *op);
bool lower_buffer(struct design *design, const struct op *op);
void lower_chunk(struct design *design, const struct op *op);
void lower_concat(struct design *design, const struct op *op);
void lower_join(struct design *design, const struct op *op);
void lower_pad_tokens(struct design *design, const struct op *op);
/* what it takes of ops that are done in every launch is let go in those that others follow */
void lower_last_chunk_gate(struct design *design, const struct op *op);
bool lower_spill(struct design *design, const struct op *op, bool crossing);
void lower_cast(struct design *design, const struct op *op);
void lower_fork(struct design *design, const struct op *op);
void lower_layer_mux(struct design *design, const struct op *op);
void lower_gather(struct design *design, const struct op *op);
bool lower_stores(struct design *design, struct block *body);
/* stream.feedback, where an output feeds an input */
void lower_feedback(struct design *design);
bool lower_append_rows(struct design *design, const struct op *store, const struct state *state,
        const struct type *whole);
/* do all words of a part of what lies above the axis come before those of the next? */
bool append_rows_in_partitions(const struct op *store, int axis, int parts);
/* the same of what is written to a state */
bool append_in_partitions(struct design *design, const char *state, int parts);
/* may a launch write several rows to it? */
bool append_has_rows(struct design *design, const char *state);
bool lower_append(struct design *design, const struct op *store);
/* Of a process that appends to a state: its memory ports; waits until all is read; the same at
 * the beginning of a layer, and keeps the position in the array that is returned. */
struct value **append_ports(struct process *p, const struct state *state, const struct type *word);
void append_wait(struct process *p, const struct state *state, struct value *when);
/* the run-time extent that says where its rows go, and so to which of several ports; NULL:
 * nothing needs to know */
const char *append_extent(struct design *design, const struct op *store, const struct state *state);
/* the array that keeps the position; NULL: the extent is known */
struct value *append_begin(
        struct process *p, const struct state *state, const char *extent, struct value *position);
/* less than `rows` */
struct value *append_position(
        struct process *p, const char *extent, struct value *position_array, int64_t rows);
/* Ports have the words of a part in turns, and parts perhaps too, so which of them has this word
 * depends on the position.  The store's words, of so many lanes, may be narrower than the
 * ports'.  outer: where the first word of a port is that the index of the axis is counted from;
 * inner: words of the store from there on. */
void append_interleaved(struct process *p, const struct state *state, int64_t lanes,
        struct value *const *memory, struct value *word, struct value *outer, struct value *inner);
/* unit: the first port of a unit's loaders, which are the last; as many as there are ports:
 * there is no unit */
void bundle_ports(struct design *design, int engine_port);
/* that the ports that are there now will be, but for those that ride on a unit's */
int adapters_outside_engine(struct design *design);
/* through which words of states come beside those of slices, several side by side; side: so many */
int wide_state_ports(struct design *design, int *parallel_ports);
/* that keys and values want beside a unit of many tokens that are counted at run time, whose
 * slices have so many words: a port brings all of a state, and where these are more they would
 * hold up a slice and with it the unit */
int state_adapters(struct design *design, int64_t words);
int design_adapters(const struct design *design); /* that its ports are */
/* all stream.contract */
bool lower_engine(struct design *design, const struct block *body);
void lower_extent(struct design *design, const struct op *op);
void lower_controls(struct design *design); /* last: all processes have asked */
void lower_layer_feedback(struct design *design, const struct op *loop);
/* A process between two FIFOs of other word widths; `stream`: the type of the wider side. */
void add_cast(struct design *design, const char *name, struct value *from, struct value *to,
        const struct type *stream);
/* `words` words as full ones, of which the last need not be filled. */
void add_pack(struct design *design, struct value *from, struct value *to, int64_t words);
#endif
