/* Replaces a contraction with a weight by kernels on integers.
 *     post(Σ_k x * w)  ->  sums:   d[n, g] = Σ q * w' over group g, in i32
 *                          scaled: post(Σ_g (float)d * (s * s'))
 * Weights with zero points z are (w' - z) * s': d - z * Σ q stands in the place of d, where Σ q
 * over a group is the same for all outputs.
 * Loops run in the order in which the weight layout in memory, so it is read once as a stream:
 * outputs, blocks of outputs, groups, outputs of a block, tokens, numbers of a group. */
#include "ir/contract.h"
#include "base/number.h"
#include "ir/launch_tokens.h"
#include "quantize/quantize.h"

/* Outputs of a block, whose f32 sums are in flight at the same time: at least the latency of an
 * addition (7 cycles) times the sums that come in a cycle (8). */
#define BLOCK_MOST 64
/* Smaller blocks than this: a rest of the outputs is split off instead. */
#define BLOCK_LEAST 8
/* Outputs of a block with several tokens, each of which has a sum in flight. */
#define BLOCK_TOKENS 8
/* Operand of the scaled sums: zero points; the sums of activations follow. */
#define ZERO_OPERAND 3

/* Outputs first … first + count - 1 of the contraction's last output loop. */
struct output_range {
	int64_t first, count;
	int64_t block; /* outputs in a block */
};

/* The contraction while it is replaced. */
struct contraction_lowering {
	struct quantizer *q;
	const struct contraction *c;
	struct activation x;
	int64_t groups, size;     /* of the reduction; numbers of a group */
	struct output_range part; /* the outputs at hand */
	struct value *weight, *scale, *sums;
	struct value *zero; /* NULL: no zero points */
};

static int64_t extent_of(const struct contraction_lowering *l, int loop)
{
	return l->c->op->kernel->loop[loop].extent;
}

static int last_output(const struct contraction_lowering *l)
{
	return l->c->output[l->c->outputs - 1];
}

int64_t contraction_tokens(const struct contraction *c)
{
	int64_t tokens = 1;
	for (int t = 0; t < c->tokens; t++)
		tokens *= c->op->kernel->loop[c->token[t]].extent;
	return tokens;
}

/* Row-major strides of these extents. */
static int64_t *pitches(struct arena *arena, int count, const int64_t *extent)
{
	int64_t *pitch = ARENA_ARRAY(arena, int64_t, count + 1);
	int64_t run = 1;
	for (int i = count - 1; i >= 0; i--) {
		pitch[i] = run;
		run *= extent[i];
	}
	return pitch;
}

/* ---- weights */

/* Describes the weight to the packer in the order in which the kernels use it: outputs, blocks,
 * groups, outputs of a block, numbers of a group. */
static void source_order(struct contraction_lowering *l, struct segment *from)
{
	struct arena *arena = l->q->module->arena;
	const struct contraction *c = l->c;
	const struct access *access = &c->op->kernel->operand[c->w];
	struct grouping grouping;
	bool whole = group_digits(arena, c, &grouping);
	const struct digit *last = &c->digit[c->digits - 1];
	struct digit run[2] = { { l->groups, 0, last->w * l->size }, { l->size, 0, last->w } };
	const struct digit *digit = whole ? grouping.digit : run;
	int outer = whole ? grouping.outer : 1;
	int digits = whole ? outer + grouping.inner : 2;
	int dims = 0;
	int64_t elements = 1;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, c->outputs + digits + 2);
	int64_t *stride = ARENA_ARRAY(arena, int64_t, c->outputs + digits + 2);
	for (int i = 0; i + 1 < c->outputs; i++, dims++) {
		trip[dims] = extent_of(l, c->output[i]);
		stride[dims] = access->stride[c->output[i]];
	}
	int64_t pitch = access->stride[last_output(l)];
	trip[dims] = l->part.count / l->part.block;
	stride[dims++] = pitch * l->part.block;
	int at_groups = dims;
	for (int i = 0; i < digits; i++) {
		if (i == outer) {
			trip[dims] = l->part.block;
			stride[dims++] = pitch;
		}
		trip[dims] = digit[i].extent;
		stride[dims++] = digit[i].w;
	}
	*from = (struct segment){ .base = access->offset + l->part.first * pitch,
		.dims = dims,
		.trip = trip,
		.stride = stride,
		.host_bytes = 4,
		.image_bytes = 4 };
	for (int i = 0; i < c->digits; i++)
		elements *= c->digit[i].extent;
	if (!whole && l->groups * l->size > elements) { /* the last group is short */
		int64_t *row = ARENA_ARRAY(arena, int64_t, dims + 1);
		row[at_groups] = l->size;
		row[dims - 1] = 1;
		row[dims] = elements;
		from->condition = row;
		from->conditions = 1;
	}
}

