/* Loops around statements, made by isl's code generator, as our structs. */
#include "poly/poly_nest.h"
#include "poly/poly_pieces.h"
#include <isl/ast.h>
#include <isl/ast_build.h>
#include <isl/id.h>
#include <isl/options.h>
#include <isl/union_set.h>
#include <string.h>

#define LOOPS_MOST 64 /* around a statement */

/* What is known about a loop while it is generated. */
struct loop_note {
	isl_union_map *order; /* of its iterations, the loop's own counter last */
	struct poly_loop_role role;
};

struct generation {
	struct poly *poly;
	struct arena *arena;
	const struct poly_schedule *schedule;
	isl_id *open[LOOPS_MOST]; /* iterators of the loops around */
	int number[LOOPS_MOST];
	int depth, loops;
	const isl_union_map *order; /* of the innermost loop around; NULL: it has loops inside */
	bool failed;
};

static void *broken(struct generation *g)
{
	g->failed = true;
	return NULL;
}

/* --- expressions */

static struct poly_expression *expression_new(
        struct generation *g, enum poly_expression_kind kind, int64_t number)
{
	struct poly_expression *made = ARENA_NEW(g->arena, struct poly_expression);
	made->kind = kind;
	made->number = number;
	return made;
}

static const struct poly_expression *read_expression(struct generation *g, isl_ast_expr *from);

static const struct poly_expression *read_number(struct generation *g, isl_ast_expr *from)
{
	isl_val *value = isl_ast_expr_int_get_val(from);
	bool whole = value && isl_val_is_int(value) == isl_bool_true;
	int64_t number = whole ? isl_val_get_num_si(value) : 0;
	isl_val_free(value);
	return whole ? expression_new(g, POLY_NUMBER, number) : broken(g);
}

static const struct poly_expression *read_counter(struct generation *g, isl_ast_expr *from)
{
	isl_id *id = isl_ast_expr_id_get_id(from);
	int found = -1;
	for (int i = 0; i < g->depth; i++)
		if (g->open[i] == id)
			found = g->number[i];
	isl_id_free(id);
	return found < 0 ? broken(g) : expression_new(g, POLY_COUNTER, found);
}

static const struct poly_expression *binary(struct generation *g, enum poly_expression_kind kind,
        const struct poly_expression *left, const struct poly_expression *right)
{
	struct poly_expression *made = expression_new(g, kind, 0);
	made->part[0] = left;
	made->part[1] = right;
	return made;
}

/* Chains of more than two arguments associate to the left. */
static const struct poly_expression *read_chain(
        struct generation *g, isl_ast_expr *from, enum poly_expression_kind kind, bool swapped)
{
	int count = (int)isl_ast_expr_op_get_n_arg(from);
	const struct poly_expression *made = NULL;
	for (int i = 0; i < count && !g->failed; i++) {
		isl_ast_expr *part = isl_ast_expr_op_get_arg(from, i);
		const struct poly_expression *own = read_expression(g, part);
		isl_ast_expr_free(part);
		if (!made)
			made = own;
		else
			made = swapped ? binary(g, kind, own, made) : binary(g, kind, made, own);
	}
	return made;
}

static const struct poly_expression *read_choice(struct generation *g, isl_ast_expr *from)
{
	struct poly_expression *made = expression_new(g, POLY_CHOICE, 0);
	for (int i = 0; i < 3; i++) {
		isl_ast_expr *part = isl_ast_expr_op_get_arg(from, i);
		made->part[i] = read_expression(g, part);
		isl_ast_expr_free(part);
	}
	return made;
}

static const struct poly_expression *read_operation(struct generation *g, isl_ast_expr *from)
{
	switch (isl_ast_expr_op_get_type(from)) {
	case isl_ast_expr_op_add: return read_chain(g, from, POLY_ADD, false);
	case isl_ast_expr_op_sub: return read_chain(g, from, POLY_SUBTRACT, false);
	case isl_ast_expr_op_mul: return read_chain(g, from, POLY_MULTIPLY, false);
	case isl_ast_expr_op_min: return read_chain(g, from, POLY_MINIMUM, false);
	case isl_ast_expr_op_max: return read_chain(g, from, POLY_MAXIMUM, false);
	case isl_ast_expr_op_div:
	case isl_ast_expr_op_pdiv_q:
	case isl_ast_expr_op_fdiv_q: return read_chain(g, from, POLY_FLOOR_DIVIDE, false);
	case isl_ast_expr_op_zdiv_r:
	case isl_ast_expr_op_pdiv_r: return read_chain(g, from, POLY_REMAINDER, false);
	case isl_ast_expr_op_eq: return read_chain(g, from, POLY_EQUAL, false);
	case isl_ast_expr_op_le: return read_chain(g, from, POLY_AT_MOST, false);
	case isl_ast_expr_op_lt: return read_chain(g, from, POLY_BELOW, false);
	case isl_ast_expr_op_ge: return read_chain(g, from, POLY_AT_MOST, true);
	case isl_ast_expr_op_gt: return read_chain(g, from, POLY_BELOW, true);
	case isl_ast_expr_op_and:
	case isl_ast_expr_op_and_then: return read_chain(g, from, POLY_BOTH, false);
	case isl_ast_expr_op_or:
	case isl_ast_expr_op_or_else: return read_chain(g, from, POLY_EITHER, false);
	case isl_ast_expr_op_cond:
	case isl_ast_expr_op_select: return read_choice(g, from);
	case isl_ast_expr_op_minus: {
		isl_ast_expr *part = isl_ast_expr_op_get_arg(from, 0);
		const struct poly_expression *own = read_expression(g, part);
		isl_ast_expr_free(part);
		return binary(g, POLY_SUBTRACT, expression_new(g, POLY_NUMBER, 0), own);
	}
	default: return broken(g);
	}
}

