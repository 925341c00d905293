/* A contraction unit at hardware level: what plan_engine.c plans, and lower_engine.c,
 * lower_weight_loaders.c, lower_pe.c and lower_result_collector.c make processes of.
 *
 *   groups of numbers ── feed ──┬─► slices 0, 1 ─► slices 2, 3 ─► …       every slice: words of its memory port, products with the group, the sums of a block of rows
 *                               └─► slices k, k + 1 ─► …                          │
 *   their scales ── scale ──► every slice                                    collect: the rows of all slices in order
 *
 * Output n of a phase is row (start + n) / slices of slice (start + n) mod slices; where a
 * port's words are dealt out to two slices, they are neighbours.  A slice takes its rows in
 * blocks: for each group, every row of the block, so that a sum has as many cycles as the block
 * has rows to be added to.  With several tokens it uses a word of weights for all of a tile,
 * `abreast` of them a cycle. As many neighbouring slices as a multiplier makes products are a
 * set; a process of slices has one, or several that keep the same groups. */
#ifndef STC_UNIT_H
#define STC_UNIT_H
#include "ir/contract.h"
#include "ir/datapath_sharing.h"
#include "platform/platform.h"
#include "ports/memory_image.h"

#define JOB_ENDS_MOST 4 /* phases of one token that are worked on in the same loops */
struct job_end {
	int64_t blocks, rows; /* it is the last of so many; rows that there are words of, */
	int last_row_pes;     /* of which so many slices, the first, have the last one */
};

struct job {
	const struct op *op;
	struct contract contract;
	int64_t layers;                /* of the rolled layer around it; 0: outside */
	int64_t tiles, tile;           /* of tokens; tokens of a tile */
	int64_t words;                 /* cycles that they take, abreast */
	struct launch_tokens run_time; /* of the tokens */
	const struct run_time_trip *words_run_time;
	int64_t blocks, block; /* of a slice; rows of a block */
	/* of the last block, that there are words of; those beyond are only there so that sums
	 * are far enough apart */
	int64_t rows;
	/* slices, the first, that have the last of them; the others' memory has no words of it */
	int last_row_pes;
	/* slices, the first, that have no first row: so not the same ones bring most words of
	 * all phases */
	int start;
	int end_count;                     /* of what is worked on in the same loops: parts, */
	struct job_end end[JOB_ENDS_MOST]; /* the last block of each */
	/* it takes no groups, since slices have those of the phase before it still */
	bool reuses_activations;
	/* and is worked on in the same loops, since its blocks have as many rows: between two
	 * loops a pipeline drains */
	bool shares_pipeline;
	/* its rows stand behind those of the phase before it in the only block of both, which
	 * has enough of them so (engine_job_stack.c) */
	bool rows_stacked;
	/* blocks of all phases that take the same groups; of one, a slice keeps two groups */
	int64_t consumer_blocks;
	/* attention begins with its first outputs, head by head: where it would give all at the
	 * end, it is worked on in parts, a phase each, */
	bool queries;
	/* which has so many rows of each slice before it; its own, 0: all that are left.  The
	 * feed gives the groups again */
	int64_t part_first, part_rows;
	/* tiles of all phases of its layer take turns, behind attention that waits for no later
	 * tile */
	bool behind_causal;
	int stack; /* its number, or of those that are stacked the first one's */
	/* the first phase of those that take turns tile by tile (engine_job_order.c) */
	int wavefront;
	/* and go on with the next layer's tiles while the last ones of this layer are worked on; */
	bool layer_overlap;
	int64_t lag; /* of a group's first phase then: tiles behind the first group */
};

