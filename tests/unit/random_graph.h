/* Random models as MLIR text, from a seed: elementwise operations, reductions, windows, gathers
 * and every kind of view, over small tensors. */
#ifndef RANDOM_GRAPH_H
#define RANDOM_GRAPH_H
#include "base/random.h"
#include "base/text.h"
#include <inttypes.h>

#define GRAPH_RANK 4
#define GRAPH_VALUES 512

struct shape {
	int rank;
	int64_t extent[GRAPH_RANK];
};

struct graph {
	uint64_t state;
	struct text *out;
	int values, arguments;
	struct shape shape[GRAPH_VALUES];
};

static uint64_t graph_next(struct graph *g, uint64_t below)
{
	return (random_next(&g->state) >> 11) % below;
}

static int64_t shape_elements(struct shape shape)
{
	int64_t count = 1;
	for (int r = 0; r < shape.rank; r++)
		count *= shape.extent[r];
	return count;
}

static const char *shape_type(struct graph *g, struct shape shape)
{
	struct text text = text_new(g->out->arena);
	text_add(&text, "tensor<");
	for (int r = 0; r < shape.rank; r++)
		text_add(&text, "%" PRId64 "x", shape.extent[r]);
	text_add(&text, "f32>");
	return text.data;
}

static const char *shape_dims(struct graph *g, struct shape shape)
{
	struct text text = text_new(g->out->arena);
	text_add(&text, "%s", "");
	for (int r = 0; r < shape.rank; r++)
		text_add(&text, "%s%" PRId64, r ? ", " : "", shape.extent[r]);
	return text.data;
}

/* (d0, d1, …) -> */
static const char *map_dims(struct graph *g, int loops)
{
	struct text text = text_new(g->out->arena);
	text_add(&text, "affine_map<(");
	for (int l = 0; l < loops; l++)
		text_add(&text, "%sd%d", l ? ", " : "", l);
	text_add(&text, ") -> (");
	return text.data;
}

static const char *map_identity(struct graph *g, int loops, int rank)
{
	struct text text = text_new(g->out->arena);
	text_add(&text, "%s", map_dims(g, loops));
	for (int l = 0; l < rank; l++)
		text_add(&text, "%sd%d", l ? ", " : "", l);
	text_add(&text, ")>");
	return text.data;
}

static const char *iterators(struct graph *g, int parallel, int reduction)
{
	struct text text = text_new(g->out->arena);
	text_add(&text, "iterator_types = [");
	for (int l = 0; l < parallel + reduction; l++)
		text_add(&text, "%s\"%s\"", l ? ", " : "", l < parallel ? "parallel" : "reduction");
	text_add(&text, "]");
	return text.data;
}

static int graph_pick(struct graph *g)
{
	uint64_t back = graph_next(g, 3) ? 6 : (uint64_t)g->values;
	uint64_t range = back < (uint64_t)g->values ? back : (uint64_t)g->values;
	return g->values - 1 - (int)graph_next(g, range);
}

static int graph_add(struct graph *g, struct shape shape)
{
	g->shape[g->values] = shape;
	return g->values++;
}

static void add_empty(struct graph *g, int value, struct shape shape)
{
	text_add(g->out, "  %%e%d = tensor.empty() : %s\n", value, shape_type(g, shape));
}

static void graph_unary(struct graph *g)
{
	static const char *const body[] = { "math.tanh %a : f32", "arith.negf %a : f32",
		"arith.mulf %a, %half : f32", "arith.maximumf %a, %zero : f32" };
	int from = graph_pick(g), rank = g->shape[from].rank, to = graph_add(g, g->shape[from]);
	const char *type = shape_type(g, g->shape[from]), *map = map_identity(g, rank, rank);
	add_empty(g, to, g->shape[from]);
	text_add(g->out,
	        "  %%v%d = linalg.generic {indexing_maps = [%s, %s], %s} ins(%%v%d : %s) "
	        "outs(%%e%d : %s) {\n  ^bb0(%%a: f32, %%o: f32):\n    %%r = %s\n    linalg.yield "
	        "%%r : f32\n  } -> %s\n",
	        to, map, map, iterators(g, rank, 0), from, type, to, type, body[graph_next(g, 4)],
	        type);
}

