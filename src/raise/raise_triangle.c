/* Sums over triangles. A kernel runs over the box around its iterations; a sequential nest has
 * bounds that follow from counters, and so half of them or fewer. It holds whole arrays on chip,
 * which is worth while if they fit and each element is used often. */
#include "raise/raise_internal.h"

enum {
	USES_LEAST = 8,  /* iterations for each element */
	MEMORY_SHARE = 2 /* the arrays may take one such part of a die's memory */
};

static int64_t elements_of(const struct raising *r, const struct poly_access *access)
{
	const struct poly_array *array = &r->program.array[access->array];
	int64_t elements = 1;
	for (int d = 0; d < array->rank; d++)
		elements *= array->extent[d];
	return elements;
}

/* Is the array among the accesses before? */
static bool is_counted(const struct poly_statement *statement, int before, int array)
{
	for (int j = -1; j < before; j++)
		if (array == (j < 0 ? statement->write.array : statement->read[j].array))
			return true;
	return false;
}

static bool is_worth(const struct raising *r, int instance)
{
	const struct poly_statement *statement = raise_statement(r, instance);
	const struct resources *die = &r->options->platform->die[0];
	double iterations = 0.5;
	double elements = 0;
	double bits = 0;
	for (int d = 0; d < statement->dims; d++)
		iterations *= (double)(r->flow[instance].high[d] - r->flow[instance].low[d] + 1);
	for (int j = -1; j < statement->reads; j++) {
		const struct poly_access *access = j < 0 ? &statement->write : &statement->read[j];
		if (is_counted(statement, j, access->array))
			continue;
		double own = (double)elements_of(r, access);
		elements += own;
		bits += own * (double)type_bits(r->region->arrays.data[access->array].type);
	}
	double memory = 8 * (double)resources_bytes(*die);
	return iterations >= USES_LEAST * elements && MEMORY_SHARE * bits <= memory;
}

bool raise_join_triangle(struct raising *r)
{
	for (int i = 0; r->options->platform && i < r->readers; i++) {
		if (raise_group_of(r, i) >= 0 || raise_is_always(&r->flow[i].domain) ||
		        !raise_has_reduction(r, i) || !is_worth(r, i))
			continue;
		bool *marked = ARENA_ARRAY(r->arena, bool, r->instances);
		marked[i] = true;
		raise_join(r, marked);
		return true;
	}
	return false;
}
