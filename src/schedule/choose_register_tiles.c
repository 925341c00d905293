/* Chooses a register tile for each contraction: how many sums are formed side by side along two
 * parallel loops, in which blocks the loops run, and where operands that are read again are held
 * on chip (register_tile.c).
 *
 * Before: stream.kernel {loops = [200, 220, 240]}
 * After:  the same with register_tile = {loops = [[0, 29, 7], [2, 240, 1], [1, 37, 6], [0, 7, 1],
 *         [1, 6, 1]], row_unroll = 7, lanes = 6, padded, held = [5, 0]}
 * What follows the sums becomes a kernel of its own, which needs few lanes. The DSPs that the other
 * kernels leave are shared by the numbers of terms, and then by the cycles that came of it, since
 * the slowest kernel sets the pace of a chain.
 * Needs: kernels on root tensors. Guarantees: none has a parallelism or a schedule. Exact.
 * Ends: the unrolls within the DSPs are finitely many. */
#include "ir/kernel_edit.h"
#include "ir/kernel_signature.h"
#include "ir/workload.h"
#include "schedule/recorded_choices.h"
#include "schedule/register_tile.h"
#include "schedule/schedule_passes.h"
#include "schedule/search_cache.h"
#include "schedule/tensor_sources.h"
#include <math.h>

/* fewer terms are not worth the buffers */
#define TERMS_LEAST 4096
/* part of the memory on chip that register tiles may take */
#define MEMORY_SHARE 2
#define BULK_ELEMENTS 4096 /* smaller operands share a port */
#define SEARCHES 24        /* of single kernels while DSPs are shared */

struct tiled {
	struct op *op;
	double terms, weight;            /* weight: its share of the DSPs */
	struct tile_choice choice, best; /* best: with the best shares so far */
};

struct tiles {
	struct pass_context *context;
	struct module *module;
	double terms; /* of all contractions */
	/* the contractions, readers first, as they say in which order they want results */
	VEC(struct tiled) tiled;
	int64_t dsp; /* for all of them, */
	int ports;   /* and their memory ports */
	/* for those that have no register tile yet */
	int64_t dsp_left;
	int ports_left, left;
	double weight_left;
};

static double terms_of(const struct kernel *kernel)
{
	double terms = 1;
	for (int l = 0; l < kernel->loops; l++)
		terms *= (double)kernel->loop[l].extent;
	return terms;
}

static bool wants_tile(const struct tiles *t, const struct op *op)
{
	struct fixed_parallelism wish;
	if (op->code != OP_KERNEL || kernel_is_gather(op) || has_folding(op) ||
	        unroll_of_kernel(t->module, op->kernel->name, &wish) ||
	        fixed_parallelism_of(&t->context->choices, op->kernel->name) ||
	        !is_contraction(op) || terms_of(op->kernel) < TERMS_LEAST)
		return false;
	return true;
}

static void split_posts(const struct tiles *t, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next)
		if (wants_tile(t, op) && op->kernel->post.count &&
		        !body_uses_counters(&op->kernel->post))
			kernel_split_epilogue(t->module, op);
}

/* Lists the contractions, and counts what the other kernels take at least. */
static void count_work(struct tiles *t, const struct block *block)
{
	t->dsp = parallelism_dsp(t->context, module_main(t->module)->region[0]);
	for (struct op *op = block->last; op; op = op->previous) {
		if (op->code != OP_KERNEL)
			continue;
		if (wants_tile(t, op)) {
			struct tiled tiled = { .op = op, .terms = terms_of(op->kernel) };
			tiled.weight = tiled.terms;
			t->terms += tiled.terms;
			VEC_PUSH(t->module->arena, &t->tiled, tiled);
			continue;
		}
		t->dsp -= schedule_body_dsp(t->context->platform, &op->kernel->update) +
		        schedule_body_dsp(t->context->platform, &op->kernel->post);
		for (int j = 0; j < op->operands; j++)
			t->ports -= tensor_source_of(op->operand[j])->kind == SOURCE_MEMORY &&
			        type_elements(op->operand[j]->type) >= BULK_ELEMENTS;
	}
}

/* Memory ports of register tiles and large operands: one is for small operands and results, and an
 * attempt that had too many reserves more. */
