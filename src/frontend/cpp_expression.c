/* Expressions of HLS C++. */
#include "frontend/cpp_internal.h"

static const char *const numbers_accepted =
        "accepted are numbers (also ap_int, ap_uint, ap_fixed), arrays, hls::vector and "
        "hls::stream";

struct cpp_value cpp_refused(
        struct cpp_reader *reader, CXCursor cursor, const char *why, const char *accepted)
{
	c_refuse(&reader->c, cursor, why, accepted);
	return (struct cpp_value){ .kind = CPP_REFUSED };
}

static CXCursor last_child(struct cpp_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->c.arena, cursor);
	return parts.list.count ? parts.list.data[parts.list.count - 1] : clang_getNullCursor();
}

static bool is_cast(enum CXCursorKind kind)
{
	return kind == CXCursor_UnexposedExpr || kind == CXCursor_ParenExpr ||
	        kind == CXCursor_CStyleCastExpr || kind == CXCursor_CXXStaticCastExpr ||
	        kind == CXCursor_CXXFunctionalCastExpr || kind == CXCursor_CXXConstCastExpr ||
	        kind == CXCursor_CXXReinterpretCastExpr;
}

CXCursor cpp_strip(struct cpp_reader *reader, CXCursor cursor)
{
	while (is_cast(clang_getCursorKind(cursor))) {
		CXCursor child = last_child(reader, cursor);
		if (clang_Cursor_isNull(child))
			return cursor;
		cursor = child;
	}
	return cursor;
}

struct cpp_variable *cpp_variable(struct cpp_reader *reader, CXCursor cursor)
{
	cursor = cpp_strip(reader, cursor);
	if (clang_getCursorKind(cursor) != CXCursor_DeclRefExpr)
		return NULL;
	CXCursor declaration = clang_getCursorReferenced(cursor);
	return map_get(&reader->variables, c_key(reader->c.arena, declaration));
}

/* A cast between floats and integers is an operation. */
static struct cpp_value converted(
        struct cpp_reader *reader, CXCursor cursor, struct cpp_value value)
{
	struct cpp_value wanted = cpp_blank(reader, clang_getCursorType(cursor), CPP_NONE);
	if (value.kind != CPP_SCALAR || wanted.kind != CPP_SCALAR ||
	        *cpp_class(reader, clang_getCursorType(cursor)))
		return value;
	struct cpp_value result = value;
	if (value.real != wanted.real)
		result =
		        cpp_compute(reader, cursor, wanted.real ? OP_SITOFP : OP_FPTOSI, &value, 1);
	else if (value.real && value.is_double != wanted.is_double && value.operation != CPP_NONE)
		result = cpp_compute(
		        reader, cursor, wanted.is_double ? OP_EXTF : OP_TRUNCF, &value, 1);
	result.real = wanted.real;
	result.is_double = wanted.is_double;
	result.form = wanted.real || value.real ? (struct cpp_form){ 0 } : value.form;
	return result;
}

static struct cpp_value read_place(
        struct cpp_reader *reader, CXCursor cursor, const struct cpp_value *place)
{
	if (place->kind != CPP_PLACE)
		return *place;
	const struct cpp_array *array = &reader->design->arrays.data[place->array];
	if (place->given < array->rank)
		return *place;
	return cpp_load(reader, cursor, place, clang_getCursorType(cursor));
}

/* One more subscript. */
static struct cpp_value subscripted(struct cpp_reader *reader, CXCursor cursor,
        struct cpp_value base, const struct cpp_value *index)
{
	if (base.kind == CPP_LANES && cpp_is_constant(&index->form) && index->form.constant >= 0 &&
	        index->form.constant < base.lanes)
		return base.lane[index->form.constant];
	if (base.kind == CPP_LANES) { /* a lane that is not known: one of them, by selection */
		struct cpp_value operand[2] = { base.lane[0], *index };
		struct cpp_value lane = cpp_compute(reader, cursor, OP_SELECT, operand, 2);
		lane.real = base.lane[0].real;
		lane.bits = base.lane[0].bits;
		return lane;
	}
	if (base.kind != CPP_PLACE) /* a bit of a number */
		return cpp_unknown(reader, base.operation, 1, false);
	if (base.given == reader->design->arrays.data[base.array].rank)
		return cpp_refused(reader, cursor, "there are too many subscripts",
		        "accepted is one for each dimension");
	struct cpp_form *subscript = ARENA_ARRAY(reader->c.arena, struct cpp_form, base.given + 1);
	struct cpp_value *index_of = ARENA_ARRAY(reader->c.arena, struct cpp_value, base.given + 1);
	for (int i = 0; i < base.given; i++) {
		subscript[i] = base.subscript[i];
		index_of[i] = base.lane[i];
	}
	subscript[base.given] = index->form;
	index_of[base.given] = *index;
	base.subscript = subscript;
	base.lane = index_of;
	base.given++;
	return base;
}

