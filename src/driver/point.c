#include "driver/point.h"
#include "base/jobs.h"
#include "driver/limits.h"
#include "driver/report.h"
#include "ir/nest.h"
#include "ir/rows.h"
#include "model/token.h"
#include "pass/fifo.h"
#include "pass/place.h"
#include <math.h>

#define ATTEMPTS 8            /* the last one is as narrow as can be */
#define TARGET_STEPS 6        /* of halving the operators that --target-ms needs */
#define COMPARED_KERNELS 36   /* larger modules keep the joint search */
#define NARROWER 0.8
#define NARROWER_SLICES 0.95  /* what slices are counted for before and after a design is built differs little */
#define NARROWER_MEMORY 0.7
#define FEWER 6               /* at most one slice in so many is given up for the clock, */
#define NARROW 30             /* after kernels got so many hundredths of LUTs and DSPs at most; */
#define NARROW_COUNTED 22     /* beside slices that take a few counted tokens abreast so many, */
#define NARROWEST_COUNTED 18  /* or so many of LUTs, */
#define COUNTED_DSP 1.25      /* and so many times as large a part of DSPs */
#define NEAR 1.01             /* ratings that differ by no more are alike */
#define ALIKE 1.05            /* what the token model tells apart of designs of other shapes */
#define SHORT 8               /* of run-time extents, the part at which a design is to be quick as well */

#define TRIED_ABREAST 4
static const struct {
	int abreast;
	int rounded;              /* slices are a multiple of it: words of results then have no turns; 0: as there are ports */
} tried_abreast[TRIED_ABREAST] = {{4, 0}, {4, 8}, {2, 0}, {2, 8}};

enum outcome { OUTCOME_BUILT, OUTCOME_CROWDED, OUTCOME_PORTS, OUTCOME_SPACE, OUTCOME_MEMORY, OUTCOME_REFUSED };

enum from { FROM_TENSOR, FROM_COPY, FROM_MADE, FROM_JUDGED };

struct ahead;

struct build {
	struct session *session;
	struct module *tensor;    /* what the passes begin at */
	int first, last;
	enum from from;           /* what session->module is already: a copy of `tensor`; what the passes up to make_processes make of it; the same, and `judged` is what has come of it */
	enum outcome judged;
	struct ahead *ahead;      /* what was built beside it; NULL: nothing was */
	bool spares;              /* no FIFO is sized where a die is crowded in any case: OUTCOME_CROWDED */
	bool crowded;             /* a die of the design is, so far as it is built */
	enum limit over;          /* of OUTCOME_SPACE: the limit that is exceeded; LIMITS: the board */
	struct resources used;    /* by the last design that got as far */
	struct design_cost cost;  /* of OUTCOME_BUILT, whole */
	double ms;                /* and modelled, where there is a target */
};

/* --- one attempt */

static bool whole(const struct build *b)
{
	return b->last == pass_count - 1;
}

