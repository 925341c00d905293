/* The emitted C++ against the evaluator, bit for bit: it is compiled as a design's Makefile
 * would, loaded, and started on packed buffers. */
#include "design_case.h"
#include "emitted_cpp.h"
#include "ir/sliding_window.h"
#include "random_convert.h"

static void expect_same(struct design_case *c)
{
	struct text out = text_new(c->arena);
	if (!emit_hls(c->module, platform_load(c->arena, &c->diag, "u55c"), "design", &out))
		fail_msg("not emitted: %s", case_messages(c));
	void *library = emitted_load(c->arena, c->folder, "design", &out, "-O2");
	if (!library)
		fail_msg("the emitted C++ is not accepted:\n%s", out.data);
	if (!eval_module(c->module, c->arena, c->inputs, c->input, c->result))
		fail_msg("not evaluated: %s", case_messages(c));
	const char *wrong = emitted_run(&(struct emitted){ c->arena, c->module, c->inputs,
	                                        c->results, c->input, c->result },
	        library, "design");
	if (wrong)
		fail_msg("%s", wrong);
	dlclose(library);
}

static void check(const char *text)
{
	struct design_case c;
	case_start(&c, text);
	expect_same(&c);
	case_finish(&c);
}

/* A matrix product with bias, an activation, a row sum and a division by it: reductions,
 * converters, forks and casts. */
static void test_compiled_network(void **state)
{
	(void)state;
	check("#ik = affine_map<(i, j, k) -> (i, k)>\n#jk = affine_map<(i, j, k) -> (j, k)>\n#ij3 "
	      "= affine_map<(i, j, k) -> (i, j)>\n"
	      "#ij = affine_map<(i, j) -> (i, j)>\n#j = affine_map<(i, j) -> (j)>\n#i = "
	      "affine_map<(i, j) -> (i)>\n"
	      "func.func @main(%x: tensor<4x32xf32>, %w: tensor<64x32xf32>, %b: tensor<64xf32>) -> "
	      "tensor<4x64xf32> {\n"
	      "  %zero = arith.constant 0.0 : f32\n"
	      "  %e = tensor.empty() : tensor<4x64xf32>\n"
	      "  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64xf32>) -> "
	      "tensor<4x64xf32>\n"
	      "  %y = linalg.generic {indexing_maps = [#ik, #jk, #ij3], iterator_types = "
	      "[\"parallel\", \"parallel\", \"reduction\"]}\n"
	      "      ins(%x, %w : tensor<4x32xf32>, tensor<64x32xf32>) outs(%f : tensor<4x64xf32>) "
	      "{\n"
	      "  ^bb0(%a: f32, %c: f32, %acc: f32):\n"
	      "    %m = arith.mulf %a, %c : f32\n    %s = arith.addf %acc, %m : f32\n    "
	      "linalg.yield %s : f32\n"
	      "  } -> tensor<4x64xf32>\n"
	      "  %z = linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = "
	      "[\"parallel\", \"parallel\"]}\n"
	      "      ins(%y, %b : tensor<4x64xf32>, tensor<64xf32>) outs(%e : tensor<4x64xf32>) {\n"
	      "  ^bb0(%a: f32, %c: f32, %acc: f32):\n"
	      "    %m = arith.addf %a, %c : f32\n    %t = math.tanh %m : f32\n    %p = arith.cmpf "
	      "ugt, %m, %t : f32\n"
	      "    %q = arith.select %p, %m, %t : f32\n    linalg.yield %q : f32\n"
	      "  } -> tensor<4x64xf32>\n"
	      "  %r = tensor.empty() : tensor<4xf32>\n"
	      "  %g = linalg.fill ins(%zero : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>\n"
	      "  %sum = linalg.generic {indexing_maps = [#ij, #i], iterator_types = [\"parallel\", "
	      "\"reduction\"]}\n"
	      "      ins(%z : tensor<4x64xf32>) outs(%g : tensor<4xf32>) {\n"
	      "  ^bb0(%a: f32, %acc: f32):\n    %s = arith.addf %acc, %a : f32\n    linalg.yield "
	      "%s : f32\n"
	      "  } -> tensor<4xf32>\n"
	      "  %o = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = "
	      "[\"parallel\", \"parallel\"]}\n"
	      "      ins(%z, %sum : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) "
	      "{\n"
	      "  ^bb0(%a: f32, %c: f32, %acc: f32):\n    %s = arith.divf %a, %c : f32\n    "
	      "linalg.yield %s : f32\n"
	      "  } -> tensor<4x64xf32>\n"
	      "  return %o : tensor<4x64xf32>\n}\n");
}

