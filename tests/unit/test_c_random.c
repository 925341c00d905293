/* Random affine functions of C: the design computes the bits that C computes, from the module as it
 * is read to hardware level, where the evaluator's channels are bounded.
 *
 * STC_RANDOM_C: how many seeds; STC_RANDOM_FIRST: the first one. What fails is reduced. */
#include "c_trial.h"
#include "random_c.h"
#include "random_typed_c.h"
#include "reduce_c.h"

#define PROGRAMS 15
#define PROGRAMS_LONG 500 /* where STC_TEST_MODE is long */
#define REDUCTIONS 150    /* trials of the reducer */

static int64_t number_from(const char *variable, int64_t otherwise)
{
	const char *text = getenv(variable);
	return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

static struct c_trial *trial_of(const char *text, uint64_t seed)
{
	struct c_trial *t = c_trial_new("random.c", NULL, "f");
	t->text = text_copy(t->arena, text, strlen(text));
	t->seed = seed;
	return t;
}

/* Does it fail in the same pass? */
static bool fails_alike(void *context, const char *text)
{
	const struct c_trial *failed = context;
	struct c_trial *t = trial_of(text, failed->seed);
	bool alike = !c_trial_run(t, false) && text_same(t->stage, failed->stage);
	c_trial_free(t);
	return alike;
}

static void show(struct c_trial *failed)
{
	struct reduce_c reduction = { failed->arena, fails_alike, failed, REDUCTIONS };
	printf("seed %lld: %s: %s\n%s", (long long)failed->seed, failed->stage, failed->failure,
	        reduce_c(&reduction, failed->text));
}

static bool still_doubles(void *context, const char *text)
{
	(void)context;
	return strstr(text, "\t\tb[i] *= 2;\n") && strstr(text, "for (int i");
}

static void test_reducer(void **state)
{
	(void)state;
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	struct reduce_c reduction = { arena, still_doubles, NULL, REDUCTIONS };
	const char *found = reduce_c(&reduction,
	        "void f(void)\n{\n\ta[0] = 1;\n\tfor (int i = 0; i < 7; i++) {\n"
	        "\t\tif (a[i] > 0) {\n\t\t\tb[i] = 3;\n\t\t} else {\n\t\t\tb[i] = 4;\n"
	        "\t\t}\n\t\tb[i] *= 2;\n\t}\n\tc[0] += 1;\n}\n");
	assert_non_null(strstr(found, "\tfor (int i = 0; i < 7; i++) {\n\t\tb[i] *= 2;\n\t}\n"));
	assert_null(strstr(found, "a["));
	assert_null(strstr(found, "c["));
	arena_free(arena);
}

static int64_t failures_of(void (*make)(uint64_t seed, struct text *out))
{
	bool is_long = text_same(getenv("STC_TEST_MODE"), "long");
	int64_t count = number_from("STC_RANDOM_C", is_long ? PROGRAMS_LONG : PROGRAMS);
	int64_t first = number_from("STC_RANDOM_FIRST", 1);
	int64_t failures = 0;
	for (int64_t seed = first; seed < first + count; seed++) {
		struct c_trial *t = trial_of("", (uint64_t)seed);
		struct text text = text_new(t->arena);
		make(t->seed, &text);
		t->text = text.data;
		bool fine = c_trial_run(t, false);
		failures += !fine;
		if (!fine)
			show(t);
		c_trial_free(t);
	}
	print_message("%lld functions, %lld failures\n", (long long)count, (long long)failures);
	return failures;
}

static void test_random_functions(void **state)
{
	(void)state;
	assert_int_equal(failures_of(random_c), 0);
}

static void test_random_types(void **state)
{
	(void)state;
	assert_int_equal(failures_of(random_typed_c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_reducer),
		cmocka_unit_test(test_random_functions), cmocka_unit_test(test_random_types) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
