/* Converters that cannot be: buffers of another size, order or number of copies, and forms that
 * their neighbours do not allow. Each is refused with a message that says which. */
#include "convert_case.h"
#include "lowering/lowering_passes.h"

static void test_wrong_buffers(void **state)
{
	(void)state;
	static const struct {
		const char *attributes, *message;
	} wrong[] = {
		{ "buffer_elements = 3 : i64, halves = 1 : i64, shared_loops = 0 : i64",
		        "a buffer of 3 elements" },
		{ "buffer_elements = 8 : i64, halves = 1 : i64, shared_loops = 1 : i64",
		        "do not share 1 loops" },
		{ "buffer_elements = 8 : i64, halves = 1 : i64, shared_loops = -7 : i64",
		        "do not share -7 loops" },
		{ "buffer_elements = 8 : i64, halves = 2 : i64, shared_loops = 0 : i64",
		        "2 buffer copies, of which 1 can be used at once" },
		{ "buffer_elements = 8 : i64, halves = 0 : i64, shared_loops = 0 : i64",
		        "0 buffer copies" },
		{ "buffer_elements = 0 : i64, halves = 1 : i64, shared_loops = 0 : i64, "
		  "in_producer",
		        "does not accumulate all words of" },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct fixture *f = begin(1);
		struct text text = text_new(f->arena);
		text_add(&text,
		        "\"builtin.module\"() ({\n\"func.func\"() ({\n^bb0(%%0: tensor<2x4xf32>):\n"
		        "%%1 = \"stream.load\"(%%0) {operand_segment_sizes = array<i32: 1, 0>, "
		        "tensor = tensor<2x4xf32>} : (tensor<2x4xf32>) -> !stream.itensor<f32, [2, "
		        "4], [1, 1], affine_map<(d0, d1) -> (d0, d1)>>\n"
		        "%%2 = \"stream.convert\"(%%1) {%s, tensor = tensor<2x4xf32>} : "
		        "(!stream.itensor<f32, [2, 4], [1, 1], affine_map<(d0, d1) -> (d0, d1)>>) "
		        "-> !stream.itensor<f32, [4, 2], [1, 1], affine_map<(d0, d1) -> (d1, "
		        "d0)>>\n"
		        "\"stream.store\"(%%2) {operand_segment_sizes = array<i32: 1, 0, 0>, "
		        "result = array<i64: 0>, tensor = tensor<2x4xf32>} : (!stream.itensor<f32, "
		        "[4, 2], [1, 1], affine_map<(d0, d1) -> (d1, d0)>>) -> ()\n"
		        "\"func.return\"() : () -> ()\n}) {function_type = (tensor<2x4xf32>) -> "
		        "(), stream.inputs = [{name = \"x\", role = \"input\", type = "
		        "tensor<2x4xf32>}], stream.outputs = [{name = \"y\", role = \"output\", "
		        "type = tensor<2x4xf32>}], sym_name = \"main\"} : () -> ()\n"
		        "}) {stream.level = \"stream\"} : () -> ()\n",
		        wrong[i].attributes);
		struct module *module = read_module(f, &text);
		assert_false(lower(f, module));
		if (!strstr(messages(f), wrong[i].message))
			fail_msg("%s", messages(f));
		end(f);
	}
}

/* Marks the first op of this kind with a form that its neighbours do not allow. */
static void expect_refused(
        struct fixture *f, enum op_code code, enum attr_key form, const char *message)
{
	struct convert_writer writer = convert_random_writer(&f->random, f->module);
	struct convert_pair pair[2];
	for (int r = 0; r < 2; r++)
		pair[r] = (struct convert_pair){ .tensor = writer.tensor,
			.from = writer.type,
			.to = writer.type,
			.box = box_between(f->arena, writer.tensor, writer.type, writer.type, 0) };
	struct text text = text_new(f->arena);
	if (code == OP_BUFFER)
		buffer_module(f->module, 2, pair, &text);
	else
		convert_module(f->module, 1, pair, &text);
	struct module *module = read_module(f, &text);
	struct op *op = module_main(module)->region[0]->first;
	while (op->code != code)
		op = op->next;
	attr_set(module, op, form, attr_unit(module));
	struct pass_context context = { .platform = platform_load(f->arena, &f->diag, "u55c") };
	assert_false(make_processes(&context, module));
	if (!strstr(messages(f), message))
		fail_msg("%s", messages(f));
}

/* A load accumulates nothing and a store needs no whole buffer: neither can be a buffer's form. */
static void test_neighbours_without_the_form(void **state)
{
	(void)state;
	static const struct {
		enum op_code code;
		enum attr_key form;
		const char *message;
	} refused[] = {
		{ OP_BUFFER, KEY_IN_PRODUCER,
		        "held by its producer, which does not accumulate all words" },
		{ OP_CONVERT, KEY_IN_PRODUCER,
		        "drained by its producer, but the producer does not accumulate" },
		{ OP_CONVERT, KEY_IN_CONSUMER,
		        "held by its consumer, which does not need all words of" },
	};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct fixture *f = begin(i + 1);
		expect_refused(f, refused[i].code, refused[i].form, refused[i].message);
		end(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_wrong_buffers),
		cmocka_unit_test(test_neighbours_without_the_form) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