/* One process between a loader and a storer: 32 words of 4 elements. */
static const char *one_process(struct design_case *scratch, const char *scalar, const char *body)
{
	const char *form =
	        "module attributes {stream.level = \"hardware\"} {\n"
	        "func.func @main(%x: memref<?xvector<4x~>>, %y: memref<?xvector<4x~>>) attributes "
	        "{\n"
	        "  arg_attrs = [{stream.port = \"m_x\", stream.buffer = \"x\", stream.channel = 0, "
	        "stream.direction = \"read\"},\n"
	        "               {stream.port = \"m_y\", stream.buffer = \"y\", stream.channel = 1, "
	        "stream.direction = \"write\"}],\n"
	        "  stream.inputs = [{name = \"x\", role = \"input\", type = tensor<128x~>}], "
	        "stream.outputs = [{name = \"y\", role = \"output\", type = tensor<128x~>}],\n"
	        "  stream.buffers = [{name = \"x\", words = 32, word = vector<4x~>, segments = "
	        "[{name = \"x\", role = \"input\", offset = 0, base = 0, trips = array<i64: 128>, "
	        "strides = array<i64: 1>, conditions = []}]},\n"
	        "                    {name = \"y\", words = 32, word = vector<4x~>, segments = "
	        "[{name = \"y\", role = \"output\", offset = 0, base = 0, trips = array<i64: 128>, "
	        "strides = array<i64: 1>, conditions = []}]}]} {\n"
	        "  %a = \"stream.fifo\"() {name = \"a\"} : () -> !stream.fifo<vector<4x~>, 4>\n"
	        "  %b = \"stream.fifo\"() {name = \"b\"} : () -> !stream.fifo<vector<4x~>, 4>\n"
	        "  func.call @load(%x, %a) : (memref<?xvector<4x~>>, !stream.fifo<vector<4x~>, 4>) "
	        "-> ()\n"
	        "  func.call @work(%a, %b) : (!stream.fifo<vector<4x~>, 4>, "
	        "!stream.fifo<vector<4x~>, 4>) -> ()\n"
	        "  func.call @store(%b, %y) : (!stream.fifo<vector<4x~>, 4>, "
	        "memref<?xvector<4x~>>) -> ()\n"
	        "  return\n}\n"
	        "func.func private @load(%m: memref<?xvector<4x~>>, %f: !stream.fifo<vector<4x~>, "
	        "4>) attributes {stream.process, stream.style = \"stp\", stream.die = 0} {\n"
	        "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %n = "
	        "arith.constant 32 : index\n  %t = arith.constant true\n"
	        "  scf.for %i = %c0 to %n step %c1 {\n    %w = memref.load %m[%i] : "
	        "memref<?xvector<4x~>>\n"
	        "    \"stream.push\"(%t, %w, %f) : (i1, vector<4x~>, !stream.fifo<vector<4x~>, 4>) "
	        "-> ()\n  } {stream.pipeline = 1}\n  return\n}\n"
	        "func.func private @store(%f: !stream.fifo<vector<4x~>, 4>, %m: "
	        "memref<?xvector<4x~>>) attributes {stream.process, stream.style = \"stp\", "
	        "stream.die = 0} {\n"
	        "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %n = "
	        "arith.constant 32 : index\n  %t = arith.constant true\n"
	        "  scf.for %i = %c0 to %n step %c1 {\n    %w = \"stream.pop\"(%t, %f) : (i1, "
	        "!stream.fifo<vector<4x~>, 4>) -> vector<4x~>\n"
	        "    memref.store %w, %m[%i] : memref<?xvector<4x~>>\n  } {stream.pipeline = 1}\n  "
	        "return\n}\n"
	        "func.func private @work(%f: !stream.fifo<vector<4x~>, 4>, %g: "
	        "!stream.fifo<vector<4x~>, 4>) attributes {stream.process, stream.style = \"flp\", "
	        "stream.die = 0} {\n"
	        "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c2 = "
	        "arith.constant 2 : index\n  %n = arith.constant 32 : index\n  %t = arith.constant "
	        "true\n"
	        "#  return\n}\n}\n";
	struct text text = text_new(scratch->arena);
	for (const char *at = form; *at; at++) {
		const char *part = *at == '~' ? scalar
		        : *at == '#'          ? body
		                              : text_copy(scratch->arena, at, 1);
		text_add(&text, "%s", part);
	}
	return text.data;
}

static void check_work(const char *scalar, const char *body)
{
	struct guard guard;
	struct design_case scratch = { .arena = arena_new(&guard) };
	check(one_process(&scratch, scalar, body));
	arena_free(scratch.arena);
}

#define LOOP(body) "  scf.for %i = %c0 to %n step %c1 {\n" body "  } {stream.pipeline = 1}\n"
#define TAKE(type)                                                                                 \
	"    %w = \"stream.pop\"(%t, %f) : (i1, !stream.fifo<vector<4x" type                       \
	">, 4>) -> vector<4x" type ">\n"
#define PUSH(value, type)                                                                          \
	"    \"stream.push\"(%t, " value ", %g) : (i1, vector<4x" type                             \
	">, !stream.fifo<vector<4x" type ">, 4>) -> ()\n"

