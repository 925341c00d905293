/* Searches lanes and ports of all kernels together: from the given widths, the narrowest, those
 * of nearest neighbours and those of one pace (beside a unit of several tokens, one for each
 * stage), kernel by kernel to the option that helps most, then pairs that hand on to each other,
 * then any, so that what one kernel gives up serves another; where that gains nothing any more,
 * from anywhere.  Every step is priced by the closed form; deterministic, and bounded by the
 * number of prices.  Never worse than the widths given, nor than nearest neighbours with a fifth
 * of the points. */
#include "base/parallel.h"
#include "base/random.h"
#include "schedule/parallelism.h"
#include <math.h>
#include <string.h>

#define SPREAD 0x9e3779b97f4a7c15u
#define PRICED_BITS 14            /* some 4,000 prices are asked for from one start */
#define PRICED (1 << PRICED_BITS) /* prices that are kept */
#define STARTS 4
/* each takes one part in so many of the points; exchanges take the rest */
static const int start_share[STARTS] = { 8, 8, 4, 4 };
/* where stages of few rows have a pace each, which is looked for last */
static const int staged_share[STARTS] = { 16, 16, 16, 2 };
#define PACES 64   /* that are looked at, */
#define FASTER 0.8 /* each so much shorter than the one before */
/* of the board's operators that a kernel takes at a pace, one part in 1, 2, 4 … so many */
#define SHARE_MOST 64
#define FOLLOWING 4 /* kernels that may answer a change of one */
#define GIVEN_UP 24 /* steps of others for one of the slowest kernels, at most, */
/* which take more than one part in so many of what the slowest takes */
#define SLOW_PART 2
#define TRADED 4       /* steps of others for one of any kernel, at most; */
#define TRADES_SHARE 8 /* of the points, one part in so many is for that, */
#define TRADES_MORE 2  /* or so many times as many again beside tiles, */
/* if that leaves so much of the cycles at most: where tokens are counted, of one token's */
#define TRADES_LEAVE 0.98
/* and of as many more, one part in so many is for what is waited for in front of layers and
 * behind them */
#define ENDS_SHARE 8
/* of the slowest kernel's pace, the least that is tried behind a long past */
#define LONG_EXTENT_LEAST 0.125
/* so many exchanges a kernel that gain nothing, and the search begins somewhere else */
#define STALE 16

struct descent {
	const struct parallelism_space *space;
	int64_t points;   /* left */
	double reference; /* cycles that count as 1 */
	uint64_t random;
	int *choice, *tried;   /* [kernels] */
	double now;            /* the objective of `choice` */
	struct priced *priced; /* [PRICED] prices that were asked for before */
};

struct priced {
	int *choice; /* [kernels]; NULL: none */
	double price;
	bool least; /* it is no less than that */
};

static struct priced *priced_of(const struct descent *s, const int *choice)
{
	uint64_t hash = 0;
	for (int k = 0; k < s->space->kernels; k++)
		hash = (hash ^ (uint64_t)choice[k]) * SPREAD;
	return &s->priced[hash >> (64 - PRICED_BITS)];
}

/* Infinite where it is not below the bound.  A search comes to some choices more than once,
 * mostly with a lower bound. */
static double price(struct descent *s, int *choice, double bound)
{
	parallelism_follow(s->space, choice);
	s->points--;
	struct priced *priced = priced_of(s, choice);
	size_t size = sizeof *choice * (size_t)s->space->kernels;
	bool known = priced->choice && !memcmp(priced->choice, choice, size);
	if (known && (priced->price >= bound || !priced->least))
		return priced->price < bound ? priced->price : INFINITY;
	double found = parallelism_price(s->space, choice, s->reference, bound);
	if (!priced->choice)
		priced->choice = ARENA_ARRAY(s->space->arena, int, s->space->kernels + 1);
	memcpy(priced->choice, choice, size);
	priced->least = !(found < bound);
	priced->price = priced->least ? bound : found;
	return found;
}

