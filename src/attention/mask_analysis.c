#include "attention/mask_analysis.h"
#include "ir/kernel_edit.h"
#include <string.h>

static const struct abstract_value nothing = { KNOWN_NOTHING, 0, NULL },
                                   changed = { KNOWN_VARIES, 0, NULL },
                                   low = { KNOWN_MINUS_INFINITY, 0, NULL },
                                   zero = { KNOWN_ZERO, 0, NULL };

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
	const bool holds[6] = { a == b, a != b, a<b, a <= b, a> b, a >= b };
	return predicate < 6 ? integer_of(holds[predicate]) : nothing;
}

static struct abstract_value of_integers(
        const struct node *node, struct abstract_value a, struct abstract_value b)
{
	bool same = a.base == b.base;
	switch (node->code) {
	case OP_ADDI:
		return a.base && b.base ? nothing
		                        : (struct abstract_value){ KNOWN_INTEGER,
			                          a.integer + b.integer, a.base ? a.base : b.base };
	case OP_SUBI:
		return same ? integer_of(a.integer - b.integer)
		        : b.base
		        ? nothing
		        : (struct abstract_value){ KNOWN_INTEGER, a.integer - b.integer, a.base };
	case OP_MULI: return a.base || b.base ? nothing : integer_of(a.integer * b.integer);
	case OP_CMPI: return same ? compare(node->integer, a.integer, b.integer) : nothing;
	case OP_ANDI: return same && !a.base ? integer_of(a.integer & b.integer) : nothing;
	case OP_ORI: return same && !a.base ? integer_of(a.integer | b.integer) : nothing;
	default: return nothing;
	}
}

/* A truth value that decides alone. */
static bool decides(const struct node *node, struct abstract_value a)
{
	return a.known == KNOWN_INTEGER && !a.base &&
	        (node->code == OP_ANDI ? !a.integer : node->code == OP_ORI && a.integer);
}

static bool preserves_value(enum op_code code)
{
	return code == OP_EXTF || code == OP_EXTSI || code == OP_INDEX_CAST;
}

/* Numbers are taken as finite, where they are not known to be infinite. */
static struct abstract_value of_reals(
        const struct node *node, struct abstract_value a, struct abstract_value b)
{
	enum op_code code = node->code;
	bool adds = code == OP_ADDF || code == OP_ADDI,
	     multiplies = code == OP_MULF || code == OP_MULI,
	     largest = code == OP_MAXIMUMF || code == OP_MAXNUMF;
	if (preserves_value(code) ||
	        (a.known == KNOWN_ZERO &&
	                (code == OP_SITOFP || code == OP_ROUND_SATURATE || code == OP_TRUNCF)))
		return a;
	if (code == OP_EXP && a.known == KNOWN_MINUS_INFINITY)
		return zero;
	if ((adds && both(a, b, KNOWN_ZERO)) ||
	        (multiplies && either(a, b, KNOWN_ZERO) && !either(a, b, KNOWN_MINUS_INFINITY)) ||
	        (code == OP_DIVF && a.known == KNOWN_ZERO && b.known == KNOWN_NOTHING))
		return zero;
	if ((code == OP_ADDF && either(a, b, KNOWN_MINUS_INFINITY)) ||
	        (code == OP_SUBF && a.known == KNOWN_MINUS_INFINITY && b.known == KNOWN_NOTHING))
		return low;
	if (either(a, b, KNOWN_ACCUMULATOR) &&
	        ((adds && either(a, b, KNOWN_ZERO)) ||
	                (largest && either(a, b, KNOWN_MINUS_INFINITY)) ||
	                (code == OP_ABSMAX && either(a, b, KNOWN_ZERO))))
		return (struct abstract_value){ .known = KNOWN_ACCUMULATOR };
	return either(a, b, KNOWN_VARIES) ? changed : nothing;
}

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
	return real == 0 ? zero : real < 0 && real * 0.5 == real ? low : nothing;
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

/* Whole numbers of a byte, and floats. */
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

/* The point of the loops at which a kernel makes this element; false: no or several such points. */
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

static bool is_before(const struct op *op, int operand)
{
	for (int j = 1; j < operand; j++)
		if (op->operand[j] == op->operand[operand])
			return true;
	return false;
}

/* What holds in every layer. */
static struct abstract_value picked_element(
        struct arena *arena, const struct op *op, int64_t address)
{
	struct abstract_value all = known_of_element(arena, op->operand[1], address);
	for (int j = 2; j < op->operands; j++) {
		struct abstract_value one = all;
		if (!is_before(op, j))
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
	if (!op)
		return value->type->kind == TYPE_TENSOR && type_elements(value->type) == 1 &&
		                scalar->kind == TYPE_INTEGER
		        ? (struct abstract_value){ KNOWN_INTEGER, 0, value }
		        : nothing;
	if (op->code == OP_CONSTANT)
		return dense_element(op, address);
	if (op->code == OP_LAYER_SELECT)
		return picked_element(arena, op, address);
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
