/* Phases of the same numbers that have few rows each become one block: keys and values beside their queries.  Alone each would be padded until a sum has as many cycles as an addition takes, and every group
 * would come once for each of them.
 *     group 0: k k k q q … q v v v | group 1: k k k q q … q v v v | …        rows of a slice
 * Memory has their words in this order.  What takes sums gets the rows of the first phase, then those of the next. */
#include "engine/unit.h"

#define STACKED_SUMS 512      /* of a slice, for the words of a tile: so deep is a block RAM */

int unit_stack_end(const struct unit *unit, int first)
{
	int end = first + 1;
	while (end < (int)unit->phases.count && unit->phases.data[end].stacked)
		end++;
	return end;
}

int64_t unit_stack_rows(const struct unit *unit, int first)
{
	int64_t rows = 0;
	for (int i = first, end = unit_stack_end(unit, first); i < end; i++)
		rows += unit->phases.data[i].block;
	return rows;
}

int unit_gaps(const struct unit *unit, int first, int slice, int64_t row[GAPS_MOST])
{
	int gaps = 0;
	int64_t rows = 0;
	for (int i = first, end = unit_stack_end(unit, first); i + 1 < end; i++) {
		const struct phase *phase = &unit->phases.data[i];
		rows += phase->block;
		if (phase_rows(phase, slice) < phase->block)
			row[gaps++] = rows - 1;
		if (phase_lacks_row(unit, phase + 1, slice))
			row[gaps++] = rows;
	}
	return gaps;
}

static bool follows(const struct phase *before, const struct phase *phase)
{
	return phase->op->parent == before->op->parent && phase->contract.same && !phase->contract.apart && phase->words == before->words && phase->tiles == before->tiles && phase->contract.groups == before->contract.groups;
}

/* Those from `first` on that may share a block; *few: has one of them fewer rows than it takes? */
static int stack_end(const struct unit *unit, int first, bool *few)
{
	const struct phase *phase = unit->phases.data;
	int end = first;
	int64_t rows = 0;
	*few = false;
	for (; end < (int)unit->phases.count && end - first < JOINED_MOST && phase[end].there.tiles && !phase[end].part && !phase[end].from && (end == first || follows(&phase[end - 1], &phase[end])); end++) {
		int64_t own = unit_rows_left(unit, &phase[end]);
		if ((rows + own) * phase[end].words > STACKED_SUMS)
			break;
		rows += own;
		*few |= own < unit_rows_least(unit, &phase[end]);
	}
	return end;
}

void unit_stack_phases(struct unit *unit)
{
	for (int first = 0, end; first < (int)unit->phases.count; first = end > first ? end : first + 1) {
		bool few;
		end = stack_end(unit, first, &few);
		for (int i = first + 1; few && i < end; i++)
			unit->phases.data[i].stacked = true;
	}
}
