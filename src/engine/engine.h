/* The matmul engine at hardware level: one array of processing elements (PEs) that works on all
 * contractions of the program, one after another. plan_jobs.c plans it; lower_engine.c,
 * lower_weight_loaders.c, lower_pe.c and lower_result_collector.c make its processes.
 *
 *   activations ──► feed ──┬── groups ──┬──► PEs 0, 1 ──► PEs 2, 3 ──► … ──┬──► collect ──► results
 *                          │            └──► PEs k, k + 1 ──► …  ──────────┘    rows of all PEs,
 *                          └── scales ─────► scaler ──► every PE                in order
 *   weights ──► loader of each port ──► its PEs
 *   scales of weights ──► loader ──► scaler: the products of both scales
 *   zero points ──► loader ──► scaler: their products with the group's sum of activations
 *
 * A job is one contraction: outputs = weights x activations, both quantized in groups of
 * contract.size numbers along the reduction. A PE takes a word of weights (one group of one row)
 * per cycle from its memory port, multiplies it with a group of activations, multiplies the integer
 * sum with both scales and adds it to the f32 sum of the row. With zero points z the integer sum is
 * Σ x * w - z * Σ x: the feed forms Σ x of a group once, the scaler z * Σ x of each row.
 *
 * Output n of a job is row (start + n) / PEs of PE (start + n) mod PEs. PEs that share a port are
 * neighbours. A PE works on its rows in blocks: for each group, on every row of the block, so that
 * two additions to one sum are as many cycles apart as the block has rows. With several tokens a
 * word of weights is used for all tokens of a tile, tokens_per_cycle of them per cycle: these are a
 * token step. Neighbours that share multipliers are a pair (pes_per_pair PEs, ir/dot.h); a
 * process has one pair, or several that hold the same groups. */
#ifndef STC_ENGINE_H
#define STC_ENGINE_H
#include "ir/workload.h"
#include "ir/datapath_sharing.h"
#include "platform/platform.h"
#include "ports/memory_image.h"

#define JOB_ENDS_MOST 4 /* jobs of one token whose rows are iterations of the same loops */
struct job_end {
	/* blocks up to its end; rows of the last block that memory has words of */
	int64_t blocks, rows;
	int last_row_pes; /* the first PEs, as many as this, have the last of these rows */
};

struct job {
	const struct op *op;
	struct contract contract;
	int64_t layers;      /* of the rolled layer around it; 0: it is outside of all layers */
	int64_t tiles, tile; /* tiles of the launch; tokens of a tile */
	/* tokens of a tile / tokens_per_cycle: cycles for which a word of weights is used */
	int64_t token_steps;
	struct launch_tokens run_time; /* token count of a launch, if it is dynamic */
	/* dynamic bound of token_steps; NULL: fixed */
	const struct run_time_trip *token_steps_run_time;
	int64_t blocks, block; /* blocks of a PE; rows of a block */
	/* rows of the last block that memory has words of; the others are padding, which keeps the
	 * additions to a sum far enough apart */
	int64_t rows;
	/* the first PEs, as many as this, have the last of the rows; memory has no words of it for
	 * the others */
	int last_row_pes;
	/* the first PEs, as many as this, have no first row: jobs start at different PEs so that no
	 * port has the extra row of all jobs */
	int start;
	/* jobs that are iterations of the same loops, for which the last blocks differ */
	int end_count;
	struct job_end end[JOB_ENDS_MOST]; /* last block of each of them */
	/* it pops no groups: PEs still hold those of the job before */
	bool reuses_activations;
	/* and its rows are iterations of the same loops as that job's, since blocks have as many
	 * rows: a pipeline drains between two loop nests */
	bool shares_pipeline;
	/* its rows follow those of the job before in one common block (engine_job_stack.c) */
	bool rows_stacked;
	/* blocks of all jobs that use the same groups; with one, a PE holds two groups only */
	int64_t consumer_blocks;
	/* the job makes attention's queries, which attention takes head by head: such a job may be
	 * split in parts, a job each, so that its first outputs come early */
	bool queries;
	/* rows of each PE in the parts before this one; rows of this part, 0: all that are left.
	 * The feed replays the groups for later parts */
	int64_t part_first, part_rows;
	/* the layer's tiles run as a wavefront behind attention that waits for no later tile */
	bool behind_causal;
	int stack; /* number of the job, or of the first of the jobs that share a common block */
	/* first job of the wavefront that it belongs to (engine_job_order.c) */
	int wavefront;
	/* the wavefront goes on with the next layer's tiles while the last tiles of this layer are
	 * worked on */
	bool layer_overlap;
	/* with layer_overlap, for the first of the jobs with the same activations: tiles that it
	 * is behind the first such job of the wavefront */
	int64_t lag;
};

