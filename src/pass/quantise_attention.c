/* The kernels of attention on bytes: rows of keys and values are rounded, scores and values are sums of integer products. */
#include "pass/quantise_state.h"
#include "pass/schedule.h"

#define PROBABILITY_MOST 127
#define KEYS_ABREAST 16       /* keys that may be lanes, where the rows of a launch fill them */
#define FEW_ROWS 8            /* rows of a launch that a key, or several at once, may serve before the next come; their sums wait side by side then */
#define VALUE_PARTS 4         /* of a block of keys, whose sums several tokens form at once: one row of a state serves them all */

/* ---- rows */

static const struct type *outer_type(struct module *module, const struct cache *cache, const struct type *scalar)
{
	return type_shaped(module, TYPE_TENSOR, cache->axis + 1, cache->fresh->type->shape, scalar);
}

/* Loops over rows and, if `inner`, over the numbers of a row; operands and result lie row-major. */
static struct op *row_kernel(struct quantiser *q, struct op *at, const struct cache *cache, const char *name, const char *suffix, bool inner, int operands,
                             struct value *const *operand, const struct type *result)
{
	struct op *op = quantise_kernel(q, at, name, suffix, 1 + inner, operands, operand, result);
	struct kernel *kernel = op->kernel;
	kernel->loop[0].extent = type_elements(cache->fresh->type) / cache->inner;
	for (int j = 0; j < operands; j++)
		kernel->operand[j].stride[0] = type_elements(operand[j]->type) / kernel->loop[0].extent;
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
	const struct type *real = type_float(module, 32), *half = type_float(module, 16);
	int most = body_add(module, body, (struct node){.kind = NODE_CONSTANT, .type = real, .real = 65504.0});
	int scale = body_op(module, body, OP_TRUNCF, half, body_op(module, body, OP_MINIMUMF, real, body_operand(module, body, real, 0), most, 0), 0, 0);
	int zero = body_add(module, body, (struct node){.kind = NODE_CONSTANT, .type = half});
	int one = body_add(module, body, (struct node){.kind = NODE_CONSTANT, .type = half, .real = 1.0});
	struct node equal = {.kind = NODE_OP, .code = OP_CMPF, .type = type_integer(module, 1), .argument = {scale, zero}, .integer = 1};
	body->result = body_op(module, body, OP_SELECT, half, body_add(module, body, equal), one, scale);
}

void attention_rows(struct quantiser *q, struct cache *cache, struct op *at)
{
	struct module *module = q->module;
	const char *name = text_format(module->arena, "%s_row", at->kernel->name);
	const struct type *real = type_float(module, 32);
	struct op *largest = row_kernel(q, at, cache, name, "largest", true, 1, &cache->fresh, outer_type(module, cache, real));
	largest->kernel->loop[1].reduction = true;
	largest->kernel->result.stride[1] = 0;
	quantise_scale(module, largest->kernel, STATE_MOST, false);
	struct op *scale = row_kernel(q, at, cache, name, "scale", false, 1, largest->result, outer_type(module, cache, type_float(module, 16)));
	half_body(module, &scale->kernel->update);
	struct value *operand[2] = {cache->fresh, scale->result[0]};
	const struct type *bytes = type_shaped(module, TYPE_TENSOR, cache->fresh->type->rank, cache->fresh->type->shape, type_integer(module, 8));
	struct op *rounded = row_kernel(q, at, cache, name, "q", true, 2, operand, bytes);
	quantise_round(module, rounded->kernel, type_float(module, 16), STATE_MOST);
	cache->scale = scale->result[0];
	cache->q = rounded->result[0];
}

/* ---- loops */

static void add_part(struct parts *parts, int source, int64_t trip, int64_t step, bool reduction)
{
	parts->part[parts->count++] = (struct part){.source = source, .trip = trip, .step = step, .reduction = reduction};
}

/* The one row of a launch is told by its number, so that words of keys may hold it and past ones; where a launch has several, a guard tells them. */
static bool is_single(const struct keys *keys)
{
	return keys->fresh == 1;
}

/* Few rows share a key as query heads do; of many, all keys of a head come for each. */
static bool shares_keys(const struct keys *keys)
{
	return keys->fresh <= FEW_ROWS;
}

/* Keys of a run that are all of this launch, or all of the past. */
static int64_t keys_abreast(const struct keys *keys)
{
	int64_t abreast = power_of_two_in(keys->fresh, KEYS_ABREAST);
	return power_of_two_in(keys->block, abreast);
}

