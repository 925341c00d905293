/* Activations as bytes, with one scale for each group of the reduction:
 *     x  ->  s = max |x| / 127 over the group, 1 for zeros;  q = round(x / s)
 * Contractions that read the same activations in the same order share these kernels.  Where the
 * reduction does not fall into groups, x is first copied to one run padded with zeros. */
#include "quantize/quantize.h"
#include <string.h>

/* OP_ROUND_SATURATE gives bytes of -127 ... 127. */
#define MOST 127

/* From the innermost digit outwards: a digit that crosses the end of a group is split in two. */
bool group_digits(struct arena *arena, const struct contraction *c, struct grouping *to)
{
	struct digit *reversed = ARENA_ARRAY(arena, struct digit, c->digits + 2);
	int64_t size = 1;
	int64_t elements = 1;
	int count = 0;
	int inner = 0;
	for (int i = 0; i < c->digits; i++)
		elements *= c->digit[i].extent;
	int64_t group = c->group && c->group < elements ? c->group : elements;
	for (int i = c->digits - 1; i >= 0; i--) {
		struct digit digit = c->digit[i];
		int64_t part = digit.extent;
		if (size < group && group % (size * part))
			part = group / size;
		if (size < group && digit.extent % part)
			return false;
		if (size < group) {
			reversed[count++] = (struct digit){ part, digit.x, digit.w };
			size *= part;
			inner = count;
			digit = (struct digit){ digit.extent / part, digit.x * part,
				digit.w * part };
		}
		if (digit.extent > 1)
			reversed[count++] = digit;
	}
	*to = (struct grouping){ .outer = count - inner,
		.inner = inner,
		.digit = ARENA_ARRAY(arena, struct digit, count + 1),
		.groups = elements / group,
		.size = group };
	for (int i = 0; i < count; i++)
		to->digit[i] = reversed[count - 1 - i];
	return size == group;
}

/* A value as the kernels here walk it: by the token loops of the contraction, then by digits. */
struct activation_walk {
	struct value *value;
	int64_t offset;
	int64_t *token; /* stride of each token loop */
	int digits;
	const struct digit *digit; /* extent, and stride x in the value */
};

static struct activation_walk walk_of(struct quantizer *q, const struct contraction *c)
{
	const struct access *access = &c->op->kernel->operand[c->x];
	struct activation_walk walk = { .value = c->op->operand[c->x],
		.offset = access->offset,
		.token = ARENA_ARRAY(q->module->arena, int64_t, c->tokens + 1),
		.digits = c->digits,
		.digit = c->digit };
	for (int t = 0; t < c->tokens; t++)
		walk.token[t] = access->stride[c->token[t]];
	return walk;
}

static int64_t token_extent(const struct contraction *c, int t)
{
	return c->op->kernel->loop[c->token[t]].extent;
}

/* A tensor [token extents ..., groups, size]; dims of 0 are left out. */
static const struct type *token_type(struct quantizer *q, const struct contraction *c,
        const struct type *scalar, int64_t groups, int64_t size)
{
	int64_t *shape = ARENA_ARRAY(q->module->arena, int64_t, c->tokens + 3);
	int rank = c->tokens;
	for (int t = 0; t < c->tokens; t++)
		shape[t] = token_extent(c, t);
	if (groups)
		shape[rank++] = groups;
	if (size)
		shape[rank++] = size;
	if (!rank)
		shape[rank++] = 1;
	return type_shaped(q->module, TYPE_TENSOR, rank, shape, scalar);
}

/* Row-major strides over the first loops; reductions have stride 0. */
static void set_row_major(const struct kernel *kernel, int loops, int64_t *stride)
{
	int64_t pitch = 1;
	for (int l = loops - 1; l >= 0; l--) {
		stride[l] = kernel->loop[l].reduction ? 0 : pitch;
		pitch *= kernel->loop[l].reduction ? 1 : kernel->loop[l].extent;
	}
}

/* A kernel before the contraction with loops of tokens and digits; operand 0 walks the value, the
 * result is row-major. */
static struct op *walking_kernel(struct quantizer *q, const struct contraction *c,
        const struct activation_walk *walk, struct kernel_spec spec)
{
	spec.at = c->op;
	spec.loops = c->tokens + walk->digits;
	struct op *op = quantize_kernel(q, &spec);
	struct kernel *kernel = op->kernel;
	for (int t = 0; t < c->tokens; t++) {
		kernel->loop[t].extent = token_extent(c, t);
		kernel->operand[0].stride[t] = walk->token[t];
	}
	for (int i = 0; i < walk->digits; i++) {
		kernel->loop[c->tokens + i].extent = walk->digit[i].extent;
		kernel->operand[0].stride[c->tokens + i] = walk->digit[i].x;
	}
	kernel->operand[0].offset = walk->offset;
	set_row_major(kernel, spec.loops, kernel->result.stride);
	return op;
}

