/* Beside a unit kernels stand in stages, each between two of its phases: a norm, attention, an
 * activation.  Within a stage they hand on to each other, so all are as fast as the slowest;
 * stages wait for each other through the unit alone, and what one has to be quick for, another
 * need not be.  So each stage has a pace of its own: one is made quicker and another slower, as
 * long as that helps. */
#include "schedule/parallelism.h"
#include <string.h>

#define QUICKER 5
static const double quicker[QUICKER] = { 0.5, 0.64, 0.8, 1.25, 2 };
#define SLOWER 4
static const double slower[SLOWER] = { 1.25, 1.6, 2, 3 };

#define STEPS 6        /* paces that a stage is tried at, each half of the one before, */
#define STEP_SLOWEST 2 /* from so many times its slowest kernel's on */

struct stages {
	const struct parallelism_space *space;
	int count, *of; /* [kernels] */
	/* [count] cycles that a kernel of the stage may take in a layer */
	double *pace;
	/* of the board's operators that one kernel may take at a pace, one part in so many */
	int64_t share;
	int *tried;
};

/* The kernel whose numbers a phase takes that this one reads; -1: it reads none. */
static int job_read(const struct parallelism_kernel *kernel)
{
	for (int j = 0; j < kernel->operands; j++)
		if (kernel->job[j].number)
			return kernel->source[j];
	return -1;
}

/* Phases of the same numbers begin one stage: queries, keys and values meet in attention. */
int parallelism_find_stages(const struct parallelism_space *space, bool ring, int *of)
{
	int *begun = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	int count = 1;
	for (int round = 0; round < (ring ? 2 : 1); round++)
		for (int k = 0; k < space->kernels; k++) {
			const struct parallelism_kernel *kernel = &space->kernel[k];
			int source = -1;
			int made = job_read(kernel);
			for (int j = 0; j < kernel->operands; j++)
				source = kernel->source[j] > source ? kernel->source[j] : source;
			of[k] = source >= 0 && (source < k || round) ? of[source] : 0;
			if (made < 0)
				continue;
			if (!begun[made])
				begun[made] = count++;
			of[k] = begun[made];
		}
	return count;
}

static double price(struct stages *s, int64_t *points, double reference)
{
	/* at the extent of several tokens, where a launch may be of one: then none is left
	 * behind the others */
	for (int k = 0; k < s->space->kernels; k++)
		s->tried[k] = parallelism_of_pace(
		        s->space, k, s->space->extents - 1, s->pace[s->of[k]], s->share);
	parallelism_follow(s->space, s->tried);
	struct parallelism_cost cost = parallelism_cost_cached(s->space, s->tried);
	(*points)--;
	return parallelism_objective(s->space, &cost, reference);
}

/* One stage at another pace, alone or with a second that gives up some of its own: the best of
 * all. */
static bool improve(struct stages *s, int64_t *points, double reference, double *now, int *choice)
{
	int best = -1;
	int other = -1;
	double factor = 1;
	double rest = 1;
	for (int a = 0; a < s->count; a++)
		for (int f = 0; f < QUICKER; f++)
			for (int b = -1; b < s->count; b++)
				for (int g = 0; g < (b < 0 ? 1 : SLOWER) && b != a && *points > 0;
				        g++) {
					double first = s->pace[a];
					double second = b < 0 ? 0 : s->pace[b];
					s->pace[a] *= quicker[f];
					if (b >= 0)
						s->pace[b] *= slower[g];
					double found = price(s, points, reference);
					s->pace[a] = first;
					if (b >= 0)
						s->pace[b] = second;
					if (found >= *now)
						continue;
					*now = found;
					memcpy(choice, s->tried,
					        sizeof *choice * (size_t)s->space->kernels);
					best = a;
					other = b;
					factor = quicker[f];
					rest = slower[g];
				}
	if (best >= 0)
		s->pace[best] *= factor;
	if (other >= 0)
		s->pace[other] *= rest;
	return best >= 0;
}

int64_t parallelism_stages(const struct parallelism_space *space, int64_t points, double pace,
        int64_t share, double reference, int *choice)
{
	struct stages s = { .space = space, .share = share };
	s.of = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	s.tried = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	s.pace = ARENA_ARRAY(space->arena, double, space->jobs + 2);
	s.count = parallelism_find_stages(space, false, s.of);
	for (int i = 0; i < s.count; i++)
		s.pace[i] = pace;
	double now = price(&s, &points, reference);
	memcpy(choice, s.tried, sizeof *choice * (size_t)space->kernels);
	while (points > 0 && improve(&s, &points, reference, &now, choice))
		;
	return points;
}

/* Which kernels of a stage take another pace: all, those that are slower, or those whose work
 * does not grow with a run-time extent.  Attention is too dear to be as quick as what stands in
 * front of it. */
enum quicken_mode { QUICKEN_ALL, QUICKEN_SLOWER, QUICKEN_STEADY, QUICKEN_MODES };

static bool is_steady(const struct parallelism_option *option)
{
	return option->cycles[0] == option->cycles[PARALLELISM_PRICED - 1];
}

static bool is_quickened(const struct stages *s, int k, int stage, enum quicken_mode way,
        double pace, const int *choice)
{
	const struct parallelism_option *now = &s->space->kernel[k].option[choice[k]];
	return s->of[k] == stage && (way != QUICKEN_SLOWER || now->cycles[0] > pace) &&
	        (way != QUICKEN_STEADY || is_steady(now));
}

static void set_pace(
        const struct stages *s, int stage, double pace, enum quicken_mode way, int *choice)
{
	for (int k = 0; k < s->space->kernels; k++)
		if (is_quickened(s, k, stage, way, pace, choice))
			choice[k] = parallelism_of_pace(s->space, k, 0, pace, 1);
	parallelism_follow(s->space, choice);
}

/* Of the slowest kernel that may take another. */
static double pace_of(const struct stages *s, int stage, enum quicken_mode way, const int *choice)
{
	double pace = 1;
	for (int k = 0; k < s->space->kernels; k++)
		if (is_quickened(
		            s, k, stage, way == QUICKEN_SLOWER ? QUICKEN_ALL : way, 0, choice) &&
		        s->space->kernel[k].option[choice[k]].cycles[0] > pace)
			pace = s->space->kernel[k].option[choice[k]].cycles[0];
	return pace;
}

int64_t parallelism_quicken(const struct parallelism_space *space, int64_t points, double reference,
        int *choice, double *now)
{
	struct stages s = { .space = space };
	s.of = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	s.tried = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	s.count = parallelism_find_stages(space, space->single_token, s.of);
	int ways = space->single_token ? QUICKEN_MODES : QUICKEN_STEADY;
	for (int stage = 0; stage < s.count; stage++) {
		double pace[QUICKEN_MODES];
		for (int way = 0; way < QUICKEN_MODES; way++)
			pace[way] = pace_of(&s, stage, (enum quicken_mode)way, choice);
		for (int step = 0; step < ways * STEPS && points > 0; step++) {
			int way = step % ways;
			memcpy(s.tried, choice, sizeof *choice * (size_t)space->kernels);
			set_pace(&s, stage, pace[way] * STEP_SLOWEST / (double)(1 << step / ways),
			        (enum quicken_mode)way, s.tried);
			struct parallelism_cost cost = parallelism_cost_cached(space, s.tried);
			double found = parallelism_objective(space, &cost, reference);
			points--;
			if (found >= *now)
				continue;
			*now = found;
			memcpy(choice, s.tried, sizeof *choice * (size_t)space->kernels);
		}
	}
	return points;
}
