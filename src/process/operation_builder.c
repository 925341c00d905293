/* Builds the operations of a process, where its innermost open loop is. */
#include "process/operation_builder.h"

static const struct type *bool_type(struct process *p)
{
	return type_integer(p->module, 1);
}

struct value *make_op(struct process *p, enum op_code code, const struct type *type, int operands,
        struct value *const *operand)
{
	return build(p->module, p->block, code, type, operands, operand);
}

/* Constants and arrays are made once, at the head of the process. */
static void at_head(struct process *p, struct op *op)
{
	if (p->entry->first)
		op_insert_before(p->entry->first, op);
	else
		op_append(p->entry, op);
}

static struct value *own_constant(
        struct process *p, const struct type *type, const struct attr *value)
{
	struct op *op = op_new(p->module, OP_CONSTANT, NOWHERE, 0, NULL, 1, &type);
	attr_set(p->module, op, KEY_VALUE, value);
	at_head(p, op);
	return op->result[0];
}

static struct value *make_constant(
        struct process *p, const char *key, const struct type *type, const struct attr *value)
{
	struct value *known = map_get(&p->constants, key);
	if (known)
		return known;
	struct value *constant = own_constant(p, type, value);
	map_set(&p->constants, key, constant);
	return constant;
}

struct value *make_index(struct process *p, int64_t number)
{
	const struct type *index = type_index(p->module);
	return make_constant(p, text_format(p->module->arena, "%lld", (long long)number), index,
	        attr_typed_integer(p->module, number, index));
}

struct value *make_unshared_index(struct process *p, int64_t number)
{
	const struct type *index = type_index(p->module);
	return own_constant(p, index, attr_typed_integer(p->module, number, index));
}

struct value *make_bool(struct process *p, bool value)
{
	return make_constant(
	        p, value ? "true" : "false", bool_type(p), attr_bool(p->module, value));
}

struct value *make_number(struct process *p, double number, const struct type *type)
{
	const struct type *scalar = type_scalar(type);
	const struct attr *value = type_is_real(scalar)
	        ? attr_float(p->module, number, scalar)
	        : attr_typed_integer(p->module, kernel_init_integer(number), scalar);
	struct value *constant = make_constant(
	        p, text_format(p->module->arena, "%a:%s", number, scalar->text), scalar, value);
	return type == scalar ? constant : make_op(p, OP_BROADCAST, type, 1, &constant);
}

struct value *make_integer(struct process *p, int64_t number, const struct type *type)
{
	const struct type *scalar = type_scalar(type);
	struct value *constant;
	if (kernel_init_integer((double)number) == number)
		return make_number(p, (double)number, type);
	constant = make_constant(p,
	        text_format(p->module->arena, "%lld:%s", (long long)number, scalar->text), scalar,
	        attr_typed_integer(p->module, number, scalar));
	return type == scalar ? constant : make_op(p, OP_BROADCAST, type, 1, &constant);
}

static struct value *make_comparison(struct process *p, enum integer_predicate predicate,
        struct value *index, struct value *other)
{
	struct value *operand[2] = { index, other };
	struct value *result = make_op(p, OP_CMPI, bool_type(p), 2, operand);
	attr_set(p->module, result->def, KEY_PREDICATE, attr_integer(p->module, predicate));
	return result;
}

struct value *make_compare(
        struct process *p, enum integer_predicate predicate, struct value *index, int64_t number)
{
	return make_comparison(p, predicate, index, make_index(p, number));
}

struct value *make_equal_values(struct process *p, struct value *index, struct value *other)
{
	return make_comparison(p, CMPI_EQ, index, other);
}

struct value *make_not_equal(struct process *p, struct value *index, struct value *other)
{
	return make_comparison(p, CMPI_NE, index, other);
}

struct value *make_below(struct process *p, struct value *index, struct value *other)
{
	return make_comparison(p, CMPI_SLT, index, other);
}

struct value *make_equal(struct process *p, struct value *index, int64_t number)
{
	return make_compare(p, CMPI_EQ, index, number);
}

