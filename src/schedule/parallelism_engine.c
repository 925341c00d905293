/* What a shared unit does between two kernels, for the search for widths: nothing comes out
 * before all that it takes of a tile of tokens is in. And where what one kernel makes is taken
 * in another order: a converter holds all of it then, which no pace hides. */
#include "engine/engine_cost.h"
#include "ir/kernel_edit.h"
#include "ir/contract.h"
#include "schedule/parallelism.h"
#include <math.h>

/* cycles through a slice, and to who collects its results; the next phase begins behind them */
#define THROUGH 50
/* rows of a slice that are summed side by side, about (plan_engine.c) */
#define BLOCK 12

/* Of a tile, that its tokens take. */
static double words_of(const struct contract *contract, int64_t tokens, int tokens_per_cycle)
{
	return (double)((token_tile(tokens, contract->token_symbol) + tokens_per_cycle - 1) /
	        tokens_per_cycle);
}

static double sums_of(
        const struct contract *contract, int64_t tokens, int pes, int tokens_per_cycle)
{
	double tiles = (double)tokens / (double)token_tile(tokens, contract->token_symbol);
	return (double)((contract->outputs + pes - 1) / pes) * (double)contract->groups * tiles *
	        words_of(contract, tokens, tokens_per_cycle);
}

static double cycles_of(
        const struct contract *contract, int64_t tokens, int pes, int tokens_per_cycle)
{
	double sums = sums_of(contract, tokens, pes, tokens_per_cycle);
	double words = (double)tokens * (double)contract->outputs / (double)contract->lanes;
	return sums > words ? sums : words;
}

/* Cycles of the phases of the same numbers in front of it, or behind it. */
static double cycles_of_neighbours(
        const struct op *op, bool before, int64_t tokens, int pes, int tokens_per_cycle)
{
	double cycles = 0;
	struct contract contract;
	for (const struct op *at = op; at; at = before ? at->previous : at->next) {
		if (at->code != OP_CONTRACT || !contract_of(at, &contract))
			continue;
		if (at != op && (before || contract.same_input))
			cycles += cycles_of(&contract, tokens, pes, tokens_per_cycle);
		if (at != op && !before && !contract.same_input)
			break;
		if (before && !contract.same_input)
			break;
	}
	return cycles;
}

const struct op *parallelism_same_input_job(const struct op *op)
{
	const struct op *first = op;
	for (const struct op *at = op; at && attr_get(first, KEY_SAME_INPUT); at = at->previous)
		first = at->code == OP_CONTRACT ? at : first;
	return first;
}

/* Does what it takes come group by group (order_scales_by_group.c)? */
static bool takes_groups(const struct op *op, const struct contract *contract)
{
	const struct op *scale = op->operand[1]->def;
	int last = -1;
	for (int l = 0; scale && scale->code == OP_KERNEL && scale->kernel->ordered &&
	        l < scale->kernel->loops;
	        l++)
		last = scale->kernel->loop[l].reduction || scale->kernel->loop[l].extent == 1 ? last
		                                                                              : l;
	return last >= 0 && contract->groups > 1 &&
	        scale->kernel->result.stride[last] == contract->groups;
}

/* Tokens of one tile: the first block works on groups as they come, the others when all are
 * there; where all rows are one block its results come with the last group. */
static void few_through_engine(const struct contract *contract, double rows, double block,
        int64_t tokens, int tokens_per_cycle, struct parallelism_job *job)
{
	double words = words_of(contract, tokens, tokens_per_cycle);
	double sums = rows * (double)contract->groups * words;
	double collected = (double)tokens * (double)contract->outputs / (double)contract->lanes;
	job->last = block * words;
	if (!contract->single_block &&
	        !engine_single_block(rows, contract->groups,
	                words_of(contract, contract->tokens, tokens_per_cycle)))
		return;
	job->last = words;
	job->first = sums - rows * words;
	job->cycles = job->first + (collected > rows * words ? collected : rows * words);
}

/* Several tiles, or one token of as many: where all rows of one are one block, its results come
 * with the last group, and those of the last tile when the phase is over. */
