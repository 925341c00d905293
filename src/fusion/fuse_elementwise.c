/* Fuses elementwise kernels with their neighbours where that repeats no work worth a kernel.
 * Before: k1 = matmul; k2 = k1 + bias; k3 = gelu(k2)     After: one kernel, post = gelu(acc + bias)
 * inline     a producer with one consumer that reads each element at most once; copies and loop
 *            counters, however often they are read
 * trivial    one cheap operation on arguments of main (1 + weight), into elementwise consumers
 * statistic  one cheap operation on a tensor and a reduction of it (x - mean), into all readers:
 *            a second tensor would be buffered besides x; any on a tensor that is too large to wait
 *            on chip for the reduction (exp(x - max))
 * epilogue   the only consumer of a reduction, elementwise, as its post body
 * invariant  what a loop computes in every iteration is computed once (fuse_invariant.c)
 * layout     a copy that is a result of main takes over the readers of the original (fuse_layout.c)
 * Needs: kernels, no rolled layers.   Guarantees: none of these rules applies any more.
 * Exact: every element is computed by the same operations in the same order.
 * Ends: each success removes a kernel; a scan is linear in kernels and operands. */
#include "fusion/fuse.h"
#include "ir/kernel_signature.h"
#include "fusion/fusion_passes.h"

/* The operations that read a value; they are the `data` of the value. */
struct users {
	VEC(struct op *) ops; /* each one once */
};

static struct users *users_of(const struct value *value)
{
	return value->data;
}

/* `user` reads what `op` does: op is the user, or an operation inside it. */
struct user_reading {
	struct module *module;
	struct op *user;
};

static void add_reads(struct op *op, void *context)
{
	const struct user_reading *reading = context;
	for (int i = 0; i < op->operands; i++) {
		struct users *users = users_of(op->operand[i]);
		bool known = !users;
		for (size_t u = users ? users->ops.count : 0; u > 0 && !known; u--)
			known = users->ops.data[u - 1] == reading->user;
		if (!known)
			VEC_PUSH(reading->module->arena, &users->ops, reading->user);
	}
}

static void remove_reads(struct op *op, void *context)
{
	const struct op *user = context;
	for (int i = 0; i < op->operands; i++) {
		struct users *users = users_of(op->operand[i]);
		size_t left = 0;
		for (size_t u = 0; users && u < users->ops.count; u++)
			if (users->ops.data[u] != user)
				users->ops.data[left++] = users->ops.data[u];
		if (users)
			users->ops.count = left;
	}
}

static void add_user(struct module *module, struct op *op)
{
	struct user_reading reading = { module, op };
	add_reads(op, &reading);
	if (op->region[0])
		ir_walk(op->region[0], add_reads, &reading);
}

static void remove_user(struct op *op)
{
	remove_reads(op, op);
	if (op->region[0])
		ir_walk(op->region[0], remove_reads, op);
}

/* How often op reads the value; *operand: the last operand that does. */
static int reads(const struct op *op, const struct value *value, int *operand)
{
	int count = 0;
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j] == value) {
			*operand = j;
			count++;
		}
	return count;
}

static bool is_index(const struct op *op, int operand)
{
	for (int j = 0; j < op->operands; j++)
		if (op->kernel->operand[j].index_operand == operand)
			return true;
	return false;
}

/* Does no loop read an element of the operand twice?  Post bodies run once for each result, so
 * reduction loops do not count there. */
static bool reads_once(const struct op *op, int operand)
{
	const struct kernel *kernel = op->kernel;
	bool update = body_uses_operand(&kernel->update, operand);
	bool post = body_uses_operand(&kernel->post, operand);
	for (int l = 0; l < kernel->loops; l++) {
		const struct guard_range *guard = access_guard(&kernel->operand[operand], l);
		bool single = guard && guard->high - guard->low == 1;
		if (kernel->operand[operand].stride[l] == 0 && !single &&
		        (update || !kernel->loop[l].reduction))
			return false;
	}
	return !(update && post);
}

static bool has_gather(const struct op *op)
{
	for (int j = 0; j < op->operands; j++)
		if (op->kernel->operand[j].index_operand >= 0)
			return true;
	return false;
}

/* Is each element read once although several loops move in one dim (windows of a convolution)?
 * Tried on a copy, since composing may split loops. */
static bool windows_are_disjoint(
        struct module *module, const struct op *producer, const struct op *consumer, int operand)
{
	struct op copy = *consumer;
	struct composed composed;
	copy.kernel = kernel_clone(module, consumer->kernel, consumer->operands);
	if (!fuse_compose(module, producer, &copy, operand, &composed))
		return false;
	bool update = body_uses_operand(&consumer->kernel->update, operand);
	return composed.once || (!update && reads_once(consumer, operand));
}

/* One addition, product or negation at most? */
static bool is_cheap(const struct kernel *kernel)
{
	static const bool cheap[OP_COUNT] = {
		[OP_ADDF] = true,
		[OP_SUBF] = true,
		[OP_MULF] = true,
		[OP_NEGF] = true,
		[OP_ADDI] = true,
		[OP_SUBI] = true,
	};
	int operations = 0;
	for (int i = 0; i < kernel->update.count; i++) {
		const struct node *node = &kernel->update.node[i];
		if (node->kind == NODE_OP)
			operations += cheap[node->code] ? 1 : 2;
	}
	return operations <= 1;
}

