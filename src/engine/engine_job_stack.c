/* Stacks jobs of the same activations that have few rows in one block: keys, queries and values. By
 * itself each would be padded until its block has as many rows as an addition has cycles, and every
 * group would come once for each job.
 *     group 0: k k k q q … q v v v | group 1: k k k q q … q v v v | …        rows of a PE
 * Memory has the words of weights in this order. Sums come out as all rows of the first job, then
 * those of the next. */
#include "engine/engine.h"

#define STACKED_SUMS 512 /* sums of a PE for all words of a tile: the depth of a block RAM */

int engine_stack_end(const struct engine *engine, int first)
{
	int end = first + 1;
	while (end < (int)engine->jobs.count && engine->jobs.data[end].rows_stacked)
		end++;
	return end;
}

int64_t engine_stack_rows(const struct engine *engine, int first)
{
	int64_t rows = 0;
	for (int i = first, end = engine_stack_end(engine, first); i < end; i++)
		rows += engine->jobs.data[i].block;
	return rows;
}

int engine_row_gaps(const struct engine *engine, int first, int pe, int64_t row[GAPS_MOST])
{
	int gaps = 0;
	int64_t rows = 0;
	for (int i = first, end = engine_stack_end(engine, first); i + 1 < end; i++) {
		const struct job *job = &engine->jobs.data[i];
		rows += job->block;
		if (job_last_block_rows(job, pe) < job->block)
			row[gaps++] = rows - 1;
		if (job_lacks_first_row(engine, job + 1, pe))
			row[gaps++] = rows;
	}
	return gaps;
}

static bool shares_groups(const struct job *before, const struct job *job)
{
	return job->op->parent == before->op->parent && job->contract.same_input &&
	        !job->contract.second_pass && job->token_steps == before->token_steps &&
	        job->tiles == before->tiles && job->contract.groups == before->contract.groups;
}

/* The job after those from `first` on that may share a block. *few: one of them has fewer rows than
 * a block needs. */
static int stack_end(const struct engine *engine, int first, bool *few)
{
	const struct job *job = engine->jobs.data;
	int end = first;
	int64_t rows = 0;
	*few = false;
	for (; end < (int)engine->jobs.count && end - first < JOB_ENDS_MOST &&
	        job[end].run_time.tiles && !job[end].part_rows && !job[end].part_first &&
	        (end == first || shares_groups(&job[end - 1], &job[end]));
	        end++) {
		int64_t own = job_rows_per_pe(engine, &job[end]);
		if ((rows + own) * job[end].token_steps > STACKED_SUMS)
			break;
		rows += own;
		*few |= own < job_block_rows_least(engine, &job[end]);
	}
	return end;
}

void engine_stack_jobs(struct engine *engine)
{
	for (int first = 0, end;
	        first<(int)engine->jobs.count; first = end> first ? end : first + 1) {
		bool few;
		end = stack_end(engine, first, &few);
		for (int i = first + 1; few && i < end; i++)
			engine->jobs.data[i].rows_stacked = true;
	}
}
