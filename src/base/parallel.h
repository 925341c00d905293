/* Runs independent tasks on two threads. */
#ifndef STC_PARALLEL_H
#define STC_PARALLEL_H
#include "base/arena.h"

/* A task may change nothing that another one reads. scratch: freed when the task is done. */
struct task {
	void (*run)(void *data, struct arena *scratch);
	void *data;
};

/* Starts the tasks in order, two at a time, and returns when all are done. The first runs on the
 * caller's thread and may do what the caller may; the others may only allocate in their scratch
 * arena. If one leaves its guard, the others still finish, and then `guard` is left. */
void tasks_run(struct guard *guard, int count, const struct task *task);

#endif
