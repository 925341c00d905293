/* What is read of a state is worked on in parts, side by side: the heads of attention do not
 * look at each other, and one kernel that takes a row of one head a cycle is what a long context
 * waits for.  A state's outermost extent, and with it that of every kernel that walks it in the
 * same way, is cut into equal parts, each with kernels of its own; where they end their results
 * are put one after the other.  The parts of a large state have buffers and loaders of their own
 * (lower_loads.c). Many tokens read a row together, and there contractions take the time and the
 * board: then a wish alone cuts. Needs: fused kernels, contractions in a unit (else the board is
 * full of those).  Guarantees: nothing but that; other kernels are as they were.  Exact. */
#include "ir/workload.h"
#include "ir/kernel_edit.h"
#include "attention/attention_passes.h"

struct member { /* a kernel that is cut; at value->data of its result */
	struct op *op;
	int loop; /* of the parts */
	int64_t parts;
	struct value **part; /* [parts] */
};

struct cutter {
	struct module *module;
	int64_t most; /* parts */
};

static bool is_state(const struct op *main, const struct value *value)
{
	if (value->def && value->def->code == OP_LAYER_SELECT)
		value = value->def->operand[1];
	const struct attr *role = !value->def && value->block == main->region[0]
	        ? function_argument_attr(main, value->index, KEY_STREAM_ROLE)
	        : NULL;
	return role && text_same(role->text, "state");
}

static struct member *member_of(const struct value *value)
{
	return value->def && value->def->code == OP_KERNEL ? value->data : NULL;
}

/* The loop that walks all of a value in its outermost steps of `stride` elements, everything
 * else staying within a step; -1: there is none. */
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
	return found >= 0 && found < kernel->loops && access->index_operand < 0 &&
	                access->offset >= 0 && within < stride
	        ? found
	        : -1;
}

/* Of a state: whichever of its dims is the first of several points. */
static int state_loop(
        const struct kernel *kernel, const struct access *access, const struct type *state)
{
	int64_t elements = type_elements(state);
	int64_t step = elements;
	for (int d = 0; d < state->rank && step == elements; d++)
		step /= state->shape[d];
	return outermost_loop(kernel, access, step, elements);
}

/* A loop that walks what `stride` steps over together with what lies within becomes two. */
static void open_loop(struct module *module, struct op *op, int operand, int64_t stride)
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

static bool can_cut(const struct op *op, int loop)
{
	const struct kernel *kernel = op->kernel;
	if (kernel->loop[loop].reduction || kernel->loop[loop].run_time ||
	        kernel_is_guarded(op, loop) || body_uses_counter(&kernel->update, loop) ||
	        body_uses_counter(&kernel->post, loop))
		return false;
	return kernel->result.offset == 0 &&
	        outermost_loop(kernel, &kernel->result, kernel->result.stride[loop],
	                type_elements(op->result[0]->type)) == loop;
}

/* The loop along which a kernel can be cut as its operands are; -1: none.  parts: of those that
 * are cut already, 0 if none is. */
static int loop_of_parts(
        struct module *module, const struct op *main, struct op *op, int64_t *parts)
{
	const struct kernel *kernel = op->kernel;
	int loop = -1;
	*parts = 0;
	for (int j = 0; j < op->operands; j++)
		if (member_of(op->operand[j]))
			open_loop(module, op, j,
			        member_of(op->operand[j])
			                ->op->kernel->result
			                .stride[member_of(op->operand[j])->loop]);
	for (int j = 0; j < op->operands; j++) {
		const struct member *maker = member_of(op->operand[j]);
		bool state = is_state(main, op->operand[j]);
		if (!maker && !state)
			continue;
		const struct type *type = op->operand[j]->type;
		int own = maker ? outermost_loop(kernel, &kernel->operand[j],
		                          maker->op->kernel->result.stride[maker->loop],
		                          type_elements(type))
		                : state_loop(kernel, &kernel->operand[j], type);
		if (own < 0 || (loop >= 0 && loop != own) ||
		        (maker && *parts && *parts != maker->parts))
			return -1;
		*parts = maker ? maker->parts : *parts;
		loop = own;
	}
	return loop >= 0 && can_cut(op, loop) ? loop : -1;
}

