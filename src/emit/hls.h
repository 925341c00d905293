/* What the parts of the HLS C++ emitter share. */
#ifndef STC_EMIT_HLS_H
#define STC_EMIT_HLS_H
#include "emit/emit.h"
#include "ir/datapath_sharing.h"

#define FIFO_BITS 4096 /* widest word of a FIFO */

/* How a value is written where it is used; value->data while its function is emitted. */
struct spelling {
	/* scalar: an expression; word: an lvalue, or the value of every lane; array, channel,
	 * port: its name */
	const char *text;
	bool atomic; /* text needs no brackets around it */
	bool splat;  /* a word whose lanes all are `text` */
	/* a word that exists only inside the open lane loop, where one lane is called `text` */
	bool lanes;
	/* text lacks its sign extension: only a product reads it, which is then one of narrow
	 * numbers */
	bool factor;
	int lane_uses; /* uses inside the open lane loop */
};

struct names {
	struct map taken;
};

struct values { /* each once */
	VEC(struct value *) list;
};

/* The loops of a process that are one function; hls_datapath.c. */
struct datapath {
	VEC(struct op *) nests;      /* so marked, in order */
	struct nest_columns columns; /* of numbers that are parameters */
	struct values used;          /* channels and arrays, which are parameters too */
	const char *name;
	struct text arguments; /* channels and arrays, as in a call */
};

/* A process whose nests follow each other without a break is two functions; hls_rewind.c. */
struct rewinding {
	/* the one with the loop, and the one that counts nests; */
	const char *function, *counts;
	/* what the FIFO between them holds, and its name in the region */
	const char *entry, *queue;
	const char *nests; /* and in both functions */
	struct text arrays;
	bool *inside; /* [arguments] used in nests */
};

struct emitter {
	const struct platform *platform;
	struct module *module;
	struct arena *arena;
	struct text *out;
	const char *top;
	struct op *main;
	struct map processes;    /* symbol -> name of its function */
	struct map rewinding_of; /* symbol -> struct unbroken */
	struct map types;        /* C++ name -> type that has a typedef */
	struct text typedefs, helpers;
	struct map made; /* helper functions already emitted */
	bool failed;
	bool narrow; /* half floats or 4-bit integers are used */
	/* the process at hand */
	struct op *process;
	const struct op *call; /* that starts it */
	struct names names;
	int indent, values, depth;
	struct datapath datapath[NEST_DATAPATHS_MOST];
	struct rewinding *rewinding; /* NULL: it is one function */
	struct text body, registers;
	const char *run_target, *run_source; /* first of the copies that wait in hls_copy */
	int64_t run_count;
	VEC(struct op *) group; /* operations of the open lane loop, in order */
	int64_t group_lanes;
};

/* Names. */
struct names names_new(struct arena *arena);
/* an identifier that is not taken yet */
const char *names_add(struct names *names, const char *prefix, const char *name);

/* Types. */
/* of a scalar, a word or a block; makes the typedef */
const char *hls_type(struct emitter *e, const struct type *type);
/* of a memory port's word: 4-bit integers lie there two a byte, a single one in a byte */
const char *hls_port_type(struct emitter *e, const struct type *word);
/* f16, bf16 */
bool hls_is_half(const struct type *scalar);
/* two elements a byte in memory */
bool hls_is_packed(const struct type *word);
void hls_fail(struct emitter *e, const struct op *op, const char *what);

/* Scalar operations. */
struct spelling hls_scalar(
        struct emitter *e, const struct op *op, const char *const *operand, const bool *atomic);
const char *hls_constant(
        struct emitter *e, const struct op *op, const struct attr *attr, const struct type *scalar);
const char *hls_bracket(struct arena *arena, const struct spelling *spelling);

