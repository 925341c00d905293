/* Kernels and their scalar bodies: construction, copies and questions that many passes ask. */
#include "ir/kernel.h"
#include "ir/kernel_edit.h"
#include <string.h>

const char *const reduction_schedule_name[REDUCTION_SCHEDULES] = { "none", "nest", "drain_after",
	"double_buffered", "dynamic", "split", "drained" };

enum reduction_schedule reduction_schedule_of(const struct op *op)
{
	const char *name = attr_text_or(op, KEY_REDUCTION_SCHEDULE, NULL);
	int schedule = 0;
	while (schedule < REDUCTION_SCHEDULES &&
	        !text_same(reduction_schedule_name[schedule], name))
		schedule++;
	return (enum reduction_schedule)schedule;
}

static struct access access_new(struct arena *arena, int loops)
{
	return (struct access){ .stride = ARENA_ARRAY(arena, int64_t, loops), .index_operand = -1 };
}

struct op *kernel_new(struct module *module, struct location location, const char *name, int loops,
        int operands, struct value *const *operand, const struct type *result)
{
	struct arena *arena = module->arena;
	struct op *op = op_new(module, OP_KERNEL, location, operands, operand, 1, &result);
	struct kernel *kernel = op->kernel = ARENA_NEW(arena, struct kernel);
	kernel->name = text_copy(arena, name, strlen(name));
	kernel->loops = loops;
	kernel->loop = ARENA_ARRAY(arena, struct loop, loops);
	kernel->operand = ARENA_ARRAY(arena, struct access, operands);
	for (int i = 0; i < operands; i++)
		kernel->operand[i] = access_new(arena, loops);
	kernel->result = access_new(arena, loops);
	kernel->type = type_scalar(result);
	kernel->lanes = kernel->row_unroll = kernel->partial_sums = 1;
	kernel->initiation_interval = kernel->combine_interval = 1;
	return op;
}

static struct access access_clone(struct arena *arena, struct access access, int loops)
{
	access.stride = arena_copy(arena, access.stride, sizeof *access.stride * (size_t)loops);
	access.guard =
	        arena_copy(arena, access.guard, sizeof *access.guard * (size_t)access.guards);
	return access;
}

static struct body body_clone(struct arena *arena, struct body body)
{
	body.node = arena_copy(arena, body.node, sizeof *body.node * (size_t)body.count);
	return body;
}

struct kernel *kernel_clone(struct module *module, const struct kernel *kernel, int operands)
{
	struct arena *arena = module->arena;
	struct kernel *clone = arena_copy(arena, kernel, sizeof *kernel);
	clone->name = text_copy(arena, kernel->name, strlen(kernel->name));
	clone->loop = arena_copy(arena, kernel->loop, sizeof *kernel->loop * (size_t)kernel->loops);
	clone->operand = ARENA_ARRAY(arena, struct access, operands);
	for (int i = 0; i < operands; i++)
		clone->operand[i] = access_clone(arena, kernel->operand[i], kernel->loops);
	clone->result = access_clone(arena, kernel->result, kernel->loops);
	clone->update = body_clone(arena, kernel->update);
	clone->post = body_clone(arena, kernel->post);
	return clone;
}

bool kernel_has_reduction(const struct kernel *kernel)
{
	for (int i = 0; i < kernel->loops; i++)
		if (kernel->loop[i].reduction)
			return true;
	return false;
}

bool kernel_shares_operands(const struct kernel *kernel, int operands)
{
	for (int l = 0; l < kernel->loops; l++) {
		int moved = 0;
		for (int j = 0; j < operands; j++)
			moved += kernel->operand[j].stride[l] != 0;
		if (!kernel->loop[l].reduction && kernel->loop[l].extent > 1 && moved &&
		        moved < operands)
			return true;
	}
	return false;
}

static bool windows_overlap(const struct kernel *kernel, const struct access *access)
{
	for (int r = 0; r < kernel->loops; r++)
		for (int p = 0; p < kernel->loops; p++) {
			int64_t step = access->stride[r];
			if (kernel->loop[r].reduction && !kernel->loop[p].reduction && step > 0 &&
			        access->stride[p] > 0 && access->stride[p] % step == 0 &&
			        step * (access_extent(kernel, access, r) - 1) >= access->stride[p])
				return true;
		}
	return false;
}

bool kernel_has_window(const struct kernel *kernel, int operands)
{
	for (int j = 0; j < operands; j++)
		if (windows_overlap(kernel, &kernel->operand[j]))
			return true;
	return false;
}

bool kernel_is_register_tile(const struct kernel *kernel)
{
	const struct loop *last = kernel->loop + kernel->loops - 1;
	return kernel->row_unroll > 1 && kernel->lanes > 1 && kernel->loops > 1 &&
	        !last->reduction && !last[-1].reduction;
}

