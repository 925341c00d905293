/* Models what the parallelism search needs to know about data that is not streamed: an engine job
 * between two kernels gives nothing before its token tile has arrived, and a converter between two
 * kernels of different orders holds the whole tensor. */
#include "engine/engine_cost.h"
#include "ir/kernel_edit.h"
#include "ir/contract.h"
#include "schedule/parallelism.h"
#include <math.h>

/* cycles of latency through a PE and the collection of its results; the next job starts after it */
#define THROUGH 50
/* rows of a PE that are summed in parallel, about (plan_jobs.c) */
#define BLOCK 12

/* The engine as a launch uses it. */
struct engine_launch {
	int pes;
	int tokens_per_cycle; /* of each PE */
	int64_t tokens;       /* of the launch */
};

/* Words of a token tile: the engine takes tokens_per_cycle tokens in each. */
static double words_of(
        const struct engine_launch *launch, const struct contract *contract, int64_t tokens)
{
	int64_t tile = token_tile(tokens, contract->token_symbol);
	return (double)((tile + launch->tokens_per_cycle - 1) / launch->tokens_per_cycle);
}

static double rows_of(const struct engine_launch *launch, const struct contract *contract)
{
	return (double)((contract->outputs + launch->pes - 1) / launch->pes);
}

static double sums_of(const struct engine_launch *launch, const struct contract *contract)
{
	double tiles =
	        (double)launch->tokens / (double)token_tile(launch->tokens, contract->token_symbol);
	return rows_of(launch, contract) * (double)contract->groups * tiles *
	        words_of(launch, contract, launch->tokens);
}

static double cycles_of(const struct engine_launch *launch, const struct contract *contract)
{
	double sums = sums_of(launch, contract);
	double words = (double)launch->tokens * (double)contract->outputs / (double)contract->lanes;
	return sums > words ? sums : words;
}

/* Cycles of the other jobs with the same input, before this one or after it. */
static double cycles_of_neighbours(
        const struct engine_launch *launch, const struct op *op, bool before)
{
	double cycles = 0;
	struct contract contract;
	for (const struct op *at = op; at; at = before ? at->previous : at->next) {
		if (at->code != OP_CONTRACT || !contract_of(at, &contract))
			continue;
		if (at != op && (before || contract.same_input))
			cycles += cycles_of(launch, &contract);
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

/* Does its input arrive group by group (order_scales_by_group.c)? */
static bool takes_groups(const struct op *op, const struct contract *contract)
{
	const struct op *scale = op->operand[1]->def;
	int last = -1;
	for (int l = 0; scale && scale->code == OP_KERNEL && scale->kernel->ordered &&
	        l < scale->kernel->loops;
	        l++)
		if (!scale->kernel->loop[l].reduction && scale->kernel->loop[l].extent > 1)
			last = l;
	return last >= 0 && contract->groups > 1 &&
	        scale->kernel->result.stride[last] == contract->groups;
}

/* Are all rows of a PE summed in one block? */
static bool is_single_block(const struct engine_launch *launch, const struct contract *contract)
{
	return contract->single_block ||
	        engine_single_block(rows_of(launch, contract), contract->groups,
	                words_of(launch, contract, contract->tokens));
}

/* A single tile: the first block of rows is computed as groups arrive, the others when all groups
 * are there. If all rows are one block, results come with the last group. */
static void few_through_engine(const struct engine_launch *launch, const struct contract *contract,
        double block, struct parallelism_job *job)
{
	double rows = rows_of(launch, contract);
	double words = words_of(launch, contract, launch->tokens);
	double sums = rows * (double)contract->groups * words;
	double collected =
	        (double)launch->tokens * (double)contract->outputs / (double)contract->lanes;
	job->last = block * words;
	if (!is_single_block(launch, contract))
		return;
	job->last = words;
	job->first = sums - rows * words;
	job->cycles = job->first + (collected > rows * words ? collected : rows * words);
}

/* Several tiles: if all rows are one block, the results of a tile come with its last group, and
 * those of the last tile when the job ends. */
static void tiles_through_engine(const struct engine_launch *launch,
        const struct contract *contract, struct parallelism_job *job)
{
	double rows = rows_of(launch, contract);
	double words = words_of(launch, contract, launch->tokens);
	double collected = job->tile * (double)launch->tokens * (double)contract->outputs /
	        (double)contract->lanes;
	if (!is_single_block(launch, contract))
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
	const struct engine_launch launch = { pes, tokens_per_cycle, single ? 1 : contract.tokens };
	double rows = rows_of(&launch, &contract);
	double block = rows < BLOCK ? rows : BLOCK;
	int64_t tile = token_tile(launch.tokens, contract.token_symbol);
	job->tile = job->part = (double)tile / (double)launch.tokens;
	if ((launch.tokens > tile || contract.token_symbol) && takes_groups(made->def, &contract))
		job->part /= (double)contract.groups;
	job->before = cycles_of_neighbours(&launch, made->def, true);
	job->after = cycles_of_neighbours(&launch, made->def, false);
	job->first = block * (double)contract.groups * words_of(&launch, &contract, launch.tokens);
	job->cycles = cycles_of(&launch, &contract);
	job->sums = sums_of(&launch, &contract);
	job->block = job->sums * job->tile;
	if (!is_single_block(&launch, &contract))
		job->block /= ceil(rows / ENGINE_BLOCK_MOST);
	if (contract.token_symbol && contract.tokens == token_tile(contract.tokens, true))
		few_through_engine(&launch, &contract, block, job);
	if (contract.tokens > token_tile(contract.tokens, contract.token_symbol))
		tiles_through_engine(&launch, &contract, job);
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

/* The outermost loop that walks a tensor: its stride in elements, and whether no other loop has a
 * larger one. */
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

/* Must all of the tensor be buffered between writer and reader? The engine reads and writes tokens
 * in order. */
static bool is_whole(struct outer_loops writer, struct outer_loops reader)
{
	return !(writer.largest && reader.largest) && writer.stride != reader.stride;
}

/* Is only a part read? Its converter holds the whole block that it belongs to (itensor/box.h). */
static bool is_some(const struct parallelism_part *part)
{
	return part->low > 0 || part->high < 1;
}

/* Does the search for loop orders still choose its order? An elementwise kernel follows its
 * neighbours. */
static bool is_free(const struct op *op)
{
	return op->code == OP_KERNEL && !op->kernel->ordered && !kernel_has_reduction(op->kernel) &&
	        !kernel_is_gather(op);
}

/* The loop over blocks of keys with a run-time count; -1: there is none. */
static int block_loop(const struct kernel *kernel)
{
	int loop = kernel->loops - 1;
	while (loop >= 0 && !parallelism_walks_keys(&kernel->loop[loop]))
		loop--;
	return loop;
}

/* Where both kernels walk the same blocks of keys, the search for loop orders makes these
 * outermost, and a converter holds a single block. */
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

void parallelism_buffering(struct module *module, const struct parallelism_space *space)
{
	struct schedule *schedule = ARENA_ARRAY(space->arena, struct schedule, space->kernels + 1);
	const struct outer_loops tokens = { 0, true };
	for (int k = 0; k < space->kernels; k++) {
		struct parallelism_kernel *kernel = &space->kernel[k];
		const struct op *op = kernel->op;
		bool gather = kernel_is_gather(op);
		if (!gather)
			schedule[k] =
			        schedule_kernel(module, op, operand_locations(space->arena, op),
			                is_only_stored(op), kernel->option[0].parallelism.lanes);
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
