/* Shared by the files of the HLS C++ emitter: its state, and how values are spelled. */
#ifndef STC_HLS_H
#define STC_HLS_H
#include "emit/emit.h"
#include "ir/datapath_sharing.h"

#define FIFO_BITS 4096 /* widest word of a FIFO */

/* How a value is written where it is used; value->data while its function is emitted. */
struct spelling {
	/* scalar: an expression; word: an lvalue, or the value of every lane; array, channel,
	 * port: its name */
	const char *text;
	bool atomic; /* text needs no brackets */
	bool splat;  /* a word all of whose lanes are `text` */
	/* a word that exists only inside the open lane loop; `text` is one lane of it */
	bool lanes;
	/* text lacks its sign extension: its only use is a product, which is then made of the
	 * narrow numbers */
	bool factor;
	int lane_uses; /* uses inside the open lane loop */
};

struct names { /* identifiers of a scope */
	struct map taken;
};

struct values { /* each once */
	VEC(struct value *) list;
};

/* Loop nests of a process that share one datapath, emitted as one function; hls_datapath.c. */
struct datapath {
	VEC(struct op *) nests;      /* in order */
	struct nest_columns columns; /* numbers that differ between nests: parameters */
	struct values used;          /* channels and arrays: parameters too */
	const char *name;
	struct text arguments; /* channels and arrays, as in a call */
};

/* A rewinding process, whose pipeline does not drain between nests, is two functions;
 * hls_rewind.c. */
struct rewinding {
	/* names of the function with the loop, and of the one that issues nests */
	const char *function, *counts;
	/* type of an element of the FIFO between them; its name in the dataflow region */
	const char *entry, *queue;
	const char *nests; /* name of the FIFO in both functions */
	struct text arrays;
	bool *inside; /* [arguments] used in nests */
};

struct emitter {
	const struct platform *platform;
	struct module *module;
	struct arena *arena;
	struct text *out;
	struct op *main;
	struct map processes;    /* symbol -> name of its function */
	struct map rewinding_of; /* symbol -> struct rewinding */
	struct map types;        /* C++ name -> type that has a typedef */
	struct text typedefs, helpers;
	struct placed_cells *placement;
	struct map made; /* helper functions already emitted */
	bool failed;
	bool narrow;  /* half floats or 4-bit integers are used */
	bool doubles; /* f64 is used */
	bool counts;  /* counters have widths of their own */
	/* the current process */
	struct op *process;
	const struct op *call; /* that starts it */
	struct names names;
	int indent, values, depth; /* depth: of loops */
	struct datapath datapath[NEST_DATAPATHS_MOST];
	struct rewinding *rewinding; /* NULL: the process is one function */
	struct text body, registers;
	/* copies of consecutive elements that hls_copy collects: the first, and their number */
	const char *run_target, *run_source;
	int64_t run_count;
	VEC(struct op *) group; /* operations of the open lane loop, in order */
	int64_t group_lanes;
};

/* Names. */
struct names names_new(struct arena *arena);
/* Takes an identifier that begins with `prefix` and is not taken yet. */
const char *names_add(struct names *names, const char *prefix, const char *name);

/* Types. */
/* The C++ type of a scalar, a word or a block; emits its typedef. */
const char *hls_type(struct emitter *e, const struct type *type);
/* The C++ type of a memory port's word: in words of several, 4-bit integers are two a byte. */
const char *hls_port_type(struct emitter *e, const struct type *word);
bool hls_is_half(const struct type *scalar); /* f16 or bf16 */
bool hls_is_packed(const struct type *word); /* two elements a byte in memory */
/* Diagnoses an op that cannot be emitted. */
void hls_fail(struct emitter *e, const struct op *op, const char *what);

/* Scalar operations. */
struct spelling hls_scalar(
        struct emitter *e, const struct op *op, const char *const *operand, const bool *atomic);
const char *hls_constant(
        struct emitter *e, const struct op *op, const struct attr *attr, const struct type *scalar);
const char *hls_bracket(struct arena *arena, const struct spelling *spelling);

/* Processes. */
void hls_process(struct emitter *e, struct op *process);
/* Lists the nests of each shared datapath of the process. */
void hls_datapath_begin(struct emitter *e, struct op *process);
/* Is the nest emitted as a call of a shared datapath? */
bool hls_is_datapath(const struct emitter *e, const struct op *nest);
/* Fills path->used. */
void hls_datapath_uses(struct emitter *e, struct datapath *path);
/* Index of the nest among those of the datapath. */
size_t hls_datapath_place(const struct datapath *path, const struct op *nest);
/* Dependence pragmas for the arrays of a datapath. */
void hls_distances(struct emitter *e, const struct datapath *path);
/* Is the array declared in the function of each datapath that uses it? */
bool hls_is_local(const struct emitter *e, const struct value *array);
/* Declares an array at the head of the current function. */
void hls_local_array(struct emitter *e, struct op *alloca);
/* Pragmas by which each dim of an array or block but the last is one of banks. */
void hls_banks(struct text *out, const char *name, const struct type *array);
/* Is the array a shift register? */
bool hls_rotates(const struct value *array);
/* Is no use of the value spelled? */
bool hls_unused(const struct value *value);
/* Emits a call of the nest's datapath, and the datapath's function before the first call. */
void hls_datapath(struct emitter *e, struct op *nest);
void hls_loop(struct emitter *e, struct op *loop);
#define NEST_MOST 16
/* The loops of a nest that is one pipeline, outermost first; returns their number, 1 where the nest
 * is not one pipeline. */