struct cpp_value cpp_place(struct cpp_reader *reader, CXCursor cursor)
{
	cursor = cpp_strip(reader, cursor);
	enum CXCursorKind kind = clang_getCursorKind(cursor);
	struct cpp_variable *variable = cpp_variable(reader, cursor);
	if (variable)
		return variable->value;
	bool operator_call = kind == CXCursor_CallExpr &&
	        text_same(c_name(reader->c.arena, cursor), "operator[]");
	if (kind == CXCursor_ArraySubscriptExpr || operator_call) {
		struct c_cursors parts = c_children(reader->c.arena, cursor);
		CXCursor base_cursor =
		        operator_call ? clang_Cursor_getArgument(cursor, 0) : parts.list.data[0];
		CXCursor index_cursor =
		        operator_call ? clang_Cursor_getArgument(cursor, 1) : parts.list.data[1];
		struct cpp_value base = cpp_place(reader, base_cursor);
		struct cpp_value index = cpp_evaluate(reader, index_cursor);
		if (base.kind == CPP_REFUSED || index.kind == CPP_REFUSED)
			return (struct cpp_value){ .kind = CPP_REFUSED };
		if (operator_call)
			base = read_place(reader, base_cursor, &base);
		return base.kind == CPP_REFUSED ? base : subscripted(reader, cursor, base, &index);
	}
	if (kind == CXCursor_UnaryOperator &&
	        clang_getCursorUnaryOperatorKind(cursor) == CXUnaryOperator_Deref) {
		struct cpp_value base = cpp_place(reader, last_child(reader, cursor));
		struct cpp_value first = cpp_integer(0);
		return base.kind == CPP_REFUSED ? base : subscripted(reader, cursor, base, &first);
	}
	return cpp_evaluate(reader, cursor);
}

/* --- assignments --- */

/* One lane of a vector that is a variable. */
static bool assign_lane(struct cpp_reader *reader, CXCursor target, const struct cpp_value *value)
{
	CXCursor base_cursor = clang_Cursor_getArgument(target, 0);
	struct cpp_value index = cpp_evaluate(reader, clang_Cursor_getArgument(target, 1));
	struct cpp_value vector = cpp_place(reader, base_cursor);
	if (index.kind == CPP_REFUSED || vector.kind == CPP_REFUSED)
		return false;
	vector = read_place(reader, base_cursor, &vector);
	if (vector.kind != CPP_LANES)
		return vector.kind != CPP_REFUSED &&
		        c_refuse(&reader->c, target, "it cannot be assigned", numbers_accepted);
	struct cpp_value *lane = ARENA_ARRAY(reader->c.arena, struct cpp_value, vector.lanes);
	bool known = cpp_is_constant(&index.form);
	for (int i = 0; i < vector.lanes; i++) {
		lane[i] = vector.lane[i];
		if (!known)
			lane[i] = cpp_select(reader, target, index, *value, lane[i]);
	}
	if (known && index.form.constant >= 0 && index.form.constant < vector.lanes)
		lane[index.form.constant] = *value;
	vector.lane = lane;
	return cpp_assign(reader, base_cursor, &vector);
}

static struct cpp_value splat(
        struct cpp_reader *reader, const struct cpp_value *like, const struct cpp_value *value)
{
	struct cpp_value vector = *like;
	vector.lane = ARENA_ARRAY(reader->c.arena, struct cpp_value, vector.lanes);
	for (int i = 0; i < vector.lanes; i++)
		vector.lane[i] = *value;
	return vector;
}

