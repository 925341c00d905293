/* Finds a design without a crowded die, on which the clock's timing would fail: rates a list of
 * cheaper variants (fewer KV ports, loaders or PEs, smaller kernels, a slower clock) by the token
 * model, and builds them from the fastest on until one fits. */
#include "ir/workload.h"
#include "engine/engine_cost.h"
#include "explore/build.h"
#include "report/report.h"
#include "ir/launch_tokens.h"
#include "predict/token.h"
#include <math.h>

/* at most 1 / this of the PEs are given up */
#define PE_REDUCTION_PART 6

/* Shares of LUTs and DSPs for kernels, in thousandths of the board, by workload. */
#define LUT_SHARE_DECODE 400
#define LUT_SHARE_PREFILL 205 /* PEs for a prompt's tokens take most DSPs */
#define LUT_SHARE_FEW_TOKENS 220
#define LUT_SHARE_FEW_TOKENS_LEAST 180
#define LUT_SHARE_TILED_WIDE 265   /* for a die that is hardly crowded */
#define LUT_SHARE_TILED_NARROW 234 /* the parallelism of attention changes in steps of two: */
#define LUT_SHARE_TILED_NARROWER 230
#define LUT_SHARE_TILED_NARROWEST 220
#define LUT_SHARE_TILED_FEW_PORTS 250 /* fewer KV ports leave wires for wider kernels */
/* with few tokens, kernels get this factor more of the DSPs than of the LUTs */
#define DSP_SHARE_FACTOR_FEW_TOKENS 1.25

/* A slower clock rests on limits that are estimates (UG1393 gives those of the usual clock): its
 * rating gets this factor. */
#define SLOWER_PENALTY 1.05
/* A design is also rated at 1 / this of the run-time extents. */
#define SHORT_PART 8

enum { FIT_TRIALS_MOST = 20 };
/* of a trial that suits all workloads */
#define ANY_WORKLOAD WORKLOAD_NONE

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
		double dsp = fit_trial->lut_share;
		if (fit_trial->workload == WORKLOAD_FEW_COUNTED_TOKENS)
			dsp *= DSP_SHARE_FACTOR_FEW_TOKENS;
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

/* The workload whose trials suit the design: the best share of LUTs for kernels depends on how many
 * DSPs and LUTs the engine takes.  Of few tokens, fixed ones take those of tiles. */
static enum workload trial_workload(const struct build *b)
{
	enum workload workload = workload_of(module_main(b->tensor));
	if (build_counts_tokens(b))
		return WORKLOAD_FEW_COUNTED_TOKENS;
	if (workload == WORKLOAD_TILED_COUNTED_TOKENS)
		return workload;
	return workload_has_many_tokens(workload) ? WORKLOAD_TILED_TOKENS : WORKLOAD_DECODE;
}

/* clang-format off */
/* The trials in the order in which equal ones are preferred.  `fewer`: steps of ENGINE_PE_STEP by
 * which PEs are reduced. */
