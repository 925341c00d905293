/* The evaluator against results worked out by hand, at every level. */
#include "import/import.h"
#include "evaluate/eval.h"
#include "evaluate/scalar.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define RESULTS_MOST 4

struct session {
	struct guard guard;
	struct diag diag;
	struct arena *arena;
	struct module *module;
	struct tensor result[RESULTS_MOST];
};

static void start(struct session *s)
{
	memset(s, 0, sizeof *s);
	s->arena = arena_new(&s->guard);
	s->diag.arena = s->arena;
}

static void finish(struct session *s)
{
	arena_free(s->arena);
}

static const char *messages(struct session *s)
{
	struct text text = text_new(s->arena);
	text_add(&text, "%s", "");
	diag_print(&s->diag, &text);
	return text.data;
}

static void read_module(struct session *s, const char *text)
{
	s->module = import_mlir(s->arena, &s->guard, &s->diag, "test.mlir", text, strlen(text));
	if (!s->module)
		fail_msg("not read: %s", messages(s));
}

/* Runs main on inputs given in its arguments' order. */
static bool evaluate(struct session *s, int inputs, const void *const *data)
{
	struct tensor input[8];
	assert_int_equal(eval_inputs(s->module), inputs);
	assert_true(eval_results(s->module) <= RESULTS_MOST);
	struct op *main = module_main(s->module);
	const struct attr *list = attr_get(main, KEY_STREAM_INPUTS);
	for (int i = 0; i < inputs; i++) {
		const struct type *type = list ? attr_item(list->items[i].value, KEY_TYPE)->type
		                               : main->region[0]->argument[i]->type;
		input[i] = (struct tensor){ .type = type,
			.data = arena_copy(s->arena, data[i], tensor_bytes(type)) };
	}
	return eval_module(s->module, s->arena, inputs, input, s->result);
}

static bool run(struct session *s, const char *text, int inputs, const void *const *data)
{
	read_module(s, text);
	return evaluate(s, inputs, data);
}

static void expect_floats(struct session *s, int result, int count, const float *want)
{
	const float *got = s->result[result].data;
	assert_int_equal(tensor_bytes(s->result[result].type), (size_t)count * sizeof(float));
	for (int i = 0; i < count; i++)
		if (memcmp(&got[i], &want[i], sizeof(float)))
			fail_msg("result %d, element %d: %.9g, not %.9g", result, i, (double)got[i],
			        (double)want[i]);
}

#define FLOATS(...) ((const float[]){ __VA_ARGS__ })
#define COUNT(...) ((int)(sizeof(FLOATS(__VA_ARGS__)) / sizeof(float)))
#define EXPECT(s, result, ...) expect_floats((s), (result), COUNT(__VA_ARGS__), FLOATS(__VA_ARGS__))
#define INPUTS(...) ((const void *const[]){ __VA_ARGS__ })

#define RUN(s, inputs, data, text)                                                                 \
	do {                                                                                       \
		start(s);                                                                          \
		if (!run((s), (text), (inputs), (data)))                                           \
			fail_msg("not evaluated: %s", messages(s));                                \
	} while (0)

#define FAILS(s, inputs, data, text, message)                                                      \
	do {                                                                                       \
		start(s);                                                                          \
		assert_false(run((s), (text), (inputs), (data)));                                  \
		if (!strstr(messages(s), (message)))                                               \
			fail_msg("message: %s", messages(s));                                      \
	} while (0)

/* --- scalars
 * -------------------------------------------------------------------------------------- */

struct scalar_case {
	enum op_code code;
	int64_t predicate;
	const char *result, *operand; /* i8, f32, … */
	double a, b, want;
};

static const struct type *type_named(struct module *module, const char *name)
{
	int width = name[0] == 'b'
	        ? 16
	        : 10 * (name[2] ? name[1] - '0' : 0) + (name[2] ? name[2] : name[1]) - '0';
	if (name[0] == 'b')
		return type_bfloat(module);
	return name[0] == 'f' ? type_float(module, width) : type_integer(module, width);
}

static const struct scalar_case scalar_cases[] = {
	{ OP_ADDF, 0, "f32", "f32", 16777216.0, 1.0, 16777216.0 },
	{ OP_ADDF, 0, "f64", "f64", 16777216.0, 1.0, 16777217.0 },
	{ OP_ADDF, 0, "f16", "f16", 2048.0, 1.0, 2048.0 },
	{ OP_ADDF, 0, "f16", "f16", 2048.0, 3.0, 2052.0 },
	{ OP_MULF, 0, "f16", "f16", 256.0, 256.0, INFINITY },
	{ OP_MULF, 0, "f16", "f16", 0.000244140625, 0.000244140625, 5.9604644775390625e-08 },
	{ OP_ADDF, 0, "bf", "bf", 256.0, 1.0, 256.0 },
	{ OP_ADDF, 0, "bf", "bf", 256.0, 3.0, 260.0 },
	{ OP_TRUNCF, 0, "f16", "f64", 1.00048828126, 0, 1.0009765625 },
	{ OP_TRUNCF, 0, "f32", "f64", 0.1, 0, 0.100000001490116119384765625 },
	{ OP_MAXIMUMF, 0, "f32", "f32", NAN, 1.0, NAN },
	{ OP_MAXNUMF, 0, "f32", "f32", NAN, 1.0, 1.0 },
	{ OP_MINIMUMF, 0, "f64", "f64", 1.0, NAN, NAN },
	{ OP_ADDI, 0, "i8", "i8", 127, 1, -128 },
	{ OP_MULI, 0, "i8", "i8", 100, 3, 44 },
	{ OP_SUBI, 0, "i32", "i32", -2147483648.0, 1, 2147483647 },
	{ OP_DIVSI, 0, "i32", "i32", -7, 2, -3 },
	{ OP_REMSI, 0, "i32", "i32", -7, 2, -1 },
	{ OP_FLOORDIVSI, 0, "i32", "i32", -7, 2, -4 },
	{ OP_FLOORDIVSI, 0, "i32", "i32", 7, -2, -4 },
	{ OP_DIVSI, 0, "i32", "i32", 5, 0, 0 },
	{ OP_CMPI, 2, "i1", "i8", -1, 1, -1 },
	{ OP_CMPI, 6, "i1", "i8", -1, 1, 0 },
	{ OP_CMPI, 8, "i1", "i8", -1, 1, -1 },
	{ OP_CMPI, 1, "i1", "i8", -1, 1, -1 },
	{ OP_FPTOSI, 0, "i8", "f32", 300.0, 0, 127 },
	{ OP_FPTOSI, 0, "i8", "f32", -300.0, 0, -128 },
	{ OP_FPTOSI, 0, "i32", "f32", -2.9, 0, -2 },
	{ OP_FPTOSI, 0, "i32", "f32", NAN, 0, 0 },
	{ OP_EXTSI, 0, "i32", "i1", -1, 0, -1 },
	{ OP_EXTUI, 0, "i32", "i1", -1, 0, 1 },
	{ OP_UITOFP, 0, "f32", "i8", -1, 0, 255.0 },
	{ OP_SITOFP, 0, "f32", "i8", -1, 0, -1.0 },
	{ OP_TRUNCI, 0, "i8", "i32", 511, 0, -1 },
	{ OP_XORI, 0, "i1", "i1", -1, -1, 0 },
	{ OP_ROUNDEVEN, 0, "f32", "f32", 2.5, 0, 2.0 },
	{ OP_FLOOR, 0, "f32", "f32", -2.5, 0, -3.0 },
};

