/* The joint choice of lanes, row unroll and memory ports of all kernels. choose_parallelism.c
 * collects the kernels, parallelism_budget.c subtracts what the matmul engine needs,
 * parallelism_space.c and parallelism_options.c build the search space, parallelism_model.c
 * estimates the cycles of a launch in closed form, and parallelism_search.c and
 * parallelism_baseline.c search. */
#ifndef STC_PARALLELISM_H
#define STC_PARALLELISM_H
#include "schedule/recorded_choices.h"
#include "schedule/tensor_sources.h"

/* The operand of a kernel that is large enough for memory ports of its own (its bulk operand). */
struct candidate {
	const struct op *op;
	int operand;        /* -1: the kernel has no bulk operand */
	int64_t port_lanes; /* elements in a word of a memory port */
	int64_t elements, reuse;
	uint32_t peers; /* bit j: operand j has as many ports as this one */
	bool frozen;    /* more ports do not help, or cannot be had */
};

/* the number of its operands with ports of their own */
static inline int candidate_operands(const struct candidate *candidate)
{
	return operands_with_ports(candidate->operand, candidate->peers);
}

/* All kernels of the module in program order: row k of each array belongs to kernel k. */
struct parallelism_table {
	struct pass_context *context;
	struct module *module;
	int count;
	const struct op **kernel;
	struct candidate *candidate;
	struct parallelism *parallelism;
	int ports; /* memory ports for bulk operands beyond the first port of each */
	/* bits of the widest word of an operand that a kernel sums up */
	int64_t read_bits;
	int64_t dsp, lut; /* budgets of the kernels */
	/* processing elements of the matmul engine and tokens that each takes a cycle; 0: there is
	 * no engine */
	int pes, tokens_per_cycle;
};

/* The run-time extents at which a launch is priced: values of the launch scalars that bound loops.
 * Without a token count that is EXTENT_MOST and EXTENT_EIGHTH, or EXTENT_WINDOW in place of the
 * latter where some layers have a sliding window; with several tokens EXTENT_NONE; with a run-time
 * token count EXTENT_ONE and EXTENT_NONE. */
enum parallelism_extent {
	EXTENT_MOST,   /* every loop runs to its most */
	EXTENT_EIGHTH, /* to an eighth of it */
	EXTENT_WINDOW, /* to the rows of the smallest sliding window */
	EXTENT_NONE,   /* all tokens of a launch, and no past: a prompt begins */
	EXTENT_ONE,    /* one token, and other loops to half of their most */
};
/* most extents at which a launch is priced */
#define PARALLELISM_PRICED 2
#define BLOCK_HANDOVER 3 /* cycles that a converter takes to pass from one block to the next */

/* How a kernel's reads and writes are spread over its cycles; all values are fractions of 0 to 1
 * unless they say cycles. */
struct parallelism_timing {
	double first; /* part of its cycles before its first result */
	/* [operands] part of the operand that it reads before its first result */
	double *need;
	/* [operands] part of its cycles after which it reads no new element of the operand */
	double *taken;
	/* part of its operands that a converter reorders first, because sums are interleaved */
	double buffered;
	/* cycles if interleaved rows arrive in wider words: the elements of a row then follow each
	 * other, and its partial sums are combined block by block; 0: it does not sum interleaved
	 * rows */
	double split;
	/* cycles if a converter in front of it hands over the elements inside the reduction; 0: it
	 * sums up whole words, or nothing */
	double handover;
};

/* One choice of parallelism for a kernel and what it costs; cycles are those of one layer. */
struct parallelism_option {
	struct parallelism parallelism;
	int64_t lanes, row_unroll; /* of its schedule */
	/* elements in a word of the result; [operands] in a word of each operand */
	int64_t out, *in;
	/* at its own pace: iterations, or words from memory */
	double cycles[PARALLELISM_PRICED];
	/* cycles in which a loader that prefetches, by a layer at most, reads its words of a
	 * state */
	double prefetch[PARALLELISM_PRICED];
	double depth; /* cycles of latency through its pipeline */
	/* cycles of the shared loader of small operands that it needs */
	double shared[PARALLELISM_PRICED];
	struct parallelism_timing timing[PARALLELISM_PRICED];
	int64_t dsp, lut;
};

/* A job of the matmul engine, standing between a kernel and one of its operands; all 0: none. The
 * engine does its jobs one after the other in program order. */
