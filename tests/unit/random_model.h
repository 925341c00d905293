/* Random models as MLIR text, from a seed: what neural networks are made of (contractions in
 * both layouts, softmax, norms, convolutions, embeddings, states, residuals, repeated layers),
 * mixed with the views of random_graph.h, over extents that divide nothing. */
#ifndef RANDOM_MODEL_H
#define RANDOM_MODEL_H
#include "random_graph.h"

#define MODEL_ELEMENTS 1600 /* of one value */
#define MODEL_WORK 40000    /* points of one operation */
#define MODEL_VALUES 120    /* no part is begun beyond */

struct model {
	struct graph graph;
	struct text arguments; /* %w0: tensor<…>, … */
	int names;             /* weights and states made */
	/* rows that are results of role state */
	VEC(const char *) state_value, state_type, state_name;
};

struct operand {
	const char *name;
	struct shape shape;
	const char *dims; /* results of its map: "d0, d2" */
};

static const int64_t model_extents[] = { 1, 3, 5, 7, 8, 8, 12, 16, 17, 32, 64 };

static int64_t model_extent(struct model *m, int64_t most)
{
	int64_t extent;
	do
		extent = model_extents[graph_next(
		        &m->graph, sizeof model_extents / sizeof *model_extents)];
	while (extent > most);
	return extent;
}

static const char *value_name(struct model *m, int value)
{
	return text_format(m->graph.out->arena, "v%d", value);
}

static struct operand operand_of(struct model *m, int value, const char *dims)
{
	return (struct operand){ value_name(m, value), m->graph.shape[value], dims };
}

/* d0, d1, … with `skip` left out (-1: none); then `last` if it is not negative */
static const char *model_dims(struct model *m, int count, int skip, int last)
{
	struct text text = text_new(m->graph.out->arena);
	text_add(&text, "%s", "");
	for (int d = 0; d < count; d++)
		if (d != skip)
			text_add(&text, "%sd%d", text.size ? ", " : "", d);
	if (last >= 0)
		text_add(&text, "%sd%d", text.size ? ", " : "", last);
	return text.data;
}

static struct shape shape_with_last(struct shape shape, int64_t last)
{
	shape.extent[shape.rank - 1] = last;
	return shape;
}

static struct operand model_argument(
        struct model *m, struct shape shape, const char *dims, const char *role)
{
	const char *name = text_format(m->graph.out->arena, "w%d", m->names++);
	text_add(&m->arguments, ", %%%s: %s {stream.name = \"%s\", stream.role = \"%s\"}", name,
	        shape_type(&m->graph, shape), name, role);
	return (struct operand){ name, shape, dims };
}

/* A tensor of weights: mostly an argument, sometimes a constant. */
static struct operand model_weight(struct model *m, struct shape shape, const char *dims)
{
	struct graph *g = &m->graph;
	int64_t elements = shape_elements(shape);
	if (elements > 40 || graph_next(g, 4) || shape.rank > 2)
		return model_argument(m, shape, dims, "weight");
	const char *name = text_format(g->out->arena, "c%d", m->names++);
	text_add(g->out, "  %%%s = arith.constant dense<%s", name, shape.rank ? "[" : "");
	int64_t row = shape.rank == 2 ? shape.extent[1] : elements;
	for (int64_t i = 0; i < elements; i++)
		text_add(g->out, "%s%s%d.%d%s", i ? ", " : "",
		        shape.rank == 2 && i % row == 0 ? "[" : "", (int)graph_next(g, 2),
		        (int)graph_next(g, 4) * 25,
		        shape.rank == 2 && i % row == row - 1 ? "]" : "");
	text_add(g->out, "%s> : %s\n", shape.rank ? "]" : "", shape_type(g, shape));
	return (struct operand){ name, shape, dims };
}

/* One linalg.generic over `parallel` + `reduction` loops; its body reads %a, %b, %c (the inputs)
 * and %o, and makes %r.  Returns the value. */
