/* Work side by side: each piece is done once, whatever others do, and what one of them cannot do
 * is the caller's to know. */
#include "base/guard.h"
#include "base/parallel.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define TASKS 100

struct piece {
	struct guard *guard; /* left; NULL: none is */
	int number, done, sum;
	pthread_t thread;
};

static void add_up(void *data, struct arena *scratch)
{
	struct piece *piece = data;
	int *list = ARENA_ARRAY(scratch, int, 1000 * piece->number + 1);
	for (int i = 0; i <= piece->number; i++)
		list[i] = i;
	for (int i = 0; i <= piece->number; i++)
		piece->sum += list[i];
	piece->thread = pthread_self();
	piece->done++;
	if (piece->guard)
		guard_leave(piece->guard, GUARD_INVARIANT, "piece %d", piece->number);
}

static void too_large(void *data, struct arena *scratch)
{
	((struct piece *)data)->done++;
	/* the arena itself refuses it: a sanitizer aborts where malloc is asked for too much */
	arena_alloc(scratch, SIZE_MAX);
}

static void begin(struct piece *piece, struct task *task)
{
	for (int i = 0; i < TASKS; i++) {
		piece[i] = (struct piece){ .number = i };
		task[i] = (struct task){ add_up, &piece[i] };
	}
}

/* false: the guard was left. */
static bool run(struct guard *guard, int count, const struct task *task)
{
	if (setjmp(guard->leave))
		return false;
	tasks_run(guard, count, task);
	return true;
}

static void all_are_done_once(void **state)
{
	(void)state;
	struct guard guard = { 0 };
	struct piece piece[TASKS];
	struct task task[TASKS];
	for (int count = 0; count <= TASKS; count += count < 3 ? 1 : 97) {
		begin(piece, task);
		assert_true(run(&guard, count, task));
		assert_true(!count || pthread_equal(piece[0].thread, pthread_self()));
		for (int i = 0; i < TASKS; i++) {
			assert_int_equal(piece[i].done, i < count);
			assert_int_equal(piece[i].sum, i < count ? i * (i + 1) / 2 : 0);
		}
	}
}

/* number: of the job that leaves; the caller's own, by its guard, or one for which memory is
 * out. */
static void leave_at(int number, const char *message)
{
	struct guard guard = { 0 };
	struct piece piece[TASKS];
	struct task task[TASKS];
	begin(piece, task);
	if (number)
		task[number].run = too_large;
	else
		piece[0].guard = &guard;
	assert_false(run(&guard, 2, task));
	assert_int_equal(guard.reason, number ? GUARD_MEMORY : GUARD_INVARIANT);
	assert_non_null(strstr(guard.message, message));
	assert_int_equal(piece[0].done, 1);
	assert_int_equal(piece[1].done, 1);
}

static void what_leaves_is_told(void **state)
{
	(void)state;
	leave_at(0, "piece 0");
	leave_at(1, "out of memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_done_once),
		cmocka_unit_test(what_leaves_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
