/* Random graphs and models through every pass: each module is valid, its text reads back to
 * itself, and its values are those of before the pass, exactly or within what the pass's numeric
 * class allows.  At hardware level the evaluator's channels are bounded, so a deadlock fails
 * too.
 *
 * STC_RANDOM_GRAPHS: how many seeds (default 100); STC_RANDOM_FIRST: the first seed; with both,
 * one seed can be run again.  STC_RANDOM_VALUES a folder that is given the graph, its inputs and
 * the results at hardware level (graph.mlir, in.NAME.npy, out.NAME.npy). */
#include "graph_trial.h"

#define GRAPHS 100
#define GRAPHS_LONG 1200 /* where STC_TEST_MODE is long */

static void write_tensor(struct graph_trial *t, const char *kind, const struct attr *entry,
        const struct tensor *tensor)
{
	struct text text = text_new(t->arena);
	npy_header(&text, type_is_real(type_scalar(tensor->type)) ? "f4" : "i8", tensor->type->rank,
	        tensor->type->shape);
	text_add_bytes(&text, tensor->data, tensor_bytes(tensor->type));
	write_bytes(text_format(t->arena, "%s/%s.%s.npy", getenv("STC_RANDOM_VALUES"), kind,
	                    attr_item(entry, KEY_NAME)->text),
	        text.data, text.size);
}

/* For tests that run the emitted design on the same numbers. */
static bool write_values(struct graph_trial *t)
{
	const char *folder = getenv("STC_RANDOM_VALUES");
	if (!folder)
		return true;
	const struct op *main = module_main(t->module);
	const struct attr *inputs = attr_get(main, KEY_STREAM_INPUTS);
	const struct attr *outputs = attr_get(main, KEY_STREAM_OUTPUTS);
	write_bytes(text_format(t->arena, "%s/graph.mlir", folder), t->source.data, t->source.size);
	for (int i = 0; i < t->inputs; i++)
		write_tensor(t, "in", inputs->items[i].value, &t->input[i]);
	for (int r = 0; r < t->results; r++)
		write_tensor(t, "out", outputs->items[r].value, &t->before[r]);
	return true;
}

static void test_random_graphs(void **state)
{
	(void)state;
	const char *mode = getenv("STC_TEST_MODE");
	int64_t count =
	        number_from("STC_RANDOM_GRAPHS", text_same(mode, "long") ? GRAPHS_LONG : GRAPHS);
	int64_t first = number_from("STC_RANDOM_FIRST", 1);
	int64_t failures = 0;
	int64_t refusals = 0;
	for (int64_t i = 0; i < count; i++) {
		struct graph_trial *t = trial_new((uint64_t)(first + i));
		if (!trial_run(t, true, write_values)) {
			refusals += t->refused;
			failures += !t->refused;
			if (!t->refused)
				trial_report(t);
		}
		trial_free(t);
	}
	print_message("%lld graphs, %lld refused, %lld failures\n", (long long)count,
	        (long long)refusals, (long long)failures);
	assert_int_equal(failures, 0);
	assert_true(refusals <= count / 2 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_graphs) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
