/* Tensor-level passes: after each one the module verifies, reads back as printed, and computes
 * what it computed before. */
#include "random_graph.h"
#include "layers/layers_passes.h"
#include "fusion/fusion_passes.h"
#include "tensor/tensor_passes.h"
#include "import/import.h"
#include "options/pass_context.h"
#include "evaluate/eval.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct session {
	struct guard guard;
	struct diag diag;
	struct arena *arena;
	struct module *module;
	struct tensor *input, *want;
	int results;
	uint64_t state;
};

typedef bool pass_function(struct pass_context *context, struct module *module);
static pass_function *const all_passes[] = { name_arguments, fold_views, demote_f64, merge_common,
	split_by_consumer, fuse_elementwise, roll_layers };
enum { PASSES = sizeof all_passes / sizeof *all_passes };

static double uniform(struct session *s)
{
	s->state = s->state * 6364136223846793005u + 1442695040888963407u;
	return (double)(s->state >> 11) / 9007199254740992.0;
}

static void fill(struct session *s, struct tensor *tensor)
{
	const struct type *scalar = type_scalar(tensor->type);
	for (int64_t i = 0; i < type_elements(tensor->type); i++) {
		if (scalar->kind == TYPE_INTEGER)
			((int64_t *)tensor->data)[i] = (int64_t)(uniform(s) * 3);
		else
			((float *)tensor->data)[i] = (float)(uniform(s) - 0.4);
	}
}

static const char *messages(struct session *s)
{
	struct text text = text_new(s->arena);
	diag_print(&s->diag, &text);
	return text.data ? text.data : "";
}

static void start(struct session *s, const char *text)
{
	memset(s, 0, sizeof *s);
	s->arena = arena_new(&s->guard);
	s->diag.arena = s->arena;
	s->state = 7;
	if (setjmp(s->guard.leave))
		fail_msg("left: %s", s->guard.message);
	s->module = import_mlir(s->arena, &s->guard, &s->diag, "test.mlir", text, strlen(text));
	if (!s->module)
		fail_msg("not read: %s\n%s", messages(s), text);
	int inputs = eval_inputs(s->module);
	s->input = ARENA_ARRAY(s->arena, struct tensor, inputs);
	for (int i = 0; i < inputs; i++) {
		s->input[i].type = module_main(s->module)->region[0]->argument[i]->type;
		s->input[i].data = arena_alloc(s->arena, tensor_bytes(s->input[i].type));
		fill(s, &s->input[i]);
	}
	s->results = eval_results(s->module);
	s->want = ARENA_ARRAY(s->arena, struct tensor, s->results);
	if (!eval_module(s->module, s->arena, inputs, s->input, s->want))
		fail_msg("not evaluated: %s\n%s", messages(s), text);
}

static void finish(struct session *s)
{
	arena_free(s->arena);
}

static double element(const struct tensor *tensor, int64_t i)
{
	const struct type *scalar = type_scalar(tensor->type);
	if (scalar->kind == TYPE_INTEGER)
		return (double)((const int64_t *)tensor->data)[i];
	return scalar->width == 64 ? ((const double *)tensor->data)[i]
	                           : (double)((const float *)tensor->data)[i];
}

/* tolerance 0: the same bits, but for the sign and payload of NaN. */
static void expect_same_values(struct session *s, double tolerance, const char *text)
{
	struct tensor *got = ARENA_ARRAY(s->arena, struct tensor, s->results);
	if (!eval_module(s->module, s->arena, eval_inputs(s->module), s->input, got))
		fail_msg("not evaluated: %s\n%s", messages(s), text);
	for (int r = 0; r < s->results; r++) {
		assert_int_equal(type_elements(got[r].type), type_elements(s->want[r].type));
		for (int64_t i = 0; i < type_elements(got[r].type); i++) {
			double a = element(&s->want[r], i);
			double b = element(&got[r], i);
			bool same = (isnan(a) && isnan(b)) ||
			        (a == b && signbit(a) == signbit(b)) ||
			        fabs(a - b) <= tolerance * (1 + fabs(a));
			if (!same)
				fail_msg("result %d, element %d: %.9g, not %.9g\n%s", r, (int)i, b,
				        a, text);
		}
	}
}

static void expect_round_trip(struct session *s)
{
	struct text first = text_new(s->arena);
	struct text second = text_new(s->arena);
	ir_print(s->module, &first);
	struct module *again =
	        import_mlir(s->arena, &s->guard, &s->diag, "dump", first.data, first.size);
	if (!again)
		fail_msg("dump not read: %s\n%s", messages(s), first.data);
	ir_print(again, &second);
	assert_string_equal(first.data, second.data);
}

#define ON_U55C(s) { .platform = platform_load((s)->arena, &(s)->diag, "u55c") }

/* Runs the first `count` passes and checks after each. */
static void run_passes(struct session *s, const char *text, int count, double tolerance)
{
	start(s, text);
	struct pass_context context = ON_U55C(s);
	for (int p = 0; p < count; p++) {
		if (!all_passes[p](&context, s->module))
			fail_msg("pass %d refused: %s\n%s", p, messages(s), text);
		if (!ir_verify(s->module))
			fail_msg("pass %d broke the module: %s\n%s", p, messages(s), text);
		expect_round_trip(s);
		expect_same_values(s, tolerance, text);
	}
}

static int count_ops(struct block *block, enum op_code code)
{
	int count = 0;
	for (struct op *op = block->first; op; op = op->next)
		count += (op->code == code) + (op->region[0] ? count_ops(op->region[0], code) : 0);
	return count;
}

static int kernels(struct session *s)
{
	return count_ops(module_main(s->module)->region[0], OP_KERNEL);
}

static void expect_kernels(const char *text, int count, double tolerance)
{
	struct session s;
	run_passes(&s, text, PASSES, tolerance);
	assert_int_equal(kernels(&s), count);
	finish(&s);
}

static void expect_refused(const char *text, const char *part, int line)
{
	struct session s;
	start(&s, text);
	struct pass_context context = ON_U55C(&s);
	bool ok = true;
	for (int p = 0; p < PASSES && ok; p++)
		ok = all_passes[p](&context, s.module);
	assert_false(ok);
	assert_int_equal(s.diag.count, 1);
	if (!strstr(s.diag.entry[0].message, part))
		fail_msg("\"%s\" does not say \"%s\"", s.diag.entry[0].message, part);
	assert_non_null(s.diag.entry[0].note);
	assert_int_equal(s.diag.entry[0].location.line, line);
	finish(&s);
}

#define ZERO "  %zero = arith.constant 0.0 : f32\n"
#define FORMAT_ZERO "  %%zero = arith.constant 0.0 : f32\n"

