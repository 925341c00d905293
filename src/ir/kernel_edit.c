/* Rewrites of one kernel that keep its results bit-identical: loops are split, joined, moved and
 * removed, bodies rewritten, operands merged. */
#include "ir/kernel_edit.h"
#include <string.h>

static int replacement(const struct node *node, struct body_map map)
{
	if (node->kind == NODE_ACCUMULATOR)
		return map.accumulator;
	if (node->kind == NODE_OPERAND && map.operand)
		return map.operand[node->integer];
	if (node->kind == NODE_OP && node->code == OP_ACTIVE && map.active)
		return map.active[node->integer];
	if (node->kind == NODE_OP && node->code == OP_INDEX && map.index)
		return map.index[node->integer];
	return -1;
}

int body_rewrite(
        struct module *module, struct body *into, const struct body *from, struct body_map map)
{
	int *place = ARENA_ARRAY(module->arena, int, from->count);
	body_reserve(module, into, from->count);
	for (int i = 0; i < from->count; i++) {
		struct node node = from->node[i];
		place[i] = replacement(&node, map);
		if (place[i] >= 0)
			continue;
		for (int k = 0; k < body_arguments(&node); k++)
			node.argument[k] = place[node.argument[k]];
		place[i] = body_append(into, node);
	}
	return place[from->result];
}

int body_operand(struct module *module, struct body *body, const struct type *type, int operand)
{
	return body_add(module, body,
	        (struct node){ .kind = NODE_OPERAND, .type = type, .integer = operand });
}

int body_active(struct module *module, struct body *body, int operand)
{
	return body_add(module, body,
	        (struct node){ .kind = NODE_OP,
	                .code = OP_ACTIVE,
	                .type = type_integer(module, 1),
	                .integer = operand });
}

int body_index(struct module *module, struct body *body, int loop)
{
	return body_add(module, body,
	        (struct node){ .kind = NODE_OP,
	                .code = OP_INDEX,
	                .type = type_index(module),
	                .integer = loop });
}

int body_integer(struct module *module, struct body *body, const struct type *type, int64_t value)
{
	return body_add(module, body,
	        (struct node){ .kind = NODE_CONSTANT, .type = type, .integer = value });
}

int body_op(struct module *module, struct body *body, enum op_code code, const struct type *type,
        int a, int b, int c)
{
	return body_add(module, body,
	        (struct node){
	                .kind = NODE_OP, .code = code, .type = type, .argument = { a, b, c } });
}

int body_affine(struct module *module, struct body *body, int loops, const int64_t *factor,
        int64_t constant)
{
	const struct type *index = type_index(module);
	int sum = -1;
	for (int l = 0; l < loops; l++) {
		if (!factor[l])
			continue;
		int term = body_index(module, body, l);
		if (factor[l] != 1)
			term = body_op(module, body, OP_MULI, index, term,
			        body_integer(module, body, index, factor[l]), 0);
		sum = sum < 0 ? term : body_op(module, body, OP_ADDI, index, sum, term, 0);
	}
	if (sum >= 0 && !constant)
		return sum;
	int last = body_integer(module, body, index, constant);
	return sum < 0 ? last : body_op(module, body, OP_ADDI, index, sum, last, 0);
}

static int inside_range(
        struct module *module, struct body *body, int loop, int64_t low, int64_t high)
{
	const struct type *bit = type_integer(module, 1);
	const struct type *index = type_index(module);
	int counter = body_index(module, body, loop);
	struct node above = { .kind = NODE_OP,
		.code = OP_CMPI,
		.type = bit,
		.argument = { counter, body_integer(module, body, index, low) },
		.integer = CMPI_SGE };
	struct node below = { .kind = NODE_OP,
		.code = OP_CMPI,
		.type = bit,
		.argument = { counter, body_integer(module, body, index, high) },
		.integer = CMPI_SLT };
	int first = body_add(module, body, above);
	return body_op(module, body, OP_ANDI, bit, first, body_add(module, body, below), 0);
}

