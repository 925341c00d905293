/* Quantized contractions: the same bits at every level, whatever the parallelism; rounding of
 * single weights. */
#include "design_case.h"
#include "image/quantized.h"
#include "st_math.h"

#include <math.h>

static const char *linear(struct arena *arena, int tokens, int inputs, int outputs)
{
	return text_format(arena,
	        "func.func @main(%%x: tensor<%dx%dxf32>, %%w: tensor<%dx%dxf32>, %%b: "
	        "tensor<%dxf32>) -> tensor<%dx%dxf32> attributes {\n"
	        "  arg_attrs = [{stream.name = \"x\", stream.role = \"input\"}, {stream.name = "
	        "\"w\", stream.role = \"weight\"}, {stream.name = \"b\", stream.role = "
	        "\"weight\"}]} {\n"
	        "  %%zero = arith.constant 0.0 : f32\n  %%e = tensor.empty() : tensor<%dx%dxf32>\n"
	        "  %%z = linalg.fill ins(%%zero : f32) outs(%%e : tensor<%dx%dxf32>) -> "
	        "tensor<%dx%dxf32>\n"
	        "  %%y = linalg.generic {indexing_maps = [affine_map<(t, n, k) -> (t, k)>, "
	        "affine_map<(t, n, k) -> (n, k)>, affine_map<(t, n, k) -> (t, n)>],\n"
	        "      iterator_types = [\"parallel\", \"parallel\", \"reduction\"]} ins(%%x, %%w "
	        ": tensor<%dx%dxf32>, tensor<%dx%dxf32>) outs(%%z : tensor<%dx%dxf32>) {\n"
	        "  ^bb0(%%a: f32, %%c: f32, %%acc: f32):\n    %%m = arith.mulf %%a, %%c : f32\n    "
	        "%%s = arith.addf %%acc, %%m : f32\n    linalg.yield %%s : f32\n  } -> "
	        "tensor<%dx%dxf32>\n"
	        "  %%o = linalg.generic {indexing_maps = [affine_map<(t, n) -> (t, n)>, "
	        "affine_map<(t, n) -> (n)>, affine_map<(t, n) -> (t, n)>], iterator_types = "
	        "[\"parallel\", \"parallel\"]}\n"
	        "      ins(%%y, %%b : tensor<%dx%dxf32>, tensor<%dxf32>) outs(%%e : "
	        "tensor<%dx%dxf32>) {\n"
	        "  ^bb0(%%a: f32, %%c: f32, %%acc: f32):\n    %%s = arith.addf %%a, %%c : f32\n    "
	        "linalg.yield %%s : f32\n  } -> tensor<%dx%dxf32>\n"
	        "  return %%o : tensor<%dx%dxf32>\n}\n",
	        tokens, inputs, outputs, inputs, outputs, tokens, outputs, tokens, outputs, tokens,
	        outputs, tokens, outputs, tokens, inputs, outputs, inputs, tokens, outputs, tokens,
	        outputs, tokens, outputs, outputs, tokens, outputs, tokens, outputs, tokens,
	        outputs);
}

/* The output of each token that is nearest to 0: the first i with -y[t, i]^2 = the largest of
 * those of t; padding must never be nearer. */
static const char *nearest(struct arena *arena, const int64_t *shape)
{
	int tokens = (int)shape[0];
	int inputs = (int)shape[1];
	int outputs = (int)shape[2];
	struct text text = text_new(arena);
	text_add(&text,
	        "#id = affine_map<(t, n) -> (t, n)>\n#row = affine_map<(t, n) -> (t)>\n!x = "
	        "tensor<%dx%dxf32>\n!w = tensor<%dx%dxf32>\n!y = tensor<%dx%dxf32>\n!m = "
	        "tensor<%dxf32>\n!i = tensor<%dxi32>\n",
	        tokens, inputs, outputs, inputs, tokens, outputs, tokens, tokens);
	text_add(&text,
	        "func.func @main(%%x: !x, %%w: !w) -> !i attributes {\n"
	        "  arg_attrs = [{stream.name = \"x\", stream.role = \"input\"}, {stream.name = "
	        "\"w\", stream.role = \"weight\"}]} {\n"
	        "  %%zero = arith.constant 0.0 : f32\n  %%least = arith.constant 0xFF800000 : "
	        "f32\n  %%last = arith.constant 2147483647 : i32\n  %%beyond = arith.constant %d : "
	        "i32\n"
	        "  %%e = tensor.empty() : !y\n  %%f = tensor.empty() : !m\n  %%g = tensor.empty() "
	        ": !i\n  %%z = linalg.fill ins(%%zero : f32) outs(%%e : !y) -> !y\n"
	        "  %%y = linalg.generic {indexing_maps = [affine_map<(t, n, k) -> (t, k)>, "
	        "affine_map<(t, n, k) -> (n, k)>, affine_map<(t, n, k) -> (t, n)>],\n"
	        "      iterator_types = [\"parallel\", \"parallel\", \"reduction\"]} ins(%%x, %%w "
	        ": !x, !w) outs(%%z : !y) {\n"
	        "  ^bb0(%%a: f32, %%b: f32, %%c: f32):\n    %%p = arith.mulf %%a, %%b : f32\n    "
	        "%%s = arith.addf %%c, %%p : f32\n    linalg.yield %%s : f32\n  } -> !y\n",
	        outputs);
	text_add(&text,
	        "  %%l = linalg.fill ins(%%least : f32) outs(%%f : !m) -> !m\n"
	        "  %%m = linalg.generic {indexing_maps = [#id, #row], iterator_types = "
	        "[\"parallel\", \"reduction\"]} ins(%%y : !y) outs(%%l : !m) {\n"
	        "  ^bb0(%%a: f32, %%b: f32):\n    %%q = arith.mulf %%a, %%a : f32\n    %%r = "
	        "arith.negf %%q : f32\n    %%t = arith.maximumf %%r, %%b : f32\n    linalg.yield "
	        "%%t : f32\n  } -> !m\n"
	        "  %%h = linalg.fill ins(%%last : i32) outs(%%g : !i) -> !i\n"
	        "  %%i = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = "
	        "[\"parallel\", \"reduction\"]} ins(%%y, %%m : !y, !m) outs(%%h : !i) {\n"
	        "  ^bb0(%%a: f32, %%b: f32, %%c: i32):\n    %%n = linalg.index 1 : index\n    %%j "
	        "= arith.index_cast %%n : index to i32\n    %%d = arith.mulf %%a, %%a : f32\n    "
	        "%%r = arith.negf %%d : f32\n    %%q = arith.cmpf oeq, %%r, %%b : f32\n"
	        "    %%k = arith.select %%q, %%j, %%beyond : i32\n    %%t = arith.minsi %%k, %%c : "
	        "i32\n    linalg.yield %%t : i32\n  } -> !i\n  return %%i : !i\n}\n");
	return text.data;
}

