/* Parallelism of kernels: the searches over the closed form against brute force and each other, and
 * fixed parallelism. */
#include "base/random.h"
#include "schedule/search_cache.h"
#include "options/choices.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena *arena;
static struct guard guard;

static bool is_long(void)
{
	const char *mode = getenv("STC_TEST_MODE");
	return mode && !strcmp(mode, "long");
}

static int below(uint64_t *state, int count)
{
	return (int)(random_next(state) % (uint64_t)count);
}

/* Wider options are faster and dearer; how much of an operand is needed first is random. */
static void fill_kernel(struct parallelism_kernel *kernel, int k, int most_options, uint64_t *state)
{
	*kernel = (struct parallelism_kernel){ .loop = -1,
		.follows = -1,
		.operands = 1 + below(state, 2),
		.options = 1 + below(state, most_options) };
	kernel->source = ARENA_ARRAY(arena, int, 2);
	kernel->job = ARENA_ARRAY(arena, struct parallelism_job, 2);
	kernel->single = ARENA_ARRAY(arena, struct parallelism_job, 2);
	kernel->part = ARENA_ARRAY(arena, struct parallelism_part, 2);
	kernel->post_operand = ARENA_ARRAY(arena, bool, 2);
	kernel->buffered = ARENA_ARRAY(arena, struct parallelism_buffered, 2);
	kernel->carried = ARENA_ARRAY(arena, bool, 2);
	kernel->entry = ARENA_ARRAY(arena, int, 2);
	kernel->option = ARENA_ARRAY(arena, struct parallelism_option, kernel->options);
	double work = 1000.0 * (1 + below(state, 100));
	int64_t dsp = 1 + below(state, 40);
	bool bulk = below(state, 2);
	for (int j = 0; j < kernel->operands; j++) {
		kernel->source[j] = k && below(state, 4) ? below(state, k) : -1;
		kernel->post_operand[j] = !below(state, 5);
		kernel->part[j] = (struct parallelism_part){ 0, 1 };
	}
	for (int o = 0; o < kernel->options; o++) {
		struct parallelism_option *option = &kernel->option[o];
		int ports = bulk ? 1 << (o / 2 < 3 ? o / 2 : 3) : 1;
		*option = (struct parallelism_option){ .in = ARENA_ARRAY(arena, int64_t, 2),
			.parallelism = { .lanes = INT64_C(1) << o,
			        .bulk = bulk ? 0 : -1,
			        .ports = ports },
			.lanes = INT64_C(1) << o,
			.row_unroll = 1 };
		option->cycles[0] = work / (double)(1 << o);
		option->cycles[1] = option->cycles[0] / 8;
		option->depth = 20;
		option->timing[0].first = below(state, 2) ? 1 : 0.1;
		option->dsp = dsp << o;
		option->lut = 50 * dsp << o;
		option->timing[0].need = ARENA_ARRAY(arena, double, 2);
		option->timing[0].taken = ARENA_ARRAY(arena, double, 2);
		for (int j = 0; j < 2; j++) {
			option->timing[0].need[j] = below(state, 5) / 4.0;
			option->timing[0].taken[j] = below(state, 5) / 4.0;
		}
		option->timing[1] = option->timing[0];
	}
}

static struct parallelism_space *random_space(uint64_t seed, int kernels, int most_options)
{
	static struct parallelism_space space;
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
	space = (struct parallelism_space){ .arena = arena,
		.guard = &guard,
		.kernels = kernels,
		.extents = 1 + below(&state, PARALLELISM_PRICED) };
	for (int e = 0; e < space.extents; e++)
		space.weight[e] = 1.0 / space.extents;
	space.kernel = ARENA_ARRAY(arena, struct parallelism_kernel, kernels);
	space.loop = ARENA_ARRAY(arena, struct parallelism_loop, 1);
	space.jobs = 2;
	for (int k = 0; k < kernels; k++)
		fill_kernel(&space.kernel[k], k, most_options, &state);
	/* all but the first and the last are layers, the first of which takes what its last
	 * hands on */
	if (below(&state, 2)) {
		space.loops = 1;
		space.loop[0] = (struct parallelism_loop){
			.first = 1, .end = kernels - 1, .layers = 1 + below(&state, 30)
		};
		for (int k = 1; k < kernels - 1; k++)
			space.kernel[k].loop = 0;
		space.kernel[1].source[0] = kernels - 2;
		space.kernel[1].carried[0] = true;
		space.kernel[1].entry[0] = below(&state, 2) - 1;
	}
	parallelism_scratch(&space, arena, kernels);
	space.budget = (struct parallelism_budget){ .dsp = 50 + below(&state, 1500),
		.lut = 5000 + below(&state, 60000),
		.ports = kernels + below(&state, 8) };
	return &space;
}

static double best_of_all(const struct parallelism_space *space, double reference)
{
	int *choice = ARENA_ARRAY(arena, int, space->kernels);
	double best = INFINITY;
	for (;;) {
		struct parallelism_cost cost = parallelism_total_cost(space, choice);
		double now = parallelism_objective(space, &cost, reference);
		best = now < best ? now : best;
		int k = 0;
		while (k < space->kernels && ++choice[k] == space->kernel[k].options)
			choice[k++] = 0;
		if (k == space->kernels)
			return best;
	}
}

