/* Launches that read a prompt in chunks: what the emitted C++ does between steps, however the
 * input's rows lie in memory and however many numbers a word has, and where steps are told that
 * others follow. Steps themselves do nothing here. */
#include "design_case.h"
#include "emitted_cpp.h"
#include "predict/feedback.h"
#include "predict/timing.h"
#include "process/process_builder.h"

#define SEQUENCES 2
#define ROWS 4
#define STEPS 4
#define TEXT ((STEPS - 1) * ROWS + 1) /* rows, behind the first */
#define INPUT 2                       /* element of the buffer with which the input begins */
#define FILLED 16                     /* elements of it, with padding, at most */
#define ELEMENTS 48

static const struct layout {
	const char *name, *word, *segment, *more;
	int64_t place[SEQUENCES][ROWS]; /* from INPUT on */
} layouts[] = {
	{ "rows", "i64",
	        "base = 0, trips = array<i64: 8>, strides = array<i64: 1>, conditions = []", "",
	        { { 0, 1, 2, 3 }, { 4, 5, 6, 7 } } },
	{ "followed", "i64",
	        "base = 0, trips = array<i64: 8>, strides = array<i64: 1>, conditions = []",
	        ", more_chunks", { { 0, 1, 2, 3 }, { 4, 5, 6, 7 } } },
	{ "turns", "i64",
	        "base = 0, trips = array<i64: 4, 2>, strides = array<i64: 1, 4>, conditions = []",
	        "", { { 0, 2, 4, 6 }, { 1, 3, 5, 7 } } },
	{ "rows_of_words", "vector<4xi64>",
	        "base = 0, trips = array<i64: 8>, strides = array<i64: 1>, conditions = []", "",
	        { { 0, 1, 2, 3 }, { 4, 5, 6, 7 } } },
	{ "tiles", "vector<4xi64>",
	        "base = 0, trips = array<i64: 2, 2, 2>, strides = array<i64: 2, 4, 1>, conditions "
	        "= []",
	        "", { { 0, 1, 4, 5 }, { 2, 3, 6, 7 } } },
	{ "padded", "i64",
	        "base = 0, trips = array<i64: 2, 6>, strides = array<i64: 4, 1>, conditions = "
	        "[array<i64: 0, 1, 4>]",
	        "", { { 0, 1, 2, 3 }, { 6, 7, 8, 9 } } },
	{ "backwards", "vector<4xi64>",
	        "base = 3, trips = array<i64: 2, 4>, strides = array<i64: 4, -1>, conditions = []",
	        "", { { 3, 2, 1, 0 }, { 7, 6, 5, 4 } } },
};

static const char *model_of(struct arena *arena, const struct layout *layout)
{
	const char *word = layout->word;
	int lanes = word[0] == 'v' ? 4 : 1;
	return text_format(arena,
	        "module attributes {stream.level = \"hardware\"} {\nfunc.func @main(%%x: "
	        "memref<?x%s>, %%y: memref<?xi32>) attributes {\n"
	        "  arg_attrs = [{stream.port = \"m_x\", stream.buffer = \"x\", stream.channel = 0, "
	        "stream.direction = \"read\"}, {stream.port = \"m_y\", stream.buffer = \"y\", "
	        "stream.channel = 1, stream.direction = \"write\"}],\n"
	        "  stream.inputs = [{name = \"ids\", role = \"input\", type = tensor<2x4xi64>, "
	        "token_count = \"n\", axis = 1%s, next = {output = \"y\", most = %d}},\n"
	        "                   {name = \"p\", role = \"input\", type = tensor<1x1xi64>, step "
	        "= 1}, {name = \"n\", role = \"input\", type = tensor<1x1xi64>}],\n"
	        "  stream.outputs = [{name = \"y\", role = \"output\", type = tensor<2x1xi32>}],\n"
	        "  stream.buffers = [{name = \"x\", words = %d, word = %s, segments = [{name = "
	        "\"n\", role = \"input\", offset = 0, base = 0, trips = array<i64: 1>, strides = "
	        "array<i64: 0>, conditions = []},\n"
	        "      {name = \"p\", role = \"input\", offset = 1, base = 0, trips = array<i64: "
	        "1>, strides = array<i64: 0>, conditions = []}, {name = \"ids\", role = \"input\", "
	        "offset = %d, %s}]},\n"
	        "    {name = \"y\", words = 2, word = i32, segments = [{name = \"y\", role = "
	        "\"output\", offset = 0, base = 0, trips = array<i64: 2>, strides = array<i64: 1>, "
	        "conditions = []}]}],\n"
	        "  stream.feedback = {input = \"ids\", output = \"y\", buffer = \"x\", offset = "
	        "%d, most = %d}} {\n  return\n}\n}\n",
	        word, layout->more, STEPS, ELEMENTS / lanes, word, INPUT, layout->segment,
	        INPUT + FILLED, STEPS);
}

