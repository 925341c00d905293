/* Spills converters to external memory until the design fits the on-chip memory budget.
 *
 * Before: writer -> converter (buffer on chip) -> readers
 * After:  writer -> store DMA -> external memory -> load DMA -> readers
 * All kernels of a design run at the same time, so their buffers add up: starting a second fusion
 * group, as the published greedy algorithm does when C_max is reached, would free nothing. Each
 * spill costs two memory ports, so the largest buffer goes first. A converter that fits no die is
 * spilled whatever the budget.
 * Needs: streams. Guarantees: the design fits the budget (C_max: --on-chip-memory, else the
 * platform's memory), or a diagnostic states the least possible. Exact.
 * Ends: each iteration spills one converter. */
#include "converter/consumer_buffer.h"
#include "streams/streams_passes.h"
#include "streams/explain_converters.h"
#include "streams/on_chip_footprint.h"

bool spill_to_budget(struct pass_context *context, struct module *module)
{
	struct on_chip_bytes on_chip_bytes =
	        on_chip_bytes_of_block(module->arena, module_main(module)->region[0]);
	int64_t budget = on_chip_budget(context);
	bool any = false;
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
			context->least_budget = on_chip_bytes_total(&on_chip_bytes);
			return diag_note(module->diag, "--on-chip-memory %lld is the minimum",
			        (long long)on_chip_bytes_total(&on_chip_bytes));
		}
		spill_converter(module, &on_chip_bytes, op);
		any = true;
	}
	if (any) /* a kernel may hold another operand instead of one that is spilled */
		mark_consumer_buffers(module, module_main(module)->region[0]);
	context->on_chip_bytes = on_chip_bytes_total(&on_chip_bytes);
	context->least_on_chip_bytes =
	        on_chip_bytes_least(module->arena, module_main(module)->region[0]);
	explain_converters(module);
	return true;
}
