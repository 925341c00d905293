/* Keys and values as bytes (`kv=i8`): a state of rows becomes one of integers within +-119 and
 * one of f16 scales, a scale for each row of a head.
 *     s = max |row| / 119 as f16, 1 for zeros;  row' = clamp(round half even(row / s))
 * Rows are rounded where they are made, and attention sees the rounded ones of this launch as
 * well.  Products are of integers:
 *     score = Σ_g (float)(Σ q' * k') * (s_q * s_k)         the query in groups of 128 numbers
 *     value = Σ_b (float)(Σ p' * v') * s_p                 p = probability * s_v, in groups of 128 keys (fewer where a launch has a few tokens, or one and wide rows)
 * The maximum of the scores may run from group to group of keys (blockwise_softmax.c).
 * States of another form stay as they are.  A state's rows lie `stream.lead` rows behind its
 * beginning: the rows of a launch come before those of the past in attention, and with room for
 * them there the keys of a block lie one after the other, whatever lies in that room.  The row
 * of a launch of one token, of which others are counted at run time, comes behind them instead,
 * where it will lie: the last block alone waits for it, and a layer that looks back only so far
 * has no block for it and rows that it does not see. */
#include "ir/workload.h"
#include "ir/sliding_window.h"
#include "ir/kernel_signature.h"
#include "quantize/quantize_kv_cache.h"

/* keys that share a scale of the probabilities, at least: for each block a scale is made, and
 * each sum of values scaled */
#define BLOCK_LEAST 32
/* of rows of more than a group of numbers, where a launch has one token */
#define WIDE_BLOCK 64

static bool is_f32_state(const struct quantizer *q, const struct value *value)
{
	const struct attr *role = value->def || value->block != q->main->region[0]
	        ? NULL
	        : function_argument_attr(q->main, value->index, KEY_STREAM_ROLE);
	return role && text_same(role->text, "state") &&
	        type_scalar(value->type) == type_float(q->module, 32);
}

/* The operand that stands where its own guard says, else `otherwise`: select(active(j), j,
 * otherwise).  -1: another form. */
static int guarded_operand(
        const struct body *body, const struct node *choice, const struct node **otherwise)
{
	if (choice->kind != NODE_OP || choice->code != OP_SELECT)
		return -1;
	const struct node *active = &body->node[choice->argument[0]];
	const struct node *operand = &body->node[choice->argument[1]];
	*otherwise = &body->node[choice->argument[2]];
	return active->kind == NODE_OP && active->code == OP_ACTIVE &&
	                operand->kind == NODE_OPERAND && active->integer == operand->integer
	        ? (int)operand->integer
	        : -1;
}

/* x * (a where a is read, else b): the operands of the term. */
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
	int no = yes < 0                     ? -1
	        : rest->kind == NODE_OPERAND ? (int)rest->integer
	                                     : guarded_operand(body, rest, &nothing);
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
		p->reduction = kernel->loop[l].reduction ? l : p->reduction;
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

/* Is whether the operand is read asked for by choices alone? */
static bool only_in_selects(const struct body *body, int operand)
{
	for (int n = 0; n < body->count; n++)
		for (int i = 0; i < body_arguments(&body->node[n]); i++)
			if (is_active(&body->node[body->node[n].argument[i]], operand) &&
			        (body->node[n].code != OP_SELECT || i))
				return false;
	return !is_active(&body->node[body->result], operand);
}

/* The operand that is read for the keys in front of those for which operand j is, up to the last
 * one; -1: none is.  Then j stands wherever this one does not. */
static int read_before(const struct op *op, const struct product *p, const struct keys *keys, int j)
{
	const struct guard_range *late = access_guard(&op->kernel->operand[j], p->key);
	for (int i = 0; i < op->operands; i++) {
		const struct access *access = &op->kernel->operand[i];
		const struct guard_range *guard = access_guard(access, p->key);
		if (guard && access->guards == 1 && guard->low == 0 && guard->high == late->low &&
		        late->high == keys->extent && body_uses_operand(&op->kernel->post, i) &&
		        keys_guard_splits(keys, *guard))
			return i;
	}
	return -1;
}

static bool must_swap_select(
        const struct op *op, const struct product *p, const struct keys *keys, int j)
{
	const struct guard_range *guard = access_guard(&op->kernel->operand[j], p->key);
	return body_uses_operand(&op->kernel->post, j) && guard &&
	        !keys_guard_splits(keys, *guard) && uses_active(&op->kernel->post, j);
}

/* What the post body reads of some keys only is cut into blocks like the rows, or can be filled
 * up with zeros. */
static bool product_post(const struct op *op, const struct product *p, const struct keys *keys)
{
	for (int j = 0; j < op->operands; j++) {
		const struct access *access = &op->kernel->operand[j];
		bool swaps = must_swap_select(op, p, keys, j);
		if (access->index_operand >= 0 ||
		        (swaps &&
		                (access->guards > 1 || read_before(op, p, keys, j) < 0 ||
		                        !only_in_selects(&op->kernel->post, j))))
			return false;
	}
	return true;
}

/* A choice of what is read for late keys becomes one of what is read for those in front of them,
 * whose range blocks cut: where late ones are filled up, they no longer tell. */
