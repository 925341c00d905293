/* A producer's body in the place of an operand of its consumer. */
#include "fusion/fuse.h"
#include <string.h>

static int64_t ceiling(int64_t a, int64_t b)
{
	return a <= 0 ? -(-a / b) : (a + b - 1) / b;
}

static int64_t extent_inside(const struct kernel *consumer, const struct access *outer, int loop)
{
	const struct guard_range *guard = access_guard(outer, loop);
	return guard ? guard->high - guard->low : consumer->loop[loop].extent;
}

/* The producer's guard low <= counter < high, as a range of one loop of the consumer. */
static bool map_guard(struct module *module, const struct kernel *consumer,
        const struct access *outer, const struct composed *composed, struct guard_range guard,
        struct access *access)
{
	const int64_t *factor = composed->factor + guard.loop * composed->loops;
	int main = -1;
	for (int l = 0; l < composed->loops; l++)
		if (factor[l] && (main < 0 || factor[l] > factor[main]))
			main = l;
	if (main < 0) {
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
		if (!factor[l] || l == main)
			continue;
		least += factor[l] * (range ? range->low : 0);
		span += factor[l] * (extent_inside(consumer, outer, l) - 1);
	}
	int64_t low = ceiling(guard.low - least, factor[main]);
	int64_t high = ceiling(guard.high - least, factor[main]);
	const struct guard_range *range = access_guard(outer, main);
	int64_t first = range ? range->low : 0;
	int64_t last = first + extent_inside(consumer, outer, main) - 1;
	bool low_clean = low <= first || least + factor[main] * (low - 1) + span - 1 < guard.low;
	/* the last that begins inside must end inside */
	int64_t top = high > last ? last : high - 1;
	bool high_clean = top < first || least + factor[main] * top + span - 1 < guard.high;
	if (!low_clean || !high_clean)
		return false;
	low = low < 0 ? 0 : low > last ? last + 1 : low;
	high = high > last ? last + 1 : high;
	if (low > first || high <= last)
		access_add_guard(module, access,
		        (struct guard_range){
		                .loop = main, .low = low, .high = high < low ? low : high });
	return true;
}

static bool map_access(struct module *module, const struct kernel *producer,
        const struct kernel *consumer, const struct access *outer, const struct composed *composed,
        const struct access *from, int base, struct access *access)
{
	*access = access_empty(module, composed->loops);
	access->offset = from->offset;
	access->index_operand = from->index_operand < 0 ? -1 : from->index_operand + base;
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
		if (!map_guard(module, consumer, outer, composed, from->guard[g], access))
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

/* Whether the value is only read where select(ACTIVE) picks it. */
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

struct inlined {
	struct op *producer, *consumer;
	int operand, base; /* base: number of the producer's first operand in the consumer */
	const struct composed *composed;
	const struct access *access; /* all operands' */
};

static int outer_active(struct module *module, struct body *body, const struct inlined *in)
{
	const struct access *outer = &in->access[in->operand];
	for (int j = 0; j < in->producer->operands; j++)
		if (same_guards(outer, &in->access[in->base + j]))
			return body_active(module, body, in->base + j);
	return body_guard_condition(module, body, outer);
}

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
	for (int j = 0; j < base; j++) {
		values[j] = consumer->operand[j];
		access[j] = kernel->operand[j];
	}
	for (int j = 0; j < producer->operands; j++) {
		values[base + j] = producer->operand[j];
		if (!map_access(module, producer->kernel, kernel, &kernel->operand[operand],
		            &composed, &producer->kernel->operand[j], base, &access[base + j]))
			return false;
	}
	struct inlined in = { producer, consumer, operand, base, &composed, access };
	struct body update = inlined_body(module, &kernel->update, &in);
	struct body post = inlined_body(module, &kernel->post, &in);
	op_set_operands(module, consumer, count, values);
	kernel->operand = access;
	kernel->update = update;
	kernel->post = post;
	kernel_tidy(module, consumer);
	return true;
}