static void scalars(void **state)
{
	struct session s;
	(void)state;
	start(&s);
	s.module = module_new(s.arena, &s.guard, &s.diag, LEVEL_TENSOR);
	for (size_t i = 0; i < sizeof scalar_cases / sizeof *scalar_cases; i++) {
		const struct scalar_case *c = &scalar_cases[i];
		const struct type *result = type_named(s.module, c->result);
		const struct type *operand = type_named(s.module, c->operand);
		struct scalar_op op;
		assert_true(scalar_op_make(&op, c->code, c->predicate, result, operand));
		union scalar value[3] = { scalar_constant(
			                          operand, c->a, isnan(c->a) ? 0 : (int64_t)c->a),
			scalar_constant(operand, c->b, isnan(c->b) ? 0 : (int64_t)c->b) };
		union scalar got = scalar_eval(&op, value);
		double number = !type_is_real(result) ? (double)got.integer
		        : result->width == 64         ? got.f64
		                                      : (double)got.f32;
		if (!(number == c->want || (isnan(number) && isnan(c->want))))
			fail_msg("case %zu, %s: %.17g, not %.17g", i, op_info[c->code].name, number,
			        c->want);
	}
	struct scalar_op none;
	assert_false(scalar_op_make(
	        &none, OP_ADDF, 0, type_integer(s.module, 32), type_integer(s.module, 32)));
	finish(&s);
}

/* MLIR's predicates in their order; by relation: equal, greater, less, unordered. */
static void float_predicates(void **state)
{
	static const char *const holds[] = { "....", "e...", ".g..", "eg..", "..l.", "e.l.", ".gl.",
		"egl.", "e..u", ".g.u", "eg.u", "..lu", "e.lu", ".glu", "...u", "eglu" };
	static const float left[] = { 1, 2, 1, NAN };
	static const float right[] = { 1, 1, 2, 1 };
	struct session s;
	(void)state;
	start(&s);
	s.module = module_new(s.arena, &s.guard, &s.diag, LEVEL_TENSOR);
	for (int predicate = 0; predicate < 16; predicate++) {
		for (int relation = 0; relation < 4; relation++) {
			struct scalar_op op;
			assert_true(scalar_op_make(&op, OP_CMPF, predicate,
			        type_integer(s.module, 1), type_float(s.module, 32)));
			union scalar value[3] = { { .f32 = left[relation] },
				{ .f32 = right[relation] } };
			assert_int_equal(scalar_eval(&op, value).integer,
			        holds[predicate][relation] == '.' ? 0 : -1);
		}
	}
	finish(&s);
}

/* Every 16-bit pattern survives storage -> register -> storage. */
static void half_storage(void **state)
{
	struct session s;
	(void)state;
	start(&s);
	s.module = module_new(s.arena, &s.guard, &s.diag, LEVEL_TENSOR);
	const struct type *types[] = { type_float(s.module, 16), type_bfloat(s.module),
		type_integer(s.module, 16) };
	for (int t = 0; t < 3; t++) {
		for (uint32_t bits = 0; bits < 65536; bits++) {
			uint16_t in = (uint16_t)bits;
			uint16_t out = 0;
			union scalar value;
			scalar_read(types[t], &value, &in, 0, 1, 1);
			scalar_write(types[t], &value, &out, 0, 1, 1);
			if (t < 2 && isnan(value.f32))
				continue;
			assert_int_equal(in, out);
		}
	}
	finish(&s);
}

/* --- tensor level
 * --------------------------------------------------------------------------------- */

static void linalg(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 2, INPUTS(FLOATS(1, 2, 3, 4, 5, 6), FLOATS(1, 0, -1, 2, 1, 1)),
	        "func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x2xf32>) -> (tensor<2x2xf32>, "
	        "tensor<2xf32>) {\n"
	        "  %zero = arith.constant 0.0 : f32\n"
	        "  %e = tensor.empty() : tensor<2x2xf32>\n"
	        "  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> "
	        "tensor<2x2xf32>\n"
	        "  %m = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x2xf32>) outs(%z : "
	        "tensor<2x2xf32>) -> tensor<2x2xf32>\n"
	        "  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, "
	        "affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]}\n"
	        "    ins(%m : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) {\n"
	        "  ^bb0(%a: f32, %o: f32):\n"
	        "    %i = linalg.index 0 : index\n"
	        "    %n = arith.index_cast %i : index to i64\n"
	        "    %f = arith.sitofp %n : i64 to f32\n"
	        "    %s = arith.addf %a, %f : f32\n"
	        "    linalg.yield %s : f32\n"
	        "  } -> tensor<2x2xf32>\n"
	        "  %low = arith.constant -1.0e30 : f32\n"
	        "  %e1 = tensor.empty() : tensor<2xf32>\n"
	        "  %z1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<2xf32>) -> tensor<2xf32>\n"
	        "  %max = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, "
	        "affine_map<(i, j) -> (i)>], iterator_types = [\"parallel\", \"reduction\"]}\n"
	        "    ins(%m : tensor<2x2xf32>) outs(%z1 : tensor<2xf32>) {\n"
	        "  ^bb0(%a: f32, %o: f32):\n"
	        "    %s = arith.maximumf %a, %o : f32\n"
	        "    linalg.yield %s : f32\n"
	        "  } -> tensor<2xf32>\n"
	        "  return %r, %max : tensor<2x2xf32>, tensor<2xf32>\n"
	        "}\n");
	EXPECT(&s, 0, 2, 5, 8, 17); /* matmul [2 7; 5 16], transposed, plus the row number */
	EXPECT(&s, 1, 7, 16);
	finish(&s);
}

/* The largest element and its place: two results that both depend on both accumulators. */
static void argmax(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 1, INPUTS(FLOATS(3, 9, 9, 1)),
	        "func.func @main(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {\n"
	        "  %a = arith.constant dense<-1.0e30> : tensor<f32>\n"
	        "  %b = arith.constant dense<0.0> : tensor<f32>\n"
	        "  %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) "
	        "-> ()>, affine_map<(i) -> ()>], iterator_types = [\"reduction\"]}\n"
	        "    ins(%x : tensor<4xf32>) outs(%a, %b : tensor<f32>, tensor<f32>) {\n"
	        "  ^bb0(%v: f32, %best: f32, %at: f32):\n"
	        "    %i = linalg.index 0 : index\n"
	        "    %n = arith.index_cast %i : index to i64\n"
	        "    %f = arith.sitofp %n : i64 to f32\n"
	        "    %c = arith.cmpf ogt, %v, %best : f32\n"
	        "    %p = arith.select %c, %v, %best : f32\n"
	        "    %q = arith.select %c, %f, %at : f32\n"
	        "    linalg.yield %p, %q : f32, f32\n"
	        "  } -> (tensor<f32>, tensor<f32>)\n"
	        "  return %r#0, %r#1 : tensor<f32>, tensor<f32>\n"
	        "}\n");
	EXPECT(&s, 0, 9);
	EXPECT(&s, 1, 1);
	finish(&s);
}

