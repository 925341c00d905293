/* The choice of lanes and memory ports of all kernels: what choose_parallelism.c collects,
 * parallelism_budget.c limits, build_parallelism_space.c and parallelism_options.c fill,
 * parallelism_model.c prices in closed form and parallelism_search.c and parallelism_baseline.c
 * search. */
#ifndef STC_WIDTHS_H
#define STC_WIDTHS_H
#include "schedule/tensor_sources.h"

/* What a kernel may read much of: the operand that has memory ports of its own. */
struct candidate {
	const struct op *op;
	int operand;        /* -1: none */
	int64_t port_lanes; /* elements in a word of a memory port */
	int64_t elements, reuse;
	bool frozen; /* more ports do not help, or are not to be had */
};

/* All kernels of the module, in order: a row of each array. */
struct parallelism_table {
	struct streams *streams;
	int count;
	const struct op **kernel;
	struct candidate *candidate;
	struct parallelism *parallelism;
	int ports;        /* that may be given to bulk operands beyond their first */
	int64_t dsp, lut; /* budgets */
	/* of the unit that contractions share, and tokens that each takes a cycle; 0: there is
	 * none */
	int pes, tokens_per_cycle;
};

/* Where loops are bound by launch scalars a launch is priced twice: where they run to their most
 * and to an eighth of it; with several tokens once, where a prompt begins; how it goes on
 * decides what is done with the room that is left. Where some layers look back only so many
 * rows, launches of layers that all do so and of such that all see the most stand for them in
 * place of these two. Where a launch is of as many tokens as a number says: of one, its other
 * loops at half of their most, and of all, where a prompt begins. */
enum parallelism_extent { EXTENT_MOST, EXTENT_EIGHTH, EXTENT_WINDOW, EXTENT_NONE, EXTENT_ONE };
#define PARALLELISM_PRICED 2
#define BLOCK_HANDOVER 3 /* cycles in which a converter hands a block on */

/* When of its work a kernel takes and gives. */
struct parallelism_timing {
	double first; /* the part of its cycles before its first result */
	/* [operands] the part of the operand that it takes before its first result */
	double *need;
	/* [operands] the part of its cycles after which it takes nothing new of it */
	double *taken;
	/* the part of its operands that is put in another order first, since sums are formed in
	 * turns */
	double buffered;
	/* cycles where rows that take turns come in wider words: a row's numbers follow each
	 * other then, and its parts are put together block by block; 0: it forms no sums of rows
	 * in turns */
	double split;
	/* cycles where a converter stands in front, which hands on what is inside the reduction;
	 * 0: it sums up whole words, or nothing */
	double handover;
};

/* One width of a kernel and what it costs; times are of one layer. */
struct parallelism_option {
	struct parallelism parallelism;
	int64_t lanes, row_unroll; /* of its plan */
	int64_t out, *in;          /* numbers in a word of its result; [operands] of an operand */
	/* at its own pace: iterations, or words from memory */
	double cycles[PARALLELISM_PRICED];
	/* in which the words of a state arrive that a loader reads ahead of it, a layer at most */
	double prefetch[PARALLELISM_PRICED];
	double depth; /* cycles through its pipeline */
	/* cycles in which the loader that small operands share serves it */
	double shared[PARALLELISM_PRICED];
	struct parallelism_timing timing[PARALLELISM_PRICED];
	int64_t dsp, lut;
};

/* A phase of a shared unit, between a kernel and one of its operands; all 0: none.  Phases are
 * worked on one after the other, in the order of the program. */
struct parallelism_job {
	int number; /* from 1 */
	int run;    /* number of the first phase that takes the same numbers */
	/* of the numbers that it takes before it begins: a tile, or a group of one */
	double part;
	double tile; /* of its cycles, those of a tile */
	/* cycles of the phases in front of it and behind it that take the same numbers: a tile
	 * of all is done before the next */
	double before, after;
	double first, cycles; /* until its first result, and its last, from there on */
	double block;         /* cycles until the first block of a tile's rows is summed up */
	double sums;          /* cycles in which slices work on it */
	/* of `first`, what it does with the last numbers; where it works on them as they come,
	 * else 0 */
	double last;
	/* the part of its results that come together, the last ones; cycles in which they do */
	double burst_part, collect_cycles;
	/* cycles on the way, which the next phase does not wait for: it is worked on in the same
	 * loops */
	double transit;
};

