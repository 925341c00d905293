/* A line buffer: a ring between a writer that sends each word once and a reader whose tiles overlap
 * (convolution or pooling windows). It holds the words from the oldest to the newest of one window
 * position: for a k x k window k - 1 rows and k words.
 *
 * A reader's tile may hold several words of the writer, the *taps* of a window, along one data dim
 * or two. Then a memory has a word for each column, of the taps in it, which shift as a word comes:
 *
 *     word ─► column of taps ─► memory of columns ─► a column a cycle      the window moves in time
 *                            └► columns of taps, shifted as well ─► a window a cycle */
#ifndef STC_LINE_BUFFER_H
#define STC_LINE_BUFFER_H
#include "itensor/box.h"

struct line_buffer {
	const char *why; /* NULL, or why a ring is not possible */
	/* the reader's loops that move the window; the inner ones read one position */
	int outer;
	int loops;            /* loops of the reader in normal form */
	int64_t *trip, *step; /* [loops]; step in words of the writer's sequence */
	int64_t start;        /* position of the first word read in the writer's sequence */
	int64_t words;        /* words in the ring */
	int64_t first;        /* words received before the first position */
	int64_t *carry;       /* [outer] words received when that loop advances */
	int64_t rest;         /* words received after the last position */
	int64_t taps[2];  /* words of a tile along the outer and the inner dim of them; 1: no dim */
	int tap_dim[2];   /* data dims of both */
	int64_t pitch[2]; /* words of the writer between taps along them */
	/* words of the next turn of loop `ahead_loop` that each position receives, so that no read
	 * waits for what a window skips there: the ring holds all words that two turns read; 0:
	 * none */
	int64_t ahead;
	int ahead_loop;
	int64_t delay;    /* cycles of a position before its first read */
	int64_t elements; /* on chip, at least */
	/* the new words of the innermost outer loop arrive just in time while the window is read,
	 * so that a position takes no more cycles than its reads and the delay */
	bool streams;
	/* of one pass: reads, and words received between positions */
	int64_t cycles;
};

struct line_buffer line_buffer_between(
        struct arena *arena, const struct type *from, const struct type *to);
/* Does a tile hold several words of the writer? */
bool line_buffer_has_taps(const struct line_buffer *line_buffer);
/* Do taps come from a memory of columns, since positions are read column by column?  Else they are
 * registers. */
bool line_buffer_reads_columns(const struct line_buffer *line_buffer);
/* Is the ring smaller than the box between the same types, and hardly slower?  A box also delays
 * its reader by what it holds. */
bool line_buffer_is_better(const struct line_buffer *line_buffer, const struct box *box);

#endif
