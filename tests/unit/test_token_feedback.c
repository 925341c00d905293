/* Launches of several tokens: the emitted C++, started once for all of them or once for each,
 * against the evaluator, which is started once for each and fed by hand. */
#include "design_case.h"
#include "edited_text.h"
#include "emitted_cpp.h"
#include "predict/feedback.h"
#include "simulate/cycle_sim.h"

#define SEQUENCES 2
#define ROWS 9
#define WIDTH 4

/* Of two sequences: h = x + the sums of the rows of s before p; row p of s is h; y = the integer
 * part of h's sum and p, modulo 97. */
static const char model[] =
        "#id = affine_map<(i, j) -> (i, j)>\n"
        "#id3 = affine_map<(i, j, k) -> (i, j, k)>\n"
        "#ids = affine_map<(i, j) -> (i, 0)>\n"
        "#all = affine_map<(i, j) -> (0, 0)>\n"
        "#row = affine_map<(i, j, k) -> (i, k)>\n"
        "func.func @main(%ids: tensor<2x1xi64> {stream.name = \"ids\", stream.role = \"input\", "
        "stream.next = {output = \"y\", most = 9 : i64}},\n"
        "                %p: tensor<1x1xi64> {stream.name = \"p\", stream.role = \"input\", "
        "stream.step = 1 : i64},\n"
        "                %s: tensor<2x9x4xf32> {stream.name = \"s\", stream.role = \"state\", "
        "stream.dims = [\"\", \"p\", \"\"]})\n"
        "    -> (tensor<2x1xi32> {stream.name = \"y\", stream.role = \"output\"},\n"
        "        tensor<2x1x4xf32> {stream.name = \"s\", stream.role = \"state\", stream.axis = 1 "
        ": i64, stream.position = \"p\"}) {\n"
        "  %c0 = arith.constant 0.0 : f32\n"
        "  %c97 = arith.constant 97 : i64\n"
        "  %e = tensor.empty() : tensor<2x4xf32>\n"
        "  %x = linalg.generic {indexing_maps = [#ids, #id], iterator_types = [\"parallel\", "
        "\"parallel\"]} ins(%ids : tensor<2x1xi64>) outs(%e : tensor<2x4xf32>) {\n"
        "  ^bb0(%a: i64, %b: f32):\n"
        "    %t = arith.sitofp %a : i64 to f32\n"
        "    linalg.yield %t : f32\n"
        "  } -> tensor<2x4xf32>\n"
        "  %h = linalg.generic {indexing_maps = [#id3, #row], iterator_types = [\"parallel\", "
        "\"reduction\", \"parallel\"]} ins(%s : tensor<2x9x4xf32>) outs(%x : tensor<2x4xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32):\n"
        "    %t = arith.addf %b, %a : f32\n"
        "    linalg.yield %t : f32\n"
        "  } -> tensor<2x4xf32>\n"
        "  %f = tensor.empty() : tensor<2x1xf32>\n"
        "  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<2x1xf32>) -> tensor<2x1xf32>\n"
        "  %sum = linalg.generic {indexing_maps = [#id, #ids], iterator_types = [\"parallel\", "
        "\"reduction\"]} ins(%h : tensor<2x4xf32>) outs(%z : tensor<2x1xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32):\n"
        "    %t = arith.addf %b, %a : f32\n"
        "    linalg.yield %t : f32\n"
        "  } -> tensor<2x1xf32>\n"
        "  %i = tensor.empty() : tensor<2x1xi32>\n"
        "  %y = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = [\"parallel\", "
        "\"parallel\"]} ins(%sum, %p : tensor<2x1xf32>, tensor<1x1xi64>) outs(%i : "
        "tensor<2x1xi32>) {\n"
        "  ^bb0(%a: f32, %q: i64, %b: i32):\n"
        "    %n = arith.fptosi %a : f32 to i64\n"
        "    %m = arith.addi %n, %q : i64\n"
        "    %r = arith.remsi %m, %c97 : i64\n"
        "    %t = arith.trunci %r : i64 to i32\n"
        "    linalg.yield %t : i32\n"
        "  } -> tensor<2x1xi32>\n"
        "  %rows = tensor.expand_shape %h [[0], [1, 2]] output_shape [2, 1, 4] : tensor<2x4xf32> "
        "into tensor<2x1x4xf32>\n"
        "  return %y, %rows : tensor<2x1xi32>, tensor<2x1x4xf32>\n"
        "}\n";

struct text_of_launch {
	int64_t ids[ROWS + 1][SEQUENCES];
	float state[SEQUENCES][ROWS][WIDTH];
};

