/* Activations to bytes, with one scale for each group of the reduction. */
#include "quantize/quantize.h"
#include <string.h>

#define MOST 127 /* what OP_ROUND_SATURATE gives of a byte */

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

/* The value, as the kernels here walk it: tokens, then digits. */
struct walk {
	struct value *value;
	int64_t offset;
	int64_t *token; /* stride of each token loop */
};

static struct walk walk_of(struct quantizer *q, const struct contraction *c)
{
	const struct access *access = &c->op->kernel->operand[c->x];
	struct walk walk = { c->op->operand[c->x], access->offset,
		ARENA_ARRAY(q->module->arena, int64_t, c->tokens + 1) };
	for (int t = 0; t < c->tokens; t++)
		walk.token[t] = access->stride[c->token[t]];
	return walk;
}

static int64_t token_extent(const struct contraction *c, int t)
{
	return c->op->kernel->loop[c->token[t]].extent;
}

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

/* Row-major strides over the first loops, reductions left out. */
static void lie_row_major(const struct kernel *kernel, int loops, int64_t *stride)
{
	int64_t pitch = 1;
	for (int l = loops - 1; l >= 0; l--) {
		stride[l] = kernel->loop[l].reduction ? 0 : pitch;
		pitch *= kernel->loop[l].reduction ? 1 : kernel->loop[l].extent;
	}
}

/* Loops of tokens and digits; operand 0 walks the value, the result lies row-major. */
static struct op *walking_kernel(struct quantizer *q, const struct contraction *c,
        const struct walk *walk, const char *suffix, int digits, const struct digit *digit,
        int operands, struct value *const *operand, const struct type *result)
{
	int loops = c->tokens + digits;
	struct op *op = quantize_kernel(
	        q, c->op, c->op->kernel->name, suffix, loops, operands, operand, result);
	struct kernel *kernel = op->kernel;
	for (int t = 0; t < c->tokens; t++) {
		kernel->loop[t].extent = token_extent(c, t);
		kernel->operand[0].stride[t] = walk->token[t];
	}
	for (int i = 0; i < digits; i++) {
		kernel->loop[c->tokens + i].extent = digit[i].extent;
		kernel->operand[0].stride[c->tokens + i] = digit[i].x;
	}
	kernel->operand[0].offset = walk->offset;
	lie_row_major(kernel, loops, kernel->result.stride);
	return op;
}

/* Does the weight walk the reduction as one run? */
static bool is_run(const struct contraction *c)
{
	for (int i = 1; i < c->digits; i++)
		if (c->digit[i - 1].w != c->digit[i].w * c->digit[i].extent)
			return false;
	return true;
}

/* A copy in which the reduction is one run for the activations as well, filled up with zeros to
 * whole groups: returns that run. */
static struct digit straighten(struct quantizer *q, const struct contraction *c, struct walk *walk)
{
	struct arena *arena = q->module->arena;
	int64_t elements = 1;
	for (int i = 0; i < c->digits; i++)
		elements *= c->digit[i].extent;
	struct digit all = { elements, 1, c->digit[c->digits - 1].w };
	const struct type *scalar = type_float(q->module, 32);
	if (c->digits > 1) {
		struct op *copy = walking_kernel(q, c, walk, "run", c->digits, c->digit, 1,
		        &walk->value, token_type(q, c, scalar, 0, elements));
		copy->kernel->update.result =
		        body_operand(q->module, &copy->kernel->update, scalar, 0);
		*walk = (struct walk){ copy->result[0], 0,
			arena_copy(arena, copy->kernel->result.stride,
			        sizeof(int64_t) * (size_t)(c->tokens + 1)) };
	} else {
		all.x = c->digit[0].x;
	}
	int64_t padded = (elements + c->group - 1) / c->group * c->group;
	if (padded > elements) {
		struct digit full = { padded, all.x, all.w };
		struct op *fill = walking_kernel(q, c, walk, "padded", 1, &full, 1, &walk->value,
		        token_type(q, c, scalar, 0, padded));
		access_add_guard(q->module, &fill->kernel->operand[0],
		        (struct guard_range){ .loop = c->tokens, .low = 0, .high = elements });
		fill->kernel->update.result =
		        body_operand(q->module, &fill->kernel->update, scalar, 0);
		*walk = (struct walk){ fill->result[0], 0,
			arena_copy(arena, fill->kernel->result.stride,
			        sizeof(int64_t) * (size_t)(c->tokens + 1)) };
		all = (struct digit){ padded, 1, all.w };
	}
	return all;
}

static int real_constant(struct module *module, struct body *body, double real)
{
	return body_add(module, body,
	        (struct node){
	                .kind = NODE_CONSTANT, .type = type_float(module, 32), .real = real });
}

/* max |x| over the inner loops; then over `most`, and 1 for zeros. */
void quantize_scale(struct module *module, struct kernel *kernel, double most, bool ones)
{
	const struct type *scalar = type_float(module, 32);
	struct body *update = &kernel->update;
	struct body *post = &kernel->post;
	int sofar =
	        body_add(module, update, (struct node){ .kind = NODE_ACCUMULATOR, .type = scalar });
	update->result = body_op(module, update, OP_ABSMAX, scalar, sofar,
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
			.integer = 1 };
		int none = body_add(module, post, equal);
		post->result = body_op(module, post, OP_SELECT, scalar, none,
		        real_constant(module, post, 1.0), post->result);
	}
}

