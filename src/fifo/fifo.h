/* FIFO sizing: the network of processes and channels, and the functions that the sizing strategies
 * share. A depth vector has an entry for each channel of main, in program order; entries of block
 * channels are ignored. */
#ifndef STC_FIFO_H
#define STC_FIFO_H
#include "predict/token.h"
#include "options/pass_context.h"

#define FIFO_LEAST 2       /* words: one is written while another is read */
#define FIFO_STRETCHES 128 /* of the token model, while depths are searched for */
#define FIFO_PARTS 384     /* token_options.parts during the search, */
/* and where layers overlap: with fewer parts, FIFOs as long as the start of the next layer look
 * deep enough */
#define FIFO_PARTS_OVERLAPPED 512
#define FIFO_LAYERS 4 /* layers of a rolled loop that are walked during the search, */
/* and where layers overlap, because the end of one is the start of the next */
#define FIFO_LAYERS_OVERLAPPED 5
#define FIFO_SHORT 32 /* depth that a shift register offers at one LUT per bit */

struct fifo {
	struct value *channel;
	int writer, reader; /* calls of main */
	bool sized;         /* a FIFO, not a block channel */
	bool feedback;      /* its words are for the next layer (layer feedback) */
	/* no other path connects its writer and its reader, directions ignored: it is in no cycle
	 * of waits */
	bool acyclic;
	bool prefetch; /* its words come from a loader that nothing else delays */
	/* its writer sends each word that it reads several times, from a memory of its own */
	bool replayed;
	bool full_depth; /* it holds all its words, whatever the search finds */
	/* its depth was chosen where it was created, and is not changed */
	bool fixed_depth;
	int64_t word_bytes;
	int64_t whole; /* words of a launch, or of a layer: the most that is ever needed */
	/* depth for which the wait-for graph proves freedom from deadlock, if all others have
	 * theirs */
	int64_t safe;
};

/* run-time extents at which a launch is analysed; the first of them is the most */
#define FIFO_EXTENTS 9

struct fifo_extents {
	struct token_detail detail;
	const struct token_network *tokens; /* NULL: the token model does not support the design */
};

struct fifo_network {
	struct arena *arena;
	struct pass_context *context;
	struct module *module;
	struct op *main;
	int processes, count; /* count: channels */
	struct op **call;
	struct fifo *fifo;
	const struct token_network *tokens; /* NULL: the token model does not support the design */
	/* tokens at smaller run-time extents; NULL: there are none */
	const struct token_network *smaller_extent;
	/* NULL: it cannot be simulated, or need not be */
	struct cycle_network *simulated;
	struct token_detail detail; /* of tokens */
	int64_t parts;              /* token_options.parts during the search */
	struct fifo_extents at[FIFO_EXTENTS];
	int extents;
	/* the search leaves depths alone that are fixed where the FIFO was created */
	bool keep_fixed_depth;
	/* NULL, or [channels] depths of the last successful proof */
	int64_t *proven;
	const struct token_network *proven_at; /* and its network */
	/* NULL, or [channels] of the last proof, if no depth can make the launch end: the writer
	 * waits for space */
	bool *stuck;
	int64_t budget;      /* work units of the token model that are left */
	int64_t granted;     /* units added for a search whose budget would not have been enough */
	int64_t predictions; /* least number of predictions that a search may make */
};

struct fifo_network *fifo_collect(
        struct arena *arena, struct pass_context *context, struct module *module);
int64_t fifo_bytes(const struct fifo_network *network, const int64_t *depth);
/* Sets fifo->safe and fifo->acyclic. */
void fifo_prove(struct fifo_network *network);
void fifo_prove_safe(struct fifo_network *network); /* Sets fifo->safe. */

/* How linear programming (arXiv 2509.13694) derives depths from start times: from complete
 * schedules, from each process's own intervals, or from those of the slowest. */
enum fifo_equalize { FIFO_CURVES, FIFO_NORMAL, FIFO_CONSERVATIVE };
/* Lowers depth[] to what the linear program needs; program: NULL, or where its text is written.
 * false: it has no solution. */
bool fifo_lp(
        struct fifo_network *network, enum fifo_equalize how, struct text *program, int64_t *depth);

/* Does a launch end with these depths, if pipelines hold no words (in_order), or if they do? */
bool fifo_terminates(struct fifo_network *network, bool in_order, const int64_t *depth);
/* Raises depths until a launch ends for certain: those at which the token model finds a deadlock,
 * first by so many eighths, then by twice as many each time, since most of the FIFOs that are
 * raised did not cause it. false: the budget is exceeded. */
#define FIFO_RAISED 1
#define FIFO_RAISED_MOST 64
bool fifo_repair(struct fifo_network *network, int64_t eighths, int64_t *depth);
/* Do launches end at all extents without raising a depth? budget: of the proof at each. */
bool fifo_all_terminate(struct fifo_network *network, int64_t budget, int64_t *depth);
/* Lowers depths as long as a launch takes at most 1/200 more cycles than with `limit`. false: there
 * is no proof that launches end. order: of the search, 0 ... FIFO_ORDERS - 1; each order ends at a
 * local minimum if the budget lasts. */
bool fifo_trim(struct fifo_network *network, const int64_t *limit, int order, int64_t *depth);
#define FIFO_ORDERS 5
/* Continues a search whose budget did not last: from depths that suffice, until no single depth can
 * be one less. Only with the simulator. */
void fifo_settle(struct fifo_network *network, const int64_t *limit, int64_t *depth);
/* Builds the token model at several run-time extents. */
void fifo_open_extents(struct fifo_network *network);
/* Finds a channel into which not as many words are written as are read, at any of these extents;
 * returns the message about it, or NULL. */
const char *fifo_unbalanced(const struct fifo_network *network, const struct value **channel);
/* Reports it as an error of the module, which was read as a dump; returns false. */
bool fifo_report_unbalanced(struct diag *diag, const struct value *channel, const char *unbalanced);
const char *fifo_end_name(const struct fifo_network *network, int call);
enum fifo_evidence { FIFO_UNPROVEN, FIFO_PROVEN_BY_GRAPH, FIFO_PROVEN_BY_TOKENS };
extern const char *const fifo_evidence_name[];
/* Proves that launches of any extent end with these depths, by a run of the token model at each,
 * for which depths are raised if necessary; if safe, the wait-for graph is a proof as well. */
enum fifo_evidence fifo_prove_termination(struct fifo_network *network, bool safe, int64_t *depth);
/* Records what showed that launches end, and the depths that it is true of. */
void fifo_note_proof(struct module *module, enum fifo_evidence evidence);
/* What showed it; NULL: nothing did, or channels are shallower than then. */
const char *fifo_proof(const struct module *module);
/* Does trimming use the simulator? It does if the budget lasts for some runs; else the token
 * model. */
bool fifo_simulates(const struct fifo_network *network);
/* Checks a module that was read as a dump: every channel must get as many words as are read from
 * it, and, with `depths`, a launch must end with the depths in the dump. false: a diagnostic says
 * why not. */
bool fifo_check(struct pass_context *context, struct module *module, bool depths);
/* Gives a process's arguments the current types of main's channels. */
void fifo_set_arguments(struct module *module, const struct op *call);
/* Sets all FIFOs without a fixed depth to FIFO_LEAST words: no design needs less memory for
 * them. */
void fifo_shallow(struct module *module);
/* The deepest FIFO that takes no more memory than one of `depth` words of so many bits. */
int64_t fifo_free_depth(int64_t bits, int64_t depth);
#endif
