/* The kernels between scores and values, once keys are padded to whole blocks: which value the
 * padding has at each of them, and their new loops.
 *     key: 0 .. extent  ->  block: 0 .. blocks, key of the block: 0 .. block
 * Scores of padding are minus infinity, so its exponentials are 0 and change no sum. */
#include "ir/sliding_window.h"
#include "quantize/quantize_kv_cache.h"

/* What a value has for keys beyond the last one. */
enum beyond {
	BEYOND_NOTHING, /* the value has no numbers for keys */
	BEYOND_LOW,     /* minus infinity */
	BEYOND_ZERO,
	BEYOND_UNKNOWN
};

/* A value with a number for each key; it is the `data` of the value. */
struct keyed {
	enum beyond beyond;
	int64_t stride; /* between keys */
};

static const struct keyed *keyed_of(const struct value *value)
{
	return value->data;
}

const struct type *keys_type(
        struct module *module, const struct type *type, int64_t stride, int64_t extent, int64_t to)
{
	int64_t pitch = 1;
	for (int d = type->rank - 1; d >= 0; d--) {
		if (pitch == stride && type->shape[d] == extent) {
			int64_t *shape = arena_copy(
			        module->arena, type->shape, sizeof *shape * (size_t)type->rank);
			shape[d] = to;
			return type_shaped(module, TYPE_TENSOR, type->rank, shape, type->element);
		}
		pitch *= type->shape[d];
	}
	return NULL;
}

/* Notes that the value has a number for each key.  false: padding it is not possible. */
static bool set_keyed(struct quantizer *q, const struct attention *a, struct value *value,
        enum beyond beyond, int64_t stride)
{
	struct keyed *keyed = ARENA_NEW(q->module->arena, struct keyed);
	*keyed = (struct keyed){ beyond, stride };
	value->data = keyed;
	return beyond != BEYOND_UNKNOWN &&
	        keys_type(q->module, value->type, stride, a->keys.extent, a->keys.extent);
}

/* The loop that walks all keys of every keyed operand; -1: there is no such single loop. */
static int key_loop(const struct attention *a, const struct op *op)
{
	int key = -1;
	for (int j = 0; j < op->operands; j++) {
		const struct keyed *keyed = keyed_of(op->operand[j]);
		const struct access *access = &op->kernel->operand[j];
		if (!keyed)
			continue;
		int loop = 0;
		while (loop < op->kernel->loops && access->stride[loop] != keyed->stride)
			loop++;
		bool whole = loop < op->kernel->loops &&
		        op->kernel->loop[loop].extent == a->keys.extent &&
		        run_time_same(op->kernel->loop[loop].run_time, a->keys.trip);
		int64_t above = keyed->stride * a->keys.extent;
		for (int l = 0; whole && l < op->kernel->loops; l++)
			whole = l == loop || access->stride[l] % above == 0 ||
			        access->stride[l] * op->kernel->loop[l].extent <= keyed->stride;
		if (!whole || !access_is_plain(access) || access->offset % above >= keyed->stride ||
		        (key >= 0 && key != loop))
			return -1;
		key = loop;
	}
	return key;
}

