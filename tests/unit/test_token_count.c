/* Launches of fewer rows than a module was made for: what bind_token_count leaves out is not
 * seen in what is left, at every level. */
#include "design_case.h"
#include "ir/workload.h"
#include "ir/contract.h"
#include "image/quantized.h"
#include <math.h>

#define INPUTS 256
#define OUTPUTS 64
#define PAST 4

static const struct quant_scheme four = {
	.text = "w4a8", .weights = true, .weight = 4, .head = 4, .group = 128
};

/* y = x w; the largest of each column of y, or 0; twice what y and the rows of p are behind one
 * another; y yᵀ, which walks rows twice. */
static const char *make_model(struct arena *arena, int rows)
{
	struct text text = text_new(arena);
	text_add(&text,
	        "#id = affine_map<(r, n) -> (r, n)>\n#n = affine_map<(n, r) -> (n)>\n#t = "
	        "affine_map<(n, r) -> (r, n)>\n!x = tensor<%dx256xf32>\n!w = "
	        "tensor<64x256xf32>\n!y = tensor<%dx64xf32>\n"
	        "!p = tensor<4x64xf32>\n!c = tensor<%dx64xf32>\n!l = tensor<64xf32>\n!q = "
	        "tensor<%dx%dxf32>\n",
	        rows, rows, rows + PAST, rows, rows);
	text_add(&text,
	        "func.func @main(%%x: !x, %%count: tensor<1xi64>, %%p: !p, %%w: !w) -> (!y, !l, "
	        "!c, !q) attributes {\n"
	        "  arg_attrs = [{stream.name = \"x\", stream.role = \"input\", stream.token_count "
	        "= \"count\", stream.axis = 0 : i64}, {stream.name = \"count\", stream.role = "
	        "\"input\"},\n"
	        "    {stream.name = \"p\", stream.role = \"input\"}, {stream.name = \"w\", "
	        "stream.role = \"weight\"}]} {\n"
	        "  %%z = arith.constant 0.0 : f32\n  %%two = arith.constant 2.0 : f32\n  %%ey = "
	        "tensor.empty() : !y\n  %%el = tensor.empty() : !l\n  %%ec = tensor.empty() : !c\n "
	        " %%eq = tensor.empty() : !q\n"
	        "  %%zy = linalg.fill ins(%%z : f32) outs(%%ey : !y) -> !y\n  %%zl = linalg.fill "
	        "ins(%%z : f32) outs(%%el : !l) -> !l\n  %%zq = linalg.fill ins(%%z : f32) "
	        "outs(%%eq : !q) -> !q\n"
	        "  %%y = linalg.generic {indexing_maps = [affine_map<(r, n, k) -> (r, k)>, "
	        "affine_map<(r, n, k) -> (n, k)>, affine_map<(r, n, k) -> (r, n)>],\n"
	        "      iterator_types = [\"parallel\", \"parallel\", \"reduction\"]} ins(%%x, %%w "
	        ": !x, !w) outs(%%zy : !y) {\n"
	        "  ^bb0(%%a: f32, %%b: f32, %%o: f32):\n    %%m = arith.mulf %%a, %%b : f32\n    "
	        "%%s = arith.addf %%o, %%m : f32\n    linalg.yield %%s : f32\n  } -> !y\n"
	        "  %%l = linalg.generic {indexing_maps = [#t, #n], iterator_types = [\"parallel\", "
	        "\"reduction\"]} ins(%%y : !y) outs(%%zl : !l) {\n"
	        "  ^bb0(%%a: f32, %%o: f32):\n    %%s = arith.maximumf %%o, %%a : f32\n    "
	        "linalg.yield %%s : f32\n  } -> !l\n"
	        "  %%k = tensor.concat dim(0) %%y, %%p : (!y, !p) -> !c\n"
	        "  %%c = linalg.generic {indexing_maps = [#id, #id], iterator_types = "
	        "[\"parallel\", \"parallel\"]} ins(%%k : !c) outs(%%ec : !c) {\n"
	        "  ^bb0(%%a: f32, %%o: f32):\n    %%s = arith.mulf %%a, %%two : f32\n    "
	        "linalg.yield %%s : f32\n  } -> !c\n"
	        "  %%q = linalg.generic {indexing_maps = [affine_map<(r, s, n) -> (r, n)>, "
	        "affine_map<(r, s, n) -> (s, n)>, affine_map<(r, s, n) -> (r, s)>],\n"
	        "      iterator_types = [\"parallel\", \"parallel\", \"reduction\"]} ins(%%y, %%y "
	        ": !y, !y) outs(%%zq : !q) {\n"
	        "  ^bb0(%%a: f32, %%b: f32, %%o: f32):\n    %%m = arith.mulf %%a, %%b : f32\n    "
	        "%%s = arith.addf %%o, %%m : f32\n    linalg.yield %%s : f32\n  } -> !q\n"
	        "  return %%y, %%l, %%c, %%q : !y, !l, !c, !q\n}\n");
	return text.data;
}