struct engine {
	struct design *design;
	/* memory ports for weights; slices that the words of one are dealt to, a row each, in
	 * turn: */
	int ports, pes_per_port;
	int pes, pes_per_pair; /* all; slices of a set */
	/* sets of a process, at most; those whose processes hand groups on to each other */
	int pairs_per_process, pairs_per_chain;
	/* one process brings the words of the first `alone` ports, and one those of each
	 * `together` behind them */
	int first_ports, ports_per_loader;
	/* tokens that a slice takes a cycle, and of those the ones that share a multiplier */
	int tokens_per_cycle, tokens_per_dsp;
	int end_count_most; /* of the phases that are worked on in the same loops */
	/* rows between phases of a block that some slice has no words of */
	int gaps_most;
	/* one token: a phase takes a group when it first works on it, else while it works on the
	 * one before */
	bool streams_groups;
	VEC(struct job) jobs; /* in program order, which is the order of work */
	/* words: the numbers of a group; an f32 for each slice of a set, for each token abreast */
	const struct type *group, *real;
	/* slots: groups that are kept, of all tokens of a tile */
	int64_t group_slots, block_most, words_most;
	int64_t distance;       /* cycles between two additions to one sum, at least */
	struct value **weights; /* [slices] FIFOs */
	/* [engine_scalers][dealt] FIFOs of scales, or of parts of their words */
	struct value **scale_words;
	/* [slices / products] FIFOs; of groups for the first set of each process */
	struct value **input, **scale, **sums;
	/* sums of tokens abreast come one token after another: */
	bool serializes_tokens;
	struct value **collected; /* FIFOs of that, an f32 for each slice of a set; else `sums` */
	/* [engine_scalers] FIFOs from the feed to where scales are handed out */
	struct value **scales;
};

/* Calls `add` for every phase, or every tile of it, in the order of work: inside the loop over
 * the layers where it has one, and those over tiles. */
typedef void job_visitor(
        const struct engine *engine, struct process *p, const struct job *job, void *context);
void engine_each_job(
        const struct engine *engine, struct process *p, job_visitor *add, void *context);
/* The same, where what phases give is not told apart: joined ones are a phase of the blocks of
 * all. */
void engine_each_pipeline(
        const struct engine *engine, struct process *p, job_visitor *add, void *context);
/* Phases first … end - 1 take the same numbers, or the only one. */
typedef void job_group_visitor(
        const struct engine *engine, struct process *p, int first, int end, void *context);
/* Those of one loop, over the layers where there are any; returns the phase behind them.  alone:
 * of a launch of one tile all phases of a layer are one group, since nobody asks which of them
 * is at work. */
int engine_walk_loop(const struct engine *engine, struct process *p, int first, bool single_tile,
        job_group_visitor *add, void *context);
/* The same for what asks only how many words there are, not whose: a loop of all tiles and
 * phases of a layer, and where layers go on without a break such of single groups in front of it
 * and behind it. */
struct job_span {
	int first, end; /* phases */
	int64_t tiles;
	const struct run_time_trip *run_time; /* NULL: all are */
};
typedef void job_span_visitor(struct process *p, struct job_span stretch, void *context);
void engine_each_span(const struct engine *engine, struct process *p, int first,
        job_span_visitor *add, void *context);
/* the phase behind those of one loop */
int engine_loop_end(const struct engine *engine, int first);
void engine_join_queries(struct engine *engine);
void engine_find_wavefronts(struct engine *engine);
/* Phases of the same numbers that have few rows each become one block. */
void engine_stack_jobs(struct engine *engine);
/* the phase behind those that are stacked on `first` */
int engine_stack_end(const struct engine *engine, int first);
/* of the block of all of them */
int64_t engine_stack_rows(const struct engine *engine, int first);
/* of each slice, without those of parts before it */
int64_t job_rows_per_pe(const struct engine *engine, const struct job *job);
int64_t job_block_rows_least(const struct engine *engine, const struct job *job);
/* Rows of a stack that memory has no words of for a slice, but those behind its last phase's and
 * in front of its first one's: at most GAPS_MOST. */
#define GAPS_MOST (2 * (JOB_ENDS_MOST - 1))
int engine_row_gaps(const struct engine *engine, int first, int pe, int64_t row[GAPS_MOST]);
/* Its phases, if there are any: as many slices as the other ports leave room for, beside the one
 * for scales, and what each does of a phase. */
void plan_engine(struct engine *engine, const struct block *body);
struct process engine_process(const struct engine *engine, const char *name);
/* of marked loops; with several tokens they follow each other without a break */
struct process engine_datapath(const struct engine *engine, const char *name);
int engine_pe_pairs(const struct engine *engine);
/* of a process, or as many times more as slices share a port: what is kept and counted is there
 * once */
#define PAIRS_PER_PROCESS 3
#define PROCESS_PAIRS_MOST (PAIRS_PER_PROCESS * PES_PER_PORT_MOST)
/* Processes that hand scales out: one, or one for each pairs_per_chain. */
int engine_scalers(const struct engine *engine);
struct scaler_range { /* sets that one of them serves */
	int first, end;
};

struct scaler_range engine_scaler_range(const struct engine *engine, int scaler);
struct value *engine_fifo(
        const struct engine *engine, const char *name, const struct type *word, int64_t depth);