/* Two values of one shape; if there are none, a value with itself, or a row of it broadcast. */
static void graph_binary(struct graph *g)
{
	static const char *const code[] = { "arith.addf", "arith.subf", "arith.mulf" };
	int left = graph_pick(g), right = left;
	for (int tries = 0; tries < 8 && right == left; tries++) {
		int other = graph_pick(g);
		bool same = g->shape[other].rank == g->shape[left].rank;
		for (int r = 0; same && r < g->shape[left].rank; r++)
			same = g->shape[other].extent[r] == g->shape[left].extent[r];
		right = same ? other : right;
	}
	int rank = g->shape[left].rank, to = graph_add(g, g->shape[left]);
	const char *type = shape_type(g, g->shape[left]), *map = map_identity(g, rank, rank);
	add_empty(g, to, g->shape[left]);
	text_add(g->out,
	        "  %%v%d = linalg.generic {indexing_maps = [%s, %s, %s], %s} ins(%%v%d, %%v%d : "
	        "%s, %s) outs(%%e%d : %s) {\n  ^bb0(%%a: f32, %%b: f32, %%o: f32):\n    %%r = %s "
	        "%%a, %%b : f32\n    linalg.yield %%r : f32\n  } -> %s\n",
	        to, map, map, map, iterators(g, rank, 0), left, right, type, type, to, type,
	        code[graph_next(g, 3)], type);
}

/* Sum or maximum over the last dim. */
static void graph_reduce(struct graph *g)
{
	int from = graph_pick(g);
	struct shape shape = g->shape[from];
	int rank = shape.rank;
	if (rank < 2)
		return;
	bool sum = graph_next(g, 2);
	shape.rank--;
	int to = graph_add(g, shape);
	const char *type = shape_type(g, shape);
	add_empty(g, to, shape);
	text_add(g->out, "  %%f%d = linalg.fill ins(%%%s : f32) outs(%%e%d : %s) -> %s\n", to,
	        sum ? "zero" : "low", to, type, type);
	text_add(g->out,
	        "  %%v%d = linalg.generic {indexing_maps = [%s, %s], %s} ins(%%v%d : %s) "
	        "outs(%%f%d : %s) {\n  ^bb0(%%a: f32, %%o: f32):\n    %%r = %s %%a, %%o : f32\n    "
	        "linalg.yield %%r : f32\n  } -> %s\n",
	        to, map_identity(g, rank, rank), map_identity(g, rank, rank - 1),
	        iterators(g, rank - 1, 1), from, shape_type(g, g->shape[from]), to, type,
	        sum ? "arith.addf" : "arith.maximumf", type);
}

/* A new last dim by broadcast, times a row of numbers that is an index. */
static void graph_broadcast(struct graph *g)
{
	int from = graph_pick(g);
	struct shape shape = g->shape[from];
	if (shape.rank == GRAPH_RANK || shape_elements(shape) > 200)
		return;
	shape.extent[shape.rank++] = 2 + (int64_t)graph_next(g, 3);
	int to = graph_add(g, shape), rank = shape.rank;
	const char *type = shape_type(g, shape);
	add_empty(g, to, shape);
	text_add(g->out,
	        "  %%v%d = linalg.generic {indexing_maps = [%s, %s], %s} ins(%%v%d : %s) "
	        "outs(%%e%d : %s) {\n  ^bb0(%%a: f32, %%o: f32):\n",
	        to, map_identity(g, rank, rank - 1), map_identity(g, rank, rank),
	        iterators(g, rank, 0), from, shape_type(g, g->shape[from]), to, type);
	if (graph_next(g, 2))
		text_add(g->out,
		        "    %%i = linalg.index %d : index\n    %%c = arith.index_cast %%i : index "
		        "to i64\n    %%f = arith.sitofp %%c : i64 to f32\n    %%r = arith.addf "
		        "%%a, %%f : f32\n    linalg.yield %%r : f32\n",
		        (int)graph_next(g, (uint64_t)rank));
	else
		text_add(g->out, "    linalg.yield %%a : f32\n");
	text_add(g->out, "  } -> %s\n", type);
}