/* What a node computes of padding; known: by node, the arguments come before it. */
static enum beyond beyond_node(
        const struct op *op, const struct node *node, const enum beyond *known)
{
	if (node->kind == NODE_OPERAND) {
		const struct keyed *keyed = keyed_of(op->operand[node->integer]);
		return keyed ? keyed->beyond : BEYOND_NOTHING;
	}
	enum beyond argument[3] = { BEYOND_NOTHING, BEYOND_NOTHING, BEYOND_NOTHING };
	enum beyond left;
	enum beyond right;
	for (int i = 0; i < body_arguments(node); i++)
		argument[i] = known[node->argument[i]];
	left = argument[0];
	right = argument[1];
	if (argument[2] != BEYOND_NOTHING)
		return BEYOND_UNKNOWN;
	if (left == BEYOND_NOTHING && right == BEYOND_NOTHING)
		return BEYOND_NOTHING;
	if (node->code == OP_EXP && left == BEYOND_LOW)
		return BEYOND_ZERO;
	if (node->code == OP_SUBF && left == BEYOND_LOW && right == BEYOND_NOTHING)
		return BEYOND_LOW;
	if (node->code == OP_ADDF && (left == BEYOND_LOW || right == BEYOND_LOW) &&
	        left != BEYOND_ZERO && right != BEYOND_ZERO && left != BEYOND_UNKNOWN &&
	        right != BEYOND_UNKNOWN)
		return BEYOND_LOW;
	if (node->code == OP_MULF && (left == BEYOND_ZERO || right == BEYOND_ZERO) &&
	        (left == BEYOND_NOTHING || right == BEYOND_NOTHING))
		return BEYOND_ZERO;
	if (node->code == OP_DIVF && left == BEYOND_ZERO && right == BEYOND_NOTHING)
		return BEYOND_ZERO;
	return BEYOND_UNKNOWN;
}

/* What the body gives at node `result`. */
static enum beyond beyond_body(struct arena *arena, const struct op *op, int result)
{
	const struct body *body = &op->kernel->update;
	enum beyond *known = ARENA_ARRAY(arena, enum beyond, body->count + 1);
	for (int n = 0; n <= result; n++)
		known[n] = beyond_node(op, &body->node[n], known);
	return known[result];
}

/* Does a reduction over the keys ignore padding?  So the maximum of numbers that are minus
 * infinity there, and the sum of numbers that are 0. */
static bool ignores_padding(struct arena *arena, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	int term;
	enum op_code combine = kernel_combine(kernel, &term);
	if (combine == OP_NONE)
		return false;
	enum beyond beyond = beyond_body(arena, op, term);
	return ((combine == OP_MAXIMUMF || combine == OP_MAXNUMF) && beyond == BEYOND_LOW &&
	               kernel->init < 0 && kernel->init * 0.5 == kernel->init) ||
	        (combine == OP_ADDF && beyond == BEYOND_ZERO && kernel->init == 0);
}

/* Notes one kernel that reads keyed values.  false: it cannot be padded. */
static bool follow_kernel(struct quantizer *q, struct attention *a, struct op *op)
{
	struct kernel *kernel = op->kernel;
	int key = op->code == OP_KERNEL ? key_loop(a, op) : -1;
	if (key < 0 || kernel->ordered || body_has(&kernel->update, OP_INDEX) ||
	        kernel->result.guards)
		return false;
	/* it reads rows by guards: the product with values, if it is matched as such */
	if (kernel_is_guarded(op, key)) {
		bool first = !a->values.op;
		a->values.op = op;
		return first;
	}
	VEC_PUSH(q->module->arena, &a->softmax_kernel, ((struct softmax_kernel){ op, key }));
	if (kernel->loop[key].reduction)
		return ignores_padding(q->module->arena, op);
	if (kernel_has_reduction(kernel) || kernel->result.offset)
		return false;
	return set_keyed(q, a, op->result[0],
	        beyond_body(q->module->arena, op, kernel->update.result),
	        kernel->result.stride[key]);
}

/* Is the only keyed operand of the product with values 0 in padding? */
static bool ends_in_zeros(const struct attention *a)
{
	const struct op *op = a->values.op;
	int operands = 0;
	for (int j = 0; op && j < op->operands; j++) {
		const struct keyed *keyed = keyed_of(op->operand[j]);
		if (keyed && keyed->beyond != BEYOND_ZERO)
			return false;
		operands += keyed != NULL;
	}
	return operands == 1;
}