static void copy_choice(const struct descent *s, int *to, const int *from)
{
	memcpy(to, from, sizeof *to * (size_t)s->space->kernels);
}

/* The best option of one kernel, the others as they are in `choice`. */
static bool improve(struct descent *s, int k, int *choice, double *now)
{
	int best = choice[k];
	bool better = false;
	for (int o = 0; o < s->space->kernel[k].options && s->points > 0; o++) {
		copy_choice(s, s->tried, choice);
		s->tried[k] = o;
		if (o == choice[k])
			continue;
		double found = price(s, s->tried, *now);
		if (found < *now) {
			*now = found;
			best = o;
			better = true;
		}
	}
	choice[k] = best;
	parallelism_follow(s->space, choice);
	return better;
}

static bool is_free(const struct descent *s, int k)
{
	return s->space->kernel[k].options > 1 && s->space->kernel[k].follows < 0;
}

/* Points that kernel k was looked at with, and would be again. */
static void spend_left(struct descent *s, int k)
{
	int64_t points = s->space->kernel[k].options - 1;
	s->points -= points < s->points ? points : s->points;
}

/* Where nothing has changed since a kernel was looked at, the answer is known; it costs its
 * points all the same, so that what is found does not go with what is remembered. */
static void descend(struct descent *s)
{
	int kernels = s->space->kernels;
	int same = 0;
	bool better = true;
	s->now = price(s, s->choice, INFINITY);
	while (better && s->points > 0) {
		better = false;
		for (int k = 0; k < kernels; k++, same++) {
			if (!is_free(s, k))
				continue;
			if (same >= kernels) {
				spend_left(s, k);
			} else if (improve(s, k, s->choice, &s->now)) {
				better = true;
				same = 0;
			}
		}
	}
}

/* One kernel elsewhere, and what some others make of it; kept if all of it together is better. */
static bool exchange(struct descent *s, const int *free, int count, int *saved)
{
	int k = free[random_next(&s->random) % (uint64_t)count];
	double now;
	copy_choice(s, saved, s->choice);
	saved[k] = (int)(random_next(&s->random) % (uint64_t)s->space->kernel[k].options);
	if (saved[k] == s->choice[k])
		return false;
	now = price(s, saved, INFINITY);
	for (int step = 0; step < FOLLOWING; step++) {
		int other = free[random_next(&s->random) % (uint64_t)count];
		if (other != k)
			improve(s, other, saved, &now);
	}
	if (now >= s->now)
		return false;
	copy_choice(s, s->choice, saved);
	s->now = now;
	return true;
}

/* Down from the choice at hand; true: that ends lower than the one that is saved, else this is
 * taken again. */
static bool descend_below(struct descent *s, double before, const int *saved)
{
	descend(s);
	if (s->now < before)
		return true;
	copy_choice(s, s->choice, saved);
	s->now = before;
	return false;
}

/* Where only several kernels together would gain: down from anywhere, kept if that ends lower. */
static bool restart(struct descent *s, const int *free, int count, int *saved)
{
	double before = s->now;
	copy_choice(s, saved, s->choice);
	for (int i = 0; i < count; i++)
		s->choice[free[i]] = (int)(random_next(&s->random) %
		        (uint64_t)s->space->kernel[free[i]].options);
	return descend_below(s, before, saved);
}

/* Kernels that hand on to each other are as fast as the slower one: each option of one with the
 * best of the other, along every edge. */
static bool improve_pair(struct descent *s, int k, int other, int *saved)
{
	for (int o = 0; o < s->space->kernel[k].options && s->points > 0; o++) {
		if (o == s->choice[k])
			continue;
		copy_choice(s, saved, s->choice);
		saved[k] = o;
		double now = price(s, saved, s->now);
		now = now < s->now ? now : s->now;
		improve(s, other, saved, &now);
		if (now >= s->now)
			continue;
		copy_choice(s, s->choice, saved);
		s->now = now;
		return true;
	}
	return false;
}