/* The process's channel of a phase, whose tiles may be worked on in several places; *known: NULL
 * until it is asked for. */
struct value *engine_channel(
        struct process *p, struct value **known, struct value *stream, const char *name);
int64_t job_lanes(const struct job *job); /* of a word of its result */
/* its own, those of parts behind it, and as many as slices without a first row would have */
int64_t job_outputs(const struct engine *engine, const struct job *job);
/* of the first part of its contraction */
int job_number(const struct engine *engine, const struct job *job);
int64_t engine_widest_result(const struct engine *engine); /* the most of all phases */
/* Words of the result go over the rows of all slices, one row of each after another: after so
 * many rows of each a word begins with the first slice again. */
int64_t engine_rows_per_period(const struct engine *engine, int64_t lanes);
/* Opens the loops of a phase, or of a tile of it: blocks, groups, rows of a block, tokens.
 * Those of all phases are one datapath; one of one token each has no loop over them, and returns
 * 3. */
#define ENGINE_LOOPS 4
int engine_job_loops(const struct engine *engine, struct process *p, const struct job *job,
        struct value *counter[ENGINE_LOOPS]);
struct value **engine_group_buffers(
        const struct engine *engine, struct process *p, const char *name, const struct type *word);
/* Of a phase of one token, which works on what comes as it comes: the first block takes it, and
 * keeps it for the others.  next: NULL, or what comes goes there as well. */
struct value *engine_stream_group(struct process *p, struct value *const *counter, struct value *in,
        struct value *buffer, struct value *next);
/* Of one with several, that takes them: takes the first group of a tile, all tokens, before the
 * loops of the tile … */
void engine_load_first_group(const struct engine *engine, struct process *p, const struct job *job,
        struct value *in, struct value *const *buffer, struct value *next);
/* … and in them, while a group is worked on, the next one. */
void engine_prefetch_group(const struct engine *engine, struct process *p, const struct job *job,
        struct value *const *counter, struct value *in, struct value *const *buffer,
        struct value *next);
/* Where the tokens of a word are kept, from the loops of a phase. */
struct value *engine_group_address(const struct engine *engine, struct process *p,
        const struct job *job, struct value *const *counter);
/* Opens a loop of a datapath that phases share: a phase's own number of turns, or those that are
 * there.  there: NULL: all are. */
struct value *engine_loop(struct process *p, int64_t trips, const struct run_time_trip *run_time);
/* The same over tokens of a word. */
struct value *engine_token_loop(
        const struct engine *engine, struct process *p, const struct job *job);
/* Tokens of a word: one, where that is all there are.  NULL: always as many. */
const struct run_time_trip *engine_token_run_time(
        struct process *p, const struct job *job, int64_t most);
#define FIRST_GROUP_MARK 1 /* number of the datapath of engine_load_first_group */
/* A word of weights, or of their scales: taken for the first token, and those behind it use the
 * same; for the rows that the slice has, or one that is read with it.  slice: -1: scales, of
 * all. */
struct value *engine_pop_word(const struct engine *engine, struct process *p, const struct job *job,
        struct value *const *counter, int pe, struct value *fifo);
/* the first of the slices whose words one process brings, in step; -1 of -1 */
int engine_loader_first_pe(const struct engine *engine, int pe);
/* the port behind those whose words come with its own */
int engine_loader_end_port(const struct engine *engine, int port);
/* the first, which none of those that are loaded with it has; -1, scales: it is there */
bool job_lacks_first_row(const struct engine *engine, const struct job *job, int pe);
/* of the last block, that the memory of this slice has words of; -1: that of scales */
int64_t job_last_block_rows(const struct job *job, int pe);
/* FIFOs of what memory brings: the words of weights, and those of scales. */
void lower_weight_loaders(struct engine *engine);
/* Where tokens share multipliers in pairs: what stands between the feed and its chains of
 * slices. */
void lower_operand_correction(const struct engine *engine, struct value *in, int chains,
        struct value *const *pairs_per_chain);
/* The process of set `number`, and of some behind it; returns the set behind those. */
int lower_pe(const struct engine *engine, int number);
/* Behind as many of them as a process has, from `number` on, where `serial`: phases of a layer
 * are of as many tokens. */
void lower_token_serializer(const struct engine *engine, int number);
bool engine_can_serialize(const struct engine *engine);
void lower_result_collector(const struct engine *engine);
/* is a word of some phase's result narrower than what a set gives? */
bool engine_has_narrow_results(const struct engine *engine);
#endif
