/* Values of HLS C++ while it is read: affine integers, and the operations that give the rest. */
#include "frontend/cpp_internal.h"
#include <inttypes.h>

struct cpp_form cpp_constant(int64_t value)
{
	return (struct cpp_form){ .known = true, .constant = value };
}

bool cpp_is_constant(const struct cpp_form *form)
{
	for (int i = 0; i < CPP_DEPTH; i++)
		if (form->coefficient[i])
			return false;
	return form->known;
}

/* Arithmetic that wraps: a form is about subscripts, which are small where they mean something. */
static int64_t wrapped(int64_t left, int64_t right, int64_t factor)
{
	return (int64_t)((uint64_t)left + (uint64_t)right * (uint64_t)factor);
}

struct cpp_form cpp_add(struct cpp_form left, struct cpp_form right, int64_t factor)
{
	left.known = left.known && right.known;
	left.constant = wrapped(left.constant, right.constant, factor);
	for (int i = 0; i < CPP_DEPTH; i++)
		left.coefficient[i] = wrapped(left.coefficient[i], right.coefficient[i], factor);
	return left;
}

struct cpp_value cpp_integer(int64_t value)
{
	return (struct cpp_value){
		.kind = CPP_SCALAR, .form = cpp_constant(value), .operation = CPP_NONE, .bits = 32
	};
}

struct cpp_value cpp_unknown(struct cpp_reader *reader, int operation, int bits, bool real)
{
	(void)reader;
	return (struct cpp_value){
		.kind = CPP_SCALAR, .operation = operation, .bits = bits, .real = real
	};
}

int cpp_add_operation(struct cpp_reader *reader, CXCursor cursor, struct cpp_operation operation)
{
	struct cpp_design *design = reader->design;
	if (design->operations.count >= CPP_OPERATIONS_MOST)
		return CPP_NONE;
	operation.body = reader->body;
	operation.line = c_place(&reader->c, cursor).line;
	VEC_PUSH(reader->c.arena, &design->operations, operation);
	int index = (int)design->operations.count - 1;
	cpp_add_item(reader, reader->body, CPP_OPERATION, index);
	return index;
}

/* Equal operations of a body are one: a key of what it computes. */
static const char *key_of(
        struct cpp_reader *reader, enum op_code code, const struct cpp_value *operand, int operands)
{
	struct text key = text_new(reader->c.arena);
	text_add(&key, "%d compute %d", reader->body, (int)code);
	for (int i = 0; i < operands; i++) {
		text_add(&key, " %d", operand[i].operation);
		if (operand[i].operation != CPP_NONE)
			continue;
		text_add(&key, " c%" PRId64, operand[i].form.constant);
		for (int d = 0; operand[i].form.known && d < CPP_DEPTH; d++)
			text_add(&key, ",%" PRId64, operand[i].form.coefficient[d]);
	}
	return key.data;
}

static bool all_constant(const struct cpp_value *operand, int operands)
{
	for (int i = 0; i < operands; i++)
		if (operand[i].operation != CPP_NONE)
			return false;
	return true;
}

struct cpp_value cpp_compute(struct cpp_reader *reader, CXCursor cursor, enum op_code code,
        const struct cpp_value *operand, int operands)
{
	bool real = false;
	bool wide = false;
	int bits = 1;
	for (int i = 0; i < operands; i++) {
		real |= operand[i].real;
		wide |= operand[i].is_double && operand[i].operation != CPP_NONE;
		bits = operand[i].bits > bits ? operand[i].bits : bits;
	}
	struct cpp_value value = cpp_unknown(reader, CPP_NONE, bits, real);
	value.is_double = wide;
	if (all_constant(operand, operands))
		return value;
	const char *key = key_of(reader, code, operand, operands);
	const int *found = map_get(&reader->elements, key);
	if (found) {
		value.operation = *found;
		return value;
	}
	int *sources = ARENA_ARRAY(reader->c.arena, int, operands);
	for (int i = 0; i < operands; i++)
		sources[i] = operand[i].operation;
	struct cpp_operation operation = { .kind = CPP_COMPUTE,
		.code = code,
		.is_double = wide,
		.called = reader->called,
		.bits = bits,
		.operands = operands,
		.operand = sources };
	value.operation = cpp_add_operation(reader, cursor, operation);
	if (operands > 1) /* the number that an outer body gives is not told by its own */
		map_set(&reader->elements, key,
		        arena_copy(reader->c.arena, &value.operation, sizeof value.operation));
	return value;
}

/* --- affine arithmetic --- */

static bool divides(const struct cpp_form *form, int64_t divisor)
{
	for (int i = 0; i < CPP_DEPTH; i++)
		if (form->coefficient[i] % divisor)
			return false;
	return form->known;
}