/* `tokens` tokens from position `at` on, of which `given` are in the text. */
static void evaluate(struct design_case *c, struct module *module, struct text_of_launch *text,
        int64_t at, int tokens, int given)
{
	for (int t = 0; t < tokens; t++, at++) {
		struct tensor input[3] = { c->input[0], c->input[1], c->input[2] };
		struct tensor result[2];
		input[0].data = text->ids[t];
		input[1].data = &at;
		input[2].data = text->state;
		if (!eval_module(module, c->arena, 3, input, result))
			fail_msg("%s", case_messages(c));
		const int32_t *y = result[0].data;
		const float *rows = result[1].data;
		for (int b = 0; b < SEQUENCES; b++) {
			memcpy(text->state[b][at], rows + b * WIDTH, sizeof text->state[b][at]);
			text->ids[t + 1][b] = t + 1 < given ? text->ids[t + 1][b] : y[b];
		}
	}
}

struct memory { /* of the emitted design */
	void *function, *port[PORTS_MOST];
	char **image;
};

static void move(
        struct design_case *c, const struct memory *memory, int input, void *data, bool pack)
{
	const struct attr *buffers = attr_get(module_main(c->module), KEY_STREAM_BUFFERS);
	const struct attr *inputs = attr_get(module_main(c->module), KEY_STREAM_INPUTS);
	struct tensor tensor = { c->input[input].type, data };
	for (int b = 0; b < buffers->count; b++)
		emitted_move(c->arena, buffers->items[b].value, memory->image[b],
		        attr_item(inputs->items[input].value, KEY_NAME)->text, &tensor, pack);
}

static struct memory load(struct design_case *c)
{
	const struct op *main = module_main(c->module);
	const struct attr *buffers = attr_get(main, KEY_STREAM_BUFFERS);
	struct memory memory = { .image = ARENA_ARRAY(c->arena, char *, buffers->count) };
	struct text source = text_new(c->arena);
	assert_true(
	        emit_hls(c->module, platform_load(c->arena, &c->diag, "u55c"), "tokens", &source));
	void *library = emitted_load(c->arena, c->folder, "tokens", &source, "-O1");
	memory.function = library ? dlsym(library, "tokens") : NULL;
	assert_non_null(memory.function);
	for (int b = 0; b < buffers->count; b++) {
		const struct attr *buffer = buffers->items[b].value;
		char *image = arena_alloc(c->arena,
		        (size_t)(attr_item(buffer, KEY_WORDS)->integer *
		                emit_bytes(attr_item(buffer, KEY_WORD)->type)) +
		                64);
		memory.image[b] = image + (-(uintptr_t)image & 63);
		for (int p = 0; p < emit_ports(c->module); p++)
			if (text_same(emit_port(main, p).buffer, attr_item(buffer, KEY_NAME)->text))
				memory.port[p] = memory.image[b];
	}
	return memory;
}

static int64_t *text_in(struct design_case *c, const struct memory *memory)
{
	const struct attr *buffers = attr_get(module_main(c->module), KEY_STREAM_BUFFERS);
	struct feedback feedback;
	int b = 0;
	assert_true(feedback_read(module_main(c->module), &feedback));
	assert_true(feedback.most == ROWS && feedback.elements == SEQUENCES);
	while (!text_same(attr_item(buffers->items[b].value, KEY_NAME)->text, feedback.buffer))
		b++;
	assert_string_equal(
	        type_scalar(attr_item(buffers->items[b].value, KEY_WORD)->type)->text, "i64");
	return (int64_t *)(uintptr_t)memory->image[b] + feedback.offset;
}

static void start(struct design_case *c, struct memory *memory, int tokens, int given)
{
	int ports = emit_ports(c->module);
	/* in a register or a place on the stack as wide as a pointer's */
	memory->port[ports] = (void *)(uintptr_t)tokens;
	memory->port[ports + 1] = (void *)(uintptr_t)given;
	emitted_call(memory->function, memory->port);
}

/* One launch of `tokens`, or as many of one, which go on where the one before left off. */
static void run(struct design_case *c, struct memory *memory, struct text_of_launch *text,
        int64_t at, int tokens, int given, bool apart)
{
	int64_t *held = text_in(c, memory);
	move(c, memory, 0, text->ids[0], true);
	move(c, memory, 1, &at, true);
	move(c, memory, 2, text->state, true);
	memcpy(held, text->ids, sizeof text->ids);
	if (!apart)
		start(c, memory, tokens, given);
	for (int t = 0; apart && t < tokens; t++) {
		if (t && t < given)
			move(c, memory, 0, text->ids[t], true);
		start(c, memory, 1, 1);
		if (t + 1 >= given)
			memcpy(text->ids[t + 1], held + SEQUENCES, sizeof text->ids[t + 1]);
	}
	if (!apart)
		memcpy(text->ids, held, sizeof *text->ids * (size_t)(tokens + 1));
	int64_t next[SEQUENCES] = { 0 };
	int64_t position = 0;
	move(c, memory, 0, next, false);
	move(c, memory, 1, &position, false);
	move(c, memory, 2, text->state, false);
	assert_int_equal(position, at + tokens);
	if (!apart || tokens >= given)
		assert_memory_equal(next, held + (apart ? 1 : tokens) * SEQUENCES, sizeof next);
}

