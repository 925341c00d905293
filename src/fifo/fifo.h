/* Sizing FIFOs: what the strategies share.  A depth vector has one entry per channel of main, in
 * its order; entries of block channels are not looked at. */
#ifndef STC_FIFO_H
#define STC_FIFO_H
#include "predict/token.h"
#include "options/pass_context.h"

#define FIFO_LEAST 2       /* words: one comes while another goes */
#define FIFO_STRETCHES 128 /* of the token model, while depths are searched for */
#define FIFO_PARTS 384     /* token_options.parts then, */
/* where layers follow each other without a break: in fewer, some FIFOs are as long as what the
 * next layer begins with, and seem long enough */
#define FIFO_PARTS_OVERLAPPED 512
#define FIFO_LAYERS 4 /* of a rolled layer that are walked then; */
/* where they follow each other without a break, as what ends one begins the next */
#define FIFO_LAYERS_OVERLAPPED 5
#define FIFO_SHORT 32 /* what a shift register gives for one LUT a bit */

struct fifo {
	struct value *channel;
	int writer, reader; /* calls of main */
	bool sized;         /* a FIFO, not a block channel */
	bool feedback;      /* of a ring: what it carries is for the next layer */
	/* no other way leads from its writer to its reader, in whatever direction: it takes part
	 * in no cycle of waits */
	bool acyclic;
	bool prefetch;   /* what a loader sends that nothing else holds up */
	bool full_depth; /* it holds all its words, whatever is found */
	/* such a one whose depth its maker chose, whatever the others take */
	bool fixed_depth;
	int64_t word_bytes;
	int64_t whole; /* words of a launch, or of a layer: deeper is never needed */
	/* depth for which the graph of waits proves that nothing deadlocks, if all others are
	 * safe */
	int64_t safe;
};

/* run-time extents at which a launch is looked at, the first of them the most */
#define FIFO_EXTENTS 9

struct fifo_extents {
	struct token_detail detail;
	const struct token_network *tokens; /* NULL: the design is not in the token model */
};

struct fifo_network {
	struct arena *arena;
	struct pass_context *context;
	struct module *module;
	struct op *main;
	int processes, count; /* count: channels */
	struct op **call;
	struct fifo *fifo;
	const struct token_network *tokens; /* NULL: the design is not in the token model */
	/* tokens at lesser run-time extents; NULL: there are none */
	const struct token_network *smaller_extent;
	/* NULL: it cannot be simulated, or need not be */
	struct cycle_network *simulated;
	struct token_detail detail; /* of tokens */
	int64_t parts;              /* token_options.parts while depths are searched for */
	struct fifo_extents at[FIFO_EXTENTS];
	int extents;
	bool keep_fixed_depth; /* a search leaves the depths that makers chose */
	/* NULL, or [channels] the depths of the last proof that succeeded, */
	int64_t *proven;
	const struct token_network *proven_at; /* and its network */
	/* NULL, or [channels] of the last proof, where a launch does not end whatever is raised:
	 * the writer waits for room */
	bool *stuck;
	int64_t budget;      /* work of the token model that is left */
	int64_t granted;     /* of it, to searches that it would not have sufficed for */
	int64_t predictions; /* that a search may make at least */
};

/* Does a process write into its argument (1), read from it (0), or neither (-1)?  block: its
 * body, or one inside. */
int fifo_direction(const struct block *block, const struct value *argument);
struct fifo_network *fifo_collect(
        struct arena *arena, struct pass_context *context, struct module *module);
int64_t fifo_bytes(const struct fifo_network *network, const int64_t *depth);
/* Fills fifo->safe and fifo->alone. */
void fifo_prove(struct fifo_network *network);
void fifo_prove_safe(struct fifo_network *network); /* fifo->safe */

/* Start times by linear programming, and the depths that follow. */
enum fifo_equalize { FIFO_CURVES, FIFO_NORMAL, FIFO_CONSERVATIVE };
/* depth: at most what is given.  program: NULL, or where its text goes. */
bool fifo_lp(
        struct fifo_network *network, enum fifo_equalize how, struct text *program, int64_t *depth);

/* Does a launch end with these depths, where pipelines hold nothing (in_order), or where they
 * do? */
bool fifo_terminates(struct fifo_network *network, bool in_order, const int64_t *depth);
/* Depths no smaller that end for certain: raises those at which the token model finds a
 * deadlock, first by so many eighths, then by twice as many, since all that wait are raised, and
 * most of them in vain.  false: over budget. */
#define FIFO_RAISED 1
#define FIFO_RAISED_MOST 64
bool fifo_repair(struct fifo_network *network, int64_t eighths, int64_t *depth);
/* Is it seen at once that nothing has to be raised at any extent?  budget: of the proof at each. */
bool fifo_all_terminate(struct fifo_network *network, int64_t budget, int64_t *depth);
/* From `depth`: depths at which the cycles stay within a two-hundredth of those of `limit`.
 * false: there is no proof that they end.  order: of the search, 0 …; any order ends at a local
 * minimum if the budget lasts. */
bool fifo_trim(struct fifo_network *network, const int64_t *limit, int order, int64_t *depth);
#define FIFO_ORDERS 5
/* The same from depths that suffice, for a search whose budget did not last: until no single one
 * can be a word less.  Only where runs are the simulator's. */
void fifo_settle(struct fifo_network *network, const int64_t *limit, int64_t *depth);
/* The token model at several run-time extents. */
void fifo_open_extents(struct fifo_network *network);
/* Of these: the channel that does not get as many words as are read from it, and what it gets;
 * NULL: there is none. */
const char *fifo_unbalanced(const struct fifo_network *network, const struct value **channel);
/* In a module that was read so, which is no fault of ours: there is a diagnostic; returns false. */
bool fifo_report_unbalanced(struct diag *diag, const struct value *channel, const char *unbalanced);
const char *fifo_end_name(const struct fifo_network *network, int call);
enum fifo_evidence { FIFO_UNPROVEN, FIFO_PROVEN_BY_GRAPH, FIFO_PROVEN_BY_TOKENS };
extern const char *const fifo_evidence_name[];
/* What shows that launches of any extents end with these depths: at each a run of the token
 * model, for which they are raised where they must be; or, of safe depths, the graph of waits. */
enum fifo_evidence fifo_prove_termination(struct fifo_network *network, bool safe, int64_t *depth);
/* Does trimming run the simulator?  It does where the budget suffices for some runs; else the
 * token model. */
bool fifo_simulates(const struct fifo_network *network);
/* Of a dump, which may have been changed: does every channel get as many words as are read from
 * it, and, with `depths`, does a launch end with those that stand there?  false: a diagnostic
 * says why not. */
bool fifo_check(struct pass_context *context, struct module *module, bool depths);
/* A process's arguments get the types that main's channels have now. */
void fifo_set_arguments(struct module *module, const struct op *call);
/* Every FIFO but those whose depth their makers chose holds FIFO_LEAST words: no design takes
 * less memory for them. */
void fifo_shallow(struct module *module);
/* The deepest FIFO that takes no more memory than this one. */
int64_t fifo_free_depth(int64_t bits, int64_t depth);
#endif