/* Has the unit a few tokens, counted at run time? */
static bool counts_tokens(const struct build *b)
{
	const struct op *main = module_main(b->tensor);
	return unit_has_tokens(main->region[0]) && counts_few(main);
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

static void begin_attempt(struct build *b)
{
	struct session *session = b->session;
	arena_free(session->attempt);
	session->attempt = arena_new(&session->guard);
	session->module = module_clone(b->tensor, session->attempt);
	session->diag.count = 0;
}

/* Is a die crowded where FIFOs hold next to nothing?  Then it is, however deep they are. */
static bool crowded_in_any_case(struct build *b)
{
	struct session *session = b->session;
	struct module *made = session->module;
	session->module = module_clone(made, session->attempt);
	fifo_shallow(session->module);
	bool stored = run_passes(session, pass_find("allocate_memory"), pass_find("allocate_memory"));
	b->cost = design_cost(session->attempt, session->platform, session->module);
	bool crowded = stored && limits_exceeded(session, b->cost.total) == LIMITS && !place_finds_room(session->platform, session->module);
	session->module = made;
	session->diag.count = 0;
	return crowded;
}

static enum outcome attempt(struct build *b)
{
	struct session *session = b->session;
	int half = pass_find("make_processes"), next = b->first > half ? b->first : half + 1;
	enum from from = b->from;
	b->from = FROM_TENSOR;
	if (from == FROM_JUDGED && b->judged != OUTCOME_BUILT)
		return b->judged;
	if (from == FROM_TENSOR)
		begin_attempt(b);
	session->predicted = NULL;
	b->over = LIMITS;
	b->crowded = false;
	if (from < FROM_MADE && !run_passes(session, b->first, b->last < half ? b->last : half))
		return classify(b);
	if (from < FROM_JUDGED && b->spares && b->first <= half)
		b->crowded = crowded_in_any_case(b);
	if (b->crowded)
		return OUTCOME_CROWDED;
	if (!run_passes(session, next, b->last))
		return classify(b);
	if (!whole(b))
		return OUTCOME_BUILT;
	b->cost = design_cost(session->arena, session->platform, session->module);
	b->used = b->cost.total;
	b->ms = session->target_ms ? report_make(session, "").model_ms : 0;
	b->over = limits_exceeded(session, b->used);
	b->crowded = limits_crowded(session, &b->cost);
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
		if (outcome == OUTCOME_BUILT || outcome == OUTCOME_CROWDED)
			return true;
		if (outcome == OUTCOME_REFUSED || (outcome == OUTCOME_PORTS && waits_for_first(b, number)))
			return false;
		if (number < ATTEMPTS - 1)
			narrow(b, outcome, number);
	}
	return refuse_limit(b);
}

/* In the datapath of a unit's phases, inside it: other kernels form sums of products as well. */
static const struct op *dot_in(const struct block *block, bool inside)
{
	const struct op *found = NULL;
	for (const struct op *op = block->first; op && !found; op = op->next)
		found = op->code == OP_DOT && inside ? op : op->region[0] ? dot_in(op->region[0], inside || nest_mark(op) >= 0) : NULL;
	return found;
}

static int slices_of(const struct design_cost *cost)
{
	int slices = 0;
	for (int i = 0; i < cost->processes; i++) {
		const struct op *op = dot_in(cost->process[i].function->region[0], false);
		struct dot dot;
		slices += op && dot_of(op, &dot) ? dot.words : 0;
	}
	return slices;
}

/* --- less where a die is crowded */

enum { LESS_MOST = 16 };

struct less {                 /* a way to take less than a crowded design */
	int ports, slices;    /* 0: as wanted */
	int narrow;           /* hundredths of LUTs for kernels; 0: as wanted */
	bool counted;         /* beside slices that take a few counted tokens, whose kernels want more DSPs to a LUT */
	bool slow;
	bool done;            /* built, and crowded */
	double rating;
	int64_t lut, dsp;     /* of its processes */
};

static void choose_less(struct build *b, const struct choices *wanted, const struct less *less)
{
	struct session *session = b->session;
	struct choices *choices = &session->choices;
	*choices = *wanted;
	if (less->ports)
		choices->value[CHOICE_STATE_PORTS] = less->ports;
	if (less->slices)
		choices->value[CHOICE_SLICES] = less->slices;
	if (less->narrow) {
		double dsp = less->counted ? COUNTED_DSP * less->narrow : less->narrow;
		choices->value[CHOICE_LUT] = platform_total(session->platform).lut * less->narrow / 100;
		choices->value[CHOICE_DSP] = (int64_t)((double)platform_total(session->platform).dsp * dsp / 100);
	}
	if (less->slow)
		choices->value[CHOICE_CLOCK] = session->options.choices.value[CHOICE_CLOCK];
}

