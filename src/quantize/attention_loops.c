/* Loops of the kernels of attention on bytes.  Each kernel walks parts of the loops of the f32
 * product that it replaces; the loop over keys becomes blocks and the keys of a block:
 *     key: 0 .. extent   ->   block: 0 .. blocks, key of the block: 0 .. block */
#include "base/number.h"
#include "quantize/quantize_attention.h"

/* keys that may be lanes; no more than divide the rows of a launch */
#define KEYS_PER_RUN_MOST 16
/* Tokens of a launch for which a row of the cache is loaded once: each has a sum in flight. */
#define FEW_ROWS 8

void loop_map_add(struct loop_map *loop_map, int source, int64_t trip, int64_t step, bool reduction)
{
	loop_map->mapped_loop[loop_map->count++] = (struct mapped_loop){
		.source = source, .trip = trip, .step = step, .reduction = reduction
	};
}

bool keys_are_shared(const struct keys *keys)
{
	return keys->fresh <= FEW_ROWS;
}

int64_t keys_per_run(const struct keys *keys)
{
	int64_t keys_at_once = power_of_two_in(keys->fresh, KEYS_PER_RUN_MOST);
	return power_of_two_in(keys->block, keys_at_once);
}

void loop_map_add_blocks(struct quantizer *q, const struct keys *keys, struct loop_map *loop_map,
        int source, bool reduction)
{
	if (keys->blocks == 1)
		return;
	loop_map_add(loop_map, source, keys->blocks, keys->block, reduction);
	loop_map->mapped_loop[loop_map->count - 1].run_time = keys_trip(q, keys);
}

void loop_map_add_block(const struct keys *keys, struct loop_map *loop_map, int source)
{
	int64_t keys_at_once = keys_per_run(keys);
	if (keys->block > keys_at_once)
		loop_map_add(loop_map, source, keys->block / keys_at_once, keys_at_once, false);
	if (keys_at_once > 1 || keys->block == keys_at_once)
		loop_map_add(loop_map, source, keys_at_once, 1, false);
}

void loop_map_add_tokens(const struct attention *a, const struct contraction *c,
        struct loop_map *loop_map, bool share)
{
	const struct kernel *kernel = c->op->kernel;
	for (int t = 0; t < c->tokens; t++)
		if ((a->online_max && !kernel->operand[a->values.past].stride[c->token[t]]) ==
		        share)
			loop_map_add(
			        loop_map, c->token[t], kernel->loop[c->token[t]].extent, 1, false);
}

struct loop_map loop_map_reduce_block(
        struct quantizer *q, const struct attention *a, const struct loop_map *loop_map)
{
	struct loop_map reduced = *loop_map;
	reduced.mapped_loop = arena_copy(q->module->arena, loop_map->mapped_loop,
	        sizeof *loop_map->mapped_loop * (size_t)loop_map->count);
	for (int i = 0; i < loop_map->count; i++) {
		struct mapped_loop *loop = &reduced.mapped_loop[i];
		loop->reduction = loop->source == a->values.key && loop->step < a->keys.block;
	}
	return reduced;
}

struct loop_map loop_map_none(struct quantizer *q, const struct op *op)
{
	return (struct loop_map){ .mapped_loop = ARENA_ARRAY(q->module->arena, struct mapped_loop,
		                          op->kernel->loops + 4) };
}

void loop_map_walk(const struct loop_map *loop_map, const int64_t *stride, int64_t *to)
{
	for (int i = 0; i < loop_map->count; i++)
		to[i] = stride[loop_map->mapped_loop[i].source] * loop_map->mapped_loop[i].step;
}

const struct type *loop_map_type(
        struct module *module, const struct loop_map *loop_map, const struct type *scalar)
{
	int rank = 0;
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, loop_map->count + 1);
	for (int i = 0; i < loop_map->count; i++)
		if (!loop_map->mapped_loop[i].reduction)
			shape[rank++] = loop_map->mapped_loop[i].trip;
	if (!rank)
		shape[rank++] = 1;
	return type_shaped(module, TYPE_TENSOR, rank, shape, scalar);
}

void loop_map_row_major(const struct loop_map *loop_map, int64_t *stride)
{
	int64_t pitch = 1;
	for (int i = loop_map->count - 1; i >= 0; i--) {
		stride[i] = loop_map->mapped_loop[i].reduction ? 0 : pitch;
		pitch *= loop_map->mapped_loop[i].reduction ? 1 : loop_map->mapped_loop[i].trip;
	}
}

struct op *loop_map_kernel(struct quantizer *q, const struct loop_map *loop_map,
        const struct type *scalar, struct kernel_spec spec)
{
	spec.loops = loop_map->count;
	spec.result = loop_map_type(q->module, loop_map, scalar);
	struct op *op = quantize_kernel(q, &spec);
	for (int i = 0; i < loop_map->count; i++)
		op->kernel->loop[i] = (struct loop){ loop_map->mapped_loop[i].trip,
			loop_map->mapped_loop[i].reduction, loop_map->mapped_loop[i].run_time };
	loop_map_row_major(loop_map, op->kernel->result.stride);
	return op;
}

struct contraction keys_query(struct quantizer *q, const struct product *p)
{
	struct kernel *kernel = p->op->kernel;
	struct contraction c = { .op = p->op, .x = p->x, .w = p->past, .bits = 8, .digits = 1 };
	c.digit = ARENA_ARRAY(q->module->arena, struct digit, 1);
	*c.digit = (struct digit){ kernel->loop[p->reduction].extent,
		kernel->operand[p->x].stride[p->reduction],
		kernel->operand[p->past].stride[p->reduction] };
	c.token = ARENA_ARRAY(q->module->arena, int, kernel->loops);
	for (int l = 0; l < kernel->loops; l++)
		if (l != p->reduction && kernel->operand[p->x].stride[l])
			c.token[c.tokens++] = l;
	return c;
}

void loop_map_add_others(const struct product *p, struct loop_map *loop_map, int but, bool past)
{
	const struct kernel *kernel = p->op->kernel;
	for (int l = 0; l < kernel->loops; l++)
		if (l != p->key && l != p->reduction && l != but &&
		        !kernel->operand[p->past].stride[l] == !past)
			loop_map_add(loop_map, l, kernel->loop[l].extent, 1, false);
}

void loop_map_stride_over(struct quantizer *q, const struct loop_map *as,
        const struct loop_map *loop_map, int64_t *to)
{
	int64_t *stride = ARENA_ARRAY(q->module->arena, int64_t, as->count + 1);
	loop_map_row_major(as, stride);
	for (int i = 0; i < loop_map->count; i++) {
		const struct mapped_loop *mapped_loop = &loop_map->mapped_loop[i];
		to[i] = 0;
		/* the outermost part of the same loop whose step is not larger */
		for (int e = as->count - 1; e >= 0; e--)
			if (as->mapped_loop[e].source == mapped_loop->source &&
			        as->mapped_loop[e].step <= mapped_loop->step)
				to[i] = stride[e] * (mapped_loop->step / as->mapped_loop[e].step);
	}
}

void loop_map_store_as(struct quantizer *q, const struct loop_map *as,
        const struct loop_map *loop_map, struct op *op)
{
	loop_map_stride_over(q, as, loop_map, op->kernel->result.stride);
	for (int i = 0; i < loop_map->count; i++)
		op->kernel->result.stride[i] *= !loop_map->mapped_loop[i].reduction;
	op->result[0]->type = loop_map_type(q->module, as, type_scalar(op->result[0]->type));
}