static void add_blocks(struct quantiser *q, const struct keys *keys, struct parts *parts, int source, bool reduction)
{
	if (keys->blocks == 1)
		return;
	add_part(parts, source, keys->blocks, keys->block, reduction);
	parts->part[parts->count - 1].run_time = keys_trip(q, keys);
}

/* The keys of a block. */
static void add_block(const struct keys *keys, struct parts *parts, int source)
{
	int64_t abreast = keys_abreast(keys);
	if (keys->block > abreast)
		add_part(parts, source, keys->block / abreast, abreast, false);
	if (abreast > 1 || keys->block == abreast)
		add_part(parts, source, abreast, 1, false);
}

/* Where the maximum runs from block to block: the tokens that share values, or the others.  Else all are others. */
static void add_tokens(const struct attention *a, const struct contraction *c, struct parts *parts, bool share)
{
	const struct kernel *kernel = c->op->kernel;
	for (int t = 0; t < c->tokens; t++)
		if ((a->running && !kernel->operand[a->values.past].stride[c->token[t]]) == share)
			add_part(parts, c->token[t], kernel->loop[c->token[t]].extent, 1, false);
}

static struct parts no_parts(struct quantiser *q, const struct op *op)
{
	return (struct parts){.part = ARENA_ARRAY(q->module->arena, struct part, op->kernel->loops + 4)};
}

/* The strides of an access, part by part. */
void parts_walk(const struct parts *parts, const int64_t *stride, int64_t *to)
{
	for (int i = 0; i < parts->count; i++)
		to[i] = stride[parts->part[i].source] * parts->part[i].step;
}

static const struct type *parts_type(struct module *module, const struct parts *parts, const struct type *scalar)
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

/* Row-major strides over the parallel parts. */
static void lie(const struct parts *parts, int64_t *stride)
{
	int64_t pitch = 1;
	for (int i = parts->count - 1; i >= 0; i--) {
		stride[i] = parts->part[i].reduction ? 0 : pitch;
		pitch *= parts->part[i].reduction ? 1 : parts->part[i].trip;
	}
}

/* Its result lies row-major over the parallel parts. */
struct op *parts_kernel(struct quantiser *q, struct op *at, const char *suffix, const struct parts *parts, int operands, struct value *const *operand, const struct type *scalar)
{
	struct op *op = quantise_kernel(q, at, at->kernel->name, suffix, parts->count, operands, operand, parts_type(q->module, parts, scalar));
	for (int i = 0; i < parts->count; i++)
		op->kernel->loop[i] = (struct loop){parts->part[i].trip, parts->part[i].reduction, parts->part[i].run_time};
	lie(parts, op->kernel->result.stride);
	return op;
}

/* ---- operands */

/* Rows of the state; in front of them, what stands in the place of those of this launch. */
static void walk_past(const struct attention *a, const struct cache *cache, const struct product *p, const struct parts *parts, bool scales, struct access *to)
{
	const struct access *past = &p->op->kernel->operand[p->past];
	int64_t inner = scales ? 1 : cache->inner, above = cache->inner * a->keys.past;
	for (int i = 0; i < parts->count; i++) {
		int source = parts->part[i].source;
		int64_t stride = past->stride[source];
		if (source == p->key)
			stride = inner;
		else if (stride && stride % above == 0)
			stride = stride / above * inner * a->keys.rows;
		else if (scales)
			stride = 0;
		to->stride[i] = stride * parts->part[i].step;
	}
	to->offset = (a->keys.lead - a->keys.fresh) * inner;
}

/* A guard of the product's, part by part; of the keys' blocks it takes some whole, or it lies inside the first. */
static void add_guard(struct quantiser *q, const struct parts *parts, struct guard_range guard, struct access *to)
{
	for (int i = 0; i < parts->count; i++) {
		const struct part *part = &parts->part[i];
		bool outer = part->step > 1;
		int64_t high = outer ? (guard.high + part->step - 1) / part->step : guard.high < part->trip ? guard.high : part->trip;
		if (part->source == guard.loop && (guard.low > 0 || high < part->trip))
			access_add_guard(q->module, to, (struct guard_range){i, guard.low, high});
	}
}

/* count: of the keys that the parts walk, the first ones are of this launch. */
static void walk_fresh(struct quantiser *q, const struct attention *a, const struct cache *cache, const struct product *p, const struct parts *parts, bool scales, struct access *to, int64_t count)
{
	for (int i = 0; i < parts->count; i++) {
		const struct part *part = &parts->part[i];
		int64_t stride = part->source == p->key && a->keys.fresh == 1 ? 0 : cache->stride[part->source];
		if (scales)
			stride = part->source != p->key && stride * p->op->kernel->loop[part->source].extent <= cache->inner ? 0 : stride / cache->inner;
		to->stride[i] = stride * part->step;
	}
	if (!is_single(&a->keys))
		add_guard(q, parts, (struct guard_range){p->key, 0, count}, to);
}

