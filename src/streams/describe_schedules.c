/* What schedules do with the loops of C, for reports.
 *
 * Before: {name = "C_l11", counters = ["i", "j", "k"], trips = [64, 48, 32]}
 *         kernel C_l11 {schedule = {loops = [[0, 8, 8], [1, 2, 24], [2, 32, 1], [0, 8, 1],
 *                       [1, 24, 1]], lanes = 24}}
 * After:  … permutation = [0, 1, 2], tiles = [8, 24, 1], unrolled = [1, 24, 1],
 *         partitions = ["C cyclic factor=24 dim=2", "B cyclic factor=24 dim=2"] */
#include "streams/describe_schedules.h"
#include "schedule/recorded_choices.h"
#include <inttypes.h>

struct scheduled_loops {
	struct module *module;
	const struct op *main, *op;
	struct schedule schedule;
	int dims;                        /* of the statement in C */
	int64_t dim_of[KERNEL_OPERANDS]; /* [loops] dim in C of each loop of the kernel */
	const struct attr *all;          /* all entries */
};

/* The loops of the kernel are those of C but for some of one iteration. */
static bool match_loops(struct scheduled_loops *s, const struct attr *trips)
{
	const struct kernel *kernel = s->op->kernel;
	int loop = 0;
	s->dims = trips->count;
	for (int d = 0; d < s->dims; d++) {
		bool same = loop < kernel->loops && loop < KERNEL_OPERANDS &&
		        kernel->loop[loop].extent == trips->integers[d];
		if (same)
			s->dim_of[loop++] = d;
		else if (trips->integers[d] != 1)
			return false;
	}
	return loop == kernel->loops;
}

static bool is_unrolled(const struct schedule *schedule, int part)
{
	return schedule_is_lane(schedule, part) || schedule_is_row(schedule, part);
}

/* Places of the dims among the outermost loops, points inside those, points at once. */
static void find_tiles(
        const struct scheduled_loops *s, int64_t *place, int64_t *tile, int64_t *unrolled)
{
	bool seen[KERNEL_OPERANDS] = { false };
	int places = 0;
	for (int d = 0; d < s->dims; d++) {
		place[d] = -1;
		tile[d] = unrolled[d] = 1;
	}
	for (int p = 0; p < s->schedule.parts; p++) {
		const struct schedule_part *part = &s->schedule.part[p];
		int64_t d = s->dim_of[part->source];
		bool lanes = is_unrolled(&s->schedule, p);
		if (!seen[d] && !lanes)
			place[d] = places++;
		if (seen[d] || lanes)
			tile[d] *= part->trip;
		seen[d] = true;
		unrolled[d] *= lanes ? part->trip : 1;
	}
	for (int d = 0; d < s->dims; d++)
		if (place[d] < 0)
			place[d] = places++;
}

/* --- arrays */

/* The array in C that a value holds; NULL: it has no name there. */
static const char *array_of(const struct scheduled_loops *s, const struct value *value)
{
	if (!value->def) {
		const struct attr *name =
		        function_argument_attr(s->main, value->index, KEY_STREAM_NAME);
		return name ? name->text : NULL;
	}
	const struct attr *entry =
	        value->def->code == OP_KERNEL ? attr_entry(s->all, value->def->kernel->name) : NULL;
	const struct attr *array = attr_item(entry, KEY_ARRAY);
	return array && array->kind == ATTR_STRING ? array->text : NULL;
}

/* The dim of a shape in which neighbours are `stride` elements apart. */
static int dim_of_stride(const struct type *type, int64_t stride)
{
	int64_t inner = 1;
	for (int d = type->rank - 1; d >= 0; d--) {
		inner *= type->shape[d];
		if (stride < inner)
			return d;
	}
	return 0;
}

