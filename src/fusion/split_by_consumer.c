/* Splits a kernel whose readers each need only a part of its result.
 * Before: qkv = Σ x * w; q, k, v read a third of it each     After: three kernels with parts of w
 * Condition: along one parallel loop every access of a reader lies within a range; the ranges,
 * joined where they overlap, are not the whole loop; the result is no result of main.
 * A vector stays whole if all of it is read and no reader is elementwise work into which a part
 * could be inlined: its parts are computed one after another, so each reader just drops the words
 * before its own, and one kernel suffices.  So does a matrix whose rows the engine computes in
 * tiles that are counted at run time; other matrices would have to be buffered.
 * Needs: kernels; best before fuse_elementwise, which joins parts with their only readers.
 * Guarantees: elements that nobody reads are not computed; equal kernels are merged.
 * Exact.
 * Ends: each kernel is visited once, last first. */
#include "ir/workload.h"
#include "fusion/fuse.h"
#include "tensor/merge.h"
#include "fusion/fusion_passes.h"
#include <string.h>

/* A use of a value, as an operand of op. */
struct use {
	struct op *op;
	int operand;
};

/* All uses of a value; they are the `data` of the value. */
struct uses {
	VEC(struct use) list;
};

struct interval {
	int64_t low, high;
};

/* How one operand walks the loops of the producer. */
struct slice_reader {
	struct use use;
	int64_t *base;  /* [loops of the producer]: counter at the first element that is read */
	int64_t *reach; /* [loops of the producer]: counter at the last one */
	int *digit;     /* [loops of the reader]: the producer's loop; -1: none */
};

struct consumer_split {
	struct module *module;
	bool tiles; /* the engine computes matrices in tiles that are counted at run time */
	struct op *producer;
	int *order, digits; /* parallel loops of the producer by falling stride */
	VEC(struct slice_reader) readers;
};

static int64_t low_of(const struct access *access, int loop)
{
	const struct guard_range *guard = access_guard(access, loop);
	return guard ? guard->low : 0;
}

/* false: the reader does not walk the loops of the producer each by loops of its own. */
static bool read_digits(const struct consumer_split *s, struct slice_reader *reader)
{
	const struct kernel *producer = s->producer->kernel;
	const struct kernel *kernel = reader->use.op->kernel;
	const struct access *access = &kernel->operand[reader->use.operand];
	int64_t first = access->offset;
	if (access->index_operand >= 0)
		return false;
	for (int l = 0; l < kernel->loops; l++)
		first += access->stride[l] * low_of(access, l);
	if (first < 0)
		return false;
	for (int d = 0; d < s->digits; d++) {
		int t = s->order[d];
		reader->base[t] = reader->reach[t] =
		        first / producer->result.stride[t] % producer->loop[t].extent;
	}
	for (int l = 0; l < kernel->loops; l++) {
		reader->digit[l] = -1;
		for (int d = s->digits - 1; d >= 0 && access->stride[l] > 0; d--)
			if (producer->result.stride[s->order[d]] <= access->stride[l])
				reader->digit[l] = s->order[d];
		int t = reader->digit[l];
		if (access->stride[l] < 0 ||
		        (access->stride[l] &&
		                (t < 0 || access->stride[l] % producer->result.stride[t])))
			return false;
		if (t >= 0)
			reader->reach[t] += access->stride[l] / producer->result.stride[t] *
			        (access_extent(kernel, access, l) - 1);
	}
	for (int d = 0; d < s->digits; d++)
		if (reader->reach[s->order[d]] >= producer->loop[s->order[d]].extent)
			return false;
	return true;
}

