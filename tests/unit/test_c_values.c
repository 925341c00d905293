/* Functions of tests/c: the design computes the bits that C computes. */
#include "c_trial.h"

static const char *read_file(struct arena *arena, const char *path)
{
	size_t size;
	const char *reason;
	const char *text = file_read(arena, path, &size, &reason);
	assert_non_null(text);
	return text;
}

/* One function; `every`: the values are checked after every pass. */
static bool passes_all(const char *file, const char *function, bool every, bool reassociate)
{
	struct c_trial *t = c_trial_new(file, NULL, function);
	t->reassociate = reassociate;
	t->text = read_file(t->arena, text_format(t->arena, STC_SOURCE_DIR "/tests/c/%s", file));
	bool fine = c_trial_run(t, every);
	if (!fine)
		print_message("%s, %s: %s: %s\n", file, function, t->stage, t->failure);
	c_trial_free(t);
	return fine;
}

static void test_graphs_of_kernels(void **state)
{
	(void)state;
	static const char *const functions[] = { "gemm", "two_products", "three_products", "atax",
		"bicg", "mvt", "gemver", "gesummv", "doitgen", "syrk", "syr2k", "trmm", "symm",
		"covariance", "correlation", "tiles", "addressed" };
	int failures = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		failures += !passes_all("kernels.c", functions[i], true, false);
	assert_int_equal(failures, 0);
}

static void test_values_carried_by_loops(void **state)
{
	(void)state;
	static const char *const functions[] = { "jacobi_1d", "jacobi_2d", "fdtd_2d", "prefix_sum",
		"trisolv", "durbin", "gramschmidt", "lu", "seidel_2d", "floyd_warshall" };
	int failures = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		failures += !passes_all("rolled.c", functions[i], false, false);
	assert_int_equal(failures, 0);
}

static void test_sequential_nests(void **state)
{
	(void)state;
	static const char *const functions[] = { "factors", "sweeps", "recursive_filter", "pairs",
		"steps", "replaced", "wavefront", "ways", "recurrence" };
	int failures = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		failures += !passes_all("sequential.c", functions[i], true, false);
	assert_int_equal(failures, 0);
}

static void test_types(void **state)
{
	(void)state;
	static const char *const functions[] = { "bytes", "unsigned_words", "quotients",
		"conversions", "functions", "conditions", "chained", "wraps" };
	int failures = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		failures += !passes_all("types.c", functions[i], true, false);
	assert_int_equal(failures, 0);
}

static void test_calls(void **state)
{
	(void)state;
	assert_true(passes_all("calls.c", "calls", true, false));
}

/* Elements whose subscripts are data, or no affine forms of counters. */
static void test_computed_subscripts(void **state)
{
	(void)state;
	static const char *const functions[] = { "gather", "histogram", "halves", "sparse_rows",
		"permute", "later", "guarded", "table", "stages" };
	int failures = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		failures += !passes_all("subscripts.c", functions[i], true, false);
	assert_int_equal(failures, 0);
}

/* Numbers of f64 stay so in every pass. */
static void test_double_precision(void **state)
{
	(void)state;
	static const char *const functions[] = { "gemm", "correlation", "jacobi_1d", "trisolv",
		"mixed", "edges" };
	int failures = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		failures += !passes_all("double.c", functions[i], true, false);
	assert_int_equal(failures, 0);
}

/* What takes sums of products along their terms then has several partial sums. */
static void test_free_order_of_sums(void **state)
{
	(void)state;
	static const char *const functions[] = { "gemm", "atax", "gesummv", "trmm", "symm",
		"covariance" };
	int failures = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		failures += !passes_all("kernels.c", functions[i], false, true);
	failures += !passes_all("sequential.c", "factored", false, true);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_graphs_of_kernels),
		cmocka_unit_test(test_values_carried_by_loops),
		cmocka_unit_test(test_sequential_nests), cmocka_unit_test(test_types),
		cmocka_unit_test(test_computed_subscripts), cmocka_unit_test(test_double_precision),
		cmocka_unit_test(test_calls), cmocka_unit_test(test_free_order_of_sums) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