/* Attention of `heads` queries, `share` on each head of a cache of `past` rows, with one new row
 * in front; the query sees the rows that "past" counts. */
static const char *attention(struct arena *arena, int heads, int share, int past, int width)
{
	int kept = heads / share;
	int keys = past + 1;
	struct text text = text_new(arena);
	text_add(&text,
	        "#q = affine_map<(h, g, t, d) -> (h, g, d)>\n#k = affine_map<(h, g, t, d) -> (h, "
	        "t, d)>\n#s = affine_map<(h, g, t, d) -> (h, g, t)>\n"
	        "#e = affine_map<(h, g, t) -> (h, g, t)>\n#m = affine_map<(h, g, t) -> (h, g)>\n"
	        "!q = tensor<%dx%dx%dxf32>\n!n = tensor<%dx1x%dxf32>\n!c = "
	        "tensor<%dx%dx%dxf32>\n!s = tensor<%dx%dx%dxf32>\n!m = tensor<%dx%dxf32>\n!a = "
	        "tensor<%dx%dx%dxf32>\n",
	        kept, share, width, kept, width, kept, past, width, kept, share, keys, kept, share,
	        kept, keys, width);
	text_add(&text,
	        "func.func @main(%%q: !q, %%k: !c, %%v: !c, %%n: !n, %%w: !n, %%past: "
	        "tensor<1xi64>) -> (!q, !n, !n) attributes {arg_attrs = [{stream.name = \"q\"},\n"
	        "  {stream.name = \"k\", stream.role = \"state\", stream.dims = [\"\", \"past\", "
	        "\"\"]}, {stream.name = \"v\", stream.role = \"state\", stream.dims = [\"\", "
	        "\"past\", \"\"]},\n"
	        "  {stream.name = \"n\"}, {stream.name = \"w\"}, {stream.name = \"past\"}], "
	        "res_attrs = [{stream.name = \"y\"},\n"
	        "  {stream.name = \"k\", stream.role = \"state\", stream.axis = 1 : i64, "
	        "stream.position = \"past\"}, {stream.name = \"v\", stream.role = \"state\", "
	        "stream.axis = 1 : i64, stream.position = \"past\"}]} {\n"
	        "  %%z = arith.constant 0.0 : f32\n  %%low = arith.constant 0xFF800000 : f32\n"
	        "  %%ek = tensor.empty() : !s\n  %%em = tensor.empty() : !m\n  %%eq = "
	        "tensor.empty() : !q\n"
	        "  %%zs = linalg.fill ins(%%z : f32) outs(%%ek : !s) -> !s\n  %%zm = linalg.fill "
	        "ins(%%z : f32) outs(%%em : !m) -> !m\n"
	        "  %%zl = linalg.fill ins(%%low : f32) outs(%%em : !m) -> !m\n  %%zq = linalg.fill "
	        "ins(%%z : f32) outs(%%eq : !q) -> !q\n"
	        "  %%ck = tensor.concat dim(1) %%n, %%k : (!n, !c) -> !a\n  %%cv = tensor.concat "
	        "dim(1) %%w, %%v : (!n, !c) -> !a\n");
	text_add(&text,
	        "  %%s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = "
	        "[\"parallel\", \"parallel\", \"parallel\", \"reduction\"]} ins(%%q, %%ck : !q, "
	        "!a) outs(%%zs : !s) {\n"
	        "  ^bb0(%%a: f32, %%b: f32, %%o: f32):\n    %%x = arith.mulf %%a, %%b : f32\n    "
	        "%%r = arith.addf %%o, %%x : f32\n    linalg.yield %%r : f32\n  } -> !s\n"
	        "  %%l = linalg.generic {indexing_maps = [#e, #m], iterator_types = [\"parallel\", "
	        "\"parallel\", \"reduction\"]} ins(%%s : !s) outs(%%zl : !m) {\n"
	        "  ^bb0(%%a: f32, %%o: f32):\n    %%r = arith.maximumf %%o, %%a : f32\n    "
	        "linalg.yield %%r : f32\n  } -> !m\n"
	        "  %%e = linalg.generic {indexing_maps = [#e, #m, #e], iterator_types = "
	        "[\"parallel\", \"parallel\", \"parallel\"]} ins(%%s, %%l : !s, !m) outs(%%ek : "
	        "!s) {\n"
	        "  ^bb0(%%a: f32, %%b: f32, %%o: f32):\n    %%x = arith.subf %%a, %%b : f32\n    "
	        "%%r = math.exp %%x : f32\n    linalg.yield %%r : f32\n  } -> !s\n"
	        "  %%u = linalg.generic {indexing_maps = [#e, #m], iterator_types = [\"parallel\", "
	        "\"parallel\", \"reduction\"]} ins(%%e : !s) outs(%%zm : !m) {\n"
	        "  ^bb0(%%a: f32, %%o: f32):\n    %%r = arith.addf %%o, %%a : f32\n    "
	        "linalg.yield %%r : f32\n  } -> !m\n"
	        "  %%p = linalg.generic {indexing_maps = [#e, #m, #e], iterator_types = "
	        "[\"parallel\", \"parallel\", \"parallel\"]} ins(%%e, %%u : !s, !m) outs(%%ek : "
	        "!s) {\n"
	        "  ^bb0(%%a: f32, %%b: f32, %%o: f32):\n    %%r = arith.divf %%a, %%b : f32\n    "
	        "linalg.yield %%r : f32\n  } -> !s\n"
	        "  %%y = linalg.generic {indexing_maps = [#s, #k, #q], iterator_types = "
	        "[\"parallel\", \"parallel\", \"reduction\", \"parallel\"]} ins(%%p, %%cv : !s, "
	        "!a) outs(%%zq : !q) {\n"
	        "  ^bb0(%%a: f32, %%b: f32, %%o: f32):\n    %%x = arith.mulf %%a, %%b : f32\n    "
	        "%%r = arith.addf %%o, %%x : f32\n    linalg.yield %%r : f32\n  } -> !q\n"
	        "  return %%y, %%n, %%w : !q, !n, !n\n}\n");
	return text.data;
}

