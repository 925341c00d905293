/* Resources: block RAMs of arrays by banks, operators by how often an iteration uses one. */
#include "hls_model/hls_model_internal.h"
#include "base/map.h"

enum {
	BLOCK_BITS = 18432,
	LUT_BITS_MOST = 1024 /* a bank of so few bits is made of LUTs */
};

static int64_t up(int64_t amount, int64_t unit)
{
	return (amount + unit - 1) / unit;
}

/* 18 Kb block RAMs of a bank: 512 words of 36 bits, or with both ports in use 1024 of 18. */
static int64_t blocks_of(int64_t words, int64_t bits, bool two_ports)
{
	if (words * bits <= LUT_BITS_MOST)
		return 0;
	int64_t best = INT64_MAX;
	for (int64_t width = two_ports ? 18 : 36; width >= 1; width /= 2) {
		int64_t depth = BLOCK_BITS / (width >= 9 ? width : width * 9 / 8 + 1);
		int64_t blocks = up(bits, width) * up(words, depth);
		best = blocks < best ? blocks : best;
	}
	return best;
}

/* An adapter of the width that the array's words have, in one direction each. */
static struct resources adapter_cost(const struct modeller *modeller, const struct cpp_array *array)
{
	const struct platform *platform = modeller->platform;
	struct resources cost = platform->port_cost;
	int64_t bits = array->bits < 32 ? 32 : array->bits;
	if (platform->port_bits > 0 && bits < platform->port_bits)
		cost.bram18 = up(cost.bram18 * bits, platform->port_bits);
	cost.bram18 *= 2;
	return cost;
}

static bool is_first_of_bundle(const struct cpp_design *design, const struct cpp_array *array)
{
	for (const struct cpp_array *other = design->arrays.data; other < array; other++)
		if (other->storage == CPP_AXI && array->bundle &&
		        text_same(other->bundle, array->bundle))
			return false;
	return true;
}

struct resources model_array_cost(const struct modeller *modeller, const struct cpp_array *array)
{
	struct resources none = { 0 };
	int64_t words = 1;
	int64_t banks = 1;
	if (array->storage == CPP_AXI)
		return is_first_of_bundle(modeller->design, array) ? adapter_cost(modeller, array)
		                                                   : none;
	if (array->outside || model_is_register(array))
		return none;
	for (int i = 0; i < array->rank; i++) {
		int64_t factor = array->partition[i] == CPP_WHOLE ? 1 : array->factor[i];
		words *= up(array->extent[i], factor);
		banks *= factor;
	}
	if (array->storage == CPP_STREAM)
		words = array->depth;
	none.bram18 = banks *
	        blocks_of(words, array->bits,
	                array->shared_ports > 1 && array->storage == CPP_MEMORY);
	return none;
}

static int pool_of(enum op_code code)
{
	if (code == OP_ADDF || code == OP_SUBF)
		return POOL_ADDERS;
	return code == OP_MULF ? POOL_MULTIPLIERS : POOL_OTHERS;
}

struct operators model_both(struct operators left, struct operators right)
{
	left.all = resources_add(left.all, right.all);
	for (int p = 0; p < POOLS; p++)
		left.dsp[p] += right.dsp[p];
	return left;
}

struct operators model_operation_cost(
        const struct modeller *modeller, int body, int64_t interval, bool fabric)
{
	const struct cpp_design *design = modeller->design;
	const struct cpp_body *items = &design->bodies.data[body];
	int64_t count[OP_COUNT][4] = { 0 };
	struct operator_cost each[OP_COUNT][4] = { 0 };
	struct operators total = { 0 };
	for (size_t i = 0; i < items->items.count; i++) {
		struct cpp_item item = items->items.data[i];
		const struct cpp_operation *operation = &design->operations.data[item.index];
		if (item.kind != CPP_OPERATION || operation->kind != CPP_COMPUTE)
			continue;
		struct operator_cost cost = model_operator(modeller, operation);
		if (fabric && !operation->is_double && pool_of(operation->code) == POOL_ADDERS)
			cost.dsp = 0;
		int kind = operation->is_double + 2 * operation->called;
		if (cost.dsp >= each[operation->code][kind].dsp)
			each[operation->code][kind] = cost;
		count[operation->code][kind]++;
	}
	for (int code = 0; code < OP_COUNT; code++)
		for (int kind = 0; kind < 4; kind++) {
			int64_t units = up(count[code][kind], interval);
			int pool = kind < 2 ? pool_of((enum op_code)code) : POOL_CALLED;
			total.all.dsp += units * each[code][kind].dsp;
			total.all.lut += units * each[code][kind].lut;
			total.all.ff += units * each[code][kind].ff;
			total.dsp[pool] += units * each[code][kind].dsp;
		}
	return total;
}
