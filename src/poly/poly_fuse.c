/* Fuses parallel loops: a statement that only copies runs in the loops of another one.
 * Before: for i: y[i] = a * x[i] + b * old[i]; for i: old[i] = y[i]
 * After:  for i: { y[i] = a * x[i] + b * old[i]; old[i] = y[i] }
 * So it takes no cycles of its own, and as many lanes as the other one. */
#include "poly/poly_pieces.h"
#include <string.h>

static bool is_in_loops(const struct poly_pieces *pieces, int piece, int first)
{
	return piece == first || pieces->piece.data[piece].first == first;
}

/* Are the loops around both the same? The first one's place among what they hold is known. */
static bool same_loops(const struct poly_piece *first, const struct poly_piece *second)
{
	bool same = first->time.count >= second->time.count &&
	        isl_set_dim(first->domain, isl_dim_set) ==
	                isl_set_dim(second->domain, isl_dim_set) &&
	        !memcmp(first->used, second->used, sizeof first->used);
	for (size_t i = 0; same && i < second->time.count; i++)
		same = !memcmp(
		        &first->time.data[i], &second->time.data[i], sizeof first->time.data[i]);
	return same;
}

/* Are the pairs of the edge in the same iteration of the parallel loops? */
static bool is_within(const struct poly_edge *edge, const struct poly_piece *piece)
{
	isl_map *same = isl_map_copy(edge->map);
	int dims = (int)isl_set_dim(piece->domain, isl_dim_set);
	for (int d = 0; d < dims; d++)
		if (!piece->used[d])
			same = isl_map_equate(same, isl_dim_in, d, isl_dim_out, d);
	bool within = isl_map_is_subset(edge->map, same) == isl_bool_true;
	isl_map_free(same);
	return within;
}

static bool same_domain(const struct poly_piece *a, const struct poly_piece *b)
{
	isl_set *other =
	        isl_set_set_tuple_id(isl_set_copy(b->domain), isl_set_get_tuple_id(a->domain));
	bool same = isl_set_is_equal(a->domain, other) == isl_bool_true;
	isl_set_free(other);
	return same;
}

static bool has_parallel_loop(const struct poly_piece *piece)
{
	int dims = (int)isl_set_dim(piece->domain, isl_dim_set);
	for (int d = 0; d < dims; d++)
		if (!piece->used[d])
			return true;
	return false;
}

/* Do all but one of the loops' statements copy, and write arrays of their own? */
static bool is_cheap(const struct poly_pieces *pieces, int first, int second)
{
	const struct poly_program *program = pieces->poly->program;
	int heavy = 0;
	const struct poly_leaf *added = &pieces->piece.data[second].leaf;
	heavy += !pieces->traits->light[added->statement];
	for (size_t i = 0; i < pieces->piece.count; i++) {
		const struct poly_leaf *leaf = &pieces->piece.data[i].leaf;
		if (!is_in_loops(pieces, (int)i, first))
			continue;
		heavy += !pieces->traits->light[leaf->statement];
		if (program->statement[leaf->statement].write.array ==
		        program->statement[added->statement].write.array)
			return false;
	}
	return heavy < 2;
}

bool poly_fuse(struct poly_pieces *pieces, const struct poly_task *task, int first, int second)
{
	struct poly_piece *to = &pieces->piece.data[first];
	struct poly_piece *added = &pieces->piece.data[second];
	if (!has_parallel_loop(to) || !same_loops(to, added) || !same_domain(to, added) ||
	        !is_cheap(pieces, first, second))
		return false;
	for (size_t i = 0; i < task->edges.count; i++) {
		const struct poly_edge *edge = &task->edges.data[i];
		if (edge->to == second && is_in_loops(pieces, edge->from, first) &&
		        !is_within(edge, to))
			return false;
	}
	added->first = first;
	added->turn = 1;
	for (size_t i = 0; i < pieces->piece.count; i++)
		added->turn += (int)i != second && pieces->piece.data[i].first == first;
	return true;
}