struct parallelism_job {
	int number; /* from 1 */
	int run;    /* number of the first job that reads the same input */
	/* part of its input that must have arrived before it begins: a token tile, or one group of
	 * a tile */
	double part;
	double tile; /* part of its cycles that one token tile takes */
	/* cycles of the jobs before it and after it that read the same input: the engine finishes a
	 * tile of all of them before the next tile */
	double before, after;
	double first, cycles; /* cycles from its start to its first result, and to its last */
	double block;         /* cycles until the first block of rows of a tile is summed up */
	double sums;          /* cycles in which the PEs work on it */
	/* of `first`, the cycles after the last element of its input, where the engine works on the
	 * input as it arrives; else 0 */
	double last;
	/* part of its results that come as a burst at its end, and the cycles of that burst */
	double burst_part, collect_cycles;
	/* pipeline cycles that the next job does not wait for, because both share one loop nest */
	double transit;
};

struct parallelism_part {
	double low, high; /* range within the source's elements, in row-major order, as fractions */
};

struct parallelism_buffered {
	/* part of the operand that the reorder buffer holds: 1, or a block of keys; 0: no buffer */
	double part[PARALLELISM_PRICED];
};

struct parallelism_kernel {
	const struct op *op;
	int operands;
	/* [operands] the producing kernel; through the engine, the kernel that produces its input;
	 * -1: memory */
	int *source;
	/* [operands] the engine job between the source and this kernel */
	struct parallelism_job *job;
	/* [operands] the same in a launch of one token */
	struct parallelism_job *single;
	/* [operands] the part of the source's result that is read */
	struct parallelism_part *part;
	/* [operands] the reorder buffer in front of the operand: nothing leaves it before it is
	 * full */
	struct parallelism_buffered *buffered;
	bool *post_operand; /* [operands] read only after the reduction */
	/* words of `interleave` rows of its result alternate, and a row has `row` elements; 0: rows
	 * are not interleaved */
	int64_t interleave, row;
	/* interleaved: an operand has interleaved rows; sums: the kernel has a reduction */
	bool interleaved, sums;
	bool *carried; /* [operands] produced by the previous layer */
	/* [operands] of a carried operand, the kernel that produces it for the first layer; -1:
	 * none */
	int *entry;
	int loop;    /* row of the rolled loop that contains it; -1: none */
	int follows; /* the kernel whose row unroll limits its lanes; -1: none */
	/* it works on an equal part of the same state as that kernel, or on the same input: both
	 * get the same parallelism */
	bool same_parallelism;
	/* without an engine: the first kernel that reads the same tensor in the same order, by one
	 * load if both have equally wide words; -1: none */
	int load_of;
	int options; /* at least one, in order of growing parallelism */
	struct parallelism_option *option;
	/* [options of the kernel that it follows] its own option for each of them */
	const int *follow;
};

struct parallelism_loop {
	int first, end; /* its kernels: first <= k < end */
	int64_t layers;
	/* cycles of the engine in a layer where layers overlap; else 0 */
	double engine_cycles;
};

struct parallelism_budget {
	int64_t dsp, lut;
	int ports; /* of bulk operands, all ports together */
};

/* The last results of a kernel or a job, where they come as a burst and not evenly with the
 * others. */
struct parallelism_burst {
	/* part of its results in the burst, and the cycle at which the burst begins; part 0: no
	 * burst */
	double part, begin;
};

/* when a job of the given layer has produced its first result, and its last */
struct parallelism_job_done {
	int64_t layer;
	double begin, end;
};

/* words per PE that all jobs so far have read, and the cycles at which the last job ran */
struct parallelism_weights_taken {
	double words, begin, end;
};

/* A converter that de-interleaves a block of several rows; all 0: words pass unchanged. */
struct parallelism_interleaved {
	double pace;            /* least cycles that it imposes on both of its neighbours */
	double filled, drained; /* cycles in which it is filled with a block, and drained */
};

/* An operand of the selected option, at one extent. */
struct parallelism_input {
	/* the kernel that produces it, and that which does so in the first layer; -1: memory */
	int source, entry;
	bool enters, post_operand; /* enters: the first layer reads it from `entry` */
	bool parted;               /* only a part of the source's result is read */
	/* it comes directly from `source` in every layer: no engine job, converter or part of it */
	bool plain;
	const struct parallelism_job *job; /* NULL: it does not come through the engine */
	struct parallelism_part part;
	/* need: as in parallelism_timing; left: cycles of the kernel after the operand's last
	 * element */
	double need, left;
	/* of its converter: the part that it holds, and latency in cycles */
	double buffered, transit;
	struct parallelism_interleaved interleaved;
};

