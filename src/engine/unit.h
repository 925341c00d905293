/* A contraction unit at hardware level: what plan_unit.c plans, and lower_unit.c, lower_words.c, lower_slice.c and lower_collect.c make processes of.
 *
 *   groups of numbers ── feed ──┬─► slices 0, 1 ─► slices 2, 3 ─► …       every slice: words of its memory port, products with the group, the sums of a block of rows
 *                               └─► slices k, k + 1 ─► …                          │
 *   their scales ── scale ──► every slice                                    collect: the rows of all slices in order
 *
 * Output n of a phase is row (start + n) / slices of slice (start + n) mod slices; where a port's words are dealt out to two slices, they are neighbours.  A slice takes its rows in blocks: for each group, every row of the block, so that a sum has as many
 * cycles as the block has rows to be added to.  With several tokens it uses a word of weights for all of a tile, `abreast` of them a cycle.
 * As many neighbouring slices as a multiplier makes products are a set; a process of slices has one, or several that keep the same groups. */
#ifndef STC_UNIT_H
#define STC_UNIT_H
#include "ir/contract.h"
#include "ir/nest.h"
#include "platform/platform.h"
#include "ports/memory.h"

#define JOINED_MOST 4         /* phases of one token that are worked on in the same loops */
struct phase_end {
	int64_t blocks, rows;     /* it is the last of so many; rows that there are words of, */
	int having;               /* of which so many slices, the first, have the last one */
};

struct phase {
	const struct op *op;
	struct contract contract;
	int64_t layers;           /* of the rolled layer around it; 0: outside */
	int64_t tiles, tile;      /* of tokens; tokens of a tile */
	int64_t words;            /* cycles that they take, abreast */
	struct launch_rows there; /* of the tokens */
	const struct run_time_trip *words_there;
	int64_t blocks, block;    /* of a slice; rows of a block */
	int64_t rows;             /* of the last block, that there are words of; those beyond are only there so that sums are far enough apart */
	int having;               /* slices, the first, that have the last of them; the others' memory has no words of it */
	int start;                /* slices, the first, that have no first row: so not the same ones bring most words of all phases */
	int ends;                 /* of what is worked on in the same loops: parts, */
	struct phase_end end[JOINED_MOST];        /* the last block of each */
	bool kept;                /* it takes no groups, since slices have those of the phase before it still */
	bool joined;              /* and is worked on in the same loops, since its blocks have as many rows: between two loops a pipeline drains */
	bool stacked;             /* its rows stand behind those of the phase before it in the only block of both, which has enough of them so (stack_phases.c) */
	int64_t takers;           /* blocks of all phases that take the same groups; of one, a slice keeps two groups */
	bool queries;             /* attention begins with its first outputs, head by head: where it would give all at the end, it is worked on in parts, a phase each, */
	int64_t from, part;       /* which has so many rows of each slice before it; its own, 0: all that are left.  The feed gives the groups again */
	bool turned;              /* tiles of all phases of its layer take turns, behind attention that waits for no later tile */
	int stack;                /* its number, or of those that are stacked the first one's */
	int series;               /* the first phase of those that take turns tile by tile (unit_order.c) */
	bool around;              /* and go on with the next layer's tiles while the last ones of this layer are worked on; */
	int64_t behind;           /* of a group's first phase then: tiles behind the first group */
};

