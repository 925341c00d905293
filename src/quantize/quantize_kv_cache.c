/* Stores the KV cache as bytes (kv=i8): a cache of f32 rows becomes one of integers within +-119
 * and one of f16 scales, one for each row of a head.
 *     s = max |row| / 119 as f16, 1 for zeros;     row' = clamp(round half even(row / s))
 * The launch's own rows are rounded where they are made, and its attention reads the rounded ones.
 *     score = Σ_g (float)(Σ q' * k') * (s_q * s_k)   q in groups of 128 numbers
 *     value = Σ_b (float)(Σ p' * v') * s_p           p = probability * s_v, in blocks of 128 keys
 * Blocks are smaller where a launch has few tokens, or one token and wide rows.  The maximum of
 * the scores may run from block to block (blockwise_softmax.c).
 * Rows of the cache begin at row `stream.lead`: attention has the launch's rows first, and with
 * free rows in that place the keys of a block are contiguous, whatever the free rows contain.  If
 * the number of past rows is known at run time only, the single row of a launch of one token
 * comes last instead, where it will be stored: only the last block waits for it, and a layer with
 * a sliding window needs no block for it.  Caches of another form stay as they are.
 * With kv=bf16 the rows are rounded where they are made and extended where they are read.
 * Needs: fused kernels, no rolled layers.
 * Guarantees: caches that are read by attention alone, in the form of attention, have that type.
 * Quantizing: a number is off by at most half a scale.
 * Ends: each attention is replaced once. */
#include "ir/workload.h"
#include "ir/sliding_window.h"
#include "ir/kernel_signature.h"
#include "quantize/quantize_kv_cache.h"
#include "quantize/quantize_passes.h"
#include "tensor/tensor_passes.h"

/* Least keys of a block: each block costs a scale, and a scaling of each sum of values. */
#define BLOCK_LEAST 32
/* Keys of a block for one token whose rows have more than STATE_GROUP numbers. */
#define WIDE_BLOCK 64

/* Is the value an f32 argument of main with stream.role "state"? */
static bool is_f32_state(const struct quantizer *q, const struct value *value)
{
	if (value->def || value->block != q->main->region[0])
		return false;
	const struct attr *role = function_argument_attr(q->main, value->index, KEY_STREAM_ROLE);
	return role && text_same(role->text, "state") &&
	        type_scalar(value->type) == type_float(q->module, 32);
}

/* Matches select(active(j), j, otherwise); returns j, or -1. */
static int guarded_operand(
        const struct body *body, const struct node *choice, const struct node **otherwise)
{
	if (choice->kind != NODE_OP || choice->code != OP_SELECT)
		return -1;
	const struct node *active = &body->node[choice->argument[0]];
	const struct node *operand = &body->node[choice->argument[1]];
	*otherwise = &body->node[choice->argument[2]];
	bool matches = active->kind == NODE_OP && active->code == OP_ACTIVE &&
	        operand->kind == NODE_OPERAND && active->integer == operand->integer;
	return matches ? (int)operand->integer : -1;
}

/* Matches Σ x * select(active(a), a, b or 0), where a and b are the rows of the cache and of the
 * launch in either order. */
static bool product_operands(const struct quantizer *q, const struct op *op, struct product *p)
{
	const struct kernel *kernel = op->kernel;
	const struct body *body = &kernel->update;
	int term;
	if (kernel->init != 0.0 || kernel_combine(kernel, &term) != OP_ADDF ||
	        body->node[term].kind != NODE_OP || body->node[term].code != OP_MULF)
		return false;
	const struct node *left = &body->node[body->node[term].argument[0]];
	const struct node *right = &body->node[body->node[term].argument[1]];
	const struct node *x = left->kind == NODE_OPERAND ? left : right;
	const struct node *choice = x == left ? right : left;
	const struct node *rest;
	const struct node *nothing = NULL;
	int yes = guarded_operand(body, choice, &rest);
	int no = -1;
	if (yes >= 0 && rest->kind == NODE_OPERAND)
		no = (int)rest->integer;
	else if (yes >= 0)
		no = guarded_operand(body, rest, &nothing);
	if (x->kind != NODE_OPERAND || no < 0 ||
	        (nothing && (nothing->kind != NODE_CONSTANT || nothing->real != 0.0)))
		return false;
	bool first = is_f32_state(q, op->operand[yes]);
	p->x = (int)x->integer;
	p->past = first ? yes : no;
	p->fresh = first ? no : yes;
	for (int j = 0; j < op->operands; j++)
		if (j != p->x && j != p->past && j != p->fresh && body_uses_operand(body, j))
			return false;
	return is_f32_state(q, op->operand[p->past]);
}

