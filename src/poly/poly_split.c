/* Splits the iterations of a statement where they write what others read.
 * Before: for i: for j: a[i][j] = f(a[i][j], a[i][k], a[k][j])
 * After:  a row k and a column k of their own, and what lies before and behind them; the iterations
 *         of each of the nine parts are independent
 * Before: for i >= k: a[i] += b[i][k] * c[k] and c[k] = f(a[k]) need each other
 * After:  what adds to a[k] comes first, what adds to the others last */
#include "poly/poly_pieces.h"
#include <isl/constraint.h>

enum { FORMS_MOST = 4, PARTS_MOST = 3 * 3 * 3 * 3 };

struct split_forms {
	int dims, count;
	struct poly_form form[FORMS_MOST];
	bool failed;
};

static int64_t number_of(isl_val *value)
{
	int64_t number = isl_val_get_num_si(value);
	isl_val_free(value);
	return number;
}

static bool same_form(const struct poly_form *a, const struct poly_form *b, int sign)
{
	for (int d = 0; d < POLY_DIMS; d++)
		if (a->coefficient[d] != sign * b->coefficient[d])
			return false;
	return a->constant == sign * b->constant;
}

static isl_stat add_form(isl_constraint *constraint, void *user)
{
	struct split_forms *forms = user;
	struct poly_form form = { 0 };
	bool use = isl_constraint_is_equality(constraint) == isl_bool_true;
	forms->failed = forms->failed || (int)isl_constraint_dim(constraint, isl_dim_div) > 0;
	for (int d = 0; d < forms->dims; d++)
		form.coefficient[d] =
		        number_of(isl_constraint_get_coefficient_val(constraint, isl_dim_set, d));
	form.constant = number_of(isl_constraint_get_constant_val(constraint));
	isl_constraint_free(constraint);
	for (int i = 0; use && i < forms->count; i++)
		use = !same_form(&form, &forms->form[i], 1) &&
		        !same_form(&form, &forms->form[i], -1);
	if (!use || forms->failed)
		return isl_stat_ok;
	if (forms->count == FORMS_MOST)
		forms->failed = true;
	else
		forms->form[forms->count++] = form;
	return isl_stat_ok;
}

static isl_stat add_forms(isl_basic_set *part, void *user)
{
	isl_basic_set *hull = isl_basic_set_affine_hull(part);
	isl_basic_set_foreach_constraint(hull, add_form, user);
	isl_basic_set_free(hull);
	return isl_stat_ok;
}

/* The hyperplanes of the piece's iterations whose values others read. */
static struct split_forms forms_of(const struct poly_task *task, int piece, int dims)
{
	struct split_forms forms = { .dims = dims };
	for (size_t i = 0; i < task->edges.count; i++) {
		const struct poly_edge *edge = &task->edges.data[i];
		if (!edge->is_flow || edge->from != piece)
			continue;
		isl_set *writes = isl_set_coalesce(isl_map_domain(isl_map_copy(edge->map)));
		isl_set_foreach_basic_set(writes, add_forms, &forms);
		isl_set_free(writes);
	}
	return forms;
}

/* Where the form is below 0 (side 0), 0, or above it. */
static isl_set *side_of(isl_set *domain, const struct poly_form *form, int dims, int side)
{
	struct poly_condition condition = { .kind = side == 1 ? POLY_ZERO : POLY_NOT_NEGATIVE,
		.form = *form };
	for (int d = 0; side == 0 && d < dims; d++)
		condition.form.coefficient[d] = -form->coefficient[d];
	if (side == 0)
		condition.form.constant = -form->constant;
	condition.form.constant -= side != 1;
	isl_space *space = isl_set_get_space(domain);
	isl_set *half = isl_room_set(space, &condition, dims);
	isl_space_free(space);
	return isl_set_intersect(isl_set_copy(domain), half);
}

/* Counters of the first form that are above it come later. */
static void oriented(struct split_forms *forms, const bool *used)
{
	for (int i = 0; i < forms->count; i++) {
		int64_t first = 0;
		for (int d = 0; d < forms->dims && !first; d++)
			first = used[d] ? 0 : forms->form[i].coefficient[d];
		for (int d = 0; first < 0 && d < forms->dims; d++)
			forms->form[i].coefficient[d] = -forms->form[i].coefficient[d];
		if (first < 0)
			forms->form[i].constant = -forms->form[i].constant;
	}
}

