/* Finds operands of attention whose later tiles of keys a causal mask hides.
 * Before: every tile of queries waits for keys and values of all tiles
 * After:  `causal_pitch` on the access: a causal buffer may send those of tile min(u, t) as tile u
 *         in iteration t (converter/causal_buffer.h)
 * A mask follows from positions, so the kernels are followed for the keys of later tiles without
 * data (attention/mask_analysis.h): their scores are minus infinity whatever the key is, their
 * exponentials 0, and a maximum or a sum stays as it is.  If no result of the layer can change,
 * keys and values of later tiles may be any numbers.
 * Needs: attention in tiles.
 * Guarantees: accesses whose later tiles are hidden have a causal_pitch, all or none of a block.
 * Exact for finite numbers.
 * Ends: each operation is followed once, at POINTS_MOST points at most. */
#include "ir/contract.h"
#include "attention/mask_analysis.h"
#include "ir/kernel_edit.h"
#include "attention/attention_passes.h"

/* Points of a kernel that are evaluated at most. */
#define POINTS_MOST (1 << 20)

/* A value with a number for every key; it is the `data` of the value. */
struct causal_keys {
	enum known known;    /* what it has for keys of later tiles */
	int64_t stride;      /* elements between keys */
	int64_t tile_stride; /* elements between tiles of queries */
	int64_t span;        /* keys, with those of the KV cache */
};

struct causal_analysis {
	struct module *module;
	struct arena *arena;         /* for the analysis of one kernel */
	int64_t tokens, tile;        /* of the launch; of a tile */
	VEC(struct access *) access; /* to what causal buffers may send */
	VEC(int64_t) pitch;          /* of each access: elements between tiles */
	bool failed;                 /* some result depends on keys of later tiles */
};

/* The number of the key at a point of a kernel, Σ factor[l] * counter[l] + first; it is one of this
 * launch if it is less than `tokens`. */
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

/* Takes the first key, compares others with it.  false: another operand has another key. */
static bool key_agrees(struct key *key, struct key own, int loops)
{
	if (!key->known)
		*key = own;
	return key_same(key, &own, loops);
}

/* The operation that computes the operand, before padding. */
static const struct op *producer_of(const struct op *op, int operand)
{
	const struct op *producer = op->operand[operand]->def;
	return producer && producer->code == OP_PAD_TOKENS ? producer->operand[0]->def : producer;
}

/* Is the operand the result of a tiled kernel, all of which every tile of queries reads? */
static bool is_shared_by_tiles(const struct causal_analysis *h, const struct op *op, int operand)
{
	const struct op *producer = producer_of(op, operand);
	int64_t tiles = h->tokens / h->tile;
	return producer && producer->parent == op->parent && producer->code == OP_KERNEL &&
	        producer->kernel->tile_outermost && producer->kernel->loop[0].extent == tiles &&
	        op->kernel->loop[0].extent == tiles && !op->kernel->operand[operand].stride[0] &&
	        producer->kernel->result.stride[0] > 0 &&
	        producer->kernel->result.stride[0] % h->tile == 0;
}

/* The key of a shared operand is its row.  false: a loop walks parts of rows together with rows. */
static bool key_of_shared(
        const struct causal_analysis *h, const struct op *op, int operand, struct key *key)
{
	const struct kernel *kernel = op->kernel;
	const struct access *access = &kernel->operand[operand];
	int64_t each = producer_of(op, operand)->kernel->result.stride[0] / h->tile;
	int64_t all = each * h->tokens;
	*key = (struct key){ .factor = ARENA_ARRAY(h->arena, int64_t, kernel->loops + 1),
		.first = access->offset % all / each,
		.known = true };
	for (int l = 0; l < kernel->loops; l++) {
		int64_t stride = access->stride[l];
		key->factor[l] = 0;
		if (stride % all == 0 && !access_guard(access, l))
			continue;
		bool inside_row = stride < each;
		if (inside_row && stride * access_extent(kernel, access, l) > each)
			return false;
		if (!inside_row && stride % each != 0)
			return false;
		key->factor[l] = stride / each;
	}
	return true;
}

/* The key of an operand that has a number for each key, for the tile of queries at hand. */
static bool key_of_keyed(
        const struct causal_analysis *h, const struct op *op, int operand, struct key *key)
{
	const struct causal_keys *keyed = op->operand[operand]->data;
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
		bool inside_key = stride < keyed->stride;
		if (inside_key && reach > keyed->stride)
			return false;
		if (!inside_key && (stride % keyed->stride || reach > all))
			return false;
		key->factor[l] = stride / keyed->stride;
	}
	key->factor[0] = 0;
	return true;
}

/* ---- points */

/* The points of a kernel that are evaluated. */
struct walked_points {
	bool *walked;   /* [loops]: may the result depend on the counter without data? */
	bool *followed; /* [operands]: all their loops are walked, so elements are evaluated */
};

/* Does the set of walked loops determine the address? */
static bool is_determined(
        const struct kernel *kernel, const struct access *access, const bool *walked)
{
	bool all = access->index_operand < 0;
	for (int l = 0; l < kernel->loops; l++)
		all = all && (walked[l] || !access->stride[l]);
	return all;
}