static void test_matmul_bias_gelu_is_one_kernel(void **state)
{
	(void)state;
	expect_kernels("func.func @main(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>, %b: "
	               "tensor<8xf32>) -> tensor<4x8xf32> {\n" ZERO
	               "  %e = tensor.empty() : tensor<4x8xf32>\n"
	               "  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> "
	               "tensor<4x8xf32>\n"
	               "  %m = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x8xf32>) "
	               "outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>\n"
	               "  %bb = linalg.broadcast ins(%b : tensor<8xf32>) outs(%e : "
	               "tensor<4x8xf32>) dimensions = [0]\n"
	               "  %s = linalg.add ins(%m, %bb : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e "
	               ": tensor<4x8xf32>) -> tensor<4x8xf32>\n"
	               "  %t = linalg.tanh ins(%s : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> "
	               "tensor<4x8xf32>\n"
	               "  %g = linalg.mul ins(%s, %t : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : "
	               "tensor<4x8xf32>) -> tensor<4x8xf32>\n"
	               "  return %g : tensor<4x8xf32>\n}\n",
	        1, 0);
}

/* What makes the rows of which one is chosen is what it would be if all were read: the choice
 * stands with the sum. */
static void test_a_choice_stands_with_its_sum(void **state)
{
	struct session s;
	(void)state;
	run_passes(&s,
	        "func.func @main(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>, %r: tensor<4x8xf32>, "
	        "%c: tensor<4xi1>) -> tensor<8xf32> {\n" ZERO
	        "  %e = tensor.empty() : tensor<4x8xf32>\n"
	        "  %e8 = tensor.empty() : tensor<8xf32>\n"
	        "  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> "
	        "tensor<4x8xf32>\n"
	        "  %f8 = linalg.fill ins(%zero : f32) outs(%e8 : tensor<8xf32>) -> tensor<8xf32>\n"
	        "  %m = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%f : "
	        "tensor<4x8xf32>) -> tensor<4x8xf32>\n"
	        "  %a = linalg.add ins(%m, %r : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : "
	        "tensor<4x8xf32>) -> tensor<4x8xf32>\n"
	        "  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, "
	        "j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", "
	        "\"parallel\"]} ins(%c, %a : tensor<4xi1>, tensor<4x8xf32>) outs(%e : "
	        "tensor<4x8xf32>) {\n"
	        "  ^bb0(%which: i1, %in: f32, %out: f32):\n"
	        "    %chosen = arith.select %which, %in, %zero : f32\n"
	        "    linalg.yield %chosen : f32\n"
	        "  } -> tensor<4x8xf32>\n"
	        "  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, "
	        "affine_map<(i, j) -> (j)>], iterator_types = [\"reduction\", \"parallel\"]} "
	        "ins(%s : tensor<4x8xf32>) outs(%f8 : tensor<8xf32>) {\n"
	        "  ^bb0(%in: f32, %out: f32):\n"
	        "    %sum = arith.addf %in, %out : f32\n"
	        "    linalg.yield %sum : f32\n"
	        "  } -> tensor<8xf32>\n"
	        "  return %y : tensor<8xf32>\n}\n",
	        PASSES, 0);
	struct op *first = module_main(s.module)->region[0]->first;
	while (first->code != OP_KERNEL)
		first = first->next;
	assert_int_equal(kernels(&s), 2);
	assert_int_equal(first->operands, 3);
	assert_true(kernel_has_reduction(first->kernel));
	finish(&s);
}

/* tanh(x) has two readers, one of which repeats it: it stays a kernel; exp(tanh) joins the sum. */
static void test_work_is_not_repeated(void **state)
{
	(void)state;
	expect_kernels(
	        "func.func @main(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>) -> (tensor<4x8xf32>, "
	        "tensor<4xf32>) {\n" ZERO "  %e = tensor.empty() : tensor<4x6xf32>\n"
	        "  %t = linalg.tanh ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> "
	        "tensor<4x6xf32>\n"
	        "  %e2 = tensor.empty() : tensor<4x8xf32>\n"
	        "  %f = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x8xf32>) -> "
	        "tensor<4x8xf32>\n"
	        "  %m = linalg.matmul ins(%t, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%f : "
	        "tensor<4x8xf32>) -> tensor<4x8xf32>\n"
	        "  %x2 = linalg.exp ins(%t : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> "
	        "tensor<4x6xf32>\n"
	        "  %e3 = tensor.empty() : tensor<4xf32>\n"
	        "  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<4xf32>) -> tensor<4xf32>\n"
	        "  %r = linalg.reduce ins(%x2 : tensor<4x6xf32>) outs(%f3 : tensor<4xf32>) "
	        "dimensions = [1]\n"
	        "    (%a: f32, %o: f32) { %q = arith.addf %a, %o : f32 linalg.yield %q : f32 }\n"
	        "  return %m, %r : tensor<4x8xf32>, tensor<4xf32>\n}\n",
	        3, 0);
}

/* x - sum(x) is recomputed in both of its readers, the sum of its tanh and a product: x is buffered
 * anyway, and nothing else is.  A value without a sum is not recomputed. */
static void test_statistics_are_repeated(void **state)
{
	(void)state;
	for (int own = 0; own < 2; own++) {
		char text[2048];
		snprintf(text, sizeof text,
		        "func.func @main(%%x: tensor<4x6xf32>, %%v: tensor<4xf32>) -> "
		        "(tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>) {\n" FORMAT_ZERO
		        "  %%e = tensor.empty() : tensor<4x6xf32>\n  %%e1 = tensor.empty() : "
		        "tensor<4xf32>\n"
		        "  %%f = linalg.fill ins(%%zero : f32) outs(%%e1 : tensor<4xf32>) -> "
		        "tensor<4xf32>\n"
		        "  %%s = linalg.reduce ins(%%x : tensor<4x6xf32>) outs(%%f : "
		        "tensor<4xf32>) dimensions = [1]\n"
		        "    (%%a: f32, %%o: f32) { %%q = arith.addf %%a, %%o : f32 linalg.yield "
		        "%%q : f32 }\n"
		        "  %%b = linalg.broadcast ins(%s : tensor<4xf32>) outs(%%e : "
		        "tensor<4x6xf32>) dimensions = [1]\n"
		        "  %%d = linalg.sub ins(%%x, %%b : tensor<4x6xf32>, tensor<4x6xf32>) "
		        "outs(%%e : tensor<4x6xf32>) -> tensor<4x6xf32>\n"
		        "  %%t = linalg.tanh ins(%%d : tensor<4x6xf32>) outs(%%e : "
		        "tensor<4x6xf32>) -> tensor<4x6xf32>\n"
		        "  %%r = linalg.reduce ins(%%t : tensor<4x6xf32>) outs(%%f : "
		        "tensor<4xf32>) dimensions = [1]\n"
		        "    (%%a: f32, %%o: f32) { %%q = arith.addf %%a, %%o : f32 linalg.yield "
		        "%%q : f32 }\n"
		        "  %%m = linalg.mul ins(%%d, %%x : tensor<4x6xf32>, tensor<4x6xf32>) "
		        "outs(%%e : tensor<4x6xf32>) -> tensor<4x6xf32>\n"
		        "  return %%m, %%r, %%s : tensor<4x6xf32>, tensor<4xf32>, "
		        "tensor<4xf32>\n}\n",
		        own ? "%s" : "%v");
		expect_kernels(text, own ? 3 : 4, 0);
	}
}