int body_guard_condition(struct module *module, struct body *body, const struct access *access)
{
	const struct type *bit = type_integer(module, 1);
	int all = -1;
	for (int g = 0; g < access->guards; g++) {
		int one = inside_range(module, body, access->guard[g].loop, access->guard[g].low,
		        access->guard[g].high);
		all = all < 0 ? one : body_op(module, body, OP_ANDI, bit, all, one, 0);
	}
	return all < 0 ? body_integer(module, body, bit, 1) : all;
}

const struct guard_range *access_guard(const struct access *access, int loop)
{
	for (int i = 0; i < access->guards; i++)
		if (access->guard[i].loop == loop)
			return &access->guard[i];
	return NULL;
}

int64_t access_extent(const struct kernel *kernel, const struct access *access, int loop)
{
	const struct guard_range *guard = access_guard(access, loop);
	return guard ? guard->high - guard->low : kernel->loop[loop].extent;
}

struct op *only_reader(const struct block *block, const struct value *value, int *operand)
{
	struct op *reader = NULL;
	int uses = 0;
	for (struct op *op = block->first; op; op = op->next)
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == value) {
				uses++;
				reader = op;
				*operand = j;
			}
	return uses == 1 && value->uses == 1 && reader->code == OP_KERNEL ? reader : NULL;
}

bool access_is_plain(const struct access *access)
{
	return !access->guards && access->index_operand < 0;
}

bool kernel_is_guarded(const struct op *op, int loop)
{
	for (int j = 0; j < op->operands; j++)
		if (access_guard(&op->kernel->operand[j], loop))
			return true;
	return false;
}

/* Guards are sorted by loop, so that equal accesses have equal lists. */
void access_add_guard(struct module *module, struct access *access, struct guard_range guard)
{
	struct guard_range *more =
	        ARENA_ARRAY(module->arena, struct guard_range, access->guards + 1);
	int at = 0;
	while (at < access->guards && access->guard[at].loop < guard.loop)
		at++;
	bool exists = at < access->guards && access->guard[at].loop == guard.loop;
	if (access->guards)
		memcpy(more, access->guard, sizeof *more * (size_t)at);
	if (exists) {
		guard.low = guard.low > access->guard[at].low ? guard.low : access->guard[at].low;
		guard.high =
		        guard.high < access->guard[at].high ? guard.high : access->guard[at].high;
	}
	more[at] = guard;
	for (int i = at + exists; i < access->guards; i++)
		more[i + !exists] = access->guard[i];
	access->guards += !exists;
	access->guard = more;
}

bool access_same(const struct access *left, const struct access *right, int loops)
{
	if (left->offset != right->offset || left->guards != right->guards ||
	        left->index_operand != right->index_operand)
		return false;
	if (left->index_operand >= 0 &&
	        (left->index_stride != right->index_stride ||
	                left->index_limit != right->index_limit))
		return false;
	for (int i = 0; i < left->guards; i++) {
		struct guard_range a = left->guard[i];
		struct guard_range b = right->guard[i];
		if (a.loop != b.loop || a.low != b.low || a.high != b.high || a.last != b.last)
			return false;
	}
	return !loops || !memcmp(left->stride, right->stride, sizeof *left->stride * (size_t)loops);
}

struct access access_empty(struct module *module, int loops)
{
	return (struct access){ .stride = ARENA_ARRAY(module->arena, int64_t, loops),
		.index_operand = -1 };
}

struct access access_copy(struct module *module, const struct access *access, int loops)
{
	struct access copy = *access;
	copy.stride = ARENA_ARRAY(module->arena, int64_t, loops);
	copy.guard = ARENA_ARRAY(module->arena, struct guard_range, access->guards);
	for (int l = 0; l < loops; l++)
		copy.stride[l] = access->stride[l];
	for (int i = 0; i < access->guards; i++)
		copy.guard[i] = access->guard[i];
	return copy;
}