/* One cheap operation on arguments of main. */
static bool is_trivial(const struct op *op)
{
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j]->def || op->kernel->operand[j].index_operand >= 0)
			return false;
	return is_cheap(op->kernel);
}

/* A loop counter as a number, and nothing else. */
static bool is_counter(const struct kernel *kernel)
{
	for (int i = 0; i < kernel->update.count; i++) {
		const struct node *node = &kernel->update.node[i];
		if (node->kind != NODE_OP ||
		        (node->code != OP_INDEX && node->code != OP_INDEX_CAST &&
		                node->code != OP_TRUNCI && node->code != OP_EXTSI))
			return false;
	}
	return !kernel->post.count && !kernel_has_reduction(kernel);
}

static bool is_reduction_of(const struct value *value, const struct value *of)
{
	int operand;
	return value->def && value->def->code == OP_KERNEL &&
	        kernel_has_reduction(value->def->kernel) && reads(value->def, of, &operand) > 0;
}

/* Is it a tensor in memory of which more than so many bytes pass before a reduction of it has a
 * result? What is computed of both cannot wait on chip. */
static bool passes_large(const struct value *tensor, const struct value *reduction, int64_t most)
{
	int64_t bytes =
	        type_elements(tensor->type) * ((type_bits(type_scalar(tensor->type)) + 7) / 8);
	return !tensor->def && bytes / type_elements(reduction->type) > most;
}

/* One cheap operation on a tensor and a reduction of it; any, where the tensor is large. */
static bool is_statistic(const struct op *op, int64_t most)
{
	if (op->operands != 2 || kernel_has_reduction(op->kernel))
		return false;
	for (int j = 0; j < 2; j++)
		if (is_reduction_of(op->operand[1 - j], op->operand[j]) &&
		        (is_cheap(op->kernel) ||
		                passes_large(op->operand[j], op->operand[1 - j], most)))
			return true;
	return false;
}

static bool can_inline(struct module *module, const struct op *producer, const struct op *consumer)
{
	int operand = -1;
	return consumer->code == OP_KERNEL && reads(consumer, producer->result[0], &operand) == 1 &&
	        !is_index(consumer, operand) && reads_once(consumer, operand) &&
	        windows_are_disjoint(module, producer, consumer, operand);
}

static bool is_repeated(struct module *module, const struct op *op, int64_t most)
{
	bool repeated = is_statistic(op, most);
	for (size_t u = 0; repeated && u < users_of(op->result[0])->ops.count; u++)
		repeated = can_inline(module, op, users_of(op->result[0])->ops.data[u]);
	return repeated;
}

static bool is_op(const struct node *node, enum op_code code)
{
	return node->kind == NODE_OP && node->code == code;
}

/* Is the node a select by a mask or by counters?  (A rectifier selects by comparing floats.) */
static bool is_masked_select(const struct body *body, int node)
{
	return is_op(&body->node[node], OP_SELECT) &&
	        !is_op(&body->node[body->node[node].argument[0]], OP_CMPF);
}

/* Does it select elements, as one row of several, for a reduction that alone reads them? */
static bool selects_row(const struct op *op)
{
	const struct users *users = users_of(op->result[0]);
	bool reduced = users->ops.count == 1 && users->ops.data[0]->code == OP_KERNEL &&
	        kernel_has_reduction(users->ops.data[0]->kernel);
	return reduced && !kernel_has_reduction(op->kernel) &&
	        is_masked_select(&op->kernel->update, op->kernel->update.result);
}

/* Or is it a sum of selected elements? */
static bool sums_selected_rows(const struct op *op)
{
	const struct body *body = &op->kernel->update;
	const struct node *sum = &body->node[body->result];
	return kernel_has_reduction(op->kernel) && is_op(sum, OP_ADDF) &&
	        (is_masked_select(body, sum->argument[0]) ||
	                is_masked_select(body, sum->argument[1]));
}

/* Does the producer compute rows of which the consumer selects one?  It is not fused: the last
 * layer would differ from the others, and layers could not be rolled. */
static bool is_selected_row(const struct op *producer, const struct op *consumer)
{
	const struct type *made = producer->kernel->type;
	return consumer->code == OP_KERNEL && !kernel_is_copy(producer) &&
	        made->kind == TYPE_FLOAT && (selects_row(consumer) || sums_selected_rows(consumer));
}

static bool try_inline(struct module *module, struct op *producer, struct op *consumer)
{
	int operand = -1;
	/* fuse_invariant.c has made this copy: inlining would undo it */
	bool trivial = is_trivial(producer) && consumer->code == OP_KERNEL &&
	        !kernel_has_reduction(consumer->kernel) && !kernel_is_copy(consumer);
	bool repeat = kernel_is_copy(producer) || is_counter(producer->kernel) || trivial;
	if (consumer->code != OP_KERNEL ||
	        (has_gather(producer) && kernel_has_reduction(consumer->kernel)) ||
	        is_selected_row(producer, consumer))
		return false;
	int count = reads(consumer, producer->result[0], &operand);
	if (is_index(consumer, operand) ||
	        (!repeat &&
	                (count != 1 || !reads_once(consumer, operand) ||
	                        !windows_are_disjoint(module, producer, consumer, operand))))
		return false;
	return fuse_inline(module, producer, consumer, operand);
}

