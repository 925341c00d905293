/* What a unit gives in tiles of tokens, and takes again after elementwise work alone, goes group
 * by group: the scales of a tile are found in the order in which it takes them. The sums of a
 * tile come a word of all its tokens after the other (ir/contract.h), so groups are there long
 * before rows are; what lies between then holds groups, and the next phase begins with the first
 * one.  Where a row is looked at as a whole, as a norm does, tokens go on one after the other.
 * Needs: contractions in a unit, rows bound.  Guarantees: nothing but the order that the kernels
 * of such scales list.  Exact. */
#include "ir/contract.h"
#include "ir/kernel_edit.h"
#include "attention/attention_passes.h"

#define DEEP 4 /* kernels between two phases, at most */

static bool walks(const struct kernel *kernel, const struct access *access)
{
	int loops = 0;
	for (int l = 0; l < kernel->loops; l++)
		loops += access->stride[l] && kernel->loop[l].extent > 1;
	return loops > 1;
}

/* Is it made of sums of the unit, number by number?  What has a number for each row is not: a
 * row was looked at for it. */
static bool comes_in_groups(const struct value *value, int deep)
{
	const struct op *op = value->def;
	bool found = false;
	if (op && op->code == OP_CONTRACT)
		return attr_integer_or(op, KEY_TOKENS, 1) > 1;
	if (op && op->code == OP_KERNEL && op->kernel->tile_outermost)
		return true; /* heads of a tile come one after the other */
	if (!deep || !op || op->code != OP_KERNEL || kernel_has_reduction(op->kernel))
		return false;
	for (int j = 0; j < op->operands; j++) {
		bool made = op->operand[j]->def &&
		        (op->operand[j]->def->code == OP_KERNEL ||
		                op->operand[j]->def->code == OP_CONTRACT);
		if (made &&
		        (!walks(op->kernel, &op->kernel->operand[j]) ||
		                !comes_in_groups(op->operand[j], deep - 1)))
			return false;
		found = found || made;
	}
	return found;
}

/* The loop over the tokens of a tile: all of them that are `groups` numbers apart; -1: there is
 * none. */
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

static void order_scales(struct module *module, const struct op *contraction)
{
	struct op *op = contraction->operand[1]->def;
	struct contract contract;
	INVARIANT(module->guard, contract_of(contraction, &contract),
	        "a contraction whose operands do not fit together");
	int64_t tile = token_tile(contract.tokens, contract.token_symbol);
	if (contract.tokens == tile || !op || op->code != OP_KERNEL || !op->kernel->ordered ||
	        op->operands != 1 || !access_is_plain(op->kernel->operand) ||
	        !comes_in_groups(op->operand[0], DEEP))
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