int contraction_axis(const struct contraction *c)
{
	const struct type *type = c->op->operand[c->w]->type;
	int64_t pitch = 1;
	int64_t stride = c->digit[c->digits - 1].w;
	int64_t extent = 1;
	for (int i = c->digits - 1; i >= 0; i--) {
		if (c->digit[i].w != stride * extent)
			return -1;
		extent *= c->digit[i].extent;
	}
	for (int d = type->rank - 1; d >= 0; d--) {
		if (stride == pitch && type->shape[d] > 1)
			return extent == type->shape[d] ? d : -1;
		pitch *= type->shape[d];
	}
	return -1;
}

/* Adds the arguments with the integers and with the scales of the part's outputs. */
static void add_weights(struct contraction_lowering *l)
{
	struct module *module = l->q->module;
	const struct value *weight = l->c->op->operand[l->c->w];
	struct quantized from = from_weight(l->q, weight);
	from.bits = l->c->bits;
	from.axis = contraction_axis(l->c);
	from.group = l->size;
	from.shared = l->c->row_scale ? l->groups : 1;
	from.block = l->c->row_scale ? l->part.block : 1;
	from.has_zeros = l->c->zeros;
	source_order(l, &from.from);
	int64_t elements = segment_elements(&from.from);
	int64_t scales = quantized_scales(&from);
	l->weight = add_weight(l->q, &from, "q",
	        type_shaped(module, TYPE_TENSOR, 1, &elements, type_integer(module, l->c->bits)));
	from.scales = true;
	l->scale = add_weight(l->q, &from, "scale",
	        type_shaped(module, TYPE_TENSOR, 1, &scales, type_float(module, 16)));
	from.scales = false;
	from.zeros = l->c->zeros;
	if (from.zeros)
		l->zero = add_weight(l->q, &from, "zero",
		        type_shaped(
		                module, TYPE_TENSOR, 1, &scales, type_integer(module, l->c->bits)));
}

/* ---- kernels */

/* Loops of both kernels: outputs but the last, blocks, groups, outputs of a block, tokens.  The
 * sums are stored with the last two exchanged. */
struct product_nest {
	int outputs; /* output loops but the last */
	int tokens;  /* token loops */
	/* numbers of loops: over blocks, groups, the first token loop, outputs of a block */
	int block, group, token, inner;
	int loops;
};

/* inner_first: outputs of a block outside tokens, else inside. */
static struct product_nest nest_of(const struct contraction *c, bool inner_first)
{
	struct product_nest nest = { .outputs = c->outputs - 1, .tokens = c->tokens };
	nest.block = nest.outputs;
	nest.group = nest.block + 1;
	nest.token = nest.group + 1 + inner_first;
	nest.inner = inner_first ? nest.group + 1 : nest.token + nest.tokens;
	nest.loops = nest.group + 2 + nest.tokens;
	return nest;
}

static void set_loops(
        struct contraction_lowering *l, const struct product_nest *nest, struct kernel *kernel)
{
	for (int i = 0; i < nest->outputs; i++)
		kernel->loop[i].extent = extent_of(l, l->c->output[i]);
	kernel->loop[nest->block].extent = l->part.count / l->part.block;
	kernel->loop[nest->group].extent = l->groups;
	for (int t = 0; t < nest->tokens; t++)
		kernel->loop[nest->token + t].extent = extent_of(l, l->c->token[t]);
	kernel->loop[nest->inner].extent = l->part.block;
	kernel->ordered = true;
}

