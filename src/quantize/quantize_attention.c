/* How the kernels of attention on bytes handle rows of keys and values:
 *     rows of this launch, f32  ->  bytes and an f16 scale each
 *     select(active(fresh), fresh, past) in a product  ->  accesses to both in the new loops
 *     post body of the f32 product  ->  the same at the end of the new kernel */
#include "quantize/quantize_attention.h"

/* ---- rows of this launch */

static const struct type *outer_type(
        struct module *module, const struct cache *cache, const struct type *scalar)
{
	return type_shaped(module, TYPE_TENSOR, cache->axis + 1, cache->fresh->type->shape, scalar);
}

/* A kernel over the rows and, if `inner`, over the numbers of a row; operands and result are
 * row-major. */
static struct op *row_kernel(
        struct quantizer *q, const struct cache *cache, bool inner, struct kernel_spec spec)
{
	spec.loops = 1 + inner;
	struct op *op = quantize_kernel(q, &spec);
	struct kernel *kernel = op->kernel;
	int64_t rows = type_elements(cache->fresh->type) / cache->inner;
	kernel->loop[0].extent = rows;
	for (int j = 0; j < op->operands; j++)
		kernel->operand[j].stride[0] = type_elements(op->operand[j]->type) / rows;
	kernel->result.stride[0] = type_elements(spec.result) / rows;
	if (inner) {
		kernel->loop[1].extent = cache->inner;
		kernel->operand[0].stride[1] = 1;
		kernel->result.stride[1] = kernel->result.stride[0] > 1;
	}
	return op;
}

/* Operand 0 as f16, clamped to the largest finite one; 1 where that is 0. */
static void half_body(struct module *module, struct body *body)
{
	const struct type *real = type_float(module, 32);
	const struct type *half = type_float(module, 16);
	int most = body_add(module, body,
	        (struct node){ .kind = NODE_CONSTANT, .type = real, .real = 65504.0 });
	int scale = body_op(module, body, OP_TRUNCF, half,
	        body_op(module, body, OP_MINIMUMF, real, body_operand(module, body, real, 0), most,
	                0),
	        0, 0);
	int zero = body_add(module, body, (struct node){ .kind = NODE_CONSTANT, .type = half });
	int one = body_add(
	        module, body, (struct node){ .kind = NODE_CONSTANT, .type = half, .real = 1.0 });
	struct node equal = { .kind = NODE_OP,
		.code = OP_CMPF,
		.type = type_integer(module, 1),
		.argument = { scale, zero },
		.integer = CMPF_OEQ };
	body->result =
	        body_op(module, body, OP_SELECT, half, body_add(module, body, equal), one, scale);
}

void attention_rows(struct quantizer *q, struct cache *cache, struct op *at)
{
	struct module *module = q->module;
	const char *name = text_format(module->arena, "%s_row", at->kernel->name);
	struct op *largest = row_kernel(q, cache, true,
	        (struct kernel_spec){ .at = at,
	                .name = name,
	                .suffix = "absmax",
	                .operands = 1,
	                .operand = &cache->fresh,
	                .result = outer_type(module, cache, type_float(module, 32)) });
	largest->kernel->loop[1].reduction = true;
	largest->kernel->result.stride[1] = 0;
	quantize_scale(module, largest->kernel, STATE_MOST, false);
	struct op *scale = row_kernel(q, cache, false,
	        (struct kernel_spec){ .at = at,
	                .name = name,
	                .suffix = "scale",
	                .operands = 1,
	                .operand = largest->result,
	                .result = outer_type(module, cache, type_float(module, 16)) });
	half_body(module, &scale->kernel->update);
	struct value *operand[2] = { cache->fresh, scale->result[0] };
	const struct type *bytes = type_shaped(module, TYPE_TENSOR, cache->fresh->type->rank,
	        cache->fresh->type->shape, type_integer(module, 8));
	struct op *rounded = row_kernel(q, cache, true,
	        (struct kernel_spec){ .at = at,
	                .name = name,
	                .suffix = "q",
	                .operands = 2,
	                .operand = operand,
	                .result = bytes });
	quantize_round(module, rounded->kernel, type_float(module, 16), STATE_MOST);
	cache->scale = scale->result[0];
	cache->q = rounded->result[0];
}

/* ---- rows as operands */

/* A launch with one row: it is recognized by the number of its key, so that a word of keys may
 * hold it and past ones.  Several rows are recognized by a guard. */
static bool is_single(const struct keys *keys)
{
	return keys->fresh == 1;
}