static double found(const struct parallelism_space *space,
        void (*search)(const struct parallelism_space *, int64_t, int *), int64_t points,
        double *reference)
{
	int *choice = ARENA_ARRAY(arena, int, space->kernels);
	*reference = parallelism_total_cost(space, choice).cycles;
	search(space, points, choice);
	struct parallelism_cost cost = parallelism_total_cost(space, choice);
	return parallelism_objective(space, &cost, *reference);
}

/* Exact below the bound, infinite elsewhere. */
static void test_bounded_prices(void **state)
{
	(void)state;
	uint64_t random = 7;
	int bounded = 0;
	for (int seed = 1; seed <= 300; seed++) {
		const struct parallelism_space *space = random_space((uint64_t)seed, 5, 5);
		int *choice = ARENA_ARRAY(arena, int, space->kernels);
		double reference = parallelism_total_cost(space, choice).cycles;
		for (int k = 0; k < space->kernels; k++)
			choice[k] = (int)below(&random, space->kernel[k].options);
		struct parallelism_cost cost = parallelism_total_cost(space, choice);
		double price = parallelism_objective(space, &cost, reference);
		double bound = price * (0.5 + (double)below(&random, 100) / 100);
		double found = parallelism_price(space, choice, reference, bound);
		assert_true(price < bound ? found == price : isinf(found));
		assert_true(parallelism_price(space, choice, reference, INFINITY) == price);
		bounded += isinf(found);
	}
	assert_in_range(bounded, 50, 250);
}

/* A search is answered from what is known where its problem is the same, and nowhere else. */
static void test_answers(void **state)
{
	(void)state;
	struct parallelism_space *space = random_space(3, 5, 5);
	struct parallelism_kernel *kernel = &space->kernel[2];
	struct map search_cache = map_new(arena);
	const int answer[5] = { 0, 1, 0, 2, 1 };
	const int given[5] = { 0 };
	int choice[5] = { 0 };
	kernel->source[0] = kernel->job[0].number = 1;
	struct search_key search_key = parallelism_search_key(space, 100, given);
	struct search_key again = parallelism_search_key(space, 100, given);
	assert_false(search_cache_lookup(NULL, &search_key, 5, choice) ||
	        search_cache_lookup(&search_cache, &search_key, 5, choice));
	search_cache_store(&search_cache, &search_key, 5, answer);
	assert_true(search_cache_lookup(&search_cache, &again, 5, choice) &&
	        !memcmp(choice, answer, sizeof answer));
	int64_t *whole[] = { &space->budget.dsp, &space->budget.lut, &kernel->interleave,
		&kernel->row, &kernel->option[0].out, &kernel->option[0].in[0],
		&kernel->option[0].dsp, &kernel->option[0].lut, &space->loop[0].layers };
	double *real[] = { &space->weight[0], &space->slack, &kernel->option[0].cycles[0],
		&kernel->option[0].prefetch[0], &kernel->option[0].shared[0],
		&kernel->option[0].depth, &kernel->option[0].timing[0].first,
		&kernel->option[0].timing[0].need[0], &kernel->option[0].timing[0].taken[0],
		&kernel->part[0].high, &kernel->option[0].timing[0].split,
		&kernel->option[0].timing[0].handover, &kernel->job[0].sums, &kernel->job[0].block,
		&space->prefetched_words };
	bool *flag[] = { &kernel->sums, &space->blocks_first, &space->stages };
	int *number[] = { &space->budget.ports, &kernel->source[0], &kernel->entry[0],
		&kernel->option[0].parallelism.ports, &kernel->job[0].number };
	space->loops = 1;
	again = parallelism_search_key(space, 100, given);
	search_cache_store(&search_cache, &again, 5, answer);
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		*whole[i] += 1;
		search_key = parallelism_search_key(space, 100, given);
		assert_false(search_cache_lookup(&search_cache, &search_key, 5, choice));
		*whole[i] -= 1;
	}
	for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
		double kept = *real[i];
		*real[i] += 0.25;
		search_key = parallelism_search_key(space, 100, given);
		assert_false(search_cache_lookup(&search_cache, &search_key, 5, choice));
		*real[i] = kept;
	}
	for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
		*number[i] -= 1;
		search_key = parallelism_search_key(space, 100, given);
		assert_false(search_cache_lookup(&search_cache, &search_key, 5, choice));
		*number[i] += 1;
	}
	for (size_t i = 0; i < sizeof flag / sizeof *flag; i++) {
		*flag[i] = !*flag[i];
		search_key = parallelism_search_key(space, 100, given);
		assert_false(search_cache_lookup(&search_cache, &search_key, 5, choice));
		*flag[i] = !*flag[i];
	}
	space->token_symbol = "tokens";
	search_key = parallelism_search_key(space, 100, given);
	assert_false(search_cache_lookup(&search_cache, &search_key, 5, choice));
	space->token_symbol = NULL;
	search_key = parallelism_search_key(space, 101, given);
	assert_false(search_cache_lookup(&search_cache, &search_key, 5, choice));
	search_key = parallelism_search_key(space, 100, answer);
	assert_false(search_cache_lookup(&search_cache, &search_key, 5, choice));
	search_key = parallelism_search_key(space, 100, given);
	assert_true(search_cache_lookup(&search_cache, &search_key, 5, choice));
}

/* Each kernel but the first is a rolled loop of its own, and all read what one job makes: its
 * weights are read in each walked layer, and there is room for all of these walks. */
