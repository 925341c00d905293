/* Rules of kernels: loops, accesses inside their tensors, well-formed bodies and schedules. */
#include "ir/verify.h"
#include "ir/kernel_edit.h"
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
	int term;
	bool lanes =
	        kernel->lanes > 1 && kernel->loops && kernel->loop[kernel->loops - 1].reduction;
	bool fits = !lanes ||
	        (kernel->row_unroll <= 1 && kernel_update_combine(kernel, &term) != OP_NONE);
	if (kernel->scan &&
	        (!kernel_has_reduction(kernel) || !kernel->post.count || kernel->combine || !fits))
		verify_fail(verifier, op,
		        "a scan has a reduction loop, a post, and no combine; over lanes, its "
		        "update is combine(acc, term)");
}

static void check_schedule(struct verifier *verifier, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	const struct loop *last = kernel->loops ? &kernel->loop[kernel->loops - 1] : NULL;
	if (kernel->lanes < 1 || kernel->initiation_interval < 1 || kernel->combine_interval < 1)
		verify_fail(verifier, op, "lanes and intervals are not positive");
	else if (kernel->lanes > 1 &&
	        (!kernel->scheduled || !last || last->extent != kernel->lanes))
		verify_fail(verifier, op, "%" PRId64 " lanes without a last loop of this extent",
		        kernel->lanes);
	else if (kernel->lanes > 1 && last->reduction && !kernel->combine && !kernel->scan)
		verify_fail(verifier, op,
		        "the lane loop is a reduction, but the update does not combine terms");
	else if (kernel->row_unroll < 1 ||
	        (kernel->row_unroll > 1 &&
	                (kernel->lanes == 1 || kernel->loops < 2 ||
	                        (last[-1].reduction && last->reduction) ||
	                        last[-1].extent != kernel->row_unroll)))
		verify_fail(verifier, op,
		        "%" PRId64 " rows without a loop of this extent before the lanes, of which "
		        "one at most is a reduction",
		        kernel->row_unroll);
	else if (kernel->row_unroll > 1 && last[-1].reduction && !kernel->combine)
		verify_fail(verifier, op,
		        "%" PRId64 " terms at once, but the update does not combine terms",
		        kernel->row_unroll);
}

/* The sums of a register tile are finished as they are: all that the result is made of is in
 * them. */
