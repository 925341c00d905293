/* Processes that append rows to a state: what the files about them share. */
#ifndef STC_APPEND_INTERNAL_H
#define STC_APPEND_INTERNAL_H
#include "process/process_builder.h"

bool lower_append_rows(struct design *design, const struct op *store, const struct state *state,
        const struct type *whole);
/* Are the extents above the axis a multiple of `parts`, so that all words of a part precede those
 * of the next? */
bool append_rows_in_partitions(const struct op *store, int axis, int parts);
/* the same for the rows that are written to a state */
bool append_in_partitions(struct design *design, const char *state, int parts);
/* may a launch append several rows to the state? */
bool append_has_rows(struct design *design, const char *state);
bool lower_append(struct design *design, const struct op *store);
/* For a process that appends to a state: append_ports makes its memory ports; append_wait waits
 * until all is read; append_begin does so at the beginning of a layer, and stores the position in
 * the array that it returns. */
struct value **append_ports(struct process *p, const struct state *state, const struct type *word);
void append_wait(struct process *p, const struct state *state, struct value *when);
/* The dynamic extent that is the position of appended rows, which selects one of several ports.
 * NULL: the position comes by FIFO. */
const char *append_extent(struct design *design, const struct op *store, const struct state *state);
/* the array with the position; NULL: `extent` is the position */
struct value *append_begin(
        struct process *p, const struct state *state, const char *extent, struct value *position);
/* the position, clamped below `rows` */
struct value *append_position(
        struct process *p, const char *extent, struct value *position_array, int64_t rows);
/* A word that is appended to a state whose position selects the port. `lanes` may be fewer than the
 * port's. outer: address of the port's word from which the index of the axis counts; inner: words
 * (of `lanes`) from there on. */
struct appended_word {
	struct value *word;
	int64_t lanes;
	struct value *outer, *inner;
};
void append_interleaved(struct process *p, const struct state *state, struct value *const *memory,
        const struct appended_word *appended);

#endif
