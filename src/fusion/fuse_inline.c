/* Inlines a producer: its body in the place of an operand of its consumer.
 *     p[i] = f(a[i]); c[j, i] = g(p[i])  ->  c[j, i] = g(f(a[i]))
 * Accesses and guards of the producer are composed with the consumer's access to its result. */
#include "base/number.h"
#include "fusion/fuse.h"
#include <string.h>

/* An inlining in progress.  The consumer gets the producer's operands after its own. */
struct inlined {
	struct op *producer, *consumer;
	int operand; /* of the consumer: the producer's result */
	int base;    /* number of the producer's first operand in the consumer */
	const struct composed *composed;
	struct access *access; /* of all operands, the consumer's first */
};

/* The consumer's access to the producer's result. */
static const struct access *outer_access(const struct inlined *in)
{
	return &in->access[in->operand];
}

/* Iterations of the consumer's loop in which it reads the producer's result. */
/* Adds the producer's guard low <= counter < high as a range of one loop of the consumer.  false:
 * it is not such a range. */
static bool map_guard(struct module *module, const struct inlined *in, struct guard_range guard,
        struct access *access)
{
	const struct composed *composed = in->composed;
	const struct access *outer = outer_access(in);
	const int64_t *factor = composed->factor + guard.loop * composed->loops;
	int widest = -1;
	for (int l = 0; l < composed->loops; l++)
		if (factor[l] && (widest < 0 || factor[l] > factor[widest]))
			widest = l;
	if (widest < 0) {
		bool holds = guard.low <= composed->constant[guard.loop] &&
		        composed->constant[guard.loop] < guard.high;
		if (!holds && composed->loops)
			access_add_guard(module, access,
			        (struct guard_range){ .loop = 0, .low = 0, .high = 0 });
		return holds || composed->loops;
	}
	int64_t least = composed->constant[guard.loop];
	int64_t span = 1;
	for (int l = 0; l < composed->loops; l++) {
		const struct guard_range *range = access_guard(outer, l);
		if (!factor[l] || l == widest)
			continue;
		least += factor[l] * (range ? range->low : 0);
		span += factor[l] * (access_extent(in->consumer->kernel, outer_access(in), l) - 1);
	}
	int64_t low = ceil_div(guard.low - least, factor[widest]);
	int64_t high = ceil_div(guard.high - least, factor[widest]);
	const struct guard_range *range = access_guard(outer, widest);
	int64_t first = range ? range->low : 0;
	int64_t last = first + access_extent(in->consumer->kernel, outer_access(in), widest) - 1;
	bool low_clean = low <= first || least + factor[widest] * (low - 1) + span - 1 < guard.low;
	/* the last iteration that begins inside the range must end inside it */
	int64_t top = high > last ? last : high - 1;
	bool high_clean = top < first || least + factor[widest] * top + span - 1 < guard.high;
	if (!low_clean || !high_clean)
		return false;
	if (low < 0)
		low = 0;
	if (low > last)
		low = last + 1;
	if (high > last)
		high = last + 1;
	if (low > first || high <= last)
		access_add_guard(module, access,
		        (struct guard_range){
		                .loop = widest, .low = low, .high = high < low ? low : high });
	return true;
}

/* Composes an access of the producer.  false: a guard cannot be written so. */
static bool map_access(struct module *module, const struct inlined *in, const struct access *from,
        struct access *access)
{
	const struct kernel *producer = in->producer->kernel;
	const struct composed *composed = in->composed;
	const struct access *outer = outer_access(in);
	*access = access_empty(module, composed->loops);
	access->offset = from->offset;
	access->index_operand = from->index_operand < 0 ? -1 : from->index_operand + in->base;
	access->index_stride = from->index_stride;
	access->index_limit = from->index_limit;
	for (int t = 0; t < producer->loops; t++) {
		access->offset += from->stride[t] * composed->constant[t];
		for (int l = 0; l < composed->loops; l++)
			access->stride[l] +=
			        from->stride[t] * composed->factor[t * composed->loops + l];
	}
	for (int g = 0; g < outer->guards; g++)
		access_add_guard(module, access, outer->guard[g]);
	for (int g = 0; g < from->guards; g++)
		if (!map_guard(module, in, from->guard[g], access))
			return false;
	return true;
}

static bool same_guards(const struct access *left, const struct access *right)
{
	if (left->guards != right->guards)
		return false;
	for (int g = 0; g < left->guards; g++)
		if (left->guard[g].loop != right->guard[g].loop ||
		        left->guard[g].low != right->guard[g].low ||
		        left->guard[g].high != right->guard[g].high)
			return false;
	return true;
}