/* A kernel during the walk over the layers. */
struct parallelism_state {
	double begin, end;              /* cycle of its first result, and of its last */
	double before;                  /* cycle at which its previous layer ended */
	double arrived;                 /* cycle at which its prefetched words had arrived */
	struct parallelism_burst burst; /* of its results */
};

/* A kernel with its selected option, at one extent. */
struct parallelism_step {
	double cycles, first, depth, shared, prefetch; /* first: cycles before its first result */
	/* inputs: operands that a kernel produces; laid: 1 + the option that this row describes, 0:
	 * none */
	int inputs, laid;
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
	int extents; /* extents that are priced: 1, or PARALLELISM_PRICED */
	enum parallelism_extent extent[PARALLELISM_PRICED];
	double weight[PARALLELISM_PRICED]; /* of an extent's cycles in the cycles of a launch */
	/* decode of one token with an engine: words of attention may have WORD_BITS; elsewhere half
	 * of that, since kernels need the area */
	bool single_token;
	/* operators are priced relative to the best cycles so far, not to those of the initial
	 * choice, which may be many times slower */
	bool prices_by_best;
	/* on-chip memory is not short: where layers overlap, kernels before the first layer and
	 * after the last one are made faster */
	bool speeds_up_ends;
	/* the last extent counts only as long as the cycles of the first extent stay as they are */
	bool improves_long_extent;
	/* symbol of the number of tokens of a launch; NULL: always all tokens */
	const char *token_symbol;
	/* --prologue paced: most cycles that a kernel before or after the layers takes for all
	 * tokens of a launch; else 0 */
	double pace;
	/* the tokens are few: the engine takes all of them together, group by group */
	bool few_tokens;
	/* cycles in which memory delivers what a PE consumes in one, in decode of one token;
	 * else 0 */
	double weight_load_cycles;
	double prefetched_words; /* most words per PE that are prefetched */
	/* the engine takes several tokens a cycle: the stage of kernels between two of its jobs is
	 * busy nearly as long as the engine */
	bool stages;
	/* margin: each kernel is assumed slower than its estimate by this part of its cycles */
	double slack;
	bool prefetches_states; /* prefetch FIFOs hold all that a layer reads of states */
	/* blocks of keys are the outermost loop of attention, around the heads */
	bool blocks_first;
	/* cycles in which memory delivers what a layer reads of states, where that competes with
	 * the weights; else 0 */
	double states[PARALLELISM_PRICED];
	int64_t window_rows; /* rows that the layers with the smallest sliding window see */
	/* mean bytes that a layer reads of states, where all of them come through one channel
	 * (state_order.c); else 0 */
	double piggyback_bytes;
	/* several ports in parallel deliver the words of a state (state_order.c) */
	bool wide_states;
	/* the shared loader of small operands has words as wide as a memory port */
	bool full_words;
	int64_t read_bits;                       /* as in parallelism_table */
	struct parallelism_state *state;         /* scratch of the model: [kernels] */
	struct parallelism_weights_taken *taken; /* scratch: [walks of all jobs] */
	struct parallelism_step *step;           /* scratch: [PARALLELISM_PRICED][kernels] */
	int jobs;                                /* of the engine */
	struct parallelism_job_done *done;       /* scratch: [jobs + 1] */
};

struct parallelism_cost {
	double cycles; /* of a launch: the weighted sum over the extents */
	int64_t dsp, lut;
	int ports;
};

/* Product of the extents of the loops that index the operand (used), or of the parallel loops that
 * do not index it. */
int64_t parallelism_points(const struct op *op, int operand, bool used);
/* The producer of the integer sums that a kernel with listed loops rescales. Such a kernel reads
 * only their scales from memory, which are small. NULL: it reads no such sums. */
const struct op *parallelism_sums_of(const struct op *op);
/* Sets the ports that bulk operands may have, and how wide the words are that they bring. */
void parallelism_ports(struct parallelism_table *w);
/* Subtracts the engine's ports, DSPs and LUTs from the budgets of the table. Other bulk readers
 * keep one port each, because a design with an engine is mostly bound by the engine's memory
 * ports. */
void parallelism_reserve_engine(struct parallelism_table *w, const struct block *block);
struct parallelism_space *build_parallelism_space(
        const struct parallelism_table *w, const struct block *block);
/* What another phase (prefill or decode) has chosen for the kernel of the same weight, so that both
 * read the weight in the same order; NULL: free. */
