/* Makes exhausted memory inside C++ libraries an exit through the guard: operator new asks its
 * handler before it throws. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "base/cxx_border.h"
#include "base/guard.h"
#include <stddef.h>
#include <sys/mman.h>

#define ROOM (1 << 20) /* bytes without which memory counts as exhausted */

/* std::set_new_handler */
typedef void new_handler(void);
new_handler *set_new_handler(new_handler *handler) __asm__("_ZSt15set_new_handlerPFvvE");

static _Thread_local struct guard *inside;

void cxx_aborted(void)
{
	if (inside)
		guard_leave(inside, GUARD_MEMORY, "out of memory");
}

void cxx_crashed(void)
{
	void *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		cxx_aborted();
	else
		munmap(room, ROOM);
}

/* Outside, operator new does what it would without the handler. */
static void no_memory(void)
{
	cxx_aborted();
	set_new_handler(NULL);
}

void cxx_enter(struct guard *guard)
{
	inside = guard;
	set_new_handler(no_memory);
}

void cxx_leave(void)
{
	inside = NULL;
}