bool cpp_assign(struct cpp_reader *reader, CXCursor target, const struct cpp_value *value)
{
	target = cpp_strip(reader, target);
	struct cpp_variable *variable = cpp_variable(reader, target);
	if (variable && variable->value.kind != CPP_PLACE) {
		struct cpp_value before = variable->value;
		variable->value = *value;
		if (before.kind == CPP_LANES && value->kind == CPP_SCALAR)
			variable->value = splat(reader, &before, value);
		else if (before.kind == CPP_SCALAR && value->kind == CPP_SCALAR) {
			variable->value.real = before.real;
			variable->value.bits = before.bits;
			variable->value.is_double = before.is_double;
		}
		return true;
	}
	if (clang_getCursorKind(target) == CXCursor_CallExpr &&
	        text_same(c_name(reader->c.arena, target), "operator[]")) {
		struct cpp_value base = cpp_place(reader, clang_Cursor_getArgument(target, 0));
		bool lanes = base.kind == CPP_LANES ||
		        (base.kind == CPP_PLACE &&
		                base.given == reader->design->arrays.data[base.array].rank);
		if (base.kind != CPP_REFUSED && lanes)
			return assign_lane(reader, target, value);
	}
	struct cpp_value place = cpp_place(reader, target);
	if (place.kind == CPP_REFUSED)
		return false;
	if (place.kind != CPP_PLACE)
		return c_refuse(&reader->c, target, "it cannot be assigned", numbers_accepted);
	return cpp_store(reader, target, &place, value);
}

static enum CXBinaryOperatorKind plain_operator(enum CXBinaryOperatorKind which)
{
	switch (which) {
	case CXBinaryOperator_MulAssign: return CXBinaryOperator_Mul;
	case CXBinaryOperator_DivAssign: return CXBinaryOperator_Div;
	case CXBinaryOperator_RemAssign: return CXBinaryOperator_Rem;
	case CXBinaryOperator_AddAssign: return CXBinaryOperator_Add;
	case CXBinaryOperator_SubAssign: return CXBinaryOperator_Sub;
	case CXBinaryOperator_ShlAssign: return CXBinaryOperator_Shl;
	case CXBinaryOperator_ShrAssign: return CXBinaryOperator_Shr;
	case CXBinaryOperator_AndAssign: return CXBinaryOperator_And;
	case CXBinaryOperator_XorAssign: return CXBinaryOperator_Xor;
	case CXBinaryOperator_OrAssign: return CXBinaryOperator_Or;
	default: return CXBinaryOperator_Invalid;
	}
}

static struct cpp_value binary(struct cpp_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->c.arena, cursor);
	enum CXBinaryOperatorKind which = clang_getCursorBinaryOperatorKind(cursor);
	if (parts.list.count != 2)
		return cpp_refused(reader, cursor, "it is not understood", numbers_accepted);
	CXCursor left = parts.list.data[0];
	CXCursor right = parts.list.data[1];
	bool assigns = which == CXBinaryOperator_Assign;
	enum CXBinaryOperatorKind plain = plain_operator(which);
	struct cpp_value value = cpp_evaluate(reader, right);
	if (value.kind == CPP_REFUSED)
		return value;
	if (!assigns) {
		struct cpp_value before = cpp_evaluate(reader, left);
		if (which == CXBinaryOperator_Comma)
			return before.kind == CPP_REFUSED ? before : value;
		value = cpp_binary(reader, cursor,
		        plain == CXBinaryOperator_Invalid ? which : plain, before, value);
	}
	if (value.kind == CPP_REFUSED || (!assigns && plain == CXBinaryOperator_Invalid))
		return value;
	return cpp_assign(reader, left, &value) ? value : (struct cpp_value){ .kind = CPP_REFUSED };
}

static struct cpp_value unary(struct cpp_reader *reader, CXCursor cursor)
{
	enum CXUnaryOperatorKind which = clang_getCursorUnaryOperatorKind(cursor);
	CXCursor part = last_child(reader, cursor);
	if (which == CXUnaryOperator_Deref || which == CXUnaryOperator_AddrOf) {
		struct cpp_value place =
		        cpp_place(reader, which == CXUnaryOperator_Deref ? cursor : part);
		return which == CXUnaryOperator_Deref && place.kind == CPP_PLACE
		        ? read_place(reader, cursor, &place)
		        : place;
	}
	struct cpp_value value = cpp_evaluate(reader, part);
	bool steps = which >= CXUnaryOperator_PostInc && which <= CXUnaryOperator_PreDec;
	bool down = which == CXUnaryOperator_PostDec || which == CXUnaryOperator_PreDec;
	if (value.kind == CPP_REFUSED || which == CXUnaryOperator_Plus)
		return value;
	if (steps) {
		struct cpp_value next = cpp_binary(reader, cursor,
		        down ? CXBinaryOperator_Sub : CXBinaryOperator_Add, value, cpp_integer(1));
		return cpp_assign(reader, part, &next) ? value
		                                       : (struct cpp_value){ .kind = CPP_REFUSED };
	}
	if (which == CXUnaryOperator_Minus && value.kind == CPP_SCALAR && value.real)
		return cpp_compute(reader, cursor, OP_NEGF, &value, 1);
	struct cpp_value zero = cpp_integer(which == CXUnaryOperator_Not ? -1 : 0);
	enum CXBinaryOperatorKind as = which == CXUnaryOperator_Minus ? CXBinaryOperator_Sub
	        : which == CXUnaryOperator_Not                        ? CXBinaryOperator_Xor
	                                                              : CXBinaryOperator_EQ;
	return cpp_binary(reader, cursor, as, zero, value);
}

