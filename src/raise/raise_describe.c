/* Notes for the report what became of the loops of C: which were perfectized, whose bounds varied,
 * and how a sequential nest orders and unrolls them. Kernels get their order and tiles later, when
 * schedules are chosen (streams/describe_schedules.c). */
#include "raise/raise_internal.h"

struct described {
	struct raising *r;
	VEC(const struct attr *) list;
};

/* The loops that both statements are in. */
static int shared_loops(const struct poly_statement *left, const struct poly_statement *right)
{
	int shared = 0;
	while (shared < left->dims && shared < right->dims &&
	        left->position[shared] == right->position[shared])
		shared++;
	return shared;
}

/* Does another statement stand in some of its loops, but not in all and no others? */
static bool is_imperfect(const struct raising *r, int statement)
{
	const struct poly_statement *own = &r->program.statement[statement];
	for (int s = 0; s < r->statements; s++) {
		const struct poly_statement *other = &r->program.statement[s];
		int shared = shared_loops(own, other);
		if (shared && (shared < own->dims || shared < other->dims))
			return true;
	}
	return false;
}

static const struct attr *strings(struct module *module, int count, const char *const *text)
{
	const struct attr **item = ARENA_ARRAY(module->arena, const struct attr *, count + 1);
	for (int i = 0; i < count; i++)
		item[i] = attr_string(module, text[i]);
	return attr_array(module, count, item);
}

/* --- sequential nests --- */

struct step_path {
	const struct poly_step *loop[2 * POLY_DIMS];
	int loops;
	const struct poly_step *statement; /* NULL: not found */
};

static bool find_step(const struct poly_step *step, int statement, struct step_path *path)
{
	if (step->kind == POLY_STEP_STATEMENT) {
		path->statement = step->statement == statement ? step : NULL;
		return path->statement;
	}
	bool loop = step->kind == POLY_STEP_LOOP && path->loops < 2 * POLY_DIMS;
	if (loop)
		path->loop[path->loops++] = step;
	for (int i = 0; i < step->parts; i++)
		if (find_step(step->part[i], statement, path))
			return true;
	path->loops -= loop ? 1 : 0;
	return false;
}

/* Which loops of the path the counter of a statement is made of; others have no mark. */
static void mark_loops(
        const struct poly_expression *expression, const struct step_path *path, bool *mark)
{
	for (int l = 0; l < path->loops && expression->kind == POLY_COUNTER; l++)
		mark[l] = mark[l] || path->loop[l]->loop == expression->number;
	for (int p = 0; p < 3 && expression->kind != POLY_COUNTER; p++)
		if (expression->part[p])
			mark_loops(expression->part[p], path, mark);
}

/* Place of each counter among the loops of the nest, and its lanes. false: a counter is a sum of
 * several, as in a skewed nest. */
static bool order_of(const struct step_path *path, int dims, int64_t *place, int64_t *lanes)
{
	int64_t outer[2 * POLY_DIMS] = { 0 }; /* loops without lanes before this one */
	for (int l = 0, count = 0; l < path->loops; l++) {
		outer[l] = count;
		count += path->loop[l]->lanes ? 0 : 1;
	}
	bool plain = true;
	for (int d = 0; d < dims; d++) {
		bool mark[2 * POLY_DIMS] = { false };
		int found = 0;
		place[d] = lanes[d] = 1;
		mark_loops(path->statement->counter[d], path, mark);
		for (int l = 0; l < path->loops; l++) {
			if (!mark[l])
				continue;
			lanes[d] *= path->loop[l]->lanes ? path->loop[l]->lanes : 1;
			place[d] = path->loop[l]->lanes ? place[d] : outer[l];
			found += path->loop[l]->lanes ? 0 : 1;
		}
		plain = plain && found == 1;
	}
	return plain;
}

/* `A cyclic factor=4 dim=2` of each array on chip with several banks. */
static const struct attr *banks_of(struct raising *r, const struct raise_group *group)
{
	VEC(const char *) text = { 0 };
	for (int a = 0; group->banks && a < r->program.arrays; a++)
		for (int d = 0; d < r->program.array[a].rank; d++)
			if (group->banks[a][d] > 1)
				VEC_PUSH(r->arena, &text,
				        text_format(r->arena, "%s cyclic factor=%lld dim=%d",
				                r->region->arrays.data[a].name,
				                (long long)group->banks[a][d], d + 1));
	return strings(r->module, (int)text.count, text.data);
}

