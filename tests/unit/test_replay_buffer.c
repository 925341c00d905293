/* Replay buffers: converters that change no order but repeat some words are one process without a
 * block channel (random pairs: test_convert.c). */
#include "convert_case.h"

/* Words are repeated before the next ones arrive, by one loop or by two inside an outer loop: the
 * buffer holds just these words. */
static void test_replay_buffer_words(void **state)
{
	(void)state;
	static const struct {
		struct convert_order to; /* of the words of four of 64 numbers */
		int64_t kept;
	} cases[] = {
		{ { .loops = 3, .trip = { 4, 3, 4 }, .step = { 16, 1, 4 }, .dim = { 0, -1, 0 } },
		        16 },
		{ { .loops = 5,
		          .trip = { 2, 3, 4, 2, 2 },
		          .step = { 32, 1, 8, 1, 4 },
		          .dim = { 0, -1, 0, -1, 0 } },
		        32 },
		{ { .loops = 2, .trip = { 5, 16 }, .step = { 1, 4 }, .dim = { -1, 0 } }, 64 },
		{ { .loops = 2, .trip = { 16, 3 }, .step = { 4, 1 }, .dim = { 0, -1 } }, -1 },
		{ { .loops = 3, .trip = { 4, 3, 4 }, .step = { 4, 1, 16 }, .dim = { 0, -1, 0 } },
		        -1 }
	};
	static const struct convert_order once = { .loops = 1, .trip = { 16 }, .step = { 4 } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture *f = begin(1);
		const int64_t shape = 64;
		struct convert_pair pair = { .tensor = type_shaped(f->module, TYPE_TENSOR, 1,
			                             &shape, type_float(f->module, 32)) };
		struct tensor before;
		struct tensor after;
		pair.from = convert_type(f->module, pair.tensor, &once, 4, 0, false);
		pair.to = convert_type(f->module, pair.tensor, &cases[i].to, 4, 0, false);
		pair.box = box_between(f->arena, pair.tensor, pair.from, pair.to, BOX_LEAST);
		struct module *module = run_pair(f, 1, &pair, &before, &after);
		assert_int_equal(replay_elements(module), cases[i].kept);
		assert_memory_equal(before.data, after.data, tensor_bytes(after.type));
		end(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_replay_buffer_words) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
