/* Splits the epilogue (post body) off reductions, where operations share operators.
 *
 * A kernel that begins an iteration every n cycles does so for the terms of its sums as well. Its
 * epilogue alone may wait: it runs once a result.
 *
 * Before: y = gelu(Σ x * w)      After: s = Σ x * w; y = gelu(s)
 * Needs: fused kernels. Guarantees: without an engine and with --kernel-interval above 1, no
 * reduction has more operations of one kind behind its sum than in it. Exact.
 * Ends: each kernel is visited once. */
#include "ir/kernel_edit.h"
#include "ir/workload.h"
#include "lowering/operator_kinds.h"
#include "lowering/lowering_passes.h"

static void split_block(struct pass_context *context, struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			split_block(context, module, op->region[0]);
		if (op->code != OP_KERNEL || !op->kernel->post.count || op->kernel->scan ||
		        body_uses_counters(&op->kernel->post))
			continue;
		if (most_of_one_kind(module->arena, context->platform, &op->kernel->post) >
		        most_of_one_kind(module->arena, context->platform, &op->kernel->update))
			kernel_split_epilogue(module, op);
	}
}

bool split_shared_epilogues(struct pass_context *context, struct module *module)
{
	const struct op *main = module_main(module);
	if (choice_count(&context->choices, CHOICE_KERNEL_INTERVAL) > 1 &&
	        workload_of(main) == WORKLOAD_NONE)
		split_block(context, module, main->region[0]);
	return true;
}