static void begin(struct text_of_launch *text)
{
	memset(text, 0, sizeof *text);
	for (int t = 0; t <= ROWS; t++)
		for (int b = 0; b < SEQUENCES; b++)
			text->ids[t][b] = (7 * t + 3 * b + 1) % 97;
}

static void tokens_are_the_evaluators(void **state)
{
	static const struct {
		int64_t at;
		int tokens, given;
	} launches[] = { { 1, 1, 1 }, { 1, 8, 1 }, { 1, 8, 8 }, { 1, 7, 3 }, { 4, 5, 2 },
		{ 8, 1, 1 }, { 2, 6, 6 }, { 0, 1, 1 }, { 0, 8, 3 } };
	struct design_case c;
	(void)state;
	case_start(&c, model);
	struct module *source =
	        import_mlir(c.arena, &c.guard, &c.diag, "test.mlir", model, strlen(model));
	struct memory memory = load(&c);
	for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
		struct text_of_launch found[4];
		for (int way = 0; way < 4; way++)
			begin(&found[way]);
		evaluate(&c, source, &found[0], launches[i].at, launches[i].tokens,
		        launches[i].given);
		evaluate(&c, c.module, &found[1], launches[i].at, launches[i].tokens,
		        launches[i].given);
		run(&c, &memory, &found[2], launches[i].at, launches[i].tokens, launches[i].given,
		        false);
		run(&c, &memory, &found[3], launches[i].at, launches[i].tokens, launches[i].given,
		        true);
		for (int way = 1; way < 4; way++) {
			assert_memory_equal(found[way].ids, found[0].ids,
			        sizeof *found[0].ids * (size_t)(launches[i].tokens + 1));
			assert_memory_equal(
			        found[way].state, found[0].state, sizeof found[0].state);
		}
	}
	case_finish(&c);
}

/* What is done between tokens is not hidden by anything. */
static void time_between_tokens_counts(void **state)
{
	struct design_case c;
	struct cycle_result with;
	struct cycle_result without;
	(void)state;
	case_start(&c, model);
	const struct platform *platform = platform_load(c.arena, &c.diag, "u55c");
	int64_t between = feedback_cycles(platform, module_main(c.module), 1);
	struct cycle_options twice = { .arena = c.arena, .launches = 2 };
	assert_int_equal(
	        cycle_run(cycle_open(c.arena, platform, c.module), &twice, &with), CYCLE_DONE);
	attr_set(c.module, module_main(c.module), KEY_STREAM_FEEDBACK, NULL);
	assert_int_equal(
	        cycle_run(cycle_open(c.arena, platform, c.module), &twice, &without), CYCLE_DONE);
	assert_true(between > 2 * platform->memory_latency);
	assert_int_equal(with.cycles, without.cycles + 2 * between);
	assert_int_equal(with.steady, without.steady + between);
	case_finish(&c);
}

static void refused(const char *from, const char *to, const char *part)
{
	struct arena *arena = arena_new(NULL);
	struct guard guard;
	struct diag diag = { .arena = arena };
	const char *text = edited(arena, model, from, to);
	assert_null(import_mlir(arena, &guard, &diag, "test.mlir", text, strlen(text)));
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entry[0].message, "for the next token"));
	assert_non_null(strstr(diag.entry[0].note, part));
	arena_free(arena);
}

static void wrong_feedback_is_refused(void **state)
{
	(void)state;
	refused("output = \"y\", most = 9 : i64", "output = \"s\", most = 9 : i64",
	        "one input with stream.next");
	refused("output = \"y\", most = 9 : i64", "output = \"y\", most = 0 : i64",
	        "one input with stream.next");
	refused("output = \"y\", most = 9 : i64", "most = 9 : i64", "one input with stream.next");
	refused("stream.step = 1 : i64", "stream.next = {output = \"y\", most = 9 : i64}",
	        "one input with stream.next");
	refused("stream.role = \"state\",", "stream.role = \"state\", stream.step = 1 : i64,",
	        "stream.step = COUNT");
	refused("tensor<2x1xi64> {stream.name = \"ids\",",
	        "tensor<2x1xi64> {stream.name = \"ids\", stream.token_count = \"p\", stream.axis = "
	        "0 : i64,",
	        "as many integers");
}

/* Of 2 x 3 x 2 numbers, three rows of which may count, those of each row, in their order. */
static void rows_are_fed(void **state)
{
	const struct feedback feedback = {
		.rows = "n", .elements = 4, .chunk_tokens = 3, .pitch = 2
	};
	const struct feedback all = { .elements = 4, .chunk_tokens = 1, .pitch = 1 };
	static const int fed[] = { 0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11 };
	(void)state;
	for (int i = 0; i < 12; i++)
		assert_int_equal(feedback_text_index(&feedback, i), fed[i]);
	for (int i = 0; i < 4; i++)
		assert_int_equal(feedback_text_index(&all, i), i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_the_evaluators),
		cmocka_unit_test(time_between_tokens_counts),
		cmocka_unit_test(wrong_feedback_is_refused),
		cmocka_unit_test(rows_are_fed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
