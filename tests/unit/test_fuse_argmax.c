/* fuse_argmax: the index of the largest number in one pass, the same as in two, of numbers that
 * are hard to order; and what only looks like it stays as it is. */
#include "design_case.h"
#include "edited_text.h"
#include "ir/kernel.h"

#define ROWS 2
#define NUMBERS 37

/* y[r] = the first i with x[r, i] = the largest of x[r, ...]. */
static const char model[] =
        "#id = affine_map<(r, i) -> (r, i)>\n"
        "#row = affine_map<(r, i) -> (r)>\n"
        "func.func @main(%x: tensor<2x37xf32>) -> tensor<2xi32> {\n"
        "  %least = arith.constant 0xFF800000 : f32\n"
        "  %last = arith.constant 2147483647 : i32\n"
        "  %beyond = arith.constant 37 : i32\n"
        "  %e = tensor.empty() : tensor<2xf32>\n"
        "  %f = linalg.fill ins(%least : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>\n"
        "  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = [\"parallel\", "
        "\"reduction\"]} ins(%x : tensor<2x37xf32>) outs(%f : tensor<2xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32):\n"
        "    %t = arith.maximumf %a, %b : f32\n"
        "    linalg.yield %t : f32\n"
        "  } -> tensor<2xf32>\n"
        "  %g = tensor.empty() : tensor<2xi32>\n"
        "  %h = linalg.fill ins(%last : i32) outs(%g : tensor<2xi32>) -> tensor<2xi32>\n"
        "  %y = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = [\"parallel\", "
        "\"reduction\"]} ins(%x, %m : tensor<2x37xf32>, tensor<2xf32>) outs(%h : tensor<2xi32>) {\n"
        "  ^bb0(%a: f32, %b: f32, %c: i32):\n"
        "    %n = linalg.index 1 : index\n"
        "    %i = arith.index_cast %n : index to i32\n"
        "    %s = arith.cmpf oeq, %a, %b : f32\n"
        "    %k = arith.select %s, %i, %beyond : i32\n"
        "    %t = arith.minsi %k, %c : i32\n"
        "    linalg.yield %t : i32\n"
        "  } -> tensor<2xi32>\n"
        "  return %y : tensor<2xi32>\n"
        "}\n";

struct session {
	struct guard guard;
	struct diag diag;
	struct arena *arena;
	struct module *module;
};

static void begin(struct session *s, const char *from, const char *to)
{
	memset(s, 0, sizeof *s);
	s->arena = arena_new(&s->guard);
	s->diag.arena = s->arena;
	const char *text = edited(s->arena, model, from, to);
	if (setjmp(s->guard.leave))
		fail_msg("broken invariant: %s", s->guard.message);
	s->module = import_mlir(s->arena, &s->guard, &s->diag, "test.mlir", text, strlen(text));
	assert_non_null(s->module);
}

static void run_to(struct session *s, int last)
{
	struct pass_context context = { .platform = platform_load(s->arena, &s->diag, "u55c") };
	for (int p = 0; p <= last; p++)
		assert_true(passes[p].run(&context, s->module) && ir_verify(s->module));
}

static int kernels(const struct session *s)
{
	int count = 0;
	for (const struct op *op = module_main(s->module)->region[0]->first; op; op = op->next)
		count += op->code == OP_KERNEL && kernel_has_reduction(op->kernel);
	return count;
}

static void find_argmax(struct session *s, const float *x, int32_t *y)
{
	const struct type *type = s->module->level == LEVEL_HARDWARE
	        ? attr_item(attr_get(module_main(s->module), KEY_STREAM_INPUTS)->items[0].value,
	                  KEY_TYPE)
	                  ->type
	        : module_main(s->module)->region[0]->argument[0]->type;
	struct tensor input = { type, (void *)(uintptr_t)x };
	struct tensor result;
	assert_true(eval_module(s->module, s->arena, 1, &input, &result));
	memcpy(y, result.data, ROWS * sizeof *y);
}

static void the_first_of_the_largest(void **state)
{
	static const float hard[] = { 0.0f, -0.0f, 1.0f, -1.0f, 1e-45f, -1e-45f, 3.0f, 3.0f, 1e-38f,
		3.4e38f, -3.4e38f, -2.0f, 0x1.fffffep0f, 0x1.fffffcp0f };
	const float inf = __builtin_inff();
	struct session source;
	struct session fused;
	struct session whole;
	(void)state;
	begin(&source, "", "");
	begin(&fused, "", "");
	begin(&whole, "", "");
	run_to(&fused, pass_find("fuse_argmax"));
	run_to(&whole, pass_count - 1);
	assert_int_equal(kernels(&fused), 1);
	for (int trial = 0; trial < 200; trial++) {
		float x[ROWS * NUMBERS];
		int32_t want[ROWS];
		int32_t found[ROWS];
		int32_t built[ROWS];
		int kinds = trial < 150 ? 1 + trial % 14 : 14;
		for (int i = 0; i < ROWS * NUMBERS; i++)
			x[i] = trial == 199          ? -inf
			        : case_random() % 40 ? hard[case_random() % (uint64_t)kinds]
			        : trial % 2          ? inf
			                             : -inf;
		find_argmax(&source, x, want);
		find_argmax(&fused, x, found);
		find_argmax(&whole, x, built);
		assert_memory_equal(found, want, sizeof want);
		assert_memory_equal(built, want, sizeof want);
	}
	arena_free(source.arena);
	arena_free(fused.arena);
	arena_free(whole.arena);
}

static void stays(const char *from, const char *to)
{
	struct session s;
	begin(&s, from, to);
	run_to(&s, pass_find("fuse_argmax"));
	assert_int_equal(kernels(&s), 2);
	arena_free(s.arena);
}

static void what_only_looks_like_it_stays(void **state)
{
	(void)state;
	stays("arith.cmpf oeq", "arith.cmpf oge");
	stays("arith.constant 37 : i32", "arith.constant 36 : i32");
	stays("arith.constant 2147483647", "arith.constant 5");
	stays("arith.constant 0xFF800000", "arith.constant 0.0");
	stays("arith.maximumf", "arith.minimumf");
	stays("linalg.index 1", "linalg.index 0");
	stays("    %s = arith.cmpf oeq, %a, %b",
	        "    %q = arith.addf %a, %a : f32\n    %s = arith.cmpf oeq, %q, %b");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_first_of_the_largest),
		cmocka_unit_test(what_only_looks_like_it_stays) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