static void test_one_job_in_many_loops(void **state)
{
	(void)state;
	enum { KERNELS = 30 };
	struct parallelism_space *space = random_space(3, KERNELS, 5);
	const int choice[KERNELS] = { 0 };
	double cycles[2];
	space->loops = KERNELS - 1;
	space->loop = ARENA_ARRAY(arena, struct parallelism_loop, space->loops);
	space->weight_load_cycles = 2;
	space->prefetched_words = 10;
	for (int k = 1; k < KERNELS; k++) {
		struct parallelism_kernel *kernel = &space->kernel[k];
		space->loop[k - 1] =
		        (struct parallelism_loop){ .first = k, .end = k + 1, .layers = 6 };
		kernel->loop = k - 1;
		kernel->source[0] = 0;
		kernel->carried[0] = false;
		kernel->job[0] = (struct parallelism_job){
			.number = 1, .run = 1, .tile = 1, .part = 1, .cycles = 40, .sums = 30
		};
	}
	for (int i = 0; i < 2; i++) {
		space->jobs = i ? 100 : 1; /* with more jobs there is room in any case */
		parallelism_scratch(space, arena, space->kernels);
		cycles[i] = parallelism_total_cost(space, choice).cycles;
	}
	assert_true(cycles[0] > 0 && cycles[0] == cycles[1]);
}

static void test_joint_against_all(void **state)
{
	(void)state;
	int seeds = is_long() ? 3000 : 200;
	int same = 0;
	for (int seed = 1; seed <= seeds; seed++) {
		const struct parallelism_space *space = random_space((uint64_t)seed, 5, 5);
		double reference;
		double joint = found(space, parallelism_joint, 5000, &reference);
		double best = best_of_all(space, reference);
		if (joint > best * 1.02)
			fail_msg("seed %d: %g, the best of all is %g", seed, joint, best);
		same += joint <= best * (1 + 1e-12);
	}
	printf("%d of %d are the best of all\n", same, seeds);
	assert_true(same >= seeds * 9 / 10);
}

/* The joint search goes on from what nearest neighbours find with a fifth of its points, so it
 * is never worse than that; with as many points as it has they are better now and then. */
static void test_joint_against_neighbours(void **state)
{
	(void)state;
	int seeds = is_long() ? 300 : 30;
	int better = 0;
	int worse = 0;
	for (int seed = 1; seed <= seeds; seed++) {
		double reference;
		const struct parallelism_space *space = random_space((uint64_t)seed, 40, 10);
		double joint = found(space, parallelism_joint, 10000, &reference);
		double neighbour = found(space, parallelism_neighbour, 10000, &reference);
		double fewer = found(space, parallelism_neighbour, 2000, &reference);
		better += joint < neighbour;
		worse += joint > neighbour;
		if (joint > fewer || joint > neighbour * 1.05)
			fail_msg("seed %d: %g, nearest neighbours find %g, and %g with a fifth of "
			         "the points",
			        seed, joint, neighbour, fewer);
	}
	printf("better than nearest neighbours on %d of %d, worse on %d\n", better, seeds, worse);
	assert_true(better >= seeds * 8 / 10 && worse <= 1 + seeds / 50);
}

/* Two kernels with an engine job between them, one of them cheap and slow: at equal speed of both,
 * the expensive one leaves no room for a faster cheap one. */
static void test_stages(void **state)
{
	(void)state;
	uint64_t random = 7;
	struct parallelism_space *space = random_space(1, 2, 1);
	const double work[2] = { 1600, 400 };
	const int64_t dsp[2] = { 1, 8 };
	int choice[2] = { 0 };
	for (int k = 0; k < 2; k++) {
		struct parallelism_kernel *kernel = &space->kernel[k];
		do
			fill_kernel(kernel, k, 6, &random);
		while (kernel->options < 6);
		kernel->operands = 1;
		kernel->source[0] = k - 1;
		kernel->post_operand[0] = false;
		for (int o = 0; o < kernel->options; o++) {
			kernel->option[o].parallelism.bulk = -1;
			kernel->option[o].cycles[0] = kernel->option[o].cycles[1] =
			        work[k] / (double)(1 << o);
			kernel->option[o].dsp = dsp[k] << o;
			kernel->option[o].lut = 0;
			kernel->option[o].depth = 0;
			kernel->option[o].timing[0].first = 1;
		}
	}
	space->loops = 0;
	space->extents = 1;
	space->weight[0] = 1;
	space->jobs = 1;
	space->kernel[1].job[0] = (struct parallelism_job){
		.number = 1, .run = 1, .part = 1, .tile = 1, .cycles = 10
	};
	space->budget.dsp = 40;
	space->budget.lut = 1;
	int64_t left =
	        parallelism_stages(space, 1000, (struct parallelism_pace){ 200, 1 }, 400, choice);
	assert_int_equal(space->kernel[0].option[choice[0]].lanes, 16);
	assert_int_equal(space->kernel[1].option[choice[1]].lanes, 2);
	assert_true(left > 0 && left < 1000);
}

/* Kernels of one option that hand on to each other, without layers. */
static struct parallelism_space *chain_of(int kernels, double cycles)
{
	uint64_t random = 7;
	struct parallelism_space *space = random_space(1, kernels, 1);
	for (int k = 0; k < kernels; k++) {
		fill_kernel(&space->kernel[k], k, 1, &random);
		space->kernel[k].operands = 1;
		space->kernel[k].source[0] = k - 1;
		space->kernel[k].post_operand[0] = false;
		space->kernel[k].option[0].cycles[0] = cycles;
		space->kernel[k].option[0].depth = 0;
	}
	space->loops = 0;
	space->extents = 1;
	space->weight[0] = 1;
	return space;
}