static void graph_transpose(struct graph *g)
{
	int from = graph_pick(g);
	struct shape shape = g->shape[from], order = { .rank = shape.rank };
	for (int r = 0; r < shape.rank; r++)
		order.extent[r] = r;
	for (int r = shape.rank - 1; r > 0; r--) {
		int other = (int)graph_next(g, (uint64_t)r + 1);
		int64_t saved = order.extent[r];
		order.extent[r] = order.extent[other];
		order.extent[other] = saved;
	}
	for (int r = 0; r < shape.rank; r++)
		shape.extent[r] = g->shape[from].extent[order.extent[r]];
	int to = graph_add(g, shape);
	add_empty(g, to, shape);
	text_add(g->out,
	        "  %%v%d = linalg.transpose ins(%%v%d : %s) outs(%%e%d : %s) permutation = [%s]\n",
	        to, from, shape_type(g, g->shape[from]), to, shape_type(g, shape),
	        shape_dims(g, order));
}

/* Cuts dim 0 in two, or joins dims 0 and 1. */
static void graph_reshape(struct graph *g)
{
	int from = graph_pick(g);
	struct shape old = g->shape[from], shape = old;
	int64_t factor = 2 + (int64_t)graph_next(g, 2);
	bool expand = old.rank < GRAPH_RANK && old.extent[0] % factor == 0;
	if (!expand && old.rank < 2)
		return;
	shape.rank += expand ? 1 : -1;
	for (int r = 0; r < shape.rank; r++)
		shape.extent[r] = expand ? old.extent[r ? r - 1 : 0] : old.extent[r + 1];
	shape.extent[0] = expand ? old.extent[0] / factor : old.extent[0] * old.extent[1];
	if (expand)
		shape.extent[1] = factor;
	int to = graph_add(g, shape);
	text_add(g->out, "  %%v%d = tensor.%s_shape %%v%d [[0, 1]", to,
	        expand ? "expand" : "collapse", from);
	for (int r = 2; r < (expand ? shape.rank : old.rank); r++)
		text_add(g->out, ", [%d]", r);
	text_add(g->out, "]");
	if (expand)
		text_add(g->out, " output_shape [%s]", shape_dims(g, shape));
	text_add(g->out, " : %s into %s\n", shape_type(g, old), shape_type(g, shape));
}

static void graph_slice(struct graph *g)
{
	int from = graph_pick(g);
	struct shape shape = g->shape[from], offset = shape, stride = shape;
	for (int r = 0; r < shape.rank; r++) {
		int64_t extent = shape.extent[r];
		stride.extent[r] = 1 + (graph_next(g, 4) == 0);
		offset.extent[r] = graph_next(g, 2) ? 0 : (int64_t)graph_next(g, (uint64_t)extent);
		int64_t most = (extent - offset.extent[r] - 1) / stride.extent[r] + 1;
		shape.extent[r] =
		        graph_next(g, 4) ? most : 1 + (int64_t)graph_next(g, (uint64_t)most);
	}
	int to = graph_add(g, shape);
	text_add(g->out, "  %%v%d = tensor.extract_slice %%v%d[%s] [%s] [%s] : %s to %s\n", to,
	        from, shape_dims(g, offset), shape_dims(g, shape), shape_dims(g, stride),
	        shape_type(g, g->shape[from]), shape_type(g, shape));
}

/* A value beside itself, or beside another that differs along one dim only. */
static void graph_concat(struct graph *g)
{
	int left = graph_pick(g), right = left,
	    dim = (int)graph_next(g, (uint64_t)g->shape[left].rank);
	for (int tries = 0; tries < 12 && right == left; tries++) {
		int other = graph_pick(g);
		bool fits = g->shape[other].rank == g->shape[left].rank;
		for (int r = 0; fits && r < g->shape[left].rank; r++)
			fits = r == dim || g->shape[other].extent[r] == g->shape[left].extent[r];
		right = fits ? other : right;
	}
	struct shape shape = g->shape[left];
	shape.extent[dim] += g->shape[right].extent[dim];
	if (shape_elements(shape) > 400)
		return;
	int to = graph_add(g, shape);
	text_add(g->out, "  %%v%d = tensor.concat dim(%d) %%v%d, %%v%d : (%s, %s) -> %s\n", to, dim,
	        left, right, shape_type(g, g->shape[left]), shape_type(g, g->shape[right]),
	        shape_type(g, shape));
}