static const struct poly_expression *read_expression(struct generation *g, isl_ast_expr *from)
{
	switch (isl_ast_expr_get_type(from)) {
	case isl_ast_expr_int: return read_number(g, from);
	case isl_ast_expr_id: return read_counter(g, from);
	case isl_ast_expr_op: return read_operation(g, from);
	default: return broken(g);
	}
}

/* --- distances */

/* Iterations of the innermost loop between the writer and the reader; unchanged: it never happens
 * in one run of that loop. */
static void shorten(struct generation *g, isl_map *flow, int64_t *distance)
{
	isl_union_map *map = isl_union_map_from_map(isl_map_copy(flow));
	map = isl_union_map_apply_domain(map, isl_union_map_copy((isl_union_map *)g->order));
	map = isl_union_map_apply_range(map, isl_union_map_copy((isl_union_map *)g->order));
	isl_set *steps = isl_set_from_union_set(isl_union_map_deltas(map));
	int dims = (int)isl_set_dim(steps, isl_dim_set);
	for (int d = 0; d < dims - 1; d++)
		steps = isl_set_fix_si(steps, isl_dim_set, (unsigned)d, 0);
	if (dims > 1)
		steps = isl_set_project_out(steps, isl_dim_set, 0, (unsigned)dims - 1);
	if (dims > 0 && isl_set_is_empty(steps) == isl_bool_false) {
		int64_t least = 0;
		int64_t most = 0;
		if (!isl_room_read_box(steps, &least, &most) || least < 0)
			least = 0;
		*distance = least < *distance ? least : *distance;
	}
	isl_set_free(steps);
}

static int64_t *distances_of(struct generation *g, int s)
{
	const struct poly_statement *statement = &g->poly->program->statement[s];
	int64_t *distance = ARENA_ARRAY(g->arena, int64_t, statement->reads);
	for (int r = 0; r < statement->reads; r++) {
		const struct poly_base_read *read = &g->poly->read[s][r];
		distance[r] = INT64_MAX;
		for (size_t w = 0; w < read->writers.count; w++) {
			isl_space *space = isl_map_get_space(read->writers.data[w].map);
			isl_union_map *own = isl_union_map_intersect_domain(
			        isl_union_map_copy((isl_union_map *)g->order),
			        isl_union_set_from_set(isl_set_universe(isl_space_domain(space))));
			if (isl_union_map_is_empty(own) == isl_bool_false)
				shorten(g, read->writers.data[w].map, &distance[r]);
			isl_union_map_free(own);
		}
	}
	return distance;
}

/* --- nodes */

static struct poly_step *step_new(struct generation *g, enum poly_step_kind kind, int parts)
{
	struct poly_step *step = ARENA_NEW(g->arena, struct poly_step);
	step->kind = kind;
	step->parts = parts;
	step->part = ARENA_ARRAY(g->arena, struct poly_step *, parts + 1);
	return step;
}

static struct poly_step *read_node(struct generation *g, isl_ast_node *node);

static bool has_loop(const struct poly_step *step)
{
	bool found = step->kind == POLY_STEP_LOOP && !step->lanes;
	for (int i = 0; i < step->parts && !found; i++)
		found = has_loop(step->part[i]);
	return found;
}

static void add_distances(struct generation *g, struct poly_step *step)
{
	if (step->kind == POLY_STEP_STATEMENT)
		step->distance = distances_of(g, step->statement);
	for (int i = 0; i < step->parts; i++)
		add_distances(g, step->part[i]);
}