const struct op *kernel_mean_of(const struct op *op)
{
	const struct op *mean = op->operands == 2 ? op->operand[1]->def : NULL;
	bool pair = mean && mean->code == OP_KERNEL && mean->operands == 1 &&
	        mean->operand[0] == op->operand[0];
	return pair && kernel_has_reduction(op->kernel) && kernel_has_reduction(mean->kernel)
	        ? mean
	        : NULL;
}

static int sequential_loops(const struct kernel *kernel)
{
	return kernel->loops - (kernel->lanes > 1) - (kernel->row_unroll > 1);
}

int kernel_parallel_order(const struct kernel *kernel, int *order)
{
	const int64_t *stride = kernel->result.stride;
	int count = 0;
	for (int l = 0; l < kernel->loops; l++) {
		if (kernel->loop[l].reduction)
			continue;
		int at = count++;
		for (; at > 0 && stride[order[at - 1]] < stride[l]; at--)
			order[at] = order[at - 1];
		order[at] = l;
	}
	return count;
}

int kernel_outer_reduction(const struct kernel *kernel)
{
	for (int l = 0; l < sequential_loops(kernel); l++)
		if (kernel->loop[l].reduction && kernel->loop[l].extent > 1)
			return l;
	return -1;
}

int kernel_inner_reduction(const struct kernel *kernel)
{
	int last = -1;
	for (int l = sequential_loops(kernel) - 1; l >= 0; l--) {
		if (kernel->loop[l].reduction &&
		        (kernel->loop[l].extent > 1 || kernel->loop[l].run_time))
			return l;
		last = last < 0 && kernel->loop[l].reduction ? l : last;
	}
	return last;
}

int body_arguments(const struct node *node)
{
	return node->kind == NODE_OP ? op_info[node->code].operands : 0;
}

/* The same node with all fields cleared that its kind does not use, so that equal nodes are equal
 * bytes. */
static struct node plain(const struct node *node)
{
	struct node result;
	memset(&result, 0, sizeof result);
	result.kind = node->kind;
	result.type = node->type;
	bool real = node->kind == NODE_CONSTANT && type_is_real(node->type);
	if (real)
		result.real = node->real;
	else if (node->kind != NODE_ACCUMULATOR)
		result.integer = node->integer;
	if (node->kind == NODE_OP)
		result.code = node->code;
	for (int i = 0; i < body_arguments(node); i++)
		result.argument[i] = node->argument[i];
	return result;
}

bool node_same(const struct node *left, const struct node *right)
{
	return left->kind == right->kind && left->code == right->code &&
	        left->type == right->type &&
	        !memcmp(left->argument, right->argument, sizeof left->argument) &&
	        left->integer == right->integer &&
	        !memcmp(&left->real, &right->real, sizeof left->real);
}

void body_reserve(struct module *module, struct body *body, int count)
{
	struct node *larger = ARENA_ARRAY(module->arena, struct node, body->count + count);
	if (body->count)
		memcpy(larger, body->node, sizeof *larger * (size_t)body->count);
	body->node = larger;
}

/* The place of the node, or else of the one behind the last. */
static int place_of_node(const struct body *body, const struct node *node)
{
	int place = 0;
	while (place < body->count && !node_same(&body->node[place], node))
		place++;
	return place;
}

int body_append(struct body *body, struct node node)
{
	node = plain(&node);
	int place = place_of_node(body, &node);
	if (place == body->count)
		body->node[body->count++] = node;
	return place;
}

/* Never appends in place: bodies are copied by assignment and may share their nodes. */
int body_add(struct module *module, struct body *body, struct node node)
{
	node = plain(&node);
	int place = place_of_node(body, &node);
	if (place == body->count) {
		body_reserve(module, body, 1);
		body->node[body->count++] = node;
	}
	return place;
}

static bool names_operand(const struct node *node)
{
	return node->kind == NODE_OPERAND || (node->kind == NODE_OP && node->code == OP_ACTIVE);
}

int body_import(struct module *module, struct body *into, const struct body *from,
        const int *operand_map, int accumulator)
{
	int *place = ARENA_ARRAY(module->arena, int, from->count);
	body_reserve(module, into, from->count);
	for (int i = 0; i < from->count; i++) {
		struct node node = from->node[i];
		if (node.kind == NODE_ACCUMULATOR && accumulator >= 0) {
			place[i] = accumulator;
			continue;
		}
		for (int k = 0; k < body_arguments(&node); k++)
			node.argument[k] = place[node.argument[k]];
		if (names_operand(&node) && operand_map)
			node.integer = operand_map[node.integer];
		place[i] = body_append(into, node);
	}
	return place[from->result];
}