/* Is the operand read only as j in select(active(j), j, other)? */
static bool only_selected(const struct body *body, int operand)
{
	for (int i = 0; i < body->count; i++) {
		const struct node *node = &body->node[i];
		for (int k = 0; k < body_arguments(node); k++) {
			const struct node *argument = &body->node[node->argument[k]];
			if (argument->kind != NODE_OPERAND || argument->integer != operand)
				continue;
			const struct node *test = &body->node[node->argument[0]];
			if (node->code != OP_SELECT || k != 1 || test->kind != NODE_OP ||
			        test->code != OP_ACTIVE || test->integer != operand)
				return false;
		}
	}
	const struct node *result = &body->node[body->result];
	return !body->count || result->kind != NODE_OPERAND || result->integer != operand;
}

/* Node: whether the consumer reads the producer's result at this point. */
static int outer_active(struct module *module, struct body *body, const struct inlined *in)
{
	const struct access *outer = outer_access(in);
	for (int j = 0; j < in->producer->operands; j++)
		if (same_guards(outer, &in->access[in->base + j]))
			return body_active(module, body, in->base + j);
	return body_guard_condition(module, body, outer);
}

/* Node: the producer's result. */
static int producer_value(struct module *module, struct body *body, const struct inlined *in)
{
	const struct kernel *producer = in->producer->kernel;
	int *operand = ARENA_ARRAY(module->arena, int, in->producer->operands);
	int *active = ARENA_ARRAY(module->arena, int, in->producer->operands);
	int *index = ARENA_ARRAY(module->arena, int, producer->loops);
	for (int j = 0; j < in->producer->operands; j++) {
		operand[j] = body_operand(
		        module, body, type_scalar(in->producer->operand[j]->type), in->base + j);
		active[j] = in->access[in->base + j].guards
		        ? body_active(module, body, in->base + j)
		        : body_integer(module, body, type_integer(module, 1), 1);
	}
	for (int t = 0; t < producer->loops; t++)
		index[t] = body_affine(module, body, in->composed->loops,
		        in->composed->factor + t * in->composed->loops, in->composed->constant[t]);
	return body_rewrite(
	        module, body, &producer->update, (struct body_map){ operand, active, index, -1 });
}

/* A body of the consumer that computes the producer's result.  Where it was not read, it is 0. */
static struct body inlined_body(
        struct module *module, const struct body *from, const struct inlined *in)
{
	struct body body = { 0 };
	if (!body_uses_operand(from, in->operand))
		return *from;
	int *operand = ARENA_ARRAY(module->arena, int, in->consumer->operands);
	int *active = ARENA_ARRAY(module->arena, int, in->consumer->operands);
	for (int j = 0; j < in->consumer->operands; j++)
		operand[j] = active[j] = -1;
	int value = producer_value(module, &body, in);
	if (in->access[in->operand].guards) {
		active[in->operand] = outer_active(module, &body, in);
		const struct type *type = type_scalar(in->producer->result[0]->type);
		if (!only_selected(from, in->operand))
			value = body_op(module, &body, OP_SELECT, type, active[in->operand], value,
			        body_integer(module, &body, type, 0));
	}
	operand[in->operand] = value;
	body.result =
	        body_rewrite(module, &body, from, (struct body_map){ operand, active, NULL, -1 });
	return body;
}

bool fuse_inline(struct module *module, struct op *producer, struct op *consumer, int operand)
{
	struct composed composed;
	struct kernel *kernel = consumer->kernel;
	if (kernel->operand[operand].index_operand >= 0 ||
	        consumer->operands + producer->operands > KERNEL_OPERANDS ||
	        !fuse_compose(module, producer, consumer, operand, &composed))
		return false;
	int base = consumer->operands;
	int count = base + producer->operands;
	struct access *access = ARENA_ARRAY(module->arena, struct access, count);
	struct value **values = ARENA_ARRAY(module->arena, struct value *, count);
	const struct inlined in = { producer, consumer, operand, base, &composed, access };
	for (int j = 0; j < base; j++) {
		values[j] = consumer->operand[j];
		access[j] = kernel->operand[j];
	}
	for (int j = 0; j < producer->operands; j++) {
		values[base + j] = producer->operand[j];
		if (!map_access(module, &in, &producer->kernel->operand[j], &access[base + j]))
			return false;
	}
	struct body update = inlined_body(module, &kernel->update, &in);
	struct body post = inlined_body(module, &kernel->post, &in);
	op_set_operands(module, consumer, count, values);
	kernel->operand = access;
	kernel->update = update;
	kernel->post = post;
	kernel_tidy(module, consumer);
	return true;
}
