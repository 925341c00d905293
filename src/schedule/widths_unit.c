/* What a shared unit does between two kernels, for the search for widths: nothing comes out before all that it takes of a tile of tokens is in.
 * And where what one kernel makes is taken in another order: a converter holds all of it then, which no pace hides. */
#include "engine/unit_cost.h"
#include "ir/kernel_edit.h"
#include "ir/contract.h"
#include "schedule/widths.h"
#include <math.h>

#define THROUGH 50            /* cycles through a slice, and to who collects its results; the next phase begins behind them */
#define BLOCK 12              /* rows of a slice that are summed side by side, about (plan_unit.c) */

/* Of a tile, that its tokens take. */
static double words_of(const struct contract *contract, int64_t tokens, int abreast)
{
	return (double)((rows_tile(tokens, contract->rows) + abreast - 1) / abreast);
}

static double sums_of(const struct contract *contract, int64_t tokens, int slices, int abreast)
{
	double tiles = (double)tokens / (double)rows_tile(tokens, contract->rows);
	return (double)((contract->outputs + slices - 1) / slices) * (double)contract->groups * tiles * words_of(contract, tokens, abreast);
}

static double cycles_of(const struct contract *contract, int64_t tokens, int slices, int abreast)
{
	double sums = sums_of(contract, tokens, slices, abreast);
	double words = (double)tokens * (double)contract->outputs / (double)contract->lanes;
	return sums > words ? sums : words;
}

/* Cycles of the phases of the same numbers in front of it, or behind it. */
static double cycles_beside(const struct op *op, bool before, int64_t tokens, int slices, int abreast)
{
	double cycles = 0;
	struct contract contract;
	for (const struct op *at = op; at; at = before ? at->previous : at->next) {
		if (at->code != OP_CONTRACT || !contract_of(at, &contract))
			continue;
		if (at != op && (before || contract.same))
			cycles += cycles_of(&contract, tokens, slices, abreast);
		if (at != op && !before && !contract.same)
			break;
		if (before && !contract.same)
			break;
	}
	return cycles;
}

const struct op *widths_same_phase(const struct op *op)
{
	const struct op *first = op;
	for (const struct op *at = op; at && attr_get(first, KEY_SAME_INPUT); at = at->previous)
		first = at->code == OP_CONTRACT ? at : first;
	return first;
}

/* Does what it takes come group by group (group_tokens.c)? */
static bool takes_groups(const struct op *op, const struct contract *contract)
{
	const struct op *scale = op->operand[1]->def;
	int last = -1;
	for (int l = 0; scale && scale->code == OP_KERNEL && scale->kernel->ordered && l < scale->kernel->loops; l++)
		last = scale->kernel->loop[l].reduction || scale->kernel->loop[l].extent == 1 ? last : l;
	return last >= 0 && contract->groups > 1 && scale->kernel->result.stride[last] == contract->groups;
}

/* Tokens of one tile: the first block works on groups as they come, the others when all are there; where all rows are one block its results come with the last group. */
static void few_through_unit(const struct contract *contract, double rows, double block, int64_t tokens, int abreast, struct width_phase *phase)
{
	double words = words_of(contract, tokens, abreast), sums = rows * (double)contract->groups * words, collected = (double)tokens * (double)contract->outputs / (double)contract->lanes;
	phase->last = block * words;
	if (!contract->once && !unit_block_once(rows, contract->groups, words_of(contract, contract->tokens, abreast)))
		return;
	phase->last = words;
	phase->first = sums - rows * words;
	phase->cycles = phase->first + (collected > rows * words ? collected : rows * words);
}

/* Several tiles, or one token of as many: where all rows of one are one block, its results come with the last group, and those of the last tile when the phase is over. */
static void tiles_through_unit(const struct contract *contract, double rows, int64_t tokens, int abreast, struct width_phase *phase)
{
	double words = words_of(contract, tokens, abreast), collected = phase->tile * (double)tokens * (double)contract->outputs / (double)contract->lanes;
	if (!contract->once && !unit_block_once(rows, contract->groups, words_of(contract, contract->tokens, abreast)))
		return;
	phase->first = rows * (double)(contract->groups - 1) * words;
	phase->together = phase->tile;
	phase->collect = collected > rows * words ? collected : rows * words;
	phase->cycles += phase->collect - rows * words;
}

static bool next_is_same(const struct op *op)
{
	const struct op *next = op->next;
	while (next && next->code != OP_CONTRACT)
		next = next->next;
	return next && attr_get(next, KEY_SAME_INPUT);
}