/* The number of the key at hand. */
static int key_number(struct quantiser *q, struct body *body, const struct parts *parts, int key)
{
	int64_t *factor = ARENA_ARRAY(q->module->arena, int64_t, parts->count);
	for (int i = 0; i < parts->count; i++)
		factor[i] = parts->part[i].source == key ? parts->part[i].step : 0;
	return body_affine(q->module, body, parts->count, factor, 0);
}

/* Is the row at hand one of this launch?  fresh: the operand that has it then. */
static int is_fresh(struct quantiser *q, const struct attention *a, struct body *body, const struct parts *parts, int key, int fresh)
{
	struct module *module = q->module;
	if (!is_single(&a->keys))
		return body_active(module, body, fresh);
	struct node first = {.kind = NODE_OP, .code = OP_CMPI, .type = type_integer(module, 1), .argument = {key_number(q, body, parts, key), body_integer(module, body, type_index(module), 0)}};
	return body_add(module, body, first);
}

/* The row of this launch where it is one of these, else that of the past. */
static int choose_row(struct module *module, struct body *body, const struct type *type, int past, int fresh, int choice)
{
	return body_op(module, body, OP_SELECT, type, choice, body_operand(module, body, type, fresh), body_operand(module, body, type, past));
}

/* Operands past and past + 1: the rows, or their scales. */
static void walk_rows(struct quantiser *q, const struct attention *a, const struct cache *cache, const struct product *p, const struct parts *parts, bool scales, struct kernel *kernel, int past)
{
	walk_past(a, cache, p, parts, scales, &kernel->operand[past]);
	walk_fresh(q, a, cache, p, parts, scales, &kernel->operand[past + 1], a->keys.fresh);
}

/* acc + x * row, in integers: operands x, past, and fresh where some rows are of this launch.  choice: whether it is one of them; -1: none is. */
static void sum_body(struct module *module, struct body *body, int choice)
{
	const struct type *byte = type_integer(module, 8), *sum = type_integer(module, 32);
	int x = body_op(module, body, OP_EXTSI, sum, body_operand(module, body, byte, 0), 0, 0);
	int row = body_op(module, body, OP_EXTSI, sum, choice >= 0 ? choose_row(module, body, byte, 1, 2, choice) : body_operand(module, body, byte, 1), 0, 0);
	int accumulator = body_add(module, body, (struct node){.kind = NODE_ACCUMULATOR, .type = sum});
	body->result = body_op(module, body, OP_ADDI, sum, accumulator, body_op(module, body, OP_MULI, sum, x, row, 0), 0);
}

static int scale_of_row(struct module *module, struct body *body, int past, int choice)
{
	return body_op(module, body, OP_EXTF, type_float(module, 32), choose_row(module, body, type_float(module, 16), past, past + 1, choice), 0, 0);
}

/* Adds what the post body of the product reads, from operand `first` on; returns how many there are then. */
static int post_operands(const struct op *old, int first, struct value **operand, int *renamed)
{
	for (int j = 0; j < old->operands; j++) {
		renamed[j] = first;
		if (body_uses_operand(&old->kernel->post, j))
			operand[first++] = old->operand[j];
	}
	return first;
}

static void walk_post(struct quantiser *q, const struct op *old, const struct parts *parts, const int *renamed, struct kernel *kernel)
{
	for (int j = 0; j < old->operands; j++) {
		const struct access *from = &old->kernel->operand[j];
		struct access *to = &kernel->operand[renamed[j]];
		if (!body_uses_operand(&old->kernel->post, j))
			continue;
		parts_walk(parts, from->stride, to->stride);
		to->offset = from->offset;
		for (int g = 0; g < from->guards; g++)
			add_guard(q, parts, from->guard[g], to);
	}
}