/* Matches the loops: the launch's rows are read by a guard for the first keys, those of the cache
 * for the rest, and one loop is the reduction. */
static bool product_loops(const struct kernel *kernel, struct product *p)
{
	const struct access *past = &kernel->operand[p->past];
	const struct access *fresh = &kernel->operand[p->fresh];
	if (past->guards != 1 || fresh->guards != 1 || past->guard->loop != fresh->guard->loop ||
	        !access_is_plain(&kernel->operand[p->x]) || past->index_operand >= 0 ||
	        fresh->index_operand >= 0)
		return false;
	p->key = past->guard->loop;
	p->reduction = -1;
	for (int l = 0; l < kernel->loops; l++) {
		if (kernel->loop[l].reduction && p->reduction >= 0)
			return false;
		if (kernel->loop[l].reduction)
			p->reduction = l;
		if (kernel->loop[l].run_time && l != p->key)
			return false;
	}
	return fresh->guard->low == 0 && past->guard->low == fresh->guard->high &&
	        past->guard->high == kernel->loop[p->key].extent && p->reduction >= 0;
}

static bool is_active(const struct node *node, int operand)
{
	return node->kind == NODE_OP && node->code == OP_ACTIVE && node->integer == operand;
}

static bool uses_active(const struct body *body, int operand)
{
	for (int n = 0; n < body->count; n++)
		if (is_active(&body->node[n], operand))
			return true;
	return false;
}

bool keys_guard_splits(const struct keys *keys, struct guard_range guard)
{
	return guard.low == 0 && (guard.high <= keys->block || guard.high % keys->block == 0);
}

/* Is active(operand) used as the condition of selects only? */
static bool only_in_selects(const struct body *body, int operand)
{
	for (int n = 0; n < body->count; n++)
		for (int i = 0; i < body_arguments(&body->node[n]); i++)
			if (is_active(&body->node[body->node[n].argument[i]], operand) &&
			        (body->node[n].code != OP_SELECT || i))
				return false;
	return !is_active(&body->node[body->result], operand);
}

/* Operand j is guarded to the last keys: the operand guarded to all keys before them, so that
 * active(j) is not active(that operand); -1: there is none. */
static int complement_operand(
        const struct op *op, const struct product *p, const struct keys *keys, int j)
{
	const struct guard_range *last = access_guard(&op->kernel->operand[j], p->key);
	for (int i = 0; i < op->operands; i++) {
		const struct access *access = &op->kernel->operand[i];
		const struct guard_range *guard = access_guard(access, p->key);
		if (guard && access->guards == 1 && guard->low == 0 && guard->high == last->low &&
		        last->high == keys->extent && body_uses_operand(&op->kernel->post, i) &&
		        keys_guard_splits(keys, *guard))
			return i;
	}
	return -1;
}

/* Does the post body ask for active(j) where the guard of j does not consist of blocks? */
static bool must_swap_select(
        const struct op *op, const struct product *p, const struct keys *keys, int j)
{
	const struct guard_range *guard = access_guard(&op->kernel->operand[j], p->key);
	return body_uses_operand(&op->kernel->post, j) && guard &&
	        !keys_guard_splits(keys, *guard) && uses_active(&op->kernel->post, j);
}

