/* Keeps as much of the design fused on chip as the budget allows; what does not fit is cut: the
 * converter becomes a store DMA, a buffer in external memory and a load DMA.
 * All kernels of one design run side by side, so their buffers add up: starting a second fusion,
 * as the published greedy does when its C_max is reached, frees nothing here.  What helps is to
 * cut edges, largest buffer first, since each cut costs two memory ports whatever it saves. What
 * is larger than a die has room for is cut whatever the budget.
 * The budget counts converters, buffers with several readers, sums that kernels hold, and FIFOs
 * of two words; how deep FIFOs really are is decided later. Needs: streams.  Guarantees: all
 * that fits the budget (C_max: --on-chip-memory, else the platform's memory), or a diagnostic
 * says what the least would be.  Exact. */
#include "streams/streams_passes.h"
#include "streams/explain_converters.h"
#include "streams/on_chip_footprint.h"

bool spill_to_budget(struct pass_context *context, struct module *module)
{
	struct on_chip_bytes on_chip_bytes =
	        on_chip_bytes_of_block(module->arena, module_main(module)->region[0]);
	int64_t budget = on_chip_budget(context);
	for (struct op *op; (op = unplaceable_converter(context->platform, &on_chip_bytes)) ||
	        on_chip_bytes_total(&on_chip_bytes) > budget;) {
		op = op ? op : largest_spillable(&on_chip_bytes);
		if (!op) {
			diag_error(module->diag, NOWHERE,
			        "even with every possible buffer spilled, %lld bytes are needed on "
			        "chip: converters %lld, shared buffers %lld, accumulators %lld, "
			        "FIFOs of two words %lld; the budget is %lld",
			        (long long)on_chip_bytes_total(&on_chip_bytes),
			        (long long)on_chip_bytes.converters,
			        (long long)on_chip_bytes.buffers, (long long)on_chip_bytes.sums,
			        (long long)on_chip_bytes.fifos, (long long)budget);
			context->least_on_chip = on_chip_bytes_total(&on_chip_bytes);
			return diag_note(module->diag, "--on-chip-memory %lld is the minimum",
			        (long long)on_chip_bytes_total(&on_chip_bytes));
		}
		spill_converter(module, &on_chip_bytes, op);
	}
	context->on_chip_bytes = on_chip_bytes_total(&on_chip_bytes);
	context->least_on_chip_bytes =
	        on_chip_bytes_least(module->arena, module_main(module)->region[0]);
	explain_converters(module);
	return true;
}