/* The upper bound of `counter <= bound` or `counter < bound`. */
static const struct poly_expression *read_bound(struct generation *g, isl_ast_expr *condition)
{
	bool op = isl_ast_expr_get_type(condition) == isl_ast_expr_op;
	enum isl_ast_expr_op_type type =
	        op ? isl_ast_expr_op_get_type(condition) : isl_ast_expr_op_error;
	if (type != isl_ast_expr_op_le && type != isl_ast_expr_op_lt)
		return broken(g);
	isl_ast_expr *right = isl_ast_expr_op_get_arg(condition, 1);
	const struct poly_expression *bound = read_expression(g, right);
	isl_ast_expr_free(right);
	if (type == isl_ast_expr_op_lt)
		bound = binary(g, POLY_SUBTRACT, bound, expression_new(g, POLY_NUMBER, 1));
	return bound;
}

static void read_bounds(struct generation *g, isl_ast_node *node, struct poly_step *step)
{
	isl_ast_expr *first = isl_ast_node_for_get_init(node);
	step->first = read_expression(g, first);
	isl_ast_expr_free(first);
	step->by = 1;
	step->last = step->first;
	if (isl_ast_node_for_is_degenerate(node) == isl_bool_true)
		return;
	isl_ast_expr *condition = isl_ast_node_for_get_cond(node);
	step->last = read_bound(g, condition);
	isl_ast_expr_free(condition);
	isl_ast_expr *by = isl_ast_node_for_get_inc(node);
	const struct poly_expression *number = read_expression(g, by);
	isl_ast_expr_free(by);
	step->by = number && number->kind == POLY_NUMBER ? number->number : 0;
	if (step->by < 1)
		broken(g);
}

static struct poly_step *read_for(struct generation *g, isl_ast_node *node)
{
	if (g->depth == LOOPS_MOST)
		return broken(g);
	struct poly_step *step = step_new(g, POLY_STEP_LOOP, 1);
	read_bounds(g, node, step);
	isl_ast_expr *iterator = isl_ast_node_for_get_iterator(node);
	isl_id *id = isl_ast_expr_id_get_id(iterator);
	step->loop = g->loops++;
	g->open[g->depth] = id;
	g->number[g->depth++] = step->loop;
	isl_ast_node *body = isl_ast_node_for_get_body(node);
	step->part[0] = read_node(g, body);
	g->depth--;
	isl_id *annotation = isl_ast_node_get_annotation(node);
	const struct loop_note *note = annotation ? isl_id_get_user(annotation) : NULL;
	step->parallel = note && note->role.parallel;
	step->lanes = note && step->first != step->last ? note->role.lanes : 0;
	if (!g->failed && note && !step->lanes && !has_loop(step->part[0])) {
		g->order = note->order;
		add_distances(g, step->part[0]);
	}
	isl_id_free(annotation);
	isl_ast_node_free(body);
	isl_ast_expr_free(iterator);
	isl_id_free(id);
	return step;
}

static struct poly_step *read_block(struct generation *g, isl_ast_node *node)
{
	isl_ast_node_list *list = isl_ast_node_block_get_children(node);
	int count = (int)isl_ast_node_list_n_ast_node(list);
	struct poly_step *step = step_new(g, POLY_STEP_BLOCK, count);
	for (int i = 0; i < count && !g->failed; i++) {
		isl_ast_node *part = isl_ast_node_list_get_ast_node(list, i);
		step->part[i] = read_node(g, part);
		isl_ast_node_free(part);
	}
	isl_ast_node_list_free(list);
	return step;
}

static struct poly_step *read_branch(struct generation *g, isl_ast_node *node)
{
	struct poly_step *step = step_new(g, POLY_STEP_BRANCH, 1);
	isl_ast_expr *condition = isl_ast_node_if_get_cond(node);
	isl_ast_node *then = isl_ast_node_if_get_then_node(node);
	step->condition = read_expression(g, condition);
	step->part[0] = read_node(g, then);
	isl_ast_node_free(then);
	isl_ast_expr_free(condition);
	if (isl_ast_node_if_has_else_node(node) != isl_bool_true)
		return step;
	struct poly_step *both = step_new(g, POLY_STEP_BLOCK, 2);
	struct poly_step *other = step_new(g, POLY_STEP_BRANCH, 1);
	isl_ast_node *rest = isl_ast_node_if_get_else_node(node);
	other->condition = step->condition;
	other->is_else = true;
	other->part[0] = read_node(g, rest);
	isl_ast_node_free(rest);
	both->part[0] = step;
	both->part[1] = other;
	return both;
}

static struct poly_step *read_statement(struct generation *g, isl_ast_node *node)
{
	isl_ast_expr *call = isl_ast_node_user_get_expr(node);
	struct poly_step *step = step_new(g, POLY_STEP_STATEMENT, 0);
	isl_ast_expr *callee = isl_ast_expr_op_get_arg(call, 0);
	isl_id *id = isl_ast_expr_id_get_id(callee);
	step->statement = isl_room_number(isl_id_get_name(id));
	int dims = (int)isl_ast_expr_op_get_n_arg(call) - 1;
	step->counter = ARENA_ARRAY(g->arena, const struct poly_expression *, dims + 1);
	for (int d = 0; d < dims; d++) {
		isl_ast_expr *counter = isl_ast_expr_op_get_arg(call, d + 1);
		step->counter[d] = read_expression(g, counter);
		isl_ast_expr_free(counter);
	}
	isl_id_free(id);
	isl_ast_expr_free(callee);
	isl_ast_expr_free(call);
	return step;
}