/* Along a chain of kernels that need all of their operand first, times add up; a rolled loop
 * repeats them. */
static void test_model(void **state)
{
	(void)state;
	struct parallelism_space *space = chain_of(4, 100);
	int choice[4] = { 0 };
	for (int k = 0; k < 4; k++) {
		space->kernel[k].option[0].cycles[1] = 50;
		space->kernel[k].option[0].timing[0].first = 1;
		space->kernel[k].option[0].timing[0].taken[0] = 0;
	}
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 400) < 1e-9);
	space->extents = PARALLELISM_PRICED; /* three parts of 400 and one of 200 */
	space->weight[0] = 0.75;
	space->weight[1] = 0.25;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 350) < 1e-9);
	space->extents = 1;
	space->weight[0] = 1;
	for (int k = 0; k < 4; k++) {
		/* streams: they run side by side, and end together */
		space->kernel[k].option[0].timing[0].first = 0;
		space->kernel[k].option[0].timing[0].need[0] = 0;
		space->kernel[k].option[0].timing[0].taken[0] = 1;
	}
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 100) < 1e-9);
	space->slack = 0.05;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 105) < 1e-9);
	space->slack = 0;
	/* the engine begins at 100: its results come from 120 to 130 */
	space->kernel[2].job[0] = (struct parallelism_job){
		.number = 1, .run = 1, .part = 1, .first = 20, .cycles = 30
	};
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 220) < 1e-9);
	/* what comes from 120 to 220 goes through it at once, but not before 130, and it is not
	 * over before 220 */
	space->kernel[3].job[0] = (struct parallelism_job){
		.number = 2, .run = 2, .part = 0, .first = 20, .cycles = 30
	};
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 250) < 1e-9);
	space->kernel[3].job[0] = (struct parallelism_job){ 0 };
	/* before the second half of its results comes a half of those of another job on the same
	 * operands: they come from 120 to 150 */
	space->kernel[2].job[0].after = 40;
	space->kernel[2].job[0].tile = 0.5;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 220) < 1e-9);
	space->kernel[2].job[0].after = 400; /* from 120 to 330 */
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 330) < 1e-9);
	space->kernel[2].job[0].after = 0;
	/* it works on what comes: the first result 5 after the last number, the last one 10
	 * later */
	space->kernel[2].job[0].last = 5;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 205) < 1e-9);
	space->kernel[2].job[0].cycles = 220; /* results come from 105 to 305, evenly */
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 305) < 1e-9);
	/* half of them from 295 on, which two kernels that take 50 cycles for them pass on as
	 * they come */
	space->kernel[2].job[0].burst_part = 0.5;
	space->kernel[2].job[0].collect_cycles = 10;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 345) < 1e-9);
	/* while these are collected the engine begins its next job, whose operands are there: at
	 * 295, with results from 315 on */
	space->kernel[3].source[0] = 1;
	space->kernel[3].job[0] = (struct parallelism_job){
		.number = 2, .run = 2, .part = 1, .tile = 1, .first = 20, .cycles = 30, .last = 5
	};
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 415) < 1e-9);
	/* in the same loops it begins while they are on their way as well */
	space->kernel[2].job[0].transit = 15;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 400) < 1e-9);
	space->kernel[3].source[0] = 2;
	space->kernel[3].job[0] = (struct parallelism_job){ 0 };
	space->kernel[2].job[0] = (struct parallelism_job){ 0 };
	/* what it reads begins to come in the middle */
	space->kernel[2].part[0].low = 0.5;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 150) < 1e-9);
	space->kernel[2].part[0].low = 0;
	/* made in another order: it begins at 100 */
	space->kernel[2].buffered[0].part[0] = 1;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 200) < 1e-9);
	/* or a half of it is: it begins at 50, and does the other half when all has arrived, */
	space->kernel[2].buffered[0].part[0] = 0.5;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 150) < 1e-9);
	/* which for a single token is later by a word's way through a converter */
	space->single_token = true;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 174) < 1e-9);
	space->single_token = false;
	space->kernel[2].buffered[0].part[0] = 0;
	/* the same if interleaved sums read it in another order */
	space->kernel[2].option[0].timing[0].buffered = 0.5;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 150) < 1e-9);
	space->kernel[2].option[0].timing[0].buffered = 0;
	space->loops = 1;
	space->loop[0] = (struct parallelism_loop){ .end = 4, .layers = 10 };
	for (int k = 0; k < 4; k++)
		space->kernel[k].loop = 0;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 1000) < 1e-9);
	/* layers overlap: those after the third take as long as the engine, */
	space->loop[0].engine_cycles = 200;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 1700) < 1e-9);
	/* or as the slowest kernel and a tenth */
	space->loop[0].engine_cycles = 60;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 1070) < 1e-9);
	space->loop[0].engine_cycles = 0;
	space->kernel[0].source[0] = 3;
	space->kernel[0].carried[0] = true;
	space->kernel[0].entry[0] = -1;
	space->kernel[3].option[0].timing[0].first = 1;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 1000) < 1e-9);
	space->loop[0] = (struct parallelism_loop){ .first = 1, .end = 4, .layers = 10 };
	space->kernel[0].loop = -1;
	space->kernel[0].carried[0] = false;
	space->kernel[0].source[0] = -1;
	space->kernel[0].option[0].timing[0].first = 1;
	space->kernel[1].source[0] = 3;
	space->kernel[1].carried[0] = true;
	space->kernel[1].entry[0] = -1;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 1000) < 1e-9);
	/* the first layer waits for what stands in front of all */
	space->kernel[1].entry[0] = 0;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 1100) < 1e-9);
}

