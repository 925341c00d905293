/* The border to C++ libraries (MLIR, CBC), which would end the program where memory is exhausted.
 * Inside, between enter and leave, that leaves through the guard of the session instead. */
#ifndef STC_CXX_BORDER_H
#define STC_CXX_BORDER_H
struct guard;

/* By thread; calls inside do not nest. */
void cxx_enter(struct guard *guard);
void cxx_leave(void);
/* For a handler of SIGABRT: leaves through the guard if the thread that aborts is inside, where
 * only exhausted memory leads; else returns. */
void cxx_aborted(void);
/* The same for SIGSEGV, where the cause may be a null pointer that malloc gave and nobody looked at
 * (errno says so), or no room for a stack or a table; else returns. */
void cxx_crashed(void);
#endif
