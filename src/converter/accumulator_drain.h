/* A kernel that holds its whole result until the last term serves the readers of a buffer behind
 * it from its sums: two arrays of the same tensor are one.  Each reader has the order that it
 * wants. */
#ifndef STC_SERVED_H
#define STC_SERVED_H
#include "itensor/box.h"
#include "process/process_builder.h"

struct accumulator_drain {
	const struct op *buffer;        /* NULL: there is none */
	int64_t lanes, words;           /* of the array */
	const struct type *const *type; /* [readers] what each gets: the buffer's results first */
	struct box *box;                /* [readers] */
	/* [loops] elements of the box from one point of the kernel's loop to the next; NULL: all
	 * readers want the elements in the kernel's own order */
	int64_t *stride;
};

/* scheduled: a sum for each of its results is kept until the end, each in a word of the result */
bool kernel_holds_result(const struct op *op);
/* false: it cannot be */
bool match_accumulator_drain(struct arena *arena, const struct op *writer,
        const struct type *tensor, int readers, const struct type *const *type,
        struct accumulator_drain *accumulator_drain);
bool can_drain_accumulators(struct arena *arena, const struct op *writer, const struct type *tensor,
        int readers, const struct type *const *type);
bool is_drained_by_writer(struct arena *arena, const struct op *buffer); /* stream.buffer */
/* by the buffer behind it */
struct accumulator_drain accumulator_drain_of(struct arena *arena, const struct op *kernel);
/* phase after phase */
void emit_accumulator_drain(
        struct process *p, const struct accumulator_drain *accumulator_drain, struct value *array);
/* a nest over whole words in a reader's order; returns the loops opened */
int drain_word_nest(struct process *p, const struct accumulator_drain *accumulator_drain,
        int reader, struct value **address);
#endif
