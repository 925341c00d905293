#include "driver/point.h"
#include "driver/limits.h"
#include "driver/report.h"
#include "model/token.h"

#define ATTEMPTS 8            /* the last one is as narrow as can be */
#define TARGET_STEPS 6        /* of halving the operators that --target-ms needs */
#define COMPARED_KERNELS 36   /* larger modules keep the joint search */
#define NARROWER 0.8
#define NARROWER_SLICES 0.95  /* what slices are counted for before and after a design is built differs little */
#define NARROWER_MEMORY 0.7
#define FEWER 6               /* at most one slice in so many is given up for the clock, */
#define NARROW 30             /* after kernels got so many hundredths of LUTs and DSPs at most */
#define QUICK_SHARE 10        /* -O1 looks at one part in so many of the loop orders */
#define QUICK_EVENTS 2400000  /* and simulates no more iterations */

enum outcome { OUTCOME_BUILT, OUTCOME_PORTS, OUTCOME_SPACE, OUTCOME_MEMORY, OUTCOME_REFUSED };

struct build {
	struct session *session;
	struct module *tensor;    /* what the passes begin at */
	int first, last;
	enum limit over;          /* of OUTCOME_SPACE: the limit that is exceeded; LIMITS: the board */
	struct resources used;    /* by the last design that got as far */
	struct design_cost cost;  /* of OUTCOME_BUILT, whole */
	double ms;                /* and modelled */
};

/* --- one attempt */

static bool whole(const struct build *b)
{
	return b->last == pass_count - 1;
}

static enum outcome classify(struct build *b)
{
	const struct session *session = b->session;
	const char *stage = session->guard.stage;
	if (session->stop)
		return OUTCOME_REFUSED;
	if (session->context.excess_ports)
		return OUTCOME_PORTS;
	if (text_same(stage, "allocate_memory"))
		return OUTCOME_MEMORY;
	if (!text_same(stage, "place_dies"))
		return OUTCOME_REFUSED;
	b->used = design_cost(session->attempt, session->platform, session->module).total;
	return OUTCOME_SPACE;
}

static enum outcome attempt(struct build *b)
{
	struct session *session = b->session;
	arena_free(session->attempt);
	session->attempt = arena_new(&session->guard);
	session->module = module_clone(b->tensor, session->attempt);
	session->predicted = NULL;
	session->diag.count = 0;
	b->over = LIMITS;
	if (!run_passes(session, b->first, b->last))
		return classify(b);
	if (!whole(b))
		return OUTCOME_BUILT;
	struct report report = report_make(session, "");
	b->cost = report.cost;
	b->used = report.cost.total;
	b->ms = report.model_ms;
	b->over = limits_exceeded(session, b->used);
	return b->over == LIMITS ? OUTCOME_BUILT : OUTCOME_SPACE;
}

/* --- narrower */

static void scale(struct build *b, enum choice choice, int64_t used, double factor)
{
	struct choices *choices = &b->session->choices;
	int64_t now = choice_on(choices, b->session->platform, choice);
	now = used > 0 && used < now ? used : now;
	int64_t next = (int64_t)((double)now * factor);
	choices->value[choice] = next < 1 ? 1 : next;
}

static void narrow_space(struct build *b)
{
	const struct resources *limit = &b->session->limit;
	if (b->over == LIMIT_DSP) {
		scale(b, CHOICE_DSP, 0, NARROWER_SLICES * (double)limit->dsp / (double)b->used.dsp);
		return;
	}
	scale(b, CHOICE_DSP, b->used.dsp, NARROWER);
	scale(b, CHOICE_LUT, b->used.lut, NARROWER);
}