struct parallelism_part {
	double low, high; /* of the source's numbers, in row-major order */
};

struct parallelism_buffered {
	/* of all: 1, or a block of keys; 0: it comes as it is made */
	double part[PARALLELISM_PRICED];
};

struct parallelism_kernel {
	const struct op *op;
	int operands;
	/* [operands] the kernel that makes it, or what a unit makes it of; -1: memory */
	int *source;
	struct parallelism_job *job; /* [operands] */
	/* [operands] the same, where a launch is of one token */
	struct parallelism_job *single;
	/* [operands] of what the source makes, from where to where it is read */
	struct parallelism_part *part;
	/* [operands] made in another order: nothing of it comes before so much is there */
	struct parallelism_buffered *buffered;
	bool *post_operand; /* [operands] read after the reduction */
	/* words of so many rows of its result take turns, each of so many numbers; 0: none do */
	int64_t interleave, row;
	bool interleaved, sums; /* rows of an operand take turns; it sums up */
	bool *carried;          /* [operands] made by the layer before, */
	int *entry;             /* [operands] and for the first one by this kernel; -1: none */
	int loop;               /* the rolled loop that it stands in; -1: none */
	int follows;            /* the kernel whose rows its lanes must be; -1: none */
	/* that kernel works on an equal part of the same state instead, or on the same numbers:
	 * they have one width */
	bool same_parallelism;
	int options; /* in the order of growing widths; at least one */
	struct parallelism_option *option;
	const int *follow; /* [options of the one that it follows] its own then */
};

struct parallelism_loop {
	int first, end; /* its kernels */
	int64_t layers;
	/* cycles of the unit in a layer, where layers follow each other without a break; else 0 */
	double engine_cycles;
};

struct parallelism_budget {
	int64_t dsp, lut;
	int ports; /* of operands that have their own */
};

/* The last numbers of a kernel or a phase, which come all at once and not evenly with the
 * others. */
struct parallelism_burst {
	double part, begin; /* of its numbers; when they begin to come.  0: evenly */
};

/* when a phase gave its first result and its last; in the layer that is walked */
struct parallelism_job_done {
	int64_t layer;
	double begin, end;
};

/* words of a slice in all phases so far; when the last of them was worked on */
struct parallelism_weights_taken {
	double words, begin, end;
};

/* of a converter that puts a block of several rows together; all 0: words go on as they are */
struct parallelism_interleaved {
	double pace;            /* cycles that it lets nobody be quicker than */
	double filled, drained; /* in which it takes a block, and gives it */
};

struct parallelism_input { /* of the option at hand, at the extents at hand */
	/* the kernel that makes it; the same in the first layer.  -1: memory */
	int source, entry;
	bool enters, post_operand; /* enters: by `entry` */
	bool parted;               /* not all of it is read */
	/* it comes as the kernel makes it, in every layer, and nothing stands between */
	bool plain;
	const struct parallelism_job *job; /* NULL: no unit stands between */
	struct parallelism_part part;
	double need, left; /* left: cycles after the last of it */
	/* by a converter: the part of it that it holds, and cycles on the way */
	double buffered, transit;
	struct parallelism_interleaved interleaved;
};

struct parallelism_state {              /* of a kernel in the walk at hand */
	double begin, end;              /* of the first result, of the last */
	double before;                  /* when it ended the layer before */
	double arrived;                 /* when what was read ahead for it had arrived */
	struct parallelism_burst burst; /* of its results */
};

struct parallelism_step {                              /* a kernel, the same */
	double cycles, first, depth, shared, prefetch; /* first: cycles before its first result */
	int inputs, laid; /* that a kernel makes; 1 + the option, 0: none is */
	struct parallelism_input *input;
};

