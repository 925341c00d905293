/* A kernel whose readers each need only a part of its result becomes one kernel per part.
 *
 * Condition: along one parallel loop, every access of every reader stays inside a range of that
 * loop's counter, the ranges that overlap joined are not the whole loop, and the result is not a
 * result of main.  The parts compute what they computed before, with offsets moved; elements
 * that nobody reads are not computed any more.  (A GEMM that makes queries, keys and values at
 * once: three GEMMs over slices of the weight, and no reader has to skip the tokens of the
 * others.)
 * A vector stays whole where every element is read and no reader is elementwise work that a
 * slice could join: its parts come one after the other, each reader drops the words before its
 * own, and one kernel does instead of several.  (Of a matrix the parts of all rows would have to
 * wait for each other, but for one whose rows a unit takes in counted tiles.) Exact.  Copies
 * that became whole are merged away.  Best before fuse_elementwise: slices then join their only
 * readers. */
#include "ir/workload.h"
#include "fusion/fuse.h"
#include "tensor/merge.h"
#include "fusion/fusion_passes.h"
#include <string.h>

struct use {
	struct op *op;
	int operand;
};

struct uses {
	VEC(struct use) list;
};

struct interval {
	int64_t low, high;
};

struct reader { /* how one operand walks the digits of the result */
	struct use use;
	/* [loops of the producer] counter at the first element; -1: not known */
	int64_t *base;
	int64_t *reach; /* … at the last */
	int *digit;     /* [loops of the reader] producer loop, -1: none */
};

struct consumer_split {
	struct module *module;
	bool tiles; /* a unit takes counted tiles of a matrix */
	struct op *producer;
	int *order, digits;
	VEC(struct reader) readers;
};

static int64_t low_of(const struct access *access, int loop)
{
	const struct guard_range *guard = access_guard(access, loop);
	return guard ? guard->low : 0;
}

static int64_t count_of(const struct kernel *kernel, const struct access *access, int loop)
{
	const struct guard_range *guard = access_guard(access, loop);
	return guard ? guard->high - guard->low : kernel->loop[loop].extent;
}

static bool read_digits(const struct consumer_split *consumer_split, struct reader *reader)
{
	const struct kernel *producer = consumer_split->producer->kernel;
	const struct kernel *kernel = reader->use.op->kernel;
	const struct access *access = &kernel->operand[reader->use.operand];
	int64_t first = access->offset;
	if (access->index_operand >= 0)
		return false;
	for (int l = 0; l < kernel->loops; l++)
		first += access->stride[l] * low_of(access, l);
	if (first < 0)
		return false;
	for (int d = 0; d < consumer_split->digits; d++) {
		int t = consumer_split->order[d];
		reader->base[t] = reader->reach[t] =
		        first / producer->result.stride[t] % producer->loop[t].extent;
	}
	for (int l = 0; l < kernel->loops; l++) {
		reader->digit[l] = -1;
		for (int d = consumer_split->digits - 1; d >= 0 && access->stride[l] > 0; d--)
			if (producer->result.stride[consumer_split->order[d]] <= access->stride[l])
				reader->digit[l] = consumer_split->order[d];
		int t = reader->digit[l];
		if (access->stride[l] < 0 ||
		        (access->stride[l] &&
		                (t < 0 || access->stride[l] % producer->result.stride[t])))
			return false;
		if (t >= 0)
			reader->reach[t] += access->stride[l] / producer->result.stride[t] *
			        (count_of(kernel, access, l) - 1);
	}
	for (int d = 0; d < consumer_split->digits; d++)
		if (reader->reach[consumer_split->order[d]] >=
		        producer->loop[consumer_split->order[d]].extent)
			return false;
	return true;
}

static bool collect_readers(struct consumer_split *consumer_split, const struct uses *uses)
{
	struct arena *arena = consumer_split->module->arena;
	const struct kernel *producer = consumer_split->producer->kernel;
	for (size_t u = 0; u < uses->list.count; u++) {
		struct reader reader = { .use = uses->list.data[u] };
		if (reader.use.op->code != OP_KERNEL)
			return false;
		reader.base = ARENA_ARRAY(arena, int64_t, producer->loops);
		reader.reach = ARENA_ARRAY(arena, int64_t, producer->loops);
		reader.digit = ARENA_ARRAY(arena, int, reader.use.op->kernel->loops);
		if (!read_digits(consumer_split, &reader))
			return false;
		VEC_PUSH(arena, &consumer_split->readers, reader);
	}
	return consumer_split->readers.count > 0;
}

