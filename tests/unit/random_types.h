/* Random models with streams of several element types, reductions of many kinds over other dims
 * than the last, and dims read backwards: what random_model.h leaves out. */
#ifndef RANDOM_TYPES_H
#define RANDOM_TYPES_H
#include "random_model.h"

/* A tensor of any element type: %NAME. */
struct typed {
	const char *name, *element;
	struct shape shape;
};

static const char *typed_text(struct model *m, struct typed value)
{
	struct text text = text_new(m->graph.out->arena);
	text_add(&text, "tensor<");
	for (int r = 0; r < value.shape.rank; r++)
		text_add(&text, "%" PRId64 "x", value.shape.extent[r]);
	text_add(&text, "%s>", value.element);
	return text.data;
}

static struct typed typed_of(struct model *m, int value)
{
	return (struct typed){ value_name(m, value), "f32", m->graph.shape[value] };
}

/* A generic over the dims of `from` that reduces the dims in the mask `folded`; its body reads %a
 * and %o, and makes %r.  init: NULL without a reduction. */
static void typed_generic(struct model *m, struct typed to, struct typed from, unsigned folded,
        const char *init, const char *body)
{
	struct graph *g = &m->graph;
	struct text kinds = text_new(g->out->arena), kept = text_new(g->out->arena);
	const char *type = typed_text(m, to), *head = map_dims(g, from.shape.rank),
	           *start = text_format(g->out->arena, "s%d", m->names++);
	text_add(&kept, "%s", "");
	for (int r = 0; r < from.shape.rank; r++) {
		text_add(&kinds, "%s\"%s\"", r ? ", " : "",
		        folded >> r & 1 ? "reduction" : "parallel");
		if (!(folded >> r & 1))
			text_add(&kept, "%sd%d", kept.size ? ", " : "", r);
	}
	text_add(g->out, "  %%%s = tensor.empty() : %s\n", start, type);
	if (init)
		text_add(g->out,
		        "  %%%s_value = arith.constant %s : %s\n  %%%s_full = linalg.fill "
		        "ins(%%%s_value : %s) outs(%%%s : %s) -> %s\n",
		        start, init, to.element, start, start, to.element, start, type, type);
	text_add(g->out,
	        "  %%%s = linalg.generic {indexing_maps = [%s%s)>, %s%s)>], iterator_types = [%s]} "
	        "ins(%%%s : %s) outs(%%%s%s : %s) {\n  ^bb0(%%a: %s, %%o: %s):\n%s    linalg.yield "
	        "%%r : %s\n  } -> %s\n",
	        to.name, head, model_dims(m, from.shape.rank, -1, -1), head, kept.data, kinds.data,
	        from.name, typed_text(m, from), start, init ? "_full" : "", type, from.element,
	        to.element, body, to.element, type);
}

static const char *typed_name(struct model *m)
{
	return text_format(m->graph.out->arena, "integers%d", m->names++);
}

/* Converts to integers of some bit width, reduces or reverses these, and converts back, so that a
 * stream has that width. */
static void step_integers(struct model *m)
{
	static const char *const width[] = { "i8", "i16", "i32", "i64" };
	static const struct {
		const char *code, *init;
	} fold[] = {
		{ "arith.addi", "0" },
		{ "arith.muli", "1" },
		{ "arith.maxsi", "-128" },
		{ "arith.minsi", "127" },
		{ "arith.xori", "0" },
		{ "arith.ori", "0" },
		{ "arith.andi", "-1" },
	};
	struct graph *g = &m->graph;
	struct arena *arena = g->out->arena;
	int value = model_pick(m, -1), kind = (int)graph_next(g, sizeof fold / sizeof *fold);
	if (value < 0)
		return;
	struct typed from = typed_of(m, value),
	             whole = { typed_name(m), width[graph_next(g, 4)], from.shape },
	             part = { typed_name(m), whole.element, { 0 } };
	typed_generic(m, whole, from, 0, NULL,
	        text_format(arena,
	                "    %%n = arith.constant 8.0 : f32\n    %%m = arith.mulf %%a, %%n : f32\n "
	                "   %%r = arith.fptosi %%m : f32 to %s\n",
	                whole.element));
	unsigned folded = (unsigned)graph_next(g, 1u << from.shape.rank);
	for (int r = 0; r < from.shape.rank; r++)
		if (!(folded >> r & 1))
			part.shape.extent[part.shape.rank++] = from.shape.extent[r];
	if (part.shape.rank && part.shape.rank < from.shape.rank)
		typed_generic(m, part, whole, folded, fold[kind].init,
		        text_format(arena, "    %%r = %s %%o, %%a : %s\n", fold[kind].code,
		                whole.element));
	else
		part = whole;
	int to = graph_add(g, part.shape);
	typed_generic(m, typed_of(m, to), part, 0, NULL,
	        text_format(arena,
	                "    %%n = arith.constant 0.125 : f32\n    %%m = arith.sitofp %%a : %s to "
	                "f32\n    %%r = arith.mulf %%m, %%n : f32\n",
	                part.element));
}