static void views(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 2, INPUTS(FLOATS(1, 2, 3, 4, 5, 6, 7, 8), ((const int64_t[]){ 1, 7 })),
	        "func.func @main(%x: tensor<2x4xf32>, %ids: tensor<2xi64>) -> (tensor<2x2xf32>, "
	        "tensor<2x5xf32>, tensor<1x8xf32>, tensor<2x2xf32>) {\n"
	        "  %zero = arith.constant 9.0 : f32\n"
	        "  %s = tensor.extract_slice %x[0, 1] [2, 2] [1, 2] : tensor<2x4xf32> to "
	        "tensor<2x2xf32>\n"
	        "  %p = tensor.pad %s low[0, 1] high[0, 2] {\n"
	        "  ^bb0(%i: index, %j: index):\n"
	        "    tensor.yield %zero : f32\n"
	        "  } : tensor<2x2xf32> to tensor<2x5xf32>\n"
	        "  %c = tensor.concat dim(1) %x, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> "
	        "tensor<2x8xf32>\n"
	        "  %row = tensor.extract_slice %c[1, 0] [1, 8] [1, 1] : tensor<2x8xf32> to "
	        "tensor<1x8xf32>\n"
	        "  %e = tensor.empty() : tensor<2x2xf32>\n"
	        "  %g = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, "
	        "j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]}\n"
	        "    ins(%ids : tensor<2xi64>) outs(%e : tensor<2x2xf32>) {\n"
	        "  ^bb0(%id: i64, %o: f32):\n"
	        "    %r = arith.index_cast %id : i64 to index\n"
	        "    %j = linalg.index 1 : index\n"
	        "    %v = tensor.extract %x[%r, %j] : tensor<2x4xf32>\n"
	        "    linalg.yield %v : f32\n"
	        "  } -> tensor<2x2xf32>\n"
	        "  return %s, %p, %row, %g : tensor<2x2xf32>, tensor<2x5xf32>, tensor<1x8xf32>, "
	        "tensor<2x2xf32>\n"
	        "}\n");
	EXPECT(&s, 0, 2, 4, 6, 8);
	EXPECT(&s, 1, 9, 2, 4, 9, 9, 9, 6, 8, 9, 9);
	EXPECT(&s, 2, 5, 6, 7, 8, 5, 6, 7, 8);
	EXPECT(&s, 3, 5, 6, 5, 6); /* row 7 is clamped to 1 */
	finish(&s);
}

#define SUM_BODIES                                                                                 \
	"  \"func.func\"() <{function_type = (f32, f32) -> f32, sym_name = \"k.update\", "         \
	"sym_visibility = \"private\"}> ({\n"                                                      \
	"  ^bb0(%a: f32, %acc: f32):\n"                                                            \
	"    %s = \"arith.addf\"(%acc, %a) : (f32, f32) -> f32\n"                                  \
	"    \"func.return\"(%s) : (f32) -> ()\n"                                                  \
	"  }) : () -> ()\n"

#define SUM_KERNEL                                                                                 \
	"module attributes {stream.level = \"tensor\"} {\n"                                        \
	"  func.func @main(%x: tensor<8xf32>) -> tensor<1xf32> {\n"                                \
	"    %y = \"stream.kernel\"(%x) {name = \"k\", loops = array<i64: 2, 4>, reduction = "     \
	"array<i64: 1, 1>, access = [affine_map<(d0, d1) -> (d0 * 4 + d1)>],\n"                    \
	"      result = affine_map<(d0, d1) -> (0)>, init = 0.0 : f32, update = @k.update} : "     \
	"(tensor<8xf32>) -> tensor<1xf32>\n"                                                       \
	"    return %y : tensor<1xf32>\n"                                                          \
	"  }\n" SUM_BODIES "}\n"

/* In source order: 1e8 + 1 loses the 1. */
static void kernel_order(void **state)
{
	struct session s;
	(void)state;
	const float *x = FLOATS(1e8f, 1, -1e8f, 1, 1, 2, 3, 4);
	RUN(&s, 1, INPUTS(x), SUM_KERNEL);
	EXPECT(&s, 0, 11);
	finish(&s);
}

static void kernel_guard_and_gather(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 2, INPUTS(FLOATS(1, 2, 3, 4, 5, 6), ((const int64_t[]){ 2, -5 })),
	        "module attributes {stream.level = \"tensor\"} {\n"
	        "  func.func @main(%t: tensor<3x2xf32>, %ids: tensor<2xi64>) -> tensor<2x3xf32> {\n"
	        "    %y = \"stream.kernel\"(%t, %ids) {name = \"k\", loops = array<i64: 2, 3>, "
	        "reduction = array<i64: 0, 0>,\n"
	        "      access = [affine_map<(d0, d1) -> (d1 - 1)>, affine_map<(d0, d1) -> (d0)>], "
	        "result = affine_map<(d0, d1) -> (d0 * 3 + d1)>,\n"
	        "      guards = [array<i64: 0, 1, 1, 3>], gathers = [array<i64: 0, 1, 2, 3>], "
	        "update = @k.update} : (tensor<3x2xf32>, tensor<2xi64>) -> tensor<2x3xf32>\n"
	        "    return %y : tensor<2x3xf32>\n"
	        "  }\n"
	        "  func.func private @k.update(%a: f32, %i: i64) -> f32 {\n"
	        "    %one = arith.constant 1.0 : f32\n"
	        "    %s = arith.addf %a, %one : f32\n"
	        "    return %s : f32\n"
	        "  }\n"
	        "}\n");
	EXPECT(&s, 0, 1, 6, 7, 1, 2, 3);
	finish(&s);
}

