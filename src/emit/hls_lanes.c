/* Lane loops: successive operations on whole words share one unrolled loop over the lanes, in which
 * a value without uses outside is a scalar.
 * Before: %a = mulf %x, %y; %b = addf %a, %z        (vectors of 8)
 * After:  for (int l = 0; l < 8; l++) b[l] = x[l] * y[l] + z[l];
 * The loop is written when an operation outside needs one of its values, and before stores, which
 * are of whole words, inner loops and the end of a block. */
#include "emit/hls.h"
#include <string.h>

#define INLINE_MOST 90 /* characters of an expression that is written where it is used */

static bool is_lane_operation(const struct op *op)
{
	if (op->results != 1 || type_lanes(op->result[0]->type) == 1)
		return false;
	if (op->code == OP_SPLIT_LANES)
		return true;
	return (op_info[op->code].levels & LEVEL_BODY) && op->code != OP_CONSTANT;
}

static bool in_loop(struct emitter *e, const struct value *value)
{
	return value->def && type_lanes(value->type) > 1 && hls_spelling(e, value)->lanes;
}

static int64_t lanes_of(const struct op *op)
{
	return type_lanes(op->result[0]->type);
}

bool lanes_take(struct emitter *e, struct op *op)
{
	if (!is_lane_operation(op))
		return false;
	if (e->group.count &&
	        (e->group_lanes != lanes_of(op) ||
	                (op->code == OP_SPLIT_LANES && in_loop(e, op->operand[0]))))
		lanes_close(e);
	e->group_lanes = lanes_of(op);
	VEC_PUSH(e->arena, &e->group, op);
	hls_bind(e, op->result[0], (struct spelling){ .lanes = true });
	return true;
}

void lanes_before(struct emitter *e, const struct op *op)
{
	bool needs = op->code == OP_MEMREF_STORE || op->code == OP_FOR || op->code == OP_RELEASE ||
	        op->code == OP_ACQUIRE;
	for (int i = 0; i < op->operands; i++)
		needs = needs || in_loop(e, op->operand[i]);
	if (needs)
		lanes_close(e);
}

/* Operand i of an operation in the loop, for one lane. */
static const char *lane_operand(struct emitter *e, const struct op *op, int i, bool *atomic)
{
	const struct value *value = op->operand[i];
	const struct spelling *spelling = hls_spelling(e, value);
	*atomic = spelling->atomic;
	if (type_lanes(value->type) == 1 || spelling->splat || spelling->lanes)
		return spelling->text;
	*atomic = true;
	return text_format(e->arena, "%s[l]", spelling->text);
}

static struct spelling split_lane(struct emitter *e, const struct op *op)
{
	const struct spelling *word = hls_spelling(e, op->operand[0]);
	const struct spelling *part = hls_spelling(e, op->operand[1]);
	if (word->splat)
		return (struct spelling){ .text = word->text, .atomic = word->atomic };
	const char *at = text_format(
	        e->arena, "%s * %lld + l", hls_bracket(e->arena, part), (long long)e->group_lanes);
	return (struct spelling){ .text = text_format(e->arena, "%s[%s]", word->text, at),
		.atomic = true };
}

/* The HLS compiler sizes a multiplier by its operands: a product of sign-extended numbers is
 * written on the narrow numbers. */
static bool is_narrow_product(struct emitter *e, const struct op *op)
{
	if (op->code != OP_MULI || !hls_spelling(e, op->operand[0])->factor ||
	        !hls_spelling(e, op->operand[1])->factor)
		return false;
	int bits = 0;
	for (int i = 0; i < 2; i++)
		bits += type_scalar(op->operand[i]->def->operand[0]->type)->width;
	return bits <= type_scalar(op->result[0]->type)->width;
}

static struct spelling lane_expression(struct emitter *e, const struct op *op)
{
	const char *operand[3];
	bool atomic[3];
	if (op->code == OP_SPLIT_LANES)
		return split_lane(e, op);
	if (is_narrow_product(e, op)) {
		for (int i = 0; i < 2; i++)
			operand[i] = lane_operand(e, op, i, &atomic[i]);
		const char *type = hls_type(e, type_scalar(op->result[0]->type));
		return (struct spelling){ .text = text_format(e->arena, "(%s)(%s * %s)", type,
			                          operand[0], operand[1]) };
	}
	for (int i = 0; i < op->operands; i++)
		operand[i] = lane_operand(e, op, i, &atomic[i]);
	if (op->code == OP_BROADCAST)
		return (struct spelling){ .text = operand[0], .atomic = atomic[0] };
	return hls_scalar(e, op, operand, atomic);
}

static bool escapes(const struct op *op)
{
	const struct spelling *spelling = op->result[0]->data;
	return spelling->lane_uses < op->result[0]->uses;
}

static bool uses(const struct op *op, const struct value *value)
{
	for (int i = 0; i < op->operands; i++)
		if (op->operand[i] == value)
			return true;
	return false;
}