struct engine {
	struct design *design;
	enum workload workload;
	/* memory ports for weights; PEs that share one, which take its words in rotation */
	int ports, pes_per_port;
	int pes, pes_per_pair; /* all PEs; PEs that share multipliers */
	/* pairs of a process at most; pairs whose processes pass groups on to each other */
	int pairs_per_process, pairs_per_chain;
	/* ports whose words the first loader process brings; ports of each other loader process */
	int first_ports, ports_per_loader;
	/* jobs start at different PEs, so that loaders bring as many words */
	bool evens_loads;
	/* tokens that a PE multiplies per cycle; tokens of these that share a DSP */
	int tokens_per_cycle, tokens_per_dsp;
	int end_count_most; /* the most jobs that are iterations of the same loops */
	/* the most rows between two jobs of a block for which a PE has no words */
	int gaps_most;
	/* one token per launch: a PE pops a group when its first row needs it; else a
	 * group ahead */
	bool streams_groups;
	/* in the order of work: program order, but for queries (engine_join_queries) */
	VEC(struct job) jobs;
	/* words of the engine's FIFOs: the int8 numbers of a group; an f32 for each PE of a pair
	 * and each token of a step */
	const struct type *group, *real;
	const struct type *whole; /* an i32 in the place of each f32 */
	/* groups that a PE holds of every token of a tile; rows of the largest block; the most
	 * token steps of a job */
	int64_t group_slots, block_most, token_steps_most;
	int64_t distance; /* least number of cycles between two additions to one sum */
	/* FIFOs. Loaders fill `weights` and `weight_scales` (words of scales, or parts of
	 * them), the feed `activation_scales`, the scalers `scale_products`. `input` has the
	 * groups for the first pair of each process, `sums` what the PEs have added up. */
	struct value **weights;           /* [PEs] */
	struct value **weight_scales;     /* [engine_scalers][pes_per_port] */
	struct value **activation_scales; /* [engine_scalers] */
	/* the same for zero points: NULL where weights have none. `corrections`: what is
	 * subtracted from integer sums */
	struct value **zeros, **activation_sums, **corrections;
	struct value **input, **scale_products, **sums; /* [pairs] */
	/* a serializer passes the sums of a step on one token after another */
	bool serializes_tokens;
	/* [pairs] FIFOs from the serializers, an f32 for each PE of a pair; without: `sums` */
	struct value **collected;
};

/* Calls `add` for every job in the order of work, or for every tile of it, with the loops over
 * layers and tiles open around it. */
typedef void job_visitor(
        const struct engine *engine, struct process *p, const struct job *job, void *context);
void engine_each_job(
        const struct engine *engine, struct process *p, job_visitor *add, void *context);
/* The same for a process to which all results look alike: jobs that share loops are one job with
 * the blocks of all. */
void engine_each_pipeline(
        const struct engine *engine, struct process *p, job_visitor *add, void *context);
/* Jobs first … end - 1 have the same activations, or it is a single job. */
typedef void job_group_visitor(
        const struct engine *engine, struct process *p, int first, int end, void *context);
/* A walk over the jobs of an engine while a process is built, and what it calls for each group.
 * engine_walk_loop walks the jobs of one loop nest, over the layers where there are any, and
 * returns the job after them. single_tile: a launch of one tile takes all jobs of a layer as one
 * group, for processes that only count words. */
struct job_walk {
	const struct engine *engine;
	struct process *p;
	job_group_visitor *add;
	void *context;
};
int engine_walk_loop(const struct job_walk *walk, int first, bool single_tile);
/* A walk for processes that count words and need not know whose they are: one span for all tiles
 * and jobs of a layer, and, where layers overlap, spans of single groups before and after it. */