bool keys_follow(struct quantizer *q, struct attention *a)
{
	struct op *scores = a->scores.op;
	bool good = set_keyed(
	        q, a, scores->result[0], BEYOND_LOW, scores->kernel->result.stride[a->scores.key]);
	for (struct op *op = scores->next; good && op; op = op->next) {
		bool reads = false;
		for (int j = 0; j < op->operands; j++)
			reads = reads || keyed_of(op->operand[j]);
		good = !reads || follow_kernel(q, a, op);
	}
	good = good && ends_in_zeros(a);
	scores->result[0]->data = good ? scores->result[0]->data : NULL;
	for (size_t i = 0; !good && i < a->softmax_kernel.count; i++)
		a->softmax_kernel.data[i].op->result[0]->data = NULL;
	return good;
}

/* ---- the row of this launch after those of the past */

/* Has the operand exactly one number per key, moved by loop `key` only? */
static bool is_mask(const struct attention *a, const struct op *op, int operand, int key)
{
	const struct access *access = &op->kernel->operand[operand];
	bool plain = access_is_plain(access) && !access->offset && access->stride[key] == 1 &&
	        type_elements(op->operand[operand]->type) == a->keys.extent &&
	        op->operand[operand]->def;
	for (int l = 0; l < op->kernel->loops; l++)
		plain = plain && (l == key || !access->stride[l]);
	return plain;
}

bool keys_can_rotate_masks(const struct attention *a)
{
	const struct product *scores = &a->scores;
	bool good = a->keys.fresh == 1 && a->keys.trip && a->keys.trip->plus == 1 &&
	        a->keys.blocks > 1 && !a->keys.shared_by_phases &&
	        !body_has(&scores->op->kernel->post, OP_INDEX);
	for (int j = 0; good && j < scores->op->operands; j++)
		good = j == scores->past || j == scores->fresh ||
		        !scores->op->kernel->operand[j].stride[scores->key] ||
		        is_mask(a, scores->op, j, scores->key);
	for (size_t i = 0; good && i < a->softmax_kernel.count; i++) {
		const struct softmax_kernel *softmax = &a->softmax_kernel.data[i];
		for (int j = 0; good && j < softmax->op->operands; j++)
			good = keyed_of(softmax->op->operand[j]) ||
			        !softmax->op->kernel->operand[j].stride[softmax->key];
	}
	return good;
}

int keys_past(struct quantizer *q, const struct keys *keys, struct body *body, int count)
{
	const struct type *index = type_index(q->module);
	int symbol = body_op(q->module, body, OP_INDEX_CAST, index,
	        body_operand(q->module, body, type_scalar(keys->count->type), count), 0, 0);
	return body_op(q->module, body, OP_MAXSI, index, symbol,
	        body_integer(q->module, body, index, 0), 0);
}

/* ---- blocks */

const struct run_time_trip *keys_trip(struct quantizer *q, const struct keys *keys)
{
	if (!keys->trip)
		return NULL;
	struct run_time_trip *trip = ARENA_NEW(q->module->arena, struct run_time_trip);
	int64_t fresh_blocks = (keys->fresh + keys->block - 1) / keys->block;
	/* past rows in a block with fresh ones: a sliding window never skips that block */
	int64_t unskipped = 0;
	if (!keys->fresh_last)
		unskipped = fresh_blocks * keys->block - keys->fresh;
	const char *symbol =
	        sliding_window_in_tiles(q->module, keys->trip->symbol, keys->block, unskipped);
	*trip = (struct run_time_trip){ .symbol = symbol,
		.plus = keys->trip->plus,
		.tile = keys->block,
		.most = keys->blocks };
	return trip;
}

void keys_spread(const struct keys *keys, int64_t stride, int loops, struct access *access)
{
	int64_t above = stride * keys->extent;
	int64_t room = stride * keys->block * keys->blocks;
	for (int l = 0; l < loops; l++)
		if (access->stride[l] && access->stride[l] % above == 0)
			access->stride[l] = access->stride[l] / above * room;
	access->offset = access->offset / above * room + access->offset % above;
}

