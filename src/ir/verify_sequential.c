/* Rules of sequential nests: arrays for operands and results, and a body of loops that uses nothing
 * else. */
#include "ir/verify.h"

static int64_t elements_of(const struct type *type)
{
	return type->kind == TYPE_ITENSOR ? itensor_tiles(type->itensor) * stream_lanes(type)
	                                  : type_elements(type);
}

static bool holds(const struct type *array, const struct type *type)
{
	bool shaped = type->kind == TYPE_TENSOR || type->kind == TYPE_ITENSOR;
	return shaped && type_scalar(type) == array->element && elements_of(type) == array->shape[0];
}

static bool is_array(const struct type *type)
{
	return type->kind == TYPE_MEMREF && type->rank == 1 && type->shape[0] > 0 &&
	        type->element->kind != TYPE_VECTOR;
}

static void check_arrays(struct verifier *verifier, const struct op *op)
{
	const struct block *body = op->region[0];
	for (int i = 0; i < body->arguments; i++)
		if (!is_array(body->argument[i]->type)) {
			verify_fail(verifier, op, "array %d of its body is %s, not one of one dim",
			        i, body->argument[i]->type->text);
			return;
		}
	if (body->arguments < op->operands) {
		verify_fail(verifier, op, "%d operands enter %d arrays", op->operands,
		        body->arguments);
		return;
	}
	for (int i = 0; i < op->operands; i++)
		if (!holds(body->argument[i]->type, op->operand[i]->type))
			verify_fail(verifier, op, "operand %d is %s, its array %s", i,
			        op->operand[i]->type->text, body->argument[i]->type->text);
}

static void check_results(struct verifier *verifier, const struct op *op)
{
	const struct block *body = op->region[0];
	const struct op *yield = body->last;
	if (!op->results || yield->operands != op->results) {
		verify_fail(verifier, op, "%d arrays leave as %d results", yield->operands,
		        op->results);
		return;
	}
	for (int i = 0; i < op->results; i++) {
		const struct value *array = yield->operand[i];
		if (array->def || array->block != body ||
		        !holds(array->type, op->result[i]->type))
			verify_fail(verifier, op, "result %d is %s, what leaves %s", i,
			        op->result[i]->type->text, array->type->text);
	}
}

struct body_check {
	struct verifier *verifier;
	const struct op *nest;
};

static bool is_inside(const struct op *nest, const struct value *value)
{
	const struct block *block = value->def ? value->def->parent : value->block;
	while (block && block != nest->region[0])
		block = block->parent && block->parent->code != OP_MODULE ? block->parent->parent
		                                                          : NULL;
	return block;
}

static bool is_number(const struct value *value, int64_t number)
{
	const struct attr *is = value->def && value->def->code == OP_CONSTANT
	        ? attr_get(value->def, KEY_VALUE)
	        : NULL;
	return is && is->kind == ATTR_INTEGER && is->integer == number;
}

static void check_inner(struct op *op, void *context)
{
	struct body_check *check = context;
	const struct value *accessed = op_accessed(op);
	bool known = op->code == OP_FOR || op->code == OP_YIELD || op->code == OP_SEQUENTIAL_YIELD ||
	        op->code == OP_APPLY || op->code == OP_CONSTANT || accessed ||
	        (op_info[op->code].levels & LEVEL_BODY);
	if (!known || (accessed && accessed->type->kind != TYPE_MEMREF))
		verify_fail(check->verifier, op, "does not belong to a sequential nest");
	for (int i = 0; i < op->operands; i++)
		if (!is_inside(check->nest, op->operand[i]))
			verify_fail(check->verifier, op,
			        "operand %d comes from outside the sequential nest", i);
	if (op->code == OP_FOR &&
	        (op->results || !is_number(op->operand[0], 0) || !is_number(op->operand[2], 1)))
		verify_fail(check->verifier, op,
		        "a loop of a sequential nest counts from 0 by 1 and carries no values");
	if (op->code == OP_MEMREF_LOAD && attr_integer_or(op, KEY_STREAM_DISTANCE, 1) < 1)
		verify_fail(check->verifier, op, "stream.distance is not positive");
}

void verify_sequential(struct verifier *verifier, const struct op *op)
{
	struct body_check check = { verifier, op };
	check_arrays(verifier, op);
	if (!verifier->failed)
		check_results(verifier, op);
	if (!verifier->failed)
		ir_walk(op->region[0], check_inner, &check);
}