/* Every math function and comparison, lane by lane and mixed with broadcasts. */
static void test_real_operations(void **state)
{
	(void)state;
	static const char *const unary[] = { "arith.negf", "math.absf", "math.exp", "math.log",
		"math.sqrt", "math.rsqrt", "math.tanh", "math.erf", "math.sin", "math.cos",
		"math.floor", "math.ceil", "math.roundeven", "math.log1p", "math.expm1",
		"math.log2", "math.log10", "math.tan", "math.sinh", "math.cosh", "math.asin",
		"math.acos", "math.atan", "math.asinh", "math.acosh", "math.atanh" };
	static const char *const binary[] = { "arith.addf", "arith.subf", "arith.mulf",
		"arith.divf", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf",
		"math.powf", "arith.remf", "math.atan2" };
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	struct text text = text_new(arena);
	text_add(&text, "    %%s0 = arith.addf %%w, %%w : vector<4xf32>\n");
	int n = 0;
	for (size_t i = 0; i < sizeof unary / sizeof *unary; i++, n++)
		text_add(&text,
		        "    %%u%zu = %s %%w : vector<4xf32>\n    %%s%d = arith.subf %%s%d, %%u%zu "
		        ": vector<4xf32>\n",
		        i, unary[i], n + 1, n, i);
	for (size_t i = 0; i < sizeof binary / sizeof *binary; i++, n++)
		text_add(&text,
		        "    %%b%zu = %s %%w, %%u5 : vector<4xf32>\n    %%s%d = arith.addf %%s%d, "
		        "%%b%zu : vector<4xf32>\n",
		        i, binary[i], n + 1, n, i);
	for (int p = 0; p < 16; p++, n++)
		text_add(&text,
		        "    %%p%d = \"arith.cmpf\"(%%w, %%u3) {predicate = %d : i64} : "
		        "(vector<4xf32>, vector<4xf32>) -> vector<4xi1>\n"
		        "    %%s%d = arith.select %%p%d, %%s%d, %%w : vector<4xi1>, "
		        "vector<4xf32>\n",
		        p, p, n + 1, p, n);
	text_add(&text,
	        "    %%bits = arith.bitcast %%s%d : vector<4xf32> to vector<4xi32>\n    %%number = "
	        "arith.sitofp %%bits : vector<4xi32> to vector<4xf32>\n"
	        "    %%s%d = arith.addf %%s%d, %%number : vector<4xf32>\n",
	        n, n + 1, n);
	n++;
	text_add(&text,
	        "    %%near = \"stream.round_saturate\"(%%w) : (vector<4xf32>) -> vector<4xi8>\n   "
	        " %%wide = \"stream.round_saturate\"(%%w) : (vector<4xf32>) -> vector<4xi16>\n"
	        "    %%from = arith.extsi %%near : vector<4xi8> to vector<4xi16>\n    %%all = "
	        "arith.addi %%from, %%wide : vector<4xi16>\n    %%whole = arith.sitofp %%all : "
	        "vector<4xi16> to vector<4xf32>\n"
	        "    %%peak = \"stream.absmax\"(%%w, %%whole) : (vector<4xf32>, vector<4xf32>) -> "
	        "vector<4xf32>\n    %%s%d = arith.addf %%s%d, %%peak : vector<4xf32>\n",
	        n + 1, n);
	n++;
	struct text body = text_new(arena);
	text_add(&body,
	        "  scf.for %%i = %%c0 to %%n step %%c1 {\n    %%w = \"stream.pop\"(%%t, %%f) : "
	        "(i1, !stream.fifo<vector<4xf32>, 4>) -> vector<4xf32>\n%s",
	        text.data);
	text_add(&body,
	        "    \"stream.push\"(%%t, %%s%d, %%g) : (i1, vector<4xf32>, "
	        "!stream.fifo<vector<4xf32>, 4>) -> ()\n  } {stream.pipeline = 1}\n",
	        n);
	check_work("f32", body.data);
	arena_free(arena);
}

static void test_integer_operations(void **state)
{
	(void)state;
	static const char *const types[] = { "i4", "i8", "i16", "i32", "i64" };
	static const char *const binary[] = { "arith.addi", "arith.subi", "arith.muli",
		"arith.divsi", "arith.remsi", "arith.floordivsi", "arith.andi", "arith.ori",
		"arith.xori", "arith.maxsi", "arith.minsi", "arith.divui", "arith.remui",
		"arith.maxui", "arith.minui", "arith.shli", "arith.shrsi", "arith.shrui" };
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
		struct text text = text_new(arena);
		const char *type = types[t];
		int n = 0;
		text_add(&text,
		        "    %%k = arith.constant dense<3> : vector<4x%s>\n    %%s0 = arith.muli "
		        "%%w, %%w : vector<4x%s>\n",
		        type, type);
		for (size_t i = 0; i < sizeof binary / sizeof *binary; i++, n++)
			text_add(&text,
			        "    %%b%zu = %s %%s%d, %s : vector<4x%s>\n    %%s%d = arith.addi "
			        "%%b%zu, %%w : vector<4x%s>\n",
			        i, binary[i], n, i % 2 ? "%k" : "%w", type, n + 1, i, type);
		for (int p = 0; p < 10; p++, n++)
			text_add(&text,
			        "    %%p%d = \"arith.cmpi\"(%%w, %%s%d) {predicate = %d : i64} : "
			        "(vector<4x%s>, vector<4x%s>) -> vector<4xi1>\n"
			        "    %%e%d = arith.extsi %%p%d : vector<4xi1> to vector<4x%s>\n    "
			        "%%s%d = arith.addi %%s%d, %%e%d : vector<4x%s>\n",
			        p, n, p, type, type, p, p, type, n + 1, n, p, type);
		text_add(&text,
		        "    %%fl = arith.sitofp %%s%d : vector<4x%s> to vector<4xf32>\n    %%ex = "
		        "math.exp %%fl : vector<4xf32>\n    %%bk = arith.fptosi %%ex : "
		        "vector<4xf32> to vector<4x%s>\n"
		        "    %%z = arith.xori %%bk, %%s%d : vector<4x%s>\n",
		        n, type, type, n, type);
		check_work(type,
		        text_format(arena,
		                "  scf.for %%i = %%c0 to %%n step %%c1 {\n    %%w = "
		                "\"stream.pop\"(%%t, %%f) : (i1, !stream.fifo<vector<4x%s>, 4>) -> "
		                "vector<4x%s>\n%s"
		                "    \"stream.push\"(%%t, %%z, %%g) : (i1, vector<4x%s>, "
		                "!stream.fifo<vector<4x%s>, 4>) -> ()\n  } {stream.pipeline = 1}\n",
		                type, type, text.data, type, type));
	}
	arena_free(arena);
}

