/* Token model: predicts when each port of each process passes its words, as piecewise linear
 * functions (number of words -> cycle) derived from the schedules of the processes.
 *
 * A pipelined loop starts an iteration every `interval` cycles, and which iterations pass a word of
 * a port has a closed form (token_pattern.h). So a loop is walked in few stretches, however many
 * iterations it has, and inside a stretch time is linear. Word counts are always exact: if a run
 * ends with given FIFO depths, that launch ends, whatever its predicted times. Times are exact
 * where a loop has no more iterations than stretches and only whole windows wait. The schedule
 * model is that of simulate/cycle_sim.h, except that every memory port has a memory channel of its
 * own.
 *
 * Three ways to run a network:
 * - isolated: every process runs without waiting. Gives its first word D, its interval II and its
 *   words T.
 * - earliest: as in hardware, with given FIFO depths or with unlimited ones.
 * - latest: as late as a launch of the same length allows. The network is run backwards in time, so
 *   that each process starts from its end. */
#ifndef STC_TOKEN_H
#define STC_TOKEN_H
#include "predict/images.h"
#include "predict/timing.h"
#include "predict/token_pattern.h"

#define TOKEN_PARTS 65536 /* time of memory words is counted in such parts of a cycle */

enum token_side { TOKEN_READER, TOKEN_WRITER, TOKEN_SIDES };

struct token_access {
	int channel;  /* -1: a memory port */
	int port;     /* argument of the process */
	int64_t word; /* of a port: time per word, in TOKEN_PARTS */
	/* of a port: at most `credit` words are outstanding per `round` cycles; credit 0: no
	 * limit */
	int64_t credit, round;
	/* of a port: words that are prefetched while the loop waits for something else */
	int64_t prefetched;
	enum token_side side;
	/* waits for a word or for space; passes a word or frees space */
	bool waits, moves;
	struct token_pattern pattern;
	int64_t lag;    /* windows between the start of the iteration and the access */
	int64_t offset; /* cycles from the start of the window */
};

struct token_pipe { /* a flattened pipelined loop; a window is one interval */
	int64_t iterations, windows, interval, grid, depth;
	/* iterations per rolled layer; 0: it contains no layer loop */
	int64_t layer;
	/* cycles from the start of a window to after its last access */
	int64_t span;
	int accesses;
	struct token_access *access;
};

struct token_step { /* exactly one of the three */
	int64_t cycles;
	struct token_access *access;
	struct token_pipe *pipe;
};

struct token_process {
	VEC(struct token_step) steps; /* in execution order, outer loops unrolled */
	VEC(size_t) layer;            /* steps done at the end of each layer but the last */
	int rolled;                   /* number of layer loops */
	bool works_after_layers;      /* passes words after them */
	/* An iteration of the layer loop ends one layer and starts the next, so it has one
	 * iteration less than there are layers. */
	bool overlaps_layers;
	int ports;  /* number of arguments */
	bool feeds; /* writes a channel */
};

struct token_channel {
	bool blocks;
	int64_t depth; /* as in the design */
	/* between dies (predict/crossing.h): words beside the depth, cycles of a word */
	int64_t between, latency;
	int64_t words, read;      /* words written and read per launch */
	int process[TOKEN_SIDES]; /* -1: none */
};

struct token_network {
	VEC(struct token_process *) processes; /* in the order of calls */
	VEC(struct token_channel) channels;    /* in the order of main */
	/* layers that are walked, and those that are skipped */
	int64_t layers, skipped;
	bool alike; /* all layers but the first and the last behave the same */
	/* the token count is a run-time value; then layer times are not used to compare designs */
	bool counts;
	/* a process starts a layer before the previous one has ended */
	bool overlaps_layers;
	bool freezes; /* a stalled pipeline holds back words of earlier iterations */
};

struct token_detail {
	/* approximate stretches per pipelined loop; fewer where a process has many loops */
	int64_t stretches;
	/* Layers that are walked: the first ones and the last; 0: all. All are walked where layers
	 * pass different numbers of words. */
	int64_t layers;
	/* known run-time extents; all others have their maximum */
	int extents;
	const struct extent_value *extent;
	/* NULL, or a cache that networks of one module share: counter values for which a condition
	 * holds. They live as long as the map. */
	struct map *digits;
	/* NULL, or receives when the images of a launch are complete, where that is known */
	struct image_times *images;
};