static void tiles_through_engine(const struct contract *contract, double rows, int64_t tokens,
        int tokens_per_cycle, struct parallelism_job *job)
{
	double words = words_of(contract, tokens, tokens_per_cycle);
	double collected =
	        job->tile * (double)tokens * (double)contract->outputs / (double)contract->lanes;
	if (!contract->single_block &&
	        !engine_single_block(rows, contract->groups,
	                words_of(contract, contract->tokens, tokens_per_cycle)))
		return;
	job->first = rows * (double)(contract->groups - 1) * words;
	job->burst_part = job->tile;
	job->collect_cycles = collected > rows * words ? collected : rows * words;
	job->cycles += job->collect_cycles - rows * words;
}

static bool next_has_same_input(const struct op *op)
{
	const struct op *next = op->next;
	while (next && next->code != OP_CONTRACT)
		next = next->next;
	return next && attr_get(next, KEY_SAME_INPUT);
}

const struct value *parallelism_through_engine(const struct value *value, int pes,
        int tokens_per_cycle, bool single, struct parallelism_job *job)
{
	const struct value *made = loop_yield_of(value);
	struct contract contract;
	*job = (struct parallelism_job){ 0 };
	while (made->def && made->def->code == OP_PAD_TOKENS)
		made = loop_yield_of(made->def->operand[0]);
	if (!made->def || made->def->code != OP_CONTRACT || !contract_of(made->def, &contract))
		return made;
	double rows = (double)((contract.outputs + pes - 1) / pes);
	double block = rows < BLOCK ? rows : BLOCK;
	int64_t tokens = single ? 1 : contract.tokens;
	job->tile = job->part = (double)token_tile(tokens, contract.token_symbol) / (double)tokens;
	if ((tokens > token_tile(tokens, contract.token_symbol) || contract.token_symbol) &&
	        takes_groups(made->def, &contract))
		job->part /= (double)contract.groups;
	job->before = cycles_of_neighbours(made->def, true, tokens, pes, tokens_per_cycle);
	job->after = cycles_of_neighbours(made->def, false, tokens, pes, tokens_per_cycle);
	job->first =
	        block * (double)contract.groups * words_of(&contract, tokens, tokens_per_cycle);
	job->cycles = cycles_of(&contract, tokens, pes, tokens_per_cycle);
	job->sums = sums_of(&contract, tokens, pes, tokens_per_cycle);
	job->block = job->sums * job->tile /
	        (contract.single_block ||
	                                engine_single_block(rows, contract.groups,
	                                        words_of(&contract, contract.tokens,
	                                                tokens_per_cycle))
	                        ? 1
	                        : ceil(rows / ENGINE_BLOCK_MOST));
	if (contract.token_symbol && contract.tokens == token_tile(contract.tokens, true))
		few_through_engine(&contract, rows, block, tokens, tokens_per_cycle, job);
	if (contract.tokens > token_tile(contract.tokens, contract.token_symbol))
		tiles_through_engine(&contract, rows, tokens, tokens_per_cycle, job);
	if (contract.tokens == 1) {
		job->last = block + THROUGH;
		job->first += THROUGH;
		job->burst_part = block / rows;
		job->collect_cycles = block * (pes / (double)contract.lanes);
		job->cycles += job->collect_cycles + THROUGH;
		job->transit = next_has_same_input(made->def) ? THROUGH : 0;
	}
	return loop_yield_of(made->def->operand[0]);
}

/* The outermost loop that walks a tensor: elements between its points, and whether no other's
 * are further apart.  but: a loop that does not count; -1: all do. */
struct outer_loops {
	int64_t stride;
	bool largest;
};

static struct outer_loops outer_of(
        const struct schedule *schedule, const struct access *access, int but)
{
	struct outer_loops outer_loops = { 0, true };
	for (int i = 0; i < schedule->parts; i++) {
		int64_t stride = schedule->part[i].trip > 1 && schedule->part[i].source != but
		        ? access->stride[schedule->part[i].source] * schedule->part[i].step
		        : 0;
		if (!outer_loops.stride)
			outer_loops.stride = stride;
		outer_loops.largest = outer_loops.largest && stride <= outer_loops.stride;
	}
	return outer_loops;
}