/* Half floats are rounded after every operation; a splat constant of each. */
static void test_half_operations(void **state)
{
	(void)state;
	static const char *const types[] = { "f16", "bf16" };
	static const char *const binary[] = { "arith.addf", "arith.subf", "arith.mulf",
		"arith.divf", "arith.maximumf", "arith.minnumf" };
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
		const char *type = types[t];
		struct text text = text_new(arena);
		text_add(&text,
		        "    %%k = arith.constant dense<-1.5> : vector<4x%s>\n    %%s0 = math.exp "
		        "%%w : vector<4x%s>\n",
		        type, type);
		int n = 0;
		for (size_t i = 0; i < sizeof binary / sizeof *binary; i++, n++)
			text_add(&text,
			        "    %%b%zu = %s %%s%d, %s : vector<4x%s>\n    %%s%d = arith.addf "
			        "%%b%zu, %%w : vector<4x%s>\n",
			        i, binary[i], n, i % 2 ? "%k" : "%w", type, n + 1, i, type);
		text_add(&text,
		        "    %%wide = arith.extf %%s%d : vector<4x%s> to vector<4xf32>\n    %%more "
		        "= math.tanh %%wide : vector<4xf32>\n"
		        "    %%back = arith.truncf %%more : vector<4xf32> to vector<4x%s>\n    "
		        "%%int = arith.fptosi %%s%d : vector<4x%s> to vector<4xi4>\n"
		        "    %%half = arith.sitofp %%int : vector<4xi4> to vector<4x%s>\n    %%p = "
		        "arith.cmpf ogt, %%half, %%back : vector<4x%s>\n"
		        "    %%z = arith.select %%p, %%half, %%back : vector<4xi1>, vector<4x%s>\n",
		        n, type, type, n, type, type, type, type);
		check_work(type,
		        text_format(arena,
		                "  scf.for %%i = %%c0 to %%n step %%c1 {\n    %%w = "
		                "\"stream.pop\"(%%t, %%f) : (i1, !stream.fifo<vector<4x%s>, 4>) -> "
		                "vector<4x%s>\n%s"
		                "    \"stream.push\"(%%t, %%z, %%g) : (i1, vector<4x%s>, "
		                "!stream.fifo<vector<4x%s>, 4>) -> ()\n  } {stream.pipeline = 1}\n",
		                type, type, text.data, type, type));
	}
	arena_free(arena);
}

/* y[n] = sum over groups of (sum of x[g, k] w[n, g, k], in integers) * scale[n, g]: 4-bit
 * weights in wide words, 8-bit activations, half scales. */
static void test_narrow_contraction(void **state)
{
	(void)state;
	check("func.func @main(%x: tensor<3x64xi8>, %w: tensor<32x3x64xi4>, %s: tensor<32x3xf16>) "
	      "-> tensor<32xf32> {\n"
	      "  %zero = arith.constant 0 : i32\n  %none = arith.constant 0.0 : f32\n"
	      "  %e = tensor.empty() : tensor<32x3xi32>\n  %f = linalg.fill ins(%zero : i32) "
	      "outs(%e : tensor<32x3xi32>) -> tensor<32x3xi32>\n"
	      "  %d = linalg.generic {indexing_maps = [affine_map<(n, g, k) -> (g, k)>, "
	      "affine_map<(n, g, k) -> (n, g, k)>, affine_map<(n, g, k) -> (n, g)>],\n"
	      "      iterator_types = [\"parallel\", \"parallel\", \"reduction\"]} ins(%x, %w : "
	      "tensor<3x64xi8>, tensor<32x3x64xi4>) outs(%f : tensor<32x3xi32>) {\n"
	      "  ^bb0(%a: i8, %b: i4, %acc: i32):\n    %p = arith.extsi %a : i8 to i32\n    %q = "
	      "arith.extsi %b : i4 to i32\n"
	      "    %m = arith.muli %p, %q : i32\n    %r = arith.addi %acc, %m : i32\n    "
	      "linalg.yield %r : i32\n  } -> tensor<32x3xi32>\n"
	      "  %o = tensor.empty() : tensor<32xf32>\n  %z = linalg.fill ins(%none : f32) outs(%o "
	      ": tensor<32xf32>) -> tensor<32xf32>\n"
	      "  %y = linalg.generic {indexing_maps = [affine_map<(n, g) -> (n, g)>, "
	      "affine_map<(n, g) -> (n, g)>, affine_map<(n, g) -> (n)>],\n"
	      "      iterator_types = [\"parallel\", \"reduction\"]} ins(%d, %s : "
	      "tensor<32x3xi32>, tensor<32x3xf16>) outs(%z : tensor<32xf32>) {\n"
	      "  ^bb0(%a: i32, %b: f16, %acc: f32):\n    %p = arith.sitofp %a : i32 to f32\n    %q "
	      "= arith.extf %b : f16 to f32\n"
	      "    %m = arith.mulf %p, %q : f32\n    %r = arith.addf %acc, %m : f32\n    "
	      "linalg.yield %r : f32\n  } -> tensor<32xf32>\n"
	      "  return %y : tensor<32xf32>\n}\n");
}

/* An array that is read and written in one iteration, a value kept from before the write, and
 * work that only a conditional push needs. */
