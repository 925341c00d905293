/* Expressions and conditions that are affine in the counters of loops. */
#include "frontend/c_reader.h"

#define COEFFICIENT_MOST (INT64_C(1) << 40)

struct poly_form c_sum(struct poly_form left, struct poly_form right, int64_t factor)
{
	for (int d = 0; d < POLY_DIMS; d++)
		left.coefficient[d] += factor * right.coefficient[d];
	left.constant += factor * right.constant;
	return left;
}

static bool is_number(const struct poly_form *form)
{
	for (int d = 0; d < POLY_DIMS; d++)
		if (form->coefficient[d])
			return false;
	return true;
}

static bool in_range(const struct poly_form *form)
{
	for (int d = 0; d < POLY_DIMS; d++)
		if (form->coefficient[d] > COEFFICIENT_MOST ||
		        form->coefficient[d] < -COEFFICIENT_MOST)
			return false;
	return form->constant <= COEFFICIENT_MOST && form->constant >= -COEFFICIENT_MOST;
}

static bool affine_reference(struct c_reader *reader, CXCursor cursor, struct poly_form *form)
{
	CXCursor declaration = clang_getCursorReferenced(cursor);
	if (clang_getCursorKind(declaration) == CXCursor_EnumConstantDecl) {
		form->constant = (int64_t)clang_getEnumConstantDeclValue(declaration);
		return in_range(form);
	}
	const struct c_symbol *symbol = c_symbol(reader, cursor);
	if (!symbol || symbol->kind != C_SYMBOL_FORM)
		return false;
	*form = symbol->form;
	return true;
}

static bool affine_product(struct poly_form left, struct poly_form right, struct poly_form *form)
{
	bool left_number = is_number(&left);
	if (!left_number && !is_number(&right))
		return false;
	int64_t factor = left_number ? left.constant : right.constant;
	struct poly_form zero = { 0 };
	if (factor > INT32_MAX || factor < INT32_MIN)
		return false;
	for (int d = 0; d < POLY_DIMS; d++)
		if (left.coefficient[d] > INT32_MAX || left.coefficient[d] < INT32_MIN ||
		        right.coefficient[d] > INT32_MAX || right.coefficient[d] < INT32_MIN)
			return false;
	*form = c_sum(zero, left_number ? right : left, factor);
	return true;
}

static bool affine_binary(struct c_reader *reader, CXCursor cursor, struct poly_form *form)
{
	enum CXBinaryOperatorKind which = clang_getCursorBinaryOperatorKind(cursor);
	struct c_cursors parts = c_children(reader->arena, cursor);
	struct poly_form left;
	struct poly_form right;
	if (parts.list.count != 2 || !c_affine(reader, parts.list.data[0], &left) ||
	        !c_affine(reader, parts.list.data[1], &right))
		return false;
	switch (which) {
	case CXBinaryOperator_Add: *form = c_sum(left, right, 1); return true;
	case CXBinaryOperator_Sub: *form = c_sum(left, right, -1); return true;
	case CXBinaryOperator_Mul: return affine_product(left, right, form);
	case CXBinaryOperator_Div:
		if (!is_number(&left) || !is_number(&right) || !right.constant)
			return false;
		*form = (struct poly_form){ .constant = left.constant / right.constant };
		return true;
	default: return false;
	}
}

static bool affine_unary(struct c_reader *reader, CXCursor cursor, struct poly_form *form)
{
	enum CXUnaryOperatorKind which = clang_getCursorUnaryOperatorKind(cursor);
	struct c_cursors parts = c_children(reader->arena, cursor);
	struct poly_form value;
	struct poly_form zero = { 0 };
	bool sign = which == CXUnaryOperator_Minus || which == CXUnaryOperator_Plus;
	if (!sign || parts.list.count != 1 || !c_affine(reader, parts.list.data[0], &value))
		return false;
	*form = c_sum(zero, value, which == CXUnaryOperator_Minus ? -1 : 1);
	return true;
}

static bool affine(struct c_reader *reader, CXCursor cursor, struct poly_form *form)
{
	cursor = c_strip(reader->arena, cursor);
	enum CXTypeKind kind = clang_getCanonicalType(clang_getCursorType(cursor)).kind;
	*form = (struct poly_form){ 0 };
	if (kind < CXType_Bool || kind > CXType_LongLong) {
		if (kind != CXType_Enum)
			return false;
	}
	switch (clang_getCursorKind(cursor)) {
	case CXCursor_DeclRefExpr: return affine_reference(reader, cursor, form);
	case CXCursor_UnaryOperator: return affine_unary(reader, cursor, form);
	case CXCursor_BinaryOperator: return affine_binary(reader, cursor, form);
	case CXCursor_CStyleCastExpr: {
		struct c_cursors parts = c_children(reader->arena, cursor);
		return parts.list.count &&
		        affine(reader, parts.list.data[parts.list.count - 1], form);
	}
	default: return c_integer(cursor, &form->constant);
	}
}