/* The halves of a rotary embedding's tables are equal: one is computed, and both readers of the
 * whole read it. */
static void test_equal_halves_are_one(void **state)
{
	(void)state;
	struct session s;
	run_passes(&s,
	        "func.func @main(%x: tensor<8xf32>, %y: tensor<3x16xf32>) -> (tensor<3x16xf32>, "
	        "tensor<3x16xf32>) {\n"
	        "  %e8 = tensor.empty() : tensor<8xf32>\n  %e16 = tensor.empty() : "
	        "tensor<16xf32>\n  %e = tensor.empty() : tensor<3x16xf32>\n"
	        "  %h = linalg.exp ins(%x : tensor<8xf32>) outs(%e8 : tensor<8xf32>) -> "
	        "tensor<8xf32>\n"
	        "  %c = tensor.concat dim(0) %h, %h : (tensor<8xf32>, tensor<8xf32>) -> "
	        "tensor<16xf32>\n"
	        "  %t = linalg.tanh ins(%c : tensor<16xf32>) outs(%e16 : tensor<16xf32>) -> "
	        "tensor<16xf32>\n"
	        "  %b = linalg.broadcast ins(%t : tensor<16xf32>) outs(%e : tensor<3x16xf32>) "
	        "dimensions = [0]\n"
	        "  %p = linalg.mul ins(%y, %b : tensor<3x16xf32>, tensor<3x16xf32>) outs(%e : "
	        "tensor<3x16xf32>) -> tensor<3x16xf32>\n"
	        "  %q = linalg.add ins(%y, %b : tensor<3x16xf32>, tensor<3x16xf32>) outs(%e : "
	        "tensor<3x16xf32>) -> tensor<3x16xf32>\n"
	        "  return %p, %q : tensor<3x16xf32>, tensor<3x16xf32>\n}\n",
	        PASSES, 0);
	assert_int_equal(kernels(&s), 3);
	for (struct op *op = module_main(s.module)->region[0]->first; op; op = op->next)
		if (op->code == OP_KERNEL)
			assert_int_equal(type_elements(op->result[0]->type),
			        body_has(&op->kernel->update, OP_TANH) ? 8 : 48);
	finish(&s);
}

/* The consumer reads tanh(x) in two orders: inlined it would be computed twice. */
static void test_two_orders_keep_a_kernel(void **state)
{
	(void)state;
	expect_kernels("func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {\n  %e = "
	               "tensor.empty() : tensor<4x4xf32>\n"
	               "  %t = linalg.tanh ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> "
	               "tensor<4x4xf32>\n"
	               "  %p = linalg.transpose ins(%t : tensor<4x4xf32>) outs(%e : "
	               "tensor<4x4xf32>) permutation = [1, 0]\n"
	               "  %s = linalg.add ins(%t, %p : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : "
	               "tensor<4x4xf32>) -> tensor<4x4xf32>\n"
	               "  return %s : tensor<4x4xf32>\n}\n",
	        2, 0);
}

/* A returned transpose of a product that another kernel reads, too: the product is made
 * transposed. */
static void test_returned_order_is_made_at_once(void **state)
{
	(void)state;
	expect_kernels(
	        "func.func @main(%x: tensor<3x4xf32>, %w: tensor<4x5xf32>) -> (tensor<5x3xf32>, "
	        "tensor<3xf32>) {\n" ZERO "  %e = tensor.empty() : tensor<3x5xf32>\n"
	        "  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5xf32>) -> "
	        "tensor<3x5xf32>\n"
	        "  %m = linalg.matmul ins(%x, %w : tensor<3x4xf32>, tensor<4x5xf32>) outs(%f : "
	        "tensor<3x5xf32>) -> tensor<3x5xf32>\n"
	        "  %g = tensor.empty() : tensor<5x3xf32>\n"
	        "  %t = linalg.transpose ins(%m : tensor<3x5xf32>) outs(%g : tensor<5x3xf32>) "
	        "permutation = [1, 0]\n"
	        "  %h = tensor.empty() : tensor<3xf32>\n"
	        "  %z = linalg.fill ins(%zero : f32) outs(%h : tensor<3xf32>) -> tensor<3xf32>\n"
	        "  %r = linalg.reduce ins(%m : tensor<3x5xf32>) outs(%z : tensor<3xf32>) "
	        "dimensions = [1]\n"
	        "    (%a: f32, %o: f32) { %q = arith.addf %a, %o : f32 linalg.yield %q : f32 }\n"
	        "  return %t, %r : tensor<5x3xf32>, tensor<3xf32>\n}\n",
	        2, 0);
}

/* Padding cannot be strides of a window, so it is one copy; the bias is added after the sum. */
static void test_convolution(void **state)
{
	(void)state;
	expect_kernels(
	        "func.func @main(%x: tensor<1x2x5x5xf32>, %w: tensor<3x2x3x3xf32>, %b: "
	        "tensor<3xf32>) -> tensor<1x3x3x3xf32> {\n" ZERO
	        "  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {\n  ^bb0(%i: index, %j: "
	        "index, %k: index, %l: index):\n"
	        "    tensor.yield %zero : f32\n  } : tensor<1x2x5x5xf32> to tensor<1x2x7x7xf32>\n"
	        "  %e = tensor.empty() : tensor<1x3x3x3xf32>\n"
	        "  %i = linalg.broadcast ins(%b : tensor<3xf32>) outs(%e : tensor<1x3x3x3xf32>) "
	        "dimensions = [0, 2, 3]\n"
	        "  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = "
	        "dense<2> : vector<2xi64>}\n"
	        "    ins(%p, %w : tensor<1x2x7x7xf32>, tensor<3x2x3x3xf32>) outs(%i : "
	        "tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>\n"
	        "  return %c : tensor<1x3x3x3xf32>\n}\n",
	        2, 1e-6);
}

