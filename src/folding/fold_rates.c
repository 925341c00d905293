/* Chooses lanes and terms of all stages of a pipeline together (fold_rates.h). */
#include "folding/fold_rates.h"
#include "schedule/kernel_schedule.h"
#include <stdlib.h>

int64_t fold_stage_dsp(const struct fold_stage *stage, int64_t pe, int64_t simd)
{
	int64_t products = pe * simd;
	bool packed = stage->packed && pe > 1 && simd > 1 && products % 2 == 0;
	if (!stage->products)
		return pe * stage->dsp;
	return pe * stage->dsp + (packed ? products / 2 : products);
}

int fold_widths(int64_t extent, int64_t width[64])
{
	int count = 0;
	int64_t rest = extent;
	width[count++] = 1;
	for (int64_t factor = 2; rest > 1; factor++) {
		if (factor * factor > rest)
			factor = rest;
		for (; rest % factor == 0; rest /= factor, count++)
			width[count] = width[count - 1] * factor;
	}
	return count;
}

/* Sets the words of fewest DSPs with which the stage keeps the interval; of equal ones those whose
 * sides are most alike.  false: none does, and the fastest is set. */
static bool keep_interval(struct fold_stage *stage, double interval)
{
	int64_t lanes[64];
	int64_t terms[64];
	int lane_widths = fold_widths(stage->channels, lanes);
	int term_widths = fold_widths(stage->terms, terms);
	double best_cost = -1;
	stage->cycles = stage->points;
	stage->pe = stage->simd = 1;
	for (int i = 0; i < lane_widths * term_widths; i++) {
		int64_t pe = lanes[i % lane_widths];
		int64_t simd = terms[i / lane_widths];
		double cycles = stage->points / (double)(pe * simd);
		if (pe * simd * stage->bits > WORD_BITS)
			continue;
		double cost = (double)fold_stage_dsp(stage, pe, simd) +
		        (double)(pe + simd) / (4 * WORD_BITS);
		bool better = best_cost < 0 ? cycles < stage->cycles
		                            : cycles <= interval && cost < best_cost;
		if (!better && !(best_cost < 0 && cycles <= interval))
			continue;
		best_cost = cycles <= interval ? cost : -1;
		stage->pe = pe;
		stage->simd = simd;
		stage->cycles = cycles;
	}
	return best_cost >= 0;
}

static double slowest(const struct fold_stage *stage, int stages)
{
	double cycles = 0;
	for (int i = 0; i < stages; i++)
		cycles = stage[i].cycles > cycles ? stage[i].cycles : cycles;
	return cycles;
}

static bool fits(struct fold_stage *stage, int stages, double interval, int64_t dsp)
{
	int64_t taken = 0;
	bool kept = true;
	for (int i = 0; i < stages; i++) {
		kept = keep_interval(&stage[i], interval) && kept;
		taken += fold_stage_dsp(&stage[i], stage[i].pe, stage[i].simd);
	}
	return kept && taken <= dsp;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;
	return (a > b) - (a < b);
}

double choose_fold_rates(struct arena *arena, struct fold_stage *stage, int stages, int64_t dsp)
{
	double *interval = ARENA_ARRAY(arena, double, (size_t)stages * 64 * 64 + 1);
	int count = 0;
	for (int i = 0; i < stages; i++) {
		int64_t lanes[64];
		int64_t terms[64];
		int lane_widths = fold_widths(stage[i].channels, lanes);
		int term_widths = fold_widths(stage[i].terms, terms);
		for (int w = 0; w < lane_widths * term_widths; w++)
			interval[count++] = stage[i].points /
			        (double)(lanes[w % lane_widths] * terms[w / lane_widths]);
	}
	qsort(interval, (size_t)count, sizeof *interval, compare);
	int low = 0;
	int high = count - 1;
	while (low < high) {
		int middle = (low + high) / 2;
		if (fits(stage, stages, interval[middle], dsp))
			high = middle;
		else
			low = middle + 1;
	}
	if (count)
		fits(stage, stages, interval[low], dsp);
	return slowest(stage, stages);
}