static int model_generic(struct model *m, struct shape shape, const char *dims, int parallel,
        int reduction, const char *init, int inputs, const struct operand *input, const char *body)
{
	struct graph *g = &m->graph;
	int to = graph_add(g, shape);
	const char *type = shape_type(g, shape), *head = map_dims(g, parallel + reduction);
	add_empty(g, to, shape);
	if (init)
		text_add(g->out, "  %%f%d = linalg.fill ins(%%%s : f32) outs(%%e%d : %s) -> %s\n",
		        to, init, to, type, type);
	text_add(g->out, "  %%v%d = linalg.generic {indexing_maps = [", to);
	for (int i = 0; i < inputs; i++)
		text_add(g->out, "%s%s)>, ", head, input[i].dims);
	text_add(g->out, "%s%s)>], %s} ins(", head, dims, iterators(g, parallel, reduction));
	for (int i = 0; i < inputs; i++)
		text_add(g->out, "%s%%%s", i ? ", " : "", input[i].name);
	for (int i = 0; i < inputs; i++)
		text_add(g->out, "%s%s", i ? ", " : " : ", shape_type(g, input[i].shape));
	text_add(g->out, ") outs(%%%c%d : %s) {\n  ^bb0(", init ? 'f' : 'e', to, type);
	for (int i = 0; i < inputs; i++)
		text_add(g->out, "%%%c: f32, ", 'a' + i);
	text_add(g->out, "%%o: f32):\n%s    linalg.yield %%r : f32\n  } -> %s\n", body, type);
	return to;
}

static int model_elementwise(struct model *m, int value, const char *body)
{
	struct shape shape = m->graph.shape[value];
	const char *dims = model_dims(m, shape.rank, -1, -1);
	return model_generic(m, shape, dims, shape.rank, 0, NULL, 1,
	        (struct operand[]){ operand_of(m, value, dims) }, body);
}

static int model_pair(struct model *m, int left, int right, const char *body)
{
	struct shape shape = m->graph.shape[left];
	const char *dims = model_dims(m, shape.rank, -1, -1);
	return model_generic(m, shape, dims, shape.rank, 0, NULL, 2,
	        (struct operand[]){ operand_of(m, left, dims), operand_of(m, right, dims) }, body);
}

/* One row of numbers along the last dim, added or multiplied. */
static int model_row(struct model *m, int value, const char *code)
{
	struct shape shape = m->graph.shape[value],
	             row = { .rank = 1, .extent = { shape.extent[shape.rank - 1] } };
	const char *dims = model_dims(m, shape.rank, -1, -1);
	struct operand input[] = { operand_of(m, value, dims),
		model_weight(m, row, model_dims(m, 0, -1, shape.rank - 1)) };
	return model_generic(m, shape, dims, shape.rank, 0, NULL, 2, input,
	        text_format(m->graph.out->arena, "    %%r = %s %%a, %%b : f32\n", code));
}

/* Over the last dim, which goes or stays as an extent of 1. */
static int model_fold_last(struct model *m, int value, const char *code, bool keep)
{
	struct shape from = m->graph.shape[value], to = from;
	int rank = from.rank;
	bool sum = code[6] == 'a';
	to.rank -= !keep;
	if (keep)
		to.extent[rank - 1] = 1;
	const char *dims = model_dims(m, rank - 1, -1, -1);
	if (keep)
		dims = text_format(m->graph.out->arena, "%s%s0", dims, rank > 1 ? ", " : "");
	return model_generic(m, to, dims, rank - 1, 1, sum ? "zero" : "low", 1,
	        (struct operand[]){ operand_of(m, value, model_dims(m, rank, -1, -1)) },
	        text_format(m->graph.out->arena, "    %%r = %s %%a, %%o : f32\n", code));
}