/* Splits the guard [low, high) of a loop into ranges of its quotient and remainder by `inner`.
 * false: it is no box of the two. */
static bool split_range(struct guard_range guard, int64_t inner, struct guard_range *outer,
        struct guard_range *rest)
{
	*outer = (struct guard_range){ .loop = guard.loop,
		.low = guard.low / inner,
		.high = (guard.high + inner - 1) / inner };
	*rest = (struct guard_range){ .loop = guard.loop + 1, .low = 0, .high = inner };
	if (guard.low % inner == 0 && guard.high % inner == 0)
		return true;
	if (outer->high - outer->low != 1)
		return false;
	rest->low = guard.low - outer->low * inner;
	rest->high = guard.high - outer->low * inner;
	return true;
}

static bool guards_split(const struct op *op, int loop, int64_t inner)
{
	for (int i = 0; i < op->operands; i++) {
		const struct guard_range *guard = access_guard(&op->kernel->operand[i], loop);
		struct guard_range outer;
		struct guard_range rest;
		if (guard && !split_range(*guard, inner, &outer, &rest))
			return false;
	}
	return true;
}

struct loop_split {
	int loops, loop; /* of the kernel before the split */
	int64_t extent, inner;
};

static void split_access(
        struct module *module, struct access *access, const struct loop_split *split)
{
	struct access old = *access;
	int loop = split->loop;
	int64_t inner = split->inner;
	access->stride = ARENA_ARRAY(module->arena, int64_t, split->loops + 1);
	for (int l = 0; l < split->loops; l++)
		access->stride[l + (l > loop)] = old.stride[l];
	access->stride[loop] = old.stride[loop] * inner;
	access->stride[loop + 1] = old.stride[loop];
	access->guards = 0;
	access->guard = NULL;
	for (int i = 0; i < old.guards; i++) {
		struct guard_range guard = old.guard[i];
		struct guard_range outer;
		struct guard_range rest;
		if (guard.loop != loop) {
			guard.loop += guard.loop > loop;
			access_add_guard(module, access, guard);
			continue;
		}
		split_range(guard, inner, &outer, &rest);
		if (outer.low > 0 || outer.high < split->extent / inner)
			access_add_guard(module, access, outer);
		if (rest.low > 0 || rest.high < inner)
			access_add_guard(module, access, rest);
	}
}

static void split_body(struct module *module, struct body *body, const struct loop_split *split)
{
	int loops = split->loops;
	int loop = split->loop;
	if (!body->count)
		return;
	struct body result = { 0 };
	int *index = ARENA_ARRAY(module->arena, int, loops);
	for (int l = 0; l < loops; l++) {
		int64_t *factor = ARENA_ARRAY(module->arena, int64_t, loops + 1);
		factor[l + (l > loop)] = 1;
		if (l == loop) {
			factor[loop] = split->inner;
			factor[loop + 1] = 1;
		}
		index[l] = body_affine(module, &result, loops + 1, factor, 0);
	}
	result.result = body_rewrite(
	        module, &result, body, (struct body_map){ .index = index, .accumulator = -1 });
	body_remove_dead(module, &result);
	*body = result;
}

bool kernel_split_loop(struct module *module, struct op *op, int loop, int64_t inner)
{
	struct kernel *kernel = op->kernel;
	int64_t extent = kernel->loop[loop].extent;
	if (inner <= 1 || inner >= extent || extent % inner || kernel->loop[loop].run_time ||
	        !guards_split(op, loop, inner))
		return false;
	const struct loop_split split = { kernel->loops, loop, extent, inner };
	for (int i = 0; i < op->operands; i++)
		split_access(module, &kernel->operand[i], &split);
	split_access(module, &kernel->result, &split);
	split_body(module, &kernel->update, &split);
	split_body(module, &kernel->post, &split);
	struct loop *loops = ARENA_ARRAY(module->arena, struct loop, kernel->loops + 1);
	for (int l = 0; l < kernel->loops; l++)
		loops[l + (l > loop)] = kernel->loop[l];
	loops[loop] = (struct loop){ .extent = extent / inner,
		.reduction = kernel->loop[loop].reduction };
	loops[loop + 1] =
	        (struct loop){ .extent = inner, .reduction = kernel->loop[loop].reduction };
	kernel->loop = loops;
	kernel->loops++;
	return true;
}