static void rolled_layers(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 3, INPUTS(FLOATS(1, 2), FLOATS(10, 20), FLOATS(100, 200)),
	        "module attributes {stream.level = \"tensor\"} {\n"
	        "  func.func @main(%x: tensor<2xf32>, %w0: tensor<2xf32>, %w1: tensor<2xf32>) -> "
	        "(tensor<2xf32>, tensor<2xf32>) {\n"
	        "    %c0 = arith.constant 0 : index\n"
	        "    %c1 = arith.constant 1 : index\n"
	        "    %c2 = arith.constant 2 : index\n"
	        "    %e = tensor.empty() : tensor<2x2xf32>\n"
	        "    %r:2 = scf.for %l = %c0 to %c2 step %c1 iter_args(%h = %x, %stack = %e) -> "
	        "(tensor<2xf32>, tensor<2x2xf32>) {\n"
	        "      %w = \"stream.layer_select\"(%l, %w0, %w1) : (index, tensor<2xf32>, "
	        "tensor<2xf32>) -> tensor<2xf32>\n"
	        "      %n = \"stream.kernel\"(%h, %w) {name = \"k\", loops = array<i64: 2>, "
	        "reduction = array<i64: 0>, access = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> "
	        "(d0)>],\n"
	        "        result = affine_map<(d0) -> (d0)>, update = @k.update} : (tensor<2xf32>, "
	        "tensor<2xf32>) -> tensor<2xf32>\n"
	        "      %s = \"stream.insert_layer\"(%n, %stack, %l) : (tensor<2xf32>, "
	        "tensor<2x2xf32>, index) -> tensor<2x2xf32>\n"
	        "      scf.yield %n, %s : tensor<2xf32>, tensor<2x2xf32>\n"
	        "    }\n"
	        "    %p = \"stream.layer_extract\"(%r#1) {index = 0 : i64} : (tensor<2x2xf32>) -> "
	        "tensor<2xf32>\n"
	        "    return %r#0, %p : tensor<2xf32>, tensor<2xf32>\n"
	        "  }\n"
	        "  func.func private @k.update(%a: f32, %b: f32) -> f32 {\n"
	        "    %s = arith.addf %a, %b : f32\n"
	        "    return %s : f32\n"
	        "  }\n"
	        "}\n");
	EXPECT(&s, 0, 111, 222);
	EXPECT(&s, 1, 11, 22);
	finish(&s);
}

/* --- stream level
 * --------------------------------------------------------------------------------- */

#define SCALARS_OF_X "!stream.itensor<f32, [2, 4], [1, 1], affine_map<(d0, d1) -> (d0, d1)>>"
#define ROWS_OF_W                                                                                  \
	"!stream.itensor<vector<1x4xf32>, [2, 4], [1, 1], affine_map<(d0, d1) -> (d1, 0)>>"
#define ROWS_OF_Y "!stream.itensor<vector<1x4xf32>, [2], [1], affine_map<(d0) -> (d0, 0)>>"
#define PAIRS_OF_Y                                                                                 \
	"!stream.itensor<vector<1x2xf32>, [2, 2], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>"
#define TURNED_Y "!stream.itensor<f32, [4, 2], [1, 1], affine_map<(d0, d1) -> (d1, d0)>>"
#define ORDERED_Z "!stream.itensor<f32, [4, 2], [1, 1], affine_map<(d0, d1) -> (d0, d1)>>"

/* y = x w with the columns as lanes; z = y transposed; the pairs go through a cast and straight
 * to the result. */
#define STREAMS(w_type)                                                                            \
	"module attributes {stream.level = \"stream\"} {\n"                                        \
	"  func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) attributes {\n"               \
	"      stream.inputs = [{name = \"x\", role = \"input\", type = tensor<2x4xf32>}, {name "  \
	"= \"c\", role = \"constant\", type = tensor<4x4xf32>, value = dense<[[1.0, 0.0, 0.0, "    \
	"2.0],\n"                                                                                  \
	"        [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]> : "            \
	"tensor<4x4xf32>}],\n"                                                                     \
	"      stream.outputs = [{name = \"y\", role = \"output\", type = tensor<2x4xf32>}, "      \
	"{name = \"z\", role = \"output\", type = tensor<4x2xf32>}]} {\n"                          \
	"    %xs = \"stream.load\"(%x) {tensor = tensor<2x4xf32>} : (tensor<2x4xf32>) "            \
	"-> " SCALARS_OF_X "\n"                                                                    \
	"    %ws = \"stream.load\"(%w) {tensor = tensor<4x4xf32>} : (tensor<4x4xf32>) -> " w_type  \
	"\n"                                                                                       \
	"    %y = \"stream.kernel\"(%xs, %ws) {name = \"k\", loops = array<i64: 2, 4, 4>, "        \
	"reduction = array<i64: 0, 1, 0>,\n"                                                       \
	"      access = [affine_map<(d0, d1, d2) -> (d0 * 4 + d1)>, affine_map<(d0, d1, d2) -> "   \
	"(d1 * 4 + d2)>], result = affine_map<(d0, d1, d2) -> (d0 * 4 + d2)>,\n"                   \
	"      init = 0.0 : f32, update = @k.update, scheduled, lanes = 4 : i64, interval = 1 : "  \
	"i64, combine = \"arith.addf\", tensor = tensor<2x4xf32>}\n"                               \
	"      : (" SCALARS_OF_X ", " w_type ") -> " ROWS_OF_Y "\n"                                \
	"    %a, %b = \"stream.fork\"(%y) {tensor = tensor<2x4xf32>} : (" ROWS_OF_Y                \
	") -> (" ROWS_OF_Y ", " ROWS_OF_Y ")\n"                                                    \
	"    %p = \"stream.cast\"(%a) {tensor = tensor<2x4xf32>} : (" ROWS_OF_Y ") -> " PAIRS_OF_Y \
	"\n"                                                                                       \
	"    %t = \"stream.convert\"(%b) {tensor = tensor<2x4xf32>} : (" ROWS_OF_Y                 \
	") -> " TURNED_Y "\n"                                                                      \
	"    %z = \"stream.kernel\"(%t) {name = \"n\", loops = array<i64: 4, 2>, reduction = "     \
	"array<i64: 0, 0>, access = [affine_map<(d0, d1) -> (d1 * 4 + d0)>],\n"                    \
	"      result = affine_map<(d0, d1) -> (d0 * 2 + d1)>, update = @n.update, scheduled, "    \
	"lanes = 1 : i64, interval = 1 : i64, tensor = tensor<4x2xf32>} : (" TURNED_Y              \
	") -> " ORDERED_Z "\n"                                                                     \
	"    \"stream.store\"(%p) {result = array<i64: 0>, tensor = tensor<2x4xf32>} : "           \
	"(" PAIRS_OF_Y ") -> ()\n"                                                                 \
	"    \"stream.store\"(%z) {result = array<i64: 1>, tensor = tensor<4x2xf32>} : "           \
	"(" ORDERED_Z ") -> ()\n"                                                                  \
	"    return\n"                                                                             \
	"  }\n"                                                                                    \
	"  func.func private @k.update(%a: f32, %b: f32, %acc: f32) -> f32 {\n"                    \
	"    %m = arith.mulf %a, %b : f32\n"                                                       \
	"    %s = arith.addf %acc, %m : f32\n"                                                     \
	"    return %s : f32\n"                                                                    \
	"  }\n"                                                                                    \
	"  func.func private @n.update(%a: f32) -> f32 {\n"                                        \
	"    %s = arith.negf %a : f32\n"                                                           \
	"    return %s : f32\n"                                                                    \
	"  }\n"                                                                                    \
	"}\n"

