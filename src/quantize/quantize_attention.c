/* What the kernels of attention on bytes do with the rows of keys and values: those of a launch
 * are rounded; a product reads these or the past ones, and ends as it did in f32. */
#include "quantize/quantize_attention.h"

/* ---- those of this launch */

static const struct type *outer_type(
        struct module *module, const struct cache *cache, const struct type *scalar)
{
	return type_shaped(module, TYPE_TENSOR, cache->axis + 1, cache->fresh->type->shape, scalar);
}

/* Loops over rows and, if `inner`, over the numbers of a row; operands and result lie row-major. */
static struct op *row_kernel(struct quantizer *q, struct op *at, const struct cache *cache,
        const char *name, const char *suffix, bool inner, int operands,
        struct value *const *operand, const struct type *result)
{
	struct op *op = quantize_kernel(q, at, name, suffix, 1 + inner, operands, operand, result);
	struct kernel *kernel = op->kernel;
	kernel->loop[0].extent = type_elements(cache->fresh->type) / cache->inner;
	for (int j = 0; j < operands; j++)
		kernel->operand[j].stride[0] =
		        type_elements(operand[j]->type) / kernel->loop[0].extent;
	kernel->result.stride[0] = type_elements(result) / kernel->loop[0].extent;
	if (inner) {
		kernel->loop[1].extent = cache->inner;
		kernel->operand[0].stride[1] = 1;
		kernel->result.stride[1] = kernel->result.stride[0] > 1;
	}
	return op;
}

/* As f16, at most the largest of these; 1 for what is 0 then. */
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
		.integer = 1 };
	body->result =
	        body_op(module, body, OP_SELECT, half, body_add(module, body, equal), one, scale);
}

void attention_rows(struct quantizer *q, struct cache *cache, struct op *at)
{
	struct module *module = q->module;
	const char *name = text_format(module->arena, "%s_row", at->kernel->name);
	const struct type *real = type_float(module, 32);
	struct op *largest = row_kernel(q, at, cache, name, "absmax", true, 1, &cache->fresh,
	        outer_type(module, cache, real));
	largest->kernel->loop[1].reduction = true;
	largest->kernel->result.stride[1] = 0;
	quantize_scale(module, largest->kernel, STATE_MOST, false);
	struct op *scale = row_kernel(q, at, cache, name, "scale", false, 1, largest->result,
	        outer_type(module, cache, type_float(module, 16)));
	half_body(module, &scale->kernel->update);
	struct value *operand[2] = { cache->fresh, scale->result[0] };
	const struct type *bytes = type_shaped(module, TYPE_TENSOR, cache->fresh->type->rank,
	        cache->fresh->type->shape, type_integer(module, 8));
	struct op *rounded = row_kernel(q, at, cache, name, "q", true, 2, operand, bytes);
	quantize_round(module, rounded->kernel, type_float(module, 16), STATE_MOST);
	cache->scale = scale->result[0];
	cache->q = rounded->result[0];
}

/* ---- as operands */

/* The one row of a launch is told by its number, so that words of keys may hold it and past
 * ones; where a launch has several, a guard tells them. */
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

/* Rows of the state; in front of them, what stands in the place of those of this launch, unless
 * they are whole blocks. */
void rows_past(struct quantizer *q, const struct attention *a, const struct cache *cache,
        const struct product *p, const struct loop_map *loop_map, bool scales, struct access *to)
{
	const struct access *past = &p->op->kernel->operand[p->past];
	int64_t inner = scales ? 1 : cache->inner;
	int64_t above = cache->inner * a->keys.past;
	for (int i = 0; i < loop_map->count; i++) {
		int source = loop_map->mapped_loop[i].source;
		int64_t stride = past->stride[source];
		if (source == p->key)
			stride = inner;
		else if (stride && stride % above == 0)
			stride = stride / above * inner * a->keys.rows;
		else if (scales)
			stride = 0;
		to->stride[i] = stride * loop_map->mapped_loop[i].step;
	}
	to->offset = keys_first(&a->keys) * inner;
	for (int i = 0; i < loop_map->count && keys_fresh_blocks(&a->keys); i++)
		if (loop_map->mapped_loop[i].source == p->key &&
		        loop_map->mapped_loop[i].step == a->keys.block)
			access_add_guard(q->module, to,
			        (struct guard_range){ .loop = i,
			                .low = keys_fresh_blocks(&a->keys),
			                .high = a->keys.blocks });
}

/* A guard of the product's, part by part; of the keys' blocks it takes some whole, or it lies
 * inside the first. */
static void add_guard(struct quantizer *q, const struct loop_map *loop_map,
        struct guard_range guard, struct access *to)
{
	for (int i = 0; i < loop_map->count; i++) {
		const struct mapped_loop *mapped_loop = &loop_map->mapped_loop[i];
		bool outer = mapped_loop->step > 1;
		int64_t high = outer ? (guard.high + mapped_loop->step - 1) / mapped_loop->step
		        : guard.high < mapped_loop->trip ? guard.high
		                                         : mapped_loop->trip;
		if (mapped_loop->source == guard.loop &&
		        (guard.low > 0 || high < mapped_loop->trip))
			access_add_guard(q->module, to,
			        (struct guard_range){ .loop = i, .low = guard.low, .high = high });
	}
}

