/* Statements of C: loops with affine bounds, conditions, assignments. A condition on data becomes a
 * scalar of one bit, and what is assigned under it a selection. */
#include "frontend/c_reader.h"
#include "ir/kernel_edit.h"

#define LOOP_ACCEPTED                                                                              \
	"accepted is for (i = FIRST; i < BOUND; i += STEP) with affine FIRST and BOUND and a "     \
	"constant STEP; <=, > and >= too, and a < b ? a : b of affine numbers"
#define NOT_AFFINE_FIRST "this is no affine first value of a counter"

/* --- statements of the region --- */

void c_begin_statement(struct c_reader *reader, CXCursor cursor)
{
	reader->statement = ARENA_NEW(reader->arena, struct region_statement);
	struct region_statement *statement = reader->statement;
	reader->written = cursor;
	statement->location = c_place(reader, cursor);
	statement->text = c_tokens(reader, cursor);
	statement->affine.dims = reader->loops;
	statement->affine.domain = reader->domain;
	statement->affine.write.array = -1;
	for (int d = 0; d <= reader->loops; d++)
		statement->affine.position[d] = reader->position[d];
	for (int d = 0; d < reader->loops; d++) {
		statement->counter[d] = reader->counter[d];
		statement->trips[d] = reader->trips[d];
	}
}

/* Selects the new value where all conditions on data hold, else the old one. */
static int guarded(struct c_reader *reader, const struct poly_access *target, struct c_value value)
{
	struct module *module = reader->module;
	struct body *body = &reader->statement->body;
	const struct type *bit = type_integer(module, 1);
	int all = -1;
	for (size_t i = 0; i < reader->guards.count; i++) {
		struct poly_access access = { .array = reader->guards.data[i].array };
		int node = c_read_element(reader, reader->function, &access).node;
		int one = body_integer(module, body, bit, 1);
		if (reader->guards.data[i].negated)
			node = body_op(module, body, OP_XORI, bit, node, one, 0);
		all = all < 0 ? node : body_op(module, body, OP_ANDI, bit, all, node, 0);
	}
	if (all < 0)
		return value.node;
	int old = c_read_element(reader, reader->function, target).node;
	return body_op(module, body, OP_SELECT, value.type.type, all, value.node, old);
}

bool c_end_statement(
        struct c_reader *reader, const struct poly_access *target, struct c_value value)
{
	struct region_statement *statement = reader->statement;
	struct body *body = &statement->body;
	if (value.node < 0)
		return false;
	body->result = guarded(reader, target, value);
	if (poly_is_computed(target))
		c_note_read(reader, reader->written, target);
	statement->affine.write = *target;
	body_remove_dead(reader->module, body);
	c_note_double(reader, reader->written);
	VEC_PUSH(reader->arena, &reader->region->statements, *statement);
	reader->position[reader->loops]++;
	return true;
}

static bool refuse_counter(struct c_reader *reader, CXCursor cursor)
{
	return c_refuse(reader, cursor, "this changes the counter of a loop in its body",
	        "accepted are counters that only the head of the loop changes");
}

static bool assigns_counter(struct c_reader *reader, CXCursor target)
{
	target = c_strip(reader->arena, target);
	if (clang_getCursorKind(target) != CXCursor_DeclRefExpr)
		return false;
	const struct c_symbol *symbol = c_symbol(reader, target);
	return symbol && symbol->kind == C_SYMBOL_FORM && symbol->counter;
}

static bool moves_pointer(CXCursor target)
{
	CXType type = clang_getCanonicalType(clang_getCursorType(target));
	return type.kind == CXType_Pointer || c_is_array(type);
}

static bool refuse_move(struct c_reader *reader, CXCursor cursor)
{
	return c_refuse(reader, cursor, "this moves a pointer",
	        "accepted are pointers that stay, and subscripts that count, as x[i + 1]");
}

static bool is_assignment(CXCursor cursor)
{
	return clang_getCursorKind(cursor) == CXCursor_BinaryOperator &&
	        clang_getCursorBinaryOperatorKind(cursor) == CXBinaryOperator_Assign;
}

