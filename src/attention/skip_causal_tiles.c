/* A token sees none that comes after it.  Attention takes keys and values of all tokens for
 * every tile of queries, and what masks hide of later tiles has no weight; so it need not wait
 * for them. A mask follows from positions, so what a kernel makes at each point of a later
 * tile's key can be followed without data (attention/mask_analysis.h): scores are minus infinity
 * there whatever the key is, exponentials 0, and a maximum or a sum stays as it was.  Where
 * nothing that a layer makes can change, keys and values of later tiles may be any numbers:
 * converters give those of the tile at hand in their place (converter/causal_buffer.h).
 * Needs: attention in tiles.  Guarantees: operands whose later tiles are hidden say so
 * (`later`).  Exact for finite numbers. */
#include "ir/contract.h"
#include "attention/mask_analysis.h"
#include "ir/kernel_edit.h"
#include "attention/attention_passes.h"

#define POINTS_MOST (1 << 20) /* of a kernel that are looked at */

/* A value with a number for every key: what of it later tiles' keys make. */
struct keyed {
	enum known known;
	int64_t stride, tile_stride; /* elements between keys; between tiles of queries */
	int64_t span;                /* keys, those of earlier launches too */
};

struct causal_analysis {
	struct module *module;
	struct arena *arena; /* of one kernel */
	int64_t tokens, tile;
	VEC(struct access *) access;
	VEC(int64_t) pitch;
	bool failed;
};

/* The key that a point of a kernel is about: Σ factor[l] * counter[l] + first, of this launch
 * where that is below its tokens. */
struct key {
	int64_t *factor, first;
	bool known;
};

static bool key_same(const struct key *left, const struct key *right, int loops)
{
	bool same = left->first == right->first;
	for (int l = 0; l < loops; l++)
		same = same && left->factor[l] == right->factor[l];
	return same;
}

/* false: another operand is about another key. */
static bool key_agrees(struct key *key, struct key own, int loops)
{
	if (!key->known)
		*key = own;
	return key_same(key, &own, loops);
}

static int64_t guarded_trip(const struct access *access, const struct kernel *kernel, int loop)
{
	const struct guard_range *guard = access_guard(access, loop);
	return guard ? guard->high - guard->low : kernel->loop[loop].extent;
}

/* Rows that are filled up are their maker's. */
static const struct op *maker_of(const struct op *op, int operand)
{
	const struct op *maker = op->operand[operand]->def;
	return maker && maker->code == OP_PAD_TOKENS ? maker->operand[0]->def : maker;
}

/* Is the operand one that a tiled kernel makes, of which every tile takes all? */
static bool is_shared_by_tiles(const struct causal_analysis *h, const struct op *op, int operand)
{
	const struct op *maker = maker_of(op, operand);
	int64_t tiles = h->tokens / h->tile;
	return maker && maker->parent == op->parent && maker->code == OP_KERNEL &&
	        maker->kernel->tile_outermost && maker->kernel->loop[0].extent == tiles &&
	        op->kernel->loop[0].extent == tiles && !op->kernel->operand[operand].stride[0] &&
	        maker->kernel->result.stride[0] > 0 &&
	        maker->kernel->result.stride[0] % h->tile == 0;
}

/* A row of a tensor of rows: the loops that walk less than all rows, or that guards keep within
 * them. */
static bool key_of_shared(
        const struct causal_analysis *h, const struct op *op, int operand, struct key *key)
{
	const struct kernel *kernel = op->kernel;
	const struct access *access = &kernel->operand[operand];
	int64_t each = maker_of(op, operand)->kernel->result.stride[0] / h->tile;
	int64_t all = each * h->tokens;
	*key = (struct key){ .factor = ARENA_ARRAY(h->arena, int64_t, kernel->loops + 1),
		.first = access->offset % all / each,
		.known = true };
	for (int l = 0; l < kernel->loops; l++) {
		int64_t stride = access->stride[l];
		key->factor[l] = 0;
		if (stride % all == 0 && !access_guard(access, l))
			continue;
		if (stride < each ? stride * guarded_trip(access, kernel, l) > each
		                  : stride % each != 0)
			return false;
		key->factor[l] = stride / each;
	}
	return true;
}

static bool key_of_keyed(
        const struct causal_analysis *h, const struct op *op, int operand, struct key *key)
{
	const struct keyed *keyed = op->operand[operand]->data;
	const struct kernel *kernel = op->kernel;
	const struct access *access = &kernel->operand[operand];
	int64_t all = keyed->stride * keyed->span;
	int64_t tiles = h->tokens / h->tile;
	*key = (struct key){ .factor = ARENA_ARRAY(h->arena, int64_t, kernel->loops + 1),
		.first = access->offset % all / keyed->stride,
		.known = true };
	if (!kernel->tile_outermost || kernel->loop[0].extent != tiles ||
	        access->stride[0] != keyed->tile_stride || !access_is_plain(access))
		return false;
	for (int l = 1; l < kernel->loops; l++) {
		int64_t stride = access->stride[l];
		int64_t reach = stride * kernel->loop[l].extent;
		key->factor[l] = 0;
		if (stride % (keyed->tile_stride * tiles) && reach > keyed->tile_stride)
			return false;
		if (stride % all == 0)
			continue;
		if (stride < keyed->stride ? reach > keyed->stride
		                           : stride % keyed->stride || reach > all)
			return false;
		key->factor[l] = stride / keyed->stride;
	}
	key->factor[0] = 0;
	return true;
}