/* What the user has not chosen otherwise; at most one slice in FEWER is given up. */
static int list_less(const struct session *session, const struct choices *wanted, int slices, bool counted, struct less *list)
{
	int fewer = slices - UNIT_LANES, less = slices - UNIT_STEP, count = 0;
	const struct less ways[] = {{.narrow = NARROW}, {.ports = 4}, {.ports = 2}, {.ports = 2, .narrow = NARROW}, {.ports = 1}, {.slices = fewer}, {.ports = 2, .slices = fewer}, {.ports = 1, .slices = fewer},
				    {.narrow = NARROW_COUNTED, .counted = true}, {.slices = fewer, .narrow = NARROW_COUNTED, .counted = true}, {.slices = less, .narrow = NARROW_COUNTED, .counted = true},
				    {.slices = less, .narrow = (NARROW_COUNTED + NARROWEST_COUNTED) / 2, .counted = true}, {.slices = less, .narrow = NARROWEST_COUNTED, .counted = true}};
	for (size_t i = 0; slices && i < sizeof ways / sizeof *ways; i++) {
		bool ports = !ways[i].ports || !wanted->value[CHOICE_STATE_PORTS], own = counted || !ways[i].counted;
		bool kernels = !ways[i].narrow || (own && !wanted->value[CHOICE_LUT] && !wanted->value[CHOICE_DSP]);
		if (ports && kernels && (!ways[i].slices || (!session->options.choices.value[CHOICE_SLICES] && fewer * FEWER >= slices * (FEWER - 1))))
			list[count++] = ways[i];
	}
	if (!session->options.choices.value[CHOICE_CLOCK])
		list[count++] = (struct less){.slow = true};
	return count;
}

struct clock {                /* a slower one (limits_slower) is a wish, and another platform */
	const struct platform *platform;
	int64_t mhz;
};

static struct clock clock_of(const struct session *session)
{
	return (struct clock){session->platform, session->options.choices.value[CHOICE_CLOCK]};
}

static void set_clock(struct session *session, struct clock clock)
{
	session->platform = clock.platform;
	session->options.choices.value[CHOICE_CLOCK] = clock.mhz;
}

static double milliseconds_at(const struct session *session, int extents, const struct extent_value *extent)
{
	struct token_detail detail = token_detail_rated;
	detail.extents = extents;
	detail.extent = extent;
	return (double)report_cycles(session, detail) / (session->platform->clock_mhz * 1e3);
}

/* Of a launch; where it counts its tokens (`rows` is their extent, else -1), of one alone and of one with as many others as there may be: a text has as many that are read as that are written. */
static double milliseconds_of_tokens(const struct session *session, int extents, struct extent_value *extent, int rows)
{
	double all = milliseconds_at(session, extents, extent);
	if (rows < 0 || all <= 0)
		return all;
	int64_t most = extent[rows].value;
	extent[rows].value = 1;
	double one = milliseconds_at(session, extents, extent);
	extent[rows].value = most;
	return one + all / (double)most;
}

/* By the milliseconds that the token model gives at the most run-time extents, times those at a part of them, since neither is to suffer for the other. */
static double rating_of(const struct session *session)
{
	struct extent_value *extent;
	int extents = timing_extents(session->attempt, session->module, &extent), rows = -1;
	for (int i = 0; i < extents; i++)
		rows = rows_counted_by(module_main(session->module), extent[i].symbol) ? i : rows;
	double all = milliseconds_of_tokens(session, extents, extent, rows);
	for (int i = 0; i < extents; i++)
		extent[i].value /= i == rows ? 1 : SHORT;
	double few = extents ? milliseconds_of_tokens(session, extents, extent, rows) : all;
	return all <= 0 || few <= 0 ? INFINITY : all * few;
}

static void rate(const struct session *session, struct less *less)
{
	struct design_cost cost = design_cost(session->attempt, session->platform, session->module);
	less->rating = rating_of(session);
	for (int i = 0; i < cost.processes; i++) {
		less->lut += cost.process[i].resources.lut;
		less->dsp += cost.process[i].resources.dsp;
	}
}