/* value ∘ folded, folded sent to every element of the last dim */
static int model_spread(struct model *m, int value, int folded, const char *body)
{
	struct shape shape = m->graph.shape[value];
	bool keep = m->graph.shape[folded].rank == shape.rank;
	const char *dims = model_dims(m, shape.rank, -1, -1),
	           *outer = model_dims(m, shape.rank - 1, -1, -1);
	if (keep)
		outer = text_format(
		        m->graph.out->arena, "%s%s0", outer, shape.rank > 1 ? ", " : "");
	return model_generic(m, shape, dims, shape.rank, 0, NULL, 2,
	        (struct operand[]){ operand_of(m, value, dims), operand_of(m, folded, outer) },
	        body);
}

static int model_softmax(struct model *m, int value)
{
	bool keep = graph_next(&m->graph, 2);
	int most = model_fold_last(m, value, "arith.maximumf", keep);
	int shifted = model_spread(
	        m, value, most, "    %s = arith.subf %a, %b : f32\n    %r = math.exp %s : f32\n");
	int sum = model_fold_last(m, shifted, "arith.addf", keep);
	return model_spread(m, shifted, sum, "    %r = arith.divf %a, %b : f32\n");
}

static int model_norm(struct model *m, int value)
{
	struct shape shape = m->graph.shape[value];
	struct arena *arena = m->graph.out->arena;
	bool keep = graph_next(&m->graph, 2), centred = graph_next(&m->graph, 2);
	double count = (double)shape.extent[shape.rank - 1];
	if (centred) {
		int sum = model_fold_last(m, value, "arith.addf", keep);
		value = model_spread(m, value, sum,
		        text_format(arena,
		                "    %%n = arith.constant %.1f : f32\n    %%m = arith.divf %%b, "
		                "%%n : f32\n    %%r = arith.subf %%a, %%m : f32\n",
		                count));
	}
	int square = model_elementwise(m, value, "    %r = arith.mulf %a, %a : f32\n");
	int sum = model_fold_last(m, square, "arith.addf", keep);
	int scale = model_elementwise(m, sum,
	        text_format(arena,
	                "    %%n = arith.constant %.1f : f32\n    %%m = arith.divf %%a, %%n : "
	                "f32\n    %%t = arith.truncf %%epsilon : f64 to f32\n"
	                "    %%s = arith.addf %%m, %%t : f32\n    %%r = math.rsqrt %%s : f32\n",
	                count));
	value = model_row(m, model_spread(m, value, scale, "    %r = arith.mulf %a, %b : f32\n"),
	        "arith.mulf");
	return centred ? model_row(m, value, "arith.addf") : value;
}

static int model_activation(struct model *m, int value)
{
	static const char *const body[] = {
		"    %r = arith.maximumf %a, %zero : f32\n",
		"    %t = math.tanh %a : f32\n    %s = arith.mulf %a, %t : f32\n    %r = "
		"arith.mulf %s, %half : f32\n",
		"    %t = math.erf %a : f32\n    %s = arith.addf %t, %half : f32\n    %r = "
		"arith.mulf %a, %s : f32\n",
		"    %n = arith.negf %a : f32\n    %e = math.exp %n : f32\n    %one = "
		"arith.constant 1.0 : f32\n    %d = arith.addf %e, %one : f32\n    %r = arith.divf "
		"%a, %d : f32\n",
	};
	return model_elementwise(m, value, body[graph_next(&m->graph, 4)]);
}

#define MULTIPLY_ADD "    %p = arith.mulf %a, %b : f32\n    %r = arith.addf %p, %o : f32\n"