/* Strides in the packed weight [outputs][blocks][groups][outputs of a block][each]; each 1: in its
 * scales, which may be the same for all groups. */
static void walk_weights(struct contraction_lowering *l, const struct product_nest *nest,
        const struct kernel *kernel, int64_t each, int64_t *stride)
{
	int64_t pitch = each;
	const int order[] = { nest->inner, nest->group, nest->block };
	for (int i = 0; i < 3; i++) {
		if (order[i] == nest->group && each == 1 && l->c->row_scale)
			continue;
		stride[order[i]] = pitch;
		pitch *= kernel->loop[order[i]].extent;
	}
	for (int i = nest->outputs - 1; i >= 0; i--) {
		stride[i] = pitch;
		pitch *= kernel->loop[i].extent;
	}
}

/* Strides in [tokens ..., groups, each]; groups 1: no stride, one scale for all groups. */
static void walk_activations(const struct product_nest *nest, const struct kernel *kernel,
        int64_t groups, int64_t each, int64_t *stride)
{
	int64_t pitch = each;
	stride[nest->group] = groups > 1 ? pitch : 0;
	pitch *= groups;
	for (int t = nest->tokens - 1; t >= 0; t--) {
		stride[nest->token + t] = pitch;
		pitch *= kernel->loop[nest->token + t].extent;
	}
}

/* Strides in the sums [outputs][blocks][groups][tokens ...][outputs of a block]. */
static void walk_sums(struct contraction_lowering *l, const struct product_nest *nest,
        const struct kernel *kernel, int64_t *stride)
{
	struct product_nest stored = nest_of(l->c, false);
	int64_t *extent = ARENA_ARRAY(l->q->module->arena, int64_t, stored.loops);
	int *place = ARENA_ARRAY(l->q->module->arena, int, stored.loops);
	for (int i = 0; i < stored.loops; i++)
		place[i] = i < stored.token ? i : nest->token + i - stored.token;
	place[stored.inner] = nest->inner;
	for (int i = 0; i < stored.loops; i++)
		extent[i] = kernel->loop[place[i]].extent;
	const int64_t *pitch = pitches(l->q->module->arena, stored.loops, extent);
	for (int i = 0; i < stored.loops; i++)
		stride[place[i]] = pitch[i];
}

static const struct type *sums_type(struct contraction_lowering *l)
{
	struct product_nest stored = nest_of(l->c, false);
	struct kernel shape = { .loop = ARENA_ARRAY(
		                        l->q->module->arena, struct loop, stored.loops) };
	int64_t *extent = ARENA_ARRAY(l->q->module->arena, int64_t, stored.loops);
	set_loops(l, &stored, &shape);
	for (int i = 0; i < stored.loops; i++)
		extent[i] = shape.loop[i].extent;
	return type_shaped(
	        l->q->module, TYPE_TENSOR, stored.loops, extent, type_integer(l->q->module, 32));
}

/* The kernel d = Σ q * w' over the numbers of a group. */
static void make_sums(struct contraction_lowering *l)
{
	struct module *module = l->q->module;
	struct product_nest nest = nest_of(l->c, true);
	struct value *operand[2] = { l->x.q, l->weight };
	int number = nest.loops; /* the loop over a group */
	const struct kernel_spec spec = { .at = l->c->op,
		.suffix = l->part.first ? "sums_rest" : "sums",
		.loops = nest.loops + 1,
		.operands = 2,
		.operand = operand,
		.result = sums_type(l) };
	struct op *op = quantize_kernel(l->q, &spec);
	struct kernel *kernel = op->kernel;
	set_loops(l, &nest, kernel);
	kernel->loop[number] = (struct loop){ .extent = l->size, .reduction = true };
	walk_activations(&nest, kernel, l->groups, l->size, kernel->operand[0].stride);
	walk_weights(l, &nest, kernel, l->size, kernel->operand[1].stride);
	walk_sums(l, &nest, kernel, kernel->result.stride);
	kernel->operand[0].stride[number] = kernel->operand[1].stride[number] = 1;
	struct body *body = &kernel->update;
	const struct type *sum = type_integer(module, 32);
	int left = body_op(module, body, OP_EXTSI, sum,
	        body_operand(module, body, type_integer(module, 8), 0), 0, 0);
	int right = body_op(module, body, OP_EXTSI, sum,
	        body_operand(module, body, type_integer(module, l->c->bits), 1), 0, 0);
	int accumulator =
	        body_add(module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = sum });
	body->result = body_op(module, body, OP_ADDI, sum, accumulator,
	        body_op(module, body, OP_MULI, sum, left, right, 0), 0);
	l->sums = op->result[0];
}