/* The product's own post body on a sum; counters are those of the parts. */
static int post_body(struct module *module, struct body *body, const struct op *old, const struct parts *parts, const int *renamed, int sum)
{
	const struct kernel *kernel = old->kernel;
	struct body moved = {0};
	int *index = ARENA_ARRAY(module->arena, int, kernel->loops);
	int64_t *factor = ARENA_ARRAY(module->arena, int64_t, parts->count);
	if (!kernel->post.count)
		return sum;
	moved.result = body_import(module, &moved, &kernel->post, renamed, -1);
	for (int l = 0; l < kernel->loops; l++) {
		for (int i = 0; i < parts->count; i++)
			factor[i] = parts->part[i].source == l ? parts->part[i].step : 0;
		index[l] = body_uses_counter(&moved, l) ? body_affine(module, body, parts->count, factor, 0) : -1;
	}
	return body_rewrite(module, body, &moved, (struct body_map){.index = index, .accumulator = sum});
}

/* ---- scores */

/* What x walks, as a contraction with a weight has it: tokens, and the numbers that are added up. */
struct contraction keys_query(struct quantiser *q, const struct product *p)
{
	struct kernel *kernel = p->op->kernel;
	struct contraction c = {.op = p->op, .x = p->x, .w = p->past, .bits = 8, .group = STATE_GROUP, .digits = 1};
	c.digit = ARENA_ARRAY(q->module->arena, struct digit, 1);
	*c.digit = (struct digit){kernel->loop[p->reduction].extent, kernel->operand[p->x].stride[p->reduction], kernel->operand[p->past].stride[p->reduction]};
	c.token = ARENA_ARRAY(q->module->arena, int, kernel->loops);
	for (int l = 0; l < kernel->loops; l++)
		if (l != p->reduction && kernel->operand[p->x].stride[l])
			c.token[c.tokens++] = l;
	return c;
}

/* Strides over [tokens …, each] by loop of the product. */
static int64_t *token_strides(struct quantiser *q, const struct contraction *c, int64_t each)
{
	int64_t *stride = ARENA_ARRAY(q->module->arena, int64_t, c->op->kernel->loops);
	for (int t = c->tokens - 1; t >= 0; t--) {
		stride[c->token[t]] = each;
		each *= c->op->kernel->loop[c->token[t]].extent;
	}
	return stride;
}

/* Keys beyond the last one have no score: minus infinity. */
static int only_keys(struct quantiser *q, const struct attention *a, struct body *body, const struct parts *parts, int score, int count)
{
	struct module *module = q->module;
	const struct keys *keys = &a->keys;
	const struct type *index = type_index(module), *real = type_float(module, 32);
	if (!keys->trip && keys->block * keys->blocks == keys->extent)
		return score;
	int limit = body_integer(module, body, index, keys->extent);
	if (keys->trip) {
		int given = body_op(module, body, OP_INDEX_CAST, index, body_operand(module, body, type_scalar(keys->count->type), count), 0, 0);
		int past = body_op(module, body, OP_MAXSI, index, given, body_integer(module, body, index, 0), 0);
		limit = body_op(module, body, OP_MINSI, index, body_op(module, body, OP_ADDI, index, past, body_integer(module, body, index, keys->fresh), 0), limit, 0);
	}
	struct node below = {.kind = NODE_OP, .code = OP_CMPI, .type = type_integer(module, 1), .argument = {key_number(q, body, parts, a->scores.key), limit}, .integer = 2};
	int low = body_add(module, body, (struct node){.kind = NODE_CONSTANT, .type = real, .real = -1.0 / 0.0});
	return body_op(module, body, OP_SELECT, real, body_add(module, body, below), score, low);
}

/* The parallel loops of a product, keys in blocks. */
static void add_parallel(struct quantiser *q, const struct attention *a, const struct product *p, struct parts *parts)
{
	for (int l = 0; l < p->op->kernel->loops; l++) {
		if (l == p->key && l != p->reduction)
			{
			add_blocks(q, &a->keys, parts, l, false);
			add_block(&a->keys, parts, l);
		}
		else if (l != p->reduction)
			add_part(parts, l, p->op->kernel->loop[l].extent, 1, false);
	}
}

/* Loops of the product other than the keys' and the one that is added up, which walk the rows of the past, or do not. */
static void add_others(const struct product *p, struct parts *parts, int but, bool past)
{
	const struct kernel *kernel = p->op->kernel;
	for (int l = 0; l < kernel->loops; l++)
		if (l != p->key && l != p->reduction && l != but && !kernel->operand[p->past].stride[l] == !past)
			add_part(parts, l, kernel->loop[l].extent, 1, false);
}