static void narrow(struct build *b, enum outcome outcome, int number)
{
	struct choices *choices = &b->session->choices;
	if (outcome == OUTCOME_PORTS)
		choices->value[CHOICE_SHARED_PORTS] = choice_count(choices, CHOICE_SHARED_PORTS) + b->session->context.excess_ports;
	else if (outcome == OUTCOME_MEMORY)
		scale(b, CHOICE_ON_CHIP, 0, NARROWER_MEMORY);
	else
		narrow_space(b);
	if (number < ATTEMPTS - 2 || outcome == OUTCOME_PORTS)
		return;
	choices->value[CHOICE_DSP] = choices->value[CHOICE_LUT] = 1;
	choices->value[CHOICE_SEARCH] = b->session->options.choices.value[CHOICE_SEARCH];      /* the same whatever was wished */
}

/* Where a limit cannot be met, what the narrowest design takes is the nearest that can. */
static bool refuse_limit(struct build *b)
{
	struct session *session = b->session;
	if (b->over == LIMITS)
		return false;
	long long need = (long long)limit_of(b->used, b->over);
	if (!session->options.limit[b->over]) {       /* one of two phases has what the other leaves */
		diag_error(&session->diag, NOWHERE, "both phases together do not fit: the narrowest design of one that was found takes %lld %s, and %lld are left for it", need, limit_unit[b->over],
			   (long long)limit_of(session->limit, b->over));
		return diag_note(&session->diag, "a design of one phase each, without --with; or fewer tokens a launch");
	}
	diag_error(&session->diag, NOWHERE, "--%s %s cannot be met%s: the narrowest design that was found takes %lld %s", limit_option[b->over], session->options.limit[b->over],
		   session->choices.fixed ? " together with --fix" : "", need, limit_unit[b->over]);
	return diag_note(&session->diag, "the nearest that can is --%s %lld", limit_option[b->over], need);
}

/* The user's limits are the first budgets. */
static void begin_within_limits(struct build *b)
{
	const struct session *session = b->session;
	struct choices *choices = &b->session->choices;
	if (session->options.limit[LIMIT_DSP] && choice_on(choices, session->platform, CHOICE_DSP) > session->limit.dsp)
		choices->value[CHOICE_DSP] = session->limit.dsp > 0 ? session->limit.dsp : 1;
	if (session->options.limit[LIMIT_LUT] && choice_on(choices, session->platform, CHOICE_LUT) > session->limit.lut / 2)
		choices->value[CHOICE_LUT] = session->limit.lut > 1 ? session->limit.lut / 2 : 1;
}

/* A second phase that reads weights as the first does lacks ports until the first is built with fewer (phases.c). */
static bool waits_for_first(const struct build *b, int number)
{
	return b->session->follows && number > 0;
}

static bool build_fitting(struct build *b)
{
	for (int number = 0; number < ATTEMPTS; number++) {
		enum outcome outcome = attempt(b);
		if (outcome == OUTCOME_BUILT)
			return true;
		if (outcome == OUTCOME_REFUSED || (outcome == OUTCOME_PORTS && waits_for_first(b, number)))
			return false;
		if (number < ATTEMPTS - 1)
			narrow(b, outcome, number);
	}
	return refuse_limit(b);
}

static const struct op *dot_in(const struct block *block)
{
	const struct op *found = NULL;
	for (const struct op *op = block->first; op && !found; op = op->next)
		found = op->code == OP_DOT ? op : op->region[0] ? dot_in(op->region[0]) : NULL;
	return found;
}

static int slices_of(const struct design_cost *cost)
{
	int slices = 0;
	for (int i = 0; i < cost->processes; i++) {
		const struct op *op = dot_in(cost->process[i].function->region[0]);
		struct dot dot;
		slices += op && dot_of(op, &dot) ? dot.words : 0;
	}
	return slices;
}