struct expected {
	float *y, *largest, *both, *products;
};

static bool row_is_valid(int64_t row, int64_t rows, int64_t count)
{
	int64_t tile = token_tile(rows, true);
	return row / tile * tile < count && row % tile < count;
}

/* From what all rows give. */
static struct expected expect(struct design_case *c, int64_t rows, int64_t count)
{
	struct expected e = { ARENA_ARRAY(c->arena, float, rows *OUTPUTS),
		ARENA_ARRAY(c->arena, float, OUTPUTS),
		ARENA_ARRAY(c->arena, float, (rows + PAST) * OUTPUTS),
		ARENA_ARRAY(c->arena, float, rows *rows) };
	const float *y = c->result[0].data;
	const float *both = c->result[2].data;
	const float *products = c->result[3].data;
	memcpy(e.both, both, sizeof *both * (size_t)((rows + PAST) * OUTPUTS));
	for (int64_t i = 0; i < rows * OUTPUTS; i++) {
		float *largest = &e.largest[i % OUTPUTS];
		bool row_predicate = row_is_valid(i / OUTPUTS, rows, count);
		e.y[i] = row_predicate ? y[i] : 0;
		e.both[i] = row_predicate ? both[i] : 0;
		*largest = e.y[i] > *largest ? e.y[i] : *largest;
	}
	for (int64_t i = 0; i < rows * rows; i++)
		e.products[i] =
		        row_is_valid(i / rows, rows, count) && row_is_valid(i % rows, rows, count)
		        ? products[i]
		        : 0;
	return e;
}

static void expect_result(
        struct design_case *c, const char *pass, int64_t count, int result, const float *expected)
{
	if (memcmp(c->result[result].data, expected, tensor_bytes(c->result[result].type)))
		fail_msg("%lld rows: other bits of result %d after %s", (long long)count, result,
		        pass);
}

/* Sums, in whatever order; zeros are zeros. */
static void expect_products(
        struct design_case *c, const char *pass, int64_t count, int64_t rows, const float *expected)
{
	const float *found = c->result[3].data;
	for (int64_t i = 0; i < rows * rows; i++)
		if (fabsf(found[i] - expected[i]) > 1e-5F *
		                (fabsf(expected[i / rows * (rows + 1)]) +
		                        fabsf(expected[i % rows * (rows + 1)])))
			fail_msg("%lld rows: product %lld is %g instead of %g after %s",
			        (long long)count, (long long)i, (double)found[i],
			        (double)expected[i], pass);
}

static void count_bound(struct op *op, void *context)
{
	for (int l = 0; op->code == OP_KERNEL && l < op->kernel->loops; l++)
		*(int *)context += op->kernel->loop[l].run_time != NULL;
	*(int *)context += op->code == OP_CONTRACT && attr_get(op, KEY_TOKEN_COUNT);
}

static void count_cuts(struct op *op, void *context)
{
	*(int *)context += op->code == OP_CONVERT && attr_get(op, KEY_SPILLED) &&
	        op->result[0]->type->itensor->run_time;
}

static void count_left_out(struct op *op, void *context)
{
	for (int j = 0; op->code == OP_KERNEL && j < op->operands; j++)
		*(int *)context += op->kernel->operand[j].row_predicate != NULL;
}

/* on_chip: bytes; 0: what the platform has.  Returns the operands of which rows of zeros do not
 * come. */