/* Elements of an array that are accessed at once, by dim. */
static void find_factors(const struct scheduled_loops *s, const struct access *access,
        const struct type *type, int64_t *factor)
{
	for (int d = 0; d < type->rank; d++)
		factor[d] = 1;
	for (int p = 0; p < s->schedule.parts; p++) {
		const struct schedule_part *part = &s->schedule.part[p];
		int64_t stride = access->stride[part->source] * part->step;
		if (stride && is_unrolled(&s->schedule, p))
			factor[dim_of_stride(type, stride < 0 ? -stride : stride)] *= part->trip;
	}
}

struct partitions {
	VEC(const struct attr *) list;
};

static void add_partition(struct scheduled_loops *s, struct partitions *partitions,
        const struct value *value, const struct access *access)
{
	struct module *module = s->module;
	const struct type *type = value->type;
	const char *name = array_of(s, value);
	int64_t *factor = ARENA_ARRAY(module->arena, int64_t, type->rank + 1);
	if (!name)
		return;
	find_factors(s, access, type, factor);
	for (int d = 0; d < type->rank; d++) {
		if (factor[d] < 2)
			continue;
		const char *text = text_format(module->arena, "%s cyclic factor=%" PRId64 " dim=%d",
		        name, factor[d], d + 1);
		bool known = false;
		for (size_t i = 0; i < partitions->list.count; i++)
			known = known || text_same(partitions->list.data[i]->text, text);
		if (!known)
			VEC_PUSH(module->arena, &partitions->list, attr_string(module, text));
	}
}

/* --- entries */

static const struct attr *describe(struct scheduled_loops *s, const struct attr *entry)
{
	struct module *module = s->module;
	const struct attr *trips = attr_item(entry, KEY_TRIPS);
	int64_t place[KERNEL_OPERANDS];
	int64_t tile[KERNEL_OPERANDS];
	int64_t unrolled[KERNEL_OPERANDS];
	struct partitions partitions = { 0 };
	if (!trips || trips->kind != ATTR_INTEGERS || trips->count > KERNEL_OPERANDS ||
	        !match_loops(s, trips))
		return entry;
	s->schedule = recorded_schedule(module->arena, s->op);
	find_tiles(s, place, tile, unrolled);
	for (int j = 0; j < s->op->operands; j++)
		add_partition(s, &partitions, s->op->operand[j], &s->op->kernel->operand[j]);
	add_partition(s, &partitions, s->op->result[0], &s->op->kernel->result);
	entry = attr_with(
	        module, entry, KEY_LOOP_PERMUTATION, attr_integers(module, s->dims, place));
	entry = attr_with(module, entry, KEY_TILES, attr_integers(module, s->dims, tile));
	entry = attr_with(module, entry, KEY_UNROLLED, attr_integers(module, s->dims, unrolled));
	return attr_with(module, entry, KEY_PARTITIONS,
	        attr_array(module, (int)partitions.list.count, partitions.list.data));
}

/* The kernel of this name that has a schedule; NULL: there is none. */
static const struct op *find_kernel(const struct block *block, const char *name)
{
	const struct op *found = NULL;
	for (const struct op *op = block->first; op && !found; op = op->next) {
		if (op->code == OP_FOR)
			found = find_kernel(op->region[0], name);
		if (op->code == OP_KERNEL && text_same(op->kernel->name, name) &&
		        attr_get(op, KEY_SCHEDULE))
			found = op;
	}
	return found;
}

const struct attr *describe_schedules(struct module *module)
{
	const struct op *main = module_main(module);
	const struct attr *all = attr_get(main, KEY_STREAM_TRANSFORMATIONS);
	if (!all || all->kind != ATTR_ARRAY)
		return NULL;
	const struct attr **entry = ARENA_ARRAY(module->arena, const struct attr *, all->count + 1);
	for (int i = 0; i < all->count; i++) {
		struct scheduled_loops s = { .module = module, .main = main, .all = all };
		entry[i] = all->items[i].value;
		s.op = find_kernel(main->region[0], attr_item_text(entry[i], KEY_NAME));
		if (s.op)
			entry[i] = describe(&s, entry[i]);
	}
	return attr_array(module, all->count, entry);
}