static void test_order_of_loads_and_stores(void **state)
{
	(void)state;
	check_work("f32",
	        "  %acc = memref.alloca() {stream.name = \"acc\", stream.partition = 2, "
	        "stream.storage = \"lutram\"} : memref<2xvector<4xf32>>\n"
	        "  %zero = arith.constant dense<0.0> : vector<4xf32>\n"
	        "  memref.store %zero, %acc[%c0] : memref<2xvector<4xf32>>\n  memref.store %zero, "
	        "%acc[%c1] : memref<2xvector<4xf32>>\n" LOOP(
	                "    %p = arith.remsi %i, %c2 : index\n    %odd = arith.cmpi eq, %p, %c1 : "
	                "index\n" TAKE(
	                        "f32") "    %old = memref.load %acc[%p] : "
	                               "memref<2xvector<4xf32>>\n    %sum = arith.addf %old, %w : "
	                               "vector<4xf32>\n"
	                               "    %before = arith.mulf %old, %w : vector<4xf32>\n    "
	                               "memref.store %sum, %acc[%p] : memref<2xvector<4xf32>>\n"
	                               "    %after = memref.load %acc[%c0] : "
	                               "memref<2xvector<4xf32>>\n    %late = math.exp %before : "
	                               "vector<4xf32>\n"
	                               "    %mix = arith.addf %late, %after : vector<4xf32>\n    "
	                               "%lane = vector.extractelement %mix[%p : index] : "
	                               "vector<4xf32>\n"
	                               "    %set = vector.insertelement %lane, %sum[%c2 : index] : "
	                               "vector<4xf32>\n    %never = arith.xori %odd, %t : i1\n"
	                               "    \"stream.push\"(%odd, %set, %g) : (i1, vector<4xf32>, "
	                               "!stream.fifo<vector<4xf32>, 4>) -> ()\n")
	                LOOP("    %p = arith.remsi %i, %c2 : index\n    %even = arith.cmpi eq, %p, "
	                     "%c0 : index\n"
	                     "    %old = memref.load %acc[%p] : memref<2xvector<4xf32>>\n    %work "
	                     "= math.tanh %old : vector<4xf32>\n"
	                     "    memref.store %work, %acc[%p] : memref<2xvector<4xf32>>\n    "
	                     "%more = math.exp %old : vector<4xf32>\n    %most = arith.addf %more, "
	                     "%work : vector<4xf32>\n"
	                     "    \"stream.push\"(%even, %most, %g) : (i1, vector<4xf32>, "
	                     "!stream.fifo<vector<4xf32>, 4>) -> ()\n"));
}

/* A take that is not always due keeps its word; trees over odd counts; words split and joined. */
static void test_registers_trees_and_parts(void **state)
{
	(void)state;
	check_work("f32",
	        LOOP("    %p = arith.remsi %i, %c2 : index\n    %even = arith.cmpi eq, %p, %c0 : "
	             "index\n" TAKE(
	                     "f32") "    %half = \"stream.split_lanes\"(%w, %p) : (vector<4xf32>, "
	                            "index) -> vector<2xf32>\n"
	                            "    %a = vector.extractelement %w[%c0 : index] : "
	                            "vector<4xf32>\n    %b = vector.extractelement %w[%p : index] "
	                            ": vector<4xf32>\n"
	                            "    %three = \"stream.join_lanes\"(%a, %b, %a) : (f32, f32, "
	                            "f32) -> vector<3xf32>\n"
	                            "    %sum = \"stream.tree\"(%three) {kind = \"arith.addf\"} : "
	                            "(vector<3xf32>) -> f32\n"
	                            "    %most = \"stream.tree\"(%w) {kind = \"arith.maximumf\"} : "
	                            "(vector<4xf32>) -> f32\n"
	                            "    %s = vector.broadcast %sum : f32 to vector<2xf32>\n    %m "
	                            "= vector.broadcast %most : f32 to vector<2xf32>\n"
	                            "    %x = arith.mulf %half, %s : vector<2xf32>\n    %y = "
	                            "arith.subf %half, %m : vector<2xf32>\n"
	                            "    %out = \"stream.join_lanes\"(%x, %y) : (vector<2xf32>, "
	                            "vector<2xf32>) -> vector<4xf32>\n" PUSH("%out", "f32")));
}

/* %rx or %rw: a word of the constants that `numbers` lists as %K…. */
static void add_joined(
        struct text *text, const char *name, const char *numbers, int lanes, int bits)
{
	text_add(text, "  %%r%s = \"stream.join_lanes\"(", name);
	for (const char *at = numbers; *at; at++)
		text_add(text, "%s", *at == 'K' ? name : text_copy(text->arena, at, 1));
	text_add(text, ") : (");
	for (int l = 0; l < lanes; l++)
		text_add(text, "%si%d", l ? ", " : "", bits);
	text_add(text, ") -> vector<%dxi%d>\n", lanes, bits);
}

/* Up to the loops that give words y of `per` sums: constants, and words %rx and %rw of random
 * numbers of both types. */
