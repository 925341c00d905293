/* Queries, keys and values that one product makes come in the order in which attention wants
 * them.  Where attention is cut into parts (partition_kv_heads.c), each part walks its own
 * heads, and all begin when the first head of each is there; in the order of the weight's rows
 * that of the last part comes late, and keys behind all queries.  So the product's rows are put
 * in another order:
 *     slices (queries, keys, values) × parts × heads of a part   →   chunks of heads × slices × heads of a chunk × parts
 * and what is made of them number by number or head by head, up to what the parts read, works in
 * that order as well. Needs: fused kernels, contractions in a unit, states in parts.
 * Guarantees: nothing but that order.  Exact. */
#include "ir/contract.h"
#include "image/quantized.h"
#include "ir/kernel_edit.h"
#include "attention/attention_passes.h"

/* of heads: with more the last keys come later, which short contexts wait for */
#define CHUNKS 2

/* at value->data: how heads lie in a value that has them in the new order */
struct layout {
	int64_t inner, projections; /* numbers of a head; runs of all heads */
};

struct use {
	struct op *op;
	int operand;
};

struct interleaver {
	struct module *module;
	struct op *main;
	int64_t inner, projections;   /* numbers of a head of the product; queries, keys, values */
	int64_t parts, heads, chunks; /* heads: of a part */
	VEC(struct value *) values;   /* in the order in which they were found */
	VEC(struct use) kernels; /* that take such values, by the first operand that was found */
};

static bool is_part(const struct op *op)
{
	return op->code == OP_KERNEL && attr_get(op, KEY_KV_PARTITION_OF);
}

static int64_t heads_of(const struct interleaver *w)
{
	return w->parts * w->heads;
}

/* The only loop that walks all heads of each of some slices: `stride` numbers a step; -1: none. */
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

/* The product that a value's heads come from; its own heads are `inner` numbers each. */
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

/* ---- what is put in order */

static bool stays_within(
        const struct kernel *kernel, const struct access *access, int loop, int64_t inner)
{
	int64_t rest = 0;
	int64_t own = access->stride[loop];
	for (int l = 0; l < kernel->loops; l++)
		rest += l == loop ? 0 : access->stride[l] * (kernel->loop[l].extent - 1);
	return access_is_plain(access) && rest >= 0 && rest < (own < inner ? own : inner);
}

static void add_value(
        struct interleaver *w, struct value *value, int64_t inner, int64_t projections)
{
	struct layout *layout = ARENA_NEW(w->module->arena, struct layout);
	*layout = (struct layout){ inner, projections };
	value->data = layout;
	VEC_PUSH(w->module->arena, &w->values, value);
}

/* A kernel of all heads can work in the new order, and gives its result in it; false: it does
 * not walk them, or has a reason for its own order. */
static bool follows(struct interleaver *w, struct op *op, int operand)
{
	if (op->code != OP_KERNEL || is_part(op))
		return false;
	const struct kernel *kernel = op->kernel;
	const struct access *access = &kernel->operand[operand];
	const struct layout *layout = op->operand[operand]->data;
	int64_t run = layout->inner * heads_of(w);
	int loop = loop_over(w, kernel, access, layout->inner);
	if (loop < 0 || !stays_within(kernel, access, loop, layout->inner) ||
	        access->offset % run || kernel->loop[loop].reduction ||
	        kernel->loop[loop].run_time || kernel_is_guarded(op, loop))
		return false;
	int64_t projections = access->stride[loop] * kernel->loop[loop].extent / run;
	int64_t inner = kernel->result.stride[loop] * (layout->inner / access->stride[loop]);
	if (inner <= 0 || kernel->result.offset ||
	        !stays_within(kernel, &kernel->result, loop, inner) ||
	        inner * heads_of(w) * projections != type_elements(op->result[0]->type))
		return false;
	if (!op->result[0]->data) {
		add_value(w, op->result[0], inner, projections);
		VEC_PUSH(w->module->arena, &w->kernels, ((struct use){ op, operand }));
	}
	return true;
}

/* false: something asks for the product's own order. */
static bool spread(struct interleaver *w, const struct op *product)
{
	int readers = 0;
	add_value(w, product->result[0], w->inner, w->projections);
	for (size_t i = 0; i < w->values.count; i++)
		for (struct op *op = product->parent->first; op; op = op->next)
			for (int j = 0; j < op->operands; j++)
				readers += op->operand[j] == w->values.data[i] &&
				        follows(w, op, j) && !i;
	return readers == product->result[0]->uses;
}

/* ---- the weights' rows */

/* a loop of an image: elements of the image between two of its points */
struct run {
	int64_t at, trip, stride;
};

struct runs {
	VEC(struct run) list;
};

