/* Expressions and conditions that are affine in the counters of loops. */
#include "frontend/c_reader.h"
#include <string.h>

#define COEFFICIENT_MOST (INT64_C(1) << 40)

struct poly_form c_sum(struct poly_form left, struct poly_form right, int64_t factor)
{
	for (int d = 0; d < POLY_DIMS; d++)
		left.coefficient[d] += factor * right.coefficient[d];
	left.constant += factor * right.constant;
	return left;
}

bool c_is_number(const struct poly_form *form)
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
	bool left_number = c_is_number(&left);
	if (!left_number && !c_is_number(&right))
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
		if (!c_is_number(&left) || !c_is_number(&right) || !right.constant)
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

static bool is_integer(CXCursor cursor)
{
	enum CXTypeKind kind = clang_getCanonicalType(clang_getCursorType(cursor)).kind;
	return (kind >= CXType_Bool && kind <= CXType_LongLong) || kind == CXType_Enum;
}

static bool is_counter(struct c_reader *reader, CXCursor cursor)
{
	const struct c_symbol *symbol = clang_getCursorKind(cursor) == CXCursor_DeclRefExpr
	        ? c_symbol(reader, cursor)
	        : NULL;
	return symbol && symbol->counter;
}

static bool fits(struct c_reader *reader, CXCursor cursor, const struct poly_form *form)
{
	struct c_type type = c_type_of(reader, clang_getCursorType(cursor));
	return !type.type || c_fits(reader, form, type);
}

/* Is the number the same as of this type, and as what it is converted from?  Signed numbers that C
 * computes do not leave their type. */
static bool survives(
        struct c_reader *reader, CXCursor from, CXCursor to, const struct poly_form *form)
{
	struct c_type own = c_type_of(reader, clang_getCursorType(from));
	struct c_type next = c_type_of(reader, clang_getCursorType(to));
	if (!own.type || !next.type)
		return true;
	bool narrower = next.type->width < own.type->width;
	bool wider = next.type->width > own.type->width && own.is_unsigned;
	return (!narrower || fits(reader, to, form)) &&
	        (!wider || is_counter(reader, from) || fits(reader, from, form));
}

static bool affine_expression(struct c_reader *reader, CXCursor cursor, struct poly_form *form);

/* The number that is converted, explicitly or not. */
static bool affine_conversion(
        struct c_reader *reader, CXCursor cursor, CXCursor from, struct poly_form *form)
{
	return is_integer(cursor) && affine_expression(reader, from, form) &&
	        survives(reader, c_strip(reader->arena, from), cursor, form);
}

static bool affine_expression(struct c_reader *reader, CXCursor cursor, struct poly_form *form)
{
	CXCursor outer = cursor;
	cursor = c_strip(reader->arena, cursor);
	*form = (struct poly_form){ 0 };
	if (!is_integer(outer) || !is_integer(cursor))
		return false;
	if (!clang_equalCursors(outer, cursor))
		return affine_conversion(reader, outer, cursor, form);
	switch (clang_getCursorKind(cursor)) {
	case CXCursor_DeclRefExpr: return affine_reference(reader, cursor, form);
	case CXCursor_UnaryOperator: return affine_unary(reader, cursor, form);
	case CXCursor_BinaryOperator: return affine_binary(reader, cursor, form);
	case CXCursor_CStyleCastExpr: {
		struct c_cursors parts = c_children(reader->arena, cursor);
		return parts.list.count &&
		        affine_conversion(
		                reader, cursor, parts.list.data[parts.list.count - 1], form);
	}
	default: return c_integer(cursor, &form->constant);
	}
}