/* Fewer ports side by side for states, narrower kernels, or some slices less, cost time where they are; a slower clock costs it everywhere.  With which of that is no die crowded? */
static bool build_with_less(struct build *b)
{
	struct session *session = b->session;
	struct choices wanted = session->choices, *choices = &session->choices;
	int slices = slices_of(&b->cost), fewer = slices - UNIT_LANES;
	const struct {
		int ports, slices;    /* 0: as wanted */
		bool narrow;
	} tried[] = {{4, 0, false}, {2, 0, false}, {2, 0, true}, {1, 0, false}, {0, fewer, false}, {2, fewer, false}, {1, fewer, false}};
	for (size_t i = 0; slices && i < sizeof tried / sizeof *tried; i++) {
		if ((tried[i].ports && wanted.value[CHOICE_STATE_PORTS]) || (tried[i].narrow && (wanted.value[CHOICE_LUT] || wanted.value[CHOICE_DSP])) || (tried[i].slices && (wanted.value[CHOICE_SLICES] || fewer * FEWER < slices * (FEWER - 1))))
			continue;
		*choices = wanted;
		if (tried[i].ports)
			choices->value[CHOICE_STATE_PORTS] = tried[i].ports;
		if (tried[i].slices)
			choices->value[CHOICE_SLICES] = fewer;
		if (tried[i].narrow) {
			choices->value[CHOICE_LUT] = platform_total(session->platform).lut * NARROW / 100;
			choices->value[CHOICE_DSP] = platform_total(session->platform).dsp * NARROW / 100;
		}
		if (!build_fitting(b))
			return false;
		if (!limits_crowded(session, &b->cost))
			return true;
	}
	return false;
}

/* At the clock that the rule gives; of one of two phases nobody knows yet how full its dies will be. */
static bool build_timed(struct build *b)
{
	struct session *session = b->session;
	struct choices wanted = session->choices;
	if (!build_fitting(b))
		return false;
	if (!whole(b) || session->widths || session->options.choices.value[CHOICE_CLOCK] || !limits_crowded(session, &b->cost))
		return true;
	session->choices = wanted;
	if (build_with_less(b))
		return true;
	limits_slow_down(session, &b->cost);
	session->choices = wanted;
	session->choices.value[CHOICE_CLOCK] = session->options.choices.value[CHOICE_CLOCK];
	return build_fitting(b);
}

/* --- searches compared */

static void count_kernel(struct op *op, void *count)
{
	*(int *)count += op->code == OP_KERNEL;
}

/* Cycles of a launch where every FIFO holds all its words; 0: the search gives no design. */
static int64_t cycles_of(struct build *b, int search, int64_t *dsp)
{
	struct session *session = b->session;
	struct build part = {.session = session, .tensor = b->tensor, .first = b->first, .last = pass_find("make_processes")};
	struct choices wanted = session->choices;
	session->choices.value[CHOICE_SEARCH] = 1 + search;
	enum outcome outcome = attempt(&part);
	if (outcome == OUTCOME_PORTS) {
		narrow(&part, outcome, 0);
		outcome = attempt(&part);
	}
	session->choices = wanted;
	if (outcome != OUTCOME_BUILT)
		return 0;
	struct design_cost cost = design_cost(session->attempt, session->platform, session->module);
	int64_t cycles = token_cycles(session->platform, session->module);
	*dsp = cost.total.dsp;
	return cycles ? cycles : design_time(session->attempt, session->platform, session->module, &cost).most;
}

/* What the closed form leaves out may make a simpler search the better one: of small modules each is built as far as its cycles can be told.  Where the on-chip
 * memory suffices for none, the one that needs the least is left to say so. */
static void compare_searches(struct build *b)
{
	struct session *session = b->session;
	int kernels = 0, best = -1, smallest = -1;
	int64_t least = 0, fewest = 0, dsp = 0, missing = 0;
	ir_walk(module_body(b->tensor), count_kernel, &kernels);
	if (session->choices.value[CHOICE_SEARCH] || !whole(b) || kernels > COMPARED_KERNELS)
		return;
	for (int search = 0; search < choice_info[CHOICE_SEARCH].words && !session->stop; search++) {
		int64_t cycles = cycles_of(b, search, &dsp), lacks = session->context.least_on_chip;
		if (!cycles && lacks && (smallest < 0 || lacks < missing)) {
			smallest = search;
			missing = lacks;
		}
		if (!cycles || (best >= 0 && (cycles > least || (cycles == least && dsp >= fewest))))
			continue;
		best = search;
		least = cycles;
		fewest = dsp;
	}
	best = best < 0 ? smallest : best;
	session->choices.value[CHOICE_SEARCH] = best < 0 ? 0 : 1 + best;
}

