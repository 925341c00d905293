/* A kernel that holds its whole result until the last term serves the readers of a buffer behind it from its sums: two arrays of the same tensor are one. */
#ifndef STC_SERVED_H
#define STC_SERVED_H
#include "pass/process.h"

bool kernel_holds_result(const struct op *op);            /* scheduled: a sum for each of its results is kept until the end, each in a word of the result */
bool served_by_writer(struct arena *arena, const struct op *buffer);     /* stream.buffer */
void serve_results(struct process *p, const struct op *buffer, struct value *array, int64_t words);      /* phase after phase */
#endif
