/* A kernel that holds its whole result until the last term serves the readers of a buffer behind it from its sums: two arrays of the same tensor are one.  Each reader has the order that it wants. */
#ifndef STC_SERVED_H
#define STC_SERVED_H
#include "itensor/box.h"
#include "process/process.h"

struct served {
	const struct op *buffer;          /* NULL: there is none */
	int64_t lanes, words;     /* of the array */
	const struct type *const *type;   /* [readers] what each gets: the buffer's results first */
	struct box *box;          /* [readers] */
	int64_t *stride;          /* [loops] elements of the box from one point of the kernel's loop to the next; NULL: all readers want the elements in the kernel's own order */
};

bool kernel_holds_result(const struct op *op);            /* scheduled: a sum for each of its results is kept until the end, each in a word of the result */
bool find_served(struct arena *arena, const struct op *writer, const struct type *tensor, int readers, const struct type *const *type, struct served *served);    /* false: it cannot be */
bool can_be_served(struct arena *arena, const struct op *writer, const struct type *tensor, int readers, const struct type *const *type);
bool served_by_writer(struct arena *arena, const struct op *buffer);     /* stream.buffer */
struct served served_of(struct arena *arena, const struct op *kernel);   /* by the buffer behind it */
void serve_results(struct process *p, const struct served *served, struct value *array);          /* phase after phase */
int served_words(struct process *p, const struct served *served, int reader, struct value **address);    /* a nest over whole words in a reader's order; returns the loops opened */
#endif