/* Two products with the numbers of a norm (by the largest, whose bits no order changes), x times
 * its 1/root times v, and what follows both; they are a result as well where shape[3] is odd,
 * and the norm takes the row's largest number off before it looks at it where that has a 2. */
static const char *normed(struct arena *arena, const int64_t *shape)
{
	int tokens = (int)shape[0];
	int inputs = (int)shape[1];
	int outputs = (int)shape[2];
	struct text text = text_new(arena);
	text_add(&text,
	        "#id = affine_map<(t, n) -> (t, n)>\n#row = affine_map<(t, n) -> (t)>\n#col = "
	        "affine_map<(t, n) -> (n)>\n!x = tensor<%dx%dxf32>\n!v = tensor<%dxf32>\n!w = "
	        "tensor<%dx%dxf32>\n!y = tensor<%dx%dxf32>\n!r = tensor<%dxf32>\n",
	        tokens, inputs, inputs, outputs, inputs, tokens, outputs, tokens);
	text_add(&text,
	        "func.func @main(%%x: !x, %%v: !v, %%a: !w, %%b: !w) -> (!y%s) attributes "
	        "{arg_attrs = [{stream.name = \"x\", stream.role = \"input\"}, {stream.name = "
	        "\"v\", stream.role = \"weight\"},\n"
	        "  {stream.name = \"a\", stream.role = \"weight\"}, {stream.name = \"b\", "
	        "stream.role = \"weight\"}]} {\n"
	        "  %%zero = arith.constant 0.0 : f32\n  %%small = arith.constant 1.0e-06 : f32\n  "
	        "%%er = tensor.empty() : !r\n  %%ex = tensor.empty() : !x\n  %%ey = tensor.empty() "
	        ": !y\n"
	        "  %%zr = linalg.fill ins(%%zero : f32) outs(%%er : !r) -> !r\n  %%zy = "
	        "linalg.fill ins(%%zero : f32) outs(%%ey : !y) -> !y\n",
	        shape[3] & 1 ? ", !x" : "");
	text_add(&text,
	        "  %%l = linalg.generic {indexing_maps = [#id, #row], iterator_types = "
	        "[\"parallel\", \"reduction\"]} ins(%%x : !x) outs(%%zr : !r) {\n"
	        "  ^bb0(%%p: f32, %%o: f32):\n    %%t = arith.maximumf %%o, %%p : f32\n    "
	        "linalg.yield %%t : f32\n  } -> !r\n");
	text_add(&text,
	        shape[3] & 2
	                ? "  %%s = linalg.generic {indexing_maps = [#id, #row, #row], "
	                  "iterator_types = [\"parallel\", \"reduction\"]} ins(%%x, %%l : !x, !r) "
	                  "outs(%%zr : !r) {\n"
	                  "  ^bb0(%%p: f32, %%d: f32, %%o: f32):\n    %%c = arith.subf %%p, %%d : "
	                  "f32\n    %%q = arith.mulf %%c, %%c : f32\n    %%t = arith.maximumf %%o, "
	                  "%%q : f32\n    linalg.yield %%t : f32\n  } -> !r\n"
	                : "  %%s = linalg.generic {indexing_maps = [#id, #row], iterator_types = "
	                  "[\"parallel\", \"reduction\"]} ins(%%x : !x) outs(%%zr : !r) {\n"
	                  "  ^bb0(%%p: f32, %%o: f32):\n    %%q = arith.mulf %%p, %%p : f32\n    "
	                  "%%t = arith.maximumf %%o, %%q : f32\n    linalg.yield %%t : f32\n  } -> "
	                  "!r\n");
	text_add(&text,
	        "  %%r = linalg.generic {indexing_maps = [affine_map<(t) -> (t)>, affine_map<(t) "
	        "-> (t)>], iterator_types = [\"parallel\"]} ins(%%s : !r) outs(%%er : !r) {\n"
	        "  ^bb0(%%p: f32, %%o: f32):\n    %%q = arith.addf %%p, %%small : f32\n    %%t = "
	        "math.rsqrt %%q : f32\n    linalg.yield %%t : f32\n  } -> !r\n"
	        "  %%n = linalg.generic {indexing_maps = [#col, #id, #row, #id], iterator_types = "
	        "[\"parallel\", \"parallel\"]} ins(%%v, %%x, %%r : !v, !x, !r) outs(%%ex : !x) {\n"
	        "  ^bb0(%%p: f32, %%q: f32, %%t: f32, %%o: f32):\n    %%u = arith.mulf %%q, %%t : "
	        "f32\n    %%m = arith.mulf %%p, %%u : f32\n    linalg.yield %%m : f32\n  } -> "
	        "!x\n");
	for (int i = 0; i < 2; i++)
		text_add(&text,
		        "  %%y%d = linalg.generic {indexing_maps = [affine_map<(t, n, k) -> (t, "
		        "k)>, affine_map<(t, n, k) -> (n, k)>, affine_map<(t, n, k) -> (t, n)>],\n"
		        "      iterator_types = [\"parallel\", \"parallel\", \"reduction\"]} "
		        "ins(%%n, %%%c : !x, !w) outs(%%zy : !y) {\n"
		        "  ^bb0(%%p: f32, %%q: f32, %%o: f32):\n    %%m = arith.mulf %%p, %%q : "
		        "f32\n    %%t = arith.addf %%o, %%m : f32\n    linalg.yield %%t : f32\n  } "
		        "-> !y\n",
		        i, 'a' + i);
	text_add(&text,
	        "  %%z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = "
	        "[\"parallel\", \"parallel\"]} ins(%%y0, %%y1 : !y, !y) outs(%%ey : !y) {\n"
	        "  ^bb0(%%p: f32, %%q: f32, %%o: f32):\n    %%u = arith.mulf %%p, %%p : f32\n    "
	        "%%m = arith.mulf %%u, %%q : f32\n    linalg.yield %%m : f32\n  } -> !y\n"
	        "  return %%z%s : !y%s\n}\n",
	        shape[3] & 1 ? ", %n" : "", shape[3] & 1 ? ", !x" : "");
	return text.data;
}

