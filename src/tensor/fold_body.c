/* Imports the scalar region of a linalg.generic as a body over inputs.
 *     ^bb0(%a, %b): ... linalg.yield %c  ->  a list of nodes that read inputs by number
 * tensor.extract becomes an input of its own: its indices are affine in the loops, except for at
 * most one that a value selects (a gather). */
#include "tensor/fold.h"
#include <string.h>

/* The import of one result. */
struct import {
	struct fold *fold;
	struct op *op;
	struct fold_nest *nest;
	struct body *body;
	int result;     /* number of the result that is imported */
	int *input_of;  /* [block arguments] input of the nest, or -1 */
	bool reduction; /* some loop is a reduction */
};

static struct block *region(const struct import *import)
{
	return import->op->region[0];
}

int generic_inputs(const struct op *op)
{
	const struct attr *segments = attr_get(op, KEY_MLIR_SEGMENT_SIZES);
	return segments && segments->count == 2 ? (int)segments->integers[0]
	                                        : op->operands - op->results;
}

struct affine_map generic_map(const struct op *op, int operand)
{
	return attr_get(op, KEY_INDEXING_MAPS)->items[operand].value->map;
}

static bool report_body(const struct import *import, const struct op *op, const char *why)
{
	struct location location = op && op->location.line ? op->location : import->op->location;
	diag_error(import->fold->module->diag, location, "linalg.generic: %s", why);
	return diag_note(import->fold->module->diag,
	        "a body may hold arith and math operations on scalars, linalg.index and "
	        "tensor.extract");
}

/* The input for an operand of the generic; it is added when it is first read. */
static int input_of_argument(struct import *import, int argument)
{
	struct arena *arena = import->fold->module->arena;
	if (import->input_of[argument] >= 0)
		return import->input_of[argument];
	struct affine_map map = generic_map(import->op, argument);
	int64_t *row = affine_rows(arena, map.dims, map.results);
	memcpy(row, map.coefficient, sizeof *row * (size_t)(map.results * (map.dims + 1)));
	struct input input = {
		.view = *fold_view(import->op->operand[argument]), .row = row, .index_dim = -1
	};
	import->input_of[argument] = (int)import->nest->inputs.count;
	VEC_PUSH(arena, &import->nest->inputs, input);
	return import->input_of[argument];
}

/* Node of a scalar from outside the region, which must be a constant; -1: it is none. */
static int import_constant(struct import *import, const struct value *value)
{
	struct node constant;
	if (!fold_constant(import->fold, value, &constant))
		return -1;
	return body_add(import->fold->module, import->body, constant);
}

/* Node of a block argument of the region; -1: a diagnostic was given. */
static int import_argument(struct import *import, const struct value *value)
{
	struct module *module = import->fold->module;
	int inputs = generic_inputs(import->op);
	int argument = value->index;
	struct value *operand = import->op->operand[argument];
	if (operand->type->kind != TYPE_TENSOR)
		return import_constant(import, operand);
	if (argument >= inputs && import->reduction) {
		if (argument - inputs == import->result)
			return body_add(module, import->body,
			        (struct node){ .kind = NODE_ACCUMULATOR, .type = value->type });
		report_body(import, NULL,
		        "a result that is used depends on the running value of another result");
		return -1;
	}
	const struct view *view = fold_view(operand);
	if (view_is_constant(view))
		return body_add(module, import->body, view->piece[0].constant);
	return body_operand(module, import->body, value->type, input_of_argument(import, argument));
}

static int import_value(struct import *import, const struct value *value)
{
	if (value->block == region(import))
		return import_argument(import, value);
	if (value->def && value->def->parent == region(import))
		return value->id;
	return import_constant(import, value);
}