/* x = e. Of a = b = e, b = e comes first, and a takes b. */
static bool assign(struct c_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	CXCursor value = parts.list.data[1];
	CXCursor inner = c_strip(reader->arena, value);
	struct poly_access target;
	if (assigns_counter(reader, parts.list.data[0]))
		return refuse_counter(reader, cursor);
	if (moves_pointer(parts.list.data[0]))
		return refuse_move(reader, cursor);
	if (is_assignment(inner)) {
		if (!c_statement(reader, inner))
			return false;
		value = c_children(reader->arena, inner).list.data[0];
	}
	c_begin_statement(reader, cursor);
	if (!c_element(reader, parts.list.data[0], &target))
		return false;
	struct c_type type = c_type_of(reader, clang_getCursorType(parts.list.data[0]));
	struct c_value read = c_expression(reader, value);
	return read.node >= 0 && c_end_statement(reader, &target, c_convert(reader, read, type));
}

static enum CXBinaryOperatorKind plain_operator(enum CXBinaryOperatorKind which)
{
	static const enum CXBinaryOperatorKind plain[] = {
		[CXBinaryOperator_MulAssign] = CXBinaryOperator_Mul,
		[CXBinaryOperator_DivAssign] = CXBinaryOperator_Div,
		[CXBinaryOperator_RemAssign] = CXBinaryOperator_Rem,
		[CXBinaryOperator_AddAssign] = CXBinaryOperator_Add,
		[CXBinaryOperator_SubAssign] = CXBinaryOperator_Sub,
		[CXBinaryOperator_ShlAssign] = CXBinaryOperator_Shl,
		[CXBinaryOperator_ShrAssign] = CXBinaryOperator_Shr,
		[CXBinaryOperator_AndAssign] = CXBinaryOperator_And,
		[CXBinaryOperator_XorAssign] = CXBinaryOperator_Xor,
		[CXBinaryOperator_OrAssign] = CXBinaryOperator_Or,
	};
	bool known = which >= CXBinaryOperator_MulAssign && which <= CXBinaryOperator_OrAssign;
	return known ? plain[which] : CXBinaryOperator_Invalid;
}

/* x op= e; `value` NULL: e is 1, of ++ and --. */
static bool update(struct c_reader *reader, CXCursor cursor, CXCursor left, const CXCursor *value,
        enum CXBinaryOperatorKind which)
{
	struct poly_access target;
	if (assigns_counter(reader, left))
		return refuse_counter(reader, cursor);
	if (moves_pointer(left))
		return refuse_move(reader, cursor);
	c_begin_statement(reader, cursor);
	if (!c_element(reader, left, &target))
		return false;
	struct c_value old = c_read_element(reader, left, &target);
	struct c_type own = old.type;
	struct c_type integer = { type_integer(reader->module, 32), false };
	int one = body_integer(reader->module, &reader->statement->body, integer.type, 1);
	struct c_value with = { one, integer };
	if (value)
		with = c_expression(reader, *value);
	if (with.node < 0)
		return false;
	bool shift = which == CXBinaryOperator_Shl || which == CXBinaryOperator_Shr;
	struct c_type type = c_common_type(reader, own, shift ? own : with.type);
	old = c_convert(reader, old, type);
	with = c_convert(reader, with, type);
	struct c_value result = c_binary(reader, cursor, which, old, with);
	return result.node >= 0 && c_end_statement(reader, &target, c_convert(reader, result, own));
}

static bool compound(struct c_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	return update(reader, cursor, parts.list.data[0], &parts.list.data[1],
	        plain_operator(clang_getCursorBinaryOperatorKind(cursor)));
}

static bool increment(struct c_reader *reader, CXCursor cursor)
{
	enum CXUnaryOperatorKind which = clang_getCursorUnaryOperatorKind(cursor);
	struct c_cursors parts = c_children(reader->arena, cursor);
	bool up = which == CXUnaryOperator_PreInc || which == CXUnaryOperator_PostInc;
	bool down = which == CXUnaryOperator_PreDec || which == CXUnaryOperator_PostDec;
	if ((!up && !down) || parts.list.count != 1)
		return c_refuse(reader, cursor, "this statement does nothing",
		        "accepted are assignments, loops and conditions");
	return update(reader, cursor, parts.list.data[0], NULL,
	        up ? CXBinaryOperator_Add : CXBinaryOperator_Sub);
}

/* --- loops --- */