static void count_scan(struct op *op, void *count)
{
	*(int *)count += op->code == OP_KERNEL && op->kernel->scan;
}

/* All passes, with the same results after each from `quantize_contractions` on.  past: valid rows
 * of the KV cache; scans: number of running maxima with their correction factors. */
static struct design_case expect_levels_agree(const struct quant_scheme *scheme,
        enum softmax_form softmax, const char *(*make)(struct arena *arena, const int64_t *shape),
        const int64_t *shape, int64_t past, int scans)
{
	struct design_case c = { 0 };
	CASE_BEGIN(&c);
	struct pass_context context = case_import(&c, make(c.arena, shape));
	context.quant = scheme;
	context.choices.value[CHOICE_SOFTMAX] = 1 + softmax;
	int found = 0;
	struct tensor first[TENSORS_MOST];
	for (int p = 0; c.module && p < pass_count; p++) {
		if (!passes[p].run(&context, c.module) || !ir_verify(c.module))
			fail_msg("%s: %s", passes[p].name, case_messages(&c));
		bool quantises = text_same(passes[p].name, "quantize_contractions");
		if (p < pass_find("quantize_contractions"))
			continue;
		if (quantises)
			case_arguments(&c);
		for (int i = 0; quantises && i < c.inputs; i++) {
			const struct attr *name =
			        function_argument_attr(module_main(c.module), i, KEY_STREAM_NAME);
			if (text_same(name->text, "past"))
				memcpy(c.input[i].data, &past, sizeof past);
		}
		if (quantises)
			ir_walk(module_body(c.module), count_scan, &found);
		assert_int_equal(eval_inputs(c.module), c.inputs);
		if (!eval_module(c.module, c.arena, c.inputs, c.input, c.result))
			fail_msg("after %s: %s", passes[p].name, case_messages(&c));
		for (int r = 0; r < eval_results(c.module); r++) {
			if (quantises)
				first[r] = (struct tensor){ c.result[r].type,
					arena_copy(c.arena, c.result[r].data,
					        tensor_bytes(c.result[r].type)) };
			else if (memcmp(first[r].data, c.result[r].data,
			                 tensor_bytes(first[r].type)))
				fail_msg("%s, %lld rows: other bits of result %d after %s",
				        scheme->text, (long long)past, r, passes[p].name);
		}
	}
	assert_int_equal(found, scans);
	return c;
}

static const char *make_linear(struct arena *arena, const int64_t *shape)
{
	return linear(arena, (int)shape[0], (int)shape[1], (int)shape[2]);
}

static const char *make_attention(struct arena *arena, const int64_t *shape)
{
	return attention(arena, (int)shape[0], (int)shape[1], (int)shape[2], (int)shape[3]);
}

static void expect_same_bits(const struct quant_scheme *scheme, int tokens, int inputs, int outputs)
{
	const int64_t shape[] = { tokens, inputs, outputs };
	struct design_case c = expect_levels_agree(scheme, SOFTMAX_AUTO, make_linear, shape, 0, 0);
	arena_free(c.arena);
}

static int input_of(const struct design_case *c, const char *name)
{
	const struct attr *inputs = attr_get(module_main(c->module), KEY_STREAM_INPUTS);
	for (int i = 0; i < inputs->count; i++)
		if (text_same(attr_item(inputs->items[i].value, KEY_NAME)->text, name))
			return i;
	return -1;
}

/* Row t of a head: t = 0 is the new one, rounded here; others are in the state after the lead. */
static double row_number(const struct design_case *c, const char *state, const char *fresh,
        int64_t lead, int64_t head, int64_t t, int64_t d, int64_t width)
{
	if (t > 0) {
		const struct tensor *q = &c->input[input_of(c, state)];
		const struct tensor *scale =
		        &c->input[input_of(c, text_format(c->arena, "%s.scale", state))];
		int64_t row = head * q->type->shape[1] + lead + t - 1;
		return ((const int8_t *)q->data)[row * width + d] *
		        (double)st_f16_value(((const uint16_t *)scale->data)[row]);
	}
	const float *x = (const float *)c->input[input_of(c, fresh)].data + head * width;
	float largest = 0;
	for (int64_t i = 0; i < width; i++)
		largest = st_abs(x[i]) > largest ? st_abs(x[i]) : largest;
	float by = st_f16_value(st_f16_bits(largest * (float)(1.0 / 119)));
	return (double)st_round_even(x[d] * (1.0f / by)) * (double)by;
}

/* Rows of the state before the past ones: for the rows of a longer launch, or for the new row if
 * all keys are one block; otherwise the new row follows the past ones. */
static int64_t lead_of(const struct quant_scheme *scheme, const int64_t *shape)
{
	int64_t block = shape[3] > 128 ? 64 : 128;
	return scheme->lead ? scheme->lead : shape[2] + 1 <= block;
}

/* Attention in double precision on the rounded rows: what is left is the rounding of the query
 * and of the probabilities. */
