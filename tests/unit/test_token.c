/* The token model against the simulator on random designs: cycles with the depths as built,
 * words of every channel, processes alone, and the latest schedule. */
#include "random_design.h"
#include "predict/token.h"
#include "simulate/cycle_sim.h"
#include <math.h>

#define DESIGNS 80
#define DESIGNS_LONG 1000
#define CLOSE 0.03       /* of the simulated cycles … */
#define CLOSE_SHARE 0.98 /* … for this share of the designs */

struct compared {
	int designs, close, refused;
	double worst;
	uint64_t worst_seed;
};

static int designs(void)
{
	const char *mode = getenv("STC_TEST_MODE");
	return mode && !strcmp(mode, "long") ? DESIGNS_LONG : DESIGNS;
}

static const int64_t *built_depths(struct arena *arena, const struct token_network *network)
{
	int64_t *depth = ARENA_ARRAY(arena, int64_t, network->channels.count + 1);
	for (size_t i = 0; i < network->channels.count; i++)
		depth[i] = network->channels.data[i].depth;
	return depth;
}

/* Alone, a process takes what its words allow at best; so it never ends later than among others. */
static void check_isolated(struct arena *arena, const struct token_network *network,
        const struct token_result *bounded)
{
	struct token_result alone =
	        token_run(arena, network, &(struct token_options){ .mode = TOKEN_ISOLATED });
	assert_true(alone.ended);
	for (size_t i = 0; i < network->processes.count; i++)
		assert_true(alone.end[i] <= bounded->end[i]);
	for (size_t i = 0; i < network->channels.count; i++)
		assert_int_equal(alone.flow[i].words, bounded->flow[i].words);
}

/* Without limits the latest schedule takes as long as the earliest: both are the longest way
 * through the same precedences. */
static void check_latest(struct arena *arena, const struct token_network *network)
{
	struct token_result early =
	        token_run(arena, network, &(struct token_options){ .mode = TOKEN_EARLIEST });
	struct token_result late = token_run(
	        arena, network, &(struct token_options){ .mode = TOKEN_LATEST, .end = early.end });
	assert_true(early.ended && late.ended);
	assert_true(late.cycles <= early.cycles + early.cycles / 100 + 2);
	for (size_t i = 0; i < network->channels.count; i++)
		assert_int_equal(early.flow[i].words, late.flow[i].words);
}

static void compare(uint64_t seed, struct compared *all)
{
	struct design_case c;
	const struct platform *platform = random_design(&c, seed, pass_count);
	if (!c.module) {
		all->refused++;
		arena_free(c.arena);
		return;
	}
	struct token_network *network = token_network_new(
	        c.arena, platform, c.module, (struct token_detail){ .stretches = TOKEN_STRETCHES });
	struct cycle_result flow;
	assert_non_null(network);
	struct token_result model = token_run(c.arena, network,
	        &(struct token_options){
	                .mode = TOKEN_EARLIEST, .depth = built_depths(c.arena, network) });
	assert_int_equal(cycle_simulate(c.arena, platform, c.module, INT64_MAX, &flow), CYCLE_DONE);
	assert_true(model.ended);
	for (int i = 0; i < flow.channels; i++)
		assert_int_equal(model.flow[i].words, flow.channel[i].words);
	check_isolated(c.arena, network, &model);
	check_latest(c.arena, network);
	double error = fabs((double)(model.cycles - flow.cycles)) / (double)flow.cycles;
	all->designs++;
	all->close += error <= CLOSE;
	if (error > CLOSE && getenv("STC_TOKEN_LIST"))
		printf("seed %d: model %lld, simulated %lld\n", (int)seed, (long long)model.cycles,
		        (long long)flow.cycles);
	if (error > all->worst) {
		all->worst = error;
		all->worst_seed = seed;
	}
	arena_free(c.arena);
}

static void against_the_simulator(void **state)
{
	struct compared all = { 0 };
	(void)state;
	for (int seed = 1; seed <= designs(); seed++)
		compare((uint64_t)seed, &all);
	printf("%d designs (%d do not fit): %d within %g %%, the worst, seed %d, off by %.2f %%\n",
	        all.designs, all.refused, all.close, 100 * CLOSE, (int)all.worst_seed,
	        100 * all.worst);
	assert_true(all.close >= CLOSE_SHARE * all.designs);
}