/* Can what the post body reads be cut into blocks of keys, or padded with zeros? */
static bool post_can_be_blocked(
        const struct op *op, const struct product *p, const struct keys *keys)
{
	for (int j = 0; j < op->operands; j++) {
		const struct access *access = &op->kernel->operand[j];
		if (access->index_operand >= 0)
			return false;
		if (must_swap_select(op, p, keys, j) &&
		        (access->guards > 1 || complement_operand(op, p, keys, j) < 0 ||
		                !only_in_selects(&op->kernel->post, j)))
			return false;
	}
	return true;
}

/* select(active(j), a, b) -> select(active(i), b, a), where i is the complement of j.  Operand j is
 * padded to whole blocks, so its guard no longer tells the keys apart; that of i does. */
static void swap_selects(struct quantizer *q, const struct product *p, const struct keys *keys)
{
	struct op *op = p->op;
	struct body *post = &op->kernel->post;
	for (int j = 0; j < op->operands; j++) {
		if (!must_swap_select(op, p, keys, j))
			continue;
		int before = complement_operand(op, p, keys, j);
		post->node = arena_copy(
		        q->module->arena, post->node, sizeof *post->node * (size_t)post->count);
		for (int n = 0; n < post->count; n++) {
			struct node *node = &post->node[n];
			if (node->kind != NODE_OP || node->code != OP_SELECT ||
			        !is_active(&post->node[node->argument[0]], j))
				continue;
			int yes = node->argument[1];
			node->argument[1] = node->argument[2];
			node->argument[2] = yes;
		}
		for (int n = 0; n < post->count; n++)
			if (is_active(&post->node[n], j))
				post->node[n].integer = before;
	}
}

/* Matches the product of an operand with rows of a cache and of this launch. */
static bool match_product(const struct quantizer *q, struct op *op, struct product *p)
{
	const struct kernel *kernel = op->kernel;
	*p = (struct product){ .op = op };
	return kernel_has_reduction(kernel) && !kernel->ordered && !kernel->result.offset &&
	        kernel->type == type_float(q->module, 32) && product_operands(q, op, p) &&
	        product_loops(kernel, p);
}

/* ---- caches */

/* Do the strides walk a tensor [...][rows][inner], the rows by loop `key`? */
static bool walks_rows(
        const struct kernel *kernel, const int64_t *stride, int key, int64_t inner, int64_t rows)
{
	for (int l = 0; l < kernel->loops; l++)
		if (l != key && stride[l] && stride[l] * kernel->loop[l].extent > inner &&
		        stride[l] % (inner * rows))
			return false;
	return stride[key] == inner || rows == 1;
}

/* The copy's loop whose stride in its operand divides `own` and that covers `points` points of it;
 * -1: none. */
static int copy_loop(const struct kernel *copy, int64_t own, int64_t points)
{
	int found = -1;
	for (int m = 0; own > 0 && points > 1 && m < copy->loops; m++) {
		int64_t stride = copy->operand[0].stride[m];
		if (stride > 0 && own % stride == 0 &&
		        own * points <= stride * copy->loop[m].extent)
			found = m;
	}
	return found;
}

/* By loop of the product: strides in `row`, which is the product's operand with the launch's rows,
 * or a copy of the part that it reads.  NULL: it is something else. */
static const int64_t *row_strides(
        struct arena *arena, const struct product *p, const struct value *row)
{
	const struct kernel *kernel = p->op->kernel;
	const struct access *read = &kernel->operand[p->fresh];
	if (row == p->op->operand[p->fresh])
		return read->offset ? NULL : read->stride;
	if (!row->def || row->def->code != OP_KERNEL || !kernel_is_copy(row->def) ||
	        row->def->operand[0] != p->op->operand[p->fresh])
		return NULL;
	const struct kernel *copy = row->def->kernel;
	if (copy->operand[0].offset != read->offset || copy->result.offset)
		return NULL;
	int64_t *stride = ARENA_ARRAY(arena, int64_t, kernel->loops);
	for (int l = 0; l < kernel->loops; l++) {
		int64_t own = read->stride[l];
		int64_t points = l == p->key ? read->guard->high : kernel->loop[l].extent;
		int inside = copy_loop(copy, own, points);
		if (own && points > 1 && inside < 0)
			return NULL;
		stride[l] = 0;
		if (inside >= 0)
			stride[l] =
			        own / copy->operand[0].stride[inside] * copy->result.stride[inside];
	}
	return stride;
}