/* The loops in which the sums of scores are formed, of few tokens: a key, or several at once, serves all of them and all query heads that share it before the next one comes. */
static struct parts score_loops(struct quantiser *q, const struct attention *a, int64_t groups)
{
	const struct product *p = &a->scores;
	struct parts parts = no_parts(q, p->op);
	add_others(p, &parts, -1, true);
	add_blocks(q, &a->keys, &parts, p->key, false);
	add_block(&a->keys, &parts, p->key);
	if (groups > 1)
		add_part(&parts, p->reduction, groups, a->k.inner / groups, false);
	add_others(p, &parts, -1, false);
	return parts;
}

void parts_lie_over(struct quantiser *q, const struct parts *as, const struct parts *parts, int64_t *to)
{
	int64_t *stride = ARENA_ARRAY(q->module->arena, int64_t, as->count + 1);
	lie(as, stride);
	for (int i = 0; i < parts->count; i++) {
		const struct part *part = &parts->part[i];
		to[i] = 0;
		for (int e = as->count - 1; e >= 0; e--)          /* the outermost part of the same loop whose steps are no longer */
			if (as->part[e].source == part->source && as->part[e].step <= part->step)
				to[i] = stride[e] * (part->step / as->part[e].step);
	}
}

/* The result lies row-major over the parts `as`, whatever the order of the loops. */
void parts_lie_as(struct quantiser *q, const struct parts *as, const struct parts *parts, struct op *op)
{
	parts_lie_over(q, as, parts, op->kernel->result.stride);
	for (int i = 0; i < parts->count; i++)
		op->kernel->result.stride[i] *= !parts->part[i].reduction;
	op->result[0]->type = parts_type(q->module, as, type_scalar(op->result[0]->type));
}

static struct value *score_sums(struct quantiser *q, const struct attention *a, const struct contraction *c, const struct activation *query, int64_t groups)
{
	struct module *module = q->module;
	const struct product *p = &a->scores;
	struct parts as = no_parts(q, p->op);
	int64_t size = a->k.inner / groups;
	if (groups > 1 && shares_keys(&a->keys))         /* keys lie one after the other, so that several may be rows of a kernel */
		add_part(&as, p->reduction, groups, size, false);
	add_parallel(q, a, p, &as);
	if (groups > 1 && !shares_keys(&a->keys))
		add_part(&as, p->reduction, groups, size, false);
	struct parts parts = shares_keys(&a->keys) ? score_loops(q, a, groups) : as;
	add_part(&parts, p->reduction, size, 1, true);
	struct value *operand[3] = {query->q, a->k.past, a->k.q};
	struct op *op = parts_kernel(q, p->op, "sums", &parts, 3, operand, type_integer(module, 32));
	parts_lie_as(q, &as, &parts, op);
	int64_t *own = token_strides(q, c, a->k.inner);
	own[p->reduction] = 1;
	parts_walk(&parts, own, op->kernel->operand[0].stride);
	walk_rows(q, a, &a->k, p, &parts, false, op->kernel, 1);
	sum_body(module, &op->kernel->update, is_fresh(q, a, &op->kernel->update, &parts, p->key, 2));
	op->kernel->ordered = shares_keys(&a->keys) || keys_abreast(&a->keys) > 1;       /* so several rows of a state are taken at once */
	return op->result[0];
}

/* The scores in blocks of keys: where the kernel's result lay, with room for whole blocks. */
static void score_result(struct quantiser *q, const struct attention *a, const struct parts *parts, struct op *op)
{
	const struct product *p = &a->scores;
	const struct kernel *old = p->op->kernel;
	struct access spread = access_copy(q->module, &old->result, old->loops);
	int64_t each = old->result.stride[p->key];
	keys_spread(&a->keys, each, old->loops, &spread);
	parts_walk(parts, spread.stride, op->kernel->result.stride);
	op->result[0]->type = keys_type(q->module, p->op->result[0]->type, each, a->keys.extent, a->keys.block * a->keys.blocks);
}

/* Is there not a number for every key of a block? */
static bool must_fill(const struct attention *a, const struct access *access)
{
	const struct guard_range *guard = access_guard(access, a->scores.key);
	return guard ? !keys_guard_splits(&a->keys, *guard) : access->stride[a->scores.key] && a->keys.block * a->keys.blocks > a->keys.extent;
}