static void add_parts(
        struct poly_pieces *pieces, int from, const struct split_forms *forms, struct poly_task *to)
{
	struct arena *arena = pieces->poly->arena;
	int all = 1;
	for (int i = 0; i < forms->count; i++)
		all *= 3;
	for (int part = 0; part < all; part++) {
		isl_set *domain = isl_set_copy(pieces->piece.data[from].domain);
		int rest = part;
		for (int i = forms->count - 1; i >= 0; i--, rest /= 3) {
			isl_set *side = side_of(domain, &forms->form[i], forms->dims, rest % 3);
			isl_set_free(domain);
			domain = side;
		}
		domain = isl_set_coalesce(domain);
		if (isl_set_is_empty(domain) != isl_bool_false) {
			isl_set_free(domain);
			continue;
		}
		struct poly_piece made = pieces->piece.data[from];
		made.domain = domain;
		made.time.data = NULL;
		made.time.count = made.time.capacity = 0;
		for (size_t i = 0; i < pieces->piece.data[from].time.count; i++)
			VEC_PUSH(arena, &made.time, pieces->piece.data[from].time.data[i]);
		to->member[to->members++] = (int)pieces->piece.count;
		VEC_PUSH(arena, &pieces->piece, made);
	}
}

/* Is the piece, of the new task, the other one, or a part of it? */
static bool is_of(int piece, int other, int split, size_t parts_from)
{
	return other == split ? piece >= (int)parts_from : piece == other;
}

/* The edges of a task of which a piece was split into parts, which begin at `parts_from`. */
static void add_edges(const struct poly_pieces *pieces, const struct poly_task *from, int split,
        size_t parts_from, struct poly_task *to)
{
	for (size_t i = 0; i < from->edges.count; i++)
		for (int j = 0; j < to->members * to->members; j++) {
			int first = to->member[j / to->members];
			int second = to->member[j % to->members];
			struct poly_edge edge = from->edges.data[i];
			if (!is_of(first, edge.from, split, parts_from) ||
			        !is_of(second, edge.to, split, parts_from))
				continue;
			isl_map *map = isl_map_intersect_domain(isl_map_copy(edge.map),
			        isl_set_copy(pieces->piece.data[first].domain));
			map = isl_map_intersect_range(
			        map, isl_set_copy(pieces->piece.data[second].domain));
			edge = (struct poly_edge){ first, second, edge.is_flow, map };
			if (isl_map_is_empty(map) == isl_bool_false)
				VEC_PUSH(pieces->poly->arena, &to->edges, edge);
			else
				isl_map_free(map);
		}
}

static bool split_member(struct poly_pieces *pieces, struct poly_task *task, int place)
{
	struct arena *arena = pieces->poly->arena;
	int from = task->member[place];
	int dims = (int)isl_set_dim(pieces->piece.data[from].domain, isl_dim_set);
	size_t before = pieces->piece.count;
	struct split_forms forms = forms_of(task, from, dims);
	struct poly_task made = { .member = ARENA_ARRAY(arena, int, task->members + PARTS_MOST) };
	if (forms.failed || !forms.count)
		return false;
	for (int i = 0; i < task->members; i++)
		if (i != place)
			made.member[made.members++] = task->member[i];
	oriented(&forms, pieces->piece.data[from].used);
	add_parts(pieces, from, &forms, &made);
	add_edges(pieces, task, from, before, &made);
	if (poly_is_acyclic(&made, arena)) {
		poly_edges_free(&task->edges);
		isl_set_free(pieces->piece.data[from].domain);
		pieces->piece.data[from].domain = NULL;
		*task = made;
		return true;
	}
	poly_edges_free(&made.edges);
	while (pieces->piece.count > before)
		isl_set_free(pieces->piece.data[--pieces->piece.count].domain);
	return false;
}

bool poly_split(struct poly_pieces *pieces, struct poly_task *task)
{
	for (int place = 0; place < task->members; place++)
		if (split_member(pieces, task, place))
			return true;
	return false;
}
