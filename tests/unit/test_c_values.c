/* Functions of tests/c: the design computes the bits that C computes. */
#include "c_trial.h"

static const char *const functions[] = { "gemm", "two_products", "three_products", "atax", "bicg",
	"mvt", "gemver", "gesummv", "doitgen", "syrk", "syr2k", "trmm", "symm", "covariance",
	"correlation" };

static const char *read_file(struct arena *arena, const char *path)
{
	size_t size;
	const char *reason;
	const char *text = file_read(arena, path, &size, &reason);
	assert_non_null(text);
	return text;
}

static void test_kernels(void **state)
{
	(void)state;
	int failures = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		struct c_trial *t = c_trial_new("kernels.c", NULL, functions[i]);
		t->text = read_file(t->arena, STC_SOURCE_DIR "/tests/c/kernels.c");
		bool fine = c_trial_run(t, true);
		if (!fine)
			print_message("%s: %s: %s\n", functions[i], t->stage, t->failure);
		failures += !fine;
		c_trial_free(t);
	}
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernels) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
