/* Ways to take less where a die is crowded, and how good designs are. */
#include "ir/workload.h"
#include "engine/engine_cost.h"
#include "explore/build.h"
#include "report/report.h"
#include "ir/launch_tokens.h"
#include "predict/token.h"
#include <math.h>

/* at most one slice in so many is given up for the clock */
#define PE_REDUCTION_PART 6
/* NARROW beside slices of one token, or so many, which costs less time */
#define LUT_SHARE_DECODE 400
/* or so many beside slices of a prompt's tokens, which take most DSPs */
#define LUT_SHARE_PREFILL 205
/* NARROW beside slices that take a few counted tokens abreast, */
#define LUT_SHARE_FEW_TOKENS 220
#define LUT_SHARE_FEW_TOKENS_LEAST 180 /* or so many thousandths of LUTs, */
/* or so many thousandths of LUTs and DSPs, beside slices of many counted tokens in tiles, where
 * hardly too much is taken, */
#define LUT_SHARE_TILED_WIDE 265
#define LUT_SHARE_TILED_NARROW 234 /* or so many, */
/* or so many, since attention may take twice as many keys a cycle for one more, and its words
 * the wires, */
#define LUT_SHARE_TILED_NARROWER 230
/* or so many, where what is between them crowds a die */
#define LUT_SHARE_TILED_NARROWEST 220
/* or so many beside fewer ports of states, which leave wires, */
#define LUT_SHARE_TILED_FEW_PORTS 250
#define DSP_SHARE_FACTOR_FEW_TOKENS 1.25 /* and so many times as large a part of DSPs */
/* dies may be too full at a slower clock as well, and then it is so many times as slow as it is
 * rated, at least */
#define SLOWER_LOSES 1.05
/* of run-time extents, the part at which a design is to be quick as well */
#define SHORT 8

enum { FIT_TRIALS_MOST = 20 };

void build_apply_trial(
        struct build *b, const struct choices *wanted, const struct fit_trial *fit_trial)
{
	struct session *session = b->session;
	struct choices *choices = &session->choices;
	*choices = *wanted;
	if (fit_trial->ports)
		choices->value[CHOICE_KV_PORTS] = fit_trial->ports;
	if (fit_trial->loaders)
		choices->value[CHOICE_KV_LOADERS] = fit_trial->loaders;
	if (fit_trial->pes)
		choices->value[CHOICE_ENGINE_PES] = fit_trial->pes;
	if (fit_trial->lut_share) {
		double dsp = fit_trial->workload == WORKLOAD_FEW_TOKENS
		        ? DSP_SHARE_FACTOR_FEW_TOKENS * fit_trial->lut_share
		        : fit_trial->lut_share;
		choices->value[CHOICE_LUT] =
		        platform_total(session->platform).lut * fit_trial->lut_share / 1000;
		choices->value[CHOICE_DSP] =
		        (int64_t)((double)platform_total(session->platform).dsp * dsp / 1000);
	}
	if (fit_trial->paced_ends)
		choices->value[CHOICE_PROLOGUE] = 1 + PROLOGUE_PACED;
	if (fit_trial->slow)
		choices->value[CHOICE_CLOCK] = session->options.choices.value[CHOICE_CLOCK];
}

static enum workload workload_of(const struct build *b)
{
	const struct block *body = module_main(b->tensor)->region[0];
	return build_counts_tokens(b)             ? WORKLOAD_FEW_TOKENS
	        : engine_has_run_time_tiles(body) ? WORKLOAD_TILED_TOKENS
	        : engine_has_many_tokens(body)    ? WORKLOAD_PREFILL
	                                          : WORKLOAD_DECODE;
}

