#include "ir/dot.h"

#define SUM_BITS 32           /* of the result */

static int log2_ceil(int64_t n)
{
	int bits = 0;
	while (((int64_t)1 << bits) < n)
		bits++;
	return bits;
}

bool dot_plan(struct dot *dot, int words, int64_t lanes, int common, int own)
{
	int levels = log2_ceil(lanes);
	*dot = (struct dot){.words = words, .lanes = lanes, .common = common, .own = own, .offset = words > 1 ? common + own - 1 + levels : 0};
	dot->joined = words > 1 ? dot->offset + own + 1 : own;
	dot->product = dot->offset + own + common;
	dot->sum = dot->product + levels;
	return words >= 1 && words <= 2 && dot->joined <= DOT_WIDE && common <= DOT_NARROW && dot->product <= SUM_BITS && common + own + levels <= SUM_BITS;
}

static bool is_word(const struct type *type)
{
	return type->kind == TYPE_VECTOR && type->element->kind == TYPE_INTEGER && type->element->width > 1;
}

bool dot_of(const struct op *op, struct dot *dot)
{
	int words = op->operands - 1;
	if (words < 1 || op->results != 1 || !is_word(op->operand[0]->type) || !is_word(op->operand[1]->type))
		return false;
	const struct type *x = op->operand[0]->type, *w = op->operand[1]->type, *y = op->result[0]->type, *sum = type_scalar(y);
	for (int i = 2; i < op->operands; i++)
		if (op->operand[i]->type != w)
			return false;
	if (type_elements(x) != type_elements(w) || sum->kind != TYPE_INTEGER || sum->width != SUM_BITS || (y->kind == TYPE_VECTOR ? type_elements(y) : 1) != words)
		return false;
	return dot_plan(dot, words, type_elements(x), x->element->width, w->element->width);
}
