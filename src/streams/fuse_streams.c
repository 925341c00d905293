/* Keeps as much of the design fused on chip as the budget allows; what does not fit is cut: the converter becomes a store DMA, a buffer in external memory and
 * a load DMA.
 * All kernels of one design run side by side, so their buffers add up: starting a second fusion, as the published greedy does when its C_max is
 * reached, frees nothing here.  What helps is to cut edges, largest buffer first, since each cut costs two memory ports whatever it saves.
 * What is larger than a die has room for is cut whatever the budget.
 * The budget counts converters, buffers with several readers, sums that kernels hold, and FIFOs of two words; how deep FIFOs really are is decided later.
 * Needs: streams.  Guarantees: all that fits the budget (C_max: --on-chip, else the platform's memory), or a diagnostic says what the least would be.  Exact. */
#include "streams/streams_passes.h"
#include "streams/explain.h"
#include "streams/held.h"

bool fuse_streams(struct pass_context *context, struct module *module)
{
	struct held held = held_count(module->arena, module_main(module)->region[0]);
	int64_t budget = on_chip_budget(context);
	for (struct op *op; (op = held_homeless(context->platform, &held)) || held_bytes(&held) > budget;) {
		op = op ? op : held_largest(&held);
		if (!op) {
			diag_error(module->diag, NOWHERE, "with every edge cut that can be, %lld bytes are needed on chip: converters %lld, buffers %lld, sums %lld, FIFOs of two words %lld; the budget is %lld",
			           (long long)held_bytes(&held), (long long)held.converters, (long long)held.buffers, (long long)held.sums, (long long)held.fifos, (long long)budget);
			context->least_on_chip = held_bytes(&held);
			return diag_note(module->diag, "--on-chip %lld is the least", (long long)held_bytes(&held));
		}
		held_cut(module, &held, op);
	}
	context->held = held_bytes(&held);
	context->least_held = held_least(module->arena, module_main(module)->region[0]);
	explain_converters(module);
	return true;
}