static void streams(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 1, INPUTS(FLOATS(1, 2, 3, 4, 5, 6, 7, 8)), STREAMS(ROWS_OF_W));
	EXPECT(&s, 0, 1, 2, 3, 6, 5, 6, 7, 18);
	EXPECT(&s, 1, -1, -5, -2, -6, -3, -7, -6, -18);
	finish(&s);
}

#define ROWS_NOW "{most = 4 : i64, symbol = \"n\"}"
#define HALVES                                                                                     \
	"!stream.itensor<vector<1x3xf32>, [2, " ROWS_NOW                                           \
	"], [3, 1], affine_map<(d0, d1) -> (d1, d0)>>"
#define HALF(at)                                                                                   \
	"!stream.itensor<vector<1x3xf32>, [" ROWS_NOW "], [1], affine_map<(d0) -> (d0, " at ")>>"
#define WHOLE "!stream.itensor<vector<1x6xf32>, [" ROWS_NOW "], [1], affine_map<(d0) -> (d0, 0)>>"

/* The left halves of the first n rows, then the right ones, separated and joined: the number of
 * words is that of this run. */
static void parts_of_run_time_rows(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 2,
	        INPUTS(((const int64_t[]){ 3 }),
	                FLOATS(1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16, 21, 22, 23, 24, 25, 26, 31,
	                        32, 33, 34, 35, 36)),
	        "module attributes {stream.level = \"stream\"} {\n"
	        "  func.func @main(%n: tensor<1xi64>, %x: tensor<4x6xf32>) attributes {\n"
	        "      stream.inputs = [{name = \"n\", role = \"input\", type = tensor<1xi64>}, "
	        "{name = \"x\", role = \"input\", type = tensor<4x6xf32>}],\n"
	        "      stream.outputs = [{name = \"y\", role = \"output\", type = "
	        "tensor<4x6xf32>}]} {\n"
	        "    %xs = \"stream.load\"(%x) {tensor = tensor<4x6xf32>} : (tensor<4x6xf32>) "
	        "-> " HALVES "\n"
	        "    %a, %b = \"stream.fork\"(%xs) {tensor = tensor<4x6xf32>} : (" HALVES
	        ") -> (" HALVES ", " HALVES ")\n"
	        "    %left = \"stream.chunk\"(%a) {low = array<i64: 0, 0>, high = array<i64: 1, "
	        "4>, tensor = tensor<4x6xf32>} : (" HALVES ") -> " HALF(
	                "0") "\n"
	                     "    %right = \"stream.chunk\"(%b) {low = array<i64: 1, 0>, high = "
	                     "array<i64: 2, 4>, tensor = tensor<4x6xf32>} : (" HALVES
	                     ") -> " HALF("3") "\n"
	                                       "    %y = \"stream.join\"(%left, %right) {tensor = "
	                                       "tensor<4x6xf32>} : (" HALF("0") ", " HALF(
	                                               "3") ") -> " WHOLE "\n"
	                                                    "    \"stream.store\"(%y) {result = "
	                                                    "array<i64: 0>, tensor = "
	                                                    "tensor<4x6xf32>} : (" WHOLE ") -> ()\n"
	                                                    "    return\n"
	                                                    "  }\n"
	                                                    "}\n");
	EXPECT(&s, 0, 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16, 21, 22, 23, 24, 25, 26, 0, 0, 0, 0,
	        0, 0);
	finish(&s);
}

/* The weights are sent once, but the kernel wants them once a row. */
static void shorten_operand(struct op *op, void *module)
{
	static const int64_t trip = 4;
	static const int64_t step = 1;
	static const int64_t rows[] = { 1, 0, 0, 0 };
	if (op->code == OP_KERNEL && op->operands == 2)
		op->operand[1]->type = type_itensor(module, op->operand[1]->type->element,
		        &(struct itensor){
		                .dims = 1, .trip = &trip, .step = &step, .map = { 1, 2, rows } });
}

/* The verifier refuses this text; the evaluator counts by itself. */
static void stream_too_short(void **state)
{
	struct session s;
	(void)state;
	start(&s);
	read_module(&s, STREAMS(ROWS_OF_W));
	ir_walk(module_body(s.module), shorten_operand, s.module);
	assert_false(evaluate(&s, 1, INPUTS(FLOATS(1, 2, 3, 4, 5, 6, 7, 8))));
	assert_non_null(strstr(messages(&s),
	        "kernel k: its loops move 8 words of 4 lanes through operand 1, whose type says 4 "
	        "of 4"));
	finish(&s);
}

/* Lanes are reduced in a tree, word after word: ((0 + tree(first four)) + tree(last four)); the
 * last loop is guarded and re-sends nothing. */
static void lane_tree(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 1, INPUTS(FLOATS(1e8f, 1, -1e8f, 1, 1, 2, 3, 4)),
	        "module attributes {stream.level = \"stream\"} {\n"
	        "  func.func @main(%x: tensor<8xf32>) attributes {stream.inputs = [{name = \"x\", "
	        "role = \"input\", type = tensor<8xf32>}],\n"
	        "      stream.outputs = [{name = \"y\", role = \"output\", type = tensor<1xf32>}]} "
	        "{\n"
	        "    %xs = \"stream.load\"(%x) {tensor = tensor<8xf32>} : (tensor<8xf32>) -> "
	        "!stream.itensor<vector<4xf32>, [2], [4], affine_map<(d0) -> (d0)>>\n"
	        "    %y = \"stream.kernel\"(%xs) {name = \"k\", loops = array<i64: 3, 4>, "
	        "reduction = array<i64: 1, 1>, access = [affine_map<(d0, d1) -> (d0 * 4 + d1 - "
	        "4)>],\n"
	        "      guards = [array<i64: 0, 0, 1, 3>], result = affine_map<(d0, d1) -> (0)>, "
	        "init = 0.5 : f32, update = @k.update, scheduled, lanes = 4 : i64, interval = 7 : "
	        "i64,\n"
	        "      combine = \"arith.addf\", tensor = tensor<1xf32>} : "
	        "(!stream.itensor<vector<4xf32>, [2], [4], affine_map<(d0) -> (d0)>>) -> "
	        "!stream.itensor<f32, [], [], affine_map<() -> (0)>>\n"
	        "    \"stream.store\"(%y) {result = array<i64: 0>, tensor = tensor<1xf32>} : "
	        "(!stream.itensor<f32, [], [], affine_map<() -> (0)>>) -> ()\n"
	        "    return\n"
	        "  }\n" SUM_BODIES "}\n");
	EXPECT(&s, 0, 10.5);
	finish(&s);
}

/* --- hardware level
 * ------------------------------------------------------------------------------- */