static int expect_rows(int rows, int64_t count, int64_t tokens_per_cycle, int64_t on_chip)
{
	int left_out = 0;
	struct design_case c = { 0 };
	CASE_BEGIN(&c);
	struct pass_context context = case_import(&c, make_model(c.arena, rows));
	context.quant = &four;
	context.choices.value[CHOICE_TOKENS_PER_CYCLE] = tokens_per_cycle;
	context.choices.value[CHOICE_ON_CHIP] = on_chip;
	struct expected expected = { 0 };
	for (int p = 0; c.module && p < pass_count; p++) {
		const char *name = passes[p].name;
		if (!passes[p].run(&context, c.module) || !ir_verify(c.module))
			fail_msg("%s: %s", name, case_messages(&c));
		bool before = text_same(name, "map_contractions");
		if (before)
			case_arguments(&c);
		if (p < pass_find("map_contractions"))
			continue;
		memcpy(c.input[1].data, &count, sizeof count);
		if (!eval_module(c.module, c.arena, eval_inputs(c.module), c.input, c.result))
			fail_msg("after %s: %s", name, case_messages(&c));
		int bound = 0;
		int cuts = 0;
		ir_walk(module_body(c.module), count_bound, &bound);
		if (before && rows > FEW_TOKENS && !tokens_per_cycle)
			/* so that a single token has more PEs */
			assert_int_equal(
			        engine_word_uses(engine_shape(module_main(c.module)->region[0])),
			        ENGINE_BASE_LANES);
		if (text_same(name, "bind_token_count"))
			/* activations, their scales, the contraction, the largest */
			assert_true(bound >= 4);
		ir_walk(module_body(c.module), count_cuts, &cuts);
		if (text_same(name, "form_streams"))
			ir_walk(module_body(c.module), count_left_out, &left_out);
		if (text_same(name, "spill_to_budget"))
			assert_true(on_chip ? cuts >= 1 : !cuts);
		if (before)
			expected = expect(&c, rows, count);
		if (before)
			continue;
		expect_result(&c, name, count, 0, expected.y);
		expect_result(&c, name, count, 1, expected.largest);
		expect_result(&c, name, count, 2, expected.both);
		expect_products(&c, name, count, rows, expected.products);
	}
	arena_free(c.arena);
	return left_out;
}

/* One tile, whose groups come of all tokens; two tokens a cycle; several tiles. */
static void test_valid_rows(void **state)
{
	(void)state;
	expect_rows(8, 1, 0, 0);
	expect_rows(8, 5, 0, 0);
	expect_rows(5, 5, 0, 0);
	expect_rows(8, 3, 2, 0);
	expect_rows(24, 24, 1, 0);
	for (int count = 1; count <= 24; count += 5)
		assert_true(expect_rows(24, count, 0, 0) > 0);
	for (int count = 1; count <= 32; count += 10)
		assert_true(expect_rows(32, count, 0, 0) > 0);
}

/* A tensor spilled to memory has the launch's number of rows, too. */
static void test_rows_through_memory(void **state)
{
	(void)state;
	expect_rows(8, 1, 0, 4000);
	expect_rows(8, 5, 0, 4000);
}

static void add_words(struct op *op, void *context)
{
	*(int64_t *)context += attr_integer_or(op, KEY_STREAM_REQUIRED_DEPTH, 0);
}

/* Words that all FIFOs hold. */
static int64_t words_of(int rows, enum fifo_strategy strategy)
{
	struct design_case c = { 0 };
	int64_t words = 0;
	CASE_BEGIN(&c);
	struct pass_context context = case_import(&c, make_model(c.arena, rows));
	context.quant = &four;
	context.choices.value[CHOICE_FIFO] = 1 + (int64_t)strategy;
	for (int p = 0; p < pass_count; p++)
		if (!passes[p].run(&context, c.module))
			fail_msg("%s: %s", passes[p].name, case_messages(&c));
	ir_walk(module_body(c.module), add_words, &words);
	arena_free(c.arena);
	return words;
}

/* A launch has at least one token: a design whose launch would not end with none still gets FIFO
 * depths. */
static void test_depths_are_found(void **state)
{
	(void)state;
	assert_true(words_of(8, FIFO_STRATEGY_TRIM) < words_of(8, FIFO_STRATEGY_SAFE));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_valid_rows),
		cmocka_unit_test(test_rows_through_memory),
		cmocka_unit_test(test_depths_are_found) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