static struct cpp_value conditional(struct cpp_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->c.arena, cursor);
	if (parts.list.count != 3)
		return cpp_refused(reader, cursor, "it is not understood", numbers_accepted);
	struct cpp_value part[3];
	for (int i = 0; i < 3; i++) {
		part[i] = cpp_evaluate(reader, parts.list.data[i]);
		if (part[i].kind == CPP_REFUSED)
			return part[i];
	}
	if (cpp_is_constant(&part[0].form))
		return part[part[0].form.constant ? 1 : 2];
	return cpp_select(reader, cursor, part[0], part[1], part[2]);
}

static struct cpp_value reference(struct cpp_reader *reader, CXCursor cursor)
{
	struct cpp_variable *variable = cpp_variable(reader, cursor);
	int64_t number;
	double real;
	if (variable)
		return variable->value.kind == CPP_PLACE
		        ? read_place(reader, cursor, &variable->value)
		        : variable->value;
	if (c_integer(cursor, &number))
		return cpp_integer(number);
	if (c_real(cursor, &real))
		return cpp_blank(reader, clang_getCursorType(cursor), CPP_NONE);
	CXCursor declaration = clang_getCursorReferenced(cursor);
	if (clang_getCursorKind(declaration) == CXCursor_VarDecl && /* a global table */
	        cpp_declare(reader, declaration)) {
		variable = cpp_variable(reader, cursor);
		return variable->value;
	}
	return cpp_refused(reader, cursor, "its value is not known", numbers_accepted);
}

static struct cpp_value literal(struct cpp_reader *reader, CXCursor cursor)
{
	int64_t number;
	if (clang_getCursorKind(cursor) != CXCursor_FloatingLiteral && c_integer(cursor, &number))
		return cpp_integer(number);
	return cpp_blank(reader, clang_getCursorType(cursor), CPP_NONE);
}

struct cpp_value cpp_evaluate(struct cpp_reader *reader, CXCursor cursor)
{
	struct cpp_value result;
	if (!c_enter(&reader->c, cursor))
		return (struct cpp_value){ .kind = CPP_REFUSED };
	switch (clang_getCursorKind(cursor)) {
	case CXCursor_UnexposedExpr:
	case CXCursor_ParenExpr:
	case CXCursor_CStyleCastExpr:
	case CXCursor_CXXStaticCastExpr:
	case CXCursor_CXXFunctionalCastExpr:
		result = cpp_evaluate(reader, last_child(reader, cursor));
		if (result.kind == CPP_SCALAR)
			result = converted(reader, cursor, result);
		break;
	case CXCursor_IntegerLiteral:
	case CXCursor_FloatingLiteral:
	case CXCursor_CharacterLiteral:
	case CXCursor_CXXBoolLiteralExpr: result = literal(reader, cursor); break;
	case CXCursor_DeclRefExpr: result = reference(reader, cursor); break;
	case CXCursor_BinaryOperator:
	case CXCursor_CompoundAssignOperator: result = binary(reader, cursor); break;
	case CXCursor_UnaryOperator: result = unary(reader, cursor); break;
	case CXCursor_ConditionalOperator: result = conditional(reader, cursor); break;
	case CXCursor_ArraySubscriptExpr:
		result = cpp_place(reader, cursor);
		if (result.kind == CPP_PLACE)
			result = read_place(reader, cursor, &result);
		break;
	case CXCursor_CallExpr: result = cpp_call(reader, cursor); break;
	default: result = cpp_refused(reader, cursor, "it is not understood", numbers_accepted);
	}
	c_leave(&reader->c);
	return result;
}
