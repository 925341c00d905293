/* Partitions attention by the heads of the KV cache, so that partitions run in parallel.
 * Before: one kernel chain walks all heads of the cache
 * After:  N chains for an N-th of the heads each, and a kernel that concatenates their results
 * A chain takes one row of one head a cycle, which limits long contexts, and heads do not depend on
 * each other.  The outermost extent of a cache, and of every kernel that walks it in the same way,
 * is cut.  Partitions of a large cache have buffers and loaders of their own (lower_loads.c).  If a
 * row serves many tokens contractions limit: only --kv-partitions cuts then.
 * Needs: fused kernels; contractions in the engine, else the board is full of those.
 * Guarantees: kernels other than those are unchanged.
 * Exact.
 * Ends: each kernel is cut once. */
#include "ir/workload.h"
#include "ir/kernel_edit.h"
#include "attention/attention_passes.h"

enum { PARTITIONS_OF_BATCH = 4 };

/* A kernel that is cut; it is the `data` of its result. */
struct partitioned {
	struct op *op;
	int loop; /* the loop that is cut */
	int64_t parts;
	struct value **part; /* results of the partitions: [parts] */
};

struct partitioner {
	struct module *module;
	int64_t most; /* partitions */
};

/* Is the value a KV cache, or that of one layer? */
static bool is_state(const struct op *main, const struct value *value)
{
	if (value->def && value->def->code == OP_LAYER_SELECT)
		value = value->def->operand[1];
	if (value->def || value->block != main->region[0])
		return false;
	const struct attr *role = function_argument_attr(main, value->index, KEY_STREAM_ROLE);
	return role && text_same(role->text, "state");
}

static struct partitioned *partitioned_of(const struct value *value)
{
	return value->def && value->def->code == OP_KERNEL ? value->data : NULL;
}

/* The only loop that walks all elements in steps of `stride`, if the other loops stay within a
 * step; -1: there is none. */
static int outermost_loop(
        const struct kernel *kernel, const struct access *access, int64_t stride, int64_t elements)
{
	int found = -1;
	int64_t within = access->offset;
	for (int l = 0; l < kernel->loops; l++) {
		bool outermost =
		        access->stride[l] == stride && kernel->loop[l].extent * stride == elements;
		if (outermost)
			found = found < 0 ? l : kernel->loops;
		else
			within += access->stride[l] * (kernel->loop[l].extent - 1);
	}
	if (found == kernel->loops || access->index_operand >= 0)
		return -1;
	return access->offset >= 0 && within < stride ? found : -1;
}

/* That loop over the outermost dim of a cache that has several points. */
static int state_loop(
        const struct kernel *kernel, const struct access *access, const struct type *state)
{
	int64_t elements = type_elements(state);
	int64_t step = elements;
	for (int d = 0; d < state->rank && step == elements; d++)
		step /= state->shape[d];
	return outermost_loop(kernel, access, step, elements);
}

/* Splits a loop that walks the whole operand in smaller steps, so that one walks it by `stride`. */
static void split_at_stride(struct module *module, struct op *op, int operand, int64_t stride)
{
	const struct kernel *kernel = op->kernel;
	const struct access *access = &kernel->operand[operand];
	int64_t elements = type_elements(op->operand[operand]->type);
	for (int l = 0; l < kernel->loops; l++) {
		int64_t own = access->stride[l];
		int64_t extent = kernel->loop[l].extent;
		if (own <= 0 || own >= stride || stride % own || own * extent != elements ||
		        kernel->loop[l].reduction || kernel_is_guarded(op, l))
			continue;
		kernel_split_loop(module, op, l, stride / own);
		return;
	}
}

/* Can the loop be cut?  It walks the result outermost, and nothing else depends on it. */
static bool can_cut(const struct op *op, int loop)
{
	const struct kernel *kernel = op->kernel;
	if (kernel->loop[loop].reduction || kernel->loop[loop].run_time)
		return false;
	if (kernel_is_guarded(op, loop) || body_uses_counter(&kernel->update, loop) ||
	        body_uses_counter(&kernel->post, loop))
		return false;
	return kernel->result.offset == 0 &&
	        outermost_loop(kernel, &kernel->result, kernel->result.stride[loop],
	                type_elements(op->result[0]->type)) == loop;
}