/* Is the reduction one run of addresses of the weight? */
static bool is_run(const struct contraction *c)
{
	for (int i = 1; i < c->digits; i++)
		if (c->digit[i - 1].w != c->digit[i].w * c->digit[i].extent)
			return false;
	return true;
}

/* Copies the value by its walk and walks the copy instead, where the reduction is `run`, one
 * digit.  Returns the copy. */
static struct op *copy_walk(struct quantizer *q, const struct contraction *c,
        struct activation_walk *walk, const char *suffix, const struct digit *run)
{
	const struct type *scalar = type_float(q->module, 32);
	struct op *copy = walking_kernel(q, c, walk,
	        (struct kernel_spec){ .suffix = suffix,
	                .operands = 1,
	                .operand = &walk->value,
	                .result = token_type(q, c, scalar, 0, run->extent) });
	copy->kernel->update.result = body_operand(q->module, &copy->kernel->update, scalar, 0);
	*walk = (struct activation_walk){ .value = copy->result[0],
		.token = arena_copy(q->module->arena, copy->kernel->result.stride,
		        sizeof(int64_t) * (size_t)(c->tokens + 1)),
		.digits = 1,
		.digit = run };
	return copy;
}

/* Copies the activations so that the reduction is one run, padded with zeros to whole groups;
 * returns that run. */
static struct digit *straighten(
        struct quantizer *q, const struct contraction *c, struct activation_walk *walk)
{
	int64_t elements = 1;
	for (int i = 0; i < c->digits; i++)
		elements *= c->digit[i].extent;
	struct digit *run = ARENA_NEW(q->module->arena, struct digit);
	*run = (struct digit){ elements, 1, c->digit[c->digits - 1].w };
	if (c->digits > 1)
		copy_walk(q, c, walk, "run", run);
	else
		run->x = c->digit[0].x;
	int64_t padded = (elements + c->group - 1) / c->group * c->group;
	if (padded > elements) {
		struct digit full = { padded, run->x, run->w };
		walk->digit = &full;
		walk->digits = 1;
		*run = (struct digit){ padded, 1, run->w };
		struct op *fill = copy_walk(q, c, walk, "padded", run);
		access_add_guard(q->module, &fill->kernel->operand[0],
		        (struct guard_range){ .loop = c->tokens, .low = 0, .high = elements });
	}
	return run;
}

static int real_constant(struct module *module, struct body *body, double real)
{
	return body_add(module, body,
	        (struct node){
	                .kind = NODE_CONSTANT, .type = type_float(module, 32), .real = real });
}

void quantize_scale(struct module *module, struct kernel *kernel, double most, bool ones)
{
	const struct type *scalar = type_float(module, 32);
	struct body *update = &kernel->update;
	struct body *post = &kernel->post;
	int before =
	        body_add(module, update, (struct node){ .kind = NODE_ACCUMULATOR, .type = scalar });
	update->result = body_op(module, update, OP_ABSMAX, scalar, before,
	        body_operand(module, update, scalar, 0), 0);
	int largest =
	        body_add(module, post, (struct node){ .kind = NODE_ACCUMULATOR, .type = scalar });
	post->result = body_op(module, post, OP_MULF, scalar, largest,
	        real_constant(module, post, (double)(1.0f / (float)most)), 0);
	if (ones) {
		struct node equal = { .kind = NODE_OP,
			.code = OP_CMPF,
			.type = type_integer(module, 1),
			.argument = { largest, real_constant(module, post, 0.0) },
			.integer = CMPF_OEQ };
		int none = body_add(module, post, equal);
		post->result = body_op(module, post, OP_SELECT, scalar, none,
		        real_constant(module, post, 1.0), post->result);
	}
}