/* --- patterns against counting */

#define LOOP(counter, trips) "\"scf.for\"(%c0, %" trips ", %c1) ({\n^bb0(%" counter ": index):\n"
#define CLOSE_LOOP "\"scf.yield\"() : () -> ()\n}) : (index, index, index) -> ()\n"
#define HEAD_ONLY                                                                                  \
	"\"builtin.module\"() ({\n\"func.func\"() ({\n^bb0:\n\"func.call\"() {callee = @p} : () "  \
	"-> ()\n\"func.return\"() : () -> ()\n"                                                    \
	"}) {sym_name = \"main\", function_type = () -> (), stream.buffers = [], stream.inputs = " \
	"[], stream.outputs = []} : () -> ()\n"                                                    \
	"\"func.func\"() ({\n^bb0:\n"
#define HEAD                                                                                       \
	HEAD_ONLY NUMBER("c0", "0") NUMBER("c1", "1") NUMBER("c5", "5") NUMBER("c7", "7")          \
	        NUMBER("c6", "6") LOOP("i", "c5") LOOP("j", "c7") LOOP("k", "c6")
#define TAIL CLOSE_LOOP CLOSE_LOOP CLOSE_LOOP END
#define END                                                                                        \
	"\"func.return\"() : () -> ()\n}) {sym_name = \"p\", sym_visibility = \"private\", "       \
	"stream.process, stream.die = 0 : i64, "                                                   \
	"stream.style = \"stp\", function_type = () -> ()} : () -> ()\n}) {stream.level = "        \
	"\"hardware\"} : () -> ()\n"
#define TEST(name, predicate, left, right)                                                         \
	"%" name " = \"arith.cmpi\"(%" left ", %" right ") {predicate = " predicate                \
	" : i64} : (index, index) -> i1\n"
#define NUMBER(name, value)                                                                        \
	"%" name " = \"arith.constant\"() {value = " value " : index} : () -> index\n"
#define BOTH(name, left, right)                                                                    \
	"%" name " = \"arith.andi\"(%" left ", %" right ") : (i1, i1) -> i1\n"
#define EITHER(name, left, right)                                                                  \
	"%" name " = \"arith.ori\"(%" left ", %" right ") : (i1, i1) -> i1\n"
#define SUM(name, left, right)                                                                     \
	"%" name " = \"arith.addi\"(%" left ", %" right ") : (index, index) -> index\n"

static const struct op *loop_of(const struct block *block)
{
	const struct op *op = block->first;
	while (op->code != OP_FOR)
		op = op->next;
	return op;
}

/* digits: shared by all, so that one of another condition would be seen. */
static void count_pattern(struct map *digits, const char *text)
{
	struct design_case c = { 0 };
	struct token_loop loop[] = { { .trips = 5 }, { .trips = 7 }, { .trips = 6 } };
	struct token_pattern pattern;
	struct token_pattern again;
	CASE_BEGIN(&c);
	case_import(&c, text);
	const struct block *body = module_body(c.module)->last->region[0];
	for (int i = 0; i < 3; i++) {
		body = loop_of(body)->region[0];
		body->argument[0]->id = i;
	}
	const struct value *when = body->last->previous->result[0];
	assert_true(token_pattern_make(
	        c.arena, digits, when, (struct loop_range){ loop, 0, 2 }, &pattern));
	assert_true(token_pattern_make(
	        c.arena, digits, when, (struct loop_range){ loop, 0, 2 }, &again));
	for (int i = 0; i < pattern.digits; i++)
		assert_ptr_equal(pattern.digit[i].value, again.digit[i].value);
	int64_t count = 0;
	for (int64_t i = 0; i < 5 * 7 * 6; i++) {
		bool holds;
		loop[0].counter = i / 42;
		loop[1].counter = i / 6 % 7;
		loop[2].counter = i % 6;
		assert_true(token_condition(when, loop, &holds));
		assert_int_equal(token_before(&pattern, i), count);
		if (holds)
			assert_int_equal(token_at(&pattern, count), i);
		count += holds;
	}
	assert_int_equal(pattern.accesses, count);
	assert_int_equal(token_before(&pattern, 5 * 7 * 6), count);
	arena_free(c.arena);
}