/* Ranges of loop t that readers need, joined where they overlap; ascending. */
static int intervals_of(
        const struct consumer_split *consumer_split, int t, struct interval *interval)
{
	int count = 0;
	for (size_t r = 0; r < consumer_split->readers.count; r++) {
		struct interval next = { consumer_split->readers.data[r].base[t],
			consumer_split->readers.data[r].reach[t] + 1 };
		int kept = 0;
		for (int i = 0; i < count; i++) {
			if (interval[i].high <= next.low || next.high <= interval[i].low) {
				interval[kept++] = interval[i];
				continue;
			}
			next.low = next.low < interval[i].low ? next.low : interval[i].low;
			next.high = next.high > interval[i].high ? next.high : interval[i].high;
		}
		int at = kept;
		for (; at > 0 && interval[at - 1].low > next.low; at--)
			interval[at] = interval[at - 1];
		interval[at] = next;
		count = kept + 1;
	}
	return count;
}

static void shift_access(
        struct module *module, struct access *access, int loops, int t, struct interval range)
{
	struct access old = *access;
	*access = access_copy(module, &old, loops);
	access->offset += access->stride[t] * range.low;
	for (int g = 0; g < access->guards; g++) {
		struct guard_range *guard = &access->guard[g];
		if (guard->loop != t)
			continue;
		int64_t low = guard->low > range.low ? guard->low : range.low;
		int64_t high = guard->high < range.high ? guard->high : range.high;
		guard->low = low < high ? low - range.low : 0;
		guard->high = low < high ? high - range.low : 0;
	}
}

static void shift_index(struct module *module, struct body *body, int loops, int t, int64_t low)
{
	struct body result = { 0 };
	if (!body->count)
		return;
	int *index = ARENA_ARRAY(module->arena, int, loops);
	for (int l = 0; l < loops; l++) {
		int64_t *factor = ARENA_ARRAY(module->arena, int64_t, loops);
		factor[l] = 1;
		index[l] = body_affine(module, &result, loops, factor, l == t ? low : 0);
	}
	result.result = body_rewrite(
	        module, &result, body, (struct body_map){ .index = index, .accumulator = -1 });
	body_remove_dead(module, &result);
	*body = result;
}

static struct op *make_part(
        const struct consumer_split *consumer_split, int t, struct interval range, int number)
{
	struct module *module = consumer_split->module;
	const struct op *producer = consumer_split->producer;
	struct kernel *kernel = kernel_clone(module, producer->kernel, producer->operands);
	kernel->name = text_format(module->arena, "%s_%d", kernel->name, number);
	kernel->loop[t].extent = range.high - range.low;
	for (int j = 0; j < producer->operands; j++)
		shift_access(module, &kernel->operand[j], kernel->loops, t, range);
	shift_index(module, &kernel->update, kernel->loops, t, range.low);
	shift_index(module, &kernel->post, kernel->loops, t, range.low);
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, consumer_split->digits);
	int64_t below = 1;
	for (int d = consumer_split->digits - 1; d >= 0; d--) {
		shape[d] = kernel->loop[consumer_split->order[d]].extent;
		kernel->result.stride[consumer_split->order[d]] = below;
		below *= shape[d];
	}
	const struct type *type = type_shaped(module, TYPE_TENSOR, consumer_split->digits, shape,
	        type_scalar(producer->result[0]->type));
	struct op *part = op_new(module, OP_KERNEL, producer->location, producer->operands,
	        producer->operand, 1, &type);
	part->kernel = kernel;
	return part;
}

static void read_part(const struct consumer_split *consumer_split, const struct reader *reader,
        const struct op *part, int t, struct interval range)
{
	const struct kernel *producer = consumer_split->producer->kernel;
	struct kernel *kernel = reader->use.op->kernel;
	struct access *access = &kernel->operand[reader->use.operand];
	access->offset = 0;
	for (int d = 0; d < consumer_split->digits; d++) {
		int loop = consumer_split->order[d];
		access->offset += part->kernel->result.stride[loop] *
		        (reader->base[loop] - (loop == t ? range.low : 0));
	}
	for (int l = 0; l < kernel->loops; l++) {
		int digit = reader->digit[l];
		if (digit >= 0)
			access->stride[l] = access->stride[l] / producer->result.stride[digit] *
			        part->kernel->result.stride[digit];
		access->offset -= access->stride[l] * low_of(access, l);
	}
	reader->use.op->operand[reader->use.operand] = part->result[0];
}

static void add_uses(struct module *module, struct op *op)
{
	for (int j = 0; j < op->operands; j++) {
		struct uses *uses = op->operand[j]->data;
		struct use use = { op, j };
		if (uses)
			VEC_PUSH(module->arena, &uses->list, use);
	}
}