static void descend_pairs(struct descent *s, int *saved)
{
	bool better = true;
	while (better && s->points > 0) {
		better = false;
		for (int k = 0; k < s->space->kernels; k++)
			for (int j = 0; j < s->space->kernel[k].operands; j++) {
				int other = s->space->kernel[k].source[j];
				if (other >= 0 && is_free(s, k) && is_free(s, other))
					better = improve_pair(s, k, other, saved) || better;
			}
	}
}

static bool is_within(const struct parallelism_option *option,
        const struct parallelism_budget *budget, int64_t share)
{
	return option->dsp <= budget->dsp / share && option->lut <= budget->lut / share;
}

/* The narrowest option that takes no longer; where none is as fast, or not with one part in
 * `share` of the board, the fastest. */
int parallelism_of_pace(
        const struct parallelism_space *space, int number, int extent, double cycles, int64_t share)
{
	const struct parallelism_kernel *kernel = &space->kernel[number];
	int best = 0;
	for (int o = 0; o < kernel->options && kernel->option[best].cycles[extent] > cycles; o++)
		if (is_within(&kernel->option[o], &space->budget, share) &&
		        kernel->option[o].cycles[extent] < kernel->option[best].cycles[extent])
			best = o;
	return best;
}

static double slowest(const struct parallelism_space *space, int extent)
{
	double pace = 0;
	for (int k = 0; k < space->kernels; k++)
		pace = space->kernel[k].option[0].cycles[extent] > pace
		        ? space->kernel[k].option[0].cycles[extent]
		        : pace;
	return pace;
}

/* Kernels that hand on to each other are as fast as the slowest, so one alone gains nothing: all
 * take the same pace, the best that there is room for; and those for which it is dear stay
 * behind. */
static void same_pace(struct descent *s)
{
	double best = INFINITY;
	double best_pace = 0;
	int64_t best_share = 1;
	int *found = ARENA_ARRAY(s->space->arena, int, s->space->kernels + 1);
	for (int extent = s->space->stages ? s->space->extents - 1 : 0; extent < s->space->extents;
	        extent++)
		for (int64_t share = 1; share <= SHARE_MOST; share *= 2) {
			double pace = slowest(s->space, extent);
			for (int i = 0; i < PACES && s->points > 0; i++, pace *= FASTER) {
				for (int k = 0; k < s->space->kernels; k++)
					s->tried[k] = parallelism_of_pace(
					        s->space, k, extent, pace, share);
				double now = price(s, s->tried, best);
				if (now >= best)
					continue;
				best = now;
				best_pace = pace;
				best_share = share;
				copy_choice(s, found, s->tried);
			}
		}
	copy_choice(s, s->choice, found);
	if (s->space->stages && s->points > 0)
		s->points = parallelism_stages(
		        s->space, s->points, best_pace, best_share, s->reference, s->choice);
}

/* The widths given, which are in s->choice; the narrowest, those of nearest neighbours, those of
 * one pace. */
static void begin(struct descent *s, int start)
{
	if (start == 1)
		memset(s->choice, 0, sizeof *s->choice * (size_t)s->space->kernels);
	if (start == 3)
		same_pace(s);
	if (start != 2)
		return;
	int64_t points = s->points * 4 / 5;
	parallelism_neighbour(s->space, points, s->choice);
	s->points -= points;
}

/* One kernel of a stage alone is no quicker than the others, so stages are tried as a whole, and
 * what that leaves too wide is made narrower. */
static void quicken(struct descent *s)
{
	double before = INFINITY;
	while (s->now < before && s->points > 0) {
		before = s->now;
		s->points =
		        parallelism_quicken(s->space, s->points, s->reference, s->choice, &s->now);
		descend(s);
	}
}