/* count: of the keys that the parts walk, the first ones are of this launch. */
void rows_fresh(struct quantizer *q, const struct attention *a, const struct cache *cache,
        const struct product *p, const struct loop_map *loop_map, bool scales, struct access *to,
        int64_t count)
{
	for (int i = 0; i < loop_map->count; i++) {
		const struct mapped_loop *mapped_loop = &loop_map->mapped_loop[i];
		int64_t stride = mapped_loop->source == p->key && a->keys.fresh == 1
		        ? 0
		        : cache->stride[mapped_loop->source];
		if (scales)
			stride = mapped_loop->source != p->key &&
			                stride * p->op->kernel->loop[mapped_loop->source].extent <=
			                        cache->inner
			        ? 0
			        : stride / cache->inner;
		to->stride[i] = stride * mapped_loop->step;
	}
	if (!is_single(&a->keys))
		add_guard(q, loop_map,
		        (struct guard_range){ .loop = p->key, .low = 0, .high = count }, to);
	for (int i = 0; i < loop_map->count && a->keys.fresh_last; i++)
		if (loop_map->mapped_loop[i].source == p->key && loop_map->mapped_loop[i].run_time)
			access_add_guard(q->module, to,
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

int rows_are_fresh(struct quantizer *q, const struct attention *a, struct body *body,
        const struct loop_map *loop_map, int key, int fresh)
{
	struct module *module = q->module;
	if (!is_single(&a->keys))
		return body_active(module, body, fresh);
	int number = rows_key(q, body, loop_map, key);
	int own = a->keys.fresh_last ? keys_past(q, &a->keys, body, fresh + 1)
	                             : body_integer(module, body, type_index(module), 0);
	struct node same = { .kind = NODE_OP,
		.code = OP_CMPI,
		.type = type_integer(module, 1),
		.argument = { number, own } };
	return body_add(module, body, same);
}

/* The row of this launch where it is one of these, else that of the past. */
static int choose_row(struct module *module, struct body *body, const struct type *type, int past,
        int fresh, int choice)
{
	return body_op(module, body, OP_SELECT, type, choice,
	        body_operand(module, body, type, fresh), body_operand(module, body, type, past));
}

void rows_walk(struct quantizer *q, const struct attention *a, const struct cache *cache,
        const struct product *p, const struct loop_map *loop_map, bool scales,
        struct kernel *kernel, int past)
{
	rows_past(q, a, cache, p, loop_map, scales, &kernel->operand[past]);
	rows_fresh(q, a, cache, p, loop_map, scales, &kernel->operand[past + 1], a->keys.fresh);
}

void rows_sum(struct module *module, struct body *body, int choice)
{
	const struct type *byte = type_integer(module, 8);
	const struct type *sum = type_integer(module, 32);
	int x = body_op(module, body, OP_EXTSI, sum, body_operand(module, body, byte, 0), 0, 0);
	int row = body_op(module, body, OP_EXTSI, sum,
	        choice >= 0 ? choose_row(module, body, byte, 1, 2, choice)
	                    : body_operand(module, body, byte, 1),
	        0, 0);
	int accumulator =
	        body_add(module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = sum });
	body->result = body_op(module, body, OP_ADDI, sum, accumulator,
	        body_op(module, body, OP_MULI, sum, x, row, 0), 0);
}

int rows_scale(struct module *module, struct body *body, int past, int choice)
{
	return body_op(module, body, OP_EXTF, type_float(module, 32),
	        choose_row(module, body, type_float(module, 16), past, past + 1, choice), 0, 0);
}

int post_operands(const struct op *old, int first, struct value **operand, int *renamed)
{
	for (int j = 0; j < old->operands; j++) {
		renamed[j] = first;
		if (body_uses_operand(&old->kernel->post, j))
			operand[first++] = old->operand[j];
	}
	return first;
}

void post_walk(struct quantizer *q, const struct op *old, const struct loop_map *loop_map,
        const int *renamed, struct kernel *kernel)
{
	for (int j = 0; j < old->operands; j++) {
		const struct access *from = &old->kernel->operand[j];
		struct access *to = &kernel->operand[renamed[j]];
		if (!body_uses_operand(&old->kernel->post, j))
			continue;
		loop_map_walk(loop_map, from->stride, to->stride);
		to->offset = from->offset;
		for (int g = 0; g < from->guards; g++)
			add_guard(q, loop_map, from->guard[g], to);
	}
}

int post_body(struct module *module, struct body *body, const struct op *old,
        const struct loop_map *loop_map, const int *renamed, int sum)
{
	const struct kernel *kernel = old->kernel;
	struct body moved = { 0 };
	int *index = ARENA_ARRAY(module->arena, int, kernel->loops);
	int64_t *factor = ARENA_ARRAY(module->arena, int64_t, loop_map->count);
	if (!kernel->post.count)
		return sum;
	moved.result = body_import(module, &moved, &kernel->post, renamed, -1);
	for (int l = 0; l < kernel->loops; l++) {
		for (int i = 0; i < loop_map->count; i++)
			factor[i] = loop_map->mapped_loop[i].source == l
			        ? loop_map->mapped_loop[i].step
			        : 0;
		index[l] = body_uses_counter(&moved, l)
		        ? body_affine(module, body, loop_map->count, factor, 0)
		        : -1;
	}
	return body_rewrite(
	        module, body, &moved, (struct body_map){ .index = index, .accumulator = sum });
}
