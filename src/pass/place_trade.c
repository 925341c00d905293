/* Memories that change their kind.  They were chosen for the whole platform (allocate_memory.c); but a die whose memory ports take most of its block RAMs may have URAMs to spare. */
#include "pass/place.h"

/* The memory on the die that gives most block RAMs for a URAM, of those that `spare` URAMs are enough for.  NULL: there is none. */
static const struct place_memory *best_trade(const struct platform *platform, const struct place_problem *problem, const int *die, int where, int64_t spare)
{
	const struct place_memory *best = NULL;
	int64_t given = 0, taken = 1;
	for (int i = 0; i < problem->memories; i++) {
		const struct place_memory *memory = &problem->memory[i];
		if (die[memory->item] != where || memory_of(platform, memory->op).storage != STORAGE_BRAM)
			continue;
		int64_t now = memory_cost(platform, memory->op).bram18, then = memory_cost_as(platform, memory->op, STORAGE_URAM).uram;
		if (then > spare || now * taken <= given * then)
			continue;
		best = memory;
		given = now;
		taken = then;
	}
	return best;
}

bool place_trade(struct module *module, const struct platform *platform, struct place_problem *problem, const int *die, int where)
{
	const struct resources used = place_load(problem, die).used[where];
	const struct place_memory *memory;
	bool traded = false;
	int64_t over = used.bram18 - problem->capacity[where].bram18, spare = problem->capacity[where].uram - used.uram;
	for (; over > 0 && (memory = best_trade(platform, problem, die, where, spare)); traded = true) {
		struct resources *need = &problem->item[memory->item].need, now = memory_cost(platform, memory->op), then = memory_cost_as(platform, memory->op, STORAGE_URAM);
		attr_set(module, memory->op, "stream.storage", attr_string(module, storage_name[STORAGE_URAM]));
		*need = resources_add(resources_less(*need, now), then);
		over -= now.bram18;
		spare -= then.uram;
	}
	return traded;
}