/* A unit takes and gives tokens in their order. */
static bool is_whole(struct outer_loops writer, struct outer_loops reader)
{
	return !(writer.largest && reader.largest) && writer.stride != reader.stride;
}

/* What puts a part in another order holds all that it is a part of (itensor/box.h). */
static bool is_some(const struct parallelism_part *part)
{
	return part->low > 0 || part->high < 1;
}

/* Of an elementwise kernel nobody has said in which order it works: the search for orders
 * follows those around it. */
static bool is_free(const struct op *op)
{
	return op->code == OP_KERNEL && !op->kernel->ordered && !kernel_has_reduction(op->kernel) &&
	        !kernel_is_gather(op);
}

/* The loop over blocks of keys, as many as there are at run time; -1: there is none. */
static int block_loop(const struct kernel *kernel)
{
	int loop = kernel->loops - 1;
	while (loop >= 0 && !parallelism_walks_keys(&kernel->loop[loop]))
		loop--;
	return loop;
}

/* Where both walk the same blocks of keys, the search for orders puts these outermost, and what
 * is in another order within one waits for its end. */
static bool set_block_buffered(const struct parallelism_space *space,
        struct parallelism_kernel *kernel, int j, const struct schedule *schedule,
        const struct schedule *reader)
{
	const struct op *op = kernel->op;
	const struct op *maker = space->kernel[kernel->source[j]].op;
	int own = block_loop(op->kernel);
	int made = block_loop(maker->kernel);
	if (!space->blocks_first || own < 0 || made < 0 ||
	        !run_time_same(op->kernel->loop[own].run_time, maker->kernel->loop[made].run_time))
		return false;
	bool reordered = !is_free(op) && !is_free(maker) &&
	        is_whole(outer_of(schedule, &maker->kernel->result, made),
	                outer_of(reader, &op->kernel->operand[j], own));
	for (int e = 0; e < PARALLELISM_PRICED; e++)
		kernel->buffered[j].part[e] = reordered ? 1 /
		                (double)parallelism_iterations(space,
		                        op->kernel->loop[own].run_time,
		                        op->kernel->loop[own].extent, space->extent[e])
		                                        : 0;
	return true;
}

static void set_buffered(struct parallelism_buffered *buffered, bool whole)
{
	for (int e = 0; e < PARALLELISM_PRICED; e++)
		buffered->part[e] = whole;
}

void parallelism_buffering(struct streams *streams, const struct parallelism_space *space)
{
	struct schedule *schedule = ARENA_ARRAY(space->arena, struct schedule, space->kernels + 1);
	const struct outer_loops tokens = { 0, true };
	for (int k = 0; k < space->kernels; k++) {
		struct parallelism_kernel *kernel = &space->kernel[k];
		const struct op *op = kernel->op;
		bool gather = kernel_is_gather(op);
		if (!gather)
			schedule[k] = schedule_kernel(streams->module, op,
			        operand_locations(space->arena, op), is_only_stored(op),
			        kernel->option[0].parallelism.lanes);
		for (int j = 0; j < kernel->operands; j++) {
			int source = kernel->source[j];
			if (source < 0 || source >= k || gather || !schedule[source].part)
				continue;
			struct outer_loops writer = outer_of(
			        &schedule[source], &space->kernel[source].op->kernel->result, -1);
			struct outer_loops reader =
			        outer_of(&schedule[k], &op->kernel->operand[j], -1);
			struct parallelism_job *job = &kernel->job[j];
			struct parallelism_job *single = &kernel->single[j];
			if (space->few_tokens &&
			        (job->number || is_free(op) || is_free(space->kernel[source].op))) {
				set_buffered(&kernel->buffered[j],
				        !job->number && is_some(&kernel->part[j]));
				continue;
			}
			if (!job->number) {
				if (!set_block_buffered(
				            space, kernel, j, &schedule[source], &schedule[k]))
					set_buffered(&kernel->buffered[j],
					        is_whole(writer, reader) &&
					                !op->kernel->operand[j].causal_pitch);
				continue;
			}
			job->part = is_whole(writer, tokens) ? 1 : job->part;
			single->part = 1;
			set_buffered(&kernel->buffered[j], is_whole(tokens, reader));
		}
	}
}