struct parallelism_space {
	struct arena *arena;
	struct guard *guard;
	const struct platform *platform;
	int kernels, loops;
	struct parallelism_kernel *kernel;
	struct parallelism_loop *loop;
	struct parallelism_budget budget;
	int extents; /* that differ: 1, or all */
	enum parallelism_extent extent[PARALLELISM_PRICED];
	double weight[PARALLELISM_PRICED]; /* of its time in that of a launch */
	/* beside a unit of one token: attention may take words of WORD_BITS, else kernels need
	 * the room that they would take */
	bool single_token;
	/* operators are worth a part of the best time so far, not of that of the widths given,
	 * which may be many times slower */
	bool prices_by_best;
	/* memory is not short: of layers that follow each other without a break, what stands in
	 * front of them and behind them is made quicker */
	bool speeds_up_ends;
	/* the last of the extents counts only where the first one's time stays as it is */
	bool improves_long_extent;
	const char *token_symbol; /* the number of tokens of a launch; NULL: always all */
	/* --prologue paced: cycles that what stands in front of layers and behind them takes for
	 * all tokens of a launch, at most; else 0 */
	double pace;
	bool few_tokens; /* of those the unit takes all together, group by group */
	/* cycles in which memory brings what a slice takes in one, beside a unit of one token;
	 * else 0 */
	double weight_load_cycles;
	double prefetched_words; /* so many words of a slice are read ahead at most */
	/* the unit takes several tokens a cycle: what stands between two of its phases is busy
	 * nearly as long */
	bool stages;
	double slack;           /* part of its cycles that each kernel is slower than it says */
	bool prefetches_states; /* FIFOs hold what a layer reads of states */
	/* blocks of keys are read one after the other, each for all heads */
	bool blocks_first;
	/* cycles in which memory brings what a layer reads of states, where that comes beside
	 * the weights; else 0 */
	double states[PARALLELISM_PRICED];
	int64_t window_rows; /* rows that layers see which look back the fewest */
	/* bytes that a layer reads of states, the mean, where they all come through one channel
	 * (state_order.c); else 0 */
	double piggyback_bytes;
	bool wide_states; /* ports side by side bring their words (state_order.c) */
	/* the loader that small operands share has words as wide as a port */
	bool full_words;
	struct parallelism_state *state;         /* scratch of the model: [kernels] */
	struct parallelism_weights_taken *taken; /* [phases of the layers that are walked] */
	struct parallelism_step *step;           /* [PARALLELISM_PRICED][kernels] */
	int jobs;                                /* of the unit */
	struct parallelism_job_done *done;       /* [phases + 1] */
};

struct parallelism_cost {
	double cycles; /* of a launch; of all extents, as they are weighted */
	int64_t dsp, lut;
	int ports;
};

/* Points of the loops that an operand uses, or of those outside the reduction that it does not. */
int64_t parallelism_points(const struct op *op, int operand, bool used);
/* The listed kernel whose integer sums a listed kernel reads: what that takes from memory, their
 * scales, is little beside what their maker takes.  NULL: it reads none. */
const struct op *parallelism_sums_of(const struct op *op);
/* Ports, DSPs and LUTs of a unit's slices are not the kernels'.  Other readers keep a port each:
 * most of the time, the unit is what waits for memory. */
void parallelism_reserve_engine(struct parallelism_table *w, const struct block *block);
struct parallelism_space *build_parallelism_space(
        const struct parallelism_table *w, const struct block *block);
/* What another phase of the same kernel has for the same weight, so that it is read in the same
 * order; NULL: free. */
const struct fixed_parallelism *parallelism_of_phase(
        const struct streams *streams, const struct candidate *candidate);
/* One operator of a body; a product of extended integers is as narrow as they were.  narrow:
 * products with an extended half are priced as the one multiplier that they take
 * (ir/narrow_product.h); of one token they are as all others, so that what they leave is left:
 * wider kernels would crowd the memory die. */
struct operator_cost parallelism_node_cost(const struct platform *platform, const struct body *body,
        const struct node *node, bool narrow);