/* The loop along which the operand is cut, or can be if it is a cache; -1: none. */
static int operand_loop(const struct op *op, int operand)
{
	const struct access *access = &op->kernel->operand[operand];
	const struct partitioned *producer = partitioned_of(op->operand[operand]);
	const struct type *type = op->operand[operand]->type;
	if (!producer)
		return state_loop(op->kernel, access, type);
	int64_t stride = producer->op->kernel->result.stride[producer->loop];
	return outermost_loop(op->kernel, access, stride, type_elements(type));
}

/* The loop along which a kernel can be cut as its operands are; -1: none.  *parts: partitions of
 * operands that are cut already, 0 if none is. */
static int loop_of_parts(
        struct module *module, const struct op *main, struct op *op, int64_t *parts)
{
	int loop = -1;
	*parts = 0;
	for (int j = 0; j < op->operands; j++) {
		const struct partitioned *producer = partitioned_of(op->operand[j]);
		if (producer)
			split_at_stride(
			        module, op, j, producer->op->kernel->result.stride[producer->loop]);
	}
	for (int j = 0; j < op->operands; j++) {
		const struct partitioned *producer = partitioned_of(op->operand[j]);
		if (!producer && !is_state(main, op->operand[j]))
			continue;
		int own = operand_loop(op, j);
		if (own < 0 || (loop >= 0 && loop != own) ||
		        (producer && *parts && *parts != producer->parts))
			return -1;
		if (producer)
			*parts = producer->parts;
		loop = own;
	}
	return loop >= 0 && can_cut(op, loop) ? loop : -1;
}

/* Notes the kernels that are cut, with as many partitions as divide the extent. */
static void choose_partitions(
        struct partitioner *partitioner, const struct op *main, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			choose_partitions(partitioner, main, op->region[0]);
		int64_t parts;
		int loop = op->code == OP_KERNEL
		        ? loop_of_parts(partitioner->module, main, op, &parts)
		        : -1;
		if (loop < 0)
			continue;
		int64_t most = 1;
		int64_t extent = op->kernel->loop[loop].extent;
		while (2 * most <= partitioner->most && extent % (2 * most) == 0)
			most *= 2;
		parts = parts ? parts : most;
		if (parts < 2)
			continue;
		struct partitioned *partitioned =
		        ARENA_NEW(partitioner->module->arena, struct partitioned);
		*partitioned = (struct partitioned){ .op = op,
			.loop = loop,
			.parts = parts,
			.part = ARENA_ARRAY(partitioner->module->arena, struct value *, parts) };
		op->result[0]->data = partitioned;
	}
}

/* The type of a partition: the outermost dim is cut; one dim of all elements where the extent is no
 * dim of its own. */
static const struct type *part_type(
        struct module *module, const struct type *type, int64_t extent, int64_t parts)
{
	int64_t *shape =
	        arena_copy(module->arena, type->shape, sizeof *type->shape * (size_t)type->rank);
	int64_t elements = type_elements(type) / parts;
	int first = 0;
	while (first < type->rank - 1 && shape[first] == 1)
		first++;
	if (shape[first] != extent)
		return type_shaped(module, TYPE_TENSOR, 1, &elements, type_scalar(type));
	shape[first] /= parts;
	return type_shaped(module, TYPE_TENSOR, type->rank, shape, type_scalar(type));
}

/* The kernel of one partition, inserted before the original. */
static struct value *add_part(
        struct module *module, const struct partitioned *partitioned, int64_t part)
{
	struct op *op = partitioned->op;
	struct kernel *kernel = kernel_clone(module, op->kernel, op->operands);
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, op->operands + 1);
	int64_t extent = kernel->loop[partitioned->loop].extent;
	int64_t begin = extent / partitioned->parts * part;
	for (int j = 0; j < op->operands; j++) {
		const struct partitioned *producer = partitioned_of(op->operand[j]);
		operand[j] = producer ? producer->part[part] : op->operand[j];
		if (!producer)
			kernel->operand[j].offset +=
			        kernel->operand[j].stride[partitioned->loop] * begin;
	}
	kernel->loop[partitioned->loop].extent = extent / partitioned->parts;
	kernel->name =
	        text_format(module->arena, "%s_partition%lld", kernel->name, (long long)part);
	const struct type *type =
	        part_type(module, op->result[0]->type, extent, partitioned->parts);
	struct op *copy = kernel_new(
	        module, op->location, kernel->name, kernel->loops, op->operands, operand, type);
	copy->kernel = kernel;
	attr_set(module, copy, KEY_KV_PARTITION_OF, attr_string(module, op->kernel->name));
	op_insert_before(op, copy);
	return copy->result[0];
}

