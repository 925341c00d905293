/* Compares loop nests of a process that may share a datapath, and lists the numbers that differ. */
#include "ir/datapath_sharing.h"

struct matching {
	struct arena *arena;
	const struct op *left, *right;
	struct nest_numbers *numbers;
	int id; /* next number for a pair of corresponding values, kept in value->id */
};

static bool is_inside(const struct value *value, const struct op *nest)
{
	const struct block *block = value->def ? value->def->parent : value->block;
	for (const struct op *op = block->parent; op; op = op->parent ? op->parent->parent : NULL)
		if (op == nest)
			return true;
	return false;
}

/* An index that is a constant, a run-time count, or an affine function of outer counters. */
static bool is_number(const struct value *value)
{
	return value->def && value->type->kind == TYPE_INDEX &&
	        (value->def->code == OP_CONSTANT || value->def->code == OP_APPLY ||
	                attr_get(value->def, KEY_STREAM_RUN_TIME));
}

static bool match_numbers(struct matching *m, struct value *left, struct value *right)
{
	for (size_t i = 0; i < m->numbers->list.count; i++)
		if (m->numbers->list.data[i].left == left)
			return m->numbers->list.data[i].right == right;
	VEC_PUSH(m->arena, &m->numbers->list, ((struct nest_number){ left, right }));
	return true;
}

static bool match_value(struct matching *m, struct value *left, struct value *right)
{
	if (is_inside(left, m->left) && is_inside(right, m->right))
		return left->id == right->id;
	return is_number(left) && is_number(right) ? match_numbers(m, left, right) : left == right;
}

/* Compares scalar attributes by value; attributes that hold lists must be the same object. */
static bool same_attribute(const struct named *left, const struct named *right)
{
	const struct attr *l = left->value;
	const struct attr *r = right->value;
	if (!text_same(left->name, right->name) || l->kind != r->kind || l->type != r->type ||
	        l->integer != r->integer)
		return false;
	if (l->kind == ATTR_STRING || l->kind == ATTR_SYMBOL)
		return text_same(l->text, r->text);
	if (l->kind == ATTR_MAP)
		return affine_same(l->map, r->map);
	return l->kind == ATTR_UNIT || l->kind == ATTR_BOOL || l->kind == ATTR_INTEGER || l == r;
}

static bool match_block(struct matching *m, const struct block *left, const struct block *right);

/* The next attribute that matters: stream.run_time of a loop only describes its bound. */
static int next_attribute(const struct op *op, int at)
{
	while (at < op->attributes && op->code == OP_FOR &&
	        text_same(op->attribute[at].name, key_name(KEY_STREAM_RUN_TIME)))
		at++;
	return at;
}

static bool same_attributes(const struct op *left, const struct op *right)
{
	int l = next_attribute(left, 0);
	int r = next_attribute(right, 0);
	while (l < left->attributes && r < right->attributes &&
	        same_attribute(&left->attribute[l], &right->attribute[r])) {
		l = next_attribute(left, l + 1);
		r = next_attribute(right, r + 1);
	}
	return l == left->attributes && r == right->attributes;
}

static bool match_op(struct matching *m, struct op *left, struct op *right)
{
	bool same = left->code == right->code && left->operands == right->operands &&
	        left->results == right->results && same_attributes(left, right);
	for (int i = 0; same && i < left->operands; i++)
		same = match_value(m, left->operand[i], right->operand[i]);
	for (int i = 0; same && i < left->results; i++) {
		same = left->result[i]->type == right->result[i]->type;
		left->result[i]->id = right->result[i]->id = m->id++;
	}
	return same && !left->region[0] == !right->region[0] &&
	        (!left->region[0] || match_block(m, left->region[0], right->region[0]));
}

static bool match_block(struct matching *m, const struct block *left, const struct block *right)
{
	if (left->arguments != right->arguments)
		return false;
	for (int i = 0; i < left->arguments; i++)
		left->argument[i]->id = right->argument[i]->id = m->id++;
	struct op *l = left->first;
	struct op *r = right->first;
	for (; l && r; l = l->next, r = r->next)
		if (!match_op(m, l, r))
			return false;
	return !l && !r;
}