/* Describes all readers.  false: one of them cannot be. */
static bool describe_readers(struct consumer_split *s, const struct uses *uses)
{
	struct arena *arena = s->module->arena;
	const struct kernel *producer = s->producer->kernel;
	for (size_t u = 0; u < uses->list.count; u++) {
		struct slice_reader reader = { .use = uses->list.data[u] };
		if (reader.use.op->code != OP_KERNEL)
			return false;
		reader.base = ARENA_ARRAY(arena, int64_t, producer->loops);
		reader.reach = ARENA_ARRAY(arena, int64_t, producer->loops);
		reader.digit = ARENA_ARRAY(arena, int, reader.use.op->kernel->loops);
		if (!read_digits(s, &reader))
			return false;
		VEC_PUSH(arena, &s->readers, reader);
	}
	return s->readers.count > 0;
}

/* Ranges of loop t that readers need, joined where they overlap; ascending. */
static int intervals_of(const struct consumer_split *s, int t, struct interval *interval)
{
	int count = 0;
	for (size_t r = 0; r < s->readers.count; r++) {
		struct interval next = { s->readers.data[r].base[t],
			s->readers.data[r].reach[t] + 1 };
		int left = 0;
		for (int i = 0; i < count; i++) {
			if (interval[i].high <= next.low || next.high <= interval[i].low) {
				interval[left++] = interval[i];
				continue;
			}
			next.low = next.low < interval[i].low ? next.low : interval[i].low;
			next.high = next.high > interval[i].high ? next.high : interval[i].high;
		}
		int at = left;
		for (; at > 0 && interval[at - 1].low > next.low; at--)
			interval[at] = interval[at - 1];
		interval[at] = next;
		count = left + 1;
	}
	return count;
}

/* Restricts an access to a range of loop t, which then counts from 0. */
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

/* The counter of loop t in a body becomes counter + low. */
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

/* The kernel of one range of loop t. */
static struct op *make_part(
        const struct consumer_split *s, int t, struct interval range, int number)
{
	struct module *module = s->module;
	const struct op *producer = s->producer;
	struct kernel *kernel = kernel_clone(module, producer->kernel, producer->operands);
	kernel->name = text_format(module->arena, "%s_%d", kernel->name, number);
	kernel->loop[t].extent = range.high - range.low;
	for (int j = 0; j < producer->operands; j++)
		shift_access(module, &kernel->operand[j], kernel->loops, t, range);
	shift_index(module, &kernel->update, kernel->loops, t, range.low);
	shift_index(module, &kernel->post, kernel->loops, t, range.low);
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, s->digits);
	int64_t below = 1;
	for (int d = s->digits - 1; d >= 0; d--) {
		shape[d] = kernel->loop[s->order[d]].extent;
		kernel->result.stride[s->order[d]] = below;
		below *= shape[d];
	}
	const struct type *type = type_shaped(
	        module, TYPE_TENSOR, s->digits, shape, type_scalar(producer->result[0]->type));
	struct op *part = op_new(module, OP_KERNEL, producer->location, producer->operands,
	        producer->operand, 1, &type);
	part->kernel = kernel;
	return part;
}

/* Lets a reader read the part. */
static void read_part(const struct consumer_split *s, const struct slice_reader *reader,
        const struct op *part, int t, struct interval range)
{
	const struct kernel *producer = s->producer->kernel;
	struct kernel *kernel = reader->use.op->kernel;
	struct access *access = &kernel->operand[reader->use.operand];
	access->offset = 0;
	for (int d = 0; d < s->digits; d++) {
		int loop = s->order[d];
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
		size_t left = 0;
		for (size_t u = 0; uses && u < uses->list.count; u++)
			if (uses->list.data[u].op != op)
				uses->list.data[left++] = uses->list.data[u];
		if (uses)
			uses->list.count = left;
	}
}

static void split_loop(
        const struct consumer_split *s, int t, int count, const struct interval *interval)
{
	remove_uses(s->producer);
	for (int i = 0; i < count; i++) {
		struct op *part = make_part(s, t, interval[i], i);
		op_insert_before(s->producer, part);
		for (size_t r = 0; r < s->readers.count; r++) {
			const struct slice_reader *reader = &s->readers.data[r];
			if (interval[i].low <= reader->base[t] &&
			        reader->base[t] < interval[i].high)
				read_part(s, reader, part, t, interval[i]);
		}
		kernel_tidy(s->module, part);
		add_uses(s->module, part);
	}
	op_remove(s->producer);
}