const struct fixed_parallelism *parallelism_of_phase(
        const struct pass_context *context, const struct candidate *candidate);
/* Iterations at an extent of a loop that has `most` iterations at most. */
int64_t parallelism_iterations(const struct parallelism_space *space,
        const struct run_time_trip *run_time, int64_t most, enum parallelism_extent extent);
/* Does the loop run over blocks of keys whose number is known at run time? */
bool parallelism_walks_keys(const struct loop *loop);
/* Fills the options of all kernels; false after a diagnostic: --fix-kernel asks for a parallelism
 * that the kernel cannot have. */
bool parallelism_options(const struct parallelism_table *w, struct parallelism_space *space);
/* The value as a kernel produces it: if it comes out of the engine, the engine's input. Fills `job`
 * except for its number; all 0 if there is no job. pes, tokens_per_cycle: of the engine; single: a
 * launch of one token. */
const struct value *parallelism_through_engine(const struct value *value, int pes,
        int tokens_per_cycle, bool single, struct parallelism_job *job);
/* The first of the contractions that read the same input as this one. */
const struct op *parallelism_same_input_job(const struct op *op);
/* Sets which operands need a reorder buffer, from the default schedules of the kernels. */
void parallelism_buffering(struct module *module, const struct parallelism_space *space);
/* Sets which results have interleaved rows, and which kernels read them. */
void parallelism_interleave_rows(const struct parallelism_space *space);
/* Allocates the scratch of the model, which belongs to one thread, for the jobs and loops of the
 * space. */
void parallelism_scratch(struct parallelism_space *space, struct arena *arena, int kernels);
/* Cycles of a launch and resources, in closed form. */
struct parallelism_cost parallelism_total_cost(
        const struct parallelism_space *space, const int *choice);
/* The same, if nothing of the space has changed since the last call with this scratch. */
struct parallelism_cost parallelism_cost_cached(
        const struct parallelism_space *space, const int *choice);
/* Its parts: the resources, which cost next to nothing to compute; and the weighted cycles at one
 * extent. */
struct parallelism_cost parallelism_resources(
        const struct parallelism_space *space, const int *choice);
double parallelism_cycles_cached(
        const struct parallelism_space *space, const int *choice, int extent);
/* The objective of a choice, or infinity if it is not below `bound`: a choice that exceeds a budget
 * is rejected before its cycles are computed. */
double parallelism_price(
        const struct parallelism_space *space, const int *choice, double reference, double bound);
/* Price of a cost, smaller is better: cycles / reference + a small price of the resources + a large
 * one if the budget is exceeded. */
double parallelism_objective(const struct parallelism_space *space,
        const struct parallelism_cost *cost, double reference);
/* Sets the options of kernels that follow another kernel. */
void parallelism_follow(const struct parallelism_space *space, int *choice);
/* The option with the least parallelism that takes no more than `cycles` at the extent and at most
 * 1/share of the budget; if there is none, the fastest within that share. */
int parallelism_of_pace(const struct parallelism_space *space, int number, int extent,
        double cycles, int64_t share);
/* A limit for kernels: most cycles in a layer, and 1/share of the board's operators. */
struct parallelism_pace {
	double cycles;
	int64_t share;
};

/* Searches a pace (most cycles of a kernel in a layer) for each stage between two engine jobs,
 * beginning with `pace` for all; returns the points left. */
int64_t parallelism_stages(const struct parallelism_space *space, int64_t points,
        struct parallelism_pace pace, double reference, int *choice);
/* Tries other paces for all kernels of a stage, or for its slower ones, and keeps those that price
 * below `now`; returns the points left. */
int64_t parallelism_quicken(const struct parallelism_space *space, int64_t points, double reference,
        int *choice, double *now);
/* Sets the stage of each kernel and returns the number of stages. ring: a layer begins in the stage
 * in which the previous layer ends. */
int parallelism_find_stages(const struct parallelism_space *space, bool ring, int *of);
/* Where engine jobs form a wavefront over token tiles: makes stages faster that would make the
 * engine wait, as far as the budget allows. */
void parallelism_fit_wavefront(const struct parallelism_space *space, int *choice);
/* The searches: each prices at most `points` choices, begins at choice[kernels] and leaves there
 * the best that it found. Deterministic. */
void parallelism_joint(const struct parallelism_space *space, int64_t points, int *choice);
void parallelism_neighbour(const struct parallelism_space *space, int64_t points, int *choice);
#endif