/* ---- points */

struct points {
	bool *walked; /* [loops] whose counters the body's numbers may depend on */
	/* [operands] all of whose loops are walked: their elements are asked for */
	bool *followed;
};

static bool walks(const struct kernel *kernel, const struct access *access, const bool *walked)
{
	bool all = access->index_operand < 0;
	for (int l = 0; l < kernel->loops; l++)
		all = all && (walked[l] || !access->stride[l]);
	return all;
}

/* Operands whose first element is known without data are masks, as a rule. */
static struct points points_of(
        const struct causal_analysis *h, const struct op *op, const struct key *key)
{
	const struct kernel *kernel = op->kernel;
	struct points points = { ARENA_ARRAY(h->arena, bool, kernel->loops + 1),
		ARENA_ARRAY(h->arena, bool, op->operands + 1) };
	for (int l = 0; l < kernel->loops; l++) {
		points.walked[l] = !l || key->factor[l] || body_uses_counter(&kernel->update, l) ||
		        body_uses_counter(&kernel->post, l);
		for (int j = 0; j < op->operands; j++) {
			const struct access *access = &kernel->operand[j];
			bool mask = !op->operand[j]->data && !is_shared_by_tiles(h, op, j) &&
			        known_of_element(h->arena, op->operand[j], access->offset).known !=
			                KNOWN_NOTHING;
			points.walked[l] = points.walked[l] || access_guard(access, l) ||
			        (mask && access->stride[l]);
		}
	}
	for (int j = 0; j < op->operands; j++)
		points.followed[j] = walks(kernel, &kernel->operand[j], points.walked);
	return points;
}

static struct abstract_value operand_number(const struct causal_analysis *h, const struct op *op,
        int operand, const struct points *points, const int64_t *counter)
{
	const struct access *access = &op->kernel->operand[operand];
	const struct keyed *keyed = op->operand[operand]->data;
	if (keyed)
		return (struct abstract_value){ .known = keyed->known };
	if (is_shared_by_tiles(h, op, operand))
		return (struct abstract_value){ .known = KNOWN_VARIES };
	if (!points->followed[operand] || !access_inside(access, counter))
		return (struct abstract_value){ .known = KNOWN_NOTHING };
	return known_of_element(
	        h->arena, op->operand[operand], access_address(access, op->kernel->loops, counter));
}

static struct abstract_value at_point(const struct causal_analysis *h, const struct op *op,
        const struct points *points, const int64_t *counter)
{
	const struct kernel *kernel = op->kernel;
	struct abstract_value *operand =
	        ARENA_ARRAY(h->arena, struct abstract_value, op->operands + 1);
	for (int j = 0; j < op->operands; j++)
		operand[j] = operand_number(h, op, j, points, counter);
	struct kernel_point kernel_point = {
		.counter = counter, .operand = operand, .sum = { .known = KNOWN_ACCUMULATOR }
	};
	struct abstract_value abstract_value =
	        known_of_body(h->arena, kernel, &kernel->update, &kernel_point);
	if (!kernel->post.count)
		return abstract_value;
	kernel_point.sum = abstract_value;
	return known_of_body(h->arena, kernel, &kernel->post, &kernel_point);
}

static bool next_point(const struct kernel *kernel, const bool *walked, int64_t *counter)
{
	for (int l = kernel->loops - 1; l >= 0; l--) {
		if (!walked[l])
			continue;
		if (++counter[l] < kernel->loop[l].extent)
			return true;
		counter[l] = 0;
	}
	return false;
}

/* What the kernel makes of the keys of later tiles, all of them: nothing, where that is not
 * always the same. */
static enum known known_of_masked_keys(
        const struct causal_analysis *h, const struct op *op, const struct key *key)
{
	const struct kernel *kernel = op->kernel;
	struct points points = points_of(h, op, key);
	int64_t *counter = ARENA_ARRAY(h->arena, int64_t, kernel->loops + 1);
	int64_t count = 1;
	enum known all = KNOWN_NOTHING;
	bool first = true;
	for (int l = 0; l < kernel->loops; l++)
		count *= points.walked[l] ? kernel->loop[l].extent : 1;
	if (count > POINTS_MOST)
		return KNOWN_VARIES;
	do {
		int64_t at = key->first;
		for (int l = 0; l < kernel->loops; l++)
			at += key->factor[l] * counter[l];
		if (at >= h->tokens || at / h->tile <= counter[0])
			continue;
		enum known one = at_point(h, op, &points, counter).known;
		all = first || one == KNOWN_VARIES || all == one ? one : KNOWN_NOTHING;
		first = false;
	} while (all != KNOWN_VARIES && next_point(kernel, points.walked, counter));
	return all;
}