struct value *make_and(struct process *p, struct value *left, struct value *right)
{
	if (!left || !right)
		return left ? left : right;
	struct value *operand[2] = { left, right };
	return make_op(p, OP_ANDI, bool_type(p), 2, operand);
}

struct value *make_condition(struct process *p, struct value *condition)
{
	return condition ? condition : make_bool(p, true);
}

struct value *make_select(
        struct process *p, struct value *when, struct value *yes, struct value *no)
{
	struct value *operand[3] = { when, yes, no };
	return make_op(p, OP_SELECT, yes->type, 3, operand);
}

struct value *make_address(struct process *p, int dims, struct value *const *counter,
        const int64_t *stride, int64_t offset)
{
	struct value **used = ARENA_ARRAY(p->module->arena, struct value *, dims + 1);
	int64_t *row = affine_rows(p->module->arena, dims, 1);
	int count = 0;
	for (int i = 0; i < dims; i++) {
		if (!counter[i] || !stride[i])
			continue;
		row[count] = stride[i];
		used[count++] = counter[i];
	}
	row[count] = offset;
	if (!count)
		return make_index(p, offset);
	if (count == 1 && row[0] == 1 && !offset)
		return used[0];
	struct value *address = make_op(p, OP_APPLY, type_index(p->module), count, used);
	attr_set(p->module, address->def, KEY_MAP,
	        attr_map(p->module,
	                (struct affine_map){ .dims = count, .results = 1, .coefficient = row }));
	return address;
}

struct value *make_divided(struct process *p, enum op_code code, struct value *number, int64_t by)
{
	struct value *operand[2] = { number, make_index(p, by) };
	return make_op(p, code, type_index(p->module), 2, operand);
}

struct value *make_clamped(struct process *p, struct value *number, int64_t limit)
{
	const struct type *index = type_index(p->module);
	if (number->type != index)
		number = make_op(p, OP_INDEX_CAST, index, 1, &number);
	struct value *low[2] = { number, make_index(p, 0) };
	struct value *high[2] = { make_op(p, OP_MAXSI, index, 2, low) };
	high[1] = make_index(p, limit - 1);
	return make_op(p, OP_MINSI, index, 2, high);
}

struct value *make_pop(struct process *p, struct value *when, struct value *fifo)
{
	struct value *operand[2] = { make_condition(p, when), fifo };
	return make_op(p, OP_POP, fifo->type->element, 2, operand);
}

void make_push(struct process *p, struct value *when, struct value *word, struct value *fifo)
{
	struct value *operand[3] = { make_condition(p, when), word, fifo };
	op_append(p->block, op_new(p->module, OP_PUSH, NOWHERE, 3, operand, 0, NULL));
}

struct value *make_array(struct process *p, const char *name, int64_t size,
        const struct type *element, int64_t partition)
{
	return make_shaped_array(
	        p, name, type_shaped(p->module, TYPE_MEMREF, 1, &size, element), partition);
}

struct value *make_shaped_array(
        struct process *p, const char *name, const struct type *type, int64_t partition)
{
	struct op *array = op_new(p->module, OP_ALLOCA, NOWHERE, 0, NULL, 1, &type);
	at_head(p, array);
	attr_set(p->module, array, KEY_STREAM_NAME, attr_string(p->module, name));
	if (partition > 1)
		attr_set(
		        p->module, array, KEY_STREAM_PARTITION, attr_integer(p->module, partition));
	return array->result[0];
}

struct value *make_load(struct process *p, struct value *array, struct value *index)
{
	struct value *operand[2] = { array, index };
	return make_op(p, OP_MEMREF_LOAD, array->type->element, 2, operand);
}

void make_store(struct process *p, struct value *word, struct value *array, struct value *index)
{
	struct value *operand[3] = { word, array, index };
	op_append(p->block, op_new(p->module, OP_MEMREF_STORE, NOWHERE, 3, operand, 0, NULL));
}

void make_write(struct process *p, struct value *when, struct value *word, struct value *port,
        struct value *address)
{
	struct value *operand[4] = { make_condition(p, when), word, port, address };
	op_append(p->block, op_new(p->module, OP_WRITE, NOWHERE, 4, operand, 0, NULL));
}
