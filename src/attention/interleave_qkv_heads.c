/* Interleaves the heads of a packed query/key/value product for partitioned attention.
 * Before: rows of the weight [query, key, value][partition][head]
 * After:  rows of the weight [chunk of heads][query, key, value][head][partition]
 * Each partition (partition_kv_heads.c) walks its own heads, and all of them start when the first
 * head of each is computed.  In the weight's order the first head of the last partition is late,
 * and keys follow all queries.  Kernels from the product to the partitions, elementwise or head by
 * head, work in the new order as well.
 * Needs: fused kernels, contractions in the engine, partitioned KV caches.
 * Guarantees: nothing but the order of these rows and loops changes.
 * Exact.
 * Ends: each product is reordered at most once. */
#include "ir/contract.h"
#include "image/quantized.h"
#include "ir/kernel_edit.h"
#include "attention/attention_passes.h"

/* Chunks of the heads.  With more, the last keys are computed later: short contexts would wait. */
#define CHUNKS 2

/* How heads lie in a value [projections][heads][inner] that gets the new order; it is the `data` of
 * the value. */
struct head_layout {
	int64_t inner;       /* numbers of a head */
	int64_t projections; /* queries, keys, values, or fewer of them */
};

/* A kernel that works in the new order, and the operand by which it was found. */
struct head_reader {
	struct op *op;
	int operand;
};

struct interleaver {
	struct module *module;
	struct op *main;
	int64_t inner, projections; /* of the product */
	int64_t parts;              /* partitions */
	int64_t heads, chunks;      /* of a partition */
	VEC(struct value *) values; /* that get the new order, the product's result first */
	VEC(struct head_reader) kernels;
};

static bool is_part(const struct op *op)
{
	return op->code == OP_KERNEL && attr_get(op, KEY_KV_PARTITION_OF);
}

static int64_t heads_of(const struct interleaver *w)
{
	return w->parts * w->heads;
}

/* The only loop that walks all heads of one or more projections, `inner` numbers each; -1: none. */
static int loop_over(const struct interleaver *w, const struct kernel *kernel,
        const struct access *access, int64_t inner)
{
	int found = -1;
	for (int l = 0; l < kernel->loops; l++) {
		int64_t own = access->stride[l];
		if (own > 0 && own <= inner && inner % own == 0 &&
		        own * kernel->loop[l].extent % (inner * heads_of(w)) == 0)
			found = found < 0 ? l : kernel->loops;
	}
	return found < kernel->loops ? found : -1;
}

/* The contraction from which the value is computed head by head; NULL: there is none.  *inner:
 * numbers of a head of the value, then of the contraction. */
static struct op *product_of(const struct interleaver *w, const struct value *value, int64_t *inner)
{
	struct op *op = value->def;
	if (op && op->code == OP_CONTRACT)
		return op;
	if (!op || op->code != OP_KERNEL || is_part(op))
		return NULL;
	const struct kernel *kernel = op->kernel;
	int loop = loop_over(w, kernel, &kernel->result, *inner);
	for (int j = 0; loop >= 0 && j < op->operands; j++) {
		int64_t own =
		        kernel->operand[j].stride[loop] * (*inner / kernel->result.stride[loop]);
		struct op *found = own > 0 ? product_of(w, op->operand[j], &own) : NULL;
		if (found) {
			*inner = own;
			return found;
		}
	}
	return NULL;
}

/* ---- kernels that get the new order */

/* Do the loops other than this one stay within a step of it, and within a head? */
static bool stays_within(
        const struct kernel *kernel, const struct access *access, int loop, int64_t inner)
{
	int64_t rest = 0;
	int64_t own = access->stride[loop];
	for (int l = 0; l < kernel->loops; l++)
		if (l != loop)
			rest += access->stride[l] * (kernel->loop[l].extent - 1);
	return access_is_plain(access) && rest >= 0 && rest < (own < inner ? own : inner);
}