int64_t keys_first(const struct keys *keys)
{
	return keys->fresh_last ? keys->lead : keys->lead - keys->fresh;
}

int64_t keys_fresh_blocks(const struct keys *keys)
{
	return keys->fresh % keys->block ? 0 : keys->fresh / keys->block;
}

/* The stride in the cache of a loop of the product. */
static int64_t past_stride(const struct cache_read *r, int source)
{
	const struct keys *keys = &r->a->keys;
	int64_t stride = r->p->op->kernel->operand[r->p->past].stride[source];
	int64_t inner = r->scales ? 1 : r->cache->inner;
	int64_t above = r->cache->inner * keys->past;
	if (source == r->p->key)
		return inner;
	if (stride && stride % above == 0)
		return stride / above * inner * keys->rows;
	return r->scales ? 0 : stride;
}

/* Keys of this launch read the free rows in front of the past ones, whose content is not used,
 * unless they are whole blocks: then a guard leaves these out. */
void rows_past(const struct cache_read *r, struct access *to)
{
	const struct keys *keys = &r->a->keys;
	const struct loop_map *loop_map = r->loop_map;
	for (int i = 0; i < loop_map->count; i++)
		to->stride[i] = past_stride(r, loop_map->mapped_loop[i].source) *
		        loop_map->mapped_loop[i].step;
	to->offset = keys_first(keys) * (r->scales ? 1 : r->cache->inner);
	for (int i = 0; i < loop_map->count && keys_fresh_blocks(keys); i++)
		if (loop_map->mapped_loop[i].source == r->p->key &&
		        loop_map->mapped_loop[i].step == keys->block)
			access_add_guard(r->q->module, to,
			        (struct guard_range){ .loop = i,
			                .low = keys_fresh_blocks(keys),
			                .high = keys->blocks });
}

/* Adds a guard of the product to an access in the new loops.  In the keys it covers whole blocks
 * or lies inside the first block. */
static void add_guard(struct quantizer *q, const struct loop_map *loop_map,
        struct guard_range guard, struct access *to)
{
	for (int i = 0; i < loop_map->count; i++) {
		const struct mapped_loop *mapped_loop = &loop_map->mapped_loop[i];
		int64_t high = guard.high;
		if (mapped_loop->step > 1)
			high = (guard.high + mapped_loop->step - 1) / mapped_loop->step;
		else if (high > mapped_loop->trip)
			high = mapped_loop->trip;
		if (mapped_loop->source == guard.loop &&
		        (guard.low > 0 || high < mapped_loop->trip))
			access_add_guard(q->module, to,
			        (struct guard_range){ .loop = i, .low = guard.low, .high = high });
	}
}

/* The stride of a loop of the product in the rows of this launch. */
static int64_t fresh_stride(const struct cache_read *r, int source)
{
	bool is_key = source == r->p->key;
	int64_t stride = r->cache->stride[source];
	if (is_key && is_single(&r->a->keys))
		stride = 0;
	if (!r->scales)
		return stride;
	int64_t extent = r->p->op->kernel->loop[source].extent;
	bool inside_row = !is_key && stride * extent <= r->cache->inner;
	return inside_row ? 0 : stride / r->cache->inner;
}

void rows_fresh(const struct cache_read *r, struct access *to, int64_t count)
{
	const struct loop_map *loop_map = r->loop_map;
	for (int i = 0; i < loop_map->count; i++)
		to->stride[i] = fresh_stride(r, loop_map->mapped_loop[i].source) *
		        loop_map->mapped_loop[i].step;
	if (!is_single(&r->a->keys))
		add_guard(r->q, loop_map,
		        (struct guard_range){ .loop = r->p->key, .low = 0, .high = count }, to);
	for (int i = 0; i < loop_map->count && r->a->keys.fresh_last; i++)
		if (loop_map->mapped_loop[i].source == r->p->key &&
		        loop_map->mapped_loop[i].run_time)
			access_add_guard(r->q->module, to,
			        (struct guard_range){
			                .loop = i, .low = 0, .high = 1, .last = true });
}

int rows_key(struct quantizer *q, struct body *body, const struct loop_map *loop_map, int key)
{
	int64_t *factor = ARENA_ARRAY(q->module->arena, int64_t, loop_map->count);
	for (int i = 0; i < loop_map->count; i++)
		factor[i] =
		        loop_map->mapped_loop[i].source == key ? loop_map->mapped_loop[i].step : 0;
	return body_affine(q->module, body, loop_map->count, factor, 0);
}