/* Multiplies by the reciprocal of the scale: one division for all lanes of a word. */
void quantize_round(
        struct module *module, struct kernel *kernel, const struct type *scale, int limit)
{
	const struct type *scalar = type_float(module, 32);
	const struct type *byte = type_integer(module, 8);
	struct body *body = &kernel->update;
	int by = body_operand(module, body, scale, 1);
	by = scale == scalar ? by : body_op(module, body, OP_EXTF, scalar, by, 0, 0);
	int inverse =
	        body_op(module, body, OP_DIVF, scalar, real_constant(module, body, 1.0), by, 0);
	int ratio = body_op(
	        module, body, OP_MULF, scalar, body_operand(module, body, scalar, 0), inverse, 0);
	body->result = body_op(module, body, OP_ROUND_SATURATE, byte, ratio, 0, 0);
	if (limit < MOST) {
		int low = body_add(module, body,
		        (struct node){ .kind = NODE_CONSTANT, .type = byte, .integer = -limit });
		int high = body_add(module, body,
		        (struct node){ .kind = NODE_CONSTANT, .type = byte, .integer = limit });
		body->result = body_op(module, body, OP_MINSI, byte,
		        body_op(module, body, OP_MAXSI, byte, body->result, low, 0), high, 0);
	}
}

/* Text of all that the quantized form depends on, besides the value itself. */
static const char *key_of(
        struct quantizer *q, const struct contraction *c, const struct activation_walk *walk)
{
	struct text text = text_new(q->module->arena);
	text_add(&text, "%lld %lld%s", (long long)walk->offset, (long long)c->group,
	        c->per_token ? "t" : "");
	for (int t = 0; t < c->tokens; t++)
		text_add(&text, " %lld:%lld", (long long)token_extent(c, t),
		        (long long)walk->token[t]);
	for (int t = 0; c->factor && t < c->tokens; t++)
		text_add(&text, " f%lld", (long long)c->factor_access.stride[c->token[t]]);
	for (int i = 0; i < c->digits; i++)
		text_add(&text, " r%lld:%lld", (long long)c->digit[i].extent,
		        (long long)c->digit[i].x);
	return text.data;
}

static struct activation *find_activation(struct quantizer *q, const struct activation *wanted)
{
	for (size_t i = 0; i < q->activations.count; i++) {
		struct activation *known = &q->activations.data[i];
		if (known->x == wanted->x && known->factor == wanted->factor &&
		        !strcmp(known->key, wanted->key))
			return known;
	}
	return NULL;
}

/* Moves the first `outer` loops over groups outside those over tokens. */
static void groups_first(
        struct quantizer *q, const struct contraction *c, struct kernel *kernel, int outer)
{
	struct arena *arena = q->module->arena;
	struct loop *loop = arena_copy(arena, kernel->loop, sizeof *loop * (size_t)kernel->loops);
	int64_t *from =
	        arena_copy(arena, kernel->operand[0].stride, sizeof *from * (size_t)kernel->loops);
	int64_t *to = arena_copy(arena, kernel->result.stride, sizeof *to * (size_t)kernel->loops);
	for (int l = 0; l < c->tokens + outer; l++) {
		int source = l < outer ? c->tokens + l : l - outer;
		kernel->loop[l] = loop[source];
		kernel->operand[0].stride[l] = from[source];
		kernel->result.stride[l] = to[source];
	}
}

/* The kernel max |x| / 127; the first `outer` digits count groups. */
static struct value *make_scale(struct quantizer *q, const struct contraction *c,
        const struct activation_walk *walk, int64_t groups, int outer)
{
	struct op *op = walking_kernel(q, c, walk,
	        (struct kernel_spec){ .suffix = "scale",
	                .operands = 1,
	                .operand = (struct value *[]){ walk->value },
	                .result = token_type(
	                        q, c, type_float(q->module, 32), outer ? groups : 0, 0) });
	struct kernel *kernel = op->kernel;
	for (int l = c->tokens + outer; l < kernel->loops; l++)
		kernel->loop[l].reduction = true;
	set_row_major(kernel, kernel->loops, kernel->result.stride);
	kernel->ordered = true;
	if (c->grouped)
		groups_first(q, c, kernel, outer);
	quantize_scale(q->module, kernel, MOST, true);
	return op->result[0];
}

/* The kernel round(x / scale), [token extents ..., groups, size]. */
static struct value *make_integers(struct quantizer *q, const struct contraction *c,
        const struct activation_walk *walk, const struct grouping *grouping, struct value *scale)
{
	struct op *op = walking_kernel(q, c, walk,
	        (struct kernel_spec){ .suffix = "q",
	                .operands = 2,
	                .operand = (struct value *[]){ walk->value, scale },
	                .result = token_type(q, c, type_integer(q->module, 8), grouping->groups,
	                        grouping->size) });
	int outer = c->per_token ? 0 : grouping->outer;
	set_row_major(op->kernel, c->tokens + outer, op->kernel->operand[1].stride);
	quantize_round(q->module, op->kernel, type_float(q->module, 32), MOST);
	return op->result[0];
}

