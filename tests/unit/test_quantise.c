/* Quantised contractions: the same bits at every level, whatever the widths; weights rounded one by one. */
#include "design_case.h"
#include "model/quantised.h"
#include "st_math.h"

#include <math.h>

#define RESULTS 4096

static const char *linear(struct arena *arena, int tokens, int inputs, int outputs)
{
	return text_format(arena,
		"func.func @main(%%x: tensor<%dx%dxf32>, %%w: tensor<%dx%dxf32>, %%b: tensor<%dxf32>) -> tensor<%dx%dxf32> attributes {\n"
		"  arg_attrs = [{stream.name = \"x\", stream.role = \"input\"}, {stream.name = \"w\", stream.role = \"weight\"}, {stream.name = \"b\", stream.role = \"weight\"}]} {\n"
		"  %%zero = arith.constant 0.0 : f32\n  %%e = tensor.empty() : tensor<%dx%dxf32>\n"
		"  %%z = linalg.fill ins(%%zero : f32) outs(%%e : tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n"
		"  %%y = linalg.generic {indexing_maps = [affine_map<(t, n, k) -> (t, k)>, affine_map<(t, n, k) -> (n, k)>, affine_map<(t, n, k) -> (t, n)>],\n"
		"      iterator_types = [\"parallel\", \"parallel\", \"reduction\"]} ins(%%x, %%w : tensor<%dx%dxf32>, tensor<%dx%dxf32>) outs(%%z : tensor<%dx%dxf32>) {\n"
		"  ^bb0(%%a: f32, %%c: f32, %%acc: f32):\n    %%m = arith.mulf %%a, %%c : f32\n    %%s = arith.addf %%acc, %%m : f32\n    linalg.yield %%s : f32\n  } -> tensor<%dx%dxf32>\n"
		"  %%o = linalg.generic {indexing_maps = [affine_map<(t, n) -> (t, n)>, affine_map<(t, n) -> (n)>, affine_map<(t, n) -> (t, n)>], iterator_types = [\"parallel\", \"parallel\"]}\n"
		"      ins(%%y, %%b : tensor<%dx%dxf32>, tensor<%dxf32>) outs(%%e : tensor<%dx%dxf32>) {\n"
		"  ^bb0(%%a: f32, %%c: f32, %%acc: f32):\n    %%s = arith.addf %%a, %%c : f32\n    linalg.yield %%s : f32\n  } -> tensor<%dx%dxf32>\n"
		"  return %%o : tensor<%dx%dxf32>\n}\n",
		tokens, inputs, outputs, inputs, outputs, tokens, outputs, tokens, outputs, tokens, outputs, tokens, outputs, tokens, inputs, outputs, inputs, tokens, outputs, tokens, outputs,
		tokens, outputs, outputs, tokens, outputs, tokens, outputs, tokens, outputs);
}

/* All passes, with the same numbers evaluated after each from `quantise` on. */
static void expect_same_bits(const struct quant_scheme *scheme, int tokens, int inputs, int outputs)
{
	struct design_case c = {0};
	c.arena = arena_new(&c.guard);
	c.diag.arena = c.arena;
	if (setjmp(c.guard.leave))
		fail_msg("broken invariant: %s", c.guard.message);
	const char *text = linear(c.arena, tokens, inputs, outputs);
	c.module = import_mlir(c.arena, &c.guard, &c.diag, "test.mlir", text, strlen(text));
	struct pass_context context = {.platform = platform_load(c.arena, &c.diag, "u55c"), .quant = scheme};
	char first[RESULTS];
	size_t bytes = (size_t)(tokens * outputs) * sizeof(float);
	assert_true(bytes <= sizeof first);
	for (int p = 0; c.module && p < pass_count; p++) {
		if (!passes[p].run(&context, c.module) || !ir_verify(c.module))
			fail_msg("%s: %s", passes[p].name, case_messages(&c));
		bool quantises = text_same(passes[p].name, "quantise");
		if (p < pass_find("quantise"))
			continue;
		for (int i = 0; quantises && i < eval_inputs(c.module); i++) {
			c.input[i].type = module_main(c.module)->region[0]->argument[i]->type;
			c.input[i].data = arena_alloc(c.arena, tensor_bytes(c.input[i].type) + 1);
			case_fill(&c, &c.input[i]);
		}
		c.inputs = quantises ? eval_inputs(c.module) : c.inputs;
		assert_int_equal(eval_inputs(c.module), c.inputs);
		if (!eval_module(c.module, c.arena, c.inputs, c.input, c.result))
			fail_msg("after %s: %s", passes[p].name, case_messages(&c));
		if (quantises)
			memcpy(first, c.result[0].data, bytes);
		else if (memcmp(first, c.result[0].data, bytes))
			fail_msg("%d x %d -> %d: other bits after %s", tokens, inputs, outputs, passes[p].name);
	}
	arena_free(c.arena);
}

static void test_levels_agree(void **state)
{
	(void)state;
	static const struct quant_scheme four = {.text = "w4a8", .weight = 4, .head = 4, .group = 128}, eight = {.text = "w8a8", .weight = 8, .head = 8, .group = 128};
	static const struct quant_scheme small = {.text = "w4a8,group=32", .weight = 4, .head = 4, .group = 32}, row = {.text = "w4a8,group=row", .weight = 4, .head = 4};
	static const struct quant_scheme token = {.text = "w8a8,activation=token", .weight = 8, .head = 8, .group = 64, .per_token = true};
	expect_same_bits(&four, 1, 256, 64);
	expect_same_bits(&four, 8, 256, 64);
	expect_same_bits(&four, 5, 200, 24);
	expect_same_bits(&four, 1, 140, 75);
	expect_same_bits(&eight, 8, 128, 40);
	expect_same_bits(&small, 3, 96, 16);
	expect_same_bits(&row, 4, 300, 32);
	expect_same_bits(&token, 4, 192, 16);
}

/* Three runs of four numbers, the last one short; then all of one row with one scale. */
static void test_rounding(void **state)
{
	(void)state;
	const float weight[] = {0.5f, -1.0f, 7.0f, 3.5f, 0, 0, 0, 0, 1e-3f, -2e-3f};
	const int64_t trip[] = {3, 4}, stride[] = {4, 1}, limit[] = {4, 1, 10}, shape[] = {10};
	struct type type = {.kind = TYPE_TENSOR, .rank = 1, .shape = shape};
	struct quantised from = {.source = "w", .type = &type, .bits = 4, .axis = 0, .group = 4, .shared = 1, .block = 1,
				 .from = {.dims = 2, .trip = trip, .stride = stride, .conditions = 1, .condition = limit, .host_bytes = 4, .image_bytes = 4}};
	int8_t values[12];
	uint16_t scales[3];
	assert_true(quantised_round(&from, weight, values, scales));
	const int8_t expected[12] = {0, -1, 7, 4, 0, 0, 0, 0, 4, -7, 0, 0};       /* halves go to the even one */
	assert_memory_equal(values, expected, sizeof values);
	assert_true(st_f16_value(scales[0]) == 1.0f && st_f16_value(scales[1]) == 1.0f && fabsf(st_f16_value(scales[2]) - 2e-3f / 7) < 1e-6f);
	from.shared = 3;
	assert_int_equal(quantised_scales(&from), 1);
	assert_true(quantised_round(&from, weight, values, scales));
	assert_true(values[2] == 7 && values[8] == 0 && st_f16_value(scales[0]) == 1.0f);
	const float wrong[10] = {0, 0, 0, 0, 0, INFINITY};
	assert_false(quantised_round(&from, wrong, values, scales));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels_agree),
		cmocka_unit_test(test_rounding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