/* NULL: the design is outside the model, because the use of a channel depends on data, or outer
 * loops have too many iterations to be unrolled. */
struct token_network *token_network_new(struct arena *arena, const struct platform *platform,
        const struct module *module, struct token_detail detail);

/* Do both networks pass the same words in the same order, whatever the times? Then
 * token_counter_run has the same outcome for both, with all layers too. */
bool token_network_same(const struct token_network *a, const struct token_network *b);

#define TOKEN_STRETCHES 512 /* stretches per loop of a prediction */
#define TOKEN_LAYERS 4      /* layers that a prediction walks */

enum token_mode { TOKEN_ISOLATED, TOKEN_EARLIEST, TOKEN_LATEST };

struct token_point { /* word `count` (from 1) passes in `cycle`; linear between points */
	int64_t count, cycle;
};

struct token_curve {
	VEC(struct token_point) points;
};

struct token_flow { /* what passed through a channel */
	struct token_curve curve[TOKEN_SIDES];
	int64_t words, read; /* words that passed at either side */
	bool full;           /* in a deadlock: its writer waits for space */
};

struct token_result {
	bool ended, over_budget;
	int64_t cycles, work; /* work: number of stretches and points visited */
	/* the cycle in which the last rolled layer ends; 0: no layers are skipped */
	int64_t layers;
	int64_t *end;            /* [processes] */
	struct token_flow *flow; /* [channels] */
};

struct token_options {
	enum token_mode mode;
	/* [channels] FIFO depths in words, 0: unlimited; NULL: all unlimited. Block channels are as
	 * in the design */
	const int64_t *depth;
	/* latest mode: end of each process, from an earliest run */
	const int64_t *end;
	/* Every FIFO is taken to hold at least words / parts: much faster and a little less exact,
	 * but says nothing about deadlocks. 0: depths as they are. */
	int64_t parts;
	int64_t budget; /* limit of work; 0: no limit */
};

struct token_result token_run(struct arena *arena, const struct token_network *network,
        const struct token_options *options);
/* maximum occupancy in words; not for isolated runs */
int64_t token_peak_words(const struct token_flow *flow);

/* Does a launch end with given depths? Only words are counted, which takes a hundredth of the work
 * of a run with times. */
enum token_outcome { TOKEN_ENDS, TOKEN_STUCK, TOKEN_OVER_BUDGET };
struct token_counter;

/* depth: as in token_options; it stays the caller's, who may increase depths between runs.
 * in_order: pipelines hold no words, as if an iteration ended before the next starts. */
struct token_counter *token_counter_new(struct arena *arena, const struct token_network *network,
        const int64_t *depth, bool in_order);
/* Continues from where it stopped. Adds its steps to *work and stops after `budget` of them. */
enum token_outcome token_counter_run(struct token_counter *counter, int64_t budget, int64_t *work);
/* when stuck: does the channel's writer wait for space? */
bool token_counter_full(const struct token_counter *counter, int channel);
bool token_counter_waits(const struct token_counter *counter, int channel, enum token_side side);
/* After TOKEN_ENDS: does the launch also end with all layers? Each layer is run to its end before
 * the next starts (or, where a process starts the next layer itself, it runs at most one layer
 * ahead of the others). If two successive layers leave every channel and every process in the same
 * state, such a layer can be repeated any number of times. */
bool token_counter_ends_all(const struct token_counter *counter);

#define TOKEN_FIFO_PARTS 1024 /* token_options.parts of predictions */
/* Predicted cycles of one launch. 0: the design is outside the model. */
int64_t token_cycles(const struct platform *platform, const struct module *module);
int64_t token_cycles_at(
        const struct platform *platform, const struct module *module, struct token_detail detail);
extern const struct token_detail token_detail_predicted;
/* Enough to compare designs: half of the work, with similar errors for all of them. */
extern const struct token_detail token_detail_rated;
int64_t token_cycle(const struct token_curve *curve, int64_t count); /* count: 1 … words */
#endif
