/* Memories that change their kind.  They were chosen for the whole platform (allocate_memory.c); but a die whose memory ports take most of its block RAMs may have URAMs to spare. */
#include "pass/place.h"

struct trade {
	struct module *module;
	const struct platform *platform;
	const struct place_problem *problem;
};

static struct resources cost_as(const struct trade *t, struct op *op, enum storage storage)
{
	attr_set(t->module, op, "stream.storage", attr_string(t->module, storage_name[storage]));
	return memory_cost(t->platform, op);
}

static struct resources uram_cost(const struct trade *t, struct op *op)
{
	struct resources cost = cost_as(t, op, STORAGE_URAM);
	cost_as(t, op, STORAGE_BRAM);
	return cost;
}

/* The memory on the die that gives most block RAMs for a URAM, of those that `spare` URAMs are enough for.  NULL: there is none. */
static const struct place_memory *best_trade(const struct trade *t, const int *die, int where, int64_t spare)
{
	const struct place_problem *problem = t->problem;
	const struct place_memory *best = NULL;
	int64_t given = 0, taken = 1;
	for (int i = 0; i < problem->memories; i++) {
		const struct place_memory *memory = &problem->memory[i];
		if (die[memory->item] != where || memory_of(t->platform, memory->op).storage != STORAGE_BRAM)
			continue;
		struct resources now = memory_cost(t->platform, memory->op), then = uram_cost(t, memory->op);
		if (then.uram > spare || now.bram18 * taken <= given * then.uram)
			continue;
		best = memory;
		given = now.bram18;
		taken = then.uram;
	}
	return best;
}

bool place_trade(struct module *module, const struct platform *platform, struct place_problem *problem, const int *die, int where)
{
	const struct resources used = place_load(problem, die).used[where];
	const struct trade t = {module, platform, problem};
	const struct place_memory *memory;
	bool traded = false;
	int64_t over = used.bram18 - problem->capacity[where].bram18, spare = problem->capacity[where].uram - used.uram;
	for (; over > 0 && (memory = best_trade(&t, die, where, spare)); traded = true) {
		struct place_item *item = &problem->item[memory->item];
		struct resources now = memory_cost(platform, memory->op), then = cost_as(&t, memory->op, STORAGE_URAM);
		item->need = resources_add(resources_less(item->need, now), then);
		over -= now.bram18;
		spare -= then.uram;
	}
	return traded;
}
