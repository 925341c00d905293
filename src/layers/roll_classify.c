/* Classifies the operands of equal layers: the same for all, from within the layer, from the layer
 * before, or one for each layer. */
#include "layers/roll.h"

/* value->id: 1 + index of the kernel in program order, 0 for values from elsewhere. */
static int kernel_index(const struct value *value)
{
	return value->id - 1;
}

static bool is_outside(const struct roll *roll, const struct value *value)
{
	return kernel_index(value) < roll->start;
}

static struct value *operand_of(const struct roll *roll, int layer, int position, int operand)
{
	return roll_op(roll, layer, position)->operand[operand];
}

/* Position of the kernel in that layer whose result the value is; -1: there is none. */
static int position_in(const struct roll *roll, const struct value *value, int layer)
{
	int position = kernel_index(value) - roll->start - layer * roll->period;
	return layer >= 0 && position >= 0 && position < roll->period ? position : -1;
}

/* In all layers that have one `back` layers before: is the operand the result at position
 * `expected` of that layer? */
static bool all_at(const struct roll *roll, int position, int operand, int back, int expected)
{
	for (int layer = back; layer < roll->layers; layer++)
		if (position_in(roll, operand_of(roll, layer, position, operand), layer - back) !=
		        expected)
			return false;
	return expected >= 0;
}

static int carried_number(struct roll *roll, int position, struct value *first)
{
	for (size_t i = 0; i < roll->carried.count; i++)
		if (roll->carried.data[i] == position && roll->first.data[i] == first)
			return (int)i;
	VEC_PUSH(roll->module->arena, &roll->carried, position);
	VEC_PUSH(roll->module->arena, &roll->first, first);
	return (int)roll->carried.count - 1;
}

static bool same_values(
        const struct roll *roll, struct value *const *left, struct value *const *right)
{
	for (int layer = 0; layer < roll->layers; layer++)
		if (left[layer] != right[layer])
			return false;
	return true;
}

static int layer_select_number(struct roll *roll, struct value **value)
{
	for (size_t i = 0; i < roll->layer_selects.count; i++)
		if (same_values(roll, roll->layer_selects.data[i].value, value))
			return (int)i;
	VEC_PUSH(roll->module->arena, &roll->layer_selects, (struct layer_select){ value });
	return (int)roll->layer_selects.count - 1;
}

static bool classify_outside(struct roll *roll, int position, int operand, struct edge *edge)
{
	struct value **value = ARENA_ARRAY(roll->module->arena, struct value *, roll->layers);
	bool same = true;
	for (int layer = 0; layer < roll->layers; layer++) {
		value[layer] = operand_of(roll, layer, position, operand);
		if (!is_outside(roll, value[layer]) || value[layer]->type != value[0]->type)
			return false;
		same &= value[layer] == value[0];
	}
	*edge = (struct edge){ EDGE_SAME, 0 };
	if (!same)
		*edge = (struct edge){ EDGE_LAYER_SELECT, layer_select_number(roll, value) };
	return true;
}

static bool same_types(const struct roll *roll, int position, const struct type *type)
{
	for (int layer = 0; layer < roll->layers; layer++)
		if (roll_op(roll, layer, position)->result[0]->type != type)
			return false;
	return true;
}

static bool classify(struct roll *roll, int position, int operand, struct edge *edge)
{
	struct value *first = operand_of(roll, 0, position, operand);
	struct value *second = operand_of(roll, 1, position, operand);
	int inside = position_in(roll, first, 0);
	int before = position_in(roll, second, 0);
	if (all_at(roll, position, operand, 0, inside)) {
		*edge = (struct edge){ EDGE_INSIDE, inside };
		return true;
	}
	if (is_outside(roll, first) && all_at(roll, position, operand, 1, before)) {
		if (!same_types(roll, before, first->type))
			return false;
		*edge = (struct edge){ EDGE_CARRIED, carried_number(roll, before, first) };
		return true;
	}
	return classify_outside(roll, position, operand, edge);
}

static bool is_carried(const struct roll *roll, int position)
{
	for (size_t i = 0; i < roll->carried.count; i++)
		if (roll->carried.data[i] == position)
			return true;
	return false;
}

/* Notes values of all layers that results of main need, other than what the last layer carries out.
 * false: a kernel needs them; below tensor level such a stack is memory. */
static bool mark_stacked(struct roll *roll)
{
	int end = roll->start + roll->layers * roll->period;
	const struct op *after = roll->kernel[end - 1]->next;
	roll->stacked = ARENA_ARRAY(roll->module->arena, bool, roll->period);
	for (; after; after = after->next)
		for (int i = 0; i < after->operands; i++) {
			int index = kernel_index(after->operand[i]) - roll->start;
			if (index < 0 || index >= end - roll->start)
				continue;
			int layer = index / roll->period;
			int position = index % roll->period;
			if (layer == roll->layers - 1 && is_carried(roll, position))
				continue;
			if (after->code == OP_KERNEL)
				return false;
			roll->stacked[position] = true;
		}
	for (int position = 0; position < roll->period; position++)
		if (roll->stacked[position] &&
		        !same_types(roll, position, roll_op(roll, 0, position)->result[0]->type))
			return false;
	return true;
}

bool roll_classify(struct roll *roll)
{
	struct arena *arena = roll->module->arena;
	roll->edge = ARENA_ARRAY(arena, struct edge *, roll->period);
	roll->layer_selects.count = roll->carried.count = roll->first.count = 0;
	for (int position = 0; position < roll->period; position++) {
		const struct op *op = roll_op(roll, 0, position);
		roll->edge[position] = ARENA_ARRAY(arena, struct edge, op->operands);
		for (int i = 0; i < op->operands; i++)
			if (!classify(roll, position, i, &roll->edge[position][i]))
				return false;
	}
	if (!roll->carried.count || !mark_stacked(roll))
		return false;
	roll->cost = (int)roll->carried.count;
	for (int position = 0; position < roll->period; position++)
		roll->cost += roll->stacked[position];
	return true;
}