/* What the user has not chosen otherwise; at most one slice in FEWER is given up. */
static int list_fit_trials(const struct session *session, const struct choices *wanted, int pes,
        enum workload workload, struct fit_trial *list)
{
	int fewer = pes - 2 * ENGINE_PE_STEP;
	int fit_trial = pes - ENGINE_PE_STEP;
	int count = 0;
	const struct fit_trial fit_trials[] = { { .lut_share = LUT_SHARE_DEFAULT },
		{ .lut_share = LUT_SHARE_DECODE, .workload = WORKLOAD_DECODE },
		{ .lut_share = LUT_SHARE_PREFILL, .workload = WORKLOAD_PREFILL }, { .ports = 4 },
		{ .ports = 4, .lut_share = LUT_SHARE_DECODE, .workload = WORKLOAD_DECODE },
		{ .ports = 2 },
		{ .ports = 2, .lut_share = LUT_SHARE_DECODE, .workload = WORKLOAD_DECODE },
		{ .ports = 2, .lut_share = LUT_SHARE_DEFAULT }, { .ports = 1 }, { .pes = fewer },
		{ .ports = 2, .pes = fewer }, { .ports = 1, .pes = fewer },
		{ .lut_share = LUT_SHARE_FEW_TOKENS, .workload = WORKLOAD_FEW_TOKENS },
		{ .pes = fewer,
		        .lut_share = LUT_SHARE_FEW_TOKENS,
		        .workload = WORKLOAD_FEW_TOKENS },
		{ .pes = fit_trial,
		        .lut_share = LUT_SHARE_FEW_TOKENS,
		        .workload = WORKLOAD_FEW_TOKENS },
		{ .pes = fit_trial,
		        .lut_share = (LUT_SHARE_FEW_TOKENS + LUT_SHARE_FEW_TOKENS_LEAST) / 2,
		        .workload = WORKLOAD_FEW_TOKENS },
		{ .pes = fit_trial,
		        .lut_share = LUT_SHARE_FEW_TOKENS_LEAST,
		        .workload = WORKLOAD_FEW_TOKENS },
		{ .lut_share = LUT_SHARE_TILED_WIDE, .workload = WORKLOAD_TILED_TOKENS },
		{ .lut_share = LUT_SHARE_TILED_NARROW, .workload = WORKLOAD_TILED_TOKENS },
		{ .lut_share = LUT_SHARE_TILED_NARROWER, .workload = WORKLOAD_TILED_TOKENS },
		{ .lut_share = LUT_SHARE_TILED_NARROWEST, .workload = WORKLOAD_TILED_TOKENS },
		{ .loaders = 3,
		        .lut_share = LUT_SHARE_TILED_NARROW,
		        .workload = WORKLOAD_TILED_TOKENS },
		{ .loaders = 3,
		        .lut_share = LUT_SHARE_TILED_NARROWER,
		        .workload = WORKLOAD_TILED_TOKENS },
		{ .ports = 4,
		        .lut_share = LUT_SHARE_TILED_FEW_PORTS,
		        .workload = WORKLOAD_TILED_TOKENS },
		{ .ports = 4,
		        .lut_share = LUT_SHARE_TILED_NARROW,
		        .workload = WORKLOAD_TILED_TOKENS },
		{ .ports = 4,
		        .lut_share = LUT_SHARE_TILED_NARROWER,
		        .workload = WORKLOAD_TILED_TOKENS },
		{ .pes = fit_trial, .workload = WORKLOAD_TILED_TOKENS } };
	for (size_t i = 0; pes && i < sizeof fit_trials / sizeof *fit_trials; i++) {
		bool ports = (!fit_trials[i].ports || !wanted->value[CHOICE_KV_PORTS]) &&
		        (!fit_trials[i].loaders || !wanted->value[CHOICE_KV_LOADERS]),
		     own = !fit_trials[i].workload || fit_trials[i].workload == workload;
		bool kernels = !fit_trials[i].lut_share ||
		        (!wanted->value[CHOICE_LUT] && !wanted->value[CHOICE_DSP]);
		if (own && ports && kernels &&
		        (!fit_trials[i].pes ||
		                (!session->options.choices.value[CHOICE_ENGINE_PES] &&
		                        fewer * PE_REDUCTION_PART >=
		                                pes * (PE_REDUCTION_PART - 1))))
			list[count++] = fit_trials[i];
	}
	if (!session->options.choices.value[CHOICE_CLOCK])
		list[count++] = (struct fit_trial){ .slow = true };
	return count;
}