/* row += scale * value; false if the value is not affine in the loops. */
static bool affine_value(
        struct import *import, const struct value *value, int64_t scale, int64_t *row, int depth)
{
	const struct op *def = value->def;
	struct node constant;
	if (!def || depth > 64)
		return false;
	if (def->code == OP_LINALG_INDEX) {
		row[attr_integer_or(def, KEY_DIM, 0)] += scale;
		return true;
	}
	if (def->code == OP_CONSTANT && fold_constant(import->fold, value, &constant)) {
		row[import->nest->loops] += scale * constant.integer;
		return true;
	}
	if (def->code == OP_INDEX_CAST)
		return affine_value(import, def->operand[0], scale, row, depth + 1);
	if (def->code == OP_ADDI || def->code == OP_SUBI)
		return affine_value(import, def->operand[0], scale, row, depth + 1) &&
		        affine_value(import, def->operand[1], def->code == OP_ADDI ? scale : -scale,
		                row, depth + 1);
	if (def->code != OP_MULI || !def->operand[1]->def ||
	        def->operand[1]->def->code != OP_CONSTANT)
		return false;
	return fold_constant(import->fold, def->operand[1], &constant) &&
	        affine_value(import, def->operand[0], scale * constant.integer, row, depth + 1);
}

/* The input whose value the node is, but for its integer type; -1: none. */
static int plain_input(const struct body *body, int node)
{
	const struct node *n = &body->node[node];
	while (n->kind == NODE_OP && (n->code == OP_INDEX_CAST || n->code == OP_EXTSI))
		n = &body->node[n->argument[0]];
	return n->kind == NODE_OPERAND ? (int)n->integer : -1;
}

/* Marks the loops on which the body depends. */
static void mark_loops(const struct import *import, const struct body *body, bool *used)
{
	for (int i = 0; i < body->count; i++) {
		const struct node *node = &body->node[i];
		if (node->kind == NODE_OP && node->code == OP_INDEX)
			used[node->integer] = true;
		if (node->kind != NODE_OPERAND)
			continue;
		const struct input *input = &import->nest->inputs.data[node->integer];
		for (int r = 0; r < input->view.rank; r++)
			for (int l = 0; l < import->nest->loops; l++)
				used[l] |= input->row[r * (import->nest->loops + 1) + l] != 0;
	}
}

static int64_t *identity_rows(struct arena *arena, int loops)
{
	int64_t *row = affine_rows(arena, loops, loops);
	for (int l = 0; l < loops; l++)
		row[l * (loops + 1) + l] = 1;
	return row;
}

/* Makes a kernel for a computed index of a gather; returns the input that reads its result. */
static int index_input(struct import *import, int node)
{
	struct module *module = import->fold->module;
	struct arena *arena = module->arena;
	int loops = import->nest->loops;
	struct fold_nest nest = { .location = import->op->location, .loops = loops };
	nest.extent = ARENA_ARRAY(arena, int64_t, loops);
	nest.reduction = ARENA_ARRAY(arena, bool, loops);
	nest.update = *import->body;
	nest.update.result = node;
	body_remove_dead(module, &nest.update);
	bool *used = ARENA_ARRAY(arena, bool, loops);
	mark_loops(import, &nest.update, used);
	for (size_t i = 0; i < import->nest->inputs.count; i++) {
		struct input copy = import->nest->inputs.data[i];
		copy.row = arena_copy(
		        arena, copy.row, sizeof(int64_t) * (size_t)(copy.view.rank * (loops + 1)));
		VEC_PUSH(arena, &nest.inputs, copy);
	}
	int64_t *row = identity_rows(arena, loops);
	for (int l = 0; l < loops; l++) {
		nest.extent[l] = used[l] ? import->nest->extent[l] : 1;
		row[l * (loops + 1) + l] = used[l];
	}
	const struct type *word = type_integer(module, 64);
	nest.update.result =
	        body_op(module, &nest.update, OP_INDEX_CAST, word, nest.update.result, 0, 0);
	nest.result = type_shaped(module, TYPE_TENSOR, loops, nest.extent, word);
	nest.result_row = identity_rows(arena, loops);
	struct input input = {
		.view = *fold_view(fold_kernel(import->fold, &nest)), .row = row, .index_dim = -1
	};
	VEC_PUSH(arena, &import->nest->inputs, input);
	return (int)import->nest->inputs.count - 1;
}