/* The index of the maximum is not used; its kernel is never made. */
static void test_dead_result_is_dropped(void **state)
{
	(void)state;
	static const char text[] =
	        "func.func @main(%%x: tensor<3x5xf32>) -> tensor<3x%s> {\n" FORMAT_ZERO
	        "  %%n = arith.constant 0 : i64\n"
	        "  %%e = tensor.empty() : tensor<3xf32>\n  %%f = linalg.fill ins(%%zero : f32) "
	        "outs(%%e : tensor<3xf32>) -> tensor<3xf32>\n"
	        "  %%d = tensor.empty() : tensor<3xi64>\n  %%g = linalg.fill ins(%%n : i64) "
	        "outs(%%d : tensor<3xi64>) -> tensor<3xi64>\n"
	        "  %%r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, "
	        "affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],"
	        " iterator_types = [\"parallel\", \"reduction\"]} ins(%%x : tensor<3x5xf32>) "
	        "outs(%%f, %%g : tensor<3xf32>, tensor<3xi64>) {\n"
	        "  ^bb0(%%a: f32, %%m: f32, %%o: i64):\n    %%i = linalg.index 1 : index\n    %%k "
	        "= arith.index_cast %%i : index to i64\n"
	        "    %%v = arith.maximumf %%a, %%m : f32\n    %%c = arith.cmpf ogt, %%a, %%m : "
	        "f32\n    %%s = arith.select %%c, %%k, %%o : i64\n"
	        "    linalg.yield %%v, %%s : f32, i64\n  } -> (tensor<3xf32>, tensor<3xi64>)\n  "
	        "return %%r#%d : tensor<3x%s>\n}\n";
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	expect_kernels(text_format(arena, text, "f32", 0, "f32"), 1, 0);
	expect_refused(text_format(arena, text, "i64", 1, "i64"), "another result", 8);
	arena_free(arena);
}

/* Halves swapped and put together, cut out of a reshaped transpose: one kernel reads it all in
 * place. */
static void test_views_cost_nothing(void **state)
{
	(void)state;
	expect_kernels("func.func @main(%x: tensor<4x12xf32>) -> tensor<3x4x4xf32> {\n"
	               "  %a = tensor.expand_shape %x [[0], [1, 2]] output_shape [4, 3, 4] : "
	               "tensor<4x12xf32> into tensor<4x3x4xf32>\n"
	               "  %e = tensor.empty() : tensor<3x4x4xf32>\n"
	               "  %t = linalg.transpose ins(%a : tensor<4x3x4xf32>) outs(%e : "
	               "tensor<3x4x4xf32>) permutation = [1, 0, 2]\n"
	               "  %l = tensor.extract_slice %t[0, 0, 0] [3, 4, 2] [1, 1, 1] : "
	               "tensor<3x4x4xf32> to tensor<3x4x2xf32>\n"
	               "  %r = tensor.extract_slice %t[0, 0, 2] [3, 4, 2] [1, 1, 1] : "
	               "tensor<3x4x4xf32> to tensor<3x4x2xf32>\n"
	               "  %e2 = tensor.empty() : tensor<3x4x2xf32>\n"
	               "  %n = linalg.negf ins(%r : tensor<3x4x2xf32>) outs(%e2 : "
	               "tensor<3x4x2xf32>) -> tensor<3x4x2xf32>\n"
	               "  %c = tensor.concat dim(2) %n, %l : (tensor<3x4x2xf32>, "
	               "tensor<3x4x2xf32>) -> tensor<3x4x4xf32>\n"
	               "  %s = linalg.add ins(%c, %t : tensor<3x4x4xf32>, tensor<3x4x4xf32>) "
	               "outs(%e : tensor<3x4x4xf32>) -> tensor<3x4x4xf32>\n"
	               "  return %s : tensor<3x4x4xf32>\n}\n",
	        1, 0);
}

static void test_powers_become_products(void **state)
{
	(void)state;
	struct session s;
	static const char text[] =
	        "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n  %k = arith.constant 3 : "
	        "i64\n  %e = tensor.empty() : tensor<8xf32>\n"
	        "  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> "
	        "(i)>], iterator_types = [\"parallel\"]}"
	        " ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {\n  ^bb0(%a: f32, %o: f32):\n  "
	        "  %p = math.fpowi %a, %k : f32, i64\n"
	        "    linalg.yield %p : f32\n  } -> tensor<8xf32>\n  return %r : tensor<8xf32>\n}\n";
	run_passes(&s, text, PASSES, 1e-6);
	const struct body *body = &module_main(s.module)->region[0]->first->kernel->update;
	for (int i = 0; i < body->count; i++)
		assert_true(body->node[i].kind == NODE_OPERAND || body->node[i].code == OP_MULF);
	finish(&s);
}

static void test_f64_is_demoted(void **state)
{
	(void)state;
	struct session s;
	static const char text[] =
	        "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n  %k = arith.constant 0.1 "
	        ": f64\n  %e = tensor.empty() : tensor<8xf32>\n"
	        "  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> "
	        "(i)>], iterator_types = [\"parallel\"]}"
	        " ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {\n  ^bb0(%a: f32, %o: f32):\n  "
	        "  %w = arith.extf %a : f32 to f64\n"
	        "    %p = arith.addf %w, %k : f64\n    %n = arith.truncf %p : f64 to f32\n    "
	        "linalg.yield %n : f32\n  } -> tensor<8xf32>\n"
	        "  return %r : tensor<8xf32>\n}\n";
	run_passes(&s, text, PASSES, 1e-6);
	const struct body *body = &module_main(s.module)->region[0]->first->kernel->update;
	assert_int_equal(body->count, 3);
	for (int i = 0; i < body->count; i++)
		assert_true(body->node[i].type->width == 32);
	finish(&s);
}

/* One matmul of `rows` rows; of its 12 columns each of three readers takes `part`: the sum of
 * each row, or its exponentials. */
static void expect_slices(int rows, int part, bool sums, int count)
{
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	struct text text = text_new(arena);
	const char *matrix = text_format(arena, "tensor<%dx12xf32>", rows);
	const char *slice = text_format(arena, "tensor<%dx%dxf32>", rows, part);
	const char *result = sums ? text_format(arena, "tensor<%dxf32>", rows) : slice;
	text_add(&text,
	        "func.func @main(%%x: tensor<%dx4xf32>, %%w: tensor<4x12xf32>) -> (%s, %s, %s) "
	        "{\n" FORMAT_ZERO,
	        rows, result, result, result);
	text_add(&text,
	        "  %%e = tensor.empty() : %s\n  %%f = linalg.fill ins(%%zero : f32) outs(%%e : %s) "
	        "-> %s\n"
	        "  %%m = linalg.matmul ins(%%x, %%w : tensor<%dx4xf32>, tensor<4x12xf32>) outs(%%f "
	        ": %s) -> %s\n"
	        "  %%g = tensor.empty() : %s\n  %%h = linalg.fill ins(%%zero : f32) outs(%%g : %s) "
	        "-> %s\n",
	        matrix, matrix, matrix, rows, matrix, matrix, result, result, result);
	for (int i = 0; i < 3; i++) {
		text_add(&text,
		        "  %%s%d = tensor.extract_slice %%m[0, %d] [%d, %d] [1, 1] : %s to %s\n", i,
		        4 * i, rows, part, matrix, slice);
		if (sums)
			text_add(&text,
			        "  %%r%d = linalg.reduce ins(%%s%d : %s) outs(%%h : %s) dimensions "
			        "= [1]\n"
			        "    (%%a: f32, %%o: f32) { %%q = arith.addf %%a, %%o : f32 "
			        "linalg.yield %%q : f32 }\n",
			        i, i, slice, result);
		else
			text_add(&text,
			        "  %%r%d = linalg.exp ins(%%s%d : %s) outs(%%g : %s) -> %s\n", i, i,
			        slice, result, result);
	}
	text_add(&text, "  return %%r0, %%r1, %%r2 : %s, %s, %s\n}\n", result, result, result);
	expect_kernels(text.data, count, 0);
	arena_free(arena);
}

