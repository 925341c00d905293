/* Loops of the kernels of attention on bytes: which parts of a product's loops they walk, keys in blocks. */
#include "base/number.h"
#include "quantize/quantise_attention.h"

#define KEYS_ABREAST 16       /* keys that may be lanes, where the rows of a launch fill them */
#define FEW_ROWS 8            /* rows of a launch that a key, or several at once, may serve before the next come; their sums wait side by side then */

void parts_add(struct parts *parts, int source, int64_t trip, int64_t step, bool reduction)
{
	parts->part[parts->count++] = (struct part){.source = source, .trip = trip, .step = step, .reduction = reduction};
}

bool keys_serve_rows(const struct keys *keys)
{
	return keys->fresh <= FEW_ROWS;
}

int64_t keys_abreast(const struct keys *keys)
{
	int64_t abreast = power_of_two_in(keys->fresh, KEYS_ABREAST);
	return power_of_two_in(keys->block, abreast);
}

void parts_add_blocks(struct quantiser *q, const struct keys *keys, struct parts *parts, int source, bool reduction)
{
	if (keys->blocks == 1)
		return;
	parts_add(parts, source, keys->blocks, keys->block, reduction);
	parts->part[parts->count - 1].run_time = keys_trip(q, keys);
}

void parts_add_block(const struct keys *keys, struct parts *parts, int source)
{
	int64_t abreast = keys_abreast(keys);
	if (keys->block > abreast)
		parts_add(parts, source, keys->block / abreast, abreast, false);
	if (abreast > 1 || keys->block == abreast)
		parts_add(parts, source, abreast, 1, false);
}

void parts_add_tokens(const struct attention *a, const struct contraction *c, struct parts *parts, bool share)
{
	const struct kernel *kernel = c->op->kernel;
	for (int t = 0; t < c->tokens; t++)
		if ((a->running && !kernel->operand[a->values.past].stride[c->token[t]]) == share)
			parts_add(parts, c->token[t], kernel->loop[c->token[t]].extent, 1, false);
}

struct parts parts_none(struct quantiser *q, const struct op *op)
{
	return (struct parts){.part = ARENA_ARRAY(q->module->arena, struct part, op->kernel->loops + 4)};
}

void parts_walk(const struct parts *parts, const int64_t *stride, int64_t *to)
{
	for (int i = 0; i < parts->count; i++)
		to[i] = stride[parts->part[i].source] * parts->part[i].step;
}

const struct type *parts_type(struct module *module, const struct parts *parts, const struct type *scalar)
{
	int rank = 0;
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, parts->count + 1);
	for (int i = 0; i < parts->count; i++)
		if (!parts->part[i].reduction)
			shape[rank++] = parts->part[i].trip;
	if (!rank)
		shape[rank++] = 1;
	return type_shaped(module, TYPE_TENSOR, rank, shape, scalar);
}

void parts_lie(const struct parts *parts, int64_t *stride)
{
	int64_t pitch = 1;
	for (int i = parts->count - 1; i >= 0; i--) {
		stride[i] = parts->part[i].reduction ? 0 : pitch;
		pitch *= parts->part[i].reduction ? 1 : parts->part[i].trip;
	}
}

struct op *parts_kernel(struct quantiser *q, struct op *at, const char *suffix, const struct parts *parts, int operands, struct value *const *operand, const struct type *scalar)
{
	struct op *op = quantise_kernel(q, at, at->kernel->name, suffix, parts->count, operands, operand, parts_type(q->module, parts, scalar));
	for (int i = 0; i < parts->count; i++)
		op->kernel->loop[i] = (struct loop){parts->part[i].trip, parts->part[i].reduction, parts->part[i].run_time};
	parts_lie(parts, op->kernel->result.stride);
	return op;
}

struct contraction keys_query(struct quantiser *q, const struct product *p)
{
	struct kernel *kernel = p->op->kernel;
	struct contraction c = {.op = p->op, .x = p->x, .w = p->past, .bits = 8, .digits = 1};
	c.digit = ARENA_ARRAY(q->module->arena, struct digit, 1);
	*c.digit = (struct digit){kernel->loop[p->reduction].extent, kernel->operand[p->x].stride[p->reduction], kernel->operand[p->past].stride[p->reduction]};
	c.token = ARENA_ARRAY(q->module->arena, int, kernel->loops);
	for (int l = 0; l < kernel->loops; l++)
		if (l != p->reduction && kernel->operand[p->x].stride[l])
			c.token[c.tokens++] = l;
	return c;
}

void parts_add_others(const struct product *p, struct parts *parts, int but, bool past)
{
	const struct kernel *kernel = p->op->kernel;
	for (int l = 0; l < kernel->loops; l++)
		if (l != p->key && l != p->reduction && l != but && !kernel->operand[p->past].stride[l] == !past)
			parts_add(parts, l, kernel->loop[l].extent, 1, false);
}

void parts_lie_over(struct quantiser *q, const struct parts *as, const struct parts *parts, int64_t *to)
{
	int64_t *stride = ARENA_ARRAY(q->module->arena, int64_t, as->count + 1);
	parts_lie(as, stride);
	for (int i = 0; i < parts->count; i++) {
		const struct part *part = &parts->part[i];
		to[i] = 0;
		for (int e = as->count - 1; e >= 0; e--)          /* the outermost part of the same loop whose steps are no longer */
			if (as->part[e].source == part->source && as->part[e].step <= part->step)
				to[i] = stride[e] * (part->step / as->part[e].step);
	}
}

void parts_lie_as(struct quantiser *q, const struct parts *as, const struct parts *parts, struct op *op)
{
	parts_lie_over(q, as, parts, op->kernel->result.stride);
	for (int i = 0; i < parts->count; i++)
		op->kernel->result.stride[i] *= !parts->part[i].reduction;
	op->result[0]->type = parts_type(q->module, as, type_scalar(op->result[0]->type));
}
