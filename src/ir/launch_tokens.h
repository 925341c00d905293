/* Rows of a launch: the tokens that it is about, of which there may be fewer than the module was
 * made for. Rows fall into tiles.  Of n rows there are ceil(n / tile) tiles, each of min(n,
 * tile) rows, so that every loop over them is bound by n alone, and of one row one is worked on:
 * row r is there if r / tile and r % tile are below these two.  The last tile may hold rows that
 * no one asked for. */
#ifndef STC_ROWS_H
#define STC_ROWS_H
#include "ir/ir.h"

struct launch_tokens {
	int64_t most, tile; /* tile divides most */
	/* NULL: all are there.  tiles: also where there is one tile at most */
	const struct run_time_trip *tiles, *each;
};

/* tiles that a unit is behind attention's first contractions in the one that takes its result:
 * it takes longer from a tile's first query to its last sum than the unit is on a tile of all */
#define ATTENTION_LAG_TILES 2

/* Rows of a tile: they divide all of them.  counted: how many are there is known at run time. */
int64_t token_tile(int64_t most, bool counted);
/* two to four tiles, all of them there: layers follow each other with a break, of more without
 * one */
bool layers_drain_between(int64_t most);
/* symbol: the input that says how many there are; NULL: all. */
struct launch_tokens launch_tokens_of(struct arena *arena, const char *symbol, int64_t most);
/* The dim of the tensor that is its rows, `pitch` elements apart; -1: none is. */
int token_axis(const struct type *tensor, int64_t pitch, int64_t most);
/* Does the input with this name say how many rows a launch is about?  Such a launch is about one
 * at least.  main: of stream level, or below. */
bool tokens_counted_by(const struct op *main, const char *symbol);
/* the first whose rows count, in stream.inputs; -1: of none they do */
int counted_token_input(const struct op *main);
/* the input that says how many; NULL: there is none */
const char *token_count_symbol(const struct op *main);
int64_t rows_most(const struct op *main); /* rows of which that input says how many count */
/* May it say one more?  All rows count then, and another launch goes on with the text: what only
 * results without rows need is not done (streams/mark_last_chunk_only.c). */
bool launch_may_continue(const struct op *main);
/* stream.dims of a tensor whose dim `axis` is rows of the launch. */
const struct attr *token_dims(
        struct module *module, const struct type *tensor, int axis, const char *symbol);
#endif