/* What does not fit, in parts of the board. */
static double missing(const struct descent *s, const struct parallelism_cost *cost)
{
	const struct parallelism_budget *budget = &s->space->budget;
	double dsp = (double)(cost->dsp - budget->dsp) / (double)(budget->dsp + 1);
	double lut = (double)(cost->lut - budget->lut) / (double)(budget->lut + 1);
	return (dsp > 0 ? dsp : 0) + (lut > 0 ? lut : 0);
}

/* A step that a kernel gives up, not the one that it is for: the fewest cycles for what it
 * leaves. */
static bool give_up(struct descent *s, int *choice, int taker, struct parallelism_cost *now)
{
	struct parallelism_cost best_cost = *now;
	double least = INFINITY;
	int best = -1;
	for (int other = 0; other < s->space->kernels && s->points > 0; other++) {
		if (!is_free(s, other) || !choice[other] || other == taker)
			continue;
		copy_choice(s, s->tried, choice);
		s->tried[other]--;
		parallelism_follow(s->space, s->tried);
		struct parallelism_cost cost = parallelism_resources(s->space, s->tried);
		double left = missing(s, now) - missing(s, &cost);
		s->points--;
		if (left <= 0)
			continue;
		cost = parallelism_cost_cached(s->space, s->tried);
		if ((cost.cycles - now->cycles) / left >= least)
			continue;
		least = (cost.cycles - now->cycles) / left;
		best_cost = cost;
		best = other;
	}
	if (best >= 0)
		choice[best]--;
	parallelism_follow(s->space, choice);
	*now = best_cost;
	return best >= 0;
}

static double cycles_of(const struct descent *s, int k)
{
	return s->space->kernel[k].option[s->choice[k]].cycles[s->space->extents - 1];
}

/* A step more for the slowest kernel and all that are nearly as slow. */
static void quicken_slowest(struct descent *s)
{
	double pace = 0;
	for (int k = 0; k < s->space->kernels; k++)
		pace = cycles_of(s, k) > pace ? cycles_of(s, k) : pace;
	for (int k = 0; k < s->space->kernels; k++)
		if (is_free(s, k) && cycles_of(s, k) * SLOW_PART > pace &&
		        s->choice[k] + 1 < s->space->kernel[k].options)
			s->choice[k]++;
	parallelism_follow(s->space, s->choice);
}

/* Where the board is full, nothing that is slow gets quicker but by what others give up: as much
 * as it needs, where all of it together is better. */
static bool make_room(struct descent *s, int *saved)
{
	double before = s->now;
	copy_choice(s, saved, s->choice);
	quicken_slowest(s);
	struct parallelism_cost cost = parallelism_cost_cached(s->space, s->choice);
	for (int step = 0;
	        step < GIVEN_UP && missing(s, &cost) > 0 && give_up(s, s->choice, -1, &cost);
	        step++)
		;
	return descend_below(s, before, saved);
}

/* A step more for one kernel and, `together`, what is as slow: each is no slower then.  false:
 * it has none, or nothing else is as slow. */
static bool step_up(const struct descent *s, int taker, bool jointly, int *choice)
{
	const struct parallelism_kernel *kernel = &s->space->kernel[taker];
	if (!is_free(s, taker) || choice[taker] + 1 >= kernel->options)
		return false;
	double before = kernel->option[choice[taker]].cycles[0];
	double now = kernel->option[++choice[taker]].cycles[0];
	bool found = !jointly;
	for (int k = 0; jointly && k < s->space->kernels; k++) {
		double own = s->space->kernel[k].option[choice[k]].cycles[0];
		if (!is_free(s, k) || own != before || own <= now)
			continue;
		choice[k] = parallelism_of_pace(s->space, k, 0, now, 1);
		found = true;
	}
	parallelism_follow(s->space, choice);
	return found;
}

