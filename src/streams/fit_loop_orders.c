/* Chooses the loop orders again where what they leave on chip cannot meet the budget.
 *
 * Before: schedules of the fewest bytes on chip, spilled converters included
 * After:  schedules of the fewest bytes that cannot be spilled, if these are fewer
 * What they leave is found by running the passes that decide which converters there are on a copy.
 * Needs: schedules. Guarantees: schedules. Exact. Ends: two copies at most. */
#include "lowering/lowering_passes.h"
#include "schedule/loop_orders.h"
#include "schedule/recorded_choices.h"
#include "streams/on_chip_footprint.h"
#include "streams/streams_passes.h"

/* Bytes on chip with every possible converter spilled; -1 after a diagnostic. */
static int64_t least_on_chip(struct pass_context *context, const struct module *module)
{
	struct module *copy = module_clone(module, module->arena);
	if (!form_streams(context, copy))
		return -1;
	insert_converters(context, copy);
	recompute_kernels(context, copy);
	share_buffers(context, copy);
	fold_converters(context, copy);
	schedule_reductions(context, copy);
	return on_chip_bytes_least(copy->arena, module_main(copy)->region[0]);
}

/* Takes the schedules of a copy of the block. */
static void take_schedules(
        struct module *module, const struct block *block, const struct block *copy)
{
	const struct op *from = copy->first;
	for (struct op *op = block->first; op; op = op->next, from = from->next) {
		if (op->code == OP_FOR)
			take_schedules(module, op->region[0], from->region[0]);
		if (!attr_get(op, KEY_SCHEDULE))
			continue;
		struct schedule schedule = recorded_schedule(module->arena, from);
		record_schedule(module, op, &schedule);
	}
}

bool fit_loop_orders(struct pass_context *context, struct module *module)
{
	int64_t least = least_on_chip(context, module);
	if (least <= on_chip_budget(context))
		return least >= 0;
	struct module *frugal = module_clone(module, module->arena);
	choose_orders(context, frugal, LOOP_ORDER_SPILLS);
	int64_t fewer = least_on_chip(context, frugal);
	if (fewer >= 0 && fewer < least)
		take_schedules(
		        module, module_main(module)->region[0], module_main(frugal)->region[0]);
	return fewer >= 0;
}
