/* Makes stages faster where engine jobs form a wavefront over token tiles.
 *
 * Each group of jobs works on a tile one slot after the group before it (engine_job_order.c). A
 * stage between two groups has the rest of the slot: it starts when the first rows of the tile
 * arrive, and must deliver the tile's last elements before the engine needs them.
 *     slot:   ... | c0 b1 a2 | c1 b2 a3 | ...
 * The stage between b and c works on tile 1 while the engine does a2; if it is late, c1 waits.
 * A late stage delays every tile of every layer, so it is made faster. A stage that reorders a
 * whole tile, such as a norm, delays it kernel by kernel; one that works group by group, such as
 * an activation, is as fast as its slowest kernel. Attention has one slot more. */
#include "ir/contract.h"
#include "schedule/parallelism.h"
#include <string.h>

/* cycles of a stage's pipelines and of collecting rows meanwhile */
#define THROUGH 400
#define QUICKER 0.5 /* factor on its cycles, each time that a stage is late */
/* of a slot: the most that a kernel before or after the layers takes for a tile. The engine waits
 * for three tiles before the first layer, and for the last one after the last layer. */
#define END_PART 0.17
/* factor on the operator budget for these kernels */
#define END_MORE 1.01

struct wavefront {
	const struct parallelism_space *space;
	int extent, stages, *of; /* extent: that of several tokens; of: [kernels] stage of each */
	double tiles;            /* of a launch */
	double slot;             /* cycles of the engine for one tile in all jobs */
	/* [jobs + 1] cycles for one tile of all jobs with one input, by the number of the first
	 * job */
	double *work;
	/* [stages] cycle within its slot at which all of the first rows have arrived */
	double *begin;
	double *room; /* [stages] cycle by which it must be done */
	bool *whole;  /* [stages] does it reorder a whole tile? */
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

/* Kernel k reads the result of a job that reads `source`: the stage of k starts with the job, and
 * the stage of the source ends there. */
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

/* Cycles of a stage for one tile: rows stream on at once, so each kernel adds only the cycles
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

/* Gives each kernel of a stage the least parallelism that takes no more than `pace` cycles. */
static void set_pace(const struct wavefront *s, int stage, double pace, int *choice)
{
	for (int k = 0; k < s->space->kernels; k++)
		if (is_of(s, k, stage))
			choice[k] = parallelism_of_pace(s->space, k, s->extent, pace, 1);
	parallelism_follow(s->space, choice);
}

static bool is_over_slot(const struct wavefront *s, int stage, const int *choice)
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

/* Makes another stage slower that has time for it, to free its operators; false: there is none. */
static bool make_room(const struct wavefront *s, int but, int *choice)
{
	const struct parallelism_space *space = s->space;
	int *tried = ARENA_ARRAY(space->arena, int, space->kernels + 1);
	for (int stage = 0; stage < s->stages; stage++) {
		if (stage == but || !s->whole[stage] || s->room[stage] <= 0 || s->begin[stage] <= 0)
			continue;
		memcpy(tried, choice, sizeof *choice * (size_t)space->kernels);
		set_pace(s, stage, slowest_of(s, stage, choice) / QUICKER, tried);
		if (is_over_slot(s, stage, tried) ||
		        parallelism_resources(space, tried).dsp >=
		                parallelism_resources(space, choice).dsp)
			continue;
		memcpy(choice, tried, sizeof *choice * (size_t)space->kernels);
		return true;
	}
	return false;
}

/* false: the budget does not allow it, or no option is faster. */
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

/* Kernels that produce the input of the first layer, or work on the result of the last one. */
static bool *find_ends(const struct parallelism_space *space)
{
	bool *ends = ARENA_ARRAY(space->arena, bool, space->kernels + 1);
	for (int k = space->kernels - 1; k >= 0; k--)
		for (int j = 0; j < space->kernel[k].operands; j++) {
			const struct parallelism_kernel *kernel = &space->kernel[k];
			int source = ends[k] ? kernel->source[j] : -1;
			if (kernel->loop >= 0)
				source = kernel->entry[j];
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
	bool is_wavefront = s.tiles > WAVEFRONT_TILES_LEAST && s.tiles <= WAVEFRONT_TILES_MOST;
	for (int stage = 0; is_wavefront && stage < s.stages; stage++)
		while (is_over_slot(&s, stage, choice) && quicken(&s, stage, choice))
			;
	if (is_wavefront)
		quicken_ends(&s, choice);
}