#define HARDWARE_HEAD                                                                              \
	"module attributes {stream.level = \"hardware\"} {\n"                                      \
	"  func.func @main(%in: memref<?xvector<4xf32>> {stream.port = \"m_x\", stream.buffer = "  \
	"\"x\", stream.channel = 0 : i64, stream.direction = \"read\"},\n"                         \
	"                  %out: memref<?xvector<4xf32>> {stream.port = \"m_y\", stream.buffer = " \
	"\"y\", stream.channel = 1 : i64, stream.direction = \"write\"})\n"                        \
	"      attributes {stream.inputs = [{name = \"x\", role = \"input\", type = "              \
	"tensor<2x4xf32>}],\n"                                                                     \
	"                  stream.outputs = [{name = \"y\", role = \"output\", type = "            \
	"tensor<2xf32>}],\n"                                                                       \
	"                  stream.buffers = [{name = \"x\", words = 2 : i64, word = "              \
	"vector<4xf32>, segments = [{name = \"x\", role = \"input\", offset = 0 : i64, base = 0 "  \
	": i64,\n"                                                                                 \
	"                                      trips = array<i64: 2, 4>, strides = array<i64: 4, " \
	"1>, conditions = []}]},\n"                                                                \
	"                                    {name = \"y\", words = 1 : i64, word = "              \
	"vector<4xf32>, segments = [{name = \"y\", role = \"output\", offset = 0 : i64, base = 0 " \
	": i64,\n"                                                                                 \
	"                                      trips = array<i64: 2>, strides = array<i64: 1>, "   \
	"conditions = []}]}]} {\n"

/* Reads two words, sums their lanes in a tree; the second process collects the sums in the lanes
 * of one word. */
#define READER(words)                                                                              \
	"  func.func private @reader(%m: memref<?xvector<4xf32>>, %f: !stream.fifo<f32, 1>) "      \
	"attributes {stream.process, stream.style = \"stp\", stream.die = 0 : i64} {\n"            \
	"    %c0 = arith.constant 0 : index\n"                                                     \
	"    %c1 = arith.constant 1 : index\n"                                                     \
	"    %n = arith.constant " words " : index\n"                                              \
	"    %true = arith.constant true\n"                                                        \
	"    scf.for %i = %c0 to %n step %c1 {\n"                                                  \
	"      %w = memref.load %m[%i] : memref<?xvector<4xf32>>\n"                                \
	"      %s = \"stream.tree\"(%w) {kind = \"arith.addf\"} : (vector<4xf32>) -> f32\n"        \
	"      \"stream.push\"(%true, %s, %f) : (i1, f32, !stream.fifo<f32, 1>) -> ()\n"           \
	"    } {stream.pipeline = 1 : i64}\n"                                                      \
	"    return\n"                                                                             \
	"  }\n"

#define WRITER_THAT(words, writes)                                                                 \
	"  func.func private @writer(%f: !stream.fifo<f32, 1>, %m: memref<?xvector<4xf32>>) "      \
	"attributes {stream.process, stream.style = \"stp\", stream.die = 0 : i64} {\n"            \
	"    %c0 = arith.constant 0 : index\n"                                                     \
	"    %c1 = arith.constant 1 : index\n"                                                     \
	"    %n = arith.constant " words " : index\n"                                              \
	"    %true = arith.constant true\n"                                                        \
	"    %word = memref.alloca() {stream.name = \"word\"} : memref<1xvector<4xf32>>\n"         \
	"    scf.for %i = %c0 to %n step %c1 {\n"                                                  \
	"      %s = \"stream.pop\"(%true, %f) : (i1, !stream.fifo<f32, 1>) -> f32\n"               \
	"      %w = memref.load %word[%c0] : memref<1xvector<4xf32>>\n"                            \
	"      %v = vector.insertelement %s, %w[%i : index] : vector<4xf32>\n"                     \
	"      memref.store %v, %word[%c0] : memref<1xvector<4xf32>>\n" writes                     \
	"    } {stream.pipeline = 1 : i64}\n"                                                      \
	"    return\n"                                                                             \
	"  }\n"

#define WRITER(words)                                                                              \
	WRITER_THAT(words, "      memref.store %v, %m[%c0] : memref<?xvector<4xf32>>\n")

/* Memory gets the word when it is whole: until then the address is beyond it. */
#define WRITER_AT_END                                                                              \
	WRITER_THAT("2",                                                                           \
	        "      %last = arith.cmpi eq, %i, %c1 : index\n"                                   \
	        "      %at = affine.apply affine_map<(d0) -> (d0 * -5 + 5)>(%i)\n"                 \
	        "      \"stream.write\"(%last, %v, %m, %at) : (i1, vector<4xf32>, "                \
	        "memref<?xvector<4xf32>>, index) -> ()\n")

#define TWO_CALLS                                                                                  \
	"    %f = \"stream.fifo\"() {name = \"sums\"} : () -> !stream.fifo<f32, 1>\n"              \
	"    func.call @reader(%in, %f) : (memref<?xvector<4xf32>>, !stream.fifo<f32, 1>) -> ()\n" \
	"    func.call @writer(%f, %out) : (!stream.fifo<f32, 1>, memref<?xvector<4xf32>>) -> "    \
	"()\n"                                                                                     \
	"    return\n"                                                                             \
	"  }\n"

static void two_processes(void **state)
{
	struct session s;
	(void)state;
	const float *x = FLOATS(1e8f, 1, -1e8f, 1, 1, 2, 3, 4);
	RUN(&s, 1, INPUTS(x), HARDWARE_HEAD TWO_CALLS READER("2") WRITER("2") "}\n");
	EXPECT(&s, 0, 0, 10); /* (1e8 + 1) + (-1e8 + 1) = 0 in a tree */
	finish(&s);
}

static void a_word_is_written_on_a_condition(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 1, INPUTS(FLOATS(1, 2, 3, 4, 5, 6, 7, 8)),
	        HARDWARE_HEAD TWO_CALLS READER("2") WRITER_AT_END "}\n");
	EXPECT(&s, 0, 10, 26);
	finish(&s);
}

static void missing_word(void **state)
{
	struct session s;
	(void)state;
	const float *x = FLOATS(1, 1, 1, 1, 1, 1, 1, 1);
	FAILS(&s, 1, INPUTS(x), HARDWARE_HEAD TWO_CALLS READER("1") WRITER("2") "}\n",
	        "deadlock: writer waits for a word of sums (empty, depth 1), whose other end has "
	        "ended");
	finish(&s);
}

static void left_over_word(void **state)
{
	struct session s;
	(void)state;
	const float *x = FLOATS(1, 1, 1, 1, 1, 1, 1, 1);
	FAILS(&s, 1, INPUTS(x), HARDWARE_HEAD TWO_CALLS READER("2") WRITER("1") "}\n",
	        "1 words are left in channel sums at the end");
	finish(&s);
}