static const struct {
	enum workload workload;
	int lut_share, ports, loaders, fewer;
} fit_trials[] = {
	{ ANY_WORKLOAD, .lut_share = LUT_SHARE_DEFAULT },
	{ WORKLOAD_DECODE, .lut_share = LUT_SHARE_DECODE },
	{ WORKLOAD_TILED_TOKENS, .lut_share = LUT_SHARE_PREFILL },
	{ ANY_WORKLOAD, .ports = 4 },
	{ WORKLOAD_DECODE, .lut_share = LUT_SHARE_DECODE, .ports = 4 },
	{ ANY_WORKLOAD, .ports = 2 },
	{ WORKLOAD_DECODE, .lut_share = LUT_SHARE_DECODE, .ports = 2 },
	{ ANY_WORKLOAD, .lut_share = LUT_SHARE_DEFAULT, .ports = 2 },
	{ ANY_WORKLOAD, .ports = 1 },
	{ ANY_WORKLOAD, .fewer = 2 },
	{ ANY_WORKLOAD, .ports = 2, .fewer = 2 },
	{ ANY_WORKLOAD, .ports = 1, .fewer = 2 },
	{ WORKLOAD_FEW_COUNTED_TOKENS, .lut_share = LUT_SHARE_FEW_TOKENS },
	{ WORKLOAD_FEW_COUNTED_TOKENS, .lut_share = LUT_SHARE_FEW_TOKENS, .fewer = 2 },
	{ WORKLOAD_FEW_COUNTED_TOKENS, .lut_share = LUT_SHARE_FEW_TOKENS, .fewer = 1 },
	{ WORKLOAD_FEW_COUNTED_TOKENS, .fewer = 1,
		.lut_share = (LUT_SHARE_FEW_TOKENS + LUT_SHARE_FEW_TOKENS_LEAST) / 2 },
	{ WORKLOAD_FEW_COUNTED_TOKENS, .lut_share = LUT_SHARE_FEW_TOKENS_LEAST, .fewer = 1 },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .lut_share = LUT_SHARE_TILED_WIDE },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .lut_share = LUT_SHARE_TILED_NARROW },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .lut_share = LUT_SHARE_TILED_NARROWER },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .lut_share = LUT_SHARE_TILED_NARROWEST },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .lut_share = LUT_SHARE_TILED_NARROW, .loaders = 3 },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .lut_share = LUT_SHARE_TILED_NARROWER, .loaders = 3 },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .lut_share = LUT_SHARE_TILED_FEW_PORTS, .ports = 4 },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .lut_share = LUT_SHARE_TILED_NARROW, .ports = 4 },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .lut_share = LUT_SHARE_TILED_NARROWER, .ports = 4 },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .fewer = 1 },
	{ WORKLOAD_TILED_COUNTED_TOKENS, .lut_share = LUT_SHARE_TILED_NARROWEST, .fewer = 2 },
};
/* clang-format on */

/* Does the trial leave alone what the user has chosen, and enough of the design's `pes` PEs? */
static bool is_allowed(const struct session *session, const struct choices *wanted, int pes,
        const struct fit_trial *trial)
{
	int fewest = pes - 2 * ENGINE_PE_STEP;
	if (trial->ports && wanted->value[CHOICE_KV_PORTS])
		return false;
	if (trial->loaders && wanted->value[CHOICE_KV_LOADERS])
		return false;
	if (trial->lut_share && (wanted->value[CHOICE_LUT] || wanted->value[CHOICE_DSP]))
		return false;
	if (!trial->pes)
		return true;
	return !session->options.choices.value[CHOICE_ENGINE_PES] &&
	        fewest * PE_REDUCTION_PART >= pes * (PE_REDUCTION_PART - 1);
}