static int import_extract(struct import *import, struct op *op)
{
	struct arena *arena = import->fold->module->arena;
	int loops = import->nest->loops;
	int rank = op->operands - 1;
	struct input input = { .view = *fold_view(op->operand[0]),
		.row = affine_rows(arena, loops, rank),
		.index_dim = -1 };
	for (int r = 0; r < rank; r++) {
		int64_t *row = input.row + r * (loops + 1);
		if (affine_value(import, op->operand[r + 1], 1, row, 0))
			continue;
		memset(row, 0, sizeof *row * (size_t)(loops + 1));
		int node = import_value(import, op->operand[r + 1]);
		if (input.index_dim >= 0 || node < 0) {
			report_body(import, op,
			        "tensor.extract with more than one index that depends on data");
			return -1;
		}
		int source = plain_input(import->body, node);
		input.index_dim = r;
		input.index_input = source >= 0 ? source : index_input(import, node);
	}
	if (view_is_constant(&input.view))
		return body_add(import->fold->module, import->body, input.view.piece[0].constant);
	VEC_PUSH(arena, &import->nest->inputs, input);
	return body_operand(import->fold->module, import->body, op->result[0]->type,
	        (int)import->nest->inputs.count - 1);
}

static int import_op(struct import *import, struct op *op)
{
	struct module *module = import->fold->module;
	struct node node = {
		.kind = NODE_OP, .code = op->code, .type = op->results ? op->result[0]->type : NULL
	};
	if (op->code == OP_TENSOR_EXTRACT)
		return import_extract(import, op);
	if (op->code == OP_LINALG_INDEX)
		return body_index(module, import->body, (int)attr_integer_or(op, KEY_DIM, 0));
	if (op->code == OP_CONSTANT)
		return body_add(module, import->body, constant_of_attr(attr_get(op, KEY_VALUE)));
	if (!(op_info[op->code].levels & LEVEL_BODY) || op->operands > 3 || op->results != 1) {
		report_body(import, op,
		        text_format(
		                module->arena, "%s is not supported here", op_info[op->code].name));
		return -1;
	}
	for (int i = 0; i < op->operands; i++) {
		node.argument[i] = import_value(import, op->operand[i]);
		if (node.argument[i] < 0)
			return -1;
	}
	node.integer = attr_integer_or(op, KEY_PREDICATE, 0);
	int folded = fold_scalar(module, import->body, &node);
	return folded >= 0 ? folded : body_add(module, import->body, node);
}

/* Sets uses to 1 for the values of the region on which the result depends, else to 0. */
static void mark_live(struct block *block, struct value *result)
{
	for (struct op *op = block->first; op; op = op->next)
		for (int i = 0; i < op->results; i++)
			op->result[i]->uses = 0;
	result->uses = 1;
	for (struct op *op = block->last; op; op = op->previous)
		if (op->results == 1 && op->result[0]->uses)
			for (int i = 0; i < op->operands; i++)
				op->operand[i]->uses = 1;
}

bool fold_body(struct fold *fold, struct op *op, int result, struct fold_nest *nest)
{
	struct arena *arena = fold->module->arena;
	struct import import = {
		.fold = fold, .op = op, .nest = nest, .body = &nest->update, .result = result
	};
	struct value *yielded = op->region[0]->last->operand[result];
	import.input_of = ARENA_ARRAY(arena, int, op->operands);
	for (int i = 0; i < op->operands; i++)
		import.input_of[i] = -1;
	for (int l = 0; l < nest->loops; l++)
		import.reduction |= nest->reduction[l];
	mark_live(op->region[0], yielded);
	for (struct op *inner = op->region[0]->first; inner; inner = inner->next) {
		if (inner->results != 1 || !inner->result[0]->uses)
			continue;
		int node = import_op(&import, inner);
		if (node < 0)
			return false;
		inner->result[0]->id = node;
	}
	nest->update.result = import_value(&import, yielded);
	return nest->update.result >= 0;
}