/* Where the board is full, that step, for which others give up what it needs. */
static bool trade(struct descent *s, int taker, bool jointly, int *saved)
{
	double before = parallelism_cost_cached(s->space, s->choice).cycles;
	copy_choice(s, saved, s->choice);
	if (!step_up(s, taker, jointly, saved))
		return false;
	struct parallelism_cost cost = parallelism_cost_cached(s->space, saved);
	s->points -= 2;
	for (int step = 0; step < (jointly ? GIVEN_UP : TRADED) && cost.cycles < before &&
	        missing(s, &cost) > 0 && give_up(s, saved, taker, &cost);
	        step++)
		;
	double now = cost.cycles < before ? price(s, saved, s->now) : INFINITY;
	if (now >= s->now)
		return false;
	copy_choice(s, s->choice, saved);
	s->now = now;
	return true;
}

static void trade_all(struct descent *s, int *saved)
{
	bool better = true;
	while (better && s->points > 0) {
		better = false;
		for (int k = 0; k < s->space->kernels && s->points > 0; k++)
			better = trade(s, k, false, saved) || trade(s, k, true, saved) || better;
	}
}

/* What is left out of the closed form beside tiles may be worth as much as little that is
 * gained, and a die gets crowded for it. */
static void trade_with_tiles(struct descent *s, int *saved)
{
	int *before = arena_copy(
	        s->space->arena, s->choice, sizeof *s->choice * (size_t)s->space->kernels);
	double now = s->now;
	double cycles = parallelism_cycles_cached(s->space, before, 0);
	trade_all(s, saved);
	if (parallelism_cycles_cached(s->space, s->choice, 0) < TRADES_LEAVE * cycles)
		return;
	copy_choice(s, s->choice, before);
	s->now = now;
}

/* --- behind a long past */

static struct parallelism_cost cost_at(const struct descent *s, int extent, const int *choice)
{
	struct parallelism_space only = *s->space;
	only.extents = PARALLELISM_PRICED;
	for (int e = 0; e < PARALLELISM_PRICED; e++)
		only.weight[e] = e == extent;
	return parallelism_cost_cached(&only, choice);
}

/* No kernel slower than this there, where an option is as fast; true: there is room, the launch
 * is quicker there and no slower where a prompt begins. */
static bool reach_long_pace(struct descent *s, double pace, int *saved)
{
	const int last = PARALLELISM_PRICED - 1;
	copy_choice(s, saved, s->choice);
	for (int k = 0; k < s->space->kernels; k++)
		if (is_free(s, k) && s->space->kernel[k].option[saved[k]].cycles[last] > pace)
			saved[k] = parallelism_of_pace(s->space, k, last, pace, 1);
	parallelism_follow(s->space, saved);
	struct parallelism_cost first = cost_at(s, 0, saved);
	struct parallelism_cost now = cost_at(s, 0, s->choice);
	bool better = missing(s, &first) <= 0 && first.ports <= s->space->budget.ports &&
	        first.cycles <= now.cycles &&
	        cost_at(s, last, saved).cycles < cost_at(s, last, s->choice).cycles;
	if (better)
		copy_choice(s, s->choice, saved);
	return better;
}

/* Where a prompt begins attention has few keys; kernels that wait for it behind a long past take
 * the room that is left, all together, since each is as fast as the slowest. */
static void improve_long_extent(struct descent *s, int *saved)
{
	double pace = 0;
	for (int k = 0; k < s->space->kernels; k++) {
		double cycles =
		        s->space->kernel[k].option[s->choice[k]].cycles[PARALLELISM_PRICED - 1];
		pace = cycles > pace ? cycles : pace;
	}
	for (double least = pace * LONG_EXTENT_LEAST;
	        least < pace && !reach_long_pace(s, least, saved); least /= FASTER)
		;
}

/* One of the beginnings, which look at nothing of each other. */
struct start {
	const struct descent *descent;
	int number;
	int64_t points; /* before, and left */
	int *choice;
	double now;
};

static void search_start(void *data, struct arena *scratch)
{
	struct start *start = data;
	struct parallelism_space own = *start->descent->space; /* with scratch of its own */
	own.arena = scratch;
	parallelism_scratch(&own, scratch, own.kernels);
	struct descent s = { .space = &own,
		.points = start->points,
		.reference = start->descent->reference,
		.choice = start->choice };
	s.tried = ARENA_ARRAY(scratch, int, own.kernels + 1);
	s.priced = ARENA_ARRAY(scratch, struct priced, PRICED);
	begin(&s, start->number);
	descend(&s);
	start->points = s.points;
	start->now = s.now;
}