static void expect_softmax(const struct quant_scheme *scheme, enum softmax_form softmax,
        const int64_t *shape, int64_t past, int scans)
{
	struct design_case c =
	        expect_levels_agree(scheme, softmax, make_attention, shape, past, scans);
	int64_t heads = shape[0];
	int64_t share = shape[1];
	int64_t width = shape[3];
	int64_t lead = lead_of(scheme, shape);
	const struct type *state = c.input[input_of(&c, "k")].type;
	assert_string_equal(type_scalar(state)->text, "i8");
	const float *query = c.input[input_of(&c, "q")].data;
	const float *found = c.result[0].data;
	double *score = arena_alloc(c.arena, sizeof *score * (size_t)(past + 1));
	double worst = 0;
	double most = 0;
	for (int64_t h = 0; h < heads; h++) {
		double high = -1e30;
		double sum = 0;
		for (int64_t t = 0; t <= past; t++) {
			score[t] = 0;
			for (int64_t d = 0; d < width; d++)
				score[t] += (double)query[h * width + d] *
				        row_number(&c, "k", "n", lead, h / share, t, d, width);
			high = score[t] > high ? score[t] : high;
		}
		for (int64_t t = 0; t <= past; t++)
			sum += exp(score[t] - high);
		for (int64_t d = 0; d < width; d++) {
			double value = 0;
			for (int64_t t = 0; t <= past; t++)
				value += exp(score[t] - high) / sum *
				        row_number(&c, "v", "w", lead, h / share, t, d, width);
			/* not a number is worst of all */
			worst = fabs(value - (double)found[h * width + d]) <= worst
			        ? worst
			        : fabs(value - (double)found[h * width + d]);
			most = fabs(value) > most ? fabs(value) : most;
		}
	}
	if (!(worst <= 0.005 * most))
		fail_msg("%lld heads, %lld of %lld rows: off by %g of %g", (long long)heads,
		        (long long)past, (long long)shape[2], worst, most);
	arena_free(c.arena);
}

static void expect_attention(const struct quant_scheme *scheme, const int64_t *shape, int64_t past)
{
	expect_softmax(scheme, SOFTMAX_TWO_PASS, shape, past, 0);
}

/* One block; several, the last one short; whole ones; a query of two groups; room for the rows
 * of a longer launch. */
static void test_attention_on_bytes(void **state)
{
	(void)state;
	static const struct quant_scheme bytes = {
		.text = "kv=i8", .weights = true, .weight = 4, .head = 4, .group = 128, .state = 8
	};
	static const struct quant_scheme room = { .text = "kv=i8,room=32",
		.weights = true,
		.weight = 4,
		.head = 4,
		.group = 128,
		.state = 8,
		.lead = 32 };
	const int64_t one[] = { 2, 1, 11, 8 };
	const int64_t several[] = { 4, 2, 299, 8 };
	const int64_t whole[] = { 2, 2, 255, 4 };
	const int64_t wide[] = { 1, 1, 130, 256 };
	expect_attention(&bytes, one, 0);
	expect_attention(&bytes, one, 10);
	expect_attention(&bytes, several, 127);
	expect_attention(&bytes, several, 128);
	expect_attention(&bytes, several, 298);
	expect_attention(&bytes, whole, 254);
	expect_attention(&bytes, wide, 100);
	expect_attention(&room, several, 200);
}

/* The maximum runs over several blocks, for heads that share values and for others; a single block
 * has its own maximum; few scores are buffered instead. */
static void test_a_maximum_runs_over_blocks(void **state)
{
	(void)state;
	static const struct quant_scheme bytes = {
		.text = "kv=i8", .weights = true, .weight = 4, .head = 4, .group = 128, .state = 8
	};
	static const struct quant_scheme room = { .text = "kv=i8,room=32",
		.weights = true,
		.weight = 4,
		.head = 4,
		.group = 128,
		.state = 8,
		.lead = 32 };
	const int64_t one[] = { 2, 1, 11, 8 };
	const int64_t shared[] = { 4, 2, 299, 8 };
	const int64_t own[] = { 2, 1, 300, 4 };
	const int64_t many[] = { 8, 8, 511, 4 };
	const int64_t wide[] = { 1, 1, 300, 256 };
	expect_softmax(&bytes, SOFTMAX_ONLINE, one, 10, 0);
	expect_softmax(&bytes, SOFTMAX_ONLINE, shared, 0, 2);
	expect_softmax(&bytes, SOFTMAX_ONLINE, shared, 128, 2);
	expect_softmax(&bytes, SOFTMAX_ONLINE, shared, 298, 2);
	expect_softmax(&bytes, SOFTMAX_ONLINE, own, 257, 2);
	expect_softmax(&bytes, SOFTMAX_ONLINE, wide, 200, 2);
	expect_softmax(&room, SOFTMAX_ONLINE, shared, 200, 2);
	expect_softmax(&bytes, SOFTMAX_AUTO, shared, 298, 0);
	expect_softmax(&bytes, SOFTMAX_AUTO, many, 400, 2);
}

static void test_levels_agree(void **state)
{
	(void)state;
	static const struct quant_scheme four = {
		.text = "w4a8", .weights = true, .weight = 4, .head = 4, .group = 128
	};
	static const struct quant_scheme eight = {
		.text = "w8a8", .weights = true, .weight = 8, .head = 8, .group = 128
	};
	static const struct quant_scheme small = {
		.text = "w4a8,group=32", .weights = true, .weight = 4, .head = 4, .group = 32
	};
	static const struct quant_scheme row = {
		.text = "w4a8,group=row", .weights = true, .weight = 4, .head = 4
	};
	static const struct quant_scheme token = { .text = "w8a8,activation=token",
		.weights = true,
		.weight = 8,
		.head = 8,
		.group = 64,
		.per_token = true };
	expect_same_bits(&four, 1, 256, 64);
	expect_same_bits(&four, 8, 256, 64);
	expect_same_bits(&four, 5, 200, 24);
	expect_same_bits(&four, 1, 140, 75);
	expect_same_bits(&eight, 8, 128, 40);
	expect_same_bits(&small, 3, 96, 16);
	expect_same_bits(&row, 4, 300, 32);
	expect_same_bits(&token, 4, 192, 16);
}