static bool drop_kernel(struct op *op)
{
	remove_user(op);
	op_remove(op);
	return true;
}

static bool try_epilogue(struct module *module, struct op *op, struct op *consumer)
{
	return consumer->code == OP_KERNEL && !kernel_has_reduction(consumer->kernel) &&
	        !selects_row(consumer) && fuse_epilogue(module, op, consumer);
}

static bool is_returned(const struct op *op)
{
	struct users *users = users_of(op->result[0]);
	for (size_t u = 0; u < users->ops.count; u++)
		if (users->ops.data[u]->code == OP_RETURN)
			return true;
	return false;
}

static bool try_layout(struct module *module, struct op *copy)
{
	struct users *users = copy->operands == 1 ? users_of(copy->operand[0]) : NULL;
	if (!users || users->ops.count < 2 || !is_returned(copy) || !kernel_is_copy(copy))
		return false;
	size_t count = users->ops.count;
	struct op **readers = arena_copy(module->arena, users->ops.data, sizeof *readers * count);
	if (!fuse_layout(module, copy, (int)count, readers))
		return false;
	users->ops.count = 0;
	for (size_t u = 0; u < count; u++) {
		remove_user(readers[u]);
		add_user(module, readers[u]);
	}
	return true;
}

static void set_users(struct op *op, void *context)
{
	struct module *module = context;
	for (int i = 0; i < op->results; i++)
		op->result[i]->data = ARENA_NEW(module->arena, struct users);
}

/* Can a copy of the result be inlined in all readers? */
static bool is_readable(struct module *module, const struct op *op)
{
	struct users *users = users_of(op->result[0]);
	for (size_t u = 0; u < users->ops.count; u++) {
		struct op copy = *users->ops.data[u];
		struct composed composed;
		for (int j = 0; j < copy.operands; j++) {
			if (copy.code != OP_KERNEL)
				return false;
			if (copy.operand[j] != op->result[0])
				continue;
			copy.kernel =
			        kernel_clone(module, users->ops.data[u]->kernel, copy.operands);
			if (is_index(&copy, j) || !fuse_compose(module, op, &copy, j, &composed))
				return false;
		}
	}
	return true;
}

static bool try_drop_loop(struct module *module, struct op *op)
{
	remove_user(op);
	bool joined = fuse_parts(module, op);
	int loop = fuse_invariant_loop(module, op);
	struct op *once = NULL;
	if (loop >= 0 && is_readable(module, op))
		once = fuse_drop_loop(module, op, loop);
	if (once) {
		set_users(once, module);
		add_user(module, once);
	}
	add_user(module, op);
	return joined || once;
}

/* Tries all rules on one kernel. most: bytes of a tensor that may wait on chip. */
static bool fuse_kernel(struct module *module, struct op *op, int64_t most)
{
	struct users *users = users_of(op->result[0]);
	size_t count = users->ops.count;
	bool reduction = kernel_has_reduction(op->kernel);
	bool changed = false;
	if (!count)
		return drop_kernel(op);
	if (try_layout(module, op) || try_drop_loop(module, op))
		return true;
	if (count > 1 && reduction)
		return false;
	if (count > 1 && !kernel_is_copy(op) && !is_counter(op->kernel) &&
	        !is_repeated(module, op, most))
		return false;
	struct op **consumers =
	        arena_copy(module->arena, users->ops.data, sizeof *consumers * count);
	for (size_t u = 0; u < count; u++) {
		remove_user(consumers[u]);
		changed |= reduction ? try_epilogue(module, op, consumers[u])
		                     : try_inline(module, op, consumers[u]);
		add_user(module, consumers[u]);
	}
	if (!users->ops.count)
		drop_kernel(op);
	return changed;
}

/* Fuses the bodies of loops first, for which values from outside have no users. */
static void fuse_block(struct module *module, struct block *block, int64_t most)
{
	for (struct op *op = block->first; op; op = op->next)
		if (op->code == OP_FOR)
			fuse_block(module, op->region[0], most);
	ir_clear_data(block);
	for (struct op *op = block->first; op; op = op->next)
		set_users(op, module);
	for (struct op *op = block->first; op; op = op->next)
		add_user(module, op);
	for (bool changed = true; changed;) {
		changed = false;
		struct op *next;
		for (struct op *op = block->first; op; op = next) {
			next = op->next;
			if (op->code == OP_KERNEL)
				changed |= fuse_kernel(module, op, most);
		}
	}
	ir_clear_data(block);
}

bool fuse_elementwise(struct pass_context *context, struct module *module)
{
	struct block *block = module_main(module)->region[0];
	if (block_is_flat(block)) {
		ir_clear_data(block);
		fuse_block(module, block, passing_bytes_most(context));
	}
	return true;
}