/* May the loops be joined for this access? Its outer stride matters only where the outer guard has
 * more than one point. */
static bool is_joinable(const struct access *access, int loop, int64_t inner)
{
	const struct guard_range *outer = access_guard(access, loop);
	if (outer && outer->high == outer->low + 1)
		return true;
	return access->stride[loop] == inner * access->stride[loop + 1] &&
	        !access_guard(access, loop + 1);
}

static void join_access(
        struct module *module, struct access *access, const struct loop *loops, int loop)
{
	const int64_t inner = loops[loop + 1].extent;
	const struct guard_range *outer = access_guard(access, loop);
	const struct guard_range *rest = access_guard(access, loop + 1);
	struct guard_range range = { .loop = loop + 1,
		.low = outer ? outer->low * inner : 0,
		.high = outer ? outer->high * inner : loops[loop].extent * inner };
	if (rest)
		range = (struct guard_range){ .loop = loop + 1,
			.low = range.low + rest->low,
			.high = range.low + rest->high };
	access->offset +=
	        outer ? outer->low * (access->stride[loop] - inner * access->stride[loop + 1]) : 0;
	access->stride[loop] = 0;
	int count = 0;
	for (int i = 0; i < access->guards; i++)
		if (access->guard[i].loop != loop && access->guard[i].loop != loop + 1)
			access->guard[count++] = access->guard[i];
	access->guards = count;
	if (outer || rest)
		access_add_guard(module, access, range);
}

bool kernel_join_loops(struct module *module, struct op *op, int loop)
{
	struct kernel *kernel = op->kernel;
	struct loop *outer = &kernel->loop[loop];
	struct loop *inner = outer + 1;
	bool joinable = !outer->run_time && !inner->run_time &&
	        outer->reduction == inner->reduction && !access_guard(&kernel->result, loop) &&
	        is_joinable(&kernel->result, loop, inner->extent);
	for (int l = loop; l <= loop + 1; l++)
		joinable = joinable && !body_uses_counter(&kernel->update, l) &&
		        !body_uses_counter(&kernel->post, l);
	for (int j = 0; j < op->operands; j++)
		joinable = joinable && is_joinable(&kernel->operand[j], loop, inner->extent);
	if (!joinable)
		return false;
	for (int j = 0; j < op->operands; j++)
		join_access(module, &kernel->operand[j], kernel->loop, loop);
	join_access(module, &kernel->result, kernel->loop, loop);
	inner->extent *= outer->extent;
	outer->extent = 1;
	return true;
}

static void place_body(struct module *module, struct body *body, int loops, const int *place)
{
	struct body result = { 0 };
	int *index = ARENA_ARRAY(module->arena, int, loops);
	if (!body_has(body, OP_INDEX))
		return;
	for (int l = 0; l < loops; l++)
		index[l] = body_uses_counter(body, l) ? body_index(module, &result, place[l]) : -1;
	result.result = body_rewrite(
	        module, &result, body, (struct body_map){ .index = index, .accumulator = -1 });
	*body = result;
}

static void place_access(struct module *module, struct access *access, int loops, const int *place)
{
	struct access old = *access;
	access->stride = ARENA_ARRAY(module->arena, int64_t, loops);
	for (int l = 0; l < loops; l++)
		access->stride[place[l]] = old.stride[l];
	access->guards = 0;
	access->guard = NULL;
	for (int i = 0; i < old.guards; i++)
		access_add_guard(module, access,
		        (struct guard_range){ .loop = place[old.guard[i].loop],
		                .low = old.guard[i].low,
		                .high = old.guard[i].high,
		                .last = old.guard[i].last });
}