static void port_overrun(void **state)
{
	struct session s;
	(void)state;
	const float *x = FLOATS(1, 1, 1, 1, 1, 1, 1, 1);
	FAILS(&s, 1, INPUTS(x), HARDWARE_HEAD TWO_CALLS READER("3") WRITER("3") "}\n",
	        "process reader is at index 2 in dim 0 of m_x, which has 2");
	finish(&s);
}

/* A word that is popped once and used in every iteration; lanes split and joined; a scalar as an
 * operand of a word operation; an address from an affine map. */
static void stored_words_and_lanes(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 1, INPUTS(FLOATS(1, 2, 3, 4, 5, 6, 7, 8)),
	        HARDWARE_HEAD
	        "    %f = \"stream.fifo\"() {name = \"words\"} : () -> !stream.fifo<vector<4xf32>, "
	        "1>\n"
	        "    func.call @sender(%in, %f) : (memref<?xvector<4xf32>>, "
	        "!stream.fifo<vector<4xf32>, 1>) -> ()\n"
	        "    func.call @mixer(%f, %out) : (!stream.fifo<vector<4xf32>, 1>, "
	        "memref<?xvector<4xf32>>) -> ()\n"
	        "    return\n"
	        "  }\n"
	        "  func.func private @sender(%m: memref<?xvector<4xf32>>, %f: "
	        "!stream.fifo<vector<4xf32>, 1>) attributes {stream.process, stream.style = "
	        "\"stp\", stream.die = 0 : i64} {\n"
	        "    %c0 = arith.constant 0 : index\n"
	        "    %true = arith.constant true\n"
	        "    %at = affine.apply affine_map<(d0) -> (d0 * 3 + 1)>(%c0)\n"
	        "    %w = memref.load %m[%at] : memref<?xvector<4xf32>>\n"
	        "    \"stream.push\"(%true, %w, %f) : (i1, vector<4xf32>, "
	        "!stream.fifo<vector<4xf32>, 1>) -> ()\n"
	        "    return\n"
	        "  }\n"
	        "  func.func private @mixer(%f: !stream.fifo<vector<4xf32>, 1>, %m: "
	        "memref<?xvector<4xf32>>) attributes {stream.process, stream.style = \"stp\", "
	        "stream.die = 0 : i64} {\n"
	        "    %c0 = arith.constant 0 : index\n"
	        "    %c1 = arith.constant 1 : index\n"
	        "    %c3 = arith.constant 3 : index\n"
	        "    %ten = arith.constant 10.0 : f32\n"
	        "    %zero = arith.constant dense<0.0> : vector<4xf32>\n"
	        "    %sum = memref.alloca() {stream.name = \"sum\"} : memref<1xvector<4xf32>>\n"
	        "    memref.store %zero, %sum[%c0] : memref<1xvector<4xf32>>\n"
	        "    scf.for %i = %c0 to %c3 step %c1 {\n"
	        "      %first = arith.cmpi eq, %i, %c0 : index\n"
	        "      %w = \"stream.pop\"(%first, %f) : (i1, !stream.fifo<vector<4xf32>, 1>) -> "
	        "vector<4xf32>\n"
	        "      %old = memref.load %sum[%c0] : memref<1xvector<4xf32>>\n"
	        "      %tens = vector.broadcast %ten : f32 to vector<4xf32>\n"
	        "      %more = arith.addf %old, %w : vector<4xf32>\n"
	        "      %new = arith.select %first, %tens, %more : vector<4xf32>\n"
	        "      memref.store %new, %sum[%c0] : memref<1xvector<4xf32>>\n"
	        "      %high = \"stream.split_lanes\"(%new, %c1) : (vector<4xf32>, index) -> "
	        "vector<2xf32>\n"
	        "      %lane = vector.extractelement %new[%c0 : index] : vector<4xf32>\n"
	        "      %joined = \"stream.join_lanes\"(%high, %high) : (vector<2xf32>, "
	        "vector<2xf32>) -> vector<4xf32>\n"
	        "      %mixed = vector.insertelement %lane, %joined[%c1 : index] : vector<4xf32>\n"
	        "      memref.store %mixed, %m[%c0] : memref<?xvector<4xf32>>\n"
	        "    } {stream.pipeline = 1 : i64}\n"
	        "    return\n"
	        "  }\n"
	        "}\n");
	EXPECT(&s, 0, 24, 20); /* 10 + 7 + 7, 10 + 5 + 5 */
	finish(&s);
}

/* A row passes through a block and is appended to a state at a position that the host gives; the
 * position is i64 there and i32 in memory. */
static void blocks_and_state(void **state)
{
	struct session s;
	(void)state;
	RUN(&s, 3, INPUTS(FLOATS(1, 2, 3, 4, 5, 6), ((const int64_t[]){ 1 }), FLOATS(7, 8)),
	        "module attributes {stream.level = \"hardware\"} {\n"
	        "  func.func @main(%c: memref<?xvector<2xf32>> {stream.port = \"m_c\", "
	        "stream.buffer = \"c\", stream.channel = 0 : i64, stream.direction = \"write\"},\n"
	        "                  %p: memref<?xi32> {stream.port = \"m_p\", stream.buffer = "
	        "\"p\", stream.channel = 0 : i64, stream.direction = \"read\"},\n"
	        "                  %x: memref<?xvector<2xf32>> {stream.port = \"m_x\", "
	        "stream.buffer = \"x\", stream.channel = 0 : i64, stream.direction = \"read\"}) "
	        "attributes {\n"
	        "      stream.inputs = [{name = \"cache\", role = \"state\", type = "
	        "tensor<3x2xf32>}, {name = \"pos\", role = \"input\", type = tensor<1xi64>}, {name "
	        "= \"x\", role = \"input\", type = tensor<1x2xf32>}],\n"
	        "      stream.outputs = [{name = \"cache\", role = \"state\", type = "
	        "tensor<1x2xf32>, axis = 0 : i64, position = \"pos\"}],\n"
	        "      stream.buffers = [\n"
	        "        {name = \"c\", words = 3 : i64, word = vector<2xf32>, segments = [{name = "
	        "\"cache\", role = \"state\", offset = 0 : i64, base = 0 : i64, trips = array<i64: "
	        "6>, strides = array<i64: 1>, conditions = []}]},\n"
	        "        {name = \"p\", words = 1 : i64, word = i32, segments = [{name = \"pos\", "
	        "role = \"input\", offset = 0 : i64, base = 0 : i64, trips = array<i64: 1>, "
	        "strides = array<i64: 1>, conditions = []}]},\n"
	        "        {name = \"x\", words = 1 : i64, word = vector<2xf32>, segments = [{name = "
	        "\"x\", role = \"input\", offset = 0 : i64, base = 0 : i64, trips = array<i64: 2>, "
	        "strides = array<i64: 1>, conditions = []}]}]} {\n"
	        "    %b = \"stream.block_channel\"() {name = \"half\"} : () -> "
	        "!stream.block_channel<memref<1xvector<2xf32>>, 2>\n"
	        "    func.call @drain(%b, %p, %c) : "
	        "(!stream.block_channel<memref<1xvector<2xf32>>, 2>, memref<?xi32>, "
	        "memref<?xvector<2xf32>>) -> ()\n"
	        "    func.call @fill(%x, %b) : (memref<?xvector<2xf32>>, "
	        "!stream.block_channel<memref<1xvector<2xf32>>, 2>) -> ()\n"
	        "    return\n"
	        "  }\n"
	        "  func.func private @fill(%x: memref<?xvector<2xf32>>, %b: "
	        "!stream.block_channel<memref<1xvector<2xf32>>, 2>) attributes {stream.process, "
	        "stream.style = \"stp\", stream.die = 0 : i64} {\n"
	        "    %c0 = arith.constant 0 : index\n"
	        "    %w = memref.load %x[%c0] : memref<?xvector<2xf32>>\n"
	        "    %block = \"stream.acquire\"(%b) {side = \"write\"} : "
	        "(!stream.block_channel<memref<1xvector<2xf32>>, 2>) -> memref<1xvector<2xf32>>\n"
	        "    memref.store %w, %block[%c0] : memref<1xvector<2xf32>>\n"
	        "    \"stream.release\"(%block, %b) : (memref<1xvector<2xf32>>, "
	        "!stream.block_channel<memref<1xvector<2xf32>>, 2>) -> ()\n"
	        "    return\n"
	        "  }\n"
	        "  func.func private @drain(%b: !stream.block_channel<memref<1xvector<2xf32>>, 2>, "
	        "%p: memref<?xi32>, %c: memref<?xvector<2xf32>>) attributes {stream.process, "
	        "stream.style = \"stp\", stream.die = 0 : i64} {\n"
	        "    %c0 = arith.constant 0 : index\n"
	        "    %block = \"stream.acquire\"(%b) {side = \"read\"} : "
	        "(!stream.block_channel<memref<1xvector<2xf32>>, 2>) -> memref<1xvector<2xf32>>\n"
	        "    %w = memref.load %block[%c0] : memref<1xvector<2xf32>>\n"
	        "    %n = memref.load %p[%c0] : memref<?xi32>\n"
	        "    %at = arith.index_cast %n : i32 to index\n"
	        "    memref.store %w, %c[%at] : memref<?xvector<2xf32>>\n"
	        "    \"stream.release\"(%block, %b) : (memref<1xvector<2xf32>>, "
	        "!stream.block_channel<memref<1xvector<2xf32>>, 2>) -> ()\n"
	        "    return\n"
	        "  }\n"
	        "}\n");
	EXPECT(&s, 0, 7, 8);
	finish(&s);
}