bool c_affine(struct c_reader *reader, CXCursor cursor, struct poly_form *form)
{
	bool good = ++reader->depth <= C_DEPTH_MOST && affine_expression(reader, cursor, form) &&
	        in_range(form);
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

static bool is_less(enum CXBinaryOperatorKind which)
{
	return which == CXBinaryOperator_LT || which == CXBinaryOperator_LE;
}

static bool is_more(enum CXBinaryOperatorKind which)
{
	return which == CXBinaryOperator_GT || which == CXBinaryOperator_GE;
}

/* a < b ? a : b, the least of two numbers, or the largest. */
struct extreme {
	bool maximum;
	CXCursor part[2];
};

static bool read_extreme(struct c_reader *reader, CXCursor cursor, struct extreme *extreme);

static bool same_number(struct c_reader *reader, CXCursor left, CXCursor right)
{
	struct poly_form a;
	struct poly_form b;
	struct extreme first;
	struct extreme second;
	if (c_affine(reader, left, &a) && c_affine(reader, right, &b))
		return !memcmp(&a, &b, sizeof a);
	return read_extreme(reader, left, &first) && read_extreme(reader, right, &second) &&
	        first.maximum == second.maximum &&
	        same_number(reader, first.part[0], second.part[0]) &&
	        same_number(reader, first.part[1], second.part[1]);
}

static bool read_choice(struct c_reader *reader, CXCursor cursor, struct extreme *extreme)
{
	struct c_cursors choice = c_children(reader->arena, cursor);
	if (clang_getCursorKind(cursor) != CXCursor_ConditionalOperator || choice.list.count != 3)
		return false;
	CXCursor test = c_strip(reader->arena, choice.list.data[0]);
	struct c_cursors side = c_children(reader->arena, test);
	enum CXBinaryOperatorKind which = clang_getCursorBinaryOperatorKind(test);
	if (clang_getCursorKind(test) != CXCursor_BinaryOperator || side.list.count != 2 ||
	        (!is_less(which) && !is_more(which)))
		return false;
	bool crossed = !same_number(reader, side.list.data[0], choice.list.data[1]);
	extreme->maximum = is_more(which) != crossed;
	extreme->part[0] = side.list.data[0];
	extreme->part[1] = side.list.data[1];
	return same_number(reader, side.list.data[crossed], choice.list.data[1]) &&
	        same_number(reader, side.list.data[!crossed], choice.list.data[2]);
}

static bool read_extreme(struct c_reader *reader, CXCursor cursor, struct extreme *extreme)
{
	bool good = ++reader->depth <= C_DEPTH_MOST &&
	        read_choice(reader, c_strip(reader->arena, cursor), extreme);
	reader->depth--;
	return good;
}

/* An unsigned number that is compared is not below 0, which would wrap. */
static bool affine_side(struct c_reader *reader, CXCursor cursor, struct poly_form *form)
{
	struct c_type type = c_type_of(reader, clang_getCursorType(cursor));
	return c_affine(reader, cursor, form) &&
	        (!type.is_unsigned || is_counter(reader, c_strip(reader->arena, cursor)) ||
	                fits(reader, cursor, form));
}

/* Less than the least of two is less than both, less than the largest is less than one of them. */
const struct poly_condition *c_compare(struct c_reader *reader, enum CXBinaryOperatorKind which,
        const struct poly_form *left, CXCursor right)
{
	struct poly_form form;
	struct extreme extreme;
	if (affine_side(reader, right, &form))
		return compare(reader->arena, which, *left, form);
	if ((!is_less(which) && !is_more(which)) || !read_extreme(reader, right, &extreme))
		return NULL;
	const struct poly_condition *a = c_compare(reader, which, left, extreme.part[0]);
	const struct poly_condition *b = c_compare(reader, which, left, extreme.part[1]);
	enum poly_operator joined = extreme.maximum == is_more(which) ? POLY_AND : POLY_OR;
	return a && b ? join(reader->arena, joined, a, b) : NULL;
}

static const struct poly_condition *compare_cursors(
        struct c_reader *reader, enum CXBinaryOperatorKind which, CXCursor left, CXCursor right)
{
	struct poly_form form;
	struct extreme extreme;
	if (affine_side(reader, left, &form))
		return c_compare(reader, which, &form, right);
	if ((!is_less(which) && !is_more(which)) || !read_extreme(reader, left, &extreme))
		return NULL;
	const struct poly_condition *a = compare_cursors(reader, which, extreme.part[0], right);
	const struct poly_condition *b = compare_cursors(reader, which, extreme.part[1], right);
	enum poly_operator joined = extreme.maximum == is_less(which) ? POLY_AND : POLY_OR;
	return a && b ? join(reader->arena, joined, a, b) : NULL;
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
	return compare_cursors(reader, which, parts.list.data[0], parts.list.data[1]);
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