/* The result of main that is the next value of the state `name`; -1: none. */
static int state_result(const struct quantizer *q, const struct attr *name)
{
	const struct op *last = q->main->region[0]->last;
	int result = -1;
	for (int r = 0; name && r < last->operands; r++) {
		const struct attr *other = function_result_attr(q->main, r, KEY_STREAM_NAME);
		if (other && text_same(other->text, name->text) &&
		        function_result_attr(q->main, r, KEY_STREAM_POSITION))
			result = r;
	}
	return result;
}

/* Is the product's past operand a cache that only it reads, and to which main appends the product's
 * fresh rows? */
static bool match_cache(const struct quantizer *q, const struct product *p, const struct keys *keys,
        struct cache *cache)
{
	const struct op *last = q->main->region[0]->last;
	const struct access *read = &p->op->kernel->operand[p->past];
	cache->past = p->op->operand[p->past];
	cache->argument = cache->past->index;
	cache->result =
	        state_result(q, function_argument_attr(q->main, cache->argument, KEY_STREAM_NAME));
	if (cache->result < 0 || cache->past->uses != 1)
		return false;
	const struct attr *axis = function_result_attr(q->main, cache->result, KEY_STREAM_AXIS);
	if (!axis)
		return false;
	cache->fresh = last->operand[cache->result];
	cache->stride = row_strides(q->module->arena, p, cache->fresh);
	const struct type *past = cache->past->type;
	const struct type *fresh = cache->fresh->type;
	cache->axis = (int)axis->integer;
	cache->inner = 1;
	for (int d = cache->axis + 1; d < past->rank; d++)
		cache->inner *= past->shape[d];
	return past->rank == fresh->rank && past->shape[cache->axis] == keys->past &&
	        fresh->shape[cache->axis] == keys->fresh &&
	        read->offset == -keys->fresh * cache->inner &&
	        walks_rows(p->op->kernel, read->stride, p->key, cache->inner, keys->past) &&
	        cache->stride &&
	        walks_rows(p->op->kernel, cache->stride, p->key, cache->inner, keys->fresh);
}

/* Keys of a block, for rows of so many numbers.  Many tokens: a first block of a prompt has no
 * other keys than the launch's own, so no more than these fill, down to BLOCK_LEAST.  One token:
 * the work on the last block is on the critical path, and wide rows arrive slowly. */
static int64_t block_of(const struct keys *keys, int64_t numbers)
{
	int64_t block = keys->fresh == 1 && numbers > STATE_GROUP ? WIDE_BLOCK : STATE_GROUP;
	while (keys->fresh > FEW_TOKENS && block > BLOCK_LEAST && block / 2 >= keys->fresh)
		block /= 2;
	return keys->extent < block ? keys->extent : block;
}

static struct keys keys_of(const struct quantizer *q, const struct product *p)
{
	const struct kernel *kernel = p->op->kernel;
	const struct loop *loop = &kernel->loop[p->key];
	struct keys keys = { .fresh = kernel->operand[p->fresh].guard->high,
		.extent = loop->extent,
		.trip = loop->run_time };
	keys.past = keys.extent - keys.fresh;
	keys.block = block_of(&keys, kernel->operand[p->past].stride[p->key]);
	keys.blocks = (keys.extent + keys.block - 1) / keys.block;
	keys.lead = q->scheme->lead ? q->scheme->lead : keys.fresh;
	/* scheme->lead is set for a design with two phases: it suits launches of up to that many
	 * tokens */
	keys.shared_by_phases = q->scheme->lead;
	keys.rows = keys.shared_by_phases ? keys.lead + keys.past + STATE_GROUP - 1
	                                  : keys_first(&keys) + keys.block * keys.blocks;
	if (keys.trip)
		keys.count = q->main->region[0]->argument[function_argument_named(
		        q->main, sliding_window_symbol(q->module, keys.trip->symbol))];
	return keys;
}

