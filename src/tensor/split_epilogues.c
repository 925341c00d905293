/* Splits a costly post body (division, elementary functions) off a reduction.
 * Before: y = exp(Σ x * w)      After: s = Σ x * w; y = exp(s)
 * The reduction has the parallelism that its operands need; a post body runs once per result and
 * would be built with the same parallelism, to idle nearly always.
 * Needs: fused kernels.
 * Guarantees: a reduction of many points to many results has no costly operation in its post body.
 * Exact.
 * Ends: each kernel is visited once. */
#include "platform/platform.h"
#include "ir/kernel_edit.h"
#include "tensor/tensor_passes.h"

/* Points of a reduction, and results, from which on its post body is split off. */
#define MANY_POINTS 16
#define MANY_RESULTS 64
/* Cycles of a costly operator: a division or a slower one. */
#define COSTLY_LATENCY 12

static bool is_costly(const struct platform *platform, const struct body *body)
{
	for (int n = 0; n < body->count; n++)
		if (body->node[n].kind == NODE_OP &&
		        platform_operator(platform, body->node[n].code, body->node[n].type)
		                        .latency >= COSTLY_LATENCY)
			return true;
	return false;
}

/* Points of the reduction loops, or of the parallel ones. */
static int64_t points(const struct kernel *kernel, bool reduction)
{
	int64_t product = 1;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].reduction == reduction)
			product *= kernel->loop[l].extent;
	return product;
}

static void split_block(struct pass_context *context, struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			split_block(context, module, op->region[0]);
		if (op->code != OP_KERNEL || !op->kernel->post.count || op->kernel->scan ||
		        body_uses_counters(&op->kernel->post) ||
		        !is_costly(context->platform, &op->kernel->post))
			continue;
		if (points(op->kernel, true) >= MANY_POINTS &&
		        points(op->kernel, false) >= MANY_RESULTS)
			kernel_split_epilogue(module, op);
	}
}

bool split_epilogues(struct pass_context *context, struct module *module)
{
	split_block(context, module, module_main(module)->region[0]);
	return true;
}
