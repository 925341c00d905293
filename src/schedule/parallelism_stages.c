/* Chooses a pace for each stage of kernels between two jobs of the matmul engine.
 *
 * A norm, attention or an activation is such a stage. Its kernels stream into each other, so all
 * of them run at the pace of the slowest. Stages are coupled only through the engine, so one may
 * have to be fast while another need not. One stage is made faster and another slower as long as
 * that lowers the price. */
#include "schedule/parallelism.h"
#include <string.h>

#define QUICKER 5
static const double quicker[QUICKER] = { 0.5, 0.64, 0.8, 1.25, 2 };
#define SLOWER 4
static const double slower[SLOWER] = { 1.25, 1.6, 2, 3 };

#define STEPS 6        /* paces that are tried for a stage, each half of the one before, */
#define STEP_SLOWEST 2 /* starting at so many times the pace of its slowest kernel */

struct stages {
	const struct parallelism_space *space;
	int count, *of; /* [kernels] stage of each */
	                /* [count] most cycles that a kernel of the stage takes in a layer */
	double *pace;
	int64_t share; /* one kernel takes at most 1/share of the board's operators */
	int *tried;
};

/* The kernel that feeds the engine job whose result this kernel reads; -1: it reads none. */
static int job_read(const struct parallelism_kernel *kernel)
{
	for (int j = 0; j < kernel->operands; j++)
		if (kernel->job[j].number)
			return kernel->source[j];
	return -1;
}

/* Jobs with the same input start one stage: queries, keys and values meet in attention. */
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
	/* at the extent of several tokens; at that of one token no kernel would be slower than the
	 * others */
	for (int k = 0; k < s->space->kernels; k++)
		s->tried[k] = parallelism_of_pace(
		        s->space, k, s->space->extents - 1, s->pace[s->of[k]], s->share);
	parallelism_follow(s->space, s->tried);
	struct parallelism_cost cost = parallelism_cost_cached(s->space, s->tried);
	(*points)--;
	return parallelism_objective(s->space, &cost, reference);
}

/* Another pace for a stage, and one for a second stage (-1: none). */
struct pace_move {
	int first, second;
	double first_factor, second_factor;
};

static double price_move(
        struct stages *s, const struct pace_move *move, int64_t *points, double reference)
{
	double first = s->pace[move->first];
	double second = move->second < 0 ? 0 : s->pace[move->second];
	s->pace[move->first] *= move->first_factor;
	if (move->second >= 0)
		s->pace[move->second] *= move->second_factor;
	double found = price(s, points, reference);
	s->pace[move->first] = first;
	if (move->second >= 0)
		s->pace[move->second] = second;
	return found;
}

/* Applies the best move if it prices below *now; it either changes one stage, or makes a second
 * one slower in exchange.  false: none is better. */
static bool improve(struct stages *s, int64_t *points, double reference, double *now, int *choice)
{
	struct pace_move best = { -1, -1, 1, 1 };
	struct pace_move move;
	for (move.first = 0; move.first < s->count; move.first++)
		for (int f = 0; f < QUICKER; f++)
			for (move.second = -1; move.second < s->count; move.second++) {
				int factors = move.second < 0 ? 1 : SLOWER;
				if (move.second == move.first)
					continue;
				for (int g = 0; g < factors && *points > 0; g++) {
					move.first_factor = quicker[f];
					move.second_factor = slower[g];
					double found = price_move(s, &move, points, reference);
					if (found >= *now)
						continue;
					*now = found;
					best = move;
					memcpy(choice, s->tried,
					        sizeof *choice * (size_t)s->space->kernels);
				}
			}
	if (best.first >= 0)
		s->pace[best.first] *= best.first_factor;
	if (best.second >= 0)
		s->pace[best.second] *= best.second_factor;
	return best.first >= 0;
}

int64_t parallelism_stages(const struct parallelism_space *space, int64_t points,
        struct parallelism_pace pace, double reference, int *choice)
{
	struct stages s = { .space = space, .share = pace.share };
	s.of = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	s.tried = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	s.pace = ARENA_ARRAY(space->arena, double, space->jobs + 2);
	s.count = parallelism_find_stages(space, false, s.of);
	for (int i = 0; i < s.count; i++)
		s.pace[i] = pace.cycles;
	double now = price(&s, &points, reference);
	memcpy(choice, s.tried, sizeof *choice * (size_t)space->kernels);
	while (points > 0 && improve(&s, &points, reference, &now, choice))
		;
	return points;
}

/* Which kernels of a stage get another pace: all, those that are slower, or those whose work does
 * not grow with a run-time extent (attention is too expensive to be as fast as the kernels before
 * it). */
enum quicken_mode { QUICKEN_ALL, QUICKEN_SLOWER, QUICKEN_STEADY, QUICKEN_MODES };

static bool is_steady(const struct parallelism_option *option)
{
	return option->cycles[0] == option->cycles[PARALLELISM_PRICED - 1];
}

/* A change of the pace of some kernels of a stage. */
struct pace_change {
	int stage;
	enum quicken_mode mode;
	double pace;
};

static bool is_quickened(
        const struct stages *s, const struct pace_change *change, int k, const int *choice)
{
	const struct parallelism_option *now = &s->space->kernel[k].option[choice[k]];
	if (s->of[k] != change->stage)
		return false;
	switch (change->mode) {
	case QUICKEN_SLOWER: return now->cycles[0] > change->pace;
	case QUICKEN_STEADY: return is_steady(now);
	default: return true;
	}
}

static void set_pace(const struct stages *s, const struct pace_change *change, int *choice)
{
	for (int k = 0; k < s->space->kernels; k++)
		if (is_quickened(s, change, k, choice))
			choice[k] = parallelism_of_pace(s->space, k, 0, change->pace, 1);
	parallelism_follow(s->space, choice);
}

/* Cycles of the slowest kernel that may get another pace. */
static double pace_of(const struct stages *s, int stage, enum quicken_mode mode, const int *choice)
{
	struct pace_change change = { .stage = stage,
		.mode = mode == QUICKEN_SLOWER ? QUICKEN_ALL : mode };
	double pace = 1;
	for (int k = 0; k < s->space->kernels; k++)
		if (is_quickened(s, &change, k, choice) &&
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
	int modes = space->single_token ? QUICKEN_MODES : QUICKEN_STEADY;
	for (int stage = 0; stage < s.count; stage++) {
		double pace[QUICKEN_MODES];
		for (int mode = 0; mode < QUICKEN_MODES; mode++)
			pace[mode] = pace_of(&s, stage, (enum quicken_mode)mode, choice);
		for (int step = 0; step < modes * STEPS && points > 0; step++) {
			int mode = step % modes;
			struct pace_change change = { stage, (enum quicken_mode)mode,
				pace[mode] * STEP_SLOWEST / (double)(1 << step / modes) };
			memcpy(s.tried, choice, sizeof *choice * (size_t)space->kernels);
			set_pace(&s, &change, s.tried);
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