struct value *keys_fill(
        struct quantizer *q, const struct attention *a, struct op *op, int operand, int key)
{
	struct module *module = q->module;
	const struct kernel *from = op->kernel;
	struct access *access = &op->kernel->operand[operand];
	int loops = 0;
	int *source = ARENA_ARRAY(module->arena, int, from->loops + 1);
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, from->loops + 1);
	for (int l = 0; l < from->loops; l++)
		if (access->stride[l]) {
			shape[loops] =
			        l == key ? a->keys.block * a->keys.blocks : from->loop[l].extent;
			source[loops++] = l;
		}
	const struct type *scalar = type_scalar(op->operand[operand]->type);
	const struct kernel_spec spec = { .at = op,
		.suffix = text_format(module->arena, "padded%d", operand),
		.loops = loops,
		.operands = 1,
		.operand = &op->operand[operand],
		.result = type_shaped(module, TYPE_TENSOR, loops, shape, scalar) };
	struct op *copy = quantize_kernel(q, &spec);
	struct access *read = &copy->kernel->operand[0];
	struct access filled = access_empty(module, from->loops);
	int64_t pitch = 1;
	for (int i = loops - 1; i >= 0; i--) {
		copy->kernel->loop[i].extent = shape[i];
		read->stride[i] = access->stride[source[i]];
		copy->kernel->result.stride[i] = filled.stride[source[i]] = pitch;
		pitch *= shape[i];
		if (source[i] == key)
			access_add_guard(module, read,
			        (struct guard_range){
			                .loop = i, .low = 0, .high = a->keys.extent });
		for (int g = 0; g < access->guards; g++)
			if (access->guard[g].loop == source[i])
				access_add_guard(module, read,
				        (struct guard_range){ .loop = i,
				                .low = access->guard[g].low,
				                .high = access->guard[g].high });
	}
	read->offset = access->offset;
	copy->kernel->update.result = body_operand(module, &copy->kernel->update, scalar, 0);
	*access = filled;
	return copy->result[0];
}

/* Lets a kernel of the softmax walk blocks of keys in padded tensors. */
static void block_softmax_kernel(
        struct quantizer *q, const struct attention *a, const struct softmax_kernel *softmax_kernel)
{
	struct op *op = softmax_kernel->op;
	struct kernel *kernel = op->kernel;
	const struct keys *keys = &a->keys;
	bool padded = keys->block * keys->blocks > keys->extent;
	for (int j = 0; padded && j < op->operands; j++) {
		if (keyed_of(op->operand[j]))
			keys_spread(keys, keyed_of(op->operand[j])->stride, kernel->loops,
			        &kernel->operand[j]);
		else if (kernel->operand[j].stride[softmax_kernel->key])
			op->operand[j] = keys_fill(q, a, op, j, softmax_kernel->key);
	}
	const struct keyed *made = keyed_of(op->result[0]);
	if (padded && made) {
		keys_spread(keys, made->stride, kernel->loops, &kernel->result);
		op->result[0]->type = keys_type(q->module, op->result[0]->type, made->stride,
		        keys->extent, keys->block * keys->blocks);
	}
	kernel->loop[softmax_kernel->key].extent = keys->block * keys->blocks;
	kernel->loop[softmax_kernel->key].run_time = NULL;
	if (keys->blocks == 1)
		return;
	bool split = kernel_split_loop(q->module, op, softmax_kernel->key, keys->block);
	INVARIANT(q->module->guard, split, "kernel %s does not fall into blocks of keys",
	        kernel->name);
	kernel->loop[softmax_kernel->key].run_time = keys_trip(q, keys);
}

void keys_block(struct quantizer *q, const struct attention *a)
{
	const struct product *values = &a->values;
	for (size_t i = 0; i < a->softmax_kernel.count; i++)
		block_softmax_kernel(q, a, &a->softmax_kernel.data[i]);
	keys_spread(&a->keys, keyed_of(values->op->operand[values->x])->stride,
	        values->op->kernel->loops, &values->op->kernel->operand[values->x]);
}