/* value [… K] times weights [K N] or [N K] */
static int model_linear(struct model *m, int value, int64_t outputs)
{
	struct shape shape = m->graph.shape[value], to = shape_with_last(shape, outputs);
	int rank = shape.rank, n = rank - 1, k = rank;
	int64_t depth = shape.extent[rank - 1];
	bool transposed = graph_next(&m->graph, 2);
	struct shape weights = { .rank = 2,
		.extent = { transposed ? outputs : depth, transposed ? depth : outputs } };
	struct operand input[] = { operand_of(m, value, model_dims(m, rank - 1, -1, k)),
		model_weight(m, weights,
		        text_format(m->graph.out->arena, "d%d, d%d", transposed ? n : k,
		                transposed ? k : n)) };
	int product = model_generic(
	        m, to, model_dims(m, rank, -1, -1), rank, 1, "zero", 2, input, MULTIPLY_ADD);
	return graph_next(&m->graph, 2) ? model_row(m, product, "arith.addf") : product;
}

/* [B M K] · [B N K] or [B K N] */
static int model_batched(struct model *m, int left, struct operand right, bool transposed)
{
	struct shape shape = m->graph.shape[left];
	right.dims = transposed ? "d0, d2, d3" : "d0, d3, d2";
	struct shape to = shape_with_last(shape, right.shape.extent[transposed ? 1 : 2]);
	return model_generic(m, to, "d0, d1, d2", 3, 1, "zero", 2,
	        (struct operand[]){ operand_of(m, left, "d0, d1, d3"), right }, MULTIPLY_ADD);
}

/* [T D] -> [H T D/H] */
static int model_heads(struct model *m, int value, int64_t heads)
{
	struct graph *g = &m->graph;
	struct shape flat = g->shape[value],
	             cut = { .rank = 3,
		             .extent = { flat.extent[0], heads, flat.extent[1] / heads } };
	int parts = graph_add(g, cut);
	text_add(g->out,
	        "  %%v%d = tensor.expand_shape %%v%d [[0], [1, 2]] output_shape [%s] : %s into "
	        "%s\n",
	        parts, value, shape_dims(g, cut), shape_type(g, flat), shape_type(g, cut));
	struct shape turned = { .rank = 3,
		.extent = { cut.extent[1], cut.extent[0], cut.extent[2] } };
	int to = graph_add(g, turned);
	add_empty(g, to, turned);
	text_add(g->out,
	        "  %%v%d = linalg.transpose ins(%%v%d : %s) outs(%%e%d : %s) permutation = [1, 0, "
	        "2]\n",
	        to, parts, shape_type(g, cut), to, shape_type(g, turned));
	return to;
}

static int model_merge_heads(struct model *m, int value)
{
	struct graph *g = &m->graph;
	struct shape parts = g->shape[value],
	             turned = { .rank = 3,
		             .extent = { parts.extent[1], parts.extent[0], parts.extent[2] } };
	int back = graph_add(g, turned);
	add_empty(g, back, turned);
	text_add(g->out,
	        "  %%v%d = linalg.transpose ins(%%v%d : %s) outs(%%e%d : %s) permutation = [1, 0, "
	        "2]\n",
	        back, value, shape_type(g, parts), back, shape_type(g, turned));
	struct shape flat = { .rank = 2,
		.extent = { turned.extent[0], turned.extent[1] * turned.extent[2] } };
	int to = graph_add(g, flat);
	text_add(g->out, "  %%v%d = tensor.collapse_shape %%v%d [[0], [1, 2]] : %s into %s\n", to,
	        back, shape_type(g, turned), shape_type(g, flat));
	return to;
}

/* Earlier rows of a state before the new ones; the new one is a result, written at input %at. */
static int model_state(struct model *m, int rows, int64_t earlier)
{
	struct graph *g = &m->graph;
	struct shape part = g->shape[rows], before = part, whole = part;
	before.extent[1] = earlier;
	whole.extent[1] += earlier;
	struct operand state = model_argument(m, before, "", "state");
	int to = graph_add(g, whole);
	text_add(g->out, "  %%v%d = tensor.concat dim(1) %%%s, %%v%d : (%s, %s) -> %s\n", to,
	        state.name, rows, shape_type(g, before), shape_type(g, part), shape_type(g, whole));
	VEC_PUSH(g->out->arena, &m->state_value, value_name(m, rows));
	VEC_PUSH(g->out->arena, &m->state_type, shape_type(g, part));
	VEC_PUSH(g->out->arena, &m->state_name, state.name);
	return to;
}