bool c_affine(struct c_reader *reader, CXCursor cursor, struct poly_form *form)
{
	bool good =
	        ++reader->depth <= C_DEPTH_MOST && affine(reader, cursor, form) && in_range(form);
	reader->depth--;
	return good;
}

/* --- conditions --- */

const struct poly_condition *c_row(
        struct arena *arena, enum poly_operator kind, struct poly_form form)
{
	struct poly_condition *row = ARENA_NEW(arena, struct poly_condition);
	row->kind = kind;
	row->form = form;
	return row;
}

static const struct poly_condition *join(struct arena *arena, enum poly_operator kind,
        const struct poly_condition *left, const struct poly_condition *right)
{
	struct poly_condition *both = ARENA_NEW(arena, struct poly_condition);
	both->kind = kind;
	both->part[0] = left;
	both->part[1] = right;
	return both;
}

const struct poly_condition *c_and(
        struct arena *arena, const struct poly_condition *left, const struct poly_condition *right)
{
	if (!left || !right)
		return left ? left : right;
	return join(arena, POLY_AND, left, right);
}

const struct poly_condition *c_not(struct arena *arena, const struct poly_condition *condition)
{
	return join(arena, POLY_NOT, condition, NULL);
}

/* left OPERATOR right as a condition on left - right. */
static const struct poly_condition *compare(struct arena *arena, enum CXBinaryOperatorKind which,
        struct poly_form left, struct poly_form right)
{
	struct poly_form more = c_sum(left, right, -1);
	struct poly_form less = c_sum(right, left, -1);
	struct poly_form one = { .constant = 1 };
	switch (which) {
	case CXBinaryOperator_LT: return c_row(arena, POLY_NOT_NEGATIVE, c_sum(less, one, -1));
	case CXBinaryOperator_LE: return c_row(arena, POLY_NOT_NEGATIVE, less);
	case CXBinaryOperator_GT: return c_row(arena, POLY_NOT_NEGATIVE, c_sum(more, one, -1));
	case CXBinaryOperator_GE: return c_row(arena, POLY_NOT_NEGATIVE, more);
	case CXBinaryOperator_EQ: return c_row(arena, POLY_ZERO, more);
	case CXBinaryOperator_NE: return c_not(arena, c_row(arena, POLY_ZERO, more));
	default: return NULL;
	}
}

static const struct poly_condition *condition(struct c_reader *reader, CXCursor cursor)
{
	struct arena *arena = reader->arena;
	cursor = c_strip(arena, cursor);
	struct c_cursors parts = c_children(arena, cursor);
	if (clang_getCursorKind(cursor) == CXCursor_UnaryOperator && parts.list.count == 1 &&
	        clang_getCursorUnaryOperatorKind(cursor) == CXUnaryOperator_LNot) {
		const struct poly_condition *part = c_affine_condition(reader, parts.list.data[0]);
		return part ? c_not(arena, part) : NULL;
	}
	if (clang_getCursorKind(cursor) != CXCursor_BinaryOperator || parts.list.count != 2)
		return NULL;
	enum CXBinaryOperatorKind which = clang_getCursorBinaryOperatorKind(cursor);
	if (which == CXBinaryOperator_LAnd || which == CXBinaryOperator_LOr) {
		const struct poly_condition *left = c_affine_condition(reader, parts.list.data[0]);
		const struct poly_condition *right = c_affine_condition(reader, parts.list.data[1]);
		enum poly_operator joined = which == CXBinaryOperator_LAnd ? POLY_AND : POLY_OR;
		return left && right ? join(arena, joined, left, right) : NULL;
	}
	struct poly_form left;
	struct poly_form right;
	if (!c_affine(reader, parts.list.data[0], &left) ||
	        !c_affine(reader, parts.list.data[1], &right))
		return NULL;
	return compare(arena, which, left, right);
}

const struct poly_condition *c_affine_part(struct c_reader *reader, CXCursor cursor)
{
	cursor = c_strip(reader->arena, cursor);
	struct c_cursors parts = c_children(reader->arena, cursor);
	bool both = clang_getCursorKind(cursor) == CXCursor_BinaryOperator &&
	        clang_getCursorBinaryOperatorKind(cursor) == CXBinaryOperator_LAnd;
	if (!both || parts.list.count != 2)
		return c_affine_condition(reader, cursor);
	const struct poly_condition *left = c_affine_part(reader, parts.list.data[0]);
	return c_and(reader->arena, left, c_affine_part(reader, parts.list.data[1]));
}

const struct poly_condition *c_affine_condition(struct c_reader *reader, CXCursor cursor)
{
	const struct poly_condition *found =
	        ++reader->depth <= C_DEPTH_MOST ? condition(reader, cursor) : NULL;
	reader->depth--;
	return found;
}