/* Sends all of `first` before `second`; the other process reads them alternately: a deadlock. */
#define PAIR                                                                                       \
	"  func.func private @sender(%a: !stream.fifo<f32, 2>, %b: !stream.fifo<f32, 2>) "         \
	"attributes {stream.process, stream.style = \"stp\", stream.die = 0 : i64} {\n"            \
	"    %c0 = arith.constant 0 : index\n"                                                     \
	"    %c1 = arith.constant 1 : index\n"                                                     \
	"    %c4 = arith.constant 4 : index\n"                                                     \
	"    %true = arith.constant true\n"                                                        \
	"    %one = arith.constant 1.0 : f32\n"                                                    \
	"    scf.for %i = %c0 to %c4 step %c1 {\n"                                                 \
	"      \"stream.push\"(%true, %one, %a) : (i1, f32, !stream.fifo<f32, 2>) -> ()\n"         \
	"    } {stream.pipeline = 1 : i64}\n"                                                      \
	"    scf.for %i = %c0 to %c4 step %c1 {\n"                                                 \
	"      \"stream.push\"(%true, %one, %b) : (i1, f32, !stream.fifo<f32, 2>) -> ()\n"         \
	"    } {stream.pipeline = 1 : i64}\n"                                                      \
	"    return\n"                                                                             \
	"  }\n"                                                                                    \
	"  func.func private @receiver(%a: !stream.fifo<f32, 2>, %b: !stream.fifo<f32, 2>) "       \
	"attributes {stream.process, stream.style = \"stp\", stream.die = 0 : i64} {\n"            \
	"    %c0 = arith.constant 0 : index\n"                                                     \
	"    %c1 = arith.constant 1 : index\n"                                                     \
	"    %c4 = arith.constant 4 : index\n"                                                     \
	"    %true = arith.constant true\n"                                                        \
	"    scf.for %i = %c0 to %c4 step %c1 {\n"                                                 \
	"      %x = \"stream.pop\"(%true, %a) : (i1, !stream.fifo<f32, 2>) -> f32\n"               \
	"      %y = \"stream.pop\"(%true, %b) : (i1, !stream.fifo<f32, 2>) -> f32\n"               \
	"    } {stream.pipeline = 1 : i64}\n"                                                      \
	"    return\n"                                                                             \
	"  }\n"

static void deadlock(void **state)
{
	struct session s;
	(void)state;
	FAILS(&s, 0, NULL,
	        "module attributes {stream.level = \"hardware\"} {\n"
	        "  func.func @main() attributes {stream.inputs = [], stream.outputs = [], "
	        "stream.buffers = []} {\n"
	        "    %a = \"stream.fifo\"() {name = \"a\"} : () -> !stream.fifo<f32, 2>\n"
	        "    %b = \"stream.fifo\"() {name = \"b\"} : () -> !stream.fifo<f32, 2>\n"
	        "    func.call @sender(%a, %b) : (!stream.fifo<f32, 2>, !stream.fifo<f32, 2>) -> "
	        "()\n"
	        "    func.call @receiver(%a, %b) : (!stream.fifo<f32, 2>, !stream.fifo<f32, 2>) -> "
	        "()\n"
	        "    return\n"
	        "  }\n" PAIR "}\n",
	        "deadlock: sender waits for space in a (full, depth 2); receiver waits for a word "
	        "of b (empty, depth 2)");
	finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalars),
		cmocka_unit_test(float_predicates),
		cmocka_unit_test(half_storage),
		cmocka_unit_test(linalg),
		cmocka_unit_test(argmax),
		cmocka_unit_test(views),
		cmocka_unit_test(kernel_order),
		cmocka_unit_test(kernel_guard_and_gather),
		cmocka_unit_test(rolled_layers),
		cmocka_unit_test(streams),
		cmocka_unit_test(parts_of_run_time_rows),
		cmocka_unit_test(stream_too_short),
		cmocka_unit_test(lane_tree),
		cmocka_unit_test(two_processes),
		cmocka_unit_test(a_word_is_written_on_a_condition),
		cmocka_unit_test(missing_word),
		cmocka_unit_test(left_over_word),
		cmocka_unit_test(port_overrun),
		cmocka_unit_test(stored_words_and_lanes),
		cmocka_unit_test(blocks_and_state),
		cmocka_unit_test(deadlock),
	};
	return cmocka_run_group_tests_name("eval", tests, NULL, NULL);
}
