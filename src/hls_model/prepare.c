/* What the vendor's tool does to a design before it schedules: arrays without a partition pragma
 * are partitioned where a pipelined loop needs their elements at once, and, if the order of sums
 * is free, chains of additions become trees. */
#include "hls_model/hls_model_internal.h"

/* --- partitions --- */

struct dimension_use {
	int64_t first;
	bool used, several; /* elements at different constants */
};

static void note_dimension(
        struct dimension_use *use, const struct cpp_form *form, const struct cpp_array *array)
{
	if (!form->known || array->storage != CPP_MEMORY)
		return;
	use->several |= use->used && use->first != form->constant;
	use->first = form->constant;
	use->used = true;
}

static bool may_partition(const struct cpp_array *array)
{
	return array->storage == CPP_MEMORY && !array->outside && !array->bound;
}

static void partition_for(struct cpp_design *design, const struct cpp_body *body,
        struct dimension_use *use, int64_t *accesses)
{
	for (size_t i = 0; i < body->items.count; i++) {
		struct cpp_item item = body->items.data[i];
		const struct cpp_operation *access = &design->operations.data[item.index];
		if (item.kind != CPP_OPERATION || access->kind == CPP_COMPUTE ||
		        access->kind == CPP_CARRIED)
			continue;
		const struct cpp_array *array = &design->arrays.data[access->array];
		accesses[access->array]++;
		for (int d = 0; d < array->rank; d++)
			note_dimension(
			        &use[access->array * CPP_DEPTH + d], &access->subscript[d], array);
	}
	for (size_t a = 0; a < design->arrays.count; a++) {
		struct cpp_array *array = &design->arrays.data[a];
		bool many = accesses[a] > array->shared_ports && may_partition(array);
		for (int d = 0; many && d < array->rank; d++)
			if (array->partition[d] == CPP_WHOLE &&
			        use[a * CPP_DEPTH + (size_t)d].several) {
				array->partition[d] = CPP_COMPLETE;
				array->factor[d] = array->extent[d];
			}
		accesses[a] = 0;
		for (int d = 0; d < CPP_DEPTH; d++)
			use[a * CPP_DEPTH + (size_t)d] = (struct dimension_use){ 0 };
	}
}

static void partition_arrays(struct arena *arena, struct cpp_design *design)
{
	size_t arrays = design->arrays.count;
	struct dimension_use *use =
	        ARENA_ARRAY(arena, struct dimension_use, arrays * CPP_DEPTH + 1);
	int64_t *accesses = ARENA_ARRAY(arena, int64_t, arrays + 1);
	for (size_t i = 0; i < design->loops.count; i++)
		if (design->loops.data[i].pipelined)
			partition_for(design, &design->bodies.data[design->loops.data[i].body], use,
			        accesses);
}

/* --- sums --- */

struct sum_chains {
	struct arena *arena;
	struct cpp_design *design;
	int body;
	int *uses;   /* of each operation's result */
	bool *inner; /* is part of a chain that another operation ends */
	VEC(int) leaves, links;
	VEC(struct cpp_item) items; /* of the body, in their new order */
};

static bool is_sum(const struct sum_chains *sums, int number)
{
	if (number == CPP_NONE)
		return false;
	const struct cpp_operation *operation = &sums->design->operations.data[number];
	return operation->kind == CPP_COMPUTE && operation->code == OP_ADDF &&
	        operation->body == sums->body && operation->operands == 2;
}

static void collect_chain(struct sum_chains *sums, int root)
{
	const struct cpp_operation *operation = &sums->design->operations.data[root];
	VEC_PUSH(sums->arena, &sums->links, root);
	for (int i = 0; i < 2; i++) {
		int operand = operation->operand[i];
		if (is_sum(sums, operand) && sums->inner[operand])
			collect_chain(sums, operand);
		else
			VEC_PUSH(sums->arena, &sums->leaves, operand);
	}
}