void kernel_move_loop(struct module *module, struct op *op, int from, int to)
{
	struct kernel *kernel = op->kernel;
	int *place = ARENA_ARRAY(module->arena, int, kernel->loops);
	struct loop *loop = ARENA_ARRAY(module->arena, struct loop, kernel->loops);
	for (int l = 0; l < kernel->loops; l++) {
		place[l] = l == from ? to : l - (l > from && l <= to) + (l < from && l >= to);
		loop[place[l]] = kernel->loop[l];
	}
	kernel->loop = loop;
	for (int j = 0; j < op->operands; j++)
		place_access(module, &kernel->operand[j], kernel->loops, place);
	place_access(module, &kernel->result, kernel->loops, place);
	place_body(module, &kernel->update, kernel->loops, place);
	place_body(module, &kernel->post, kernel->loops, place);
}

static const struct access *access_at(const struct op *op, int operand)
{
	return operand < 0 ? &op->kernel->result : &op->kernel->operand[operand];
}

void kernel_cut_loops(
        struct module *module, struct op *op, int operand, int64_t stride, int64_t extent)
{
	for (int l = 0; l < op->kernel->loops; l++) {
		int64_t own = access_at(op, operand)->stride[l];
		int64_t above = stride * extent;
		if (own <= 0 || above % own || access_at(op, operand)->guards)
			continue;
		kernel_split_loop(module, op, l, above / own);
		own = access_at(op, operand)->stride[l];
		if (own < stride && stride % own == 0)
			kernel_split_loop(module, op, l, stride / own);
	}
}

/* Numbers the loops that remain: place[l] is the new number, -1 for a loop of one point. */
static int place_loops(const struct kernel *kernel, int *place)
{
	int count = 0;
	for (int l = 0; l < kernel->loops; l++)
		place[l] = kernel->loop[l].extent == 1 ? -1 : count++;
	return count;
}

static struct access access_on(struct module *module, const struct access *old,
        const struct kernel *kernel, const int *place, int count)
{
	struct access access = access_empty(module, count);
	access.offset = old->offset;
	access.index_operand = old->index_operand;
	access.index_stride = old->index_stride;
	access.index_limit = old->index_limit;
	for (int l = 0; l < kernel->loops; l++)
		if (place[l] >= 0)
			access.stride[place[l]] = old->stride[l];
	for (int i = 0; i < old->guards; i++) {
		struct guard_range guard = old->guard[i];
		if (place[guard.loop] < 0 ||
		        (guard.low <= 0 && guard.high >= kernel->loop[guard.loop].extent))
			continue;
		guard.loop = place[guard.loop];
		access_add_guard(module, &access, guard);
	}
	return access;
}

/* An operand that is never read: a guard is empty. */
static bool never_active(const struct access *access, const struct loop *loop)
{
	for (int i = 0; i < access->guards; i++) {
		struct guard_range guard = access->guard[i];
		int64_t high =
		        guard.high < loop[guard.loop].extent ? guard.high : loop[guard.loop].extent;
		if (guard.low >= high)
			return true;
	}
	return false;
}