/* Is it a copy, as of a slice that is a result of main? */
static bool is_copy(const struct kernel *kernel)
{
	return !kernel_has_reduction(kernel) &&
	        kernel->update.node[kernel->update.result].kind == NODE_OPERAND;
}

/* Does the kernel stay whole, as the file head says? */
static bool stays_whole(
        const struct consumer_split *s, int t, int count, const struct interval *interval)
{
	int64_t elements = 1;
	int64_t covered = 0;
	int64_t own = s->producer->kernel->loop[t].extent;
	for (int d = 0; d < s->digits; d++)
		elements *= s->producer->kernel->loop[s->order[d]].extent;
	for (int i = 0; i < count; i++)
		covered += interval[i].high - interval[i].low;
	for (size_t r = 0; r < s->readers.count; r++) {
		const struct kernel *reader = s->readers.data[r].use.op->kernel;
		if (!kernel_has_reduction(reader) && !is_copy(reader))
			return false;
	}
	return (elements == own || s->tiles) && covered == own;
}

static bool split_kernel(struct module *module, struct op *op, bool tiles)
{
	struct consumer_split split = { .module = module,
		.tiles = tiles,
		.producer = op,
		.order = ARENA_ARRAY(module->arena, int, op->kernel->loops) };
	if (!fuse_digits(module, op, split.order, &split.digits) ||
	        !describe_readers(&split, op->result[0]->data))
		return false;
	struct interval *interval =
	        ARENA_ARRAY(module->arena, struct interval, split.readers.count + 1);
	for (int d = 0; d < split.digits; d++) {
		int t = split.order[d];
		int count = intervals_of(&split, t, interval);
		if (count == 1 && interval[0].low == 0 &&
		        interval[0].high == op->kernel->loop[t].extent)
			continue;
		if (stays_whole(&split, t, count, interval))
			return false;
		split_loop(&split, t, count, interval);
		return true;
	}
	return false;
}

static void clear(struct op *op, void *context)
{
	for (int r = 0; r < op->results; r++)
		op->result[r]->data = ARENA_NEW(((struct module *)context)->arena, struct uses);
}

static void add_inner_uses(struct op *op, void *context)
{
	add_uses(context, op);
}

/* Last first: a part may need only a part of its own producers. */
static bool split_block(struct module *module, struct block *block, bool tiles)
{
	bool changed = false;
	for (struct op *op = block->first; op; op = op->next)
		if (op->code == OP_FOR)
			changed |= split_block(module, op->region[0], tiles);
	ir_clear_data(block);
	for (struct op *op = block->first; op; op = op->next)
		clear(op, module);
	ir_walk(block, add_inner_uses, module);
	struct op *previous;
	for (struct op *op = block->last; op; op = previous) {
		previous = op->previous;
		if (op->code == OP_KERNEL)
			changed |= split_kernel(module, op, tiles);
	}
	ir_clear_data(block);
	return changed;
}

/* With a power of two of tokens attention does not wait for keys of later tiles (causal_buffer.h),
 * or there are two tiles at most, so one product for queries and keys suffices.  Otherwise queries
 * need a product of their own (tile_tokens.c). */
static bool has_power_of_two_tokens(const struct pass_context *context, const struct op *main)
{
	int64_t rows = context->quant ? run_time_tokens_least(main) : 0;
	return rows && (rows & (rows - 1)) == 0 && engine_allowed(context);
}

bool split_by_consumer(struct pass_context *context, struct module *module)
{
	const struct op *main = module_main(module);
	struct block *block = main->region[0];
	ir_clear_data(block);
	if (block_is_flat(block) &&
	        split_block(module, block, has_power_of_two_tokens(context, main)))
		merge_block(module, block);
	return true;
}
