/* Tokens of a launch, of which there may be fewer than the module was compiled for. Tokens fall
 * into tiles: of n tokens there are ceil(n / tile) tiles with min(n, tile) tokens each, so all
 * loops over tokens are bounded by n alone, and of one token only one is computed. Token t is
 * computed if t / tile and t % tile are below these two bounds; the last tile may hold tokens that
 * nobody asked for. */
#ifndef STC_LAUNCH_TOKENS_H
#define STC_LAUNCH_TOKENS_H
#include "ir/ir.h"

struct launch_tokens {
	int64_t most, tile; /* maximum tokens; tokens per tile, a divisor */
	/* run-time number of tiles, and of tokens per tile; NULL: constant (tiles also where there
	 * is at most one tile) */
	const struct run_time_trip *tiles, *each;
};

/* Tiles by which the job that reads attention's result lags the job that feeds attention: attention
 * takes longer from a tile's first query to its last sum than the engine takes for a tile of all
 * jobs. */
#define ATTENTION_LAG_TILES 2

/* Tokens per tile, a divisor of `most`. counted: the token count is a run-time value. */
int64_t token_tile(int64_t most, bool counted);
/* With a fixed count of two to four tiles the engine drains between layers; with more tiles layers
 * overlap. */
bool layers_drain_between(int64_t most);
/* symbol: name of the input that holds the token count; NULL: all tokens. */
struct launch_tokens launch_tokens_of(struct arena *arena, const char *symbol, int64_t most);
/* The dim of the tensor whose elements are `pitch` apart and that has `most` of them: the token
 * dim; -1 if there is none. */
int token_axis(const struct type *tensor, int64_t pitch, int64_t most);
/* Is the input with this name a token count? Its value is at least one. main: of stream level or
 * below. */
bool tokens_counted_by(const struct op *main, const char *symbol);
/* index in stream.inputs of the first input with a run-time number of tokens; -1 if there is
 * none */
int counted_token_input(const struct op *main);
/* name of the input that holds the token count; NULL if the count is fixed */
const char *token_count_symbol(const struct op *main);
int64_t rows_most(const struct op *main); /* maximum tokens of that input */
/* May the token count be one more than the maximum? Then all tokens are computed and another launch
 * continues the prompt: what only results of the last token need is skipped
 * (streams/mark_last_chunk_only.c). */
bool launch_may_continue(const struct op *main);
/* The stream.dims attribute of a tensor whose dim `axis` is the token dim. */
const struct attr *token_dims(
        struct module *module, const struct type *tensor, int axis, const char *symbol);
#endif