static int ports_of(const struct pass_context *context)
{
	int64_t reserved = choice_count(&context->choices, CHOICE_RESERVED_PORTS) -
	        choice_info[CHOICE_RESERVED_PORTS].default_value;
	return context->platform->ports - 1 - (int)(reserved > 0 ? reserved : 0);
}

/* The loop of a kernel that moves its result as the outermost loop of its reader moves it, and by
 * how many elements the reader does; -1: none. */
static int wanted_loop(
        const struct tiles *t, const struct op *op, const struct op *reader, int64_t *elements)
{
	struct schedule schedule = recorded_register_tile(t->module->arena, reader);
	int first = 0;
	while (first + 1 < schedule.parts && schedule.part[first].trip == 1)
		first++;
	*elements = schedule.part[first].step;
	for (int j = 0; j < reader->operands; j++) {
		int64_t stride = reader->kernel->operand[j].stride[schedule.part[first].source];
		for (int l = 0; reader->operand[j] == op->result[0] && l < op->kernel->loops; l++)
			if (stride && op->kernel->result.stride[l] == stride)
				return l;
	}
	return -1;
}

/* Adds the words in which a register tile reads a result: elements along each of its loops. */
static void add_wanted_lanes(
        const struct tiles *t, const struct op *op, const struct op *reader, int64_t *wanted)
{
	struct schedule schedule = recorded_register_tile(t->module->arena, reader);
	for (int j = 0; j < reader->operands; j++)
		for (int i = schedule_loops(&schedule);
		        reader->operand[j] == op->result[0] && i < schedule.parts; i++) {
			const struct schedule_part *part = &schedule.part[i];
			int64_t stride = reader->kernel->operand[j].stride[part->source];
			for (int l = 0; stride && l < op->kernel->loops; l++)
				if (op->kernel->result.stride[l] == stride)
					wanted[l] = common_divisor(wanted[l], part->trip);
		}
}

/* Does another register tile read the result, and in the order of which loop, in which words does
 * it want it? */
static bool is_read_by_tile(
        const struct tiles *t, const struct op *op, int64_t *wanted, int64_t *wanted_lanes)
{
	bool found = false;
	for (const struct op *reader = op->next; reader; reader = reader->next) {
		bool reads = false;
		for (int j = 0; j < reader->operands; j++)
			reads = reads || reader->operand[j] == op->result[0];
		if (!reads || reader->code != OP_KERNEL || !has_register_tile(reader) ||
		        !kernel_has_reduction(reader->kernel))
			continue;
		int64_t elements;
		int loop = wanted_loop(t, op, reader, &elements);
		add_wanted_lanes(t, op, reader, wanted_lanes);
		found = true;
		if (loop >= 0)
			wanted[loop] = elements;
	}
	return found;
}

/* The loop of an elementwise reader that walks its operand as `loop` walks the result; -1: none. */
static int loop_alike(
        const struct op *op, int loop, const struct kernel *reader, const struct access *access)
{
	int found = -1;
	for (int m = 0; m < reader->loops; m++)
		if (access->stride[m] == op->kernel->result.stride[loop] &&
		        reader->loop[m].extent == op->kernel->loop[loop].extent)
			found = m;
	return found;
}

/* Unrolls the innermost part of an order as far as it divides the words of the tile's sums. */
static void take_lanes(struct schedule *order, int64_t word, int64_t most)
{
	int64_t lanes = word > 1 && most > 1 ? tile_reader_lanes(word, most) : 1;
	if (lanes == 1)
		return;
	struct schedule_part *last = &order->part[order->parts - 1];
	last[1] = (struct schedule_part){ last->source, lanes, 1 };
	last->trip /= lanes;
	last->step = lanes;
	order->parts++;
	order->lanes = lanes;
}

/* Fills the order in which an elementwise kernel takes the sums of a register tile as they come;
 * false: its loops are others. */
