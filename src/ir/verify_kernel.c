/* Rules of kernels: loops, accesses inside their tensors, well-formed bodies and schedules. */
#include "ir/verify.h"
#include "ir/print.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

static bool is_identifier(const char *name)
{
	bool right = isalpha((unsigned char)*name) || *name == '_';
	for (; right && *name; name++)
		right = isalnum((unsigned char)*name) || *name == '_';
	return right;
}

static void check_name(struct verifier *verifier, const struct op *op)
{
	const char *name = op->kernel->name;
	if (!name || !is_identifier(name)) {
		verify_fail(verifier, op, "the name is no identifier");
		return;
	}
	const char *symbol = text_format(verifier->module->arena, "%s.update", name);
	if (map_get(&verifier->symbols, symbol))
		verify_fail(verifier, op, "there are two kernels of this name");
	map_set(&verifier->symbols, symbol, (void *)symbol);
}

static void check_loops(struct verifier *verifier, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	for (int i = 0; i < kernel->loops; i++) {
		if (kernel->loop[i].extent < 1)
			verify_fail(verifier, op, "loop %d has extent %" PRId64, i,
			        kernel->loop[i].extent);
		const struct run_time_trip *trip = kernel->loop[i].run_time;
		if (trip && trip->most != kernel->loop[i].extent)
			verify_fail(verifier, op,
			        "loop %d runs up to %" PRId64 " times, but has extent %" PRId64, i,
			        trip->most, kernel->loop[i].extent);
		if (trip && !verify_symbol(verifier, trip->symbol))
			verify_fail(verifier, op,
			        "loop %d runs up to \"%s\", which is no input of one integer", i,
			        trip->symbol);
		if (kernel->loop[i].reduction && kernel->result.stride[i] && !kernel->scan)
			verify_fail(verifier, op,
			        "the result's address depends on the reduction loop %d", i);
		if (kernel->scan && kernel->loop[i].extent > 1 && !kernel->result.stride[i])
			verify_fail(verifier, op,
			        "a scan has a result at every point, but its address does not "
			        "depend on loop %d",
			        i);
	}
}

static void check_scan(struct verifier *verifier, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	bool lanes =
	        kernel->lanes > 1 && kernel->loops && kernel->loop[kernel->loops - 1].reduction;
	if (kernel->scan &&
	        (!kernel_has_reduction(kernel) || !kernel->post.count || kernel->combine || lanes))
		verify_fail(verifier, op,
		        "a scan has a reduction loop that is not its lanes, a post, and no "
		        "combine");
}

static void check_schedule(struct verifier *verifier, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	const struct loop *last = kernel->loops ? &kernel->loop[kernel->loops - 1] : NULL;
	if (kernel->lanes < 1 || kernel->initiation_interval < 1)
		verify_fail(verifier, op, "lanes and interval are not positive");
	else if (kernel->lanes > 1 &&
	        (!kernel->scheduled || !last || last->extent != kernel->lanes))
		verify_fail(verifier, op, "%" PRId64 " lanes without a last loop of this extent",
		        kernel->lanes);
	else if (kernel->lanes > 1 && last->reduction && !kernel->combine)
		verify_fail(verifier, op,
		        "the lane loop is a reduction, but the update does not combine terms");
	else if (kernel->row_unroll < 1 ||
	        (kernel->row_unroll > 1 &&
	                (kernel->lanes == 1 || kernel->loops < 2 ||
	                        last[-1].reduction == last->reduction ||
	                        last[-1].extent != kernel->row_unroll)))
		verify_fail(verifier, op,
		        "%" PRId64 " rows without a parallel loop of this extent before reduced "
		        "lanes, or a reduction before parallel ones",
		        kernel->row_unroll);
	else if (kernel->row_unroll > 1 && last[-1].reduction &&
	        (!kernel->combine || type_is_real(kernel->type)))
		verify_fail(verifier, op,
		        "%" PRId64 " terms at once that are no integers to be combined",
		        kernel->row_unroll);
}