/* Multiplies the scales by the factor of their token, which was left out of the activations. */
static struct value *apply_deferred_factor(
        struct quantizer *q, const struct contraction *c, struct value *scale)
{
	struct digit groups = { type_elements(scale->type), 1, 0 };
	for (int t = 0; t < c->tokens; t++)
		groups.extent /= token_extent(c, t);
	const struct activation_walk walk = { .value = scale,
		.token = ARENA_ARRAY(q->module->arena, int64_t, c->tokens + 1),
		.digits = 1,
		.digit = &groups };
	struct value *operand[2] = { scale, c->factor };
	struct op *op = walking_kernel(q, c, &walk,
	        (struct kernel_spec){ .suffix = "factor",
	                .operands = 2,
	                .operand = operand,
	                .result = scale->type });
	struct kernel *kernel = op->kernel;
	set_row_major(kernel, kernel->loops, kernel->operand[0].stride);
	kernel->operand[1].offset = c->factor_access.offset;
	for (int t = 0; t < c->tokens; t++)
		kernel->operand[1].stride[t] = c->factor_access.stride[c->token[t]];
	const struct type *scalar = type_float(q->module, 32);
	struct body *body = &kernel->update;
	int by = body_operand(q->module, body, scalar, 1);
	int own = body_operand(q->module, body, scalar, 0);
	body->result = body_op(q->module, body, OP_MULF, scalar, own, by, 0);
	return op->result[0];
}

struct value *activation_sums(
        struct quantizer *q, const struct contraction *c, const struct activation *x)
{
	struct activation *known = find_activation(q, x);
	const struct type *type = x->q->type;
	const int64_t size = type->shape[type->rank - 1];
	const int64_t groups = type->shape[type->rank - 2];
	const struct digit digit[2] = { { groups, size, 0 }, { size, 1, 0 } };
	struct activation_walk walk = { .value = x->q,
		.token = ARENA_ARRAY(q->module->arena, int64_t, c->tokens + 1),
		.digits = 2,
		.digit = digit };
	int64_t pitch = groups * size;
	if (known->sum)
		return known->sum;
	for (int t = c->tokens - 1; t >= 0; t--) {
		walk.token[t] = pitch;
		pitch *= token_extent(c, t);
	}
	const struct type *whole = type_integer(q->module, 32);
	struct op *op = walking_kernel(q, c, &walk,
	        (struct kernel_spec){ .suffix = "group_sums",
	                .operands = 1,
	                .operand = &walk.value,
	                .result = token_type(q, c, whole, groups, 0) });
	struct kernel *kernel = op->kernel;
	kernel->loop[c->tokens + 1].reduction = true;
	set_row_major(kernel, kernel->loops, kernel->result.stride);
	kernel->ordered = true;
	struct body *body = &kernel->update;
	int sum =
	        body_add(q->module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = whole });
	int number = body_operand(q->module, body, type_integer(q->module, 8), 0);
	body->result = body_op(q->module, body, OP_ADDI, whole, sum,
	        body_op(q->module, body, OP_EXTSI, whole, number, 0, 0), 0);
	known->sum = op->result[0];
	return known->sum;
}

struct activation activation_of(struct quantizer *q, const struct contraction *c)
{
	struct activation_walk walk = walk_of(q, c);
	struct activation made = {
		.x = walk.value, .factor = c->factor, .key = key_of(q, c, &walk)
	};
	struct grouping grouping;
	const struct activation *known = find_activation(q, &made);
	bool whole = group_digits(q->module->arena, c, &grouping);
	if (!whole && !is_run(c))
		return (struct activation){ 0 };
	if (known)
		return *known;
	if (!whole) {
		struct contraction straight = *c;
		straight.digit = straighten(q, c, &walk);
		straight.digits = 1;
		whole = group_digits(q->module->arena, &straight, &grouping);
		INVARIANT(q->module->guard, whole,
		        "a run of %lld numbers that is not whole groups of %lld",
		        (long long)straight.digit->extent, (long long)c->group);
	}
	walk.digit = grouping.digit;
	walk.digits = grouping.outer + grouping.inner;
	int outer = c->per_token ? 0 : grouping.outer;
	made.scale = make_scale(q, c, &walk, grouping.groups, outer);
	made.q = make_integers(q, c, &walk, &grouping, made.scale);
	if (c->factor)
		made.scale = apply_deferred_factor(q, c, made.scale);
	VEC_PUSH(q->module->arena, &q->activations, made);
	return made;
}