static void test_slices_split_their_producer(void **state)
{
	(void)state;
	expect_slices(2, 4, true, 6); /* three matmuls of a third */
	expect_slices(1, 4, true, 4); /* a vector's parts come one after the other */
	expect_slices(1, 3, true, 6); /* what nobody reads is not computed */
	/* elementwise readers are part of the matmul of their slice */
	expect_slices(1, 4, false, 3);
}

/* softmax without its maximum, times v; `summed` is what the divisor adds up. */
#define SOFTMAX(summed)                                                                            \
	"func.func @main(%x: tensor<4x6xf32>, %v: tensor<6x8xf32>) -> tensor<4x8xf32> {\n" ZERO    \
	"  %e = tensor.empty() : tensor<4x6xf32>\n"                                                \
	"  %p = linalg.exp ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> "               \
	"tensor<4x6xf32>\n  %g = tensor.empty() : tensor<4xf32>\n"                                 \
	"  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<4xf32>) -> tensor<4xf32>\n"          \
	"  %s = linalg.reduce ins(" summed                                                         \
	" : tensor<4x6xf32>) outs(%h : tensor<4xf32>) dimensions = [1]\n"                          \
	"    (%a: f32, %o: f32) { %q = arith.addf %a, %o : f32 linalg.yield %q : f32 }\n"          \
	"  %b = linalg.broadcast ins(%s : tensor<4xf32>) outs(%e : tensor<4x6xf32>) dimensions = " \
	"[1]\n"                                                                                    \
	"  %d = linalg.div ins(%p, %b : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : "              \
	"tensor<4x6xf32>) -> tensor<4x6xf32>\n"                                                    \
	"  %r = tensor.empty() : tensor<4x8xf32>\n  %f = linalg.fill ins(%zero : f32) outs(%r : "  \
	"tensor<4x8xf32>) -> tensor<4x8xf32>\n"                                                    \
	"  %m = linalg.matmul ins(%d, %v : tensor<4x6xf32>, tensor<6x8xf32>) outs(%f : "           \
	"tensor<4x8xf32>) -> tensor<4x8xf32>\n"                                                    \
	"  return %m : tensor<4x8xf32>\n}\n"

static bool divides_late(const struct session *s)
{
	for (const struct op *op = module_main(s->module)->region[0]->first; op; op = op->next)
		for (int n = 0; op->code == OP_KERNEL && n < op->kernel->post.count; n++)
			if (op->kernel->post.node[n].code == OP_DIVF)
				return true;
	return false;
}

static bool sinks(const char *text)
{
	struct session s;
	struct pass_context context = { 0 };
	run_passes(&s, text, PASSES, 0);
	assert_true(defer_softmax_division(&context, s.module) && ir_verify(s.module));
	expect_round_trip(&s);
	expect_same_values(&s, 1e-5, text);
	bool late = divides_late(&s);
	finish(&s);
	return late;
}

/* The quotient moves into the product only where it divides exponentials by their own sum. */
static void test_quotients_sink(void **state)
{
	(void)state;
	assert_true(sinks(SOFTMAX("%p")));
	assert_false(sinks(SOFTMAX("%x")));
}

/* An elementwise kernel with this body over %a; %half, %one, %two and %rate are numbers. */
#define ELEMENTWISE(body)                                                                          \
	"func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {\n  %e = tensor.empty() : "        \
	"tensor<64xf32>\n"                                                                         \
	"  %half = arith.constant 0.5 : f32\n  %one = arith.constant 1.0 : f32\n  %two = "         \
	"arith.constant 2.0 : f32\n  %rate = arith.constant 31.9 : f32\n"                          \
	"  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> "       \
	"(i)>], iterator_types = [\"parallel\"]}\n"                                                \
	"    ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {\n  ^bb0(%a: f32, %o: f32):\n   " \
	" %u = arith.mulf %a, %rate : f32\n" body                                                  \
	"    linalg.yield %r : f32\n  } -> tensor<64xf32>\n"                                       \
	"  return %y : tensor<64xf32>\n}\n"

static int operations(const struct session *s, enum op_code code)
{
	int count = 0;
	for (const struct op *op = module_main(s->module)->region[0]->first; op; op = op->next)
		for (int n = 0; op->code == OP_KERNEL && n < op->kernel->update.count; n++)
			count += op->kernel->update.node[n].kind == NODE_OP &&
			        op->kernel->update.node[n].code == code;
	return count;
}

/* Operations of each kind that are left of the body. */
static void expect_folded(const char *text, int tanhs, int exps, int products, int quotients)
{
	struct session s;
	run_passes(&s, text, PASSES - 1, 0);
	assert_true(
	        rewrite_gelu_silu(&(struct pass_context){ 0 }, s.module) && ir_verify(s.module));
	expect_round_trip(&s);
	expect_same_values(&s, 4e-7, text);
	assert_int_equal(operations(&s, OP_TANH), tanhs);
	assert_int_equal(operations(&s, OP_EXP), exps);
	assert_int_equal(operations(&s, OP_MULF), products);
	assert_int_equal(operations(&s, OP_DIVF), quotients);
	finish(&s);
}

static void test_sigmoids_fold(void **state)
{
	(void)state;
	expect_folded(
	        ELEMENTWISE("    %t = math.tanh %u : f32\n    %s = arith.addf %one, %t : f32\n    "
	                    "%h = arith.mulf %half, %a : f32\n    %r = arith.mulf %h, %s : f32\n"),
	        0, 1, 1, 1);
	expect_folded(ELEMENTWISE("    %n = arith.negf %u : f32\n    %p = math.exp %n : f32\n    "
	                          "%s = arith.addf %p, %one : f32\n    %g = arith.divf %one, %s : "
	                          "f32\n    %r = arith.mulf %a, %g : f32\n"),
	        0, 1, 1, 1);
	/* the tanh is read twice */
	expect_folded(ELEMENTWISE("    %t = math.tanh %u : f32\n    %s = arith.addf %t, %one : "
	                          "f32\n    %r = arith.mulf %s, %t : f32\n"),
	        1, 0, 2, 0);
	expect_folded(
	        ELEMENTWISE("    %t = math.tanh %u : f32\n    %r = arith.addf %t, %two : f32\n"), 1,
	        0, 1, 0);
	expect_folded(
	        ELEMENTWISE("    %p = math.exp %u : f32\n    %s = arith.addf %p, %two : f32\n    "
	                    "%g = arith.divf %one, %s : f32\n    %r = arith.mulf %a, %g : f32\n"),
	        0, 1, 2, 1);
}