static void patterns(void **state)
{
	struct guard guard = { 0 };
	struct arena *arena = arena_new(&guard);
	struct map digits = map_new(arena);
	(void)state;
	count_pattern(&digits, HEAD NUMBER("z", "0") TEST("t", "0", "k", "z") TAIL);
	count_pattern(&digits,
	        HEAD NUMBER("z", "3") TEST("a", "2", "j", "z") TEST("b", "5", "i", "z")
	                BOTH("t", "a", "b") TAIL);
	count_pattern(
	        &digits, HEAD NUMBER("z", "5") SUM("s", "i", "k") TEST("t", "2", "s", "z") TAIL);
	count_pattern(&digits,
	        HEAD NUMBER("z", "4") SUM("s", "j", "k") TEST("a", "4", "s", "z")
	                TEST("b", "1", "i", "z") BOTH("t", "a", "b") TAIL);
	count_pattern(&digits,
	        HEAD NUMBER("z", "2") TEST("a", "0", "j", "z") TEST("b", "0", "k", "z")
	                EITHER("t", "a", "b") TAIL);
	count_pattern(&digits, HEAD NUMBER("z", "3") TEST("t", "0", "k", "z") TAIL);
	count_pattern(&digits, HEAD NUMBER("z", "3") TEST("t", "2", "k", "z") TAIL);
	count_pattern(&digits, HEAD NUMBER("z", "3") TEST("t", "0", "j", "z") TAIL);
	count_pattern(&digits,
	        HEAD NUMBER("z", "2") SUM("s", "j", "k") TEST("a", "0", "s", "z")
	                TEST("b", "0", "k", "z") EITHER("t", "a", "b") TAIL);
	arena_free(arena);
}

/* --- how much is written out */

#define ITERATIONS(count, steps)                                                                   \
	HEAD_ONLY NUMBER("c0", "0") NUMBER("c1", "1") NUMBER("c2", steps) NUMBER("n", count)       \
	        LOOP("i", "n") PIPELINE("a") PIPELINE("b") CLOSE_LOOP END
#define PIPELINE(counter)                                                                          \
	LOOP(counter, "c2")                                                                        \
	"\"scf.yield\"() : () -> ()\n}) {stream.pipeline = 1 : i64} : (index, index, index) -> "   \
	"()\n"

/* Each iteration has two pipelined loops of so many steps each. */
static bool is_modeled(const char *text)
{
	struct design_case c = { 0 };
	CASE_BEGIN(&c);
	const struct pass_context context = case_import(&c, text);
	bool modeled = token_network_new(c.arena, context.platform, c.module,
	                       (struct token_detail){ .stretches = 1 }) != NULL;
	arena_free(c.arena);
	return modeled;
}

/* What some layers do not show of a prompt is walked in all of them: in 16 layers, 8 tiles of
 * tokens and 512 blocks of numbers between two products one process takes 262,144 steps and a
 * few more. */
static void prompt_iterations(void **state)
{
	(void)state;
	assert_true(is_modeled(ITERATIONS("1000", "2")));
	assert_true(is_modeled(ITERATIONS("90000", "2")));
	assert_false(is_modeled(ITERATIONS("140000", "2")));
}

static int64_t work_of(const char *text)
{
	struct design_case c = { 0 };
	CASE_BEGIN(&c);
	const struct pass_context context = case_import(&c, text);
	const struct token_network *network =
	        token_network_new(c.arena, context.platform, c.module, token_detail_predicted);
	assert_non_null(network);
	int64_t work =
	        token_run(c.arena, network, &(struct token_options){ .mode = TOKEN_ISOLATED }).work;
	arena_free(c.arena);
	return work;
}

/* Each of few loops is walked in sixteen stretches, each of many in one. */
static void many_loops(void **state)
{
	(void)state;
	assert_int_equal(work_of(ITERATIONS("64", "64")), 2 * 64 * 16);
	assert_int_equal(work_of(ITERATIONS("8192", "64")), 2 * 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(patterns),
		cmocka_unit_test(prompt_iterations), cmocka_unit_test(many_loops),
		cmocka_unit_test(against_the_simulator) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
