/* Loops, numbers and conditions of a sequential nest as operations.
 * Before: the tree that poly/ made; after: scf.for from 0 by 1, affine.apply, arith. */
#include "raise/raise_loops.h"

/* --- operations */

struct value *nest_op(struct nest_builder *b, enum op_code code, const struct type *type,
        int operands, struct value *const *operand)
{
	struct op *op = op_new(b->r->module, code, b->location, operands, operand, 1, &type);
	op_append(b->block, op);
	return op->result[0];
}

static struct value *constant(
        struct nest_builder *b, const char *key, const struct type *type, const struct attr *value)
{
	struct value *known = map_get(&b->constants, key);
	if (known)
		return known;
	struct op *op = op_new(b->r->module, OP_CONSTANT, b->location, 0, NULL, 1, &type);
	attr_set(b->r->module, op, KEY_VALUE, value);
	if (b->head->first)
		op_insert_before(b->head->first, op);
	else
		op_append(b->head, op);
	map_set(&b->constants, key, op->result[0]);
	return op->result[0];
}

struct value *nest_index(struct nest_builder *b, int64_t number)
{
	const struct type *index = type_index(b->r->module);
	return constant(b, text_format(b->r->arena, "%lld", (long long)number), index,
	        attr_typed_integer(b->r->module, number, index));
}

struct value *nest_compare(struct nest_builder *b, enum integer_predicate predicate,
        struct value *left, struct value *right)
{
	struct value *operand[2] = { left, right };
	struct value *result = nest_op(b, OP_CMPI, type_integer(b->r->module, 1), 2, operand);
	attr_set(b->r->module, result->def, KEY_PREDICATE, attr_integer(b->r->module, predicate));
	return result;
}

static struct value *binary(
        struct nest_builder *b, enum op_code code, struct value *left, struct value *right)
{
	struct value *operand[2] = { left, right };
	return nest_op(b, code, left->type, 2, operand);
}

struct value *nest_both(struct nest_builder *b, struct value *left, struct value *right)
{
	if (!left || !right)
		return left ? left : right;
	return binary(b, OP_ANDI, left, right);
}

/* --- forms */

static void add_term(struct nest_form *form, struct value *value, int64_t factor)
{
	int i = 0;
	while (i < form->terms && form->value[i] != value)
		i++;
	if (i == form->terms) {
		form->value[form->terms] = value;
		form->factor[form->terms++] = 0;
	}
	form->factor[i] += factor;
}

static void add_form(struct nest_form *to, const struct nest_form *from, int64_t factor)
{
	to->constant += factor * from->constant;
	for (int i = 0; i < from->terms; i++)
		add_term(to, from->value[i], factor * from->factor[i]);
}

static int terms_of(const struct nest_form *form)
{
	int terms = 0;
	for (int i = 0; i < form->terms; i++)
		terms += form->factor[i] != 0;
	return terms;
}

struct value *nest_value(struct nest_builder *b, const struct nest_form *form)
{
	int64_t *row = affine_rows(b->r->arena, form->terms, 1);
	struct value *used[FORM_TERMS];
	int count = 0;
	for (int i = 0; i < form->terms; i++) {
		if (!form->factor[i])
			continue;
		row[count] = form->factor[i];
		used[count++] = form->value[i];
	}
	row[count] = form->constant;
	if (!count)
		return nest_index(b, form->constant);
	if (count == 1 && row[0] == 1 && !form->constant)
		return used[0];
	struct value *value = nest_op(b, OP_APPLY, type_index(b->r->module), count, used);
	attr_set(b->r->module, value->def, KEY_MAP,
	        attr_map(b->r->module,
	                (struct affine_map){ .dims = count, .results = 1, .coefficient = row }));
	return value;
}

/* A form with few enough terms to be added to another one. */
static struct nest_form short_form(struct nest_builder *b, const struct nest_form *form)
{
	struct nest_form made = { 0 };
	if (terms_of(form) <= FORM_TERMS / 2) {
		add_form(&made, form, 1);
		made.terms = 0;
		for (int i = 0; i < form->terms; i++)
			if (form->factor[i]) {
				made.value[made.terms] = form->value[i];
				made.factor[made.terms++] = form->factor[i];
			}
		return made;
	}
	add_term(&made, nest_value(b, form), 1);
	return made;
}