static void check_partial(struct verifier *verifier, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	if (kernel->partial_sums == 1)
		return;
	bool power = kernel->partial_sums > 1 &&
	        (kernel->partial_sums & (kernel->partial_sums - 1)) == 0;
	if (!power || !kernel->combine || kernel_inner_reduction(kernel) < 0)
		verify_fail(verifier, op,
		        "%" PRId64 " partial sums: accepted is a power of two, where a reduction "
		        "loop combines terms",
		        kernel->partial_sums);
	else if (body_has(&kernel->update, OP_INDEX))
		verify_fail(verifier, op,
		        "%" PRId64 " partial sums of terms that depend on counters",
		        kernel->partial_sums);
}

/* The range of a counter in which an access is active. */
static struct guard_range active_range(
        const struct kernel *kernel, const struct access *access, int loop)
{
	struct guard_range range = { .loop = loop, .low = 0, .high = kernel->loop[loop].extent };
	for (int g = 0; g < access->guards; g++) {
		const struct guard_range *guard = &access->guard[g];
		if (guard->loop == loop && guard->low > range.low)
			range.low = guard->low;
		if (guard->loop == loop && guard->high < range.high)
			range.high = guard->high;
	}
	return range;
}

static bool extend(int64_t stride, int64_t first, int64_t last, int64_t *low, int64_t *high)
{
	int64_t a;
	int64_t b;
	if (__builtin_mul_overflow(stride, first, &a) || __builtin_mul_overflow(stride, last, &b))
		return false;
	return !__builtin_add_overflow(*low, a < b ? a : b, low) &&
	        !__builtin_add_overflow(*high, a < b ? b : a, high);
}

/* Lowest and highest address of an access. false: they overflow; *empty: the access is never
 * active. */
static bool address_range(const struct kernel *kernel, const struct access *access, int64_t *low,
        int64_t *high, bool *empty)
{
	*low = *high = access->offset;
	*empty = false;
	for (int i = 0; i < kernel->loops; i++) {
		struct guard_range range = active_range(kernel, access, i);
		if (range.low >= range.high)
			*empty = true;
		else if (!extend(access->stride[i], range.low, range.high - 1, low, high))
			return false;
	}
	return access->index_operand < 0 ||
	        extend(access->index_stride, 0, access->index_limit - 1, low, high);
}

/* Addresses must lie in the tensor; a stream has no addresses. */
static void check_addresses(struct verifier *verifier, const struct op *op,
        const struct access *access, const struct type *root, const char *who)
{
	if (root->kind != TYPE_TENSOR)
		return;
	int64_t low;
	int64_t high;
	int64_t elements = type_elements(root);
	bool empty;
	if (!address_range(op->kernel, access, &low, &high, &empty))
		verify_fail(verifier, op, "the addresses of %s overflow", who);
	else if (!empty && (low < 0 || high >= elements))
		verify_fail(verifier, op,
		        "%s is addressed from %" PRId64 " to %" PRId64 ", but has %" PRId64
		        " elements",
		        who, low, high, elements);
}

static bool check_guards(struct verifier *verifier, const struct op *op,
        const struct access *access, const char *who)
{
	for (int g = 0; g < access->guards; g++) {
		const struct guard_range *guard = &access->guard[g];
		bool loop = guard->loop >= 0 && guard->loop < op->kernel->loops;
		if (loop && guard->last &&
		        (!op->kernel->loop[guard->loop].run_time ||
		                op->kernel->loop[guard->loop].run_time->plus < 1 ||
		                access->stride[guard->loop])) {
			verify_fail(verifier, op,
			        "%s is read in the last iteration of loop %d, which has a static "
			        "trip count, may be empty, or changes its index",
			        who, guard->loop);
			return false;
		}
		if (loop && 0 <= guard->low && guard->low <= guard->high &&
		        guard->high <= op->kernel->loop[guard->loop].extent)
			continue;
		verify_fail(verifier, op,
		        "%s has a guard %" PRId64 " to %" PRId64 " outside loop %d", who,
		        guard->low, guard->high, guard->loop);
		return false;
	}
	return true;
}