struct unit {
	struct design *design;
	int ports, dealt;         /* memory ports for weights; slices that the words of one are dealt to, a row each, in turn: */
	int slices, products;     /* all; slices of a set */
	int together_sets, chain; /* sets of a process, at most; those whose processes hand groups on to each other */
	int alone, together;      /* one process brings the words of the first `alone` ports, and one those of each `together` behind them */
	int abreast, common;      /* tokens that a slice takes a cycle, and of those the ones that share a multiplier */
	int ends_most;            /* of the phases that are worked on in the same loops */
	int gaps_most;            /* rows between phases of a block that some slice has no words of */
	bool streams;             /* one token: a phase takes a group when it first works on it, else while it works on the one before */
	VEC(struct phase) phases; /* in program order, which is the order of work */
	const struct type *group, *real;          /* words: the numbers of a group; an f32 for each slice of a set, for each token abreast */
	int64_t slots, block_most, words_most;    /* slots: groups that are kept, of all tokens of a tile */
	int64_t distance;         /* cycles between two additions to one sum, at least */
	struct value **weights;   /* [slices] FIFOs */
	struct value **shares;    /* [unit_scalers][dealt] FIFOs of scales, or of parts of their words */
	struct value **input, **scale, **sums;    /* [slices / products] FIFOs; of groups for the first set of each process */
	bool serial;              /* sums of tokens abreast come one token after another: */
	struct value **collected; /* FIFOs of that, an f32 for each slice of a set; else `sums` */
	struct value **scales;    /* [unit_scalers] FIFOs from the feed to where scales are handed out */
};

/* Calls `add` for every phase, or every tile of it, in the order of work: inside the loop over the layers where it has one, and those over tiles. */
typedef void unit_add(const struct unit *unit, struct process *p, const struct phase *phase, void *context);
void unit_each(const struct unit *unit, struct process *p, unit_add *add, void *context);
/* The same, where what phases give is not told apart: joined ones are a phase of the blocks of all. */
void unit_each_joined(const struct unit *unit, struct process *p, unit_add *add, void *context);
/* Phases first … end - 1 take the same numbers, or the only one. */
typedef void unit_group(const struct unit *unit, struct process *p, int first, int end, void *context);
/* Those of one loop, over the layers where there are any; returns the phase behind them.  alone: of a launch of one tile all phases of a layer are one group, since nobody asks which of them is at work. */
int unit_walk_loop(const struct unit *unit, struct process *p, int first, bool alone, unit_group *add, void *context);
/* The same for what asks only how many words there are, not whose: a loop of all tiles and phases of a layer, and where layers go on without a break such of single groups in front of it and behind it. */
struct unit_stretch {
	int first, end;           /* phases */
	int64_t tiles;
	const struct run_time_trip *there;        /* NULL: all are */
};
typedef void unit_tiles(struct process *p, struct unit_stretch stretch, void *context);
void unit_each_stretch(const struct unit *unit, struct process *p, int first, unit_tiles *add, void *context);
int unit_loop_end(const struct unit *unit, int first);             /* the phase behind those of one loop */
void unit_join_queries(struct unit *unit);
void unit_find_series(struct unit *unit);
/* Phases of the same numbers that have few rows each become one block. */
void unit_stack_phases(struct unit *unit);
int unit_stack_end(const struct unit *unit, int first);            /* the phase behind those that are stacked on `first` */
int64_t unit_stack_rows(const struct unit *unit, int first);       /* of the block of all of them */
int64_t unit_rows_left(const struct unit *unit, const struct phase *phase);        /* of each slice, without those of parts before it */
int64_t unit_rows_least(const struct unit *unit, const struct phase *phase);
/* Rows of a stack that memory has no words of for a slice, but those behind its last phase's and in front of its first one's: at most GAPS_MOST. */
#define GAPS_MOST (2 * (JOINED_MOST - 1))
int unit_gaps(const struct unit *unit, int first, int slice, int64_t row[GAPS_MOST]);
/* Its phases, if there are any: as many slices as the other ports leave room for, beside the one for scales, and what each does of a phase. */
void plan_unit(struct unit *unit, const struct block *body);
struct process unit_process(const struct unit *unit, const char *name);
struct process unit_datapath(const struct unit *unit, const char *name);          /* of marked loops; with several tokens they follow each other without a break */
int unit_sets(const struct unit *unit);
#define SETS_TOGETHER 3       /* of a process, or as many times more as slices share a port: what is kept and counted is there once */
#define SETS_MOST (SETS_TOGETHER * DEALT_MOST)
/* Processes that hand scales out: one, or one for each chain. */
int unit_scalers(const struct unit *unit);
struct scaled {               /* sets that one of them serves */
	int first, end;
};