void attention_scores(struct quantiser *q, const struct attention *a)
{
	struct module *module = q->module;
	const struct product *p = &a->scores;
	struct op *old = p->op;
	struct contraction c = keys_query(q, p);
	struct activation query = activation_of(q, &c);
	const struct type *real = type_float(module, 32);
	int64_t groups = a->k.inner > STATE_GROUP ? a->k.inner / STATE_GROUP : 1;
	struct value *sums = score_sums(q, a, &c, &query, groups);
	for (int j = 0; j < old->operands; j++)
		if (body_uses_operand(&old->kernel->post, j) && must_fill(a, &old->kernel->operand[j]))
			old->operand[j] = keys_fill(q, a, old, j, p->key, &old->kernel->operand[j]);
	struct parts parts = no_parts(q, old);
	add_parallel(q, a, p, &parts);
	struct parts of_sums = parts;
	if (groups > 1)
		add_part(&parts, p->reduction, groups, 1, true);
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, old->operands + 5);
	int *renamed = ARENA_ARRAY(module->arena, int, old->operands + 1), operands = 4;
	operand[0] = sums;
	operand[1] = query.scale;
	operand[2] = a->k.past_scale;
	operand[3] = a->k.scale;
	operands = post_operands(old, operands, operand, renamed);
	if (a->keys.trip)
		operand[operands++] = a->keys.count;
	struct op *op = parts_kernel(q, old, "scaled", &parts, operands, operand, real);
	struct kernel *kernel = op->kernel;
	lie(&of_sums, kernel->operand[0].stride);
	for (int i = 0; groups > 1 && i < of_sums.count; i++)
		kernel->operand[0].stride[i] *= shares_keys(&a->keys) ? 1 : groups;
	int64_t *own = token_strides(q, &c, groups);
	parts_walk(&parts, own, kernel->operand[1].stride);
	if (groups > 1) {
		kernel->operand[0].stride[of_sums.count] = shares_keys(&a->keys) ? type_elements(sums->type) / groups : 1;
		kernel->operand[1].stride[of_sums.count] = 1;
	}
	walk_rows(q, a, &a->k, p, &of_sums, true, kernel, 2);
	walk_post(q, old, &of_sums, renamed, kernel);
	score_result(q, a, &parts, op);
	struct body *body = &kernel->update, *last = groups > 1 ? &kernel->post : body;
	int sum = body_op(module, body, OP_SITOFP, real, body_operand(module, body, type_integer(module, 32), 0), 0, 0);
	int row = scale_of_row(module, body, 2, is_fresh(q, a, body, &of_sums, p->key, 3));
	int scale = body_op(module, body, OP_MULF, real, body_operand(module, body, real, 1), row, 0);
	int score = body_op(module, body, OP_MULF, real, sum, scale, 0);
	if (groups > 1) {
		int accumulator = body_add(module, body, (struct node){.kind = NODE_ACCUMULATOR, .type = real});
		body->result = body_op(module, body, OP_ADDF, real, accumulator, score, 0);
		score = body_add(module, last, (struct node){.kind = NODE_ACCUMULATOR, .type = real});
	}
	last->result = only_keys(q, a, last, &of_sums, post_body(module, last, old, &of_sums, renamed, score), operands - 1);
	op->result[0]->data = old->result[0]->data;
	ir_replace(q->main->region[0], old->result[0], op->result[0]);
	op_remove(old);
}

/* ---- values */

struct parts probability_blocks(struct quantiser *q, const struct attention *a, const struct contraction *c, bool reduced)
{
	struct parts parts = no_parts(q, c->op);
	add_tokens(a, c, &parts, false);
	add_blocks(q, &a->keys, &parts, a->values.key, reduced);
	add_tokens(a, c, &parts, true);
	return parts;
}

struct parts probability_parts(struct quantiser *q, const struct attention *a, const struct contraction *c)
{
	struct parts parts = probability_blocks(q, a, c, false);
	add_block(&a->keys, &parts, a->values.key);
	return parts;
}

struct parts probability_loops(struct quantiser *q, const struct attention *a, const struct contraction *c)
{
	struct parts parts = no_parts(q, c->op);
	add_tokens(a, c, &parts, false);
	add_blocks(q, &a->keys, &parts, a->values.key, false);
	add_block(&a->keys, &parts, a->values.key);
	add_tokens(a, c, &parts, true);
	return parts;
}

/* p * s_v for each key. */
static struct value *weighted(struct quantiser *q, const struct attention *a, const struct parts *as, const struct parts *parts)
{
	struct module *module = q->module;
	const struct product *p = &a->values;
	const struct type *real = type_float(module, 32);
	const struct access *x = &p->op->kernel->operand[p->x];
	struct value *operand[3] = {p->op->operand[p->x], a->v.past_scale, a->v.scale};
	struct op *op = parts_kernel(q, p->op, "weighted", parts, 3, operand, real);
	parts_lie_as(q, as, parts, op);
	if (a->running)
		parts_lie_over(q, as, parts, op->kernel->operand[0].stride);
	else
		parts_walk(parts, x->stride, op->kernel->operand[0].stride);
	op->kernel->operand[0].offset = x->offset;
	op->kernel->ordered = a->running;
	walk_rows(q, a, &a->v, p, parts, true, op->kernel, 1);
	struct body *body = &op->kernel->update;
	int scale = scale_of_row(module, body, 1, is_fresh(q, a, body, parts, p->key, 2));
	body->result = body_op(module, body, OP_MULF, real, body_operand(module, body, real, 0), scale, 0);
	return op->result[0];
}

