/* Memories that change their kind.  They were chosen for the whole platform (allocate_memory.c); but a die whose memory ports take most of its block RAMs may have URAMs to spare, and another one block RAMs. */
#include "floorplan/place.h"

static int64_t blocks_of(struct resources resources, enum storage storage)
{
	return storage == STORAGE_URAM ? resources.uram : resources.bram18;
}

struct trade {
	const struct platform *platform;
	enum storage from, to;
	int64_t over, spare;      /* of what memories are made of now; of the others */
};

/* The memory on the die that gives most for what it takes, of those that what is spare is enough for.  NULL: there is none. */
static const struct place_memory *best_trade(const struct trade *trade, const struct place_problem *problem, const int *die, int where)
{
	const struct place_memory *best = NULL;
	int64_t given = 0, taken = 1;
	for (int i = 0; i < problem->memories; i++) {
		const struct place_memory *memory = &problem->memory[i];
		if (die[memory->item] != where || memory_of(trade->platform, memory->op).storage != trade->from)
			continue;
		int64_t now = blocks_of(memory_cost(trade->platform, memory->op), trade->from), then = blocks_of(memory_cost_as(trade->platform, memory->op, trade->to), trade->to);
		if (then > trade->spare || now * taken <= given * then)
			continue;
		best = memory;
		given = now;
		taken = then;
	}
	return best;
}

static bool trade_kind(struct module *module, struct trade trade, struct place_problem *problem, const int *die, int where)
{
	const struct place_memory *memory;
	bool traded = false;
	for (; trade.over > 0 && (memory = best_trade(&trade, problem, die, where)); traded = true) {
		struct resources *need = &problem->item[memory->item].need, now = memory_cost(trade.platform, memory->op), then = memory_cost_as(trade.platform, memory->op, trade.to);
		attr_set(module, memory->op, KEY_STREAM_STORAGE, attr_string(module, storage_name[trade.to]));
		*need = resources_add(resources_less(*need, now), then);
		trade.over -= blocks_of(now, trade.from);
		trade.spare -= blocks_of(then, trade.to);
	}
	return traded;
}

bool place_trade(struct module *module, const struct platform *platform, struct place_problem *problem, const int *die, int where)
{
	const struct resources used = place_load(problem, die).used[where], have = problem->capacity[where];
	int64_t bram = used.bram18 - have.bram18, uram = used.uram - have.uram;
	bool traded = trade_kind(module, (struct trade){platform, STORAGE_BRAM, STORAGE_URAM, bram, -uram}, problem, die, where);
	return trade_kind(module, (struct trade){platform, STORAGE_URAM, STORAGE_BRAM, uram, -bram}, problem, die, where) || traded;
}