struct nest_form nest_compose(struct nest_builder *b, const struct poly_form *form,
        const struct nest_form *counter, int dims)
{
	struct nest_form made = { .constant = form->constant };
	for (int d = 0; d < dims; d++) {
		if (!form->coefficient[d])
			continue;
		add_form(&made, &counter[d], form->coefficient[d]);
		made = short_form(b, &made);
	}
	return made;
}

/* --- expressions */

static struct nest_form form_of(struct nest_builder *b, const struct poly_expression *from);

static struct value *value_of(struct nest_builder *b, const struct poly_expression *from)
{
	struct nest_form form = form_of(b, from);
	return nest_value(b, &form);
}

static struct nest_form form_of_value(struct value *value)
{
	struct nest_form form = { 0 };
	add_term(&form, value, 1);
	return form;
}

static struct value *binary_of(
        struct nest_builder *b, enum op_code code, const struct poly_expression *from)
{
	struct value *left = value_of(b, from->part[0]);
	struct value *right = value_of(b, from->part[1]);
	return binary(b, code, left, right);
}

static struct value *condition_of(struct nest_builder *b, const struct poly_expression *from)
{
	static const enum integer_predicate predicate[] = {
		[POLY_EQUAL] = CMPI_EQ, [POLY_AT_MOST] = CMPI_SLE, [POLY_BELOW] = CMPI_SLT
	};
	if (from->kind == POLY_BOTH || from->kind == POLY_EITHER) {
		struct value *left = condition_of(b, from->part[0]);
		struct value *right = condition_of(b, from->part[1]);
		return binary(b, from->kind == POLY_BOTH ? OP_ANDI : OP_ORI, left, right);
	}
	if (from->kind == POLY_EQUAL || from->kind == POLY_AT_MOST || from->kind == POLY_BELOW) {
		struct value *left = value_of(b, from->part[0]);
		struct value *right = value_of(b, from->part[1]);
		return nest_compare(b, predicate[from->kind], left, right);
	}
	struct value *number = value_of(b, from);
	return nest_compare(b, CMPI_NE, number, nest_index(b, 0));
}

struct value *nest_select(
        struct nest_builder *b, struct value *when, struct value *yes, struct value *no)
{
	struct value *operand[3] = { when, yes, no };
	return nest_op(b, OP_SELECT, yes->type, 3, operand);
}

static struct nest_form chosen(struct nest_builder *b, const struct poly_expression *from)
{
	struct value *when = condition_of(b, from->part[0]);
	struct value *yes = value_of(b, from->part[1]);
	struct value *no = value_of(b, from->part[2]);
	return form_of_value(nest_select(b, when, yes, no));
}

/* 1 or 0 */
static struct value *flag(struct nest_builder *b, struct value *when)
{
	struct value *yes = nest_index(b, 1);
	struct value *no = nest_index(b, 0);
	return nest_select(b, when, yes, no);
}

static struct nest_form sum_of(
        struct nest_builder *b, const struct poly_expression *from, int64_t factor)
{
	struct nest_form left = form_of(b, from->part[0]);
	struct nest_form right = form_of(b, from->part[1]);
	left = short_form(b, &left);
	right = short_form(b, &right);
	add_form(&left, &right, factor);
	return left;
}

static struct nest_form product_of(struct nest_builder *b, const struct poly_expression *from)
{
	struct nest_form left = form_of(b, from->part[0]);
	struct nest_form right = form_of(b, from->part[1]);
	struct nest_form made = { 0 };
	if (terms_of(&left) && terms_of(&right)) {
		struct value *first = nest_value(b, &left);
		struct value *second = nest_value(b, &right);
		return form_of_value(binary(b, OP_MULI, first, second));
	}
	if (terms_of(&left))
		add_form(&made, &left, right.constant);
	else
		add_form(&made, &right, left.constant);
	return made;
}

static struct nest_form form_of(struct nest_builder *b, const struct poly_expression *from)
{
	static const enum op_code code[] = { [POLY_FLOOR_DIVIDE] = OP_FLOORDIVSI,
		[POLY_REMAINDER] = OP_REMSI,
		[POLY_MINIMUM] = OP_MINSI,
		[POLY_MAXIMUM] = OP_MAXSI };
	switch (from->kind) {
	case POLY_NUMBER: return (struct nest_form){ .constant = from->number };
	case POLY_COUNTER: return b->counter[from->number];
	case POLY_ADD: return sum_of(b, from, 1);
	case POLY_SUBTRACT: return sum_of(b, from, -1);
	case POLY_MULTIPLY: return product_of(b, from);
	case POLY_CHOICE: return chosen(b, from);
	case POLY_FLOOR_DIVIDE:
	case POLY_REMAINDER:
	case POLY_MINIMUM:
	case POLY_MAXIMUM: return form_of_value(binary_of(b, code[from->kind], from));
	default: return form_of_value(flag(b, condition_of(b, from)));
	}
}

