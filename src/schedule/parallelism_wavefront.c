/* Where tiles of tokens take turns, a group of phases works on a tile one slot behind the group
 * before it (engine_job_order.c).  A stage between them has what is left of the slot: it begins
 * when the first rows of the tile come, and the unit has to find the tile's last numbers when it
 * needs them.
 *     slot:     … | c0 b1 a2 | c1 b2 a3 | …         what stands between b and c works on tile 1 beside a2, and c1 must not wait
 * A stage that is later than that makes every tile of every layer late, so it is made quicker.
 * What waits for all of a tile in its order, such as a norm, goes through it kernel by kernel;
 * what comes group by group, such as an activation, is as fast as its slowest kernel.  Attention
 * has a slot more. */
#include "ir/contract.h"
#include "schedule/parallelism.h"
#include <string.h>

/* cycles of its pipelines, and of rows that are collected meanwhile */
#define THROUGH 400
#define QUICKER 0.5 /* times its cycles, each time that a stage is late */
/* of a slot, that what stands in front of layers or behind them takes for a tile at most: the
 * unit's order waits for three tiles of the first layer, and nothing else is left behind the
 * last */
#define END_PART 0.17
/* for which it may have so many times the operators that the search may */
#define END_MORE 1.01

struct wavefront {
	const struct parallelism_space *space;
	int extent, stages, *of; /* of several tokens; [kernels] the stage of each */
	double tiles;            /* of a launch */
	double slot;             /* cycles of the unit on a tile of all phases */
	/* [phases + 1] of those of a run, by the number of its first phase */
	double *work;
	/* [stages] when the first rows that all of it waits for come, in its slot */
	double *begin;
	double *room; /* [stages] behind that */
	bool *whole;  /* [stages] in which all of a tile is put in another order */
};

static void measure_jobs(struct wavefront *s)
{
	bool *counted = ARENA_ARRAY(s->space->arena, bool, s->space->jobs + 1);
	for (int k = 0; k < s->space->kernels; k++)
		for (int j = 0; j < s->space->kernel[k].operands; j++) {
			const struct parallelism_job *job = &s->space->kernel[k].job[j];
			if (!job->number || counted[job->number] || s->space->kernel[k].loop < 0)
				continue;
			counted[job->number] = true;
			s->tiles = 1 / job->tile;
			s->work[job->run] += job->sums * job->tile;
			s->slot += job->sums * job->tile;
		}
}

/* A kernel reads what a phase made of `source`: so its stage begins with the phase, and that of
 * the source ends there. */
static void note_job(struct wavefront *s, int k, int source, const struct parallelism_job *job)
{
	double begin = job->before * job->tile + job->block;
	int stage = s->of[k];
	int ends = s->of[source];
	bool whole = job->part >= job->tile;
	double left = s->slot - (whole ? s->work[job->run] : 0);
	s->begin[stage] = s->begin[stage] > begin ? s->begin[stage] : begin;
	s->room[ends] = s->room[ends] > 0 && s->room[ends] < left ? s->room[ends] : left;
	s->whole[ends] |= whole;
}

static void measure_stages(struct wavefront *s)
{
	for (int k = 0; k < s->space->kernels; k++) {
		const struct parallelism_kernel *kernel = &s->space->kernel[k];
		for (int j = 0; j < kernel->operands && kernel->loop >= 0; j++)
			if (kernel->job[j].number && kernel->source[j] >= 0)
				note_job(s, k, kernel->source[j], &kernel->job[j]);
	}
}

static bool is_of(const struct wavefront *s, int k, int stage)
{
	return s->of[k] == stage && s->space->kernel[k].loop >= 0;
}

static double slowest_of(const struct wavefront *s, int stage, const int *choice)
{
	double slowest = 0;
	for (int k = 0; k < s->space->kernels; k++) {
		double cycles = is_of(s, k, stage)
		        ? s->space->kernel[k].option[choice[k]].cycles[s->extent]
		        : 0;
		slowest = cycles > slowest ? cycles : slowest;
	}
	return slowest;
}

/* Cycles of a stage on a tile: rows go on as soon as they are there, so each kernel adds what is
 * before its first result. */
static double stage_cycles(const struct wavefront *s, int stage, const int *choice)
{
	double first = 0;
	for (int k = 0; s->whole[stage] && k < s->space->kernels; k++) {
		const struct parallelism_option *option = &s->space->kernel[k].option[choice[k]];
		first += is_of(s, k, stage)
		        ? option->timing[s->extent].first * option->cycles[s->extent]
		        : 0;
	}
	return first + slowest_of(s, stage, choice) / s->tiles;
}

/* Kernels of a stage that take no more than `pace`, each as narrow as that allows. */
static void set_pace(const struct wavefront *s, int stage, double pace, int *choice)
{
	for (int k = 0; k < s->space->kernels; k++)
		if (is_of(s, k, stage))
			choice[k] = parallelism_of_pace(s->space, k, s->extent, pace, 1);
	parallelism_follow(s->space, choice);
}

static bool is_late(const struct wavefront *s, int stage, const int *choice)
{
	return s->room[stage] > 0 && s->begin[stage] > 0 &&
	        s->begin[stage] + stage_cycles(s, stage, choice) + THROUGH > s->room[stage];
}

