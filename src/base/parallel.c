/* One extra thread takes tasks from a shared counter. */
#define _POSIX_C_SOURCE 200809L
#include "base/parallel.h"
#include "base/guard.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

struct task_queue {
	const struct task *task;
	int count;
	atomic_int next;
};

struct worker {
	struct task_queue *task_queue;
	struct guard *guard;
	int first;
	struct arena *scratch;
};

static void run_task(struct worker *worker, int number)
{
	const struct task *task = &worker->task_queue->task[number];
	if (!setjmp(worker->guard->leave)) {
		worker->scratch = arena_new(worker->guard);
		task->run(task->data, worker->scratch);
	}
	arena_free(worker->scratch);
	worker->scratch = NULL;
}

static void run_tasks(struct worker *worker)
{
	for (int number = worker->first;
	        number < worker->task_queue->count && worker->guard->reason == GUARD_NONE;
	        number = atomic_fetch_add(&worker->task_queue->next, 1))
		run_task(worker, number);
}

static void *worker_main(void *worker)
{
	run_tasks(worker);
	return NULL;
}

/* Signals are blocked in the worker, so that the caller's thread gets them. */
static bool start_worker(pthread_t *thread, struct worker *worker)
{
	sigset_t all;
	sigset_t before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool begun = !pthread_create(thread, NULL, worker_main, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return begun;
}

void tasks_run(struct guard *guard, int count, const struct task *task)
{
	struct task_queue task_queue = { .task = task, .count = count, .next = 2 };
	struct guard outer = *guard;
	struct guard worker_guard = { .stage = guard->stage };
	struct worker own = { &task_queue, guard, 0, NULL };
	struct worker other = { &task_queue, &worker_guard, 1, NULL };
	pthread_t thread;
	bool has_worker = count > 1 && start_worker(&thread, &other);
	if (!has_worker)
		task_queue.next = 1;
	run_tasks(&own);
	if (has_worker)
		pthread_join(thread, NULL);
	guard_count(guard, worker_guard.steps);
	memcpy(guard->leave, outer.leave, sizeof outer.leave);
	if (guard->reason != GUARD_NONE)
		longjmp(guard->leave, 1);
	if (worker_guard.reason != GUARD_NONE)
		guard_leave(guard, worker_guard.reason, "%s", worker_guard.message);
}
