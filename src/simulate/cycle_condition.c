/* Conditions of accesses: the ops of a process that compute them from loop counters, evaluated for
 * a whole row (all values of the innermost counter) at a time.  A row is reused until one of the
 * other values that it depends on changes. */
#include "simulate/cycle_network.h"

#define BITS 64

static bool has_node(const struct cycle_condition *condition, const struct op *op)
{
	for (size_t i = 0; i < condition->outer.count; i++)
		if (condition->outer.data[i].op == op)
			return true;
	for (size_t i = 0; i < condition->inner.count; i++)
		if (condition->inner.data[i].op == op)
			return true;
	return false;
}

static bool is_inner(const struct cycle_condition *condition, const int64_t *value)
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
	const struct attr *attr = attr_get(value->def, KEY_VALUE);
	if (!attr || (attr->kind != ATTR_INTEGER && attr->kind != ATTR_BOOL))
		return false;
	int64_t *slot = ARENA_NEW(arena, int64_t);
	*slot = attr->kind == ATTR_BOOL ? attr->integer != 0 : attr->integer;
	value->data = slot;
	return true;
}

static bool add_node(struct arena *arena, struct cycle_condition *condition, struct value *value);

static bool add_operands(struct arena *arena, struct cycle_condition *condition,
        const struct op *op, struct cycle_node *node)
{
	node->parts = op->operands;
	node->part = ARENA_ARRAY(arena, const int64_t *, op->operands + COLUMN_OPERANDS);
	for (int i = 0; i < op->operands; i++) {
		if (!add_node(arena, condition, op->operand[i]))
			return false;
		node->part[i] = op->operand[i]->data;
	}
	return true;
}

static bool add_node(struct arena *arena, struct cycle_condition *condition, struct value *value)
{
	if (!value->def)
		return value->data != NULL;
	if (value->def->code == OP_CONSTANT)
		return value->data || add_constant(arena, value);
	if (attr_get(value->def, KEY_STREAM_RUN_TIME))
		return value->data != NULL;
	if (has_node(condition, value->def))
		return true;
	struct cycle_node node = { .op = value->def,
		.map = column_map_of(value->def),
		.function = column_function_of(value->def) };
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

static bool is_always_true(const struct value *when)
{
	const struct attr *attr =
	        when->def && when->def->code == OP_CONSTANT ? attr_get(when->def, KEY_VALUE) : NULL;
	return attr && (attr->kind == ATTR_BOOL || attr->kind == ATTR_INTEGER) && attr->integer;
}

bool cycle_condition_add(struct cycle_network *network, struct cycle_condition *condition,
        const struct op *op, int *bit)
{
	struct diag *diag = network->module->diag;
	struct value *when = op->operand[0];
	struct location location = when->def ? when->def->location : NOWHERE;
	*bit = -1;
	if (is_always_true(when))
		return true;
	if (!add_node(network->arena, condition, when))
		return op->code == OP_WRITE ||
		        diag_error(diag, location,
		                "when a FIFO is used depends on data: its time cannot be known "
		                "without running the design");
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

static void add_key(struct arena *arena, struct cycle_condition *condition, const int64_t *value)
{
	if (is_inner(condition, value))
		return;
	for (size_t i = 0; i < condition->key.count; i++)
		if (condition->key.data[i] == value)
			return;
	VEC_PUSH(arena, &condition->key, value);
}

static const int64_t *column_of(const struct cycle_condition *condition, const int64_t *value)
{
	if (value == condition->innermost)
		return condition->counted;
	for (size_t i = 0; i < condition->inner.count; i++)
		if (condition->inner.data[i].out == value)
			return condition->inner.data[i].at;
	for (size_t i = 0; i < condition->key.count; i++)
		if (condition->key.data[i] == value)
			return condition->same[i];
	return NULL;
}

static int64_t *add_column(const struct cycle_condition *condition)
{
	return ARENA_ARRAY(condition->arena, int64_t, condition->width + 1);
}

static void make_columns(struct cycle_condition *condition)
{
	struct arena *arena = condition->arena;
	condition->width = condition->trips < COLUMN ? (int)condition->trips : COLUMN;
	condition->counted = add_column(condition);
	condition->same = ARENA_ARRAY(arena, int64_t *, condition->key.count + 1);
	condition->when_at = ARENA_ARRAY(arena, const int64_t *, condition->when.count + 1);
	for (size_t i = 0; i < condition->key.count; i++)
		condition->same[i] = add_column(condition);
	for (size_t i = 0; i < condition->inner.count; i++) {
		struct cycle_node *node = &condition->inner.data[i];
		node->at = add_column(condition);
		node->from = ARENA_ARRAY(arena, const int64_t *, node->parts + COLUMN_OPERANDS);
		for (int j = 0; j < node->parts; j++)
			node->from[j] = column_of(condition, node->part[j]);
	}
	for (size_t i = 0; i < condition->when.count; i++)
		condition->when_at[i] = column_of(condition, condition->when.data[i]);
}

void cycle_condition_finish(struct arena *arena, struct cycle_condition *condition)
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
	make_columns(condition);
}

static bool same_key(struct cycle_condition *condition)
{
	bool same = condition->made;
	for (size_t i = 0; i < condition->key.count; i++) {
		same &= condition->row_key[i] == *condition->key.data[i];
		condition->row_key[i] = *condition->key.data[i];
	}
	return same;
}

/* Bits of `count` iterations from `begin` on. */
static void make_part(struct cycle_condition *condition, int64_t begin, int count)
{
	uint64_t *row = condition->row + begin;
	for (int i = 0; i < count; i++) {
		condition->counted[i] = begin + i;
		row[i] = 0;
	}
	for (size_t j = 0; j < condition->inner.count; j++) {
		const struct cycle_node *node = &condition->inner.data[j];
		column_compute(node->function, node->map, node->at, node->from, count);
	}
	for (size_t j = 0; j < condition->when.count; j++)
		for (int i = 0; i < count; i++)
			row[i] |= (uint64_t)(condition->when_at[j][i] != 0) << j;
}

static void make_row(struct cycle_condition *condition)
{
	if (!condition->row)
		condition->row = ARENA_ARRAY(condition->arena, uint64_t, condition->trips);
	for (size_t k = 0; k < condition->key.count; k++)
		for (int i = 0; i < condition->width; i++)
			condition->same[k][i] = condition->row_key[k];
	for (int64_t begin = 0; begin < condition->trips; begin += condition->width)
		make_part(condition, begin,
		        condition->trips - begin < condition->width
		                ? (int)(condition->trips - begin)
		                : condition->width);
	condition->made = true;
}

void cycle_condition_row(struct cycle_condition *condition)
{
	for (size_t i = 0; i < condition->outer.count; i++) {
		const struct cycle_node *node = &condition->outer.data[i];
		column_compute(node->function, node->map, node->out, node->part, 1);
	}
	if (!same_key(condition))
		make_row(condition);
}
