/* Pieces of work side by side, on two cores. */
#ifndef STC_PARALLEL_H
#define STC_PARALLEL_H
#include "base/arena.h"

/* Changes nothing that another job looks at.  scratch: goes when the job is done. */
struct task {
	void (*run)(void *data, struct arena *scratch);
	void *data;
};

/* Begins them in order, two at a time, and is back when all are done.  The first is the caller's
 * own thread's, and may do whatever the caller may; the others allocate in their scratch alone.
 * Where one leaves its guard the others are done all the same, and then `guard` is left. */
void tasks_run(struct guard *guard, int count, const struct task *task);

#endif