/* --- a target */

static bool refuse_target(struct build *b)
{
	struct session *session = b->session;
	diag_error(&session->diag, NOWHERE, "--target-ms %s cannot be met: the fastest design that was found takes %.4g ms", session->options.target_ms, b->ms);
	return diag_note(&session->diag, "the nearest that can is --target-ms %.4g; -O3 looks at more designs", b->ms * 1.0001);
}

/* The fewest operators that still meet the target, by halving; the widths in between are searched again for each. */
static bool meet_target(struct build *b)
{
	struct session *session = b->session;
	if (b->ms > session->target_ms)
		return refuse_target(b);
	struct choices best = session->choices;
	int64_t low = 0, high = b->used.dsp;
	bool current = true;
	for (int step = 0; step < TARGET_STEPS && high - low > 1; step++) {
		session->choices = best;
		session->choices.value[CHOICE_DSP] = low + (high - low) / 2;
		struct choices tried = session->choices;
		current = build_fitting(b) && b->ms <= session->target_ms;
		if (session->stop)
			return false;
		if (current) {
			best = session->choices;
			high = b->used.dsp < tried.value[CHOICE_DSP] ? b->used.dsp : tried.value[CHOICE_DSP];
		} else {
			low = tried.value[CHOICE_DSP];
		}
	}
	session->choices = best;
	return current || build_fitting(b);
}

bool point_build(struct session *session, int first, int last)
{
	struct build b = {.session = session, .tensor = session->module, .first = first, .last = last};
	begin_within_limits(&b);
	compare_searches(&b);
	return build_timed(&b) && (!session->target_ms || !whole(&b) || meet_target(&b));
}

/* --- options */

static bool choose_effort(struct session *session)
{
	struct choices *choices = &session->choices;
	int64_t effort = session->options.effort;
	if (effort > 3) {
		diag_error(&session->diag, NOWHERE, "-O%lld is no effort", (long long)effort);
		return diag_note(&session->diag, "-O1, -O2 or -O3");
	}
	if (effort != 1)
		return true;
	if (!choices->value[CHOICE_SEARCH])
		choices->value[CHOICE_SEARCH] = 1 + choice_word_named(CHOICE_SEARCH, "intensity");
	if (!choices->value[CHOICE_ORDER_POINTS])
		choices->value[CHOICE_ORDER_POINTS] = choice_info[CHOICE_ORDER_POINTS].own / QUICK_SHARE;
	if (!session->options.events)
		session->options.events = QUICK_EVENTS;
	return true;
}

bool point_choose(struct session *session)
{
	const struct option_list *fix = &session->options.fix;
	struct fixed_width *fixed = ARENA_ARRAY(session->arena, struct fixed_width, (int)fix->count + 1);
	session->choices = session->options.choices;
	for (size_t i = 0; i < fix->count; i++) {
		if (!fixed_width_parse(&session->diag, fix->data[i], &fixed[i]))
			return false;
		if (fixed_width_of(&session->choices, fixed[i].kernel)) {
			diag_error(&session->diag, NOWHERE, "--fix names kernel '%s' twice", fixed[i].kernel);
			return diag_note(&session->diag, "one --fix for each kernel: KERNEL:lanes=COUNT,rows=COUNT,ports=COUNT");
		}
		session->choices.fix = fixed;
		session->choices.fixed = (int)i + 1;
	}
	return choose_effort(session);
}
