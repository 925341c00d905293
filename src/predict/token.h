/* Token model: when each port of each process passes its words, as piecewise linear functions
 * (count of words -> cycle) derived from the processes' schedules.
 *
 * A pipelined loop enters iterations every `interval` cycles; which of them pass a word of a
 * port has a closed form (token_pattern.h); so a loop is walked in few stretches, however many
 * iterations it has, and between the ends of a stretch time is taken as linear.  Counts are
 * exact always: a run that ends under given depths is a schedule that ends, whatever its times
 * are worth.  Times are exact where a loop has no more iterations than it has stretches and
 * nothing but whole windows wait.  Same schedule model as simulate/cycle_sim.h, but each memory
 * port has its channel for itself.
 *
 * Three ways to run a network:
 *   alone      every process by itself, never waiting: its first word D, its interval II, its words T
 *   earliest   as the hardware does; with the depths given, or without limits
 *   latest     as late as the same launch allows: the network run backwards in time, where what ends a process's work begins it */
#ifndef STC_TOKEN_H
#define STC_TOKEN_H
#include "predict/timing.h"
#include "predict/token_pattern.h"

#define TOKEN_PARTS 65536 /* of a cycle */

enum token_side { TOKEN_READER, TOKEN_WRITER, TOKEN_SIDES };

struct token_access {
	int channel;  /* -1: a memory port */
	int port;     /* argument of the process */
	int64_t word; /* of a port: what a word takes, in TOKEN_PARTS of a cycle */
	/* of a port: words under way at once, and cycles until the same number can go again;
	 * credit 0: that never holds it up */
	int64_t credit, round;
	/* of a port: words that come while the loop waits for something else */
	int64_t prefetched;
	enum token_side side;
	/* waits for a word or for room; passes a word or hands a place back */
	bool waits, moves;
	struct token_pattern pattern;
	int64_t lag;    /* windows after the iteration has entered */
	int64_t offset; /* cycles after the window has begun */
};

struct token_pipe { /* a flattened pipelined loop: windows of one interval each */
	int64_t iterations, windows, interval, grid, depth;
	/* iterations of one rolled layer; 0: it contains no loop over layers */
	int64_t layer;
	/* cycles from the begin of a window to its last access, and one more */
	int64_t span;
	int accesses;
	struct token_access *access;
};

struct token_step { /* one of the three */
	int64_t cycles;
	struct token_access *access;
	struct token_pipe *pipe;
};

struct token_process {
	VEC(struct token_step) steps; /* outer loops written out */
	VEC(size_t) layer;            /* steps done when a layer but the last is over */
	int rolled;                   /* loops over layers */
	bool works_after_layers;      /* passes words when they are over */
	/* of which a trip ends one layer and begins the next: a trip less than there are layers */
	bool overlaps_layers;
	int ports;  /* arguments */
	bool feeds; /* writes a channel */
};

struct token_channel {
	bool blocks;
	int64_t depth;            /* as built */
	int64_t words, read;      /* that pass in a launch */
	int process[TOKEN_SIDES]; /* -1: none */
};

struct token_network {
	VEC(struct token_process *) processes; /* in the order of calls */
	VEC(struct token_channel) channels;    /* in the order of main */
	/* where rolled layers are left out: how many are walked, how many are not */
	int64_t layers, skipped;
	bool alike; /* all layers but the first and the last do the same */
	/* its tokens are counted at run time: by the pace of its layers worse designs were
	 * chosen */
	bool counts;
	/* a process begins a layer before it ends the one before */
	bool overlaps_layers;
	bool freezes; /* a pipeline holds words that only later iterations push on */
};

struct token_detail {
	int64_t stretches; /* of a pipelined loop, about; fewer where a process runs many */
	/* of a rolled layer that are walked: the first ones and the last; 0: all.  More are
	 * walked where one differs from the next in the words that it passes */
	int64_t layers;
	/* run-time extents that are given; the others are at their most */
	int extents;
	const struct extent_value *extent;
	/* NULL, or what networks of one module share: values of counters at which conditions
	 * hold, which live as long as the map */
	struct map *digits;
};