static bool order_alike(struct tiles *t, const struct op *op, const struct tile_choice *choice,
        const struct op *reader, struct schedule *order)
{
	const struct schedule *tile = &choice->schedule;
	const struct kernel *kernel = reader->kernel;
	int operand = 0;
	while (operand < reader->operands && reader->operand[operand] != op->result[0])
		operand++;
	if (operand == reader->operands || kernel_has_reduction(kernel))
		return false;
	int alike = 0;
	*order = (struct schedule){ .lanes = 1, .row_unroll = 1, .padded = tile->padded };
	order->part = ARENA_ARRAY(t->module->arena, struct schedule_part, tile->parts + 2);
	for (int l = 0; l < op->kernel->loops; l++)
		alike += !op->kernel->loop[l].reduction;
	for (int i = 0; i < tile->parts; i++) {
		const struct schedule_part *part = &tile->part[i];
		if (op->kernel->loop[part->source].reduction)
			continue;
		int source = loop_alike(op, part->source, kernel, &kernel->operand[operand]);
		if (source < 0)
			return false;
		order->part[order->parts++] =
		        (struct schedule_part){ source, part->trip, part->step };
	}
	take_lanes(order, schedule_is_tree(op->kernel, tile) ? tile->row_unroll : tile->lanes,
	        choice->result_lanes);
	int64_t *held = ARENA_ARRAY(t->module->arena, int64_t, reader->operands + 1);
	for (int j = 0; j < reader->operands; j++)
		held[j] = order->parts;
	order->held = held;
	return alike == kernel->loops && schedule_fits(t->module, reader, order);
}

/* Elementwise readers of the sums take them in the order in which they come, one after the
 * other. */
static void order_readers(struct tiles *t, const struct op *op, const struct tile_choice *choice)
{
	struct schedule order;
	for (struct op *reader = op->next; reader; reader = reader->next)
		if (reader->code == OP_KERNEL && order_alike(t, op, choice, reader, &order))
			record_register_tile(t->module, reader, &order);
}

/* DSPs of a lane of the elementwise kernels that read the result. */
static int64_t reader_dsp(const struct tiles *t, const struct op *op)
{
	int64_t dsp = 0;
	for (const struct op *reader = op->next; reader; reader = reader->next)
		for (int j = 0; reader->code == OP_KERNEL && j < reader->operands; j++)
			if (reader->operand[j] == op->result[0])
				dsp += schedule_body_dsp(
				        t->context->platform, &reader->kernel->update);
	return dsp;
}

static struct tile_choice choose_cached(
        const struct tiles *t, const struct tile_kernel *kernel, const struct tile_limits *limits)
{
	struct map *search_cache = t->context->search_cache;
	struct search_key search_key = register_tile_search_key(kernel, limits);
	struct tile_choice choice;
	if (search_cache_lookup_tile(search_cache, &search_key, &choice))
		return choice;
	choice = choose_register_tile(kernel, limits);
	search_cache_store_tile(search_cache, &search_key, kernel, &choice);
	return choice;
}

/* Do the two kernels compute the same of operands of the same shapes? */
static bool same_work(const struct tiles *t, const struct op *left, const struct op *right)
{
	struct text text[2] = { text_new(t->module->arena), text_new(t->module->arena) };
	const struct op *op[2] = { left, right };
	for (int i = 0; i < 2; i++) {
		kernel_signature(op[i], t->module, &text[i]);
		for (int j = 0; j < op[i]->operands; j++)
			text_add(&text[i], "%s ", op[i]->operand[j]->type->text);
	}
	return text_same(text[0].data, text[1].data);
}

static bool reads(const struct op *op, const struct value *value)
{
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j] == value)
			return true;
	return false;
}

/* The register tile of a kernel with the same work whose sums meet these in one elementwise kernel,
 * so that they come in one order; NULL: there is none that the limits allow. */
static const struct tile_choice *twin_of(
        const struct tiles *t, const struct tiled *tiled, const struct tile_limits *limits)
{
	for (const struct tiled *other = t->tiled.data; other < tiled; other++)
		for (const struct op *reader = tiled->op->next; reader; reader = reader->next)
			if (reader->code == OP_KERNEL && !kernel_has_reduction(reader->kernel) &&
			        reads(reader, tiled->op->result[0]) &&
			        reads(reader, other->op->result[0]) && other->choice.found &&
			        other->choice.dsp <= limits->dsp &&
			        other->choice.ports <= limits->ports &&
			        same_work(t, tiled->op, other->op))
				return &other->choice;
	return NULL;
}

static void record_choice(struct tiles *t, struct op *op, const struct tile_choice *choice)
{
	t->context->register_tiles++;
	record_register_tile(t->module, op, &choice->schedule);
	order_readers(t, op, choice);
}

