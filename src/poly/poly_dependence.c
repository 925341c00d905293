/* Which iterations must come before which others: all pairs that access one element, of which at
 * least one writes it. */
#include "poly/poly_internal.h"
#include "poly/poly_nest.h"
#include <isl/union_map.h>
#include <isl/union_set.h>

isl_union_map *poly_order_in_c(const struct poly *poly, int s)
{
	isl_union_set *all = isl_union_set_from_set(isl_set_copy(poly->domain[s]));
	return isl_union_map_intersect_domain(isl_union_map_copy(poly->schedule), all);
}

static isl_map *space_map(const struct poly *poly, int from, int to)
{
	isl_space *space = isl_space_map_from_domain_and_range(
	        isl_set_get_space(poly->domain[from]), isl_set_get_space(poly->domain[to]));
	return isl_map_universe(space);
}

/* Iterations of one statement to later ones of another. */
static isl_map *later_of(const struct poly *poly, int from, int to)
{
	isl_union_map *later = isl_union_map_lex_lt_union_map(
	        poly_order_in_c(poly, from), poly_order_in_c(poly, to));
	isl_map *all = space_map(poly, from, to);
	isl_map *map = isl_union_map_extract_map(later, isl_map_get_space(all));
	isl_union_map_free(later);
	isl_map_free(all);
	return map;
}

struct statement_pair {
	struct poly *poly;
	poly_edges *edges;
	int from, to;
	isl_map *later; /* NULL: not made yet */
};

static void add_pair(struct statement_pair *pair, const struct poly_access *from,
        const struct poly_access *to, bool is_flow)
{
	struct poly *poly = pair->poly;
	if (from->array < 0 || from->array != to->array)
		return;
	if (!pair->later)
		pair->later = later_of(poly, pair->from, pair->to);
	isl_map *map = isl_map_apply_range(poly_access_map(poly, pair->from, from),
	        isl_map_reverse(poly_access_map(poly, pair->to, to)));
	map = isl_map_coalesce(isl_map_intersect(map, isl_map_copy(pair->later)));
	if (isl_map_is_empty(map) == isl_bool_false)
		VEC_PUSH(poly->arena, pair->edges,
		        ((struct poly_edge){ pair->from, pair->to, is_flow, map }));
	else
		isl_map_free(map);
}

static void add_pairs(struct poly *poly, poly_edges *edges, int from, int to)
{
	const struct poly_statement *first = &poly->program->statement[from];
	const struct poly_statement *second = &poly->program->statement[to];
	struct statement_pair pair = { poly, edges, from, to, NULL };
	add_pair(&pair, &first->write, &second->write, false);
	for (int r = 0; r < second->reads; r++)
		add_pair(&pair, &first->write, &second->read[r], true);
	for (int r = 0; r < first->reads; r++)
		add_pair(&pair, &first->read[r], &second->write, false);
	isl_map_free(pair.later);
}

poly_edges poly_dependences(struct poly *poly, const bool *inside)
{
	poly_edges edges = { 0 };
	int count = poly->program->statements;
	for (int from = 0; from < count; from++)
		for (int to = 0; inside[from] && to < count; to++)
			if (inside[to])
				add_pairs(poly, &edges, from, to);
	return edges;
}

/* Do writer and reader stand in the same iteration of the first `loops` loops? */
static bool is_within(const struct poly *poly, const struct poly_writer *writer, int s, int loops)
{
	const struct poly_statement *from = &poly->program->statement[writer->statement];
	const struct poly_statement *to = &poly->program->statement[s];
	bool within = from->dims >= loops && to->dims >= loops;
	for (int d = 0; within && d < loops; d++)
		within = from->position[d] == to->position[d];
	if (!within)
		return false;
	isl_map *same = isl_map_copy(writer->map);
	for (int d = 0; d < loops; d++)
		same = isl_map_equate(same, isl_dim_in, d, isl_dim_out, d);
	within = isl_map_is_subset(writer->map, same) == isl_bool_true;
	isl_map_free(same);
	return within;
}

static bool is_private(const struct poly *poly, int array, int loops)
{
	for (int s = 0; s < poly->program->statements; s++) {
		const struct poly_statement *statement = &poly->program->statement[s];
		if (statement->write.array == array && statement->dims < loops)
			return false;
		for (int r = 0; r < statement->reads; r++) {
			const struct poly_base_read *read = &poly->read[s][r];
			if (statement->read[r].array != array)
				continue;
			if (isl_set_is_empty(read->initial) != isl_bool_true)
				return false;
			for (size_t w = 0; w < read->writers.count; w++)
				if (!is_within(poly, &read->writers.data[w], s, loops))
					return false;
		}
	}
	return true;
}

int poly_private_loops(const struct poly *poly, int array)
{
	int loops = 0;
	while (loops < POLY_DIMS && is_private(poly, array, loops + 1))
		loops++;
	return loops == POLY_DIMS ? 0 : loops;
}