/* A row predicate counts iterations of adjacent loops, the innermost with weight 1, and as many of
 * them as the rows need. */
static bool check_row_predicate(struct verifier *verifier, const struct op *op,
        const struct access *access, const char *who)
{
	const struct kernel *kernel = op->kernel;
	const struct row_predicate *row_predicate = access->row_predicate;
	int64_t iterations = 1;
	bool good = !row_predicate || kernel->scheduled, ended = false;
	for (int l = kernel->loops - 1; row_predicate && l >= 0; l--) {
		ended = ended ||
		        (iterations > 1 && !row_predicate->weight[l] && kernel->loop[l].extent > 1);
		good = good &&
		        (!row_predicate->weight[l] ||
		                (!ended && row_predicate->weight[l] == iterations &&
		                        iterations <= INT64_MAX / kernel->loop[l].extent));
		iterations *= good && row_predicate->weight[l] ? kernel->loop[l].extent : 1;
	}
	good = good &&
	        (!row_predicate ||
	                (row_predicate->rows.most % row_predicate->step == 0 &&
	                        iterations == row_predicate->rows.most / row_predicate->step &&
	                        verify_symbol(verifier, row_predicate->symbol)));
	if (!good)
		verify_fail(verifier, op,
		        "%s arrives in iterations that are not those of adjacent loops, not "
		        "counted by a scalar integer input, or without a schedule",
		        who);
	return good;
}

static bool check_gather(struct verifier *verifier, const struct op *op, int operand)
{
	const struct access *access = &op->kernel->operand[operand];
	int index = access->index_operand;
	if (index == -1)
		return true;
	if (index < 0 || index >= op->operands || index == operand ||
	        type_is_real(type_scalar(op->operand[index]->type))) {
		verify_fail(verifier, op,
		        "operand %d is gathered with operand %d, which is no integer operand",
		        operand, index);
		return false;
	}
	if (access->index_limit > 0)
		return true;
	verify_fail(verifier, op, "operand %d is gathered from %" PRId64 " rows", operand,
	        access->index_limit);
	return false;
}

static void check_accesses(struct verifier *verifier, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	for (int i = 0; i < op->operands; i++) {
		char who[32];
		const struct access *access = &kernel->operand[i];
		snprintf(who, sizeof who, "operand %d", i);
		if (check_guards(verifier, op, access, who) &&
		        check_row_predicate(verifier, op, access, who) &&
		        check_gather(verifier, op, i))
			check_addresses(verifier, op, access, op->operand[i]->type, who);
	}
	if (kernel->result.guards || kernel->result.index_operand != -1)
		verify_fail(verifier, op, "the result is guarded or gathered");
	else
		check_addresses(verifier, op, &kernel->result, op->result[0]->type, "the result");
}

/* Says what is wrong with a leaf of a body; NULL: nothing. */
static const char *leaf_error(const struct op *op, const struct node *node)
{
	const struct kernel *kernel = op->kernel;
	bool operand = node->integer >= 0 && node->integer < op->operands;
	bool loop = node->integer >= 0 && node->integer < kernel->loops;
	if (node->kind == NODE_OPERAND &&
	        (!operand || node->type != type_scalar(op->operand[node->integer]->type)))
		return "there is no such operand of this type";
	if (node->kind == NODE_ACCUMULATOR &&
	        (!kernel_has_reduction(kernel) || node->type != kernel->type))
		return "there is no accumulator of this type";
	if (node->kind == NODE_CONSTANT && node->type->element)
		return "a constant is no scalar";
	if (node->kind == NODE_OP && node->code == OP_INDEX && !loop)
		return "there is no such loop";
	if (node->kind == NODE_OP && node->code == OP_ACTIVE && !operand)
		return "there is no such operand";
	int64_t predicates = node->code == OP_CMPF ? FLOAT_PREDICATES : INTEGER_PREDICATES;
	if (node->kind == NODE_OP && (node->code == OP_CMPF || node->code == OP_CMPI) &&
	        (node->integer < 0 || node->integer >= predicates))
		return "there is no such predicate";
	return NULL;
}