static void remove_uses(const struct op *op)
{
	for (int j = 0; j < op->operands; j++) {
		struct uses *uses = op->operand[j]->data;
		size_t kept = 0;
		for (size_t u = 0; uses && u < uses->list.count; u++)
			if (uses->list.data[u].op != op)
				uses->list.data[kept++] = uses->list.data[u];
		if (uses)
			uses->list.count = kept;
	}
}

static void split_loop(const struct consumer_split *consumer_split, int t, int count,
        const struct interval *interval)
{
	remove_uses(consumer_split->producer);
	for (int i = 0; i < count; i++) {
		struct op *part = make_part(consumer_split, t, interval[i], i);
		op_insert_before(consumer_split->producer, part);
		for (size_t r = 0; r < consumer_split->readers.count; r++) {
			const struct reader *reader = &consumer_split->readers.data[r];
			if (interval[i].low <= reader->base[t] &&
			        reader->base[t] < interval[i].high)
				read_part(consumer_split, reader, part, t, interval[i]);
		}
		kernel_tidy(consumer_split->module, part);
		add_uses(consumer_split->module, part);
	}
	op_remove(consumer_split->producer);
}

/* It hands on one operand as it is: a slice that becomes a result of main. */
static bool is_copy(const struct kernel *kernel)
{
	return !kernel_has_reduction(kernel) &&
	        kernel->update.node[kernel->update.result].kind == NODE_OPERAND;
}

static bool stays_whole(const struct consumer_split *consumer_split, int t, int count,
        const struct interval *interval)
{
	int64_t elements = 1;
	int64_t covered = 0;
	int64_t own = consumer_split->producer->kernel->loop[t].extent;
	for (int d = 0; d < consumer_split->digits; d++)
		elements *= consumer_split->producer->kernel->loop[consumer_split->order[d]].extent;
	for (int i = 0; i < count; i++)
		covered += interval[i].high - interval[i].low;
	for (size_t r = 0; r < consumer_split->readers.count; r++) {
		const struct kernel *reader = consumer_split->readers.data[r].use.op->kernel;
		if (!kernel_has_reduction(reader) && !is_copy(reader))
			return false;
	}
	return (elements == own || consumer_split->tiles) && covered == own;
}

static bool split_kernel(struct module *module, struct op *op, bool tiles)
{
	struct consumer_split consumer_split = { .module = module,
		.tiles = tiles,
		.producer = op,
		.order = ARENA_ARRAY(module->arena, int, op->kernel->loops) };
	if (!fuse_digits(module, op, consumer_split.order, &consumer_split.digits) ||
	        !collect_readers(&consumer_split, op->result[0]->data))
		return false;
	struct interval *interval =
	        ARENA_ARRAY(module->arena, struct interval, consumer_split.readers.count + 1);
	for (int d = 0; d < consumer_split.digits; d++) {
		int t = consumer_split.order[d];
		int count = intervals_of(&consumer_split, t, interval);
		if (count == 1 && interval[0].low == 0 &&
		        interval[0].high == op->kernel->loop[t].extent)
			continue;
		if (stays_whole(&consumer_split, t, count, interval))
			return false;
		split_loop(&consumer_split, t, count, interval);
		return true;
	}
	return false;
}

static void clear(struct op *op, void *context)
{
	for (int r = 0; r < op->results; r++)
		op->result[r]->data = ARENA_NEW(((struct module *)context)->arena, struct uses);
}

/* Last first: what a part does not read any more may split its own producers. */
static bool split_block(struct module *module, struct block *block, bool tiles)
{
	bool changed = false;
	ir_walk(block, clear, module);
	for (int i = 0; i < block->arguments; i++)
		block->argument[i]->data = NULL;
	for (struct op *op = block->first; op; op = op->next)
		add_uses(module, op);
	struct op *previous;
	for (struct op *op = block->last; op; op = previous) {
		previous = op->previous;
		if (op->code == OP_KERNEL)
			changed |= split_kernel(module, op, tiles);
	}
	return changed;
}

/* Of a power of two of tokens attention waits for no keys of later tiles (causal_buffer.h), or
 * there are two tiles at most.  Else queries stand apart from keys, as another product
 * (tile_tokens.c). */
static bool has_power_of_two_tokens(const struct pass_context *context, const struct op *main)
{
	int64_t rows = context->quant ? run_time_tokens_least(main) : 0;
	return rows && (rows & (rows - 1)) == 0 && has_engine(context);
}

bool split_by_consumer(struct pass_context *context, struct module *module)
{
	const struct op *main = module_main(module);
	struct block *block = main->region[0];
	if (block_is_flat(block) &&
	        split_block(module, block, has_power_of_two_tokens(context, main)))
		merge_block(module, block);
	return true;
}
