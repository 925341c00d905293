/* Folds a buffer with several readers into the kernel that fills it: two arrays of the same tensor
 * become one.
 * Before: kernel { sums[] } -> FIFO -> buffer { array[]; read for each reader } -> FIFOs -> readers
 * After:  kernel { sums[]; read for each reader } -> FIFOs -> readers
 * Legal when the kernel holds a sum for every word of its result until the last term. Each reader
 * has the order that it wants. */
#ifndef STC_ACCUMULATOR_DRAIN_H
#define STC_ACCUMULATOR_DRAIN_H
#include "itensor/box.h"
#include "process/operation_builder.h"

struct accumulator_drain {
	const struct op *buffer; /* NULL: there is none */
	int64_t lanes, words;    /* lanes and words of the array */
	int readers;
	/* [readers] types of the readers' streams: the buffer's results first */
	const struct type *const *type;
	struct box *box; /* [readers] */
	/* [loops] elements of the box from one iteration of the kernel's loop to the next; NULL:
	 * all readers want the elements in the kernel's own order */
	int64_t *stride;
};

/* Does a scheduled kernel hold a sum for each of its results until the last term, each in a word of
 * the result? */
bool kernel_holds_result(const struct op *op);
/* Fills the fields of a drain whose readers and types are set; false: the writer cannot
 * serve them. */
bool match_accumulator_drain(struct arena *arena, const struct op *writer,
        const struct type *tensor, struct accumulator_drain *accumulator_drain);
bool can_drain_accumulators(struct arena *arena, const struct op *writer, const struct type *tensor,
        int readers, const struct type *const *type);
/* Can the kernel that writes the buffer (a stream.buffer) drain its accumulators to all readers? */
bool is_drained_by_writer(struct arena *arena, const struct op *buffer);
/* the drain for the kernel's stream.buffer, if it has one with in_producer */
struct accumulator_drain accumulator_drain_of(struct arena *arena, const struct op *kernel);
/* pushes the words of all readers, service round after service round */
void emit_accumulator_drain(
        struct process *p, const struct accumulator_drain *accumulator_drain, struct value *array);
/* opens a nest over whole words in a reader's order; returns the loops opened */
int drain_word_nest(struct process *p, const struct accumulator_drain *accumulator_drain,
        int reader, struct value **address);
#endif
