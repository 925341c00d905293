/* Scalar types of C as types of the IR, and conversions between values of them. */
#include "frontend/c_reader.h"
#include "ir/kernel_edit.h"

static struct c_type integer_type(struct c_reader *reader, CXType type, bool is_unsigned)
{
	long long bytes = clang_Type_getSizeOf(type);
	if (bytes < 1 || bytes > 8)
		return (struct c_type){ 0 };
	return (struct c_type){ type_integer(reader->module, (int)(8 * bytes)), is_unsigned };
}

struct c_type c_type_of(struct c_reader *reader, CXType type)
{
	struct module *module = reader->module;
	type = clang_getCanonicalType(type);
	switch (type.kind) {
	case CXType_Bool: return (struct c_type){ type_integer(module, 1), true };
	case CXType_Char_U:
	case CXType_UChar:
	case CXType_UShort:
	case CXType_UInt:
	case CXType_ULong:
	case CXType_ULongLong: return integer_type(reader, type, true);
	case CXType_Char_S:
	case CXType_SChar:
	case CXType_Short:
	case CXType_Int:
	case CXType_Long:
	case CXType_LongLong: return integer_type(reader, type, false);
	case CXType_Enum:
		return c_type_of(
		        reader, clang_getEnumDeclIntegerType(clang_getTypeDeclaration(type)));
	case CXType_Half:
	case CXType_Float16: return (struct c_type){ type_float(module, 16), false };
	case CXType_BFloat16: return (struct c_type){ type_bfloat(module), false };
	case CXType_Float: return (struct c_type){ type_float(module, 32), false };
	case CXType_Double: return (struct c_type){ type_float(module, 64), false };
	default: return (struct c_type){ 0 };
	}
}

bool c_is_array(CXType type)
{
	enum CXTypeKind kind = clang_getCanonicalType(type).kind;
	return kind == CXType_ConstantArray || kind == CXType_VariableArray ||
	        kind == CXType_IncompleteArray;
}

bool c_is_scalar(CXType type)
{
	enum CXTypeKind kind = clang_getCanonicalType(type).kind;
	return (kind >= CXType_Bool && kind <= CXType_LongDouble) || kind == CXType_Enum ||
	        kind == CXType_Half || kind == CXType_Float16 || kind == CXType_BFloat16;
}

/* Integers narrower than int are computed as int. */
static struct c_type promoted(struct c_reader *reader, struct c_type type)
{
	if (!type_is_real(type.type) && type.type->width < 32)
		return (struct c_type){ type_integer(reader->module, 32), false };
	return type;
}

struct c_type c_common_type(struct c_reader *reader, struct c_type left, struct c_type right)
{
	left = promoted(reader, left);
	right = promoted(reader, right);
	bool left_real = type_is_real(left.type);
	bool right_real = type_is_real(right.type);
	if (left_real != right_real)
		return left_real ? left : right;
	if (left.type->width != right.type->width)
		return left.type->width > right.type->width ? left : right;
	return left.is_unsigned ? left : right;
}

static int convert_op(struct c_reader *reader, enum op_code code, struct c_type to, int node)
{
	return body_op(reader->module, &reader->statement->body, code, to.type, node, 0, 0);
}

static const struct node *node_at(struct c_reader *reader, int node)
{
	return &reader->statement->body.node[node];
}

static bool is_op(const struct node *node, enum op_code code)
{
	return node->kind == NODE_OP && node->code == code;
}

static int real_constant(struct c_reader *reader, const struct type *type, double value)
{
	struct node node = { .kind = NODE_CONSTANT, .type = type, .real = value };
	return body_add(reader->module, &reader->statement->body, node);
}

/* Operations whose result is a number of f32 where their operands are. */
static bool stays_exact(const struct node *node)
{
	switch (node->kind == NODE_OP ? node->code : OP_NONE) {
	case OP_NEGF:
	case OP_ABSF:
	case OP_FLOOR:
	case OP_CEIL:
	case OP_ROUNDEVEN:
	case OP_MAXNUMF:
	case OP_MINNUMF:
	case OP_SELECT: return true;
	default: return false;
	}
}

/* Operations that an f64 result, rounded to f32, has as the f32 operation has it: f64 is wide
 * enough that rounding twice is rounding once. Elementary functions have an error of their own. */
static bool rounds_once(const struct node *node)
{
	switch (node->kind == NODE_OP ? node->code : OP_NONE) {
	case OP_ADDF:
	case OP_SUBF:
	case OP_MULF:
	case OP_DIVF:
	case OP_SQRT: return true;
	default: return node->kind == NODE_OP && node->code >= OP_EXP && node->code <= OP_POWF;
	}
}

static int exact_single(struct c_reader *reader, int at);

/* The same operation on f32; -1: an operand is no number of f32. */
static int single_op(struct c_reader *reader, struct node node)
{
	int select = node.code == OP_SELECT;
	for (int i = select; i < op_info[node.code].operands; i++)
		if ((node.argument[i] = exact_single(reader, node.argument[i])) < 0)
			return -1;
	node.type = type_float(reader->module, 32);
	return body_add(reader->module, &reader->statement->body, node);
}