struct clock build_clock(const struct session *session)
{
	return (struct clock){ session->platform, session->options.choices.value[CHOICE_CLOCK] };
}

void build_set_clock(struct session *session, struct clock clock)
{
	session->platform = clock.platform;
	session->options.choices.value[CHOICE_CLOCK] = clock.mhz;
}

static double milliseconds_at(const struct session *session, struct token_detail detail)
{
	return (double)report_cycles(session, detail) / (session->platform->clock_mhz * 1e3);
}

/* Of a launch; where it counts its tokens (`rows` is their extent, else -1), of one alone and of
 * one with as many others as there may be: a text has as many that are read as that are written. */
static double milliseconds_of_tokens(const struct session *session, struct token_detail detail,
        struct extent_value *extent, int rows)
{
	double all = milliseconds_at(session, detail);
	if (rows < 0 || all <= 0)
		return all;
	int64_t most = extent[rows].value;
	extent[rows].value = 1;
	double one = milliseconds_at(session, detail);
	extent[rows].value = most;
	return one + all / (double)most;
}

/* By the milliseconds that the token model gives at the most run-time extents, times those at a
 * part of them, since neither is to suffer for the other. */
double build_rating(const struct session *session)
{
	struct arena *arena = arena_within(session->attempt);
	struct map digits = map_new(arena);
	struct extent_value *extent;
	int extents = timing_extents(session->attempt, session->module, &extent);
	int rows = -1;
	struct token_detail detail = token_detail_rated;
	for (int i = 0; i < extents; i++)
		rows = tokens_counted_by(module_main(session->module), extent[i].symbol) ? i : rows;
	detail.extents = extents;
	detail.extent = extent;
	detail.digits = &digits;
	double all = milliseconds_of_tokens(session, detail, extent, rows);
	for (int i = 0; i < extents; i++)
		extent[i].value /= i == rows ? 1 : SHORT;
	double few = extents ? milliseconds_of_tokens(session, detail, extent, rows) : all;
	arena_free(arena);
	return all <= 0 || few <= 0 ? INFINITY : all * few;
}

void build_rate(const struct session *session, struct fit_trial *fit_trial)
{
	struct design_cost cost = design_cost(session->attempt, session->platform, session->module);
	fit_trial->rating = build_rating(session);
	for (int i = 0; i < cost.processes; i++) {
		fit_trial->lut += cost.process[i].resources.lut;
		fit_trial->dsp += cost.process[i].resources.dsp;
	}
}

/* Built as far as its cycles can be told, where every FIFO holds all its words.  A slower clock
 * costs time everywhere: it is rated as the others are. */
void build_rate_trial(struct build *b, const struct choices *wanted, struct fit_trial *fit_trial)
{
	struct session *session = b->session;
	struct build part = build_part(b);
	const struct clock clock = build_clock(session);
	fit_trial->rating = INFINITY;
	if (fit_trial->slow)
		limits_slower(session);
	build_apply_trial(b, wanted, fit_trial);
	if (build_attempt(&part) == OUTCOME_BUILT)
		build_rate(session, fit_trial);
	fit_trial->rating *= fit_trial->slow ? SLOWER_LOSES : 1;
	build_set_clock(session, clock);
}

/* --- all ways */

static bool same_trial(const struct fit_trial *left, const struct fit_trial *right)
{
	return left->ports == right->ports && left->loaders == right->loaders &&
	        left->pes == right->pes && left->lut_share == right->lut_share &&
	        left->slow == right->slow;
}