/* In the engine, whose feed sums the groups of activations up, and in kernels of their own. */
static void test_zero_points(void **state)
{
	(void)state;
	static const struct quant_scheme four = { .text = "w4a8,zero=group",
		.weights = true,
		.weight = 4,
		.head = 4,
		.group = 128,
		.zeros = true };
	static const struct quant_scheme eight = { .text = "w8a8,group=64,zero=group",
		.weights = true,
		.weight = 8,
		.head = 8,
		.group = 64,
		.zeros = true };
	static const struct quant_scheme small = { .text = "w4a8,group=32,zero=group",
		.weights = true,
		.weight = 4,
		.head = 4,
		.group = 32,
		.zeros = true };
	static const struct quant_scheme row = { .text = "w4a8,group=row,zero=group",
		.weights = true,
		.weight = 4,
		.head = 4,
		.zeros = true };
	expect_same_bits(&four, 1, 256, 64);
	expect_same_bits(&four, 8, 256, 64);
	expect_same_bits(&four, 5, 200, 75);
	expect_same_bits(&eight, 1, 128, 40);
	expect_same_bits(&small, 3, 96, 16);
	expect_same_bits(&row, 4, 300, 32);
}

/* An elementwise kernel that waits for a number of a reduction for several of its own. */
static void count_waiting(struct op *op, void *count)
{
	bool waits = false;
	for (int j = 0; op->code == OP_KERNEL && !kernel_has_reduction(op->kernel) &&
	        op->kernel->type->kind == TYPE_FLOAT && j < op->operands;
	        j++)
		waits = waits ||
		        (op->operand[j]->def && op->operand[j]->def->code == OP_KERNEL &&
		                kernel_has_reduction(op->operand[j]->def->kernel) &&
		                type_elements(op->operand[j]->type) <
		                        type_elements(op->result[0]->type));
	*(int *)count += waits;
}

/* After quantization, `waiting` elementwise kernels must buffer an operand. */
static void expect_waiting(struct design_case *c, const int64_t *shape, int waiting)
{
	static const struct quant_scheme four = {
		.text = "w4a8", .weights = true, .weight = 4, .head = 4, .group = 128
	};
	int count = 0;
	*c = (struct design_case){ 0 };
	CASE_BEGIN(c);
	struct pass_context context = case_import(c, normed(c->arena, shape));
	context.quant = &four;
	for (int p = 0; p <= pass_find("quantize_contractions"); p++)
		assert_true(passes[p].run(&context, c->module) && ir_verify(c->module));
	ir_walk(module_body(c->module), count_waiting, &count);
	assert_int_equal(count, waiting);
}

/* A norm's factor of a token is applied after the sums, unless the product has another reader or
 * there are several tokens.  Results are the same up to rounding. */
static void test_factors_go_after_sums(void **state)
{
	(void)state;
	static const struct quant_scheme four = {
		.text = "w4a8", .weights = true, .weight = 4, .head = 4, .group = 128
	};
	const int64_t alone[] = { 1, 256, 24, 0 };
	const int64_t read[] = { 1, 256, 24, 1 };
	const int64_t several[] = { 3, 256, 24, 0 };
	struct design_case behind;
	struct design_case before;
	struct design_case tokens;
	struct design_case levels = expect_levels_agree(&four, SOFTMAX_AUTO, normed, alone, 0, 0);
	expect_waiting(&behind, alone, 0);
	expect_waiting(&before, read, 1);
	expect_waiting(&tokens, several, 1);
	case_arguments(&behind);
	assert_true(eval_module(behind.module, behind.arena, behind.inputs, behind.input,
	                    behind.result) &&
	        eval_module(
	                before.module, before.arena, behind.inputs, behind.input, before.result));
	const float *found = behind.result[0].data;
	const float *expected = before.result[0].data;
	float largest = 0;
	for (int64_t i = 0; i < alone[2]; i++)
		largest = st_abs(expected[i]) > largest ? st_abs(expected[i]) : largest;
	for (int64_t i = 0; i < alone[2]; i++)
		assert_true(st_abs(found[i] - expected[i]) <= 1e-5f * largest);
	assert_true(largest > 0);
	struct design_case *made[] = { &behind, &before, &tokens, &levels };
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		arena_free(made[i]->arena);
}

static void count_factors(struct op *op, void *count)
{
	size_t size = op->code == OP_KERNEL ? strlen(op->kernel->name) : 0;
	*(int *)count += size > 7 && text_same(op->kernel->name + size - 7, "_factor");
}

/* With many tokens the factor is multiplied into the scales, for two statistics one after the
 * other; all levels agree, and results are those of the unchanged module up to rounding. */
static void expect_scales_take(const int64_t *shape, int factors)
{
	static const struct quant_scheme four = {
		.text = "w4a8", .weights = true, .weight = 4, .head = 4, .group = 128
	};
	const int64_t kept[] = { shape[0], shape[1], shape[2], shape[3] | 1 };
	struct design_case taken;
	struct design_case before;
	struct design_case levels = expect_levels_agree(&four, SOFTMAX_AUTO, normed, shape, 0, 0);
	int count = 0;
	expect_waiting(&taken, shape, 1);
	expect_waiting(&before, kept, 1);
	ir_walk(module_body(taken.module), count_factors, &count);
	assert_int_equal(count, factors);
	case_arguments(&taken);
	assert_true(
	        eval_module(taken.module, taken.arena, taken.inputs, taken.input, taken.result) &&
	        eval_module(before.module, before.arena, taken.inputs, taken.input, before.result));
	const float *found = taken.result[0].data;
	const float *expected = before.result[0].data;
	float largest = 0;
	for (int64_t i = 0; i < shape[0] * shape[2]; i++)
		largest = st_abs(expected[i]) > largest ? st_abs(expected[i]) : largest;
	for (int64_t i = 0; i < shape[0] * shape[2]; i++)
		assert_true(st_abs(found[i] - expected[i]) <= 1e-5f * largest);
	assert_true(largest > 0);
	struct design_case *made[] = { &taken, &before, &levels };
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		arena_free(made[i]->arena);
}

static void test_scales_take_factors(void **state)
{
	(void)state;
	expect_scales_take((const int64_t[]){ 16, 256, 24, 2 }, 1);
	expect_scales_take((const int64_t[]){ 16, 256, 24, 0 }, 0); /* one statistic */
	expect_scales_take((const int64_t[]){ 8, 256, 24, 2 }, 0);  /* few tokens */
}

static void count_marks(struct op *op, void *count)
{
	*(int *)count += attr_get(op, KEY_DEFERRED_FACTOR) != NULL;
}

static struct text printed(struct module *module)
{
	struct text text = text_new(module->arena);
	ir_print(module, &text);
	return text;
}

