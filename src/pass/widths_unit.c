/* What a shared unit does between two kernels, for the search for widths: nothing comes out before all that it takes of a token, or of a tile of them, is in. */
#include "ir/contract.h"
#include "pass/widths.h"

#define BLOCK 12              /* rows of a slice that are summed side by side, about (lower_unit.c) */

/* Of a tile, that its tokens take. */
static double words_of(const struct contract *contract, int abreast)
{
	return (double)((contract_tile(contract->tokens) + abreast - 1) / abreast);
}

static double cycles_of(const struct contract *contract, int slices, int abreast)
{
	double tiles = (double)contract->tokens / (double)contract_tile(contract->tokens);
	return (double)((contract->outputs + slices - 1) / slices) * (double)contract->groups * tiles * words_of(contract, abreast);
}

/* Other work on the same numbers that comes before, in program order. */
static double work_before(const struct op *phase, int slices, int abreast)
{
	double cycles = 0;
	struct contract contract;
	for (const struct op *op = phase->parent->first; op != phase; op = op->next)
		if (op->code == OP_CONTRACT && op->operand[0] == phase->operand[0] && contract_of(op, &contract))
			cycles += cycles_of(&contract, slices, abreast);
	return cycles;
}

const struct value *widths_through_unit(const struct value *value, int slices, int abreast, struct width_phase *phase)
{
	const struct value *made = made_as(value);
	struct contract contract;
	*phase = (struct width_phase){0};
	if (!made->def || made->def->code != OP_CONTRACT || !contract_of(made->def, &contract))
		return made;
	double rows = (double)((contract.outputs + slices - 1) / slices), block = rows < BLOCK ? rows : BLOCK;
	phase->wait = work_before(made->def, slices, abreast);
	phase->part = (double)contract_tile(contract.tokens) / (double)contract.tokens;
	phase->first = block * (double)contract.groups * words_of(&contract, abreast);
	phase->cycles = cycles_of(&contract, slices, abreast);
	phase->last = contract.tokens == 1 ? block : 0;
	return made_as(made->def->operand[0]);
}
