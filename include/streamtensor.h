/* StreamTensor's C API: compiles MLIR to a stream dataflow design. Sessions are independent; a
 * session is used by one thread at a time. Nothing here prints or exits. Errors are text:
 * FILE:LINE:COL: error: …, then note: … (what would be accepted). */
#ifndef STREAMTENSOR_H
#define STREAMTENSOR_H
#ifdef __cplusplus
extern "C" {
#endif

struct stc_session;

enum stc_status {
	STC_OK = 0,
	/* wrong input or option, memory or disk exhausted, or stopped */
	STC_REFUSED = 1,
	STC_INTERNAL = 70, /* a bug of the compiler */
};

const char *stc_version(void);
/* NULL: out of memory */
struct stc_session *stc_session_new(void);
void stc_session_free(struct stc_session *session); /* NULL is accepted */

/* Sets an option of `stc compile` by its long name without dashes: ("platform", "u55c"),
 * ("weights", "w.safetensors"), ("dump-dir", "d"). Flags take "1". */
enum stc_status stc_session_set(struct stc_session *session, const char *option, const char *value);
/* The callback is called with the name of every stage when it begins. */
void stc_session_on_stage(
        struct stc_session *session, void (*stage)(void *user, const char *name), void *user);

/* Compiles FILE into the folder of option "output"; without it up to the pass or level of
 * "stop-after" or "to". Once per session. */
enum stc_status stc_session_compile(struct stc_session *session, const char *file);
/* the module as MLIR text; NULL before it is read */
const char *stc_session_text(struct stc_session *session);
/* diagnostics so far; "" if none. Valid as long as the session */
const char *stc_session_messages(struct stc_session *session);
/* Asks a running compilation to stop soon and leave no files. May be called from a signal handler
 * or another thread. */
void stc_session_stop(struct stc_session *session);

#ifdef __cplusplus
}
#endif
#endif