/* Between the two passes the factor is in the epilogue: the values are those of before, and a dump
 * goes on to the same kernels. */
static void test_deferred_factors_pass_a_dump(void **state)
{
	(void)state;
	static const struct quant_scheme four = {
		.text = "w4a8", .weights = true, .weight = 4, .head = 4, .group = 128
	};
	const int64_t shape[] = { 16, 256, 24, 2 };
	struct design_case c = { 0 };
	struct design_case dump = { 0 };
	int defer = pass_find("defer_norm_factors");
	int count = 0;
	CASE_BEGIN(&c);
	CASE_BEGIN(&dump);
	struct pass_context context = case_import(&c, normed(c.arena, shape));
	struct tensor before[TENSORS_MOST];
	context.quant = &four;
	for (int p = 0; p < defer; p++)
		assert_true(passes[p].run(&context, c.module) && ir_verify(c.module));
	case_arguments(&c);
	assert_true(eval_module(c.module, c.arena, c.inputs, c.input, before));
	assert_true(passes[defer].run(&context, c.module) && ir_verify(c.module));
	ir_walk(module_body(c.module), count_marks, &count);
	assert_int_equal(count, 2);
	assert_true(eval_module(c.module, c.arena, c.inputs, c.input, c.result));
	const float *found = c.result[0].data;
	const float *expected = before[0].data;
	for (int64_t i = 0; i < shape[0] * shape[2]; i++)
		assert_true(st_abs(found[i] - expected[i]) <= 1e-4f * st_abs(expected[i]) + 1e-3f);
	struct text text = printed(c.module);
	dump.module =
	        import_mlir(dump.arena, &dump.guard, &dump.diag, "dump.mlir", text.data, text.size);
	assert_non_null(dump.module);
	for (int p = defer + 1; p <= pass_find("quantize_contractions"); p++)
		assert_true(
		        passes[p].run(&context, c.module) && passes[p].run(&context, dump.module));
	assert_string_equal(printed(c.module).data, printed(dump.module).data);
	count = 0;
	ir_walk(module_body(c.module), count_marks, &count);
	assert_int_equal(count, 0);
	arena_free(dump.arena);
	arena_free(c.arena);
}

/* Rows of a unit's results whose last words are padded; what is padded is never found. */
static void test_nearest(void **state)
{
	(void)state;
	static const struct quant_scheme four = {
		.text = "w4a8", .weights = true, .weight = 4, .head = 4, .group = 128
	};
	static const int64_t shapes[][3] = { { 1, 256, 75 }, { 4, 256, 301 }, { 3, 128, 5 },
		{ 12, 140, 67 } };
	static const int64_t words_of[] = { 8, 8, 1, 16 };
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct design_case c =
		        expect_levels_agree(&four, SOFTMAX_AUTO, nearest, shapes[i], 0, 0);
		int64_t words = 0;
		for (const struct op *op = module_main(c.module)->region[0]->first; op;
		        op = op->next)
			if (op->code == OP_FIFO &&
			        !strncmp(attr_text_or(op, KEY_NAME, ""), "s_contract", 10))
				words = type_lanes(op->result[0]->type->element);
		assert_int_equal(words, words_of[i]);
		arena_free(c.arena);
	}
}

/* Three runs of four numbers, the last one short; then all of one row with one scale. */
static void test_rounding(void **state)
{
	(void)state;
	const float weight[] = { 0.5f, -1.0f, 7.0f, 3.5f, 0, 0, 0, 0, 1e-3f, -2e-3f };
	const int64_t trip[] = { 3, 4 };
	const int64_t stride[] = { 4, 1 };
	const int64_t limit[] = { 4, 1, 10 };
	const int64_t shape[] = { 10 };
	struct type type = { .kind = TYPE_TENSOR, .rank = 1, .shape = shape };
	struct quantized from = { .source = "w",
		.type = &type,
		.bits = 4,
		.axis = 0,
		.group = 4,
		.shared = 1,
		.block = 1,
		.from = { .dims = 2,
		        .trip = trip,
		        .stride = stride,
		        .conditions = 1,
		        .condition = limit,
		        .host_bytes = 4,
		        .image_bytes = 4 } };
	int8_t values[12];
	uint16_t scales[3];
	assert_true(quantized_round(&from, weight, values, scales, NULL));
	/* halves go to the even one */
	const int8_t expected[12] = { 0, -1, 7, 4, 0, 0, 0, 0, 4, -7, 0, 0 };
	assert_memory_equal(values, expected, sizeof values);
	assert_true(st_f16_value(scales[0]) == 1.0f && st_f16_value(scales[1]) == 1.0f &&
	        fabsf(st_f16_value(scales[2]) - 2e-3f / 7) < 1e-6f);
	from.shared = 3;
	assert_int_equal(quantized_scales(&from), 1);
	assert_true(quantized_round(&from, weight, values, scales, NULL));
	assert_true(values[2] == 7 && values[8] == 0 && st_f16_value(scales[0]) == 1.0f);
	const float wrong[10] = { 0, 0, 0, 0, 0, INFINITY };
	assert_false(quantized_round(&from, wrong, values, scales, NULL));
	assert_false(quantized_round(&from, weight, values, scales, &(volatile sig_atomic_t){ 1 }));
}

/* Three outputs of five inputs in groups of four, the weight by rows and by columns, quantized here
 * or elsewhere; each row with a scale per group, or with one. */