/* Is the value used in the loop? */
static bool is_used_inside(struct emitter *e, size_t at)
{
	const struct value *value = e->group.data[at]->result[0];
	for (size_t i = at + 1; i < e->group.count; i++)
		if (uses(e->group.data[i], value))
			return true;
	return false;
}

static bool feeds_product(struct emitter *e, size_t at)
{
	size_t i = at + 1;
	while (i < e->group.count && !uses(e->group.data[i], e->group.data[at]->result[0]))
		i++;
	return i < e->group.count && e->group.data[i]->code == OP_MULI;
}

static void write_operation(struct emitter *e, size_t at)
{
	struct op *op = e->group.data[at];
	struct spelling *spelling = op->result[0]->data;
	struct spelling expression = lane_expression(e, op);
	if (escapes(op)) {
		hls_line(e, "%s[l] = %s;", spelling->text, expression.text);
		spelling->lanes = false;
		spelling->atomic = true;
		return;
	}
	if (op->result[0]->uses == 1 && strlen(expression.text) <= INLINE_MOST &&
	        is_used_inside(e, at)) {
		spelling->text = expression.text;
		spelling->atomic = expression.atomic;
		if (op->code == OP_EXTSI && type_scalar(op->operand[0]->type)->width > 1 &&
		        feeds_product(e, at)) {
			spelling->text = hls_bracket(e->arena,
			        &(struct spelling){
			                .text = lane_operand(e, op, 0, &spelling->atomic),
			                .atomic = spelling->atomic });
			spelling->factor = spelling->atomic = true;
		}
		return;
	}
	spelling->text = hls_value_name(e, op);
	spelling->atomic = true;
	hls_line(e, "const %s %s = %s;", hls_type(e, type_scalar(op->result[0]->type)),
	        spelling->text, expression.text);
}

static void count_uses(struct emitter *e)
{
	for (size_t i = 0; i < e->group.count; i++)
		for (int k = 0; k < e->group.data[i]->operands; k++)
			if (in_loop(e, e->group.data[i]->operand[k]))
				hls_spelling(e, e->group.data[i]->operand[k])->lane_uses++;
}

/* Uses inside the loop of a value that is also used outside read `name[l]`. */
void lanes_close(struct emitter *e)
{
	size_t count = e->group.count;
	struct op **group = e->group.data;
	if (!count)
		return;
	count_uses(e);
	for (size_t i = 0; i < count; i++) {
		if (!escapes(group[i]))
			continue;
		struct spelling *spelling = group[i]->result[0]->data;
		spelling->text = hls_value_name(e, group[i]);
		hls_line(e, "%s %s;", hls_type(e, group[i]->result[0]->type), spelling->text);
	}
	hls_line(e, "for (int l = 0; l < %lld; l++) {", (long long)e->group_lanes);
	text_add(&e->body, "#pragma HLS unroll\n");
	e->indent++;
	for (size_t i = 0; i < count; i++)
		write_operation(e, i);
	e->indent--;
	hls_line(e, "}");
	e->group.count = 0;
}

/* Removes from the open loop the operations that only `push` needs, and lists them in order;
 * returns their number. */
static size_t split_for(struct emitter *e, const struct op *push, struct op **only)
{
	size_t left = 0;
	size_t found = 0;
	bool *mark = ARENA_ARRAY(e->arena, bool, e->group.count);
	for (size_t i = 0; i < e->group.count; i++)
		hls_spelling(e, e->group.data[i]->result[0])->lane_uses =
		        e->group.data[i]->result[0] == push->operand[1];
	for (size_t i = e->group.count; i-- > 0;) {
		const struct op *op = e->group.data[i];
		mark[i] = hls_spelling(e, op->result[0])->lane_uses == op->result[0]->uses;
		for (int k = 0; mark[i] && k < op->operands; k++)
			if (in_loop(e, op->operand[k]))
				hls_spelling(e, op->operand[k])->lane_uses++;
	}
	for (size_t i = 0; i < e->group.count; i++)
		hls_spelling(e, e->group.data[i]->result[0])->lane_uses = 0;
	for (size_t i = 0; i < e->group.count; i++) {
		if (mark[i])
			only[found++] = e->group.data[i];
		else
			e->group.data[left++] = e->group.data[i];
	}
	e->group.count = left;
	return found;
}

bool lanes_push(struct emitter *e, const struct op *push, const char *when)
{
	if (!in_loop(e, push->operand[1]))
		return false;
	struct op **only = ARENA_ARRAY(e->arena, struct op *, e->group.count);
	size_t count = split_for(e, push, only);
	if (!count)
		return false;
	lanes_close(e);
	hls_line(e, "%s{", when);
	e->indent++;
	for (size_t i = 0; i < count; i++)
		VEC_PUSH(e->arena, &e->group, only[i]);
	lanes_close(e);
	hls_write(e, push, "");
	e->indent--;
	hls_line(e, "}");
	return true;
}