static bool fits(const struct parallelism_space *space, const int *choice, double times)
{
	struct parallelism_cost cost = parallelism_resources(space, choice);
	return (double)cost.dsp <= times * (double)space->budget.dsp &&
	        (double)cost.lut <= times * (double)space->budget.lut &&
	        cost.ports <= space->budget.ports;
}

/* Makes another stage that has time for it slower, for its room; false: none has. */
static bool make_room(const struct wavefront *s, int but, int *choice)
{
	const struct parallelism_space *space = s->space;
	int *tried = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	for (int stage = 0; stage < s->stages; stage++) {
		if (stage == but || !s->whole[stage] || s->room[stage] <= 0 || s->begin[stage] <= 0)
			continue;
		memcpy(tried, choice, sizeof *choice * (size_t)space->kernels);
		set_pace(s, stage, slowest_of(s, stage, choice) / QUICKER, tried);
		if (is_late(s, stage, tried) ||
		        parallelism_resources(space, tried).dsp >=
		                parallelism_resources(space, choice).dsp)
			continue;
		memcpy(choice, tried, sizeof *choice * (size_t)space->kernels);
		return true;
	}
	return false;
}

/* false: there is no room for it, or nothing is quicker. */
static bool quicken(const struct wavefront *s, int stage, int *choice)
{
	const struct parallelism_space *space = s->space;
	int *tried = arena_copy(space->arena, choice, sizeof *choice * (size_t)space->kernels);
	double slowest = slowest_of(s, stage, choice);
	for (int k = 0; k < space->kernels; k++)
		if (is_of(s, k, stage) &&
		        space->kernel[k].option[choice[k]].cycles[s->extent] > QUICKER * slowest)
			tried[k] = parallelism_of_pace(space, k, s->extent, QUICKER * slowest, 1);
	parallelism_follow(space, tried);
	bool same = !memcmp(tried, choice, sizeof *choice * (size_t)space->kernels);
	while (!same && !fits(space, tried, 1) && make_room(s, stage, tried))
		;
	if (same || !fits(space, tried, 1))
		return false;
	memcpy(choice, tried, sizeof *choice * (size_t)space->kernels);
	return true;
}

static bool reads_job(const struct parallelism_kernel *kernel)
{
	for (int j = 0; j < kernel->operands; j++)
		if (kernel->job[j].number)
			return true;
	return false;
}

/* Kernels that make what layers begin with, or work on what they end with. */
static bool *find_ends(const struct parallelism_space *space)
{
	bool *ends = ARENA_ARRAY(space->arena, bool, space->kernels + 1);
	for (int k = space->kernels - 1; k >= 0; k--)
		for (int j = 0; j < space->kernel[k].operands; j++) {
			const struct parallelism_kernel *kernel = &space->kernel[k];
			int source = kernel->loop >= 0 ? kernel->entry[j]
			        : ends[k]              ? kernel->source[j]
			                               : -1;
			if (source >= 0 && space->kernel[source].loop < 0)
				ends[source] = true;
		}
	for (int k = 0; k < space->kernels; k++)
		for (int j = 0; j < space->kernel[k].operands && space->kernel[k].loop < 0 &&
		        !reads_job(&space->kernel[k]);
		        j++) {
			int source = space->kernel[k].source[j];
			ends[k] |= source >= 0 && source < k &&
			        (space->kernel[source].loop >= 0 || ends[source]);
		}
	return ends;
}

static void quicken_ends(const struct wavefront *s, int *choice)
{
	const struct parallelism_space *space = s->space;
	const bool *ends = find_ends(space);
	int *tried = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	for (int k = 0; k < space->kernels; k++) {
		double cycles;
		while (ends[k] &&
		        (cycles = space->kernel[k].option[choice[k]].cycles[s->extent]) / s->tiles >
		                END_PART * s->slot) {
			memcpy(tried, choice, sizeof *choice * (size_t)space->kernels);
			tried[k] = parallelism_of_pace(space, k, s->extent, QUICKER * cycles, 1);
			parallelism_follow(space, tried);
			if (tried[k] == choice[k] || !fits(space, tried, END_MORE))
				break;
			memcpy(choice, tried, sizeof *choice * (size_t)space->kernels);
		}
	}
}

void parallelism_fit_wavefront(const struct parallelism_space *space, int *choice)
{
	struct wavefront s = { .space = space, .extent = space->extents - 1 };
	s.of = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	s.stages = parallelism_find_stages(space, true, s.of);
	s.whole = ARENA_ARRAY(space->arena, bool, s.stages + 1);
	s.begin = ARENA_ARRAY(space->arena, double, s.stages + 1);
	s.room = ARENA_ARRAY(space->arena, double, s.stages + 1);
	s.work = ARENA_ARRAY(space->arena, double, space->jobs + 1);
	measure_jobs(&s);
	measure_stages(&s);
	bool turns = s.tiles > WAVEFRONT_TILES_LEAST && s.tiles <= WAVEFRONT_TILES_MOST;
	for (int stage = 0; turns && stage < s.stages; stage++)
		while (is_late(&s, stage, choice) && quicken(&s, stage, choice))
			;
	if (turns)
		quicken_ends(&s, choice);
}