static bool keys_same(const struct keys *left, const struct keys *right)
{
	return left->fresh == right->fresh && left->extent == right->extent &&
	        run_time_same(left->trip, right->trip);
}

/* Can the keys be cut into blocks, at run time as well? */
static bool keys_fit(const struct keys *keys)
{
	return keys_guard_splits(keys, (struct guard_range){ .high = keys->fresh }) &&
	        keys->fresh <= keys->lead &&
	        (!keys->trip || (keys->trip->tile == 1 && keys->trip->plus == keys->fresh));
}

static bool rows_fit(const struct attention *a)
{
	return a->scores.op->kernel->loop[a->scores.reduction].extent == a->k.inner;
}

/* ---- arguments and results of main */

/* Sets item `index` of an attribute that is a list. */
static void set_item(struct module *module, struct op *op, enum attr_key list, int index,
        const struct attr *value)
{
	const struct attr *old = attr_get(op, list);
	const struct attr **items = ARENA_ARRAY(module->arena, const struct attr *, old->count + 1);
	int count = index < old->count ? old->count : index + 1;
	for (int i = 0; i < old->count; i++)
		items[i] = old->items[i].value;
	items[index] = value;
	attr_set(module, op, list, attr_array(module, count, items));
}

/* Attribute stream.dims of a cache that is read in whole blocks of rows. */
static const struct attr *blocked_dims(
        struct quantizer *q, const struct keys *keys, int rank, int axis)
{
	struct module *module = q->module;
	const struct run_time_trip *trip = keys_trip(q, keys);
	const struct attr **dim = ARENA_ARRAY(module->arena, const struct attr *, rank);
	int64_t own = keys_fresh_blocks(keys);
	int64_t rows = own * keys->block;
	struct named items[6] = { { key_name(KEY_FIRST),
		                          attr_integer(module, keys_first(keys) + rows) },
		{ key_name(KEY_TILE), attr_integer(module, keys->block) },
		{ key_name(KEY_MOST), attr_integer(module, keys->blocks - own) } };
	int count = 3;
	if (trip) {
		items[count++] =
		        (struct named){ key_name(KEY_SYMBOL), attr_string(module, trip->symbol) };
		items[count++] = (struct named){ key_name(KEY_PLUS),
			attr_integer(module, trip->plus - rows) };
	}
	if (keys->shared_by_phases)
		items[count++] = (struct named){ key_name(KEY_MAX_WORD), attr_integer(module, 1) };
	for (int d = 0; d < rank; d++)
		dim[d] = attr_string(module, "");
	dim[axis] = attr_dictionary(module, count, items);
	return attr_array(module, rank, dim);
}

/* The type of the cache of bytes, or of its scales. */
static const struct type *cache_type(struct module *module, const struct cache *cache,
        const struct type *like, int64_t rows, bool scales)
{
	int rank = scales ? cache->axis + 1 : like->rank;
	int64_t *shape = arena_copy(module->arena, like->shape, sizeof *shape * (size_t)like->rank);
	shape[cache->axis] = rows;
	return type_shaped(module, TYPE_TENSOR, rank, shape,
	        scales ? type_float(module, 16) : type_integer(module, 8));
}

static const struct attr *argument_attr(struct quantizer *q, const struct attention *a,
        const struct cache *cache, const char *name, int rank)
{
	struct module *module = q->module;
	const struct attr *attr = attr_get(q->main, KEY_ARG_ATTRS)->items[cache->argument].value;
	return attr_with(module,
	        attr_with(module, attr, KEY_STREAM_NAME, attr_string(module, name)),
	        KEY_STREAM_DIMS, blocked_dims(q, &a->keys, rank, cache->axis));
}

