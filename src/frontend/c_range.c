/* Numbers that affine forms can be, by the bounds of loops and the conditions around. C computes in
 * types of some bits, where a number may wrap: a form stands for an expression only if it does not.
 */
#include "base/number.h"
#include "frontend/c_reader.h"

#define FAR (INT64_C(1) << 50)
#define COUNTER_MOST INT32_MAX /* a loop ends before its counter wraps */

struct ranges {
	int64_t low[POLY_DIMS], high[POLY_DIMS];
};

/* The largest value of the form without counter `but` (-1: of all of it). */
static int64_t most_of(const struct poly_form *form, const struct ranges *ranges, int but)
{
	double most = (double)form->constant;
	for (int d = 0; d < POLY_DIMS; d++) {
		int64_t factor = d == but ? 0 : form->coefficient[d];
		int64_t counter = factor > 0 ? ranges->high[d] : ranges->low[d];
		most += (double)factor * (double)counter;
	}
	if (most > (double)FAR)
		return FAR;
	return most < -(double)FAR ? -FAR : (int64_t)most;
}

/* form >= 0 */
static void narrow_row(struct ranges *ranges, const struct poly_form *form)
{
	for (int d = 0; d < POLY_DIMS; d++) {
		int64_t factor = form->coefficient[d];
		int64_t rest = most_of(form, ranges, d);
		if (factor > 0 && -floor_div(rest, factor) > ranges->low[d])
			ranges->low[d] = -floor_div(rest, factor);
		if (factor < 0 && floor_div(rest, -factor) < ranges->high[d])
			ranges->high[d] = floor_div(rest, -factor);
	}
}

static void narrow(struct ranges *ranges, const struct poly_condition *condition, bool negated)
{
	struct poly_form zero = { 0 };
	struct poly_form minus;
	if (!condition)
		return;
	bool both = condition->kind == (negated ? POLY_OR : POLY_AND);
	bool either = condition->kind == (negated ? POLY_AND : POLY_OR);
	minus = c_sum(zero, condition->form, -1);
	if (condition->kind == POLY_NOT) {
		narrow(ranges, condition->part[0], !negated);
	} else if (both) {
		narrow(ranges, condition->part[0], negated);
		narrow(ranges, condition->part[1], negated);
	} else if (either) {
		struct ranges other = *ranges;
		narrow(ranges, condition->part[0], negated);
		narrow(&other, condition->part[1], negated);
		for (int d = 0; d < POLY_DIMS; d++) {
			if (other.low[d] < ranges->low[d])
				ranges->low[d] = other.low[d];
			if (other.high[d] > ranges->high[d])
				ranges->high[d] = other.high[d];
		}
	} else if (condition->kind == POLY_NOT_NEGATIVE) {
		minus.constant -= negated;
		narrow_row(ranges, negated ? &minus : &condition->form);
	} else if (condition->kind == POLY_ZERO && !negated) {
		narrow_row(ranges, &condition->form);
		narrow_row(ranges, &minus);
	}
}

bool c_fits(const struct c_reader *reader, const struct poly_form *form, struct c_type type)
{
	struct ranges ranges;
	struct poly_form zero = { 0 };
	struct poly_form minus = c_sum(zero, *form, -1);
	for (int d = 0; d < POLY_DIMS; d++) {
		ranges.low[d] = -COUNTER_MOST;
		ranges.high[d] = COUNTER_MOST;
	}
	/* bounds of inner loops follow from those of outer ones, and the other way round */
	for (int round = 0; round < 2; round++) {
		narrow(&ranges, reader->domain, false);
		narrow(&ranges, reader->when, false);
	}
	int bits = type.is_unsigned ? type.type->width : type.type->width - 1;
	int64_t most = bits >= 50 ? FAR - 1 : (INT64_C(1) << bits) - 1;
	int64_t least = type.is_unsigned ? 0 : -most - 1;
	return most_of(form, &ranges, -1) <= most && -most_of(&minus, &ranges, -1) >= least;
}
