/* Gives each iteration its own copy of a scalar that carries no value from one to the next, so that
 * the order of a nest's iterations is not bound by its reuse.
 * Before: for i: for j: w = a[i][j]; for k: w -= …; a[i][j] = w
 * After:  the same with w[i][j] */
#include "raise/raise_internal.h"

enum { COPIES_MOST = 1 << 18 };

/* Counters of the outer loops first … last - 1 tell the copies apart. */
struct expansion {
	int array, first, last;
	int64_t low[POLY_DIMS], high[POLY_DIMS];
};

static bool uses(const struct poly_statement *statement, int array)
{
	bool found = statement->write.array == array;
	for (int j = 0; j < statement->reads; j++)
		found = found || statement->read[j].array == array;
	return found;
}

static bool is_in_nest(const struct raising *r, int array)
{
	for (int s = 0; s < r->statements; s++)
		if (r->group[s] >= 0 && r->program.statement[s].write.array == array)
			return true;
	return false;
}

static void find_box(const struct raising *r, struct expansion *e)
{
	bool any = false;
	for (int i = 0; i < r->readers; i++) {
		const struct poly_flow *flow = &r->flow[i];
		if (!uses(raise_statement(r, i), e->array))
			continue;
		for (int d = 0; d < e->last; d++) {
			e->low[d] = !any || flow->low[d] < e->low[d] ? flow->low[d] : e->low[d];
			e->high[d] =
			        !any || flow->high[d] > e->high[d] ? flow->high[d] : e->high[d];
		}
		any = true;
	}
}

/* The outer loops need not tell copies apart where there would be too many. */
static bool choose(struct raising *r, struct poly *poly, struct expansion *e)
{
	const struct region_array *array = &r->region->arrays.data[e->array];
	if (array->rank || array->argument || array->value || !is_in_nest(r, e->array))
		return false;
	e->last = poly_private_loops(poly, e->array);
	find_box(r, e);
	int64_t copies = 1;
	e->first = e->last;
	while (e->first &&
	        copies * (e->high[e->first - 1] - e->low[e->first - 1] + 1) <= COPIES_MOST) {
		e->first--;
		copies *= e->high[e->first] - e->low[e->first] + 1;
	}
	return copies > 1;
}

static void set_subscripts(const struct expansion *e, struct poly_access *access)
{
	if (access->array != e->array)
		return;
	for (int d = e->first; d < e->last; d++) {
		access->subscript[d - e->first] = (struct poly_form){ .constant = -e->low[d] };
		access->subscript[d - e->first].coefficient[d] = 1;
	}
}

static void expand(struct raising *r, struct region *region, const struct expansion *e)
{
	struct region_array *array = &region->arrays.data[e->array];
	for (int d = e->first; d < e->last; d++)
		array->extent[array->rank++] = e->high[d] - e->low[d] + 1;
	for (int s = 0; s < r->statements; s++) {
		struct poly_statement *statement = &region->statements.data[s].affine;
		set_subscripts(e, &statement->write);
		for (int j = 0; j < statement->reads; j++)
			set_subscripts(e, &statement->read[j]);
	}
}

static struct region *copy_of(struct raising *r)
{
	struct region *region = arena_copy(r->arena, r->region, sizeof *region);
	region->arrays.data = arena_copy(
	        r->arena, region->arrays.data, sizeof *region->arrays.data * region->arrays.count);
	region->statements.data = arena_copy(r->arena, region->statements.data,
	        sizeof *region->statements.data * region->statements.count);
	for (size_t s = 0; s < region->statements.count; s++) {
		struct poly_statement *statement = &region->statements.data[s].affine;
		statement->read = arena_copy(r->arena, statement->read,
		        sizeof *statement->read * (size_t)statement->reads);
	}
	return region;
}

bool raise_expand(struct raising *r, struct poly *poly)
{
	struct region *region = NULL;
	for (int a = 0; a < r->program.arrays; a++) {
		struct expansion e = { .array = a };
		if (!choose(r, poly, &e))
			continue;
		region = region ? region : copy_of(r);
		expand(r, region, &e);
	}
	if (region)
		r->region = region;
	return region;
}
