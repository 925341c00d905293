/* Latency and cost of the operations of a design at its clock. */
#include "hls_model/hls_model_internal.h"

bool model_is_register(const struct cpp_array *array)
{
	int64_t elements = 1;
	bool complete = true;
	for (int i = 0; i < array->rank; i++) {
		elements *= array->extent[i] < 1 ? 1 : array->extent[i];
		complete &=
		        array->partition[i] == CPP_COMPLETE || array->factor[i] >= array->extent[i];
	}
	return array->storage == CPP_MEMORY && array->rank && complete;
}

/* The platform's latencies are for its own clock. Operators have a stage more or less only where
 * the clock differs much, as their stages are cut where a path is longest. */
static int64_t at_clock(const struct modeller *modeller, int latency)
{
	double own = 1000 / modeller->platform->clock_mhz;
	double ratio = own / modeller->options->period;
	if (ratio > 0.8 && ratio <= 1.05)
		return latency;
	int64_t scaled = (int64_t)(latency * ratio + 0.5);
	return scaled < 1 && latency ? 1 : scaled;
}

static bool has_constant(const struct cpp_operation *operation)
{
	for (int i = 0; i < operation->operands; i++)
		if (operation->operand[i] == CPP_NONE)
			return true;
	return false;
}

struct operator_cost model_operator(
        const struct modeller *modeller, const struct cpp_operation *operation)
{
	const struct platform *platform = modeller->platform;
	struct operator_cost cost = { 0 };
	if (operation->kind != CPP_COMPUTE)
		return cost;
	cost = operation->is_double ? platform->double_cost[operation->code]
	                            : platform->cost[operation->code];
	if (operation->code == OP_MULI) {
		cost = platform_product(platform, operation->bits, operation->bits);
		if (has_constant(operation)) /* shifts and additions */
			cost = (struct operator_cost){ .latency = 1, .lut = 2 * operation->bits };
	}
	return cost;
}

static bool is_wire(enum op_code code)
{
	switch (code) {
	case OP_ADDI:
	case OP_SUBI:
	case OP_ANDI:
	case OP_ORI:
	case OP_XORI:
	case OP_SHLI:
	case OP_SHRSI:
	case OP_CMPI:
	case OP_SELECT: return true;
	default: return false;
	}
}

/* Cycles of an access: an address and a word of a memory, a word of a FIFO, a register. */
static int64_t access_latency(const struct modeller *modeller, const struct cpp_operation *access)
{
	const struct cpp_array *array = &modeller->design->arrays.data[access->array];
	bool direct = model_is_register(array);
	if (access->kind == CPP_STORE)
		return direct ? 0 : 1;
	if (direct)
		return 0;
	return array->storage == CPP_STREAM ? 1 : 2;
}

int64_t model_latency(
        const struct modeller *modeller, const struct cpp_operation *operation, bool quick)
{
	if (operation->kind == CPP_CARRIED)
		return 0;
	if (operation->kind != CPP_COMPUTE)
		return access_latency(modeller, operation);
	if (is_wire(operation->code))
		return 0;
	bool adds = operation->code == OP_ADDF || operation->code == OP_SUBF;
	int64_t latency = at_clock(modeller, model_operator(modeller, operation).latency);
	return quick && adds && !operation->is_double ? latency / 2 : latency;
}