/* Products, extremes and sums over any dims. */
static void step_fold(struct model *m)
{
	static const struct {
		const char *body, *init;
	} fold[] = {
		{ "    %r = arith.mulf %o, %a : f32\n", "1.0" },
		{ "    %r = arith.minimumf %o, %a : f32\n", "0x7F800000" },
		{ "    %r = arith.maxnumf %o, %a : f32\n", "-4.0" },
		{ "    %r = arith.addf %o, %a : f32\n", "0.0" },
		{ "    %s = arith.mulf %a, %a : f32\n    %r = arith.addf %o, %s : f32\n", "0.5" },
		{ "    %s = math.absf %a : f32\n    %r = arith.maximumf %s, %o : f32\n", "0.0" },
		{ "    %s = arith.mulf %o, %half : f32\n    %r = arith.addf %s, %a : f32\n",
		        "0.0" },
	};
	struct graph *g = &m->graph;
	int value = model_pick(m, -1), kind = (int)graph_next(g, sizeof fold / sizeof *fold);
	if (value < 0 || g->shape[value].rank < 2)
		return;
	struct typed from = typed_of(m, value);
	struct shape shape = { 0 };
	unsigned folded = 1 + (unsigned)graph_next(g, (1u << from.shape.rank) - 2);
	for (int r = 0; r < from.shape.rank; r++)
		if (!(folded >> r & 1))
			shape.extent[shape.rank++] = from.shape.extent[r];
	int to = graph_add(g, shape);
	typed_generic(m, typed_of(m, to), from, folded, fold[kind].init, fold[kind].body);
}

/* One value read in three orders, which meet again. */
static void step_reconverge(struct model *m)
{
	struct graph *g = &m->graph;
	int value = model_pick(m, 2);
	if (value < 0)
		return;
	struct shape shape = g->shape[value],
	             turned = { .rank = 2, .extent = { shape.extent[1], shape.extent[0] } };
	int other = graph_add(g, turned);
	add_empty(g, other, turned);
	text_add(g->out,
	        "  %%v%d = linalg.transpose ins(%%v%d : %s) outs(%%e%d : %s) permutation = [1, "
	        "0]\n",
	        other, value, shape_type(g, shape), other, shape_type(g, turned));
	int sum = model_fold_last(m, other, "arith.addf", false);
	int spread = model_spread(m, other, sum, "    %r = arith.subf %a, %b : f32\n");
	int back = graph_add(g, shape);
	add_empty(g, back, shape);
	text_add(g->out,
	        "  %%v%d = linalg.transpose ins(%%v%d : %s) outs(%%e%d : %s) permutation = [1, "
	        "0]\n",
	        back, spread, shape_type(g, turned), back, shape_type(g, shape));
	model_pair(m, model_softmax(m, value), back, "    %r = arith.addf %a, %b : f32\n");
}

/* Some dims backwards, as a transposed convolution reads its weights. */
static void step_flip(struct model *m)
{
	struct graph *g = &m->graph;
	int from = graph_pick(g), backwards = (int)graph_next(g, 1u << GRAPH_RANK);
	struct shape shape = g->shape[from];
	int to = graph_add(g, shape);
	const char *type = shape_type(g, shape);
	add_empty(g, to, shape);
	text_add(g->out,
	        "  %%v%d = linalg.generic {indexing_maps = [%s], %s} outs(%%e%d : %s) {\n  "
	        "^bb0(%%o: f32):\n",
	        to, map_identity(g, shape.rank, shape.rank), iterators(g, shape.rank, 0), to, type);
	for (int r = 0; r < shape.rank; r++)
		text_add(g->out,
		        "    %%i%d = linalg.index %d : index\n    %%l%d = arith.constant %" PRId64
		        " : index\n    %%b%d = arith.subi %%l%d, %%i%d : index\n",
		        r, r, r, shape.extent[r] - 1, r, r, r);
	text_add(g->out, "    %%r = tensor.extract %%v%d[", from);
	for (int r = 0; r < shape.rank; r++)
		text_add(g->out, "%s%%%c%d", r ? ", " : "", backwards >> r & 1 ? 'b' : 'i', r);
	text_add(g->out, "] : %s\n    linalg.yield %%r : f32\n  } -> %s\n", type, type);
}

/* Text of a model of up to `steps` parts. */
static inline void random_types(uint64_t seed, int steps, struct text *out)
{
	static void (*const step[])(struct model *) = {
		step_integers,
		step_integers,
		step_fold,
		step_fold,
		step_reconverge,
		step_flip,
		step_linear,
		step_convolution,
		step_embedding,
		step_ragged,
		step_layers,
		model_binary,
		model_transpose,
		model_reshape,
		model_slice,
		model_concat,
		model_pad,
		model_window,
		model_broadcast,
	};
	random_parts(seed, steps, sizeof step / sizeof *step, step, out);
}
#endif
