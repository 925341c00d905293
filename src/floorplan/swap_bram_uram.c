/* Swaps memories between block RAM and URAM for one die. Their kinds were chosen for the whole
 * platform (bind_storage.c), but a die whose memory ports take most of its block RAMs may have
 * URAMs left, and another die block RAMs. */
#include "floorplan/floorplan.h"

static int64_t blocks_of(struct resources resources, enum storage storage)
{
	return storage == STORAGE_URAM ? resources.uram : resources.bram18;
}

struct memory_swap {
	const struct platform *platform;
	enum storage from, to;
	/* blocks by which the current kind exceeds the die, and blocks of the other kind that are
	 * left */
	int64_t excess, spare;
};

/* The memory on the die that frees most blocks for each block it takes, if there are enough; NULL:
 * there is none. */
static const struct floorplan_memory *best_swap(const struct memory_swap *memory_swap,
        const struct floorplan_problem *problem, const int *die, int where)
{
	const struct floorplan_memory *best = NULL;
	int64_t freed = 0;
	int64_t needed = 1;
	for (int i = 0; i < problem->memories; i++) {
		const struct floorplan_memory *memory = &problem->memory[i];
		if (die[memory->item] != where ||
		        memory_of(memory_swap->platform, memory->op).storage != memory_swap->from)
			continue;
		int64_t now = blocks_of(
		        memory_cost(memory_swap->platform, memory->op), memory_swap->from);
		int64_t then = blocks_of(
		        memory_cost_as(memory_swap->platform, memory->op, memory_swap->to),
		        memory_swap->to);
		if (then > memory_swap->spare || now * needed <= freed * then)
			continue;
		best = memory;
		freed = now;
		needed = then;
	}
	return best;
}

static bool swap_kind(struct module *module, struct memory_swap memory_swap,
        struct floorplan_problem *problem, const int *die, int where)
{
	const struct floorplan_memory *memory;
	bool swapped = false;
	for (; memory_swap.excess > 0 && (memory = best_swap(&memory_swap, problem, die, where));
	        swapped = true) {
		struct resources *need = &problem->item[memory->item].need;
		struct resources now = memory_cost(memory_swap.platform, memory->op);
		struct resources then =
		        memory_cost_as(memory_swap.platform, memory->op, memory_swap.to);
		attr_set(module, memory->op, KEY_STREAM_STORAGE,
		        attr_string(module, storage_name[memory_swap.to]));
		*need = resources_add(resources_subtract(*need, now), then);
		memory_swap.excess -= blocks_of(now, memory_swap.from);
		memory_swap.spare -= blocks_of(then, memory_swap.to);
	}
	return swapped;
}

bool swap_bram_uram(struct module *module, const struct platform *platform,
        struct floorplan_problem *problem, const int *die, int where)
{
	const struct resources used = floorplan_load(problem, die).used[where];
	const struct resources have = problem->capacity[where];
	int64_t bram = used.bram18 - have.bram18;
	int64_t uram = used.uram - have.uram;
	bool swapped = swap_kind(module,
	        (struct memory_swap){ platform, STORAGE_BRAM, STORAGE_URAM, bram, -uram }, problem,
	        die, where);
	return swap_kind(module,
	               (struct memory_swap){ platform, STORAGE_URAM, STORAGE_BRAM, uram, -bram },
	               problem, die, where) ||
	        swapped;
}
