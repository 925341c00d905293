/* A kernel that holds its whole result until the last term serves the readers of a buffer behind it from its sums: two arrays of the same tensor are one.  Each reader has the order that it wants. */
#ifndef STC_SERVED_H
#define STC_SERVED_H
#include "model/box.h"
#include "pass/process.h"

struct served {
	const struct op *buffer;          /* NULL: there is none */
	struct box *box;          /* [results] */
	int64_t *stride;          /* [loops] elements of the box from one point of the kernel's loop to the next; NULL: all readers want the elements in the kernel's own order */
};

bool kernel_holds_result(const struct op *op);            /* scheduled: a sum for each of its results is kept until the end, each in a word of the result */
bool can_be_served(struct arena *arena, const struct op *writer, const struct type *tensor, int readers, const struct type *const *type);
bool served_by_writer(struct arena *arena, const struct op *buffer);     /* stream.buffer */
struct served served_of(struct arena *arena, const struct op *kernel);   /* by the buffer behind it */
void serve_results(struct process *p, const struct served *served, struct value *array, int64_t words);  /* phase after phase */
#endif
