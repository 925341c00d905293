/* Computes activation scales group by group where their input comes from the engine in tiles.
 * Before: loops [tile][token][group] of a scale kernel
 * After:  loops [tile][group][token]
 * The engine delivers the sums of a tile as words of one output of all tokens (ir/contract.h), so a
 * group of all tokens is complete long before a row of one token.  With elementwise kernels only
 * between two jobs, these then buffer groups and not rows, and the next job starts with the first
 * group.  Where a whole row is needed, as by a norm, the order stays token by token.
 * Needs: contractions in the engine, token loops bound.
 * Guarantees: only the loop order of such scale kernels changes.
 * Exact.
 * Ends: each contraction is visited once. */
#include "ir/contract.h"
#include "ir/kernel_edit.h"
#include "attention/attention_passes.h"

/* Kernels between two jobs, at most. */
#define KERNELS_BETWEEN_MOST 4

/* Do several loops move the access, so that it is more than a number for each row? */
static bool walks_matrix(const struct kernel *kernel, const struct access *access)
{
	int loops = 0;
	for (int l = 0; l < kernel->loops; l++)
		loops += access->stride[l] && kernel->loop[l].extent > 1;
	return loops > 1;
}

/* Is the value an elementwise function of results of the engine?  An operand with one number for
 * each row says no: its producer read whole rows. */
static bool comes_in_groups(const struct value *value, int kernels)
{
	const struct op *op = value->def;
	bool found = false;
	if (op && op->code == OP_CONTRACT)
		return attr_integer_or(op, KEY_TOKENS, 1) > 1;
	if (op && op->code == OP_KERNEL && op->kernel->tile_outermost)
		return true; /* it produces a tile head by head */
	if (!kernels || !op || op->code != OP_KERNEL || kernel_has_reduction(op->kernel))
		return false;
	for (int j = 0; j < op->operands; j++) {
		bool computed = op->operand[j]->def &&
		        (op->operand[j]->def->code == OP_KERNEL ||
		                op->operand[j]->def->code == OP_CONTRACT);
		if (computed &&
		        (!walks_matrix(op->kernel, &op->kernel->operand[j]) ||
		                !comes_in_groups(op->operand[j], kernels - 1)))
			return false;
		found = found || computed;
	}
	return found;
}

/* The loop over the tokens of a tile, `groups` scales apart; a loop over all tokens is split.  -1:
 * there is none. */
static int tokens_of_tile(
        struct module *module, struct op *op, int64_t tokens, int64_t tile, int64_t groups)
{
	const struct kernel *kernel = op->kernel;
	for (int l = 0; l < kernel->loops; l++)
		if (!kernel->loop[l].reduction && kernel->result.stride[l] == groups &&
		        kernel->loop[l].extent == tokens)
			return kernel_split_loop(module, op, l, tile) ? l + 1 : -1;
	for (int l = 0; l < kernel->loops; l++)
		if (!kernel->loop[l].reduction && kernel->result.stride[l] == groups &&
		        kernel->loop[l].extent == tile)
			return l;
	return -1;
}

/* Moves that loop innermost among the parallel loops of the contraction's scale kernel. */
static void order_scales(struct module *module, const struct op *contraction)
{
	struct op *op = contraction->operand[1]->def;
	struct contract contract;
	INVARIANT(module->guard, contract_of(contraction, &contract),
	        "a contraction whose operands do not fit together");
	int64_t tile = token_tile(contract.tokens, contract.token_symbol);
	if (contract.tokens == tile || !op || op->code != OP_KERNEL || !op->kernel->ordered)
		return;
	if (op->operands != 1 || !access_is_plain(op->kernel->operand) ||
	        !comes_in_groups(op->operand[0], KERNELS_BETWEEN_MOST))
		return;
	int token = tokens_of_tile(module, op, contract.tokens, tile, contract.groups);
	int last = token;
	struct kernel *kernel = op->kernel;
	while (last >= 0 && last + 1 < kernel->loops && !kernel->loop[last + 1].reduction)
		last++;
	if (token >= 0)
		kernel_move_loop(module, op, token, last);
}

static void order_contraction(struct op *op, void *module)
{
	if (op->code == OP_CONTRACT)
		order_scales(module, op);
}

bool order_scales_by_group(struct pass_context *context, struct module *module)
{
	(void)context;
	ir_walk(module_main(module)->region[0], order_contraction, module);
	return true;
}
