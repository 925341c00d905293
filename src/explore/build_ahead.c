/* A way that is rated on the second core beside something else. */
#include "ir/workload.h"
#include "base/jobs.h"
#include "explore/build.h"
#include <math.h>

struct rated {
	struct build *build;
	const struct choices *wanted;
	struct less *less;
};

static void rate_here(void *data, struct arena *scratch)
{
	struct rated *rated = data;
	(void)scratch;
	build_rate_way(rated->build, rated->wanted, rated->less);
}

static void judge(void *data, struct arena *scratch)
{
	struct build *b = data, part = *b;
	(void)scratch;
	part.last = pass_find("make_processes");
	b->judged = build_attempt(&part);
	b->over = part.over;
	b->used = part.used;
	b->cost = part.cost;
	b->crowded = part.crowded;
}

static void enter(struct ahead *ahead, struct arena *scratch)
{
	arena_leave_as(ahead->session.arena, scratch);
	arena_leave_as(ahead->session.attempt, scratch);
}

static void make(void *data, struct arena *scratch)
{
	struct ahead *ahead = data;
	enter(ahead, scratch);
	ahead->made = !setjmp(ahead->session.guard.leave) && build_attempt(&ahead->part) == OUTCOME_BUILT;
}

/* Where it cannot go on, it is as if it were as slow as can be. */
static void rate(void *data, struct arena *scratch)
{
	struct ahead *ahead = data;
	enter(ahead, scratch);
	ahead->less.rating = INFINITY;
	if (ahead->made && !setjmp(ahead->session.guard.leave))
		build_rate(&ahead->session, &ahead->less);
}

static void make_and_rate(void *data, struct arena *scratch)
{
	make(data, scratch);
	rate(data, scratch);
}

static void rate_own(void *data, struct arena *scratch)
{
	struct build *b = data;
	(void)scratch;
	build_rate(b->session, &b->ahead->crowded);
}

static void belong(struct session *session)
{
	session->module->guard = &session->guard;
	session->module->diag = &session->diag;
}

static void copy_answers(struct map *to, const struct map *from)
{
	for (size_t i = 0; i < from->entries.count; i++)
		if (!map_get(to, from->entries.data[i].key))
			map_set(to, from->entries.data[i].key, from->entries.data[i].value);
}

static struct ahead *begin_ahead(const struct build *b, const struct choices *wanted, const struct less *less)
{
	struct session *session = b->session;
	struct ahead *ahead = ARENA_NEW(session->arena, struct ahead);
	struct session *own = &ahead->session;
	*own = *session;
	own->guard = (struct guard){0};
	own->arena = arena_within(session->arena);
	own->attempt = arena_within(session->arena);
	own->diag = (struct diag){.arena = own->arena};
	own->stages.count = own->stages.capacity = 0;
	own->on_stage = NULL;
	own->answers = map_new(own->arena);
	copy_answers(&own->answers, &session->answers);
	own->module = module_clone(b->tensor, own->attempt);
	belong(own);
	ahead->less = *less;
	if (less->slow)
		limits_slower(own);
	ahead->part = build_part(b);
	ahead->part.session = own;
	ahead->part.from = FROM_COPY;
	build_choose(&ahead->part, wanted, &ahead->less);
	return ahead;
}

bool ahead_goes(const struct build *b)
{
	const struct options *options = &b->session->options;
	return options->effort != 1 && !options->dump_dir && !stress_on() && b->first <= pass_find("make_processes") && has_contraction(module_main(b->tensor)->region[0]);
}

static void run_beside_ahead(struct build *b, struct job own, void (*run)(void *data, struct arena *scratch))
{
	struct session *session = b->session;
	struct ahead *ahead = b->ahead;
	jobs_run(&session->guard, 2, (struct job[]){own, {run, ahead}});
	arena_leave_as(ahead->session.arena, session->arena);
	arena_leave_as(ahead->session.attempt, session->arena);
	copy_answers(&session->answers, &ahead->session.answers);
}

void ahead_drop(struct build *b)
{
	if (b->ahead)
		arena_free(b->ahead->session.attempt);
	b->ahead = NULL;
}

void ahead_compare(struct build *b)
{
	run_beside_ahead(b, (struct job){rate_own, b}, rate);
}

/* Nobody knows yet whether a die of the design is crowded.  The first way out of it is thrown away where none is, or where the user chose otherwise. */
void ahead_judge(struct build *b, const struct choices *wanted)
{
	if (wanted->value[CHOICE_LUT] || wanted->value[CHOICE_DSP] || !ahead_goes(b))
		return;
	b->ahead = begin_ahead(b, wanted, &(struct less){.narrow = NARROW});
	run_beside_ahead(b, (struct job){judge, b}, make);
	if (b->judged == OUTCOME_CROWDED)
		ahead_compare(b);
	b->from = FROM_JUDGED;
}

void ahead_rate(struct build *b, const struct choices *wanted, struct less *less, const struct less *next)
{
	struct rated rated = {b, wanted, less};
	ahead_drop(b);
	b->ahead = begin_ahead(b, wanted, next);
	run_beside_ahead(b, (struct job){rate_here, &rated}, make_and_rate);
}

void ahead_take(struct build *b, struct less *less)
{
	struct session *session = b->session, *own = &b->ahead->session;
	*less = b->ahead->less;
	arena_free(session->attempt);
	session->attempt = own->attempt;
	session->module = own->module;
	session->diag.count = 0;
	b->ahead = NULL;
	belong(session);
}