/* An operand whose first element is known without data is taken as a mask: its loops are walked. */
static struct walked_points points_of(
        const struct causal_analysis *h, const struct op *op, const struct key *key)
{
	const struct kernel *kernel = op->kernel;
	struct walked_points points = { ARENA_ARRAY(h->arena, bool, kernel->loops + 1),
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
		points.followed[j] = is_determined(kernel, &kernel->operand[j], points.walked);
	return points;
}

/* What is known of the operand at this point. */
static struct abstract_value operand_at(const struct causal_analysis *h, const struct op *op,
        int operand, const struct walked_points *points, const int64_t *counter)
{
	const struct access *access = &op->kernel->operand[operand];
	const struct causal_keys *keyed = op->operand[operand]->data;
	if (keyed)
		return (struct abstract_value){ .known = keyed->known };
	if (is_shared_by_tiles(h, op, operand))
		return (struct abstract_value){ .known = KNOWN_VARIES };
	if (!points->followed[operand] || !access_inside(access, counter))
		return (struct abstract_value){ .known = KNOWN_NOTHING };
	return known_of_element(
	        h->arena, op->operand[operand], access_address(access, op->kernel->loops, counter));
}

/* What is known of the kernel's result at this point. */
static struct abstract_value result_at(const struct causal_analysis *h, const struct op *op,
        const struct walked_points *points, const int64_t *counter)
{
	const struct kernel *kernel = op->kernel;
	struct abstract_value *operand =
	        ARENA_ARRAY(h->arena, struct abstract_value, op->operands + 1);
	for (int j = 0; j < op->operands; j++)
		operand[j] = operand_at(h, op, j, points, counter);
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

/* Counts the walked loops on.  false: that was the last point. */
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

/* What the kernel's result is for keys of all later tiles; KNOWN_NOTHING: it differs. */
static enum known known_of_masked_keys(
        const struct causal_analysis *h, const struct op *op, const struct key *key)
{
	const struct kernel *kernel = op->kernel;
	struct walked_points points = points_of(h, op, key);
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
		enum known one = result_at(h, op, &points, counter).known;
		bool agrees = first || one == KNOWN_VARIES || all == one;
		all = agrees ? one : KNOWN_NOTHING;
		first = false;
	} while (all != KNOWN_VARIES && next_point(kernel, points.walked, counter));
	return all;
}

/* ---- the layer */

/* The key of all operands that have one.  false: they differ, or one of them is not understood. */
static bool key_of_operands(const struct causal_analysis *h, const struct op *op, struct key *key)
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

/* How the keys lie in the result.  false: the result does not have a number for each key. */
static bool result_keys(const struct causal_analysis *h, const struct op *op, const struct key *key,
        struct causal_keys *keyed)
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

/* Is the kernel a reduction over keys? */
static bool sums_keys(const struct kernel *kernel, const struct key *key)
{
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].reduction && key->factor[l])
			return true;
	return false;
}

/* Notes the shared operands, to which a causal buffer may send. */
static void note_causal_operands(struct causal_analysis *h, struct op *op)
{
	for (int j = 0; j < op->operands; j++)
		if (!op->operand[j]->data && is_shared_by_tiles(h, op, j)) {
			VEC_PUSH(h->module->arena, &h->access, &op->kernel->operand[j]);
			VEC_PUSH(h->module->arena, &h->pitch,
			        producer_of(op, j)->kernel->result.stride[0]);
		}
}

/* May numbers for keys of later tiles change? */
static bool is_free(const struct value *value)
{
	const struct causal_keys *keyed = value->data;
	return keyed && keyed->known == KNOWN_VARIES;
}

/* Does the operation read a value with a number for every key?  *free: one that may change. */
static bool reads_keys(const struct causal_analysis *h, const struct op *op, bool *free)
{
	bool tile_outermost = op->code == OP_KERNEL && op->kernel->tile_outermost;
	bool keys = false;
	for (int j = 0; j < op->operands; j++) {
		bool shared =
		        tile_outermost && !op->operand[j]->data && is_shared_by_tiles(h, op, j);
		keys = keys || op->operand[j]->data || shared;
		*free = *free || shared || is_free(op->operand[j]);
	}
	return keys;
}

/* Follows keys of later tiles through one operation. */
static void follow_op(struct causal_analysis *h, struct op *op)
{
	struct key key;
	struct causal_keys *keyed = ARENA_NEW(h->module->arena, struct causal_keys);
	bool free = false;
	bool keys = reads_keys(h, op, &free);
	bool tiled = op->code == OP_KERNEL && op->kernel->tile_outermost;
	if (!keys || !tiled || !key_of_operands(h, op, &key)) {
		h->failed = h->failed || free;
		return;
	}
	keyed->known = known_of_masked_keys(h, op, &key);
	bool has_keys = !sums_keys(op->kernel, &key) && result_keys(h, op, &key, keyed);
	h->failed = h->failed || (keyed->known == KNOWN_VARIES && !has_keys);
	note_causal_operands(h, op);
	bool useful = keyed->known == KNOWN_VARIES || keyed->known == KNOWN_MINUS_INFINITY ||
	        keyed->known == KNOWN_ZERO;
	if (has_keys && useful)
		op->result[0]->data = keyed;
}

/* Takes tokens and tile from the first contraction of several tokens. */
static bool set_tokens(struct causal_analysis *h, const struct block *block)
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
	if (!set_tokens(&h, block))
		return;
	ir_clear_data(block);
	for (struct op *op = block->first; op && !h.failed; op = op->next) {
		h.arena = arena_within(module->arena);
		follow_op(&h, op);
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
