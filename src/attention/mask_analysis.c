/* Abstract evaluation of kernel bodies and tensor elements: integers are computed, of reals only
 * zero, minus infinity and "may change" are told apart. */
#include "attention/mask_analysis.h"
#include "ir/kernel_edit.h"
#include <string.h>

static const struct abstract_value nothing = { KNOWN_NOTHING, 0, NULL };
static const struct abstract_value changed = { KNOWN_VARIES, 0, NULL };
static const struct abstract_value low = { KNOWN_MINUS_INFINITY, 0, NULL };
static const struct abstract_value zero = { KNOWN_ZERO, 0, NULL };

static struct abstract_value integer_of(int64_t integer)
{
	return (struct abstract_value){ KNOWN_INTEGER, integer, NULL };
}

bool access_inside(const struct access *access, const int64_t *counter)
{
	for (int g = 0; g < access->guards; g++)
		if (counter[access->guard[g].loop] < access->guard[g].low ||
		        counter[access->guard[g].loop] >= access->guard[g].high)
			return false;
	return true;
}

int64_t access_address(const struct access *access, int loops, const int64_t *counter)
{
	int64_t address = access->offset;
	for (int l = 0; l < loops; l++)
		address += access->stride[l] * counter[l];
	return address;
}

static bool either(struct abstract_value a, struct abstract_value b, enum known known)
{
	return a.known == known || b.known == known;
}

static bool both(struct abstract_value a, struct abstract_value b, enum known known)
{
	return a.known == known && b.known == known;
}

static struct abstract_value compare(int64_t predicate, int64_t a, int64_t b)
{
	switch (predicate) {
	case CMPI_EQ: return integer_of(a == b);
	case CMPI_NE: return integer_of(a != b);
	case CMPI_SLT: return integer_of(a < b);
	case CMPI_SLE: return integer_of(a <= b);
	case CMPI_SGT: return integer_of(a > b);
	case CMPI_SGE: return integer_of(a >= b);
	default: return nothing;
	}
}

static struct abstract_value integer_from(const struct value *base, int64_t integer)
{
	return (struct abstract_value){ KNOWN_INTEGER, integer, base };
}

/* An operation on two integers, each relative to its base. */
static struct abstract_value of_integers(
        const struct node *node, struct abstract_value a, struct abstract_value b)
{
	bool same = a.base == b.base;
	switch (node->code) {
	case OP_ADDI:
		if (a.base && b.base)
			return nothing;
		return integer_from(a.base ? a.base : b.base, a.integer + b.integer);
	case OP_SUBI:
		if (same)
			return integer_of(a.integer - b.integer);
		return b.base ? nothing : integer_from(a.base, a.integer - b.integer);
	case OP_MULI: return a.base || b.base ? nothing : integer_of(a.integer * b.integer);
	case OP_CMPI: return same ? compare(node->integer, a.integer, b.integer) : nothing;
	case OP_ANDI: return same && !a.base ? integer_of(a.integer & b.integer) : nothing;
	case OP_ORI: return same && !a.base ? integer_of(a.integer | b.integer) : nothing;
	default: return nothing;
	}
}

/* Is this operand enough to know the result: 0 of an and, 1 of an or? */
static bool decides(const struct node *node, struct abstract_value a)
{
	if (a.known != KNOWN_INTEGER || a.base)
		return false;
	if (node->code == OP_ANDI)
		return !a.integer;
	return node->code == OP_ORI && a.integer;
}

static bool preserves_value(enum op_code code)
{
	return code == OP_EXTF || code == OP_EXTSI || code == OP_INDEX_CAST;
}

/* Is the result 0?  Unknown numbers are taken as finite. */
static bool gives_zero(enum op_code code, struct abstract_value a, struct abstract_value b)
{
	switch (code) {
	case OP_SITOFP:
	case OP_ROUND_SATURATE:
	case OP_TRUNCF: return a.known == KNOWN_ZERO;
	case OP_EXP: return a.known == KNOWN_MINUS_INFINITY;
	case OP_ADDF:
	case OP_ADDI: return both(a, b, KNOWN_ZERO);
	case OP_MULF:
	case OP_MULI: return either(a, b, KNOWN_ZERO) && !either(a, b, KNOWN_MINUS_INFINITY);
	case OP_DIVF: return a.known == KNOWN_ZERO && b.known == KNOWN_NOTHING;
	default: return false;
	}
}

