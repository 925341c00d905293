/* Feedback of tokens on the device: a launch may have several steps of one token each. After each
 * step the design copies its output to the input for the next token and advances the positions
 * (docs/ir.md, stream.feedback). If the input has a run-time number of tokens, the first steps take
 * as many prompt tokens as it has rows, later ones take one. */
#ifndef STC_FEEDBACK_H
#define STC_FEEDBACK_H
#include "ir/ir.h"

/* steps of a launch in reports, as many as `streamtensor generate` uses */
#define FEEDBACK_TOKENS 16

struct platform;

struct feedback {
	/* the input that receives the output for the next token */
	const char *input, *output;
	/* the input that holds the number of tokens in `input`; NULL: all */
	const char *rows;
	/* memory image that also holds the text: the input's row of every token of the launch, and
	 * of the one after it */
	const char *buffer;
	int64_t offset; /* element of the buffer where the text starts */
	/* elements per token of the input (all of it without `rows`); maximum steps of a launch */
	int64_t elements, most;
	/* of the input: tokens, and elements between two tokens */
	int64_t chunk_tokens, pitch;
};

/* Maximum tokens of an input, from its entry of stream.inputs; 1 if they are not counted. */
int64_t feedback_chunk_tokens(const struct attr *entry);
/* Reads the attribute of main at hardware level. false: a launch is one step. */
bool feedback_read(const struct op *main, struct feedback *feedback);
/* Rows of the text for so many steps of at most chunk_tokens tokens: the first token, the tokens of
 * all later steps, and the one that the last step produces. */
int64_t feedback_text_tokens(int64_t steps, int64_t chunk_tokens);
/* Position of an element of the input in the text, counted from its first row; in the text the
 * elements of a row are contiguous. */
int64_t feedback_text_index(const struct feedback *feedback, int64_t element);
/* Amount by which an input grows per token of a step, from its entry of stream.inputs; 0: it is
 * constant. */
int64_t feedback_increment(const struct attr *entry);
/* Does the segment belong to the input, or output, of this name? */
bool feedback_is_of(const struct attr *segment, const char *name, bool output);
/* does the feedback read or write this buffer? */
bool feedback_touches(const struct op *main, const char *buffer);
/* cycles between two steps of so many tokens; 0: there is no feedback */
int64_t feedback_cycles(const struct platform *platform, const struct op *main, int64_t rows);
#endif
