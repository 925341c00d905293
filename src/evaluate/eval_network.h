/* Evaluates the hardware level as a Kahn process network: every process is translated to a flat
 * program over its own registers and runs until a channel blocks it. */
#ifndef STC_EVAL_NETWORK_H
#define STC_EVAL_NETWORK_H
#include "evaluate/eval_level.h"

/* Dependence distance of an array (stream.distance): no word of a pipeline's array is read fewer
 * iterations than that after it was written.  The emitted C++ passes it to the HLS compiler as a
 * dependence pragma, which then lets a nearer read overtake the write. */
struct distance_claim {
	const char *process, *array;
	struct location location;
	int64_t distance;
	/* a load gets the word that was stored `distance` stores ago */
	bool rotates;
	bool local;     /* words do not last until the next nest */
	int64_t stores; /* so far */
	/* [words] iteration in which the word got its value, where words rotate the number of the
	 * store; 0: never written */
	int64_t *written;
	void *before; /* registers of a word */
	/* smallest distance found that is below the claim; 0: none */
	int64_t nearest;
	/* a read that is too near returns a wrong number: NaN, or some integer */
	bool overtakes;
};

struct array { /* a local array, an acquired block, or a memory port */
	const char *name;
	const struct type *scalar;
	int64_t lanes;
	int64_t words;
	int rank;
	const int64_t *shape;                  /* [rank]; not used for rank 1 */
	char *data;                            /* [words] in storage format */
	struct distance_claim *distance_claim; /* NULL: none */
};

enum side { SIDE_READ, SIDE_WRITE, SIDES };

struct channel {
	const char *name;
	int64_t depth;       /* in words or blocks */
	int64_t slot_bytes;  /* a word as registers, or a block as storage */
	char *data;          /* [depth] slots */
	int64_t head, count; /* first full slot; full slots */
	bool blocks;
	struct kahn_process *process[SIDES]; /* reader and writer; NULL: none */
	bool waiting[SIDES];
};

struct network;
struct kahn_process;
struct instruction;
/* Returns the next instruction; NULL: the process waits, has ended, or the run has failed. */
typedef const struct instruction *instruction_function(
        struct network *network, struct kahn_process *process, const struct instruction *at);

struct instruction {
	instruction_function *run;
	struct scalar_op op;
	void *out; /* registers */
	const void *in[3];
	int64_t count; /* lanes, or bytes to copy */
	int parts;     /* entries of `part` */
	/* indices of an address; words to join; operands of an affine map; of do_dot, for the
	 * second of two x in one DSP: the first one */
	const void **part;
	/* coefficients of an affine map, the constant last; lanes of each joined word */
	const int64_t *factor;
	const struct type *type; /* scalar that moves */
	struct array *array;
	struct channel *channel;
	enum side side;
	int target; /* loops: instruction to go to */
	const struct op *source;
};

struct kahn_process {
	const char *name;
	VEC(struct instruction) program;
	const struct instruction *at; /* NULL once it has ended */
	const struct channel *waits_for;
	enum side side;    /* of waits_for */
	int64_t iteration; /* of pipelined loops, counted from 1 over the whole launch */
	/* last iteration of the pipelines that had drained before the current one began */
	int64_t drained;
};

struct network {
	struct evaluation *e;
	VEC(struct kahn_process *) processes;
	VEC(struct channel *) channels;
	VEC(struct distance_claim *) claims;
	/* range of claims whose reads overtake writes in this run */
	int overtaken, overtaken_end;
	struct kahn_process **ready; /* ring of [processes] */
	size_t first_ready, ready_count;
	bool failed;
};

struct channel *channel_new(struct network *network, const struct op *op);
struct array *array_new(struct arena *arena, const char *name, const struct type *memref,
        int64_t words, char *data);
/* Translates the process that `call` starts; value->data of its operands are their channels and
 * arrays.  false: a diagnostic. */
bool network_add_process(struct network *network, const struct op *call);
/* The same of the body of a sequential nest, whose arguments' data are arrays. */
bool network_add_nest(struct network *network, const struct op *nest);
/* Runs until all processes have ended.  false: a diagnostic, of a deadlock among others. */
bool network_run(struct network *network);

/* The instructions (eval_network.c); the translator (eval_translate.c) selects them. */
instruction_function do_scalar, do_broadcast, do_tree, do_dot, do_dot_across, do_apply, do_join,
        do_split, do_set_lane, do_pop, do_push, do_acquire, do_release, do_load, do_store, do_write,
        do_loop, do_next, do_drain, do_iterate, do_end;

/* The claim of an array; NULL: it has no stream.distance. */
struct distance_claim *claim_new(struct network *network, const struct kahn_process *process,
        const struct op *alloca, int64_t words);
/* Before the store: records in which iteration the word got its value. */
void claim_store(const struct kahn_process *process, const struct instruction *store, int64_t word);
/* After the load: checks the distance, and spoils the value where reads overtake. */
void claim_load(const struct kahn_process *process, const struct instruction *load, int64_t word);
#endif