static void check_register_tile(struct verifier *verifier, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	const int row = kernel->loops - 2;
	bool good = kernel_has_reduction(kernel) && !kernel->post.count && !kernel->scan &&
	        kernel->partial_sums == 1 && kernel->result.stride[row] &&
	        kernel->result.stride[row + 1];
	for (int j = 0; j < op->operands; j++)
		good = good &&
		        !(kernel->operand[j].stride[row] && kernel->operand[j].stride[row + 1]);
	if (!good)
		verify_fail(verifier, op,
		        "rows and lanes that are both parallel, but no sums without a post of "
		        "operands that vary along one of them at most");
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

/* One item of a recorded schedule: [loop, trip count, step of its counter]. */
static const int64_t *schedule_item(const struct attr *loops, int i)
{
	const struct attr *item = loops->items[i].value;
	return item->kind == ATTR_INTEGERS && item->count == 3 ? item->integers : NULL;
}

static bool check_schedule_items(
        struct verifier *verifier, const struct op *op, const struct attr *loops)
{
	for (int i = 0; i < loops->count; i++) {
		const int64_t *item = schedule_item(loops, i);
		if (item && item[0] >= 0 && item[0] < op->kernel->loops && item[1] > 0 &&
		        item[2] > 0)
			continue;
		verify_fail(verifier, op,
		        "its schedule has an item %d that is not [loop of the kernel, trip count, "
		        "step]",
		        i);
		return false;
	}
	return true;
}

/* The item of the loop with the smallest step that is at least `least`, or if several have that
 * step, the one with the smallest trip count; -1: none. */
static int next_item(const struct attr *loops, int loop, const bool *used)
{
	int best = -1;
	for (int i = 0; i < loops->count; i++) {
		const int64_t *item = schedule_item(loops, i);
		const int64_t *now = best < 0 ? NULL : schedule_item(loops, best);
		if (item[0] == loop && !used[i] &&
		        (!now || item[2] < now[2] || (item[2] == now[2] && item[1] < now[1])))
			best = i;
	}
	return best;
}

/* The items of a loop count its iterations like digits; a loop of run-time trips has one item. */
static void check_schedule_loop(
        struct verifier *verifier, const struct op *op, const struct attr *schedule, int loop)
{
	const struct attr *loops = attr_item(schedule, KEY_LOOPS);
	const struct loop *of = &op->kernel->loop[loop];
	bool *used = ARENA_ARRAY(verifier->module->arena, bool, loops->count + 1);
	int64_t covered = 1;
	int items = 0;
	for (int i; (i = next_item(loops, loop, used)) >= 0; items++) {
		const int64_t *item = schedule_item(loops, i);
		used[i] = true;
		if (item[2] != covered || item[1] > INT64_MAX / covered) {
			verify_fail(verifier, op,
			        "its schedule has a step of %" PRId64 " for loop %d where %" PRId64
			        " iterations are inside",
			        item[2], loop, covered);
			return;
		}
		covered *= item[1];
	}
	bool padded = attr_item(schedule, KEY_PADDED) && covered > of->extent;
	if ((covered != of->extent && !padded) || (of->run_time && items != 1))
		verify_fail(verifier, op,
		        "its schedule has %" PRId64
		        " iterations of loop %d in %d loops, which has %" PRId64 "%s",
		        covered, loop, items, of->extent,
		        of->run_time ? " at most, counted at run time, in one" : "");
}

/* Are the items before *end whole loops, or parts of step 1, of so many iterations together, and
 * where several, all reductions?  *end becomes the first of them. */
static bool unrolled_parts(
        const struct kernel *kernel, const struct attr *loops, int *end, int64_t iterations)
{
	int64_t covered = 1;
	int last = *end - 1;
	bool good = true;
	while (good && covered < iterations && *end > 0) {
		const int64_t *item = schedule_item(loops, --*end);
		good = item[2] == 1 && (*end == last || kernel->loop[item[0]].reduction);
		covered *= item[1];
	}
	return good && covered == iterations &&
	        (last - *end < 1 || kernel->loop[schedule_item(loops, last)[0]].reduction);
}

/* The last items are the lanes and the rows that are unrolled outside of them. */
static void check_schedule_unroll(
        struct verifier *verifier, const struct op *op, const struct attr *schedule)
{
	const struct kernel *kernel = op->kernel;
	const struct attr *loops = attr_item(schedule, KEY_LOOPS);
	int64_t lanes = attr_item_integer(schedule, KEY_LANES, 0);
	int64_t rows = attr_item_integer(schedule, KEY_ROW_UNROLL, 1);
	int last = loops->count;
	const int64_t *lane = last ? schedule_item(loops, last - 1) : NULL;
	bool unrolls = lanes > 0 && rows > 0 && unrolled_parts(kernel, loops, &last, lanes);
	const int64_t *row = unrolls && last ? schedule_item(loops, last - 1) : NULL;
	unrolls = unrolls && unrolled_parts(kernel, loops, &last, rows);
	if (!unrolls || (rows > 1 && lanes == 1))
		verify_fail(verifier, op,
		        "its schedule has %" PRId64 " lanes and %" PRId64
		        " rows, which are not its last loops",
		        lanes, rows);
	else if (lanes > 1 &&
	        (kernel->loop[lane[0]].run_time || kernel_is_guarded(op, (int)lane[0])))
		verify_fail(verifier, op,
		        "its schedule has lanes along loop %d, which is counted at run time or "
		        "guarded",
		        (int)lane[0]);
	else if (lanes > 1 && kernel->loop[lane[0]].reduction && !kernel->combine && !kernel->scan)
		verify_fail(verifier, op,
		        "its schedule has lanes along a reduction that does not combine terms");
	else if (rows > 1 && kernel->loop[row[0]].reduction && kernel->loop[lane[0]].reduction)
		verify_fail(
		        verifier, op, "its schedule has rows and lanes that are both reductions");
}

/* The order of terms is free only where an operation combines them, and that of token tiles is
 * fixed. */
static void check_schedule_order(
        struct verifier *verifier, const struct op *op, const struct attr *loops)
{
	const struct kernel *kernel = op->kernel;
	const int64_t *before = NULL;
	const int64_t *first = loops->count ? schedule_item(loops, 0) : NULL;
	if (kernel->tile_outermost && (!first || first[0] || first[1] != kernel->loop[0].extent))
		verify_fail(
		        verifier, op, "its schedule does not begin with the loop of token tiles");
	for (int i = 0; i < loops->count && kernel_is_sequential(kernel); i++) {
		const int64_t *item = schedule_item(loops, i);
		if (!kernel->loop[item[0]].reduction)
			continue;
		if (before &&
		        (item[0] < before[0] || (item[0] == before[0] && item[2] > before[2])))
			verify_fail(verifier, op,
			        "its schedule changes the order of terms that no operation "
			        "combines");
		before = item;
	}
}

/* What choose_loop_orders has recorded. */
static void check_recorded_schedule(struct verifier *verifier, const struct op *op)
{
	const struct attr *schedule = attr_get(op, KEY_SCHEDULE);
	const struct attr *loops = attr_item(schedule, KEY_LOOPS);
	if (!schedule)
		return;
	if (verifier->module->level != LEVEL_TENSOR) {
		verify_fail(verifier, op, "the attribute `schedule` belongs to tensor level");
		return;
	}
	if (!loops || loops->kind != ATTR_ARRAY) {
		verify_fail(verifier, op, "its schedule has no list of `loops`");
		return;
	}
	if (!check_schedule_items(verifier, op, loops))
		return;
	for (int l = 0; l < op->kernel->loops; l++)
		check_schedule_loop(verifier, op, schedule, l);
	check_schedule_unroll(verifier, op, schedule);
	check_schedule_order(verifier, op, loops);
}

/* What choose_parallelism has recorded. */
static void check_recorded_parallelism(struct verifier *verifier, const struct op *op)
{
	const struct attr *parallelism = attr_get(op, KEY_PARALLELISM);
	const struct attr *operand = attr_item(parallelism, KEY_OPERAND);
	if (!parallelism)
		return;
	if (verifier->module->level != LEVEL_TENSOR)
		verify_fail(verifier, op, "the attribute `parallelism` belongs to tensor level");
	else if (attr_item_integer(parallelism, KEY_LANES, 0) < 1)
		verify_fail(verifier, op, "its parallelism has no positive number of `lanes`");
	else if (operand && (operand->integer < 0 || operand->integer >= op->operands))
		verify_fail(verifier, op,
		        "its parallelism is about operand %" PRId64 ", which it lacks",
		        operand->integer);
	else if (!operand != !attr_item(parallelism, KEY_PORTS) ||
	        attr_item_integer(parallelism, KEY_PORTS, 1) < 1)
		verify_fail(verifier, op,
		        "its parallelism has `operand` and `ports`, a positive number, together or "
		        "not at all");
	const struct attr *peers = attr_item(parallelism, KEY_PEERS);
	for (int i = 0; peers && i < peers->count; i++)
		if (!operand || peers->integers[i] < 0 || peers->integers[i] >= op->operands)
			verify_fail(verifier, op,
			        "its parallelism has `peers` beside no `operand`, or one that it "
			        "lacks");
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
	if (!verifier->failed && kernel_is_register_tile(kernel))
		check_register_tile(verifier, op);
	check_recorded_parallelism(verifier, op);
	check_recorded_schedule(verifier, op);
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