/* Turns of a loop of at most `most` at an extent. */
int64_t parallelism_iterations(const struct parallelism_space *space,
        const struct run_time_trip *run_time, int64_t most, enum parallelism_extent extent);
/* Is it over blocks of keys, as many as there are at run time? */
bool parallelism_walks_keys(const struct loop *loop);
/* Fills the options of all kernels; false after a diagnostic: a width is fixed to what the
 * kernel cannot have. */
bool parallelism_options(struct streams *streams, struct parallelism_space *space,
        const struct candidate *candidate);
/* The value as a kernel makes it: what a unit takes, where it stands between; fills `phase` but
 * for its number.  slices: of the unit; abreast: tokens that each takes a cycle; single: a
 * launch of one token. */
const struct value *parallelism_through_engine(const struct value *value, int pes,
        int tokens_per_cycle, bool single, struct parallelism_job *job);
/* The first contraction that takes the same numbers, a tile of which is done in all before the
 * next one. */
const struct op *parallelism_same_input_job(const struct op *op);
/* Sets what is made in one order and taken in another, as the kernels are planned one by one. */
void parallelism_buffering(struct streams *streams, const struct parallelism_space *space);
/* Sets which results' rows take turns, and who reads them. */
void parallelism_interleave_rows(const struct parallelism_space *space);
/* Sets the scratch of the model, which is one thread's. */
void parallelism_scratch(struct parallelism_space *space, struct arena *arena, int kernels);
/* Cycles of a launch and what it takes of the board, in closed form. */
struct parallelism_cost parallelism_total_cost(
        const struct parallelism_space *space, const int *choice);
/* The same, where nothing of the space has changed since it was last asked. */
struct parallelism_cost parallelism_cost_cached(
        const struct parallelism_space *space, const int *choice);
/* Its parts: all but the cycles, which take next to nothing to tell; the cycles at each extent,
 * as they are weighted. */
struct parallelism_cost parallelism_resources(
        const struct parallelism_space *space, const int *choice);
double parallelism_cycles_cached(
        const struct parallelism_space *space, const int *choice, int extent);
/* The objective of these widths; where it is not below the bound, infinite, which is told
 * sooner: what is over a budget needs no cycles. */
double parallelism_price(
        const struct parallelism_space *space, const int *choice, double reference, double bound);
/* Does it fit, and how well: smaller is better.  1: as `reference`, with nothing of the board. */
double parallelism_objective(const struct parallelism_space *space,
        const struct parallelism_cost *cost, double reference);
/* Sets the options of kernels that follow another. */
void parallelism_follow(const struct parallelism_space *space, int *choice);
/* The narrowest option of a kernel that takes no longer than so many cycles, with one part in
 * `share` of the budget at most; else the fastest that is within that. */
int parallelism_of_pace(const struct parallelism_space *space, int number, int extent,
        double cycles, int64_t share);
/* A pace for each stage between two phases, beginning with one for all; returns the points left. */
int64_t parallelism_stages(const struct parallelism_space *space, int64_t points, double pace,
        int64_t share, double reference, int *choice);
/* All kernels of a stage, or its slower ones, at another pace, kept where that is better than
 * `now`; returns the points left. */
int64_t parallelism_quicken(const struct parallelism_space *space, int64_t points, double reference,
        int *choice, double *now);
/* The stage of each kernel; returns how many there are.  ring: a layer begins in the stage in
 * which the one before ends. */
int parallelism_find_stages(const struct parallelism_space *space, bool ring, int *of);
/* Where phases take turns tile by tile: stages that are late in their slot are made quicker, as
 * far as the board has room. */
void parallelism_fit_wavefront(const struct parallelism_space *space, int *choice);
/* Each looks at no more than `points` points, begins at choice[kernels] and leaves there the
 * best that it found.  Deterministic. */
void parallelism_joint(const struct parallelism_space *space, int64_t points, int *choice);
void parallelism_neighbour(const struct parallelism_space *space, int64_t points, int *choice);
#endif
