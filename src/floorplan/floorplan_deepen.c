/* Deepens FIFOs over which words are distributed round-robin (lower_weight_loaders.c), where every
 * die has memory left. All have the same depth, since none gets a word while another is full. */
#include "fifo/fifo.h"
#include "floorplan/floorplan.h"

#define STEP 512 /* words of a block RAM at its greatest width */

struct deepening {
	const struct platform *platform;
	struct floorplan_problem *problem;
	const int *die;
	int64_t depth;
	int64_t bram18, uram; /* left on the current die */
	bool *uram_next;      /* [memories] */
};

/* Is it such a FIFO, and does it not already hold all its words with fewer? */
static bool is_interleaved(const struct op *op)
{
	const struct attr *least =
	        op->code == OP_FIFO ? attr_get(op, KEY_STREAM_INTERLEAVED_DEPTH) : NULL;
	return least && op->result[0]->type->depth >= least->integer;
}

/* Makes it a URAM, which has that depth in any case, or else block RAMs; false: neither is left. */
static bool deepen(struct deepening *d, int number)
{
	const struct op *op = d->problem->memory[number].op;
	struct memory memory = memory_of(d->platform, op);
	struct resources now = memory_cost(d->platform, op);
	struct resources blocks = storage_cost(STORAGE_BRAM, memory.bits, d->depth);
	struct resources uram = storage_cost(STORAGE_URAM, memory.bits, d->depth);
	d->uram_next[number] = uram.uram - now.uram <= d->uram;
	d->uram -= (d->uram_next[number] ? uram.uram : 0) - now.uram;
	d->bram18 -= (d->uram_next[number] ? 0 : blocks.bram18) - now.bram18;
	return d->bram18 >= 0;
}

static bool die_has_room(struct deepening *d, int where)
{
	struct resources used = floorplan_load(d->problem, d->die).used[where];
	struct resources have = d->problem->capacity[where];
	bool room = true;
	d->bram18 = have.bram18 - used.bram18;
	d->uram = have.uram - used.uram;
	for (int i = 0; room && i < d->problem->memories; i++)
		room = d->die[d->problem->memory[i].item] != where ||
		        !is_interleaved(d->problem->memory[i].op) || deepen(d, i);
	return room;
}

static bool all_have_room(struct deepening *d)
{
	bool room = true;
	for (int where = 0; room && where < d->platform->dies; where++)
		room = die_has_room(d, where);
	return room;
}

int64_t floorplan_fifo_depth(struct module *module)
{
	const struct op *op = module_main(module)->region[0]->first;
	while (op && !is_interleaved(op))
		op = op->next;
	return op ? op->result[0]->type->depth : 0;
}

void floorplan_set_fifo_depth(struct module *module, int64_t depth)
{
	for (struct op *op = module_main(module)->region[0]->first; op; op = op->next)
		if (is_interleaved(op))
			op->result[0]->type = type_channel(
			        module, TYPE_FIFO, op->result[0]->type->element, depth);
}

static void make_deeper(struct module *module, const struct deepening *d)
{
	for (int i = 0; i < d->problem->memories; i++) {
		struct op *op = d->problem->memory[i].op;
		if (is_interleaved(op))
			attr_set(module, op, KEY_STREAM_STORAGE,
			        attr_string(module,
			                storage_name[d->uram_next[i] ? STORAGE_URAM
			                                             : STORAGE_BRAM]));
	}
	floorplan_set_fifo_depth(module, d->depth);
}

void floorplan_deepen_fifos(struct module *module, const struct platform *platform,
        struct floorplan_problem *problem, const int *die)
{
	struct deepening d = { .platform = platform,
		.problem = problem,
		.die = die,
		.uram_next = ARENA_ARRAY(module->arena, bool, problem->memories + 1) };
	int64_t now = platform_total(platform).uram > 0 ? floorplan_fifo_depth(module) : 0;
	for (d.depth = FLOORPLAN_FIFO_DEEPEST; now && d.depth > now; d.depth -= STEP)
		if (all_have_room(&d)) {
			make_deeper(module, &d);
			return;
		}
}