/* What an earlier iteration may have left: it is added last. */
static bool is_carried(const struct sum_chains *sums, int leaf)
{
	const struct cpp_operation *operation = &sums->design->operations.data[leaf];
	if (operation->kind != CPP_LOAD)
		return operation->kind == CPP_CARRIED;
	const struct cpp_body *body = &sums->design->bodies.data[sums->body];
	for (size_t i = 0; i < body->items.count; i++) {
		struct cpp_item item = body->items.data[i];
		const struct cpp_operation *other = &sums->design->operations.data[item.index];
		if (item.kind == CPP_OPERATION && other->kind == CPP_STORE &&
		        other->array == operation->array)
			return true;
	}
	return false;
}

/* The chain as a tree, by the same operations; the root comes last. */
static void balance(struct sum_chains *sums)
{
	VEC(int) queue = { 0 };
	VEC(int) last = { 0 };
	for (size_t i = 0; i < sums->leaves.count; i++) {
		int leaf = sums->leaves.data[i];
		if (leaf != CPP_NONE && is_carried(sums, leaf))
			VEC_PUSH(sums->arena, &last, leaf);
		else
			VEC_PUSH(sums->arena, &queue, leaf);
	}
	size_t link = sums->links.count;
	size_t head = 0;
	size_t late = 0;
	while (link) {
		if (queue.count - head < 2 && late < last.count)
			VEC_PUSH(sums->arena, &queue, last.data[late++]);
		else if (queue.count - head >= 2) {
			int number = sums->links.data[--link];
			int *operand = sums->design->operations.data[number].operand;
			operand[0] = queue.data[head++];
			operand[1] = queue.data[head++];
			VEC_PUSH(sums->arena, &queue, number);
			VEC_PUSH(sums->arena, &sums->items,
			        ((struct cpp_item){ CPP_OPERATION, number }));
		} else
			return;
	}
}

static void balance_body(struct sum_chains *sums, struct cpp_body *body)
{
	for (size_t i = 0; i < body->items.count; i++) {
		struct cpp_item item = body->items.data[i];
		bool sum = item.kind == CPP_OPERATION && is_sum(sums, item.index);
		if (sum && sums->inner[item.index])
			continue;
		if (!sum) {
			VEC_PUSH(sums->arena, &sums->items, item);
			continue;
		}
		sums->leaves.count = sums->links.count = 0;
		collect_chain(sums, item.index);
		balance(sums);
	}
	for (size_t i = 0; i < body->items.count && i < sums->items.count; i++)
		body->items.data[i] = sums->items.data[i];
}

/* Chains: sums whose only use is another sum of the same body. */
static void find_chains(struct sum_chains *sums)
{
	struct cpp_design *design = sums->design;
	for (size_t i = 0; i < design->operations.count; i++)
		for (int j = 0; j < design->operations.data[i].operands; j++)
			if (design->operations.data[i].operand[j] != CPP_NONE)
				sums->uses[design->operations.data[i].operand[j]]++;
	for (size_t i = 0; i < design->operations.count; i++) {
		const struct cpp_operation *operation = &design->operations.data[i];
		sums->body = operation->body;
		for (int j = 0; is_sum(sums, (int)i) && j < 2; j++) {
			int operand = operation->operand[j];
			if (is_sum(sums, operand) && sums->uses[operand] == 1)
				sums->inner[operand] = true;
		}
	}
}

static void balance_sums(struct arena *arena, struct cpp_design *design)
{
	struct sum_chains sums = { .arena = arena,
		.design = design,
		.uses = ARENA_ARRAY(arena, int, design->operations.count + 1),
		.inner = ARENA_ARRAY(arena, bool, design->operations.count + 1) };
	find_chains(&sums);
	for (size_t i = 0; i < design->bodies.count; i++) {
		sums.body = (int)i;
		sums.items.count = 0;
		balance_body(&sums, &design->bodies.data[i]);
	}
}

void model_prepare(struct arena *arena, struct cpp_design *design, bool reassociate)
{
	partition_arrays(arena, design);
	if (reassociate)
		balance_sums(arena, design);
}