static void add_value(
        struct interleaver *w, struct value *value, int64_t inner, int64_t projections)
{
	struct head_layout *layout = ARENA_NEW(w->module->arena, struct head_layout);
	*layout = (struct head_layout){ inner, projections };
	value->data = layout;
	VEC_PUSH(w->module->arena, &w->values, value);
}

/* Can the kernel work in the new order?  It is noted then, and so is its result.  false: it does
 * not walk all heads by one free loop. */
static bool can_reorder(struct interleaver *w, struct op *op, int operand)
{
	if (op->code != OP_KERNEL || is_part(op))
		return false;
	const struct kernel *kernel = op->kernel;
	const struct access *access = &kernel->operand[operand];
	const struct head_layout *layout = op->operand[operand]->data;
	int64_t run = layout->inner * heads_of(w);
	int loop = loop_over(w, kernel, access, layout->inner);
	if (loop < 0 || !stays_within(kernel, access, loop, layout->inner))
		return false;
	if (access->offset % run || kernel->loop[loop].reduction || kernel->loop[loop].run_time ||
	        kernel_is_guarded(op, loop))
		return false;
	int64_t projections = access->stride[loop] * kernel->loop[loop].extent / run;
	int64_t inner = kernel->result.stride[loop] * (layout->inner / access->stride[loop]);
	if (inner <= 0 || kernel->result.offset ||
	        !stays_within(kernel, &kernel->result, loop, inner) ||
	        inner * heads_of(w) * projections != type_elements(op->result[0]->type))
		return false;
	if (!op->result[0]->data) {
		add_value(w, op->result[0], inner, projections);
		VEC_PUSH(w->module->arena, &w->kernels, ((struct head_reader){ op, operand }));
	}
	return true;
}

/* Collects all values and kernels that get the new order.  false: a reader of the product needs the
 * present one. */
static bool reach_readers(struct interleaver *w, const struct op *product)
{
	int readers = 0;
	add_value(w, product->result[0], w->inner, w->projections);
	for (size_t i = 0; i < w->values.count; i++)
		for (struct op *op = product->parent->first; op; op = op->next)
			for (int j = 0; j < op->operands; j++)
				readers += op->operand[j] == w->values.data[i] &&
				        can_reorder(w, op, j) && !i;
	return readers == product->result[0]->uses;
}

/* ---- the weights' rows */

/* A loop over the memory image of a weight. */
struct image_loop {
	int64_t at; /* elements of the image between two iterations */
	int64_t trip;
	int64_t stride; /* elements of the source between two iterations */
};

struct image_loops {
	VEC(struct image_loop) list;
};

/* Loops of a segment as they are gathered. */
struct segment_loops {
	int64_t *trip, *stride;
	int count;
};

/* Splits the loop that crosses `at` elements of the image.  false: it cannot be split there. */
static bool split_image_loops(struct arena *arena, struct image_loops *loops, int64_t at)
{
	struct image_loops cut = { 0 };
	for (size_t i = 0; i < loops->list.count; i++) {
		struct image_loop run = loops->list.data[i];
		if (run.at < at && at < run.at * run.trip) {
			if (at % run.at || run.at * run.trip % at)
				return false;
			VEC_PUSH(arena, &cut.list,
			        ((struct image_loop){
			                at, run.at * run.trip / at, run.stride * (at / run.at) }));
			run.trip = at / run.at;
		}
		VEC_PUSH(arena, &cut.list, run);
	}
	*loops = cut;
	return true;
}

/* Appends the loops whose iterations are low ... high - 1 elements apart. */
static void append_loops(
        const struct image_loops *loops, int64_t low, int64_t high, struct segment_loops *to)
{
	for (size_t i = 0; i < loops->list.count; i++) {
		const struct image_loop *run = &loops->list.data[i];
		if (run->at < low || run->at >= high)
			continue;
		to->trip[to->count] = run->trip;
		to->stride[to->count++] = run->stride;
	}
}

/* Reorders the rows of a packed weight; size: numbers of a row in a group.  false: its loops cannot
 * be split at heads. */