static int model_attention(struct model *m, int value)
{
	struct graph *g = &m->graph;
	struct shape shape = g->shape[value];
	int64_t width = shape.extent[1],
	        heads = width % 4 == 0 ? 4
	        : width % 3 == 0       ? 3
	                               : 1,
	        earlier = shape.extent[0] == 1 ? 2 + model_extent(m, 16) : 0;
	int query = model_heads(m, model_linear(m, value, width), heads);
	int key = model_heads(m, model_linear(m, value, width), heads);
	int values = model_heads(m, model_linear(m, value, width), heads);
	if (earlier) {
		key = model_state(m, key, earlier);
		values = model_state(m, values, earlier);
	}
	int score = model_batched(m, query, operand_of(m, key, ""), true);
	int mixed = model_batched(m,
	        model_softmax(
	                m, model_elementwise(m, score, "    %r = arith.mulf %a, %half : f32\n")),
	        operand_of(m, values, ""), false);
	return model_linear(m, model_merge_heads(m, mixed), width);
}

/* A block with a residual; equal states of the generator make equal blocks. */
static int model_block(struct model *m, int value)
{
	int64_t width = m->graph.shape[value].extent[1], hidden = model_extent(m, 32);
	if (graph_next(&m->graph, 2))
		value = model_pair(m, value,
		        model_attention(m, graph_next(&m->graph, 2) ? model_norm(m, value) : value),
		        "    %r = arith.addf %a, %b : f32\n");
	int inner = model_activation(m,
	        model_linear(m, graph_next(&m->graph, 2) ? model_norm(m, value) : value, hidden));
	return model_pair(
	        m, value, model_linear(m, inner, width), "    %r = arith.addf %a, %b : f32\n");
}

static int model_pick(struct model *m, int rank)
{
	for (int tries = 0; tries < 10; tries++) {
		int value = graph_pick(&m->graph);
		if (m->graph.shape[value].rank == rank ||
		        (rank < 0 && m->graph.shape[value].rank > 0))
			return value;
	}
	return -1;
}

static void model_layers(struct model *m, int layers)
{
	int value = model_pick(m, 2);
	if (value < 0 || shape_elements(m->graph.shape[value]) > 300 ||
	        m->graph.shape[value].extent[1] > 64)
		return;
	uint64_t before = m->graph.state;
	for (int l = 0; l < layers && m->graph.values < MODEL_VALUES + 40; l++) {
		m->graph.state = before;
		value = model_block(m, value);
	}
}

static void step_layers(struct model *m)
{
	model_layers(m, 2 + (int)graph_next(&m->graph, 3));
}

static void step_stack(struct model *m)
{
	model_layers(m, 5 + (int)graph_next(&m->graph, 3));
}

static void step_linear(struct model *m)
{
	int value = model_pick(m, -1);
	int64_t outputs = model_extent(m, 64);
	if (value < 0 || shape_elements(m->graph.shape[value]) * outputs > MODEL_WORK ||
	        shape_elements(shape_with_last(m->graph.shape[value], outputs)) > MODEL_ELEMENTS)
		return;
	model_linear(m, value, outputs);
}

static void step_batched(struct model *m)
{
	int left = model_pick(m, 3);
	if (left < 0)
		return;
	struct shape shape = m->graph.shape[left], right = shape;
	bool transposed = graph_next(&m->graph, 2), self = transposed && graph_next(&m->graph, 2);
	right.extent[1] = transposed ? model_extent(m, 17) : shape.extent[2];
	right.extent[2] = transposed ? shape.extent[2] : model_extent(m, 17);
	if (shape_elements(shape) * 17 > MODEL_WORK || shape_elements(shape) > MODEL_ELEMENTS)
		return;
	model_batched(m, left,
	        self ? operand_of(m, left, "") : model_argument(m, right, "", "weight"),
	        transposed);
}

