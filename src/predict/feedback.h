/* Launches of several steps, a token each: behind each of them the design makes its output the
 * input that it feeds, and moves the positions on (docs/ir.md, stream.feedback). Where the input
 * has rows that count, steps are about as many of the given tokens as there are rows, and behind
 * them about one. */
#ifndef STC_FEEDBACK_H
#define STC_FEEDBACK_H
#include "ir/ir.h"

/* of a launch, in reports: as many as `streamtensor generate` takes */
#define FEEDBACK_TOKENS 16

struct platform;

struct feedback {
	/* the input that takes the output's numbers for the next token */
	const char *input, *output;
	/* the input that says how many rows of `input` count; NULL: all */
	const char *rows;
	/* holds the text as well: a row of the input's for every token of the launch, and for
	 * the one behind them */
	const char *buffer;
	int64_t offset; /* element of the buffer with which the text begins */
	/* of a row of the input, which is all of it without `rows`; steps of a launch */
	int64_t elements, most;
	/* of the input, along the axis of rows: how many there are, elements from one to the
	 * next */
	int64_t chunk_tokens, pitch;
};

/* Of the input of that entry of stream.inputs: how many rows there are, if they count; 1: all of
 * it is one. */
int64_t feedback_chunk_tokens(const struct attr *entry);
/* Of main at hardware level.  false: a launch is one token. */
bool feedback_read(const struct op *main, struct feedback *feedback);
/* Rows of the text where so many steps are about so many rows at most: the first of the launch,
 * all of the steps behind the first, and the one that the last leaves. */
int64_t feedback_text_tokens(int64_t steps, int64_t chunk_tokens);
/* Where is this element of the input in the text, from its first row on?  There the numbers of a
 * row stand together. */
int64_t feedback_text_index(const struct feedback *feedback, int64_t element);
/* By how much the input of that entry of stream.inputs grows with every row that a step was
 * about; 0: it stays. */
int64_t feedback_increment(const struct attr *entry);
/* Is the segment of the input, or of the output, of that name? */
bool feedback_is_of(const struct attr *segment, const char *name, bool output);
/* what is done between tokens reads or writes it */
bool feedback_touches(const struct op *main, const char *buffer);
/* from a step to the next one, of so many rows; 0: there is none */
int64_t feedback_cycles(const struct platform *platform, const struct op *main, int64_t rows);
#endif