struct loop_head {
	CXCursor variable; /* its declaration */
	CXCursor first;
	struct poly_form start; /* the same, if it is affine */
	int64_t step;
};

static bool refuse_loop(struct c_reader *reader, CXCursor cursor, const char *why)
{
	return c_refuse_affine(reader, cursor, why, LOOP_ACCEPTED);
}

static bool read_first(struct c_reader *reader, CXCursor cursor, struct loop_head *head)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	if (clang_getCursorKind(cursor) == CXCursor_DeclStmt && parts.list.count == 1) {
		head->variable = parts.list.data[0];
		head->first = clang_Cursor_getVarDeclInitializer(head->variable);
		return !clang_Cursor_isNull(head->first);
	}
	if (!is_assignment(cursor))
		return false;
	CXCursor target = c_strip(reader->arena, parts.list.data[0]);
	head->variable = clang_getCursorReferenced(target);
	head->first = parts.list.data[1];
	return clang_getCursorKind(target) == CXCursor_DeclRefExpr;
}

static bool read_constant(struct c_reader *reader, CXCursor cursor, int64_t *value)
{
	struct poly_form form;
	if (!c_affine(reader, cursor, &form) || !c_is_number(&form))
		return false;
	*value = form.constant;
	return true;
}

/* ++, --, += and -= of the counter, and i = i + c. */
static bool read_step(struct c_reader *reader, CXCursor cursor, struct loop_head *head)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	if (!parts.list.count || !c_names(reader, parts.list.data[0], head->variable))
		return false;
	enum CXUnaryOperatorKind unary = clang_getCursorUnaryOperatorKind(cursor);
	enum CXBinaryOperatorKind binary = clang_getCursorBinaryOperatorKind(cursor);
	int64_t sign = 1;
	if (clang_getCursorKind(cursor) == CXCursor_UnaryOperator) {
		bool up = unary == CXUnaryOperator_PreInc || unary == CXUnaryOperator_PostInc;
		head->step = up ? 1 : -1;
		return up || unary == CXUnaryOperator_PreDec || unary == CXUnaryOperator_PostDec;
	}
	CXCursor by = parts.list.data[1];
	if (is_assignment(cursor)) {
		by = c_strip(reader->arena, by);
		binary = clang_getCursorBinaryOperatorKind(by);
		parts = c_children(reader->arena, by);
		if (parts.list.count != 2 || !c_names(reader, parts.list.data[0], head->variable))
			return false;
		by = parts.list.data[1];
		sign = binary == CXBinaryOperator_Sub ? -1 : 1;
		if (binary != CXBinaryOperator_Add && binary != CXBinaryOperator_Sub)
			return false;
	} else {
		sign = binary == CXBinaryOperator_SubAssign ? -1 : 1;
		if (binary != CXBinaryOperator_AddAssign && binary != CXBinaryOperator_SubAssign)
			return false;
	}
	bool known = read_constant(reader, by, &head->step);
	head->step *= sign;
	return known && head->step;
}

/* Once false, false for all further iterations? */
static bool ends(const struct poly_condition *condition, int loop)
{
	if (condition->kind == POLY_AND || condition->kind == POLY_OR)
		return ends(condition->part[0], loop) && ends(condition->part[1], loop);
	return condition->kind == POLY_NOT_NEGATIVE && condition->form.coefficient[loop] < 0;
}

/* i != n counts as i < n, or i > n: a loop that jumps over n would not end. */
static const struct poly_condition *bound_of_unequal(
        struct c_reader *reader, const struct poly_condition *condition, int loop)
{
	if (condition->kind != POLY_NOT || condition->part[0]->kind != POLY_ZERO)
		return condition;
	struct poly_form form = condition->part[0]->form;
	struct poly_form zero = { 0 };
	if (form.coefficient[loop] > 0)
		form = c_sum(zero, form, -1);
	form.constant--;
	return form.coefficient[loop] == -1 ? c_row(reader->arena, POLY_NOT_NEGATIVE, form)
	                                    : condition;
}