/* Is the result minus infinity?  Unknown numbers are taken as finite. */
static bool gives_minus_infinity(
        enum op_code code, struct abstract_value a, struct abstract_value b)
{
	if (code == OP_ADDF)
		return either(a, b, KNOWN_MINUS_INFINITY);
	return code == OP_SUBF && a.known == KNOWN_MINUS_INFINITY && b.known == KNOWN_NOTHING;
}

/* Is the result the accumulator, as the other operand is neutral? */
static bool gives_accumulator(enum op_code code, struct abstract_value a, struct abstract_value b)
{
	if (!either(a, b, KNOWN_ACCUMULATOR))
		return false;
	if (code == OP_MAXIMUMF || code == OP_MAXNUMF)
		return either(a, b, KNOWN_MINUS_INFINITY);
	return (code == OP_ADDF || code == OP_ADDI || code == OP_ABSMAX) &&
	        either(a, b, KNOWN_ZERO);
}

static struct abstract_value of_reals(
        const struct node *node, struct abstract_value a, struct abstract_value b)
{
	enum op_code code = node->code;
	if (preserves_value(code))
		return a;
	if (gives_zero(code, a, b))
		return zero;
	if (gives_minus_infinity(code, a, b))
		return low;
	if (gives_accumulator(code, a, b))
		return (struct abstract_value){ .known = KNOWN_ACCUMULATOR };
	return either(a, b, KNOWN_VARIES) ? changed : nothing;
}

/* A select. */
static struct abstract_value chosen(
        struct abstract_value when, struct abstract_value yes, struct abstract_value no)
{
	if (when.known == KNOWN_INTEGER && !when.base)
		return when.integer ? yes : no;
	if (when.known == KNOWN_VARIES || either(yes, no, KNOWN_VARIES))
		return changed;
	return yes.known == no.known && yes.known != KNOWN_INTEGER ? yes : nothing;
}

static struct abstract_value real_of(double real)
{
	if (real == 0)
		return zero;
	bool infinite = real * 0.5 == real;
	return real < 0 && infinite ? low : nothing;
}

static struct abstract_value node_number(const struct kernel *kernel, const struct node *node,
        const struct abstract_value *known, const struct kernel_point *kernel_point)
{
	struct abstract_value argument[3] = { nothing, nothing, nothing };
	if (node->kind == NODE_OPERAND)
		return kernel_point->operand[node->integer];
	if (node->kind == NODE_ACCUMULATOR)
		return kernel_point->sum;
	if (node->kind == NODE_CONSTANT)
		return type_is_real(node->type) ? real_of(node->real) : integer_of(node->integer);
	if (node->code == OP_INDEX)
		return integer_of(kernel_point->counter[node->integer]);
	if (node->code == OP_ACTIVE)
		return integer_of(
		        access_inside(&kernel->operand[node->integer], kernel_point->counter));
	for (int i = 0; i < body_arguments(node); i++)
		argument[i] = known[node->argument[i]];
	if (node->code == OP_SELECT)
		return chosen(argument[0], argument[1], argument[2]);
	if (decides(node, argument[0]) || decides(node, argument[1]))
		return integer_of(node->code == OP_ORI);
	if (both(argument[0], argument[1], KNOWN_INTEGER))
		return of_integers(node, argument[0], argument[1]);
	return of_reals(node, argument[0], argument[1]);
}

struct abstract_value known_of_body(struct arena *arena, const struct kernel *kernel,
        const struct body *body, const struct kernel_point *kernel_point)
{
	struct abstract_value *known = ARENA_ARRAY(arena, struct abstract_value, body->count + 1);
	for (int n = 0; n <= body->result; n++)
		known[n] = node_number(kernel, &body->node[n], known, kernel_point);
	return known[body->result];
}