struct job_span {
	int first, end; /* jobs first … end - 1 */
	int64_t tiles;
	/* dynamic bound of the tiles; NULL: always all of them */
	const struct run_time_trip *run_time;
};
typedef void job_span_visitor(struct process *p, struct job_span span, void *context);
void engine_each_span(const struct engine *engine, struct process *p, int first,
        job_span_visitor *add, void *context);
/* the job after those of the loop nest that starts with `first` */
int engine_loop_end(const struct engine *engine, int first);
/* Puts queries in the group of keys and values where a wavefront allows it. */
void engine_join_queries(struct engine *engine);
/* Sets the wavefront of each job, and whether layers overlap in it. */
void engine_find_wavefronts(struct engine *engine);
/* Jobs of the same activations that have few rows each get one common block. */
void engine_stack_jobs(struct engine *engine);
/* the job after those that are stacked on `first` */
int engine_stack_end(const struct engine *engine, int first);
/* rows of a PE in the block of the whole stack */
int64_t engine_stack_rows(const struct engine *engine, int first);
/* rows of each PE, without those of parts before this one */
int64_t job_rows_per_pe(const struct engine *engine, const struct job *job);
int64_t job_block_rows_least(const struct engine *engine, const struct job *job);
/* Rows of a stack for which memory has no words of a PE, at most GAPS_MOST. Rows before the first
 * job's and after the last job's are not among them. */
#define GAPS_MOST (2 * (JOB_ENDS_MOST - 1))
int engine_row_gaps(const struct engine *engine, int first, int pe, int64_t row[GAPS_MOST]);
/* Collects the jobs of a body and chooses their blocks, parts and order for the ports that
 * plan_engine has recorded; false after a diagnostic. */
bool engine_plan_jobs(struct engine *engine, const struct block *body);
/* a process with a flushing pipeline */
struct process engine_process(const struct engine *engine, const char *name);
/* a process whose loops are one datapath; with several tokens these run without draining
 * (stream.rewind) */
struct process engine_datapath(const struct engine *engine, const char *name);
int engine_pe_pairs(const struct engine *engine);
/* Pairs of a process, times the PEs that share a port: buffers and counters exist once
 * per process. */
#define PAIRS_PER_PROCESS 3
#define PROCESS_PAIRS_MOST (PAIRS_PER_PROCESS * PES_PER_PORT_MOST)
/* Processes that multiply scales: one, or one for each chain of pairs_per_chain pairs. */
int engine_scalers(const struct engine *engine);
/* pairs that one of them has the scales for */
struct scaler_range {
	int first, end;
};

struct scaler_range engine_scaler_range(const struct engine *engine, int scaler);
struct value *engine_fifo(
        const struct engine *engine, const char *name, const struct type *word, int64_t depth);
/* The process's channel for a stream; *known is NULL until it is asked for, since tiles of a job
 * may stand in several places. */
struct value *engine_channel(
        struct process *p, struct value **known, struct value *stream, const char *name);
int64_t job_lanes(const struct job *job); /* of a word of its result */
/* outputs of this part and of those after it, counted from row 0 of PE 0: those that `start` skips
 * count too */
int64_t job_outputs(const struct engine *engine, const struct job *job);
/* of the first part of its contraction */
int job_number(const struct engine *engine, const struct job *job);
/* lanes of the widest result of all jobs */
int64_t engine_widest_result(const struct engine *engine);
/* Words of a result go over one row of all PEs after another: after so many rows a word begins with
 * PE 0 once more. */
int64_t engine_rows_per_period(const struct engine *engine, int64_t lanes);
/* The open loops of a job, or of a tile of it, in a process: blocks, groups, rows of a block, token
 * steps. The loops of all jobs are one datapath. If every job has one token, there is no loop
 * over these. */
#define ENGINE_LOOPS 4
struct job_nest {
	const struct engine *engine;
	struct process *p;
	const struct job *job;
	/* of block, group, row and token step; NULL: no such loop */
	struct value *counter[ENGINE_LOOPS];
	int loops;
	struct value *tile_tokens; /* number of tokens of the tile; NULL: not asked for yet */
	/* the group that this iteration pops, and whether it does; NULL: it always does */
	struct value *popped, *popped_when;
};
struct job_nest engine_open_job(
        const struct engine *engine, struct process *p, const struct job *job);