const struct value *widths_through_unit(const struct value *value, int slices, int abreast, bool single, struct width_phase *phase)
{
	const struct value *made = made_as(value);
	struct contract contract;
	*phase = (struct width_phase){0};
	while (made->def && made->def->code == OP_FILL)
		made = made_as(made->def->operand[0]);
	if (!made->def || made->def->code != OP_CONTRACT || !contract_of(made->def, &contract))
		return made;
	double rows = (double)((contract.outputs + slices - 1) / slices), block = rows < BLOCK ? rows : BLOCK;
	int64_t tokens = single ? 1 : contract.tokens;
	phase->tile = phase->part = (double)rows_tile(tokens, contract.rows) / (double)tokens;
	if ((tokens > rows_tile(tokens, contract.rows) || contract.rows) && takes_groups(made->def, &contract))
		phase->part /= (double)contract.groups;
	phase->before = cycles_beside(made->def, true, tokens, slices, abreast);
	phase->after = cycles_beside(made->def, false, tokens, slices, abreast);
	phase->first = block * (double)contract.groups * words_of(&contract, tokens, abreast);
	phase->cycles = cycles_of(&contract, tokens, slices, abreast);
	phase->sums = sums_of(&contract, tokens, slices, abreast);
	phase->block = phase->sums * phase->tile / (contract.once || unit_block_once(rows, contract.groups, words_of(&contract, contract.tokens, abreast)) ? 1 : ceil(rows / UNIT_BLOCK_MOST));
	if (contract.rows && contract.tokens == rows_tile(contract.tokens, true))
		few_through_unit(&contract, rows, block, tokens, abreast, phase);
	if (contract.tokens > rows_tile(contract.tokens, contract.rows))
		tiles_through_unit(&contract, rows, tokens, abreast, phase);
	if (contract.tokens == 1) {
		phase->last = block + THROUGH;
		phase->first += THROUGH;
		phase->together = block / rows;
		phase->collect = block * (slices / (double)contract.lanes);
		phase->cycles += phase->collect + THROUGH;
		phase->through = next_is_same(made->def) ? THROUGH : 0;
	}
	return made_as(made->def->operand[0]);
}

/* The outermost loop that walks a tensor: elements between its points, and whether no other's are further apart.  but: a loop that does not count; -1: all do. */
struct outer {
	int64_t stride;
	bool largest;
};

static struct outer outer_of(const struct plan *plan, const struct access *access, int but)
{
	struct outer outer = {0, true};
	for (int i = 0; i < plan->parts; i++) {
		int64_t stride = plan->part[i].trip > 1 && plan->part[i].source != but ? access->stride[plan->part[i].source] * plan->part[i].step : 0;
		if (!outer.stride)
			outer.stride = stride;
		outer.largest = outer.largest && stride <= outer.stride;
	}
	return outer;
}

/* A unit takes and gives tokens in their order. */
static bool is_whole(struct outer writer, struct outer reader)
{
	return !(writer.largest && reader.largest) && writer.stride != reader.stride;
}

/* What puts a part in another order holds all that it is a part of (itensor/box.h). */
static bool is_some(const struct width_part *part)
{
	return part->low > 0 || part->high < 1;
}

/* Of an elementwise kernel nobody has said in which order it works: the search for orders follows those around it. */
static bool is_free(const struct op *op)
{
	return op->code == OP_KERNEL && !op->kernel->ordered && !kernel_has_reduction(op->kernel) && !kernel_is_gather(op);
}

/* The loop over blocks of keys, as many as there are at run time; -1: there is none. */
static int block_loop(const struct kernel *kernel)
{
	int loop = kernel->loops - 1;
	while (loop >= 0 && !widths_walks_keys(&kernel->loop[loop]))
		loop--;
	return loop;
}

/* Where both walk the same blocks of keys, the search for orders puts these outermost, and what is in another order within one waits for its end. */
static bool hold_block(const struct width_space *space, struct width_kernel *kernel, int j, const struct plan *plan, const struct plan *reader)
{
	const struct op *op = kernel->op, *maker = space->kernel[kernel->source[j]].op;
	int own = block_loop(op->kernel), made = block_loop(maker->kernel);
	if (!space->blocks_first || own < 0 || made < 0 || !run_time_same(op->kernel->loop[own].run_time, maker->kernel->loop[made].run_time))
		return false;
	bool turned = !is_free(op) && !is_free(maker) && is_whole(outer_of(plan, &maker->kernel->result, made), outer_of(reader, &op->kernel->operand[j], own));
	for (int e = 0; e < WIDTH_PRICED; e++)
		kernel->held[j].part[e] = turned ? 1 / (double)widths_turns(space, op->kernel->loop[own].run_time, op->kernel->loop[own].extent, space->extent[e]) : 0;
	return true;
}

static void hold(struct width_held *held, bool whole)
{
	for (int e = 0; e < WIDTH_PRICED; e++)
		held->part[e] = whole;
}

void widths_orders(struct streams *streams, const struct width_space *space)
{
	struct plan *plan = ARENA_ARRAY(space->arena, struct plan, space->kernels + 1);
	const struct outer tokens = {0, true};
	for (int k = 0; k < space->kernels; k++) {
		struct width_kernel *kernel = &space->kernel[k];
		const struct op *op = kernel->op;
		bool gather = kernel_is_gather(op);
		if (!gather)
			plan[k] = plan_kernel(streams->module, op, reach_of(space->arena, op), only_stored(op), kernel->option[0].width.lanes);
		for (int j = 0; j < kernel->operands; j++) {
			int source = kernel->source[j];
			if (source < 0 || source >= k || gather || !plan[source].part)
				continue;
			struct outer writer = outer_of(&plan[source], &space->kernel[source].op->kernel->result, -1), reader = outer_of(&plan[k], &op->kernel->operand[j], -1);
			struct width_phase *phase = &kernel->phase[j], *single = &kernel->single[j];
			if (space->few_rows && (phase->number || is_free(op) || is_free(space->kernel[source].op))) {
				hold(&kernel->held[j], !phase->number && is_some(&kernel->part[j]));
				continue;
			}
			if (!phase->number) {
				if (!hold_block(space, kernel, j, &plan[source], &plan[k]))
					hold(&kernel->held[j], is_whole(writer, reader) && !op->kernel->operand[j].later);
				continue;
			}
			phase->part = is_whole(writer, tokens) ? 1 : phase->part;
			single->part = 1;
			hold(&kernel->held[j], is_whole(tokens, reader));
		}
	}
}
