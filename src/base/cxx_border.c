/* Makes exhausted memory inside C++ libraries an exit through the guard: operator new asks its
 * handler before it throws. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "base/cxx_border.h"
#include "base/guard.h"
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ROOM (1 << 20) /* bytes without which memory counts as exhausted */

/* std::set_new_handler */
typedef void new_handler(void);
new_handler *set_new_handler(new_handler *handler) __asm__("_ZSt15set_new_handlerPFvvE");

/* llvm::install_bad_alloc_error_handler and its like: what LLVM calls in place of writing a line of
 * its own.  Programs without LLVM have none of them. */
typedef void llvm_handler(void *data, const char *reason, bool diagnose);
#define LLVM_HANDLER(name, symbol)                                                                 \
	__attribute__((weak)) void name(llvm_handler *handler, void *data) __asm__(symbol)
LLVM_HANDLER(install_fatal, "_ZN4llvm27install_fatal_error_handlerEPFvPvPKcbES0_");
LLVM_HANDLER(install_bad_alloc, "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");
__attribute__((weak)) void remove_fatal(void) __asm__("_ZN4llvm26remove_fatal_error_handlerEv");
__attribute__((weak)) void remove_bad_alloc(void) __asm__(
        "_ZN4llvm30remove_bad_alloc_error_handlerEv");

static _Thread_local struct guard *inside;

void cxx_aborted(void)
{
	if (inside)
		guard_leave(inside, GUARD_MEMORY, "out of memory");
}

void cxx_crashed(void)
{
	if (errno == ENOMEM)
		cxx_aborted();
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

/* Fatal errors inside are those of exhausted memory: what is read was checked before. */
static void llvm_failed(void *data, const char *reason, bool diagnose)
{
	(void)data, (void)reason, (void)diagnose;
	cxx_aborted();
	abort();
}

void cxx_enter(struct guard *guard)
{
	inside = guard;
	errno = 0;
	set_new_handler(no_memory);
	if (install_fatal && remove_fatal) {
		remove_fatal();
		install_fatal(llvm_failed, NULL);
	}
	if (install_bad_alloc && remove_bad_alloc) {
		remove_bad_alloc();
		install_bad_alloc(llvm_failed, NULL);
	}
}

void cxx_leave(void)
{
	inside = NULL;
}