/* Limits of a rounded number to which something is added, in order. */
#define ROUNDING(first, low, second, high, to, from)                                               \
	ELEMENTWISE(                                                                               \
	        "    %n = math.roundeven %u : f32\n    %p = arith.constant 13.0 : f32\n    "       \
	        "%z = arith.addf %p, %n : f32\n    %low = arith.constant " low " : f32\n"          \
	        "    %high = arith.constant " high " : f32\n    %b = arith." first                 \
	        " %z, %low : f32\n    %d = arith." second " %b, %high : f32\n    %i = arith." to   \
	        " %d : f32 to i8\n    %r = arith." from " %i : i8 to f32\n")

static void expect_rounding(const char *text, bool fused)
{
	struct session s;
	run_passes(&s, text, PASSES - 1, 0);
	assert_true(fuse_rounding(&(struct pass_context){ 0 }, s.module) && ir_verify(s.module));
	expect_same_values(&s, 0, text);
	assert_int_equal(operations(&s, OP_ROUNDEVEN), !fused);
	assert_int_equal(operations(&s, OP_ROUND_SATURATE), fused);
	finish(&s);
}

static void test_rounding_to_few_bits(void **state)
{
	(void)state;
	expect_rounding(
	        ROUNDING("maximumf", "-20.0", "minimumf", "21.0", "fptosi", "sitofp"), true);
	expect_rounding(ROUNDING("minnumf", "40.0", "maxnumf", "0.0", "fptoui", "uitofp"), true);
	/* less than the type has, a limit between integers, two of one side */
	expect_rounding(
	        ROUNDING("maximumf", "-1.0", "minimumf", "40.0", "fptoui", "uitofp"), false);
	expect_rounding(ROUNDING("maximumf", "0.5", "minimumf", "40.0", "fptoui", "uitofp"), false);
	expect_rounding(
	        ROUNDING("maximumf", "-20.0", "maximumf", "2.0", "fptosi", "sitofp"), false);
}

/* How many quotients are left of the body; all numbers have the same bits. */
static int quotients_left(const char *text)
{
	struct session s;
	run_passes(&s, text, PASSES - 1, 0);
	int count = operations(&s, OP_DIVF);
	finish(&s);
	return count;
}

static void test_quotients_by_powers_of_two(void **state)
{
	(void)state;
	assert_int_equal(quotients_left(ELEMENTWISE("    %r = arith.divf %u, %two : f32\n")), 0);
	assert_int_equal(quotients_left(ELEMENTWISE("    %n = arith.constant -1.024e3 : f32\n    "
	                                            "%r = arith.divf %u, %n : f32\n")),
	        0);
	/* 2^126 */
	assert_int_equal(quotients_left(ELEMENTWISE("    %n = arith.constant 0x7E800000 : f32\n    "
	                                            "%r = arith.divf %u, %n : f32\n")),
	        0);
	/* 2^-127 is subnormal */
	assert_int_equal(quotients_left(ELEMENTWISE("    %n = arith.constant 0x7F000000 : f32\n    "
	                                            "%r = arith.divf %u, %n : f32\n")),
	        1);
	assert_int_equal(
	        quotients_left(ELEMENTWISE(
	                "    %n = arith.constant 0.0 : f32\n    %r = arith.divf %u, %n : f32\n")),
	        1);
	assert_int_equal(quotients_left(ELEMENTWISE("    %r = arith.divf %u, %rate : f32\n")), 1);
	assert_int_equal(quotients_left(ELEMENTWISE("    %r = arith.divf %two, %u : f32\n")), 1);
}

/* softmax times v, of two heads of two rows that share v; `first` is added to the scores in
 * column 0, and the exponentials are a result as well where `others` says so. */
static const char *attention(struct arena *arena, const char *first, bool others)
{
	return text_format(arena,
	        "#hr = affine_map<(h, r, t) -> (h, r)>\n#hrt = affine_map<(h, r, t) -> (h, r, "
	        "t)>\n#t = affine_map<(h, r, t) -> (t)>\n"
	        "func.func @main(%%x: tensor<2x2x6xf32>, %%v: tensor<2x6x8xf32>) -> "
	        "(tensor<2x2x8xf32>%s) {\n" FORMAT_ZERO
	        "  %%low = arith.constant 0xFF800000 : f32\n"
	        "  %%mask = arith.constant dense<[%s, 0.0, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>\n"
	        "  %%e = tensor.empty() : tensor<2x2x6xf32>\n  %%g = tensor.empty() : "
	        "tensor<2x2xf32>\n"
	        "  %%h = linalg.fill ins(%%zero : f32) outs(%%g : tensor<2x2xf32>) -> "
	        "tensor<2x2xf32>\n  %%hl = linalg.fill ins(%%low : f32) outs(%%g : "
	        "tensor<2x2xf32>) -> tensor<2x2xf32>\n"
	        "  %%s = linalg.generic {indexing_maps = [#hrt, #t, #hrt], iterator_types = "
	        "[\"parallel\", \"parallel\", \"parallel\"]}\n"
	        "    ins(%%x, %%mask : tensor<2x2x6xf32>, tensor<6xf32>) outs(%%e : "
	        "tensor<2x2x6xf32>) {\n  ^bb0(%%a: f32, %%b: f32, %%o: f32):\n    %%r = arith.addf "
	        "%%a, %%b : f32\n    linalg.yield %%r : f32\n  } -> tensor<2x2x6xf32>\n"
	        "  %%m = linalg.reduce ins(%%s : tensor<2x2x6xf32>) outs(%%hl : tensor<2x2xf32>) "
	        "dimensions = [2]\n    (%%a: f32, %%o: f32) { %%q = arith.maximumf %%a, %%o : f32 "
	        "linalg.yield %%q : f32 }\n"
	        "  %%p = linalg.generic {indexing_maps = [#hrt, #hr, #hrt], iterator_types = "
	        "[\"parallel\", \"parallel\", \"parallel\"]}\n"
	        "    ins(%%s, %%m : tensor<2x2x6xf32>, tensor<2x2xf32>) outs(%%e : "
	        "tensor<2x2x6xf32>) {\n  ^bb0(%%a: f32, %%b: f32, %%o: f32):\n    %%d = arith.subf "
	        "%%a, %%b : f32\n    %%r = math.exp %%d : f32\n"
	        "    linalg.yield %%r : f32\n  } -> tensor<2x2x6xf32>\n"
	        "  %%z = linalg.reduce ins(%%p : tensor<2x2x6xf32>) outs(%%h : tensor<2x2xf32>) "
	        "dimensions = [2]\n    (%%a: f32, %%o: f32) { %%q = arith.addf %%a, %%o : f32 "
	        "linalg.yield %%q : f32 }\n"
	        "  %%b = linalg.broadcast ins(%%z : tensor<2x2xf32>) outs(%%e : tensor<2x2x6xf32>) "
	        "dimensions = [2]\n"
	        "  %%d = linalg.div ins(%%p, %%b : tensor<2x2x6xf32>, tensor<2x2x6xf32>) outs(%%e "
	        ": tensor<2x2x6xf32>) -> tensor<2x2x6xf32>\n"
	        "  %%k = tensor.empty() : tensor<2x2x8xf32>\n  %%f = linalg.fill ins(%%zero : f32) "
	        "outs(%%k : tensor<2x2x8xf32>) -> tensor<2x2x8xf32>\n"
	        "  %%y = linalg.batch_matmul ins(%%d, %%v : tensor<2x2x6xf32>, tensor<2x6x8xf32>) "
	        "outs(%%f : tensor<2x2x8xf32>) -> tensor<2x2x8xf32>\n"
	        "  return %%y%s : tensor<2x2x8xf32>%s\n}\n",
	        others ? ", tensor<2x2x6xf32>" : "", first, others ? ", %p" : "",
	        others ? ", tensor<2x2x6xf32>" : "");
}