static const struct attr *result_attr(
        struct quantizer *q, const struct attention *a, const struct cache *cache, const char *name)
{
	struct module *module = q->module;
	const struct attr *attr = attr_get(q->main, KEY_RES_ATTRS)->items[cache->result].value;
	attr = attr_with(module,
	        attr_with(module, attr, KEY_STREAM_NAME, attr_string(module, name)),
	        KEY_STREAM_LEAD, attr_integer(module, a->keys.lead));
	return attr_with(module, attr, KEY_STREAM_PAST, attr_integer(module, a->keys.past));
}

/* Turns the argument into bytes and adds one for their scales. */
static void make_state(struct quantizer *q, const struct attention *a, struct cache *cache)
{
	struct module *module = q->module;
	const char *name = function_argument_attr(q->main, cache->argument, KEY_STREAM_NAME)->text;
	const char *scale = text_format(module->arena, "%s.scale", name);
	int64_t rows = a->keys.rows;
	const struct type *old = cache->past->type;
	VEC_PUSH(module->arena, &q->attributes, argument_attr(q, a, cache, scale, cache->axis + 1));
	cache->past_scale = block_add_argument(
	        module, q->main->region[0], cache_type(module, cache, old, rows, true));
	cache->past->type = cache_type(module, cache, old, rows, false);
	set_item(module, q->main, KEY_ARG_ATTRS, cache->argument,
	        argument_attr(q, a, cache, name, old->rank));
}

/* Sets the result types of main to those of its return. */
static void set_output_types(struct module *module, struct op *function)
{
	const struct op *last = function->region[0]->last;
	const struct type **types =
	        ARENA_ARRAY(module->arena, const struct type *, last->operands + 1);
	const struct type *type = attr_get(function, KEY_FUNCTION_TYPE)->type;
	for (int r = 0; r < last->operands; r++)
		types[r] = last->operand[r]->type;
	attr_set(module, function, KEY_FUNCTION_TYPE,
	        attr_type(module,
	                type_function(module, type->inputs, type->input, last->operands, types)));
}

/* Returns the launch's rows as bytes, and their scales as an added result. */
static void make_result(struct quantizer *q, const struct attention *a, const struct cache *cache)
{
	struct module *module = q->module;
	struct op *last = q->main->region[0]->last;
	const char *name = function_result_attr(q->main, cache->result, KEY_STREAM_NAME)->text;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, last->operands + 1);
	int count = last->operands;
	for (int r = 0; r < count; r++)
		operand[r] = last->operand[r];
	operand[cache->result] = cache->q;
	operand[count] = cache->scale;
	op_set_operands(module, last, count + 1, operand);
	set_item(module, q->main, KEY_RES_ATTRS, count,
	        result_attr(q, a, cache, text_format(module->arena, "%s.scale", name)));
	set_item(module, q->main, KEY_RES_ATTRS, cache->result, result_attr(q, a, cache, name));
	set_output_types(module, q->main);
}

/* Matches an attention from its product with keys on.  false: it stays as it is. */
static bool match_attention(struct quantizer *q, struct op *op, struct attention *a)
{
	*a = (struct attention){ 0 };
	if (op->code != OP_KERNEL || !match_product(q, op, &a->scores) ||
	        a->scores.reduction == a->scores.key)
		return false;
	a->keys = keys_of(q, &a->scores);
	if (!keys_fit(&a->keys) || !post_can_be_blocked(op, &a->scores, &a->keys) ||
	        !match_cache(q, &a->scores, &a->keys, &a->k) || !rows_fit(a) || !keys_follow(q, a))
		return false;
	if (!match_product(q, a->values.op, &a->values) || a->values.reduction != a->values.key)
		return false;
	struct keys other = keys_of(q, &a->values);
	if (keys_can_rotate_masks(a)) {
		a->keys.fresh_last = true;
		a->keys.lead = 0;
	}
	return keys_same(&a->keys, &other) &&
	        post_can_be_blocked(a->values.op, &a->values, &a->keys) &&
	        match_cache(q, &a->values, &a->keys, &a->v) && a->k.argument != a->v.argument;
}