static bool same_design(const struct fit_trial *left, const struct fit_trial *right)
{
	return left->slow == right->slow && left->lut == right->lut && left->dsp == right->dsp &&
	        left->rating <= right->rating * RATING_TOLERANCE &&
	        right->rating <= left->rating * RATING_TOLERANCE;
}

/* The quickest first; of those that are alike, the first of the table. */
static void sort_fit_trials(struct fit_trial *list, int count)
{
	for (int i = 1; i < count; i++) {
		struct fit_trial moved = list[i];
		int j = i;
		for (; j && list[j - 1].rating > moved.rating; j--)
			list[j] = list[j - 1];
		list[j] = moved;
	}
}

/* true: built, and no die is crowded, or the clock is slower.  rated: as far as it takes for
 * that, it has just been built. */
static bool build_fit_trial(
        struct build *b, const struct choices *wanted, struct fit_trial *fit_trial, bool rated)
{
	if (fit_trial->slow)
		limits_slower(b->session);
	build_apply_trial(b, wanted, fit_trial);
	b->from = rated && !fit_trial->slow ? FROM_MADE : FROM_TENSOR;
	b->skips_crowded = !fit_trial->slow;
	fit_trial->done = true;
	bool built = build_fitting(b);
	fit_trial->crowded = built && b->crowded && !fit_trial->slow;
	return built && !fit_trial->crowded;
}

/* Does another way crowd a die that takes no more operators and has no more slices? */
static bool is_hopeless(const struct fit_trial *list, int count, const struct fit_trial *fit_trial)
{
	for (int i = 0; i < count; i++) {
		const struct fit_trial *other = &list[i];
		bool pes = !fit_trial->pes || (other->pes && other->pes <= fit_trial->pes);
		if (other->crowded && !fit_trial->slow && pes && other->lut <= fit_trial->lut &&
		        other->dsp <= fit_trial->dsp)
			return true;
	}
	return false;
}

/* What was built may be slower than its way was rated, since FIFOs took room and kernels are
 * narrower than it asks for. */
static void rate_built(struct build *b, struct fit_trial *fit_trial)
{
	fit_trial->rating = build_rating(b->session) * (fit_trial->slow ? SLOWER_LOSES : 1);
	fit_trial->measured = true;
}

/* true: another way may be quicker than what was built; it comes first, and this one is rated as
 * it is. */
static bool is_overtaken(
        struct build *b, const struct fit_trial *list, int count, struct fit_trial *fit_trial)
{
	if (fit_trial->measured)
		return false;
	bool overtaken = false;
	rate_built(b, fit_trial);
	for (int i = 0; i < count; i++)
		overtaken = overtaken ||
		        (!list[i].done &&
		                list[i].rating * (list[i].measured ? 1 : RATING_TOLERANCE) <
		                        fit_trial->rating &&
		                !is_hopeless(list, count, &list[i]));
	fit_trial->done = !overtaken;
	return overtaken;
}

/* Of two designs that differ in what stands outside of layers the quicker one is the way's.
 * true: it is the one that the session's module is. */
static bool rate_ends(struct build *b, const struct choices *wanted, struct fit_trial *fit_trial)
{
	struct fit_trial paced_ends = *fit_trial;
	paced_ends.paced_ends = true;
	build_rate_trial(b, wanted, &paced_ends);
	if (paced_ends.rating < fit_trial->rating)
		*fit_trial = paced_ends;
	return fit_trial->paced_ends;
}

/* The ways of a crowded design, and how good it would be. */
struct fit_trials {
	const struct choices *wanted;
	struct clock clock;
	struct fit_trial list[FIT_TRIALS_MOST], crowded;
	int count;
	bool two, ends; /* rated at a time; compared */
};