static struct poly_step *read_node(struct generation *g, isl_ast_node *node)
{
	switch (isl_ast_node_get_type(node)) {
	case isl_ast_node_for: return read_for(g, node);
	case isl_ast_node_if: return read_branch(g, node);
	case isl_ast_node_block: return read_block(g, node);
	case isl_ast_node_user: return read_statement(g, node);
	default: return broken(g);
	}
}

/* --- generation */

static void free_note(void *user)
{
	struct loop_note *note = user;
	isl_union_map_free(note->order);
	note->order = NULL;
}

static isl_id *note_loop(isl_ast_build *build, void *user)
{
	struct generation *g = user;
	struct loop_note *note = ARENA_NEW(g->arena, struct loop_note);
	note->order = isl_ast_build_get_schedule(build);
	if (g->schedule)
		note->role = poly_schedule_role(g->schedule, note->order);
	isl_id *id = isl_id_alloc(g->poly->ctx, "loop", note);
	return isl_id_set_free_user(id, free_note);
}

static isl_union_map *order_of(const struct poly *poly, const bool *inside)
{
	isl_union_set *all = isl_union_set_empty_ctx(poly->ctx);
	for (int s = 0; s < poly->program->statements; s++)
		if (inside[s])
			all = isl_union_set_add_set(all, isl_set_copy(poly->domain[s]));
	return isl_union_map_intersect_domain(isl_union_map_copy(poly->schedule), all);
}

struct poly_step *poly_nest(
        struct poly *poly, const bool *inside, const struct poly_schedule *schedule)
{
	struct generation g = { .poly = poly, .arena = poly->arena, .schedule = schedule };
	isl_ctx_reset_operations(poly->ctx);
	isl_options_set_ast_build_atomic_upper_bound(poly->ctx, 1);
	isl_options_set_ast_build_prefer_pdiv(poly->ctx, 0);
	isl_ast_build *build = isl_ast_build_alloc(poly->ctx);
	build = isl_ast_build_set_before_each_for(build, note_loop, &g);
	if (schedule)
		build = isl_ast_build_set_options(build, poly_schedule_options(schedule));
	isl_union_map *order = schedule ? poly_schedule_map(schedule) : order_of(poly, inside);
	isl_ast_node *tree = isl_ast_build_node_from_schedule_map(build, order);
	struct poly_step *step = tree ? read_node(&g, tree) : broken(&g);
	isl_ast_node_free(tree);
	isl_ast_build_free(build);
	return g.failed ? NULL : step;
}

/* --- values that are replaced */

/* Iterations of s to later ones of `other` that write the same element. */
static isl_map *rewrites(const struct poly *poly, int s, int other)
{
	const struct poly_program *program = poly->program;
	isl_map *own = poly_access_map(poly, s, &program->statement[s].write);
	isl_map *next = poly_access_map(poly, other, &program->statement[other].write);
	isl_map *same = isl_map_apply_range(own, isl_map_reverse(next));
	isl_union_map *later = isl_union_map_lex_lt_union_map(
	        poly_order_in_c(poly, s), poly_order_in_c(poly, other));
	isl_union_map *both =
	        isl_union_map_intersect(isl_union_map_from_map(isl_map_copy(same)), later);
	isl_map *result = isl_union_map_extract_map(both, isl_map_get_space(same));
	isl_union_map_free(both);
	isl_map_free(same);
	return result;
}

static bool is_replaced_by(struct poly *poly, const struct poly_writer *writer, int other)
{
	const struct poly_program *program = poly->program;
	if (program->statement[other].write.array !=
	        program->statement[writer->statement].write.array)
		return false;
	isl_set *read = isl_map_domain(isl_map_copy(writer->map));
	isl_map *map = isl_map_intersect_domain(rewrites(poly, writer->statement, other), read);
	bool any = isl_map_is_empty(map) != isl_bool_true;
	isl_map_free(map);
	return any;
}

bool poly_is_replaced(struct poly *poly, const bool *inside, int statement, int read)
{
	const struct poly_base_read *base = &poly->read[statement][read];
	isl_ctx_reset_operations(poly->ctx);
	for (size_t w = 0; w < base->writers.count; w++)
		for (int other = 0; other < poly->program->statements; other++)
			if (inside[base->writers.data[w].statement] && inside[other] &&
			        is_replaced_by(poly, &base->writers.data[w], other))
				return true;
	return false;
}
