/* Lets the operations of a kernel's iteration share operators, where a design does not fit.
 *
 * A kernel that begins an iteration every n cycles needs an n-th of the operators of each kind. So
 * a kernel gets the interval that --kernel-interval allows, but none longer than it has operations
 * of one kind that DSPs compute: a longer one saves nothing.  Partial sums are combined in a nest
 * of their own, whose iterations wait as well: a tree of as many adders would idle nearly always.
 *
 * Before: stream.kernel {initiation_interval = 1}  (20 multiplications)
 * After:  stream.kernel {initiation_interval = 8}  (3 multipliers)
 * Needs: scheduled kernels. Guarantees: no interval is shorter than before. Exact.
 * Ends: one walk over the program. */
#include "ir/kernel.h"
#include "lowering/lower_kernel.h"
#include "lowering/operator_kinds.h"
#include "lowering/lowering_passes.h"

int most_of_one_kind(struct arena *arena, const struct platform *platform, const struct body *body)
{
	int *operations = ARENA_ARRAY(arena, int, OP_COUNT);
	int most = 0;
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		if (node->kind != NODE_OP)
			continue;
		struct operator_cost cost = node_cost(platform, body, node, true);
		if (!cost.dsp)
			continue;
		operations[node->code] += cost.parts > 1 ? cost.parts : 1;
		most = operations[node->code] > most ? operations[node->code] : most;
	}
	return most;
}

struct sharing {
	struct arena *arena;
	const struct platform *platform;
	int most; /* cycles between iterations */
};

static int within(const struct sharing *s, int64_t operations)
{
	return operations < s->most ? (int)operations : s->most;
}

static void share(struct op *op, void *context)
{
	const struct sharing *s = context;
	if (op->code != OP_KERNEL || !op->kernel->scheduled || !op->kernel->loops)
		return;
	struct kernel *kernel = op->kernel;
	int update = most_of_one_kind(s->arena, s->platform, &kernel->update);
	int post = most_of_one_kind(s->arena, s->platform, &kernel->post);
	bool combines = kernel->partial_sums > 1 && !is_reduction_dynamic(op);
	int64_t words = kernel->lanes * kernel->row_unroll;
	int main = within(s, (combines || post < update ? update : post) * words);
	if (main > kernel->initiation_interval)
		kernel->initiation_interval = main;
	if (combines)
		kernel->combine_interval =
		        within(s, kernel->partial_sums > post ? kernel->partial_sums : post);
}

bool share_operators(struct pass_context *context, struct module *module)
{
	int most = (int)choice_count(&context->choices, CHOICE_KERNEL_INTERVAL);
	struct sharing sharing = {
		.arena = module->arena, .platform = context->platform, .most = most
	};
	if (most > 1)
		ir_walk(module_main(module)->region[0], share, &sharing);
	return true;
}
