/* A ring buffer between a writer that sends each word once and a reader whose tiles overlap (the
 * windows of a convolution, of pooling): it holds what lies between the oldest and the newest
 * word of one position of the window, for a k x k window over rows k - 1 rows and k words. */
#ifndef STC_LINE_BUFFER_H
#define STC_LINE_BUFFER_H
#include "itensor/box.h"

struct line_buffer {
	const char *why; /* NULL, or why no ring serves the reader */
	/* the reader's loops that move the window; those inside read one position */
	int outer;
	int loops;            /* of the reader, normal form */
	int64_t *trip, *step; /* [loops]; step in words of the writer's sequence */
	int64_t start;        /* first word read, counted in the writer's sequence */
	int64_t words;        /* that the ring holds */
	int64_t first;        /* words taken before the first position */
	int64_t *carry;       /* [outer] words taken when that loop goes on */
	int64_t rest;         /* words taken after the last position */
	/* the innermost loop's words come just in time while the window is read, so a position
	 * costs no cycle more than its reads */
	bool streams;
	/* of one pass: reads, and words that are taken between positions */
	int64_t cycles;
};

struct line_buffer line_buffer_between(
        struct arena *arena, const struct type *from, const struct type *to);
/* Is the ring smaller than the box between the same types, and no slower? */
bool line_buffer_is_better(const struct line_buffer *line_buffer, const struct box *box);

#endif
