/* Evaluates linalg.generic as a nest: tensors are dense, so every indexing map is one linear form
 * in the loop counters. */
#include "evaluate/eval_level.h"
#include <string.h>

struct generic_import { /* of a generic's body into steps */
	struct evaluation *e;
	struct op *op;
	struct block *body;
	struct program *program;
	int inputs;
	int *argument; /* step of each body argument */
};

static struct nest_port port_of_map(
        struct evaluation *e, const struct tensor *tensor, struct affine_map map)
{
	struct nest_port port = { .type = type_scalar(tensor->type),
		.data = tensor->data,
		.elements = type_elements(tensor->type),
		.access = { .index_operand = -1 } };
	int64_t row = 1;
	port.access.stride = ARENA_ARRAY(e->arena, int64_t, map.dims + 1);
	for (int r = map.results - 1; r >= 0; r--) {
		for (int d = 0; d < map.dims; d++)
			port.access.stride[d] += affine_at(map, r, d) * row;
		port.access.offset += affine_constant(map, r) * row;
		row *= tensor->type->shape[r];
	}
	return port;
}

/* A loop's extent is that of any tensor dim indexed by its counter only. */
static void extents_of_map(struct nest *nest, const struct type *type, struct affine_map map)
{
	for (int r = 0; r < map.results; r++) {
		int loop = -1;
		int used = 0;
		for (int d = 0; d < map.dims; d++) {
			used += affine_at(map, r, d) != 0;
			loop = affine_at(map, r, d) == 1 ? d : loop;
		}
		if (used == 1 && loop >= 0 && affine_constant(map, r) == 0)
			nest->extent[loop] = type->shape[r];
	}
}

/* A scalar defined outside the body. */
static int captured(struct generic_import *in, const struct value *value)
{
	const struct tensor *tensor = value->data;
	struct step step = { .kind = STEP_CONSTANT, .type = type_scalar(tensor->type) };
	scalar_read(step.type, &step.constant, tensor->data, 0, 0, 1);
	return program_add(in->e->arena, in->program, step);
}

static int step_of(struct generic_import *in, const struct value *value)
{
	if (!value->def && value->block == in->body)
		return in->argument[value->index];
	return value->def && value->def->parent == in->body ? value->id : captured(in, value);
}

static bool import_op(struct generic_import *in, struct op *op)
{
	struct step step = {
		.kind = STEP_OP, .type = op->result[0]->type, .arguments = op->operands
	};
	int first = op->code == OP_TENSOR_EXTRACT;
	bool known = true;
	step.argument = ARENA_ARRAY(in->e->arena, int, op->operands + 1);
	step.arguments -= first;
	for (int i = first; i < op->operands; i++)
		step.argument[i - first] = step_of(in, op->operand[i]);
	if (op->code == OP_CONSTANT) {
		step.kind = STEP_CONSTANT;
		known = scalar_of_attr(step.type, attr_get(op, KEY_VALUE), &step.constant);
	} else if (op->code == OP_LINALG_INDEX) {
		step.kind = STEP_COUNTER;
		step.number = (int)attr_integer_or(op, KEY_DIM, 0);
	} else if (op->code == OP_TENSOR_EXTRACT) {
		step.kind = STEP_EXTRACT;
		step.table = op->operand[0]->data;
		known = step.table;
	} else {
		known = op->operands > 0 && op->operands <= 3 &&
		        scalar_op_make(&step.op, op->code, scalar_predicate(op), step.type,
		                op->operand[0]->type);
	}
	if (!known)
		return diag_error(in->e->module->diag, op->location,
		        "\"%s\" cannot be evaluated in a linalg.generic", op_info[op->code].name);
	op->result[0]->id = program_add(in->e->arena, in->program, step);
	return true;
}

static void import_argument(struct generic_import *in, int number)
{
	bool input = number < in->inputs;
	struct step step = { .kind = input ? STEP_OPERAND : STEP_CARRIED,
		.type = in->body->argument[number]->type,
		.number = number };
	if (!input)
		step.number -= in->inputs;
	in->argument[number] = program_add(in->e->arena, in->program, step);
}

static bool import_body(struct generic_import *in, struct nest *nest)
{
	in->argument = ARENA_ARRAY(in->e->arena, int, in->body->arguments + 1);
	for (int i = 0; i < in->body->arguments; i++)
		import_argument(in, i);
	for (struct op *op = in->body->first; op != in->body->last; op = op->next)
		if (!import_op(in, op))
			return false;
	for (int i = 0; i < nest->results; i++)
		nest->yield[i] = step_of(in, in->body->last->operand[i]);
	return true;
}

bool eval_generic(struct evaluation *e, struct op *op)
{
	const struct attr *maps = attr_get(op, KEY_INDEXING_MAPS);
	struct nest nest = { .results = op->results, .operands = op->operands - op->results };
	if (!maps || maps->kind != ATTR_ARRAY || maps->count != op->operands || nest.operands < 0)
		return diag_error(e->module->diag, op->location,
		        "a linalg.generic without one indexing map per operand");
	nest.loops = maps->count ? maps->items[0].value->map.dims : 0;
	nest.extent = ARENA_ARRAY(e->arena, int64_t, nest.loops + 1);
	nest.operand = ARENA_ARRAY(e->arena, struct nest_port, nest.operands + 1);
	nest.result = ARENA_ARRAY(e->arena, struct nest_port, nest.results + 1);
	nest.yield = ARENA_ARRAY(e->arena, int, nest.results + 1);
	for (int i = 0; i < op->operands; i++) {
		const struct tensor *tensor = op->operand[i]->data;
		struct affine_map map = maps->items[i].value->map;
		extents_of_map(&nest, tensor->type, map);
		if (i >= nest.operands) {
			struct tensor *out = eval_new(e, op->result[i - nest.operands]->type);
			memcpy(out->data, tensor->data, tensor_bytes(out->type));
			op->result[i - nest.operands]->data = out;
			nest.result[i - nest.operands] = port_of_map(e, out, map);
		} else {
			nest.operand[i] = port_of_map(e, tensor, map);
		}
	}
	struct generic_import in = { .e = e,
		.op = op,
		.body = op->region[0],
		.program = &nest.program,
		.inputs = nest.operands };
	return import_body(&in, &nest) && nest_run(e->module, e->arena, op, &nest);
}
