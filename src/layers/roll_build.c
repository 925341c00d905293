/* Builds the loop that replaces the layers: the first layer's kernels become its body. */
#include "layers/roll.h"
#include <string.h>

struct building {
	struct roll *roll;
	struct op *loop, *before; /* before: the operation after the layers */
	struct block *body;
	struct value **layer_select; /* [layer_selects] */
	struct value **stack;        /* [period] block argument of the stack, or NULL */
	struct value **stacks;       /* [period] the loop's result, or NULL */
};

static struct value *index_constant(struct module *module, struct op *before, int64_t number)
{
	const struct type *type = type_index(module);
	struct op *op = op_new(module, OP_CONSTANT, before->location, 0, NULL, 1, &type);
	attr_set(module, op, KEY_VALUE, attr_typed_integer(module, number, type));
	op_insert_before(before, op);
	return op->result[0];
}

static const struct type *stack_type(struct module *module, int layers, const struct type *row)
{
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, row->rank + 1);
	shape[0] = layers;
	memcpy(shape + 1, row->shape, sizeof *shape * (size_t)row->rank);
	return type_shaped(module, TYPE_TENSOR, row->rank + 1, shape, row->element);
}

static struct value *empty_stack(struct module *module, struct op *before, const struct type *type)
{
	struct op *op = op_new(module, OP_TENSOR_EMPTY, before->location, 0, NULL, 1, &type);
	op_insert_before(before, op);
	return op->result[0];
}

static void make_loop(struct building *b)
{
	struct roll *roll = b->roll;
	struct module *module = roll->module;
	struct arena *arena = module->arena;
	int carried = (int)roll->carried.count;
	int count = 3;
	struct value **operand = ARENA_ARRAY(arena, struct value *, 3 + carried + roll->period);
	const struct type **type = ARENA_ARRAY(arena, const struct type *, carried + roll->period);
	int64_t bounds[3] = { 0, roll->layers, 1 };
	for (int i = 0; i < 3; i++)
		operand[i] = index_constant(module, b->before, bounds[i]);
	for (int i = 0; i < carried; i++)
		operand[count++] = roll->first.data[i];
	for (int j = 0; j < roll->period; j++)
		if (roll->stacked[j])
			operand[count++] = empty_stack(module, b->before,
			        stack_type(module, roll->layers,
			                roll_op(roll, 0, j)->result[0]->type));
	for (int i = 3; i < count; i++)
		type[i - 3] = operand[i]->type;
	b->loop = op_new(
	        module, OP_FOR, roll_op(roll, 0, 0)->location, count, operand, count - 3, type);
	op_insert_before(b->before, b->loop);
	b->body = block_new(module, b->loop, 0);
	block_add_argument(module, b->body, type_index(module));
	for (int i = 0; i < count - 3; i++)
		block_add_argument(module, b->body, type[i]);
	b->stack = ARENA_ARRAY(arena, struct value *, roll->period);
	b->stacks = ARENA_ARRAY(arena, struct value *, roll->period);
	for (int j = 0, next = carried; j < roll->period; j++)
		if (roll->stacked[j]) {
			b->stacks[j] = b->loop->result[next++];
			b->stack[j] = b->body->argument[next];
		}
}

static void make_layer_selects(struct building *b)
{
	struct roll *roll = b->roll;
	struct arena *arena = roll->module->arena;
	b->layer_select = ARENA_ARRAY(arena, struct value *, roll->layer_selects.count);
	for (size_t p = 0; p < roll->layer_selects.count; p++) {
		struct value **operand = ARENA_ARRAY(arena, struct value *, roll->layers + 1);
		operand[0] = b->body->argument[0];
		memcpy(operand + 1, roll->layer_selects.data[p].value,
		        sizeof *operand * (size_t)roll->layers);
		b->layer_select[p] = build(roll->module, b->body, OP_LAYER_SELECT, operand[1]->type,
		        roll->layers + 1, operand);
	}
}

static void move_layer(struct building *b)
{
	struct roll *roll = b->roll;
	for (int j = 0; j < roll->period; j++) {
		struct op *op = roll_op(roll, 0, j);
		op_remove(op);
		op_append(b->body, op);
		for (int i = 0; i < op->operands; i++) {
			const struct edge *edge = &roll->edge[j][i];
			if (edge->kind == EDGE_CARRIED)
				op->operand[i] = b->body->argument[1 + edge->position];
			if (edge->kind == EDGE_LAYER_SELECT)
				op->operand[i] = b->layer_select[edge->position];
		}
	}
}

static void make_yield(struct building *b)
{
	struct roll *roll = b->roll;
	struct value **operand = ARENA_ARRAY(roll->module->arena, struct value *, b->loop->results);
	int count = 0;
	for (size_t i = 0; i < roll->carried.count; i++)
		operand[count++] = roll_op(roll, 0, roll->carried.data[i])->result[0];
	for (int j = 0; j < roll->period; j++) {
		struct value *insert[3] = { roll_op(roll, 0, j)->result[0], b->stack[j],
			b->body->argument[0] };
		if (b->stack[j])
			operand[count++] = build(roll->module, b->body, OP_INSERT_LAYER,
			        b->stack[j]->type, 3, insert);
	}
	op_append(b->body,
	        op_new(roll->module, OP_YIELD, b->loop->location, count, operand, 0, NULL));
}

/* The result of the loop that a value of the layers is after them. */
static struct value *after_loop(struct building *b, struct value *value)
{
	struct roll *roll = b->roll;
	int index = value->id - 1 - roll->start;
	int layer = index / roll->period;
	int position = index % roll->period;
	for (size_t i = 0; layer == roll->layers - 1 && i < roll->carried.count; i++)
		if (roll->carried.data[i] == position)
			return b->loop->result[i];
	if (value->data)
		return value->data;
	struct op *part = op_new(roll->module, OP_LAYER_EXTRACT, value->def->location, 1,
	        &b->stacks[position], 1, &value->type);
	attr_set(roll->module, part, KEY_INDEX, attr_integer(roll->module, layer));
	op_insert_before(b->before, part);
	value->data = part->result[0];
	return part->result[0];
}

static void rename_after(struct building *b)
{
	const struct roll *roll = b->roll;
	for (struct op *op = b->before; op; op = op->next)
		for (int i = 0; i < op->operands; i++) {
			int index = op->operand[i]->id - 1 - roll->start;
			if (index >= 0 && index < roll->layers * roll->period)
				op->operand[i] = after_loop(b, op->operand[i]);
		}
}

void roll_build(struct roll *roll)
{
	struct building b = { .roll = roll,
		.before = roll_op(roll, roll->layers - 1, roll->period - 1)->next };
	for (int i = 0; i < roll->layers * roll->period; i++)
		roll->kernel[roll->start + i]->result[0]->data = NULL;
	roll_sliding_window(roll);
	make_loop(&b);
	make_layer_selects(&b);
	rename_after(&b);
	move_layer(&b);
	make_yield(&b);
	for (int i = roll->period; i < roll->layers * roll->period; i++)
		op_remove(roll->kernel[roll->start + i]);
}