/* Built as far as its cycles can be told, where every FIFO holds all its words.  A slower clock costs time everywhere: it is rated as the others are. */
static void rate_less(struct build *b, const struct choices *wanted, struct less *less)
{
	struct session *session = b->session;
	struct build part = {.session = session, .tensor = b->tensor, .first = b->first, .last = pass_find("make_processes")};
	const struct clock clock = clock_of(session);
	less->rating = INFINITY;
	if (less->slow)
		limits_slower(session);
	choose_less(b, wanted, less);
	if (attempt(&part) == OUTCOME_BUILT)
		rate(session, less);
	set_clock(session, clock);
}

/* --- a way that is rated beside something else */

struct ahead {
	struct session session;   /* as the design's, but for what changes */
	struct build part;
	struct less less, crowded;        /* the way; and what the design itself is rated, if a die of it is crowded */
};

struct rated {
	struct build *build;
	const struct choices *wanted;
	struct less *less;
};

static void rate_here(void *data, struct arena *scratch)
{
	struct rated *rated = data;
	(void)scratch;
	rate_less(rated->build, rated->wanted, rated->less);
}

static void judge(void *data, struct arena *scratch)
{
	struct build *b = data, part = *b;
	(void)scratch;
	part.last = pass_find("make_processes");
	b->judged = attempt(&part);
	b->over = part.over;
	b->used = part.used;
	b->cost = part.cost;
	b->crowded = part.crowded;
	if (b->judged == OUTCOME_CROWDED)
		rate(b->session, &b->ahead->crowded);
}

/* Where it cannot go on, it is as if it were as slow as can be. */
static void rate_ahead(void *data, struct arena *scratch)
{
	struct ahead *ahead = data;
	struct session *own = &ahead->session;
	arena_leave_as(own->arena, scratch);
	arena_leave_as(own->attempt, scratch);
	ahead->less.rating = INFINITY;
	if (!setjmp(own->guard.leave) && attempt(&ahead->part) == OUTCOME_BUILT)
		rate(own, &ahead->less);
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
	ahead->part = (struct build){.session = own, .tensor = b->tensor, .first = b->first, .last = pass_find("make_processes"), .from = FROM_COPY};
	choose_less(&ahead->part, wanted, &ahead->less);
	return ahead;
}

static bool goes_ahead(const struct build *b)
{
	const struct options *options = &b->session->options;
	return options->effort != 1 && !options->dump_dir && !stress_on() && b->first <= pass_find("make_processes") && has_contraction(module_main(b->tensor)->region[0]);
}

static void run_beside_ahead(struct build *b, struct job own)
{
	struct session *session = b->session;
	struct ahead *ahead = b->ahead;
	jobs_run(&session->guard, 2, (struct job[]){own, {rate_ahead, ahead}});
	arena_leave_as(ahead->session.arena, session->arena);
	arena_leave_as(ahead->session.attempt, session->arena);
	copy_answers(&session->answers, &ahead->session.answers);
}

static void drop_ahead(struct build *b)
{
	if (b->ahead)
		arena_free(b->ahead->session.attempt);
	b->ahead = NULL;
}

/* Nobody knows yet whether a die of the design is crowded.  The first way out of it is thrown away where none is, or where the user chose otherwise. */
static void judge_beside_ahead(struct build *b, const struct choices *wanted)
{
	if (wanted->value[CHOICE_LUT] || wanted->value[CHOICE_DSP] || !goes_ahead(b))
		return;
	b->ahead = begin_ahead(b, wanted, &(struct less){.narrow = NARROW});
	run_beside_ahead(b, (struct job){judge, b});
	b->from = FROM_JUDGED;
}

static void rate_beside_ahead(struct build *b, const struct choices *wanted, struct less *less, const struct less *next)
{
	struct rated rated = {b, wanted, less};
	drop_ahead(b);
	b->ahead = begin_ahead(b, wanted, next);
	run_beside_ahead(b, (struct job){rate_here, &rated});
}