static struct activation probabilities(struct quantiser *q, const struct attention *a, const struct contraction *c)
{
	struct module *module = q->module;
	const struct product *p = &a->values;
	struct parts parts = probability_parts(q, a, c), scales = parts, loops = probability_loops(q, a, c);
	struct activation made = {.x = weighted(q, a, &parts, &loops)};
	scales.part = arena_copy(module->arena, parts.part, sizeof *parts.part * (size_t)parts.count);
	for (int i = 0; i < parts.count; i++)
		scales.part[i].reduction = parts.part[i].source == a->values.key && parts.part[i].step < a->keys.block;
	struct op *scale = parts_kernel(q, p->op, "p_scale", &scales, 1, &made.x, type_float(module, 32));
	lie(&parts, scale->kernel->operand[0].stride);
	quantise_scale(module, scale->kernel, PROBABILITY_MOST, true);
	struct value *operand[2] = {made.x, scale->result[0]};
	struct op *rounded = parts_kernel(q, p->op, "p_q", &loops, 2, operand, type_integer(module, 8));
	parts_lie_as(q, &parts, &loops, rounded);
	parts_lie_over(q, &parts, &loops, rounded->kernel->operand[0].stride);
	parts_lie_over(q, &scales, &loops, rounded->kernel->operand[1].stride);
	rounded->kernel->ordered = a->running;
	quantise_round(module, rounded->kernel, type_float(module, 32), PROBABILITY_MOST);
	made.q = rounded->result[0];
	made.scale = scale->result[0];
	return made;
}

/* Tokens, blocks of keys, then what only the rows walk. */
static struct parts value_parts(struct quantiser *q, const struct attention *a, const struct contraction *c, bool reduced)
{
	const struct product *p = &a->values;
	struct parts parts = probability_blocks(q, a, c, reduced);
	const int64_t *x = p->op->kernel->operand[p->x].stride;
	for (int l = 0; l < p->op->kernel->loops; l++)
		if (l != p->key && !x[l])
			add_part(&parts, l, p->op->kernel->loop[l].extent, 1, false);
	return parts;
}

/* The loops in which the sums of values are formed, of few tokens: the same, and the numbers of a row last, as many as a word may have. */
static struct parts value_loops(struct quantiser *q, const struct attention *a)
{
	const struct product *p = &a->values;
	const struct kernel *kernel = p->op->kernel;
	const int64_t *x = kernel->operand[p->x].stride;
	struct parts parts = no_parts(q, p->op);
	int row = -1;
	for (int l = 0; l < kernel->loops; l++)
		row = l != p->key && !x[l] && kernel->operand[p->past].stride[l] == 1 ? l : row;
	const int64_t numbers = row < 0 ? 1 : kernel->loop[row].extent, lanes = numbers % STATE_GROUP ? numbers : STATE_GROUP;
	add_others(p, &parts, row, true);
	add_blocks(q, &a->keys, &parts, p->key, false);
	const int64_t abreast = keys_abreast(&a->keys);
	if (abreast > 1)
		add_part(&parts, p->key, a->keys.block / abreast, abreast, true);
	add_part(&parts, p->key, abreast > 1 ? abreast : a->keys.block, 1, true);
	if (numbers > lanes)
		add_part(&parts, row, numbers / lanes, lanes, false);
	add_others(p, &parts, row, false);
	if (row >= 0)
		add_part(&parts, row, lanes, 1, false);
	return parts;
}

