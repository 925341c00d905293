/* Implements the public API of include/streamtensor.h: a handle is a session. */
#include "driver/command_line.h"
#include "pipeline/session.h"
#include "pipeline/output.h"
#include <string.h>

struct stc_session {
	struct session session;
};

static struct session *inner(const struct stc_session *session)
{
	return &((struct stc_session *)(uintptr_t)session)->session;
}

const char *stc_version(void)
{
	return STC_VERSION;
}

struct stc_session *stc_session_new(void)
{
	return (struct stc_session *)session_new(); /* its first member */
}

void stc_session_free(struct stc_session *session)
{
	if (session)
		session_free(inner(session));
}

enum stc_status stc_session_set(struct stc_session *handle, const char *option, const char *value)
{
	struct session *session = inner(handle);
	if (setjmp(session->guard.leave)) {
		session_note_last_words(session);
		return STC_REFUSED;
	}
	const char *copy = text_copy(session->arena, value, strlen(value));
	return option_set(&session->diag, &session->options, command_find("compile"), option, copy)
	        ? STC_OK
	        : STC_REFUSED;
}

void stc_session_on_stage(
        struct stc_session *session, void (*stage)(void *user, const char *name), void *user)
{
	inner(session)->on_stage = stage;
	inner(session)->on_stage_user = user;
}

enum stc_status stc_session_compile(struct stc_session *handle, const char *file)
{
	struct session *session = inner(handle);
	session->options.file = file;
	return session_guarded(session, command_compile);
}

static bool print_module(struct session *session)
{
	session->out = text_new(session->arena);
	ir_print(session->module, &session->out);
	return true;
}

const char *stc_session_text(struct stc_session *handle)
{
	struct session *session = inner(handle);
	return session->module && session_guarded(session, print_module) != STC_INTERNAL
	        ? session->out.data
	        : NULL;
}

static bool gather_messages(struct session *session)
{
	session->out = text_new(session->arena);
	session_messages(session, &session->out);
	text_add(&session->out, "%s", session->last_words);
	return true;
}

const char *stc_session_messages(struct stc_session *handle)
{
	struct session *session = inner(handle);
	if (session->guard.reason == GUARD_MEMORY ||
	        session_guarded(session, gather_messages) == STC_INTERNAL)
		return session->last_words;
	return session->out.data;
}

void stc_session_stop(struct stc_session *session)
{
	inner(session)->stop = 1;
}