static void take_ahead(struct build *b, struct less *less)
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

/* --- all ways */

static bool same_way(const struct less *left, const struct less *right)
{
	return left->ports == right->ports && left->slices == right->slices && left->narrow == right->narrow && left->slow == right->slow;
}

static bool same_design(const struct less *left, const struct less *right)
{
	return left->slow == right->slow && left->lut == right->lut && left->dsp == right->dsp && left->rating <= right->rating * NEAR && right->rating <= left->rating * NEAR;
}

/* The quickest first; of those that are alike, the first of the table. */
static void sort_less(struct less *list, int count)
{
	for (int i = 1; i < count; i++) {
		struct less moved = list[i];
		int j = i;
		for (; j && list[j - 1].rating > moved.rating; j--)
			list[j] = list[j - 1];
		list[j] = moved;
	}
}

/* true: built, and no die is crowded, or the clock is slower.  rated: as far as it takes for that, it has just been built. */
static bool build_less(struct build *b, const struct choices *wanted, struct less *less, bool rated)
{
	if (less->slow)
		limits_slower(b->session);
	choose_less(b, wanted, less);
	b->from = rated && !less->slow ? FROM_MADE : FROM_TENSOR;
	b->spares = !less->slow;
	less->done = true;
	return build_fitting(b) && (less->slow || !b->crowded);
}

/* Fewer ports side by side for states, narrower kernels, or some slices less, cost time where they are; a slower clock costs it everywhere.  With which of that is no die crowded, and which is the quickest?
 * What costs next to nothing is built at once.  -O1 takes the first that fits.  Beside a few counted tokens hardly anything costs next to nothing, so two are rated at a time. */
static bool build_with_less(struct build *b, const struct choices *wanted)
{
	struct session *session = b->session;
	struct less list[LESS_MOST], crowded = {0};
	int count = list_less(session, wanted, slices_of(&b->cost), counts_tokens(b), list);
	bool rated = count > 1 && session->options.effort != 1, two = rated && counts_tokens(b) && goes_ahead(b);
	if (rated && b->ahead && b->ahead->crowded.rating > 0)
		crowded = b->ahead->crowded;
	else if (rated)
		rate(session, &crowded);
	for (int i = 0; rated && i < count && !session->stop; i++) {
		if (b->ahead && same_way(&list[i], &b->ahead->less))
			take_ahead(b, &list[i]);
		else if (two && i + 1 < count)
			rate_beside_ahead(b, wanted, &list[i], &list[i + 1]);
		else
			rate_less(b, wanted, &list[i]);
		for (int before = 0; before < i; before++)
			list[i].done = list[i].done || same_design(&list[i], &list[before]);
		if (!list[i].done && list[i].rating <= crowded.rating * NEAR && build_less(b, wanted, &list[i], true))
			return true;
	}
	if (rated)
		sort_less(list, count);
	for (int i = 0; i < count && !session->stop; i++)
		if (!list[i].done && build_less(b, wanted, &list[i], false))
			return true;
	return false;
}

/* --- tokens abreast */

struct counted {              /* a way to take a few tokens that are counted at run time */
	int abreast;
	struct choices choices;
	double rating;
};

static void choose_counted(struct build *b, const struct counted *way)
{
	b->session->choices = way->choices;
	mark_abreast(b->tensor, module_main(b->tensor)->region[0], way->abreast);
}

/* Built as far as its cycles can be told.  slices: of the design. */
static bool rate_counted(struct build *b, struct counted *way, int *slices)
{
	struct session *session = b->session;
	struct build part = {.session = session, .tensor = b->tensor, .first = b->first, .last = pass_find("make_processes")};
	choose_counted(b, way);
	if (attempt(&part) != OUTCOME_BUILT)
		return false;
	struct design_cost cost = design_cost(session->attempt, session->platform, session->module);
	*slices = slices_of(&cost);
	way->rating = rating_of(session);
	return true;
}

