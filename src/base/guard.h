/* The exit of a session that cannot continue: memory is exhausted, or an internal invariant is
 * broken. Wrong input never leads here; it is a diagnostic (diag.h). */
#ifndef STC_GUARD_H
#define STC_GUARD_H
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum guard_reason { GUARD_NONE, GUARD_MEMORY, GUARD_INVARIANT };

struct guard {
	jmp_buf leave;
	enum guard_reason reason;
	const char *stage;                 /* the current pass, for the message; may be NULL */
	const volatile sig_atomic_t *stop; /* set: end soon; may be NULL */
	/* work so far: allocations, and what long searches count; the same for the same input */
	int64_t steps;
	char message[512];
};

static inline void guard_count(struct guard *guard, int64_t steps)
{
	if (guard)
		guard->steps += steps;
}

/* Was the session asked to end? A loop that may take seconds then gives up; what it leaves is
 * consistent, and the session ends before the next stage. */
static inline bool guard_is_stopped(const struct guard *guard)
{
	return guard && guard->stop && *guard->stop;
}

_Noreturn void guard_leave(struct guard *guard, enum guard_reason reason, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Checks an internal invariant. `guard` is the session's. */
#define INVARIANT(guard, condition, ...)                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			guard_leave((guard), GUARD_INVARIANT, __VA_ARGS__);                        \
	} while (0)

#endif
