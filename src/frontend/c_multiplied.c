/* Loops whose counter is multiplied, divided or shifted in each step. They have few iterations,
 * each of which becomes statements of its own in which the counter is a number.
 * Before: for (n = 1; n < 8; n *= 2) x[n] = 0;      After: x[1] = 0; x[2] = 0; x[4] = 0; */
#include "frontend/c_reader.h"

enum { MULTIPLIED_MOST = 64 };

struct multiplication {
	enum CXBinaryOperatorKind operator;
	int64_t by;
};

static enum CXBinaryOperatorKind multiplying(CXCursor cursor)
{
	switch (clang_getCursorBinaryOperatorKind(cursor)) {
	case CXBinaryOperator_Mul:
	case CXBinaryOperator_MulAssign: return CXBinaryOperator_Mul;
	case CXBinaryOperator_Div:
	case CXBinaryOperator_DivAssign: return CXBinaryOperator_Div;
	case CXBinaryOperator_Shl:
	case CXBinaryOperator_ShlAssign: return CXBinaryOperator_Shl;
	case CXBinaryOperator_Shr:
	case CXBinaryOperator_ShrAssign: return CXBinaryOperator_Shr;
	default: return CXBinaryOperator_Invalid;
	}
}

/* i *= c or i = i * c */
static bool read_multiplication(
        struct c_reader *reader, CXCursor cursor, CXCursor variable, struct multiplication *step)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	struct poly_form by;
	if (parts.list.count != 2 || !c_names(reader, parts.list.data[0], variable))
		return false;
	if (clang_getCursorKind(cursor) != CXCursor_CompoundAssignOperator) {
		if (clang_getCursorBinaryOperatorKind(cursor) != CXBinaryOperator_Assign)
			return false;
		cursor = c_strip(reader->arena, parts.list.data[1]);
		parts = c_children(reader->arena, cursor);
		if (parts.list.count != 2 || !c_names(reader, parts.list.data[0], variable))
			return false;
	}
	step->operator= multiplying(cursor);
	bool known = step->operator!= CXBinaryOperator_Invalid &&
	             c_affine(reader, parts.list.data[1], &by) &&
	        c_is_number(&by);
	step->by = known ? by.constant : 0;
	return known;
}

bool c_is_multiplied(struct c_reader *reader, CXCursor step, CXCursor variable)
{
	struct multiplication found;
	return read_multiplication(reader, step, variable, &found);
}

/* false: the number is none of 32 bits. */
static bool next_number(const struct multiplication *step, int64_t *number)
{
	bool shift = step->operator== CXBinaryOperator_Shl || step->operator== CXBinaryOperator_Shr;
	if (shift ? step->by < 0 || step->by > 31 : !step->by || step->by != (int32_t)step->by)
		return false;
	switch (step->operator) {
	case CXBinaryOperator_Mul: *number *= step->by; break;
	case CXBinaryOperator_Div: *number /= step->by; break;
	case CXBinaryOperator_Shl: *number *= INT64_C(1) << step->by; break;
	default: *number >>= step->by; break;
	}
	return *number == (int32_t)*number;
}

/* Does the condition hold? *known becomes false if that depends on counters. */
static bool holds(const struct poly_condition *condition, bool *known)
{
	switch (condition->kind) {
	case POLY_NOT: return !holds(condition->part[0], known);
	case POLY_AND: return holds(condition->part[0], known) & holds(condition->part[1], known);
	case POLY_OR: return holds(condition->part[0], known) | holds(condition->part[1], known);
	case POLY_ALWAYS: return true;
	default: break;
	}
	*known = *known && c_is_number(&condition->form);
	return condition->kind == POLY_ZERO ? !condition->form.constant
	                                    : condition->form.constant >= 0;
}

bool c_multiplied_loop(struct c_reader *reader, CXCursor loop, CXCursor variable, int64_t first)
{
	struct c_cursors parts = c_children(reader->arena, loop);
	struct multiplication step;
	struct c_symbol symbol = { .kind = C_SYMBOL_FORM, .counter = true };
	CXCursor bound = parts.list.data[1];
	CXCursor by = c_strip(reader->arena, parts.list.data[2]);
	symbol.form.constant = first;
	bool fits = read_multiplication(reader, by, variable, &step);
	for (int n = 0;; n++) {
		bool known = true;
		c_set_symbol(reader, variable, symbol);
		const struct poly_condition *condition = c_affine_condition(reader, bound);
		bool goes_on = condition && holds(condition, &known);
		if (!condition || !known)
			return c_refuse_affine(reader, bound, "this bound is no known number",
			        "accepted is a comparison of the counter with a constant, where "
			        "the counter is multiplied");
		if (!goes_on)
			break;
		if (!fits || n == MULTIPLIED_MOST)
			return c_refuse(reader, parts.list.data[2],
			        "the loop does not end with this step",
			        "accepted are up to 64 iterations, of numbers of 32 bits");
		if (!c_statement(reader, parts.list.data[3]))
			return false;
		fits = next_number(&step, &symbol.form.constant);
	}
	c_set_symbol(reader, variable, (struct c_symbol){ .kind = C_SYMBOL_NONE });
	return true;
}
