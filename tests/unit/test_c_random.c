/* Random affine functions of C: the design computes the bits that C computes, from the module as it
 * is read to hardware level, where the evaluator's channels are bounded.
 *
 * STC_RANDOM_C: how many seeds; STC_RANDOM_FIRST: the first one. */
#include "c_trial.h"
#include "random_c.h"

#define PROGRAMS 15
#define PROGRAMS_LONG 500 /* where STC_TEST_MODE is long */

static int64_t number_from(const char *variable, int64_t otherwise)
{
	const char *text = getenv(variable);
	return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

/* Too many kernels or values are no failure. */
static bool is_refusal(const struct c_trial *t)
{
	static const char *const known[] = { "too complex", "too many to be kernels",
		"different values", "no affine function of the counters", "memory ports" };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (t->failure && strstr(t->failure, known[i]))
			return true;
	return false;
}

static void test_random_functions(void **state)
{
	(void)state;
	bool is_long = text_same(getenv("STC_TEST_MODE"), "long");
	int64_t count = number_from("STC_RANDOM_C", is_long ? PROGRAMS_LONG : PROGRAMS);
	int64_t first = number_from("STC_RANDOM_FIRST", 1);
	int64_t failures = 0;
	int64_t refusals = 0;
	for (int64_t seed = first; seed < first + count; seed++) {
		struct c_trial *t = c_trial_new("random.c", NULL, "f");
		struct text text = text_new(t->arena);
		random_c((uint64_t)seed, &text);
		t->text = text.data;
		t->seed = (uint64_t)seed;
		bool fine = c_trial_run(t, false);
		bool refused = !fine && is_refusal(t);
		refusals += refused;
		failures += !fine && !refused;
		if (!fine && !refused)
			printf("seed %lld: %s: %s\n%s", (long long)seed, t->stage, t->failure,
			        t->text);
		c_trial_free(t);
	}
	print_message("%lld functions, %lld refused, %lld failures\n", (long long)count,
	        (long long)refusals, (long long)failures);
	assert_int_equal(failures, 0);
	assert_true(refusals <= count / 4 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_functions) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