static void graph_pad(struct graph *g)
{
	int from = graph_pick(g);
	struct shape low = g->shape[from], high = low, shape = low;
	if (shape_elements(shape) > 100)
		return;
	for (int r = 0; r < shape.rank; r++) {
		low.extent[r] = (int64_t)graph_next(g, 3) / 2;
		high.extent[r] = (int64_t)graph_next(g, 4) / 2;
		shape.extent[r] += low.extent[r] + high.extent[r];
	}
	int to = graph_add(g, shape);
	text_add(g->out, "  %%v%d = tensor.pad %%v%d low[%s] high[%s] {\n  ^bb0(", to, from,
	        shape_dims(g, low), shape_dims(g, high));
	for (int r = 0; r < shape.rank; r++)
		text_add(g->out, "%s%%i%d: index", r ? ", " : "", r);
	text_add(g->out, "):\n    tensor.yield %%%s : f32\n  } : %s to %s\n",
	        graph_next(g, 2) ? "zero" : "half", shape_type(g, g->shape[from]),
	        shape_type(g, shape));
}

/* A corner of a value replaced by the other corner of it. */
static void graph_insert(struct graph *g)
{
	int from = graph_pick(g);
	struct shape whole = g->shape[from], part = whole, offset = whole, ones = whole,
	             zeros = whole;
	for (int r = 0; r < whole.rank; r++) {
		part.extent[r] = 1 + (int64_t)graph_next(g, (uint64_t)whole.extent[r]);
		offset.extent[r] = whole.extent[r] - part.extent[r];
		ones.extent[r] = 1;
		zeros.extent[r] = 0;
	}
	int corner = graph_add(g, part), to = graph_add(g, whole);
	text_add(g->out, "  %%v%d = tensor.extract_slice %%v%d[%s] [%s] [%s] : %s to %s\n", corner,
	        from, shape_dims(g, zeros), shape_dims(g, part), shape_dims(g, ones),
	        shape_type(g, whole), shape_type(g, part));
	text_add(g->out,
	        "  %%v%d = tensor.insert_slice %%v%d into %%v%d[%s] [%s] [%s] : %s into %s\n", to,
	        corner, from, shape_dims(g, offset), shape_dims(g, part), shape_dims(g, ones),
	        shape_type(g, part), shape_type(g, whole));
}

/* Sums of windows over dim 0: o[i, …] = Σ k  v[i + k, …] * w[k]. */
static void graph_window(struct graph *g)
{
	int from = graph_pick(g);
	struct shape shape = g->shape[from];
	int rank = shape.rank;
	if (shape.extent[0] < 3 || rank > 3)
		return;
	shape.extent[0] -= 1;
	int to = graph_add(g, shape);
	const char *type = shape_type(g, shape), *dims = map_dims(g, rank + 1);
	add_empty(g, to, shape);
	text_add(g->out, "  %%f%d = linalg.fill ins(%%zero : f32) outs(%%e%d : %s) -> %s\n", to, to,
	        type, type);
	text_add(g->out, "  %%v%d = linalg.generic {indexing_maps = [%sd0 + d%d", to, dims, rank);
	for (int r = 1; r < rank; r++)
		text_add(g->out, ", d%d", r);
	text_add(g->out,
	        ")>, %sd%d)>, %s], %s} ins(%%v%d, %%window : %s, tensor<2xf32>) outs(%%f%d : %s) "
	        "{\n  ^bb0(%%a: f32, %%b: f32, %%o: f32):\n    %%p = arith.mulf %%a, %%b : f32\n   "
	        " %%r = arith.addf %%o, %%p : f32\n    linalg.yield %%r : f32\n  } -> %s\n",
	        dims, rank, map_identity(g, rank + 1, rank), iterators(g, rank, 1), from,
	        shape_type(g, g->shape[from]), to, type, type);
}