static void tile_kernel(struct tiles *t, struct tiled *tiled)
{
	const struct platform *platform = t->context->platform;
	struct op *op = tiled->op;
	struct resources all = platform_total(platform);
	double part = tiled->terms / t->terms;
	double now = tiled->weight / t->weight_left;
	struct tile_kernel kernel = { .module = t->module,
		.platform = platform,
		.op = op,
		.loads = ARENA_ARRAY(t->module->arena, int, op->operands + 1),
		.is_stored = is_only_stored(op),
		.reader_dsp = reader_dsp(t, op) };
	int64_t *wanted = ARENA_ARRAY(t->module->arena, int64_t, op->kernel->loops + 1);
	int64_t *wanted_lanes = ARENA_ARRAY(t->module->arena, int64_t, op->kernel->loops + 1);
	kernel.is_read = is_read_by_tile(t, op, wanted, wanted_lanes);
	kernel.wanted_lanes = wanted_lanes;
	kernel.wanted = wanted;
	for (int j = 0; j < op->operands; j++)
		kernel.loads[j] = tensor_source_of(op->operand[j])->kind == SOURCE_MEMORY;
	struct tile_limits limits = { .dsp = (int64_t)((double)t->dsp_left * now),
		.memory = { .bram18 = (int64_t)((double)all.bram18 * part / MEMORY_SHARE),
		        .uram = (int64_t)((double)all.uram * part / MEMORY_SHARE) },
		.ports = t->ports_left / t->left,
		.shares = t->tiled.count == 1 };
	const struct tile_choice *twin = twin_of(t, tiled, &limits);
	tiled->choice = twin ? *twin : choose_cached(t, &kernel, &limits);
	t->left--;
	t->weight_left -= tiled->weight;
	if (!tiled->choice.found)
		return;
	t->dsp_left -= tiled->choice.dsp;
	t->ports_left -= tiled->choice.ports;
	record_choice(t, op, &tiled->choice);
}

static void forget_choices(const struct tiles *t, struct block *body)
{
	for (struct op *op = body->first; op; op = op->next)
		attr_set(t->module, op, KEY_REGISTER_TILE, NULL);
	t->context->register_tiles = 0;
}

/* Chooses register tiles with the DSPs shared by the weights; returns the cycles of the slowest
 * kernel. */
static double share_dsps(struct tiles *t, struct block *body)
{
	double cycles = 0;
	forget_choices(t, body);
	t->dsp_left = t->dsp;
	t->ports_left = t->ports;
	t->left = (int)t->tiled.count;
	t->weight_left = 0;
	for (int i = 0; i < t->left; i++)
		t->weight_left += t->tiled.data[i].weight;
	for (size_t i = 0; i < t->tiled.count; i++) {
		struct tiled *tiled = &t->tiled.data[i];
		tile_kernel(t, tiled);
		if (!tiled->choice.found)
			cycles = HUGE_VAL;
		else if (tiled->choice.cycles > cycles)
			cycles = tiled->choice.cycles;
	}
	return cycles;
}

/* Gives slower kernels more DSPs while there are searches left; the best choices stay. */
static void balance(struct tiles *t, struct block *body)
{
	size_t count = t->tiled.count;
	double least = HUGE_VAL;
	for (size_t searches = 0; !searches || searches < SEARCHES; searches += count) {
		double cycles = share_dsps(t, body);
		for (size_t i = 0; i < count; i++) {
			struct tiled *tiled = &t->tiled.data[i];
			if (!searches || cycles < least)
				tiled->best = tiled->choice;
			tiled->weight *= sqrt(tiled->choice.cycles / cycles);
		}
		least = cycles < least ? cycles : least;
		if (count == 1 || cycles == HUGE_VAL)
			break;
	}
	forget_choices(t, body);
	for (size_t i = 0; i < count; i++)
		if (t->tiled.data[i].best.found)
			record_choice(t, t->tiled.data[i].op, &t->tiled.data[i].best);
}

bool choose_register_tiles(struct pass_context *context, struct module *module)
{
	struct block *body = module_main(module)->region[0];
	struct tiles t = { .context = context, .module = module, .ports = ports_of(context) };
	context->register_tiles = 0;
	if (workload_of(module_main(module)) != WORKLOAD_NONE ||
	        choice_word(&context->choices, CHOICE_REGISTER_TILES) == REGISTER_TILES_NONE)
		return true;
	split_posts(&t, body);
	find_tensor_sources(module, NULL);
	count_work(&t, body);
	if (t.tiled.count)
		balance(&t, body);
	return true;
}