static void swap_selects(struct quantizer *q, const struct product *p, const struct keys *keys)
{
	struct op *op = p->op;
	struct body *post = &op->kernel->post;
	for (int j = 0; j < op->operands; j++) {
		if (!must_swap_select(op, p, keys, j))
			continue;
		int before = read_before(op, p, keys, j);
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

static bool match_product(const struct quantizer *q, struct op *op, struct product *p)
{
	const struct kernel *kernel = op->kernel;
	*p = (struct product){ .op = op };
	return kernel_has_reduction(kernel) && !kernel->ordered && !kernel->result.offset &&
	        kernel->type == type_float(q->module, 32) && product_operands(q, op, p) &&
	        product_loops(kernel, p);
}

/* ---- states */

/* Do the strides walk rows of `inner` numbers along `key`, whole blocks of `rows` rows outside? */
static bool walks_rows(
        const struct kernel *kernel, const int64_t *stride, int key, int64_t inner, int64_t rows)
{
	for (int l = 0; l < kernel->loops; l++)
		if (l != key && stride[l] && stride[l] * kernel->loop[l].extent > inner &&
		        stride[l] % (inner * rows))
			return false;
	return stride[key] == inner || rows == 1;
}

/* The product's strides in `row`, which is what its operand reads, or a copy of that part of it.
 * NULL: it is something else. */
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
		int inside = -1;
		for (int m = 0; own > 0 && points > 1 && m < copy->loops; m++)
			if (copy->operand[0].stride[m] > 0 &&
			        own % copy->operand[0].stride[m] == 0 &&
			        own * points <= copy->operand[0].stride[m] * copy->loop[m].extent)
				inside = m;
		if (own && points > 1 && inside < 0)
			return NULL;
		stride[l] = inside < 0
		        ? 0
		        : own / copy->operand[0].stride[inside] * copy->result.stride[inside];
	}
	return stride;
}

static bool find_cache(const struct quantizer *q, const struct product *p, const struct keys *keys,
        struct cache *cache)
{
	const struct op *last = q->main->region[0]->last;
	const struct access *read = &p->op->kernel->operand[p->past];
	cache->past = p->op->operand[p->past];
	cache->argument = cache->past->index;
	const struct attr *name = function_argument_attr(q->main, cache->argument, KEY_STREAM_NAME);
	cache->result = -1;
	for (int r = 0; name && r < last->operands; r++) {
		const struct attr *other = function_result_attr(q->main, r, KEY_STREAM_NAME);
		if (other && text_same(other->text, name->text) &&
		        function_result_attr(q->main, r, KEY_STREAM_POSITION))
			cache->result = r;
	}
	const struct attr *axis = cache->result < 0
	        ? NULL
	        : function_result_attr(q->main, cache->result, KEY_STREAM_AXIS);
	if (!axis || cache->past->uses != 1)
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

/* A launch of many tokens begins with a block of its own keys, which as a prompt's first are all
 * that there are: so no more than these fill, if that is no short block. One token waits for
 * what is left to do with the last block, and of wide rows few keys come at a time. */
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
	/* then for whatever the rows of a launch, up to so many */
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

/* ---- main */

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

/* stream.dims of a state that is read in whole blocks. */
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
		dim[d] =
		        d == axis ? attr_dictionary(module, count, items) : attr_string(module, "");
	return attr_array(module, rank, dim);
}

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

/* Main returns what its last operation has. */
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

static bool find_attention(struct quantizer *q, struct op *op, struct attention *a)
{
	*a = (struct attention){ 0 };
	if (op->code != OP_KERNEL || !match_product(q, op, &a->scores) ||
	        a->scores.reduction == a->scores.key)
		return false;
	a->keys = keys_of(q, &a->scores);
	if (!keys_fit(&a->keys) || !product_post(op, &a->scores, &a->keys) ||
	        !find_cache(q, &a->scores, &a->keys, &a->k) || !rows_fit(a) || !keys_follow(q, a))
		return false;
	if (!match_product(q, a->values.op, &a->values) || a->values.reduction != a->values.key)
		return false;
	struct keys other = keys_of(q, &a->values);
	if (keys_can_rotate_masks(a)) {
		a->keys.fresh_last = true;
		a->keys.lead = 0;
	}
	return keys_same(&a->keys, &other) && product_post(a->values.op, &a->values, &a->keys) &&
	        find_cache(q, &a->values, &a->keys, &a->v) && a->k.argument != a->v.argument;
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
	q->made++;
}

/* ---- bf16 */

/* Rows are rounded where they are made; what reads them, or the state, computes in f32 as
 * before. */
static void halve(struct quantizer *q, const struct product *p, const struct cache *cache)
{
	struct module *module = q->module;
	struct op *op = p->op;
	struct op *last = q->main->region[0]->last;
	const struct type *row = cache->fresh->type;
	const struct type *past = cache->past->type;
	const struct type *half = type_bfloat(module);
	const int64_t elements = type_elements(row);
	struct value *from = cache->fresh;
	struct op *rounded = quantize_kernel(q, op, op->kernel->name, "row_bf16", 1, 1, &from,
	        type_shaped(module, TYPE_TENSOR, row->rank, row->shape, half));
	rounded->kernel->loop[0].extent = elements;
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
	q->made++;
}

void quantize_kv_cache_bf16(struct quantizer *q)
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
		if (find_cache(q, &p, &keys, &cache))
			halve(q, &p, &cache);
	}
}

void quantize_kv_cache(struct quantizer *q)
{
	struct block *block = q->main->region[0];
	ir_clear_data(block);
	ir_count_uses(block);
	for (struct op *op = block->first, *next; op; op = next) {
		struct attention a;
		struct op *before = op->previous;
		next = op->next;
		if (!find_attention(q, op, &a))
			continue;
		quantize_attention(q, &a); /* what follows may have gone */
		next = before ? before->next : block->first;
	}
}