/* Adds what the nest does with the loops of a statement; returns the number of items. */
static int add_nest(
        struct raising *r, const struct raise_group *group, int statement, struct named *item)
{
	struct step_path path = { .loops = 0 };
	int dims = r->program.statement[statement].dims;
	int64_t place[POLY_DIMS];
	int64_t lanes[POLY_DIMS];
	int count = 0;
	if (!group->nest || !find_step(group->nest, statement, &path))
		return 0;
	if (order_of(&path, dims, place, lanes))
		item[count++] = (struct named){ key_name(KEY_LOOP_PERMUTATION),
			attr_integers(r->module, dims, place) };
	item[count++] =
	        (struct named){ key_name(KEY_TILES), attr_integers(r->module, dims, lanes) };
	item[count++] =
	        (struct named){ key_name(KEY_UNROLLED), attr_integers(r->module, dims, lanes) };
	item[count++] = (struct named){ key_name(KEY_PARTITIONS), banks_of(r, group) };
	return count;
}

/* --- all statements --- */

/* What pragmas ask of the arrays that the statement uses. */
static const struct attr *asked_of(struct raising *r, const struct poly_statement *statement)
{
	VEC(const char *) text = { 0 };
	for (int a = 0; a < r->program.arrays; a++) {
		const struct region_array *array = &r->region->arrays.data[a];
		bool used = statement->write.array == a;
		for (int j = 0; j < statement->reads; j++)
			used = used || statement->read[j].array == a;
		if (used && array->partition)
			VEC_PUSH(r->arena, &text,
			        text_format(r->arena, "%s %s", array->name, array->partition));
	}
	return strings(r->module, (int)text.count, text.data);
}

static const char *name_of(const struct raising *r, int instance)
{
	const struct raise_layout *layout = &r->layout[instance];
	const struct value *value = layout->value ? layout->value : layout->by_element;
	const struct op *op = value ? value->def : NULL;
	if (!op)
		return NULL;
	if (op->code == OP_KERNEL)
		return op->kernel->name;
	return attr_text_or(op, KEY_STREAM_NAME, NULL);
}

/* Adds how often and how long the statement runs in C, or 0 if an earlier row says it; returns the
 * number of items. */
static int add_points(const struct raising *r, int instance, struct named *item)
{
	const struct region_statement *statement = raise_origin(r, instance);
	int64_t points = raise_points(&statement->affine);
	if (!points || !r->options->platform)
		return 0;
	int64_t cycles = raise_point_cycles(r->arena, r->options->platform, &statement->body);
	for (int i = 0; i < instance; i++)
		if (raise_origin(r, i) == statement && r->live[i] && name_of(r, i))
			points = 0;
	item[0] = (struct named){ key_name(KEY_POINTS), attr_integer(r->module, points) };
	item[1] = (struct named){ key_name(KEY_POINT_CYCLES), attr_integer(r->module, cycles) };
	return 2;
}

static void describe(struct described *all, int instance)
{
	struct raising *r = all->r;
	struct module *module = r->module;
	const struct region_statement *origin = raise_origin(r, instance);
	int number = r->instance[instance].statement;
	int group = raise_group_of(r, instance);
	int dims = origin->affine.dims;
	int64_t trips[POLY_DIMS];
	bool varies = false;
	struct named item[20];
	int count = 0;
	for (int d = 0; d < dims; d++) {
		trips[d] = r->flow[instance].high[d] - r->flow[instance].low[d] + 1;
		varies = varies || !origin->trips[d];
	}
	item[count++] =
	        (struct named){ key_name(KEY_NAME), attr_string(module, name_of(r, instance)) };
	item[count++] =
	        (struct named){ key_name(KEY_LINE), attr_integer(module, origin->location.line) };
	item[count++] =
	        (struct named){ key_name(KEY_COUNTERS), strings(module, dims, origin->counter) };
	item[count++] = (struct named){ key_name(KEY_ARRAY),
		attr_string(module, r->region->arrays.data[origin->affine.write.array].name) };
	item[count++] = (struct named){ key_name(KEY_TRIPS), attr_integers(module, dims, trips) };
	if (varies)
		item[count++] = (struct named){ key_name(KEY_VARIABLE), attr_unit(module) };
	if (is_imperfect(r, number))
		item[count++] = (struct named){ key_name(KEY_IMPERFECT), attr_unit(module) };
	if (group >= 0)
		item[count++] = (struct named){ key_name(KEY_SEQUENTIAL), attr_unit(module) };
	count += add_points(r, instance, item + count);
	if (origin->interval)
		item[count++] = (struct named){ key_name(KEY_ASKED_INTERVAL),
			attr_integer(module, origin->interval) };
	const struct attr *asked = asked_of(r, &origin->affine);
	if (asked->count)
		item[count++] = (struct named){ key_name(KEY_ASKED_PARTITIONS), asked };
	if (group >= 0)
		count += add_nest(r, &r->groups.data[group], number, item + count);
	VEC_PUSH(r->arena, &all->list, attr_dictionary(module, count, item));
}

const struct attr *raise_describe(struct raising *r)
{
	struct described all = { .r = r };
	for (int i = 0; i < r->instances; i++)
		if (r->live[i] && raise_origin(r, i) && name_of(r, i))
			describe(&all, i);
	return attr_array(r->module, (int)all.list.count, all.list.data);
}