/* --- conditions of the source */

static struct value *always(struct nest_builder *b)
{
	return constant(b, "true", type_integer(b->r->module, 1), attr_bool(b->r->module, true));
}

static struct value *negated(struct nest_builder *b, struct value *condition)
{
	return binary(b, OP_XORI, condition, always(b));
}

struct value *nest_condition(struct nest_builder *b, const struct poly_condition *condition,
        const struct nest_form *counter, int dims)
{
	if (!condition || condition->kind == POLY_ALWAYS)
		return NULL;
	if (condition->kind == POLY_NOT_NEGATIVE || condition->kind == POLY_ZERO) {
		struct nest_form form = nest_compose(b, &condition->form, counter, dims);
		struct value *number = nest_value(b, &form);
		return nest_compare(b, condition->kind == POLY_ZERO ? CMPI_EQ : CMPI_SGE, number,
		        nest_index(b, 0));
	}
	struct value *left = nest_condition(b, condition->part[0], counter, dims);
	if (condition->kind == POLY_NOT)
		return negated(b, left ? left : always(b));
	struct value *right = nest_condition(b, condition->part[1], counter, dims);
	if (condition->kind == POLY_AND)
		return nest_both(b, left, right);
	return left && right ? binary(b, OP_ORI, left, right) : NULL;
}

/* --- bodies */

static struct value *constant_node(struct nest_builder *b, const struct node *node)
{
	struct module *module = b->r->module;
	if (node->type->kind == TYPE_INDEX)
		return nest_index(b, node->integer);
	if (type_is_real(node->type))
		return constant(b, text_format(b->r->arena, "%a:%s", node->real, node->type->text),
		        node->type, attr_float(module, node->real, node->type));
	const struct attr *value = node->type->width == 1
	        ? attr_bool(module, node->integer)
	        : attr_typed_integer(module, node->integer, node->type);
	return constant(b,
	        text_format(b->r->arena, "%lld:%s", (long long)node->integer, node->type->text),
	        node->type, value);
}

static struct value *node_value(struct nest_builder *b, const struct node *node,
        struct value *const *made, const struct nest_form *counter)
{
	if (node->kind == NODE_CONSTANT)
		return constant_node(b, node);
	if (node->code == OP_INDEX)
		return nest_value(b, &counter[node->integer]);
	struct value *argument[3];
	for (int a = 0; a < op_info[node->code].operands; a++)
		argument[a] = made[node->argument[a]];
	struct value *value =
	        nest_op(b, node->code, node->type, op_info[node->code].operands, argument);
	if (node->code == OP_CMPF || node->code == OP_CMPI)
		attr_set(b->r->module, value->def, KEY_PREDICATE,
		        attr_integer(b->r->module, node->integer));
	return value;
}

struct value *nest_body(struct nest_builder *b, const struct body *body,
        struct value *const *operand, const struct nest_form *counter)
{
	struct value **made = ARENA_ARRAY(b->r->arena, struct value *, body->count + 1);
	bool *needed = ARENA_ARRAY(b->r->arena, bool, body->count + 1);
	needed[body->result] = true;
	for (int n = body->result; n >= 0; n--)
		for (int a = 0; needed[n] && body->node[n].kind == NODE_OP &&
		        a < op_info[body->node[n].code].operands;
		        a++)
			needed[body->node[n].argument[a]] = true;
	for (int n = 0; n <= body->result; n++) {
		const struct node *node = &body->node[n];
		if (needed[n])
			made[n] = node->kind == NODE_OPERAND ? operand[node->integer]
			                                     : node_value(b, node, made, counter);
	}
	return made[body->result];
}

/* --- steps */

static bool has_loop(const struct poly_step *step)
{
	bool found = step->kind == POLY_STEP_LOOP && step->first != step->last && !step->lanes;
	for (int i = 0; i < step->parts && !found; i++)
		found = has_loop(step->part[i]);
	return found;
}

static struct value *open_loop(struct nest_builder *b, struct value *trips)
{
	struct value *bounds[3] = { nest_index(b, 0), trips };
	bounds[2] = nest_index(b, 1);
	struct op *loop = op_new(b->r->module, OP_FOR, b->location, 3, bounds, 0, NULL);
	op_append(b->block, loop);
	b->block = block_new(b->r->module, loop, 0);
	return block_add_argument(b->r->module, b->block, type_index(b->r->module));
}