/* Processes. */
void hls_process(struct emitter *e, struct op *process);
void hls_datapath_begin(struct emitter *e, struct op *process);
/* there are others of the same */
bool hls_is_datapath(const struct emitter *e, const struct op *nest);
/* fills in `used` */
void hls_datapath_uses(struct emitter *e, struct datapath *path);
/* among its nests */
size_t hls_datapath_place(const struct datapath *path, const struct op *nest);
void hls_distances(struct emitter *e, const struct datapath *path);
/* a call of it; its function before the first one */
void hls_datapath(struct emitter *e, struct op *nest);
void hls_loop(struct emitter *e, struct op *loop);
#define NEST_MOST 16
/* loops of a nest that is one pipeline, outermost first, and how many; 1: it is none */
int hls_nest(struct op *nest, struct op *loop[NEST_MOST]);
/* and with constant trips alone the vendor's compiler would not see that */
bool hls_is_nest(struct op *nest);
/* path: whose arrays have distances; NULL: no shared one */
void hls_one_loop(
        struct emitter *e, struct op *const *loop, int loops, const struct datapath *path);
/* one iteration of a nest, whose counters go on and begin again; `over` is what is done behind
 * the last one */
void hls_iteration(struct emitter *e, struct op *nest, const char *over);
/* of the process at hand: a channel or a port, as a function takes it */
const char *hls_parameter(struct emitter *e, int argument, const char *name);
void hls_block(struct emitter *e, struct block *block);
void hls_op(struct emitter *e, struct op *op);
struct spelling *hls_spelling(struct emitter *e, const struct value *value);
void hls_bind(struct emitter *e, struct value *value, struct spelling spelling);
/* all lanes of it */
const char *hls_word(struct emitter *e, const struct value *value);
void hls_dot(struct emitter *e, struct op *op);
const char *hls_value_name(struct emitter *e, const struct op *op);
/* array[i][j] of a load or store */
const char *hls_element(struct emitter *e, const struct op *op);
/* target = source; copies between consecutive elements that follow one another become a loop.
 * Both are array[index] or array[index + number]. */
void hls_copy(struct emitter *e, const char *target, const char *source);
void hls_flush(struct emitter *e); /* writes copies that wait */
void hls_line(struct emitter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Processes without a break; hls_rewind.c. */
struct rewinding *hls_rewind_new(
        struct emitter *e, struct names *names, const struct op *process, const char *function);
void hls_rewind(struct emitter *e); /* both functions of the process at hand */
void hls_rewind_nest(struct emitter *e, struct op *nest); /* that it comes next */
void hls_rewind_queue(const struct rewinding *own, struct text *out);
void hls_rewind_call(
        struct emitter *e, const struct rewinding *own, const struct op *call, struct text *out);

/* Launches of several tokens; hls_feedback.c.  pointer: the names of the kernel's ports. */
void hls_feedback(
        struct emitter *e, const char *name, const char *const *pointer, struct text *out);
void hls_feedback_call(
        const struct op *main, const char *name, const char *const *pointer, struct text *out);

/* Words and FIFOs; hls_words.c. */
/* the word that comes next, as an expression */
const char *hls_read(struct emitter *e, const struct op *take);
/* when: "", or the condition in front of it */
void hls_write(struct emitter *e, const struct op *push, const char *when);
/* of what a FIFO of it holds */
const char *hls_channel_type(struct emitter *e, const struct type *channel);
/* the second FIFO's name; NULL: there is none */
const char *hls_channel_half(struct emitter *e, const struct type *channel, const char *name);
/* as arguments of a call */
const char *hls_channel_names(struct emitter *e, const struct type *channel, const char *name);

/* Lane loops: consecutive operations on whole words share one unrolled loop over the lanes. */
/* op goes into the open lane loop; false: it is no operation of that kind */
bool lanes_take(struct emitter *e, struct op *op);
/* closes the loop if op needs its values */
void lanes_before(struct emitter *e, const struct op *op);
void lanes_close(struct emitter *e);
/* A conditional push of a value of the open loop: what only the push needs is computed under its
 * condition.  false: nothing is special about it. */
bool lanes_push(struct emitter *e, const struct op *push, const char *when);

#endif