/* Times the scale's reciprocal, which all lanes share. */
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

static const char *key_of(struct quantizer *q, const struct contraction *c, const struct walk *walk)
{
	struct text text = text_new(q->module->arena);
	text_add(&text, "%lld %lld%s", (long long)walk->offset, (long long)c->group,
	        c->per_token ? "t" : "");
	for (int t = 0; t < c->tokens; t++)
		text_add(&text, " %lld:%lld", (long long)token_extent(c, t),
		        (long long)walk->token[t]);
	for (int i = 0; i < c->digits; i++)
		text_add(&text, " r%lld:%lld", (long long)c->digit[i].extent,
		        (long long)c->digit[i].x);
	return text.data;
}

static struct activation *find_activation(
        struct quantizer *q, const struct value *x, const char *key)
{
	for (size_t i = 0; i < q->activations.count; i++)
		if (q->activations.data[i].x == x && !strcmp(q->activations.data[i].key, key))
			return &q->activations.data[i];
	return NULL;
}

/* The loops over groups run outside those over tokens. */
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

static struct value *make_scale(struct quantizer *q, const struct contraction *c,
        const struct walk *walk, const struct grouping *grouping, int outer)
{
	int digits = grouping->outer + grouping->inner;
	const struct type *type =
	        token_type(q, c, type_float(q->module, 32), outer ? grouping->groups : 0, 0);
	struct op *op =
	        walking_kernel(q, c, walk, "scale", digits, grouping->digit, 1, &walk->value, type);
	struct kernel *kernel = op->kernel;
	for (int l = c->tokens + outer; l < kernel->loops; l++)
		kernel->loop[l].reduction = true;
	lie_row_major(kernel, kernel->loops, kernel->result.stride);
	kernel->ordered = true;
	if (c->grouped)
		groups_first(q, c, kernel, outer);
	quantize_scale(q->module, kernel, MOST, true);
	return op->result[0];
}

static struct value *make_integers(struct quantizer *q, const struct contraction *c,
        const struct walk *walk, const struct grouping *grouping, int outer, struct value *scale)
{
	struct value *operand[2] = { walk->value, scale };
	const struct type *type =
	        token_type(q, c, type_integer(q->module, 8), grouping->groups, grouping->size);
	struct op *op = walking_kernel(q, c, walk, "q", grouping->outer + grouping->inner,
	        grouping->digit, 2, operand, type);
	lie_row_major(op->kernel, c->tokens + outer, op->kernel->operand[1].stride);
	quantize_round(q->module, op->kernel, type_float(q->module, 32), MOST);
	return op->result[0];
}

/* The scales, each times its token's factor: the numbers came without it. */
static struct value *apply_deferred_factor(struct quantizer *q, const struct contraction *c,
        const struct deferred_factor *factor, struct value *scale)
{
	const struct walk walk = { scale, 0,
		ARENA_ARRAY(q->module->arena, int64_t, c->tokens + 1) };
	struct value *operand[2] = { scale, factor->by };
	struct access access;
	bool found = access_compose(
	        q->module, factor->from, factor->operand, c->op->kernel, c->x, &access);
	INVARIANT(q->module->guard, found, "a factor that was found before");
	struct digit groups = { type_elements(scale->type), 1, 0 };
	for (int t = 0; t < c->tokens; t++)
		groups.extent /= token_extent(c, t);
	struct op *op = walking_kernel(q, c, &walk, "factor", 1, &groups, 2, operand, scale->type);
	struct kernel *kernel = op->kernel;
	lie_row_major(kernel, kernel->loops, kernel->operand[0].stride);
	kernel->operand[1].offset = access.offset;
	for (int t = 0; t < c->tokens; t++)
		kernel->operand[1].stride[t] = access.stride[c->token[t]];
	const struct type *scalar = type_float(q->module, 32);
	struct body *body = &kernel->update;
	body->result =
	        body_op(q->module, body, OP_MULF, scalar, body_operand(q->module, body, scalar, 0),
	                body_operand(q->module, body, scalar, 1), 0);
	return op->result[0];
}

struct activation activation_of(struct quantizer *q, const struct contraction *c)
{
	struct walk walk = walk_of(q, c);
	struct activation made = { .x = walk.value, .key = key_of(q, c, &walk) };
	struct grouping grouping;
	const struct activation *known = find_activation(q, made.x, made.key);
	bool whole = group_digits(q->module->arena, c, &grouping);
	if (!whole && !is_run(c))
		return (struct activation){ 0 };
	if (known)
		return *known;
	if (!whole) {
		struct contraction straight = *c;
		struct digit run = straighten(q, c, &walk);
		straight.digit = &run;
		straight.digits = 1;
		whole = group_digits(q->module->arena, &straight, &grouping);
		INVARIANT(q->module->guard, whole,
		        "a run of %lld numbers that is not whole groups of %lld",
		        (long long)run.extent, (long long)c->group);
	}
	int outer = c->per_token ? 0 : grouping.outer;
	made.scale = make_scale(q, c, &walk, &grouping, outer);
	made.q = make_integers(q, c, &walk, &grouping, outer, made.scale);
	for (size_t i = 0; i < q->deferred_factors.count; i++)
		if (q->deferred_factors.data[i].x == c->op->operand[c->x])
			made.scale = apply_deferred_factor(
			        q, c, &q->deferred_factors.data[i], made.scale);
	VEC_PUSH(q->module->arena, &q->activations, made);
	return made;
}