static bool scans(const char *first, bool others, enum softmax_form form)
{
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	const char *text = attention(arena, first, others);
	struct session s;
	struct pass_context context = { .choices.value = { [CHOICE_SOFTMAX] = 1 + form } };
	struct diag diag = { .arena = arena };
	context.platform = platform_load(arena, &diag, "u55c");
	run_passes(&s, text, PASSES, 0);
	assert_true(defer_softmax_division(&context, s.module) &&
	        online_softmax(&context, s.module) && ir_verify(s.module));
	expect_round_trip(&s);
	expect_same_values(&s, 1e-5, text);
	bool any = false;
	for (const struct op *op = module_main(s.module)->region[0]->first; op; op = op->next)
		any = any || (op->code == OP_KERNEL && op->kernel->scan);
	finish(&s);
	arena_free(arena);
	return any;
}

/* A score of minus infinity in front is no difference of infinities. */
static void test_maxima_run(void **state)
{
	(void)state;
	assert_true(scans("0.0", false, SOFTMAX_ONLINE));
	assert_true(scans("0xFF800000", false, SOFTMAX_ONLINE));
	/* the exponentials themselves are asked for */
	assert_false(scans("0.0", true, SOFTMAX_ONLINE));
	assert_false(scans("0.0", false, SOFTMAX_AUTO)); /* few scores */
	assert_false(scans("0.0", false, SOFTMAX_TWO_PASS));
}

/* `layers` times x = tanh(x * w[i]) + x, with the product of every layer a result. */
static const char *layered(struct arena *arena, int layers)
{
	struct text text = text_new(arena);
	text_add(&text, "func.func @main(%%x0: tensor<2x4xf32>");
	for (int i = 0; i < layers; i++)
		text_add(&text, ", %%w%d: tensor<4x4xf32>", i);
	text_add(&text, ") -> (tensor<2x4xf32>");
	for (int i = 0; i < layers; i++)
		text_add(&text, ", tensor<2x4xf32>");
	text_add(&text,
	        ") {\n" FORMAT_ZERO
	        "  %%e = tensor.empty() : tensor<2x4xf32>\n  %%f = linalg.fill ins(%%zero : f32) "
	        "outs(%%e : tensor<2x4xf32>) -> tensor<2x4xf32>\n");
	for (int i = 0; i < layers; i++)
		text_add(&text,
		        "  %%m%d = linalg.matmul ins(%%x%d, %%w%d : tensor<2x4xf32>, "
		        "tensor<4x4xf32>) outs(%%f : tensor<2x4xf32>) -> tensor<2x4xf32>\n"
		        "  %%t%d = linalg.tanh ins(%%m%d : tensor<2x4xf32>) outs(%%e : "
		        "tensor<2x4xf32>) -> tensor<2x4xf32>\n"
		        "  %%x%d = linalg.add ins(%%t%d, %%x%d : tensor<2x4xf32>, tensor<2x4xf32>) "
		        "outs(%%e : tensor<2x4xf32>) -> tensor<2x4xf32>\n",
		        i, i, i, i, i, i + 1, i, i);
	text_add(&text, "  return %%x%d", layers);
	for (int i = 0; i < layers; i++)
		text_add(&text, ", %%m%d", i);
	text_add(&text, " : tensor<2x4xf32>");
	for (int i = 0; i < layers; i++)
		text_add(&text, ", tensor<2x4xf32>");
	text_add(&text, "\n}\n");
	return text.data;
}

static void test_layers_become_a_loop(void **state)
{
	(void)state;
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	for (int layers = 1; layers <= 4; layers++) {
		struct session s;
		run_passes(&s, layered(arena, layers), PASSES, 0);
		struct block *block = module_main(s.module)->region[0];
		assert_int_equal(kernels(&s), 2);
		assert_int_equal(count_ops(block, OP_FOR), layers > 1);
		assert_int_equal(count_ops(block, OP_LAYER_SELECT), layers > 1);
		assert_int_equal(count_ops(block, OP_INSERT_LAYER), layers > 1);
		assert_int_equal(count_ops(block, OP_LAYER_EXTRACT), layers > 1 ? layers : 0);
		finish(&s);
	}
	arena_free(arena);
}

static void test_returned_views_are_copied(void **state)
{
	(void)state;
	expect_kernels(
	        "func.func @main(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<6xf32>, "
	        "tensor<2x3xf32>) {\n  %e = tensor.empty() : tensor<3x2xf32>\n"
	        "  %t = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) "
	        "permutation = [1, 0]\n"
	        "  %c = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>\n"
	        "  return %t, %c, %x : tensor<3x2xf32>, tensor<6xf32>, tensor<2x3xf32>\n}\n",
	        3, 0);
}

/* A tensor of rank 0 as one of more dims, and back. */
static void test_rank_zero_is_reshaped(void **state)
{
	(void)state;
	expect_kernels("func.func @main(%x: tensor<1x1xf32>, %y: tensor<f32>) -> (tensor<f32>, "
	               "tensor<1x1x1xf32>) {\n"
	               "  %a = tensor.collapse_shape %x [] : tensor<1x1xf32> into tensor<f32>\n"
	               "  %b = tensor.expand_shape %y [] output_shape [1, 1, 1] : tensor<f32> into "
	               "tensor<1x1x1xf32>\n"
	               "  return %a, %b : tensor<f32>, tensor<1x1x1xf32>\n}\n",
	        2, 0);
}