/* Converts an access of the contraction, by its parallel loops, to the new loops. */
static void walk_parallel(struct contraction_lowering *l, const struct product_nest *nest,
        const struct access *from, struct access *to)
{
	const struct contraction *c = l->c;
	int64_t *place = ARENA_ARRAY(l->q->module->arena, int64_t, c->op->kernel->loops + 1);
	to->offset = from->offset + l->part.first * from->stride[last_output(l)];
	for (int i = 0; i < nest->outputs; i++)
		place[c->output[i]] = i;
	for (int t = 0; t < nest->tokens; t++)
		place[c->token[t]] = nest->token + t;
	for (int i = 0; i < nest->outputs; i++)
		to->stride[i] = from->stride[c->output[i]];
	for (int t = 0; t < nest->tokens; t++)
		to->stride[nest->token + t] = from->stride[c->token[t]];
	to->stride[nest->inner] = from->stride[last_output(l)];
	to->stride[nest->block] = from->stride[last_output(l)] * l->part.block;
	for (int g = 0; g < from->guards; g++)
		access_add_guard(l->q->module, to,
		        (struct guard_range){ .loop = (int)place[from->guard[g].loop],
		                .low = from->guard[g].low,
		                .high = from->guard[g].high });
}

/* d, or d - z * Σ q. */
static int corrected_sum(const struct contraction_lowering *l, struct body *body)
{
	struct module *module = l->q->module;
	const struct type *whole = type_integer(module, 32);
	int sum = body_operand(module, body, whole, 0);
	if (!l->zero)
		return sum;
	int zero = body_op(module, body, OP_EXTSI, whole,
	        body_operand(module, body, type_integer(module, l->c->bits), ZERO_OPERAND), 0, 0);
	int x = body_operand(module, body, whole, ZERO_OPERAND + 1);
	return body_op(module, body, OP_SUBI, whole, sum,
	        body_op(module, body, OP_MULI, whole, x, zero, 0), 0);
}

/* The body acc + (float)d * (s * s'). */
static void scale_sums(const struct contraction_lowering *l, struct body *body)
{
	struct module *module = l->q->module;
	const struct type *real = type_float(module, 32);
	int sum = body_op(module, body, OP_SITOFP, real, corrected_sum(l, body), 0, 0);
	int own = body_op(module, body, OP_EXTF, real,
	        body_operand(module, body, type_float(module, 16), 2), 0, 0);
	int scale =
	        body_op(module, body, OP_MULF, real, body_operand(module, body, real, 1), own, 0);
	int accumulator =
	        body_add(module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = real });
	body->result = body_op(module, body, OP_ADDF, real, accumulator,
	        body_op(module, body, OP_MULF, real, sum, scale, 0), 0);
}

/* How the scaled sums walk their own operands. */
static void walk_scaled(struct contraction_lowering *l, const struct product_nest *nest,
        const struct kernel *kernel)
{
	const struct access *operand = kernel->operand;
	walk_sums(l, nest, kernel, operand[0].stride);
	walk_activations(nest, kernel, l->c->per_token ? 1 : l->groups, 1, operand[1].stride);
	walk_weights(l, nest, kernel, 1, operand[2].stride);
	if (!l->zero)
		return;
	walk_weights(l, nest, kernel, 1, operand[ZERO_OPERAND].stride);
	walk_activations(nest, kernel, l->groups, 1, operand[ZERO_OPERAND + 1].stride);
}

