/* Conditions of accesses: the part of a process that computes them from loop counters, evaluated a row of the innermost loop at a time.
 * A row is made again only where what it depends on beside the innermost counter has changed. */
#include "sim/flow_network.h"

#define BITS 64

static void evaluate(const struct flow_node *node)
{
	if (node->function) {
		node->function(node->out, node->in[0], node->in[1], node->in[2], 1);
		return;
	}
	int64_t sum = affine_constant(*node->map, 0);
	for (int i = 0; i < node->parts; i++)
		sum += affine_at(*node->map, 0, i) * *node->part[i];
	*node->out = sum;
}

static bool holds(const struct flow_condition *condition, const struct op *op)
{
	for (size_t i = 0; i < condition->outer.count; i++)
		if (condition->outer.data[i].op == op)
			return true;
	for (size_t i = 0; i < condition->inner.count; i++)
		if (condition->inner.data[i].op == op)
			return true;
	return false;
}

static bool is_inner(const struct flow_condition *condition, const int64_t *value)
{
	if (value == condition->innermost)
		return true;
	for (size_t i = 0; i < condition->inner.count; i++)
		if (condition->inner.data[i].out == value)
			return true;
	return false;
}

static bool add_constant(struct arena *arena, struct value *value)
{
	const struct attr *attr = attr_get(value->def, "value");
	if (!attr || (attr->kind != ATTR_INTEGER && attr->kind != ATTR_BOOL))
		return false;
	int64_t *slot = ARENA_NEW(arena, int64_t);
	*slot = attr->kind == ATTR_BOOL ? attr->integer != 0 : attr->integer;
	value->data = slot;
	return true;
}

static bool add_node(struct arena *arena, struct flow_condition *condition, struct value *value);

static bool add_operands(struct arena *arena, struct flow_condition *condition, const struct op *op, struct flow_node *node)
{
	node->parts = op->operands;
	node->part = ARENA_ARRAY(arena, const int64_t *, op->operands + 1);
	for (int i = 0; i < op->operands; i++) {
		if (!add_node(arena, condition, op->operand[i]))
			return false;
		node->part[i] = op->operand[i]->data;
		if (i < 3)
			node->in[i] = op->operand[i]->data;
	}
	return true;
}

static bool add_node(struct arena *arena, struct flow_condition *condition, struct value *value)
{
	if (!value->def)
		return value->data != NULL;
	if (value->def->code == OP_CONSTANT)
		return value->data || add_constant(arena, value);
	if (attr_get(value->def, "stream.run_time"))
		return value->data != NULL;
	if (holds(condition, value->def))
		return true;
	struct flow_node node = {.op = value->def, .map = column_map_of(value->def), .function = column_function_of(value->def)};
	if ((!node.function && !node.map) || !add_operands(arena, condition, value->def, &node))
		return false;
	if (!value->data)
		value->data = ARENA_NEW(arena, int64_t);
	node.out = value->data;
	bool inner = false;
	for (int i = 0; i < node.parts; i++)
		inner |= is_inner(condition, node.part[i]);
	if (inner)
		VEC_PUSH(arena, &condition->inner, node);
	else
		VEC_PUSH(arena, &condition->outer, node);
	return true;
}

static bool always(const struct value *when)
{
	const struct attr *attr = when->def && when->def->code == OP_CONSTANT ? attr_get(when->def, "value") : NULL;
	return attr && (attr->kind == ATTR_BOOL || attr->kind == ATTR_INTEGER) && attr->integer;
}

bool flow_condition_add(struct flow_network *network, struct flow_condition *condition, const struct value *when, int *bit)
{
	struct diag *diag = network->module->diag;
	struct location location = when->def ? when->def->location : NOWHERE;
	*bit = -1;
	if (always(when))
		return true;
	if (!add_node(network->arena, condition, (struct value *)when))
		return diag_error(diag, location, "when a FIFO is used depends on data: its time cannot be known without running the design");
	for (size_t i = 0; i < condition->when.count; i++)
		if (condition->when.data[i] == when->data)
			*bit = (int)i;
	if (*bit >= 0)
		return true;
	if (condition->when.count == BITS)
		return diag_error(diag, location, "a loop has more than %d conditions", BITS);
	*bit = (int)condition->when.count;
	VEC_PUSH(network->arena, &condition->when, (const int64_t *)when->data);
	return true;
}

static void add_key(struct arena *arena, struct flow_condition *condition, const int64_t *value)
{
	if (is_inner(condition, value))
		return;
	for (size_t i = 0; i < condition->key.count; i++)
		if (condition->key.data[i] == value)
			return;
	VEC_PUSH(arena, &condition->key, value);
}

void flow_condition_finish(struct arena *arena, struct flow_condition *condition)
{
	for (size_t i = 0; i < condition->inner.count; i++)
		for (int j = 0; j < condition->inner.data[i].parts; j++)
			add_key(arena, condition, condition->inner.data[i].part[j]);
	for (size_t i = 0; i < condition->when.count; i++)
		add_key(arena, condition, condition->when.data[i]);
	if (!condition->inner.count)
		condition->trips = 1;
	condition->arena = arena;
	condition->row_key = ARENA_ARRAY(arena, int64_t, condition->key.count + 1);
}

static bool same_key(struct flow_condition *condition)
{
	bool same = condition->made;
	for (size_t i = 0; i < condition->key.count; i++) {
		same &= condition->row_key[i] == *condition->key.data[i];
		condition->row_key[i] = *condition->key.data[i];
	}
	return same;
}

static void make_row(struct flow_condition *condition)
{
	if (!condition->row)
		condition->row = ARENA_ARRAY(condition->arena, uint64_t, condition->trips);
	for (int64_t i = 0; i < condition->trips; i++) {
		if (condition->innermost)
			*condition->innermost = i;
		for (size_t j = 0; j < condition->inner.count; j++)
			evaluate(&condition->inner.data[j]);
		uint64_t bits = 0;
		for (size_t j = 0; j < condition->when.count; j++)
			bits |= (uint64_t)(*condition->when.data[j] != 0) << j;
		condition->row[i] = bits;
	}
	condition->made = true;
}

void flow_condition_row(struct flow_condition *condition)
{
	for (size_t i = 0; i < condition->outer.count; i++)
		evaluate(&condition->outer.data[i]);
	if (!same_key(condition))
		make_row(condition);
}