/* The points from `low` on that the condition holds for; 0: that depends on other counters. */
static int64_t trips_of(
        const struct poly_condition *bound, const struct poly_condition *begun, int loop)
{
	struct poly_form form = bound->form;
	const struct poly_form *low = &begun->form;
	int64_t first = low->coefficient[loop] == 1 ? -low->constant : 0;
	int64_t factor = -form.coefficient[loop];
	if (bound->kind != POLY_NOT_NEGATIVE || begun->kind != POLY_NOT_NEGATIVE || factor < 1)
		return 0;
	for (int d = 0; d < POLY_DIMS; d++)
		if (d != loop && (form.coefficient[d] || low->coefficient[d]))
			return 0;
	int64_t last = form.constant < 0 ? -1 : form.constant / factor;
	return last < first ? 0 : last - first + 1;
}

/* The counter is not before the first value. */
static const struct poly_condition *not_before(
        struct c_reader *reader, const struct loop_head *head, int loop)
{
	struct poly_form counter = { 0 };
	counter.coefficient[loop] = 1;
	return head->step == 1 ? c_compare(reader, CXBinaryOperator_GE, &counter, head->first)
	                       : c_row(reader->arena, POLY_NOT_NEGATIVE, counter);
}

/* A counter of step 1 is that dim itself; another one is first + step * dim. */
static bool enter_loop(
        struct c_reader *reader, CXCursor cursor, const struct loop_head *head, CXCursor condition)
{
	int loop = reader->loops++;
	struct c_symbol symbol = { .kind = C_SYMBOL_FORM, .counter = true };
	symbol.form.coefficient[loop] = 1;
	if (head->step != 1)
		symbol.form = c_sum(head->start, symbol.form, head->step);
	const struct poly_condition *begun = not_before(reader, head, loop);
	if (!begun)
		return refuse_loop(reader, head->first, NOT_AFFINE_FIRST);
	reader->domain = c_and(reader->arena, reader->domain, begun);
	c_set_symbol(reader, head->variable, symbol);
	const struct poly_condition *bound = c_affine_condition(reader, condition);
	if (bound)
		bound = bound_of_unequal(reader, bound, loop);
	if (!bound || !ends(bound, loop))
		return refuse_loop(reader, condition, "this is no affine bound of the counter");
	reader->domain = c_and(reader->arena, reader->domain, bound);
	reader->position[reader->loops] = 0;
	reader->counter[loop] = c_name(reader->arena, head->variable);
	reader->trips[loop] = trips_of(bound, begun, loop);
	return c_statement(reader, cursor);
}

static bool loop(struct c_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	struct loop_head head = { 0 };
	if (parts.list.count != 4)
		return refuse_loop(reader, cursor, "this loop lacks one of its three parts");
	if (reader->loops == POLY_DIMS)
		return refuse_loop(reader, cursor, "there are more than 12 loops around this");
	if (!read_first(reader, parts.list.data[0], &head))
		return refuse_loop(reader, parts.list.data[0], NOT_AFFINE_FIRST);
	if (!c_is_scalar(clang_getCursorType(head.variable)) ||
	        type_is_real(c_type_of(reader, clang_getCursorType(head.variable)).type))
		return refuse_loop(reader, parts.list.data[0], "this counter is no integer");
	CXCursor step = c_strip(reader->arena, parts.list.data[2]);
	bool known = c_affine(reader, head.first, &head.start);
	if (known && c_is_number(&head.start) && c_is_multiplied(reader, step, head.variable))
		return c_multiplied_loop(reader, cursor, head.variable, head.start.constant);
	if (!read_step(reader, step, &head))
		return refuse_loop(
		        reader, parts.list.data[2], "this is no constant step of the counter");
	if (!known && head.step != 1)
		return refuse_loop(reader, head.first, NOT_AFFINE_FIRST);
	const struct poly_condition *domain = reader->domain;
	bool good = enter_loop(reader, parts.list.data[3], &head, parts.list.data[1]);
	reader->loops--;
	reader->domain = domain;
	reader->position[reader->loops]++;
	c_set_symbol(reader, head.variable, (struct c_symbol){ .kind = C_SYMBOL_NONE });
	return good;
}

/* --- conditions --- */

static bool affine_if(struct c_reader *reader, const struct c_cursors *parts,
        const struct poly_condition *condition)
{
	const struct poly_condition *domain = reader->domain;
	bool good = true;
	for (size_t i = 1; good && i < parts->list.count; i++) {
		reader->domain = c_and(reader->arena, domain,
		        i == 1 ? condition : c_not(reader->arena, condition));
		good = c_statement(reader, parts->list.data[i]);
	}
	reader->domain = domain;
	return good;
}