/* false: a loop does not come apart there. */
static bool cut_runs(struct arena *arena, struct runs *runs, int64_t at)
{
	struct runs cut = { 0 };
	for (size_t i = 0; i < runs->list.count; i++) {
		struct run run = runs->list.data[i];
		if (run.at < at && at < run.at * run.trip) {
			if (at % run.at || run.at * run.trip % at)
				return false;
			VEC_PUSH(arena, &cut.list,
			        ((struct run){
			                at, run.at * run.trip / at, run.stride * (at / run.at) }));
			run.trip = at / run.at;
		}
		VEC_PUSH(arena, &cut.list, run);
	}
	*runs = cut;
	return true;
}

static int add_runs(const struct runs *runs, int64_t low, int64_t high, int64_t *trip,
        int64_t *stride, int count)
{
	for (size_t i = 0; i < runs->list.count; i++) {
		const struct run *run = &runs->list.data[i];
		if (run->at < low || run->at >= high)
			continue;
		trip[count] = run->trip;
		stride[count++] = run->stride;
	}
	return count;
}

/* The same numbers in the order of the product's new rows; `size` of them are those of a row in
 * a group. */
static bool reorder_rows(const struct interleaver *w, struct quantized *weight, int64_t size)
{
	struct arena *arena = w->module->arena;
	struct segment *from = &weight->from;
	struct runs runs = { 0 };
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
		VEC_PUSH(arena, &runs.list, ((struct run){ at, from->trip[i], from->stride[i] }));
	}
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
		if (!cut_runs(arena, &runs, cuts[i]))
			return false;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, runs.list.count + 1);
	int64_t *stride = ARENA_ARRAY(arena, int64_t, runs.list.count + 1);
	from->dims = 0;
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		from->dims = add_runs(&runs, order[i].low, order[i].high, trip, stride, from->dims);
	from->trip = trip;
	from->stride = stride;
	return true;
}

static struct value *argument_of(const struct op *product, int side, int layer)
{
	struct value *value = product->operand[2 + side];
	return value->def && value->def->code == OP_LAYER_SELECT ? value->def->operand[1 + layer]
	                                                         : value;
}

/* Weights and scales of all layers.  do_it false: can it be done? */
static bool reorder_weights(const struct interleaver *w, const struct op *product, bool do_it)
{
	struct contract contract;
	INVARIANT(w->module->guard, contract_of(product, &contract),
	        "a contraction whose operands do not fit together");
	const struct op *pick = product->operand[2]->def;
	int layers = pick && pick->code == OP_LAYER_SELECT ? pick->operands - 1 : 1;
	for (int i = 0; i < 2 * layers; i++) {
		const struct value *argument = argument_of(product, i % 2, i / 2);
		const struct quantized *old = argument->def || argument->uses > 1
		        ? NULL
		        : quantized_read(w->module->arena,
		                  function_argument_attr(
		                          w->main, argument->index, KEY_STREAM_DERIVED_FROM));
		struct quantized reordered = old ? *old : (struct quantized){ 0 };
		if (!old || old->from.conditions || old->shared * old->block > 1 ||
		        !reorder_rows(w, &reordered, contract.size))
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

/* What is taken of the product itself lies in the new order; loops over chunks, slices, heads,
 * parts, or -1. */
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

/* The loops of a kernel in the new order. */
static void reorder(struct interleaver *w, const struct use *use, const struct value *product)
{
	struct module *module = w->module;
	struct op *op = use->op;
	const struct layout *layout = op->operand[use->operand]->data;
	const struct layout *result = op->result[0]->data;
	bool chunks = w->chunks > 1, heads = w->heads > w->chunks;
	kernel_cut_loops(module, op, use->operand, layout->inner, heads_of(w));
	const struct access *access = &op->kernel->operand[use->operand];
	int first = loop_of(op->kernel, access, layout->inner, heads_of(w));
	int part = first + chunks + heads;
	int chunk = chunks ? first : -1;
	int head = heads ? first + chunks : -1;
	int projection = result->projections > 1
	        ? loop_of(op->kernel, access, layout->inner * heads_of(w), result->projections)
	        : -1;
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

/* ---- which products */

/* The heads of one part, as a kernel of it walks them. */
static bool find_heads(struct interleaver *w, const struct op *op, int operand, int64_t *inner)
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

static void interleave(struct module *module, struct op *main, const struct op *op, int operand)
{
	struct interleaver w = { .module = module, .main = main };
	struct contract contract;
	if (!find_heads(&w, op, operand, &w.inner))
		return;
	const struct op *product = product_of(&w, op->operand[operand], &w.inner);
	if (!product || product->parent != op->parent || product->result[0]->data ||
	        !contract_of(product, &contract) || contract.tokens > 1)
		return;
	w.projections = contract.outputs / (w.inner * heads_of(&w));
	if (w.projections < 2 || w.inner < 2 ||
	        contract.outputs != w.projections * w.inner * heads_of(&w) ||
	        !spread(&w, product) || !reorder_weights(&w, product, false))
		return;
	reorder_weights(&w, product, true);
	for (size_t i = 0; i < w.kernels.count; i++)
		reorder(&w, &w.kernels.data[i], product->result[0]);
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
