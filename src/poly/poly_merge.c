/* Makes one piece of several whose iterations do the same and are independent.
 * Before: for k: for i, j < i: a[i][j] -= b[i][k] * c[k][j]
 *                for i, j >= i: a[i][j] -= b[i][k] * c[k][j]
 * After:  for k: for i, j: a[i][j] -= b[i][k] * c[k][j] */
#include "poly/poly_pieces.h"
#include <string.h>

static bool same_loops(const struct poly_piece *a, const struct poly_piece *b)
{
	bool same = a->time.count == b->time.count &&
	        isl_set_dim(a->domain, isl_dim_set) == isl_set_dim(b->domain, isl_dim_set) &&
	        !memcmp(a->used, b->used, sizeof a->used);
	for (size_t i = 0; same && i < a->time.count; i++)
		same = !memcmp(&a->time.data[i], &b->time.data[i], sizeof a->time.data[i]);
	return same;
}

static isl_map *renamed(isl_map *map, enum isl_dim_type side, const char *name)
{
	return isl_map_set_tuple_name(map, side, name);
}

/* The second member's iterations become some of the first one's. */
static void merge(struct poly_pieces *pieces, struct poly_task *task, int first, int second)
{
	struct poly_piece *to = &pieces->piece.data[task->member[first]];
	struct poly_piece *from = &pieces->piece.data[task->member[second]];
	const char *name = isl_set_get_tuple_name(to->domain);
	for (size_t i = 0; i < task->edges.count; i++) {
		struct poly_edge *edge = &task->edges.data[i];
		if (edge->from == task->member[second]) {
			edge->map = renamed(edge->map, isl_dim_in, name);
			edge->from = task->member[first];
		}
		if (edge->to == task->member[second]) {
			edge->map = renamed(edge->map, isl_dim_out, name);
			edge->to = task->member[first];
		}
	}
	from->domain = isl_set_set_tuple_name(from->domain, name);
	to->domain = isl_set_coalesce(isl_set_union(to->domain, from->domain));
	from->domain = NULL;
	task->members--;
	for (int i = second; i < task->members; i++)
		task->member[i] = task->member[i + 1];
}

/* Finds two members that can be one; false: there are none. */
static bool find_pair(
        const struct poly_pieces *pieces, const struct poly_task *task, int *first, int *second)
{
	const struct poly_piece *piece = pieces->piece.data;
	const bool *path = NULL;
	int n = task->members;
	for (*first = 0; *first < n; ++*first)
		for (*second = *first + 1; *second < n; ++*second) {
			const struct poly_piece *a = &piece[task->member[*first]];
			const struct poly_piece *b = &piece[task->member[*second]];
			if (a->leaf.statement == b->leaf.statement ||
			        pieces->traits->alike[a->leaf.statement] !=
			                pieces->traits->alike[b->leaf.statement] ||
			        !same_loops(a, b))
				continue;
			path = path ? path : poly_paths(task, pieces->poly->arena);
			if (!path[*first * n + *second] && !path[*second * n + *first] &&
			        !path[*first * n + *first] && !path[*second * n + *second])
				return true;
		}
	return false;
}

void poly_merge(struct poly_pieces *pieces, struct poly_task *task)
{
	int first;
	int second;
	while (find_pair(pieces, task, &first, &second))
		merge(pieces, task, first, second);
}