/* Quotient by a constant that divides all coefficients. */
static struct cpp_form quotient(struct cpp_form form, int64_t divisor)
{
	form.constant /= divisor;
	for (int i = 0; i < CPP_DEPTH; i++)
		form.coefficient[i] /= divisor;
	return form;
}

/* The difference of two forms of which the sign is known, as the counters are not negative. */
static int sign_of(const struct cpp_reader *reader, const struct cpp_form *form)
{
	int64_t low = form->constant;
	int64_t high = form->constant;
	for (int i = 0; i < CPP_DEPTH; i++) {
		int64_t most = i < reader->depth ? reader->trips[i] - 1 : 0;
		low += form->coefficient[i] < 0 ? form->coefficient[i] * most : 0;
		high += form->coefficient[i] > 0 ? form->coefficient[i] * most : 0;
	}
	if (low > 0)
		return 1;
	if (high < 0)
		return -1;
	return low == 0 && high == 0 ? 0 : 2;
}

/* -1: not known */
static int truth_of(bool holds, bool fails)
{
	if (holds)
		return 1;
	return fails ? 0 : -1;
}

static int compare_forms(const struct cpp_reader *reader, enum CXBinaryOperatorKind which,
        struct cpp_form difference)
{
	int sign = sign_of(reader, &difference);
	struct cpp_form next = difference;
	next.constant++; /* left <= right, if left < right + 1 */
	int below = sign_of(reader, &next);
	next.constant -= 2;
	int above = sign_of(reader, &next);
	bool less = sign == -1;
	bool more = sign == 1;
	bool no_more = sign == 0 || less || above == -1;
	bool no_less = sign == 0 || more || below == 1;
	switch (which) {
	case CXBinaryOperator_LT: return truth_of(less, no_less);
	case CXBinaryOperator_GT: return truth_of(more, no_more);
	case CXBinaryOperator_LE: return truth_of(no_more, more);
	case CXBinaryOperator_GE: return truth_of(no_less, less);
	case CXBinaryOperator_EQ: return truth_of(sign == 0, less || more);
	case CXBinaryOperator_NE: return truth_of(less || more, sign == 0);
	default: return -1;
	}
}

/* Of integers whose values are known as forms; false: the result is none. */
static bool fold(struct cpp_reader *reader, enum CXBinaryOperatorKind which, struct cpp_form left,
        struct cpp_form right, struct cpp_form *result)
{
	bool constant = cpp_is_constant(&right);
	int truth = compare_forms(reader, which, cpp_add(left, right, -1));
	if (truth >= 0) {
		*result = cpp_constant(truth);
		return true;
	}
	switch (which) {
	case CXBinaryOperator_Add: *result = cpp_add(left, right, 1); return true;
	case CXBinaryOperator_Sub: *result = cpp_add(left, right, -1); return true;
	case CXBinaryOperator_Mul:
		if (!constant && !cpp_is_constant(&left))
			return false;
		*result = constant ? cpp_add(cpp_constant(0), left, right.constant)
		                   : cpp_add(cpp_constant(0), right, left.constant);
		return true;
	case CXBinaryOperator_Div:
		if (!constant || right.constant <= 0 || !divides(&left, right.constant))
			return false;
		*result = quotient(left, right.constant);
		return true;
	case CXBinaryOperator_Rem:
		if (!constant || right.constant <= 0 || !divides(&left, right.constant))
			return false;
		*result = cpp_constant(left.constant % right.constant);
		return true;
	case CXBinaryOperator_Shl:
		if (!constant || right.constant < 0 || right.constant > 30)
			return false;
		*result = cpp_add(cpp_constant(0), left, INT64_C(1) << right.constant);
		return true;
	case CXBinaryOperator_Shr:
		if (!constant || right.constant < 0 || right.constant > 30 ||
		        !divides(&left, INT64_C(1) << right.constant))
			return false;
		*result = quotient(left, INT64_C(1) << right.constant);
		return true;
	case CXBinaryOperator_LAnd:
	case CXBinaryOperator_LOr:
		if (!constant || !cpp_is_constant(&left))
			return false;
		*result = cpp_constant(which == CXBinaryOperator_LAnd
		                ? left.constant && right.constant
		                : left.constant || right.constant);
		return true;
	default: return false;
	}
}