/* An engine with one token waits for its weights, of which memory prefetches a limited number of
 * words. */
static void test_memory(void **state)
{
	(void)state;
	struct parallelism_space *space = chain_of(2, 100);
	int choice[2] = { 0 };
	space->kernel[1].option[0].timing[0].taken[0] = 1;
	space->kernel[1].job[0] = (struct parallelism_job){ .number = 1,
		.run = 1,
		.part = 1,
		.tile = 1,
		.first = 10,
		.cycles = 50,
		.last = 5,
		.sums = 50 };
	/* results from 105 on, which take 100 */
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 205) < 1e-9);
	space->weight_load_cycles = 6;
	space->prefetched_words = 1000;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 300) < 1e-9);
	space->loops = 1;
	space->loop[0] = (struct parallelism_loop){ .end = 2, .layers = 10 };
	space->kernel[0].loop = space->kernel[1].loop = 0;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 3000) < 1e-9);
	/* what a layer reads of states comes through the same channels */
	space->states[0] = 20;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 3200) < 1e-9);
	space->states[0] = 0;
	/* the last 45 words of a job come after it has begun, at 100: 70 later than they could */
	space->prefetched_words = 5;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 3070) < 1e-9);
	space->prefetched_words = 1000;
	/* layers that take longer: each as without memory */
	space->weight_load_cycles = 1;
	double slow = parallelism_total_cost(space, choice).cycles;
	space->weight_load_cycles = 0;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - slow) < 1e-9);
}

/* Seven rows of 128 numbers, eight in a word, whose words are interleaved: a reader of 16 lanes
 * joins two words of each row at a time. */
static void test_interleaved_words(void **state)
{
	(void)state;
	struct parallelism_space *space = chain_of(2, 1120);
	int choice[2] = { 0 };
	for (int k = 0; k < 2; k++) {
		space->kernel[k].option[0].in[0] = space->kernel[k].option[0].out = 8;
		space->kernel[k].option[0].timing[0] =
		        (struct parallelism_timing){ .need = ARENA_ARRAY(arena, double, 2),
			        .taken = ARENA_ARRAY(arena, double, 2) };
		space->kernel[k].option[0].timing[0].taken[0] = 1;
	}
	space->kernel[0].interleave = 7;
	space->kernel[1].interleaved = true;
	space->kernel[0].row = 128;
	struct parallelism_option *reader = &space->kernel[1].option[0];
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 1120) < 1e-9);
	reader->in[0] = 16;
	/* 80 blocks of 14 words, three cycles for each; it begins when the first is in, and
	 * would have to end 1,360 later */
	reader->cycles[0] = 560;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - (14 + 80 * 17)) < 1e-9);
	reader->in[0] = 4; /* 7 words make a block of 14 */
	reader->cycles[0] = 2240;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - (7 + 160 * 17)) < 1e-9);
	/* sums: narrower words of a row follow each other, and its parts are joined block by
	 * block */
	space->kernel[1].sums = true;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 2240) < 1e-9);
	reader->timing[0].split = 3000;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 3000) < 1e-9);
	reader->in[0] = 8;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 2240) < 1e-9);
	/* one number of each of several rows: a converter sends these in words of any width */
	reader->timing[0].handover = 2500;
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 2500) < 1e-9);
	reader->timing[0].handover = 0;
	space->kernel[1].sums = false;
	reader->in[0] = 4;
	space->kernel[0].row = 8; /* a word is a row */
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - 2240) < 1e-9);
	space->kernel[0].row = 128;
	/* the engine is between them */
	space->kernel[1].job[0] = (struct parallelism_job){
		.number = 1, .run = 1, .part = 1, .first = 20, .cycles = 30
	};
	assert_true(fabs(parallelism_total_cost(space, choice).cycles - (1140 + 2240)) < 1e-9);
}

/* The job of a product of 32 tokens in two tiles on 16 PEs with eight tokens per cycle; or, single,
 * of one token where up to 32 are possible, in tiles of eight. */
static struct parallelism_job job_of(
        struct module *module, int64_t outputs, int64_t groups, bool single)
{
	const int64_t x[3] = { 32, groups, 128 };
	const int64_t y[2] = { 32, outputs };
	const int64_t weight = outputs * groups * 128;
	const int64_t scale = outputs * groups;
	struct block *block = ARENA_NEW(arena, struct block);
	const struct type *real = type_float(module, 32);
	const struct type *result = type_shaped(module, TYPE_TENSOR, 2, y, real);
	struct value *operand[4] = {
		block_add_argument(module, block,
		        type_shaped(module, TYPE_TENSOR, 3, x, type_integer(module, 8))),
		block_add_argument(module, block, type_shaped(module, TYPE_TENSOR, 2, x, real)),
		block_add_argument(module, block,
		        type_shaped(module, TYPE_TENSOR, 1, &weight, type_integer(module, 4))),
		block_add_argument(module, block,
		        type_shaped(module, TYPE_TENSOR, 1, &scale, type_float(module, 16)))
	};
	struct op *op = op_new(module, OP_CONTRACT, (struct location){ 0 }, 4, operand, 1, &result);
	struct parallelism_job job;
	attr_set(module, op, KEY_TOKENS, attr_integer(module, 32));
	attr_set(module, op, KEY_TOKENS_PER_CYCLE, attr_integer(module, 8));
	if (single)
		attr_set(module, op, KEY_TOKEN_COUNT, attr_string(module, "tokens"));
	parallelism_through_engine(op->result[0], 16, 8, single, &job);
	return job;
}