/* o[i, …] = v[rows[i], …] */
static void graph_gather(struct graph *g)
{
	int from = graph_pick(g);
	struct shape shape = g->shape[from];
	int rank = shape.rank;
	shape.extent[0] = 3;
	int to = graph_add(g, shape);
	const char *type = shape_type(g, shape);
	add_empty(g, to, shape);
	text_add(g->out,
	        "  %%v%d = linalg.generic {indexing_maps = [%s, %s], %s} ins(%%rows : "
	        "tensor<3xi64>) outs(%%e%d : %s) {\n  ^bb0(%%a: i64, %%o: f32):\n",
	        to, map_identity(g, rank, 1), map_identity(g, rank, rank), iterators(g, rank, 0),
	        to, type);
	bool computed = graph_next(g, 2);
	if (computed)
		text_add(g->out,
		        "    %%two = arith.constant 2 : i64\n    %%h = arith.divsi %%a, %%two : "
		        "i64\n");
	text_add(g->out, "    %%i0 = arith.index_cast %%%s : i64 to index\n", computed ? "h" : "a");
	for (int r = 1; r < rank; r++)
		text_add(g->out, "    %%i%d = linalg.index %d : index\n", r, r);
	text_add(g->out, "    %%r = tensor.extract %%v%d[", from);
	for (int r = 0; r < rank; r++)
		text_add(g->out, "%s%%i%d", r ? ", " : "", r);
	text_add(g->out, "] : %s\n    linalg.yield %%r : f32\n  } -> %s\n",
	        shape_type(g, g->shape[from]), type);
}

/* Text of a model with up to `steps` operations; its results are the last values. */
static inline void random_graph(uint64_t seed, int steps, struct text *out)
{
	static void (*const step[])(struct graph *) = {
		graph_unary,
		graph_binary,
		graph_binary,
		graph_reduce,
		graph_broadcast,
		graph_transpose,
		graph_reshape,
		graph_slice,
		graph_concat,
		graph_pad,
		graph_insert,
		graph_window,
		graph_gather,
	};
	struct graph g = { .state = seed * 0x9E3779B97F4A7C15u + 1, .out = out, .arguments = 3 };
	struct text body = text_new(out->arena), *whole = out;
	for (int i = 0; i < g.arguments; i++) {
		struct shape shape = { .rank = 1 + (int)graph_next(&g, 3) };
		for (int r = 0; r < shape.rank; r++)
			shape.extent[r] = 2 + (int64_t)graph_next(&g, 5);
		graph_add(&g, shape);
	}
	g.out = &body;
	while (steps-- > 0 && g.values < GRAPH_VALUES - 2)
		step[graph_next(&g, sizeof step / sizeof *step)](&g);
	int results = g.values - g.arguments < 3 ? g.values : 3;
	text_add(whole, "func.func @main(%%rows: tensor<3xi64>, %%window: tensor<2xf32>");
	for (int i = 0; i < g.arguments; i++)
		text_add(whole, ", %%v%d: %s", i, shape_type(&g, g.shape[i]));
	text_add(whole, ") -> (");
	for (int i = 0; i < results; i++)
		text_add(whole, "%s%s", i ? ", " : "", shape_type(&g, g.shape[g.values - 1 - i]));
	text_add(whole,
	        ") {\n  %%zero = arith.constant 0.0 : f32\n  %%half = arith.constant 0.5 : f32\n  "
	        "%%low = arith.constant 0xFF800000 : f32\n%s  return ",
	        body.data ? body.data : "");
	for (int i = 0; i < results; i++)
		text_add(whole, "%s%%v%d", i ? ", " : "", g.values - 1 - i);
	text_add(whole, " : ");
	for (int i = 0; i < results; i++)
		text_add(whole, "%s%s", i ? ", " : "", shape_type(&g, g.shape[g.values - 1 - i]));
	text_add(whole, "\n}\n");
}
#endif