static struct body body_on(struct module *module, const struct op *op, const struct body *old,
        const int *place, const struct access *access)
{
	struct kernel *kernel = op->kernel;
	struct body body = { 0 };
	if (!old->count)
		return body;
	int *index = ARENA_ARRAY(module->arena, int, kernel->loops);
	int *operand = ARENA_ARRAY(module->arena, int, op->operands);
	int *active = ARENA_ARRAY(module->arena, int, op->operands);
	for (int l = 0; l < kernel->loops; l++)
		index[l] = place[l] < 0 ? body_integer(module, &body, type_index(module), 0)
		                        : body_index(module, &body, place[l]);
	for (int i = 0; i < op->operands; i++) {
		bool never = never_active(&kernel->operand[i], kernel->loop);
		const struct type *type = type_scalar(op->operand[i]->type);
		operand[i] = never ? body_integer(module, &body, type, 0) : -1;
		active[i] = -1;
		if (never || !access[i].guards)
			active[i] = body_integer(module, &body, type_integer(module, 1), !never);
	}
	body.result = body_rewrite(module, &body, old,
	        (struct body_map){
	                .operand = operand, .active = active, .index = index, .accumulator = -1 });
	body_remove_dead(module, &body);
	return body;
}

static void drop_unit_loops(struct module *module, struct op *op)
{
	struct kernel *kernel = op->kernel;
	int *place = ARENA_ARRAY(module->arena, int, kernel->loops);
	int count = place_loops(kernel, place);
	struct access *access = ARENA_ARRAY(module->arena, struct access, op->operands);
	for (int i = 0; i < op->operands; i++)
		access[i] = access_on(module, &kernel->operand[i], kernel, place, count);
	kernel->update = body_on(module, op, &kernel->update, place, access);
	kernel->post = body_on(module, op, &kernel->post, place, access);
	kernel->result = access_on(module, &kernel->result, kernel, place, count);
	kernel->operand = access;
	struct loop *loop = ARENA_ARRAY(module->arena, struct loop, count);
	for (int l = 0; l < kernel->loops; l++)
		if (place[l] >= 0)
			loop[place[l]] = kernel->loop[l];
	kernel->loop = loop;
	kernel->loops = count;
}

/* A reduction of one point needs no accumulator: it becomes post(update(x, init)). */
static void finish_single_point(struct module *module, struct kernel *kernel)
{
	if (kernel_has_reduction(kernel) ||
	        (!kernel->post.count && !body_uses_accumulator(&kernel->update)))
		return;
	struct node init = { .kind = NODE_CONSTANT, .type = kernel->type, .real = kernel->init };
	if (!type_is_real(kernel->type))
		init.integer = kernel_init_integer(kernel->init);
	struct body body = { 0 };
	int start = body_add(module, &body, init);
	int value = body_rewrite(
	        module, &body, &kernel->update, (struct body_map){ .accumulator = start });
	if (kernel->post.count)
		value = body_rewrite(
		        module, &body, &kernel->post, (struct body_map){ .accumulator = value });
	body.result = value;
	body_remove_dead(module, &body);
	kernel->update = body;
	kernel->post = (struct body){ 0 };
	kernel->init = 0;
}

static void mark_used(const struct op *op, bool *used)
{
	const struct body *bodies[] = { &op->kernel->update, &op->kernel->post };
	for (int b = 0; b < 2; b++)
		for (int i = 0; i < bodies[b]->count; i++) {
			const struct node *node = &bodies[b]->node[i];
			if (node->kind == NODE_OPERAND ||
			        (node->kind == NODE_OP && node->code == OP_ACTIVE))
				used[node->integer] = true;
		}
	for (int i = op->operands - 1; i >= 0; i--)
		for (int j = 0; j < op->operands; j++)
			if (used[j] && op->kernel->operand[j].index_operand >= 0)
				used[op->kernel->operand[j].index_operand] = true;
}

/* The new number of an earlier operand with the same value and access as operand j; -1: none. Index
 * operands are compared by their old numbers. */
static int same_operand(const struct op *op, const int *place, const bool *used, int j)
{
	for (int i = 0; i < j; i++)
		if (used[i] && op->operand[i] == op->operand[j] &&
		        access_same(&op->kernel->operand[i], &op->kernel->operand[j],
		                op->kernel->loops))
			return place[i];
	return -1;
}

