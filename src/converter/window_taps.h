/* The taps of a window: the words of a line buffer (src/itensor/line_buffer.h) that are read at
 * once. */
#ifndef STC_WINDOW_TAPS_H
#define STC_WINDOW_TAPS_H
#include "itensor/line_buffer.h"
#include "process/operation_builder.h"

struct window_taps;

struct window_taps *window_taps_new(struct process *p, const struct line_buffer *line_buffer,
        const struct type *from, const struct type *to);
/* Adds a word of those before the first position; at_first: is it the first one? */
void window_taps_begin(
        struct process *p, struct window_taps *taps, struct value *at_first, struct value *word);
/* Adds a word if `when` (NULL: always), so that the window moves by it. */
void window_taps_add(
        struct process *p, struct window_taps *taps, struct value *when, struct value *word);
/* The tile that ends with the newest word; of columns, that of the reader's counters, whose
 * innermost moving one counts `early` positions more. */
struct value *window_taps_read(
        struct process *p, struct window_taps *taps, struct value *const *counter, int64_t early);
#endif