/* Lists the allowed trials of the workload for a design with `pes` PEs; returns their number. */
static int list_fit_trials(const struct session *session, const struct choices *wanted, int pes,
        enum workload workload, struct fit_trial *list)
{
	int count = 0;
	for (size_t i = 0; pes && i < sizeof fit_trials / sizeof *fit_trials; i++) {
		struct fit_trial trial = { .ports = fit_trials[i].ports,
			.loaders = fit_trials[i].loaders,
			.lut_share = fit_trials[i].lut_share,
			.workload = fit_trials[i].workload };
		bool own = !trial.workload || trial.workload == workload;
		if (fit_trials[i].fewer)
			trial.pes = pes - fit_trials[i].fewer * ENGINE_PE_STEP;
		if (own && is_allowed(session, wanted, pes, &trial))
			list[count++] = trial;
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

/* Time of a launch.  If its tokens are counted at run time (`rows` is the index of their extent,
 * else -1): of a launch of one token plus one token's part of the largest launch, since a text has
 * about as many tokens read as written. */
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

/* The product, so that neither long nor short extents suffer for the other. */
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
		extent[i].value /= i == rows ? 1 : SHORT_PART;
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

/* Every FIFO is unbounded in this rating.  A slower clock is rated as the other trials are. */
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
	fit_trial->rating *= fit_trial->slow ? SLOWER_PENALTY : 1;
	build_set_clock(session, clock);
}

/* --- the list of trials */

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

/* Stable sort, the fastest first. */
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

/* true: built, and no die is crowded; at a slower clock, by the limits that it has.  rated:
 * session->module is the trial up to assign_axi_bundles. */
static bool build_fit_trial(
        struct build *b, const struct choices *wanted, struct fit_trial *fit_trial, bool rated)
{
	if (fit_trial->slow)
		limits_slower(b->session);
	build_apply_trial(b, wanted, fit_trial);
	b->from = rated && !fit_trial->slow ? FROM_MADE : FROM_TENSOR;
	b->skips_crowded = true;
	fit_trial->done = true;
	bool built = build_fitting(b);
	fit_trial->crowded = built && b->crowded;
	return built && !fit_trial->crowded;
}

/* Has a trial with no more operators and no more PEs already crowded a die? */
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

/* Rates the design that was built: FIFOs may have taken room, so that its kernels are narrower than
 * those of the trial's first rating. */
static void rate_built(struct build *b, struct fit_trial *fit_trial)
{
	fit_trial->rating = build_rating(b->session) * (fit_trial->slow ? SLOWER_PENALTY : 1);
	fit_trial->measured = true;
}

/* true: another trial may be faster than what was built.  This one then has its real rating, and
 * may be built once more. */
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

/* Takes the faster of both forms of prologue and epilogue, the kernels outside the layers.
 * true: session->module is that one. */
static bool rate_ends(struct build *b, const struct choices *wanted, struct fit_trial *fit_trial)
{
	struct fit_trial paced_ends = *fit_trial;
	paced_ends.paced_ends = true;
	build_rate_trial(b, wanted, &paced_ends);
	if (paced_ends.rating < fit_trial->rating)
		*fit_trial = paced_ends;
	return fit_trial->paced_ends;
}

/* The trials for a crowded design. */
struct fit_trials {
	const struct choices *wanted;
	struct clock clock;
	struct fit_trial list[FIT_TRIALS_MOST];
	struct fit_trial crowded; /* the design itself, if crowding did not matter */
	int count;
	bool two;  /* two trials are rated in parallel */
	bool ends; /* both forms of the ends are compared */
};

/* Rates a trial, and marks it done if it equals an earlier one.  true: session->module is the trial
 * up to assign_axi_bundles. */
static bool rate_in_order(struct build *b, struct fit_trials *w, int number)
{
	struct fit_trial *fit_trial = &w->list[number];
	if (b->speculative_trial && same_trial(fit_trial, &b->speculative_trial->fit_trial))
		speculative_adopt(b, fit_trial);
	else if (w->two && number + 1 < w->count)
		speculative_rate(b, w->wanted, fit_trial, fit_trial + 1);
	else
		build_rate_trial(b, w->wanted, fit_trial);
	bool made = !w->ends || fit_trial->workload != WORKLOAD_TILED_COUNTED_TOKENS ||
	        rate_ends(b, w->wanted, fit_trial);
	for (int before = 0; before < number; before++)
		fit_trial->done = fit_trial->done || same_design(fit_trial, &w->list[before]);
	return made;
}

/* Rates all trials.  true: one of them is as fast as the crowded design, and is built. */
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

/* Builds the fastest trial without a crowded die; a trial that costs almost no time is built at
 * once.  -O1 takes the first that fits.  With few tokens hardly any trial is that cheap, so two are
 * rated in parallel.  Ends: each iteration builds a trial or rates one as it was built, once. */
static bool build_uncrowded(struct build *b, const struct choices *wanted)
{
	struct session *session = b->session;
	struct fit_trials w = { .wanted = wanted,
		.clock = build_clock(session),
		.ends = !wanted->value[CHOICE_PROLOGUE] };
	w.count =
	        list_fit_trials(session, wanted, build_pes(b, &b->cost), trial_workload(b), w.list);
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

/* If every trial crowds a die, the design itself is built, at a slower clock if that is free. Of
 * one of two phases it is not known yet how full the dies will be, so no trial is made. */
bool build_at_clock(struct build *b)
{
	struct session *session = b->session;
	struct choices wanted = session->choices;
	bool free = build_is_whole(b) && !session->parallelism_table;
	b->skips_crowded = free;
	if (free)
		speculative_judge(b, &wanted);
	bool built = build_fitting(b);
	bool crowded = built && free && b->crowded;
	if (crowded)
		built = build_uncrowded(b, &wanted);
	speculative_drop(b);
	b->skips_crowded = false;
	if (built || !crowded || session->stop)
		return built;
	session->choices = wanted;
	if (!session->options.choices.value[CHOICE_CLOCK])
		limits_slower(session);
	session->choices.value[CHOICE_CLOCK] = session->options.choices.value[CHOICE_CLOCK];
	return build_fitting(b);
}
