/* Ways to take less where a die is crowded, and how good designs are. */
#include "ir/workload.h"
#include "engine/unit_cost.h"
#include "explore/build.h"
#include "report/report.h"
#include "ir/rows.h"
#include "predict/token.h"
#include <math.h>

#define FEWER 6               /* at most one slice in so many is given up for the clock */
#define LESS_NARROW 400       /* NARROW beside slices of one token, or so many, which costs less time */
#define NARROW_PROMPT 205     /* or so many beside slices of a prompt's tokens, which take most DSPs */
#define NARROW_COUNTED 220    /* NARROW beside slices that take a few counted tokens abreast, */
#define NARROWEST_COUNTED 180 /* or so many thousandths of LUTs, */
#define WIDE_TILES 265        /* or so many thousandths of LUTs and DSPs, beside slices of many counted tokens in tiles, where hardly too much is taken, */
#define NARROW_TILES 234      /* or so many, */
#define LESS_TILES 230        /* or so many, since attention may take twice as many keys a cycle for one more, and its words the wires, */
#define LEAST_TILES 220       /* or so many, where what is between them crowds a die */
#define PORTS_TILES 250       /* or so many beside fewer ports of states, which leave wires, */
#define COUNTED_DSP 1.25      /* and so many times as large a part of DSPs */
#define SLOWER_LOSES 1.05     /* dies may be too full at a slower clock as well, and then it is so many times as slow as it is rated, at least */
#define SHORT 8               /* of run-time extents, the part at which a design is to be quick as well */

enum { LESS_MOST = 20 };

void build_choose(struct build *b, const struct choices *wanted, const struct less *less)
{
	struct session *session = b->session;
	struct choices *choices = &session->choices;
	*choices = *wanted;
	if (less->ports)
		choices->value[CHOICE_STATE_PORTS] = less->ports;
	if (less->loaders)
		choices->value[CHOICE_STATE_LOADERS] = less->loaders;
	if (less->slices)
		choices->value[CHOICE_SLICES] = less->slices;
	if (less->narrow) {
		double dsp = less->beside == BESIDE_FEW ? COUNTED_DSP * less->narrow : less->narrow;
		choices->value[CHOICE_LUT] = platform_total(session->platform).lut * less->narrow / 1000;
		choices->value[CHOICE_DSP] = (int64_t)((double)platform_total(session->platform).dsp * dsp / 1000);
	}
	if (less->quick)
		choices->value[CHOICE_ENDS] = 1 + ENDS_QUICK;
	if (less->slow)
		choices->value[CHOICE_CLOCK] = session->options.choices.value[CHOICE_CLOCK];
}

static enum beside beside_of(const struct build *b)
{
	const struct block *body = module_main(b->tensor)->region[0];
	return build_counts_tokens(b) ? BESIDE_FEW : unit_counts_tiles(body) ? BESIDE_TILES : unit_has_tokens(body) ? BESIDE_PROMPT : BESIDE_ALONE;
}

/* What the user has not chosen otherwise; at most one slice in FEWER is given up. */
static int list_less(const struct session *session, const struct choices *wanted, int slices, enum beside beside, struct less *list)
{
	int fewer = slices - 2 * UNIT_STEP, less = slices - UNIT_STEP, count = 0;
	const struct less ways[] = {{.narrow = NARROW}, {.narrow = LESS_NARROW, .beside = BESIDE_ALONE}, {.narrow = NARROW_PROMPT, .beside = BESIDE_PROMPT}, {.ports = 4}, {.ports = 4, .narrow = LESS_NARROW, .beside = BESIDE_ALONE}, {.ports = 2}, {.ports = 2, .narrow = LESS_NARROW, .beside = BESIDE_ALONE}, {.ports = 2, .narrow = NARROW}, {.ports = 1}, {.slices = fewer}, {.ports = 2, .slices = fewer}, {.ports = 1, .slices = fewer},
				    {.narrow = NARROW_COUNTED, .beside = BESIDE_FEW}, {.slices = fewer, .narrow = NARROW_COUNTED, .beside = BESIDE_FEW}, {.slices = less, .narrow = NARROW_COUNTED, .beside = BESIDE_FEW},
				    {.slices = less, .narrow = (NARROW_COUNTED + NARROWEST_COUNTED) / 2, .beside = BESIDE_FEW}, {.slices = less, .narrow = NARROWEST_COUNTED, .beside = BESIDE_FEW}, {.narrow = WIDE_TILES, .beside = BESIDE_TILES}, {.narrow = NARROW_TILES, .beside = BESIDE_TILES}, {.narrow = LESS_TILES, .beside = BESIDE_TILES}, {.narrow = LEAST_TILES, .beside = BESIDE_TILES}, {.loaders = 3, .narrow = NARROW_TILES, .beside = BESIDE_TILES}, {.loaders = 3, .narrow = LESS_TILES, .beside = BESIDE_TILES}, {.ports = 4, .narrow = PORTS_TILES, .beside = BESIDE_TILES}, {.ports = 4, .narrow = NARROW_TILES, .beside = BESIDE_TILES}, {.ports = 4, .narrow = LESS_TILES, .beside = BESIDE_TILES}, {.slices = less, .beside = BESIDE_TILES}};
	for (size_t i = 0; slices && i < sizeof ways / sizeof *ways; i++) {
		bool ports = (!ways[i].ports || !wanted->value[CHOICE_STATE_PORTS]) && (!ways[i].loaders || !wanted->value[CHOICE_STATE_LOADERS]), own = !ways[i].beside || ways[i].beside == beside;
		bool kernels = !ways[i].narrow || (!wanted->value[CHOICE_LUT] && !wanted->value[CHOICE_DSP]);
		if (own && ports && kernels && (!ways[i].slices || (!session->options.choices.value[CHOICE_SLICES] && fewer * FEWER >= slices * (FEWER - 1))))
			list[count++] = ways[i];
	}
	if (!session->options.choices.value[CHOICE_CLOCK])
		list[count++] = (struct less){.slow = true};
	return count;
}

