/* Searches the parallelism of all kernels jointly; deterministic, and bounded by the number of
 * choices that are priced.
 *
 * Descent starts from the initial choice, from the least parallelism, from the best of nearest
 * neighbours and from one common pace (with several tokens a pace for each stage). It moves one
 * kernel at a time to the option that helps most, then pairs of producer and consumer, then random
 * pairs, so that one kernel gives up operators that another one uses; where that gains nothing it
 * restarts. The result is never worse than the initial choice, nor than nearest neighbours with a
 * fifth of the points. */
#include "base/parallel.h"
#include "base/random.h"
#include "schedule/parallelism.h"
#include <math.h>
#include <string.h>

#define SPREAD 0x9e3779b97f4a7c15u
#define PRICED_BITS 14            /* one start asks for some 4,000 prices */
#define PRICED (1 << PRICED_BITS) /* entries of the price cache */
#define STARTS 4
/* each start gets 1/share of the points; exchanges get the rest */
static const int start_share[STARTS] = { 8, 8, 4, 4 };
/* the same with few tokens and a pace for each stage, which the last start searches */
static const int staged_share[STARTS] = { 16, 16, 16, 2 };
#define PACES 64   /* number of paces that are tried, */
#define FASTER 0.8 /* each shorter than the one before by this factor */
/* a kernel takes at most 1/1, 1/2, 1/4, ... of the board's operators */
#define SHARE_MOST 64
#define FOLLOWING 4 /* kernels that may adapt to the change of one */
#define GIVEN_UP 24 /* most steps that other kernels give up for the slowest ones */
/* kernels count as slow if they take at least 1/SLOW_PART of the slowest one's cycles */
#define SLOW_PART 2
#define TRADED 4       /* most steps that other kernels give up for a step of any kernel */
#define TRADES_SHARE 8 /* 1/TRADES_SHARE of the points is for such trades */
#define TRADES_MORE 2  /* with token tiles, so many times the points in addition */
/* trades with token tiles must reduce the cycles to this part at least */
#define TRADES_LEAVE 0.98
/* 1/ENDS_SHARE of the points in addition is for kernels before and after the layers */
#define ENDS_SHARE 8
/* part of the slowest kernel's pace that is tried first at the last extent */
#define LONG_EXTENT_LEAST 0.125
/* restart after so many exchanges per kernel without a gain */
#define STALE 16

struct descent {
	const struct parallelism_space *space;
	int64_t points;   /* left */
	double reference; /* cycles that count as a price of 1 */
	uint64_t random;
	int *choice, *tried;   /* [kernels] */
	double now;            /* the price of `choice` */
	struct priced *priced; /* [PRICED] cache of prices, by a hash of the choice */
};

struct priced {
	int *choice; /* [kernels]; NULL: the entry is empty */
	double price;
	bool least; /* `price` is a lower bound */
};

static struct priced *priced_of(const struct descent *s, const int *choice)
{
	uint64_t hash = 0;
	for (int k = 0; k < s->space->kernels; k++)
		hash = (hash ^ (uint64_t)choice[k]) * SPREAD;
	return &s->priced[hash >> (64 - PRICED_BITS)];
}

/* The price of a choice, infinity if it is not below the bound. A search often asks for a choice
 * again, mostly with a lower bound. */
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

/* Moves kernel k in `choice` to its best option, with all others unchanged. */
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

/* Spends the points that trying kernel k takes. */
static void spend_left(struct descent *s, int k)
{
	int64_t points = s->space->kernel[k].options - 1;
	s->points -= points < s->points ? points : s->points;
}

/* Improves one kernel at a time until none gains. If nothing has changed since a kernel was tried
 * the answer is known, but its points are spent all the same, so that the result does not depend on
 * the cache. */
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

/* Moves a random kernel to a random option and lets some others adapt; kept if the price falls. */
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

/* Descends from the current choice; false: that does not end below `before`, and the saved choice
 * is restored. */
static bool descend_below(struct descent *s, double before, const int *saved)
{
	descend(s);
	if (s->now < before)
		return true;
	copy_choice(s, s->choice, saved);
	s->now = before;
	return false;
}

/* Restarts from random options, for gains that need several kernels to change; kept if it ends
 * lower. */
static bool restart(struct descent *s, const int *free, int count, int *saved)
{
	double before = s->now;
	copy_choice(s, saved, s->choice);
	for (int i = 0; i < count; i++)
		s->choice[free[i]] = (int)(random_next(&s->random) %
		        (uint64_t)s->space->kernel[free[i]].options);
	return descend_below(s, before, saved);
}

