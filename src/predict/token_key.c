/* Text that identifies a condition, as a cache key. The PEs of an engine have equal conditions in
 * processes of their own. */
#include "predict/token_pattern.h"

enum mark { MARK_LOOP = 'l', MARK_NUMBER = 'n', MARK_MAP = 'm', MARK_OP = 'o' };

/* A base-16 number; faster than printing. */
static void add_number(struct text *key, enum mark mark, int64_t number)
{
	char digit[2 + 64 / 4];
	char *at = digit;
	*at++ = (char)mark;
	uint64_t left = (uint64_t)number;
	do {
		*at++ = (char)('@' + left % 16);
		left /= 16;
	} while (left);
	text_add_bytes(key, digit, (size_t)(at - digit));
}

static bool add_map(struct text *key, const struct op *op)
{
	const struct attr *attr = attr_get(op, KEY_MAP);
	if (!attr || attr->kind != ATTR_MAP || attr->map.dims != op->operands ||
	        attr->map.results != 1)
		return false;
	add_number(key, MARK_MAP, affine_constant(attr->map, 0));
	for (int i = 0; i < op->operands; i++)
		add_number(key, MARK_MAP, affine_at(attr->map, 0, i));
	return true;
}

static bool add_op(struct text *key, const struct op *op, const struct token_loop *loop, int low)
{
	const struct attr *value = op->code == OP_CONSTANT ? attr_get(op, KEY_VALUE) : NULL;
	bool known = op->results == 1;
	add_number(key, MARK_OP, op->code);
	if (op->code == OP_CONSTANT) {
		known &= value && (value->kind == ATTR_INTEGER || value->kind == ATTR_BOOL);
		int64_t number = known ? value->integer : 0;
		bool flag = known && value->kind == ATTR_BOOL;
		add_number(key, MARK_NUMBER, flag ? number != 0 : number);
	} else if (op->code == OP_APPLY) {
		known &= add_map(key, op);
	} else {
		known &= type_is_whole(op->result[0]->type);
		add_number(key, MARK_NUMBER, attr_integer_or(op, KEY_PREDICATE, -1));
	}
	for (int i = 0; known && i < op->operands; i++)
		known = type_is_whole(op->operand[i]->type) &&
		        token_key_add(key, op->operand[i], loop, low);
	return known;
}

bool token_key_add(
        struct text *key, const struct value *value, const struct token_loop *loop, int low)
{
	if (value->def && value->def->code != OP_CMPI &&
	        attr_get(value->def, KEY_STREAM_RUN_TIME)) {
		add_number(key, MARK_NUMBER, value->id);
		return true;
	}
	if (value->def)
		return add_op(key, value->def, loop, low);
	if (value->type->kind != TYPE_INDEX)
		return false;
	if (value->id < low)
		add_number(key, MARK_NUMBER, token_counter_of(&loop[value->id]));
	else
		add_number(key, MARK_LOOP, value->id - low);
	return true;
}

void token_key_loops(struct text *key, const struct token_loop *loop, int low, int high)
{
	for (int l = low; l <= high; l++) {
		add_number(key, MARK_LOOP, loop[l].trips);
		add_number(key, MARK_NUMBER, loop[l].skipped);
	}
}
