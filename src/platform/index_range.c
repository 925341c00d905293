/* Interval arithmetic over the definition of an index. */
#include "platform/index_range.h"

#define DEPTH_MOST 16 /* maximum chain of operations that is followed */

struct range {
	int64_t low, high;
};

static const struct range anything = { -(INT64_C(1) << (INDEX_BITS - 1)),
	(INT64_C(1) << (INDEX_BITS - 1)) - 1 };

static struct range within(struct range range)
{
	return range.low < anything.low || range.high > anything.high ? anything : range;
}

static struct range range_of(const struct value *value, int depth);

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}
/* offset + Σ c x */
static struct range range_of_sum(const struct op *op, int depth)
{
	const struct attr *map = attr_get(op, KEY_MAP);
	struct range sum = { affine_constant(map->map, 0), affine_constant(map->map, 0) };
	for (int i = 0; i < op->operands; i++) {
		struct range term = range_of(op->operand[i], depth);
		int64_t factor = affine_at(map->map, 0, i);
		int64_t a;
		int64_t b;
		if (__builtin_mul_overflow(factor, term.low, &a) ||
		        __builtin_mul_overflow(factor, term.high, &b))
			return anything;
		sum = within((struct range){ sum.low + least(a, b), sum.high + most(a, b) });
	}
	return sum;
}

static struct range range_of_cast(const struct op *op)
{
	const struct type *from = op->operand[0]->type;
	if (from->kind != TYPE_INTEGER || from->width >= INDEX_BITS)
		return anything;
	int64_t half = INT64_C(1) << (from->width - 1);
	return (struct range){ -half, half - 1 };
}

static struct range range_of(const struct value *value, int depth)
{
	const struct op *op = value->def;
	const struct attr *number = op && op->code == OP_CONSTANT ? attr_get(op, KEY_VALUE) : NULL;
	if (number && number->kind == ATTR_INTEGER)
		return within((struct range){ number->integer, number->integer });
	if (!op || depth == DEPTH_MOST)
		return anything;
	if (op->code == OP_INDEX_CAST)
		return range_of_cast(op);
	if (op->code == OP_APPLY)
		return range_of_sum(op, depth + 1);
	if (op->code != OP_MAXSI && op->code != OP_MINSI && op->code != OP_DIVSI)
		return anything;
	struct range a = range_of(op->operand[0], depth + 1);
	struct range b = range_of(op->operand[1], depth + 1);
	if (op->code == OP_MAXSI)
		return (struct range){ most(a.low, b.low), most(a.high, b.high) };
	if (op->code == OP_MINSI)
		return (struct range){ least(a.low, b.low), least(a.high, b.high) };
	return a.low >= 0 && b.low == b.high && b.low > 0
	        ? (struct range){ a.low / b.low, a.high / b.low }
	        : anything;
}

int index_bits(const struct value *value)
{
	struct range range = range_of(value, 0);
	int64_t size = range.low < 0 ? most(-(range.low + 1), range.high) : range.high;
	int bits = range.low < 0;
	for (; size; size >>= 1)
		bits++;
	return bits;
}

bool index_is_below_zero(const struct value *value)
{
	return range_of(value, 0).low < 0;
}
