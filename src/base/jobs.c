#define _POSIX_C_SOURCE 200809L
#include "base/jobs.h"
#include "base/guard.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

struct jobs {
	const struct job *job;
	int count;
	atomic_int next;
};

struct worker {
	struct jobs *jobs;
	struct guard *guard;
	int first;
	struct arena *scratch;
};

static void work(struct worker *worker, int number)
{
	const struct job *job = &worker->jobs->job[number];
	if (!setjmp(worker->guard->leave)) {
		worker->scratch = arena_new(worker->guard);
		job->run(job->data, worker->scratch);
	}
	arena_free(worker->scratch);
	worker->scratch = NULL;
}

static void work_all(struct worker *worker)
{
	for (int number = worker->first; number < worker->jobs->count && worker->guard->reason == GUARD_NONE; number = atomic_fetch_add(&worker->jobs->next, 1))
		work(worker, number);
}

static void *run_beside(void *worker)
{
	work_all(worker);
	return NULL;
}

/* A signal is for the caller's thread. */
static bool begin_beside(pthread_t *thread, struct worker *worker)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool begun = !pthread_create(thread, NULL, run_beside, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return begun;
}

void jobs_run(struct guard *guard, int count, const struct job *job)
{
	struct jobs jobs = {.job = job, .count = count, .next = 2};
	struct guard outer = *guard, apart = {.stage = guard->stage};
	struct worker own = {&jobs, guard, 0, NULL}, other = {&jobs, &apart, 1, NULL};
	pthread_t thread;
	bool beside = count > 1 && begin_beside(&thread, &other);
	if (!beside)
		jobs.next = 1;
	work_all(&own);
	if (beside)
		pthread_join(thread, NULL);
	memcpy(guard->leave, outer.leave, sizeof outer.leave);
	if (guard->reason != GUARD_NONE)
		longjmp(guard->leave, 1);
	if (apart.reason != GUARD_NONE)
		guard_leave(guard, apart.reason, "%s", apart.message);
}
