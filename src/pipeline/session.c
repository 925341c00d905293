/* One run of the program or of the API: memory, guard against errors, and timed stages. */
#define _POSIX_C_SOURCE 200809L
#include "pipeline/session.h"
#include "pipeline/output.h"
#include "import/weights.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

struct session *session_new(void)
{
	struct arena *own = arena_new(NULL);
	if (!own)
		return NULL;
	struct session *session = ARENA_NEW(own, struct session);
	session->own = own;
	if (setjmp(session->guard.leave)) {
		arena_free(session->arena);
		arena_free(own);
		return NULL;
	}
	session->guard.stop = &session->stop;
	session->arena = arena_new(&session->guard);
	session->diag.arena = session->arena;
	session->search_cache = map_new(session->arena);
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

void session_note_last_words(struct session *session)
{
	const struct guard *guard = &session->guard;
	const char *in = guard->stage ? " in " : "";
	const char *stage = guard->stage ? guard->stage : "";
	if (guard->reason == GUARD_MEMORY)
		snprintf(session->last_words, sizeof session->last_words, "stc: error: %s\n",
		        guard->message);
	else
		snprintf(session->last_words, sizeof session->last_words,
		        "stc: internal error%s%s: %s\nnote: this is a bug of stc, not of the "
		        "input\n",
		        in, stage, guard->message);
}

/* Unmaps the weights and removes unfinished output. */
static void clean_up(struct session *session)
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
		session_note_last_words(session);
		clean_up(session);
		return session->guard.reason == GUARD_INVARIANT ? STC_INTERNAL : STC_REFUSED;
	}
	bool done = work(session);
	session_stage(session, NULL);
	clean_up(session);
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
	if (session->guard.stage) {
		struct stage *last = &session->stages.data[session->stages.count - 1];
		last->seconds = time - session->stage_began;
		last->steps = session->guard.steps - session->stage_steps;
	}
	session->guard.stage = name;
	session->stage_began = time;
	session->stage_steps = session->guard.steps;
	if (!name)
		return true;
	VEC_PUSH(session->arena, &session->stages, (struct stage){ .name = name });
	if (session->on_stage)
		session->on_stage(session->on_stage_user, name);
	return !session->stop ||
	        diag_error(&session->diag, NOWHERE, "interrupted; nothing was written");
}

bool session_messages(struct session *session, struct text *out)
{
	if (session->notices.data)
		text_add_bytes(out, session->notices.data, session->notices.size);
	diag_print(&session->diag, out);
	return out->size != 0;
}

/* --- the public API --- */
