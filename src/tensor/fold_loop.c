/* Folds a loop over rows, as of a recurrent network over time: the body of scf.for is folded like
 * main; a row at the loop's counter becomes stream.layer_row or stream.insert_layer, as in a rolled
 * layer. */
#include "tensor/fold.h"

/* The counter that selects a row by its one dynamic offset; NULL: the slice is no row. */
static struct value *row_counter(
        const struct op *op, int operand, const struct type *stack, const struct op *loop)
{
	const struct attr *offset = attr_get(op, KEY_STATIC_OFFSETS);
	const struct attr *size = attr_get(op, KEY_STATIC_SIZES);
	const struct attr *stride = attr_get(op, KEY_STATIC_STRIDES);
	struct value *counter = op->operands == operand + 1 ? op->operand[operand] : NULL;
	if (!counter || counter->def || counter->block->parent != loop || counter->index ||
	        !offset || !size || !stride || offset->count != stack->rank ||
	        offset->integers[0] != INT64_MIN || size->integers[0] != 1)
		return NULL;
	for (int d = 0; d < stack->rank; d++)
		if ((d && (offset->integers[d] || size->integers[d] != stack->shape[d])) ||
		        stride->integers[d] != 1)
			return NULL;
	return counter;
}

static bool report_row(const struct fold *fold, const struct op *op)
{
	return fold_report(fold, op,
	        "an offset that is computed, other than the counter of the loop around it as the "
	        "index of a row");
}

/* The tensor of the row without the dim that the counter selects. */
static const struct type *row_type(struct module *module, const struct type *stack)
{
	return type_shaped(module, TYPE_TENSOR, stack->rank - 1, stack->shape + 1, stack->element);
}

/* A tensor with all elements of the view in their order, of that type; a copy if need be. */
static struct value *root_of(struct fold *fold, struct location location, const struct view *view,
        const struct type *type)
{
	struct view merged = view_merge(fold->module, view);
	struct value *root = merged.piece[0].root;
	if (view_is_identity(&merged) && root->type == type)
		return root;
	root = fold_materialize(fold, location, &merged).piece[0].root;
	root->type = type;
	return root;
}

/* The view of a row, with or without the dim of extent 1. */
static struct view shaped_as(struct module *module, const struct view *row, const struct type *type)
{
	int *dim = ARENA_ARRAY(module->arena, int, type->rank + 1);
	int drop = row->rank > type->rank;
	for (int d = 0; d < type->rank; d++)
		dim[d] = d + drop - (type->rank > row->rank);
	return view_permute(module, row, type->rank, dim, type->shape);
}

bool fold_layer_row(struct fold *fold, struct op *op)
{
	struct module *module = fold->module;
	struct op *loop = op->parent->parent;
	const struct type *stack = op->operand[0]->type;
	const struct value *from = op->operand[0];
	struct value *operand[2] = { row_counter(op, 1, stack, loop) };
	bool outside = (from->def ? from->def->parent : from->block) != op->parent;
	if (!operand[0] || !outside)
		return report_row(fold, op);
	fold->before = loop;
	operand[1] = root_of(fold, op->location, fold_view(op->operand[0]), stack);
	fold->before = op;
	const struct type *type = row_type(module, stack);
	struct op *row = op_new(module, OP_LAYER_ROW, op->location, 2, operand, 1, &type);
	op_insert_before(op, row);
	struct view view = view_of_root(module, row->result[0]);
	fold_set_view(fold, op->result[0], shaped_as(module, &view, op->result[0]->type));
	return true;
}

bool fold_insert_layer(struct fold *fold, struct op *op)
{
	struct module *module = fold->module;
	struct op *loop = op->parent->parent;
	const struct type *stack = op->result[0]->type;
	struct value *counter = row_counter(op, 2, stack, loop);
	struct value *into = op->operand[1];
	bool carried = !into->def && into->block == op->parent && into->index > 0 &&
	        op->parent->last->operand[into->index - 1] == op->result[0];
	if (!counter || !carried)
		return report_row(fold, op);
	const struct type *type = row_type(module, stack);
	const struct view row = shaped_as(module, fold_view(op->operand[0]), type);
	struct value *operand[3] = { root_of(fold, op->location, &row, type), into, counter };
	struct op *insert = op_new(module, OP_INSERT_LAYER, op->location, 3, operand, 1, &stack);
	op_insert_before(op, insert);
	fold_set_view(fold, op->result[0], view_of_root(module, insert->result[0]));
	return true;
}

/* Does the body write a row into the carried value in every iteration? */
static bool is_collected(const struct op *loop, int carried)
{
	const struct op *def = loop->region[0]->last->operand[carried]->def;
	return def && def->code == OP_TENSOR_INSERT && def->operands > 2;
}

/* Does the loop run from 0 in steps of 1 to a constant? */
static bool counts_rows(const struct op *loop)
{
	int64_t bound[3];
	for (int i = 0; i < 3; i++) {
		const struct op *def = loop->operand[i]->def;
		if (!def || def->code != OP_CONSTANT)
			return false;
		bound[i] = constant_of_attr(attr_get(def, KEY_VALUE)).integer;
	}
	return bound[0] == 0 && bound[1] > 0 && bound[2] == 1;
}

static void drop_operand(struct module *module, struct op *op, int operand)
{
	struct value **left = ARENA_ARRAY(module->arena, struct value *, op->operands);
	int count = 0;
	for (int j = 0; j < op->operands; j++)
		if (j != operand)
			left[count++] = op->operand[j];
	op_set_operands(module, op, count, left);
}

/* Drops carried value number c, which nothing reads. */
static void drop_carried(struct module *module, struct op *loop, int c)
{
	struct block *body = loop->region[0];
	drop_operand(module, loop, 3 + c);
	drop_operand(module, body->last, c);
	loop->results--;
	body->arguments--;
	for (int i = c; i < loop->results; i++) {
		loop->result[i] = loop->result[i + 1];
		loop->result[i]->index = i;
		body->argument[i + 1] = body->argument[i + 2];
		body->argument[i + 1]->index = i + 1;
	}
}

/* The same, made by an operation of the body. */
static struct value *made_in(struct fold *fold, const struct block *body, const struct view *view,
        const struct type *type)
{
	struct value *root = root_of(fold, body->last->location, view, type);
	if (root->def && root->def->parent == body && root->def->code != OP_LAYER_ROW)
		return root;
	root = fold_materialize(fold, body->last->location, view).piece[0].root;
	root->type = type;
	return root;
}

bool fold_loop(struct fold *fold, struct op *op)
{
	struct module *module = fold->module;
	struct block *body = op->region[0];
	if (!counts_rows(op))
		return fold_report(fold, op, "bounds other than 0, a constant and a step of 1");
	for (int c = op->results - 1; c >= 0; c--)
		if (is_collected(op, c) && !op->result[c]->uses)
			drop_carried(module, op, c);
	for (int c = 0; c < op->results; c++) {
		struct value *first = op->operand[3 + c];
		if (!is_collected(op, c))
			op->operand[3 + c] =
			        root_of(fold, op->location, fold_view(first), first->type);
		fold_set_view(
		        fold, body->argument[c + 1], view_of_root(module, body->argument[c + 1]));
	}
	if (!fold_block(fold, body))
		return false;
	for (int c = 0; c < op->results; c++) {
		struct value *next = body->last->operand[c];
		fold->before = body->last;
		body->last->operand[c] = made_in(fold, body, fold_view(next), op->result[c]->type);
		fold_set_view(fold, op->result[c], view_of_root(module, op->result[c]));
	}
	fold->before = op;
	return true;
}