static bool reorder_rows(const struct interleaver *w, struct quantized *weight, int64_t size)
{
	struct arena *arena = w->module->arena;
	struct segment *from = &weight->from;
	struct image_loops loops = { 0 };
	const int64_t inner = size * w->inner;
	const int64_t chunk = inner * (w->heads / w->chunks);
	const int64_t part = inner * w->heads;
	const int64_t projection = part * w->parts;
	const int64_t group = projection * w->projections;
	const int64_t cuts[] = { inner, chunk, part, projection, group };
	const struct {
		int64_t low, high;
	} order[] = { { group, INT64_MAX }, { chunk, part }, { projection, group },
		{ inner, chunk }, { part, projection }, { 1, inner } };
	int64_t at = segment_elements(from);
	for (int i = 0; i < from->dims; i++) {
		at /= from->trip[i];
		VEC_PUSH(arena, &loops.list,
		        ((struct image_loop){ at, from->trip[i], from->stride[i] }));
	}
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
		if (!split_image_loops(arena, &loops, cuts[i]))
			return false;
	struct segment_loops to = { .trip = ARENA_ARRAY(arena, int64_t, loops.list.count + 1),
		.stride = ARENA_ARRAY(arena, int64_t, loops.list.count + 1) };
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		append_loops(&loops, order[i].low, order[i].high, &to);
	from->dims = to.count;
	from->trip = to.trip;
	from->stride = to.stride;
	return true;
}

/* The weight (side 0) or its scales (side 1) in a layer, an argument of main. */
static struct value *argument_of(const struct op *product, int side, int layer)
{
	struct value *value = product->operand[2 + side];
	bool selected = value->def && value->def->code == OP_LAYER_SELECT;
	return selected ? value->def->operand[1 + layer] : value;
}

/* Reorders weights and scales of all layers (do_it), or only tells whether that is possible. */
static bool reorder_weights(const struct interleaver *w, const struct op *product, bool do_it)
{
	struct contract contract;
	INVARIANT(w->module->guard, contract_of(product, &contract),
	        "a contraction whose operands do not fit together");
	const struct op *pick = product->operand[2]->def;
	int layers = pick && pick->code == OP_LAYER_SELECT ? pick->operands - 1 : 1;
	const int sides = contract.zero ? 3 : 2;
	for (int i = 0; i < sides * layers; i++) {
		const struct value *argument = argument_of(product, i % sides, i / sides);
		if (argument->def || argument->uses > 1)
			return false;
		const struct quantized *old = quantized_read(w->module->arena,
		        function_argument_attr(w->main, argument->index, KEY_STREAM_DERIVED_FROM));
		if (!old || old->from.conditions || old->shared * old->block > 1)
			return false;
		struct quantized reordered = *old;
		if (!reorder_rows(w, &reordered, contract.size))
			return false;
		if (do_it)
			function_set_argument_attr(w->module, w->main, argument->index,
			        KEY_STREAM_DERIVED_FROM, quantized_attr(w->module, &reordered));
	}
	return true;
}

/* ---- kernels */

static int loop_of(
        const struct kernel *kernel, const struct access *access, int64_t stride, int64_t extent)
{
	for (int l = 0; l < kernel->loops; l++)
		if (access->stride[l] == stride && kernel->loop[l].extent == extent)
			return l;
	return -1;
}

/* Sets the access to the product's result in the new order; loop: those over chunks, projections,
 * heads and partitions, or -1. */
static void reorder_access(const struct interleaver *w, struct access *access, const int loop[4])
{
	int64_t head = w->parts * w->inner;
	int64_t projection = w->heads / w->chunks * head;
	const int64_t pitch[4] = { projection * w->projections, projection, head, w->inner };
	access->offset = access->offset / (head * w->heads) * projection;
	for (int i = 0; i < 4; i++)
		if (loop[i] >= 0)
			access->stride[loop[i]] = pitch[i];
}