static const char *node_error(const struct op *op, const struct body *body, int index)
{
	const struct node *node = &body->node[index];
	if (node->kind != NODE_OP)
		return leaf_error(op, node);
	if (node->code <= OP_NONE || node->code >= OP_COUNT ||
	        !(op_info[node->code].levels & LEVEL_BODY) || node->code == OP_CONSTANT)
		return "it does not belong to the body of a kernel";
	const struct type *type[3] = { 0 };
	for (int i = 0; i < op_info[node->code].operands; i++) {
		if (node->argument[i] < 0 || node->argument[i] >= index)
			return "an argument does not come before it";
		type[i] = body->node[node->argument[i]].type;
	}
	const char *error = scalar_type_error(node->code, type, node->type);
	return error ? error : leaf_error(op, node);
}

static void check_body(
        struct verifier *verifier, const struct op *op, const struct body *body, const char *which)
{
	for (int i = 0; i < body->count; i++) {
		const char *error = node_error(op, body, i);
		if (error)
			verify_fail(verifier, op, "%s, node %d: %s", which, i, error);
	}
	if (body->result < 0 || body->result >= body->count ||
	        body->node[body->result].type != op->kernel->type)
		verify_fail(verifier, op, "%s does not give a value of type %s", which,
		        op->kernel->type->text);
}

static bool varies(const struct kernel *kernel, const struct access *access)
{
	for (int i = 0; i < kernel->loops; i++)
		if (kernel->loop[i].reduction && kernel->loop[i].extent > 1 && access->stride[i])
			return true;
	for (int g = 0; g < access->guards; g++)
		if (kernel->loop[access->guard[g].loop].reduction)
			return true;
	return false;
}

/* post runs once per element, so what it reads must not depend on reduction loops. */
static void check_post(struct verifier *verifier, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	if (kernel->post.count && !kernel_has_reduction(kernel))
		verify_fail(verifier, op, "post without a reduction loop");
	for (int i = 0; i < kernel->post.count && !kernel->scan; i++) {
		const struct node *node = &kernel->post.node[i];
		if (node->kind == NODE_OP && node->code == OP_INDEX &&
		        kernel->loop[node->integer].reduction)
			verify_fail(verifier, op, "post reads the counter of the reduction loop %d",
			        (int)node->integer);
	}
	for (int i = 0; i < op->operands && !kernel->scan; i++)
		if (body_uses_operand(&kernel->post, i) && varies(kernel, &kernel->operand[i]))
			verify_fail(verifier, op,
			        "post reads operand %d, which depends on a reduction loop", i);
}

void verify_kernel(struct verifier *verifier, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	if (!kernel) {
		verify_fail(verifier, op, "it has no payload");
		return;
	}
	if (kernel->type != type_scalar(op->result[0]->type))
		verify_fail(verifier, op, "its type %s is not that of the result's elements",
		        kernel->type->text);
	if (type_runs(op->operands, op->operand) > operand_segments(OP_KERNEL))
		verify_fail(verifier, op, "its operands change type more than %d times",
		        operand_segments(OP_KERNEL) - 1);
	bool failed = verifier->failed;
	verifier->failed = false;
	check_name(verifier, op);
	check_loops(verifier, op);
	check_schedule(verifier, op);
	check_partial(verifier, op);
	check_scan(verifier, op);
	check_accesses(verifier, op);
	check_body(verifier, op, &kernel->update, "update");
	if (kernel->post.count)
		check_body(verifier, op, &kernel->post, "post");
	if (!verifier->failed) {
		check_post(verifier, op);
		verify_ports(verifier, op);
	}
	verifier->failed |= failed;
}