int rows_are_fresh(const struct cache_read *r, struct body *body, int fresh)
{
	struct module *module = r->q->module;
	const struct keys *keys = &r->a->keys;
	if (!is_single(keys))
		return body_active(module, body, fresh);
	int number = rows_key(r->q, body, r->loop_map, r->p->key);
	int own = keys->fresh_last ? keys_past(r->q, keys, body, fresh + 1)
	                           : body_integer(module, body, type_index(module), 0);
	struct node same = { .kind = NODE_OP,
		.code = OP_CMPI,
		.type = type_integer(module, 1),
		.argument = { number, own },
		.integer = CMPI_EQ };
	return body_add(module, body, same);
}

/* Node: operand past + 1, the launch's row, where `choice` holds, else operand past. */
static int choose_row(
        struct module *module, struct body *body, const struct type *type, int past, int choice)
{
	int other = body_operand(module, body, type, past);
	int own = body_operand(module, body, type, past + 1);
	return body_op(module, body, OP_SELECT, type, choice, own, other);
}

void rows_walk(const struct cache_read *r, struct kernel *kernel, int past)
{
	rows_past(r, &kernel->operand[past]);
	rows_fresh(r, &kernel->operand[past + 1], r->a->keys.fresh);
}

void rows_sum(struct module *module, struct body *body, int choice)
{
	const struct type *byte = type_integer(module, 8);
	const struct type *sum = type_integer(module, 32);
	int x = body_op(module, body, OP_EXTSI, sum, body_operand(module, body, byte, 0), 0, 0);
	int chosen = choice >= 0 ? choose_row(module, body, byte, 1, choice)
	                         : body_operand(module, body, byte, 1);
	int row = body_op(module, body, OP_EXTSI, sum, chosen, 0, 0);
	int accumulator =
	        body_add(module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = sum });
	body->result = body_op(module, body, OP_ADDI, sum, accumulator,
	        body_op(module, body, OP_MULI, sum, x, row, 0), 0);
}

int rows_scale(struct module *module, struct body *body, int past, int choice)
{
	return body_op(module, body, OP_EXTF, type_float(module, 32),
	        choose_row(module, body, type_float(module, 16), past, choice), 0, 0);
}

/* ---- the end of the f32 product */

struct epilogue epilogue_of(
        struct quantizer *q, const struct op *old, const struct loop_map *loop_map)
{
	return (struct epilogue){ old, loop_map,
		ARENA_ARRAY(q->module->arena, int, old->operands + 1) };
}

int post_operands(const struct epilogue *e, int first, struct value **operand)
{
	for (int j = 0; j < e->old->operands; j++) {
		e->renamed[j] = first;
		if (body_uses_operand(&e->old->kernel->post, j))
			operand[first++] = e->old->operand[j];
	}
	return first;
}

void post_walk(struct quantizer *q, const struct epilogue *e, struct kernel *kernel)
{
	for (int j = 0; j < e->old->operands; j++) {
		const struct access *from = &e->old->kernel->operand[j];
		struct access *to = &kernel->operand[e->renamed[j]];
		if (!body_uses_operand(&e->old->kernel->post, j))
			continue;
		loop_map_walk(e->loop_map, from->stride, to->stride);
		to->offset = from->offset;
		for (int g = 0; g < from->guards; g++)
			add_guard(q, e->loop_map, from->guard[g], to);
	}
}

int post_body(struct module *module, const struct epilogue *e, struct body *body, int sum)
{
	const struct kernel *kernel = e->old->kernel;
	const struct loop_map *loop_map = e->loop_map;
	struct body moved = { 0 };
	int *index = ARENA_ARRAY(module->arena, int, kernel->loops);
	int64_t *factor = ARENA_ARRAY(module->arena, int64_t, loop_map->count);
	if (!kernel->post.count)
		return sum;
	moved.result = body_import(module, &moved, &kernel->post, e->renamed, -1);
	for (int l = 0; l < kernel->loops; l++) {
		for (int i = 0; i < loop_map->count; i++) {
			const struct mapped_loop *loop = &loop_map->mapped_loop[i];
			factor[i] = loop->source == l ? loop->step : 0;
		}
		index[l] = -1;
		if (body_uses_counter(&moved, l))
			index[l] = body_affine(module, body, loop_map->count, factor, 0);
	}
	return body_rewrite(
	        module, body, &moved, (struct body_map){ .index = index, .accumulator = sum });
}
