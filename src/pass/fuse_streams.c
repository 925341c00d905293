/* Keeps as much of the design fused on chip as the budget allows; what does not fit is cut: the converter becomes a store DMA, a buffer in external memory and
 * a load DMA.
 * All kernels of one design run side by side, so their buffers add up: starting a second fusion, as the published greedy does when its C_max is
 * reached, frees nothing here.  What helps is to cut edges, largest buffer first, since each cut costs two memory ports whatever it saves.
 * Needs: streams.  Guarantees: converters fit the budget (C_max: --on-chip, else the platform's memory), or a diagnostic says what the least would be.  Exact. */
#include "model/platform.h"
#include "pass/explain.h"

#define SHARE 8               /* tenths of the memory that converters may take: FIFOs and accumulators need some too */

struct converters {
	struct arena *arena;
	VEC(struct op *) list;
	int64_t bytes;
};

static void collect(struct op *op, void *context)
{
	struct converters *converters = context;
	if (op->code != OP_CONVERT)
		return;
	VEC_PUSH(converters->arena, &converters->list, op);
	converters->bytes += attr_get(op, "cut") ? 0 : converter_bytes(op);
}

static int64_t budget_of(const struct pass_context *context)
{
	return context->on_chip_bytes ? context->on_chip_bytes : resources_bytes(platform_total(context->platform)) * SHARE / 10;
}

/* A block that both sides walk within one outer iteration would need memory traffic in step with it: only whole tensors are cut. */
static struct op *largest(const struct converters *converters)
{
	struct op *best = NULL;
	for (size_t i = 0; i < converters->list.count; i++) {
		struct op *op = converters->list.data[i];
		if (!attr_get(op, "cut") && !attr_integer_or(op, "shared", 0) && converter_bytes(op) && (!best || converter_bytes(op) > converter_bytes(best)))
			best = op;
	}
	return best;
}

bool fuse_streams(struct pass_context *context, struct module *module)
{
	struct converters converters = {.arena = module->arena};
	ir_walk(module_main(module)->region[0], collect, &converters);
	int64_t budget = budget_of(context);
	while (converters.bytes > budget) {
		struct op *op = largest(&converters);
		if (!op) {
			diag_error(module->diag, NOWHERE, "converters need %lld bytes on chip with every edge cut that can be, the budget is %lld", (long long)converters.bytes, (long long)budget);
			return diag_note(module->diag, "--on-chip %lld is the least", (long long)converters.bytes);
		}
		converters.bytes -= converter_bytes(op);
		attr_set(module, op, "cut", attr_unit(module));
	}
	explain_converters(module);
	return true;
}
