/* Makes and rates a trial for a crowded die on a second core, in a session of its own, while the
 * first core builds the design or rates another trial.  Results do not depend on timing: both tasks
 * are joined before either result is used. */
#include "ir/workload.h"
#include "base/parallel.h"
#include "explore/build.h"
#include <math.h>

struct rated {
	struct build *build;
	const struct choices *wanted;
	struct fit_trial *fit_trial;
};

static void rate_here(void *data, struct arena *scratch)
{
	struct rated *rated = data;
	(void)scratch;
	build_rate_trial(rated->build, rated->wanted, rated->fit_trial);
}

static void judge(void *data, struct arena *scratch)
{
	struct build *b = data;
	struct build part = *b;
	(void)scratch;
	part.last = pass_find("assign_axi_bundles");
	b->judged = build_attempt(&part);
	b->over = part.over;
	b->used = part.used;
	b->cost = part.cost;
	b->crowded = part.crowded;
}

static void use_scratch(struct speculative_trial *speculative_trial, struct arena *scratch)
{
	arena_share_guard(speculative_trial->session.arena, scratch);
	arena_share_guard(speculative_trial->session.attempt, scratch);
}

static void make(void *data, struct arena *scratch)
{
	struct speculative_trial *speculative_trial = data;
	use_scratch(speculative_trial, scratch);
	speculative_trial->made = !setjmp(speculative_trial->session.guard.leave) &&
	        build_attempt(&speculative_trial->part) == OUTCOME_BUILT;
}

/* A trial that cannot be made or rated has the rating INFINITY. */
static void rate(void *data, struct arena *scratch)
{
	struct speculative_trial *speculative_trial = data;
	use_scratch(speculative_trial, scratch);
	speculative_trial->fit_trial.rating = INFINITY;
	if (speculative_trial->made && !setjmp(speculative_trial->session.guard.leave))
		build_rate(&speculative_trial->session, &speculative_trial->fit_trial);
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
	build_rate(b->session, &b->speculative_trial->crowded);
}

static void adopt_module(struct session *session)
{
	session->module->guard = &session->guard;
	session->module->diag = &session->diag;
}

static void merge_search_cache(struct map *to, const struct map *from)
{
	for (size_t i = 0; i < from->entries.count; i++)
		if (!map_get(to, from->entries.data[i].key))
			map_set(to, from->entries.data[i].key, from->entries.data[i].value);
}

static struct speculative_trial *speculative_begin(
        const struct build *b, const struct choices *wanted, const struct fit_trial *fit_trial)
{
	struct session *session = b->session;
	struct speculative_trial *speculative_trial =
	        ARENA_NEW(session->arena, struct speculative_trial);
	struct session *own = &speculative_trial->session;
	*own = *session;
	own->guard = (struct guard){ 0 };
	own->arena = arena_within(session->arena);
	own->attempt = arena_within(session->arena);
	own->diag = (struct diag){ .arena = own->arena };
	own->stages.count = own->stages.capacity = 0;
	own->on_stage = NULL;
	own->search_cache = map_new(own->arena);
	merge_search_cache(&own->search_cache, &session->search_cache);
	own->module = module_clone(b->tensor, own->attempt);
	adopt_module(own);
	speculative_trial->fit_trial = *fit_trial;
	if (fit_trial->slow)
		limits_slower(own);
	speculative_trial->part = build_part(b);
	speculative_trial->part.session = own;
	speculative_trial->part.from = FROM_COPY;
	build_apply_trial(&speculative_trial->part, wanted, &speculative_trial->fit_trial);
	return speculative_trial;
}

bool speculation_allowed(const struct build *b)
{
	const struct options *options = &b->session->options;
	return options->effort != 1 && !options->dump_dir && !stress_on() &&
	        b->first <= pass_find("assign_axi_bundles") &&
	        workload_of(module_main(b->tensor)) != WORKLOAD_NONE;
}

static void speculative_run(
        struct build *b, struct task own, void (*run)(void *data, struct arena *scratch))
{
	struct session *session = b->session;
	struct speculative_trial *speculative_trial = b->speculative_trial;
	tasks_run(&session->guard, 2, (struct task[]){ own, { run, speculative_trial } });
	arena_share_guard(speculative_trial->session.arena, session->arena);
	arena_share_guard(speculative_trial->session.attempt, session->arena);
	merge_search_cache(&session->search_cache, &speculative_trial->session.search_cache);
}

void speculative_drop(struct build *b)
{
	if (b->speculative_trial)
		arena_free(b->speculative_trial->session.attempt);
	b->speculative_trial = NULL;
}

void speculative_compare(struct build *b)
{
	speculative_run(b, (struct task){ rate_own, b }, rate);
}

/* Speculates that a die of the design is crowded; if none is, or if the user has chosen the shares
 * of LUTs or DSPs, the trial is dropped. */
void speculative_judge(struct build *b, const struct choices *wanted)
{
	if (wanted->value[CHOICE_LUT] || wanted->value[CHOICE_DSP] || !speculation_allowed(b))
		return;
	b->speculative_trial =
	        speculative_begin(b, wanted, &(struct fit_trial){ .lut_share = LUT_SHARE_DEFAULT });
	speculative_run(b, (struct task){ judge, b }, make);
	if (b->judged == OUTCOME_CROWDED)
		speculative_compare(b);
	b->from = FROM_JUDGED;
}

void speculative_rate(struct build *b, const struct choices *wanted, struct fit_trial *fit_trial,
        const struct fit_trial *next)
{
	struct rated rated = { b, wanted, fit_trial };
	speculative_drop(b);
	b->speculative_trial = speculative_begin(b, wanted, next);
	speculative_run(b, (struct task){ rate_here, &rated }, make_and_rate);
}

void speculative_adopt(struct build *b, struct fit_trial *fit_trial)
{
	struct session *session = b->session;
	struct session *own = &b->speculative_trial->session;
	*fit_trial = b->speculative_trial->fit_trial;
	arena_free(session->attempt);
	session->attempt = own->attempt;
	session->module = own->module;
	session->diag.count = 0;
	b->speculative_trial = NULL;
	adopt_module(session);
}