static void begin_dots(
        struct text *text, const char *y, int per, int count, int lanes, int common, int own)
{
	struct text numbers = text_new(text->arena);
	for (int l = 0; l < lanes; l++)
		text_add(&numbers, "%s%%K%d", l ? ", " : "", (int)(case_random() % 16));
	text_add(text,
	        "module attributes {stream.level = \"hardware\"} {\nfunc.func @main(%%y: "
	        "memref<?x%s>) attributes {\n"
	        "  arg_attrs = [{stream.port = \"m_y\", stream.buffer = \"y\", stream.channel = 0, "
	        "stream.direction = \"write\"}], stream.inputs = [],\n"
	        "  stream.outputs = [{name = \"y\", role = \"output\", type = tensor<%dxi32>}], "
	        "stream.buffers = [{name = \"y\", words = %d, word = %s,\n"
	        "    segments = [{name = \"y\", role = \"output\", offset = 0, base = 0, trips = "
	        "array<i64: %d>, strides = array<i64: 1>, conditions = []}]}]} {\n"
	        "  func.call @work(%%y) : (memref<?x%s>) -> ()\n  return\n}\n",
	        y, 2 * count * per, 2 * count, y, 2 * count * per, y);
	text_add(text,
	        "func.func private @work(%%m: memref<?x%s>) attributes {stream.process, "
	        "stream.style = \"stp\", stream.die = 0} {\n"
	        "  %%c0 = arith.constant 0 : index\n  %%c1 = arith.constant 1 : index\n  %%s1 = "
	        "arith.constant %d : index\n  %%s2 = arith.constant %d : index\n  %%n = "
	        "arith.constant %d : index\n",
	        y, 1 << common, 1 << (common + own), count);
	for (int k = 0; k < 16; k++)
		text_add(text,
		        "  %%x%d = arith.constant %d : i%d\n  %%w%d = arith.constant %d : i%d\n", k,
		        k - 8, common, k, k - 8, own);
	add_joined(text, "x", numbers.data, lanes, common);
	add_joined(text, "w", numbers.data, lanes, own);
}

/* stream.dot: every pair of numbers of one type against every number of the other, the same in all
 * lanes, where the sums are largest; then numbers that differ from lane to lane.  few: how many
 * values of the second word are tried, from the smallest to the largest; 0: all. */
static void check_dot(int lanes, int common, int own, int words, int few)
{
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	const char *x = text_format(arena, "vector<%dxi%d>", lanes, common);
	const char *w = text_format(arena, "vector<%dxi%d>", lanes, own);
	const char *y = words > 1 ? "vector<2xi32>" : "i32";
	struct text text = text_new(arena);
	int count = few ? few << (common + own) : 1 << (common + own * words);
	begin_dots(&text, y, words, count, lanes, common, own);
	text_add(&text,
	        "  %%step = arith.constant %d : index\n  %%least = arith.constant %d : index\n",
	        few ? ((1 << own) - 1) / (few - 1) : 1, few ? -(1 << (own - 1)) : 0);
	for (int mixed = 0; mixed < 2; mixed++) {
		const char *kind = mixed ? "m" : "x";
		const char *second = "";
		text_add(&text,
		        "  scf.for %%i = %%c0 to %%n step %%c1 {\n    %%q = arith.divsi %%i, %%s1 "
		        ": index\n"
		        "    %%a = arith.index_cast %%i : index to i%d\n    %%b = arith.index_cast "
		        "%%q : index to i%d\n    %%ax = vector.broadcast %%a : i%d to %s\n    %%bx "
		        "= vector.broadcast %%b : i%d to %s\n"
		        "    %%am = arith.muli %%ax, %%rx : %s\n    %%bm = arith.muli %%bx, %%rw : "
		        "%s\n",
		        common, own, common, x, own, w, x, w);
		if (words > 1) {
			text_add(&text,
			        "    %%n2 = arith.divsi %%i, %%s2 : index\n    %%t2 = arith.muli "
			        "%%n2, %%step : index\n    %%r = arith.addi %%t2, %%least : "
			        "index\n    %%c = arith.index_cast %%r : index to i%d\n    %%cx = "
			        "vector.broadcast %%c : i%d to %s\n"
			        "    %%cm = arith.addi %%cx, %%bm : %s\n",
			        own, own, w, w);
			second = text_format(arena, ", %%c%s", kind);
		}
		text_add(&text, "    %%d = \"stream.dot\"(%%a%s, %%b%s%s) : (%s, %s%s%s) -> %s\n",
		        kind, kind, second, x, w, words > 1 ? ", " : "", words > 1 ? w : "", y);
		text_add(&text,
		        "    %%at = affine.apply affine_map<(d0) -> (d0 + %d)>(%%i)\n    "
		        "memref.store %%d, %%m[%%at] : memref<?x%s>\n  } {stream.pipeline = 1}\n",
		        mixed ? count : 0, y);
	}
	text_add(&text, "  return\n}\n}\n");
	check(text.data);
	arena_free(arena);
}

/* Two words of both operands, four products per DSP: every x against every pair of weights, sharing
 * the DSP with another x that is corrected for it; the same in all lanes, and with numbers that
 * differ from lane to lane.  Each of several pairs has the two x in another order. */