/* The kernel y = Σ_g (float)d * (s * s'), then what follows the sum. */
static struct op *make_result(
        struct contraction_lowering *l, const struct type *type, const struct access *result)
{
	struct module *module = l->q->module;
	const struct op *old = l->c->op;
	struct product_nest nest = nest_of(l->c, true);
	int operands = ZERO_OPERAND;
	int *renamed = ARENA_ARRAY(module->arena, int, old->operands + 1);
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, old->operands + 5);
	operand[0] = l->sums;
	operand[1] = l->x.scale;
	operand[2] = l->scale;
	if (l->zero) {
		operand[operands++] = l->zero;
		operand[operands++] = activation_sums(l->q, l->c, &l->x);
	}
	for (int j = 0; j < old->operands; j++) {
		renamed[j] = operands;
		if (body_uses_operand(&old->kernel->post, j))
			operand[operands++] = old->operand[j];
	}
	const struct kernel_spec spec = { .at = l->c->op,
		.suffix = l->part.first ? "scaled_rest" : "scaled",
		.loops = nest.loops,
		.operands = operands,
		.operand = operand,
		.result = type };
	struct op *op = quantize_kernel(l->q, &spec);
	struct kernel *kernel = op->kernel;
	set_loops(l, &nest, kernel);
	kernel->loop[nest.group].reduction = true;
	walk_scaled(l, &nest, kernel);
	for (int j = 0; j < old->operands; j++)
		if (body_uses_operand(&old->kernel->post, j))
			walk_parallel(
			        l, &nest, &old->kernel->operand[j], &kernel->operand[renamed[j]]);
	walk_parallel(l, &nest, result, &kernel->result);
	kernel->result.offset = 0;
	scale_sums(l, &kernel->update);
	if (old->kernel->post.count)
		kernel->post.result =
		        body_import(module, &kernel->post, &old->kernel->post, renamed, -1);
	return op;
}

/* ---- outputs that do not fall into blocks */

/* The type of a part's result, dims in the order of the contraction's result, and how the
 * contraction's loops walk it. */
static const struct type *part_type(struct contraction_lowering *l, struct access *layout)
{
	const struct kernel *kernel = l->c->op->kernel;
	struct arena *arena = l->q->module->arena;
	int *order = ARENA_ARRAY(arena, int, kernel->loops + 1);
	int count = kernel_parallel_order(kernel, order);
	int64_t *extent = ARENA_ARRAY(arena, int64_t, count + 1);
	for (int i = 0; i < count; i++)
		extent[i] = order[i] == last_output(l) ? l->part.count : extent_of(l, order[i]);
	const int64_t *pitch = pitches(arena, count, extent);
	*layout = access_empty(l->q->module, kernel->loops);
	for (int i = 0; i < count; i++)
		layout->stride[order[i]] = pitch[i];
	return type_shaped(l->q->module, TYPE_TENSOR, count, extent, kernel->type);
}