/* The kernel that concatenates the partitions, for readers that are not cut. */
static struct value *join_parts(struct module *module, const struct partitioned *partitioned)
{
	struct op *op = partitioned->op;
	const struct type *type = op->result[0]->type;
	const struct type *scalar = type_scalar(type);
	int parts = (int)partitioned->parts;
	int64_t each = type_elements(type) / parts;
	struct op *join = kernel_new(module, op->location,
	        text_format(module->arena, "%s_joined", op->kernel->name), 2, parts,
	        partitioned->part, type);
	struct kernel *kernel = join->kernel;
	kernel->loop[0].extent = parts;
	kernel->loop[1].extent = each;
	kernel->result.stride[0] = each;
	kernel->result.stride[1] = 1;
	int chosen = -1;
	for (int i = 0; i < parts; i++) {
		kernel->operand[i].stride[1] = 1;
		access_add_guard(module, &kernel->operand[i],
		        (struct guard_range){ .loop = 0, .low = i, .high = i + 1 });
		int own = body_operand(module, &kernel->update, scalar, i);
		if (chosen >= 0)
			own = body_op(module, &kernel->update, OP_SELECT, scalar,
			        body_active(module, &kernel->update, i), own, chosen);
		chosen = own;
	}
	kernel->update.result = chosen;
	op_insert_before(op, join);
	return join->result[0];
}

/* Does an operation that is not cut read the value? */
static bool is_read_whole(const struct block *block, const struct value *value)
{
	for (const struct op *op = block->first; op; op = op->next) {
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == value &&
			        !(op->code == OP_KERNEL && partitioned_of(op->result[0])))
				return true;
		if (op->code == OP_FOR && is_read_whole(op->region[0], value))
			return true;
	}
	return false;
}

/* Replaces the noted kernels by those of their partitions. */
static void cut_block(struct partitioner *partitioner, struct block *block)
{
	struct op *last = block->last;
	for (struct op *op = block->first; op; op = op->next) {
		struct partitioned *partitioned =
		        op->code == OP_KERNEL ? partitioned_of(op->result[0]) : NULL;
		if (op->code == OP_FOR)
			cut_block(partitioner, op->region[0]);
		for (int64_t i = 0; partitioned && i < partitioned->parts; i++)
			partitioned->part[i] = add_part(partitioner->module, partitioned, i);
	}
	for (struct op *op = last, *before; op; op = before) {
		before = op->previous;
		struct partitioned *partitioned =
		        op->code == OP_KERNEL ? partitioned_of(op->result[0]) : NULL;
		if (!partitioned)
			continue;
		if (is_read_whole(block, op->result[0]))
			ir_replace(
			        block, op->result[0], join_parts(partitioner->module, partitioned));
		op_remove(op);
	}
}

/* The caches of a batch that the engine computes tile by tile are more work than its weights. */
static int64_t default_partitions(const struct pass_context *context, const struct op *main)
{
	if (!cache_rows_serve_few_tokens(main))
		return 1;
	return workload_has_few_tokens(workload_of(main))
	        ? choice_count(&context->choices, CHOICE_KV_PARTITIONS)
	        : PARTITIONS_OF_BATCH;
}

bool partition_kv_heads(struct pass_context *context, struct module *module)
{
	struct op *main = module_main(module);
	bool requested = context->choices.value[CHOICE_KV_PARTITIONS];
	struct partitioner partitioner = { .module = module,
		.most = requested ? choice_count(&context->choices, CHOICE_KV_PARTITIONS)
		                  : default_partitions(context, main) };
	if (partitioner.most < 2 || workload_of(main) == WORKLOAD_NONE)
		return true;
	ir_clear_data(main->region[0]);
	choose_partitions(&partitioner, main, main->region[0]);
	cut_block(&partitioner, main->region[0]);
	ir_clear_data(main->region[0]);
	return true;
}