/* The condition is kept in a scalar, since the branches may change what it reads. */
static bool data_if(struct c_reader *reader, const struct c_cursors *parts)
{
	struct poly_access target = { 0 };
	const struct type *bit = type_integer(reader->module, 1);
	struct region_array array = { .type = bit };
	array.name = text_format(reader->arena, "condition%d", reader->conditions++);
	array.location = c_place(reader, parts->list.data[0]);
	target.array = c_add_array(reader, &array);
	size_t outer = reader->guards.count;
	reader->guards.count = 0;
	c_begin_statement(reader, parts->list.data[0]);
	struct c_value value = c_expression(reader, parts->list.data[0]);
	bool good = value.node >= 0;
	if (good) {
		value = (struct c_value){ c_as_condition(reader, value), { bit, true } };
		good = c_end_statement(reader, &target, value);
	}
	reader->guards.count = outer;
	for (size_t i = 1; good && i < parts->list.count; i++) {
		struct c_guard guard = { target.array, i == 2 };
		const struct poly_condition *domain = reader->domain;
		VEC_PUSH(reader->arena, &reader->guards, guard);
		if (i == 1)
			reader->domain = c_and(
			        reader->arena, domain, c_affine_part(reader, parts->list.data[0]));
		good = c_statement(reader, parts->list.data[i]);
		reader->domain = domain;
		reader->guards.count--;
	}
	return good;
}

static bool branch(struct c_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	const struct poly_condition *condition = c_affine_condition(reader, parts.list.data[0]);
	return condition ? affine_if(reader, &parts, condition) : data_if(reader, &parts);
}

/* --- all statements --- */

static bool each(struct c_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	for (size_t i = 0; i < parts.list.count; i++)
		if (!c_statement(reader, parts.list.data[i]))
			return false;
	return true;
}

static bool declare(struct c_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	for (size_t i = 0; i < parts.list.count; i++)
		if (clang_getCursorKind(parts.list.data[i]) == CXCursor_VarDecl &&
		        !c_declare_local(reader, parts.list.data[i]))
			return false;
	return true;
}

static bool refuse_statement(struct c_reader *reader, CXCursor cursor)
{
	switch (clang_getCursorKind(cursor)) {
	case CXCursor_WhileStmt:
	case CXCursor_DoStmt:
		return refuse_loop(
		        reader, cursor, "the number of iterations of this loop is not known");
	case CXCursor_BreakStmt:
	case CXCursor_ContinueStmt:
	case CXCursor_GotoStmt:
	case CXCursor_ReturnStmt:
	case CXCursor_SwitchStmt:
		return c_refuse(reader, cursor, "this jumps out of the order of statements",
		        "accepted are for loops that run to their bound, and if");
	default:
		return c_refuse(reader, cursor, "this statement has no counterpart in a design",
		        "accepted are assignments, for loops, if, and declarations");
	}
}

static bool statement(struct c_reader *reader, CXCursor cursor)
{
	switch (clang_getCursorKind(cursor)) {
	case CXCursor_CompoundStmt:
	case CXCursor_UnexposedStmt: return each(reader, cursor);
	case CXCursor_LabelStmt: return each(reader, cursor);
	case CXCursor_DeclStmt: return declare(reader, cursor);
	case CXCursor_ForStmt: return loop(reader, cursor);
	case CXCursor_IfStmt: return branch(reader, cursor);
	case CXCursor_CompoundAssignOperator: return compound(reader, cursor);
	case CXCursor_UnaryOperator: return increment(reader, cursor);
	case CXCursor_NullStmt: return true;
	case CXCursor_ParenExpr: return each(reader, cursor);
	case CXCursor_CallExpr: return c_call_statement(reader, cursor);
	case CXCursor_BinaryOperator:
		if (is_assignment(cursor))
			return assign(reader, cursor);
		if (clang_getCursorBinaryOperatorKind(cursor) == CXBinaryOperator_Comma)
			return each(reader, cursor);
		return refuse_statement(reader, cursor);
	default: return refuse_statement(reader, cursor);
	}
}

bool c_statement(struct c_reader *reader, CXCursor cursor)
{
	bool good = c_enter(reader, cursor) && statement(reader, cursor);
	c_leave(reader);
	return good;
}