static void step_softmax(struct model *m)
{
	int value = model_pick(m, -1);
	if (value >= 0 && m->graph.shape[value].rank > 1)
		model_softmax(m, value);
}

static void step_norm(struct model *m)
{
	int value = model_pick(m, -1);
	if (value >= 0 && m->graph.shape[value].rank > 1)
		model_norm(m, value);
}

static void step_activation(struct model *m)
{
	int value = model_pick(m, -1);
	if (value >= 0)
		model_row(m, model_activation(m, value), "arith.mulf");
}

/* [1 C H W] with zeros around, by windows of 3 x 3 or 1 x 1, then the maximum of 2 x 2 where it
 * fits */
static void step_convolution(struct model *m)
{
	struct graph *g = &m->graph;
	struct shape from = { .rank = 4,
		.extent = { 1, 1 + (int64_t)graph_next(g, 4), model_extent(m, 8),
		        model_extent(m, 8) } };
	int value = model_pick(m, 4);
	if (value < 0 || shape_elements(g->shape[value]) > 400 || graph_next(g, 2)) {
		struct operand image = model_argument(m, from, "d0, d1, d2, d3", "input");
		value = model_generic(m, from, "d0, d1, d2, d3", 4, 0, NULL, 1, &image,
		        "    %r = arith.mulf %a, %half : f32\n");
	}
	from = g->shape[value];
	int64_t window = graph_next(g, 3) ? 3 : 1;
	struct shape padded = from;
	padded.extent[2] += window - 1;
	padded.extent[3] += window - 1;
	int pad = graph_add(g, padded), border = (int)(window / 2);
	text_add(g->out,
	        "  %%v%d = tensor.pad %%v%d low[0, 0, %d, %d] high[0, 0, %d, %d] {\n  ^bb0(%%i0: "
	        "index, %%i1: index, %%i2: index, %%i3: index):\n    tensor.yield %%zero : f32\n  "
	        "} : %s to %s\n",
	        pad, value, border, border, border, border, shape_type(g, from),
	        shape_type(g, padded));
	struct shape to = from,
	             weights = { .rank = 4,
		             .extent = { 1 + (int64_t)graph_next(g, 5), from.extent[1], window,
		                     window } };
	to.extent[1] = weights.extent[0];
	struct operand input[] = { operand_of(m, pad, "d0, d4, d2 + d5, d3 + d6"),
		model_argument(m, weights, "d1, d4, d5, d6", "weight") };
	int made = model_activation(
	        m, model_generic(m, to, "d0, d1, d2, d3", 4, 3, "zero", 2, input, MULTIPLY_ADD));
	if (to.extent[2] < 2 || to.extent[3] < 2 || graph_next(g, 2))
		return;
	struct shape half = to, cell = { .rank = 2, .extent = { 2, 2 } };
	half.extent[2] /= 2;
	half.extent[3] /= 2;
	struct operand cells[] = { operand_of(m, made, "d0, d1, d2 * 2 + d4, d3 * 2 + d5"),
		{ text_format(g->out->arena, "window%d", m->names++), cell, "d4, d5" } };
	text_add(g->out, "  %%%s = tensor.empty() : tensor<2x2xf32>\n", cells[1].name);
	model_generic(m, half, "d0, d1, d2, d3", 4, 2, "low", 2, cells,
	        "    %r = arith.maximumf %a, %o : f32\n");
}