/* The f32 node that has just the value of an f64 node; -1: there is none. */
static int exact_single(struct c_reader *reader, int at)
{
	struct node node = *node_at(reader, at);
	const struct type *single = type_float(reader->module, 32);
	if (is_op(&node, OP_EXTF) && node_at(reader, node.argument[0])->type == single)
		return node.argument[0];
	if (node.kind == NODE_CONSTANT && (double)(float)node.real == node.real)
		return real_constant(reader, single, node.real);
	return stays_exact(&node) ? single_op(reader, node) : -1;
}

/* f64 to f32 without f64 operations, where the bits are the same. */
static int narrowed(struct c_reader *reader, int at)
{
	struct node node = *node_at(reader, at);
	int exact = exact_single(reader, at);
	if (exact >= 0)
		return exact;
	if (node.kind == NODE_CONSTANT)
		return real_constant(
		        reader, type_float(reader->module, 32), (double)(float)node.real);
	bool whole = (is_op(&node, OP_SITOFP) || is_op(&node, OP_UITOFP)) &&
	        node_at(reader, node.argument[0])->type->width <= 32;
	if (whole)
		return body_op(reader->module, &reader->statement->body, node.code,
		        type_float(reader->module, 32), node.argument[0], 0, 0);
	return rounds_once(&node) ? single_op(reader, node) : -1;
}

static int convert_real(struct c_reader *reader, struct c_value value, struct c_type to)
{
	int from = value.type.type->width;
	if (from == 64 && to.type->width == 32) {
		int node = narrowed(reader, value.node);
		return node >= 0 ? node : convert_op(reader, OP_TRUNCF, to, value.node);
	}
	const struct node *node = node_at(reader, value.node);
	if (node->kind == NODE_CONSTANT && from < to.type->width)
		return real_constant(reader, to.type, node->real);
	return convert_op(reader, from < to.type->width ? OP_EXTF : OP_TRUNCF, to, value.node);
}

static int64_t wrapped(struct c_type type, int64_t value)
{
	int shift = 64 - type.type->width;
	uint64_t bits = (uint64_t)value << shift;
	return shift ? (int64_t)bits >> shift : value;
}

static int convert_whole(struct c_reader *reader, struct c_value value, struct c_type to)
{
	const struct node *node = node_at(reader, value.node);
	int from = value.type.type->width;
	if (node->kind == NODE_CONSTANT) {
		bool extend = value.type.is_unsigned && from < 64;
		int64_t number = node->integer;
		if (extend)
			number = (int64_t)((uint64_t)number & ((UINT64_C(1) << from) - 1));
		return body_integer(
		        reader->module, &reader->statement->body, to.type, wrapped(to, number));
	}
	if (from == to.type->width)
		return value.node;
	if (from > to.type->width)
		return convert_op(reader, OP_TRUNCI, to, value.node);
	return convert_op(reader, value.type.is_unsigned ? OP_EXTUI : OP_EXTSI, to, value.node);
}

static int whole_to_real(struct c_reader *reader, struct c_value value, struct c_type to)
{
	const struct node *node = node_at(reader, value.node);
	bool exact = node->kind == NODE_CONSTANT && !value.type.is_unsigned &&
	        node->integer <= (1 << 11) && node->integer >= -(1 << 11);
	if (exact)
		return real_constant(reader, to.type, (double)node->integer);
	return convert_op(reader, value.type.is_unsigned ? OP_UITOFP : OP_SITOFP, to, value.node);
}

static int real_to_whole(struct c_reader *reader, struct c_value value, struct c_type to)
{
	if (value.type.type->width == 64) {
		int single = exact_single(reader, value.node);
		value.node = single >= 0 ? single : value.node;
	}
	return convert_op(reader, to.is_unsigned ? OP_FPTOUI : OP_FPTOSI, to, value.node);
}

struct c_value c_convert(struct c_reader *reader, struct c_value value, struct c_type to)
{
	if (value.node < 0 || !to.type)
		return (struct c_value){ -1, to };
	struct c_value result = { value.node, to };
	bool from_real = type_is_real(value.type.type);
	bool to_real = type_is_real(to.type);
	if (value.type.type == to.type)
		return result;
	if (!to_real && to.type->width == 1)
		result.node = c_as_condition(reader, value);
	else if (from_real && to_real)
		result.node = convert_real(reader, value, to);
	else if (from_real)
		result.node = real_to_whole(reader, value, to);
	else if (to_real)
		result.node = whole_to_real(reader, value, to);
	else
		result.node = convert_whole(reader, value, to);
	return result;
}

int c_as_condition(struct c_reader *reader, struct c_value value)
{
	struct body *body = &reader->statement->body;
	const struct node *node = node_at(reader, value.node);
	const struct type *bit = type_integer(reader->module, 1);
	if (value.type.type->width == 1)
		return value.node;
	if (is_op(node, OP_EXTUI) && node_at(reader, node->argument[0])->type == bit)
		return node->argument[0];
	bool real = type_is_real(value.type.type);
	int zero = real ? real_constant(reader, value.type.type, 0)
	                : body_integer(reader->module, body, value.type.type, 0);
	struct node compare = { .kind = NODE_OP,
		.code = real ? OP_CMPF : OP_CMPI,
		.type = bit,
		.argument = { value.node, zero },
		.integer = real ? CMPF_UNE : CMPI_NE };
	return body_add(reader->module, body, compare);
}

struct c_value c_from_condition(struct c_reader *reader, int node, struct c_type type)
{
	struct c_value bit = { node, { type_integer(reader->module, 1), true } };
	return c_convert(reader, bit, type);
}