bool nest_match(struct arena *arena, const struct op *left, const struct op *right,
        struct nest_numbers *numbers)
{
	struct matching m = { .arena = arena, .left = left, .right = right, .numbers = numbers };
	*numbers = (struct nest_numbers){ 0 };
	return match_op(&m, (struct op *)(uintptr_t)left, (struct op *)(uintptr_t)right);
}

static bool same_number(const struct value *left, const struct value *right)
{
	bool constants = left->def && right->def && left->def->code == OP_CONSTANT &&
	        right->def->code == OP_CONSTANT;
	return left == right ||
	        (constants &&
	                attr_get(left->def, KEY_VALUE)->integer ==
	                        attr_get(right->def, KEY_VALUE)->integer);
}

static int column_like(
        const struct nest_columns *columns, struct value *const *number, size_t nests)
{
	for (int c = 0; c < (int)columns->list.count; c++) {
		size_t same = 0;
		while (same < nests &&
		        same_number(columns->list.data[c].number[same], number[same]))
			same++;
		if (same == nests)
			return c;
	}
	return (int)columns->list.count;
}

size_t nest_columns(
        struct arena *arena, struct op *const *nest, size_t nests, struct nest_columns *columns)
{
	struct nest_numbers *numbers = ARENA_ARRAY(arena, struct nest_numbers, (int64_t)nests + 1);
	*columns = (struct nest_columns){ 0 };
	for (size_t n = 0; n < nests; n++)
		if (!nest_match(arena, nest[0], nest[n], &numbers[n]))
			return n;
	for (size_t i = 0; nests && i < numbers[0].list.count; i++) {
		struct value *left = numbers[0].list.data[i].left;
		struct value **number = ARENA_ARRAY(arena, struct value *, (int64_t)nests);
		bool varies = left->def->code != OP_CONSTANT;
		for (size_t n = 0; n < nests; n++) {
			number[n] = numbers[n].list.data[i].right;
			varies = varies || number[n] != left;
		}
		if (!varies)
			continue;
		int column = column_like(columns, number, nests);
		if (column == (int)columns->list.count)
			VEC_PUSH(arena, &columns->list, ((struct nest_column){ number }));
		VEC_PUSH(arena, &columns->parameters, ((struct nest_parameter){ left, column }));
	}
	return nests;
}

static bool is_constant(const struct value *value, int64_t number)
{
	const struct attr *is = value->def && value->def->code == OP_CONSTANT
	        ? attr_get(value->def, KEY_VALUE)
	        : NULL;
	return is && is->kind == ATTR_INTEGER && is->integer == number;
}

bool nest_is_branch(const struct op *op)
{
	const struct attr *run_time =
	        op->code == OP_FOR && !op->results ? attr_get(op, KEY_STREAM_RUN_TIME) : NULL;
	bool once = run_time && attr_item_integer(run_time, KEY_MOST, 0) == 1 &&
	        attr_item_integer(run_time, KEY_TIMES, 1) == 1;
	return once && !attr_get(op, KEY_STREAM_PIPELINE) && nest_datapath(op) < 0 &&
	        is_constant(op->operand[0], 0) && is_constant(op->operand[2], 1);
}

int nest_datapath(const struct op *op)
{
	const struct attr *mark = op->code == OP_FOR ? attr_get(op, KEY_STREAM_DATAPATH) : NULL;
	int64_t number = mark && mark->kind == ATTR_INTEGER ? mark->integer : 0;
	if (!mark)
		return -1;
	return number > 0 && number < NEST_DATAPATHS_MOST ? (int)number : 0;
}

bool nests_read_channels(const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (nest_datapath(op) >= 0)
			continue;
		if (op->code == OP_POP || (op->region[0] && nests_read_channels(op->region[0])))
			return true;
	}
	return false;
}