/* Rows of a table: tokens. */
static void step_embedding(struct model *m)
{
	struct graph *g = &m->graph;
	struct shape table = { .rank = 2,
		.extent = { 4 + (int64_t)graph_next(g, 8), model_extent(m, 64) } };
	struct operand weights = model_argument(m, table, "", "weight");
	bool one = graph_next(g, 2);
	struct shape shape = { .rank = 2, .extent = { one ? 1 : 3, table.extent[1] } };
	int to = graph_add(g, shape);
	add_empty(g, to, shape);
	const char *ids = one ? "at" : "rows";
	text_add(g->out,
	        "  %%v%d = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, "
	        "affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [\"parallel\", \"parallel\"]} "
	        "ins(%%%s : tensor<%dxi64>) outs(%%e%d : %s) {\n  ^bb0(%%a: i64, %%o: f32):\n    "
	        "%%i = arith.index_cast %%a : i64 to index\n    %%j = linalg.index 1 : index\n"
	        "    %%r = tensor.extract %%%s[%%i, %%j] : %s\n    linalg.yield %%r : f32\n  } -> "
	        "%s\n",
	        to, ids, one ? 1 : 3, to, shape_type(g, shape), weights.name, shape_type(g, table),
	        shape_type(g, shape));
}

/* Scores of a vocabulary: wide, odd, and read by nobody. */
static void model_head(struct model *m)
{
	static const int64_t words[] = { 67, 139, 261, 515 };
	int value = model_pick(m, 2);
	int64_t outputs = words[graph_next(&m->graph, 4)];
	if (value >= 0 && m->graph.shape[value].extent[0] <= 3 &&
	        m->graph.shape[value].extent[1] <= 32)
		model_linear(m, value, outputs);
}

/* Two neighbours in all but the last dim, of other widths, side by side; then cut apart
 * elsewhere. */
static void step_ragged(struct model *m)
{
	struct graph *g = &m->graph;
	int left = model_pick(m, 2);
	if (left < 0 || shape_elements(g->shape[left]) > 400)
		return;
	struct shape whole = g->shape[left];
	int right = model_linear(m, left, model_extent(m, 17));
	whole.extent[1] += g->shape[right].extent[1];
	int both = graph_add(g, whole);
	text_add(g->out, "  %%v%d = tensor.concat dim(1) %%v%d, %%v%d : (%s, %s) -> %s\n", both,
	        left, right, shape_type(g, g->shape[left]), shape_type(g, g->shape[right]),
	        shape_type(g, whole));
	int64_t cut = 1 + (int64_t)graph_next(g, (uint64_t)whole.extent[1] - 1);
	for (int half = 0; half < 2; half++) {
		struct shape part = whole;
		part.extent[1] = half ? whole.extent[1] - cut : cut;
		int to = graph_add(g, part);
		text_add(g->out,
		        "  %%v%d = tensor.extract_slice %%v%d[0, %d] [%s] [1, 1] : %s to %s\n", to,
		        both, half ? (int)cut : 0, shape_dims(g, part), shape_type(g, whole),
		        shape_type(g, part));
		model_activation(m, to);
	}
}

#define MODEL_STEP(step)                                                                           \
	static void model_##step(struct model *m)                                                  \
	{                                                                                          \
		graph_##step(&m->graph);                                                           \
	}
/* clang-format off */
MODEL_STEP(binary)
MODEL_STEP(transpose)
MODEL_STEP(reshape)
MODEL_STEP(slice)
MODEL_STEP(concat)
MODEL_STEP(pad)
MODEL_STEP(insert)
MODEL_STEP(window)
MODEL_STEP(broadcast)
MODEL_STEP(reduce)
#undef MODEL_STEP
/* clang-format on */

