/* Sessions, and the public API over them. */
#define _POSIX_C_SOURCE 200809L
#include "driver/session.h"
#include "driver/output.h"
#include "frontend/weights.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

struct stc_session {
	struct session session;
};

static struct session *inner(const struct stc_session *session)
{
	return &((struct stc_session *)(uintptr_t)session)->session;
}

struct session *session_new(void)
{
	struct arena *own = arena_new(NULL);
	if (!own)
		return NULL;
	struct session *session = &ARENA_NEW(own, struct stc_session)->session;
	session->own = own;
	if (setjmp(session->guard.leave)) {
		arena_free(session->arena);
		arena_free(own);
		return NULL;
	}
	session->arena = arena_new(&session->guard);
	session->diag.arena = session->arena;
	session->answers = map_new(session->arena);
	session->out = session->notices = session->lp = text_new(session->arena);
	return session;
}

void session_free(struct session *session)
{
	if (!session)
		return;
	arena_free(session->attempt);
	arena_free(session->arena);
	arena_free(session->own);
}

static void note_last_words(struct session *session)
{
	const struct guard *guard = &session->guard;
	if (guard->reason == GUARD_MEMORY)
		snprintf(session->last_words, sizeof session->last_words, "stc: error: %s\n", guard->message);
	else
		snprintf(session->last_words, sizeof session->last_words, "stc: internal error%s%s: %s\nnote: this is a bug of stc, not of the input\n",
			 guard->stage ? " in " : "", guard->stage ? guard->stage : "", guard->message);
}

/* Unmaps the weights, removes what is not finished. */
static void drop(struct session *session)
{
	output_abandon(session->output);
	weights_close(session->weights);
	arena_free(session->scratch);
	session->scratch = NULL;
	session->output = NULL;
	session->weights = NULL;
}

enum stc_status session_guarded(struct session *session, bool (*work)(struct session *session))
{
	if (setjmp(session->guard.leave)) {
		note_last_words(session);
		drop(session);
		return session->guard.reason == GUARD_INVARIANT ? STC_INTERNAL : STC_REFUSED;
	}
	bool done = work(session);
	session_stage(session, NULL);
	drop(session);
	return done && !session->diag.count ? STC_OK : STC_REFUSED;
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

bool session_stage(struct session *session, const char *name)
{
	double time = now();
	if (session->guard.stage)
		session->stages.data[session->stages.count - 1].seconds = time - session->stage_began;
	session->guard.stage = name;
	session->stage_began = time;
	if (!name)
		return true;
	VEC_PUSH(session->arena, &session->stages, (struct stage){.name = name});
	if (session->on_stage)
		session->on_stage(session->on_stage_user, name);
	return !session->stop || diag_error(&session->diag, NOWHERE, "interrupted; nothing was written");
}

bool session_messages(struct session *session, struct text *out)
{
	if (session->notices.data)
		text_add_bytes(out, session->notices.data, session->notices.size);
	diag_print(&session->diag, out);
	return out->size != 0;
}

/* --- the public API --- */

const char *stc_version(void)
{
	return STC_VERSION;
}

struct stc_session *stc_session_new(void)
{
	return (struct stc_session *)session_new();
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
		note_last_words(session);
		return STC_REFUSED;
	}
	const char *kept = text_copy(session->arena, value, strlen(value));
	return option_set(&session->diag, &session->options, command_find("compile"), option, kept) ? STC_OK : STC_REFUSED;
}

void stc_session_on_stage(struct stc_session *session, void (*stage)(void *user, const char *name), void *user)
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
	return session->module && session_guarded(session, print_module) != STC_INTERNAL ? session->out.data : NULL;
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
	if (session->guard.reason == GUARD_MEMORY || session_guarded(session, gather_messages) == STC_INTERNAL)
		return session->last_words;
	return session->out.data;
}

void stc_session_stop(struct stc_session *session)
{
	inner(session)->stop = 1;
}