struct clock build_clock(const struct session *session)
{
	return (struct clock){session->platform, session->options.choices.value[CHOICE_CLOCK]};
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

/* Of a launch; where it counts its tokens (`rows` is their extent, else -1), of one alone and of one with as many others as there may be: a text has as many that are read as that are written. */
static double milliseconds_of_tokens(const struct session *session, struct token_detail detail, struct extent_value *extent, int rows)
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

/* By the milliseconds that the token model gives at the most run-time extents, times those at a part of them, since neither is to suffer for the other. */
double build_rating(const struct session *session)
{
	struct arena *arena = arena_within(session->attempt);
	struct map digits = map_new(arena);
	struct extent_value *extent;
	int extents = timing_extents(session->attempt, session->module, &extent), rows = -1;
	struct token_detail detail = token_detail_rated;
	for (int i = 0; i < extents; i++)
		rows = rows_counted_by(module_main(session->module), extent[i].symbol) ? i : rows;
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

void build_rate(const struct session *session, struct less *less)
{
	struct design_cost cost = design_cost(session->attempt, session->platform, session->module);
	less->rating = build_rating(session);
	for (int i = 0; i < cost.processes; i++) {
		less->lut += cost.process[i].resources.lut;
		less->dsp += cost.process[i].resources.dsp;
	}
}

/* Built as far as its cycles can be told, where every FIFO holds all its words.  A slower clock costs time everywhere: it is rated as the others are. */
void build_rate_way(struct build *b, const struct choices *wanted, struct less *less)
{
	struct session *session = b->session;
	struct build part = build_part(b);
	const struct clock clock = build_clock(session);
	less->rating = INFINITY;
	if (less->slow)
		limits_slower(session);
	build_choose(b, wanted, less);
	if (build_attempt(&part) == OUTCOME_BUILT)
		build_rate(session, less);
	less->rating *= less->slow ? SLOWER_LOSES : 1;
	build_set_clock(session, clock);
}

/* --- all ways */

static bool same_way(const struct less *left, const struct less *right)
{
	return left->ports == right->ports && left->loaders == right->loaders && left->slices == right->slices && left->narrow == right->narrow && left->slow == right->slow;
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
	build_choose(b, wanted, less);
	b->from = rated && !less->slow ? FROM_MADE : FROM_TENSOR;
	b->spares = !less->slow;
	less->done = true;
	bool built = build_fitting(b);
	less->crowded = built && b->crowded && !less->slow;
	return built && !less->crowded;
}

/* Does another way crowd a die that takes no more operators and has no more slices? */
static bool is_hopeless(const struct less *list, int count, const struct less *less)
{
	for (int i = 0; i < count; i++) {
		const struct less *other = &list[i];
		bool slices = !less->slices || (other->slices && other->slices <= less->slices);
		if (other->crowded && !less->slow && slices && other->lut <= less->lut && other->dsp <= less->dsp)
			return true;
	}
	return false;
}

/* What was built may be slower than its way was rated, since FIFOs took room and kernels are narrower than it asks for. */
static void rate_built(struct build *b, struct less *less)
{
	less->rating = build_rating(b->session) * (less->slow ? SLOWER_LOSES : 1);
	less->measured = true;
}

/* true: another way may be quicker than what was built; it comes first, and this one is rated as it is. */
static bool is_overtaken(struct build *b, const struct less *list, int count, struct less *less)
{
	if (less->measured)
		return false;
	bool overtaken = false;
	rate_built(b, less);
	for (int i = 0; i < count; i++)
		overtaken = overtaken || (!list[i].done && list[i].rating * (list[i].measured ? 1 : NEAR) < less->rating && !is_hopeless(list, count, &list[i]));
	less->done = !overtaken;
	return overtaken;
}

/* Of two designs that differ in what stands outside of layers the quicker one is the way's.  true: it is the one that the session's module is. */
static bool rate_ends(struct build *b, const struct choices *wanted, struct less *less)
{
	struct less quick = *less;
	quick.quick = true;
	build_rate_way(b, wanted, &quick);
	if (quick.rating < less->rating)
		*less = quick;
	return less->quick;
}

/* The ways of a crowded design, and how good it would be. */
struct ways {
	const struct choices *wanted;
	struct clock clock;
	struct less list[LESS_MOST], crowded;
	int count;
	bool two, ends;           /* rated at a time; compared */
};

/* A way, with those before it.  true: the session's module is what it was rated as. */
static bool rate_in_order(struct build *b, struct ways *w, int number)
{
	struct less *less = &w->list[number];
	if (b->ahead && same_way(less, &b->ahead->less))
		ahead_take(b, less);
	else if (w->two && number + 1 < w->count)
		ahead_rate(b, w->wanted, less, less + 1);
	else
		build_rate_way(b, w->wanted, less);
	bool made = !w->ends || less->beside != BESIDE_TILES || rate_ends(b, w->wanted, less);
	for (int before = 0; before < number; before++)
		less->done = less->done || same_design(less, &w->list[before]);
	return made;
}

/* true: one of them costs next to nothing, and is built. */
static bool build_cheap(struct build *b, struct ways *w)
{
	struct session *session = b->session;
	if (b->ahead && !(b->ahead->crowded.rating > 0))
		ahead_compare(b);
	if (b->ahead)
		w->crowded = b->ahead->crowded;
	else
		build_rate(session, &w->crowded);
	const double most = w->crowded.rating * NEAR;
	for (int i = 0; i < w->count && !session->stop; i++) {
		struct less *less = &w->list[i];
		bool made = rate_in_order(b, w, i);
		if (less->done || less->rating > most || !build_less(b, w->wanted, less, made))
			continue;
		rate_built(b, less);
		if (less->rating <= most)
			return true;
		less->done = false;
		build_set_clock(session, w->clock);
	}
	sort_less(w->list, w->count);
	return false;
}

/* Fewer ports side by side for states, narrower kernels, or some slices less, cost time where they are; a slower clock costs it everywhere.  With which of that is no die crowded, and which is the quickest?
 * What costs next to nothing is built at once.  -O1 takes the first that fits.  Beside a few counted tokens hardly anything costs next to nothing, so two are rated at a time. */
static bool build_with_less(struct build *b, const struct choices *wanted)
{
	struct session *session = b->session;
	struct ways w = {.wanted = wanted, .clock = build_clock(session), .ends = !wanted->value[CHOICE_ENDS]};
	w.count = list_less(session, wanted, build_slices(b, &b->cost), beside_of(b), w.list);
	bool rated = w.count > 1 && session->options.effort != 1;
	w.two = build_counts_tokens(b) && ahead_goes(b);
	if (rated && build_cheap(b, &w))
		return true;
	for (int i = 0; i < w.count && !session->stop; i++) {
		struct less *less = &w.list[i];
		if (less->done || (rated && is_hopeless(w.list, w.count, less)) || !build_less(b, wanted, less, false))
			continue;
		if (!rated || !is_overtaken(b, w.list, w.count, less))
			return true;
		build_set_clock(session, w.clock);
		sort_less(less, w.count - i);
		i--;
	}
	return false;
}

/* At the clock that the rule gives, or that is asked for, even if a die is crowded whatever is taken back; of one of two phases nobody knows yet how full its dies will be. */
bool build_timed(struct build *b)
{
	struct session *session = b->session;
	struct choices wanted = session->choices;
	bool free = build_is_whole(b) && !session->widths;
	b->spares = free;
	if (free)
		ahead_judge(b, &wanted);
	bool built = build_fitting(b), crowded = built && free && b->crowded;
	if (crowded)
		built = build_with_less(b, &wanted);
	ahead_drop(b);
	b->spares = false;
	if (built || !crowded || session->stop)
		return built;
	session->choices = wanted;
	return build_fitting(b);
}