static void model_results(struct model *m, struct text *out, const char *body)
{
	struct graph *g = &m->graph;
	int count = g->values < 3 ? g->values : 1 + (int)graph_next(g, 3);
	struct text types = text_new(out->arena), values = text_new(out->arena),
	            plain = text_new(out->arena);
	for (int i = 0; i < count; i++) {
		int value = i ? (int)graph_next(g, (uint64_t)g->values) : g->values - 1;
		text_add(&types, "%s%s", i ? ", " : "", shape_type(g, g->shape[value]));
		text_add(&plain, "%s%s", i ? ", " : "", shape_type(g, g->shape[value]));
		text_add(&values, "%s%%v%d", i ? ", " : "", value);
	}
	for (size_t s = 0; s < m->state_value.count; s++) {
		text_add(&types,
		        ", %s {stream.name = \"%s\", stream.role = \"state\", stream.axis = 1 : "
		        "i64, stream.position = \"at\"}",
		        m->state_type.data[s], m->state_name.data[s]);
		text_add(&plain, ", %s", m->state_type.data[s]);
		text_add(&values, ", %%%s", m->state_value.data[s]);
	}
	text_add(out,
	        ") -> (%s) {\n  %%zero = arith.constant 0.0 : f32\n  %%half = arith.constant 0.5 : "
	        "f32\n  %%low = arith.constant 0xFF800000 : f32\n  %%epsilon = arith.constant "
	        "1.0e-05 : f64\n"
	        "%s  return %s : %s\n}\n",
	        types.data, body, values.data, plain.data);
}

/* Text of a model of up to `steps` parts of these kinds. */
static inline void random_parts(uint64_t seed, int steps, size_t kinds,
        void (*const step[])(struct model *), struct text *out)
{
	struct model m = { .graph = { .state = seed * 0x9E3779B97F4A7C15u + 1 },
		.arguments = text_new(out->arena) };
	struct text body = text_new(out->arena);
	text_add(&body, "%s", "");
	m.graph.out = &body;
	text_add(out,
	        "func.func @main(%%rows: tensor<3xi64> {stream.name = \"rows\", stream.role = "
	        "\"input\"}, %%at: tensor<1xi64> {stream.name = \"at\", stream.role = \"input\"}, "
	        "%%window: tensor<2xf32> {stream.name = \"window\", stream.role = \"weight\"}");
	for (int i = 0; i < 2; i++) {
		struct shape shape = { .rank = 2 + (int)graph_next(&m.graph, 2) };
		for (int r = 0; r < shape.rank; r++)
			shape.extent[r] = model_extent(&m, shape.rank == 3 ? 12 : 64);
		if (graph_next(&m.graph, 3) == 0)
			shape.extent[0] = 1;
		graph_add(&m.graph, shape);
		text_add(out, ", %%v%d: %s {stream.name = \"x%d\", stream.role = \"input\"}", i,
		        shape_type(&m.graph, shape), i);
	}
	while (steps-- > 0 && m.graph.values < MODEL_VALUES)
		step[graph_next(&m.graph, kinds)](&m);
	if (graph_next(&m.graph, 2))
		model_head(&m);
	text_add(out, "%s", m.arguments.data ? m.arguments.data : "");
	model_results(&m, out, body.data);
}

/* Text of a model of up to `steps` parts. */
static inline void random_model(uint64_t seed, int steps, struct text *out)
{
	static void (*const step[])(struct model *) = {
		step_linear,
		step_linear,
		step_batched,
		step_softmax,
		step_norm,
		step_activation,
		step_convolution,
		step_embedding,
		step_ragged,
		step_layers,
		step_layers,
		model_binary,
		model_binary,
		model_transpose,
		model_reshape,
		model_slice,
		model_concat,
		model_pad,
		model_insert,
		model_window,
		model_broadcast,
		model_reduce,
	};
	random_parts(seed, steps, sizeof step / sizeof *step, step, out);
}

/* Text of a model of more layers than are walked one by one, and of what stands around them. */
static inline void random_stack(uint64_t seed, int steps, struct text *out)
{
	static void (*const step[])(
	        struct model *) = { step_linear, step_stack, step_stack, step_stack };
	random_parts(seed, steps, sizeof step / sizeof *step, step, out);
}
#endif