bool body_uses_operand(const struct body *body, int operand)
{
	for (int i = 0; i < body->count; i++)
		if (names_operand(&body->node[i]) && body->node[i].integer == operand)
			return true;
	return false;
}

bool body_uses_accumulator(const struct body *body)
{
	for (int i = 0; i < body->count; i++)
		if (body->node[i].kind == NODE_ACCUMULATOR)
			return true;
	return false;
}

bool body_has(const struct body *body, enum op_code code)
{
	for (int n = 0; n < body->count; n++)
		if (body->node[n].kind == NODE_OP && body->node[n].code == code)
			return true;
	return false;
}

bool body_uses_counters(const struct body *body)
{
	return body_has(body, OP_INDEX) || body_has(body, OP_ACTIVE);
}

bool body_uses_counter(const struct body *body, int loop)
{
	for (int n = 0; n < body->count; n++)
		if (body->node[n].kind == NODE_OP && body->node[n].code == OP_INDEX &&
		        body->node[n].integer == loop)
			return true;
	return false;
}

bool kernel_is_post_operand(const struct kernel *kernel, int operand)
{
	return !kernel->scan && body_uses_operand(&kernel->post, operand) &&
	        !body_uses_operand(&kernel->update, operand);
}

bool kernel_is_sequential(const struct kernel *kernel)
{
	int term;
	return kernel->scan ||
	        (kernel_has_reduction(kernel) && kernel_combine(kernel, &term) == OP_NONE);
}

void body_remove_dead(struct module *module, struct body *body)
{
	if (!body->count)
		return;
	bool *live = ARENA_ARRAY(module->arena, bool, body->count);
	live[body->result] = true;
	for (int i = body->count - 1; i >= 0; i--)
		for (int k = 0; live[i] && k < body_arguments(&body->node[i]); k++)
			live[body->node[i].argument[k]] = true;
	int *place = ARENA_ARRAY(module->arena, int, body->count);
	struct node *kept = ARENA_ARRAY(module->arena, struct node, body->count);
	int count = 0;
	for (int i = 0; i < body->count; i++) {
		if (!live[i])
			continue;
		kept[count] = body->node[i];
		for (int k = 0; k < body_arguments(&kept[count]); k++)
			kept[count].argument[k] = place[kept[count].argument[k]];
		place[i] = count++;
	}
	*body = (struct body){ .count = count, .result = place[body->result], .node = kept };
}

/* Operations whose terms may be combined in any grouping that the schedule fixes. */
static bool combines(enum op_code code)
{
	static const bool yes[OP_COUNT] = {
		[OP_ADDF] = true,
		[OP_MULF] = true,
		[OP_MAXIMUMF] = true,
		[OP_MINIMUMF] = true,
		[OP_MAXNUMF] = true,
		[OP_MINNUMF] = true,
		[OP_ADDI] = true,
		[OP_MULI] = true,
		[OP_ANDI] = true,
		[OP_ORI] = true,
		[OP_XORI] = true,
		[OP_MAXSI] = true,
		[OP_MINSI] = true,
		[OP_MAXUI] = true,
		[OP_ABSMAX] = true,
	};
	return yes[code];
}

#define BODY_SET 4096 /* nodes of which a set is kept */

/* One pass, since arguments are earlier nodes: a recursion would visit what is shared again for
 * every way to it. */
bool body_depends_on_accumulator(const struct body *body, int at)
{
	uint64_t depends[BODY_SET / 64] = { 0 };
	if (at >= BODY_SET)
		return true;
	for (int n = 0; n <= at; n++) {
		const struct node *node = &body->node[n];
		uint64_t yes = node->kind == NODE_ACCUMULATOR;
		for (int i = 0; i < body_arguments(node); i++)
			yes |= depends[node->argument[i] / 64] >> node->argument[i] % 64 & 1;
		depends[n / 64] |= yes << n % 64;
	}
	return depends[at / 64] >> at % 64 & 1;
}

enum op_code kernel_combine(const struct kernel *kernel, int *term)
{
	return kernel->scan ? OP_NONE : kernel_update_combine(kernel, term);
}

enum op_code kernel_update_combine(const struct kernel *kernel, int *term)
{
	const struct body *body = &kernel->update;
	if (!body->count || !kernel_has_reduction(kernel))
		return OP_NONE;
	const struct node *result = &body->node[body->result];
	if (result->kind != NODE_OP || !combines(result->code))
		return OP_NONE;
	for (int i = 0; i < 2; i++) {
		int other = result->argument[1 - i];
		if (body->node[result->argument[i]].kind != NODE_ACCUMULATOR ||
		        body_depends_on_accumulator(body, other))
			continue;
		*term = other;
		return result->code;
	}
	return OP_NONE;
}