static void find_members(struct cutter *cutter, const struct op *main, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			find_members(cutter, main, op->region[0]);
		int64_t parts;
		int loop = op->code == OP_KERNEL ? loop_of_parts(cutter->module, main, op, &parts)
		                                 : -1;
		if (loop < 0)
			continue;
		int64_t most = 1;
		int64_t extent = op->kernel->loop[loop].extent;
		while (2 * most <= cutter->most && extent % (2 * most) == 0)
			most *= 2;
		parts = parts ? parts : most;
		if (parts < 2)
			continue;
		struct member *member = ARENA_NEW(cutter->module->arena, struct member);
		*member = (struct member){ .op = op,
			.loop = loop,
			.parts = parts,
			.part = ARENA_ARRAY(cutter->module->arena, struct value *, parts) };
		op->result[0]->data = member;
	}
}

/* The type with its outermost extent cut; a run of numbers where that is no dim of its own. */
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

static struct value *add_part(struct module *module, const struct member *member, int64_t part)
{
	struct op *op = member->op;
	struct kernel *kernel = kernel_clone(module, op->kernel, op->operands);
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, op->operands + 1);
	int64_t extent = kernel->loop[member->loop].extent;
	int64_t begin = extent / member->parts * part;
	for (int j = 0; j < op->operands; j++) {
		const struct member *maker = member_of(op->operand[j]);
		operand[j] = maker ? maker->part[part] : op->operand[j];
		kernel->operand[j].offset +=
		        maker ? 0 : kernel->operand[j].stride[member->loop] * begin;
	}
	kernel->loop[member->loop].extent = extent / member->parts;
	kernel->name =
	        text_format(module->arena, "%s_partition%lld", kernel->name, (long long)part);
	const struct type *type = part_type(module, op->result[0]->type, extent, member->parts);
	struct op *copy = kernel_new(
	        module, op->location, kernel->name, kernel->loops, op->operands, operand, type);
	copy->kernel = kernel;
	attr_set(module, copy, KEY_KV_PARTITION_OF, attr_string(module, op->kernel->name));
	op_insert_before(op, copy);
	return copy->result[0];
}

/* All parts, one after the other. */
static struct value *join_parts(struct module *module, const struct member *member)
{
	struct op *op = member->op;
	const struct type *type = op->result[0]->type;
	const struct type *scalar = type_scalar(type);
	int parts = (int)member->parts;
	int64_t each = type_elements(type) / parts;
	struct op *join = kernel_new(module, op->location,
	        text_format(module->arena, "%s_joined", op->kernel->name), 2, parts, member->part,
	        type);
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
		chosen = chosen < 0 ? own
		                    : body_op(module, &kernel->update, OP_SELECT, scalar,
		                              body_active(module, &kernel->update, i), own, chosen);
	}
	kernel->update.result = chosen;
	op_insert_before(op, join);
	return join->result[0];
}

static bool is_read_whole(const struct block *block, const struct value *value)
{
	for (const struct op *op = block->first; op; op = op->next) {
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == value &&
			        !(op->code == OP_KERNEL && member_of(op->result[0])))
				return true;
		if (op->code == OP_FOR && is_read_whole(op->region[0], value))
			return true;
	}
	return false;
}

static void cut_block(struct cutter *cutter, struct block *block)
{
	struct op *last = block->last;
	for (struct op *op = block->first; op; op = op->next) {
		struct member *member = op->code == OP_KERNEL ? member_of(op->result[0]) : NULL;
		if (op->code == OP_FOR)
			cut_block(cutter, op->region[0]);
		for (int64_t i = 0; member && i < member->parts; i++)
			member->part[i] = add_part(cutter->module, member, i);
	}
	for (struct op *op = last, *before; op; op = before) {
		before = op->previous;
		struct member *member = op->code == OP_KERNEL ? member_of(op->result[0]) : NULL;
		if (!member)
			continue;
		if (is_read_whole(block, op->result[0]))
			ir_replace(block, op->result[0], join_parts(cutter->module, member));
		op_remove(op);
	}
}

bool partition_kv_heads(struct pass_context *context, struct module *module)
{
	struct op *main = module_main(module);
	bool requested =
	        context->choices.value[CHOICE_KV_PARTITIONS] || !engine_has_tiles(main->region[0]);
	struct cutter cutter = { .module = module,
		.most = requested ? choice_count(&context->choices, CHOICE_KV_PARTITIONS) : 1 };
	if (cutter.most < 2 || !has_contraction(main->region[0]))
		return true;
	ir_clear_data(main->region[0]);
	find_members(&cutter, main, main->region[0]);
	cut_block(&cutter, main->region[0]);
	ir_clear_data(main->region[0]);
	return true;
}