int hls_nest(struct op *nest, struct op *loop[NEST_MOST]);
/* Must the nest be emitted as one loop?  The HLS compiler flattens only constant trip counts. */
bool hls_is_nest(struct op *nest);
/* Emits a nest as one loop.  path: datapath whose arrays have dependence distances, or NULL. */
void hls_one_loop(struct emitter *e, struct op *nest, const struct datapath *path);
/* Emits two loops, of which the inner one's trips follow from the outer one's counter, as one. */
void hls_rows(struct emitter *e, struct op *outer, struct op *inner);
/* Emits the ops of a loop's body but the loop inside it. */
void hls_body_around(struct emitter *e, const struct op *loop, const struct op *inside);
/* The pragma of a pipelined loop, and how many stages the timing model gives it. */
void hls_pipeline(struct emitter *e, const struct op *loop);
/* Emits a nest over consecutive words of a port as one loop, whose counter is the word's number. */
void hls_run(struct emitter *e, struct op *nest);
/* The counters of a nest that one loop counts: registers as narrow as the extents. */
struct counters {
	int loops;
	struct op *loop[NEST_MOST];
	const char *trips[NEST_MOST]; /* as expressions; the user of the counters sets them */
	/* names: the counter, whether it is at its last, and the one before the last */
	const char *at[NEST_MOST], *last[NEST_MOST], *before[NEST_MOST];
	int bits[NEST_MOST];
	bool ends; /* something follows the last iteration of the nest */
};

/* path: datapath that other nests share, or NULL */
struct counters hls_counters(
        struct emitter *e, struct op *nest, const struct datapath *path, bool ends);
/* Declares the counters as they are before the nest. */
void hls_counters_declare(
        struct emitter *e, const struct counters *counters, struct text *out, const char *margin);
/* Sets the declared counters for a nest of other trip counts. */
void hls_counters_begin(struct emitter *e, const struct counters *counters);
/* Emits one iteration of a nest, which advances the counters; over: statement for the last
 * iteration, or NULL. */
void hls_iteration(struct emitter *e, const struct counters *counters, const char *over);
/* Declaration of a channel or port as a parameter of a function of the current process. */
const char *hls_parameter(struct emitter *e, int argument, const char *name);
void hls_block(struct emitter *e, struct block *block);
void hls_op(struct emitter *e, struct op *op);
struct spelling *hls_spelling(struct emitter *e, const struct value *value);
void hls_bind(struct emitter *e, struct value *value, struct spelling spelling);
/* A word as an expression with all its lanes. */
const char *hls_word(struct emitter *e, const struct value *value);
void hls_dot(struct emitter *e, struct op *op);
const char *hls_value_name(struct emitter *e, const struct op *op);
/* array[i][j] of a load or store. */
const char *hls_element(struct emitter *e, const struct op *op);
/* target = source; successive copies between consecutive elements become a loop.  Both are
 * array[index] or array[index + number]. */
void hls_copy(struct emitter *e, const char *target, const char *source);
void hls_flush(struct emitter *e);         /* writes the collected copies */
const char *hls_margin(struct emitter *e); /* before a line */
void hls_line(struct emitter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Rewinding processes; hls_rewind.c. */
struct rewinding *hls_rewind_new(
        struct emitter *e, struct names *names, const struct op *process, const char *function);
void hls_rewind(struct emitter *e);                       /* both functions of the process */
void hls_rewind_nest(struct emitter *e, struct op *nest); /* writes the nest to the FIFO */
void hls_rewind_queue(const struct rewinding *own, struct text *out);
void hls_rewind_call(
        struct emitter *e, const struct rewinding *own, const struct op *call, struct text *out);

/* Feeding tokens back between steps of a launch; hls_feedback.c.  pointer: names of the kernel's
 * ports. */
void hls_feedback(
        struct emitter *e, const char *name, const char *const *pointer, struct text *out);
void hls_feedback_call(
        const struct op *main, const char *name, const char *const *pointer, struct text *out);

/* Words and FIFOs; hls_words.c. */
/* The next word of a FIFO, as an expression. */
const char *hls_read(struct emitter *e, const struct op *take);
/* when: "", or the `if (…) ` before the statement. */
void hls_write(struct emitter *e, const struct op *push, const char *when);
/* The C++ type of an element of a channel. */
const char *hls_channel_type(struct emitter *e, const struct type *channel);
/* The name of one of the FIFOs in which the words of a channel travel, from 0; NULL: there are not
 * so many. */
const char *hls_channel_part(
        struct emitter *e, const struct type *channel, const char *name, int number);
/* The names of a channel's FIFOs as arguments of a call. */
const char *hls_channel_names(struct emitter *e, const struct type *channel, const char *name);

/* Lane loops: consecutive operations on whole words share one unrolled loop over the lanes. */
/* Adds op to the open lane loop; false: it is no operation on whole words. */
bool lanes_take(struct emitter *e, struct op *op);
/* Closes the loop if op needs its values. */
void lanes_before(struct emitter *e, const struct op *op);
void lanes_close(struct emitter *e);
/* Emits a conditional push of a value of the open loop: operations that only the push needs are
 * computed under its condition.  false: there are none, and nothing is emitted. */
bool lanes_push(struct emitter *e, const struct op *push, const char *when);

/* --- hls_sequential.c --- */
/* What the pipelined loop of a sequential nest tells of dependences; nothing in other loops. */
/* Is the loop part of a sequential nest? */
bool hls_is_sequential(const struct op *loop);
void hls_sequential_pragmas(struct emitter *e, const struct op *loop);

#endif
