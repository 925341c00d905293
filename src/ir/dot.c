/* Plans the packing of integer products into DSP multipliers (formulas: ir/dot.h). */
#include "ir/dot.h"

#define SUM_BITS 32 /* of the result */

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
	int bits = dot->x_bits + dot->w_bits - 2;
	dot->x_offset = bits;
	dot->offset = 2 * bits + 2;
	dot->packed_w_bits = dot->offset + dot->w_bits + 1;
	dot->packed_x_bits = dot->x_offset + dot->x_bits;
	dot->product = bits + 1;
	dot->sum = dot->product + levels;
	return dot->words == 2 && dot->packed_w_bits <= DOT_WIDE &&
	        dot->packed_x_bits <= DOT_NARROW && dot->sum <= SUM_BITS;
}

/* Two packed products that are split before they are summed. */
static bool plan_unpacked(struct dot *dot, int levels)
{
	dot->unpacks_products = true;
	dot->offset = dot->product = dot->x_bits + dot->w_bits;
	dot->packed_w_bits = dot->offset + dot->w_bits + 1;
	dot->sum = dot->product + levels;
	return dot->packed_w_bits <= DOT_WIDE && dot->x_bits <= DOT_NARROW && dot->sum <= SUM_BITS;
}

bool dot_plan(struct dot *dot)
{
	int words = dot->words;
	int x_per_dsp = dot->x_per_dsp;
	int common = dot->x_bits;
	int own = dot->w_bits;
	int levels = log2_ceil(dot->lanes);
	*dot = (struct dot){ .words = words,
		.x_per_dsp = x_per_dsp,
		.pairs = 1,
		.lanes = dot->lanes,
		.x_bits = common,
		.w_bits = own,
		.packed_x_bits = common };
	if (x_per_dsp == 2)
		return plan_four(dot, levels);
	dot->offset = words > 1 ? common + own - 1 + levels : 0;
	dot->packed_w_bits = words > 1 ? dot->offset + own + 1 : own;
	dot->product = dot->offset + own + common;
	dot->sum = dot->product + levels;
	if (x_per_dsp == 1 && words == 2 &&
	        (dot->packed_w_bits > DOT_WIDE || dot->product > SUM_BITS))
		return plan_unpacked(dot, levels);
	return x_per_dsp == 1 && words >= 1 && words <= 2 && dot->packed_w_bits <= DOT_WIDE &&
	        common <= DOT_NARROW && dot->product <= SUM_BITS &&
	        common + own + levels <= SUM_BITS;
}

static bool is_word(const struct type *type)
{
	return type->kind == TYPE_VECTOR && type->element->kind == TYPE_INTEGER &&
	        type->element->width > 1;
}

static bool same_types(const struct op *op, int first, int end)
{
	bool same = true;
	for (int i = first + 1; i < end; i++)
		same = same && op->operand[i]->type == op->operand[first]->type;
	return same;
}

/* The columns form: one word x, and the rows of w in one word. */
static bool dot_columns(const struct op *op, int64_t columns, struct dot *dot)
{
	const struct type *x = op->operand[0]->type;
	const struct type *w = op->operand[1]->type;
	const struct type *y = op->result[0]->type;
	const struct type *sum = type_scalar(y);
	if (!is_word(x) || !is_word(w) || type_elements(w) != columns * type_elements(x) ||
	        sum->kind != TYPE_INTEGER || sum->width != SUM_BITS || type_lanes(y) != columns)
		return false;
	*dot = (struct dot){ .words = columns % 2 ? 1 : 2,
		.x_per_dsp = 1,
		.lanes = type_elements(x),
		.x_bits = x->element->width,
		.w_bits = w->element->width };
	bool planned = dot_plan(dot);
	dot->columns = columns;
	return planned;
}

bool dot_of(const struct op *op, struct dot *dot)
{
	int64_t columns = attr_integer_or(op, KEY_COLUMNS, 0);
	if (columns)
		return columns > 0 && op->operands == 2 && op->results == 1 &&
		        dot_columns(op, columns, dot);
	int64_t x_per_dsp = attr_integer_or(op, KEY_INPUT_WORDS, 1);
	if (x_per_dsp < 1 || (x_per_dsp > 1 && x_per_dsp % 2) || op->operands <= x_per_dsp ||
	        op->results != 1 || !same_types(op, 0, (int)x_per_dsp) ||
	        !same_types(op, (int)x_per_dsp, op->operands))
		return false;
	const struct type *x = op->operand[0]->type;
	const struct type *w = op->operand[x_per_dsp]->type;
	const struct type *y = op->result[0]->type;
	const struct type *sum = type_scalar(y);
	int words = op->operands - (int)x_per_dsp;
	if (!is_word(x) || !is_word(w) || type_elements(x) != type_elements(w) ||
	        sum->kind != TYPE_INTEGER || sum->width != SUM_BITS ||
	        type_lanes(y) != words * x_per_dsp)
		return false;
	*dot = (struct dot){ .words = words,
		.x_per_dsp = x_per_dsp > 1 ? 2 : 1,
		.lanes = type_elements(x),
		.x_bits = x->element->width,
		.w_bits = w->element->width };
	bool planned = dot_plan(dot);
	dot->pairs = x_per_dsp > 1 ? (int)x_per_dsp / 2 : 1;
	return planned;
}