/* Brings the loops of a kernel into the new order. */
static void reorder_kernel(
        struct interleaver *w, const struct head_reader *use, const struct value *product)
{
	struct module *module = w->module;
	struct op *op = use->op;
	const struct head_layout *layout = op->operand[use->operand]->data;
	const struct head_layout *result = op->result[0]->data;
	bool chunks = w->chunks > 1;
	bool heads = w->heads > w->chunks;
	kernel_cut_loops(module, op, use->operand, layout->inner, heads_of(w));
	const struct access *access = &op->kernel->operand[use->operand];
	int first = loop_of(op->kernel, access, layout->inner, heads_of(w));
	int part = first + chunks + heads;
	int chunk = chunks ? first : -1;
	int head = heads ? first + chunks : -1;
	int projection = -1;
	if (result->projections > 1)
		projection = loop_of(
		        op->kernel, access, layout->inner * heads_of(w), result->projections);
	kernel_split_loop(module, op, first, w->heads);
	if (chunks && heads)
		kernel_split_loop(module, op, first + 1, w->heads / w->chunks);
	kernel_move_loop(module, op, first, part);
	if (projection >= 0 && chunks) {
		kernel_move_loop(module, op, chunk, projection);
		chunk = projection++;
	}
	op->kernel->ordered = true;
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j] == product)
			reorder_access(w, &op->kernel->operand[j],
			        (const int[4]){ chunk, projection, head, part });
}

/* ---- products to reorder */

/* Takes partitions and heads from the outermost loop of a partition's kernel over its operand.
 * false: the operand is not such a tensor of heads. */
static bool set_heads(struct interleaver *w, const struct op *op, int operand, int64_t *inner)
{
	const struct kernel *kernel = op->kernel;
	const struct access *access = &kernel->operand[operand];
	int outer = -1;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].extent > 1 && access->stride[l] > 0 &&
		        (outer < 0 || access->stride[l] > access->stride[outer]))
			outer = l;
	if (outer < 0 || kernel->loop[outer].run_time)
		return false;
	int64_t elements = type_elements(op->operand[operand]->type);
	*inner = access->stride[outer];
	w->heads = kernel->loop[outer].extent;
	w->parts = elements / (*inner * w->heads);
	w->chunks = w->heads % CHUNKS ? 1 : CHUNKS;
	return w->parts > 1 && elements == w->parts * *inner * w->heads;
}

/* Reorders the product from which a partition's operand is computed, if that is possible. */
static void interleave(struct module *module, struct op *main, const struct op *op, int operand)
{
	struct interleaver w = { .module = module, .main = main };
	struct contract contract;
	if (!set_heads(&w, op, operand, &w.inner))
		return;
	const struct op *product = product_of(&w, op->operand[operand], &w.inner);
	if (!product || product->parent != op->parent || product->result[0]->data ||
	        !contract_of(product, &contract) || contract.tokens > 1)
		return;
	w.projections = contract.outputs / (w.inner * heads_of(&w));
	if (w.projections < 2 || w.inner < 2 ||
	        contract.outputs != w.projections * w.inner * heads_of(&w) ||
	        !reach_readers(&w, product) || !reorder_weights(&w, product, false))
		return;
	reorder_weights(&w, product, true);
	for (size_t i = 0; i < w.kernels.count; i++)
		reorder_kernel(&w, &w.kernels.data[i], product->result[0]);
}

static void interleave_block(struct module *module, struct op *main, const struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			interleave_block(module, main, op->region[0]);
		for (int j = 0; is_part(op) && j < op->operands; j++)
			if (op->operand[j]->def && op->operand[j]->def->code == OP_KERNEL &&
			        !is_part(op->operand[j]->def))
				interleave(module, main, op, j);
	}
}

bool interleave_qkv_heads(struct pass_context *context, struct module *module)
{
	struct op *main = module_main(module);
	(void)context;
	ir_clear_data(main->region[0]);
	ir_count_uses(main->region[0]);
	interleave_block(module, main, main->region[0]);
	ir_clear_data(main->region[0]);
	return true;
}