/* A tile takes 1024 rows x 32 groups x 2 words / 16 PEs.  If all rows are one block, no result
 * comes before the last group, and 1024 words of 16 numbers are collected after the engine has
 * finished them. */
static void test_tiles(void **state)
{
	(void)state;
	struct diag diag = { .arena = arena };
	struct module *module = module_new(arena, &guard, &diag, LEVEL_TENSOR);
	struct parallelism_job deep = job_of(module, 1024, 32, false);
	struct parallelism_job flat = job_of(module, 1024, 8, false);
	struct parallelism_job single_token = job_of(module, 1024, 32, true);
	assert_true(deep.tile == 0.5 && deep.burst_part == 0.5 && deep.collect_cycles == 1024);
	assert_true(deep.first == 4096 - 128 && deep.cycles == 2 * 4096 + 1024 - 128);
	assert_true(single_token.tile == 1 && single_token.burst_part == 1 &&
	        single_token.first == 31 * 64 && single_token.cycles == 32 * 64);
	assert_true(flat.burst_part == 0 && flat.first < 512 && flat.cycles == 2 * 1024);
}

/* Two jobs read the result of the first kernel, and their results meet in the last one: nothing is
 * gained until all three kernels after the engine are faster. */
static void test_jobs_of_the_same_operand(void **state)
{
	(void)state;
	enum { KERNELS = 4 };
	uint64_t random = 5;
	struct parallelism_space *space = random_space(1, KERNELS, 1);
	int choice[KERNELS] = { 0 };
	for (int k = 0; k < KERNELS; k++) {
		struct parallelism_kernel *kernel = &space->kernel[k];
		do
			fill_kernel(kernel, k, 6, &random);
		while (kernel->options < 6);
		kernel->operands = k == KERNELS - 1 ? 2 : 1;
		for (int j = 0; j < kernel->operands; j++) {
			kernel->source[j] = k == KERNELS - 1 ? 1 + j : k ? 0 : -1;
			kernel->post_operand[j] = false;
			kernel->part[j] = (struct parallelism_part){ 0, 1 };
		}
		for (int o = 0; o < kernel->options; o++) {
			struct parallelism_option *option = &kernel->option[o];
			option->parallelism.bulk = -1;
			option->cycles[0] = (k ? 1000.0 : 1) / (double)(1 << o);
			option->dsp = 1 << o;
			option->lut = 0;
			option->depth = option->timing[0].first = 0;
			for (int j = 0; j < 2; j++) {
				option->timing[0].need[j] = 0;
				option->timing[0].taken[j] = 1;
			}
		}
	}
	space->loops = 0;
	space->extents = 1;
	space->weight[0] = 1;
	space->jobs = 2;
	for (int k = 1; k <= 2; k++)
		space->kernel[k].job[0] = (struct parallelism_job){
			.number = k, .run = k, .part = 1, .tile = 1, .cycles = 1
		};
	space->budget = (struct parallelism_budget){ .dsp = 1000, .lut = 1, .ports = 1 };
	struct parallelism_cost cost = parallelism_total_cost(space, choice);
	double now = parallelism_objective(space, &cost, 1000);
	double before = now;
	parallelism_quicken(space, 1000, 1000, choice, &now);
	assert_true(now < before / 2);
	assert_true(choice[1] && choice[2] && choice[3]);
}

#define STAGES 6
#define CHAIN 5 /* kernels of a stage, which hand on to each other */

static struct parallelism_space *stages_of(uint64_t seed)
{
	struct parallelism_space *space = random_space(seed, STAGES * CHAIN, 1);
	uint64_t random = seed;
	double work = 0;
	int64_t all = 0;
	for (int k = 0; k < STAGES * CHAIN; k++) {
		struct parallelism_kernel *kernel = &space->kernel[k];
		do
			fill_kernel(kernel, k, 6, &random);
		while (kernel->options < 6);
		int64_t dsp = below(&random, 3) ? 1 + below(&random, 6) : 1 + below(&random, 60);
		work = k % CHAIN ? work : 2000.0 * (1 + below(&random, 20));
		all += dsp;
		kernel->operands = 1;
		kernel->source[0] = k - 1;
		kernel->post_operand[0] = false;
		for (int o = 0; o < kernel->options; o++) {
			struct parallelism_option *option = &kernel->option[o];
			option->parallelism.bulk = -1;
			option->cycles[0] = work / (double)(1 << o);
			option->dsp = dsp << o;
			option->lut = 0;
			option->timing[0].first = 0;
			option->timing[0].need[0] = k % CHAIN ? 0 : 1;
			option->timing[0].taken[0] = k % CHAIN ? 1 : 0;
		}
	}
	space->loops = 0;
	space->extents = 1;
	space->weight[0] = 1;
	space->stages = true;
	space->budget = (struct parallelism_budget){ .dsp = all * 5, .lut = 1, .ports = 1 };
	return space;
}