/* Part `number` of every block of keys, of so many. */
static struct value *value_sums(struct quantiser *q, const struct attention *a, const struct contraction *c, const struct activation *p, int64_t number, int64_t of)
{
	struct parts as = value_parts(q, a, c, false), parts = as;
	int64_t keys = a->keys.block / of, first = number * keys, fresh = a->keys.fresh - first;
	int rows = fresh > 0 ? 2 : 1;
	int key = as.count;
	if (shares_keys(&a->keys))
		parts = value_loops(q, a);
	else
		add_part(&parts, a->values.key, keys, 1, true);
	struct value *operand[3] = {p->q, a->v.past, a->v.q};
	struct op *op = parts_kernel(q, a->values.op, number ? text_format(q->module->arena, "sums%lld", (long long)number) : "sums", &parts, 1 + rows, operand, type_integer(q->module, 32));
	struct access *access = op->kernel->operand;
	parts_lie_as(q, &as, &parts, op);
	struct parts probabilities = probability_parts(q, a, c);
	parts_lie_over(q, &probabilities, &parts, access[0].stride);
	walk_past(a, &a->v, &a->values, &parts, false, &access[1]);
	if (rows == 2)
		walk_fresh(q, a, &a->v, &a->values, &parts, false, &access[2], fresh);
	for (int j = 0; j <= rows; j++)
		access[j].offset += first * access[j].stride[key];
	sum_body(q->module, &op->kernel->update, rows == 2 ? is_fresh(q, a, &op->kernel->update, &parts, a->values.key, 2) : -1);
	op->kernel->ordered = shares_keys(&a->keys);
	return op->result[0];
}

/* How many kernels add up a block: some, where there are several tokens for each of its rows. */
static int64_t value_kernels(const struct attention *a, const struct contraction *c)
{
	const struct access *past = &a->values.op->kernel->operand[a->values.past];
	int64_t tokens = 1;
	for (int t = 0; t < c->tokens; t++)
		tokens *= past->stride[c->token[t]] ? 1 : c->op->kernel->loop[c->token[t]].extent;
	return tokens >= VALUE_PARTS && !shares_keys(&a->keys) ? power_of_two_in(a->keys.block, VALUE_PARTS) : 1;
}

/* The sum of the first operands: those of the parts. */
static int all_sums(struct module *module, struct body *body, int64_t of)
{
	const struct type *type = type_integer(module, 32);
	int sum = body_operand(module, body, type, 0);
	for (int i = 1; i < of; i++)
		sum = body_op(module, body, OP_ADDI, type, sum, body_operand(module, body, type, i), 0);
	return sum;
}

void attention_values(struct quantiser *q, const struct attention *a)
{
	struct module *module = q->module;
	struct op *old = a->values.op;
	const struct type *real = type_float(module, 32);
	struct contraction c = keys_query(q, &a->values);
	struct activation p = probabilities(q, a, &c);
	struct parts of_sums = value_parts(q, a, &c, false), parts = value_parts(q, a, &c, true);
	int sums = (int)value_kernels(a, &c), *renamed = ARENA_ARRAY(module->arena, int, old->operands + 1);
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, old->operands + sums + 2);
	for (int i = 0; i < sums; i++)
		operand[i] = value_sums(q, a, &c, &p, i, sums);
	operand[sums] = p.scale;
	operand[sums + 1] = a->factor;
	int scales = a->factor ? 2 : 1, operands = post_operands(old, sums + scales, operand, renamed);
	struct op *op = parts_kernel(q, old, "scaled", &parts, operands, operand, real);
	struct kernel *kernel = op->kernel;
	for (int i = 0; i < sums; i++)
		lie(&of_sums, kernel->operand[i].stride);
	struct parts blocks = probability_blocks(q, a, &c, false);
	for (int j = sums; j < sums + scales; j++)
		parts_lie_over(q, &blocks, &parts, kernel->operand[j].stride);
	walk_post(q, old, &parts, renamed, kernel);
	parts_walk(&parts, old->kernel->result.stride, kernel->result.stride);
	op->result[0]->type = old->result[0]->type;
	struct body *body = &kernel->update;
	int sum = body_op(module, body, OP_SITOFP, real, all_sums(module, body, sums), 0, 0);
	int value = body_op(module, body, OP_MULF, real, sum, body_operand(module, body, real, sums), 0);
	struct body *last = body;
	if (a->keys.blocks > 1) {
		int accumulator = body_add(module, body, (struct node){.kind = NODE_ACCUMULATOR, .type = real});
		if (a->factor)
			accumulator = body_op(module, body, OP_MULF, real, accumulator, body_operand(module, body, real, sums + 1), 0);
		body->result = body_op(module, body, OP_ADDF, real, accumulator, value, 0);
		last = &kernel->post;
		value = old->kernel->post.count ? body_add(module, last, (struct node){.kind = NODE_ACCUMULATOR, .type = real}) : -1;
	}
	if (value >= 0)
		last->result = post_body(module, last, old, &parts, renamed, value);
	ir_replace(q->main->region[0], old->result[0], op->result[0]);
	op_remove(old);
}