struct scaled unit_scaled(const struct unit *unit, int scaler);
struct value *unit_fifo(const struct unit *unit, const char *name, const struct type *word, int64_t depth);
/* The process's channel of a phase, whose tiles may be worked on in several places; *known: NULL until it is asked for. */
struct value *unit_channel(struct process *p, struct value **known, struct value *stream, const char *name);
int64_t phase_lanes(const struct phase *phase);           /* of a word of its result */
int64_t phase_outputs(const struct unit *unit, const struct phase *phase);        /* its own, those of parts behind it, and as many as slices without a first row would have */
int phase_number(const struct unit *unit, const struct phase *phase);             /* of the first part of its contraction */
int64_t unit_widest(const struct unit *unit);             /* the most of all phases */
/* Words of the result go over the rows of all slices, one row of each after another: after so many rows of each a word begins with the first slice again. */
int64_t unit_rows_in_turn(const struct unit *unit, int64_t lanes);
/* Opens the loops of a phase, or of a tile of it: blocks, groups, rows of a block, tokens.  Those of all phases are one datapath; one of one token each has no loop over them, and returns 3. */
#define UNIT_LOOPS 4
int unit_loops(const struct unit *unit, struct process *p, const struct phase *phase, struct value *counter[UNIT_LOOPS]);
struct value **unit_arrays(const struct unit *unit, struct process *p, const char *name, const struct type *word);
/* Of a phase of one token, which works on what comes as it comes: the first block takes it, and keeps it for the others.  next: NULL, or what comes goes there as well. */
struct value *unit_stream(struct process *p, struct value *const *counter, struct value *in, struct value *kept, struct value *next);
/* Of one with several, that takes them: takes the first group of a tile, all tokens, before the loops of the tile … */
void unit_begin(const struct unit *unit, struct process *p, const struct phase *phase, struct value *in, struct value *const *kept, struct value *next);
/* … and in them, while a group is worked on, the next one. */
void unit_ahead(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter, struct value *in, struct value *const *kept, struct value *next);
/* Where the tokens of a word are kept, from the loops of a phase. */
struct value *unit_group_place(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter);
/* Opens a loop of a datapath that phases share: a phase's own number of turns, or those that are there.  there: NULL: all are. */
struct value *unit_loop(struct process *p, int64_t trips, const struct run_time_trip *there);
/* The same over tokens of a word. */
struct value *unit_loop_tokens(const struct unit *unit, struct process *p, const struct phase *phase);
/* Tokens of a word: one, where that is all there are.  NULL: always as many. */
const struct run_time_trip *unit_abreast_there(struct process *p, const struct phase *phase, int64_t most);
#define UNIT_BEGIN 1          /* number of the datapath of unit_begin */
/* A word of weights, or of their scales: taken for the first token, and those behind it use the same; for the rows that the slice has, or one that is read with it.  slice: -1: scales, of all. */
struct value *unit_take_word(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter, int slice, struct value *fifo);
int unit_loaded_with(const struct unit *unit, int slice);          /* the first of the slices whose words one process brings, in step; -1 of -1 */
int unit_loaded_until(const struct unit *unit, int port);          /* the port behind those whose words come with its own */
bool phase_lacks_row(const struct unit *unit, const struct phase *phase, int slice);      /* the first, which none of those that are loaded with it has; -1, scales: it is there */
int64_t phase_rows(const struct phase *phase, int slice);          /* of the last block, that the memory of this slice has words of; -1: that of scales */
/* FIFOs of what memory brings: the words of weights, and those of scales. */
void lower_words(struct unit *unit);
/* Where tokens share multipliers in pairs: what stands between the feed and its chains of slices. */
void lower_lend(const struct unit *unit, struct value *in, int chains, struct value *const *chain);
/* The process of set `number`, and of some behind it; returns the set behind those. */
int lower_slice(const struct unit *unit, int number);
/* Behind as many of them as a process has, from `number` on, where `serial`: phases of a layer are of as many tokens. */
void lower_serial(const struct unit *unit, int number);
bool unit_serial_alike(const struct unit *unit);
void lower_collect(const struct unit *unit);
bool unit_has_narrow_words(const struct unit *unit);      /* is a word of some phase's result narrower than what a set gives? */
#endif