/* The kernel that concatenates two parts along the last output loop. */
static struct op *concatenate(struct contraction_lowering *l, const struct output_range *part,
        struct op *const *made, const struct access *layout)
{
	struct module *module = l->q->module;
	const struct op *old = l->c->op;
	struct value *operand[2] = { made[0]->result[0], made[1]->result[0] };
	int loops = 0;
	int *place = ARENA_ARRAY(module->arena, int, old->kernel->loops + 1);
	for (int i = 0; i < old->kernel->loops; i++)
		place[i] = old->kernel->loop[i].reduction ? -1 : loops++;
	const struct kernel_spec spec = { .at = l->c->op,
		.suffix = "parts",
		.loops = loops,
		.operands = 2,
		.operand = operand,
		.result = old->result[0]->type };
	struct op *op = quantize_kernel(l->q, &spec);
	struct kernel *kernel = op->kernel;
	for (int i = 0; i < old->kernel->loops; i++) {
		if (place[i] < 0)
			continue;
		kernel->loop[place[i]].extent = old->kernel->loop[i].extent;
		kernel->result.stride[place[i]] = old->kernel->result.stride[i];
		for (int p = 0; p < 2; p++)
			kernel->operand[p].stride[place[i]] = layout[p].stride[i];
	}
	int last = place[last_output(l)];
	for (int p = 0; p < 2; p++) {
		kernel->operand[p].offset = -part[p].first * kernel->operand[p].stride[last];
		access_add_guard(module, &kernel->operand[p],
		        (struct guard_range){ .loop = last,
		                .low = part[p].first,
		                .high = part[p].first + part[p].count });
	}
	struct body *body = &kernel->update;
	int first = body_operand(module, body, kernel->type, 0);
	int second = body_operand(module, body, kernel->type, 1);
	body->result = body_op(
	        module, body, OP_SELECT, kernel->type, body_active(module, body, 0), first, second);
	return op;
}

static struct op *make_part(
        struct contraction_lowering *l, const struct type *type, const struct access *result)
{
	add_weights(l);
	make_sums(l);
	return make_result(l, type, result);
}

/* Can the contraction be a job of the engine (engine/map_contractions.c)? */
static bool is_for_engine(const struct contraction_lowering *l)
{
	const struct kernel *kernel = l->c->op->kernel;
	bool plain = !body_uses_counters(&kernel->post) && access_is_plain(&kernel->result);
	bool tokens_fit = contraction_tokens(l->c) == 1 || contraction_fits_engine(l->q, l->c);
	bool weights_fit = l->c->bits == l->q->scheme->weight &&
	        l->size * l->c->bits == ENGINE_WORD_BITS && !l->c->row_scale &&
	        !l->q->scheme->per_token;
	return l->q->for_engine && plain && l->c->outputs == 1 && tokens_fit && weights_fit &&
	        kernel->result.stride[last_output(l)] == 1;
}

/* Makes the kernels for all outputs; where these do not fall into large blocks, the rest of
 * them is made with a block size of its own. */
static struct op *make_kernels(struct contraction_lowering *l)
{
	const struct op *old = l->c->op;
	int64_t outputs = extent_of(l, last_output(l));
	int64_t most = contraction_tokens(l->c) > 1 ? BLOCK_TOKENS : BLOCK_MOST;
	int64_t rest = outputs % most;
	int64_t block = power_of_two_in(outputs, most);
	bool for_engine = is_for_engine(l);
	if (!for_engine && block < most && block < BLOCK_LEAST && outputs > most) {
		struct op *made[2];
		struct output_range part[2] = { { 0, outputs - rest, most },
			{ outputs - rest, rest, power_of_two_in(rest, most) } };
		struct access layout[2];
		for (int p = 0; p < 2; p++) {
			l->part = part[p];
			const struct type *own = part_type(l, &layout[p]);
			made[p] = make_part(l, own, &layout[p]);
		}
		return concatenate(l, part, made, layout);
	}
	l->part = (struct output_range){ 0, outputs, for_engine ? outputs : block };
	return make_part(l, old->result[0]->type, &old->kernel->result);
}

bool quantize_contraction(struct quantizer *q, struct contraction *c)
{
	if (contraction_tokens(c) > 1 && contraction_fits_engine(q, c))
		contraction_plain(q, c);
	c->grouped = contraction_tokens(c) > 1 &&
	        contraction_tokens(c) == token_tile(contraction_tokens(c), false) &&
	        contraction_fits_engine(q, c);
	struct contraction_lowering l = { .q = q, .c = c, .x = activation_of(q, c) };
	if (!l.x.q)
		return false;
	const struct type *type = l.x.q->type;
	l.groups = type->shape[type->rank - 2];
	l.size = type->shape[type->rank - 1];
	struct op *made = make_kernels(&l);
	ir_replace(q->main->region[0], c->op->result[0], made->result[0]);
	op_remove(c->op);
	return true;
}