/* A producer and a consumer run at the pace of the slower one: tries each option of one with the
 * best option of the other, along every edge. */
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

/* Gives all kernels one pace, since kernels that stream into each other run at that of the slowest:
 * the best pace that fits. The share limits kernels for which the pace is too expensive. */
static void same_pace(struct descent *s)
{
	double best = INFINITY;
	struct parallelism_pace best_pace = { 0, 1 };
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
				best_pace = (struct parallelism_pace){ pace, share };
				copy_choice(s, found, s->tried);
			}
		}
	copy_choice(s, s->choice, found);
	if (s->space->stages && s->points > 0)
		s->points =
		        parallelism_stages(s->space, s->points, best_pace, s->reference, s->choice);
}

/* Sets the choice of a start: 0: the initial one, 1: the least parallelism, 2: nearest neighbours,
 * 3: one pace. */
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

/* Speeds up whole stages, since one kernel of a stage gains nothing alone; descent then shrinks
 * what is faster than needed. */
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

static double part_over(int64_t need, int64_t have)
{
	return need > have ? (double)(need - have) / (double)(have + 1) : 0;
}

/* By how much a choice exceeds the budgets, as parts of the board. */
static double missing(const struct descent *s, const struct parallelism_cost *cost)
{
	const struct parallelism_budget *budget = &s->space->budget;
	return part_over(cost->dsp, budget->dsp) + part_over(cost->lut, budget->lut);
}

/* Moves one kernel other than `taker` down by one option: the one that costs the fewest cycles for
 * the resources it frees. */
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

/* Moves the slowest kernel up by one option, and all that are nearly as slow. */
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

/* When the board is full, makes the slowest kernels faster and others slower until it fits; kept if
 * the price falls. */
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

/* Moves kernel `taker` up by one option and, `jointly`, all kernels of the same pace to its new
 * one. false: it has no further option, or no other kernel has its pace. */
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

/* When the board is full, makes such a step and lets others give up what it needs; kept if the
 * price falls. */
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

/* Trades with token tiles are kept only if they gain more than what the model leaves out, because
 * they crowd a die. */
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

/* --- the last extent: a long past */

static struct parallelism_cost cost_at(const struct descent *s, int extent, const int *choice)
{
	struct parallelism_space only = *s->space;
	only.extents = PARALLELISM_PRICED;
	for (int e = 0; e < PARALLELISM_PRICED; e++)
		only.weight[e] = e == extent;
	return parallelism_cost_cached(&only, choice);
}

/* Limits the cycles of all kernels at the last extent to `pace`, where an option allows it; true:
 * the choice fits, is faster at that extent and no slower at the first one. */
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

/* At the first extent, where a prompt begins, attention has few keys. The remaining area speeds up
 * the kernels that are slow with a long past, all of them at once. */
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

/* One start of the search; starts are independent and run in parallel. */
struct start {
	const struct descent *descent;
	int number;
	int64_t points; /* before the search, and left after it */
	int *choice;
	double now;
};

static void search_start(void *data, struct arena *scratch)
{
	struct start *start = data;
	struct parallelism_space own = *start->descent->space; /* a copy with scratch of its own */
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

/* Runs all starts in parallel and keeps the best result if it is below *best. */
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

/* Prices operators relative to the best cycles so far: the initial choice may be many times
 * slower. */
static void refer_to_best(struct descent *s)
{
	s->reference = parallelism_total_cost(s->space, s->choice).cycles;
	s->reference = s->reference > 0 ? s->reference : 1;
	memset(s->priced, 0, sizeof *s->priced * PRICED);
	s->now = price(s, s->choice, INFINITY);
}

/* Do layers overlap? Then only the kernels before the first layer and after the last one are waited
 * for: chains in which no kernel gains alone. */
static bool layers_overlap(const struct parallelism_space *space)
{
	for (int l = 0; l < space->loops; l++)
		if (space->loop[l].engine_cycles > 0)
			return true;
	return false;
}

/* With few tokens, points that the exchanges leave for trades. */
static int64_t trade_points(const struct descent *s, int64_t points)
{
	if (!s->space->few_tokens || s->points <= 0)
		return 0;
	return s->points < points / TRADES_SHARE ? s->points : points / TRADES_SHARE;
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
	int64_t reserved = trade_points(&s, points);
	s.points -= reserved;
	descend_pairs(&s, saved);
	for (int failed = 0; count > 1 && s.points > 0 && !guard_is_stopped(space->guard);) {
		bool better = (failed < STALE * count ? exchange : restart)(&s, free, count, saved);
		failed = better ? 0 : failed + 1;
	}
	s.points += reserved;
	if (reserved)
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