/* NULL: not in the model, because when a channel is used depends on data, or the outer loops are
 * too long to be written out. */
struct token_network *token_network_new(struct arena *arena, const struct platform *platform,
        const struct module *module, struct token_detail detail);

/* Do both pass the same words in the same order, whatever the times?  What is counted in one
 * (token_counter_run) is then counted in the other, with all layers too. */
bool token_network_same(const struct token_network *a, const struct token_network *b);

#define TOKEN_STRETCHES 512 /* enough for predictions */
#define TOKEN_LAYERS 4      /* of a rolled layer that predictions walk */

enum token_mode { TOKEN_ISOLATED, TOKEN_EARLIEST, TOKEN_LATEST };

struct token_point { /* word `count` (from 1) passes in `cycle`; linear between points */
	int64_t count, cycle;
};

struct token_curve {
	VEC(struct token_point) points;
};

struct token_flow { /* of a channel */
	struct token_curve curve[TOKEN_SIDES];
	int64_t words, read; /* that passed at either side */
	bool full;           /* deadlock: its writer waits for room */
};

struct token_result {
	bool ended, over_budget;
	int64_t cycles, work; /* work: stretches and points looked at */
	/* the cycle in which the last rolled layer is over; 0: there is none of which some are
	 * left out */
	int64_t layers;
	int64_t *end;            /* [processes] */
	struct token_flow *flow; /* [channels] */
};

struct token_options {
	enum token_mode mode;
	/* [channels] of FIFOs: words, 0 without limit; NULL: none has a limit.  Block channels
	 * are as built */
	const int64_t *depth;
	/* latest: when processes that feed nobody end; from an earliest run */
	const int64_t *end;
	/* a FIFO holds at least one part in so many of the words that pass: a little less exact,
	 * much quicker; says nothing about deadlocks.  0: as given */
	int64_t parts;
	int64_t budget; /* of work; 0: none */
};

struct token_result token_run(struct arena *arena, const struct token_network *network,
        const struct token_options *options);
/* words at once; of a run that is not `alone` */
int64_t token_peak_words(const struct token_flow *flow);

/* Does a launch end under given depths?  Words are counted, no cycles: a hundredth of the work
 * of a run with times. */
enum token_outcome { TOKEN_ENDS, TOKEN_STUCK, TOKEN_OVER_BUDGET };
struct token_counter;

/* depth: as in token_options; the caller keeps it, and may make depths larger between runs.
 * in_order: pipelines hold nothing, an iteration is over before the next one begins. */
struct token_counter *token_counter_new(struct arena *arena, const struct token_network *network,
        const int64_t *depth, bool in_order);
/* Goes on from where it stopped; adds the steps to *work, and stops where they would be more
 * than `budget`. */
enum token_outcome token_counter_run(struct token_counter *counter, int64_t budget, int64_t *work);
/* stuck: its writer waits for room */
bool token_counter_full(const struct token_counter *counter, int channel);
bool token_counter_waits(const struct token_counter *counter, int channel, enum token_side side);
/* Ended: does the launch end with all layers too?  Where layers are left out each is over before
 * the next begins; or, where a process begins the next one itself, it waits for the others to go
 * as far as they can, at most a layer ahead.  Two in a row that leave every channel and every
 * process as they found it may stand there any number of times. */
bool token_counter_ends_all(const struct token_counter *counter);

#define TOKEN_FIFO_PARTS 1024 /* token_options.parts of predictions */
/* Cycles of one launch with the depths as built, predicted.  0: the design is not in the model. */
int64_t token_cycles(const struct platform *platform, const struct module *module);
int64_t token_cycles_at(
        const struct platform *platform, const struct module *module, struct token_detail detail);
extern const struct token_detail token_detail_predicted;
/* enough to tell designs apart: half of the work, and all of them off alike */
extern const struct token_detail token_detail_rated;
int64_t token_cycle(const struct token_curve *curve, int64_t count); /* 1 … words */
#endif
