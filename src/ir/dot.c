#include "ir/dot.h"

#define SUM_BITS 32           /* of the result */

static int log2_ceil(int64_t n)
{
	int bits = 0;
	while (((int64_t)1 << bits) < n)
		bits++;
	return bits;
}

int dot_tree_bits(int bits, int64_t each, int64_t terms)
{
	return bits + log2_ceil(each < terms ? each : terms);
}

static bool plan_four(struct dot *dot, int levels)
{
	int bits = dot->common + dot->own - 2;
	dot->beside = bits;
	dot->offset = 2 * bits + 2;
	dot->joined = dot->offset + dot->own + 1;
	dot->wide = dot->beside + dot->common;
	dot->product = bits + 1;
	dot->sum = dot->product + levels;
	return dot->words == 2 && dot->joined <= DOT_WIDE && dot->wide <= DOT_NARROW && dot->sum <= SUM_BITS;
}

/* A product of two words that is taken apart at once. */
static bool plan_apart(struct dot *dot, int levels)
{
	dot->apart = true;
	dot->offset = dot->product = dot->common + dot->own;
	dot->joined = dot->offset + dot->own + 1;
	dot->sum = dot->product + levels;
	return dot->joined <= DOT_WIDE && dot->common <= DOT_NARROW && dot->sum <= SUM_BITS;
}

bool dot_plan(struct dot *dot, int words, int commons, int64_t lanes, int common, int own)
{
	int levels = log2_ceil(lanes);
	*dot = (struct dot){.words = words, .commons = commons, .pairs = 1, .lanes = lanes, .common = common, .own = own, .wide = common};
	if (commons == 2)
		return plan_four(dot, levels);
	dot->offset = words > 1 ? common + own - 1 + levels : 0;
	dot->joined = words > 1 ? dot->offset + own + 1 : own;
	dot->product = dot->offset + own + common;
	dot->sum = dot->product + levels;
	if (commons == 1 && words == 2 && (dot->joined > DOT_WIDE || dot->product > SUM_BITS))
		return plan_apart(dot, levels);
	return commons == 1 && words >= 1 && words <= 2 && dot->joined <= DOT_WIDE && common <= DOT_NARROW && dot->product <= SUM_BITS && common + own + levels <= SUM_BITS;
}

static bool is_word(const struct type *type)
{
	return type->kind == TYPE_VECTOR && type->element->kind == TYPE_INTEGER && type->element->width > 1;
}

static bool same_types(const struct op *op, int first, int end)
{
	bool same = true;
	for (int i = first + 1; i < end; i++)
		same = same && op->operand[i]->type == op->operand[first]->type;
	return same;
}

/* One word x, and the rows of w. */
static bool across_of(const struct op *op, int64_t across, struct dot *dot)
{
	const struct type *x = op->operand[0]->type, *w = op->operand[1]->type, *y = op->result[0]->type, *sum = type_scalar(y);
	if (!is_word(x) || !is_word(w) || type_elements(w) != across * type_elements(x) || sum->kind != TYPE_INTEGER || sum->width != SUM_BITS || type_lanes(y) != across)
		return false;
	bool planned = dot_plan(dot, across % 2 ? 1 : 2, 1, type_elements(x), x->element->width, w->element->width);
	dot->across = across;
	return planned;
}

bool dot_of(const struct op *op, struct dot *dot)
{
	int64_t across = attr_integer_or(op, KEY_COLUMNS, 0);
	if (across)
		return across > 0 && op->operands == 2 && op->results == 1 && across_of(op, across, dot);
	int64_t commons = attr_integer_or(op, KEY_INPUT_WORDS, 1);
	if (commons < 1 || (commons > 1 && commons % 2) || op->operands <= commons || op->results != 1 || !same_types(op, 0, (int)commons) || !same_types(op, (int)commons, op->operands))
		return false;
	const struct type *x = op->operand[0]->type, *w = op->operand[commons]->type, *y = op->result[0]->type, *sum = type_scalar(y);
	int words = op->operands - (int)commons;
	if (!is_word(x) || !is_word(w) || type_elements(x) != type_elements(w) || sum->kind != TYPE_INTEGER || sum->width != SUM_BITS || type_lanes(y) != words * commons)
		return false;
	bool planned = dot_plan(dot, words, commons > 1 ? 2 : 1, type_elements(x), x->element->width, w->element->width);
	dot->pairs = commons > 1 ? (int)commons / 2 : 1;
	return planned;
}
