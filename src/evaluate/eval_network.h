/* Hardware level as a Kahn network: every process is translated to a flat program over its own
 * registers and runs until a channel blocks it. */
#ifndef STC_EVAL_NETWORK_H
#define STC_EVAL_NETWORK_H
#include "evaluate/eval_level.h"

/* Of an array with stream.distance: in a pipeline no word is read fewer iterations than that
 * after it was written.  Emitted C++ says so to the vendor's compiler, which then lets a read
 * that is nearer overtake the write. */
struct distance_claim {
	const char *process, *array;
	struct location location;
	int64_t distance;
	/* [words] the iteration in which it got what it holds; 0: it was never written */
	int64_t *written;
	void *before; /* registers of a word */
	/* iterations between a write and a read that was nearer, at least; 0: there was none */
	int64_t nearest;
	/* such a read gets what is not there yet: NaN, or another number */
	bool overtakes;
};

struct array { /* a local array, a block that was acquired, or a memory port */
	const char *name;
	const struct type *scalar;
	int64_t lanes;
	int64_t words;
	int rank;
	const int64_t *shape;                  /* [rank]; not used for rank 1 */
	char *data;                            /* storage */
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
	struct process *process[SIDES]; /* who reads, who writes; NULL: nobody */
	bool waiting[SIDES];
};

struct network;
struct process;
struct instruction;
/* The instruction to go on with; NULL: the process waits, or the run has failed. */
typedef const struct instruction *instruction_function(
        struct network *network, struct process *process, const struct instruction *at);

struct instruction {
	instruction_function *run;
	struct scalar_op op;
	void *out; /* registers */
	const void *in[3];
	int64_t count; /* lanes, or bytes to copy */
	int parts;     /* entries of `part` */
	/* addresses' indices; words to join; operands of an affine map; of a sum of products,
	 * the word to which its own is lent, if any */
	const void **part;
	/* of an affine map, the constant last; of joined words: lanes of each */
	const int64_t *factor;
	const struct type *type; /* scalar that moves */
	struct array *array;
	struct channel *channel;
	enum side side;
	int target; /* loops: instruction to go to */
	const struct op *source;
};

struct process {
	const char *name;
	VEC(struct instruction) program;
	const struct instruction *at; /* NULL once it has ended */
	const struct channel *waits_for;
	enum side side;    /* of waits_for */
	int64_t iteration; /* of pipelined loops, from 1 */
	/* the last one of pipelines that were over before the one at hand began */
	int64_t drained;
};

struct network {
	struct evaluation *e;
	VEC(struct process *) processes;
	VEC(struct channel *) channels;
	VEC(struct distance_claim *) claims;
	/* claims whose reads overtake writes: those from the first number on, and before the
	 * second */
	int overtaken, overtaken_end;
	struct process **ready; /* ring */
	size_t first_ready, ready_count;
	bool failed;
};

struct channel *channel_new(struct network *network, const struct op *op);
struct array *array_new(struct arena *arena, const char *name, const struct type *memref,
        int64_t words, char *data);
/* operands' value->data: their channels and arrays */
bool network_add_process(struct network *network, const struct op *call);
bool network_run(struct network *network);

/* What instructions do (eval_network.c); the translator (eval_translate.c) chooses among them. */
instruction_function do_scalar, do_broadcast, do_tree, do_dot, do_dot_across, do_apply, do_join,
        do_split, do_set_lane, do_pop, do_push, do_acquire, do_release, do_load, do_store, do_write,
        do_loop, do_next, do_drain, do_iterate, do_end;

/* NULL: the array claims nothing */
struct distance_claim *claim_new(struct network *network, const struct process *process,
        const struct op *alloca, int64_t words);
/* about to be done */
void claim_store(const struct process *process, const struct instruction *store, int64_t word);
/* done */
void claim_load(const struct process *process, const struct instruction *load, int64_t word);
#endif