static void close_loop(struct nest_builder *b)
{
	op_append(b->block, op_new(b->r->module, OP_YIELD, b->location, 0, NULL, 0, NULL));
	b->block = b->block->parent->parent;
}

bool nest_is_lane(const struct value *value)
{
	return !value->def && attr_get(value->block->parent, KEY_STREAM_LANES);
}

/* All lanes run; those outside the bounds store nothing. */
static bool make_lanes(struct nest_builder *b, const struct poly_step *step)
{
	struct nest_form bound[2];
	bound[0] = form_of(b, step->first);
	bound[1] = form_of(b, step->last);
	struct value *outside = b->when;
	bool inside[2] = { !terms_of(&bound[0]) && bound[0].constant <= 0,
		!terms_of(&bound[1]) && bound[1].constant >= step->lanes - 1 };
	struct value *limit[2];
	for (int i = 0; i < 2; i++)
		limit[i] = inside[i] ? NULL : nest_value(b, &bound[i]);
	struct value *lanes = nest_index(b, step->lanes);
	struct value *counter = open_loop(b, lanes);
	attr_set(b->r->module, b->block->parent, KEY_STREAM_LANES, attr_unit(b->r->module));
	for (int i = 0; i < 2; i++)
		if (limit[i])
			b->when = nest_both(b, b->when,
			        nest_compare(b, i ? CMPI_SLE : CMPI_SGE, counter, limit[i]));
	b->counter[step->loop] = form_of_value(counter);
	bool good = nest_step(b, step->part[0]);
	close_loop(b);
	b->when = outside;
	return good;
}

static bool make_loop(struct nest_builder *b, const struct poly_step *step)
{
	if (step->lanes)
		return make_lanes(b, step);
	struct nest_form first = form_of(b, step->first);
	first = short_form(b, &first);
	if (step->first == step->last) {
		b->counter[step->loop] = first;
		return nest_step(b, step->part[0]);
	}
	struct nest_form trips = form_of(b, step->last);
	trips = short_form(b, &trips);
	add_form(&trips, &first, -1);
	trips.constant += step->by;
	struct value *count = nest_value(b, &trips);
	if (step->by > 1)
		count = binary(b, OP_FLOORDIVSI, count, nest_index(b, step->by));
	struct value *counter = open_loop(b, count);
	if (step->parallel)
		attr_set(b->r->module, b->block->parent, KEY_STREAM_PARALLEL,
		        attr_unit(b->r->module));
	add_term(&first, counter, step->by);
	b->counter[step->loop] = first;
	bool good = nest_step(b, step->part[0]);
	close_loop(b);
	return good;
}

/* Statements in a branch store under its condition; loops in it run no or one time more. */
static bool make_branch(struct nest_builder *b, const struct poly_step *step)
{
	struct value *outside = b->when;
	struct value *branch = b->branch;
	struct value *when = condition_of(b, step->condition);
	when = step->is_else ? negated(b, when) : when;
	if (!has_loop(step)) {
		b->when = nest_both(b, outside, when);
		b->branch = nest_both(b, branch, when);
		bool good = nest_step(b, step->part[0]);
		b->when = outside;
		b->branch = branch;
		return good;
	}
	open_loop(b, flag(b, when));
	bool good = nest_step(b, step->part[0]);
	close_loop(b);
	return good;
}

static bool make_statement(struct nest_builder *b, const struct poly_step *step)
{
	int dims = b->r->program.statement[step->statement].dims;
	struct nest_form *counter = ARENA_ARRAY(b->r->arena, struct nest_form, dims + 1);
	b->location = b->r->region->statements.data[step->statement].location;
	for (int d = 0; d < dims; d++) {
		struct nest_form form = form_of(b, step->counter[d]);
		counter[d] = short_form(b, &form);
	}
	return b->statement(b, step, counter);
}

bool nest_step(struct nest_builder *b, const struct poly_step *step)
{
	if (step->kind == POLY_STEP_LOOP)
		return make_loop(b, step);
	if (step->kind == POLY_STEP_BRANCH)
		return make_branch(b, step);
	if (step->kind == POLY_STEP_STATEMENT)
		return make_statement(b, step);
	bool good = true;
	for (int i = 0; good && i < step->parts; i++)
		good = nest_step(b, step->part[i]);
	return good;
}