/* On a full board the slowest kernels get what others give up, all kernels of a stage at once: a
 * single one would gain nothing.  Without that the sum is 9.1, and 8.2 if at the end a step is
 * tried for single kernels instead of all equally slow ones. */
static void test_make_room(void **state)
{
	(void)state;
	double sum = 0;
	double reference;
	for (uint64_t seed = 1; seed <= 40; seed++)
		sum += found(stages_of(seed), parallelism_joint, 8000, &reference);
	printf("40 designs of %d stages: %g of the time with the narrowest kernels\n", STAGES,
	        sum / 40);
	assert_true(sum < 8);
}

/* Where rows are few, any kernel gets what others give up for it: with points for few exchanges
 * by chance, the sum without that is 10.11. */
static void test_trades(void **state)
{
	(void)state;
	double sum = 0;
	double reference;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct parallelism_space *space = random_space(seed, 40, 10);
		space->few_tokens = true;
		space->budget =
		        (struct parallelism_budget){ .dsp = 2000, .lut = 60000, .ports = 200 };
		sum += found(space, parallelism_joint, 2000, &reference);
	}
	printf("20 designs of 40 kernels: %g of the time with the narrowest kernels\n", sum / 20);
	assert_true(sum < 10.05);
}

#define SLOT_TILES 8
/* cycles of the engine on a tile of a job; its first block is complete after half of them */
#define SLOT_SUMS 1000.0

/* A ring of kernels with an engine job between each two; `cycles` are the kernels' on a tile. */
static struct parallelism_space *ring_of(int kernels, const double *cycles, int64_t dsp)
{
	struct parallelism_space *space = random_space(1, kernels, 1);
	for (int k = 0; k < kernels; k++) {
		struct parallelism_kernel *kernel = &space->kernel[k];
		struct parallelism_option *option =
		        ARENA_ARRAY(arena, struct parallelism_option, 4);
		for (int o = 0; o < 4; o++) {
			option[o] = kernel->option[0];
			option[o].cycles[0] = SLOT_TILES * cycles[k] / (1 << o);
			option[o].dsp = 10 << o;
			option[o].lut = 0;
			option[o].timing[0].first = 0;
		}
		*kernel = (struct parallelism_kernel){ .follows = -1,
			.operands = 1,
			.source = ARENA_ARRAY(arena, int, 1),
			.entry = ARENA_ARRAY(arena, int, 1),
			.job = ARENA_ARRAY(arena, struct parallelism_job, 1),
			.options = 4,
			.option = option };
		kernel->source[0] = (k + kernels - 1) % kernels;
		kernel->entry[0] = -1;
		kernel->job[0] = (struct parallelism_job){ .number = k + 1,
			.run = k + 1,
			.part = 1,
			.tile = 1.0 / SLOT_TILES,
			.sums = SLOT_TILES * SLOT_SUMS,
			.block = SLOT_SUMS / 2 };
	}
	space->extents = 1;
	space->jobs = kernels;
	space->budget = (struct parallelism_budget){ .dsp = dsp, .lut = 1, .ports = 100 };
	return space;
}

/* A tile's slot in the wavefront is 3,000 cycles.  A stage has those of the two other jobs, without
 * the first block of one and 400 cycles of pipelines: 1,100.  A kernel that gives up room still
 * meets that. */
static void test_slots(void **state)
{
	(void)state;
	enum { KERNELS = 3 };
	static const struct {
		double cycles[KERNELS];
		int before[KERNELS];
		int64_t dsp;
		int option[KERNELS];
	} cases[] = {
		{ { 1100, 1000, 1099 }, { 0, 0, 0 }, 1000, { 0, 0, 0 } },
		{ { 1101, 2000, 4500 }, { 0, 0, 0 }, 1000, { 1, 1, 3 } },
		{ { 1101, 1000, 1000 }, { 0, 0, 0 }, 39, { 0, 0, 0 } },
		{ { 1101, 1000, 1000 }, { 0, 1, 0 }, 40, { 1, 0, 0 } },
		{ { 1101, 1000, 2000 }, { 0, 1, 1 }, 59, { 1, 0, 1 } },
		{ { 1101, 2000, 2000 }, { 0, 1, 1 }, 50, { 0, 1, 1 } },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct parallelism_space *space =
		        ring_of(KERNELS, cases[i].cycles, cases[i].dsp);
		int choice[KERNELS];
		memcpy(choice, cases[i].before, sizeof choice);
		parallelism_fit_wavefront(space, choice);
		assert_memory_equal(choice, cases[i].option, sizeof choice);
	}
}

/* Before and after the ring a kernel takes at most 0.17 of a slot, 510 cycles, for which it has a
 * further hundredth of the budget; a kernel on a job's results after the layers has no limit. */
static void test_ends(void **state)
{
	(void)state;
	enum { RING = 3, FRONT = 3, BEHIND = 4, KERNELS = 5 };
	static const double cycles[KERNELS] = { 1000, 1000, 1000, 2000, 900 };
	static const struct {
		bool job;
		int64_t dsp;
		int front, behind;
	} cases[] = { { false, 1000, 2, 1 }, { true, 1000, 2, 0 }, { false, 80, 2, 0 },
		{ false, 79, 1, 1 }, { false, 90, 2, 1 } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct parallelism_space *space = ring_of(KERNELS, cycles, cases[i].dsp);
		int choice[KERNELS] = { 0 };
		for (int k = RING; k < KERNELS; k++)
			space->kernel[k].loop = -1;
		space->kernel[0].source[0] = RING - 1;
		space->kernel[0].entry[0] = FRONT;
		space->kernel[FRONT].source[0] = -1;
		space->kernel[BEHIND].source[0] = RING - 1;
		space->kernel[FRONT].job[0].number = 0;
		space->kernel[BEHIND].job[0].number = cases[i].job ? BEHIND + 1 : 0;
		parallelism_fit_wavefront(space, choice);
		assert_int_equal(choice[FRONT], cases[i].front);
		assert_int_equal(choice[BEHIND], cases[i].behind);
	}
}