static void quantize_attention(struct quantizer *q, struct attention *a)
{
	struct cache *cache[] = { &a->k, &a->v };
	const struct product *product[] = { &a->scores, &a->values };
	if (a->keys.fresh_last)
		keys_rotate_masks(q, a);
	for (int i = 0; i < 2; i++) {
		swap_selects(q, product[i], &a->keys);
		attention_rows(q, cache[i], product[i]->op);
		make_state(q, a, cache[i]);
		make_result(q, a, cache[i]);
	}
	bool online_max = softmax_is_online(q, a);
	keys_block(q, a);
	attention_scores(q, a);
	if (online_max)
		attention_softmax(q, a);
	attention_values(q, a);
}

/* ---- bf16 */

/* Rounds the launch's rows to bf16 where they are made, and lets the product extend them and the
 * cache to f32. */
static void store_as_bf16(struct quantizer *q, const struct product *p, const struct cache *cache)
{
	struct module *module = q->module;
	struct op *op = p->op;
	struct op *last = q->main->region[0]->last;
	const struct type *row = cache->fresh->type;
	const struct type *past = cache->past->type;
	const struct type *half = type_bfloat(module);
	struct value *from = cache->fresh;
	const struct kernel_spec spec = { .at = op,
		.suffix = "row_bf16",
		.loops = 1,
		.operands = 1,
		.operand = &from,
		.result = type_shaped(module, TYPE_TENSOR, row->rank, row->shape, half) };
	struct op *rounded = quantize_kernel(q, &spec);
	rounded->kernel->loop[0].extent = type_elements(row);
	rounded->kernel->operand[0].stride[0] = rounded->kernel->result.stride[0] = 1;
	struct body *body = &rounded->kernel->update;
	body->result = body_op(module, body, OP_TRUNCF, half,
	        body_operand(module, body, type_float(module, 32), 0), 0, 0);
	bool *reads = ARENA_ARRAY(module->arena, bool, op->operands);
	reads[p->past] = reads[p->fresh] = true;
	op->kernel->operand[p->fresh].offset = 0;
	op->kernel->operand[p->fresh].stride = arena_copy(
	        module->arena, cache->stride, sizeof *cache->stride * (size_t)op->kernel->loops);
	op->operand[p->fresh] = last->operand[cache->result] = rounded->result[0];
	cache->past->type = type_shaped(module, TYPE_TENSOR, past->rank, past->shape, half);
	widen_operands(module, op, reads);
	set_output_types(module, q->main);
}

static void store_caches_as_bf16(struct quantizer *q)
{
	struct block *block = q->main->region[0];
	ir_count_uses(block);
	for (struct op *op = block->first; op; op = op->next) {
		struct product p;
		struct cache cache;
		struct keys keys;
		if (op->code != OP_KERNEL || !match_product(q, op, &p))
			continue;
		keys = keys_of(q, &p);
		if (match_cache(q, &p, &keys, &cache))
			store_as_bf16(q, &p, &cache);
	}
}

static void store_caches_as_bytes(struct quantizer *q)
{
	struct block *block = q->main->region[0];
	ir_clear_data(block);
	ir_count_uses(block);
	for (struct op *op = block->first, *next; op; op = next) {
		struct attention a;
		struct op *before = op->previous;
		next = op->next;
		if (!match_attention(q, op, &a))
			continue;
		quantize_attention(q, &a); /* removes operations after op, too */
		next = before ? before->next : block->first;
	}
	if (q->rotated_masks.count)
		ir_drop_unread_kernels(block);
}

bool quantize_kv_cache(struct pass_context *context, struct module *module)
{
	struct quantizer q;
	if (!context->quant || !context->quant->state)
		return true;
	if (!quantizer_begin(&q, context, module))
		return false;
	/* the quotients of the probabilities would hide the product with the values */
	if (q.scheme->state == 8 && !defer_softmax_division(context, module))
		return false;
	if (q.scheme->state == 8)
		store_caches_as_bytes(&q);
	else
		store_caches_as_bf16(&q);
	quantizer_end(&q);
	return true;
}