static void test_folded_bias(void **state)
{
	(void)state;
	const float weight[15] = { 0.5f, -1.0f, 7.0f, 3.5f, 2.0f, 0, 0, 0, 0, 0, 1e-3f, -2e-3f, 0,
		0, 5.0f };
	const float bias[3] = { 1, 2, 3 };
	const float vector[5] = { 1, -2, 0.5f, 4, 10 };
	const int64_t trip[] = { 3, 2, 4 };
	const int64_t limit[] = { 0, 4, 1, 5 };
	const int64_t count[] = { 5 };
	const int64_t outputs[] = { 3 };
	const int64_t rows[] = { 3, 5 };
	const int64_t columns[] = { 5, 3 };
	const struct type ours = { .kind = TYPE_TENSOR, .rank = 1, .shape = outputs };
	const struct type theirs = { .kind = TYPE_TENSOR, .rank = 1, .shape = count };
	for (int kind = 0; kind < 4; kind++) {
		const bool by_rows = kind % 2;
		const bool shared = kind / 2;
		const int64_t stride[] = { by_rows ? 5 : 1, by_rows ? 4 : 12, by_rows ? 1 : 3 };
		const struct type type = {
			.kind = TYPE_TENSOR, .rank = 2, .shape = by_rows ? rows : columns
		};
		const struct quantized from = { .source = "w",
			.type = &type,
			.bits = 4,
			.axis = by_rows,
			.group = 4,
			.shared = shared ? 2 : 1,
			.block = 1,
			.from = { .dims = 3,
			        .trip = trip,
			        .stride = stride,
			        .conditions = 1,
			        .condition = limit,
			        .host_bytes = 4,
			        .image_bytes = 4 },
			.folded_bias = { .bias = "b",
			        .vector = "v",
			        .bias_type = &ours,
			        .vector_type = &theirs } };
		float lies[15];
		float found[3];
		float again[3];
		int8_t values[24];
		int8_t source_zeros[6];
		int8_t row_zeros[2];
		int8_t integers[15];
		int8_t room[8];
		uint16_t scales[6];
		uint16_t source_scales[6];
		uint16_t row[2];
		for (int n = 0; n < 3; n++)
			for (int k = 0; k < 5; k++)
				lies[by_rows ? n * 5 + k : k * 3 + n] = weight[n * 5 + k];
		assert_true(quantized_round(&from, lies, values, scales, NULL));
		const int groups = shared ? 1 : 2;
		for (int n = 0; n < 3; n++) {
			for (int g = 0; g < groups; g++)
				source_scales[by_rows ? n * groups + g : g * 3 + n] =
				        scales[n * groups + g];
			for (int g = 0; g < groups; g++)
				source_zeros[by_rows ? n * groups + g : g * 3 + n] =
				        (int8_t)(g - n);
			for (int k = 0; k < 5; k++)
				integers[by_rows ? n * 5 + k : k * 3 + n] =
				        (int8_t)(values[n * 8 + k] + (shared ? 0 : k / 4) - n);
		}
		const struct folded_bias_sources plain = {
			.weight = lies, .bias = bias, .vector = vector, .row = { room, row, NULL }
		};
		const struct folded_bias_sources taken = { .rounded = { integers, source_scales,
			                                           source_zeros },
			.bias = bias,
			.vector = vector,
			.row = { room, row, row_zeros } };
		assert_true(quantized_folded_bias(&from, &plain, found, NULL) &&
		        quantized_folded_bias(&from, &taken, again, NULL));
		for (int n = 0; n < 3; n++) {
			double expected = (double)bias[n];
			for (int k = 0; k < 5; k++)
				expected += (double)st_f16_value(
				                    scales[n * groups + k / 4 / from.shared]) *
				        values[n * 8 + k] * (double)vector[k];
			assert_true(found[n] == (float)expected && again[n] == found[n]);
		}
		assert_true(found[0] != bias[0] && found[1] == bias[1] && found[2] > 50);
		lies[14] = INFINITY;
		assert_false(quantized_folded_bias(&from, &plain, found, NULL));
	}
}

/* Runs longer than the quantizer's step, at any address, from plain memory and through conditions
 * that always hold; with one scale for all numbers and one for each. */
static void test_long_runs(void **state)
{
	(void)state;
	enum { ROWS = 3, GROUP = 1500 };
	static char bytes[ROWS * GROUP * sizeof(float) + 1];
	static int8_t plain[ROWS * GROUP];
	static int8_t guarded[ROWS * GROUP];
	const int64_t trip[] = { ROWS, GROUP };
	const int64_t stride[] = { GROUP, 1 };
	const int64_t limit[] = { 1, 0, ROWS };
	const int64_t shape[] = { ROWS, GROUP };
	struct type type = { .kind = TYPE_TENSOR, .rank = 2, .shape = shape };
	struct quantized from = { .source = "w",
		.type = &type,
		.bits = 8,
		.axis = 1,
		.group = GROUP,
		.shared = 1,
		.block = 1,
		.from = { .dims = 2,
		        .trip = trip,
		        .stride = stride,
		        .condition = limit,
		        .host_bytes = 4,
		        .image_bytes = 4 } };
	for (int i = 0; i < ROWS * GROUP; i++)
		memcpy(bytes + 1 + i * (int)sizeof(float),
		        &(float){ (float)((i * 7919) % 1000 - 499) * (float)(1 + i / GROUP) },
		        sizeof(float));
	for (; from.shared <= ROWS; from.shared += ROWS - 1) {
		struct quantized through = from;
		uint16_t scales[ROWS];
		uint16_t other[ROWS];
		through.from.conditions = 1;
		assert_false(quantized_same_runs(&from, &through));
		assert_true(quantized_round(&from, bytes + 1, plain, scales, NULL) &&
		        quantized_round(&through, bytes + 1, guarded, NULL, NULL) &&
		        quantized_round(&through, bytes + 1, NULL, other, NULL));
		assert_memory_equal(plain, guarded, sizeof plain);
		assert_memory_equal(
		        scales, other, sizeof *scales * (size_t)quantized_scales(&from));
		assert_true(plain[0] == -127 / (from.shared > 1 ? 3 : 1) &&
		        plain[ROWS * GROUP - 1] != 0);
	}
	struct quantized scales_of = from;
	scales_of.scales = true;
	assert_true(quantized_same_runs(&from, &scales_of));
	scales_of.bits = 4;
	assert_false(quantized_same_runs(&from, &scales_of));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels_agree),
		cmocka_unit_test(test_attention_on_bytes),
		cmocka_unit_test(test_a_maximum_runs_over_blocks),
		cmocka_unit_test(test_factors_go_after_sums),
		cmocka_unit_test(test_scales_take_factors),
		cmocka_unit_test(test_deferred_factors_pass_a_dump),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_rounding),
		cmocka_unit_test(test_folded_bias),
		cmocka_unit_test(test_long_runs),
		cmocka_unit_test(test_zero_points),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