#define PADDED(widths, to)                                                                         \
	"func.func @main(%x: tensor<3x5xf32>) -> tensor<" to                                       \
	"> {\n  %z = arith.constant 0.5 : f32\n  %p = tensor.pad %x " widths " {\n"                \
	"  ^bb0(%i: index, %j: index):\n    tensor.yield %z : f32\n  } : tensor<3x5xf32> to "      \
	"tensor<" to ">\n  return %p : tensor<" to ">\n}\n"

/* As PyTorch exports F.pad with widths below 0. */
static void test_negative_borders_cut(void **state)
{
	(void)state;
	expect_kernels(PADDED("low[1, -2] high[-1, 3]", "3x6xf32"), 1, 0);
	expect_kernels(PADDED("low[-1, -1] high[-1, -2]", "1x2xf32"), 1, 0);
	expect_refused(PADDED("low[0, -5] high[0, 1]", "3x1xf32"), "takes away all", 3);
}

static const char three_arguments[] =
        "func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<2xf32>) -> tensor<2xf32> "
        "{\n  return %a : tensor<2xf32>\n}\n";

/* What the import would have refused or filled in already: the attributes are set afterwards. */
static void set_port(
        struct session *s, enum attr_key list, int index, const char *name, const char *role)
{
	struct op *main = module_main(s->module);
	const struct type *type = attr_get(main, KEY_FUNCTION_TYPE)->type;
	int count = list != KEY_ARG_ATTRS ? type->outputs : type->inputs;
	int given = 0;
	const struct attr *old = attr_get(main, list);
	const struct attr **items = ARENA_ARRAY(s->arena, const struct attr *, count);
	struct named named[2];
	if (name)
		named[given++] =
		        (struct named){ key_name(KEY_STREAM_NAME), attr_string(s->module, name) };
	if (role)
		named[given++] =
		        (struct named){ key_name(KEY_STREAM_ROLE), attr_string(s->module, role) };
	for (int i = 0; i < count; i++)
		items[i] =
		        i == index ? attr_dictionary(s->module, given, named) : old->items[i].value;
	attr_set(s->module, main, list, attr_array(s->module, count, items));
}

static void expect_bad_port(
        enum attr_key list, const char *name, const char *role, const char *part)
{
	struct session s;
	start(&s, three_arguments);
	set_port(&s, list, 0, name, role);
	assert_false(name_arguments(&(struct pass_context){ 0 }, s.module));
	assert_int_equal(s.diag.count, 1);
	assert_non_null(strstr(s.diag.entry[0].message, part));
	assert_non_null(s.diag.entry[0].note);
	finish(&s);
}

static void test_roles_are_checked(void **state)
{
	(void)state;
	expect_bad_port(KEY_ARG_ATTRS, "x", "wait", "argument 0 of main has stream.role \"wait\"");
	expect_bad_port(
	        KEY_RES_ATTRS, "y", "weight", "result 0 of main has stream.role \"weight\"");
	expect_bad_port(KEY_RES_ATTRS, "y", "state", "no argument of role state is named \"y\"");
}

static const char *name_of(struct session *s, int argument)
{
	return function_argument_attr(module_main(s->module), argument, KEY_STREAM_NAME)->text;
}

static void test_names_are_unique(void **state)
{
	(void)state;
	struct session s;
	struct pass_context context = { 0 };
	start(&s, three_arguments);
	set_port(&s, KEY_ARG_ATTRS, 0, NULL, NULL);
	set_port(&s, KEY_ARG_ATTRS, 1, "arg0", "weight");
	set_port(&s, KEY_ARG_ATTRS, 2, "arg0", NULL);
	attr_set(s.module, module_main(s.module), KEY_RES_ATTRS, NULL);
	assert_true(name_arguments(&context, s.module));
	assert_string_equal(name_of(&s, 0), "arg0_2");
	assert_string_equal(name_of(&s, 1), "arg0");
	assert_string_equal(name_of(&s, 2), "arg0_1");
	assert_string_equal(
	        function_argument_attr(module_main(s.module), 0, KEY_STREAM_ROLE)->text, "input");
	assert_string_equal(
	        function_argument_attr(module_main(s.module), 1, KEY_STREAM_ROLE)->text, "weight");
	assert_string_equal(
	        function_result_attr(module_main(s.module), 0, KEY_STREAM_NAME)->text, "result0");
	finish(&s);
}

/* An offset that is not a constant, with the line it stands on. */
static void test_dynamic_views_are_refused(void **state)
{
	(void)state;
	expect_refused("func.func @main(%x: tensor<4xf32>, %p: tensor<1xi64>) -> tensor<2xf32> {\n "
	               " %z = arith.constant 0 : index\n"
	               "  %i = tensor.extract %p[%z] : tensor<1xi64>\n  %o = arith.index_cast %i : "
	               "i64 to index\n"
	               "  %s = tensor.extract_slice %x[%o] [2] [1] : tensor<4xf32> to "
	               "tensor<2xf32>\n  return %s : tensor<2xf32>\n}\n",
	        "tensor.extract", 3);
}

static void test_random_graphs(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct guard guard;
		struct session s;
		struct arena *arena = arena_new(&guard);
		struct text text = text_new(arena);
		text_add(&text, "// seed %d\n", (int)seed);
		random_graph(seed, 18, &text);
		run_passes(&s, text.data, PASSES, 0);
		finish(&s);
		arena_free(arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matmul_bias_gelu_is_one_kernel),
		cmocka_unit_test(test_a_choice_stands_with_its_sum),
		cmocka_unit_test(test_work_is_not_repeated),
		cmocka_unit_test(test_statistics_are_repeated),
		cmocka_unit_test(test_equal_halves_are_one),
		cmocka_unit_test(test_two_orders_keep_a_kernel),
		cmocka_unit_test(test_returned_order_is_made_at_once),
		cmocka_unit_test(test_convolution),
		cmocka_unit_test(test_dead_result_is_dropped),
		cmocka_unit_test(test_views_cost_nothing),
		cmocka_unit_test(test_powers_become_products),
		cmocka_unit_test(test_f64_is_demoted),
		cmocka_unit_test(test_slices_split_their_producer),
		cmocka_unit_test(test_sigmoids_fold),
		cmocka_unit_test(test_rounding_to_few_bits),
		cmocka_unit_test(test_quotients_by_powers_of_two),
		cmocka_unit_test(test_quotients_sink),
		cmocka_unit_test(test_maxima_run),
		cmocka_unit_test(test_layers_become_a_loop),
		cmocka_unit_test(test_returned_views_are_copied),
		cmocka_unit_test(test_rank_zero_is_reshaped),
		cmocka_unit_test(test_negative_borders_cut),
		cmocka_unit_test(test_roles_are_checked),
		cmocka_unit_test(test_names_are_unique),
		cmocka_unit_test(test_dynamic_views_are_refused),
		cmocka_unit_test(test_random_graphs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