static void merge_operands(struct module *module, struct op *op)
{
	struct kernel *kernel = op->kernel;
	bool *used = ARENA_ARRAY(module->arena, bool, op->operands);
	int *place = ARENA_ARRAY(module->arena, int, op->operands);
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, op->operands);
	struct access *access = ARENA_ARRAY(module->arena, struct access, op->operands);
	mark_used(op, used);
	int count = 0;
	for (int j = 0; j < op->operands; j++) {
		if (!used[j])
			continue;
		place[j] = same_operand(op, place, used, j);
		if (place[j] >= 0)
			continue;
		operand[count] = op->operand[j];
		access[count] = kernel->operand[j];
		place[j] = count++;
	}
	for (int i = 0; i < count; i++)
		if (access[i].index_operand >= 0)
			access[i].index_operand = place[access[i].index_operand];
	struct body *bodies[] = { &kernel->update, &kernel->post };
	for (int b = 0; b < 2; b++) {
		struct body body = { 0 };
		if (!bodies[b]->count)
			continue;
		body.result = body_import(module, &body, bodies[b], place, -1);
		*bodies[b] = body;
	}
	op_set_operands(module, op, count, operand);
	kernel->operand = access;
}

void kernel_tidy(struct module *module, struct op *op)
{
	body_remove_dead(module, &op->kernel->update);
	body_remove_dead(module, &op->kernel->post);
	drop_unit_loops(module, op);
	finish_single_point(module, op->kernel);
	merge_operands(module, op);
}

bool block_is_flat(const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		bool row = op->code == OP_LAYER_ROW || op->code == OP_INSERT_LAYER ||
		        op->code == OP_TENSOR_EMPTY;
		bool loop = op->code == OP_FOR && block_is_flat(op->region[0]);
		if (op->code != OP_KERNEL && op->code != OP_CONSTANT && op != block->last && !row &&
		        !loop)
			return false;
	}
	return true;
}

bool block_has_loop(const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next)
		if (op->code == OP_FOR)
			return true;
	return false;
}

bool access_compose(struct module *module, const struct kernel *from, int operand,
        const struct kernel *reader, int through, struct access *to)
{
	const struct access *read = &reader->operand[through];
	const struct access *own = &from->operand[operand];
	*to = access_empty(module, reader->loops);
	to->offset = own->offset;
	if (read->offset != from->result.offset)
		return false;
	for (int l = 0; l < reader->loops; l++) {
		int64_t stride = read->stride[l];
		int64_t extent = reader->loop[l].extent;
		int digit = -1;
		for (int i = 0; stride > 0 && i < from->loops; i++)
			if (from->loop[i].extent > 1 && stride % from->result.stride[i] == 0 &&
			        stride * extent <= from->result.stride[i] * from->loop[i].extent)
				digit = i;
		if (stride && extent > 1 && digit < 0)
			return false;
		to->stride[l] =
		        digit < 0 ? 0 : own->stride[digit] * (stride / from->result.stride[digit]);
		if (to->stride[l] && reader->loop[l].reduction)
			return false;
	}
	return true;
}

/* The loops must be those over the indices, then those over one contiguous row, and the result is
 * written in that order. */
bool kernel_is_gather(const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	const struct access *index = &kernel->operand[0];
	const struct access *row = &kernel->operand[1];
	int64_t made = 1;
	int64_t inner = 1;
	bool indices = false;
	if (op->operands != 2 || kernel_has_reduction(kernel) || row->index_operand != 0 ||
	        row->guards || index->guards || kernel->result.offset)
		return false;
	for (int l = kernel->loops - 1; l >= 0; l--) {
		indices = indices || index->stride[l];
		if (kernel->result.stride[l] != made || row->stride[l] != (indices ? 0 : inner))
			return false;
		made *= kernel->loop[l].extent;
		inner *= kernel->loop[l].extent;
	}
	const struct node *result = &kernel->update.node[kernel->update.result];
	return result->kind == NODE_OPERAND && result->integer == 1;
}
