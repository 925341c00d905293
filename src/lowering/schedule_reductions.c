/* Decides how each kernel adds up its results, and records it.
 *
 * Before: stream.kernel {partial_sums = 8}
 * After:  stream.kernel {partial_sums = 8, reduction_schedule = "double_buffered"}
 * Results that converters or shared buffers take from the kernel's accumulators are drained. The
 * partial sums of others are combined while the next terms come, where the loops allow it.
 * Needs: forms of converters and shared buffers. Guarantees: every kernel has a reduction schedule.
 * Exact. Ends: one walk over the program. */
#include "lowering/lower_kernel.h"
#include "lowering/lowering_passes.h"

bool reduction_may_be_empty(const struct kernel *kernel)
{
	bool empty = false;
	for (int i = 0; i < kernel->loops && !kernel->scan; i++)
		empty = empty ||
		        (kernel->loop[i].reduction && kernel->loop[i].run_time &&
		                kernel->loop[i].run_time->plus < 1);
	return empty;
}

static enum reduction_schedule choose(struct arena *arena, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	if (accumulator_drain_of(arena, op).buffer || layer_carry_of(arena, op).loop ||
	        drain_order_of(arena, op).convert)
		return REDUCTION_DRAINED;
	if (is_reduction_dynamic(op))
		return REDUCTION_DYNAMIC;
	if (double_buffered_loop(op) >= 0)
		return REDUCTION_DOUBLE_BUFFERED;
	if (is_reduction_split(kernel, kernel->partial_sums))
		return REDUCTION_SPLIT;
	if (kernel->partial_sums > 1 || reduction_may_be_empty(kernel))
		return REDUCTION_DRAIN_AFTER;
	return kernel_has_reduction(kernel) ? REDUCTION_NEST : REDUCTION_NONE;
}

static void schedule_kernel_reduction(struct op *op, void *context)
{
	struct module *module = context;
	if (op->code == OP_KERNEL)
		attr_set(module, op, KEY_REDUCTION_SCHEDULE,
		        attr_string(module, reduction_schedule_name[choose(module->arena, op)]));
}

bool schedule_reductions(struct pass_context *context, struct module *module)
{
	(void)context;
	ir_walk(module_main(module)->region[0], schedule_kernel_reduction, module);
	return true;
}

bool check_reduction_schedule(struct design *design, const struct op *op)
{
	enum reduction_schedule possible = choose(design->module->arena, op);
	const char *found = attr_text_or(op, KEY_REDUCTION_SCHEDULE, NULL);
	if (reduction_schedule_of(op) == possible)
		return true;
	if (found)
		diag_error(design->module->diag, op->location,
		        "kernel %s: its reduction schedule is \"%s\", but its loops allow \"%s\"",
		        op->kernel->name, found, reduction_schedule_name[possible]);
	else
		diag_error(design->module->diag, op->location,
		        "kernel %s has no reduction schedule", op->kernel->name);
	return diag_note(design->module->diag,
	        "--from schedule_reductions chooses the schedules of all kernels");
}