/* [tokens_per_cycle] arrays for groups of activations, or for their scales */
struct value **engine_group_buffers(
        const struct engine *engine, struct process *p, const char *name, const struct type *word);
/* Where a process takes groups of activations, or their scales, from. */
struct group_source {
	struct value *in;      /* channel */
	struct value **buffer; /* [tokens_per_cycle] arrays that hold them */
	struct value *next;    /* channel to the next process of the chain, or NULL */
	int number;            /* of the source, where the process has several */
};
/* With one token: pops the group with its first row, stores it for the other blocks and returns the
 * number to multiply. */
struct value *engine_stream_group(struct job_nest *nest, const struct group_source *source);
/* With several tokens: before the loops of a tile, pops the first group of all its tokens, unless
 * the job reuses activations … */
void engine_load_first_group(const struct engine *engine, struct process *p, const struct job *job,
        const struct group_source *source);
/* … and inside them, pops the next group while PEs work on the current one. */
void engine_prefetch_group(struct job_nest *nest, const struct group_source *source);
/* Sends the group that was popped to the next process of the chain. It stands behind all that the
 * iteration pops: hardware may wait for these words in the cycle in which it would send. */
void engine_pass_group(const struct job_nest *nest, const struct group_source *source);
/* address of the current group's token step, from the loops of a job */
struct value *engine_group_address(const struct job_nest *nest);
/* Opens a loop of a datapath that jobs share: `trips` iterations, or a dynamic bound. The number is
 * not shared with other loops, so that jobs differ in constants only. */
struct value *engine_loop(struct process *p, int64_t trips, const struct run_time_trip *run_time);
/* the same, over the tokens of a step */
struct value *engine_token_loop(
        const struct engine *engine, struct process *p, const struct job *job);
/* Dynamic bound of the tokens of a step, where a launch may have one token only; NULL: the bound is
 * fixed. */
const struct run_time_trip *engine_token_run_time(
        struct process *p, const struct job *job, int64_t most);
/* mark of the loops that engine_load_first_group opens for the first source, which are one
 * datapath; the next mark is that of the next source */
#define FIRST_GROUP_MARK 1
/* A word of weights or scales: popped for the first token step, and used for the others too;
 * in rows of which memory has none it is not popped, and its value unused. pe: -1: scales. */
struct value *engine_pop_word(const struct job_nest *nest, int pe, struct value *fifo);
/* first PE of those whose words one loader brings in step; -1 for -1 */
int engine_loader_first_pe(const struct engine *engine, int pe);
/* the port after those of the same loader */
int engine_loader_end_port(const struct engine *engine, int port);
/* Does no PE of its loader have the first row? -1, scales: it is present. */
bool job_lacks_first_row(const struct engine *engine, const struct job *job, int pe);
/* rows of the last block that memory has words of for this PE; -1: rows with scales */
int64_t job_last_block_rows(const struct job *job, int pe);
/* Makes the loaders of weights and scales, and the FIFOs that they fill. */
void lower_weight_loaders(struct engine *engine);
/* Where two tokens share multipliers: the process between the feed and its chains of PEs that
 * corrects operands (dsp_operand_correction.c). */
void lower_operand_correction(const struct engine *engine, struct value *in, int chains,
        struct value *const *pairs_per_chain);
/* Makes the process of pair `number` and of some pairs after it; returns the pair after those. */
int lower_pe(const struct engine *engine, int number);
/* Makes the process that puts sums of one process of PEs, from pair `number` on, in token order.
 * Only where engine_can_serialize: all jobs of a layer have as many tokens. */
void lower_token_serializer(const struct engine *engine, int number);
/* Have all jobs of a loop nest tiles of as many tokens? */
bool engine_can_serialize(const struct engine *engine);
/* Makes the process that puts the rows of all PEs in order as words of the results. */
void lower_result_collector(const struct engine *engine);
/* Is a word of some job's result narrower than what a pair gives? */
bool engine_has_narrow_results(const struct engine *engine);
#endif