static void check_four(int lanes, int common, int own, int pairs)
{
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	const char *x = text_format(arena, "vector<%dxi%d>", lanes, common);
	const char *w = text_format(arena, "vector<%dxi%d>", lanes, own);
	struct text text = text_new(arena);
	const char *y = text_format(arena, "vector<%dxi32>", 4 * pairs);
	const char *words = pairs > 1 ? text_format(arena, ", %s, %s", x, x) : "";
	int count = 1 << (common + 2 * own);
	begin_dots(&text, y, 4 * pairs, count, lanes, common, own);
	text_add(&text,
	        "  %%turn = arith.constant 37 : index\n  %%least = arith.constant %d : i%d\n  "
	        "%%zero = arith.constant 0 : i%d\n  %%none = vector.broadcast %%zero : i%d to %s\n",
	        1 - (1 << (common - 1)), common, common, common, x);
	for (int mixed = 0; mixed < 2; mixed++) {
		text_add(&text,
		        "  scf.for %%i = %%c0 to %%n step %%c1 {\n    %%q = arith.divsi %%i, %%s1 "
		        ": index\n    %%r = arith.divsi %%i, %%s2 : index\n    %%t = arith.muli "
		        "%%i, %%turn : index\n    %%u = arith.divsi %%t, %%s1 : index\n"
		        "    %%v = arith.addi %%t, %%u : index\n");
		for (int j = 0; j < 2; j++)
			text_add(&text,
			        "    %%a%d = arith.index_cast %%%s : index to i%d\n    %%b%d = "
			        "arith.index_cast %%%s : index to i%d\n    %%h%d = "
			        "vector.broadcast %%a%d : i%d to %s\n"
			        "    %%g%d = vector.broadcast %%b%d : i%d to %s\n    %%e%d = "
			        "arith.%s %%h%d, %%r%s : %s\n    %%o%d = arith.%s %%g%d, %%r%s : "
			        "%s\n"
			        "    %%f%d = vector.broadcast %%least : i%d to %s\n    %%p%d = "
			        "arith.maxsi %%%s%d, %%f%d : %s\n",
			        j, j ? "v" : "i", common, j, j ? "r" : "q", own, j, j, common, x, j,
			        j, own, w, j, j ? "addi" : "muli", j, "x", x, j,
			        j ? "addi" : "muli", j, "w", w, j, common, x, j, mixed ? "e" : "h",
			        j, j, x);
		for (int j = 0; j < pairs; j++)
			text_add(&text,
			        "    %%z%d = arith.cmpi slt, %%p%d, %%none : %s\n    %%less%d = "
			        "arith.extui %%z%d : vector<%dxi1> to %s\n    %%l%d = arith.subi "
			        "%%p%d, %%less%d : %s\n",
			        j, j, x, j, j, lanes, x, j, !j, j, x);
		text_add(&text,
		        "    %%d = \"stream.dot\"(%%p0, %%l0%s, %%%s0, %%%s1) {input_words = %d : "
		        "i64} : (%s, %s%s, %s, %s) -> %s\n",
		        pairs > 1 ? ", %p1, %l1" : "", mixed ? "o" : "g", mixed ? "o" : "g",
		        2 * pairs, x, x, words, w, w, y);
		text_add(&text,
		        "    %%at = affine.apply affine_map<(d0) -> (d0 + %d)>(%%i)\n    "
		        "memref.store %%d, %%m[%%at] : memref<?x%s>\n  } {stream.pipeline = 1}\n",
		        mixed ? count : 0, y);
	}
	text_add(&text, "  return\n}\n}\n");
	check(text.data);
	arena_free(arena);
}

/* One word against the columns of another: every number of it against every one of theirs, which
 * differ from lane to lane. */
static void check_across(int rows, int columns, int bits)
{
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	const char *x = text_format(arena, "vector<%dxi%d>", rows, bits);
	const char *w = text_format(arena, "vector<%dxi%d>", rows * columns, bits);
	const char *y = text_format(arena, "vector<%dxi32>", columns);
	struct text text = text_new(arena);
	struct text numbers = text_new(arena);
	/* begin_dots makes room for twice as many words */
	int count = 1 << (2 * bits - 1);
	begin_dots(&text, y, columns, count, rows, bits, bits);
	for (int l = 0; l < rows * columns; l++)
		text_add(&numbers, "%s%%K%d", l ? ", " : "", (int)(case_random() % 16));
	text_add(&text, "  %%all = arith.constant %d : index\n", 2 * count);
	for (int k = 0; k < 16; k++)
		text_add(&text, "  %%v%d = arith.constant %d : i%d\n", k, 2 * k - 15, bits);
	add_joined(&text, "v", numbers.data, rows * columns, bits);
	text_add(&text,
	        "  scf.for %%i = %%c0 to %%all step %%c1 {\n    %%q = arith.divsi %%i, %%s1 : "
	        "index\n"
	        "    %%a = arith.index_cast %%i : index to i%d\n    %%b = arith.index_cast %%q : "
	        "index to i%d\n    %%ax = vector.broadcast %%a : i%d to %s\n    %%bx = "
	        "vector.broadcast %%b : i%d to %s\n"
	        "    %%am = arith.addi %%ax, %%rx : %s\n    %%bm = arith.muli %%bx, %%rv : %s\n    "
	        "%%d = \"stream.dot\"(%%am, %%bm) {columns = %d : i64} : (%s, %s) -> %s\n",
	        bits, bits, bits, x, bits, w, x, w, columns, x, w, y);
	text_add(&text,
	        "    memref.store %%d, %%m[%%i] : memref<?x%s>\n  } {stream.pipeline = 1}\n  "
	        "return\n}\n}\n",
	        y);
	check(text.data);
	arena_free(arena);
}

static void test_dots(void **state)
{
	(void)state;
	check_dot(128, 8, 4, 2, 0);
	check_dot(64, 4, 4, 2, 0);
	check_dot(5, 4, 4, 2, 0);
	check_dot(7, 8, 8, 1, 0);
	/* a product borrows by its own sign only, so a few values of its neighbour suffice */
	check_dot(64, 8, 8, 2, 4);
	check_across(8, 6, 8);
	check_across(3, 5, 8);
	check_four(128, 8, 4, 1);
	check_four(5, 4, 4, 2);
	if (text_same(getenv("STC_TEST_MODE"), "long")) {
		check_dot(128, 4, 8, 2, 0);
		check_dot(2, 8, 8, 2, 0);
	}
}