/* ---- the layer */

/* The key of all operands that have one; false: they differ, or some has it in a way that is not
 * followed. */
static bool find_key(const struct causal_analysis *h, const struct op *op, struct key *key)
{
	struct key own;
	*key = (struct key){ 0 };
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j]->data) {
			if (!key_of_keyed(h, op, j, &own) ||
			        !key_agrees(key, own, op->kernel->loops))
				return false;
		} else if (is_shared_by_tiles(h, op, j)) {
			if (!key_of_shared(h, op, j, &own) ||
			        !key_agrees(key, own, op->kernel->loops))
				return false;
		}
	return true;
}

/* How the keys lie in the result.  false: in none. */
static bool keys_lie(const struct causal_analysis *h, const struct op *op, const struct key *key,
        struct keyed *keyed)
{
	const struct kernel *kernel = op->kernel;
	int64_t last = key->first;
	keyed->stride = 0;
	keyed->tile_stride = kernel->result.stride[0];
	for (int l = 0; l < kernel->loops; l++) {
		if (!key->factor[l])
			continue;
		int64_t stride = kernel->result.stride[l] / key->factor[l];
		if (kernel->loop[l].reduction || stride < 1 ||
		        kernel->result.stride[l] % key->factor[l] ||
		        (keyed->stride && keyed->stride != stride))
			return false;
		keyed->stride = stride;
		last += key->factor[l] * (kernel->loop[l].extent - 1);
	}
	keyed->span = last + 1;
	return keyed->stride && !key->first && keyed->tile_stride > 0 && keyed->span >= h->tokens &&
	        !kernel->result.guards && !kernel->result.offset;
}

static bool sums_keys(const struct kernel *kernel, const struct key *key)
{
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].reduction && key->factor[l])
			return true;
	return false;
}

static void note_causal_operands(struct causal_analysis *h, struct op *op)
{
	for (int j = 0; j < op->operands; j++)
		if (!op->operand[j]->data && is_shared_by_tiles(h, op, j)) {
			VEC_PUSH(h->module->arena, &h->access, &op->kernel->operand[j]);
			VEC_PUSH(h->module->arena, &h->pitch,
			        maker_of(op, j)->kernel->result.stride[0]);
		}
}

static bool is_free(const struct value *value)
{
	const struct keyed *keyed = value->data;
	return keyed && keyed->known == KNOWN_VARIES;
}

/* What of its operands is a number for every key; of these, what may change. */
static bool reads(const struct causal_analysis *h, const struct op *op, bool *free)
{
	bool tile_outermost = op->code == OP_KERNEL && op->kernel->tile_outermost, keys = false;
	for (int j = 0; j < op->operands; j++) {
		bool shared =
		        tile_outermost && !op->operand[j]->data && is_shared_by_tiles(h, op, j);
		keys = keys || op->operand[j]->data || shared;
		*free = *free || shared || is_free(op->operand[j]);
	}
	return keys;
}

static void follow(struct causal_analysis *h, struct op *op)
{
	struct key key;
	struct keyed *keyed = ARENA_NEW(h->module->arena, struct keyed);
	bool free = false, keys = reads(h, op, &free),
	     known = keys && op->code == OP_KERNEL && op->kernel->tile_outermost &&
	        find_key(h, op, &key);
	if (!known) {
		h->failed = h->failed || free;
		return;
	}
	keyed->known = known_of_masked_keys(h, op, &key);
	bool lie = !sums_keys(op->kernel, &key) && keys_lie(h, op, &key, keyed);
	h->failed = h->failed || (keyed->known == KNOWN_VARIES && !lie);
	note_causal_operands(h, op);
	if (lie &&
	        (keyed->known == KNOWN_VARIES || keyed->known == KNOWN_MINUS_INFINITY ||
	                keyed->known == KNOWN_ZERO))
		op->result[0]->data = keyed;
}

static bool find_tokens(struct causal_analysis *h, const struct block *block)
{
	struct contract contract;
	for (const struct op *op = block->first; op; op = op->next)
		if (op->code == OP_CONTRACT && contract_of(op, &contract) && contract.tokens > 1) {
			h->tokens = contract.tokens;
			h->tile = token_tile(contract.tokens, contract.token_symbol);
			return true;
		}
	return false;
}

static void skip_in_block(struct module *module, struct block *block)
{
	struct causal_analysis h = { .module = module };
	for (struct op *op = block->first; op; op = op->next)
		if (op->code == OP_FOR)
			skip_in_block(module, op->region[0]);
	if (!find_tokens(&h, block))
		return;
	ir_clear_data(block);
	for (struct op *op = block->first; op && !h.failed; op = op->next) {
		h.arena = arena_within(module->arena);
		follow(&h, op);
		arena_free(h.arena);
	}
	ir_clear_data(block);
	for (size_t i = 0; !h.failed && i < h.access.count; i++)
		h.access.data[i]->causal_pitch = h.pitch.data[i];
}

bool skip_causal_tiles(struct pass_context *context, struct module *module)
{
	(void)context;
	skip_in_block(module, module_main(module)->region[0]);
	return true;
}