static void test_fixed(void **state)
{
	(void)state;
	struct diag diag = { .arena = arena };
	struct fixed_parallelism fixed;
	assert_true(fixed_parallelism_parse(&diag, "k2:lanes=8,row-unroll=2,ports=4", &fixed));
	assert_string_equal(fixed.kernel, "k2");
	assert_true(fixed.lanes == 8 && fixed.row_unroll == 2 && fixed.ports == 4);
	assert_true(fixed_parallelism_parse(&diag, "k2:row-unroll=2", &fixed));
	assert_true(!fixed.lanes && fixed.row_unroll == 2 && !fixed.ports);
	static const char *const wrong[] = { "", "k2", "k2:", ":lanes=2", "k2:lanes",
		"k2:lanes=", "k2:lanes=0", "k2:lanes=-4", "k2:lanes=8,", "k2:lanes=8,lanes=4",
		"k2:width=8", "k2:lanes=8;row-unroll=2" };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(fixed_parallelism_parse(&diag, wrong[i], &fixed));
}

/* Two successive kernels have nothing to do at the start of a prompt, and much with a long KV
 * cache: both take the room that is left, and only if the option asks for it. */
static struct parallelism_space *idle_at_first(bool improves_long_extent, int64_t dsp)
{
	struct parallelism_space *space = chain_of(3, 1000);
	for (int k = 1; k < 3; k++) {
		struct parallelism_option *option =
		        ARENA_ARRAY(arena, struct parallelism_option, 4);
		for (int o = 0; o < 4; o++) {
			option[o] = space->kernel[k].option[0];
			option[o].cycles[0] = 0;
			option[o].cycles[1] = 8000.0 / (1 << o);
			option[o].dsp = 10 << o;
			option[o].lut = 0;
		}
		space->kernel[k].options = 4;
		space->kernel[k].option = option;
	}
	space->kernel[0].option[0].dsp = space->kernel[0].option[0].lut = 0;
	space->budget = (struct parallelism_budget){ .dsp = dsp, .lut = 1, .ports = 3 };
	space->improves_long_extent = improves_long_extent;
	return space;
}

static void test_deepens(void **state)
{
	(void)state;
	static const struct {
		bool improves_long_extent;
		int64_t dsp;
		int option;
	} cases[] = { { false, 160, 0 }, { true, 160, 3 }, { true, 159, 2 }, { true, 39, 0 } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct parallelism_space *space =
		        idle_at_first(cases[i].improves_long_extent, cases[i].dsp);
		int *choice = ARENA_ARRAY(arena, int, 3);
		parallelism_joint(space, 1000, choice);
		assert_int_equal(choice[1], cases[i].option);
		assert_int_equal(choice[2], cases[i].option);
	}
}

static void test_choices(void **state)
{
	(void)state;
	struct choices choices = { 0 };
	assert_int_equal(choice_word(&choices, CHOICE_SEARCH), PARALLELISM_JOINT);
	choices.value[CHOICE_SEARCH] = 1 + choice_word_named(CHOICE_SEARCH, "neighbor");
	assert_int_equal(choice_word(&choices, CHOICE_SEARCH), PARALLELISM_NEIGHBOR);
	assert_int_equal(choice_word_named(CHOICE_SEARCH, "guess"), -1);
	assert_int_equal(choice_count(&choices, CHOICE_PORTS), 32);
	assert_int_equal(choice_candidates(CHOICE_SEARCH), PARALLELISM_SEARCHES);
	assert_int_equal(choice_candidates(CHOICE_PARALLELISM_BUDGET), 0);
	for (int c = 0; c < CHOICES; c++) {
		assert_true(choice_candidates((enum choice)c) < CHOICE_CANDIDATES);
		for (int i = 0; i < choice_candidates((enum choice)c); i++)
			assert_true(choice_info[c].word || choice_info[c].candidates[i] > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_stages),
		cmocka_unit_test(test_jobs_of_the_same_operand), cmocka_unit_test(test_model),
		cmocka_unit_test(test_memory), cmocka_unit_test(test_interleaved_words),
		cmocka_unit_test(test_tiles), cmocka_unit_test(test_bounded_prices),
		cmocka_unit_test(test_answers), cmocka_unit_test(test_one_job_in_many_loops),
		cmocka_unit_test(test_joint_against_all),
		cmocka_unit_test(test_joint_against_neighbours), cmocka_unit_test(test_make_room),
		cmocka_unit_test(test_trades), cmocka_unit_test(test_deepens),
		cmocka_unit_test(test_slots), cmocka_unit_test(test_ends),
		cmocka_unit_test(test_fixed), cmocka_unit_test(test_choices) };
	arena = arena_new(&guard);
	int failed = setjmp(guard.leave) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
	arena_free(arena);
	return failed;
}