struct expected_state {
	int64_t rows, position, ids[SEQUENCES][ROWS], text[TEXT][SEQUENCES];
};

static void expect(struct expected_state *expected_state, bool more, int tokens, int given,
        const int32_t *output)
{
	int64_t rows = expected_state->rows;
	int taken = 0;
	int end = given - 1;
	for (int step = 0; step < tokens; step++) {
		int left = given - 1 - taken;
		expected_state->position += rows;
		rows = left > ROWS ? ROWS : left > 1 ? left : 1;
		expected_state->rows = rows + (more && left > ROWS);
		for (int b = 0; b < SEQUENCES; b++) {
			if (left <= 0)
				expected_state->text[end][b] = output[b];
			for (int r = 0; r < rows; r++)
				expected_state->ids[b][r] =
				        expected_state->text[left > 0 ? taken + r : end][b];
		}
		end += left <= 0;
		taken += left > 0 ? (int)rows : 0;
	}
}

static void move(const struct layout *layout, struct expected_state *expected_state,
        int64_t *memory, bool back)
{
	int64_t *at[] = { &expected_state->rows, &expected_state->position };
	for (int i = 0; i < 2; i++)
		*(back ? at[i] : &memory[i]) = *(back ? &memory[i] : at[i]);
	for (int b = 0; b < SEQUENCES; b++)
		for (int r = 0; r < ROWS; r++) {
			int64_t *place = &memory[INPUT + layout->place[b][r]];
			int64_t *own = &expected_state->ids[b][r];
			*(back ? own : place) = *(back ? place : own);
		}
	int64_t *text = memory + INPUT + FILLED + SEQUENCES;
	memcpy(back ? &expected_state->text[0][0] : text, back ? text : &expected_state->text[0][0],
	        sizeof expected_state->text);
}

static void launch(void *function, const struct layout *layout, int tokens, int given)
{
	_Alignas(64) int64_t memory[ELEMENTS] = { 0 };
	_Alignas(64) int32_t output[SEQUENCES] = { 1000, 2000 };
	struct expected_state expected_state = { .rows = 3, .position = 7 };
	struct expected_state found;
	memset(&found, 0, sizeof found);
	for (int t = 0; t < TEXT; t++)
		for (int b = 0; b < SEQUENCES; b++)
			expected_state.text[t][b] = 10 * t + b + 1;
	move(layout, &expected_state, memory, false);
	void *port[PORTS_MOST] = { memory, output, (void *)(uintptr_t)tokens,
		(void *)(uintptr_t)given };
	emitted_call(function, port);
	expect(&expected_state, layout->more[0], tokens, given, output);
	move(layout, &found, memory, true);
	assert_memory_equal(&found, &expected_state, sizeof expected_state);
}

static void chunks_go_where_steps_read_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
		struct arena *arena = arena_new(NULL);
		struct design_case c;
		case_start(&c, model_of(arena, &layouts[i]));
		struct text source = text_new(c.arena);
		assert_true(emit_hls(c.module, platform_load(c.arena, &c.diag, "u55c"),
		        layouts[i].name, &source));
		void *library = emitted_load(
		        c.arena, c.folder, layouts[i].name, &source, "-O1 -Wno-unused-parameter");
		void *function = library ? dlsym(library, layouts[i].name) : NULL;
		assert_non_null(function);
		for (int tokens = 1; tokens <= STEPS; tokens++)
			for (int given = 1; given <= 1 + (tokens - 1) * ROWS; given++)
				launch(function, &layouts[i], tokens, given);
		case_finish(&c);
		arena_free(arena);
	}
}

/* A loop's last tile goes beyond the rows that there may be; where one more says that others
 * follow, nobody counts as far. */
static void no_more_rows_are_counted_to(void **state)
{
	static const struct run_time_trip tiles = { .symbol = "n", .tile = 3, .most = 2 };
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct arena *arena = arena_new(NULL);
		struct design_case c;
		struct extent_value *extent;
		case_start(&c, model_of(arena, &layouts[i]));
		struct op *loop = op_new(c.module, OP_FOR, NOWHERE, 0, NULL, 0, NULL);
		block_new(c.module, loop, 0);
		attr_set(c.module, loop, KEY_STREAM_RUN_TIME, run_time_attr(c.module, &tiles, 1));
		op_insert_before(module_main(c.module)->region[0]->first, loop);
		assert_int_equal(timing_extents(c.arena, c.module, &extent), 1);
		assert_int_equal(extent->value, layouts[i].more[0] ? ROWS : 6);
		case_finish(&c);
		arena_free(arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(chunks_go_where_steps_read_them),
		cmocka_unit_test(no_more_rows_are_counted_to) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