/* A way, with those before it.  true: the session's module is what it was rated as. */
static bool rate_in_order(struct build *b, struct fit_trials *w, int number)
{
	struct fit_trial *fit_trial = &w->list[number];
	if (b->speculative_trial && same_trial(fit_trial, &b->speculative_trial->fit_trial))
		speculative_adopt(b, fit_trial);
	else if (w->two && number + 1 < w->count)
		speculative_rate(b, w->wanted, fit_trial, fit_trial + 1);
	else
		build_rate_trial(b, w->wanted, fit_trial);
	bool made = !w->ends || fit_trial->workload != WORKLOAD_TILED_TOKENS ||
	        rate_ends(b, w->wanted, fit_trial);
	for (int before = 0; before < number; before++)
		fit_trial->done = fit_trial->done || same_design(fit_trial, &w->list[before]);
	return made;
}

/* true: one of them costs next to nothing, and is built. */
static bool build_cheap_trial(struct build *b, struct fit_trials *w)
{
	struct session *session = b->session;
	if (b->speculative_trial && !(b->speculative_trial->crowded.rating > 0))
		speculative_compare(b);
	if (b->speculative_trial)
		w->crowded = b->speculative_trial->crowded;
	else
		build_rate(session, &w->crowded);
	const double most = w->crowded.rating * RATING_TOLERANCE;
	for (int i = 0; i < w->count && !session->stop; i++) {
		struct fit_trial *fit_trial = &w->list[i];
		bool made = rate_in_order(b, w, i);
		if (fit_trial->done || fit_trial->rating > most ||
		        !build_fit_trial(b, w->wanted, fit_trial, made))
			continue;
		rate_built(b, fit_trial);
		if (fit_trial->rating <= most)
			return true;
		fit_trial->done = false;
		build_set_clock(session, w->clock);
	}
	sort_fit_trials(w->list, w->count);
	return false;
}

/* Fewer ports side by side for states, narrower kernels, or some slices less, cost time where
 * they are; a slower clock costs it everywhere.  With which of that is no die crowded, and which
 * is the quickest? What costs next to nothing is built at once.  -O1 takes the first that fits.
 * Beside a few counted tokens hardly anything costs next to nothing, so two are rated at a time. */
static bool build_uncrowded(struct build *b, const struct choices *wanted)
{
	struct session *session = b->session;
	struct fit_trials w = { .wanted = wanted,
		.clock = build_clock(session),
		.ends = !wanted->value[CHOICE_PROLOGUE] };
	w.count = list_fit_trials(session, wanted, build_pes(b, &b->cost), workload_of(b), w.list);
	bool rated = w.count > 1 && session->options.effort != 1;
	w.two = build_counts_tokens(b) && speculation_allowed(b);
	if (rated && build_cheap_trial(b, &w))
		return true;
	for (int i = 0; i < w.count && !session->stop; i++) {
		struct fit_trial *fit_trial = &w.list[i];
		if (fit_trial->done || (rated && is_hopeless(w.list, w.count, fit_trial)) ||
		        !build_fit_trial(b, wanted, fit_trial, false))
			continue;
		if (!rated || !is_overtaken(b, w.list, w.count, fit_trial))
			return true;
		build_set_clock(session, w.clock);
		sort_fit_trials(fit_trial, w.count - i);
		i--;
	}
	return false;
}

/* At the clock that the rule gives, or that is asked for, even if a die is crowded whatever is
 * taken back; of one of two phases nobody knows yet how full its dies will be. */
bool build_at_clock(struct build *b)
{
	struct session *session = b->session;
	struct choices wanted = session->choices;
	bool free = build_is_whole(b) && !session->parallelism_table;
	b->skips_crowded = free;
	if (free)
		speculative_judge(b, &wanted);
	bool built = build_fitting(b), crowded = built && free && b->crowded;
	if (crowded)
		built = build_uncrowded(b, &wanted);
	speculative_drop(b);
	b->skips_crowded = false;
	if (built || !crowded || session->stop)
		return built;
	session->choices = wanted;
	return build_fitting(b);
}
