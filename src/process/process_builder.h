/* Builds hardware-level processes: functions with channels and memory ports as arguments, whose
 * bodies are constants followed by nests of counted loops. */
#ifndef STC_PROCESS_BUILDER_H
#define STC_PROCESS_BUILDER_H
#include "process/design_builder.h"

struct process {
	struct design *design;
	struct module *module;
	struct op *function;
	struct location location;    /* of the op that it is made of */
	struct block *entry, *block; /* block: of the innermost open loop */
	VEC(struct value *) channel; /* main's values, in argument order */
	VEC(const struct attr *) argument_attrs;
	struct value *layer;   /* counter of the layer loop, or NULL */
	int64_t layers_before; /* layers before the first one of that loop */
	int rolled;            /* layer loops so far */
	struct map constants;
};

/* A process that runs as often as the op that is being lowered. */
struct process process_new(struct design *design, const char *name);
/* Makes main's channel or port an argument of this process; each call makes a new argument. */
struct value *process_argument(struct process *process, struct value *channel, const char *name);
/* closes all loops, adds the function and its call */
void process_finish(struct process *process);

/* opens a loop; returns its counter */
struct value *process_loop(struct process *process, int64_t trips);
/* run_time: its count in this launch times trips / most; NULL: `trips` */
struct value *process_loop_run_time(
        struct process *process, int64_t trips, const struct run_time_trip *run_time);
struct value *process_loop_value(struct process *process, struct value *trips);
/* sets a unit attribute of the innermost open loop */
void process_mark(struct process *process, enum attr_key key);
/* opens the loop around what only the last launch does; returns how many it opened */
int process_last_chunk(struct process *process);
/* opens one iteration per word of the stream; returns the loops opened */
int process_word_loops(struct process *process, const struct type *stream);
/* the same, the innermost loop pipelined */
int process_word_pipeline(struct process *process, const struct type *stream);
/* `times` the number of iterations in this launch */
struct value *process_trip_count(
        struct process *process, const struct run_time_trip *trip, int64_t times);
/* Tokens of this launch, with the padding of its last tile; no token: a number below 1. */
struct value *process_token_count(struct process *process, const struct launch_tokens *rows);
/* The position of a counter that skips the rows before a sliding window; without one,
 * the counter. */
struct value *process_window_index(struct process *process, const struct run_time_trip *trip,
        int64_t times, struct value *counter);
/* pipelines the innermost open loop */
void process_pipeline(struct process *process, int interval);
void process_close(struct process *process, int loops);
/* opens the layer loop, if there is one */
void process_layers(struct process *process);
/* Opens a loop per trip > 1 (at least one loop in all), the innermost pipelined; counter[i] is NULL
 * where trip is 1. Returns the loops opened. */
int process_nest(struct process *process, int dims, const int64_t *trip, int interval,
        struct value **counter);
/* the bounds of a loop nest, from outside to inside */
struct loop_bounds {
	int loops;
	const int64_t *trip; /* [loops] iterations, at most */
	/* [loops] dynamic bounds; NULL: all are fixed */
	const struct run_time_trip *const *run_time;
};
/* the same, with dynamic bounds */
int process_nest_run_time(
        struct process *process, struct loop_bounds bounds, int interval, struct value **counter);

/* A process between two FIFOs of different word widths; `stream`: the type of the wider side. */
void add_cast(struct design *design, const char *name, struct value *from, struct value *to,
        const struct type *stream);
/* packs `words` words in full ones, of which the last need not be filled */
void add_pack(struct design *design, struct value *from, struct value *to, int64_t words);

#endif