/* Side by side; the best is kept if it is better. */
static void search_starts(
        struct descent *s, const int *share, int64_t points, double *best, int *choice)
{
	struct start start[STARTS];
	struct task task[STARTS];
	for (int i = 0; i < STARTS; i++) {
		start[i] = (struct start){ .descent = s,
			.number = i,
			.points = points / share[i],
			.choice = arena_copy(s->space->arena, choice,
			        sizeof *choice * (size_t)s->space->kernels) };
		task[i] = (struct task){ search_start, &start[i] };
		s->points -= start[i].points;
	}
	tasks_run(s->space->guard, STARTS, task);
	for (int i = 0; i < STARTS; i++) {
		s->points += start[i].points;
		if (start[i].now >= *best)
			continue;
		*best = start[i].now;
		copy_choice(s, choice, start[i].choice);
	}
}

/* The widths given may be many times slower than the best so far, and what operators are worth
 * is a part of the time. */
static void refer_to_best(struct descent *s)
{
	s->reference = parallelism_total_cost(s->space, s->choice).cycles;
	s->reference = s->reference > 0 ? s->reference : 1;
	memset(s->priced, 0, sizeof *s->priced * PRICED);
	s->now = price(s, s->choice, INFINITY);
}

/* Of such layers only what stands in front of the first one and behind the last one is waited
 * for: chains of kernels, each of which alone is no quicker than the others. */
static bool layers_overlap(const struct parallelism_space *space)
{
	for (int l = 0; l < space->loops; l++)
		if (space->loop[l].engine_cycles > 0)
			return true;
	return false;
}

void parallelism_joint(const struct parallelism_space *space, int64_t points, int *choice)
{
	struct descent s = { .space = space, .points = points, .random = RANDOM_SEED };
	int *saved = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	int *free = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	int count = 0;
	s.tried = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	s.priced = ARENA_ARRAY(space->arena, struct priced, PRICED);
	s.choice = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	s.reference = parallelism_total_cost(space, choice).cycles;
	s.reference = s.reference > 0 ? s.reference : 1;
	for (int k = 0; k < space->kernels; k++)
		if (is_free(&s, k))
			free[count++] = k;
	double best = price(&s, choice, INFINITY);
	if (count)
		search_starts(&s, space->few_tokens && space->stages ? staged_share : start_share,
		        points, &best, choice);
	copy_choice(&s, s.choice, choice);
	s.now = best;
	if (space->prices_by_best)
		refer_to_best(&s);
	quicken(&s);
	while (space->stages && s.points > 0 && make_room(&s, saved))
		;
	int64_t kept = !space->few_tokens || s.points <= 0 ? 0
	        : s.points < points / TRADES_SHARE         ? s.points
	                                                   : points / TRADES_SHARE;
	s.points -= kept;
	descend_pairs(&s, saved);
	for (int failed = 0; count > 1 && s.points > 0;) {
		bool better = (failed < STALE * count ? exchange : restart)(&s, free, count, saved);
		failed = better ? 0 : failed + 1;
	}
	s.points += kept;
	if (kept)
		trade_all(&s, saved);
	if (space->stages && !space->few_tokens) {
		s.points += TRADES_MORE * points;
		trade_with_tiles(&s, saved);
	}
	if (space->improves_long_extent)
		improve_long_extent(&s, saved);
	if (space->speeds_up_ends && layers_overlap(space)) {
		s.points += points / ENDS_SHARE;
		refer_to_best(&s);
		quicken(&s);
	}
	copy_choice(&s, choice, s.choice);
	if (space->token_symbol && space->stages && !space->few_tokens)
		parallelism_fit_wavefront(space, choice);
}