/* Those with the most tokens abreast first, of these the one with the fewest slices. */
static int list_counted(struct build *b, struct counted *list)
{
	const struct choices wanted = b->session->choices;
	int count = 0, slices = 0;
	for (int i = 0; i < TRIED_ABREAST && !b->session->stop; i++) {
		struct counted way = {.abreast = tried_abreast[i].abreast, .choices = wanted};
		int rounded = tried_abreast[i].rounded;
		if (way.abreast >= unit_tokens(module_main(b->tensor)->region[0], NULL) || (rounded && (slices % rounded == 0 || wanted.value[CHOICE_SLICES])))
			continue;
		way.choices.value[CHOICE_SLICES] = rounded ? slices / rounded * rounded : wanted.value[CHOICE_SLICES];
		slices = 0;
		if (!rate_counted(b, &way, &slices))
			continue;
		if (rounded && count)
			list[count] = list[count - 1];
		list[rounded && count ? count - 1 : count] = way;
		count++;
	}
	b->session->choices = wanted;
	return count;
}

/* At the clock that the rule gives, or that is asked for, even if a die is crowded whatever is taken back; of one of two phases nobody knows yet how full its dies will be. */
static bool build_timed(struct build *b)
{
	struct session *session = b->session;
	struct choices wanted = session->choices;
	bool free = whole(b) && !session->widths;
	b->spares = free;
	if (free)
		judge_beside_ahead(b, &wanted);
	bool built = build_fitting(b), crowded = built && free && b->crowded;
	if (crowded)
		built = build_with_less(b, &wanted);
	drop_ahead(b);
	b->spares = false;
	if (built || !crowded || session->stop)
		return built;
	session->choices = wanted;
	return build_fitting(b);
}

/* The best of another number of tokens abreast, or -1. */
static int other_abreast(const struct counted *list, int count, int first)
{
	int best = -1;
	for (int i = 0; i < count; i++)
		if (list[i].abreast != list[first].abreast && (best < 0 || list[i].rating < list[best].rating))
			best = i;
	return best;
}

/* What a crowded die takes back is known of a whole design only: where that is not what it was rated, the best of the others is built as well, and the better one stays. */
static bool build_rated(struct build *b, const struct counted *list, int count, int first)
{
	struct session *session = b->session;
	const struct clock wanted = clock_of(session);
	choose_counted(b, &list[first]);
	bool built = build_timed(b);
	int other = other_abreast(list, count, first);
	double reached = built ? rating_of(session) : INFINITY;
	if (session->stop || other < 0 || (built && reached < list[first].rating * NEAR))
		return built;
	set_clock(session, wanted);
	choose_counted(b, &list[other]);
	built = build_timed(b);
	if (session->stop || (built && rating_of(session) < reached))
		return built;
	set_clock(session, wanted);
	choose_counted(b, &list[first]);
	return build_timed(b);
}

/* Of a few tokens that are counted at run time: how many does a slice take a cycle, and how many slices leave the kernels beside them enough?  One token alone waits for memory, of which every slice brings some.
 * Of those that the token model says are alike, as near as it can tell, the first of the list. */
static bool build_counted(struct build *b)
{
	struct session *session = b->session;
	const struct pass_context context = {.platform = session->platform, .choices = session->choices};
	struct counted list[TRIED_ABREAST];
	bool counted = whole(b) && session->options.effort != 1 && !session->choices.value[CHOICE_ABREAST] && has_unit(&context) && counts_tokens(b);
	int count = counted ? list_counted(b, list) : 0, first = 0;
	double least = INFINITY;
	for (int i = 0; i < count; i++)
		least = list[i].rating < least ? list[i].rating : least;
	while (first < count && list[first].rating > least * ALIKE)
		first++;
	return first < count ? build_rated(b, list, count, first) : build_timed(b);
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
	return build_counted(&b) && (!session->target_ms || !whole(&b) || meet_target(&b));
}