/* One layer sees a row, the other all: a counter holds the rows of the latter. */
static void test_counters_of_differing_windows(void **state)
{
	(void)state;
	const int64_t rows[2] = { 1, SLIDING_WINDOW_ALL };
	struct design_case c;
	struct guard guard;
	struct design_case scratch = { .arena = arena_new(&guard) };
	case_start(&c,
	        one_process(&scratch, "i32",
	                "  %half = arith.constant 16 : index\n  %rows = arith.minsi %n, %half : "
	                "index\n  scf.for %o = %c0 to %c2 step %c1 {\n    scf.for %i = %c0 to "
	                "%rows "
	                "step %c1 {\n" TAKE(
	                        "i32") "    %k = arith.index_cast %i : index to i32\n"
	                               "    %v = vector.broadcast %k : i32 to vector<4xi32>\n"
	                               "    %s = arith.addi %w, %v : vector<4xi32>\n" PUSH("%s",
	                                       "i32") "    } {stream.pipeline = 1, stream.run_time "
	                                              "= {most = 16, plus = 0, symbol = "
	                                              "\"n_window0\", tile = 1, times = 1}}\n  "
	                                              "}\n"));
	const char *name = sliding_window_add(c.module,
	        (struct sliding_window){
	                .symbol = "n", .tile = 1, .most = 16, .layers = 2, .rows = rows });
	assert_string_equal(name, "n_window0");
	expect_same(&c);
	case_finish(&c);
	arena_free(scratch.arena);
}

static void test_adapters_are_the_platforms(void **state)
{
	(void)state;
	struct guard guard;
	struct design_case c;
	struct design_case scratch = { .arena = arena_new(&guard) };
	case_start(&c, one_process(&scratch, "f32", LOOP(TAKE("f32") PUSH("%w", "f32"))));
	struct platform platform = *platform_load(c.arena, &c.diag, "u55c");
	platform.burst = 64;
	platform.outstanding = 4;
	struct text out = text_new(c.arena);
	assert_true(emit_hls(c.module, &platform, "design", &out));
	assert_non_null(strstr(out.data, "num_read_outstanding=4 max_read_burst_length=64 "));
	assert_non_null(strstr(out.data, "num_write_outstanding=4 max_write_burst_length=64 "));
	case_finish(&c);
	arena_free(scratch.arena);
}

static void test_refusals(void **state)
{
	(void)state;
	struct guard guard;
	struct design_case c;
	struct design_case scratch = { .arena = arena_new(&guard) };
	case_start(&c, one_process(&scratch, "i2", LOOP(TAKE("i2") PUSH("%w", "i2"))));
	struct text out = text_new(c.arena);
	assert_false(emit_hls(c.module, platform_load(c.arena, &c.diag, "u55c"), "design", &out));
	assert_non_null(strstr(case_messages(&c), "a design cannot hold numbers of type i2"));
	case_finish(&c);
	arena_free(scratch.arena);
}

/* Many random converters and windows in one design; a buffer with several readers. */
static void test_converters(void **state)
{
	(void)state;
	struct design_case scratch = { 0 };
	scratch.arena = arena_new(&scratch.guard);
	scratch.diag.arena = scratch.arena;
	struct module *module =
	        module_new(scratch.arena, &scratch.guard, &scratch.diag, LEVEL_STREAM);
	struct graph random = { .state = 0x9E3779B97F4A7C15u };
	struct convert_pair pair[TENSORS_MOST];
	struct text text = text_new(scratch.arena);
	for (int j = 0; j < TENSORS_MOST; j++)
		pair[j] = j % 4 ? convert_random(&random, module)
		                : convert_window(&random, module, 3, 1 + j / 8, 2, 1 + j / 8);
	convert_module(module, TENSORS_MOST, pair, &text);
	check(text.data);
	struct convert_writer writer = convert_random_writer(&random, module);
	for (int r = 0; r < 4; r++) {
		pair[r] = (struct convert_pair){ .tensor = writer.tensor,
			.from = writer.type,
			.to = r ? convert_random_reader(&random, module, &writer, true)
			        : writer.type };
		pair[r].box = box_between(scratch.arena, writer.tensor, writer.type, pair[r].to, 0);
	}
	text = text_new(scratch.arena);
	buffer_module(module, 4, pair, &text);
	check(text.data);
	arena_free(scratch.arena);
}

static void test_routes(void **state)
{
	(void)state;
	struct arena *arena = arena_new(NULL);
	struct text source = text_new(arena);
	assert_true(routes_module(&source));
	check(source.data);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiled_network),
		cmocka_unit_test(test_real_operations),
		cmocka_unit_test(test_integer_operations),
		cmocka_unit_test(test_half_operations),
		cmocka_unit_test(test_narrow_contraction),
		cmocka_unit_test(test_order_of_loads_and_stores),
		cmocka_unit_test(test_registers_trees_and_parts),
		cmocka_unit_test(test_dots),
		cmocka_unit_test(test_counters_of_differing_windows),
		cmocka_unit_test(test_adapters_are_the_platforms),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_converters),
		cmocka_unit_test(test_routes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
