/* Skews loops: finds a wavefront that carries the dependences of several loops (Lamport 1974).
 * Before: for i: for j: a[i][j] = f(a[i - 1][j + 1], a[i][j - 1])  both loops carry
 * After:  for w = 2 i + j: for i: …                             the loop over i is parallel */
#include "poly/poly_pieces.h"
#include <isl/constraint.h>

enum { FACTOR_MOST = 8 };

/* sign * (to - from) + number = 0, or (at_least) >= 0 */
struct limit {
	int64_t sign, number;
	bool at_least;
};

static isl_map *limited(
        isl_map *map, const struct poly_form *from, const struct poly_form *to, struct limit limit)
{
	isl_ctx *ctx = isl_map_get_ctx(map);
	isl_local_space *space = isl_local_space_from_space(isl_map_get_space(map));
	isl_constraint *row = limit.at_least ? isl_constraint_alloc_inequality(space)
	                                     : isl_constraint_alloc_equality(space);
	int in = (int)isl_map_dim(map, isl_dim_in);
	int out = (int)isl_map_dim(map, isl_dim_out);
	for (int d = 0; d < in; d++)
		row = isl_constraint_set_coefficient_val(row, isl_dim_in, d,
		        isl_val_int_from_si(ctx, -limit.sign * from->coefficient[d]));
	for (int d = 0; d < out; d++)
		row = isl_constraint_set_coefficient_val(row, isl_dim_out, d,
		        isl_val_int_from_si(ctx, limit.sign * to->coefficient[d]));
	int64_t number = limit.number + limit.sign * (to->constant - from->constant);
	row = isl_constraint_set_constant_val(row, isl_val_int_from_si(ctx, number));
	return isl_map_add_constraint(map, row);
}

isl_map *poly_same_step(isl_map *map, const struct poly_form *from, const struct poly_form *to)
{
	return limited(map, from, to, (struct limit){ 1, 0, false });
}

static struct poly_form counter_form(int counter)
{
	struct poly_form form = { 0 };
	form.coefficient[counter] = 1;
	return form;
}

/* Loops around all members alike: the outer ones of those that they share. */
static int shared_loops(const struct poly_pieces *pieces, const struct poly_task *task)
{
	const struct poly_program *program = pieces->poly->program;
	const struct poly_piece *piece = pieces->piece.data;
	const struct poly_statement *first =
	        &program->statement[piece[task->member[0]].leaf.statement];
	int loops = first->dims;
	for (int i = 1; i < task->members; i++) {
		const struct poly_piece *own = &piece[task->member[i]];
		const struct poly_statement *other = &program->statement[own->leaf.statement];
		int same = 0;
		while (same < loops && same < other->dims &&
		        first->position[same] == other->position[same] &&
		        own->used[same] == piece[task->member[0]].used[same])
			same++;
		loops = same;
	}
	return loops;
}

struct skewing {
	const struct poly_task *task;
	const bool *used;
	struct poly_form form;
};

/* The pairs that are in the same iteration of the loops in front of the counter, and step by
 * `sign` or more in it. */
static isl_map *pairs_at(
        const struct skewing *s, const struct poly_edge *edge, int counter, int sign)
{
	isl_map *map = isl_map_copy(edge->map);
	for (int d = 0; d < counter; d++)
		if (!s->used[d])
			map = isl_map_equate(map, isl_dim_in, d, isl_dim_out, d);
	struct poly_form form = counter_form(counter);
	return limited(map, &form, &form, (struct limit){ sign, -1, true });
}

/* Does the form grow in all the pairs? */
static bool grows(const struct skewing *s, isl_map *pairs)
{
	struct limit back = { -1, 0, true };
	isl_map *rest = limited(isl_map_copy(pairs), &s->form, &s->form, back);
	bool none = isl_map_is_empty(rest) == isl_bool_true;
	isl_map_free(rest);
	return none;
}

/* Finds the least factor of the counter with which the edge is carried. */
static bool raise_factor(struct skewing *s, const struct poly_edge *edge, int counter, int64_t most)
{
	isl_map *back = pairs_at(s, edge, counter, -1);
	isl_map *pairs = pairs_at(s, edge, counter, 1);
	int64_t *factor = &s->form.coefficient[counter];
	bool good = isl_map_is_empty(back) == isl_bool_true;
	while (good && !grows(s, pairs)) {
		good = *factor < most;
		*factor += good;
	}
	isl_map_free(back);
	isl_map_free(pairs);
	return good;
}

bool poly_skew(const struct poly_pieces *pieces, const struct poly_task *task, int last,
        struct poly_form *form)
{
	struct skewing s = { .task = task,
		.used = pieces->piece.data[task->member[0]].used,
		.form = counter_form(last) };
	if (last >= shared_loops(pieces, task) || s.used[last])
		return false;
	for (int counter = last; counter >= 0; counter--)
		for (size_t i = 0; !s.used[counter] && i < task->edges.count; i++)
			if (!raise_factor(&s, &task->edges.data[i], counter,
			            counter == last ? 1 : FACTOR_MOST))
				return false;
	*form = s.form;
	return true;
}