static enum op_code code_of(enum CXBinaryOperatorKind which, bool real)
{
	switch (which) {
	case CXBinaryOperator_Add: return real ? OP_ADDF : OP_ADDI;
	case CXBinaryOperator_Sub: return real ? OP_SUBF : OP_SUBI;
	case CXBinaryOperator_Mul: return real ? OP_MULF : OP_MULI;
	case CXBinaryOperator_Div: return real ? OP_DIVF : OP_DIVSI;
	case CXBinaryOperator_Rem: return OP_REMSI;
	case CXBinaryOperator_Shl: return OP_SHLI;
	case CXBinaryOperator_Shr: return OP_SHRSI;
	case CXBinaryOperator_And:
	case CXBinaryOperator_LAnd: return OP_ANDI;
	case CXBinaryOperator_Or:
	case CXBinaryOperator_LOr: return OP_ORI;
	case CXBinaryOperator_Xor: return OP_XORI;
	default: return real ? OP_CMPF : OP_CMPI;
	}
}

static bool is_comparison(enum CXBinaryOperatorKind which)
{
	return which >= CXBinaryOperator_LT && which <= CXBinaryOperator_NE;
}

static struct cpp_value lane_of(const struct cpp_value *value, int lane)
{
	return value->kind == CPP_LANES ? value->lane[lane] : *value;
}

static struct cpp_value by_lanes(struct cpp_reader *reader, CXCursor cursor,
        enum CXBinaryOperatorKind which, const struct cpp_value *left,
        const struct cpp_value *right)
{
	struct cpp_value result = left->kind == CPP_LANES ? *left : *right;
	result.lane = ARENA_ARRAY(reader->c.arena, struct cpp_value, result.lanes);
	for (int i = 0; i < result.lanes; i++) {
		result.lane[i] =
		        cpp_binary(reader, cursor, which, lane_of(left, i), lane_of(right, i));
		if (result.lane[i].kind == CPP_REFUSED)
			return result.lane[i];
	}
	return result;
}

/* An integer that meets a float becomes one. */
static struct cpp_value as_real(struct cpp_reader *reader, CXCursor cursor, struct cpp_value value)
{
	if (value.real || value.operation == CPP_NONE) {
		value.real = true;
		return value;
	}
	value = cpp_compute(reader, cursor, OP_SITOFP, &value, 1);
	value.real = true;
	return value;
}

struct cpp_value cpp_binary(struct cpp_reader *reader, CXCursor cursor,
        enum CXBinaryOperatorKind which, struct cpp_value left, struct cpp_value right)
{
	if (left.kind == CPP_REFUSED || right.kind == CPP_REFUSED)
		return (struct cpp_value){ .kind = CPP_REFUSED };
	if (left.kind == CPP_LANES || right.kind == CPP_LANES)
		return by_lanes(reader, cursor, which, &left, &right);
	if (left.kind != CPP_SCALAR || right.kind != CPP_SCALAR) {
		c_refuse(&reader->c, cursor, "it is no operation on numbers",
		        "accepted are numbers, and vectors of them");
		return (struct cpp_value){ .kind = CPP_REFUSED };
	}
	bool real = left.real || right.real;
	struct cpp_form folded;
	if (!real && left.form.known && right.form.known &&
	        fold(reader, which, left.form, right.form, &folded)) {
		left.form = folded;
		left.operation = CPP_NONE;
		return left;
	}
	if (real) {
		left = as_real(reader, cursor, left);
		right = as_real(reader, cursor, right);
	}
	int bits = left.bits > right.bits ? left.bits : right.bits;
	struct cpp_value operand[2] = { left, right };
	struct cpp_value value = cpp_compute(reader, cursor, code_of(which, real), operand, 2);
	value.bits = bits;
	if (is_comparison(which)) {
		value.real = value.is_double = false;
		value.bits = 1;
	}
	return value;
}

struct cpp_value cpp_select(struct cpp_reader *reader, CXCursor cursor, struct cpp_value condition,
        struct cpp_value yes, struct cpp_value no)
{
	if (yes.kind == CPP_LANES && no.kind == CPP_LANES && yes.lanes == no.lanes) {
		struct cpp_value *lane = ARENA_ARRAY(reader->c.arena, struct cpp_value, yes.lanes);
		for (int i = 0; i < yes.lanes; i++)
			lane[i] = cpp_select(reader, cursor, condition, yes.lane[i], no.lane[i]);
		yes.lane = lane;
		return yes;
	}
	if (yes.kind != CPP_SCALAR || no.kind != CPP_SCALAR)
		return yes;
	if (yes.operation == no.operation && yes.operation != CPP_NONE)
		return yes;
	struct cpp_value operand[3] = { condition, yes, no };
	struct cpp_value value = cpp_compute(reader, cursor, OP_SELECT, operand, 3);
	value.real = yes.real || no.real;
	value.bits = yes.bits > no.bits ? yes.bits : no.bits;
	value.is_double = yes.is_double || no.is_double;
	return value;
}
