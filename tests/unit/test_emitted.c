/* Random graphs and models through the whole pipeline and the emitted C++, whose results are
 * those of the evaluator at hardware level bit for bit. Many graphs stand in one C++ file, each
 * in a namespace of its own, so that g++ is started a few times only.
 *
 * STC_RANDOM_GRAPHS: how many seeds; STC_RANDOM_FIRST: the first one. */
#define _GNU_SOURCE /* mkdtemp */
#include "graph_trial.h"
#include "emitted_cpp.h"
#include <unistd.h>

#define GRAPHS 60
#define GRAPHS_LONG 2000 /* where STC_TEST_MODE is long */
#define GRAPHS_OF_FILE 20

/* Seeds that were wrong once: a gather from rows that are all alike read an index for nothing; a
 * guard of every second column ended behind the last one. */
static const int64_t found_seeds[] = { 10111, 22133 };

/* STC_EMITTED_FLAGS: other flags of g++. */
static const char *flags(void)
{
	const char *text = getenv("STC_EMITTED_FLAGS");
	return text ? text : "-O0";
}

static bool emit(struct graph_trial *t)
{
	t->stage = t->guard.stage = "emit";
	t->emitted = text_new(t->arena);
	return emit_hls(t->module, platform_load(t->arena, &t->diag, "u55c"),
	               text_format(t->arena, "graph%llu", (unsigned long long)t->seed),
	               &t->emitted) ||
	        broken(t, "it has no spelling: %s", first_message(t));
}

/* What a file includes stands before all namespaces. */
static void add_source(struct text *file, const struct graph_trial *t)
{
	if (!file->size)
		text_add(file,
		        "#include \"hls_stream.h\"\n#include \"hls_vector.h\"\n#include "
		        "\"hls_streamofblocks.h\"\n#include \"st_integer.h\"\n#include "
		        "\"st_math.h\"\n#include \"st_narrow.h\"\n");
	text_add(file, "namespace space%llu {\n", (unsigned long long)t->seed);
	text_add_bytes(file, t->emitted.data, t->emitted.size);
	text_add(file, "}\n");
}

static int run_file(struct arena *arena, const char *folder, const struct text *source, int count,
        struct graph_trial **graph_trial)
{
	int failures = 0;
	void *library = emitted_load(arena, folder,
	        text_format(arena, "from%llu", (unsigned long long)graph_trial[0]->seed), source,
	        flags());
	if (!library)
		fail_msg("the C++ of seeds %llu to %llu is not accepted",
		        (unsigned long long)graph_trial[0]->seed,
		        (unsigned long long)graph_trial[count - 1]->seed);
	for (int i = 0; i < count; i++) {
		struct graph_trial *t = graph_trial[i];
		struct emitted emitted = { t->arena, t->module, t->inputs, t->results, t->input,
			t->before };
		const char *wrong = emitted_run(&emitted, library,
		        text_format(t->arena, "graph%llu", (unsigned long long)t->seed));
		if (wrong) {
			broken(t, "the emitted C++: %s", wrong);
			trial_report(t);
			failures++;
		}
	}
	dlclose(library);
	return failures;
}

struct count {
	int64_t refused, failed;
};

/* The graphs of one file, from `first` on. */
static void run_seeds(const char *folder, int64_t first, int64_t seeds, struct count *count)
{
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	struct text source = text_new(arena);
	struct graph_trial *graph_trial[GRAPHS_OF_FILE];
	int trials = 0;
	for (int64_t i = 0; i < seeds; i++) {
		struct graph_trial *t = trial_new((uint64_t)(first + i));
		if (trial_run(t, false, emit)) {
			add_source(&source, t);
			graph_trial[trials++] = t;
			continue;
		}
		count->refused += t->refused;
		count->failed += !t->refused;
		if (!t->refused)
			trial_report(t);
		trial_free(t);
	}
	count->failed += trials ? run_file(arena, folder, &source, trials, graph_trial) : 0;
	for (int i = 0; i < trials; i++)
		trial_free(graph_trial[i]);
	arena_free(arena);
}

static void test_emitted_graphs(void **state)
{
	(void)state;
	char folder[] = "/tmp/stc-test-XXXXXX";
	char command[sizeof folder + 16];
	int64_t count = number_from("STC_RANDOM_GRAPHS",
	        text_same(getenv("STC_TEST_MODE"), "long") ? GRAPHS_LONG : GRAPHS);
	int64_t first = number_from("STC_RANDOM_FIRST", 1);
	struct count counted = { 0 };
	struct count found = { 0 };
	assert_non_null(mkdtemp(folder));
	for (int64_t i = 0; i < count; i += GRAPHS_OF_FILE)
		run_seeds(folder, first + i,
		        count - i < GRAPHS_OF_FILE ? count - i : GRAPHS_OF_FILE, &counted);
	for (size_t i = 0; i < sizeof found_seeds / sizeof *found_seeds; i++)
		run_seeds(folder, found_seeds[i], 1, &found);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
	print_message("%lld graphs, %lld refused, %lld failures\n", (long long)count,
	        (long long)counted.refused, (long long)counted.failed);
	assert_int_equal(counted.failed + found.failed, 0);
	assert_true(counted.refused <= count / 2 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_emitted_graphs) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