/* ---- elements of tensors */

/* An element of a constant of i1, i8 or f32. */
static struct abstract_value dense_element(const struct op *op, int64_t address)
{
	const struct attr *value = attr_get(op, KEY_VALUE);
	const struct type *scalar = type_scalar(op->result[0]->type);
	if (!value || value->kind != ATTR_DENSE)
		return nothing;
	const char *data = value->data;
	int64_t element = value->splat ? 0 : address;
	float real;
	if (scalar->kind == TYPE_INTEGER && (scalar->width == 1 || scalar->width == 8))
		return integer_of(data[element]);
	if (scalar->kind != TYPE_FLOAT || scalar->width != 32)
		return nothing;
	memcpy(&real, data + element * (int64_t)sizeof real, sizeof real);
	return real_of(real);
}

/* The only point of the loops at which a kernel stores this element; false: there is none, or there
 * are several. */
static bool point_of(const struct kernel *kernel, int64_t address, int64_t *counter)
{
	int64_t rest = address - kernel->result.offset;
	int64_t above = INT64_MAX;
	memset(counter, 0, sizeof *counter * (size_t)kernel->loops);
	for (int done = 0; done < kernel->loops; done++) {
		int next = -1;
		for (int l = 0; l < kernel->loops; l++)
			if (kernel->loop[l].extent > 1 && kernel->result.stride[l] < above &&
			        (next < 0 ||
			                kernel->result.stride[l] > kernel->result.stride[next]))
				next = l;
		if (next < 0)
			break;
		above = kernel->result.stride[next];
		if (above < 1)
			return false;
		counter[next] = rest / above;
		rest %= above;
		if (counter[next] >= kernel->loop[next].extent)
			return false;
	}
	return !rest;
}

/* Is the operand the same as an earlier one of the select? */
static bool is_repeated(const struct op *op, int operand)
{
	for (int j = 1; j < operand; j++)
		if (op->operand[j] == op->operand[operand])
			return true;
	return false;
}

/* An element that is the same in all layers. */
static struct abstract_value selected_element(
        struct arena *arena, const struct op *op, int64_t address)
{
	struct abstract_value all = known_of_element(arena, op->operand[1], address);
	for (int j = 2; j < op->operands; j++) {
		struct abstract_value one = all;
		if (!is_repeated(op, j))
			one = known_of_element(arena, op->operand[j], address);
		if (one.known != all.known || one.integer != all.integer || one.base != all.base)
			return nothing;
	}
	return all;
}

struct abstract_value known_of_element(
        struct arena *arena, const struct value *value, int64_t address)
{
	const struct op *op = value->def;
	const struct type *scalar = type_scalar(value->type);
	if (!op) {
		bool is_number = value->type->kind == TYPE_TENSOR &&
		        type_elements(value->type) == 1 && scalar->kind == TYPE_INTEGER;
		return is_number ? integer_from(value, 0) : nothing;
	}
	if (op->code == OP_CONSTANT)
		return dense_element(op, address);
	if (op->code == OP_LAYER_SELECT)
		return selected_element(arena, op, address);
	if (op->code != OP_KERNEL || kernel_has_reduction(op->kernel) || op->kernel->result.guards)
		return nothing;
	const struct kernel *kernel = op->kernel;
	int64_t *counter = ARENA_ARRAY(arena, int64_t, kernel->loops + 1);
	struct abstract_value *operand =
	        ARENA_ARRAY(arena, struct abstract_value, op->operands + 1);
	if (!point_of(kernel, address, counter))
		return nothing;
	for (int j = 0; j < op->operands; j++) {
		const struct access *access = &kernel->operand[j];
		operand[j] = nothing;
		if (access->index_operand < 0 && access_inside(access, counter))
			operand[j] = known_of_element(arena, op->operand[j],
			        access_address(access, kernel->loops, counter));
	}
	struct kernel_point kernel_point = {
		.counter = counter, .operand = operand, .sum = nothing
	};
	return known_of_body(arena, kernel, &kernel->update, &kernel_point);
}
