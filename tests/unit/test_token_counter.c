/* Launches shown to end without times: against the token model with times, with depths raised on
 * the way, and with only some of the layers. */
#include "random_design.h"
#include "predict/token.h"

#define DESIGNS 80
#define DESIGNS_LONG 200
#define DEPTHS 6 /* vectors of depths a design */
#define LAYERS 4
#define CLOSE 0.05 /* of the cycles with all layers */

struct counted {
	int designs, ended, stuck, rolled, held, close, rated;
};

static int designs(void)
{
	const char *mode = getenv("STC_TEST_MODE");
	return mode && !strcmp(mode, "long") ? DESIGNS_LONG : DESIGNS;
}

/* A few FIFOs, or many, hold anything from nearly nothing to all words. */
static int64_t *random_depths(
        struct design_case *c, const struct token_network *network, uint64_t *random)
{
	int64_t *depth = ARENA_ARRAY(c->arena, int64_t, network->channels.count + 1);
	uint64_t share = 1 + random_next(random) % 40;
	for (size_t i = 0; i < network->channels.count; i++) {
		int64_t whole = network->channels.data[i].depth;
		int64_t less = 2 + (int64_t)(random_next(random) % (uint64_t)(whole + 1));
		depth[i] = random_next(random) % share || less > whole ? whole : less;
	}
	return depth;
}

static bool ends(struct design_case *c, const struct token_network *network, const int64_t *depth,
        bool in_order, bool *holds)
{
	int64_t work = 0;
	struct token_counter *counter = token_counter_new(c->arena, network, depth, in_order);
	bool ended = token_counter_run(counter, INT64_MAX, &work) == TOKEN_ENDS;
	*holds = token_counter_ends_all(counter);
	return ended;
}

/* Counted, a launch ends where it does with times; and the same FIFOs are full. */
static void check_times(struct design_case *c, const struct token_network *network,
        const int64_t *depth, struct counted *all)
{
	int64_t work = 0;
	struct token_counter *counter = token_counter_new(c->arena, network, depth, false);
	bool ended = token_counter_run(counter, INT64_MAX, &work) == TOKEN_ENDS;
	struct token_result timed = token_run(c->arena, network,
	        &(struct token_options){ .mode = TOKEN_EARLIEST, .depth = depth });
	assert_int_equal(ended, timed.ended);
	for (size_t i = 0; !ended && i < network->channels.count; i++)
		assert_int_equal(token_counter_full(counter, (int)i), timed.flow[i].full);
	all->ended += ended;
	all->stuck += !ended;
}

/* A launch that goes on with deeper FIFOs stops where one that had them from the beginning
 * stops. */
static void check_raised(
        struct design_case *c, const struct token_network *network, const int64_t *depth)
{
	int64_t *raised = arena_copy(c->arena, depth, sizeof *depth * network->channels.count);
	int64_t work = 0;
	struct token_counter *counter = token_counter_new(c->arena, network, raised, true);
	bool ended = token_counter_run(counter, INT64_MAX, &work) == TOKEN_ENDS, holds;
	for (int round = 0; !ended && round < 100; round++) {
		for (size_t i = 0; i < network->channels.count; i++)
			raised[i] += token_counter_full(counter, (int)i) &&
			        raised[i] < network->channels.data[i].depth;
		ended = token_counter_run(counter, INT64_MAX, &work) == TOKEN_ENDS;
		assert_int_equal(ended, ends(c, network, raised, true, &holds));
	}
}

/* What some layers show is true of all. */
static void check_layers(struct design_case *c, const struct token_network *network,
        const struct token_network *some, const int64_t *depth, struct counted *all)
{
	for (int in_order = 0; in_order < 2; in_order++) {
		bool holds, whole = ends(c, network, depth, in_order, &holds),
		            part = ends(c, some, depth, in_order, &holds);
		assert_true(whole || !part || !holds);
		all->held += part && holds;
	}
}

/* Cycles of the layers that are left out follow from those of the others. */
static void check_cycles(struct design_case *c, const struct platform *platform,
        const struct token_network *network, struct counted *all)
{
	int64_t *depth = ARENA_ARRAY(c->arena, int64_t, network->channels.count + 1);
	for (size_t i = 0; i < network->channels.count; i++)
		depth[i] = network->channels.data[i].depth;
	int64_t whole = token_run(c->arena, network,
	        &(struct token_options){ .mode = TOKEN_EARLIEST, .depth = depth })
	                        .cycles;
	int64_t predicted = token_cycles(platform, c->module);
	double error = (double)(predicted - whole) / (double)whole;
	double rated = (double)token_cycles_at(platform, c->module, token_detail_rated);
	double off = (rated - (double)whole) / (double)whole;
	all->close += error < CLOSE && error > -CLOSE;
	all->rated += off < CLOSE && off > -CLOSE;
	all->rolled++;
}

static struct token_access *first_access(const struct token_network *network)
{
	const struct token_process *process = network->processes.data[0];
	for (size_t i = 0; i < process->steps.count; i++) {
		const struct token_step *step = &process->steps.data[i];
		if (step->access || (step->pipe && step->pipe->accesses))
			return step->access ? step->access : step->pipe->access;
	}
	return NULL;
}

/* A network built twice is the same; it is not when an access is in a later stage, an iteration
 * makes another access, or there is a further channel. */
static void check_same(
        struct design_case *c, const struct platform *platform, const struct token_network *network)
{
	struct token_network *again = token_network_new(
	        c->arena, platform, c->module, (struct token_detail){ .stretches = 1 });
	struct token_access *access = first_access(again);
	assert_true(token_network_same(network, again));
	access->lag++;
	assert_false(token_network_same(network, again));
	access->lag--;
	access->pattern.accesses--;
	assert_false(token_network_same(network, again));
	access->pattern.accesses++;
	assert_true(token_network_same(network, again));
	again->channels.data[0].words++;
	assert_false(token_network_same(network, again));
}

static void count_design(uint64_t seed, struct counted *all)
{
	struct design_case c;
	uint64_t random = seed;
	const struct platform *platform = random_design_of(&c, seed,
	        seed % 8 == 1           ? random_graph
	                : seed % 8 == 5 ? random_model
	                                : random_stack,
	        pass_find("size_fifos"));
	if (c.module) {
		const struct token_network *network = token_network_new(c.arena, platform, c.module,
		        (struct token_detail){ .stretches = TOKEN_STRETCHES });
		const struct token_network *some = token_network_new(c.arena, platform, c.module,
		        (struct token_detail){ .stretches = TOKEN_STRETCHES, .layers = LAYERS });
		check_same(&c, platform, network);
		for (int i = 0; i < DEPTHS; i++) {
			const int64_t *depth = random_depths(&c, network, &random);
			check_times(&c, network, depth, all);
			check_raised(&c, network, depth);
			if (some->skipped)
				check_layers(&c, network, some, depth, all);
		}
		if (some->skipped)
			check_cycles(&c, platform, network, all);
		all->designs++;
	}
	arena_free(c.arena);
}

static void counted(void **state)
{
	struct counted all = { 0 };
	(void)state;
	for (int seed = 1; seed <= designs(); seed++)
		count_design((uint64_t)seed, &all);
	printf("%d designs: %d launches end, %d do not; %d designs of many layers, %d launches "
	       "shown to end by some of them, %d of the cycles close\n",
	        all.designs, all.ended, all.stuck, all.rolled, all.held, all.close);
	assert_true(all.ended && all.stuck && all.held > all.rolled);
	assert_true(all.close >= all.rolled - all.rolled / 20);
	assert_true(all.rated >= all.rolled - all.rolled / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(counted) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
